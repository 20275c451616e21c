#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/factor_io.h"
#include "base/sizes.h"
#include "cpu/eigen.h"
#include "cuda/backend.h"
#include <gpucholmod.h>

/// What the functions of inst/include/gpucholmod.h share.
namespace gpucholmod::c {

/// A call has half modified what it was given to change, or was given a factor that is half modified.
struct HalfModified : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline int code_of(const Error& error) {
  switch (error.code()) {
    case ErrorCode::not_finite: return GPUCHOLMOD_NOT_FINITE;
    case ErrorCode::bad_diagonal: return GPUCHOLMOD_BAD_DIAGONAL;
    case ErrorCode::overflow: return GPUCHOLMOD_OVERFLOW;
    case ErrorCode::backend_unavailable: return cuda::built() ? GPUCHOLMOD_BACKEND_UNAVAILABLE : GPUCHOLMOD_NOT_BUILT;
    case ErrorCode::out_of_memory: return GPUCHOLMOD_OUT_OF_MEMORY;
    case ErrorCode::cuda_failure: return GPUCHOLMOD_CUDA_FAILURE;
    default: return GPUCHOLMOD_BAD_ARGUMENT;
  }
}

inline int tell(gpucholmod_status* status, int code, const char* message, index_t pivot = 0, index_t row = 0,
                index_t col = 0) {
  if (status) {
    status->code = code;
    status->pivot = pivot;
    status->row = row;
    status->col = col;
    status->message[0] = status->message[sizeof status->message - 1] = 0;
    if (*message) std::strncpy(status->message, message, sizeof status->message - 1);
  }
  return code;
}

/// Returns the code for f(), which returns a failing pivot, from 0, or -1. Lets no exception out.
template <class F>
int guarded(gpucholmod_status* status, F&& f) noexcept {
  try {
    const index_t pivot = f();
    if (pivot < 0) return tell(status, GPUCHOLMOD_OK, "");
    return tell(status, GPUCHOLMOD_NOT_POSITIVE_DEFINITE, "the modified matrix is not positive definite", pivot + 1);
  } catch (const Error& error) {
    index_t row = 0, col = 0;
    for (const auto& [name, value] : error.fields()) {
      const double* const number = std::get_if<double>(&value);
      if (number && (name == "row" || name == "index")) row = index_t(*number);
      if (number && name == "col") col = index_t(*number);
    }
    return tell(status, code_of(error), error.what(), 0, row, col);
  } catch (const HalfModified& error) {
    return tell(status, GPUCHOLMOD_HALF_MODIFIED, error.what());
  } catch (const std::bad_alloc&) {
    return tell(status, GPUCHOLMOD_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::length_error&) {  // of a std::vector
    return tell(status, GPUCHOLMOD_OUT_OF_MEMORY, "no object in memory can be as large as this takes");
  } catch (const std::exception& error) {
    return tell(status, GPUCHOLMOD_INTERNAL, error.what());
  } catch (...) {
    return tell(status, GPUCHOLMOD_INTERNAL, "something unknown was thrown");
  }
}

/// Throws bad_argument.
inline void require(bool holds, const char* argument, const char* what) {
  if (!holds) throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' " + what, {{"argument", argument}});
}

inline Uplo uplo_of(int form) { return form & GPUCHOLMOD_LOWER ? Uplo::lower : Uplo::upper; }

inline void require_form(int form) {
  require(form >= 0 && form <= (GPUCHOLMOD_LOWER | GPUCHOLMOD_TRUSTED), "form", "must be of gpucholmod_form");
}

/// Returns a view of the caller's matrix; rows and cols are not negative. Throws bad_argument, also where no memory can
/// hold so large a matrix: so products of its sizes do not overflow.
template <class S>
MatrixView<S> matrix(const char* argument, S* data, index_t rows, index_t cols, index_t ld) {
  require(ld >= rows, argument, "has a leading dimension below its rows");
  require(can_exist(ld, cols, sizeof(S)), argument,
          "is larger than any memory by its leading dimension and its columns");
  require(data != nullptr || rows == 0 || cols == 0, argument, "is missing");
  return {data, rows, cols, ld};
}

/// Throws bad_argument unless there are k finite weights, or none.
inline void require_weights(const double* weights, index_t k) {
  if (!weights) return;
  static_cast<void>(matrix("weights", weights, k, 1, k));
  for (index_t q = 0; q < k; ++q) require(std::isfinite(weights[q]), "weights", "must be finite");
}

/// Returns the columns one after the other, without a gap.
template <class S>
std::vector<S> packed(MatrixView<const S> A) {
  std::vector<S> all(A.rows * A.cols);
  for (index_t j = 0; j < A.cols; ++j) std::copy_n(A.col(j), A.rows, all.data() + j * A.rows);
  return all;
}

/// Copies a triangle to another place of the same order. By vectors, without a call for each column: small factors are
/// copied in no time.
template <class S>
void copy_triangle(MatrixView<const S> from, Uplo uplo, MatrixView<S> to) {
  using Column = Eigen::Array<S, Eigen::Dynamic, 1>;
  for (index_t j = 0; j < from.cols; ++j) {
    const index_t first = uplo == Uplo::upper ? 0 : j, rows = uplo == Uplo::upper ? j + 1 : from.cols - j;
    Eigen::Map<Column>(to.col(j) + first, rows) = Eigen::Map<const Column>(from.col(j) + first, rows);
  }
}

/// Returns the triangle as a matrix without gaps, whose other triangle is zero. The other triangle of R is not read.
template <class S>
std::vector<S> packed_triangle(MatrixView<const S> R, Uplo uplo) {
  std::vector<S> all(R.cols * R.cols);
  copy_triangle<S>(R, uplo, {all.data(), R.cols, R.cols, R.cols});
  return all;
}

}  // namespace gpucholmod::c
