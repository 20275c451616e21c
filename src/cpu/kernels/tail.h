// Included once for each set of instructions, in a namespace of its own.

/// Calls f(Count<0>()), f(Count<1>()), ...
template <class F, int... i>
INLINE void each(F&& f, std::integer_sequence<int, i...>) { (f(Count<i>()), ...); }
template <int n, class F>
INLINE void each(F&& f) { each(f, std::make_integer_sequence<int, n>()); }

/// Returns x_0, x_0 + x_1, ...
template <class T, int lanes>
INLINE typename Square<T>::V running_sums(typename Square<T>::V x) {
  using S = Square<T>;
  x = S::add(x, S::template shifted<1>(x, S::zero()));
  x = S::add(x, S::template shifted<2>(x, S::zero()));
  if constexpr (lanes > 4) x = S::add(x, S::template shifted<4>(x, S::zero()));
  return x;
}

/// Loads and stores a tile of rows x lanes at `p`, which registers hold by rows; stores the tile's part of a row of V.
struct Whole {
  template <class P>
  INLINE void store_V(typename P::T* p, typename P::V x) const {
    P::store(p, x);
  }
  template <class P, Uplo uplo>
  INLINE void load(const typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    if constexpr (uplo == Uplo::upper) P::load_columns(p, ld, x);
    else {
      UNROLL for (int i = 0; i < P::rows; ++i) x[i] = P::load(p + i * ld);
    }
  }
  template <class P, Uplo uplo>
  INLINE void store(typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    if constexpr (uplo == Uplo::upper) P::store_columns(p, ld, x);
    else {
      UNROLL for (int i = 0; i < P::rows; ++i) P::store(p + i * ld, x[i]);
    }
  }
};

/// Loads and stores tiles of an upper R whose columns begin 16 bytes behind a multiple of 32.
struct Shifted : Whole {
  template <class P, Uplo uplo>
  INLINE void load(const typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    P::load_shifted_columns(p, ld, x);
  }
  template <class P, Uplo uplo>
  INLINE void store(typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    P::store_shifted_columns(p, ld, x);
  }
};
/// True if P loads and stores columns that begin 16 bytes behind a multiple of 32 (P::shifts).
template <class P, class = void>
constexpr bool can_shift = false;
template <class P>
constexpr bool can_shift<P, std::void_t<decltype(P::shifts)>> = true;

/// Loads and stores a tile of which only the first `columns` columns exist; the other columns are loaded as zeros.
struct Edge {
  int columns;
  template <class P>
  INLINE void store_V(typename P::T* p, typename P::V x) const {
    P::store_part(p, x, 0, columns);
  }
  template <class P, Uplo uplo>
  INLINE void load(const typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    if constexpr (uplo == Uplo::upper) {
      using S = Square<typename P::T>;
      alignas(64) typename P::T tile[P::rows * P::lanes];
      for (int j = 0; j < P::lanes; ++j) S::store(tile + j * P::rows, j < columns ? S::load(p + j * ld) : S::zero());
      P::load_columns(tile, P::rows, x);
    } else {
      UNROLL for (int i = 0; i < P::rows; ++i) x[i] = P::load_part(p + i * ld, 0, columns);
    }
  }
  template <class P, Uplo uplo>
  INLINE void store(typename P::T* p, index_t ld, typename P::V (&x)[P::rows]) const {
    if constexpr (uplo == Uplo::upper) {
      using S = Square<typename P::T>;
      alignas(64) typename P::T tile[P::rows * P::lanes];
      P::store_columns(tile, P::rows, x);
      for (int j = 0; j < columns; ++j) S::store(p + j * ld, S::load(tile + j * P::rows));
    } else {
      UNROLL for (int i = 0; i < P::rows; ++i) P::store_part(p + i * ld, x[i], 0, columns);
    }
  }
};

