#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <stdexcept>

#include "call.h"
#include "cpu/host_batch.h"
#include "families.h"

/// Batches of small factors for tests, and calls that modify them in any memory.
namespace gpucholmod::test {

using Doubles = Stored<double>;
using Pivots = std::vector<index_t>;

/// Holds the members of a batch side by side: R (n x n x b), with NaN below the diagonal, which must not be read, and V
/// (n x k x b).
struct Batch {
  index_t n, k, b;
  std::vector<double> R, V, weights, scale;
  BatchTask task;

  explicit Batch(const std::vector<Problem<double>>& members)
      : n(members[0].R.cols()), k(members[0].V.cols()), b(index_t(members.size())) {
    for (const Problem<double>& p : members) {
      Doubles one = Doubles::Constant(n, n, std::numeric_limits<double>::quiet_NaN());
      one.triangularView<Eigen::Upper>() = p.R;
      R.insert(R.end(), one.data(), one.data() + n * n);
      V.insert(V.end(), p.V.data(), p.V.data() + n * k);
      weights.insert(weights.end(), k, p.sign == Sign::update ? 1 : -1);
    }
    task.k = k;
    task.common_weights = false;
    task.threads = 1;
  }
  const BatchTask& given() {
    task.weights = weights.data();
    task.scale = scale.empty() ? nullptr : scale.data();
    task.common_scale = scale.size() == 1;
    return task;
  }
  Doubles factor(index_t m) const {
    Doubles out = Eigen::Map<const Doubles>(R.data() + m * n * n, n, n);
    return out.triangularView<Eigen::Upper>();
  }
  std::unique_ptr<HeldBatch> hold(Precision precision) const {
    return cpu::hold_batch(R.data(), n, b, Uplo::upper, precision, cpu::ordinary_memory);
  }

  /// Returns the first pivot at which R'R + V diag(w) V' of member m is not positive definite, or -1.
  index_t indefinite_from(index_t m) const {
    const Matrix columns = Eigen::Map<const Doubles>(V.data() + m * n * k, n, k).cast<real>();
    Matrix target = gram(factor(m));
    for (index_t q = 0; q < k; ++q) target += real(weights[q + m * k]) * (columns.col(q) * columns.col(q).transpose());
    return first_indefinite(target);
  }

