// Included once for each set of instructions, in a namespace of its own.

/// The block on the diagonal, on its own: rows of DW entries, so that a row is whole vectors.
template <class P>
struct Block {
  using T = typename P::T;
  static constexpr int NB = P::rows, DW = NB > P::lanes ? NB : P::lanes, vectors = DW / P::lanes;
  T* R;   ///< NB x DW, strictly lower part zero or meaningless
  T* Vt;  ///< k x DW
  static index_t words(index_t k) { return (NB + k) * DW; }
};

/// The m x m block on the diagonal whose corner is R, by rows; zeros left of its diagonal and behind it.
template <class P, Uplo uplo>
INLINE void load_triangle(const typename P::T* R, index_t ld, index_t m,
                          typename Square<typename P::T>::V (&x)[P::rows]) {
  using S = Square<typename P::T>;
  constexpr int NB = P::rows;
  if constexpr (uplo == Uplo::upper) {
    alignas(64) typename P::T tile[NB * Block<P>::DW];
    UNROLL for (int j = 0; j < NB; ++j) S::store(tile + j * NB, j < m ? S::load_part(R + j * ld, 0, j + 1) : S::zero());
    UNROLL for (int j = NB; j < Block<P>::DW; ++j) S::store(tile + j * NB, S::zero());
    S::load_block(tile, x);
  } else {
    UNROLL for (int i = 0; i < NB; ++i) x[i] = i < m ? S::load_part(R + i * ld, i, int(m)) : S::zero();
  }
}
template <class P, Uplo uplo>
INLINE void store_triangle(typename P::T* out, index_t ld, index_t m, typename Square<typename P::T>::V (&x)[P::rows]) {
  using S = Square<typename P::T>;
  constexpr int NB = P::rows;
  if constexpr (uplo == Uplo::upper) {
    alignas(64) typename P::T tile[NB * Block<P>::DW];
    S::store_block(tile, x);
    UNROLL for (int j = 0; j < NB; ++j)
      if (j < m) S::store_part(out + j * ld, S::load(tile + j * NB), 0, j + 1);
  } else {
    UNROLL for (int i = 0; i < NB; ++i)
      if (i < m) S::store_part(out + i * ld, x[i], i, int(m));
  }
}

/// Sum of the squares of such a block.
template <class T, int NB>
INLINE T sum_of_squares(const typename Square<T>::V (&x)[NB]) {
  using S = Square<T>;
  typename S::V sum = S::mul(x[0], x[0]);
  UNROLL for (int i = 1; i < NB; ++i) sum = S::fma(x[i], x[i], sum);
  return S::last(running_sums<T, NB>(sum));
}

/// The same block, and room for the columns of V that belong to it.
template <class P, Uplo uplo>
Block<P> load_block(Strip<typename P::T>& strip, index_t row, index_t column, index_t m) {
  using B = Block<P>;
  using S = Square<typename P::T>;
  const B block{strip.block, strip.block + B::NB * B::DW};
  typename S::V x[B::NB];
  load_triangle<P, uplo>(strip.R + at<uplo>(row, column, strip.ldr), strip.ldr, m, x);
  strip.squares += sum_of_squares<typename P::T>(x);
  UNROLL for (int i = 0; i < B::NB; ++i) {
    S::store(block.R + i * B::DW, x[i]);
    if constexpr (B::DW > B::NB) S::store(block.R + i * B::DW + B::NB, S::zero());
  }
  return block;
}
template <class P, Uplo uplo>
void store_block(const Block<P>& block, const Strip<typename P::T>& strip, index_t row, index_t column, index_t m) {
  using S = Square<typename P::T>;
  typename S::V x[P::rows];
  UNROLL for (int i = 0; i < P::rows; ++i) x[i] = S::load(block.R + i * Block<P>::DW);
  store_triangle<P, uplo>(strip.out + at<uplo>(row, column, strip.ldo), strip.ldo, m, x);
}

/// Whether r^2 + ||v||^2 can be formed, r > 0: what overflows has been scaled away (scale_exponent), and below this
/// limit what underflows might be of the size of r's last bit.
template <class T>
INLINE bool squares_well(T r) {
  return r > (sizeof(T) == 8 ? T(0x1p-484) : T(0x1p-36));
}