/// Adds the squares of a tile to `squares`, in two chains, so that one tile does not wait for another.
template <class P>
INLINE void add_squares(const typename P::V (&x)[P::rows], typename P::V& squares) {
  typename P::V even = P::mul(x[0], x[0]), odd = P::mul(x[1], x[1]);
  UNROLL for (int i = 2; i < P::rows; i += 2) {
    even = P::fma(x[i], x[i], even);
    odd = P::fma(x[i + 1], x[i + 1], odd);
  }
  squares = P::add(squares, P::add(even, odd));
}

/// Returns the offset of entry (i, j).
template <Uplo uplo>
INLINE index_t at(index_t i, index_t j, index_t ld) {
  return uplo == Uplo::upper ? i + j * ld : j + i * ld;
}

/// Returns by how many bytes each of p, p + ld, p + 2 ld, ... exceeds a multiple of `bytes`; -1 if the numbers differ.
template <class T>
INLINE int behind(const T* p, index_t ld, int bytes) {
  return ld * index_t(sizeof(T)) % bytes == 0 ? int(reinterpret_cast<std::uintptr_t>(p) % bytes) : -1;
}

/// The `long_rows` of steps that gain nothing from vectors that begin with a cache line.
constexpr index_t all_short = std::numeric_limits<index_t>::max() / 2;

/// Prefetches rows that the kernel reads some row blocks later, whether the addresses still belong to the matrix or
/// not. The processor prefetches streams of columns by itself, but not rows. The rows are fetched into the second-level
/// cache, as rows that are a large power of two apart map to the same few sets of the first-level cache.
template <class P, int C>
INLINE void prefetch_rows(const typename P::T* p, index_t ld) {
  const std::uintptr_t later = reinterpret_cast<std::uintptr_t>(p) +
                               std::uintptr_t(P::rows * tuning::blocked_prefetch * ld) * sizeof(*p);
  UNROLL for (int i = 0; i < P::rows; ++i) UNROLL for (int c = 0; c < C; ++c) __builtin_prefetch(
      reinterpret_cast<const void*>(later + std::uintptr_t(i * ld + c * P::lanes) * sizeof(*p)), 0, 2);
}

/// The largest number of products that are added up one after the other: the rounding error of such a chain grows like
/// the root of its length. inst/design/accuracy.md tells what this bound gains.
constexpr index_t longest_chain = 256;

/// Describes the transform of one block of `rows` rows by Householder steps, as columns to the right need it. `chains`:
/// k is above longest_chain, and sums over the columns of V are sums of chains.
template <class P, Sign sign, bool chains>
struct Reflector {
  using T = typename P::T;
  static constexpr int NB = P::rows;
  T* memory;
  index_t k;

  T* Y() const { return memory; }                  ///< k x NB by rows: y_i in column i
  T* L1() const { return memory + k * NB; }        ///< NB x NB by rows: strictly lower, sigma y_i'y_l / tau_i
  T* inv_tau() const { return L1() + NB * NB; }    ///< NB: 1 / tau_i, tau_i = rho_i / (r_i + rho_i)
  T* L2() const { return inv_tau() + NB; }         ///< downdate: strictly lower, y_i'y_l / (1 - tau_i)
  T* inv_ctau() const { return L2() + NB * NB; }   ///< downdate: NB, 1 / (1 - tau_i)
  static index_t words(index_t k) { return k * NB + (sign == Sign::update ? 1 : 2) * (NB * NB + NB); }
};

/// Computes `count` sums over all columns q of V; add(q, sums) adds the terms of column q to them.
template <class P, bool chains, int count, class Add>
INLINE void sum_columns(index_t k, typename P::V (&sums)[count], Add&& add) {
  UNROLL for (int i = 0; i < count; ++i) sums[i] = P::zero();
  if constexpr (!chains) {
    for (index_t q = 0; q < k; ++q) add(q, sums);
  } else {
    for (index_t first = 0; first < k; first += longest_chain) {
      typename P::V chain[count];
      UNROLL for (int i = 0; i < count; ++i) chain[i] = P::zero();
      for (index_t q = first; q < std::min(k, first + longest_chain); ++q) add(q, chain);
      UNROLL for (int i = 0; i < count; ++i) sums[i] = P::add(sums[i], chain[i]);
    }
  }
}

