#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "c/handle.h"
#include "c_call.h"
#include "padded.h"
#include "tests.h"

/// Batches of the C interface: each member compared with a factor that is modified alone, and the state after a
/// failure.
namespace gpucholmod::test {
namespace {

template <class S>
class CBatch : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CBatch, Scalars);

constexpr index_t n = 9, k = 3, m = 2, count = 5;

struct Destroyed {
  gpucholmod_batch* held = nullptr;
  Destroyed() = default;
  Destroyed(const Destroyed&) = delete;
  ~Destroyed() { gpucholmod_batch_destroy(held); }
};

/// Members side by side, with a further row below them in memory. The second has a row with a negative diagonal entry.
template <class S>
struct Given {
  static constexpr index_t ld = n + 1;
  std::vector<Stored<S>> R;  ///< upper, before a row of the second is multiplied by -1
  std::vector<S> memory;
  Stored<double> V;
  std::vector<double> weights, scales{1, 0.5, 2, 1, 1};
  std::vector<ptrdiff_t> pivots = std::vector<ptrdiff_t>(count, -7);

  explicit Given(bool lower = false) : memory(std::size_t(ld * n * count), S(unused)) {
    Random random(41);
    for (index_t j = 0; j < count; ++j) {
      R.push_back(Matrix(well_conditioned(n, random).template triangularView<Eigen::Upper>()).cast<S>());
      Stored<S> given = R.back();
      if (j == 1) given.row(3) *= -1;
      const Stored<S> all = stored(given, lower);
      for (index_t c = 0; c < n; ++c) std::copy_n(all.data() + c * n, n, memory.data() + (j * n + c) * ld);
    }
    V = random.normal(n, k * count).template cast<double>() / 4;
    for (index_t q = 0; q < k * count; ++q) weights.push_back(q % k == 2 ? -0.01 : 1 + 0.1 * double(q));
  }
  int create(bool lower, gpucholmod_batch** made) const {
    const gpucholmod_options options = triangle(lower ? GPUCHOLMOD_LOWER : GPUCHOLMOD_UPPER);
    return gpucholmod_batch_create(matrix(memory.data(), n, n * count, ld), count, nullptr, 0, &options, made, nullptr);
  }
  gpucholmod_batch_modification what(bool common_V = false) const {
    return {k,           matrix(V.data(), n, common_V ? k : k * count, n), weights.data(), common_V ? k : k * count,
            scales.data(), 0, nullptr};
  }
  Matrix modified(index_t j, bool common_V) const {
    Matrix A = gram(R[size_t(j)]) * real(scales[size_t(j)]);
    for (index_t q = 0; q < k; ++q) {
      const index_t at = common_V ? q : j * k + q;
      const Matrix v = V.col(at).template cast<real>();
      A += real(weights[size_t(at)]) * product(v, v.transpose());
    }
    return A;
  }
};

template <class S>
std::vector<double> factors(const gpucholmod_batch* batch) {
  std::vector<double> all(std::size_t(n * n * count));
  EXPECT_EQ(gpucholmod_batch_get(batch, matrix(all.data(), n, n * count, n), nullptr, nullptr), GPUCHOLMOD_OK);
  return all;
}
Stored<double> member(const std::vector<double>& all, index_t j) {
  return Eigen::Map<const Stored<double>>(all.data() + j * n * n, n, n);
}

///   ||R'R - A_j||_1 / ((n + k) eps ||A_j||_1) < 30
TYPED_TEST(CBatch, ModifiesEveryMember) {
  using S = TypeParam;
  const real eps = std::numeric_limits<S>::epsilon();
  for (const bool lower : {false, true})
    for (const bool common_V : {false, true}) {
      Given<S> given(lower);
      Destroyed batch, copy;
      ASSERT_EQ(given.create(lower, &batch.held), GPUCHOLMOD_OK);
      EXPECT_EQ(gpucholmod_batch_order(batch.held), n);
      EXPECT_EQ(gpucholmod_batch_count(batch.held), count);
      EXPECT_EQ(gpucholmod_batch_type(batch.held), sizeof(S) == 8 ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT);
      EXPECT_EQ(gpucholmod_batch_on_gpu(batch.held), 0);
      ASSERT_EQ(gpucholmod_batch_copy(batch.held, &copy.held, nullptr), GPUCHOLMOD_OK);
      const gpucholmod_batch_modification what = given.what(common_V);
      gpucholmod_status status;
      ASSERT_EQ(gpucholmod_batch_update(batch.held, &what, given.pivots.data(), nullptr, &status), GPUCHOLMOD_OK)
          << status.message;
      EXPECT_EQ(given.pivots, std::vector<ptrdiff_t>(count, 0));
      const std::vector<double> made = factors<S>(batch.held), before = factors<S>(copy.held);
      std::vector<S> B(std::size_t(n * m * count), S(1.5)), turned(std::size_t(n * n * count));
      ASSERT_EQ(gpucholmod_batch_solve(batch.held, GPUCHOLMOD_A, matrix(B.data(), n, m * count, n), nullptr),
                GPUCHOLMOD_OK);
      const gpucholmod_options to_lower = triangle(GPUCHOLMOD_LOWER);
      ASSERT_EQ(gpucholmod_batch_get(batch.held, matrix(turned.data(), n, n * count, n), &to_lower, nullptr),
                GPUCHOLMOD_OK);
      std::vector<double> logdet(count);
      ASSERT_EQ(gpucholmod_batch_logdet(batch.held, logdet.data(), nullptr), GPUCHOLMOD_OK);
      for (index_t j = 0; j < count; ++j) {
        const Matrix A = given.modified(j, common_V);
        EXPECT_EQ(member(before, j), given.R[size_t(j)].template cast<double>());
        EXPECT_LT(double(norm_1(gram(member(made, j)) - A) / (real(n + k) * eps * norm_1(A))), 30);
        const Stored<S> transposed = Eigen::Map<const Stored<S>>(turned.data() + j * n * n, n, n).transpose();
        EXPECT_EQ(transposed.template cast<double>(), member(made, j));
        const Matrix X = Eigen::Map<const Stored<S>>(B.data() + j * n * m, n, m).template cast<real>();
        const Matrix left = product(A, X) - Matrix::Constant(n, m, 1.5);
        EXPECT_LT(double(norm_1(left) / (real(n + k) * eps * norm_1(A) * norm_1(X))), 30);
        real log = 0;
        for (index_t i = 0; i < n; ++i) log += 2 * std::log(real(member(made, j)(i, i)));
        EXPECT_NEAR(logdet[size_t(j)], double(log), 1e-12);
      }
    }
}

int go_on(double, void*) { return 0; }
int stop(double, void*) { return 1; }

/// Checks that members that fail are named, in place and by way of a second batch.
TYPED_TEST(CBatch, TellsWhichMembersFail) {
  using S = TypeParam;
  for (const bool watched : {false, true})
    for (const int independent : {0, 1}) {
      Given<S> given, good;
      given.weights[size_t(1 * k)] = given.weights[size_t(3 * k + 1)] = -1e6;
      Destroyed batch, other;
      ASSERT_EQ(given.create(false, &batch.held), GPUCHOLMOD_OK);
      ASSERT_EQ(given.create(false, &other.held), GPUCHOLMOD_OK);
      gpucholmod_batch_modification what = given.what();
      const gpucholmod_batch_modification good_what = good.what();
      what.independent = independent;
      gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
      if (watched) options.progress = go_on;
      const std::vector<double> before = factors<S>(batch.held);
      gpucholmod_status status;
      EXPECT_EQ(gpucholmod_batch_update(batch.held, &what, given.pivots.data(), &options, &status),
                GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
      EXPECT_EQ(status.member, 2);
      EXPECT_EQ(status.pivot, given.pivots[1]);
      ASSERT_EQ(gpucholmod_batch_update(other.held, &good_what, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
      const std::vector<double> now = factors<S>(batch.held), modified = factors<S>(other.held);
      for (index_t j = 0; j < count; ++j) {
        const bool failed = j == 1 || j == 3, stays = failed || !independent;
        EXPECT_EQ(given.pivots[size_t(j)] > 0, failed);
        EXPECT_EQ(member(now, j), member(stays ? before : modified, j));
      }
      options.progress = stop;
      EXPECT_EQ(gpucholmod_batch_update(batch.held, &good_what, given.pivots.data(), &options, nullptr),
                GPUCHOLMOD_STOPPED);
      EXPECT_EQ(factors<S>(batch.held), now);
    }
}

/// Checks that one scale for all members gives the bits of the same scale for each.
TYPED_TEST(CBatch, ScalesThatAreTheSame) {
  Given<TypeParam> given;
  Destroyed batch, other;
  given.scales.assign(count, 0.5);
  ASSERT_EQ(given.create(false, &batch.held), GPUCHOLMOD_OK);
  ASSERT_EQ(given.create(false, &other.held), GPUCHOLMOD_OK);
  const gpucholmod_batch_modification what = given.what();
  EXPECT_EQ(gpucholmod_batch_update(batch.held, &what, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
  given.scales.back() = 0.75;
  EXPECT_EQ(gpucholmod_batch_update(other.held, &what, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
  const std::vector<double> same = factors<TypeParam>(batch.held), each = factors<TypeParam>(other.held);
  for (index_t j = 0; j < count; ++j) EXPECT_EQ(member(same, j) == member(each, j), j < count - 1);
}

TYPED_TEST(CBatch, ScalesOfOneAreNone) {
  Given<TypeParam> given;
  Destroyed batch, other;
  given.scales.assign(count, 1);
  ASSERT_EQ(given.create(false, &batch.held), GPUCHOLMOD_OK);
  ASSERT_EQ(given.create(false, &other.held), GPUCHOLMOD_OK);
  gpucholmod_batch_modification what = given.what();
  EXPECT_EQ(gpucholmod_batch_update(batch.held, &what, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
  what.scales = nullptr;
  EXPECT_EQ(gpucholmod_batch_update(other.held, &what, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(factors<TypeParam>(batch.held), factors<TypeParam>(other.held));
}

TYPED_TEST(CBatch, RefusesWhatItCannotUse) {
  using S = TypeParam;
  constexpr ptrdiff_t huge = std::numeric_limits<ptrdiff_t>::max();
  Given<S> given;
  Destroyed batch, none;
  ASSERT_EQ(given.create(false, &batch.held), GPUCHOLMOD_OK);
  const std::vector<double> before = factors<S>(batch.held);
  const std::vector<ptrdiff_t> untold = given.pivots;
  gpucholmod_status status;
  const auto refused = [&](int code, int expected = GPUCHOLMOD_BAD_ARGUMENT) {
    EXPECT_EQ(code, expected) << status.message;
    EXPECT_EQ(factors<S>(batch.held), before);
    EXPECT_EQ(given.pivots, untold);
    EXPECT_EQ(none.held, nullptr);
  };
  const auto create = [&](ptrdiff_t members, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld) {
    return gpucholmod_batch_create(matrix(static_cast<const S*>(given.memory.data()), rows, cols, ld), members,
                                   nullptr, 0, nullptr, &none.held, &status);
  };
  for (const ptrdiff_t far : {ptrdiff_t(-1), huge}) {
    refused(create(far, n, n * count, given.ld));
    refused(create(count, n, far, given.ld));
    refused(create(count, far, n * count, given.ld));
    refused(create(count, n, n * count, far));
  }
  refused(create(count + 1, n, n * count, given.ld));
  for (const ptrdiff_t far : {ptrdiff_t(1) << 30, ptrdiff_t(1) << 32, huge - 1, huge})  // orders no member can have
    refused(create(0, far, 0, far), GPUCHOLMOD_OUT_OF_MEMORY);
  given.memory[size_t((2 * n + 4) * given.ld + 1)] = std::numeric_limits<S>::infinity();
  refused(create(count, n, n * count, given.ld), GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(status.member, 3);
  EXPECT_EQ(status.row, 2);
  EXPECT_EQ(status.col, 5);
  given.memory[size_t((2 * n + 4) * given.ld + 1)] = 1;
  given.memory[size_t((3 * n + 4) * given.ld + 4)] = 0;
  refused(create(count, n, n * count, given.ld), GPUCHOLMOD_BAD_DIAGONAL);
  EXPECT_EQ(status.member, 4);

  using What = gpucholmod_batch_modification;
  const auto update = [&](auto&& set) {
    What what = given.what();
    set(what);
    return gpucholmod_batch_update(batch.held, &what, given.pivots.data(), nullptr, &status);
  };
  refused(gpucholmod_batch_update(batch.held, nullptr, nullptr, nullptr, &status));
  refused(gpucholmod_batch_update(nullptr, nullptr, nullptr, nullptr, &status));
  for (const ptrdiff_t far : {ptrdiff_t(-1), huge, k - 1}) {
    refused(update([&](What& what) { what.k = far; }));
    refused(update([&](What& what) { what.V.cols = far; }));
    refused(update([&](What& what) { what.weights_count = far; }));
  }
  refused(update([](What& what) { what.V.rows -= 1; }));
  refused(update([](What& what) { what.V.data = nullptr; }));
  refused(update([](What& what) { what.independent = 2; }));
  given.scales[4] = 0;
  refused(update([](What&) {}));
  given.scales[4] = 1;
  given.weights[4] = std::numeric_limits<double>::infinity();
  refused(update([](What&) {}));
  given.weights[4] = 1;
  given.V(2, 4) = std::numeric_limits<double>::quiet_NaN();
  refused(update([](What&) {}), GPUCHOLMOD_NOT_FINITE);
  EXPECT_EQ(status.member, 2);

  std::vector<double> B(n * count, 1.0);
  refused(gpucholmod_batch_solve(batch.held, GPUCHOLMOD_A, matrix(B.data(), n, count - 1, n), &status));
  refused(gpucholmod_batch_solve(batch.held, 3, matrix(B.data(), n, count, n), &status));
  refused(gpucholmod_batch_solve(batch.held, GPUCHOLMOD_A, matrix(B.data(), n - 1, count, n), &status));
  refused(gpucholmod_batch_get(batch.held, matrix(B.data(), n, 1, n), nullptr, &status));
  refused(gpucholmod_batch_logdet(batch.held, nullptr, &status));
  refused(gpucholmod_batch_logdet(nullptr, B.data(), &status));
  EXPECT_EQ(B, std::vector<double>(n * count, 1.0));
  EXPECT_EQ(gpucholmod_batch_count(nullptr), 0);
  EXPECT_EQ(gpucholmod_batch_type(nullptr), 0);
  gpucholmod_options on_gpu = GPUCHOLMOD_OPTIONS_INIT;
  on_gpu.device = GPUCHOLMOD_ANY_GPU;
  refused(gpucholmod_batch_create(matrix(static_cast<const double*>(B.data()), 1, 5, 1), 5, nullptr, 0, &on_gpu,
                                  &none.held, &status),
          GPUCHOLMOD_NOT_BUILT);
}

/// A batch whose changes fail after they have begun.
class Failing : public HeldBatch {
 public:
  index_t order() const override { return n; }
  std::vector<index_t> orders() const override { return {n}; }
  index_t capacity() const override { return n; }
  index_t count() const override { return 1; }
  Precision precision() const override { return Precision::double_; }
  bool on_gpu() const override { return true; }
  double bytes() const override { return 0; }
  std::unique_ptr<HeldBatch> copy() const override { return std::make_unique<Failing>(); }
  void download(Uplo, double*) const override {}
  void download(index_t, Uplo, double*) const override {}
  void diagonals(double*) const override {}
  void solve(TriangularSolve, double*, index_t) const override {}
  Work modify(const GivenColumns<double>&, const BatchTask&, std::unique_ptr<HeldBatch>*, std::vector<index_t>&,
              const Poll&, std::atomic<bool>& begun) override {
    begun = true;
    throw Error(ErrorCode::cuda_failure, "CUDA has failed");
  }
  void insert(const BatchInsertion&, std::unique_ptr<HeldBatch>*, std::vector<index_t>&, std::atomic<bool>&) override {}
  void remove(const BatchRemoval&, std::unique_ptr<HeldBatch>*, std::atomic<bool>&) override {}
  void shift(const BatchShift&, std::unique_ptr<HeldBatch>*, std::atomic<bool>&) override {}
};

TEST(CBatchHalfModified, IsToldAndTheBatchIsRefused) {
  Destroyed batch, copy;
  batch.held = new gpucholmod_batch{{std::make_unique<Failing>()}};
  const std::vector<double> V(n, 0.5);
  const gpucholmod_batch_modification what{1, matrix(V.data(), n, 1, n), nullptr, 0, nullptr, 0, nullptr};
  gpucholmod_status status;
  EXPECT_EQ(gpucholmod_batch_update(batch.held, &what, nullptr, nullptr, &status), GPUCHOLMOD_HALF_MODIFIED);
  EXPECT_NE(std::string(status.message).find("CUDA has failed"), std::string::npos);
  EXPECT_EQ(gpucholmod_batch_update(batch.held, &what, nullptr, nullptr, &status), GPUCHOLMOD_HALF_MODIFIED);
  EXPECT_EQ(gpucholmod_batch_copy(batch.held, &copy.held, &status), GPUCHOLMOD_HALF_MODIFIED);
  std::vector<double> out(n * n);
  EXPECT_EQ(gpucholmod_batch_get(batch.held, matrix(out.data(), n, n, n), nullptr, &status), GPUCHOLMOD_HALF_MODIFIED);
  EXPECT_EQ(gpucholmod_batch_logdet(batch.held, out.data(), &status), GPUCHOLMOD_HALF_MODIFIED);
  EXPECT_EQ(gpucholmod_batch_solve(batch.held, GPUCHOLMOD_A, matrix(out.data(), n, 1, n), &status),
            GPUCHOLMOD_HALF_MODIFIED);
  EXPECT_EQ(gpucholmod_batch_on_gpu(batch.held), 1);
}

}  // namespace
}  // namespace gpucholmod::test
