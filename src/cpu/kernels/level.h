// Included once for each set of instructions, in a namespace of its own.

/// Runs Householder steps, for any k; `chains` is true if k is above longest_chain.
template <class Packed, Sign sign, Uplo uplo, bool chains>
struct Reflecting {
  using P = Packed;
  static constexpr int vectors = uplo == Uplo::upper ? P::vectors_upper : P::vectors_lower;
  static constexpr int few_columns = 8;
  static constexpr index_t long_rows = all_short;
  using Crowded = Reflecting;
  using Usual = Reflecting;
  using T = typename P::T;
  static index_t transform_words(index_t k) { return Reflector<P, sign, chains>::words(k); }

  static T unit(const T*, index_t) { return 1; }

  template <int C, class Tile>
  static INLINE void down(const Tile& tile, const T* H, index_t blocks, const T* R, index_t ldr, T* out, index_t ldo,
                          T* Vt, index_t ldv, index_t k, typename P::V& squares) {
    for (index_t b = 0; b < blocks; ++b) {
      const Reflector<P, sign, chains> block{const_cast<T*>(H) + b * transform_words(k), k};
      const index_t row = b * P::rows;
      reflect_tile<P, sign, chains, uplo, C>(tile, block, R + at<uplo>(row, 0, ldr), ldr, out + at<uplo>(row, 0, ldo),
                                             ldo, Vt, ldv, k, squares);
    }
  }

  static index_t diagonal(T* memory, index_t row, index_t column, index_t m, index_t k, Strip<T>& strip) {
    typename Square<T>::V x[P::rows];
    load_triangle<P, uplo>(strip.R + at<uplo>(row, column, strip.ldr), strip.ldr, m, x);
    strip.squares += sum_of_squares<T>(x);
    BlockSteps<P, sign, chains> steps(x, {memory, k});
    auto products = steps.begin(strip.Vt + column, strip.ldv);
    for (index_t i = 0; i < m; ++i)
      if (!steps.reflect_row(i, products, strip.squares)) return i;
    steps.finish(m);
    steps.block(x);
    T* const out = strip.out + at<uplo>(row, column, strip.ldo);
    store_triangle<P, uplo>(out, strip.ldo, m, x);
    for (index_t i = 0; i < m; ++i) out[i * (strip.ldo + 1)] = steps.pivot(i);
    return -1;
  }
  static constexpr bool careful_steps = false;
  static index_t run_of(const T*, index_t blocks, bool& careful) {
    careful = false;
    return blocks;
  }
};

template <class P>
typename P::T sum_of(typename P::V x) {
  typename P::T lanes[P::lanes];
  P::store(lanes, x);
  UNROLL for (int half = P::lanes / 2; half > 0; half /= 2)
    UNROLL for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  return lanes[0];
}

/// Applies the transforms H, from `row` on, to the columns from `column` on of the strip, as many vectors at a time as
/// pay. If R is stored by columns, each set of vectors is modified all the way down (a column is read as a stream); if
/// by rows, each row block all the way across (fetched lines are used up). `few`: at most Steps::few_columns columns at
/// a time, if vectors are short enough.
template <Uplo uplo, class Steps, class T = typename Steps::T>
void down_columns(const T* H, index_t blocks, index_t row, index_t column, index_t k, bool few, Strip<T>& strip) {
  using P = typename Steps::P;
  constexpr int most = Steps::vectors, lanes = P::lanes;
  typename P::V squares = P::zero();
  const index_t at_once = uplo == Uplo::upper ? blocks : 1;
  for (index_t b = 0; b < blocks; b += at_once, row += P::rows, H += Steps::transform_words(k)) {
    index_t j = column;
    const auto down = [&](auto vectors, const auto& tile, index_t columns) INLINE_LAMBDA {
      constexpr int C = decltype(vectors)::value;
      Steps::template down<C>(tile, H, at_once, strip.R + at<uplo>(row, j, strip.ldr), strip.ldr,
                              strip.out + at<uplo>(row, j, strip.ldo), strip.ldo, strip.Vt + j, strip.ldv, k, squares);
      j += columns;
    };
    const auto all = [&](const auto& tile) INLINE_LAMBDA {
      if (!few || most == 1 || most * lanes <= Steps::few_columns)
        while (strip.columns - j >= most * lanes) down(Count<most>(), tile, most * lanes);
      if constexpr (most > 2)
        while (strip.columns - j >= 2 * lanes) down(Count<2>(), tile, 2 * lanes);
      if constexpr (most > 1)
        while (strip.columns - j >= lanes) down(Count<1>(), tile, lanes);
    };
    // Shortens the first vector of a long row, so that all other vectors begin with a cache line.
    if constexpr (uplo == Uplo::lower && Steps::long_rows < all_short) {
      constexpr int bytes = sizeof(typename P::V);
      const int by = strip.columns - j < Steps::long_rows ? 0 : behind(strip.R + j + row * strip.ldr, strip.ldr, bytes);
      const int apart = (bytes - by) / int(sizeof(T));
      if (by > 0) down(Count<1>(), Edge{apart}, apart);
    }
    if constexpr (uplo == Uplo::upper && can_shift<P>)
      if (behind(strip.R + row + j * strip.ldr, strip.ldr, 32) == 16 &&
          behind(strip.out + row + j * strip.ldo, strip.ldo, 32) == 16)
        all(Shifted());
    all(Whole());
    if (j < strip.columns) down(Count<1>(), Edge{int(strip.columns - j)}, strip.columns - j);
  }
  strip.squares += sum_of<P>(squares);
}

