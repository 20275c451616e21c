#include "modify/solve_modified.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>
#include <string>
#include <utility>

#include "base/factor_io.h"
#include "base/signed_columns.h"
#include "base/tuning.h"
#include "cpu/blas.h"
#include "cpu/capacitance.h"
#include "modify/modify.h"

namespace gpucholmod {
namespace {

/// The bounds of inst/design/fan-out.md, within which the factor of A_j is not needed: p v <= most_growth hypot(a, v),
/// p and v being norms of P and V_j |W_j|^1/2 / scale_j, and a not above the norm of R; and a smallest pivot of at
/// least least_pivot sqrt(n + k) eps (1 + p^2).
constexpr double most_growth = 6, least_pivot = 4096;

/// Returns f(). Adds the member that an error of f() concerns to the error.
template <class F>
auto of_member(index_t j, F&& f) {
  try {
    return f();
  } catch (const Error& error) {
    Error::Fields fields = error.fields();
    fields.emplace_back("member", double(j + 1));
    throw Error(error.code(), std::string(error.what()) + " (modification " + std::to_string(j + 1) + ")",
                std::move(fields));
  }
}

/// Runs one call of solve_modified().
class Solving {
 public:
  Solving(HeldFactor& R, const ModifiedSystems& systems, const Poll& poll)
      : R_(R), given_(systems), poll_(poll), n_(R.order()), f_(index_t(systems.k.size())), start_(f_ + 1),
        eps_(R.precision() == Precision::single ? 0x1p-23 : 0x1p-52), outcome_{std::vector<index_t>(f_, -1),
                                                                               std::vector<char>(f_, 0)} {
    for (index_t j = 0; j < f_; ++j) start_[j + 1] = start_[j] + given_.k[j];
  }

  ModifiedOutcome run() {
    look_at_R();
    if (given_.quadratic) std::fill_n(given_.quadratic, given_.m * f_, 0.0);
    for (index_t j = 0; j < given_.m * (given_.own_b ? f_ : 1); ++j) largest_of("b", given_.b + j * n_, n_, 0, j);
    if (solves() && !given_.own_b) {
      common_.assign(given_.b, given_.b + n_ * given_.m);
      substitute(TriangularSolve::forward, common_.data(), given_.m);
    }
    for (index_t first = 0; first < f_;) {
      const index_t last = end_of_block(first);
      do_block(first, last);
      first = last;
    }
    return std::move(outcome_);
  }

 private:
  /// Describes the k columns of P of a member, from `first` on, of which the last `removed` are taken away; there are
  /// none if V_j has more than n columns. v: the norm of these columns before the substitution.
  struct Member {
    index_t first = 0, k = 0, removed = 0;
    double v = 0;
    bool by_factor = false;
  };

  bool solves() const { return (given_.solution || given_.quadratic) && given_.m > 0; }
  double weight(index_t column) const {
    return given_.weights ? given_.weights[column] : given_.asked.downdate ? -1 : 1;
  }
  void substitute(TriangularSolve which, double* B, index_t m) const {
    if (n_ > 0 && m > 0) R_.solve(which, B, m);
  }

  void look_at_R() {
    std::vector<double> diagonal(n_);
    R_.diagonal(diagonal.data());
    for (const double r : diagonal) {
      logdet_ += 2 * std::log(r);
      norm_ = std::max(norm_, r);
    }
    const double trace = R_.trace();
    if (n_ > 0 && std::isfinite(trace)) norm_ = std::max(norm_, std::sqrt(trace / double(n_)));
  }

  /// Returns the end of a block that begins at `first`: as many members as there is room for, but at least one.
  index_t end_of_block(index_t first) const {
    const index_t most = std::max(tuning::members_columns, tuning::members_block / std::max<index_t>(n_, 1));
    index_t last = first;
    for (index_t columns = 0; last < f_; ++last) {
      columns += std::min(given_.k[last], n_) + (solves() ? given_.m : 0) + 1;
      if (last > first && columns > most) break;
    }
    return last;
  }

