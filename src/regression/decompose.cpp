#include "regression/decompose.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "cpu/blas.h"

namespace gpucholmod::regression {
namespace {

/// Holds [X y] of a decomposition, a row for each observation.
class Stack {
 public:
  Stack(index_t p, index_t m, index_t rows)
      : p_(p), m_(m), memory_(rows * (p + m)), A_{memory_.data(), rows, p + m, rows} {}

  void push(const Rows& rows, const Shift& shift) {
    for (index_t i = 0; i < rows.count(); ++i) {
      const double root = std::sqrt(rows.weight(i)), head = rows.x(0, i);
      A_(used_, 0) = root * head;
      for (index_t j = 1; j < p_; ++j) A_(used_, j) = root * (rows.x(j, i) - head * shift.of(j));
      for (index_t j = 0; j < m_; ++j) A_(used_, p_ + j) = root * (rows.y(j, i) - head * shift.of(p_ + j));
      ++used_;
    }
  }
  void push(const double* penalty, const Shift& shift) {
    for (index_t j = 0; penalty && j < p_; ++j) {
      A_(used_, j) = std::sqrt(penalty[j]);
      for (index_t l = 1; j == 0 && l < p_ + m_; ++l) A_(used_, l) = -A_(used_, 0) * shift.of(l);
      ++used_;
    }
  }
  void push(MatrixView<const double> R, const std::vector<double>& z, double root) {
    for (index_t i = 0; i < p_; ++i, ++used_) {
      for (index_t j = i; j < p_; ++j) A_(used_, j) = root * R(i, j);
      for (index_t j = 0; j < m_; ++j) A_(used_, p_ + j) = root * z[i + j * p_];
    }
  }

  /// Computes R, z and rss of the rows by a QR decomposition.
  void triangularise(MatrixView<double> R, Sides& sides) {
    blas::geqrf(A_);
    const index_t rows = A_.rows, rank = std::min(rows, p_);
    sides.p = p_;
    sides.m = m_;
    sides.z.assign(p_ * m_, 0);
    sides.rss.assign(m_, 0);
    for (index_t j = 0; j < p_; ++j) std::fill_n(R.col(j), p_, 0.0);
    for (index_t i = 0; i < rank; ++i) {
      const double sign = A_(i, i) < 0 ? -1 : 1;
      for (index_t j = i; j < p_; ++j) R(i, j) = sign * A_(i, j);
      for (index_t j = 0; j < m_; ++j) sides.z[i + j * p_] = sign * A_(i, p_ + j);
    }
    for (index_t j = 0; j < m_; ++j)
      for (index_t i = rank; i <= std::min(p_ + j, rows - 1); ++i) sides.rss[j] += A_(i, p_ + j) * A_(i, p_ + j);
  }

