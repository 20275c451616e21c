// Included once for each set of instructions, in a namespace of its own.

/// Computes squares_of_columns() of cpu/kernels.h: by four sums side by side, as each addition to a sum waits for the
/// one before; from right to left, so that the cache holds the columns with which a modification begins.
template <class T>
T squares_of_triangle(MatrixView<const T> R, Uplo uplo, index_t first, index_t last, T* copy) {
  using P = Pack<T>;
  constexpr int sums = 4, lanes = P::lanes;
  typename P::V part[sums];
  UNROLL for (int s = 0; s < sums; ++s) part[s] = P::zero();
  if (copy) copy += R.cols * (R.cols + 1) / 2;
  for (index_t j = last - 1; j >= first; --j) {
    const index_t rows = uplo == Uplo::upper ? j + 1 : R.cols - j;
    const T* const from = R.col(j) + (uplo == Uplo::upper ? 0 : j);
    if (copy) copy -= rows;
    const auto take = [&](typename P::V& sum, index_t i) INLINE_LAMBDA {
      const typename P::V x = P::load(from + i);
      sum = P::fma(x, x, sum);
      if (copy) P::store(copy + i, x);
    };
    index_t i = 0;
    for (; i + sums * lanes <= rows; i += sums * lanes)
      UNROLL for (int s = 0; s < sums; ++s) take(part[s], i + s * lanes);
    for (; i + lanes <= rows; i += lanes) take(part[0], i);
    if (i < rows) {
      const typename P::V x = P::load_part(from + i, 0, int(rows - i));
      part[1] = P::fma(x, x, part[1]);
      if (copy) P::store_part(copy + i, x, 0, int(rows - i));
    }
  }
  return sum_of<P>(P::add(P::add(part[0], part[1]), P::add(part[2], part[3])));
}

template double squares_of_triangle(MatrixView<const double>, Uplo, index_t, index_t, double*);
template float squares_of_triangle(MatrixView<const float>, Uplo, index_t, index_t, float*);
