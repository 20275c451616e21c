#include "cuda/libraries.h"

#include <dlfcn.h>

#include <string>
#include <type_traits>
#include <vector>

#include "cuda/backend.h"
#include "base/error.h"
#include "cuda_build.h"

namespace gpucholmod::cuda {
namespace {

// By hand, so that no header of these libraries is needed; the same in every version that is opened here.
constexpr int left = 0, lower = 0, upper = 1, transpose = 1, not_unit = 0;

int fill_mode(Uplo uplo) { return uplo == Uplo::lower ? lower : upper; }

template <class T>
struct Triangular {
  int (*trsm)(void* handle, int side, int uplo, int trans, int diag, int m, int n, const T* alpha, const T* A, int lda,
              T* B, int ldb);
  int (*trsv)(void* handle, int uplo, int trans, int diag, int n, const T* A, int lda, T* x, int incx);
  int (*trmm)(void* handle, int side, int uplo, int trans, int diag, int m, int n, const T* alpha, const T* A, int lda,
              const T* B, int ldb, T* C, int ldc);
};

template <class T>
struct Factorisation {
  int (*potrf_buffer_size)(void* handle, int uplo, int n, T* A, int lda, int* words);
  int (*potrf)(void* handle, int uplo, int n, T* A, int lda, T* work, int words, int* info);
};

template <template <class> class Routines>
struct Table {
  int (*create)(void** handle);
  int (*set_stream)(void* handle, void* stream);
  Routines<double> for_double;
  Routines<float> for_float;

  template <class T>
  const Routines<T>& of() const {
    if constexpr (std::is_same_v<T, double>) return for_double;
    else return for_float;
  }
};

/// An open shared library; stays open.
class Library {
 public:
  /// `versions`: those that have these prototypes, the most wanted first.
  Library(const char* name, const char* reason, const std::string& stem, const std::vector<int>& versions)
      : name_(name), reason_(reason) {
    std::vector<std::string> files;
    for (const int version : versions) files.push_back(stem + ".so." + std::to_string(version));
    files.push_back(stem + ".so");
    std::string first_complaint;
    for (const std::string& file : files)
      for (const std::string& path : {file, GPUCHOLMOD_CUDA_LIBRARIES "/" + file}) {
        library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (library_) return;
        if (first_complaint.empty()) first_complaint = dlerror();
      }
    refuse(first_complaint);
  }

  template <class F>
  void find(const char* symbol, F*& function) const {
    function = reinterpret_cast<F*>(dlsym(library_, symbol));
    if (!function) refuse(std::string("it has no function ") + symbol);
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::backend_unavailable, std::string(name_) + " cannot be loaded: " + why,
                {{"backend", "cuda"}, {"reason", reason_}});
  }

  const char *name_, *reason_;
  void* library_ = nullptr;
};

/// The versions to try, that of the toolkit first: 13 -> cuBLAS 13, cuSOLVER 12.
std::vector<int> preferring(int version, std::vector<int> versions) {
  versions.insert(versions.begin(), version);
  return versions;
}
int toolkit() { return status(false).toolkit_version / 1000; }

const Table<Triangular>& cublas() {
  static const Table<Triangular> table = [] {
    const Library library("cuBLAS", "no_cublas", "libcublas", preferring(toolkit(), {13, 12, 11}));
    Table<Triangular> t;
    library.find("cublasCreate_v2", t.create);
    library.find("cublasSetStream_v2", t.set_stream);
    library.find("cublasDtrsm_v2", t.for_double.trsm);
    library.find("cublasStrsm_v2", t.for_float.trsm);
    library.find("cublasDtrsv_v2", t.for_double.trsv);
    library.find("cublasStrsv_v2", t.for_float.trsv);
    library.find("cublasDtrmm_v2", t.for_double.trmm);
    library.find("cublasStrmm_v2", t.for_float.trmm);
    return t;
  }();
  return table;
}

const Table<Factorisation>& cusolver() {
  static const Table<Factorisation> table = [] {
    const Library library("cuSOLVER", "no_cusolver", "libcusolver",
                          preferring(toolkit() > 11 ? toolkit() - 1 : 11, {12, 11, 10}));
    Table<Factorisation> t;
    library.find("cusolverDnCreate", t.create);
    library.find("cusolverDnSetStream", t.set_stream);
    library.find("cusolverDnDpotrf_bufferSize", t.for_double.potrf_buffer_size);
    library.find("cusolverDnSpotrf_bufferSize", t.for_float.potrf_buffer_size);
    library.find("cusolverDnDpotrf", t.for_double.potrf);
    library.find("cusolverDnSpotrf", t.for_float.potrf);
    return t;
  }();
  return table;
}

void check(int status, const char* operation) {
  if (status == 0) return;
  throw Error(ErrorCode::cuda_failure, std::string(operation) + " failed with status " + std::to_string(status),
              {{"status", double(status)}, {"operation", operation}});
}

}  // namespace

Cublas::Cublas(void* stream) {
  check(cublas().create(&handle_), "cublasCreate");
  check(cublas().set_stream(handle_, stream), "cublasSetStream");
}

template <class T>
void Cublas::solve(bool transposed, index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb) const {
  const Triangular<T>& routines = cublas().of<T>();
  const T one = 1;
  if (m == 1)
    check(routines.trsv(handle_, upper, transposed, not_unit, int(n), dR, int(ldr), dB, 1), "cublas trsv");
  else
    check(routines.trsm(handle_, left, upper, transposed, not_unit, int(n), int(m), &one, dR, int(ldr), dB, int(ldb)),
          "cublas trsm");
}

template <class T>
void Cublas::multiply_transposed(index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb) const {
  const T one = 1;
  check(cublas().of<T>().trmm(handle_, left, upper, transpose, not_unit, int(n), int(m), &one, dR, int(ldr), dB,
                              int(ldb), dB, int(ldb)),
        "cublas trmm");
}

Cusolver::Cusolver(void* stream) {
  check(cusolver().create(&handle_), "cusolverDnCreate");
  check(cusolver().set_stream(handle_, stream), "cusolverDnSetStream");
}

template <class T>
index_t Cusolver::workspace(Uplo uplo, index_t n, T* dA, index_t lda) const {
  int words = 0;
  check(cusolver().of<T>().potrf_buffer_size(handle_, fill_mode(uplo), int(n), dA, int(lda), &words),
        "cusolver potrf_bufferSize");
  return words;
}

template <class T>
void Cusolver::factorise(Uplo uplo, index_t n, T* dA, index_t lda, T* dwork, index_t words, int* dinfo) const {
  check(cusolver().of<T>().potrf(handle_, fill_mode(uplo), int(n), dA, int(lda), dwork, int(words), dinfo),
        "cusolver potrf");
}

template void Cublas::solve(bool, index_t, index_t, const double*, index_t, double*, index_t) const;
template void Cublas::solve(bool, index_t, index_t, const float*, index_t, float*, index_t) const;
template void Cublas::multiply_transposed(index_t, index_t, const double*, index_t, double*, index_t) const;
template void Cublas::multiply_transposed(index_t, index_t, const float*, index_t, float*, index_t) const;
template index_t Cusolver::workspace(Uplo, index_t, double*, index_t) const;
template index_t Cusolver::workspace(Uplo, index_t, float*, index_t) const;
template void Cusolver::factorise(Uplo, index_t, double*, index_t, double*, index_t, int*) const;
template void Cusolver::factorise(Uplo, index_t, float*, index_t, float*, index_t, int*) const;

}  // namespace gpucholmod::cuda