 private:
  index_t p_, m_, used_ = 0;
  std::vector<double> memory_;
  MatrixView<double> A_;
};

/// Divides each of the first p columns of B by a power of two, so that squares of its entries neither overflow nor
/// vanish; rounds nothing. Returns the exponents.
std::vector<int> scale_columns(MatrixView<double> B, index_t p) {
  std::vector<int> exponents(p, 0);
  for (index_t j = 0; j < p; ++j) {
    double largest = 0;
    for (index_t i = 0; i < B.rows; ++i) largest = std::max(largest, std::abs(B(i, j)));
    if (largest == 0 || !std::isfinite(largest)) continue;
    exponents[j] = std::ilogb(largest);
    for (index_t i = 0; i < B.rows; ++i) B(i, j) = std::scalbn(B(i, j), -exponents[j]);
  }
  return exponents;
}

/// Takes B (q x c), whose first p columns are R and whose other columns are z, to upper triangular form by Householder
/// steps, and passes over a column of R that depends on the columns before. Returns the columns that are independent.
std::vector<index_t> triangularise_independent(MatrixView<double> B, index_t p, double tolerance) {
  std::vector<index_t> columns;
  std::vector<double> v(B.rows);
  for (index_t j = 0; j < p; ++j) {
    double* const a = B.col(j);
    const index_t r = index_t(columns.size());
    double whole = 0, rest = 0;
    for (index_t i = 0; i < B.rows; ++i) (i < r ? whole : rest) += a[i] * a[i];
    if (!(rest > 0 && std::sqrt(rest) >= tolerance * std::sqrt(whole + rest))) continue;
    // v = a + sign(a_r) |a| e_r: H = I - 2 vv'/v'v takes a to -sign(a_r) |a| e_r.
    const double norm = std::sqrt(rest), head = a[r] >= 0 ? -norm : norm;
    std::copy(a + r, a + B.rows, v.begin());
    v[0] -= head;
    const double square = 2 * (rest - a[r] * head);
    for (index_t l = j; l < B.cols; ++l) {
      double* const b = B.col(l) + r;
      double dot = 0;
      for (index_t i = 0; i < B.rows - r; ++i) dot += v[i] * b[i];
      for (index_t i = 0; i < B.rows - r; ++i) b[i] -= 2 * dot / square * v[i];
    }
    columns.push_back(j);
  }
  return columns;
}

}  // namespace

Sides decompose(const Rows& rows, const double* penalty, const Shift& shift, MatrixView<double> R) {
  Stack stack(R.cols, rows.y.rows, rows.count() + (penalty ? R.cols : 0));
  stack.push(rows, shift);
  stack.push(penalty, shift);
  Sides sides;
  stack.triangularise(R, sides);
  return sides;
}

void decompose_onto(const Rows& rows, double forget, MatrixView<double> R, Sides& sides) {
  Stack stack(sides.p, sides.m, sides.p + rows.count());
  stack.push(MatrixView<const double>(R), sides.z, std::sqrt(forget));
  stack.push(rows, Shift());
  const std::vector<double> before = sides.rss;
  stack.triangularise(R, sides);
  for (index_t j = 0; j < sides.m; ++j) sides.rss[j] += forget * before[j];
}

Solution solve(MatrixView<const double> R, const Sides& sides, double tolerance, bool with_inverse) {
  const index_t p = sides.p, m = sides.m;
  std::vector<double> memory(p * (p + m));
  const MatrixView<double> B{memory.data(), p, p + m, p};
  for (index_t j = 0; j < p; ++j) std::copy_n(R.col(j), j + 1, B.col(j));
  std::copy(sides.z.begin(), sides.z.end(), B.col(p));
  const std::vector<int> exponents = scale_columns(B, p);
  Solution found;
  bool independent = true;
  for (index_t j = 0; j < p; ++j) {
    double square = 0;
    for (index_t i = 0; i <= j; ++i) square += B(i, j) * B(i, j);
    independent = independent && B(j, j) > 0 && B(j, j) >= tolerance * std::sqrt(square);
    found.columns.push_back(j);
  }
  found.rss = sides.rss;
  if (!independent) found.columns = triangularise_independent(B, p, tolerance);
  const index_t r = index_t(found.columns.size());
  std::vector<double> upper(r * r);
  const MatrixView<double> U{upper.data(), r, r, std::max<index_t>(r, 1)};
  for (index_t j = 0; j < r; ++j) std::copy_n(B.col(found.columns[j]), j + 1, U.col(j));
  found.effects.resize(r * m);
  found.beta.assign(p * m, std::numeric_limits<double>::quiet_NaN());
  for (index_t j = 0; j < m; ++j) {
    std::copy_n(B.col(p + j), r, found.effects.data() + j * r);
    for (index_t i = r; i < p; ++i) found.rss[j] += B(i, p + j) * B(i, p + j);
  }
  std::vector<double> beta = found.effects;
  for (index_t j = 0; j < m; ++j) {
    blas::trsv(blas::Op::none, U, beta.data() + j * r);
    for (index_t i = 0; i < r; ++i)
      found.beta[found.columns[i] + j * p] = std::scalbn(beta[i + j * r], -exponents[found.columns[i]]);
  }
  if (!with_inverse) return found;
  blas::trtri(U);
  for (index_t j = 0; j < r; ++j)
    for (index_t i = 0; i <= j; ++i) U(i, j) = std::scalbn(U(i, j), -exponents[found.columns[i]]);
  found.inverse = std::move(upper);
  return found;
}

}  // namespace gpucholmod::regression
