#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/columns_of_v.h"
#include "base/task.h"

namespace gpucholmod {

enum class TriangularSolve { both, forward, back };  ///< x = (R'R)^-1 b, R'^-1 b, R^-1 b
enum class TriangularProduct { both, transposed, plain };  ///< y = R'R x, R' x, R x

/// A Cholesky factor in memory of its own, of doubles or of floats: on a GPU (cuda/device_factor.h), or ordinary memory
/// (cpu/host_factor.h). Its destructor gives the memory back.
///
/// Every function throws Error, or std::bad_alloc. A factor is then as it was to the last bit, unless the function was
/// given `begun` and this is true: then the factor is half modified, and must only be destroyed.
class HeldFactor {
 public:
  virtual ~HeldFactor() = default;

  virtual index_t order() const = 0;
  virtual Precision precision() const = 0;
  virtual bool on_gpu() const = 0;
  virtual index_t capacity() const = 0;  ///< rows and columns that there is room for
  virtual double bytes() const = 0;  ///< of memory held
  /// The factor itself, or the one with stand-ins for its zeros (base/semidefinite.h).
  virtual const HeldFactor& plain() const { return *this; }
  /// Those entries of the diagonal <- value, a positive number of its scalar.
  virtual void set_diagonal(const std::vector<index_t>& rows, double value) = 0;
  virtual int processes() const { return 0; }  ///< over which it is dealt out (mpi/factor.h); 0: it is whole

  /// Makes each flag true that is true in one of the processes, so that rounding cannot make them choose differently.
  /// Does nothing where there is one process.
  virtual void any_of(std::vector<char>&) const {}

  virtual std::unique_ptr<HeldFactor> copy() const = 0;

  /// out (n x n) <- R, or R' when uplo is lower; its other triangle exactly zero.
  virtual void download(Uplo uplo, double* out) const = 0;
  /// out (n) <- the diagonal of R.
  virtual void diagonal(double* out) const = 0;
  /// ||R||_F^2, the trace of A.
  virtual double trace() const = 0;
  /// X <- the solution for B (n x m each, column-major; X may be B).
  virtual void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const = 0;
  /// The same in place.
  void solve(TriangularSolve which, double* B, index_t m) const { solve_for(which, B, B, m); }
  /// X (n x m, column-major) <- the product, computed in double precision. Throws not_supported where the factor is
  /// dealt out over processes.
  virtual void multiply(TriangularProduct which, double* X, index_t m) const = 0;
  /// out (n x n) <- A^-1, both triangles.
  virtual void inverse(double* out) const = 0;

  /// The factor of A + sigma VV', V n x k, in task.precision, which is its own. Into *made: a new one, null with a
  /// failing pivot; this one stays as it is. If `made` is null, in place: unless task.keep_intact is false, a dry run
  /// first finds out whether a downdate is possible. `begun` becomes true before this one changes: with a failing
  /// pivot, or after a throw, it is then half modified. A factor in ordinary memory allocates all that a call needs
  /// before that. Throws also not_finite, overflow (of V in the scalar of R, or of the result), and what `poll` throws.
  /// Where Work::unscaled_z is true, the caller multiplies task.right.out by task.scale.
  virtual Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                      std::atomic<bool>& begun) = 0;

  // Rows and columns of A come, go and move (inst/design/reshape.md): into *made, or, where that is null, in place,
  // which within the capacity takes O(n) memory for each that comes or goes; a second factor besides where numbers need
  // scaling, and on a GPU for an insertion before the end, where there is memory for it or several passes need it.
  // Beyond the capacity there is half as much again afterwards, where that can be had. Of `task` its threads,
  // instructions (resolved), device_memory and right count; `poll` and `begun` as above.

  /// Without rows and columns `gone`, ascending. Returns the sum of their diagonal entries of A.
  virtual double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made,
                        const Poll& poll, std::atomic<bool>& begun) = 0;
  /// With p rows and columns more, the first of which is number `at` then. X (n + p x p): their columns of the new A,
  /// of which rows at .. at + p - 1 count in the upper triangle. Returns the first pivot, of the new matrix, that is
  /// not positive, or -1; the factor is as it was then, unless `begun` is true. Throws also not_finite and overflow of
  /// X.
  virtual index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                         const Poll& poll, std::atomic<bool>& begun) = 0;
  /// With row and column `from` of A moved to be number `to`, those in between one step towards where it was. Every
  /// factor has such another.
  virtual void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                     std::atomic<bool>& begun) = 0;
};

}  // namespace gpucholmod
