#pragma once

#include "batch_call.h"
#include "modify/batch_sides.h"

/// Right-hand sides that are modified along with a batch in any memory.
namespace gpucholmod::test {

constexpr index_t sides = 3;

/// Holds right-hand sides: z (n x sides x b), Y (k x sides x b) and the residual sums of squares rss before the
/// modification, new_z and new_rss after it.
struct Carried {
  std::vector<double> z, Y, rss, new_z, new_rss;

  Carried(const Batch& batch, Precision precision)
      : new_z(batch.n * sides * batch.b, NAN), new_rss(sides * batch.b, NAN) {
    Random random(12);
    const auto numbers = [&](index_t count) {
      const Doubles all = random.normal(count, 1).cast<double>();
      const Doubles rounded = precision == Precision::single ? Doubles(all.cast<float>().cast<double>()) : all;
      return std::vector<double>(rounded.data(), rounded.data() + count);
    };
    z = numbers(batch.n * sides * batch.b);
    Y = numbers(batch.k * sides * batch.b);
    rss.assign(sides * batch.b, 1e3);
  }
  GivenBatchSides given() { return {sides, z.data(), Y.data(), rss.data(), new_z.data(), new_rss.data()}; }
};

/// Returns the result of f(), which modifies the batch along with the right-hand sides.
template <class F>
Made modified_with_sides(Batch& batch, Carried& carried, Precision precision, F&& f) {
  batch.given();
  const CarriedSides along(carried.given(), batch.n, batch.b, precision, batch.task);
  Made made = f();
  along.settle(batch.task, made.pivots, std::vector<index_t>(batch.b, batch.n));
  batch.task.sides = {};
  return made;
}

inline Matrix part(const std::vector<double>& all, index_t rows, index_t m) {
  return Eigen::Map<const Doubles>(all.data() + m * rows * sides, rows, sides).cast<real>();
}

/// Expects R~'z~ = scale R'z + V diag(w) Y and the residual sums of squares that belong to it, for member m, up to
/// rounding errors.
inline void expect_carried(const Batch& batch, const Carried& carried, const Doubles& made, index_t m, double eps) {
  const index_t n = batch.n, k = batch.k;
  const real scale = batch.scale.empty() ? 1 : batch.scale[batch.scale.size() == 1 ? 0 : m];
  const Matrix R = batch.factor(m).cast<real>(), now = made.cast<real>(), z = part(carried.z, n, m),
               after = part(carried.new_z, n, m), Y = part(carried.Y, k, m);
  const Matrix V = Eigen::Map<const Doubles>(batch.V.data() + m * n * k, n, k).cast<real>();
  Matrix weighted = Y;
  for (index_t q = 0; q < k; ++q) weighted.row(q) *= real(batch.weights[q + m * k]);
  const Matrix error = product(now.transpose(), after) - scale * product(R.transpose(), z) - product(V, weighted);
  const real size = scale * norm_1(product(R.transpose().cwiseAbs(), z.cwiseAbs())) +
                    norm_1(product(V.cwiseAbs(), weighted.cwiseAbs())) +
                    norm_1(product(now.transpose().cwiseAbs(), after.cwiseAbs()));
  EXPECT_LT(double(norm_1(error) / (eps * size)), 40) << m;
  for (index_t s = 0; s < sides; ++s) {
    const real squares = product(Y.col(s).transpose(), weighted.col(s))(0, 0),
               there = scale * (carried.rss[s + m * sides] + z.col(s).squaredNorm());
    const real terms = there + Y.col(s).cwiseAbs().dot(weighted.col(s).cwiseAbs()) + after.col(s).squaredNorm();
    EXPECT_NEAR(carried.new_rss[s + m * sides], double(there + squares - after.col(s).squaredNorm()),
                200 * eps * double(terms))
        << m;
  }
}

}  // namespace gpucholmod::test
