#include <cstring>
#include <limits>
#include <string>
#include <vector>

#ifndef _WIN32
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "c_call.h"
#include "matrices.h"
#include "tests.h"

/// The triangle that a factor does not use: the C interface neither reads nor writes it.
namespace gpucholmod::test {
namespace {

template <class S>
class CTriangle : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(CTriangle, Scalars);

/// All functions that take a factor in the caller's memory, each in every way: call(which, R, ldr, held), for a factor
/// of order n with room for one more row and column.
template <class S>
struct Calls {
  index_t n;
  int form;
  std::vector<S> V, X;
  std::vector<double> z, Y;
  gpucholmod_status status;

  Calls(index_t n, int form)
      : n(n), form(form), V(size_t(2 * n), S(0.01)), X(size_t(n + 1), S(1e-4)), z(size_t(n + 1), 0.5), Y{1, 2} {
    X[1] = 9;
  }

  int update(S* R, index_t ldr, double weight, double scale, bool with_sides) {
    const double weights[] = {weight, 0.5};
    const gpucholmod_right_sides sides = right_sides(z.data(), n, 1, n + 1, Y.data(), 2, 2, nullptr);
    return test::update(form, n, 2, R, ldr, V.data(), n, weights, scale, with_sides ? &sides : nullptr, &status);
  }
  /// Runs call number `which`. Sets *held if the call makes a factor with memory of its own.
  int call(int which, S* R, index_t ldr, gpucholmod_factor** held) {
    const ptrdiff_t gone = 2;
    switch (which) {
      case 0: return update(R, ldr, 1, 1, false);
      case 1: return update(R, ldr, -1, 1, false);
      case 2: return update(R, ldr, 1, 1e-14, false);
      case 3: return update(R, ldr, 1, 0.5, true);
      case 4: return insert(form, n, 1, 1, R, ldr, X.data(), n + 1, nullptr, &status);
      case 5: return remove(form, n, 1, &gone, R, ldr, nullptr, &status);
      default: return create(form, n, R, ldr, 0, held, &status);
    }
  }
  static constexpr int count = 7;
};

/// Writes a factor to R (n x n), its triangle alone.
template <class S>
void fill(S* R, index_t n, index_t ldr, int form) {
  for (index_t j = 0; j < n; ++j) {
    const bool lower = form & GPUCHOLMOD_LOWER;
    for (index_t i = lower ? j : 0; i < (lower ? n : j + 1); ++i) R[i + j * ldr] = S(i == j ? 3 : 1e-3);
  }
}

/// Checks that the other triangle, whatever it holds, changes no bit of the result and keeps its own bits.
TYPED_TEST(CTriangle, MayHoldAnything) {
  using S = TypeParam;
  for (const index_t n : {1, 3, 20, 300})
    for (const int form : {0, 1, 2, 3})
      for (const index_t ldr : {n + 1, n + 4})
        for (int which = 0; which < Calls<S>::count; ++which) {
          if (n < 3 && which >= 4 && which < 6) continue;
          SCOPED_TRACE(std::to_string(n) + ", form " + std::to_string(form) + ", call " + std::to_string(which));
          std::vector<S> all[2];
          std::vector<double> held[2];
          for (const int turn : {0, 1}) {
            const S there = turn == 0 ? S(0) : std::numeric_limits<S>::quiet_NaN();
            std::vector<S>& R = all[turn];
            R.assign(size_t(ldr * (n + 1)), there);
            fill(R.data(), n, ldr, form);
            const std::vector<S> before = R;
            Calls<S> calls(n, form);
            gpucholmod_factor* factor = nullptr;
            ASSERT_EQ(calls.call(which, R.data(), ldr, &factor), GPUCHOLMOD_OK) << calls.status.message;
            held[turn].resize(size_t(n * n));
            ASSERT_TRUE(!factor || get(factor, 0, held[turn].data(), n, nullptr) == GPUCHOLMOD_OK);
            gpucholmod_factor_destroy(factor);
            const index_t order = which == 4 ? n + 1 : n;
            for (index_t j = 0; j < n + 1; ++j)
              for (index_t i = 0; i < ldr; ++i) {
                const bool own = j < order && i < order && (form & GPUCHOLMOD_LOWER ? i >= j : i <= j);
                if (own) continue;
                EXPECT_EQ(std::memcmp(&R[size_t(i + j * ldr)], &before[size_t(i + j * ldr)], sizeof(S)), 0)
                    << i << ", " << j;
                R[size_t(i + j * ldr)] = 0;
              }
          }
          EXPECT_EQ(std::memcmp(all[0].data(), all[1].data(), sizeof(S) * all[0].size()), 0);
          EXPECT_EQ(held[0], held[1]);
        }
}

#ifndef _WIN32
/// Checks that the other triangle may be memory that cannot be read. A column takes two pages of memory. If one of them
/// holds nothing of the factor, that page is protected.
TYPED_TEST(CTriangle, IsNotRead) {
  using S = TypeParam;
  const std::size_t page = std::size_t(sysconf(_SC_PAGESIZE));
  const index_t half = index_t(page / sizeof(S)), ldr = 2 * half, n = half + half / 2;
  const std::size_t bytes = sizeof(S) * std::size_t(ldr * (n + 1));
  for (const int form : {GPUCHOLMOD_UPPER, GPUCHOLMOD_LOWER})
    for (int which = 0; which < Calls<S>::count; ++which) {
      SCOPED_TRACE("form " + std::to_string(form) + ", call " + std::to_string(which));
      void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(memory, MAP_FAILED);
      S* const R = static_cast<S*>(memory);
      fill(R, n, ldr, form);
      for (index_t j = 0; j < n; ++j) {
        const bool has_none = form == GPUCHOLMOD_UPPER ? j < half : j >= half;
        ASSERT_TRUE(!has_none || mprotect(R + j * ldr + (form == GPUCHOLMOD_UPPER ? half : 0), page, PROT_NONE) == 0);
      }
      Calls<S> calls(n, form);
      gpucholmod_factor* factor = nullptr;
      EXPECT_EQ(calls.call(which, R, ldr, &factor), GPUCHOLMOD_OK) << calls.status.message;
      gpucholmod_factor_destroy(factor);
      munmap(memory, bytes);
    }
}
#endif

}  // namespace
}  // namespace gpucholmod::test
