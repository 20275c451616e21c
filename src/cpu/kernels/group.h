// Included once for each set of instructions, in a namespace of its own.

/// Describes rotations of many small factors at once: every lane of a vector is a member, so that square roots and
/// divisions are vector operations too.
///
/// A column v of V is kept as w = sqrt(h) v. Row i of R is kept as x = R_i / d while K columns modify the row. With p =
/// w_i / x_i,
///
///   e = p^2 / (d^2 h)       update    rho = 1 + e   w~ = w - p x   x~ = x + (p / (d^2 h)) w     d~ = d / sqrt(rho)
///   h~ = h rho              downdate  rho = 1 - e   w~ = w - p x   x~ = x - (p / (d^2 h~)) w~   d~ = d sqrt(rho)
///
/// and R~_i = d x in the end. h is 1 before the first row, and d is 1 before the first column of each row. x_i is
/// R_ii y: an update multiplies y by rho, a downdate leaves y as it is. These are the rotations of
/// cpu/kernels/rotations.h, which explains why they are as accurate as true rotations.
///
/// Let z = w_i / R_ii and g = (R~_ii / R_ii)^2 after the columns so far. Then g~ = g + z^2 / h or g - z^2 / h, rho =
/// g~ / g and d^2 = g / y^2. Columns that are added come first, so y = g for them. The multipliers are p = z / y, z / h
/// for w with an update, and z y / (h g~) for w~ with a downdate. Only a sum waits for the preceding column, no
/// division.
template <class T>
struct GroupSteps {
  static constexpr index_t lanes = group_size<T>;
  /// The numbers of rows and of columns at once: 8 columns at most if a vector is a whole line, as there are 32
  /// registers then.
  static constexpr int rows = GroupPass<T>::rows, most = Pack<T>::lanes == lanes ? 8 : 4;
  alignas(64) T p[rows][most][lanes];
  T up[rows][most][lanes], down[rows][most][lanes];  ///< multipliers of w and of w~ in x~: one of the two is zero
  T d[rows][lanes];
};

/// The signs of the columns of a pass. `verdict`: one column of either sign, of which only w is written.
enum class GroupSigns { added, removed, both, verdict };

/// Loads a multiplier of C columns and keeps it in a register: compilers would load it again for each column.
template <class P, int C>
INLINE typename P::V load_step(const typename P::T* step) {
  return C > 1 ? P::kept(P::load(step)) : P::load(step);
}

/// Applies the known steps of m rows to C columns, for as many members as a vector has lanes, from `lane` on.
template <class P, int K, int C, GroupSigns signs, class T = typename P::T>
INLINE void group_tile(const GroupSteps<T>& steps, index_t lane, const T* const (&R)[GroupPass<T>::rows],
                       T* const (&out)[GroupPass<T>::rows], T* W, int m = GroupPass<T>::rows) {
  using V = typename P::V;
  constexpr index_t lanes = group_size<T>;
  V w[K][C];
  UNROLL for (int c = 0; c < C; ++c)
    UNROLL for (int q = 0; q < K; ++q) w[q][c] = P::load(W + (c * K + q) * lanes);
  for (int r = 0; r < m; ++r) {
    V x[C];
    UNROLL for (int c = 0; c < C; ++c) x[c] = P::load(R[r] + c * lanes + lane);
    UNROLL for (int q = 0; q < K; ++q) {
      const V p = load_step<P, C>(steps.p[r][q] + lane), up = load_step<P, C>(steps.up[r][q] + lane),
              down = load_step<P, C>(steps.down[r][q] + lane);
      UNROLL for (int c = 0; c < C; ++c) {
        const V old = w[q][c];
        w[q][c] = P::fnma(p, x[c], old);
        if constexpr (signs == GroupSigns::verdict) continue;
        if constexpr (signs != GroupSigns::removed) x[c] = P::fma(up, old, x[c]);
        if constexpr (signs != GroupSigns::added) x[c] = P::fma(down, w[q][c], x[c]);
      }
    }
    if constexpr (signs == GroupSigns::verdict) continue;
    UNROLL for (int c = 0; c < C; ++c) P::store(out[r] + c * lanes + lane, P::mul(x[c], P::load(steps.d[r] + lane)));
  }
  UNROLL for (int c = 0; c < C; ++c)
    UNROLL for (int q = 0; q < K; ++q) P::store(W + (c * K + q) * lanes, w[q][c]);
}

