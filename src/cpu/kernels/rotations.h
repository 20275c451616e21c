// Included once for each set of instructions, in a namespace of its own.

/// Describes the transform of a block of NB rows by plane rotations without square roots between rows: K rotations for
/// each row, K small.
///
/// A column v of V is kept as w = sqrt(h) v, and row i of R as x = R_i / d_i. With p = w_i / x_i, both w_i and x_i from
/// before the step,
///
///   t = (p / d_i)^2      h~ = h + sigma t                      h: 1 before the first row
///   update    x~ = x + p / (d_i^2 h) w      w~ = w - p x       d~_i = d_i sqrt(h / h~)
///   downdate  x~ = x - p / (d_i^2 h~) w~    w~ = w - p x       d~_i = d_i sqrt(h~ / h)
///
/// is the rotation with c = sqrt(h / h~), s = p / (d_i sqrt(h~)) (update), and the hyperbolic rotation with c = sqrt(h~
/// / h), s = p / (d_i sqrt(h)), which computes the new row from the old row and the *new* v (a mixed form, as Chambers'
/// is). A row waits only for w: for a product and a difference. All other numbers are found for a block's rows at once.
///
/// Rounding errors are those of rotations: the rounding error of w~, divided by sqrt(h~), is eps (c |v| + s |d x|).
/// References: Fletcher & Powell (1974) Math. Comp. 28, 1067-1087, for w; Gentleman (1973) J. Inst. Maths Applics 12,
/// 329-336, for d; inst/design/block-householder.md.
template <class P>
struct Rotations {
  using T = typename P::T;
  static constexpr int NB = P::rows;
  T* memory;
  index_t K;

  T* h() const { return memory; }                ///< K: h after the block
  T* unit() const { return memory + K; }         ///< K: 1 / sqrt(h) before the block
  /// Returns a flag: if it is not 0, the numbers behind it are c, s, 1 / c, s / c of true rotations, row by row.
  T& careful() const { return memory[2 * K]; }
  T* p(index_t q) const { return memory + head(K) + 2 * q * NB; }
  T* u(index_t q) const { return p(q) + NB; }    ///< NB: multiplier of w (update) or w~ (downdate) in x~
  T* d() const { return p(K); }
  T* csi(index_t i, index_t q) const { return memory + head(K) + 4 * (i * K + q); }
  static index_t head(index_t K) { return (2 * K + NB) / NB * NB; }
  static index_t words(index_t K) { return head(K) + 4 * K * NB; }
};

/// The bounds within which nothing over- or underflows, and little is lost to rounding: of h and 1 / d^2 (most_growth);
/// of w, which shows a number that is too large, or NaN, in the column of R above it (largest_w); of the share of h
/// that a downdate of one block leaves (least_left).
template <class T>
constexpr T most_growth = sizeof(T) == 8 ? T(0x1p200) : T(0x1p40);
template <class T>
constexpr T largest_w = sizeof(T) == 8 ? T(0x1p500) : T(0x1p80);
template <class T>
constexpr T least_left = T(0.125);

/// Finds the rotation that takes (r, v) to (rho, 0). Returns false if compute() of cpu/rotation.h does, if r is not
/// positive, or if r or v is not finite.
template <Sign sign, class T>
INLINE bool find_rotation(T& r, T v, T* csi) {
  Rotation<T> g;
  if (!(r > 0 && r <= std::numeric_limits<T>::max()) || !std::isfinite(v) || !compute<sign>(r, v, g)) return false;
  csi[0] = g.c;
  csi[1] = g.s;
  csi[2] = g.inv_c;
  csi[3] = g.s * g.inv_c;
  return true;
}

template <Sign sign, class T>
INLINE void rotate(const T* csi, T& r, T& v) {
  const T old = r;
  if (sign == Sign::update) {
    r = csi[0] * old + csi[1] * v;
    v = csi[0] * v - csi[1] * old;
  } else {
    r = csi[2] * old - csi[3] * v;
    v = csi[0] * v - csi[1] * r;
  }
}

