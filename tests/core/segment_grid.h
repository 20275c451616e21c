#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "block_columns/early_look.h"
#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/trailing_update.h"
#include "block_columns/rejected.h"
#include "block_columns/send.h"
#include "block_columns/solve.h"
#include "host_grid.h"
#include "segment_call.h"

/// A segment on the CPU, for tests: every team of warps is a thread.
namespace gpucholmod::block_columns {

/// A staging ring, as DeviceRing is on a GPU.
template <class A>
class HostRing {
  using Lanes = HostLanes<A>;

 public:
  HostRing(int slots, int words, int consumers)
      : slots_(slots), words_(words), consumers_(consumers), memory_(size_t(slots) * words, A(0)), released_(slots) {}

  bool wait(const Lanes&, int i) const {
    while (filled_.load(std::memory_order_acquire) <= i) {
      if (closed_.load(std::memory_order_acquire)) return filled_.load(std::memory_order_acquire) > i;
      Lanes::pause();
    }
    return true;
  }
  bool wait(const Lanes&, int i, const int* stop) const {
    while (filled_.load(std::memory_order_acquire) <= i) {
      if (Lanes::load_acquire(stop) != 0) return false;
      Lanes::pause();
    }
    return true;
  }
  A* slot(int i) { return memory_.data() + size_t(i % slots_) * words_; }
  void release(const Lanes&, int i) { released_[i % slots_].fetch_add(1, std::memory_order_release); }

  template <class F>
  bool wait_empty(const Lanes&, int i, F&& over) const {
    while (released_[i % slots_].load(std::memory_order_acquire) < consumers_ * (i / slots_)) {
      if (over()) return false;
      Lanes::pause();
    }
    return true;
  }
  void fill(const Lanes&, int i, const A* from, int words) {
    std::memcpy(memory_.data() + size_t(i % slots_) * words_, from, sizeof(A) * words);
    filled_.store(i + 1, std::memory_order_release);
  }
  /// Fills slot i with a tile of R or a link, with leading dimension LDT.
  template <class T>
  void fill_columns(const Lanes&, int i, const T* from, index_t ld) {
    T* to = reinterpret_cast<T*>(slot(i));
    for (int j = 0; j < NB; ++j) std::memcpy(to + j * LDT, from + j * ld, sizeof(T) * NB);
    filled_.store(i + 1, std::memory_order_release);
  }
  /// Fills slot i with CHAIN_COLUMNS columns of V, with leading dimension LDB.
  void fill_columns_of_V(const Lanes&, int i, const A* from, index_t ld) {
    for (int q = 0; q < CHAIN_COLUMNS; ++q) std::memcpy(slot(i) + q * LDB, from + q * ld, sizeof(A) * NB);
    filled_.store(i + 1, std::memory_order_release);
  }
  void close(const Lanes&, int) { closed_.store(true, std::memory_order_release); }

 private:
  int slots_, words_, consumers_;
  std::vector<A> memory_;
  std::deque<std::atomic<int>> released_;
  std::atomic<int> filled_{0};
  std::atomic<bool> closed_{false};
};

constexpr int mail_slots = REACH;  ///< slots of a mailbox, as many as on a GPU

/// The mailboxes for P within a cluster. With HostMail they stand in for ClusterMail on a GPU.
struct HostMailboxes {
  static constexpr int cluster = Card90::cluster;
  std::vector<double> P[cluster];
  /// The number of warps whose P has arrived, and of phases that have begun; a phase begins when its P is expected.
  std::atomic<int> arrived[cluster][mail_slots]{}, expected[cluster][mail_slots]{};
  HostMailboxes() {
    for (auto& p : P) p.assign(mail_slots * NB * LP, std::numeric_limits<double>::quiet_NaN());
    for (auto& of : expected)
      for (auto& phases : of) phases = 1;
  }
};
struct HostMail {
  static constexpr int row = LP, column = 1;
  HostMailboxes& post;
  int rank, first;  ///< the first row block whose P arrives by mail

