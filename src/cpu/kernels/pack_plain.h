// Included by cpu/plain.cpp alone.

/// Wraps the vectors that Eigen has on the machine the package is built for, with the compiler's default instructions:
/// two doubles or four floats on x86-64, Arm and POWER; on other machines a vector is one number.
template <class Scalar>
struct Pack {
  using Narrow = Pack;
  using Upper = Pack;
  using T = Scalar;
  using V = typename EigenVector<T>::type;
  static constexpr int lanes = EigenVector<T>::size, rows = 4, vectors_upper = 2, vectors_lower = 2;

  static INLINE V zero() { return set1(0); }
  static INLINE V set1(T x) { return Eigen::internal::pset1<V>(x); }
  static INLINE V load(const T* p) { return Eigen::internal::ploadu<V>(p); }
  static INLINE void store(T* p, V x) { Eigen::internal::pstoreu(p, x); }
  /// Loads numbers of another type, converted to T.
  template <class S>
  static INLINE V load(const S* p) {
    T x[lanes];
    UNROLL for (int i = 0; i < lanes; ++i) x[i] = T(p[i]);
    return load(x);
  }
  /// Stores numbers converted to another type.
  template <class S>
  static INLINE void store(S* p, V x) {
    T y[lanes];
    store(y, x);
    UNROLL for (int i = 0; i < lanes; ++i) p[i] = S(y[i]);
  }
  static INLINE V kept(V x) { return x; }
  static INLINE V add(V a, V b) { return Eigen::internal::padd(a, b); }
  static INLINE V sub(V a, V b) { return Eigen::internal::psub(a, b); }
  static INLINE V mul(V a, V b) { return Eigen::internal::pmul(a, b); }
  static INLINE V div(V a, V b) { return Eigen::internal::pdiv(a, b); }
  /// Computes one root after the other: Eigen's root of a vector of floats is not correctly rounded.
  static NOINLINE V sqrt(V a) {
    T x[lanes];
    store(x, a);
    UNROLL for (int i = 0; i < lanes; ++i) x[i] = std::sqrt(x[i]);
    return load(x);
  }
  static INLINE V fma(V a, V b, V c) { return Eigen::internal::pmadd(a, b, c); }
  static INLINE V fnma(V a, V b, V c) { return sub(c, mul(a, b)); }
  static INLINE V fms(V a, V b, V c) { return sub(mul(a, b), c); }

  static INLINE V load_part(const T* p, int first, int last) {
    T x[lanes] = {};
    for (int i = first; i < last; ++i) x[i] = p[i];
    return load(x);
  }
  static INLINE void store_part(T* p, V x, int first, int last) {
    T y[lanes];
    store(y, x);
    for (int i = first; i < last; ++i) p[i] = y[i];
  }

  static NOINLINE unsigned outside(V x, V low, V high) {
    T values[lanes], least[lanes], most[lanes];
    store(values, x);
    store(least, low);
    store(most, high);
    unsigned bits = 0;
    for (int i = 0; i < lanes; ++i) bits |= unsigned(!(values[i] >= least[i] && values[i] <= most[i])) << i;
    return bits;
  }

  /// Loads a tile that is stored by columns, ld apart, and transposes it by blocks of lanes x lanes: x_i <- row i.
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[rows]) {
    if constexpr (lanes == 1) {
      UNROLL for (int i = 0; i < rows; ++i) x[i] = load(p + i);
    } else {
      UNROLL for (int i = 0; i < rows; i += lanes) {
        typename EigenVector<T>::Square tile;
        UNROLL for (int j = 0; j < lanes; ++j) tile.packet[j] = load(p + i + j * ld);
        Eigen::internal::ptranspose(tile);
        UNROLL for (int j = 0; j < lanes; ++j) x[i + j] = tile.packet[j];
      }
    }
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[rows]) {
    if constexpr (lanes == 1) {
      UNROLL for (int i = 0; i < rows; ++i) store(p + i, x[i]);
    } else {
      UNROLL for (int i = 0; i < rows; i += lanes) {
        typename EigenVector<T>::Square tile;
        UNROLL for (int j = 0; j < lanes; ++j) tile.packet[j] = x[i + j];
        Eigen::internal::ptranspose(tile);
        UNROLL for (int j = 0; j < lanes; ++j) store(p + i + j * ld, tile.packet[j]);
      }
    }
  }
};

