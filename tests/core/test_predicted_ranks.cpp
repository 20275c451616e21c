#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "block_columns/segment.h"

/// The predicted time of a modification on several GPUs, from measurements on one and on two; the table is in
/// log/figures-of-the-notes.md.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

/// Holds times in microseconds for V of 8, 16 or 32 columns (log/figures-of-the-notes.md, "Where the time goes"). Times
/// between GPUs have been measured for 16 columns alone, and are guessed for 8 and 32.
struct Width {
  int columns;
  double finish;    ///< time from P of a row block until its message is complete and known to the first updating warp
  double tile;      ///< time of a row block for a warp that updates one tile of it
  double products;  ///< part of `tile` that its products alone take
  double advance;   ///< time of a row block for a warp that advances, with all P present
  double P_across;  ///< time from P of a row block until warps that advance on another rank know P
  double V_across;  ///< time from V that is handed over on another rank until the chain uses V
};
constexpr Width widths[] = {
    {8, 10, 1.4, 0.5, 1.0, 8.9, 5.9}, {16, 10.5, 1.9, 0.8, 1.25, 9.8, 6.4}, {32, 17, 2.8, 1.3, 2.2, 12, 8}};

struct Card {
  /// Numbers of thread blocks that update, for each width: on one rank, and on each of several ranks.
  int workers[3], on_several[3];
  double rates[3];                ///< bytes a microsecond that the trailing update reads and writes, from n = 32,768
};
constexpr Card h100{{100, 96, 88}, {96, 88, 80}, {2.5e6, 2.5e6, 2.05e6}},
    h200{{112, 112, 104}, {112, 104, 96}, {3.1e6, 3.1e6, 2.5e6}};

constexpr double start = 22;       ///< time of the launch, the inverses and the first P
constexpr double bringing = 28e3;  ///< rate of V from the host's memory, bytes a microsecond
constexpr double link = 0.9;       ///< time of the chain from one P to the next
constexpr double P_there = 3, V_there = 2.5;  ///< times as P_across and V_across, on the first rank
constexpr double message_across = 4.5;        ///< time of a complete message to another rank
constexpr double across = 0.3;     ///< rate at which the chain reads from other ranks, bytes a picosecond
constexpr int window = 16, window_on_several = 32;
constexpr int quarters = 4;        ///< quarters of a multiprocessor, each with a tensor core

/// Returns the predicted microseconds of one pass of an update of a factor of doubles of order n, on `ranks` ranks.
/// Data for another rank take `slower` times as long as they should. Every rank completes a row block before it begins
/// the next.
double predicted(index_t n, int width, const Card& card, int ranks, double slower = 1) {
  const Width& m = widths[width];
  const int strips = int((n + STRIP - 1) / STRIP), blocks = strips * BLOCKS;
  const double tile_bytes = NB * NB * sizeof(double), elsewhere = slower * double(ranks - 1) / ranks;
  const int ahead = ranks > 1 ? window_on_several : window;
  // Time of a row block in the chain: the last REACH tiles of a column are read for every CHAIN_COLUMNS columns of V.
  const double step = std::max(link, m.columns / CHAIN_COLUMNS * REACH * tile_bytes * elsewhere / (1e6 * across));
  std::vector<double> P(blocks), done_by(ranks, 0.0);
  std::vector<std::vector<double>> done(blocks, done_by);
  for (int b = 0; b < blocks; ++b) {
    P[b] = b == 0 ? start + double(n) * m.columns * sizeof(double) / bringing : P[b - 1] + step;
    const int of = b / BLOCKS % ranks;
    const double sent = of > 0 ? slower * m.P_across : P_there, handed = of > 0 ? slower * m.V_across : V_there;
    if (const int last = b - 1 - REACH; last >= 0) P[b] = std::max(P[b], P[last] + sent + m.advance + handed);
    if (const int before = b - 1 - ahead; before >= 0)
      P[b] = std::max(P[b], done[before][of] + (ahead - REACH) * m.advance + handed);
    for (int rank = 0; rank < ranks; ++rank) {
      int own = 0;  // block columns of this rank, from the diagonal on
      for (int strip = rank; strip < strips; strip += ranks)
        own += std::min(std::max((strip + 1) * BLOCKS - b, 0), BLOCKS);
      const double groups = double(own) * GROUPS / (ranks > 1 ? card.on_several : card.workers)[width];  // per worker
      const double bytes = double(own) * 2 * tile_bytes;
      const double takes = std::max(
          {std::ceil(groups / UPDATE_WARPS) * m.tile, groups / quarters * m.products, bytes / card.rates[width]});
      const double there = P[b] + m.finish + (rank > 0 ? slower * message_across : 0);
      done[b][rank] = done_by[rank] = std::max(done_by[rank], there) + takes;
    }
  }
  return *std::max_element(done_by.begin(), done_by.end());
}

