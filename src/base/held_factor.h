#pragma once

#include <atomic>
#include <memory>

#include "base/task.h"

namespace gpucholmod {

enum class TriangularSolve { both, forward, back };  ///< x = (R'R)^-1 b, R'^-1 b, R^-1 b

/// A Cholesky factor in memory of its own, of doubles or of floats: on a GPU (cuda/device_factor.h), or ordinary memory
/// (cpu/host_factor.h). Its destructor gives the memory back.
///
/// Every function throws Error; a factor is then as it was.
class HeldFactor {
 public:
  virtual ~HeldFactor() = default;

  virtual index_t order() const = 0;
  virtual Precision precision() const = 0;
  virtual bool on_gpu() const = 0;
  virtual double bytes() const = 0;  ///< of memory held

  virtual std::unique_ptr<HeldFactor> copy() const = 0;

  /// out (n x n) <- R, or R' when uplo is lower; its other triangle exactly zero.
  virtual void download(Uplo uplo, double* out) const = 0;
  /// out (n) <- the diagonal of R.
  virtual void diagonal(double* out) const = 0;
  /// ||R||_F^2, the trace of A.
  virtual double trace() const = 0;
  /// B (n x m, column-major) <- the solution.
  virtual void solve(TriangularSolve which, double* B, index_t m) const = 0;
  /// out (n x n) <- A^-1, both triangles.
  virtual void inverse(double* out) const = 0;

  /// The factor of A + sigma VV', V n x k, in task.precision, which is its own. Into *made: a new one, null with a failing
  /// pivot; this one stays as it is. made null: in place, where a downdate is found out beforehand to be possible unless
  /// task.keep_intact is false. `begun` becomes true before this one changes: with a failing pivot, or after a throw,
  /// it is then half modified.
  /// Throws also not_finite, overflow (of V in the scalar of R, or of the result), and what `poll` throws.
  virtual Work modify(const double* V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                      std::atomic<bool>& begun) = 0;
};

}  // namespace gpucholmod
