#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "c_call.h"
#include "call.h"
#include "cpu/host_factor.h"
#include "padded.h"
#include "tests.h"

/// Failures of every allocation of every call, one at a time: the call fails, and has changed nothing.
namespace gpucholmod::test {
namespace {

thread_local long allocations_left = -1;  ///< allocations that succeed before one fails; all if negative
thread_local bool fails_for_good = false, has_failed = false;

/// Makes allocation number `which` of this thread fail, from 0; if `for_good`, all behind it as well.
struct FailingMemory {
  FailingMemory(long which, bool for_good) {
    allocations_left = which;
    fails_for_good = for_good;
    has_failed = false;
  }
  ~FailingMemory() { allocations_left = -1; }
};

/// The most bytes of an allocation: for more the address sanitizer's malloc() ends the program.
constexpr std::size_t most = std::size_t(1) << 40;

void* allocate(std::size_t bytes) {
  if (allocations_left == 0) {
    has_failed = true;
    if (!fails_for_good) allocations_left = -1;
    throw std::bad_alloc();
  }
  if (allocations_left > 0) --allocations_left;
  void* const data = bytes <= most ? std::malloc(std::max<std::size_t>(bytes, 1)) : nullptr;
  if (!data) throw std::bad_alloc();
  return data;
}

}  // namespace
}  // namespace gpucholmod::test

void* operator new(std::size_t bytes) { return gpucholmod::test::allocate(bytes); }
void* operator new[](std::size_t bytes) { return gpucholmod::test::allocate(bytes); }
void operator delete(void* data) noexcept { std::free(data); }
void operator delete[](void* data) noexcept { std::free(data); }
void operator delete(void* data, std::size_t) noexcept { std::free(data); }
void operator delete[](void* data, std::size_t) noexcept { std::free(data); }

namespace gpucholmod::test {
namespace {

bool same(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), sizeof(double) * a.size()) == 0;
}

/// Calls f(which, for_good) with each allocation failing in turn, alone or with all behind it, until none is left. f
/// returns whether an allocation has failed. Returns the number of calls in which one has.
template <class F>
long with_each_allocation_failing(F&& f) {
  long failed = 0;
  for (const bool for_good : {false, true})
    for (long which = 0; f(which, for_good); ++which) ++failed;
  return failed;
}

/// The numbers that all calls use.
template <class S>
struct Numbers {
  static constexpr index_t k = 3, m = 2;
  index_t n;
  Stored<S> R;             ///< upper, n x n
  std::vector<S> memory;   ///< R, with room for k more rows and columns
  Stored<double> V, X, Y;  ///< X: k rows and columns that are inserted at 1
  std::vector<S> V_in_S, X_in_S;
  Stored<double> z;  ///< m right-hand sides, with room for k more rows
  std::vector<double> rss{4, 5};

  Numbers(index_t n, double size) : n(n), memory(size_t((n + k) * (n + k)), S(1)), z(n + k, m) {
    Random random(7);
    R = (well_conditioned(n, random) * real(size)).template cast<S>();
    V = (random.normal(n, k) * real(size) / 50).template cast<double>();
    Y = random.normal(k, m).template cast<double>();
    z = random.normal(n + k, m).template cast<double>();
    X = Stored<double>::Zero(n + k, k);
    for (index_t q = 0; q < k; ++q) X(1 + q, q) = 9 * size * size;
    X.bottomRows(n + k - 1 - k).array() += 1e-3 * size * size;
    for (index_t j = 0; j < n; ++j) std::copy_n(R.data() + j * n, j + 1, memory.data() + j * (n + k));
    V_in_S.assign(V.data(), V.data() + n * k);
    X_in_S.assign(X.data(), X.data() + (n + k) * k);
  }
};

/// The arguments of a call of the C interface, which the call may change.
template <class S>
struct Given : Numbers<S> {
  using Numbers<S>::k, Numbers<S>::m, Numbers<S>::n, Numbers<S>::R, Numbers<S>::memory, Numbers<S>::z, Numbers<S>::Y,
      Numbers<S>::rss;
  gpucholmod_factor* held = nullptr;
  gpucholmod_status status;

  Given(const Numbers<S>& numbers, index_t capacity) : Numbers<S>(numbers) {
    const int code = hold(capacity);
    EXPECT_EQ(code, GPUCHOLMOD_OK) << status.message;
  }
  ~Given() { gpucholmod_factor_destroy(held); }

  int hold(index_t capacity) {
    return create(0, n, R.data(), n, capacity, &held, &status);
  }
  gpucholmod_right_sides sides(index_t columns, index_t rows) {
    return right_sides(z.data(), rows, columns, n + k, Y.data(), k, k, rss.data());
  }

  /// Returns all numbers that a call may change, in one vector.
  std::vector<double> numbers() const {
    const index_t order = gpucholmod_factor_order(held);
    std::vector<double> all(size_t(order * order));
    EXPECT_EQ(get(held, 0, all.data(), order, nullptr), GPUCHOLMOD_OK);
    all.insert(all.end(), memory.begin(), memory.end());
    all.insert(all.end(), z.data(), z.data() + z.size());
    all.insert(all.end(), rss.begin(), rss.end());
    return all;
  }
};

