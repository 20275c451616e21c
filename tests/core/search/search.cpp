#include "search.h"

#include <cstdio>

#include "../call.h"

namespace gpucholmod::test {
namespace {

Matrix identity(index_t n) { return Matrix::Identity(n, n); }

struct Kind {
  const char* name;
  Matrix (*factor)(index_t n, Random&);
};

/// Returns ten to a random power between `from` and `to`.
real power(real from, real to, Random& random) { return std::pow(10.0L, from + (to - from) * random.uniform()); }

index_t below(index_t n, Random& random) { return index_t(random.uniform() * real(n)); }

const Kind kinds[] = {
    {"well", [](index_t n, Random& random) { return well_conditioned(n, random); }},
    {"uniform", [](index_t n, Random& random) { return families[0].factor(n, {0x1p-52}, random); }},
    {"kernel", [](index_t n, Random& random) { return kernel(n, power(-12, -1, random), random); }},
    {"square",
     [](index_t n, Random& random) {
       const Matrix X = random.normal(n, n);
       return factor(product(X.transpose(), X) + 1e-12L * real(n) * identity(n));
     }},
    {"condition", [](index_t n, Random& random) { return random_with_condition(power(0, 15, random), n, random); }},
    {"graded_rows",
     [](index_t n, Random& random) {
       return Matrix(powers(0, -16 * random.uniform(), n).asDiagonal() * well_conditioned(n, random));
     }},
    {"graded_columns",
     [](index_t n, Random& random) {
       return Matrix(well_conditioned(n, random) * powers(0, -16 * random.uniform(), n).asDiagonal());
     }},
    {"graded_mixed",
     [](index_t n, Random& random) { return graded_mixed(n, 7 * random.uniform(), power(-3, 0, random), random); }},
    {"graded_mixed",
     [](index_t n, Random& random) { return graded_mixed(n, 7 * random.uniform(), power(-3, 0, random), random); }},
    {"kahan",
     [](index_t n, Random& random) {
       const real c = 0.9L * random.uniform(), s = std::sqrt(1 - c * c);
       Matrix R = identity(n);
       real scale = 1;
       for (index_t i = 0; i < n; ++i, scale = std::max(scale * s, 1e-12L)) {
         for (index_t j = i + 1; j < n; ++j) R(i, j) = -c;
         R.row(i) *= scale;
       }
       return R;
     }},
    {"growing",  // inverses grow by a factor with each row, exactly
     [](index_t n, Random& random) {
       Matrix R = identity(n);
       const real share = random.uniform();
       for (index_t j = 0; j < n; ++j)
         for (index_t i = 0; i < j; ++i) R(i, j) = random.uniform() < share ? -1 : 0;
       return R;
     }},
};

Matrix columns(const Matrix& R, index_t k, Random& random) {
  const index_t n = R.cols();
  switch (below(6, random)) {
    case 0: return power(-2, 3, random) * random.normal(n, k);
    case 1: {
      const Matrix v = random.normal(n, 1);
      return v.replicate(1, k) + 1e-7L * random.normal(n, k);
    }
    case 2: return Matrix(random.normal(n, k) * powers(-6, 6, k).asDiagonal());
    case 3: {
      Matrix V = random.normal(n, k);
      for (index_t i = 0; i < n; ++i)
        if (random.uniform() < 0.9L) V.row(i).setZero();
      return V;
    }
    default: return product(R.transpose(), orthonormal(random.normal(n, k))) * power(-2, 3, random);
  }
}

/// Returns columns that can be taken away from R'R: nearly all of R'R in their directions, or little.
Matrix columns_to_remove(const Matrix& R, index_t k, Random& random) {
  const index_t n = R.cols();
  Matrix seed = random.normal(n, k);
  if (random.uniform() < 0.3L && n > 64) seed.bottomRows(n - 64) *= power(-6, 0, random);
  return product(R.transpose(), orthonormal(seed)) * std::sqrt(1 - power(-8, -0.5L, random));
}

bool is_definite(const Matrix& A) { return first_indefinite(A) < 0; }

/// Runs one sequence of operations.
class Sequence {
 public:
  Sequence(Subject& subject, unsigned seed, double bound, Searched& to)
      : subject_(subject), random_(seed), seed_(seed), bound_(bound), to_(to) {}

