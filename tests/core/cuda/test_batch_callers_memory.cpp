#include <cmath>

#include "batch_twins.h"
#include "hold.h"

/// Batches on a GPU, in calls whose numbers are in the memory of that GPU: results are the same as with numbers in host
/// memory.
namespace gpucholmod::test {
namespace {

class CudaBatchMemory : public testing::TestWithParam<Precision> {
 protected:
  const Precision precision = GetParam();

  /// Updates by columns of doubles and floats, without gaps and with gaps.
  void update_every_way(const Batch& of, const gpucholmod_batch_modification& what,
                        const std::vector<ptrdiff_t>& orders = {}) {
    for (const index_t gap : {0, 3}) {
      Twins twins(of, precision, orders);
      const std::vector<double> before = twins.numbers(twins.there());
      for (int repeat = 0; repeat < 2; ++repeat) {
        const int code =
            repeat ? twins.update(what, columns<float>(of), gap) : twins.update(what, columns<double>(of), gap);
        EXPECT_TRUE(code == GPUCHOLMOD_OK || code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) << twins.status.message;
        twins.expect_same_factors();
      }
      EXPECT_FALSE(same(twins.numbers(twins.there()), before));
    }
  }
};

TEST_P(CudaBatchMemory, EveryFamilyIsUpdated) {
  for (const index_t n : {1, 5, 33, 70})
    for (const index_t k : {1, 4, 16, 19}) {
      SCOPED_TRACE(n);
      const Batch batch(all_families(n, k, precision, 17));
      update_every_way(batch, modification(batch, true));
    }
}

TEST_P(CudaBatchMemory, WeightsAndScales) {
  for (const index_t k : {1, 3, 17}) {
    const Batch batch = weighted_and_scaled(40, k, precision);
    update_every_way(batch, modification(batch, false));
    gpucholmod_batch_modification what = modification(batch, false);
    const std::vector<double> ones(std::size_t(batch.b), 1);
    what.scales = ones.data();
    update_every_way(batch, what);
    what.weights = nullptr;
    update_every_way(batch, what);
    what.scales = batch.scale.data();
    update_every_way(batch, what);
    std::vector<double> weights(std::size_t(k), 0.5);
    weights[0] = -1e-3;
    what.weights = weights.data();
    what.weights_count = k;
    update_every_way(batch, what);
  }
}

TEST_P(CudaBatchMemory, OneVForAll) {
  const Batch batch = weighted_and_scaled(12, 3, precision);
  Twins twins(batch, precision);
  const gpucholmod_batch_modification what{3, {}, nullptr, 0, nullptr, 0, nullptr};
  EXPECT_EQ(twins.update(what, Stored<double>(columns<double>(batch).leftCols(3)), 1), GPUCHOLMOD_OK);
  twins.expect_same_factors();
  EXPECT_EQ(twins.update(what, Stored<double>(columns<double>(batch).leftCols(4))), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(twins.status.argument, "what->V");
}

TEST_P(CudaBatchMemory, MembersThatFail) {
  for (const index_t n : {3, 70})
    for (const index_t k : {1, 6, 33}) {
      Pivots expected;
      const Batch batch(some_that_fail(n, k, expected));
      for (index_t& pivot : expected) ++pivot;
      for (const bool independent : {false, true}) {
        Twins twins(batch, precision);
        const std::vector<double> before = twins.numbers(twins.there());
        EXPECT_EQ(twins.update(modification(batch, independent), columns<double>(batch)),
                  GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
        EXPECT_EQ(twins.pivots, expected) << n << ", " << k;
        twins.expect_same_factors();
        EXPECT_EQ(same(twins.numbers(twins.there()), before), !independent);
      }
    }
}

/// Checks numbers that the host has to look at: numbers near the ends of the range, and NaN.
TEST_P(CudaBatchMemory, NumbersThatNeedCare) {
  const double largest = precision == Precision::single ? 1e25 : 1e220;
  Batch batch(all_families(20, 3, precision, 3));
  for (index_t m = 0; m < batch.b; m += 2) {
    const double size = m % 4 ? largest : 1 / largest;
    for (index_t i = 0; i < 400; ++i) batch.R[i + m * 400] *= size;
    for (index_t i = 0; i < 60; ++i) batch.V[i + m * 60] *= size;
  }
  Twins twins(batch, precision);
  EXPECT_EQ(twins.update(modification(batch, true), columns<double>(batch), 2), GPUCHOLMOD_OK);
  twins.expect_same_factors();
  const std::vector<double> before = twins.numbers(twins.there());
  batch.V[60 * 9 + 27] = nan("");
  for (const index_t gap : {0, 2}) {
    EXPECT_EQ(twins.update(modification(batch, true), columns<double>(batch), gap), GPUCHOLMOD_NOT_FINITE);
    EXPECT_EQ(twins.status.member, 10);
    EXPECT_EQ(twins.status.row, 8);
    EXPECT_EQ(twins.status.col, 2);
    EXPECT_STREQ(twins.status.argument, "what->V");
  }
  batch.V[60 * 9 + 27] = 1e300;
  EXPECT_EQ(twins.update(modification(batch, true), columns<double>(batch)),
            precision == Precision::single ? GPUCHOLMOD_OVERFLOW : GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  if (precision == Precision::single) { EXPECT_TRUE(same(twins.numbers(twins.there()), before)); }
  twins.expect_same_factors();
}

TEST_P(CudaBatchMemory, MembersOfSeveralOrders) {
  Batch batch(all_families(9, 2, precision, 3));
  std::fill(batch.weights.begin(), batch.weights.end(), 1);
  std::vector<ptrdiff_t> orders;
  for (index_t m = 0; m < batch.b; ++m) {
    orders.push_back(9 - m % 4);
    for (index_t q = 0; q < 2; ++q) std::fill_n(batch.V.data() + (2 * m + q) * 9 + orders.back(), m % 4, 0);
  }
  update_every_way(batch, modification(batch, false), orders);
  const std::vector<double> scales(std::size_t(batch.b), 0.5);
  gpucholmod_batch_modification what = modification(batch, false);
  what.weights = nullptr;
  what.scales = scales.data();
  update_every_way(batch, what, orders);
  batch.V[18 * 3 + 8] = 1;
  Twins twins(batch, precision, orders);
  EXPECT_EQ(twins.update(modification(batch, false), columns<double>(batch)), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_EQ(twins.status.member, 4);
  EXPECT_EQ(twins.status.row, 9);
  EXPECT_EQ(twins.solve(GPUCHOLMOD_A, columns<double>(batch)), GPUCHOLMOD_OK);
  EXPECT_TRUE(twins.changed);
}

/// Checks members that are factors of their own.
TEST_P(CudaBatchMemory, LargeMembers) {
  Random random(4);
  std::vector<Problem<double>> members;
  for (const Sign sign : signs)
    members.push_back(problem(sign, well_conditioned(1030, random), random.normal(1030, 3) / 3000));
  const Batch batch(members);
  update_every_way(batch, modification(batch, false));
  Twins twins(batch, precision);
  EXPECT_EQ(twins.solve(GPUCHOLMOD_A, columns<double>(batch), 1), GPUCHOLMOD_OK);
  EXPECT_TRUE(twins.changed);
}

TEST_P(CudaBatchMemory, IsSolvedWith) {
  for (const index_t n : {1, 32, 129})
    for (const index_t k : {1, 7}) {
      const Batch batch(all_families(n, k, Precision::single, 5));
      Twins twins(batch, precision);
      for (const int system : {GPUCHOLMOD_A, GPUCHOLMOD_R_TRANSPOSED, GPUCHOLMOD_R})
        for (const index_t gap : {0, 3}) {
          EXPECT_EQ(twins.solve(system, columns<double>(batch), gap), GPUCHOLMOD_OK);
          EXPECT_TRUE(twins.changed);
          const int code = twins.solve(system, columns<float>(batch), gap);
          EXPECT_EQ(twins.changed, code == GPUCHOLMOD_OK) << twins.status.message;
        }
      const Batch none(all_families(n, 1, Precision::single, 5));
      EXPECT_EQ(twins.solve(GPUCHOLMOD_A, Stored<double>(n, 0)), GPUCHOLMOD_OK);
    }
}

/// Checks that the error names the first solution that does not fit a float, and that the right-hand sides stay.
TEST_P(CudaBatchMemory, SolutionsThatAreTooLarge) {
  const std::vector<Problem<double>> members(5, problem(Sign::update, Matrix::Identity(4, 4) * 1e-12L, Matrix(4, 0)));
  Twins twins(Batch(members), precision);
  Stored<float> B = Stored<float>::Constant(4, 15, 1);
  B(2, 7) = B(1, 8) = 1e20f;
  B(0, 3) = std::numeric_limits<float>::infinity();
  for (const index_t gap : {0, 3}) {
    EXPECT_EQ(twins.solve(GPUCHOLMOD_A, B, gap), GPUCHOLMOD_OVERFLOW);
    EXPECT_EQ(twins.status.row, 3);
    EXPECT_EQ(twins.status.col, 8);
    EXPECT_FALSE(twins.changed);
  }
  B(2, 7) = B(1, 8) = B(0, 3) = 1;
  EXPECT_EQ(twins.solve(GPUCHOLMOD_A, B), GPUCHOLMOD_OK);
  EXPECT_TRUE(twins.changed);
}

/// Checks solutions with modified members if V, right-hand sides and solutions are on the GPU.
TEST_P(CudaBatchMemory, IsSolvedWithWhenModified) {
  const Batch batch = weighted_and_scaled(20, 3, precision);
  Twins twins(batch, precision);
  const index_t m = 2, b = batch.b;
  const std::vector<float> sides(std::size_t(23 * m), 1.5);
  std::vector<double> solution(std::size_t(20 * m * b));
  const OnGpu V_there(batch.V), solution_there(solution);
  const OnGpu sides_there(sides);
  const auto results = [&](const gpucholmod_batch* of, const double* V, const float* b_of_all, double* solution) {
    std::vector<double> all(std::size_t(m * b + b));
    gpucholmod_batch_modification what = modification(batch, false);
    what.V = matrix(V, 20, 3 * b, 20);
    const gpucholmod_batch_systems wanted{m,          matrix(b_of_all, 20, m, 23), matrix(solution, 20, m * b, 20),
                                          all.data(), all.data() + m * b,          nullptr};
    gpucholmod_status status;
    EXPECT_EQ(gpucholmod_batch_solve_modified(of, &what, &wanted, nullptr, &status), GPUCHOLMOD_OK) << status.message;
    return all;
  };
  const std::vector<double> expected = results(twins.here(), batch.V.data(), sides.data(), solution.data());
  EXPECT_TRUE(same(results(twins.there(), V_there.data(), sides_there.data(), solution_there.data()), expected));
  EXPECT_TRUE(same(solution_there.get(), solution));
  for (const double result : {expected.front(), expected.back(), solution.back()}) EXPECT_NE(result, 0);
}

/// Checks right-hand sides that are modified along: z, with an unused row between columns, Y and rss.
TEST_P(CudaBatchMemory, TakesRightHandSidesAlong) {
  const Batch batch = weighted_and_scaled(20, 3, precision);
  Twins twins(batch, precision);
  const index_t columns = 2 * batch.b;
  Random random(5);
  const auto some = [&](index_t count) {
    return numbers_of(Doubles(random.normal(count, 1).cast<float>().cast<double>()));
  };
  std::vector<double> z = some(21 * columns), rss(std::size_t(columns), 50);
  const std::vector<double> Y = some(3 * columns), before = z;
  const OnGpu V_there(batch.V), z_there(z), Y_there(Y), rss_there(rss);
  const auto update = [&](gpucholmod_batch* held, const double* V, double* z, const double* Y, double* rss) {
    const gpucholmod_right_sides sides{matrix(z, 20, columns, 21), matrix(Y, 3, columns, 3), rss};
    gpucholmod_batch_modification what = modification(batch, false);
    what.V = matrix(V, 20, 3 * batch.b, 20);
    what.sides = &sides;
    gpucholmod_status status;
    EXPECT_EQ(gpucholmod_batch_update(held, &what, nullptr, nullptr, &status), GPUCHOLMOD_OK) << status.message;
  };
  update(twins.here(), batch.V.data(), z.data(), Y.data(), rss.data());
  update(twins.there(), V_there.data(), z_there.data(), Y_there.data(), rss_there.data());
  twins.expect_same_factors();
  EXPECT_TRUE(same(z_there.get(), z));
  EXPECT_TRUE(same(rss_there.get(), rss));
  EXPECT_FALSE(same(z, before));
  EXPECT_EQ(z[20], before[20]);
}

/// Checks the insertion of rows and columns from the memory of the GPU.
TEST_P(CudaBatchMemory, RowsAreInserted) {
  const Batch batch = weighted_and_scaled(7, 2, precision);
  Twins twins(batch, precision);
  Stored<float> X = Stored<float>::Random(9, 2 * batch.b) / 10;
  for (index_t m = 0; m < batch.b; ++m) X(7, 2 * m) = X(8, 2 * m + 1) = 100;
  X(8, 7) = 0;  // of the fourth member
  const std::vector<float> numbers = spaced(X, 11);
  const OnGpu on_gpu(numbers);
  const auto insert = [&](gpucholmod_batch* to, const float* data) {
    const gpucholmod_batch_insertion what{2, matrix(data, 9, X.cols(), 11), nullptr, 0, 1, nullptr};
    Pivots pivots(std::size_t(batch.b), -7);
    EXPECT_EQ(gpucholmod_batch_insert(to, &what, pivots.data(), &twins.status), GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    EXPECT_EQ(twins.status.member, 4);
    EXPECT_EQ(gpucholmod_batch_order(to), 9);
    std::vector<double> R(std::size_t(81 * batch.b));
    EXPECT_EQ(gpucholmod_batch_get(to, matrix(R.data(), 9, 9 * batch.b, 9), nullptr, nullptr), GPUCHOLMOD_OK);
    R.insert(R.end(), pivots.begin(), pivots.end());
    return R;
  };
  const std::vector<double> expected = insert(twins.here(), numbers.data());
  EXPECT_TRUE(same(insert(twins.there(), on_gpu.data()), expected));
}

/// Checks more columns than a grid has thread blocks for.
TEST_P(CudaBatchMemory, MillionsOfMembers) {
  Batch batch({problem(Sign::update, Matrix::Ones(1, 1), Matrix::Ones(1, 1))});
  batch.b = 2'200'000;
  batch.R.resize(std::size_t(batch.b));
  batch.V.resize(std::size_t(batch.b));
  for (index_t m = 0; m < batch.b; ++m) {
    batch.R[m] = 1 + double(m % 7);
    batch.V[m] = double(m % 1001) / 8;
  }
  Twins twins(batch, precision);
  const gpucholmod_batch_modification what{1, {}, nullptr, 0, nullptr, 0, nullptr};
  EXPECT_EQ(twins.update(what, columns<float>(batch)), GPUCHOLMOD_OK) << twins.status.message;
  twins.expect_same_factors();
  EXPECT_EQ(twins.solve(GPUCHOLMOD_R, columns<float>(batch)), GPUCHOLMOD_OK);
  EXPECT_TRUE(twins.changed);
}

/// Checks that a call waits for the caller's stream, in which V arrives long after the call has begun.
TEST_P(CudaBatchMemory, WaitsForTheStream) {
  const Batch batch = weighted_and_scaled(30, 2, precision);
  Twins twins(batch, precision);
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  const OnGpu<double> V(std::vector<double>(batch.V.size(), 0)), come(batch.V);
  gpucholmod_batch_modification what = modification(batch, false);
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  options.stream = stream;
  gpucholmod_status status;
  const auto update = [&](gpucholmod_batch* of, const double* V) {
    what.V = matrix(V, batch.n, batch.k * batch.b, batch.n);
    return gpucholmod_batch_update(of, &what, nullptr, &options, &status);
  };
  hold_multiprocessors(1, 0.05, stream);
  ASSERT_EQ(cudaMemcpyAsync(V.data(), come.data(), batch.V.size() * sizeof(double), cudaMemcpyDeviceToDevice, stream),
            cudaSuccess);
  EXPECT_EQ(update(twins.there(), V.data()), GPUCHOLMOD_OK) << status.message;
  EXPECT_EQ(update(twins.here(), batch.V.data()), GPUCHOLMOD_OK);
  twins.expect_same_factors();

  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  EXPECT_EQ(update(twins.there(), V.data()), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(status.argument, "options->stream");
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  twins.expect_same_factors();
  cudaStreamDestroy(stream);
}

/// Checks that numbers on another GPU are refused.
TEST_P(CudaBatchMemory, AnotherGpu) {
  int devices = 0;
  ASSERT_EQ(cudaGetDeviceCount(&devices), cudaSuccess);
  if (devices < 2) GTEST_SKIP() << "there is one GPU";
  const Batch batch = weighted_and_scaled(6, 2, precision);
  Twins twins(batch, precision);
  ASSERT_EQ(cudaSetDevice(1), cudaSuccess);
  const OnGpu<double> V(batch.V);
  ASSERT_EQ(cudaSetDevice(0), cudaSuccess);
  gpucholmod_batch_modification what = modification(batch, false);
  what.V = matrix(static_cast<const double*>(V.data()), batch.n, batch.k * batch.b, batch.n);
  gpucholmod_status status;
  EXPECT_EQ(gpucholmod_batch_update(twins.there(), &what, nullptr, nullptr, &status), GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(status.argument, "what->V");
  EXPECT_EQ(gpucholmod_batch_solve(twins.there(), GPUCHOLMOD_A, matrix(V.data(), batch.n, batch.k * batch.b, batch.n),
                                   &status),
            GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(status.argument, "B");
  twins.expect_same_factors();
}

INSTANTIATE_TEST_SUITE_P(Each, CudaBatchMemory, testing::ValuesIn(precisions),
                         [](const auto& info) { return info.param == Precision::single ? "single" : "double"; });

}  // namespace
}  // namespace gpucholmod::test