/// Finds the steps of the m x m block on the diagonal from `row` on, for as many members as a vector has lanes. Writes
/// the new block to X (by rows, `rows` apart) and the new 1 / h to `unit`. Returns the bits of the lanes that exceed
/// the bounds of GroupPass.
template <class P, int K, class T = typename P::T>
NOINLINE unsigned group_diagonal(const GroupPass<T>& pass, index_t row, int m, index_t lane, GroupSteps<T>& steps, T* X,
                                 T* unit) {
  using V = typename P::V;
  constexpr index_t lanes = group_size<T>;
  constexpr int rows = GroupPass<T>::rows;
  const V one = P::set1(1), most = P::set1(GroupPass<T>::most), least = P::set1(1 / GroupPass<T>::most);
  V part[K], started[K];  // 1 / h
  UNROLL for (int q = 0; q < K; ++q) started[q] = part[q] = P::load(pass.unit + q * lanes + lane);
  unsigned outside = 0;
  for (int c = 0; c < m; ++c) {
    V w[K];
    UNROLL for (int q = 0; q < K; ++q) w[q] = P::load(pass.W + ((row + c) * K + q) * lanes + lane);
    for (int r = 0; r < c; ++r) {
      V x = P::load(pass.R + group_entry<T>(pass.n, row + r, row + c) + lane);
      UNROLL for (int q = 0; q < K; ++q) {
        const V old = w[q];
        w[q] = P::fnma(P::load(steps.p[r][q] + lane), x, old);
        x = P::fma(P::load(steps.up[r][q] + lane), old, x);
        x = P::fma(P::load(steps.down[r][q] + lane), w[q], x);
      }
      P::store(X + (r * rows + c) * lanes + lane, P::mul(x, P::load(steps.d[r] + lane)));
    }
    const V diagonal = P::load(pass.R + group_entry<T>(pass.n, row + c, row + c) + lane),
            inverse = P::div(one, diagonal);
    V grown = one, inv_grown = one, y = one, inv_y = one;  // grown: (R~_ii / R_ii)^2
    UNROLL for (int q = 0; q < K; ++q) {
      const V added = P::load(pass.added + q * lanes + lane), removed = P::sub(one, added);
      const V z = P::mul(w[q], inverse), u = P::mul(z, part[q]);
      const V next = P::fma(P::mul(P::sub(added, removed), z), u, grown), inv_next = P::div(one, next);
      P::store(steps.p[c][q] + lane, P::mul(z, inv_y));
      P::store(steps.up[c][q] + lane, P::mul(u, added));
      P::store(steps.down[c][q] + lane, P::mul(P::mul(u, P::sub(added, one)), P::mul(y, inv_next)));
      outside |= P::outside(P::mul(next, inv_grown), P::set1(GroupPass<T>::least_left), most);
      part[q] = P::mul(part[q], P::mul(grown, inv_next));
      grown = next;
      inv_grown = inv_next;
      y = P::fma(added, next, P::mul(removed, y));
      inv_y = P::fma(added, inv_next, P::mul(removed, inv_y));
    }
    const V square = P::mul(grown, P::mul(inv_y, inv_y));  // d^2
    outside |= P::outside(y, least, most) | P::outside(square, least, most);
    const V d = P::mul(P::sqrt(square), P::load(pass.scale + lane));
    P::store(steps.d[c] + lane, d);
    P::store(X + (c * rows + c) * lanes + lane, P::mul(P::mul(diagonal, y), d));
  }
  UNROLL for (int q = 0; q < K; ++q) {
    P::store(unit + q * lanes + lane, part[q]);
    outside |= P::outside(part[q], least, most);
    outside |= P::outside(P::mul(part[q], P::set1(GroupPass<T>::least_left)), P::zero(), started[q]);
  }
  return outside;
}

