#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <string>
#include <type_traits>
#include <vector>

#include <octave/oct.h>

#include <gpucholmod.h>

/// Functions and types that the functions for Octave share. `who` is the function that an error names, `name` its
/// argument.
namespace gpucholmod_octave {

template <class T>
using MatrixOf = std::conditional_t<std::is_same_v<T, double>, Matrix, FloatMatrix>;

template <class T>
gpucholmod_const_matrix read_only(const MatrixOf<T>& A) {
  const octave_idx_type rows = A.rows();
  return {A.data(), rows, A.columns(), rows, std::is_same_v<T, double> ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT};
}
template <class T>
gpucholmod_matrix writable(MatrixOf<T>& A) {
  const octave_idx_type rows = A.rows();
  return {A.fortran_vec(), rows, A.columns(), rows, std::is_same_v<T, double> ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT};
}

/// Raises an error unless `value` is a full or sparse real matrix of numbers, which logical values are not.
inline void require_numbers(const char* who, const char* name, const octave_value& value) {
  if (!value.isnumeric() || value.ndims() != 2) error("%s: %s must be a matrix of numbers", who, name);
  if (value.iscomplex()) error("%s: %s is complex, which is not supported", who, name);
}
/// Raises an error unless R is a square matrix of numbers.
inline void require_factor(const char* who, const octave_value& R) {
  if (R.rows() != R.columns()) error("%s: R must be a square matrix", who);
  require_numbers(who, "R", R);
}

/// Returns `value` as a matrix of T; numbers that are T already are not copied.
template <class T>
MatrixOf<T> numbers(const octave_value& value) {
  if constexpr (std::is_same_v<T, double>) return value.matrix_value();
  else return value.float_matrix_value();
}

/// Returns f(T()) for the class of a result: single if `is_single`, otherwise double.
template <class F>
auto with_class(bool is_single, F&& f) {
  return is_single ? f(float()) : f(double());
}

/// Returns the number of a row, from 0, for a number from 1 .. most. Raises an error for any other value.
inline std::ptrdiff_t index(const char* who, const char* name, const octave_value& value, octave_idx_type most) {
  const bool is_number = (value.isnumeric() || value.islogical()) && !value.iscomplex() && value.numel() == 1;
  const double j = is_number ? value.double_value() : 0;
  if (!(j >= 1 && j <= double(most)) || j != std::trunc(j)) error("%s: index %s out of range", who, name);
  return std::ptrdiff_t(j) - 1;
}

/// The weights of k columns that an argument OP means: "+", "-" and their words, or a vector of weights.
class Weights {
 public:
  Weights() = default;
  Weights(const char* who, const octave_value& op, octave_idx_type k) {
    const std::string word = op.is_string() ? op.string_value() : "";
    if (word == "+" || word == "update") return;
    if (word == "-" || word == "downdate") {
      weights_.assign(k, -1);
    } else if (op.isfloat() && op.isreal() && op.numel() == k) {
      const NDArray given = op.array_value();
      weights_.assign(given.data(), given.data() + k);
    } else {
      error("%s: OP must be \"+\", \"update\", \"-\", \"downdate\", or a weight for each column of X", who);
    }
  }
  /// Returns null if all weights are 1.
  const double* data() const { return weights_.empty() ? nullptr : weights_.data(); }

 private:
  std::vector<double> weights_;
};

struct Destroy {
  void operator()(gpucholmod_factor* factor) const { gpucholmod_factor_destroy(factor); }
};
using Held = std::unique_ptr<gpucholmod_factor, Destroy>;

/// Returns the message of a failure, with the names that arguments have in Octave.
inline std::string message_of(const gpucholmod_status& status) {
  if (status.code != GPUCHOLMOD_NOT_FINITE) return status.message;
  const std::string name = status.argument[0] == 'V' ? "X" : status.argument;
  return name + " has a value that is not finite, at (" + std::to_string(status.row) + ", " +
         std::to_string(status.col) + ")";
}

}  // namespace gpucholmod_octave