template <class S>
using CallOf = std::function<int(Given<S>&)>;

constexpr double some_weights[] = {1, -0.01, 0.5}, all_minus[] = {-1, -1, -1};
constexpr ptrdiff_t some_rows[] = {0, 2, 3};

template <class S>
std::vector<std::pair<std::string, CallOf<S>>> calls() {
  using G = Given<S>;
  constexpr index_t k = G::k;
  std::vector<std::pair<std::string, CallOf<S>>> all{
      {"modify", [](G& g) { return update(g.held, k, g.V.data(), g.n, nullptr, 1, nullptr, &g.status); }},
      {"modify, weights",
       [](G& g) { return update(g.held, k, g.V.data(), g.n, some_weights, 0.9, nullptr, &g.status); }},
      {"modify, downdate",
       [](G& g) { return update(g.held, k, g.V.data(), g.n, all_minus, 1, nullptr, &g.status); }},
      {"modify, no columns",
       [](G& g) { return update(g.held, 0, nullptr, g.n, nullptr, 0.5, nullptr, &g.status); }},
  };
  for (const index_t m : {index_t(0), G::m}) {
    const std::string with = ", " + std::to_string(m) + " right-hand sides";
    all.emplace_back("modify" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return update(g.held, k, g.V.data(), g.n, some_weights, 0.9, &sides, &g.status);
    });
    all.emplace_back("insert" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n + k);
      return insert(g.held, 1, k, g.X.data(), g.n + k, &sides, &g.status);
    });
    all.emplace_back("remove" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return remove(g.held, k, some_rows, &sides, &g.status);
    });
    all.emplace_back("shift" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return gpucholmod_factor_shift(g.held, 1, g.n - 1, &sides, nullptr, &g.status);
    });
    all.emplace_back("update" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return update(0, g.n, k, g.memory.data(), g.n + k, g.V_in_S.data(), g.n, some_weights, 0.9, &sides, &g.status);
    });
    all.emplace_back("insert, memory" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n + k);
      return insert(0, g.n, 1, k, g.memory.data(), g.n + k, g.X_in_S.data(), g.n + k, &sides, &g.status);
    });
    all.emplace_back("remove, memory" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return remove(0, g.n, k, some_rows, g.memory.data(), g.n + k, &sides, &g.status);
    });
    all.emplace_back("shift, memory" + with, [m](G& g) {
      const gpucholmod_right_sides sides = g.sides(m, g.n);
      return gpucholmod_shift(matrix(g.memory.data(), g.n, g.n, g.n + k), g.n - 1, 0, &sides, nullptr, &g.status);
    });
  }
  return all;
}

template <class S>
class OutOfMemory : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(OutOfMemory, Scalars);

/// Fails each allocation of a call that is expected to succeed. Returns the number of failures.
template <class S>
long fail_each(const Numbers<S>& numbers, index_t capacity, const CallOf<S>& call) {
  Given<S> good(numbers, capacity);
  EXPECT_EQ(call(good), GPUCHOLMOD_OK) << good.status.message;
  const std::vector<double> expected = good.numbers();
  return with_each_allocation_failing([&](long which, bool for_good) {
    Given<S> given(numbers, capacity);
    const std::vector<double> before = given.numbers();
    int code;
    {
      const FailingMemory now(which, for_good);
      code = call(given);
    }
    if (code != GPUCHOLMOD_OK) {
      EXPECT_EQ(code, GPUCHOLMOD_OUT_OF_MEMORY) << which << ": " << given.status.message;
      EXPECT_TRUE(same(given.numbers(), before)) << which;
      EXPECT_EQ(call(given), GPUCHOLMOD_OK);
    }
    EXPECT_TRUE(same(given.numbers(), expected)) << which;
    return has_failed;
  });
}

/// Numbers that are scaled, factors with and without room, and memory of a stack's size and more.
TYPED_TEST(OutOfMemory, ChangesNothing) {
  using G = Given<TypeParam>;
  long failed = 0;
  for (const index_t n : {5, 150})
    for (const double size : {1.0, std::is_same_v<TypeParam, double> ? 1e150 : 1e15}) {
      const Numbers<TypeParam> numbers(n, size);
      for (const index_t capacity : {n, n + G::k})
        for (const auto& [name, call] : calls<TypeParam>()) {
          SCOPED_TRACE(name + ", n = " + std::to_string(n) + ", size = " + std::to_string(size) +
                       ", capacity = " + std::to_string(capacity));
          failed += fail_each<TypeParam>(numbers, capacity, call);
        }
    }
  EXPECT_GT(failed, 1000);
}