  /// Returns the backward error of the factor `made` of member m, in long double:
  ///
  ///   ||R~'R~ - (scale R'R + V diag(w) V')||_1 / (eps (||scale R'R||_1 + ||V diag(|w|) V'||_1)).
  double units(index_t m, const Doubles& made, double eps) const {
    const real s = scale.empty() ? 1 : scale[scale.size() == 1 ? 0 : m];
    Matrix target = s * gram(factor(m));
    real size = norm_1(target);
    const Matrix columns = Eigen::Map<const Doubles>(V.data() + m * n * k, n, k).cast<real>();
    Matrix all = Matrix::Zero(n, n);
    for (index_t q = 0; q < k; ++q) {
      const real w = weights[q + m * k];
      const Matrix square = columns.col(q) * columns.col(q).transpose();
      target += w * square;
      all += std::abs(w) * square;
    }
    return made.allFinite() ? double(norm_1(gram(made) - target) / (eps * (size + norm_1(all)))) : INFINITY;
  }
};

/// Returns the factors of a batch, n x n x b.
inline std::vector<double> numbers(const HeldBatch& batch, Uplo uplo = Uplo::upper) {
  std::vector<double> out(batch.order() * batch.order() * batch.count(), NAN);
  batch.download(uplo, out.data());
  return out;
}
inline Doubles member(const std::vector<double>& all, index_t n, index_t m) {
  return Eigen::Map<const Doubles>(all.data() + m * n * n, n, n);
}

struct Made {
  std::vector<double> R;
  Pivots pivots;
};
enum class How { in_place, made, scattered };

/// Modifies a batch that is kept, in place (How::in_place) or into a new batch (How::made).
inline Made modified(Batch& batch, How how, std::unique_ptr<HeldBatch> held) {
  Made result;
  std::atomic<bool> begun{false};
  std::unique_ptr<HeldBatch> made;
  held->modify(batch.V.data(), batch.given(), how == How::made ? &made : nullptr, result.pivots, [](double) {}, begun);
  if (how == How::made || !held->on_gpu()) { EXPECT_EQ(begun, how == How::in_place); }
  if (how == How::made && !made) throw std::runtime_error("a member has failed");
  result.R = numbers(how == How::made ? *made : *held);
  return result;
}

inline Made modified(Batch& batch, Precision precision, How how) {
  if (how != How::scattered) return modified(batch, how, batch.hold(precision));
  Made result;
  cpu::ScatteredBatch all{batch.n, Uplo::upper, precision, {}};
  result.R.assign(batch.n * batch.n * batch.b, NAN);
  for (index_t m = 0, size = batch.n * batch.n; m < batch.b; ++m)
    all.members.push_back(
        {batch.R.data() + m * size, batch.given().V_of(batch.V.data(), batch.n, m), result.R.data() + m * size,
         batch.task.sides.of(batch.n, batch.k, m)});
  cpu::modify_scattered(all, batch.given(), result.pivots, [](double) {});
  return result;
}

inline bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

inline std::vector<Problem<double>> all_families(index_t n, index_t k, Precision precision, unsigned seed) {
  const Level level{epsilon(precision)};
  Random random(seed);
  std::vector<Problem<double>> members;
  for (const Family& family : families)
    for (const Sign sign : signs)
      members.push_back(family.make(sign, family.factor(n, level, random), k, level, random));
  for (const Case& one : cases)
    if (n > 64) members.push_back(one.make(n, k, level, random));
  for (Problem<double>& p : members)
    if (precision == Precision::single)
      p = {p.sign, p.R.cast<float>().cast<double>(), p.V.cast<float>().cast<double>()};
  return members;
}

/// Returns a batch with weights of both signs, in another order in every member, and with scales. The weights span 24
/// powers of ten, 8 in single precision.
inline Batch weighted_and_scaled(index_t n, index_t k, Precision precision) {
  const double widest = precision == Precision::single ? 4 : 12;
  Random random(8);
  std::vector<Problem<double>> members;
  for (int i = 0; i < 19; ++i) {
    const Matrix R = well_conditioned(n, random);  // before V: the compiler may evaluate arguments in any order
    members.push_back(problem(Sign::update, R, random.normal(n, k) / std::sqrt(real(n))));
  }
  Batch batch(members);
  for (index_t m = 0; m < batch.b; ++m) {
    batch.scale.push_back(m % 3 == 0 ? 1 : 0.5 + double(random.uniform()));
    const Doubles P = members[m].R.transpose().triangularView<Eigen::Lower>().solve(members[m].V);
    for (index_t q = 0; q < k; ++q) {
      const double w = std::pow(10, widest * (2 * double(random.uniform()) - 1));
      // All k columns together take away at most A / 10; scale A is A / 2 or more.
      const double removed = std::min(w, 0.1 / (double(k) * P.col(q).squaredNorm()));
      batch.weights[q + m * k] = (q + m) % 4 == 0 ? -removed : (q + m) % 7 == 0 ? 0 : w;
    }
  }
  return batch;
}

/// Returns 21 downdates. In every fourth of them the last column of V is 1.01 times a row of R, and the downdate fails.
/// Appends to `expected` the pivot that fails in each member, or -1.
inline std::vector<Problem<double>> some_that_fail(index_t n, index_t k, Pivots& expected) {
  Random random(21);
  std::vector<Problem<double>> members;
  for (int i = 0; i < 21; ++i) {
    const Matrix R = well_conditioned(n, random);
    Matrix V = random.normal(n, k) / (10 * std::sqrt(real(n * k)));
    if (i % 4 == 1) V.col(k - 1) = R.row(i % n).transpose() * 1.01L;
    members.push_back(problem(Sign::downdate, R, V));
    const Matrix target =
        gram(members.back().R) - product(members.back().V.cast<real>(), members.back().V.cast<real>().transpose());
    expected.push_back(first_indefinite(target));
  }
  return members;
}

}  // namespace gpucholmod::test
