#pragma once

#include <gtest/gtest.h>

#include "block_columns/closing.h"
#include "block_columns/turns.h"
#include "segment_apart.h"
#include "segment_call.h"
#include "segment_grid.h"

/// The definitions of the functions and classes that segment_call.h declares.
namespace gpucholmod::test {

/// A pass of K columns; A is the arithmetic of the card.
template <int K, class T, class A>
class HostPassOf : public HostPass<T> {
  using BlockTransform = block_columns::BlockTransform<K>;
  using Segment = block_columns::Segment<T, block_columns::Order::forward, A>;
  static constexpr int NB = block_columns::NB;

 public:
  HostPassOf(const double* V, index_t n, const block_columns::PassColumns& columns, index_t ldv, int strips)
      : strips_(strips), columns_(columns), V_(Stored<A>::Zero(index_t(strips) * block_columns::STRIP, K)),
        transforms_((size_t(strips) * block_columns::BLOCKS + 1) * BlockTransform::stride, nan) {
    columns.each([&](index_t to, index_t from, index_t count) {
      for (index_t q = 0; q < count; ++q) std::copy_n(V + (from + q) * ldv, n, V_.col(to + q).data());
    });
  }

  block_columns::PassOutcome run_panel(int first, int end, const T* R, T* out, index_t ld,
                                       const SegmentsRun& how) override {
    begin_panel(first, end, R, out, ld);
    s_.scaling = how.scaling;
    if (how.apart) return run_apart(how);
    if (how.by_steps) return run_steps();
    for (size_t i = 0; i < turns_.size(); ++i) repeat(how, i);
    return run_turns(how);
  }

  block_columns::PassOutcome run_with_sides(const T* R, T* out, index_t ld, T* z, MatrixView<const double> Y,
                                            double* rest, const SegmentsRun& how) override {
    const index_t behind = V_.rows();
    V_.conservativeResize(behind + block_columns::STRIP, K);
    V_.bottomRows(block_columns::STRIP).setZero();
    columns_.each([&](index_t to, index_t from, index_t count) {
      for (index_t q = 0; q < count; ++q) std::copy_n(Y.col(from + q), Y.rows, V_.col(to + q).data() + behind);
    });
    begin_panel(0, strips_ + 1, R, out, ld);
    s_.end -= block_columns::BLOCKS;
    s_.set_sides(z);
    s_.scaling = how.scaling;
    const block_columns::PassOutcome done = how.by_steps ? run_steps() : run_turns(how);
    columns_.each([&](index_t from, index_t to, index_t count) {
      for (index_t q = 0; q < count; ++q)
        std::copy_n(V_.col(from + q).data() + behind, Y.rows, rest + (to + q) * Y.ld);
    });
    return done;
  }

  void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, const SegmentsRun& how) override {
    Stored<A> V = Stored<A>::Zero(block_columns::STRIP, K);
    columns_.each([&](index_t to, index_t from, index_t count) {
      for (index_t q = 0; q < count; ++q) std::copy_n(Y + (from + q) * ldy, m, V.col(to + q).data());
    });
    begin_panel(strips_, strips_ + 1, z, z, ld);
    s_.scaling = how.scaling;
    s_.V = s_.left_V = V.data();
    s_.ldv = V.rows();
    if (how.by_steps)
      for (int b = s_.top; b < 0; ++b) take_steps(b);
    else
      for (size_t i = 0; i < turns_.size(); ++i) repeat(how, i, true);
    columns_.each([&](index_t from, index_t to, index_t count) {
      for (index_t q = 0; q < count; ++q) std::copy_n(V.col(from + q).data(), m, rest + (to + q) * ldy);
    });
  }

 private:
  static constexpr A nan = std::numeric_limits<A>::quiet_NaN();

