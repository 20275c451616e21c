#pragma once

#include <cstdint>
#include <cstring>
#include <functional>
#include <utility>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// Column `from` of what the caller gave, times `by`.
struct ScaledColumn {
  index_t from;
  double by;
};

/// Columns as the caller gave them, one after the other without a gap: in the host's memory, or in that of a GPU, from
/// which they are copied when the host asks for them.
template <class S>
class GivenColumns {
 public:
  GivenColumns(const S* V) : data_(V), host_(V) {}
  /// fetch() returns a copy in the host's memory; it may throw. All has to outlive this.
  GivenColumns(const S* on_gpu, std::function<const S*()> fetch) : data_(on_gpu), fetch_(std::move(fetch)) {}

  /// Returns them where they are.
  const S* data() const { return data_; }
  /// Returns them in the host's memory.
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

/// V as a method takes it: columns as the caller gave them; or, where a GPU may multiply them as well as the host, each
/// times a number, which are made when somebody asks for them.
class ColumnsOfV {
 public:
  ColumnsOfV(GivenColumns<double> given) : given_(std::move(given)) {}
  ColumnsOfV(const double* V) : given_(V) {}
  /// make() returns V; it may throw. All has to outlive this.
  ColumnsOfV(GivenColumns<double> given, const std::vector<ScaledColumn>& scaled, std::function<const double*()> make)
      : given_(std::move(given)), scaled_(&scaled), make_(std::move(make)) {}

  /// Returns V in the host's memory, column after column.
  const double* data() const {
    if (!V_) V_ = make_ ? make_() : given_.host();
    return V_;
  }
  /// Returns the same as a matrix, n x k.
  MatrixView<const double> view(index_t n, index_t k) const { return {data(), n, k, n}; }
  /// Returns what the caller gave, where it is, of which V is scaled(), or, where that is null, which is V.
  const double* given() const { return given_.data(); }
  const std::vector<ScaledColumn>* scaled() const { return scaled_; }
  bool on_gpu() const { return given_.on_gpu(); }
  /// Returns how many rows at the top of V (n x k) have zeros alone, in whole blocks, the last row not counted; 0 if V
  /// is in the memory of a GPU.
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
  /// Returns true if `count` numbers are zeros. Looks at all bits but the signs, of many numbers at once.
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
