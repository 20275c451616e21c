// Included by cpu/avx512.cpp alone, between its pragmas.

template <class T>
struct Pack;
template <class T>
struct Square;

/// Returns the bits of lanes first .. last - 1.
INLINE unsigned lanes_between(int first, int last) { return (1u << last) - (1u << first); }

/// Wraps vectors of half the width, for tiles that are transposed when they are loaded and stored, on machines where
/// this takes less time with such vectors (takes_halves). find_columns() hides from the compiler how columns follow
/// each other: otherwise the compiler would keep an address for each piece of a column.
struct Half {
  using Narrow = Half;
  using Upper = Half;
  using T = double;
  using V = __m256d;
  static constexpr int lanes = 4, rows = 8, vectors_upper = 2, vectors_lower = 2;
  static constexpr bool shifts = true;
  PACK_OPERATIONS(_mm256, pd)
  static INLINE V load_part(const T* p, int first, int last) {
    return _mm256_maskz_loadu_pd(__mmask8(lanes_between(first, last)), p);
  }
  static INLINE void store_part(T* p, V x, int first, int last) {
    _mm256_mask_storeu_pd(p, __mmask8(lanes_between(first, last)), x);
  }

  template <class N>
  static INLINE void find_columns(N* p, index_t ld, N* (&column)[4]) {
    UNROLL for (int j = 0; j < 4; ++j) {
      column[j] = p + j * ld;
      asm("" : "+r"(column[j]));
    }
  }
  /// Loads rows `first` and `first` + 1 of a tile that is stored by columns: x_i <- row i.
  static INLINE void load_pair(const T* const (&column)[4], int first, V (&x)[8]) {
    V a[2];
    UNROLL for (int j = 0; j < 2; ++j)
      a[j] = _mm256_insertf128_pd(_mm256_castpd128_pd256(_mm_loadu_pd(column[j] + first)),
                                  _mm_loadu_pd(column[j + 2] + first), 1);
    x[first] = _mm256_unpacklo_pd(a[0], a[1]);
    x[first + 1] = _mm256_unpackhi_pd(a[0], a[1]);
  }
  /// Loads rows `first` .. `first` + 3 of a tile that is stored by columns: x_i <- row i.
  static INLINE void load_four(const T* const (&column)[4], int first, V (&x)[8]) {
    V a[4];
    UNROLL for (int j = 0; j < 4; j += 2) {
      const V b = load(column[j] + first), c = load(column[j + 1] + first);
      a[j] = _mm256_unpacklo_pd(b, c);
      a[j + 1] = _mm256_unpackhi_pd(b, c);
    }
    UNROLL for (int i = 0; i < 2; ++i) {
      x[first + i] = _mm256_permute2f128_pd(a[i], a[i + 2], 0x20);
      x[first + i + 2] = _mm256_permute2f128_pd(a[i], a[i + 2], 0x31);
    }
  }
  /// Stores x_i as row i of a tile that is stored by columns, i = `first`, `first` + 1.
  static INLINE void store_pair(T* const (&column)[4], int first, const V (&x)[8]) {
    const V a[2] = {_mm256_unpacklo_pd(x[first], x[first + 1]), _mm256_unpackhi_pd(x[first], x[first + 1])};
    UNROLL for (int j = 0; j < 2; ++j) {
      _mm_storeu_pd(column[j] + first, _mm256_castpd256_pd128(a[j]));
      _mm_storeu_pd(column[j + 2] + first, _mm256_extractf128_pd(a[j], 1));
    }
  }
  /// Stores x_i as row i of a tile that is stored by columns, i = `first` .. `first` + 3.
  static INLINE void store_four(T* const (&column)[4], int first, const V (&x)[8]) {
    const V a[2] = {_mm256_unpacklo_pd(x[first], x[first + 1]), _mm256_unpackhi_pd(x[first], x[first + 1])},
            b[2] = {_mm256_unpacklo_pd(x[first + 2], x[first + 3]), _mm256_unpackhi_pd(x[first + 2], x[first + 3])};
    UNROLL for (int j = 0; j < 2; ++j) {
      store(column[j] + first, _mm256_permute2f128_pd(a[j], b[j], 0x20));
      store(column[j + 2] + first, _mm256_permute2f128_pd(a[j], b[j], 0x31));
    }
  }

