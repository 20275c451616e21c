#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/held_factor.h"
#include "cpu/reshape.h"

namespace gpucholmod::cpu {

/// Memory for a factor, so many bytes; it is given back with the last pointer to it.
using Allocate = std::function<std::shared_ptr<void>(std::size_t bytes)>;

/// A factor in ordinary memory, with room for `capacity` rows and columns. Rows and columns of A can come, go and move (cpu/reshape.h):
/// into *made, or, where that is null, in place, which takes no memory but where the capacity does not do: then there is half as much
/// again afterwards. `begun` as in modify().
class HostFactor : public HeldFactor {
 public:
  bool on_gpu() const override { return false; }
  virtual index_t capacity() const = 0;

  /// Without rows and columns `gone`, ascending. Returns the sum of their diagonal entries of A.
  virtual double remove(const std::vector<index_t>& gone, std::unique_ptr<HeldFactor>* made, const Means& means, std::atomic<bool>& begun) = 0;
  /// X (n + p x p): as insert(). Returns the failing pivot, or -1. Throws also not_finite and overflow of X.
  virtual index_t insert(index_t at, const double* X, index_t p, std::unique_ptr<HeldFactor>* made, const Means& means,
                         std::atomic<bool>& begun) = 0;
  virtual void shift(index_t from, index_t to, std::unique_ptr<HeldFactor>* made, const Means& means, std::atomic<bool>& begun) = 0;
};

/// Keeps the factor R (n x n, upper, or lower when uplo says so; the other triangle is never read) in memory of its own, in the scalar
/// that is asked for. It is modified by BlockedSweep, with the threads and instructions of a task, and used by R's BLAS and LAPACK, in
/// double precision. S is double or float. Throws not_finite, bad_diagonal, overflow, and what `allocate` throws.
template <class S>
std::unique_ptr<HostFactor> hold(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity, Allocate allocate);

}  // namespace gpucholmod::cpu
