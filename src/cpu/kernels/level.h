// Included once for each set of instructions, in a namespace of its own.

/// Householder steps: any k.
template <class P, Sign sign, Uplo uplo>
struct Reflecting {
  static constexpr int vectors = uplo == Uplo::upper ? P::vectors_upper : P::vectors_lower;
  using T = typename P::T;
  static index_t transform_words(index_t k) { return Reflector<P, sign>::words(k); }

  template <int C>
  static INLINE void down(const T* H, index_t blocks, const T* R, index_t ldr, T* out, index_t ldo, T* Vt, index_t ldv,
                          index_t k, typename P::V& squares) {
    for (index_t b = 0; b < blocks; ++b) {
      const Reflector<P, sign> block{const_cast<T*>(H) + b * transform_words(k), k};
      const index_t row = b * P::rows;
      reflect_tile<P, sign, uplo, C>(block, R + at<uplo>(row, 0, ldr), ldr, out + at<uplo>(row, 0, ldo), ldo, Vt, ldv, k,
                                     squares);
    }
  }

  static index_t find(T* memory, const Block<P>& block, index_t m, index_t k) {
    const Reflector<P, sign> H{memory, k};
    for (index_t i = 0; i < m; ++i)
      if (!reflect_row<sign>(block, i, k, H)) return i;
    couple_rows<sign>(H, m, k);
    return -1;
  }
};

/// Rotations, V in registers: K columns, K small.
template <class P, Sign sign, Uplo uplo, int K>
struct Rotating {
  static constexpr int vectors = uplo == Uplo::upper ? 1 : P::vectors_lower;
  using T = typename P::T;
  using V = typename P::V;
  static index_t transform_words(index_t) { return Rotations<P, K>::words; }

  template <int C>
  static INLINE void down(const T* H, index_t blocks, const T* R, index_t ldr, T* out, index_t ldo, T* Vt, index_t ldv,
                          index_t, V& squares) {
    V v[K][C];
    UNROLL for (int q = 0; q < K; ++q)
      UNROLL for (int c = 0; c < C; ++c) v[q][c] = P::load(Vt + q * ldv + c * P::lanes);
    for (index_t b = 0; b < blocks; ++b) {
      if constexpr (uplo == Uplo::lower) prefetch_rows<P, C>(R, ldr);
      UNROLL for (int c = 0; c < C; ++c) {
        V r[P::rows];
        load_tile<P, uplo>(R + at<uplo>(0, c * P::lanes, ldr), ldr, r);
        UNROLL for (int i = 0; i < P::rows; ++i) {
          squares = P::fma(r[i], r[i], squares);
          UNROLL for (int q = 0; q < K; ++q) rotate<sign, P>(H + 4 * (i * K + q), r[i], v[q][c]);
        }
        store_tile<P, uplo>(out + at<uplo>(0, c * P::lanes, ldo), ldo, r);
      }
      H += Rotations<P, K>::words;
      R += at<uplo>(P::rows, 0, ldr);
      out += at<uplo>(P::rows, 0, ldo);
    }
    UNROLL for (int q = 0; q < K; ++q)
      UNROLL for (int c = 0; c < C; ++c) P::store(Vt + q * ldv + c * P::lanes, v[q][c]);
  }

  static index_t find(T* memory, const Block<P>& block, index_t m, index_t) {
    using B = Block<P>;
    for (index_t i = 0; i < m; ++i)
      for (int q = 0; q < K; ++q) {
        T *const row = block.R + i * B::DW, *const v = block.Vt + q * B::DW, *const g = memory + 4 * (i * K + q);
        T r = row[i];
        if (!find_rotation<sign>(r, v[i], g)) return i;
        UNROLL for (int c = 0; c < B::vectors; ++c) {
          V x = P::load(row + c * P::lanes), y = P::load(v + c * P::lanes);
          rotate<sign, P>(g, x, y);
          P::store(row + c * P::lanes, x);
          P::store(v + c * P::lanes, y);
        }
        row[i] = r;
      }
    for (index_t g = 4 * m * K; g < Rotations<P, K>::words; g += 4) memory[g] = memory[g + 2] = 1;  // what lies behind the last row stays
    return -1;
  }
};

template <class P>
typename P::T sum_of(typename P::V x) {
  typename P::T lanes[P::lanes], sum = 0;
  P::store(lanes, x);
  for (int i = 0; i < P::lanes; ++i) sum += lanes[i];
  return sum;
}

