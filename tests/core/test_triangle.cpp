#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cpu/kernels.h"
#include "matrices.h"
#include "tests.h"

/// squares_of_triangle(): with every set of instructions that this machine has.
namespace gpucholmod::test {
namespace {

template <class T>
class Triangle : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(Triangle, Scalars);

TYPED_TEST(Triangle, IsSummedUpAndCopied) {
  using T = TypeParam;
  constexpr T guard = T(-9), nan = std::numeric_limits<T>::quiet_NaN();
  for (const Instructions instructions : {Instructions::plain, Instructions::avx2, Instructions::avx512})
    for (const Uplo uplo : {Uplo::upper, Uplo::lower})
      for (const index_t n : {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 33, 64, 70, 131}) {
        if (!cpu::available(instructions)) continue;
        Random random(unsigned(n) + 1);
        const index_t ld = n + 3, numbers = n * (n + 1) / 2;
        std::vector<T> R(size_t(ld * n), nan), expected, copy(size_t(numbers + 1), guard);
        real sum = 0;
        for (index_t j = 0; j < n; ++j)
          for (index_t i = uplo == Uplo::upper ? 0 : j; i < (uplo == Uplo::upper ? j + 1 : n); ++i) {
            const T x = R[size_t(i + j * ld)] = T(random.normal());
            expected.push_back(x);
            sum += real(x) * real(x);
          }
        expected.push_back(guard);
        const MatrixView<const T> view{R.data(), n, n, ld};
        const T found = cpu::squares_of_triangle<T>(instructions, view, uplo, nullptr);
        EXPECT_NEAR(double(found), double(sum),
                    4 * double(n) * double(std::numeric_limits<T>::epsilon()) * double(sum));
        EXPECT_EQ(cpu::squares_of_triangle(instructions, view, uplo, copy.data()), found);
        EXPECT_EQ(copy, expected);
        const T of_one = cpu::squares_by_threads<T>(instructions, view, uplo, 1);
        EXPECT_NEAR(double(of_one), double(sum),
                    4 * double(n) * double(std::numeric_limits<T>::epsilon()) * double(sum));
        for (const int threads : {2, 3, 7})
          EXPECT_EQ(cpu::squares_by_threads<T>(instructions, view, uplo, threads), of_one);
        // any entry that is not finite, or too large, is found
        for (index_t j = 0; j < n; j += 1 + n / 8)
          for (index_t i = uplo == Uplo::upper ? 0 : j; i < (uplo == Uplo::upper ? j + 1 : n); i += 1 + n / 16)
            for (const T bad : {nan, -std::numeric_limits<T>::infinity(), std::numeric_limits<T>::max()}) {
              const T good = std::exchange(R[size_t(i + j * ld)], bad);
              EXPECT_FALSE(std::isfinite(cpu::squares_of_triangle<T>(instructions, view, uplo, nullptr)))
                  << i << ", " << j;
              EXPECT_FALSE(std::isfinite(cpu::squares_by_threads<T>(instructions, view, uplo, 2))) << i << ", " << j;
              R[size_t(i + j * ld)] = good;
            }
      }
}

}  // namespace
}  // namespace gpucholmod::test
