// Included once for each set of instructions, in a namespace of its own.

/// The size of the memory that load_block() and store_block() of a Square access, in numbers.
template <class P>
constexpr int tile_words = P::rows * (P::rows > P::lanes ? P::rows : P::lanes);

/// Loads the m x m block on the diagonal whose first entry is at R, by rows; x is zero left of the diagonal and behind
/// the block.
template <class P, Uplo uplo>
INLINE void load_triangle(const typename P::T* R, index_t ld, index_t m,
                          typename Square<typename P::T>::V (&x)[P::rows]) {
  using S = Square<typename P::T>;
  constexpr int NB = P::rows;
  if constexpr (uplo == Uplo::upper) {
    alignas(64) typename P::T tile[tile_words<P>];
    UNROLL for (int j = 0; j < tile_words<P> / NB; ++j)
      S::store(tile + j * NB, j < m ? S::load_part(R + j * ld, 0, j + 1) : S::zero());
    S::load_block(tile, x);
  } else {
    UNROLL for (int i = 0; i < NB; ++i) x[i] = i < m ? S::load_part(R + i * ld, i, int(m)) : S::zero();
  }
}
/// Stores the upper triangle of the rows x to the m x m block on the diagonal whose first entry is at `out`.
template <class P, Uplo uplo>
INLINE void store_triangle(typename P::T* out, index_t ld, index_t m, typename Square<typename P::T>::V (&x)[P::rows]) {
  using S = Square<typename P::T>;
  constexpr int NB = P::rows;
  if constexpr (uplo == Uplo::upper) {
    alignas(64) typename P::T tile[tile_words<P>];
    S::store_block(tile, x);
    UNROLL for (int j = 0; j < NB; ++j)
      if (j < m) S::store_part(out + j * ld, S::load(tile + j * NB), 0, j + 1);
  } else {
    UNROLL for (int i = 0; i < NB; ++i)
      if (i < m) S::store_part(out + i * ld, x[i], i, int(m));
  }
}

/// Returns the sum of the squares of a block that load_triangle() has loaded.
template <class T, int NB>
INLINE T sum_of_squares(const typename Square<T>::V (&x)[NB]) {
  using S = Square<T>;
  typename S::V sum = S::mul(x[0], x[0]);
  UNROLL for (int i = 1; i < NB; ++i) sum = S::fma(x[i], x[i], sum);
  return S::last(running_sums<T, NB>(sum));
}

/// Returns whether r^2 + ||v||^2 can be formed, r > 0. Scaling has excluded overflow (scale_exponent); if r is below
/// the limit, squares that underflow might be of the size of r's last bit.
template <class T>
INLINE bool squares_well(T r) {
  return r > (sizeof(T) == 8 ? T(0x1p-484) : T(0x1p-36));
}

/// Divides the k numbers v, `ld` apart, by the power of two that brings the largest of v and r near 1. Returns the
/// power of two. The Householder step depends on the ratio of v and r only, and has the same bits at any scale.
template <class T>
NOINLINE T scale_column(T* v, index_t ld, index_t k, T r) {
  T largest = r;
  for (index_t q = 0; q < k; ++q) {
    const T x = std::abs(v[q * ld]);
    largest = x > largest ? x : largest;
  }
  const int e = std::ilogb(largest);
  for (index_t q = 0; q < k; ++q) v[q * ld] = std::scalbn(v[q * ld], -e);
  return std::scalbn(T(1), e);
}

/// Computes Householder steps for a block on the diagonal, one row after the other, and their transform.
template <class P, Sign sign, bool chains>
class BlockSteps {
  using T = typename P::T;
  using S = Row<T>;
  using V = typename S::V;
  static constexpr int NB = P::rows;

 public:
  /// Takes the block's rows x of R. The transform is written to H.
  BlockSteps(const typename Square<T>::V (&x)[NB], const Reflector<P, sign, chains>& H) : H_(H) {
    UNROLL for (int i = 0; i < NB; ++i) Square<T>::store(R_ + i * NB, x[i]);
  }

  /// Takes the block's columns of V, stored at Vt by rows. Returns the products of the first column with all columns.
  INLINE V begin(const T* Vt, index_t ldv) {
    return change_and_multiply(0, [&](index_t q) INLINE_LAMBDA { return S::load(Vt + q * ldv); });
  }