/// Runs true rotations, one number after the other: for blocks that exceed the bounds, and to find the failing pivot.
template <class P, Sign sign, Uplo uplo>
struct Careful {
  using T = typename P::T;

  /// Applies the rotations of m rows from `row` on to columns [column, end) of the strip.
  static NOINLINE void apply(const Rotations<P>& H, index_t row, index_t m, index_t column, index_t end,
                             Strip<T>& strip) {
    for (index_t j = column; j < end; ++j) {
      T v[most_rotations];
      for (index_t q = 0; q < H.K; ++q) v[q] = strip.Vt[j + q * strip.ldv] * H.unit()[q];
      for (index_t i = 0; i < m; ++i) {
        T r = strip.R[at<uplo>(row + i, j, strip.ldr)];
        for (index_t q = 0; q < H.K; ++q) rotate<sign>(H.csi(i, q), r, v[q]);
        strip.out[at<uplo>(row + i, j, strip.ldo)] = r;
      }
      for (index_t q = 0; q < H.K; ++q) strip.Vt[j + q * strip.ldv] = v[q];
    }
  }

  static NOINLINE index_t diagonal(const Rotations<P>& H, const T* h, index_t row, index_t column, index_t m,
                                   Strip<T>& strip) {
    H.careful() = 1;
    for (index_t q = 0; q < H.K; ++q) {
      H.unit()[q] = 1 / std::sqrt(h[q]);
      H.h()[q] = 1;
    }
    for (index_t j = 0; j < m; ++j) {
      apply(H, row, j, column + j, column + j + 1, strip);
      T r = strip.R[at<uplo>(row + j, column + j, strip.ldr)];
      if (r < std::numeric_limits<T>::min()) return j;
      strip.squares += r < least_safe<T> ? std::numeric_limits<T>::infinity() : r * r;
      for (index_t q = 0; q < H.K; ++q)
        if (!find_rotation<sign>(r, strip.Vt[column + j + q * strip.ldv], H.csi(j, q))) return j;
      strip.out[at<uplo>(row + j, column + j, strip.ldo)] = r;
    }
    for (index_t i = m; i < P::rows; ++i)  // the identity for rows behind the last
      for (index_t q = 0; q < H.K; ++q) {
        T* const csi = H.csi(i, q);
        csi[0] = csi[2] = 1;
        csi[1] = csi[3] = 0;
      }
    return -1;
  }
};

/// Computes w before each row from w[0] by substitution with the rows x of a block on the diagonal; inverse: 1 / R_ii.
/// Entries of w left of the diagonal stay as they are.
template <class S, class W, int NB>
INLINE void substitute(const W (&x)[NB], W inverse, W (&w)[NB]) {
  each<NB - 1>([&](auto at) INLINE_LAMBDA {
    constexpr int i = decltype(at)::value;
    w[i + 1] =
        S::fnma(S::template lane<i>(w[i]), S::template mul_from<i + 1>(x[i], S::template lane<i>(inverse)), w[i]);
  });
}

/// Adds to row i of x, from the diagonal on, entry i of u times w before the row (update) or behind the row (downdate).
template <class S, Sign sign, class W, int NB>
INLINE void add_rows(W u, const W (&w)[NB], W (&x)[NB]) {
  each<NB>([&](auto at) INLINE_LAMBDA {
    constexpr int i = decltype(at)::value;
    if constexpr (sign == Sign::update) x[i] = S::template fma_from<i>(S::template lane<i>(u), w[i], x[i]);
    else if constexpr (i + 1 < NB) x[i] = S::template fma_from<i + 1>(S::template lane<i>(u), w[i + 1], x[i]);
  });
}

/// Multiplies row i of x by entry i of d.
template <class S, class W, int NB>
INLINE void scale_rows(W (&x)[NB], W d) {
  each<NB>([&](auto at) INLINE_LAMBDA {
    constexpr int i = decltype(at)::value;
    x[i] = S::mul(x[i], S::template lane<i>(d));
  });
}