/// Column i of V divided by the power of two, which is returned, that brings the larger of it and r near 1. For the
/// pivot only their ratio matters, and what comes of it has the same bits at any scale.
template <class P>
NOINLINE typename P::T scale_column(const Block<P>& block, index_t i, index_t k, typename P::T r) {
  using T = typename P::T;
  T* const v = block.Vt + i;
  T largest = r;
  for (index_t q = 0; q < k; ++q) {
    const T x = std::abs(v[q * block.DW]);
    largest = x > largest ? x : largest;
  }
  const int e = std::ilogb(largest);
  for (index_t q = 0; q < k; ++q) v[q * block.DW] = std::scalbn(v[q * block.DW], -e);
  return std::scalbn(T(1), e);
}

/// Sums of products in four chains.
template <class P>
struct Products {
  using V = typename P::V;
  static constexpr int C = Block<P>::vectors, ways = 4;
  V sums[ways][C];

  INLINE Products() {
    UNROLL for (int w = 0; w < ways; ++w)
      UNROLL for (int c = 0; c < C; ++c) sums[w][c] = P::zero();
  }
  INLINE void add(int way, typename P::T a, const V (&b)[C]) {
    UNROLL for (int c = 0; c < C; ++c) sums[way][c] = P::fma(P::set1(a), b[c], sums[way][c]);
  }
  INLINE void total(V (&products)[C]) const {
    UNROLL for (int c = 0; c < C; ++c) products[c] =
        P::add(P::add(sums[0][c], sums[1][c]), P::add(sums[2][c], sums[3][c]));
  }
};

/// V <- change(q, row q of V), and v_i'V with column i of what comes of it.
template <bool chains, class P, class Change>
INLINE void change_and_multiply(const Block<P>& block, index_t i, index_t k, Change&& change,
                                typename P::V (&products)[Block<P>::vectors]) {
  constexpr int DW = Block<P>::DW, C = Block<P>::vectors, ways = Products<P>::ways;
  static_assert(longest_chain % ways == 0, "a chain ends with whole steps");
  Products<P> sums;
  typename P::V before[C];  // of the chains that have ended
  const auto step = [&](index_t q, int way) INLINE_LAMBDA {
    typename P::V v[C];
    change(q, v);
    UNROLL for (int c = 0; c < C; ++c) P::store(block.Vt + q * DW + c * P::lanes, v[c]);
    sums.add(way, block.Vt[q * DW + i], v);
  };
  index_t q = 0;
  const auto steps = [&](index_t end) INLINE_LAMBDA {
    for (; q + ways <= end; q += ways)
      UNROLL for (int way = 0; way < ways; ++way) step(q + way, way);
  };
  if constexpr (chains) {
    UNROLL for (int c = 0; c < C; ++c) before[c] = P::zero();
    while (k - q > longest_chain) {
      steps(q + longest_chain);
      sums.total(products);
      UNROLL for (int c = 0; c < C; ++c) before[c] = P::add(before[c], products[c]);
      sums = {};
    }
  }
  steps(k);
  for (; q < k; ++q) step(q, 0);
  sums.total(products);
  if constexpr (chains)
    UNROLL for (int c = 0; c < C; ++c) products[c] = P::add(before[c], products[c]);
}

