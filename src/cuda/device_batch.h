#pragma once

#include <memory>
#include <string>

#include "base/held_batch.h"

namespace gpucholmod {

/// A batch in the memory of a GPU. Every function also throws what the functions of DeviceFactor throw.
class DeviceBatch : public HeldBatch {
 public:
  bool on_gpu() const override { return true; }
  virtual int device() const = 0;
  virtual std::string device_name() const = 0;
  /// Solves as solve() does, for dB (n x m x b) in the memory of this GPU.
  virtual void solve_there(TriangularSolve which, double* dB, index_t m) const = 0;
};

namespace cuda {

/// Puts b factors R (n x n x b, each upper, or lower if uplo says so; the other triangles are never read) on a GPU.
/// `device` is its id, or -1 for the first that can be used. Throws what DeviceFactor does, bad_argument if there is no
/// such device, and, with a field `member`, not_finite and bad_diagonal. Room is kept only for members that are factors
/// of their own: those of a batch whose order or capacity exceeds 1,024.
std::unique_ptr<DeviceBatch> upload_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                          int device, const BatchRoom& room = {});

}  // namespace cuda
}  // namespace gpucholmod