/// Finds the rotations of a block on the diagonal, in registers (Kernels::diagonal). `single`: K is 1, which takes a
/// tenth less time if the compiler knows K; one kernel serves all other K.
template <class P, Sign sign, Uplo uplo, bool single>
index_t find_rotations(typename P::T* memory, index_t row, index_t column, index_t m, index_t k,
                       Strip<typename P::T>& strip) {
  const index_t K = single ? 1 : k;
  using T = typename P::T;
  using S = Square<T>;
  using W = typename S::V;
  constexpr int NB = P::rows;
  const Rotations<P> block{memory, K};
  T h_before[most_rotations];
  for (index_t q = 0; q < K; ++q) h_before[q] = row == 0 ? T(1) : memory[q - Rotations<P>::words(K)];
  const T* const R = strip.R + at<uplo>(row, column, strip.ldr);
  W x[NB];
  load_triangle<P, uplo>(R, strip.ldr, m, x);
  const T squares = sum_of_squares<T>(x);
  const W one = S::set1(1), most = S::set1(most_growth<T>);
  // growth: 1 / d^2.
  W diagonal = m == NB ? S::diagonal(R, strip.ldr) : S::diagonal(R, strip.ldr, m), growth = one, square_of_d = one;
  bool good = S::within(diagonal, S::set1(least_safe<T>), S::set1(std::numeric_limits<T>::max()));
  for (index_t q = 0; q < K; ++q) {
    const W inverse = S::div(one, diagonal);
    W w[NB];
    w[0] = S::load(strip.Vt + q * strip.ldv + column);
    substitute<S>(x, inverse, w);
    good = good & S::within(w[NB - 1], S::set1(-largest_w<T>), S::set1(largest_w<T>));
    const W p = S::mul(w[NB - 1], inverse), pg = S::mul(p, growth), t = S::mul(p, pg), h = S::set1(h_before[q]);
    const W sums = running_sums<T, NB>(t);
    const W after = sign == Sign::update ? S::add(h, sums) : S::sub(h, sums);
    const W before = S::template shifted<1>(after, h);
    W u, share;  // share: the factor of d^2, exactly 1 if t is 0
    if (sign == Sign::update) {
      const W part = S::div(one, before), ratio = S::fma(t, part, one);
      u = S::mul(pg, part);
      share = S::div(before, S::add(before, t));
      growth = S::mul(growth, ratio);
      diagonal = S::mul(diagonal, ratio);
      good = good & S::within(after, S::set1(1 / most_growth<T>), most);
    } else {
      const W part = S::div(one, S::sub(before, t));
      u = S::sub(S::zero(), S::mul(pg, part));
      share = S::fnma(t, S::div(one, before), one);
      growth = S::mul(growth, S::mul(before, part));
      good = good & S::within(after, S::set1(std::max(least_left<T> * h_before[q], 1 / most_growth<T>)), most);
    }
    square_of_d = S::mul(square_of_d, share);
    S::store(block.p(q), p);
    S::store(block.u(q), u);
    block.h()[q] = S::last(after);
    add_rows<S, sign>(u, w, x);
  }
  if (!(good & S::within(growth, S::set1(T(0.5)), most)))
    return Careful<P, sign, uplo>::diagonal(block, h_before, row, column, m, strip);
  block.careful() = 0;
  const W d = S::sqrt(square_of_d);
  S::store(block.d(), d);
  scale_rows<S>(x, d);
  store_triangle<P, uplo>(strip.out + at<uplo>(row, column, strip.ldo), strip.ldo, m, x);
  strip.squares += squares;
  return -1;
}