/// Row i of the block by a Householder step, r = R_ii, v = V(:, i); `products`: v'V, for row i + 1 when it is done.
///   rho = sqrt(r^2 + sigma ||v||^2),  y = v / (r + rho),  tau = rho / (r + rho)
///   R~_i = (R_i + sigma y'V) / tau - R_i
///   V <- V - y (R~_i + R_i)               update
///   V <- V - y (R~_i + y'V) / (1 - tau)   downdate, from the *new* row, as in Chambers' mixed rotations
/// to the right of column i; up to there V stays, and R becomes meaningless. scales[i] <- 1 / (r + rho).
/// squares: as Strip's. False if there is no such rho, or r is not a positive normal number.
template <Sign sign, bool chains, class P>
INLINE bool reflect_row(const Block<P>& block, index_t i, index_t k, const Reflector<P, sign, chains>& H,
                        typename P::T* scales, typename P::V (&products)[Block<P>::vectors], typename P::T& squares) {
  using T = typename P::T;
  using V = typename P::V;
  constexpr int DW = Block<P>::DW, C = Block<P>::vectors, lanes = P::lanes;
  static constexpr auto right = [] {  // zeros, then ones
    std::array<T, 2 * DW> x{};
    for (int j = DW; j < 2 * DW; ++j) x[j] = 1;
    return x;
  }();
  T* row = block.R + i * DW;
  T r = row[i], unit = 1;
  if (!(r > 0)) return false;
  if (!squares_well(r)) {
    if (r < std::numeric_limits<T>::min()) return false;
    if (r < least_safe<T>) squares = std::numeric_limits<T>::infinity();
    unit = scale_column(block, i, k, r);
    r /= unit;
    change_and_multiply<chains>(block, i, k, [&](index_t q, V (&v)[C]) INLINE_LAMBDA {
      UNROLL for (int c = 0; c < C; ++c) v[c] = P::load(block.Vt + q * DW + c * lanes);
    }, products);
  }
  alignas(64) T all[DW];
  UNROLL for (int c = 0; c < C; ++c) P::store(all + c * lanes, products[c]);
  const T square = all[i];  // of the norm of v
  T rho;
  if (sign == Sign::update) {
    rho = square == 0 ? r : std::sqrt(r * r + square);
  } else {
    const T nv = std::sqrt(square);
    if (!(r > nv)) return false;
    rho = square == 0 ? r : std::sqrt((r - nv) * (r + nv));
  }
  const T sum = r + rho, g = 1 / sum, inv_tau = sum / rho;
  const T scale = 1 / (sign == Sign::update ? rho : r);  // g / tau, g / (1 - tau)
  V w[C];                                                // z / (r + rho)
  UNROLL for (int c = 0; c < C; ++c) {
    const V old = P::load(row + c * lanes), yv = P::mul(P::set1(g), products[c]);
    const V x = sign == Sign::update ? P::add(old, yv) : P::sub(old, yv), now = P::fms(x, P::set1(inv_tau), old);
    P::store(row + c * lanes, now);
    w[c] = P::mul(P::mul(sign == Sign::update ? x : P::add(now, yv), P::set1(scale)),
                  P::load(right.data() + DW - 1 - i + c * lanes));
  }
  row[i] = rho * unit;
  scales[i] = g;
  H.inv_tau()[i] = inv_tau;
  if (sign == Sign::downdate) H.inv_ctau()[i] = sum / r;
  if (i + 1 < P::rows)
    change_and_multiply<chains>(block, i + 1, k, [&](index_t q, V (&v)[C]) INLINE_LAMBDA {
      const V vi = P::set1(block.Vt[q * DW + i]);
      UNROLL for (int c = 0; c < C; ++c) v[c] = P::fnma(vi, w[c], P::load(block.Vt + q * DW + c * lanes));
    }, products);
  return true;
}

/// The y's, v times `scales` (NB), and their products in the two ways that the tail kernel needs them.
template <Sign sign, bool chains, class P>
void couple_rows(const Block<P>& block, const Reflector<P, sign, chains>& H, const typename P::T* scales, index_t k) {
  using S = Square<typename P::T>;
  constexpr int NB = P::rows;
  const typename S::V g = S::load(scales);
  typename S::V all[NB];  // the first is left out
  sum_columns<S, chains>(k, all, [&](index_t q, typename S::V (&sums)[NB]) INLINE_LAMBDA {
    const typename S::V y = S::mul(S::load(block.Vt + q * Block<P>::DW), g);
    S::store(H.Y() + q * NB, y);
    UNROLL for (int i = 1; i < NB; ++i) sums[i] = S::fma(S::set1(H.Y()[q * NB + i]), y, sums[i]);
  });
  for (int l = 0; l < NB * NB; ++l) H.L1()[l] = 0;
  UNROLL for (int i = 1; i < NB; ++i) {
    const typename S::V inv_tau = S::set1(sign == Sign::update ? H.inv_tau()[i] : -H.inv_tau()[i]);
    S::store_part(H.L1() + i * NB, S::mul(all[i], inv_tau), 0, i);
  }
  if constexpr (sign == Sign::downdate) {
    for (int l = 0; l < NB * NB; ++l) H.L2()[l] = 0;
    UNROLL for (int i = 1; i < NB; ++i) S::store_part(H.L2() + i * NB, S::mul(all[i], S::set1(H.inv_ctau()[i])), 0, i);
  }
}