  /// Loads a tile of 8 x 4 that is stored by columns, ld apart: x_i <- row i. store_columns() is the inverse.
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[8]) {
    const T* column[4];
    find_columns(p, ld, column);
    load_four(column, 0, x);
    load_four(column, 4, x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[8]) {
    T* column[4];
    find_columns(p, ld, column);
    store_four(column, 0, x);
    store_four(column, 4, x);
  }
  /// Loads a tile of 8 x 4 whose columns begin 16 bytes behind a multiple of 32, by pieces that lie on one cache line
  /// each. store_shifted_columns() is the inverse.
  static INLINE void load_shifted_columns(const T* p, index_t ld, V (&x)[8]) {
    const T* column[4];
    find_columns(p, ld, column);
    load_pair(column, 0, x);
    load_four(column, 2, x);
    load_pair(column, 6, x);
  }
  static INLINE void store_shifted_columns(T* p, index_t ld, V (&x)[8]) {
    T* column[4];
    find_columns(p, ld, column);
    store_pair(column, 0, x);
    store_four(column, 2, x);
    store_pair(column, 6, x);
  }
};

template <>
struct Pack<double> {
  using Narrow = Half;
  using Upper = Half;
  using T = double;
  using V = __m512d;
  static constexpr int lanes = 8, rows = 8, vectors_upper = 2, vectors_lower = 3;
  PACK_OPERATIONS(_mm512, pd)
  static INLINE V load(const float* p) { return _mm512_cvtps_pd(_mm256_loadu_ps(p)); }
  static INLINE void store(float* p, V x) { _mm256_storeu_ps(p, _mm512_cvtpd_ps(x)); }
  static INLINE V load_part(const T* p, int first, int last) {
    return _mm512_maskz_loadu_pd(__mmask8(lanes_between(first, last)), p);
  }
  static INLINE void store_part(T* p, V x, int first, int last) {
    _mm512_mask_storeu_pd(p, __mmask8(lanes_between(first, last)), x);
  }
  /// Returns the bits of lanes of x that are not between the bounds, or are NaN.
  static INLINE unsigned outside(V x, V low, V high) {
    return 0xffu & ~unsigned(_mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ));
  }

  /// Transposes the 4 x 4 blocks within each half of x_0 .. x_3 and of x_4 .. x_7.
  static INLINE void transpose_halves(V (&x)[8]) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13),
                  high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    V a[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
      a[i] = _mm512_unpacklo_pd(x[i], x[i + 1]);
      a[i + 1] = _mm512_unpackhi_pd(x[i], x[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
      UNROLL for (int l = 0; l < 2; ++l) {
        x[i + l] = _mm512_permutex2var_pd(a[i + l], low, a[i + 2 + l]);
        x[i + 2 + l] = _mm512_permutex2var_pd(a[i + l], high, a[i + 2 + l]);
      }
  }
  /// Loads a tile that is stored by columns, ld apart: x_i <- row i. Columns j and j + 4 share a register: loads join
  /// the two halves of a register, and stores split them, without a shuffle.
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[8]) {
    UNROLL for (int half = 0; half < 8; half += 4)
      UNROLL for (int j = 0; j < 4; ++j) {
        const T* from = p + j * ld + half;
        x[half + j] =
            _mm512_insertf64x4(_mm512_castpd256_pd512(_mm256_loadu_pd(from)), _mm256_loadu_pd(from + 4 * ld), 1);
      }
    transpose_halves(x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[8]) {
    transpose_halves(x);
    UNROLL for (int half = 0; half < 8; half += 4)
      UNROLL for (int j = 0; j < 4; ++j) {
        T* to = p + j * ld + half;
        _mm256_storeu_pd(to, _mm512_castpd512_pd256(x[half + j]));
        _mm256_storeu_pd(to + 4 * ld, _mm512_extractf64x4_pd(x[half + j], 1));
      }
  }
};

template <>
struct Square<double> : Pack<double> {
  template <int i>
  static INLINE V lane(V x) { return spread(x, nullptr, i); }
  static INLINE V spread(V x, const T*, index_t i) { return _mm512_permutexvar_pd(_mm512_set1_epi64(i), x); }
  static INLINE void store_first(T* p, V x, index_t count) {
    store(p, _mm512_maskz_mov_pd(__mmask8(lanes_between(0, int(count))), x));
  }
  static INLINE T entry(V x, index_t i) { return _mm512_cvtsd_f64(spread(x, nullptr, i)); }
  template <int i>
  static INLINE V mul_from(V a, V b) { return _mm512_maskz_mul_pd(__mmask8(lanes_between(i, 8)), a, b); }
  template <int i>
  static INLINE V fma_from(V a, V b, V c) { return _mm512_mask3_fmadd_pd(a, b, c, __mmask8(lanes_between(i, 8))); }
  template <int by>
  static INLINE V shifted(V x, V from) {
    return _mm512_castsi512_pd(_mm512_alignr_epi64(_mm512_castpd_si512(x), _mm512_castpd_si512(from), 8 - by));
  }
  static INLINE T last(V x) { return _mm512_cvtsd_f64(lane<7>(x)); }
  static INLINE bool within(V x, V low, V high) {
    return _mm512_mask_cmp_pd_mask(_mm512_cmp_pd_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ) == 0xff;
  }
  /// Returns the diagonal R_00, R_11, ..., with ones in place of all entries but the first m.
  static INLINE V diagonal(const T* R, index_t ld) {
    const index_t d = ld + 1;
    return _mm512_setr_pd(R[0], R[d], R[2 * d], R[3 * d], R[4 * d], R[5 * d], R[6 * d], R[7 * d]);
  }
  static INLINE V diagonal(const T* R, index_t ld, index_t m) {
    const auto at = [&](index_t i) INLINE_LAMBDA { return i < m ? R[i * (ld + 1)] : T(1); };
    return _mm512_setr_pd(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
  }
  static INLINE void load_block(const T* tile, V (&x)[8]) { load_columns(tile, 8, x); }
  static INLINE void store_block(T* tile, V (&x)[8]) { store_columns(tile, 8, x); }
};

template <>
struct Pack<float> {
  using Narrow = Square<float>;
  using Upper = Pack;
  using T = float;
  using V = __m512;
  static constexpr int lanes = 16, rows = 8, vectors_upper = 1, vectors_lower = 3;
  PACK_OPERATIONS(_mm512, ps)
  static INLINE V load_part(const T* p, int first, int last) {
    return _mm512_maskz_loadu_ps(__mmask16(lanes_between(first, last)), p);
  }
  static INLINE void store_part(T* p, V x, int first, int last) {
    _mm512_mask_storeu_ps(p, __mmask16(lanes_between(first, last)), x);
  }
  static INLINE unsigned outside(V x, V low, V high) {
    return 0xffffu & ~unsigned(_mm512_mask_cmp_ps_mask(_mm512_cmp_ps_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ));
  }

  /// Transposes the 4 x 4 blocks within each quarter of x_0 .. x_3 and of x_4 .. x_7.
  static INLINE void transpose_quarters(V (&x)[8]) {
    V a[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
      a[i] = _mm512_unpacklo_ps(x[i], x[i + 1]);
      a[i + 1] = _mm512_unpackhi_ps(x[i], x[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
      UNROLL for (int l = 0; l < 2; ++l) {
        const __m512d p = _mm512_castps_pd(a[i + l]), q = _mm512_castps_pd(a[i + 2 + l]);
        x[i + 2 * l] = _mm512_castpd_ps(_mm512_unpacklo_pd(p, q));
        x[i + 2 * l + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(p, q));
      }
  }
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[8]) {
    UNROLL for (int j = 0; j < 8; ++j) {  // columns j and j + 4 of the first or the second eight
      const T* from = p + (j < 4 ? j : j + 4) * ld;
      x[j] = _mm512_insertf32x8(_mm512_castps256_ps512(_mm256_loadu_ps(from)), _mm256_loadu_ps(from + 4 * ld), 1);
    }
    transpose_quarters(x);
    UNROLL for (int i = 0; i < 4; ++i) {
      const V a = x[i], b = x[i + 4];
      x[i] = _mm512_shuffle_f32x4(a, b, 0x88);
      x[i + 4] = _mm512_shuffle_f32x4(a, b, 0xdd);
    }
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[8]) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11),
                  high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
    UNROLL for (int i = 0; i < 4; ++i) {
      const __m512d a = _mm512_castps_pd(x[i]), b = _mm512_castps_pd(x[i + 4]);
      x[i] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, low, b));
      x[i + 4] = _mm512_castpd_ps(_mm512_permutex2var_pd(a, high, b));
    }
    transpose_quarters(x);
    UNROLL for (int j = 0; j < 8; ++j) {
      T* to = p + (j < 4 ? j : j + 4) * ld;
      _mm256_storeu_ps(to, _mm512_castps512_ps256(x[j]));
      _mm256_storeu_ps(to + 4 * ld, _mm512_extractf32x8_ps(x[j], 1));
    }
  }
};