  /// Puts P of row blocks above the panel into the mailbox, as far as needed, for CHAIN_COLUMNS columns of V.
  template <int K, class S>
  void put(const S& s, int cluster) {
    for (int b = first; b < s.start(); ++b) {
      const double* from =
          s.transforms + index_t(b) * BlockTransform<K>::stride + BlockTransform<K>::P + cluster * CHAIN_COLUMNS * LDB;
      double* to = post.P[rank].data() + (b - first) * NB * LP;
      for (int q = 0; q < CHAIN_COLUMNS; ++q)
        for (int i = 0; i < NB; ++i) to[i * LP + q] = from[q * LDB + i];
      post.arrived[rank][b - first].store(SOLVE_WARPS, std::memory_order_release);
    }
    for (int i = 0; i < Own<S, Card90>{s, rank}.unused_mail(); ++i) ++post.expected[rank][i];
  }

  bool wait(const HostLanes<double>&, int b, const int* stop) const {
    const int i = b - first;
    while (post.arrived[rank][i % mail_slots].load(std::memory_order_acquire) < SOLVE_WARPS * (i / mail_slots + 1) ||
           post.expected[rank][i % mail_slots].load(std::memory_order_acquire) <= i / mail_slots) {
      if (HostLanes<double>::load_acquire(stop) != 0) return false;
      HostLanes<double>::pause();
    }
    return true;
  }
  const double* P(int b) const { return post.P[rank].data() + (b - first) % mail_slots * NB * LP; }
  void send(const HostLanes<double>& warp, int b, const Tile<HostLanes<double>>& tile) {
    const int slot = (b - first) % mail_slots;
    for (int to = 0; to < HostMailboxes::cluster; ++to) {
      store_tile(warp, tile, post.P[to].data() + slot * NB * LP + warp.id * 16 * LP, LP);
      post.arrived[to][slot].fetch_add(1, std::memory_order_release);
    }
  }
  void expect_next(const HostLanes<double>&, int b) { ++post.expected[rank][(b - first) % mail_slots]; }
};

/// The P that solving thread blocks publish, for cards without clusters; PublishedMail on a GPU.
template <int K, class S>
struct HostPublishedMail {
  using A = typename S::Arithmetic;
  using Lanes = HostLanes<A>;
  static constexpr int row = 1, column = LDB;
  const S& s;
  int cluster;

  bool wait(const Lanes&, int b, const int* stop) const {
    if (b < s.start()) return true;
    while (published(Lanes::load_acquire(s.has_P(b)), cluster) < SOLVE_WARPS) {
      if (Lanes::load_acquire(stop) != 0) return false;
      Lanes::pause();
    }
    return true;
  }
  const A* P(int b) const {
    return s.transforms + index_t(b) * BlockTransform<K>::stride + BlockTransform<K>::P + cluster * CHAIN_COLUMNS * LDB;
  }
  void expect_next(const Lanes&, int) const {}
  void send(const Lanes&, int, const Tile<Lanes>&) const {}
};

template <class Card, class A>
struct HostPost {
  using S = SolveMemory<Card>;
  using HostRing = block_columns::HostRing<A>;
  std::deque<HostRing> of_team;
  HostRing X{1, INVERSE, SOLVE_WARPS}, V{1, S::V_words, SOLVE_WARPS};
  HostPost() {
    for (int side = 0; side < Card::solve_teams; ++side) of_team.emplace_back(Card::tile_slots, S::tile, SOLVE_WARPS);
  }

