#include <algorithm>
#include <cmath>
#include <memory>
#include <type_traits>
#include <vector>

#include "base/check_column.h"
#include "base/zeros.h"
#include "c/hold.h"
#include "cpu/blas.h"
#include "cpu/kernels.h"
#include "cpu/substitute.h"
#include "modify/condition.h"

/// Functions that compute with a factor in the caller's memory, and the function that computes a factor.
namespace gpucholmod::c {
namespace {

constexpr const char* is_singular = "the matrix is singular";

/// Throws bad_diagonal unless entry j of the diagonal, regardless of its sign, can be divided by.
template <class S>
void require_divisor(S value, index_t j) {
  if (value == 0) throw singular(j, is_singular);
  if (!is_normal(std::abs(value))) throw too_small_to_compute(j, double(value));
}

/// Throws not_finite if the triangle of A that uplo names has a number that is not finite.
template <class S>
void require_finite(const char* argument, MatrixView<const S> A, Uplo uplo) {
  static const Instructions instructions = cpu::resolve(Instructions::automatic);
  if (in_range(cpu::squares_of_triangle<S>(instructions, A, uplo, nullptr))) return;
  for (index_t j = 0; j < A.cols; ++j) {
    const auto [first, last] = rows_of(j, A.cols, uplo);
    largest_of(argument, A.col(j) + first, last - first, first, j);
  }
}

/// Copies the triangle of A, a symmetric matrix or a factor, to the upper triangle of W (n x n). Transposes a lower
/// triangle.
template <class S>
void load_upper(MatrixView<const S> A, Uplo uplo, MatrixView<double> W) {
  for (index_t j = 0; j < A.cols; ++j) {
    if (uplo == Uplo::upper) std::copy_n(A.col(j), j + 1, W.col(j));
    else for (index_t i = 0; i <= j; ++i) W(i, j) = A(j, i);
  }
}

/// A factor of the caller's that has been checked. Rows of an upper factor, or columns of a lower factor, whose
/// diagonal entry is negative are multiplied by -1 where that makes a difference.
template <class S>
class Factor {
 public:
  /// Checks R, and notes its negative diagonal entries. Throws not_finite and bad_diagonal.
  Factor(MatrixView<const S> R, Uplo uplo) : R_(R), uplo_(uplo) {
    require(R.rows == R.cols, "R", "must be square");
    require_blas("R", R);
    require_finite("R", R, uplo);
    for (index_t j = 0; j < R.cols; ++j) {
      require_divisor(R(j, j), j);
      if (R(j, j) < 0) negative_.push_back(j);
    }
  }

  index_t order() const { return R_.cols; }
  void solve(int system, MatrixView<double> B) const {
    if (system == GPUCHOLMOD_R) turn(B);
    if (system != GPUCHOLMOD_R) substitute(true, B);
    if (system != GPUCHOLMOD_R_TRANSPOSED) substitute(false, B);
    if (system == GPUCHOLMOD_R_TRANSPOSED) turn(B);
  }
  /// Computes A^-1, both triangles, in out (n x n).
  void invert(MatrixView<double> out) const {
    load_upper(R_, uplo_, out);
    blas::potri(out);
    for (index_t j = 0; j < order(); ++j)
      for (index_t i = 0; i < j; ++i) out(j, i) = out(i, j);
  }

 private:
  void turn(MatrixView<double> B) const {
    for (index_t j = 0; j < B.cols; ++j)
      for (const index_t i : negative_) B(i, j) = -B(i, j);
  }
  void substitute(bool forward, MatrixView<double> B) const {
    if (uplo_ == Uplo::upper) return cpu::substitute(R_, forward, B);
    std::vector<double> buffer;
    const MatrixView<const double> L = cpu::as_doubles(R_, buffer);
    const blas::Op op = forward ? blas::Op::none : blas::Op::transpose;
    if (B.cols == 1) blas::trsv(op, L, B.data, Uplo::lower);
    else blas::trsm_left(op, L, B, Uplo::lower);
  }

