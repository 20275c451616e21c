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
  block_columns::BySegments done;
};

/// All memory of a run: what is to be written first holds NaN.
template <int K, class T>
struct SegmentsMemory {
  using Parts = block_columns::Transform<K>;
  Grid<K, T> grid;
  std::vector<double> handed, inverses, links;
  std::vector<int> flags;
  block_columns::SegmentState state{};
  int inverted = 0, linked = 0;
  block_columns::Segment<T> s{};

  SegmentsMemory(const Problem<double>& p, const SegmentsRun& how)
      : grid(p, GridRun{2, how.into}), handed(grid.blocks * block_columns::LDB * K, grid.nan),
        inverses(grid.blocks * block_columns::INVERSE, grid.nan), links(inverses), flags(4 * grid.blocks) {
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
    s.inverted = &inverted;
    s.links = links.data();
    s.linked = &linked;
    s.has_P = flags.data();
    s.has_V = s.has_P + grid.blocks;
    s.is_near = s.has_V + grid.blocks;
    s.complete = s.is_near + grid.blocks;
    s.state = &state;
  }

  block_columns::BySegments run(const SegmentsRun& how) {
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
    const auto segment = [&](int first) {
      s.first = first;
      state = {};
      std::fill(flags.begin(), flags.end(), 0);
      if (first == s.blocks) {
      } else if (s.out != s.R) {
        part(true, true);
      } else {
        part(true, false);
        part(false, true);
      }
      return block_columns::end_of(state, s.blocks, grid.pass_state.stop ? grid.pass_state.pivot - (first - 1) * block_columns::NB : -1);
    };
    return block_columns::by_segments(segment, [&](int b) { householder(b); });
  }

  /// As SegmentPass::householder() in src/cuda/segments.cu.
  void householder(int b) {
    using Block = block_columns::RefusedBlock<T, K, block_columns::HostTeam>;
    constexpr int NB = block_columns::NB;
    std::vector<double> shared(Block::words, grid.nan);
    for (int number = 0; number < Block::count(s.blocks, b); ++number) Block({shared.data()}, s, b, number).run(&grid.pass_state);
    const T* tile = reinterpret_cast<const T*>(s.messages + index_t(b) * block_columns::Message<K>::stride);
    if (s.out)
      for (int j = 0; j < NB; ++j) std::memcpy(s.out + (index_t(b) * NB + j) * s.ld + index_t(b) * NB, tile + j * NB, sizeof(T) * NB);
  }
};

template <int K, class T>
SegmentsResult<T> run_segments_of(const Problem<double>& p, const SegmentsRun& how) {
  const auto memory = std::make_shared<SegmentsMemory<K, T>>(p, how);
  const Stored<T> before = memory->grid.R;
  SegmentsResult<T> result;
  const auto done = std::make_shared<block_columns::BySegments>();
  within_a_minute([memory, how, done] { *done = memory->run(how); });
  result.done = *done;
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
