#include <gtest/gtest.h>

#include <Eigen/Cholesky>

#include "factor_call.h"

/// Modifications by columns of both signs, and scaling, of a factor in the memory of a GPU or on its way through it.
namespace gpucholmod::test {
namespace {

/// A factor R, columns V, the last `removed` of which are taken away, and the scale of the result.
struct Case {
  Doubles R, V;
  index_t removed;
  double scale;
};

Case mixed(index_t n, index_t k, double scale, Precision precision) {
  Case c{in(precision, example(n)), in(precision, Random(5).normal(n, k).cast<double>() * 0.02), k / 2, scale};
  return c;
}

/// Returns ||R~'R~ - scale^2 (A + V+V+' - V-V-')||_1 / (eps scale^2 (||A||_1 + ||VV'||_1)) of a result X = R~.
double residual(const Case& c, const Doubles& X, double eps) {
  const auto norm = [](const Doubles& M) { return M.cwiseAbs().colwise().sum().maxCoeff(); };
  const index_t added = c.V.cols() - c.removed;
  const Doubles up = c.V.leftCols(added), down = c.V.rightCols(c.removed), A = c.R.transpose() * c.R;
  const double square = c.scale * c.scale;
  return norm(X.transpose() * X - square * (A + up * up.transpose() - down * down.transpose())) /
         (eps * square * (norm(A) + norm(c.V * c.V.transpose())));
}

Task asked(const HeldFactor& F, const Case& c, Launch launch = Launch::automatic) {
  Task t = task(F, c.V.cols(), Sign::update);
  t.removed = c.removed;
  t.scale = c.scale;
  t.launch = launch;
  return t;
}

TEST(WeightsOnGpu, ResidualAndInPlace) {
  for (const Precision precision : precisions)
    for (const Launch launch : {Launch::persistent, Launch::stepwise})
      for (const index_t n : {1, 130, 500})
        for (const index_t k : {1, 2, 16, 70}) {
          const Case c = mixed(n, k, k == 2 ? 1 : 0.995, precision);
          const Factor F = upload(c.R, precision);
          Work work;
          const Factor G = modified(*F, c.V, asked(*F, c, launch), work);
          ASSERT_TRUE(G) << work.pivot;
          EXPECT_TRUE(same_bits(download(*F), c.R));
          EXPECT_LT(residual(c, download(*G), epsilon(precision)), 40) << n << " " << k;
          EXPECT_EQ(modify(*F, c.V, asked(*F, c, launch)).pivot, -1);
          EXPECT_TRUE(same_bits(download(*F), download(*G))) << n << " " << k;
        }
}

/// Checks 16 added and 16 removed columns, in one pass if the GPU has passes so wide. They take away up to nearly all
/// that is there, so that row blocks are rejected and segments end early.
TEST(WeightsOnGpu, BothSignsInOnePass) {
  int refused = 0;
  for (const index_t n : {300, 1000})
    for (const double size : {1.0, 100.0})
      for (const double gap : {0.5, 1e-6})
        for (const Precision precision : precisions) {
          if (precision == Precision::single && gap < 0.1) continue;
          Random random(6);
          Case c{in(precision, example(n)), Doubles(n, 32), 16, 1};
          const Doubles up = random.normal(n, 16).cast<double>() * (size / std::sqrt(n));
          const Doubles F = Eigen::LLT<Doubles>(c.R.transpose() * c.R + up * up.transpose()).matrixU();
          const Doubles P = orthonormal(random.normal(n, 16)).cast<double>();
          c.V << up, std::sqrt(1 - gap) * (F.transpose() * P);
          c.V = in(precision, c.V);
          const Factor R = upload(c.R, precision);
          Work work;
          const Factor G = modified(*R, c.V, asked(*R, c), work);
          ASSERT_TRUE(G) << work.pivot;
          EXPECT_LT(residual(c, download(*G), epsilon(precision)), 40) << n << " " << size << " " << gap;
          EXPECT_EQ(passes(work, n), widest_pass(precision) == 32 ? 1 : 2);
          refused += work.fallbacks + work.rescalings;
        }
  EXPECT_GT(refused, 0);
}

/// Checks that the identity behind row n stays, however often the factor is scaled, and that powers of four change no
/// bit.
TEST(WeightsOnGpu, ScaledOverAndOver) {
  for (const Launch launch : {Launch::persistent, Launch::stepwise}) {
    Case c = mixed(130, 9, 0.25, Precision::double_);
    c.V *= 0.1;  // small enough for 300 modifications
    Case whole = c;
    const Factor F = upload(c.R), G = upload(c.R);
    whole.scale = 1;
    for (int i = 0; i < 300; ++i) {
      Case up = c;
      up.scale = i % 2 ? 4 : 0.25;
      ASSERT_EQ(modify(*F, c.V * std::pow(4.0, i % 2 ? -1 : 0), asked(*F, up, launch)).pivot, -1) << i;
      ASSERT_EQ(modify(*G, c.V, asked(*G, whole, launch)).pivot, -1);
      if (i % 2) {
        EXPECT_TRUE(same_bits(download(*F), download(*G))) << i;
      }
    }
    Work work;
    whole.scale = 1e-3;
    for (int i = 0; i < 150; ++i)
      ASSERT_EQ(modify(*F, Doubles::Zero(130, 1), asked(*F, {c.R, Doubles::Zero(130, 1), 0, 1e-2}, launch)).pivot, -1);
    EXPECT_LT((download(*F) * 1e300 / download(*G).norm() - download(*G) / download(*G).norm()).norm(), 1e-12);
  }
}

TEST(WeightsOnGpu, OnlyTheFinalMatrixCounts) {
  const Doubles R = example(300);
  for (const bool in_place : {false, true}) {
    Case c{R, Doubles(300, 2), 1, 1};
    c.V.col(0) = R.row(200).transpose() * 2;
    c.V.col(1) = R.row(200).transpose() * 1.5;
    const Factor F = upload(R);
    if (in_place) {
      EXPECT_EQ(modify(*F, c.V, asked(*F, c)).pivot, -1);
      EXPECT_LT(residual(c, download(*F), epsilon(Precision::double_)), 40);
    } else {
      Work work;
      c.V.col(0) *= 0.25;
      EXPECT_FALSE(modified(*F, c.V, asked(*F, c), work));
      EXPECT_EQ(work.pivot, 200);
      EXPECT_TRUE(same_bits(download(*F), R));
    }
  }
}

TEST(WeightsOnGpu, NoColumnsLeaveTheScale) {
  const Case c{example(200), Doubles(200, 0), 0, 0.5};
  for (const Precision precision : precisions) {
    const Factor F = upload(in(precision, c.R), precision);
    Work work;
    const Factor G = modified(*F, c.V, asked(*F, c), work);
    EXPECT_TRUE(same_bits(download(*G), Doubles(in(precision, c.R) * 0.5)));
    modify(*F, c.V, asked(*F, c));
    EXPECT_TRUE(same_bits(download(*F), download(*G)));
  }
}

/// Checks the residual of the stream method, and that its bits do not depend on the device memory.
TEST(WeightsOnGpu, TheStreamMethod) {
  for (const index_t k : {2, 16, 70}) {
    Case c = mixed(700, k, 0.995, Precision::double_);
    Request request;
    request.backend = Backend::cuda;
    request.method = Method::stream;
    request.n = 700;
    request.k = k;
    request.removed = c.removed;
    request.scale = c.scale;
    request.threads = 3;
    Doubles out[2] = {Doubles::Zero(700, 700), Doubles::Zero(700, 700)};
    for (int i = 0; i < 2; ++i) {
      request.device_memory = i == 0 ? 1e12 : 5e6;
      EXPECT_EQ(modify(Place<double>::memory(c.R.data(), out[i].data()), c.V.data(), request, no_poll).pivot, -1);
    }
    EXPECT_TRUE(same_bits(out[0], out[1]));
    c.V /= c.scale;  // modify() scales A alone
    EXPECT_LT(residual(c, out[0], epsilon(Precision::double_)), 40) << k;
  }
}

/// Checks that right-hand sides agree with those of the CPU's Householder steps, on a factor that stays on the GPU and
/// on one that passes through it.
TEST(RightSidesOnGpu, AsOnTheCpu) {
  for (const Precision precision : precisions)
    for (const index_t n : {1, 130, 700})
      for (const index_t k : {1, 16, 70})
        for (const index_t m : {1, 150})
          for (const double size : {1.0, 60.0}) {
            if (size > 1 && k == 70) continue;
            Case c = mixed(n, k, 0.995, precision);
            if (size > 1) {
              c.removed = 0;
              c.V *= size;
            }
            const Doubles z = in(precision, Random(6).normal(n, m).cast<double>()),
                          Y = in(precision, Random(7).normal(m, k).cast<double>());
            const auto asked_of = [&](Backend backend, Method method) {
              Request request;
              request.backend = backend;
              request.method = method;
              request.precision = precision;
              request.n = n;
              request.k = k;
              request.removed = c.removed;
              request.scale = c.scale;
              request.threads = 2;
              request.sides = std::make_shared<OwnedRightHandSides>();
              request.sides->m = m;
              request.sides->z.assign(z.data(), z.data() + z.size());
              request.sides->Y.assign(Y.data(), Y.data() + Y.size());
              request.sides->rss.assign(size_t(m), 1e3);
              return request;
            };
            Doubles out = Doubles::Zero(n, n);
            const Request expected = asked_of(Backend::cpu, Method::blocked);
            ASSERT_EQ(modify(Place<double>::memory(c.R.data(), out.data()), c.V.data(), expected, no_poll).pivot, -1);
            const auto agrees = [&](const Request& request, const char* name) {
              const double eps = epsilon(precision);
              double top = 0, worst = 0, rss = 0;
              for (size_t i = 0; i < request.sides->z.size(); ++i) {
                top = std::max(top, std::abs(expected.sides->z[i]));
                worst = std::max(worst, std::abs(request.sides->z[i] - expected.sides->z[i]));
              }
              for (size_t j = 0; j < size_t(m); ++j)
                rss = std::max(rss, std::abs(request.sides->rss[j] - expected.sides->rss[j]) / expected.sides->rss[j]);
              EXPECT_LT(worst, 4000 * eps * top) << name << " " << n << " " << k << " " << m << " " << size;
              EXPECT_LT(rss, 4000 * eps) << name << " " << n << " " << k << " " << m << " " << size;
            };
            for (const Method method : {Method::stream, Method::resident}) {
              const Request request = asked_of(Backend::cuda, method);
              ASSERT_EQ(modify(Place<double>::memory(c.R.data(), out.data()), c.V.data(), request, no_poll).pivot, -1);
              agrees(request, "stream");
            }
            for (const Method method : {Method::persistent, Method::stepwise})
              for (const bool in_place : {false, true}) {
                const Factor F = upload(c.R, precision);
                std::unique_ptr<HeldFactor> made;
                std::atomic<bool> begun{false};
                const Request request = asked_of(Backend::cuda, method);
                ASSERT_EQ(
                    modify(Place<double>::held(*F, in_place ? nullptr : &made, begun), c.V.data(), request, no_poll)
                        .pivot,
                    -1);
                agrees(request, method == Method::persistent ? "persistent" : "stepwise");
              }
          }
}

}  // namespace
}  // namespace gpucholmod::test