  MatrixView<const S> R_;
  Uplo uplo_;
  std::vector<index_t> negative_;
};

/// Calls f(numbers), which writes a matrix of doubles: `to` itself, or a matrix that is then copied to `to`. If `fill`
/// is true, the matrix first holds the numbers of `to`. Throws overflow.
template <class S, class F>
void with_doubles(MatrixView<S> to, bool fill, F&& f) {
  if constexpr (sizeof(S) == sizeof(double)) {
    f(to);
  } else {
    std::vector<double> numbers(to.rows * to.cols);
    if (fill) numbers = packed<double>(MatrixView<const S>(to));
    f(MatrixView<double>{numbers.data(), to.rows, to.cols, to.rows});
    put_numbers(numbers, to);
  }
}

/// Replaces A by its factor. Returns the failing pivot, or -1.
template <class S>
index_t factorise(MatrixView<S> A, Uplo uplo) {
  require(A.rows == A.cols, "A", "must be square");
  require_finite("A", MatrixView<const S>(A), uplo);
  const index_t n = A.cols;
  const std::unique_ptr<double[]> numbers(new double[n * n]);
  const MatrixView<double> R{numbers.get(), n, n, n};
  copy_triangle<S, double>(A, uplo, R);
  if (const index_t pivot = blas::potrf(R, uplo); pivot >= 0) return pivot;
  for (index_t j = 0; j < n; ++j) require_normal(S(R(j, j)), j);
  copy_triangle<double, S>(R, uplo, A);
  return -1;
}

/// Returns log det A, computed from the diagonal of R alone. Throws not_finite.
template <class S>
double log_determinant(MatrixView<const S> R) {
  require(R.rows == R.cols, "R", "must be square");
  double sum = 0;
  for (index_t j = 0; j < R.cols; ++j) {
    largest_of("R", &R(j, j), 1, j, j);
    sum += std::log(std::abs(double(R(j, j))));
  }
  return 2 * sum;
}

/// Calls f(view of R, options) for a function whose only option is the triangle. Returns the code.
template <class M, class F>
int with_factor(const char* argument, const M& R, const gpucholmod_options* options, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    const Options chosen = options_of(options, option::triangle);
    return with_type(argument, R.type, [&](auto s) { return f(view<decltype(s)>(argument, R), chosen); });
  });
}

/// The scalar of a view.
template <class View>
using Scalar = std::remove_const_t<std::remove_pointer_t<decltype(View::data)>>;

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_solve(gpucholmod_const_matrix R, int system, gpucholmod_matrix B, const gpucholmod_options* options,
                     gpucholmod_status* status) {
  return with_factor("R", R, options, status, [&](auto given, const Options& chosen) {
    using S = Scalar<decltype(given)>;
    const MatrixView<S> to = view<S>("B", B);
    require(B.rows == R.cols, "B", "has another number of rows than R");
    require_system(system, B.cols);
    require_blas("B", to);
    const c::Factor<S> factor(given, chosen.uplo);
    with_doubles(to, true, [&](MatrixView<double> X) { factor.solve(system, X); });
    return index_t(-1);
  });
}

int gpucholmod_factorise(gpucholmod_matrix A, const gpucholmod_options* options, gpucholmod_status* status) {
  return with_factor("A", A, options, status,
                     [](auto given, const Options& chosen) { return factorise(given, chosen.uplo); });
}

int gpucholmod_inverse(gpucholmod_const_matrix R, gpucholmod_matrix out, const gpucholmod_options* options,
                       gpucholmod_status* status) {
  return with_factor("R", R, options, status, [&](auto given, const Options& chosen) {
    using S = Scalar<decltype(given)>;
    const MatrixView<S> to = view<S>("out", out);
    require_shape("out", out, R.rows, R.cols);
    require_blas("out", to);
    const c::Factor<S> factor(given, chosen.uplo);
    with_doubles(to, false, [&](MatrixView<double> numbers) { factor.invert(numbers); });
    return index_t(-1);
  });
}

int gpucholmod_logdet(gpucholmod_const_matrix R, double* out, const gpucholmod_options* options,
                      gpucholmod_status* status) {
  return with_factor("R", R, options, status, [&](auto given, const Options&) {
    require(out != nullptr, "out", "is missing");
    *out = log_determinant(given);
    return index_t(-1);
  });
}

int gpucholmod_rcond(gpucholmod_const_matrix R, double* out, const gpucholmod_options* options,
                     gpucholmod_status* status) {
  return with_factor("R", R, options, status, [&](auto given, const Options& chosen) {
    require(out != nullptr, "out", "is missing");
    *out = reciprocal_condition(*held(given, 0, chosen));
    return index_t(-1);
  });
}

}  // extern "C"