template <class P, class T = typename P::T>
void fill(T* row, index_t ldv, const T* from, index_t columns) {
  index_t j = 0;
  for (; j + P::lanes <= columns; j += P::lanes) P::store(row + j, P::load(from + j));
  P::store(row + j, P::load_part(from + j, 0, int(columns - j)));
  for (j += P::lanes; j + P::lanes <= ldv; j += P::lanes) P::store(row + j, P::zero());
}

template <class P, Sign sign, Uplo uplo, class Steps>
struct Of {
  using T = typename P::T;

  static void apply(const T* H, index_t blocks, index_t row, index_t column, index_t k, Strip<T>& strip) {
    // Columns a multiple of 4 KB apart map to one set of 8 to 12 lines of the first-level cache, so fewer columns fit.
    const bool crowded = strip.ldr * sizeof(T) % 4096 == 0, few = crowded && uplo == Uplo::upper;
    while (blocks > 0) {
      bool careful;
      const index_t run = Steps::run_of(H, blocks, careful);
      if constexpr (Steps::careful_steps)
        if (careful) Steps::carefully(H, run, row, column, strip);
      if (!careful && crowded) down_columns<uplo, typename Steps::Crowded>(H, run, row, column, k, few, strip);
      if (!careful && !crowded) down_columns<uplo, typename Steps::Usual>(H, run, row, column, k, few, strip);
      blocks -= run;
      row += run * P::rows;
      H += run * Steps::transform_words(k);
    }
  }
  static const Kernels<T>& table() {
    static constexpr Kernels<T> all{
        P::rows, P::lanes, Steps::long_rows, Steps::transform_words, apply, Steps::diagonal, fill<P>, Steps::unit};
    return all;
  }
};

/// Runs `Steps` by whole vectors for all leading dimensions.
template <class Steps>
struct Unhalved : Steps {
  using Crowded = Steps;
  using Usual = Steps;
};

template <class P, Sign sign, Uplo uplo, int K>
const Kernels<typename P::T>& rotating() {
  using Steps = Rotating<P, sign, uplo, K>;
  if constexpr (!std::is_same_v<typename Steps::Usual, Steps>)
    if (!takes_halves) return Of<P, sign, uplo, Unhalved<Steps>>::table();
  return Of<P, sign, uplo, Steps>::table();
}

template <class P, Sign sign, Uplo uplo>
const Kernels<typename P::T>& choose(index_t k) {
  switch (k) {
    case 1: return rotating<P, sign, uplo, 1>();
    case 2: return rotating<P, sign, uplo, 2>();
    case 3: return rotating<P, sign, uplo, 3>();
    case 4: return rotating<P, sign, uplo, 4>();
  }
  return k <= longest_chain ? Of<P, sign, uplo, Reflecting<P, sign, uplo, false>>::table()
                            : Of<P, sign, uplo, Reflecting<P, sign, uplo, true>>::table();
}

template <class T>
const Kernels<T>& kernels(index_t k, Sign sign, Uplo uplo) {
  using P = Pack<T>;
  if (uplo == Uplo::upper)
    return sign == Sign::update ? choose<P, Sign::update, Uplo::upper>(k) : choose<P, Sign::downdate, Uplo::upper>(k);
  return sign == Sign::update ? choose<P, Sign::update, Uplo::lower>(k) : choose<P, Sign::downdate, Uplo::lower>(k);
}

template const Kernels<float>& kernels<float>(index_t, Sign, Uplo);
template const Kernels<double>& kernels<double>(index_t, Sign, Uplo);
