// Included once for each set of instructions, in a namespace of its own.

/// Solves with many small factors at once, as GroupKernels (cpu/group_pass.h) describes. The functions of this file
/// compute in doubles, whatever scalar R is stored in: a number of each member of a group fills `count` vectors.
template <class T>
void solve_forward(const T* R, index_t n, double* b) {
  using P = Pack<double>;
  constexpr index_t lanes = group_size<T>;
  constexpr int count = int(lanes) / P::lanes;
  for (index_t i = 0; i < n; ++i) {
    typename P::V x[count];
    UNROLL for (int v = 0; v < count; ++v) {
      x[v] = P::div(P::load(b + v * P::lanes), P::load(R + v * P::lanes));
      P::store(b + v * P::lanes, x[v]);
    }
    R += lanes, b += lanes;
    for (double* to = b; to < b + (n - 1 - i) * lanes; to += lanes, R += lanes)
      UNROLL for (int v = 0; v < count; ++v)
        P::store(to + v * P::lanes, P::fnma(P::load(R + v * P::lanes), x[v], P::load(to + v * P::lanes)));
  }
}

template <class T>
void solve_back(const T* group, index_t n, double* b) {
  using P = Pack<double>;
  constexpr index_t lanes = group_size<T>;
  constexpr int count = int(lanes) / P::lanes;
  for (index_t i = n; i-- > 0;) {
    const T* const diagonal = group + group_entry<T>(n, i, i);
    double* const to = b + i * lanes;
    typename P::V x[count];
    UNROLL for (int v = 0; v < count; ++v) x[v] = P::load(to + v * P::lanes);
    for (index_t j = lanes; j < (n - i) * lanes; j += lanes)
      UNROLL for (int v = 0; v < count; ++v)
        x[v] = P::fnma(P::load(diagonal + j + v * P::lanes), P::load(to + j + v * P::lanes), x[v]);
    UNROLL for (int v = 0; v < count; ++v)
      P::store(to + v * P::lanes, P::div(x[v], P::load(diagonal + v * P::lanes)));
  }
}

/// Returns `longer`, except in the lanes whose bits are set in `which`: these get sqrt(x^2 + y^2) by hypot, as their
/// squares leave the range.
template <class P, class V = typename P::V>
NOINLINE V lengths_by_hypot(unsigned which, V x, V y, V longer) {
  double xs[P::lanes], ys[P::lanes], lengths[P::lanes];
  P::store(xs, x);
  P::store(ys, y);
  P::store(lengths, longer);
  for (int l = 0; l < P::lanes; ++l)
    if (which >> l & 1) lengths[l] = std::hypot(xs[l], ys[l]);
  return P::load(lengths);
}

/// Finds the rotations that take `entries` into `norm`, the entries of a neighbouring row, a number of each lane.
template <class T, class Entry>
INLINE void find_rotations(const Entry* entries, double* norm, double* sine, double* cosine) {
  using P = Pack<double>;
  for (index_t lane = 0; lane < group_size<T>; lane += P::lanes) {
    const typename P::V x = P::load(entries + lane), y = P::load(norm + lane);
    typename P::V longer = P::sqrt(P::fma(x, x, P::mul(y, y)));
    const unsigned outside = P::outside(longer, P::set1(0x1p-450), P::set1(0x1p450));
    if (outside != 0) longer = lengths_by_hypot<P>(outside, x, y, longer);
    P::store(sine + lane, P::div(y, longer));
    P::store(cosine + lane, P::div(x, longer));
    P::store(norm + lane, longer);
  }
}

/// Rotates `columns` entries of `row` and of the carried row; the results become entries of `out`, the neighbouring
/// row, and of the carried row. Works from right to left if the next row is the row above, so that memory is read as
/// one stream.
template <class T, bool to_the_left>
INLINE void rotate_row(const T* row, T* out, double* carried, const double* sines, const double* cosines,
                       index_t columns) {
  using P = Pack<double>;
  constexpr index_t lanes = group_size<T>;
  constexpr int count = int(lanes) / P::lanes;
  typename P::V sine[count], cosine[count];
  UNROLL for (int v = 0; v < count; ++v) {
    sine[v] = P::load(sines + v * P::lanes);
    cosine[v] = P::load(cosines + v * P::lanes);
  }
  for (index_t i = 0; i < columns; ++i) {
    const index_t at = (to_the_left ? columns - 1 - i : i) * lanes;
    UNROLL for (int v = 0; v < count; ++v) {
      const index_t here = at + v * P::lanes;
      const typename P::V r = P::load(row + here), c = P::load(carried + here);
      P::store(out + here, P::fms(sine[v], r, P::mul(cosine[v], c)));
      P::store(carried + here, P::fma(cosine[v], r, P::mul(sine[v], c)));
    }
  }
}

