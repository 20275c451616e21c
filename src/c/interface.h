#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

#include "base/error.h"
#include "base/factor_io.h"
#include "base/sizes.h"
#include "cpu/eigen.h"
#include "cuda/backend.h"
#include <gpucholmod.h>

/// Code that the functions of inst/include/gpucholmod.h share.
namespace gpucholmod::c {

/// The exception of a call that has half modified the object that it was to change, or that was given such an object.
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

/// The exception that is thrown if a progress function asks to stop.
struct Stopped {};

/// The place of an error. Numbers count from 1; 0 means that a number does not apply. `argument` lives as long as the
/// error that holds this name.
struct Position {
  index_t pivot = 0, row = 0, col = 0, member = 0;
  const char* argument = "";
};

inline Position position_of(const Error& error) {
  Position at;
  for (const auto& [name, value] : error.fields()) {
    const double* const number = std::get_if<double>(&value);
    if (!number && name == "argument") at.argument = std::get<std::string>(value).c_str();
    if (!number) continue;
    if (name == "row" || name == "index") at.row = index_t(*number);
    if (name == "col") at.col = index_t(*number);
    if (name == "member") at.member = index_t(*number);
  }
  return at;
}

/// Copies a text to `to`, cut off where `to` ends, and appends a 0.
template <std::size_t room>
void copy_text(const char* text, char (&to)[room]) {
  to[0] = to[room - 1] = 0;
  if (*text) std::strncpy(to, text, room - 1);
}

inline int tell(gpucholmod_status* status, int code, const char* message, const Position& at = {}) {
  if (status) {
    status->code = code;
    status->pivot = at.pivot;
    status->row = at.row;
    status->col = at.col;
    status->member = at.member;
    copy_text(at.argument, status->argument);
    copy_text(message, status->message);
  }
  return code;
}

/// Calls f(), which returns a failing pivot, counted from 0, or -1. Returns the code. Lets no exception out.
template <class F>
int guarded(gpucholmod_status* status, F&& f) noexcept {
  try {
    const index_t pivot = f();
    if (pivot < 0) return tell(status, GPUCHOLMOD_OK, "");
    return tell(status, GPUCHOLMOD_NOT_POSITIVE_DEFINITE, "the modified matrix is not positive definite", {pivot + 1});
  } catch (const Error& error) {
    return tell(status, code_of(error), error.what(), position_of(error));
  } catch (const HalfModified& error) {
    return tell(status, GPUCHOLMOD_HALF_MODIFIED, error.what());
  } catch (const Stopped&) {
    return tell(status, GPUCHOLMOD_STOPPED, "the progress function has stopped the call");
  } catch (const std::bad_alloc&) {
    return tell(status, GPUCHOLMOD_OUT_OF_MEMORY, "the host is out of memory");
  } catch (const std::length_error&) {  // thrown by a std::vector
    return tell(status, GPUCHOLMOD_OUT_OF_MEMORY, "no object in memory can be as large as this takes");
  } catch (const std::exception& error) {
    return tell(status, GPUCHOLMOD_INTERNAL, error.what());
  } catch (...) {
    return tell(status, GPUCHOLMOD_INTERNAL, "something unknown was thrown");
  }
}

[[noreturn, gnu::cold, gnu::noinline]] inline void refuse(const char* argument, const char* what) {
  throw Error(ErrorCode::bad_argument, std::string("'") + argument + "' " + what, {{"argument", argument}});
}
/// Throws bad_argument unless `holds` is true. Is inlined: two dozen calls, one for each argument, would take as long
/// as a small factor.
[[gnu::always_inline]] inline void require(bool holds, const char* argument, const char* what) {
  if (!holds) refuse(argument, what);
}

/// Returns f(). If f() throws an Error about an argument that the core calls `core`, throws the Error with `callers`,
/// the caller's name for the argument.
template <class F>
auto renaming(const std::string& core, const std::string& callers, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    if (position_of(error).argument != core) throw;
    Error::Fields fields = error.fields();
    for (auto& [name, value] : fields)
      if (name == "argument") value = callers;
    std::string message = error.what();
    const std::size_t at = message.find("'" + core + "'");
    if (at != std::string::npos) message.replace(at + 1, core.size(), callers);
    throw Error(error.code(), message, std::move(fields));
  }
}

template <class S>
constexpr int type_of = sizeof(S) == sizeof(double) ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT;

/// Returns f(S()) for the scalar S of a gpucholmod_type. Throws bad_argument.
template <class F>
auto with_type(const char* argument, int type, F&& f) {
  require(type == GPUCHOLMOD_DOUBLE || type == GPUCHOLMOD_FLOAT, argument, "has a type that is no gpucholmod_type");
  return type == GPUCHOLMOD_DOUBLE ? f(double()) : f(float());
}

/// Throws bad_argument unless A can exist in memory. Products of its sizes then do not overflow.
template <class M>
void require_matrix(const char* argument, const M& A, std::size_t scalar) {
  require(A.rows >= 0 && A.cols >= 0, argument, "has a negative size");
  require(A.ld >= A.rows, argument, "has a leading dimension below its rows");
  require(can_exist(A.ld, A.cols, scalar), argument,
          "is larger than any memory by its leading dimension and its columns");
  require(A.data != nullptr || A.rows == 0 || A.cols == 0, argument, "is missing");
}

