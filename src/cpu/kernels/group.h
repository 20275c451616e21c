// Included once for each set of instructions, in a namespace of its own.

/// Rotations of many small factors at once: every lane of a vector is a member, so that square roots and divisions are
/// vectors' too.
///
/// A column v of V is kept as w = sqrt(h) v, and row i of R, while K columns go over it, as x = R_i / d. With p = w_i /
/// x_i,
///
///   e = p^2 / (d^2 h)       update    rho = 1 + e   w~ = w - p x   x~ = x + (p / (d^2 h)) w     d~ = d / sqrt(rho)
///   h~ = h rho              downdate  rho = 1 - e   w~ = w - p x   x~ = x - (p / (d^2 h~)) w~   d~ = d sqrt(rho)
///
/// and R~_i = d x in the end. h is 1 before the first row, d before the first column of each; x_i = R_ii y, where y
/// grows by rho with an update and stays with a downdate. These are the rotations of cpu/kernels/rotations.h, which
/// says why that is as good as true ones. The inverses of h, d^2 and y are what is kept: a column and row take one
/// division, by rho.
template <class T>
struct GroupSteps {
  static constexpr int rows = GroupPass<T>::rows, most = 4;  ///< columns
  static constexpr index_t lanes = group_size<T>;
  alignas(64) T p[rows][most][lanes];
  T up[rows][most][lanes], down[rows][most][lanes];  ///< what w, and w~, is multiplied by for x~: one of them is zero
  T d[rows][lanes];
};

/// `verdict`: of one column, either; nothing is written but w.
enum class GroupSigns { added, removed, both, verdict };

/// C columns of rows whose steps are known, of as many members as a vector has lanes, the first of which is `lane`.
template <class P, int K, int C, GroupSigns signs, class T = typename P::T>
INLINE void group_tile(const GroupSteps<T>& steps, index_t lane, const T* const (&R)[GroupPass<T>::rows],
                       T* const (&out)[GroupPass<T>::rows], T* W) {
  using V = typename P::V;
  constexpr index_t lanes = group_size<T>;
  V w[K][C];
  UNROLL for (int c = 0; c < C; ++c)
    UNROLL for (int q = 0; q < K; ++q) w[q][c] = P::load(W + (c * K + q) * lanes);
  for (int r = 0; r < GroupPass<T>::rows; ++r) {
    V x[C];
    UNROLL for (int c = 0; c < C; ++c) x[c] = P::load(R[r] + c * lanes + lane);
    UNROLL for (int q = 0; q < K; ++q) {
      const V p = P::load(steps.p[r][q] + lane);
      UNROLL for (int c = 0; c < C; ++c) {
        const V old = w[q][c];
        w[q][c] = P::fnma(p, x[c], old);
        if constexpr (signs == GroupSigns::verdict) continue;
        if constexpr (signs != GroupSigns::removed) x[c] = P::fma(P::load(steps.up[r][q] + lane), old, x[c]);
        if constexpr (signs != GroupSigns::added) x[c] = P::fma(P::load(steps.down[r][q] + lane), w[q][c], x[c]);
      }
    }
    if constexpr (signs == GroupSigns::verdict) continue;
    UNROLL for (int c = 0; c < C; ++c) P::store(out[r] + c * lanes + lane, P::mul(x[c], P::load(steps.d[r] + lane)));
  }
  UNROLL for (int c = 0; c < C; ++c)
    UNROLL for (int q = 0; q < K; ++q) P::store(W + (c * K + q) * lanes, w[q][c]);
}