  void begin_panel(int first, int end, const T* R, T* out, index_t ld) {
    using namespace block_columns;
    const index_t above = index_t(first) * STRIP;
    s_ = {};
    s_.blocks = s_.end = (end - first) * BLOCKS;
    s_.top = -first * BLOCKS;
    s_.sigma = columns_.sigma();
    s_.sigma2 = columns_.sigma2();
    s_.bound = s_.sigma > 0 ? largest_update : least_downdate;
    s_.R = R + above;
    s_.out = out ? out + above : nullptr;
    s_.ld = ld;
    s_.V = s_.left_V = V_.data() + above;
    s_.ldv = V_.rows();
    s_.transforms = transforms_.data() - index_t(s_.top) * BlockTransform::stride;
    handed_.assign(size_t(s_.blocks) * LDB * K, nan);
    inverses_.assign(size_t(s_.blocks) * INVERSE, nan);
    links_ = inverses_;
    V_outside_.assign(size_t(s_.blocks) * NB * K, nan);
    ints_.assign(PassInts::words(s_.blocks), 0);
    pass_ = {ints_.data()};
    s_.handed = handed_.data();
    s_.inverses = inverses_.data();
    s_.links = links_.data();
    s_.V_outside = V_outside_.data();
    s_.inverted = ints_.data() + PassInts::inverted;
    s_.linked = ints_.data() + PassInts::linked;
  }

  block_columns::PassOutcome run_apart(const SegmentsRun& how) {
    const PartsApartOnHost<Segment> parts(s_);
    const block_columns::PassOutcome done = how.by_steps ? run_steps() : run_turns(how);
    parts.give();
    return done;
  }
  block_columns::PassOutcome run_turns(const SegmentsRun& how) {
    pass_.progress_of(0).first = turns_.back().first + s_.top;
    for (int turn = 0;; ++turn) {
      if (turn > 0) begin_turn(turn);
      segment(how, turn);
      if (s_.end < s_.blocks) close(turn);
      if (const auto done = outcome(pass_, turn, s_.blocks)) {
        EXPECT_EQ(done->turns, turn + 1);
        return *done;
      }
      const block_columns::Progress next = pass_.behind(turn, s_.blocks);
      turns_.push_back({next.first - s_.top, next.steps});
    }
  }
  /// Scales V of the right-hand sides if `turn` has completed the pass, as close_segment() does.
  void close(int turn) {
    s_.first = pass_.progress_of(turn).first;
    if (s_.first >= s_.end || !is_done(pass_, turn, s_.blocks)) return;
    using Team = block_columns::HostTeamOf<block_columns::Card90, A>;
    std::vector<A> shared(block_columns::Closing<Segment, K, Team>::words, nan);
    block_columns::Closing<Segment, K, Team>({shared.data()}, s_).scale_sides();
  }

  block_columns::PassOutcome run_steps() {
    for (int b = s_.top; b < s_.end && !pass_.pass_state().stop; ++b) take_steps(b);
    const block_columns::PassState& state = pass_.pass_state();
    return {state.stop ? state.pivot : -1, s_.end, 0, 0, 1, block_columns::Stop(state.stop), state.get_entry()};
  }
  /// Modifies the panel by Householder steps for row block b, which is in the panel or above it.
  void take_steps(int b) {
    using Block = block_columns::RejectedBlock<Segment, K, block_columns::HostTeam>;
    std::vector<double> shared(Block::shared_words, std::numeric_limits<double>::quiet_NaN());
    for (int number = 0; number < Block::count(s_.blocks, b); ++number)
      Block({shared.data()}, s_, b, number).run(&pass_.pass_state());
    if (b >= 0) Block::store_diagonal_block(s_, b, 0, 1);
  }

  /// Applies turn i of the panels before to this panel. Leaves out the segment of the last turn, which continues in
  /// this panel, unless `all`.
  void repeat(const SegmentsRun& how, size_t i, bool all = false) {
    s_.first = turns_[i].first + s_.top;
    if (turns_[i].steps) take_steps(s_.first - 1);
    const bool last = i + 1 == turns_.size();
    if (last && !all) return;
    s_.end = last ? 0 : turns_[i + 1].first - turns_[i + 1].steps + s_.top;
    s_.flags = pass_.flags_of(1, s_.blocks);
    if (last && s_.end > s_.first) {
      using Team = block_columns::HostTeamOf<block_columns::Card90, A>;
      std::vector<A> shared(block_columns::Closing<Segment, K, Team>::words, nan);
      block_columns::Closing<Segment, K, Team>({shared.data()}, s_).run();
    }
    part(how, false);
    s_.end = s_.blocks;
  }

