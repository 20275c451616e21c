#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "block_columns/segment.h"

/// What a modification on several GPUs takes, predicted from what was measured on one and between two: inst/design/several-gpus.md has the table.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Microseconds, of an NVIDIA H200, for V of 8, 16 or 32 columns (inst/design/segments.md, "Where the time goes").
struct Measured {
  int columns;
  double finish;    ///< from P of a row block to its message, and to the first that rewrites
  double tile;      ///< a row block of a warp that has one tile in it
  double products;  ///< of that, its products alone
  int workers;      ///< blocks of threads that rewrite, on each of several owners
  double rate;      ///< bytes a microsecond that rewriting reads and writes, from n = 32,768
};
constexpr Measured measured[] = {{8, 10, 1.4, 0.5, 112, 3.1e6}, {16, 10.5, 1.9, 0.8, 112, 3.1e6}, {32, 17, 2.8, 1.3, 104, 2.5e6}};
constexpr double start = 27;      ///< launch, inverses, the first P
constexpr double link = 0.9;      ///< of the chain, from one P to the next
constexpr double relay = 4;       ///< a flag seen and a message copied to another owner: from times of these between two, not as they are done here
constexpr double hop = 1.5;       ///< V written to the first owner, and seen there: likewise
constexpr int window = 16;
constexpr int quarters = 4;       ///< of a multiprocessor, with a tensor core each

/// Of an update of a factor of doubles of order n, on so many owners, in microseconds; what goes to another owner takes `slower` times as long as it
/// should. Every owner is done with a row block before it begins with the next.
double predicted(index_t n, const Measured& m, int owners, double slower = 1) {
  const int strips = int((n + STRIP - 1) / STRIP), blocks = strips * BLOCKS;
  std::vector<double> P(blocks), done_by(owners, 0.0);
  std::vector<std::vector<double>> done(blocks, done_by);
  for (int b = 0; b < blocks; ++b) {
    P[b] = b == 0 ? start : P[b - 1] + link;
    if (const int before = b - 1 - window; before >= 0) {
      const int owner = b / BLOCKS % owners;
      P[b] = std::max(P[b], done[before][owner] + (owner > 0 ? slower * hop : 0));
    }
    for (int owner = 0; owner < owners; ++owner) {
      int own = 0;  // block columns from the diagonal on
      for (int strip = owner; strip < strips; strip += owners) own += std::min(std::max((strip + 1) * BLOCKS - b, 0), BLOCKS);
      const double groups = double(own) * GROUPS / m.workers;  // of a worker
      const double bytes = double(own) * NB * NB * 2 * sizeof(double);
      const double takes = std::max({std::ceil(groups / REWRITE_WARPS) * m.tile, groups / quarters * m.products, bytes / m.rate});
      const double there = P[b] + m.finish + (owner > 0 ? slower * relay : 0);
      done[b][owner] = done_by[owner] = std::max(done_by[owner], there) + takes;
    }
  }
  return *std::max_element(done_by.begin(), done_by.end());
}

struct Row {
  index_t n;
  double on_one[3];         ///< ms measured, of passes of 8, 16 and 32 columns
};
constexpr Row rows[] = {{5000, {0.163, 0.188, 0.270}}, {16384, {0.78, 0.83, 1.15}}, {32768, {2.80, 2.89, 3.7}}};

TEST(PredictedOwners, OneTakesWhatWasMeasured) {
  for (const Row& row : rows)
    for (int i = 0; i < 3; ++i)
      EXPECT_NEAR(predicted(row.n, measured[i], 1) / 1e3 / row.on_one[i], 1, 0.2) << row.n << ", " << measured[i].columns;
}

/// ms, by 1, 2, 4 and 8 GPUs.
struct OfNote {
  index_t n;
  int width;  ///< of `measured`
  double ms[4];
};
constexpr OfNote note[] = {{5000, 0, {0.15, 0.15, 0.15, 0.15}},
                            {5000, 2, {0.27, 0.27, 0.27, 0.27}},
                            {16384, 0, {0.78, 0.48, 0.40, 0.40}},
                            {16384, 2, {1.05, 0.78, 0.76, 0.76}},
                            {32768, 0, {2.86, 1.53, 0.92, 0.76}},
                            {32768, 2, {3.63, 2.07, 1.51, 1.48}},
                            {65536, 0, {11.18, 5.69, 3.01, 1.81}},
                            {131072, 0, {44.44, 22.33, 11.34, 5.98}}};

TEST(PredictedOwners, AreThoseOfTheNote) {
  for (const OfNote& row : note)
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(predicted(row.n, measured[row.width], 1 << i) / 1e3, row.ms[i], 0.006) << row.n << ", " << (1 << i);
}

/// Nobody has measured how long messages take as they are sent here: how much would it matter?
TEST(PredictedOwners, DependLittleOnTheWayBetweenThem) {
  for (const int owners : {2, 4, 8}) {
    for (const Measured& m : measured) EXPECT_LT(predicted(32768, m, owners, 2) / predicted(32768, m, owners), 1.1) << m.columns << ", " << owners;
    EXPECT_LT(predicted(131072, measured[0], owners, 4) / predicted(131072, measured[0], owners), 1.1) << owners;
  }
}

}  // namespace
}  // namespace gpucholmod::test