/// Moves row `from` up to row `to`, from the bottom up.
template <class T>
void shift_left(const GroupShift<T>& shift) {
  constexpr index_t lanes = group_size<T>;
  const index_t from = shift.from, to = shift.to, behind = shift.order - 1 - from;
  const auto R = [&](index_t i, index_t j) { return shift.R + group_entry<T>(shift.n, i, j); };
  const auto carried = [&](index_t j) { return shift.work + j * lanes; };
  alignas(64) double norm[lanes];
  std::copy_n(R(from, from), lanes, norm);
  std::fill_n(carried(0), (from + 1) * lanes, 0.0);
  std::copy_n(R(from, from + 1), behind * lanes, carried(from + 1));
  for (index_t i = from; i-- > to;) {
    double *const sine = shift.sine(i), *const cosine = shift.cosine(i);
    find_rotations<T>(R(i, from), norm, sine, cosine);
    rotate_row<T, true>(R(i, from + 1), R(i + 1, from + 1), carried(from + 1), sine, cosine, behind);
    rotate_row<T, true>(R(i, i), R(i + 1, i + 1), carried(i), sine, cosine, from - i);
  }
  std::copy_n(norm, lanes, R(to, to));
  std::copy_n(carried(to), (from - to) * lanes, R(to, to + 1));
  std::copy_n(carried(from + 1), behind * lanes, R(to, from + 1));
  for (index_t i = 0; i < to; ++i) std::rotate(R(i, to), R(i, from), R(i, from + 1));
}

/// Moves row `from` down to row `to`, from the top down. Column `from` has only one entry in the rows that change.
template <class T>
void shift_right(const GroupShift<T>& shift) {
  constexpr index_t lanes = group_size<T>;
  const index_t from = shift.from, to = shift.to, behind = shift.order - 1 - to;
  const auto R = [&](index_t i, index_t j) { return shift.R + group_entry<T>(shift.n, i, j); };
  const auto carried = [&](index_t j) { return shift.work + j * lanes; };
  alignas(64) double norm[lanes], moved[lanes];
  std::copy_n(R(from, from), lanes, moved);
  std::copy_n(R(from, from + 1), (shift.order - 1 - from) * lanes, carried(from + 1));
  for (index_t i = from; i < to; ++i) {
    double *const sine = shift.sine(i), *const cosine = shift.cosine(i);
    std::copy_n(R(i + 1, i + 1), lanes, norm);
    find_rotations<T>(carried(i + 1), norm, sine, cosine);
    for (index_t l = 0; l < lanes; ++l) cosine[l] = -cosine[l];
    rotate_row<T, false>(R(i + 1, i + 2), R(i, i + 1), carried(i + 2), sine, cosine, to - i - 1);
    rotate_row<T, false>(R(i + 1, to + 1), R(i, to + 1), carried(to + 1), sine, cosine, behind);
    std::copy_n(norm, lanes, R(i, i));
    for (index_t l = 0; l < lanes; ++l) {
      R(i, to)[l] = T(-cosine[l] * moved[l]);
      moved[l] *= sine[l];
    }
  }
  std::copy_n(moved, lanes, R(to, to));
  std::copy_n(carried(to + 1), behind * lanes, R(to, to + 1));
  for (index_t i = 0; i < from; ++i) std::rotate(R(i, from), R(i, from + 1), R(i, to + 1));
}

template <class T>
void shift_rows(const GroupShift<T>& shift) {
  shift.from > shift.to ? shift_left(shift) : shift_right(shift);
}

template <class T>
const GroupKernels<T>& group_kernels() {
  static constexpr GroupKernels<T> all{GroupSteps<T>::most, sweep<T>, solve_forward<T>, solve_back<T>, shift_rows<T>};
  return all;
}

template const GroupKernels<float>& group_kernels();
template const GroupKernels<double>& group_kernels();