/// A factor with zeros on its diagonal, of which one stays.
TYPED_TEST(OutOfMemory, LeavesZerosAsTheyAre) {
  Numbers<TypeParam> numbers(20, 1);
  for (const index_t i : {3, 5}) numbers.R.row(i).setZero();
  numbers.R.col(5).setZero();
  numbers.V.row(5).setZero();
  EXPECT_GT(fail_each<TypeParam>(numbers, 20, calls<TypeParam>()[0].second), 5);
}

/// Functions that change nothing, and functions that make a factor.
TYPED_TEST(OutOfMemory, IsTold) {
  using G = Given<TypeParam>;
  G given(Numbers<TypeParam>(60, 1), 60);
  gpucholmod_factor *const first = given.held, *made = nullptr;
  std::vector<double> B(120, 1.5), out(60);
  double log = 0;
  const std::vector<double> before = B;
  const std::vector<std::pair<const char*, CallOf<TypeParam>>> all{
      {"copy", [&](G& g) { return gpucholmod_factor_copy(first, &made, &g.status); }},
      {"hold",
       [&](G& g) {
         const int code = g.hold(70);
         made = g.held == first ? nullptr : g.held;
         g.held = first;
         return code;
       }},
      {"solve", [&](G& g) { return solve(first, GPUCHOLMOD_A, 2, B.data(), 60, &g.status); }},
      {"diagonal", [&](G& g) { return gpucholmod_factor_diagonal(first, out.data(), &g.status); }},
      {"logdet", [&](G& g) { return gpucholmod_factor_logdet(first, &log, &g.status); }}};
  for (const auto& [name, call] : all) {
    SCOPED_TRACE(name);
    const long failed = with_each_allocation_failing([&, call = &call](long which, bool for_good) {
      B = before;
      int code;
      {
        const FailingMemory now(which, for_good);
        code = (*call)(given);
      }
      EXPECT_EQ(code, has_failed ? GPUCHOLMOD_OUT_OF_MEMORY : GPUCHOLMOD_OK);
      EXPECT_TRUE(code == GPUCHOLMOD_OK || (B == before && made == nullptr));
      gpucholmod_factor_destroy(std::exchange(made, nullptr));
      return has_failed;
    });
    EXPECT_GT(failed, 0);
  }
}

/// A factor in ordinary memory, below the C interface; rows and columns that move, too. `begun` stays false.
TYPED_TEST(OutOfMemory, AHostFactorHasNotBegun) {
  using G = Given<TypeParam>;
  const index_t n = 60, k = G::k;
  G given(Numbers<TypeParam>(n, 1), n);
  const auto upper_of = [](const HeldFactor& f) {
    Stored<double> out(f.order(), f.order());
    f.download(Uplo::upper, out.data());
    return out;
  };
  std::vector<double> out(size_t((n + k) * G::m)), rest(size_t(k * G::m));
  const Stored<double> Yt = given.Y.transpose(), z = given.z.topRows(n);
  Task task;
  task.n = n;
  task.k = k;
  task.precision = sizeof(TypeParam) == 8 ? Precision::double_ : Precision::single;
  task.instructions = Instructions::plain;
  task.threads = 2;
  const auto for_order = [&](index_t order) {
    Task t = task;
    t.right = {{z.data(), n, G::m, n}, {Yt.data(), G::m, k, G::m}, {out.data(), order, G::m, order},
               {rest.data(), G::m, k, G::m}};
    return t;
  };
  const Poll poll = [](double) {};
  using Change = std::function<void(HeldFactor&, std::atomic<bool>&)>;
  const std::vector<Change> changes{
      [&](HeldFactor& f, std::atomic<bool>& begun) { f.modify(given.V.data(), for_order(n), nullptr, poll, begun); },
      [&](HeldFactor& f, std::atomic<bool>& begun) {
        f.insert(1, given.X.data(), k, for_order(n + k), nullptr, poll, begun);
      },
      [&](HeldFactor& f, std::atomic<bool>& begun) { f.remove({1, 5}, for_order(n - 2), nullptr, poll, begun); },
      [&](HeldFactor& f, std::atomic<bool>& begun) { f.shift(3, 20, for_order(n), nullptr, poll, begun); },
      [&](HeldFactor& f, std::atomic<bool>& begun) { f.shift(20, 3, for_order(n), nullptr, poll, begun); }};
  for (const Change& change : changes) {
    const long failed = with_each_allocation_failing([&](long which, bool for_good) {
      const auto f = cpu::hold(given.R.data(), n, Uplo::upper, task.precision, n + k, cpu::ordinary_memory);
      const Stored<double> before = upper_of(*f);
      std::atomic<bool> begun{false};
      bool thrown = false;
      try {
        const FailingMemory now(which, for_good);
        change(*f, begun);
      } catch (const std::bad_alloc&) {
        thrown = true;
      }
      EXPECT_TRUE(!thrown || has_failed);
      EXPECT_EQ(begun, !thrown);
      EXPECT_TRUE(!thrown || same_bits(upper_of(*f), before)) << which;
      return has_failed;
    });
    EXPECT_GT(failed, 4);
  }
}

}  // namespace
}  // namespace gpucholmod::test