/// Returns a view of a matrix of the caller's. Throws bad_argument. A view without rows has leading dimension 0: all of
/// its columns are at `data`, which may be null.
template <class S>
MatrixView<S> view(const char* argument, const gpucholmod_matrix& A) {
  require(A.type == type_of<S>, argument, "has another type than it must have here");
  require_matrix(argument, A, sizeof(S));
  return {static_cast<S*>(A.data), A.rows, A.cols, A.rows > 0 ? A.ld : 0};
}
template <class S>
MatrixView<const S> view(const char* argument, const gpucholmod_const_matrix& A) {
  require(A.type == type_of<S>, argument, "has another type than it must have here");
  require_matrix(argument, A, sizeof(S));
  return {static_cast<const S*>(A.data), A.rows, A.cols, A.rows > 0 ? A.ld : 0};
}

/// Throws bad_argument unless A is rows x cols.
template <class M>
void require_shape(const char* argument, const M& A, index_t rows, index_t cols) {
  require(A.rows == rows, argument, "has another number of rows than it must have here");
  require(A.cols == cols, argument, "has another number of columns than it must have here");
}

/// Throws bad_argument unless `weights` is null or points to k finite numbers.
inline void require_weights(const char* argument, const double* weights, index_t k) {
  if (!weights) return;
  require(can_exist(k, 1, sizeof(double)), argument, "are more than any memory has");
  for (index_t q = 0; q < k; ++q) require(std::isfinite(weights[q]), argument, "must be finite");
}

/// Throws bad_argument unless A, of either type, can exist in memory.
inline void require_sizes(const char* argument, const gpucholmod_const_matrix& A) {
  with_type(argument, A.type, [&](auto s) { require_matrix(argument, A, sizeof s); });
}

/// Returns the columns of A, one after the other without a gap, as numbers of T.
template <class T, class S>
std::vector<T> packed(MatrixView<const S> A) {
  std::vector<T> all(A.rows * A.cols);
  for (index_t j = 0; j < A.cols; ++j) std::copy_n(A.col(j), A.rows, all.data() + j * A.rows);
  return all;
}

/// Copies a triangle to a matrix of the same order. Uses vectors instead of a call for each column, so that a small
/// factor is copied in almost no time.
template <class S, class T = S>
void copy_triangle(MatrixView<const S> from, Uplo uplo, MatrixView<T> to) {
  using Column = Eigen::Array<S, Eigen::Dynamic, 1>;
  using Copied = Eigen::Array<T, Eigen::Dynamic, 1>;
  for (index_t j = 0; j < from.cols; ++j) {
    const index_t first = uplo == Uplo::upper ? 0 : j, rows = uplo == Uplo::upper ? j + 1 : from.cols - j;
    Eigen::Map<Copied>(to.col(j) + first, rows) =
        Eigen::Map<const Column>(from.col(j) + first, rows).template cast<T>();
  }
}

/// Returns A, of either type, as doubles without gaps. Throws bad_argument.
inline std::vector<double> packed_doubles(const char* argument, const gpucholmod_const_matrix& A) {
  return with_type(argument, A.type, [&](auto s) { return packed<double>(view<decltype(s)>(argument, A)); });
}

/// A matrix of either type as doubles without gaps: the caller's memory, if it holds such numbers already, or a copy.
class PackedDoubles {
 public:
  PackedDoubles() = default;
  /// Refers to A if possible, or else copies A. Throws bad_argument.
  PackedDoubles(const char* argument, const gpucholmod_const_matrix& A) {
    with_type(argument, A.type, [&](auto s) {
      const auto given = view<decltype(s)>(argument, A);
      if constexpr (std::is_same_v<decltype(s), double>) {
        data_ = given.data;
        if (given.ld == given.rows || given.cols <= 1) return;
      }
      copy_ = packed<double>(given);
      data_ = copy_.data();
    });
  }
  PackedDoubles(PackedDoubles&&) = default;
  PackedDoubles& operator=(PackedDoubles&&) = default;

  const double* data() const { return data_; }

 private:
  std::vector<double> copy_;
  const double* data_ = nullptr;
};

/// Returns the triangle of R as a matrix without gaps, whose other triangle is zero. Does not read the other triangle
/// of R.
template <class S>
std::vector<S> packed_triangle(MatrixView<const S> R, Uplo uplo) {
  std::vector<S> all(R.cols * R.cols);
  copy_triangle<S>(R, uplo, {all.data(), R.cols, R.cols, R.cols});
  return all;
}

/// Copies numbers without gaps to a matrix. Throws overflow, before `to` changes, if a number is too large for S.
template <class S>
void put_numbers(const std::vector<double>& numbers, MatrixView<S> to) {
  if constexpr (sizeof(S) < sizeof(double))
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (std::isfinite(numbers[i]) && !std::isfinite(S(numbers[i])))
        throw overflow(index_t(i) % to.rows, index_t(i) / to.rows);
  for (index_t j = 0; j < to.cols; ++j) std::copy_n(numbers.data() + j * to.rows, to.rows, to.col(j));
}

/// Returns the number of the first matrix that fails, or -1. pivots: the failing pivot of each matrix, or -1 for
/// success.
inline index_t first_failing(const std::vector<index_t>& pivots) {
  const auto failed = std::find_if(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
  return failed == pivots.end() ? -1 : failed - pivots.begin();
}

/// Throws bad_argument unless BLAS can use A in place: its leading dimension must be an int.
template <class S>
void require_blas(const char* argument, MatrixView<S> A) {
  require(A.ld <= std::numeric_limits<int>::max(), argument, "has a leading dimension that BLAS cannot count");
}
/// Throws bad_argument unless `system` is a gpucholmod_system and BLAS can count m right-hand sides.
inline void require_system(int system, index_t m) {
  require(system >= GPUCHOLMOD_A && system <= GPUCHOLMOD_R, "system", "must be one of gpucholmod_system");
  require(m <= std::numeric_limits<int>::max(), "B",
          "has more columns than BLAS can count: solve for fewer right-hand sides at a time");
}

}  // namespace gpucholmod::c
