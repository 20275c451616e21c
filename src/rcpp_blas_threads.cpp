#include <Rcpp.h>

#ifndef _WIN32
#include <dlfcn.h>
#endif

// R's BLAS may have threads of its own, for which R has no functions. BLAS libraries have functions of the names below.

// Returns the most threads that R's BLAS uses, after setting this number to `threads`, unless that is 0. Returns NA if
// the BLAS has no such number.
// [[Rcpp::export(rng = false)]]
int rcpp_blas_threads(int threads) {
#ifndef _WIN32
  const char* const names[][2] = {{"openblas_get_num_threads", "openblas_set_num_threads"},
                                  {"MKL_Get_Max_Threads", "MKL_Set_Num_Threads"},
                                  {"bli_thread_get_num_threads", "bli_thread_set_num_threads"},
                                  {"flexiblas_get_num_threads", "flexiblas_set_num_threads"}};
  for (const auto& [get_name, set_name] : names) {
    const auto get = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, get_name));
    const auto set = reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, set_name));
    if (!get || !set) continue;
    if (threads > 0) set(threads);
    return get();
  }
#endif
  return NA_INTEGER;
}
