#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "base/columns_of_v.h"
#include "base/task.h"

namespace gpucholmod {

enum class TriangularSolve { both, forward, back };  ///< x = (R'R)^-1 b, R'^-1 b, R^-1 b
enum class TriangularProduct { both, transposed, plain };  ///< y = R'R x, R' x, R x

/// Holds a Cholesky factor, of doubles or of floats, in memory of its own: on a GPU (cuda/device_factor.h), or in
/// ordinary memory (cpu/host_factor.h). The destructor gives the memory back.
///
/// Every function throws Error, or std::bad_alloc. The factor is then as it was before to the last bit, unless the
/// function was given `begun` and `begun` is true: then the factor is half modified, and must only be destroyed.
class HeldFactor {
 public:
  virtual ~HeldFactor() = default;

  virtual index_t order() const = 0;
  virtual Precision precision() const = 0;
  virtual bool on_gpu() const = 0;
  virtual index_t capacity() const = 0;  ///< rows and columns that the memory has room for
  virtual double bytes() const = 0;  ///< memory held
  /// Returns the factor itself, or, for a factor with zeros on its diagonal, the factor that holds stand-ins for the
  /// zeros (base/semidefinite.h).
  virtual const HeldFactor& plain() const { return *this; }
  /// Sets the entries of the diagonal in `rows` to `value`, a positive number of the factor's scalar.
  virtual void set_diagonal(const std::vector<index_t>& rows, double value) = 0;
  virtual int processes() const { return 0; }  ///< processes that share the factor (mpi/factor.h); 0: not dealt out
  /// Returns the number of CPU threads of use to this process; 0: as many as the machine has cores.
  virtual int threads() const { return 0; }

  /// Makes each flag true that is true in one of the processes, so that rounding cannot make processes choose
  /// differently. Does nothing if one process holds the factor.
  virtual void any_of(std::vector<char>&) const {}

  virtual std::unique_ptr<HeldFactor> copy() const = 0;

  /// Copies R, or R' if uplo is lower, to out (n x n); its other triangle becomes exactly zero.
  virtual void download(Uplo uplo, double* out) const = 0;
  /// Copies the diagonal of R to out (n).
  virtual void diagonal(double* out) const = 0;
  /// Returns ||R||_F^2, the trace of A.
  virtual double trace() const = 0;
  /// Stores the solution for B in X (n x m each, column-major; X may be B).
  virtual void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const = 0;
  /// Overwrites B with its solution.
  void solve(TriangularSolve which, double* B, index_t m) const { solve_for(which, B, B, m); }
  /// Overwrites X (n x m, column-major) with the product, computed in double precision. Throws not_supported if the
  /// factor is dealt out over processes.
  virtual void multiply(TriangularProduct which, double* X, index_t m) const = 0;
  /// Computes A^-1, both triangles, in out (n x n).
  virtual void inverse(double* out) const = 0;

  /// Computes the factor of A + sigma VV', V n x k, in task.precision, which is the factor's own. If `made` is not
  /// null, stores a new factor in *made, or null after a failing pivot, and leaves this factor as it is. If `made` is
  /// null, modifies this factor in place: a dry run first finds out whether a downdate is possible, unless
  /// task.keep_intact is false. `begun` becomes true before this factor changes: after a failing pivot, or after a
  /// throw, the factor is then half modified. A factor in ordinary memory allocates all that a call needs before
  /// `begun` becomes true. Throws also not_finite, overflow (of V in the scalar of R, or of the result), and what
  /// `poll` throws. If Work::unscaled_z is true, the caller multiplies task.right.out by task.scale.
  virtual Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                      std::atomic<bool>& begun) = 0;

  // The next functions insert, remove and move rows and columns of A (inst/design/reshape.md). The result is stored in
  // *made, or, if `made` is null, in place. Within the capacity, a change in place takes O(n) memory for each row that
  // is inserted or removed. It takes a second factor besides if numbers need scaling; on a GPU also for an insertion
  // before the end, if there is memory for a second factor or several passes need one. Beyond the capacity, the factor
  // gets room for half as many rows again, if that memory can be had. The functions read the threads, instructions
  // (resolved), device_memory and right of `task`; `poll` and `begun` are those of modify().

  /// Removes rows and columns `gone`, ascending. Returns the sum of their diagonal entries of A.
  virtual double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made,
                        const Poll& poll, std::atomic<bool>& begun) = 0;
  /// Inserts p rows and columns, the first of which becomes number `at`. X (n + p x p) holds their columns of the new
  /// A; of rows at .. at + p - 1 only the upper triangle is read. Returns the first pivot of the new matrix that is not
  /// positive, or -1; after such a pivot the factor is as it was, unless `begun` is true. Throws also not_finite and
  /// overflow of X.
  virtual index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                         const Poll& poll, std::atomic<bool>& begun) = 0;
  /// Moves row and column `from` of A to number `to`; the rows in between move one step towards the old place. A stays
  /// positive definite, so that no pivot fails.
  virtual void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                     std::atomic<bool>& begun) = 0;
};

}  // namespace gpucholmod
