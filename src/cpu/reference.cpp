#include "cpu/reference.h"

#include <vector>

namespace gpucholmod::cpu {
namespace {

constexpr index_t poll_every = 32;  // rows or columns between calls of `poll`

/// Runs loop order a: for each row i, computes its k rotations and applies them along the row.
template <Sign sign, class T>
index_t sweep_rows(MatrixView<T> R, MatrixView<T> Vt, const Poll& poll) {
  const index_t n = R.cols, k = Vt.rows;
  std::vector<Rotation<T>> g(k);
  for (index_t i = 0; i < n; ++i) {
    if (i % poll_every == 0) poll(share_of_rows(i, n));
    for (index_t q = 0; q < k; ++q)
      if (!compute<sign>(R(i, i), Vt(q, i), g[q])) return i;
    for (index_t q = 0; q < k; ++q)
      for (index_t j = i + 1; j < n; ++j) apply<sign>(g[q], R(i, j), Vt(q, j));
  }
  return -1;
}

/// Runs loop order b: for each column j, applies the rotations of the rows above and computes the rotations of row j.
template <Sign sign, class T>
index_t sweep_columns_of_sign(MatrixView<T> R, MatrixView<T> Vt, Rotation<T>* g, const Poll& poll) {
  const index_t n = R.cols, k = Vt.rows;
  for (index_t j = 0; j < n; ++j) {
    if (j % poll_every == 0) poll(share_of_columns(j, n));
    T* v = Vt.col(j);
    for (index_t i = 0; i < j; ++i)
      for (index_t q = 0; q < k; ++q) apply<sign>(g[i * k + q], R(i, j), v[q]);
    for (index_t q = 0; q < k; ++q)
      if (!compute<sign>(R(j, j), v[q], g[j * k + q])) return j;
  }
  return -1;
}

}  // namespace

template <class T>
index_t sweep_columns(MatrixView<T> R, MatrixView<T> Vt, Sign sign, Rotation<T>* rotations, const Poll& poll) {
  return sign == Sign::update ? sweep_columns_of_sign<Sign::update>(R, Vt, rotations, poll)
                              : sweep_columns_of_sign<Sign::downdate>(R, Vt, rotations, poll);
}

template <class T>
index_t reference(MatrixView<T> R, MatrixView<T> Vt, Sign sign, LoopOrder order, const Poll& poll) {
  if (order == LoopOrder::b) {
    std::vector<Rotation<T>> rotations(R.cols * Vt.rows);
    return sweep_columns(R, Vt, sign, rotations.data(), poll);
  }
  return sign == Sign::update ? sweep_rows<Sign::update>(R, Vt, poll) : sweep_rows<Sign::downdate>(R, Vt, poll);
}

template index_t sweep_columns(MatrixView<float>, MatrixView<float>, Sign, Rotation<float>*, const Poll&);
template index_t sweep_columns(MatrixView<double>, MatrixView<double>, Sign, Rotation<double>*, const Poll&);
template index_t reference(MatrixView<float>, MatrixView<float>, Sign, LoopOrder, const Poll&);
template index_t reference(MatrixView<double>, MatrixView<double>, Sign, LoopOrder, const Poll&);

}  // namespace gpucholmod::cpu