  struct Post {
    HostRing &tiles, &X, &V;
  };
  Post of(int side) { return {of_team[side], X, V}; }
};

/// The relay of LastGroups. Nothing has to wait: the warps of a team run one after the other, and of the warps of a
/// group the one that fills comes first.
struct HostRelay {
  template <class Warp> void wait(const Warp&, int, int, int) const {}
  template <class Warp> void release(const Warp&, int, int) const {}
  template <class Warp> void wait_empty(const Warp&, int, int, int) const {}
  template <class Warp> void fill(const Warp&, int, int) const {}
};

/// Returns the words of shared memory that tiles of R need at most.
template <class S>
size_t places(const S&) {
  using MostWords = Tiles<S, SUBS, HostWarpOf<Card90, typename S::Arithmetic>>;
  return size_t(std::max(ADVANCE_WARPS, UPDATE_WARPS) * MostWords::words);
}

/// Runs the roles of a segment, every team of warps in a thread of its own. In segments of a kind that only
/// substitution has (Order::back, or R in another scalar than A), Advance does not take factors of products in place.
template <int K, class Card, class S>
void run_segment_on_host(const S& s, const Disturb& disturb) {
  using A = typename S::Arithmetic;
  using Warp = HostWarpOf<Card, A>;
  using Team = HostTeamOf<Card, A>;
  using HostRing = block_columns::HostRing<A>;
  if (s.solvers > 0 || s.is_led()) {
    constexpr int at_once = Card::inverted_at_once;
    std::vector<A> shared(InverseMemory<at_once>::words);
    const Team team{shared.data(), InverseMemory<at_once>::warps};
    const int all = s.last() / at_once, inverted = __atomic_load_n(s.inverted, __ATOMIC_RELAXED);
    // `early` tells whether the first row block is rejected before links are computed, as may happen on a GPU. Every
    // second set of block columns looks at `early`.
    std::vector<A> work(early_look_words<K>);
    const bool modifies = s.finishers > 0 && !s.several();
    const int never = 0, early = modifies && inverted < all && is_rejected_early<K>(Warp{}, s, work.data());
    if (__atomic_load_n(s.linked, __ATOMIC_RELAXED) < all)
      for (int i = 0; s.own_column(i) < s.last(); i += at_once) {
        const int c = s.own_column(i);
        if (modifies && inverted < all) {
          invert_and_link(team, s, i / at_once % 2 == 0 ? &early : &never, c);
        } else if (modifies) {
          link_later(team, s, s.first, c);
        } else {
          if (inverted == all) take_inverses(team, s, c);
          else invert_blocks<true>(team, s, c);
          link_blocks(team, s, s.top + 1, c);
        }
      }
  }
  std::vector<std::thread> running;
  std::deque<HostMailboxes> mailboxes(K / CHAIN_COLUMNS);
  using Post = typename HostPost<Card, A>::Post;
  std::deque<HostPost<Card, A>> posts;
  const int first_mail = Own<S, Card>{s, 0}.first_mail();
  if constexpr (Card::clusters)
    for (int cluster = 0; cluster < s.solvers / Card::cluster; ++cluster)
      for (int rank = 0; rank < Card::cluster; ++rank)
        HostMail{mailboxes[cluster], rank, first_mail}.template put<K>(s, cluster);
  const auto mail_of = [&](int cluster, [[maybe_unused]] int rank) {
    if constexpr (Card::clusters) return HostMail{mailboxes[cluster], rank, first_mail};
    else return HostPublishedMail<K, S>{s, cluster};
  };
  using Mail = decltype(mail_of(0, 0));
  const auto start = [&](const char* role, int number, auto f) {
    running.emplace_back([=, &disturb] {
      disturb(role, number);
      f();
    });
  };
  for (int cluster = 0; cluster < s.solvers / Card::cluster; ++cluster)
    for (int rank = 0; rank < Card::cluster; ++rank) {
      HostPost<Card, A>& post = posts.emplace_back();
      for (int side = 0; side < Card::solve_teams; ++side) {
        start("solve", 2 * rank + side, [=, &s, &post] {
          Mail mail = mail_of(cluster, rank);
          Post own = post.of(side);
          Solve<S, K, Team, Mail, Post>(Team{nullptr, SOLVE_WARPS}, s, cluster, rank, side, mail, own).run();
        });
        start("feed", rank, [=, &s, &post] { feed_tiles(Warp{}, s, rank, side, post.of_team[side]); });
      }
      start("feed", rank, [=, &s, &post] { feed_solve<K>(Warp{}, s, cluster, rank, post.X, post.V); });
    }
  std::deque<HostRing> rings;
  if constexpr (S::order == Order::forward) for (int i = 0; i < s.finishers; ++i) {
    HostRing& ring = rings.emplace_back(FinishMemory<K, Card>::slots, FinishMemory<K, Card>::P_words, FINISH_WARPS);
    start("finish", i, [=, &s, &ring] {
      std::vector<A> shared(FinishMemory<K, Card>::words);
      Finish<S, K, Team, HostRing>(Team{shared.data(), FINISH_WARPS}, s, i, ring).run();
    });
    start("feed", i, [=, &s, &ring] {
      std::vector<A> work(early_look_words<K>, std::numeric_limits<A>::quiet_NaN());
      feed_finish<K>(Team{work.data(), 1}, s, i, ring);
    });
    if (!s.several()) continue;
    const auto send = [=, &s](int warps) { return Send<S, K, Team>(Team{nullptr, warps}, s, i, s.finishers); };
    start("P is sent", i, [=, &s] { send(SEND_P_WARPS).send_P(s.end); });
    start("send", i, [=] { send(SEND_WARPS).send_transforms(); });
  }
  for (int w = 0; w < s.here(s.advancers); ++w) {
    const Share share{s.worker(w), s.sharing(), s.last() * GROUPS};
    HostRing& P = rings.emplace_back(3, K * LDB, ADVANCE_WARPS);
    start("advance", w, [=, &s, &P] {
      std::vector<A> shared(places(s) + size_t(near_groups(s, share)) * GroupsOfV<K, A>::words,
                            std::numeric_limits<A>::quiet_NaN());
      constexpr bool alike = S::order == Order::back || !std::is_same_v<typename S::Scalar, A>;
      Advance<S, K, Team, HostRing, alike>(Team{shared.data(), ADVANCE_WARPS}, s, share, P).run();
    });
    start("feed", w, [=, &s, &P] { feed_P<K>(Warp{}, s, s.last() - 1 - REACH, P); });
    if (!s.several() || s.is_led() || s.finishers > 0) continue;
    const int count = s.here(s.advancers);
    start("P is sent", w, [=, &s] {
      Send<S, K, Team>(Team{nullptr, SEND_P_WARPS}, s, w, count).send_P(s.last() - 1 - REACH);
    });
    if constexpr (S::order == Order::back)
      start("add up", w, [=, &s] { add_up<K>(Warp{}, s, w, count); });
  }
  if constexpr (S::order == Order::forward) for (const bool within : {true, false}) {
    const int workers = within ? s.workers_within : s.workers;
    for (int w = 0; w < s.here(workers); ++w) {
      const int worker = s.worker(w);
      HostRing& transforms = rings.emplace_back(2, int(BlockTransform<K>::words), UPDATE_WARPS);
      start(within ? "within" : "update", w, [=, &s, &transforms] {
        const Share share{worker, workers, s.blocks * GROUPS};
        const int groups = within ? groups_within(s, share) : std::max(share.count() - s.outside, 1);
        constexpr int last = LastGroupsSize<K, Card, typename S::Scalar, A>::words;
        std::vector<A> shared(std::max(places(s) + size_t(groups) * GroupsOfV<K, A>::words, size_t(last)),
                              std::numeric_limits<A>::quiet_NaN());
        update_groups<S, K>(Team{shared.data(), UPDATE_WARPS}, s, worker, within, transforms, HostRelay{});
      });
      start("feed", w, [=, &s, &transforms] { feed_transforms<K>(Warp{}, s, within ? s.window : 0, transforms); });
    }
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace gpucholmod::block_columns
