#include <gpucholmod.hpp>

#include <functional>
#include <limits>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "c/handle.h"
#include "c_call.h"
#include "factor_of_3.h"
#include "padded.h"
#include "tests.h"

/// Calls of the C interface that fail after they have begun to change a factor, as calls on a GPU may. The code of the
/// call says so, and the factor can only be released.
namespace gpucholmod::test {
namespace {

/// A factor whose changes fail by fail(), before or after they have begun.
class Failing : public FactorOf3 {
 public:
  Failing(bool begins, std::function<index_t()> fail, int& alive)
      : begins_(begins), fail_(std::move(fail)), alive_(alive) {
    ++alive_;
  }
  ~Failing() override { --alive_; }

  bool on_gpu() const override { return true; }
  std::unique_ptr<HeldFactor> copy() const override { return std::make_unique<Failing>(begins_, fail_, alive_); }
  Work modify(const ColumnsOfV&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
              std::atomic<bool>& begun) override {
    Work work;
    begun = begins_;
    work.pivot = fail_();
    return work;
  }
  double remove(const std::vector<index_t>&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
                std::atomic<bool>& begun) override {
    begun = begins_;
    fail_();
    return 0;
  }
  index_t insert(index_t, const double*, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
                 std::atomic<bool>& begun) override {
    begun = begins_;
    return fail_();
  }
  void shift(index_t, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
             std::atomic<bool>& begun) override {
    begun = begins_;
    fail_();
  }