  /// Begins a turn after the first, as the kernel of this name does. segment() stands in for the kernel of that name.
  void begin_turn(int turn) {
    const block_columns::Progress now = pass_.behind(turn - 1, s_.blocks);
    std::fill_n(pass_.flags_of(turn, s_.blocks), s_.flag_words(s_.blocks), 0);
    pass_.progress_of(turn) = now;
    if (now.steps) take_steps(now.first - 1);
  }
  void segment(const SegmentsRun& how, int turn) {
    s_.first = pass_.progress_of(turn).first;
    s_.flags = pass_.flags_of(turn, s_.blocks);
    if (s_.first >= s_.end || pass_.pass_state().stop) return;
    part(how, true);
  }
  /// Runs all roles of a segment or, to apply a segment of the panels before, the trailing update alone.
  void part(const SegmentsRun& how, bool all) {
    using namespace block_columns;
    if constexpr (std::is_same_v<A, float>) {
      part_on<Card86Single>(how, all);
    } else {
      if constexpr (K <= 16 && std::is_same_v<T, double>) {
        if (how.card == Simulated::data_centre) return part_on<Card80>(how, all);
        if (how.card == Simulated::graphics) return part_on<Card86>(how, all);
      }
      ASSERT_EQ(how.card, Simulated::clusters) << "not compiled";
      part_on<Card90>(how, all);
    }
  }
  template <class Card>
  void part_on(const SegmentsRun& how, bool all) {
    s_.solvers = all ? K / block_columns::CHAIN_COLUMNS * Card::cluster : 0;
    s_.advancers = !all ? 0 : how.ranks > 1 ? block_columns::WORKERS_OF_STRIP * how.ranks : how.advancers;
    s_.finishers = all ? how.finishers : 0;
    s_.workers = how.workers * how.ranks;
    s_.workers_within = !all || !s_.in_place() ? 0
                        : how.ranks > 1       ? block_columns::WORKERS_OF_STRIP * how.ranks
                                               : how.workers_within;
    s_.window = all ? how.window : s_.blocks - s_.top;
    s_.outside = how.outside;
    const int near = s_.workers_within > 0 ? s_.window + 1 : 0, last = block_columns::LAST_GROUPS * s_.workers;
    s_.by_three = how.by_three ? std::max(s_.blocks - near - last / block_columns::GROUPS, s_.top) : INT_MAX;
    if (how.ranks > 1) run_on_ranks<Card>(how);
    else run_on_rank<Card>(s_, how);
  }
  template <class Card>
  void run_on_rank(const Segment& s, const SegmentsRun& how) {
    const block_columns::Disturb disturb = [&](const char* role, int number) {
      if (how.delay && (unsigned(role[0]) + unsigned(number)) % how.delay == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    };
    if (!s.last_columns && !s.diagonal) return block_columns::run_segment_on_host<K, Card>(s, disturb);
    if constexpr (std::is_same_v<Card, block_columns::Card80> || std::is_same_v<Card, block_columns::Card86>)
      ADD_FAILURE() << "not compiled";
    else block_columns::run_segment_on_host<K, Card>(s.with_sides(), disturb);
  }

  /// Holds the memory of a rank: `out` with its own strips, NaN elsewhere; and for every rank but the first, R in the
  /// same way, and memory for V, transforms and flags. In place, all ranks share the factor that the chain reads.
  struct OfRank {
    std::vector<T> R, out;
    std::vector<A> transforms, V, V_outside;
    std::vector<int> flags;
    Segment s;
  };
  bool is_of(int rank, int ranks, index_t column) const { return column / block_columns::STRIP % ranks == rank; }

  template <class Card>
  void run_on_ranks(const SegmentsRun& how) {
    const index_t words = s_.ld * s_.end * NB;
    std::deque<OfRank> ranks;
    std::vector<block_columns::OtherRank> others;
    for (int rank = 0; rank < how.ranks; ++rank) {
      OfRank& own = ranks.emplace_back();
      own.s = s_;
      own.s.device_ranks = how.ranks;
      own.s.device_rank = (rank + how.lead) % how.ranks;
      own.s.together = true;
      const auto strips_of = [&](const T* from) {
        std::vector<T> memory(from, from + words);
        for (index_t i = 0; i < words; ++i)
          if (!is_of(own.s.device_rank, how.ranks, i / s_.ld)) memory[i] = T(nan);
        return memory;
      };
      if (s_.out && !s_.in_place()) {
        own.out = strips_of(s_.out);
        own.s.out = own.out.data();
      }
      if (rank == 0) continue;  // the chain reads all of R
      if (!s_.in_place()) {
        own.R = strips_of(s_.R);
        own.s.R = own.R.data();
      }
      own.s.solvers = own.s.finishers = 0;
      own.transforms.assign(size_t(s_.blocks) * BlockTransform::stride, A(nan));
      own.flags.assign(s_.flag_words(s_.blocks), 0);
      others.push_back({reinterpret_cast<double*>(own.transforms.data()), own.flags.data()});
      own.s.first_flags = s_.flags;
      own.s.flags = own.flags.data();
      own.s.transforms = own.transforms.data();
      own.V.assign(s_.V, s_.V + s_.ldv * K);
      own.s.V = own.V.data();
      own.V_outside.assign(V_outside_.size(), A(nan));
      own.s.V_outside = own.V_outside.data();
    }
    ranks[0].s.others = others.data();
    ranks[0].s.transforms_at = 0;
    std::vector<std::thread> running;
    for (OfRank& own : ranks) running.emplace_back([&] { run_on_rank<Card>(own.s, how); });
    for (std::thread& thread : running) thread.join();
    if (!s_.out || s_.in_place()) return;
    for (int rank = 0; rank < how.ranks; ++rank)
      for (index_t i = 0; i < words; ++i)
        if (is_of(ranks[rank].s.device_rank, how.ranks, i / s_.ld)) s_.out[i] = ranks[rank].out[i];
        else EXPECT_TRUE(std::isnan(ranks[rank].out[i])) << "rank " << rank << " has written what is not its own";
  }

  int strips_;
  block_columns::PassColumns columns_;
  Stored<A> V_;
  std::vector<A> transforms_, handed_, inverses_, links_, V_outside_;
  std::vector<int> ints_;
  block_columns::PassInts pass_{};
  Segment s_{};
  std::vector<block_columns::Turn> turns_{{0, 0}};
};

template <class T>
std::unique_ptr<HostPass<T>> host_pass(const double* V, index_t n, const block_columns::PassColumns& columns,
                                       index_t ldv, int strips, Simulated card) {
  return block_columns::with_width(columns.width(), [&](auto K) -> std::unique_ptr<HostPass<T>> {
    using Graphics = block_columns::Card86::Arithmetic<T>;
    if (card == Simulated::graphics)
      return std::make_unique<HostPassOf<decltype(K)::value, T, Graphics>>(V, n, columns, ldv, strips);
    return std::make_unique<HostPassOf<decltype(K)::value, T, double>>(V, n, columns, ldv, strips);
  });
}

template <class T>
SegmentsResult<T> run_segments(const Problem<double>& p, const SegmentsRun& how) {
  struct Memory {
    explicit Memory(const Problem<double>& p) : grid(p) {}
    Grid<T> grid;
    block_columns::PassOutcome done;
  };
  const auto memory = std::make_shared<Memory>(p);
  Grid<T>& grid = memory->grid;
  const Stored<T> before = grid.R;
  const index_t n = p.R.cols();
  within_a_minute([=, &grid] {
    T* const out = how.into == Into::place ? grid.R.data() : how.into == Into::nowhere ? nullptr : grid.out.data();
    const index_t k = p.V.cols(), removed = how.removed >= 0 ? how.removed : p.sign == Sign::downdate ? k : 0;
    const auto pass =
        host_pass<T>(p.V.data(), n, {0, k, removed}, n, grid.strips, how.by_steps ? Simulated::clusters : how.card);
    const int width = how.panels > 0 ? how.panels : grid.strips;
    for (int first = 0; first < grid.strips && memory->done.pivot < 0; first += width) {
      const index_t ld = grid.R.rows(), column = index_t(first) * block_columns::STRIP;
      const block_columns::PassOutcome done =
          pass->run_panel(first, std::min(first + width, grid.strips), grid.R.data() + column * ld,
                          out ? out + column * ld : nullptr, ld, how);
      memory->done.fallbacks += done.fallbacks;
      memory->done.rescalings += done.rescalings;
      memory->done.renewals += done.renewals;
      memory->done.stop = done.stop;
      if (done.pivot >= 0) memory->done.pivot = column + done.pivot;
    }
  });
  SegmentsResult<T> result{{}, how.into == Into::place ? grid.R : grid.out, same_bits(grid.R, before), memory->done};
  result.R = result.memory.topLeftCorner(n, n).template triangularView<Eigen::Upper>();
  return result;
}

}  // namespace gpucholmod::test
