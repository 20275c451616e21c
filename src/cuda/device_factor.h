#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "base/task.h"

namespace gpucholmod {

enum class TriangularSolve { both, forward, back };  ///< x = (R'R)^-1 b, R'^-1 b, R^-1 b

/// A Cholesky factor in the memory of a GPU, of doubles or of floats. Made by the functions of namespace cuda below; its
/// destructor gives the memory back (in a process forked since, it leaves everything alone).
///
/// Every function throws Error: out_of_memory with `needed` and `available`, backend_unavailable (reason "forked" in a
/// forked process), cuda_failure; a factor is then as it was.
class DeviceFactor {
 public:
  virtual ~DeviceFactor() = default;

  virtual index_t order() const = 0;
  virtual Precision precision() const = 0;
  virtual int device() const = 0;
  virtual std::string device_name() const = 0;
  virtual double bytes() const = 0;  ///< device memory held

  virtual std::unique_ptr<DeviceFactor> copy() const = 0;

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
  /// it is then half modified. More than 32 columns go in passes.
  /// Throws also not_finite, overflow (of V in the scalar of R, or of the result), and what `poll` throws.
  virtual Work modify(const double* V, const Task& task, std::unique_ptr<DeviceFactor>* made, const Poll& poll,
                      std::atomic<bool>& begun) = 0;

  // To measure by; device times are medians of `repeats` >= 1 by events, after one run to warm up. 0 for order 0.

  /// Y (n x m) <- AX, in double whatever the precision, without forming A; m < 65536.
  virtual void multiply(const double* X, double* Y, index_t m) const = 0;
  /// To solve with A for B (n x m), which is there already: by cuBLAS, or by the chain of a modification. NaN where the chain cannot.
  virtual double solve_seconds(const double* B, index_t m, bool by_cublas, int repeats) const = 0;
  /// A plain kernel that reads the triangle and writes it somewhere else: what no modification can beat.
  virtual double sweep_seconds(int repeats) const = 0;
  /// cuSOLVER's factorisation of A, which is formed on the GPU beforehand, by the triangle that takes less time. NaN where
  /// A, rounded, has none. Throws also
  /// backend_unavailable with reason "no_cublas" or "no_cusolver".
  virtual double refactor_seconds(int repeats) const = 0;
};

namespace cuda {

/// Puts the factor R (n x n, upper, or lower when uplo says so; the other triangle is never read; finite, positive
/// diagonal) on a GPU. `device` is its id, or -1 for the first that can be used. S is double or float.
/// Throws what DeviceFactor does, and bad_argument where there is no such device.
template <class S>
std::unique_ptr<DeviceFactor> upload(const S* R, index_t n, Uplo uplo, Precision precision, int device);

/// The factor of the symmetric A (n x n; the triangle that uplo names is read), made on the GPU by cuSOLVER. Null when A is
/// not positive definite: pivot is then the first leading minor (from 0) that is not.
/// Throws also backend_unavailable with reason "no_cusolver".
template <class S>
std::unique_ptr<DeviceFactor> factorise(const S* A, index_t n, Uplo uplo, Precision precision, int device,
                                        index_t& pivot);

}  // namespace cuda
}  // namespace gpucholmod