/// The m x m block on the diagonal from `row` on, of as many members: finds their steps, leaves the new block in X (by
/// rows, `rows` apart) and the new 1 / h in `unit`. Returns the bits of lanes where the bounds of a GroupPass are
/// exceeded.
template <class P, bool one_column, class T = typename P::T>
NOINLINE unsigned group_diagonal(const GroupPass<T>& pass, index_t row, int m, index_t lane, GroupSteps<T>& steps, T* X,
                                 T* unit) {
  using V = typename P::V;
  constexpr index_t lanes = group_size<T>;
  constexpr int rows = GroupPass<T>::rows;
  const V one = P::set1(1), most = P::set1(GroupPass<T>::most), least = P::set1(1 / GroupPass<T>::most);
  const int k = one_column ? 1 : pass.k;
  V part[GroupSteps<T>::most], started[GroupSteps<T>::most];  // 1 / h
  for (int q = 0; q < k; ++q) started[q] = part[q] = P::load(pass.unit + q * lanes + lane);
  unsigned outside = 0;
  for (int c = 0; c < m; ++c) {
    V w[GroupSteps<T>::most];
    for (int q = 0; q < k; ++q) w[q] = P::load(pass.W + ((row + c) * k + q) * lanes + lane);
    for (int r = 0; r < c; ++r) {
      V x = P::load(pass.R + group_entry<T>(pass.n, row + r, row + c) + lane);
      for (int q = 0; q < k; ++q) {
        const V old = w[q];
        w[q] = P::fnma(P::load(steps.p[r][q] + lane), x, old);
        x = P::fma(P::load(steps.up[r][q] + lane), old, x);
        x = P::fma(P::load(steps.down[r][q] + lane), w[q], x);
      }
      P::store(X + (r * rows + c) * lanes + lane, P::mul(x, P::load(steps.d[r] + lane)));
    }
    const V diagonal = P::load(pass.R + group_entry<T>(pass.n, row + c, row + c) + lane),
            inverse = P::div(one, diagonal);
    V square = one, inv_square = one, y = one, inv_y = one;  // square: d^2
    for (int q = 0; q < k; ++q) {
      const V added = P::load(pass.added + q * lanes + lane), removed = P::sub(one, added);
      const V p = P::mul(P::mul(w[q], inverse), inv_y), pd = P::mul(p, inv_square), u = P::mul(pd, part[q]);
      const V rho = P::fma(P::sub(added, removed), P::mul(p, u), one), left = P::div(one, rho);
      const V grown = P::fma(added, rho, removed), shrunk = P::fma(added, left, removed);  // 1 with a downdate
      part[q] = P::mul(part[q], left);
      y = P::mul(y, grown);
      inv_y = P::mul(inv_y, shrunk);
      square = P::mul(square, P::fma(added, left, P::mul(removed, rho)));
      inv_square = P::mul(inv_square, P::fma(added, rho, P::mul(removed, left)));
      P::store(steps.p[c][q] + lane, p);
      P::store(steps.up[c][q] + lane, P::mul(u, added));
      P::store(steps.down[c][q] + lane, P::mul(P::mul(pd, part[q]), P::sub(added, one)));
      outside |= P::outside(rho, P::set1(GroupPass<T>::least_left), most);
    }
    outside |= P::outside(y, least, most) | P::outside(square, least, most);
    const V d = P::mul(P::sqrt(square), P::load(pass.scale + lane));
    P::store(steps.d[c] + lane, d);
    P::store(X + (c * rows + c) * lanes + lane, P::mul(P::mul(diagonal, y), d));
  }
  for (int q = 0; q < k; ++q) {
    P::store(unit + q * lanes + lane, part[q]);
    outside |= P::outside(part[q], least, most);
    outside |= P::outside(P::mul(part[q], P::set1(GroupPass<T>::least_left)), P::zero(), started[q]);
  }
  return outside;
}

/// Columns [column, n) of the rows from `row` on, whose steps are known.
template <class P, int K, int C, GroupSigns signs, class T = typename P::T>
INLINE index_t group_tail(const GroupPass<T>& pass, index_t row, index_t column, const GroupSteps<T>& steps) {
  constexpr index_t lanes = group_size<T>;
  constexpr int rows = GroupPass<T>::rows;
  const T* R[rows];
  T* out[rows];
  for (int r = 0; r < rows; ++r) {
    R[r] = pass.R + group_entry<T>(pass.n, row + r, column);
    out[r] = pass.discard ? pass.out + r * C * lanes : pass.out + group_entry<T>(pass.n, row + r, column);
  }
  const index_t step = C * lanes, forth = pass.discard ? 0 : step;
  T* W = pass.W + column * K * lanes;
  for (; column + C <= pass.n; column += C) {
    for (index_t lane = 0; lane < lanes; lane += P::lanes) group_tile<P, K, C, signs>(steps, lane, R, out, W + lane);
    for (int r = 0; r < rows; ++r) R[r] += step, out[r] += forth;
    W += K * step;
  }
  return column;
}

template <class P, int K, class T = typename P::T>
unsigned group_rows(const GroupPass<T>& pass, index_t& row) {
  constexpr index_t lanes = group_size<T>;
  constexpr int rows = GroupPass<T>::rows;
  GroupSteps<T> steps;
  alignas(64) T X[rows * rows * lanes], unit[K * lanes];
  for (; row < pass.n; row += rows) {
    const int m = int(std::min<index_t>(rows, pass.n - row));
    unsigned outside = 0;
    for (index_t lane = 0; lane < lanes; lane += P::lanes)
      outside |= group_diagonal<P, K == 1>(pass, row, m, lane, steps, X, unit) << lane;
    if (outside != 0) return outside;
    std::copy_n(unit, K * lanes, pass.unit);
    if (!pass.discard)
      for (int r = 0; r < m; ++r)
        std::copy_n(X + (r * rows + r) * lanes, (m - r) * lanes, pass.out + group_entry<T>(pass.n, row + r, row + r));
    index_t column = row + rows;
    if (column >= pass.n) continue;
    if constexpr (K == 1)
      if (pass.discard) column = group_tail<P, K, 1, GroupSigns::verdict>(pass, row, column, steps);
    if constexpr (K > 2) {
      if (!pass.removes) column = group_tail<P, K, 2, GroupSigns::added>(pass, row, column, steps);
      if (!pass.adds) column = group_tail<P, K, 2, GroupSigns::removed>(pass, row, column, steps);
    }
    group_tail<P, K, 1, GroupSigns::both>(pass, row, column, steps);
  }
  row = pass.n;
  return 0;
}

template <class T>
unsigned sweep(const GroupPass<T>& pass, index_t& row) {
  using P = Pack<T>;
  return pass.k == 1   ? group_rows<P, 1>(pass, row)
         : pass.k == 2 ? group_rows<P, 2>(pass, row)
                       : group_rows<P, 4>(pass, row);
}
