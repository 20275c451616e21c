// Included by cpu/avx2.cpp alone, between its pragmas.

template <class T>
struct Pack;
template <class T>
struct Square;

template <>
struct Pack<double> {
  using Narrow = Pack;
  using Upper = Pack;
  using T = double;
  using V = __m256d;
  static constexpr int lanes = 4, rows = 4, vectors_upper = 3, vectors_lower = 3;
  PACK_OPERATIONS(_mm256, pd)
  static INLINE V load(const float* p) { return _mm256_cvtps_pd(_mm_loadu_ps(p)); }
  static INLINE void store(float* p, V x) { _mm_storeu_ps(p, _mm256_cvtpd_ps(x)); }
  static INLINE __m256i between(int first, int last) {
    const __m256i lane = _mm256_setr_epi64x(0, 1, 2, 3);
    return _mm256_andnot_si256(_mm256_cmpgt_epi64(_mm256_set1_epi64x(first), lane),
                               _mm256_cmpgt_epi64(_mm256_set1_epi64x(last), lane));
  }
  static INLINE V load_part(const T* p, int first, int last) { return _mm256_maskload_pd(p, between(first, last)); }
  static INLINE void store_part(T* p, V x, int first, int last) { _mm256_maskstore_pd(p, between(first, last), x); }
  static INLINE unsigned outside(V x, V low, V high) {
    return 0xfu & ~unsigned(_mm256_movemask_pd(
                      _mm256_and_pd(_mm256_cmp_pd(x, low, _CMP_GE_OQ), _mm256_cmp_pd(x, high, _CMP_LE_OQ))));
  }

  static INLINE void transpose(V (&x)[4]) {
    const V a = _mm256_unpacklo_pd(x[0], x[1]), b = _mm256_unpackhi_pd(x[0], x[1]), c = _mm256_unpacklo_pd(x[2], x[3]),
            d = _mm256_unpackhi_pd(x[2], x[3]);
    x[0] = _mm256_permute2f128_pd(a, c, 0x20);
    x[1] = _mm256_permute2f128_pd(b, d, 0x20);
    x[2] = _mm256_permute2f128_pd(a, c, 0x31);
    x[3] = _mm256_permute2f128_pd(b, d, 0x31);
  }
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[4]) {
    UNROLL for (int j = 0; j < 4; ++j) x[j] = load(p + j * ld);
    transpose(x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[4]) {
    transpose(x);
    UNROLL for (int j = 0; j < 4; ++j) store(p + j * ld, x[j]);
  }
};

template <>
struct Square<double> : Pack<double> {
  template <int i>
  static INLINE V lane(V x) { return _mm256_permute4x64_pd(x, i * 0x55); }
  static INLINE V spread(V x, const T*, index_t i) {
    const __m256i halves = _mm256_add_epi32(_mm256_set1_epi32(int(2 * i)), _mm256_setr_epi32(0, 1, 0, 1, 0, 1, 0, 1));
    return _mm256_castps_pd(_mm256_permutevar8x32_ps(_mm256_castpd_ps(x), halves));
  }
  static INLINE void store_first(T* p, V x, index_t count) {
    store(p, _mm256_and_pd(x, _mm256_castsi256_pd(between(0, int(count)))));
  }
  static INLINE T entry(V x, index_t i) { return _mm256_cvtsd_f64(spread(x, nullptr, i)); }
  template <int i>
  static INLINE V mul_from(V a, V b) { return _mm256_blend_pd(zero(), mul(a, b), 0xf & -(1 << i)); }
  template <int i>
  static INLINE V fma_from(V a, V b, V c) { return _mm256_blend_pd(c, fma(a, b, c), 0xf & -(1 << i)); }
  template <int by>
  static INLINE V shifted(V x, V from) {
    return by == 1 ? _mm256_blend_pd(_mm256_permute4x64_pd(x, _MM_SHUFFLE(2, 1, 0, 0)), from, 1)
                   : _mm256_permute2f128_pd(from, x, 0x20);
  }
  static INLINE T last(V x) { return _mm256_cvtsd_f64(lane<3>(x)); }
  static INLINE bool within(V x, V low, V high) {
    return _mm256_movemask_pd(_mm256_and_pd(_mm256_cmp_pd(x, low, _CMP_GE_OQ), _mm256_cmp_pd(x, high, _CMP_LE_OQ))) ==
           0xf;
  }
  /// Returns the diagonal R_00, R_11, ..., with ones in place of all entries but the first m.
  static INLINE V diagonal(const T* R, index_t ld) {
    const index_t d = ld + 1;
    return _mm256_setr_pd(R[0], R[d], R[2 * d], R[3 * d]);
  }
  static INLINE V diagonal(const T* R, index_t ld, index_t m) {
    const auto at = [&](index_t i) INLINE_LAMBDA { return i < m ? R[i * (ld + 1)] : T(1); };
    return _mm256_setr_pd(at(0), at(1), at(2), at(3));
  }
  static INLINE void load_block(const T* tile, V (&x)[4]) { load_columns(tile, 4, x); }
  static INLINE void store_block(T* tile, V (&x)[4]) { store_columns(tile, 4, x); }
};