/// Holds as many numbers as a row block has rows, in vectors of Pack.
template <class Scalar>
struct Row {
  using T = Scalar;
  using P = Pack<T>;
  static constexpr int rows = P::rows, vectors = rows / P::lanes;
  struct V {
    typename P::V x[vectors];
  };
  template <class F>
  static INLINE V of(F&& f) {
    V y;
    UNROLL for (int c = 0; c < vectors; ++c) y.x[c] = f(c);
    return y;
  }
  static INLINE V set1(T a) { return of([&](int) INLINE_LAMBDA { return P::set1(a); }); }
  static INLINE V zero() { return set1(0); }
  static INLINE V load(const T* p) { return of([&](int c) INLINE_LAMBDA { return P::load(p + c * P::lanes); }); }
  static INLINE void store(T* p, V a) { UNROLL for (int c = 0; c < vectors; ++c) P::store(p + c * P::lanes, a.x[c]); }
  static INLINE V add(V a, V b) { return of([&](int c) INLINE_LAMBDA { return P::add(a.x[c], b.x[c]); }); }
  static INLINE V sub(V a, V b) { return of([&](int c) INLINE_LAMBDA { return P::sub(a.x[c], b.x[c]); }); }
  static INLINE V mul(V a, V b) { return of([&](int c) INLINE_LAMBDA { return P::mul(a.x[c], b.x[c]); }); }
  static INLINE V fma(V a, V b, V c) { return add(mul(a, b), c); }
  static INLINE V fnma(V a, V b, V c) { return sub(c, mul(a, b)); }
  static INLINE V fms(V a, V b, V c) { return sub(mul(a, b), c); }
  /// Stores the first `count` numbers of a, and zeros behind them.
  static INLINE void store_first(T* p, V a, index_t count) {
    T x[rows];
    store(x, a);
    UNROLL for (int i = 0; i < rows; ++i) p[i] = i < count ? x[i] : T(0);
  }
  /// Returns a row all of whose entries are entry i of the row that is stored at p.
  static INLINE V spread(V, const T* p, index_t i) { return set1(p[i]); }
  static INLINE T entry(V a, index_t i) {
    T x[rows];
    store(x, a);
    return x[i];
  }
};

/// Holds as many numbers as a row block has rows, one by one.
template <class Scalar>
struct Square {
  static constexpr int rows = Pack<Scalar>::rows;
  using T = Scalar;
  struct V {
    T x[rows];
  };
  template <class F>
  static INLINE V of(F&& f) {
    V y;
    UNROLL for (int i = 0; i < rows; ++i) y.x[i] = f(i);
    return y;
  }
  static INLINE V zero() { return set1(0); }
  static INLINE V set1(T a) { return of([&](int) { return a; }); }
  static INLINE V load(const T* p) { return of([&](int i) { return p[i]; }); }
  static INLINE void store(T* p, V a) { UNROLL for (int i = 0; i < rows; ++i) p[i] = a.x[i]; }
  static INLINE V add(V a, V b) { return of([&](int i) { return a.x[i] + b.x[i]; }); }
  static INLINE V sub(V a, V b) { return of([&](int i) { return a.x[i] - b.x[i]; }); }
  static INLINE V mul(V a, V b) { return of([&](int i) { return a.x[i] * b.x[i]; }); }
  static INLINE V div(V a, V b) { return of([&](int i) { return a.x[i] / b.x[i]; }); }
  static INLINE V sqrt(V a) { return of([&](int i) { return std::sqrt(a.x[i]); }); }
  static INLINE V fma(V a, V b, V c) { return of([&](int i) { return a.x[i] * b.x[i] + c.x[i]; }); }
  static INLINE V fnma(V a, V b, V c) { return of([&](int i) { return c.x[i] - a.x[i] * b.x[i]; }); }
  static INLINE V load_part(const T* p, int first, int last) {
    return of([&](int i) { return i >= first && i < last ? p[i] : T(0); });
  }
  static INLINE void store_part(T* p, V a, int first, int last) {
    for (int i = first; i < last; ++i) p[i] = a.x[i];
  }
  template <int at>
  static INLINE V lane(V a) { return set1(a.x[at]); }
  template <int at>
  static INLINE V mul_from(V a, V b) { return of([&](int i) { return i >= at ? a.x[i] * b.x[i] : T(0); }); }
  template <int at> static INLINE V fma_from(V a, V b, V c) {
    return of([&](int i) { return i >= at ? a.x[i] * b.x[i] + c.x[i] : c.x[i]; });
  }
  template <int by> static INLINE V shifted(V a, V from) {
    return of([&](int i) { return i >= by ? a.x[i - by] : from.x[i + rows - by]; });
  }
  static INLINE T last(V a) { return a.x[rows - 1]; }
  static INLINE bool within(V a, V low, V high) {
    bool all = true;
    UNROLL for (int i = 0; i < rows; ++i) all = all && a.x[i] >= low.x[i] && a.x[i] <= high.x[i];
    return all;
  }
  static INLINE V diagonal(const T* R, index_t ld, index_t m = rows) {
    return of([&](int i) { return i < m ? R[i * (ld + 1)] : T(1); });
  }
  static INLINE void load_block(const T* tile, V (&x)[rows]) {
    UNROLL for (int i = 0; i < rows; ++i) x[i] = of([&](int j) { return tile[i + j * rows]; });
  }
  static INLINE void store_block(T* tile, V (&x)[rows]) {
    UNROLL for (int i = 0; i < rows; ++i)
      UNROLL for (int j = 0; j < rows; ++j) tile[i + j * rows] = x[i].x[j];
  }
};
