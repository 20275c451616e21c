#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "block_columns/segment.h"

/// What a modification on several GPUs takes, from what was measured on one and on two: inst/design/several-gpus.md has the table.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Microseconds, for V of 8, 16 or 32 columns (inst/design/segments.md, "Where the time goes").
struct Width {
  int columns;
  double finish;    ///< from P of a row block to its message, and to the first that rewrites
  double tile;      ///< a row block of a warp that has one tile in it
  double products;  ///< of that, its products alone
};
constexpr Width widths[] = {{8, 10, 1.4, 0.5}, {16, 10.5, 1.9, 0.8}, {32, 17, 2.8, 1.3}};

struct Card {
  int workers[3], on_several[3];  ///< blocks of threads that rewrite, for each width, and those on each of several owners
  double rates[3];                ///< bytes a microsecond that rewriting reads and writes, from n = 32,768
};
constexpr Card h100{{100, 96, 88}, {96, 96, 88}, {2.5e6, 2.5e6, 2.05e6}}, h200{{112, 112, 104}, {112, 112, 104}, {3.1e6, 3.1e6, 2.5e6}};

constexpr double start = 27;      ///< launch, inverses, the first P
constexpr double link = 0.9;      ///< of the chain, from one P to the next
constexpr double relay = 4.5;     ///< a flag seen and a message copied to another owner
constexpr double across = 0.171;  ///< bytes a picosecond that the chain reads from other owners
constexpr double inverting = 0.197;  ///< likewise, what diagonal blocks and links are found from
constexpr double hop = 32;        ///< V of another owner's column, rewritten, to the chain: written across, and taken past 8 row blocks by tiles from across
constexpr int window = 16;
constexpr int quarters = 4;       ///< of a multiprocessor, with a tensor core each

/// Of an update of a factor of doubles of order n, on so many owners, in microseconds; what goes to another owner takes `slower` times as long as it
/// should. Every owner is done with a row block before it begins with the next.
double predicted(index_t n, int width, const Card& card, int owners, double slower = 1) {
  const Width& m = widths[width];
  const int strips = int((n + STRIP - 1) / STRIP), blocks = strips * BLOCKS;
  const double tile_bytes = NB * NB * sizeof(double), elsewhere = slower * double(owners - 1) / owners;
  // Of a row block: the chain's last REACH tiles of a column, for every CHAIN_COLUMNS columns of V, and those that are advanced.
  const double step = std::max(link, (m.columns / CHAIN_COLUMNS * REACH + window - REACH) * tile_bytes * elsewhere / (1e6 * across));
  std::vector<double> P(blocks), done_by(owners, 0.0);
  std::vector<std::vector<double>> done(blocks, done_by);
  for (int b = 0; b < blocks; ++b) {
    P[b] = b == 0 ? start + 2 * blocks * tile_bytes * elsewhere / (1e6 * inverting) : P[b - 1] + step;
    if (const int before = b - 1 - window; before >= 0) {
      const int owner = b / BLOCKS % owners;
      P[b] = std::max(P[b], done[before][owner] + (owner > 0 ? slower * hop : 0));
    }
    for (int owner = 0; owner < owners; ++owner) {
      int own = 0;  // block columns from the diagonal on
      for (int strip = owner; strip < strips; strip += owners) own += std::min(std::max((strip + 1) * BLOCKS - b, 0), BLOCKS);
      const double groups = double(own) * GROUPS / (owners > 1 ? card.on_several : card.workers)[width];  // of a worker
      const double bytes = double(own) * 2 * tile_bytes;
      const double takes = std::max({std::ceil(groups / REWRITE_WARPS) * m.tile, groups / quarters * m.products, bytes / card.rates[width]});
      const double there = P[b] + m.finish + (owner > 0 ? slower * relay : 0);
      done[b][owner] = done_by[owner] = std::max(done_by[owner], there) + takes;
    }
  }
  return *std::max_element(done_by.begin(), done_by.end());
}

/// ms measured, of a pass.
struct Row {
  index_t n;
  int width, owners;
  double ms;
};

TEST(PredictedOwners, TakeWhatWasMeasured) {
  for (const Row& row : {Row{5000, 1, 1, 0.199}, {5000, 1, 2, 0.343}, {16384, 1, 1, 1.04}, {16384, 1, 2, 0.858}, {32768, 0, 1, 3.57}, {32768, 0, 2, 2.17},
                         {32768, 1, 1, 3.67}, {32768, 1, 2, 2.26}, {32768, 2, 1, 4.28}, {32768, 2, 2, 2.99}, {65536, 0, 1, 14.5}, {65536, 0, 2, 7.45}})
    EXPECT_NEAR(predicted(row.n, row.width, h100, row.owners) / 1e3 / row.ms, 1, 0.2) << row.n << ", " << widths[row.width].columns << ", " << row.owners;
  for (const Row& row : {Row{5000, 0, 1, 0.163}, {5000, 1, 1, 0.188}, {5000, 2, 1, 0.270}, {16384, 0, 1, 0.78}, {16384, 1, 1, 0.83}, {16384, 2, 1, 1.15},
                         {32768, 0, 1, 2.80}, {32768, 1, 1, 2.89}, {32768, 2, 1, 3.7}})
    EXPECT_NEAR(predicted(row.n, row.width, h200, row.owners) / 1e3 / row.ms, 1, 0.2) << row.n << ", " << widths[row.width].columns;
}

/// ms, by 1, 2, 4 and 8 H100.
struct OfNote {
  index_t n;
  int width;
  double ms[4];
};
constexpr OfNote note[] = {{5000, 1, {0.19, 0.28, 0.34, 0.39}},   {16384, 1, {0.97, 0.83, 0.99, 1.14}},     {32768, 0, {3.52, 2.15, 1.64, 1.63}},
                           {32768, 1, {3.55, 2.16, 1.93, 2.25}},  {32768, 2, {4.36, 2.69, 3.12, 3.63}},     {65536, 0, {13.83, 7.40, 4.36, 3.29}},
                           {131072, 0, {55.08, 28.20, 14.94, 8.77}}, {150000, 0, {72.12, 36.78, 19.29, 10.99}}};

TEST(PredictedOwners, AreThoseOfTheNote) {
  for (const OfNote& row : note)
    for (int i = 0; i < 4; ++i) EXPECT_NEAR(predicted(row.n, row.width, h100, 1 << i) / 1e3, row.ms[i], 0.006) << row.n << ", " << (1 << i);
}

/// How much would it matter if the way between them were longer?
TEST(PredictedOwners, DependLittleOnTheWayBetweenThemIfLong) {
  for (const int owners : {2, 4}) EXPECT_LT(predicted(131072, 0, h100, owners, 2) / predicted(131072, 0, h100, owners), 1.15) << owners;
}

}  // namespace
}  // namespace gpucholmod::test