/// Less than a vector of columns: through a tile of its own.
template <class P, Uplo uplo, class Steps>
void down_edge(const typename P::T* H, index_t blocks, index_t row, index_t column, index_t columns, index_t k,
               Strip<typename P::T>& strip, typename P::V& squares) {
  using T = typename P::T;
  constexpr index_t ld = uplo == Uplo::upper ? P::rows : P::lanes;
  T tile[P::rows * P::lanes] = {};
  for (index_t b = 0; b < blocks; ++b, row += P::rows, H += Steps::transform_words(k)) {
    const T* R = strip.R + at<uplo>(row, column, strip.ldr);
    T* out = strip.out + at<uplo>(row, column, strip.ldo);
    for (index_t j = 0; j < columns; ++j)
      for (int i = 0; i < P::rows; ++i) tile[at<uplo>(i, j, ld)] = R[at<uplo>(i, j, strip.ldr)];
    Steps::template down<1>(H, 1, tile, ld, tile, ld, strip.Vt + column, strip.ldv, k, squares);
    for (index_t j = 0; j < columns; ++j)
      for (int i = 0; i < P::rows; ++i) out[at<uplo>(i, j, strip.ldo)] = tile[at<uplo>(i, j, ld)];
  }
}

/// Columns column, column + 1, ... of the strip, from `row` on, by as many vectors at a time as pay: each all the way
/// down where columns lie in memory (a column is read as a stream), each row block all the way across where rows do (what
/// is fetched is used up).
template <class P, Uplo uplo, class Steps>
void down_columns(const typename P::T* H, index_t blocks, index_t row, index_t column, index_t k,
                  Strip<typename P::T>& strip) {
  constexpr int most = Steps::vectors, lanes = P::lanes;
  const index_t at_once = uplo == Uplo::upper ? blocks : 1;
  typename P::V squares = P::zero();
  for (index_t b = 0; b < blocks; b += at_once, row += P::rows, H += Steps::transform_words(k)) {
    index_t j = column;
    const auto down = [&](auto vectors) INLINE_LAMBDA {
      constexpr int C = decltype(vectors)::value;
      Steps::template down<C>(H, at_once, strip.R + at<uplo>(row, j, strip.ldr), strip.ldr,
                              strip.out + at<uplo>(row, j, strip.ldo), strip.ldo, strip.Vt + j, strip.ldv, k, squares);
      j += C * lanes;
    };
    while (strip.columns - j >= most * lanes) down(Count<most>());
    if constexpr (most > 2)
      if (strip.columns - j >= 2 * lanes) down(Count<2>());
    if constexpr (most > 1)
      if (strip.columns - j >= lanes) down(Count<1>());
    if (j < strip.columns) down_edge<P, uplo, Steps>(H, at_once, row, j, strip.columns - j, k, strip, squares);
  }
  strip.squares += sum_of<P>(squares);
}

template <class P, Uplo uplo, class Steps>
struct Of {
  using T = typename P::T;
  static index_t block_words(index_t k) { return Block<P>::words(k); }
  static index_t diagonal(T* H, index_t row, index_t column, index_t m, index_t k, Strip<T>& strip) {
    const Block<P> block = load_block<P, uplo>(strip, row, column, m, k);
    const index_t failing = Steps::find(H, block, m, k);
    if (failing < 0) store_block<P, uplo>(block, strip, row, column, m);
    return failing;
  }
  static Kernels<T> table() {
    return {P::rows, P::lanes, Steps::transform_words, block_words, down_columns<P, uplo, Steps>, diagonal};
  }
};

template <class P, Sign sign, Uplo uplo>
Kernels<typename P::T> choose(index_t k) {
  switch (k) {
    case 1: return Of<P, uplo, Rotating<P, sign, uplo, 1>>::table();
    case 2: return Of<P, uplo, Rotating<P, sign, uplo, 2>>::table();
    case 3: return Of<P, uplo, Rotating<P, sign, uplo, 3>>::table();
    case 4: return Of<P, uplo, Rotating<P, sign, uplo, 4>>::table();
    default: return Of<P, uplo, Reflecting<P, sign, uplo>>::table();
  }
}

template <class T>
Kernels<T> kernels(index_t k, Sign sign, Uplo uplo) {
  using P = Pack<T>;
  if (uplo == Uplo::upper)
    return sign == Sign::update ? choose<P, Sign::update, Uplo::upper>(k) : choose<P, Sign::downdate, Uplo::upper>(k);
  return sign == Sign::update ? choose<P, Sign::update, Uplo::lower>(k) : choose<P, Sign::downdate, Uplo::lower>(k);
}

template Kernels<float> kernels<float>(index_t, Sign, Uplo);
template Kernels<double> kernels<double>(index_t, Sign, Uplo);
