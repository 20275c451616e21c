#pragma once

#include <cstddef>

namespace gpucholmod {

using index_t = std::ptrdiff_t;

/// A column-major rows x cols matrix that somebody else owns; ld >= rows.
template <class T>
struct MatrixView {
  T* data;
  index_t rows;
  index_t cols;
  index_t ld;

  T& operator()(index_t i, index_t j) const { return data[i + j * ld]; }
  T* col(index_t j) const { return data + j * ld; }
  MatrixView block(index_t i, index_t j, index_t m, index_t n) const {
    return {data + i + j * ld, m, n, ld};
  }
};

}  // namespace gpucholmod
