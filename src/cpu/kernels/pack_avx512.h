// Included by cpu/avx512.cpp alone, between its pragmas.

template <class T>
struct Pack;

template <>
struct Pack<double> {
  using T = double;
  using V = __m512d;
  static constexpr int lanes = 8, rows = 8, vectors_upper = 2, vectors_lower = 3;
  PACK_OPERATIONS(_mm512, pd)

  static INLINE void transpose(V (&x)[8]) {
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 4, 5, 12, 13), high = _mm512_setr_epi64(2, 3, 10, 11, 6, 7, 14, 15);
    V a[8], b[8];
    UNROLL for (int i = 0; i < 8; i += 2) {
      a[i] = _mm512_unpacklo_pd(x[i], x[i + 1]);
      a[i + 1] = _mm512_unpackhi_pd(x[i], x[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
      UNROLL for (int l = 0; l < 2; ++l) {
        b[i + l] = _mm512_permutex2var_pd(a[i + l], low, a[i + 2 + l]);
        b[i + 2 + l] = _mm512_permutex2var_pd(a[i + l], high, a[i + 2 + l]);
      }
    UNROLL for (int i = 0; i < 4; ++i) {
      x[i] = _mm512_shuffle_f64x2(b[i], b[i + 4], 0x44);
      x[i + 4] = _mm512_shuffle_f64x2(b[i], b[i + 4], 0xee);
    }
  }
  /// x_i <- row i of a tile that is stored by columns, ld apart.
  static INLINE void load_columns(const T* p, index_t ld, V (&x)[8]) {
    UNROLL for (int j = 0; j < 8; ++j) x[j] = load(p + j * ld);
    transpose(x);
  }
  static INLINE void store_columns(T* p, index_t ld, V (&x)[8]) {
    transpose(x);
    UNROLL for (int j = 0; j < 8; ++j) store(p + j * ld, x[j]);
  }
};

template <>
struct Pack<float> {
  using T = float;
  using V = __m512;
  static constexpr int lanes = 16, rows = 8, vectors_upper = 1, vectors_lower = 3;
  PACK_OPERATIONS(_mm512, ps)

  /// 4 x 4 blocks within each quarter: x_0 .. x_3 and x_4 .. x_7.
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
    const __m512i low = _mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11), high = _mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15);
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