template <>
struct Pack<float> {
  using Narrow = Pack;
  using Upper = Pack;
  using T = float;
  using V = __m256;
  static constexpr int lanes = 8, rows = 4, vectors_upper = 2, vectors_lower = 3;
  PACK_OPERATIONS(_mm256, ps)
  static INLINE __m256i between(int first, int last) {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(first), lane),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(last), lane));
  }
  static INLINE V load_part(const T* p, int first, int last) { return _mm256_maskload_ps(p, between(first, last)); }
  static INLINE void store_part(T* p, V x, int first, int last) { _mm256_maskstore_ps(p, between(first, last), x); }
  static INLINE unsigned outside(V x, V low, V high) {
    return 0xffu & ~unsigned(_mm256_movemask_ps(
                       _mm256_and_ps(_mm256_cmp_ps(x, low, _CMP_GE_OQ), _mm256_cmp_ps(x, high, _CMP_LE_OQ))));
  }

  /// Transposes the 4 x 4 block in each half.
  static INLINE void transpose(V (&x)[4]) {
    const __m256d a = _mm256_castps_pd(_mm256_unpacklo_ps(x[0], x[1])),
                  b = _mm256_castps_pd(_mm256_unpackhi_ps(x[0], x[1])),
                  c = _mm256_castps_pd(_mm256_unpacklo_ps(x[2], x[3])),
                  d = _mm256_castps_pd(_mm256_unpackhi_ps(x[2], x[3]));
    x[0] = _mm256_castpd_ps(_mm256_unpacklo_pd(a, c));
    x[1] = _mm256_castpd_ps(_mm256_unpackhi_pd(a, c));
    x[2] = _mm256_castpd_ps(_mm256_unpacklo_pd(b, d));
    x[3] = _mm256_castpd_ps(_mm256_unpackhi_pd(b, d));
  }
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[4]) {
    UNROLL for (int j = 0; j < 4; ++j)
      x[j] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(p + j * ld)), _mm_loadu_ps(p + (j + 4) * ld), 1);
    transpose(x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[4]) {
    transpose(x);
    UNROLL for (int j = 0; j < 4; ++j) {
      _mm_storeu_ps(p + j * ld, _mm256_castps256_ps128(x[j]));
      _mm_storeu_ps(p + (j + 4) * ld, _mm256_extractf128_ps(x[j], 1));
    }
  }
};

template <>
struct Square<float> {
  using T = float;
  using V = __m128;
  PACK_OPERATIONS(_mm, ps)
  static INLINE __m128i between(int first, int last) {
    return _mm256_castsi256_si128(Pack<float>::between(first, last));
  }
  static INLINE V load_part(const T* p, int first, int last) { return _mm_maskload_ps(p, between(first, last)); }
  static INLINE void store_part(T* p, V x, int first, int last) { _mm_maskstore_ps(p, between(first, last), x); }
  template <int i>
  static INLINE V lane(V x) { return _mm_permute_ps(x, i * 0x55); }
  static INLINE V spread(V x, const T*, index_t i) { return _mm_permutevar_ps(x, _mm_set1_epi32(int(i))); }
  static INLINE void store_first(T* p, V x, index_t count) {
    store(p, _mm_and_ps(x, _mm_castsi128_ps(between(0, int(count)))));
  }
  static INLINE T entry(V x, index_t i) { return _mm_cvtss_f32(spread(x, nullptr, i)); }
  template <int i>
  static INLINE V mul_from(V a, V b) { return _mm_blend_ps(zero(), mul(a, b), 0xf & -(1 << i)); }
  template <int i>
  static INLINE V fma_from(V a, V b, V c) { return _mm_blend_ps(c, fma(a, b, c), 0xf & -(1 << i)); }
  template <int by>
  static INLINE V shifted(V x, V from) {
    return _mm_castsi128_ps(_mm_alignr_epi8(_mm_castps_si128(x), _mm_castps_si128(from), 16 - 4 * by));
  }
  static INLINE T last(V x) { return _mm_cvtss_f32(lane<3>(x)); }
  static INLINE bool within(V x, V low, V high) {
    return _mm_movemask_ps(_mm_and_ps(_mm_cmpge_ps(x, low), _mm_cmple_ps(x, high))) == 0xf;
  }
  /// Returns the diagonal R_00, R_11, ..., with ones in place of all entries but the first m.
  static INLINE V diagonal(const T* R, index_t ld) {
    const index_t d = ld + 1;
    return _mm_setr_ps(R[0], R[d], R[2 * d], R[3 * d]);
  }
  static INLINE V diagonal(const T* R, index_t ld, index_t m) {
    const auto at = [&](index_t i) INLINE_LAMBDA { return i < m ? R[i * (ld + 1)] : T(1); };
    return _mm_setr_ps(at(0), at(1), at(2), at(3));
  }
  static INLINE void load_block(const T* tile, V (&x)[4]) {
    Pack<float>::V y[4];
    Pack<float>::load_columns(tile, 4, y);
    UNROLL for (int i = 0; i < 4; ++i) x[i] = _mm256_castps256_ps128(y[i]);
  }
  static INLINE void store_block(T* tile, V (&x)[4]) {
    Pack<float>::V y[4];
    UNROLL for (int i = 0; i < 4; ++i) y[i] = _mm256_castps128_ps256(x[i]);
    Pack<float>::store_columns(tile, 4, y);
  }
};

template <class T>
using Row = Square<T>;
