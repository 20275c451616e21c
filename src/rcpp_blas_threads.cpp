#include <Rcpp.h>

#ifndef _WIN32
#include <dlfcn.h>
#endif

// R's BLAS may have threads of its own, which no function of R knows of: by the names that its libraries have for them.

// How many threads R's BLAS takes at most, after they have been set to `threads` where that is not 0. NA where it has
// no such number.
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