  /// Appends the columns of V_j |W_j|^1/2 / scale_j to the `columns` columns of P, in the order of modify(): columns
  /// that are added, then columns that are taken away.
  Member pack(index_t j, index_t& columns) {
    Member member;
    member.first = columns;
    double largest = 0;
    for (index_t q = start_[j]; q < start_[j + 1]; ++q)
      largest =
          std::max(largest, of_member(j, [&] { return largest_of("V", given_.V + q * n_, n_, 0, q - start_[j]); }));
    member.by_factor = given_.k[j] > n_;  // the factor takes less work then
    if (member.by_factor) return member;
    each_signed_column(given_.k[j], [&](index_t q) { return weight(start_[j] + q); }, [&](index_t q, double w) {
      if (w == 0) return;
      const double by = multiple_of_column(w, given_.scale[j]);
      const double* const from = given_.V + (start_[j] + q) * n_;
      double* const to = P_.get() + columns++ * n_;
      for (index_t i = 0; i < n_; ++i) to[i] = by * from[i];
      ++member.k;
      member.removed += w < 0;
    });
    const double squares = sum_of_squares(P_.get() + member.first * n_, member.k * n_);
    member.by_factor = member.k > 0 && largest > 0 && !in_range(squares);
    member.v = std::sqrt(squares);
    return member;
  }

  void do_block(index_t first, index_t last) {
    const index_t m = given_.m, count = last - first;
    index_t columns = 0;
    for (index_t j = first; j < last; ++j) columns += given_.k[j] > n_ ? 0 : given_.k[j];
    if (n_ * columns > room_) P_.reset(new double[room_ = n_ * columns]);
    columns = 0;
    std::vector<Member> members;
    for (index_t j = first; j < last; ++j) members.push_back(pack(j, columns));
    substitute(TriangularSolve::forward, P_.get(), columns);

    double* Y = nullptr;
    if (solves()) {
      if (!given_.solution) Y_.resize(n_ * m * count);
      Y = given_.solution ? given_.solution + n_ * m * first : Y_.data();
      if (given_.own_b) {
        std::copy_n(given_.b + n_ * m * first, n_ * m * count, Y);
        substitute(TriangularSolve::forward, Y, m * count);
      } else {
        multiply(0, columns, common_.data(), columns);
      }
    }
    for (index_t j = first; j < last; ++j) {
      Member& member = members[j - first];
      double* const mine = Y ? Y + n_ * m * (j - first) : nullptr;
      member.by_factor = member.by_factor || !by_capacitance(j, member, columns, mine);
      outcome_.by_factor[j] = member.by_factor;
      poll_(double(first) / double(f_));
    }
    R_.any_of(outcome_.by_factor);
    for (index_t j = first; Y && j < last; ++j)
      if (outcome_.by_factor[j]) std::fill_n(Y + n_ * m * (j - first), n_ * m, 0.0);
    if (given_.solution) substitute(TriangularSolve::back, Y, m * count);
    for (index_t j = first; j < last; ++j)
      if (outcome_.by_factor[j]) by_factor(j);
  }

  /// Computes T (columns x m, leading dimension ldt), the product of these columns of P, transposed, and C.
  void multiply(index_t first, index_t columns, const double* C, index_t ldt) {
    T_.resize(ldt * given_.m);
    if (n_ > 0)
      blas::gemm(1, blas::Op::transpose, {P_.get() + first * n_, n_, columns, n_}, blas::Op::none,
                 {C, n_, given_.m, n_}, 0, {T_.data(), columns, given_.m, ldt});
  }

