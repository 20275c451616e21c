// Included by cpu/plain.cpp alone.

/// The vectors that Eigen knows on the machine the package is built for, by the compiler's default instructions: two
/// doubles or four floats on x86-64, Arm and POWER; on others a vector is one number.
template <class Scalar>
struct Pack {
  using T = Scalar;
  using V = typename EigenVector<T>::type;
  static constexpr int lanes = EigenVector<T>::size, rows = 4, vectors_upper = 2, vectors_lower = 2;

  static INLINE V zero() { return set1(0); }
  static INLINE V set1(T x) { return Eigen::internal::pset1<V>(x); }
  static INLINE V load(const T* p) { return Eigen::internal::ploadu<V>(p); }
  static INLINE void store(T* p, V x) { Eigen::internal::pstoreu(p, x); }
  static INLINE V add(V a, V b) { return Eigen::internal::padd(a, b); }
  static INLINE V sub(V a, V b) { return Eigen::internal::psub(a, b); }
  static INLINE V mul(V a, V b) { return Eigen::internal::pmul(a, b); }
  static INLINE V fma(V a, V b, V c) { return Eigen::internal::pmadd(a, b, c); }
  static INLINE V fnma(V a, V b, V c) { return sub(c, mul(a, b)); }
  static INLINE V fms(V a, V b, V c) { return sub(mul(a, b), c); }

  /// By tiles of lanes x lanes.
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