/// Computes [ R; V ] <- H [ R; V ] for C vectors of columns to the right of the block (the tail kernel).
///
///   R  NB x columns, V  k x columns, both by rows in registers (R is transposed when it is loaded and stored if it is
///   stored by columns)
///   T1 = diag(tau) + sigma L, L the strictly lower part of Y'Y;  X = T1^-1 (R + sigma Y'V);  R~ = X - R
///   update    V <- V - Y X
///   downdate  V <- V - Y Z,  Z = T2^-1 (R~ + Y'V),  T2 = diag(1 - tau) + L
/// The rows of T1 and T2 have been divided by their diagonal entries, so a step of the substitutions is one
/// multiply-add.
template <class P, Sign sign, bool chains, Uplo uplo, int C, class Tile>
INLINE void reflect_tile(const Tile& tile, const Reflector<P, sign, chains>& H, const typename P::T* R, index_t ldr,
                         typename P::T* out, index_t ldo, typename P::T* Vt, index_t ldv, index_t k,
                         typename P::V& squares) {
  using V = typename P::V;
  constexpr int NB = P::rows, lanes = P::lanes;
  const typename P::T *const Y = H.Y(), *const L1 = H.L1(), *const inv_tau = H.inv_tau(), *const L2 = H.L2(),
                      *const inv_ctau = H.inv_ctau();
  if constexpr (uplo == Uplo::lower) prefetch_rows<P, C>(R, ldr);
  V x[NB * C];  // by rows: Y'V, then X or Z
  sum_columns<P, chains>(k, x, [&](index_t q, V (&sums)[NB * C]) INLINE_LAMBDA {
    V v[C];
    UNROLL for (int c = 0; c < C; ++c) v[c] = P::load(Vt + q * ldv + c * lanes);
    UNROLL for (int i = 0; i < NB; ++i) {
      const V y = P::set1(Y[q * NB + i]);
      UNROLL for (int c = 0; c < C; ++c) sums[i * C + c] = P::fma(y, v[c], sums[i * C + c]);
    }
  });
  UNROLL for (int c = 0; c < C; ++c) {
    V r[NB], yv[NB];
    tile.template load<P, uplo>(R + at<uplo>(0, c * lanes, ldr), ldr, r);
    add_squares<P>(r, squares);
    UNROLL for (int i = 0; i < NB; ++i) {
      yv[i] = x[i * C + c];
      V sum = P::mul(sign == Sign::update ? P::add(r[i], yv[i]) : P::sub(r[i], yv[i]), P::set1(inv_tau[i]));
      UNROLL for (int l = 0; l < i; ++l) sum = P::fnma(P::set1(L1[i * NB + l]), x[l * C + c], sum);
      x[i * C + c] = sum;
    }
    UNROLL for (int i = 0; i < NB; ++i) r[i] = P::sub(x[i * C + c], r[i]);
    if (sign == Sign::downdate) {
      UNROLL for (int i = 0; i < NB; ++i) {
        V sum = P::mul(P::add(r[i], yv[i]), P::set1(inv_ctau[i]));
        UNROLL for (int l = 0; l < i; ++l) sum = P::fnma(P::set1(L2[i * NB + l]), x[l * C + c], sum);
        x[i * C + c] = sum;
      }
    }
    tile.template store<P, uplo>(out + at<uplo>(0, c * lanes, ldo), ldo, r);
  }
  for (index_t q = 0; q < k; ++q) {
    V v[C];
    UNROLL for (int c = 0; c < C; ++c) v[c] = P::load(Vt + q * ldv + c * lanes);
    UNROLL for (int i = 0; i < NB; ++i) {
      const V y = P::set1(Y[q * NB + i]);
      UNROLL for (int c = 0; c < C; ++c) v[c] = P::fnma(y, x[i * C + c], v[c]);
    }
    UNROLL for (int c = 0; c < C; ++c) P::store(Vt + q * ldv + c * lanes, v[c]);
  }
}