  /// Solves with A_j by its capacitance matrix. Returns false if the bounds do not allow it. Y (n x m) becomes the
  /// solution, but for the back substitution; columns: number of columns of P.
  bool by_capacitance(index_t j, const Member& member, index_t columns, double* Y) {
    if (!capacitance_.factorise({P_.get() + member.first * n_, n_, member.k, n_}, member.removed)) return false;
    const double p_squared = capacitance_.size();
    if (!(std::sqrt(p_squared) * member.v <= most_growth * std::hypot(norm_, member.v))) return false;
    if (!(capacitance_.least_pivot() >= least_pivot * std::sqrt(double(n_ + member.k)) * eps_ * (1 + p_squared)))
      return false;
    const double scale = given_.scale[j];
    if (given_.logdet) given_.logdet[j] = capacitance_.logdet() + logdet_ + 2 * double(n_) * std::log(scale);
    if (!Y) return true;
    const index_t m = given_.m;
    if (given_.own_b) multiply(member.first, member.k, Y, member.k);
    else std::copy(common_.begin(), common_.end(), Y);
    double* const quadratic = given_.quadratic ? given_.quadratic + j * m : nullptr;
    capacitance_.solve(Y, m, T_.data() + (given_.own_b ? 0 : member.first),
                       std::max<index_t>(given_.own_b ? member.k : columns, 1), quadratic, given_.solution != nullptr);
    for (index_t i = 0; scale != 1 && i < n_ * m; ++i) Y[i] = Y[i] / scale / scale;
    for (index_t i = 0; scale != 1 && quadratic && i < m; ++i) quadratic[i] = quadratic[i] / scale / scale;
    return true;
  }

  void by_factor(index_t j) {
    const index_t m = given_.m;
    Request asked = given_.asked;
    asked.n = n_;
    asked.k = given_.k[j];
    asked.scale = given_.scale[j];
    if (given_.weights) asked.weights.assign(given_.weights + start_[j], given_.weights + start_[j + 1]);
    asked.removed = !given_.weights && asked.downdate ? asked.k : 0;
    std::unique_ptr<HeldFactor> made;
    std::atomic<bool> begun{false};
    outcome_.pivot[j] = of_member(j, [&] {
      return modify(Place<double>::held(R_, &made, begun), given_.V + start_[j] * n_, asked,
                    [&](double share) { poll_((double(j) + share) / double(f_)); }).pivot;
    });
    if (outcome_.pivot[j] >= 0) return;
    if (given_.logdet) {
      std::vector<double> diagonal(n_);
      made->diagonal(diagonal.data());
      given_.logdet[j] = logdet_of(diagonal.data(), n_);
    }
    if (!solves() || n_ == 0) return;
    std::vector<double> own(given_.solution ? 0 : n_ * m);
    double* const X = given_.solution ? given_.solution + n_ * m * j : own.data();
    std::copy_n(given_.b + (given_.own_b ? n_ * m * j : 0), n_ * m, X);
    made->solve(TriangularSolve::forward, X, m);
    for (index_t i = 0; given_.quadratic && i < m; ++i) given_.quadratic[i + j * m] = sum_of_squares(X + i * n_, n_);
    if (given_.solution) made->solve(TriangularSolve::back, X, m);
  }

  HeldFactor& R_;
  const ModifiedSystems& given_;
  const Poll& poll_;
  index_t n_, f_;
  std::vector<index_t> start_;  ///< column of V at which each modification begins
  double eps_;
  ModifiedOutcome outcome_;
  double logdet_ = 0, norm_ = 0;  ///< log det A; a lower bound of the norm of R
  std::vector<double> common_;    ///< R'^-1 b, if all modifications have the same b
  std::unique_ptr<double[]> P_;   ///< columns of a block, room_ numbers
  index_t room_ = 0;
  std::vector<double> Y_, T_;
  cpu::Capacitance capacitance_;
};

}  // namespace

ModifiedOutcome solve_modified(HeldFactor& R, const ModifiedSystems& systems, const Poll& poll) {
  return Solving(R, systems, poll).run();
}

}  // namespace gpucholmod
