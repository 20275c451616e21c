// Included by cpu/avx2.cpp alone, between its pragmas.

template <class T>
struct Pack;

template <>
struct Pack<double> {
  using T = double;
  using V = __m256d;
  static constexpr int lanes = 4, rows = 4, vectors_upper = 3, vectors_lower = 3;
  PACK_OPERATIONS(_mm256, pd)

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
struct Pack<float> {
  using T = float;
  using V = __m256;
  static constexpr int lanes = 8, rows = 4, vectors_upper = 2, vectors_lower = 3;
  PACK_OPERATIONS(_mm256, ps)

  /// Each half on its own.
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