  void run(index_t most) {
    constexpr index_t orders[] = {33, 64, 65, 100, 128, 130, 200, 320};
    const index_t n = orders[below(8, random_)];
    const Kind& kind = kinds[below(index_t(std::size(kinds)), random_)];
    const Stored<double> R = kind.factor(n, random_).cast<double>();
    if (!R.allFinite() || !(R.diagonal().minCoeff() > 0)) return;  // too ill-conditioned to be made
    about_ = std::string(kind.name) + ", n " + std::to_string(n) + ", " + subject_.begin(R, random_);
    before_ = subject_.get();
    for (index_t step = 0, steps = std::min<index_t>(most, 1 + below(6, random_)); step < steps; ++step) {
      step_ = step;
      if (!next()) return;
    }
  }

 private:
  /// Does the next operation. Returns false if the sequence ends.
  bool next() {
    constexpr index_t widths[] = {1, 2, 5, 8, 16, 17, 32};
    const index_t k = std::min(before_.cols(), widths[below(7, random_)]);
    const Matrix R = before_.cast<real>();
    const real which = random_.uniform();
    if (subject_.does_all()) {
      if (which < 0.05L) return solve(R, k);
      if (which < 0.3L) return which < 0.18L ? remove(k) : insert(R, std::min<index_t>(k, 8));
    }
    Matrix V = which < 0.65L ? columns(R, k, random_) : columns_to_remove(R, k, random_);
    index_t removed = which < 0.65L ? 0 : k;
    if (which > 0.9L && k > 1) {  // some columns are added, others taken away
      removed = 1 + below(k - 1, random_);
      V.leftCols(k - removed) = columns(R, k - removed, random_);
    }
    ++(removed == 0 ? to_.updates : removed == k ? to_.downdates : to_.mixed);
    const Stored<double> stored = V.cast<double>();
    const bool done = subject_.modify(stored, removed);
    V = stored.cast<real>();
    const Matrix A = gram_of(R), added = V.leftCols(k - removed), gone = V.rightCols(removed);
    const Matrix more = product(added, added.transpose()), less = product(gone, gone.transpose());
    return judge(done, A + more - less, norm_1(A) + norm_1(more) + norm_1(less),
                 "k " + std::to_string(k) + ", removed " + std::to_string(removed));
  }

  bool remove(index_t k) {
    const index_t n = before_.cols(), most = std::min(k, n - 1);
    if (n < 20) return false;
    std::vector<index_t> gone, keep;
    for (index_t i = 0; i < n; ++i)
      (index_t(gone.size()) < most && random_.uniform() < 2 * real(k) / real(n) ? gone : keep).push_back(i);
    if (gone.empty()) gone.push_back(keep.back()), keep.pop_back();
    ++to_.deletions;
    subject_.remove(gone);
    const Matrix A = gram_of(before_.cast<real>());
    const auto kept = [&](index_t i, index_t j) { return A(keep[size_t(i)], keep[size_t(j)]); };
    const index_t m = index_t(keep.size());
    return judge(true, Matrix::NullaryExpr(m, m, kept), norm_1(A), "deletes " + std::to_string(gone.size()));
  }

  /// Inserts rows and columns; the new matrix is definite by far or hardly.
  bool insert(const Matrix& R, index_t p) {
    const index_t n = R.cols(), at = random_.uniform() < 0.3L ? n : below(n + 1, random_);
    // A12 = R'T, A22 = T'T and some more.
    const Matrix S = product(R.transpose(), random_.normal(n, p)) * power(-2, 1, random_);
    const Matrix T = R.transpose().triangularView<Eigen::Lower>().solve(S);
    const Matrix own =
        product(T.transpose(), T) + power(-6, 1, random_) * norm_1(product(T.transpose(), T)) * identity(p);
    Matrix X(n + p, p);
    X.topRows(at) = S.topRows(at);
    X.middleRows(at, p) = own;
    X.bottomRows(n - at) = S.bottomRows(n - at);
    const Stored<double> stored = X.cast<double>();
    const double largest = subject_.precision() == Precision::single ? 1e36 : 1e150;
    if (!(own.diagonal().maxCoeff() < largest * largest)) return true;  // R is so ill-conditioned that A22 is too large
    ++to_.insertions;
    const bool done = subject_.insert(at, stored);
    X = stored.cast<real>();
    const Matrix A = gram_of(R);
    Matrix whole(n + p, n + p);
    const auto place = [&](index_t i) { return i < at ? i : i + p; };
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) whole(place(i), place(j)) = A(i, j);
    for (index_t q = 0; q < p; ++q)
      for (index_t i = 0; i < n + p; ++i)
        if (i < at || i >= at + p || i <= at + q) whole(i, at + q) = whole(at + q, i) = X(i, q);
    return judge(done, whole, norm_1(A) + norm_1(whole), "inserts " + std::to_string(p) + " at " + std::to_string(at));
  }