/// A measured pass, with its time in ms.
struct Row {
  index_t n;
  int width, ranks;
  double ms;
};

/// Checks the model against passes timed before 2026-12-01, those on two ranks with a look-ahead distance of 24.
TEST(PredictedRanks, TakeWhatWasMeasured) {
  for (const Row& row : {Row{5000, 1, 1, 0.199},
                         {16384, 1, 1, 1.04},
                         {32768, 0, 1, 3.57},
                         {32768, 1, 1, 3.67},
                         {32768, 2, 1, 4.28},
                         {65536, 0, 1, 14.5}})
    EXPECT_NEAR(predicted(row.n, row.width, h100, row.ranks) / 1e3 / row.ms, 1, 0.2)
        << row.n << ", " << widths[row.width].columns;
  for (const Row& row : {Row{5000, 0, 1, 0.163},
                         {5000, 1, 1, 0.198},
                         {5000, 1, 2, 0.230},
                         {5000, 2, 1, 0.270},
                         {16384, 0, 1, 0.78},
                         {16384, 1, 1, 0.831},
                         {16384, 1, 2, 0.664},
                         {16384, 2, 1, 1.15},
                         {32768, 0, 1, 2.776},
                         {32768, 0, 2, 1.687},
                         {32768, 1, 1, 2.901},
                         {32768, 1, 2, 1.715},
                         {32768, 2, 1, 3.96},
                         {32768, 2, 2, 2.82},
                         {65536, 0, 1, 10.64},
                         {65536, 0, 2, 5.82},
                         {150000, 0, 2, 30.2}})
    EXPECT_NEAR(predicted(row.n, row.width, h200, row.ranks) / 1e3 / row.ms, 1, 0.2)
        << row.n << ", " << widths[row.width].columns << ", " << row.ranks;
}

/// A row of the note's table: ms on 1, 2, 4 and 8 H200.
struct OfNote {
  index_t n;
  int width;
  double ms[4];
};
constexpr OfNote note[] = {{5000, 1, {0.21, 0.21, 0.21, 0.21}},      {16384, 1, {0.89, 0.63, 0.60, 0.61}},
                           {32768, 0, {2.93, 1.63, 1.08, 1.00}},     {32768, 1, {3.04, 1.75, 1.22, 1.18}},
                           {32768, 2, {3.93, 2.37, 1.80, 1.91}},     {65536, 0, {11.32, 5.87, 3.24, 2.14}},
                           {131072, 0, {44.73, 22.66, 11.72, 6.47}}, {150000, 0, {58.52, 29.58, 15.21, 8.24}}};

TEST(PredictedRanks, AreThoseOfTheNote) {
  for (const OfNote& row : note)
    for (int i = 0; i < 4; ++i)
      EXPECT_NEAR(predicted(row.n, row.width, h200, 1 << i) / 1e3, row.ms[i], 0.006) << row.n << ", " << (1 << i);
}

/// Checks that twice the time between ranks costs a pass less than 15 %.
TEST(PredictedRanks, DependLittleOnTheWayBetweenThemIfLong) {
  for (const int ranks : {2, 4})
    EXPECT_LT(predicted(131072, 0, h200, ranks, 2) / predicted(131072, 0, h200, ranks), 1.15) << ranks;
}

}  // namespace
}  // namespace gpucholmod::test
