#pragma once

#include <functional>
#include <vector>

#include "base/types.h"

namespace gpucholmod {

/// Column `from` of what the caller gave, times `by`.
struct ScaledColumn {
  index_t from;
  double by;
};

/// V as a method takes it: columns in memory; or, where a GPU may multiply them as well as the host, columns of what
/// the caller gave, each times a number, which are made when somebody asks for them.
class ColumnsOfV {
 public:
  ColumnsOfV(const double* V) : V_(V), given_(V) {}
  /// make() returns V; it may throw. All has to outlive this.
  ColumnsOfV(const double* given, const std::vector<ScaledColumn>& scaled, std::function<const double*()> make)
      : given_(given), scaled_(&scaled), make_(std::move(make)) {}

  /// Returns V, column after column.
  const double* data() const {
    if (!V_ && make_) V_ = make_();
    return V_;
  }
  /// Returns the same as a matrix, n x k.
  MatrixView<const double> view(index_t n, index_t k) const { return {data(), n, k, n}; }
  /// Returns what the caller gave, of which V is scaled(), or, where that is null, which is V.
  const double* given() const { return given_; }
  const std::vector<ScaledColumn>* scaled() const { return scaled_; }

 private:
  mutable const double* V_ = nullptr;
  const double* given_;
  const std::vector<ScaledColumn>* scaled_ = nullptr;
  std::function<const double*()> make_;
};

}  // namespace gpucholmod