  bool solve(const Matrix& R, index_t m) {
    const bool forward = random_.uniform() < 0.5L;
    const Stored<double> B = random_.normal(R.cols(), m).cast<double>();
    Stored<double> X = B;
    subject_.solve(forward ? TriangularSolve::forward : TriangularSolve::back, X);
    ++to_.solutions;
    if (!X.allFinite()) return true;  // beyond the range of numbers
    const Matrix x = X.cast<real>(), b = B.cast<real>(), left = b - product(forward ? Matrix(R.transpose()) : R, x);
    const double error = double(norm_1(left) / (epsilon(Precision::double_) * (norm_1(R) * norm_1(x) + norm_1(b))));
    to_.worst = std::max(to_.worst, error);
    if (!(error <= bound_))
      report("residual " + std::to_string(error) + " eps", forward ? "solves forward" : "solves back");
    return true;
  }

  bool judge(bool done, const Matrix& target, real scale, const std::string& what) {
    const real eps = epsilon(subject_.precision());
    if (!done) {
      ++to_.not_definite;
      if (is_definite(target - bound_ * eps * scale * identity(target.cols())))
        report("is definite, but was refused", what);
      return true;
    }
    before_ = subject_.get();
    if (before_.cols() != target.cols() || !before_.allFinite() || !(before_.diagonal().minCoeff() > 0)) {
      report("has a diagonal that is not positive, or an entry that is not finite", what);
      return false;
    }
    const double error = double(norm_1(gram_of(before_.cast<real>()) - target) / (eps * scale));
    to_.worst = std::max(to_.worst, error);
    if (!(error <= bound_)) report("error " + std::to_string(error) + " eps", what);
    return before_.maxCoeff() < 1e100;
  }

  void report(const std::string& why, const std::string& what) {
    to_.found.push_back("seed " + std::to_string(seed_) + ", step " + std::to_string(step_) + ": " + about_ + ", " +
                        what + ": " + why);
  }

  Subject& subject_;
  Random random_;
  unsigned seed_;
  double bound_;
  Searched& to_;
  std::string about_;
  index_t step_ = 0;
  Stored<double> before_;
};

}  // namespace

void Searched::add(const Searched& other) {
  updates += other.updates;
  downdates += other.downdates;
  mixed += other.mixed;
  insertions += other.insertions;
  deletions += other.deletions;
  solutions += other.solutions;
  not_definite += other.not_definite;
  worst = std::max(worst, other.worst);
  found.insert(found.end(), other.found.begin(), other.found.end());
}

std::string Searched::text() const {
  char line[300];
  std::snprintf(line, sizeof line,
                "%td operations (%td updates, %td downdates, %td mixed, %td insertions, %td deletions, %td solutions; "
                "%td not definite): worst %.3g eps, %zu beyond the bound\n",
                all(), updates, downdates, mixed, insertions, deletions, solutions, not_definite, worst, found.size());
  std::string all_of_it;
  for (const std::string& one : found) all_of_it += one + "\n";
  return all_of_it + line;
}

Searched search(Subject& subject, unsigned first, unsigned end, index_t operations, double bound) {
  Searched searched;
  for (unsigned seed = first; seed < end && searched.all() < operations; ++seed)
    Sequence(subject, seed, bound, searched).run(operations - searched.all());
  return searched;
}

}  // namespace gpucholmod::test