template <class Packed, Sign sign, Uplo uplo, int K>
struct Rotating {
  using P = Packed;
  static constexpr bool upper = uplo == Uplo::upper;
  static constexpr int vectors = !upper ? P::vectors_lower : P::lanes < P::rows ? 2 : 1;
  // Measured: inst/design/block-householder.md.
  static constexpr int few_columns = K == 1 ? 8 : 4;
  static constexpr index_t long_rows = K <= 2 ? 96 : P::rows == 8 ? 200 : all_short;
  /// True if the tile of a vector is read before the tile of the preceding vector is written: in the other order, the
  /// read would wait for the write if columns are 4 KB apart.
  static constexpr bool load_first = P::rows == 8 && (upper || K <= 2);
  using Crowded = Rotating<std::conditional_t<upper, typename P::Narrow, P>, sign, uplo, K>;
  using Usual = Rotating<std::conditional_t<upper, typename P::Upper, P>, sign, uplo, K>;
  using T = typename P::T;
  using V = typename P::V;
  using H = Rotations<P>;
  static index_t transform_words(index_t) { return H::words(K); }
  static T unit(const T* memory, index_t q) { return 1 / std::sqrt(memory[q]); }

  template <int C, class Tile>
  static INLINE void down(const Tile& tile, const T* memory, index_t blocks, const T* R, index_t ldr, T* out,
                          index_t ldo, T* Vt, index_t ldv, index_t, V&) {
    V w[K][C];
    UNROLL for (int q = 0; q < K; ++q)
      UNROLL for (int c = 0; c < C; ++c) w[q][c] = P::load(Vt + q * ldv + c * P::lanes);
    for (index_t b = 0; b < blocks; ++b) {
      const H block{const_cast<T*>(memory), K};
      if constexpr (uplo == Uplo::lower) prefetch_rows<P, C>(R, ldr);
      V tiles[2][P::rows];
      const auto load = [&](int c) INLINE_LAMBDA {
        tile.template load<P, uplo>(R + at<uplo>(0, c * P::lanes, ldr), ldr, tiles[c % 2]);
      };
      load(0);
      UNROLL for (int c = 0; c < C; ++c) {
        V (&x)[P::rows] = tiles[c % 2];
        UNROLL for (int i = 0; i < P::rows; ++i) {
          UNROLL for (int q = 0; q < K; ++q) {
            const V p = P::set1(block.p(q)[i]), u = P::set1(block.u(q)[i]), old = w[q][c];
            w[q][c] = P::fnma(p, x[i], old);
            x[i] = P::fma(u, sign == Sign::update ? old : w[q][c], x[i]);
          }
          x[i] = P::mul(x[i], P::set1(block.d()[i]));
        }
        if (load_first && c + 1 < C) load(c + 1);
        tile.template store<P, uplo>(out + at<uplo>(0, c * P::lanes, ldo), ldo, x);
        if (!load_first && c + 1 < C) load(c + 1);
      }
      memory += H::words(K);
      R += at<uplo>(P::rows, 0, ldr);
      out += at<uplo>(P::rows, 0, ldo);
    }
    UNROLL for (int q = 0; q < K; ++q)
      UNROLL for (int c = 0; c < C; ++c) tile.template store_V<P>(Vt + q * ldv + c * P::lanes, w[q][c]);
  }

  static constexpr auto diagonal = find_rotations<P, sign, uplo, K == 1>;
  static constexpr bool careful_steps = true;
  static void carefully(const T* memory, index_t blocks, index_t row, index_t column, Strip<T>& strip) {
    for (index_t b = 0; b < blocks; ++b)
      Careful<P, sign, uplo>::apply(H{const_cast<T*>(memory) + b * H::words(K), K}, row + b * P::rows, P::rows, column,
                                    strip.columns, strip);
  }
  /// Returns how many blocks from the first on are alike. careful <- whether these blocks hold true rotations.
  static index_t run_of(const T* memory, index_t blocks, bool& careful) {
    careful = H{const_cast<T*>(memory), K}.careful() != 0;
    index_t run = 1;
    while (run < blocks && (H{const_cast<T*>(memory) + run * H::words(K), K}.careful() != 0) == careful) ++run;
    return run;
  }
};