 private:
  bool begins_;
  std::function<index_t()> fail_;
  int& alive_;
};

/// The arguments of calls for a factor of order 3.
struct Numbers {
  std::vector<double> V = std::vector<double>(3, 0.5), X{0, 9, 0, 0}, z{1, 2, 3, 4}, Y{5}, rss{6},
                      B = std::vector<double>(3, 1), out = std::vector<double>(9);
  ptrdiff_t gone = 1;
  gpucholmod_right_sides sides(index_t rows) { return right_sides(z.data(), rows, 1, 4, Y.data(), 1, 1, rss.data()); }
  gpucholmod_status status;
};

using CallOf = std::function<int(gpucholmod_factor*, Numbers&)>;

const std::vector<CallOf> changes{
    [](gpucholmod_factor* f, Numbers& g) { return update(f, 1, g.V.data(), 3, nullptr, 1, nullptr, &g.status); },
    [](gpucholmod_factor* f, Numbers& g) {
      const gpucholmod_right_sides sides = g.sides(3);
      return update(f, 1, g.V.data(), 3, nullptr, 0.5, &sides, &g.status);
    },
    [](gpucholmod_factor* f, Numbers& g) {
      const gpucholmod_right_sides sides = g.sides(4);
      return insert(f, 1, 1, g.X.data(), 4, &sides, &g.status);
    },
    [](gpucholmod_factor* f, Numbers& g) {
      const gpucholmod_right_sides sides = g.sides(3);
      return remove(f, 1, &g.gone, &sides, &g.status);
    },
    [](gpucholmod_factor* f, Numbers& g) {
      const gpucholmod_right_sides sides = g.sides(3);
      return gpucholmod_factor_shift(f, 0, 2, &sides, nullptr, &g.status);
    }};

const std::vector<CallOf> other_uses{
    [](gpucholmod_factor* f, Numbers& g) {
      gpucholmod_factor* made = nullptr;
      const int code = gpucholmod_factor_copy(f, &made, &g.status);
      EXPECT_EQ(made != nullptr, code == GPUCHOLMOD_OK);
      gpucholmod_factor_destroy(made);
      return code;
    },
    [](gpucholmod_factor* f, Numbers& g) { return solve(f, GPUCHOLMOD_A, 1, g.B.data(), 3, &g.status); },
    [](gpucholmod_factor* f, Numbers& g) { return get(f, 0, g.out.data(), 3, &g.status); },
    [](gpucholmod_factor* f, Numbers& g) {
      std::vector<float> out(9);
      return get(f, 0, out.data(), 3, &g.status);
    },
    [](gpucholmod_factor* f, Numbers& g) { return gpucholmod_factor_diagonal(f, g.out.data(), &g.status); },
    [](gpucholmod_factor* f, Numbers& g) { return gpucholmod_factor_logdet(f, g.out.data(), &g.status); },
    [](gpucholmod_factor* f, Numbers& g) { return gpucholmod_factor_rcond(f, g.out.data(), &g.status); },
    [](gpucholmod_factor* f, Numbers& g) {
      return gpucholmod_factor_inverse(f, matrix(g.out.data(), 3, 3, 3), &g.status);
    }};

/// A way to fail, with the code of a call that fails before it has begun to change a factor.
struct Way {
  const char* name;
  std::function<index_t()> fail;
  int code;
  ptrdiff_t pivot;
};
const std::vector<Way> ways_to_fail{
    {"the GPU is out of memory", []() -> index_t { throw out_of_memory("the GPU is out of memory", 1e9, 1e6); },
     GPUCHOLMOD_OUT_OF_MEMORY, 0},
    {"out of memory", []() -> index_t { throw std::bad_alloc(); },
     GPUCHOLMOD_OUT_OF_MEMORY, 0},
    {"CUDA", []() -> index_t { throw Error(ErrorCode::cuda_failure, "CUDA failed to " + std::string(400, 'x')); },
     GPUCHOLMOD_CUDA_FAILURE, 0},
    {"unknown", []() -> index_t { throw 1; },
     GPUCHOLMOD_INTERNAL, 0},
    {"not positive definite", [] { return index_t(1); }, GPUCHOLMOD_NOT_POSITIVE_DEFINITE, 2}};

TEST(CHalfModified, IsToldAndTheFactorIsRefused) {
  for (const Way& way : ways_to_fail)
    for (std::size_t c = 0; c < changes.size(); ++c)
      for (const bool begins : {false, true}) {
        if (c >= 3 && way.code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) continue;  // rows that go or move have no pivot
        SCOPED_TRACE(std::string(way.name) + ", " + std::to_string(c) + (begins ? ", begun" : ""));
        int alive = 0;
        auto* const factor = new gpucholmod_factor{std::make_unique<Failing>(begins, way.fail, alive)};
        Numbers given;
        EXPECT_EQ(changes[c](factor, given), begins ? GPUCHOLMOD_HALF_MODIFIED : way.code);
        EXPECT_EQ(given.status.code, begins ? GPUCHOLMOD_HALF_MODIFIED : way.code);
        EXPECT_EQ(given.status.pivot, way.pivot);
        EXPECT_NE(given.status.message[0], 0);
        EXPECT_LT(std::string(given.status.message).size(), sizeof given.status.message);
        EXPECT_EQ(given.z, Numbers().z);
        EXPECT_EQ(given.rss, Numbers().rss);
        for (const CallOf& use : other_uses)
          EXPECT_EQ(use(factor, given), begins ? GPUCHOLMOD_HALF_MODIFIED : GPUCHOLMOD_OK) << given.status.message;
        for (std::size_t again = 0; again < changes.size() && begins; ++again) {
          EXPECT_EQ(changes[again](factor, given), GPUCHOLMOD_HALF_MODIFIED);
          EXPECT_EQ(given.status.pivot, 0);
        }
        EXPECT_EQ(update(factor, 1, given.V.data(), 3, nullptr, 1, nullptr, nullptr),
                  begins ? GPUCHOLMOD_HALF_MODIFIED : way.code);
        EXPECT_EQ(gpucholmod_factor_order(factor), 3);
        EXPECT_EQ(gpucholmod_factor_capacity(factor), 5);
        EXPECT_EQ(gpucholmod_factor_type(factor), GPUCHOLMOD_DOUBLE);
        EXPECT_EQ(gpucholmod_factor_on_gpu(factor), 1);
        gpucholmod_factor_destroy(factor);
        EXPECT_EQ(alive, 0);
      }
}

/// Checks that gpucholmod.hpp throws HalfModified.
TEST(CHalfModified, IsThrownInCpp) {
  int alive = 0;
  auto* const factor = new gpucholmod_factor{std::make_unique<Failing>(
      true, [] { return index_t(1); }, alive)};
  Numbers given;
  try {
    detail::call(
        [&](gpucholmod_status* status) { return insert(factor, 1, 1, given.X.data(), 4, nullptr, status); });
    ADD_FAILURE();
  } catch (const HalfModified& failure) {
    EXPECT_EQ(failure.code(), GPUCHOLMOD_HALF_MODIFIED);
    EXPECT_EQ(failure.pivot(), 2);
    EXPECT_NE(std::string(failure.what()).find("positive definite"), std::string::npos);
  }
  const auto logdet = [&](gpucholmod_status* status) {
    return gpucholmod_factor_logdet(factor, given.out.data(), status);
  };
  EXPECT_THROW(detail::call(logdet), HalfModified);
  gpucholmod_factor_destroy(factor);
}

/// A factor that is declared as trusted, but is not a factor. Without the declaration, nothing changes.
TEST(CHalfModified, ATrustedFactorThatIsNone) {
  const index_t n = 20;
  Random random(4);
  const Stored<double> good = well_conditioned(n, random).cast<double>();
  const std::vector<double> v(size_t(n), 0.1);
  for (const bool lower : {false, true}) {
    Stored<double> R = stored(good, lower);
    (lower ? R(9, 4) : R(4, 9)) = std::numeric_limits<double>::quiet_NaN();
    std::vector<double> made(R.data(), R.data() + n * n);
    const std::vector<double> before = made;
    const Triangle triangle = lower ? Triangle::lower : Triangle::upper;
    try {
      FactorView<double>(View(made, n, n), triangle).update(v);
      ADD_FAILURE();
    } catch (const Failure& failure) {
      EXPECT_EQ(failure.code(), GPUCHOLMOD_NOT_FINITE);
    }
    EXPECT_EQ(std::memcmp(made.data(), before.data(), sizeof(double) * made.size()), 0);
    EXPECT_THROW(FactorView<double>(View(made, n, n), triangle, true).update(v), HalfModified);
    EXPECT_NE(made[0], before[0]);
  }
}

}  // namespace
}  // namespace gpucholmod::test
