#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// Describes a column as a multiple: column `from` of the caller's columns, times `by`.
struct ScaledColumn {
  index_t from;
  double by;
};

/// Refers to the caller's columns, which follow each other without a gap in host memory or in the memory of a GPU.
/// Columns on a GPU are copied to host memory when the host asks for them.
template <class S>
class GivenColumns {
 public:
  GivenColumns(const S* V) : data_(V), host_(V) {}
  /// Refers to columns on a GPU. fetch() returns a copy in host memory, and may throw. The columns, the copy and
  /// whatever fetch() uses must outlive this object.
  GivenColumns(const S* on_gpu, std::function<const S*()> fetch) : data_(on_gpu), fetch_(std::move(fetch)) {}

  /// Returns the columns in the memory in which the caller gave them.
  const S* data() const { return data_; }
  /// Returns the columns in host memory.
  const S* host() const {
    if (!host_ && fetch_) host_ = fetch_();
    return host_;
  }
  bool on_gpu() const { return bool(fetch_); }

 private:
  const S* data_;
  mutable const S* host_ = nullptr;
  std::function<const S*()> fetch_;
};

/// Holds V as a method reads it: the caller's columns, or multiples of them. Multiples are made on the host only when
/// data() or view() is called, since a GPU may multiply the columns as well.
class ColumnsOfV {
 public:
  ColumnsOfV(GivenColumns<double> given) : given_(std::move(given)) {}
  ColumnsOfV(const double* V) : given_(V) {}
  /// Takes multiples of the caller's columns, and make(), which returns V and may throw. All arguments, and whatever
  /// make() uses, must outlive this object.
  ColumnsOfV(GivenColumns<double> given, const std::vector<ScaledColumn>& scaled, std::function<const double*()> make)
      : given_(std::move(given)), scaled_(&scaled), make_(std::move(make)) {}

  /// Returns V in the host's memory, column after column.
  const double* data() const {
    if (!V_) V_ = make_ ? make_() : given_.host();
    return V_;
  }
  /// Returns V in host memory as a matrix, n x k.
  MatrixView<const double> view(index_t n, index_t k) const { return {data(), n, k, n}; }
  /// Returns the caller's columns in the memory in which they were given: the columns that scaled() multiplies, or V
  /// itself if scaled() is null.
  const double* given() const { return given_.data(); }
  const std::vector<ScaledColumn>* scaled() const { return scaled_; }
  bool on_gpu() const { return given_.on_gpu(); }
  /// Returns the number of rows at the top of V (n x k) that hold zeros alone, in whole blocks and without the last
  /// row. Returns 0 if V is in the memory of a GPU.
  template <index_t block>
  index_t rows_of_zeros(index_t n, index_t k) const {
    if (on_gpu() || n == 0) return 0;
    index_t rows = (n - 1) / block * block;
    for (index_t q = 0; q < k; ++q) {
      const double* const column = given() + (scaled_ ? (*scaled_)[q].from : q) * n;
      index_t first = 0;
      while (first < rows && are_zeros<block>(column + first)) first += block;
      rows = first;
    }
    return rows;
  }

 private:
  /// Returns whether `count` numbers are zeros. Looks at all bits but the signs, of many numbers at once.
  template <index_t count>
  static bool are_zeros(const double* numbers) {
    std::uint64_t bits[count], all = 0;
    std::memcpy(bits, numbers, sizeof bits);
    for (const std::uint64_t x : bits) all |= x << 1;
    return all == 0;
  }

  mutable const double* V_ = nullptr;
  GivenColumns<double> given_;
  const std::vector<ScaledColumn>* scaled_ = nullptr;
  std::function<const double*()> make_;
};

}  // namespace gpucholmod
