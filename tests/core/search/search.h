#pragma once

#include <optional>
#include <string>

#include "../families.h"
#include "base/held_factor.h"

/// A search for modifications with a large backward error: random families of factors, kinds of columns, and sequences
/// in which each result is the next factor. The seed of a sequence repeats it.
namespace gpucholmod::test {

/// A factor that a search modifies.
class Subject {
 public:
  virtual ~Subject() = default;
  /// Takes the factor R. Returns a description of the way in which it will be modified.
  virtual std::string begin(const Stored<double>& R, Random& random) = 0;
  virtual Precision precision() const = 0;
  /// Returns the factor as it is stored.
  virtual Stored<double> get() const = 0;
  /// Takes away the last `removed` columns of V and adds the others. Returns false, and keeps the factor, if the result
  /// is not definite.
  virtual bool modify(const Stored<double>& V, index_t removed) = 0;

  /// Returns whether insert(), remove() and solve() are available; they are as those of HeldFactor.
  virtual bool does_all() const { return false; }
  virtual bool insert(index_t, const Stored<double>&) { return false; }
  virtual void remove(const std::vector<index_t>&) {}
  virtual void solve(TriangularSolve, Stored<double>&) const {}
};

struct Searched {
  index_t updates = 0, downdates = 0, mixed = 0, insertions = 0, deletions = 0, solutions = 0, not_definite = 0;
  double worst = 0;                ///< largest backward error, in eps times the norms of the terms
  std::vector<std::string> found;  ///< operations beyond the bound, with the seed of each

  index_t all() const { return updates + downdates + mixed + insertions + deletions + solutions; }
  void add(const Searched& other);
  std::string text() const;
};

/// Runs sequences with the seeds [first, end), until `operations` have been done. Reports an operation if
///
///   ||R~'R~ - A~||_1 > bound eps (||A||_1 + ||V V'||_1)
///
/// in long double (for a solution, if ||B - R'X||_1 > bound eps (||R||_1 ||X||_1 + ||B||_1)), if a diagonal entry is
/// not positive or an entry is not finite, or if a downdate or an insertion was refused though the least eigenvalue of
/// A~ is above that bound.
Searched search(Subject& subject, unsigned first, unsigned end, index_t operations, double bound = 40);

}  // namespace gpucholmod::test
