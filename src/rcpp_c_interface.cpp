#include <Rcpp.h>

#include <gpucholmod_r.h>

namespace {

#define GPUCHOLMOD_ADDRESS(name) &gpucholmod_##name,
const gpucholmod_api table{GPUCHOLMOD_ABI, sizeof(gpucholmod_api), GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_ADDRESS)};
#undef GPUCHOLMOD_ADDRESS

const gpucholmod_api* table_of_functions() { return &table; }

}  // namespace

/// Registers the table of functions for other packages: inst/include/gpucholmod_r.h.
// [[Rcpp::init]]
void register_c_interface(DllInfo* dll) {
  static_cast<void>(dll);
  R_RegisterCCallable("gpucholmod", "gpucholmod_api", reinterpret_cast<DL_FUNC>(table_of_functions));
}
