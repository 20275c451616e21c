#pragma once

#include "block_columns/by_segments.h"
#include "grid_call.h"
#include "segment_grid.h"

/// One modification by segments, every team of warps a thread.
namespace gpucholmod::test {

struct SegmentsRun {
  int workers = 3, finishers = 2;
  int window = 24;
  Into into = Into::other_memory;
  unsigned delay = 0;  ///< teams that begin late are chosen by it
  int advancers = 2;
};

template <class T>
struct SegmentsResult {
  Stored<T> R;       ///< n x n, upper
  Stored<T> memory;  ///< what R is a part of
  bool input_kept;   ///< no bit of the factor that was modified is different now
  block_columns::PassOutcome done;
};

/// All memory of a run: what is to be written first holds NaN.
template <int K, class T>
struct SegmentsMemory {
  using Parts = block_columns::Transform<K>;
  Grid<K, T> grid;
  std::vector<double> handed, inverses, links;
  std::vector<int> ints;
  block_columns::PassInts pass;
  block_columns::Segment<T> s{};

  SegmentsMemory(const Problem<double>& p, const SegmentsRun& how)
      : grid(p, GridRun{2, how.into}), handed(grid.blocks * block_columns::LDB * K, grid.nan),
        inverses(grid.blocks * block_columns::INVERSE, grid.nan), links(inverses), ints(block_columns::PassInts::words(int(grid.blocks))), pass{ints.data()} {
    const bool update = p.sign == Sign::update;
    s.blocks = int(grid.blocks);
    s.sigma = update ? 1 : -1;
    s.bound = update ? block_columns::largest_update : block_columns::least_downdate;
    s.R = grid.job.R;
    s.out = grid.job.out;
    s.ld = grid.job.ld;
    s.V = grid.V.data();
    s.messages = grid.transforms.data();
    s.handed = handed.data();
    s.inverses = inverses.data();
    s.links = links.data();
    s.inverted = ints.data() + block_columns::PassInts::inverted;
    s.linked = ints.data() + block_columns::PassInts::linked;
  }

  /// As SegmentPass::run() in src/cuda/segments.cu.
  block_columns::PassOutcome run(const SegmentsRun& how) {
    for (int turn = 0;; ++turn) {
      if (turn > 0) begin_turn(turn);
      segment(how, turn);
      const auto done = outcome(pass, turn, s.blocks);
      if (!done) continue;
      EXPECT_EQ(done->turns, turn + 1);
      return *done;
    }
  }

  /// As the kernels of that name.
  void begin_turn(int turn) {
    using Block = block_columns::RefusedBlock<T, K, block_columns::HostTeam>;
    const block_columns::Progress now = pass.behind(turn - 1, s.blocks);
    std::fill_n(pass.flags_of(turn, s.blocks), s.flag_words(s.blocks), 0);
    pass.progress_of(turn) = now;
    if (!now.steps) return;
    const int b = now.first - 1;
    std::vector<double> shared(Block::words, grid.nan);
    for (int number = 0; number < Block::count(s.blocks, b); ++number) Block({shared.data()}, s, b, number).run(&pass.pass_state());
    Block::store_diagonal_block(s, b, 0, 1);
  }

  void segment(const SegmentsRun& how, int turn) {
    s.first = pass.progress_of(turn).first;
    s.flags = pass.flags_of(turn, s.blocks);
    if (s.first == s.blocks || pass.pass_state().stop) return;
    const auto part = [&](bool chain, bool rest) {
      s.solvers = chain ? K / block_columns::CHAIN_COLUMNS * block_columns::CLUSTER : 0;
      s.advancers = chain ? how.advancers : 0;
      s.finishers = rest ? how.finishers : 0;
      s.workers = rest ? how.workers : 0;
      s.window = chain && rest ? how.window : s.blocks;
      block_columns::run_segment_on_host<K>(s, [&](const char* role, int number) {
        if (how.delay && (unsigned(role[0]) + unsigned(number)) % how.delay == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
      });
    };
    if (s.out != s.R) return part(true, true);
    part(true, false);
    part(false, true);
  }
};

template <int K, class T>
SegmentsResult<T> run_segments_of(const Problem<double>& p, const SegmentsRun& how) {
  const auto memory = std::make_shared<SegmentsMemory<K, T>>(p, how);
  const Stored<T> before = memory->grid.R;
  const auto done = std::make_shared<block_columns::PassOutcome>();
  within_a_minute([memory, how, done] { *done = memory->run(how); });
  SegmentsResult<T> result{{}, {}, false, *done};
  result.memory = how.into == Into::place ? memory->grid.R : memory->grid.out;
  const index_t n = p.R.cols();
  result.R = result.memory.topLeftCorner(n, n).template triangularView<Eigen::Upper>();
  result.input_kept = same_bits(memory->grid.R, before);
  return result;
}

/// V of at most 32 columns.
template <class T = double>
SegmentsResult<T> run_segments(const Problem<double>& p, const SegmentsRun& how = {}) {
  const index_t k = p.V.cols();
  return k <= 8 ? run_segments_of<8, T>(p, how) : k <= 16 ? run_segments_of<16, T>(p, how) : run_segments_of<32, T>(p, how);
}

}  // namespace gpucholmod::test
