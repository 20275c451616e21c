#include <gtest/gtest.h>

#include <fstream>
#include <functional>
#include <stdexcept>

#include "cuda/pool.h"
#include "factor_call.h"

/// A factor on several GPUs. If there are fewer, one GPU takes the place of all: the launches, messages and addresses
/// are the same, side by side.
namespace gpucholmod::test {
namespace {

constexpr int numbers_of_ranks[] = {2, 3};

std::unique_ptr<DeviceFactor> upload_to(const std::vector<int>& devices, const Doubles& R,
                                        Precision precision = Precision::double_) {
  return cuda::upload(stored(R, Uplo::upper).data(), R.cols(), Uplo::upper, precision, 0, devices);
}

TEST(Devices, HoldAFactor) {
  for (const int ranks : numbers_of_ranks)
    for (const Precision precision : precisions)
      for (const index_t n : sizes) {
        const Doubles R = in(precision, example(n));
        const auto F = upload_to(times(ranks), R, precision);
        const Factor one = upload(R, precision);
        EXPECT_TRUE(same_bits(download(*F), R)) << n;
        EXPECT_TRUE(same_bits(download(*F, Uplo::lower), Doubles(R.transpose()))) << n;
        EXPECT_TRUE(same_bits(download(*F->copy()), R)) << n;
        EXPECT_EQ(F->trace(), one->trace());
        Doubles d(n, 1), expected(n, 1);
        F->diagonal(d.data());
        one->diagonal(expected.data());
        EXPECT_TRUE(same_bits(d, expected));
        if (n == 0) continue;
        const std::vector<DeviceFactor::Share> shares = F->shares();
        ASSERT_EQ(shares.size(), std::size_t(ranks));
        double sum = 0;
        for (const DeviceFactor::Share& share : shares) sum += share.bytes;
        EXPECT_GE(sum, F->bytes());
        EXPECT_GT(n < 1100 || shares[1].bytes > 0, 0);
      }
}

/// Provides the upper triangle of `R`. Expects each column to be read once, in order, and not below the diagonal.
class OneReading : public Source<double> {
 public:
  explicit OneReading(std::function<double(index_t, index_t)> R) : R_(std::move(R)) {}
  const double* column(index_t j, index_t first, index_t last, double* scratch) const override {
    EXPECT_EQ(j, next_++);
    EXPECT_TRUE(first == 0 && last == j + 1);
    for (index_t i = first; i < last; ++i) scratch[i - first] = R_(i, j);
    return scratch;
  }
  index_t columns() const { return next_; }

