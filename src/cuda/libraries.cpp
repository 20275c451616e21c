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

// Enums of these libraries, written out so that no header of theirs is needed. They, and the functions, are the same in
// every version that is opened here.
constexpr int left = 0, right = 1, lower = 0, upper = 1, no_transpose = 0, transpose = 1, not_unit = 0;

int fill_mode(Uplo uplo) { return uplo == Uplo::lower ? lower : upper; }

/// A shared library that stays open.
class Library {
 public:
  /// Opens the library. `versions`: those whose functions are called here, the most wanted first. Throws
  /// backend_unavailable.
  Library(const char* name, const char* reason, const std::string& stem, const std::vector<int>& versions)
      : name_(name), reason_(reason) {
    std::vector<std::string> files;
    for (const int version : versions) files.push_back(stem + "." + std::to_string(version));
    files.push_back(stem);
    std::string first_complaint;
    for (const std::string& file : files)
      for (const std::string& path : {file, GPUCHOLMOD_CUDA_LIBRARIES "/" + file}) {
        library_ = dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL);
        if (library_) return;
        if (first_complaint.empty()) first_complaint = dlerror();
      }
    refuse(first_complaint);
  }

  /// Calls a function of the library that returns a status. The arguments must have exactly the types of its
  /// parameters; enums are passed as ints.
  template <class... Arguments>
  void call(const std::string& function, const char* operation, Arguments... arguments) const {
    static_assert(((std::is_pointer_v<Arguments> || std::is_same_v<Arguments, int>) && ...));
    const auto address = reinterpret_cast<int (*)(Arguments...)>(dlsym(library_, function.c_str()));
    if (!address) refuse("it has no function " + function);
    const int status = address(arguments...);
    if (status == 0) return;
    throw Error(ErrorCode::cuda_failure, std::string(operation) + " failed with status " + std::to_string(status),
                {{"status", double(status)}, {"operation", operation}});
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(ErrorCode::backend_unavailable, std::string(name_) + " cannot be loaded: " + why,
                {{"backend", "cuda"}, {"reason", reason_}});
  }

  const char *name_, *reason_;
  void* library_ = nullptr;
};

// The version of the toolkit is tried first: 13 -> cuBLAS 13, cuSOLVER 12.
int toolkit() { return status(false).toolkit_version / 1000; }

const Library& cublas() {
  static const Library library("cuBLAS", "no_cublas", "libcublas.so", {toolkit(), 13, 12, 11});
  return library;
}

const Library& cusolver() {
  static const Library library("cuSOLVER", "no_cusolver", "libcusolver.so",
                               {toolkit() > 11 ? toolkit() - 1 : 11, 12, 11, 10});
  return library;
}

/// Returns the name of a function for scalars T.
template <class T>
std::string of(const std::string& before, const char* after) {
  return before + (std::is_same_v<T, double> ? 'D' : 'S') + after;
}

}  // namespace

Cublas::Cublas(void* stream) {
  cublas().call("cublasCreate_v2", "cublasCreate", &handle_);
  cublas().call("cublasSetStream_v2", "cublasSetStream", handle_, stream);
}

template <class T>
void Cublas::solve(bool transposed, index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb, T size) const {
  const int trans = transposed ? transpose : no_transpose;
  if (m == 1 && size == 1)
    cublas().call(of<T>("cublas", "trsv_v2"), "cublas trsv", handle_, upper, trans, not_unit, int(n), dR, int(ldr), dB,
                  1);
  else
    cublas().call(of<T>("cublas", "trsm_v2"), "cublas trsm", handle_, left, upper, trans, not_unit, int(n), int(m),
                  &size, dR, int(ldr), dB, int(ldb));
}

template <class T>
void Cublas::solve_right(index_t m, index_t n, const T* dR, index_t ldr, T* dB, index_t ldb) const {
  const T one = 1;
  cublas().call(of<T>("cublas", "trsm_v2"), "cublas trsm", handle_, right, upper, no_transpose, not_unit, int(m),
                int(n), &one, dR, int(ldr), dB, int(ldb));
}

template <class T>
void Cublas::subtract_product(MatrixView<const T> dA, MatrixView<const T> dB, MatrixView<T> dC) const {
  const T minus = -1, one = 1;
  cublas().call(of<T>("cublas", "gemm_v2"), "cublas gemm", handle_, transpose, no_transpose, int(dC.rows), int(dC.cols),
                int(dA.rows), &minus, dA.data, int(dA.ld), dB.data, int(dB.ld), &one, dC.data, int(dC.ld));
}

template <class T>
void Cublas::multiply_transposed(index_t n, index_t m, const T* dR, index_t ldr, T* dB, index_t ldb) const {
  const T one = 1;
  cublas().call(of<T>("cublas", "trmm_v2"), "cublas trmm", handle_, left, upper, transpose, not_unit, int(n), int(m),
                &one, dR, int(ldr), dB, int(ldb), dB, int(ldb));
}

Cusolver::Cusolver(void* stream) {
  cusolver().call("cusolverDnCreate", "cusolverDnCreate", &handle_);
  cusolver().call("cusolverDnSetStream", "cusolverDnSetStream", handle_, stream);
}

template <class T>
index_t Cusolver::workspace(Uplo uplo, index_t n, T* dA, index_t lda) const {
  int words = 0;
  cusolver().call(of<T>("cusolverDn", "potrf_bufferSize"), "cusolver potrf_bufferSize", handle_, fill_mode(uplo),
                  int(n), dA, int(lda), &words);
  return words;
}

template <class T>
void Cusolver::factorise(Uplo uplo, index_t n, T* dA, index_t lda, T* dwork, index_t words, int* dinfo) const {
  cusolver().call(of<T>("cusolverDn", "potrf"), "cusolver potrf", handle_, fill_mode(uplo), int(n), dA, int(lda), dwork,
                  int(words), dinfo);
}

template void Cublas::solve(bool, index_t, index_t, const double*, index_t, double*, index_t, double) const;
template void Cublas::solve(bool, index_t, index_t, const float*, index_t, float*, index_t, float) const;
template void Cublas::solve_right(index_t, index_t, const double*, index_t, double*, index_t) const;
template void Cublas::solve_right(index_t, index_t, const float*, index_t, float*, index_t) const;
template void Cublas::subtract_product(MatrixView<const double>, MatrixView<const double>, MatrixView<double>) const;
template void Cublas::subtract_product(MatrixView<const float>, MatrixView<const float>, MatrixView<float>) const;
template void Cublas::multiply_transposed(index_t, index_t, const double*, index_t, double*, index_t) const;
template void Cublas::multiply_transposed(index_t, index_t, const float*, index_t, float*, index_t) const;
template index_t Cusolver::workspace(Uplo, index_t, double*, index_t) const;
template index_t Cusolver::workspace(Uplo, index_t, float*, index_t) const;
template void Cusolver::factorise(Uplo, index_t, double*, index_t, double*, index_t, int*) const;
template void Cusolver::factorise(Uplo, index_t, float*, index_t, float*, index_t, int*) const;

}  // namespace gpucholmod::cuda