  /// Modifies row i by a Householder step, r = R_ii, v = V(:, i):
  ///   rho = sqrt(r^2 + sigma ||v||^2),  y = v / (r + rho),  tau = rho / (r + rho)
  ///   R~_i = (R_i + sigma y'V) / tau - R_i
  ///   V <- V - y (R~_i + R_i)               update
  ///   V <- V - y (R~_i + y'V) / (1 - tau)   downdate, from the *new* row, as in Chambers' mixed rotations
  /// to the right of column i; in columns up to i, V stays as it is, and row i of R becomes meaningless. products: V'v,
  /// and on return the products of column i + 1. squares: that of Strip. Returns false if there is no such rho, or if r
  /// is not a positive normal number.
  INLINE bool reflect_row(index_t i, V& products, T& squares) {
    static constexpr auto right = [] {  // zeros, then ones
      std::array<T, 2 * NB> x{};
      for (int j = NB; j < 2 * NB; ++j) x[j] = 1;
      return x;
    }();
    T* const row = R_ + i * NB;
    T r = row[i], unit = 1;
    if (!(r > 0)) return false;
    if (!squares_well(r)) {
      if (r < std::numeric_limits<T>::min()) return false;
      if (r < least_safe<T>) squares = std::numeric_limits<T>::infinity();
      unit = scale_column(H_.Y() + i, NB, H_.k, r);
      r /= unit;
      products = change_and_multiply(i, [&](index_t q) INLINE_LAMBDA { return S::load(H_.Y() + q * NB); });
    }
    // If v is zero, rho is r, as the root of the rounded square of r is r. Both squares are rounded before they are
    // compared: if they are equal, a fused r * r - of_v would leave the rounding error of r * r.
    const T of_v = S::entry(products, i), of_r = r * r;
    if (sign == Sign::downdate && !(of_r > of_v)) return false;
    const T rho = std::sqrt(sign == Sign::update ? of_r + of_v : of_r - of_v), sum = r + rho, g = 1 / sum,
            inv_tau = sum / rho;
    const V yv = S::mul(S::set1(g), products), old = S::load(row),
            share = S::mul(S::set1(1 / (sign == Sign::update ? rho : r)), S::load(right.data() + NB - 1 - i)),
            x = sign == Sign::update ? S::add(old, yv) : S::sub(old, yv), now = S::fms(x, S::set1(inv_tau), old),
            w = S::mul(sign == Sign::update ? x : S::add(now, yv), share);
    S::store(row, now);
    S::store(H_.L1() + i * NB, products);
    pivots_[i] = rho * unit;
    scales_[i] = g;
    H_.inv_tau()[i] = inv_tau;
    if (sign == Sign::downdate) H_.inv_ctau()[i] = sum / r;
    if (i + 1 < NB)
      products = change_and_multiply(i + 1, [&](index_t q) INLINE_LAMBDA {
        const T* const v = H_.Y() + q * NB;
        return S::fnma(S::set1(v[i]), w, S::load(v));
      });
    return true;
  }

  /// Completes the transform after the first m rows are done. In the rows behind them the transform leaves zeros zero.
  void finish(index_t m) {
    const V g = S::load(scales_);
    for (index_t q = 0; q < H_.k; ++q) S::store(H_.Y() + q * NB, S::mul(S::load(H_.Y() + q * NB), g));
    for (index_t i = 0; i < m; ++i) {
      const V y = S::mul(S::load(H_.L1() + i * NB), S::mul(g, S::set1(scales_[i])));
      const T inv_tau = H_.inv_tau()[i];
      S::store_first(H_.L1() + i * NB, S::mul(y, S::set1(sign == Sign::update ? inv_tau : -inv_tau)), i);
      if constexpr (sign == Sign::downdate) S::store_first(H_.L2() + i * NB, S::mul(y, S::set1(H_.inv_ctau()[i])), i);
    }
    for (index_t i = m; i < NB; ++i) {
      S::store(H_.L1() + i * NB, S::zero());
      H_.inv_tau()[i] = 0;
      if (sign == Sign::downdate) S::store(H_.L2() + i * NB, S::zero());
      if (sign == Sign::downdate) H_.inv_ctau()[i] = 0;
    }
  }
  void block(typename Square<T>::V (&x)[NB]) const {
    UNROLL for (int i = 0; i < NB; ++i) x[i] = Square<T>::load(R_ + i * NB);
  }
  T pivot(index_t i) const { return pivots_[i]; }

 private:
  /// Replaces each row q of V by change(q). Returns the products of column i of the new V with all its columns.
  template <class Change>
  INLINE V change_and_multiply(index_t i, Change&& change) {
    constexpr int ways = 4;
    static_assert(longest_chain % ways == 0, "a chain ends with whole steps");
    V sums[ways], before = S::zero();  // before: the sum of the chains that have ended
    UNROLL for (int way = 0; way < ways; ++way) sums[way] = S::zero();
    const auto step = [&](index_t q, int way) INLINE_LAMBDA {
      const V v = change(q);
      S::store(H_.Y() + q * NB, v);
      sums[way] = S::fma(S::spread(v, H_.Y() + q * NB, i), v, sums[way]);
    };
    const auto total = [&]() INLINE_LAMBDA { return S::add(S::add(sums[0], sums[1]), S::add(sums[2], sums[3])); };
    index_t q = 0;
    const auto steps = [&](index_t end) INLINE_LAMBDA {
      for (; q + ways <= end; q += ways)
        UNROLL for (int way = 0; way < ways; ++way) step(q + way, way);
    };
    if constexpr (chains)
      while (H_.k - q > longest_chain) {
        steps(q + longest_chain);
        before = S::add(before, total());
        UNROLL for (int way = 0; way < ways; ++way) sums[way] = S::zero();
      }
    steps(H_.k);
    for (; q < H_.k; ++q) step(q, 0);
    return chains ? S::add(before, total()) : total();
  }

  Reflector<P, sign, chains> H_;  // H_.Y() holds V until all rows are done
  alignas(64) T R_[NB * NB];
  T pivots_[NB], scales_[NB] = {};
};