 private:
  std::function<double(index_t, index_t)> R_;
  mutable index_t next_ = 0;
};

TEST(Devices, ReadAFactor) {
  for (const int ranks : {1, 2, 3})
    for (const Precision precision : precisions)
      for (const index_t n : {1, 129, 513, 1100}) {
        const Doubles R = in(precision, example(n));
        const OneReading source([&](index_t i, index_t j) { return R(i, j); });
        double last = 0;
        const Factor F = cuda::upload(source, n, precision, n + 5, times(ranks), [&](double done) {
          EXPECT_GT(done, last);
          last = done;
        });
        EXPECT_EQ(source.columns(), n);
        EXPECT_EQ(last, 1);
        EXPECT_EQ(F->capacity(), n + 5);
        EXPECT_TRUE(same_bits(download(*F), R)) << n;
        const Doubles V = Random(5).normal(n, 3).cast<double>();
        const Factor one = upload(R, precision);
        EXPECT_EQ(modify(*F, V, task(*F, 3, Sign::update)).pivot, -1);
        modify(*one, V, task(*one, 3, Sign::update));
        EXPECT_TRUE(same_bits(download(*F), download(*one))) << n;
      }
}

/// Checks that the upload refuses what it refuses of a matrix in memory, and that the progress function may end it.
TEST(Devices, RefuseWhatTheyRead) {
  const index_t n = 700;
  const auto refused_at = [&](index_t row, index_t col, double value, Precision precision) {
    const OneReading source([=](index_t i, index_t j) { return i == row && j == col ? value : i == j ? 1.0 : 0.0; });
    try {
      cuda::upload(source, n, precision, 0, times(2), [](double) {});
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::cuda_failure;  // it was not refused
  };
  EXPECT_EQ(refused_at(3, 600, nan, Precision::double_), ErrorCode::not_finite);
  EXPECT_EQ(refused_at(600, 600, 0, Precision::double_), ErrorCode::bad_diagonal);
  EXPECT_EQ(refused_at(3, 3, 1e-60, Precision::single), ErrorCode::bad_diagonal);
  EXPECT_EQ(refused_at(2, 3, 1e60, Precision::single), ErrorCode::overflow);
  const OneReading source([](index_t i, index_t j) { return double(i == j); });
  EXPECT_THROW(
      cuda::upload(source, n, Precision::double_, 0, times(2), [](double) { throw std::runtime_error("enough"); }),
      std::runtime_error);
  EXPECT_EQ(source.columns(), 512);
}

/// Returns the most memory that this process has had since clear_refs was written to, in bytes.
double peak_of_memory() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return 1024 * std::stod(line.substr(6));
  return nan;
}

TEST(Devices, ReadMoreThanTheyHoldInMemory) {
  const index_t n = 8192;
  upload_to(times(2), example(3));  // makes CUDA take its own memory
  std::ofstream("/proc/self/clear_refs") << 5;
  const double before = peak_of_memory();
  const OneReading source([](index_t i, index_t j) { return i == j ? 2.0 : 1.0 / double(n); });
  const Factor F = cuda::upload(source, n, Precision::double_, 0, times(2), [](double) {});
  EXPECT_LT(peak_of_memory() - before, 0.25 * F->bytes());
  double sum = 4.0 * double(n);
  for (index_t j = 0; j < n; ++j) sum += double(j) / (double(n) * double(n));
  EXPECT_NEAR(F->trace(), sum, 1e-12 * sum);
}

TEST(Devices, UseAFactor) {
  for (const int ranks : numbers_of_ranks)
    for (const index_t n : {129, 1100})
      for (const index_t m : {1, 20, 300}) {
        const Doubles R = example(n), B = Random(3).normal(n, m).cast<double>();
        const Factor F = upload_to(times(ranks), R), one = upload(R);
        for (const TriangularSolve which : {TriangularSolve::both, TriangularSolve::forward, TriangularSolve::back}) {
          Doubles X = B, expected = B;
          F->solve(which, X.data(), m);
          one->solve(which, expected.data(), m);
          EXPECT_TRUE(same_bits(X, expected)) << n << " " << m;
        }
        Doubles inverse(n, n), expected(n, n);
        F->inverse(inverse.data());
        one->inverse(expected.data());
        EXPECT_TRUE(same_bits(inverse, expected));
      }
}

/// Checks solving by all GPUs together. Going back, they add up sums in another order than one GPU.
TEST(Devices, SolveTogether) {
  for (const int ranks : numbers_of_ranks)
    for (const index_t n : {2100, 3000})
      for (const Precision precision : precisions) {
        const index_t m = 24;
        const Doubles R = in(precision, example(n)), B = Random(3).normal(n, m).cast<double>();
        const Factor F = upload_to(times(ranks), R, precision), one = upload(R, precision);
        for (const TriangularSolve which : {TriangularSolve::both, TriangularSolve::forward, TriangularSolve::back}) {
          Doubles X = B, again = B, expected = B;
          F->solve(which, X.data(), m);
          F->solve(which, again.data(), m);
          one->solve(which, expected.data(), m);
          EXPECT_TRUE(same_bits(X, again));
          EXPECT_LT((X - expected).norm(), 1e-11 * expected.norm()) << n << " " << int(which);
          if (which == TriangularSolve::forward) {
            EXPECT_TRUE(same_bits(X, expected)) << n;
          }
        }
      }
}

/// Expects from several GPUs the bits of one: as a new factor, and in place with room for a second factor and without.
void expect_same_modified(const Doubles& R, const Doubles& V, const Task& task_, Precision precision) {
  Work work, expected_work;
  const Factor one = upload(R, precision);
  const Factor expected = modified(*one, V, task_, expected_work);
  for (const int ranks : numbers_of_ranks) {
    if (ranks > 2 && V.cols() > 16) continue;  // a third of a GPU has no room for the roles of a pass of 32 columns
    SCOPED_TRACE("ranks " + std::to_string(ranks) + ", n " + std::to_string(R.cols()) + ", k " +
                 std::to_string(V.cols()));
    const Factor F = upload_to(times(ranks), R, precision);
    const Factor made = modified(*F, V, task_, work);
    EXPECT_EQ(work.pivot, expected_work.pivot);
    EXPECT_EQ(work.device_ranks, ranks);
    EXPECT_EQ(work.fallbacks, expected_work.fallbacks);
    EXPECT_EQ(work.rescalings, expected_work.rescalings);
    EXPECT_TRUE(same_bits(download(*F), R));
    ASSERT_EQ(made != nullptr, expected != nullptr);
    if (made) {
      EXPECT_TRUE(same_bits(download(*made), download(*expected)));
    }
    for (const bool room : {true, false}) {
      const Factor G = F->copy();
      Task in_place = task_;
      in_place.keep_intact = room;
      if (!room) in_place.device_memory = work.device_bytes - F->bytes();
      EXPECT_EQ(modify(*G, V, in_place).pivot, work.pivot);
      if (made) {
        EXPECT_TRUE(same_bits(download(*G), download(*expected))) << room;
      } else if (room) {
        EXPECT_TRUE(same_bits(download(*G), R));
      }
    }
  }
}

TEST(Devices, ModifyTheSameBits) {
  for (const Precision precision : precisions)
    for (const index_t n : {1, 100, 129, 500, 2500})
      for (const index_t k : {1, 9, 32}) {
        const Doubles R = in(precision, example(n)), V = Random(5).normal(n, k).cast<double>();
        for (const double size : {0.01, 10.0}) {
          if (n == 2500 && (k == 9) == (size > 1)) continue;
          Task update = task(*upload(R, precision), k, Sign::update);
          update.scale = 1.5;
          expect_same_modified(R, size * V, update, precision);
        }
        expect_same_modified(R, 0.01 * V, task(*upload(R, precision), k, Sign::downdate), precision);
      }
}

TEST(Devices, ModifyInPassesAndOfBothSigns) {
  const index_t n = 900;
  const Doubles R = example(n), V = Random(5).normal(n, 70).cast<double>() * 0.01;
  expect_same_modified(R, V, task(*upload(R), 70, Sign::update), Precision::double_);
  Task mixed = task(*upload(R), 20, Sign::update);
  mixed.removed = 9;
  expect_same_modified(R, V.leftCols(20), mixed, Precision::double_);
}

/// Checks row blocks that are rejected at any place, in one turn or several, and downdates that fail.
TEST(Devices, RefuseTheSame) {
  const index_t n = 1100, k = 5;
  const Doubles R = example(n);
  for (const index_t row : {0, 63, 128, 700, 1099})
    for (const double by : {0.5, 0.9999, 2.0}) {
      Doubles P = Doubles::Constant(n, k, 1e-4);
      P.row(row).setConstant(by / std::sqrt(double(k)));
      const Doubles V = R.transpose() * P;
      expect_same_modified(R, V, task(*upload(R), k, Sign::downdate), Precision::double_);
    }
}

/// Checks V outside of shared memory, which has room for V of 28 groups of 16 columns, and of 12 of 32 columns. A
/// thread block updates more groups than that on a third of an H100 or H200 (16 columns), or on half of one (32
/// columns); on the whole GPU it updates fewer.
TEST(Devices, KeepVOutsideOfSharedMemory) {
  const auto check = [](index_t n, index_t k, int ranks) {
    SCOPED_TRACE("k " + std::to_string(k));
    const auto entry = [n](index_t i, index_t j) {
      return i == j ? 1 + double(i % 7) / 10 : double((7 * i + 13 * j) % 64 - 32) / (32.0 * double(n));
    };
    const auto read = [&](int ranks) {
      return cuda::upload(OneReading(entry), n, Precision::double_, 0, times(ranks), [](double) {});
    };
    const Factor F = read(ranks), one = read(1);
    const Doubles V = Random(5).normal(n, k).cast<double>() * 0.1, B = Random(6).normal(n, 2).cast<double>();
    Task update = task(*F, k, Sign::update);
    update.launch = Launch::persistent;
    for (const bool room : {true, false}) {
      SCOPED_TRACE("room " + std::to_string(room));
      const Work work = modify(*F, V, update);
      EXPECT_EQ(work.pivot, -1);
      EXPECT_EQ(work.device_ranks, ranks);
      EXPECT_EQ(work.launch, Launch::persistent);
      modify(*one, V, task(*one, k, Sign::update));
      Doubles X = B, expected = B;
      F->solve(TriangularSolve::forward, X.data(), 2);
      one->solve(TriangularSolve::forward, expected.data(), 2);
      EXPECT_TRUE(same_bits(X, expected));
      EXPECT_EQ(F->trace(), one->trace());
      update.device_memory = work.device_bytes - F->bytes();  // too little for a second factor
    }
  };
  check(30000, 16, 3);
  check(18000, 32, 2);
}

TEST(Devices, UseTheirMemoryAgain) {
  const Factor F = upload_to(times(2), example(300));
  for (int i = 0; i < 20; ++i) {  // memory is used again, and given back
    const Factor G = F->copy(), H = G->copy();
    EXPECT_TRUE(same_bits(download(*H), example(300)));
  }
  cuda::release();
  EXPECT_TRUE(same_bits(download(*F), example(300)));
}

TEST(Devices, Factorise) {
  for (const index_t n : {129, 600}) {
    const Doubles A = example(n).transpose() * example(n);
    index_t pivot = -1, expected_pivot = -1;
    const Factor F = cuda::factorise(A.data(), n, Uplo::upper, Precision::double_, times(2), pivot);
    const Factor one = cuda::factorise(A.data(), n, Uplo::upper, Precision::double_, first_device(), expected_pivot);
    ASSERT_TRUE(F && one);
    EXPECT_TRUE(same_bits(download(*F), download(*one)));
  }
}

/// Checks that several GPUs factorise A if the first has no room for A beside the factor.
TEST(Devices, FactoriseAcrossAllRunningOutOfRoom) {
  constexpr index_t n = 4000;
  const int device = first_device();
  const std::vector<int> twice{device, device};
  const cuda::CurrentDevice current(device);
  const cuda::Stream stream;
  cuda::Pool pool(device, stream);
  const Doubles A = 4 * Doubles::Identity(n, n);
  index_t pivot = -1;
  const auto trace_of = [&](const Factor& F) { return F ? F->trace() : -1; };
  EXPECT_EQ(trace_of(cuda::factorise(A.data(), n, Uplo::upper, Precision::double_, twice, pivot)), 4 * n);
  cuda::release();
  const cuda::PoolBuffer<char> rest(pool, index_t(free_memory() - 1.8 * sizeof(double) * n * n));
  EXPECT_EQ(trace_of(cuda::factorise(A.data(), n, Uplo::upper, Precision::double_, twice, pivot)), 4 * n);
}

TEST(Devices, MustBeThere) {
  try {
    upload_to({first_device(), 10000}, example(3));
    FAIL() << "there is no such device";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::bad_argument);
    EXPECT_EQ(std::get<std::string>(error.fields()[0].second), "devices");
    EXPECT_EQ(std::get<double>(error.fields()[1].second), 10000);
  }
}

/// Checks insertions, removals and moves of rows and columns.
TEST(Devices, Reshape) {
  const index_t n = 700;
  const Doubles R = example(n), X = [&] {
    Doubles columns = Random(4).normal(n + 3, 3).cast<double>() * 0.01;
    for (index_t q = 0; q < 3; ++q) columns(300 + q, q) += 3;
    return columns;
  }();
  const Factor F = upload_to(times(2), R), one = upload(R);
  Task t = task(*F, 0, Sign::update);
  for (const Factor* of : {&F, &one}) {
    HeldFactor& G = **of;
    std::atomic<bool> begun{false};
    G.remove({5, 130, 131, 600}, t, nullptr, no_poll, begun);
    G.shift(10, 400, t, nullptr, no_poll, begun);
    G.shift(500, 20, t, nullptr, no_poll, begun);
    EXPECT_EQ(G.insert(300, X.topRows(n - 1).eval().data(), 3, t, nullptr, no_poll, begun), -1);
  }
  EXPECT_TRUE(same_bits(download(*F), download(*one)));
}

}  // namespace
}  // namespace gpucholmod::test
