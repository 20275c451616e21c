#pragma once

#include "numbers.h"

/// What modifications are made of, and what they are to give.
namespace gpucholmod::fuzz {

inline long double norm(const Exact& A) { return A.size() == 0 ? 0 : A.cwiseAbs().colwise().sum().maxCoeff(); }
inline long double eps(int type) {
  return type == GPUCHOLMOD_DOUBLE ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}
inline bool is_finite(const Exact& A) { return A.size() == 0 || A.array().isFinite().all(); }
inline bool has_zeros(const Exact& R) { return (R.diagonal().array() == 0).any(); }
inline bool is_moderate(const Exact& R) {
  const auto diagonal = R.diagonal().cwiseAbs().array();
  return R.size() == 0 || (is_finite(R) && R.cwiseAbs().maxCoeff() < 1e6 && (diagonal == 0 || diagonal > 1e-6).all());
}

inline Exact rows_of(const Exact& A, const std::vector<index_t>& rows) {
  Exact picked(index_t(rows.size()), A.cols());
  for (std::size_t i = 0; i < rows.size(); ++i) picked.row(index_t(i)) = A.row(rows[i]);
  return picked;
}
/// Returns rows and columns of a symmetric matrix.
inline Exact part_of(const Exact& A, const std::vector<index_t>& rows) {
  return rows_of(rows_of(A, rows).transpose(), rows);
}

/// Copies an upper factor to the triangle of a matrix that may have room for more.
inline void store(const Exact& R, int triangle, Numbers& to) {
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i <= j; ++i)
      triangle == GPUCHOLMOD_LOWER ? to.set(j, i, double(R(i, j))) : to.set(i, j, double(R(i, j)));
}
inline Exact upper(const Numbers& from, index_t n, int triangle) {
  Exact R = Exact::Zero(n, n);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i <= j; ++i) R(i, j) = triangle == GPUCHOLMOD_LOWER ? from(j, i) : from(i, j);
  return R;
}
/// Returns the same factor of A whose diagonal has no negative entries.
inline Exact turned(const Exact& R) {
  Exact all = R;
  for (index_t i = 0; i < R.rows(); ++i)
    if (R(i, i) < 0) all.row(i) *= -1;
  return all;
}
/// Returns a factor, some of whose diagonal entries may be negative, or zero if `semidefinite`.
inline Exact some_factor(Choices& choose, index_t n, int type, bool semidefinite) {
  Numbers R(n, n, 0, type);
  const bool turned = choose.one_in(6), zeros = semidefinite && choose.one_in(6);
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i <= j; ++i) {
      const double x = choose.moderate(), sign = turned && choose.moderate() < 0 ? -1 : 1;
      R.set(i, j, i < j ? x : zeros && choose.moderate() < 0 ? 0 : sign * (1.5 + x));
    }
  return upper(R, n, GPUCHOLMOD_UPPER);
}
/// Returns nothing, which stands for 1, or so many weights.
inline std::vector<double> some_weights(Call& call, index_t k) {
  if (k == 0 || call.choose.one_in(3)) return {};
  const bool wild = call.is_wild(), positive = call.choose.one_in(2);
  std::vector<double> weights(k);
  for (double& w : weights) w = positive ? std::abs(call.choose.number(wild)) : 0.25 * call.choose.number(wild);
  return weights;
}
inline double some_scale(Call& call) {
  if (!call.choose.one_in(4)) return 1;
  const bool wild = call.is_wild();
  return wild ? call.choose.number(true) : 1.2 + call.choose.moderate();
}
inline const double* pointer(const std::vector<double>& x) { return x.empty() ? nullptr : x.data(); }
inline Exact weighted(const Exact& V, const std::vector<double>& weights, bool absolute = false) {
  if (weights.empty()) return V;
  const Exact w = absolute ? Exact(exact(weights).cwiseAbs()) : exact(weights);
  return V * w.col(0).asDiagonal();
}

/// Right-hand sides of a call, and b of them.
struct Sides {
  index_t m;
  Numbers z, Y;
  std::vector<double> rss;
  gpucholmod_right_sides given{};
  bool exist;
  Exact b;

  /// rows: of z, the first of which belong to R; k: of Y; members: of a batch, which have m each.
  Sides(Call& call, const Exact& R, index_t rows, index_t k, index_t members = 1)
      : m(call.choose.of(0, 2)), z(rows, m * members, call.choose.of(0, 2), GPUCHOLMOD_DOUBLE),
        Y(k, m * members, call.choose.of(0, 2), GPUCHOLMOD_DOUBLE), exist(call.choose.one_in(3)) {
    if (!exist) return;
    const bool wild = call.is_wild();
    for (index_t j = 0; j < m * members; ++j)
      for (index_t i = 0; i < R.rows(); ++i) z.set(i, j, call.choose.number(wild));
    Y.fill(call.choose, wild);
    if (m > 0 && call.choose.one_in(2)) rss.assign(m * members, 3);
    if (!rss.empty() && call.choose.one_in(24)) call.sound = false, rss[0] = -1;
    b = R.transpose() * z.exact().topRows(R.rows());
    call.watch(rss);
    given = {call.given(z), call.read_only(Y), rss.empty() ? nullptr : rss.data()};
  }
  const gpucholmod_right_sides* pointer() const { return exist ? &given : nullptr; }
};

/// What a modification is to give.
struct Wanted {
  Exact A;           ///< the modified matrix
  long double size;  ///< of what it is made of
  Exact b;           ///< of modified right-hand sides, if there are some
  bool definite;     ///< A is positive definite
};

}  // namespace gpucholmod::fuzz
