#include <Rcpp.h>

#include <gpucholmod.h>

/// For other packages: inst/include/gpucholmod.h.
// [[Rcpp::init]]
void register_c_interface(DllInfo* dll) {
  static_cast<void>(dll);
#define GPUCHOLMOD_REGISTER(result, name, parameters, arguments) \
  R_RegisterCCallable("gpucholmod", "gpucholmod_" #name, reinterpret_cast<DL_FUNC>(gpucholmod_##name));
  GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_REGISTER)
#undef GPUCHOLMOD_REGISTER
}