/// Prefetches as many entries of a group as are processed next, `batch_ahead` entries behind `next`. The addresses may
/// lie beyond the group. Processors do not prefetch four rows that are read side by side.
template <int entries, class T>
INLINE void fetch_ahead(const T* next) {
  constexpr std::uintptr_t bytes = group_size<T> * sizeof(T);
  const std::uintptr_t later = reinterpret_cast<std::uintptr_t>(next) + tuning::batch_ahead * bytes;
  UNROLL for (int e = 0; e < entries; ++e) __builtin_prefetch(reinterpret_cast<const void*>(later + e * bytes), 0, 2);
}

/// Applies the known steps of the rows from `row` on to columns [column, n), C at a time. Returns the first column that
/// is left.
template <class P, int K, int C, GroupSigns signs, class T = typename P::T>
INLINE index_t group_tail(const GroupPass<T>& pass, index_t row, index_t column, const GroupSteps<T>& steps) {
  constexpr index_t lanes = group_size<T>;
  constexpr int rows = GroupPass<T>::rows;
  const T* R[rows];
  T* out[rows];
  const T* next = pass.R + group_entry<T>(pass.n, row, row) + (rows * (column - row) - rows * (rows - 1) / 2) * lanes;
  for (int r = 0; r < rows; ++r) {
    R[r] = pass.R + group_entry<T>(pass.n, row + r, column);
    out[r] = pass.discard ? pass.out + r * C * lanes : pass.out + group_entry<T>(pass.n, row + r, column);
  }
  const index_t step = C * lanes, forth = pass.discard ? 0 : step;
  T* W = pass.W + column * K * lanes;
  for (; column + C <= pass.n; column += C) {
    fetch_ahead<rows * C>(next);
    next += rows * step;
    for (index_t lane = 0; lane < lanes; lane += P::lanes) group_tile<P, K, C, signs>(steps, lane, R, out, W + lane);
    for (int r = 0; r < rows; ++r) R[r] += step, out[r] += forth;
    W += K * step;
  }
  return column;
}

/// Applies the known steps of the m rows from `row` on to these rows of z.
template <class P, int K, class T = typename P::T>
NOINLINE void group_sides(const GroupPass<T>& pass, index_t row, int m, const GroupSteps<T>& steps) {
  constexpr index_t lanes = group_size<T>;
  for (index_t s = 0; s < pass.sides; ++s) {
    const T* z[GroupPass<T>::rows] = {};
    T* out[GroupPass<T>::rows] = {};
    for (int r = 0; r < m; ++r) z[r] = out[r] = pass.z + ((row + r) * pass.sides + s) * lanes;
    for (index_t lane = 0; lane < lanes; lane += P::lanes)
      group_tile<P, K, 1, GroupSigns::both>(steps, lane, z, out, pass.W + (pass.n + s) * K * lanes + lane, m);
  }
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
    fetch_ahead<rows * (rows + 1) / 2>(pass.R + group_entry<T>(pass.n, row, row));
    for (index_t lane = 0; lane < lanes; lane += P::lanes)
      outside |= group_diagonal<P, K>(pass, row, m, lane, steps, X, unit) << lane;
    if (outside != 0) return outside;
    std::copy_n(unit, K * lanes, pass.unit);
    if (!pass.discard)
      for (int r = 0; r < m; ++r)
        std::copy_n(X + (r * rows + r) * lanes, (m - r) * lanes, pass.out + group_entry<T>(pass.n, row + r, row + r));
    if (pass.sides > 0) group_sides<P, K>(pass, row, m, steps);
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
  if constexpr (GroupSteps<T>::most == 8)
    if (pass.k == 8) return group_rows<P, 8>(pass, row);
  return pass.k == 1   ? group_rows<P, 1>(pass, row)
         : pass.k == 2 ? group_rows<P, 2>(pass, row)
                       : group_rows<P, 4>(pass, row);
}