template <>
struct Square<float> {
  using Narrow = Square;
  using Upper = Square;
  using T = float;
  using V = __m256;
  static constexpr int lanes = 8, rows = 8, vectors_upper = 1, vectors_lower = 1;
  PACK_OPERATIONS(_mm256, ps)
  static INLINE V load_part(const T* p, int first, int last) {
    return _mm256_maskz_loadu_ps(__mmask8(lanes_between(first, last)), p);
  }
  static INLINE void store_part(T* p, V x, int first, int last) {
    _mm256_mask_storeu_ps(p, __mmask8(lanes_between(first, last)), x);
  }
  template <int i>
  static INLINE V lane(V x) { return spread(x, nullptr, i); }
  static INLINE V spread(V x, const T*, index_t i) { return _mm256_permutevar8x32_ps(x, _mm256_set1_epi32(int(i))); }
  static INLINE void store_first(T* p, V x, index_t count) {
    store(p, _mm256_maskz_mov_ps(__mmask8(lanes_between(0, int(count))), x));
  }
  static INLINE T entry(V x, index_t i) { return _mm256_cvtss_f32(spread(x, nullptr, i)); }
  template <int i>
  static INLINE V mul_from(V a, V b) { return _mm256_maskz_mul_ps(__mmask8(lanes_between(i, 8)), a, b); }
  template <int i>
  static INLINE V fma_from(V a, V b, V c) { return _mm256_mask3_fmadd_ps(a, b, c, __mmask8(lanes_between(i, 8))); }
  template <int by>
  static INLINE V shifted(V x, V from) {
    return _mm256_castsi256_ps(_mm256_alignr_epi32(_mm256_castps_si256(x), _mm256_castps_si256(from), 8 - by));
  }
  static INLINE T last(V x) { return _mm256_cvtss_f32(lane<7>(x)); }
  static INLINE bool within(V x, V low, V high) {
    return _mm256_mask_cmp_ps_mask(_mm256_cmp_ps_mask(x, low, _CMP_GE_OQ), x, high, _CMP_LE_OQ) == 0xff;
  }
  /// Returns the diagonal R_00, R_11, ..., with ones in place of all entries but the first m.
  static INLINE V diagonal(const T* R, index_t ld) {
    const index_t d = ld + 1;
    return _mm256_setr_ps(R[0], R[d], R[2 * d], R[3 * d], R[4 * d], R[5 * d], R[6 * d], R[7 * d]);
  }
  static INLINE V diagonal(const T* R, index_t ld, index_t m) {
    const auto at = [&](index_t i) INLINE_LAMBDA { return i < m ? R[i * (ld + 1)] : T(1); };
    return _mm256_setr_ps(at(0), at(1), at(2), at(3), at(4), at(5), at(6), at(7));
  }
  /// Transposes the 4 x 4 blocks within each half of x_0 .. x_3 and of x_4 .. x_7.
  static INLINE void transpose_halves(V (&x)[8]) {
    UNROLL for (int i = 0; i < 8; i += 4) {
      const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(x[i], x[i + 1])),
                    b = _mm256_castps_pd(_mm256_unpackhi_ps(x[i], x[i + 1])),
                    c = _mm256_castps_pd(_mm256_unpacklo_ps(x[i + 2], x[i + 3])),
                    d = _mm256_castps_pd(_mm256_unpackhi_ps(x[i + 2], x[i + 3]));
      x[i] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
      x[i + 1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
      x[i + 2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
      x[i + 3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
    }
  }
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[8]) {
    UNROLL for (int half = 0; half < 8; half += 4)
      UNROLL for (int j = 0; j < 4; ++j) {
        const T* from = p + j * ld + half;
        x[half + j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)), _mm_loadu_ps(from + 4 * ld), 1);
      }
    transpose_halves(x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[8]) {
    transpose_halves(x);
    UNROLL for (int half = 0; half < 8; half += 4)
      UNROLL for (int j = 0; j < 4; ++j) {
        T* to = p + j * ld + half;
        _mm_storeu_ps(to, _mm256_castps256_ps128(x[half + j]));
        _mm_storeu_ps(to + 4 * ld, _mm256_extractf128_ps(x[half + j], 1));
      }
  }
  static INLINE void load_block(const T* tile, V (&x)[8]) { load_columns(tile, 8, x); }
  static INLINE void store_block(T* tile, V (&x)[8]) { store_columns(tile, 8, x); }
};

template <class T>
using Row = Square<T>;
