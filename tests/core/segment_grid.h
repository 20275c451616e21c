#pragma once

#include <atomic>
#include <deque>
#include <memory>

#include "block_columns/feed.h"
#include "block_columns/finish.h"
#include "block_columns/inverses.h"
#include "block_columns/rewrite.h"
#include "block_columns/refused.h"
#include "block_columns/solve.h"
#include "host_grid.h"
#include "segment_call.h"

/// A segment on the CPU, for tests: every team of warps is a thread.
namespace gpucholmod::block_columns {

/// What DeviceInbox is on a GPU.
class HostInbox {
 public:
  HostInbox(int slots, int words, int consumers)
      : slots_(slots), words_(words), consumers_(consumers), memory_(size_t(slots) * words, 0.0), released_(slots) {}

  bool wait(const HostWarp&, int i) const {
    while (filled_.load(std::memory_order_acquire) <= i) {
      if (closed_.load(std::memory_order_acquire)) return filled_.load(std::memory_order_acquire) > i;
      HostWarp::pause();
    }
    return true;
  }
  bool wait(const HostWarp&, int i, const int* stop) const {
    while (filled_.load(std::memory_order_acquire) <= i) {
      if (HostWarp::load_acquire(stop) != 0) return false;
      HostWarp::pause();
    }
    return true;
  }
  double* slot(int i) { return memory_.data() + size_t(i % slots_) * words_; }
  void release(const HostWarp&, int i) { released_[i % slots_].fetch_add(1, std::memory_order_release); }

  template <class F>
  bool wait_empty(const HostWarp&, int i, F&& over) const {
    while (released_[i % slots_].load(std::memory_order_acquire) < consumers_ * (i / slots_)) {
      if (over()) return false;
      HostWarp::pause();
    }
    return true;
  }
  void fill(const HostWarp&, int i, const double* from, int words) {
    std::memcpy(memory_.data() + size_t(i % slots_) * words_, from, sizeof(double) * words);
    filled_.store(i + 1, std::memory_order_release);
  }
  /// A tile of R, or a link, with leading dimension LDT.
  template <class T>
  void fill_columns(const HostWarp&, int i, const T* from, index_t ld) {
    T* to = reinterpret_cast<T*>(slot(i));
    for (int j = 0; j < NB; ++j) std::memcpy(to + j * LDT, from + j * ld, sizeof(T) * NB);
    filled_.store(i + 1, std::memory_order_release);
  }
  /// CHAIN_COLUMNS columns of V, with leading dimension LDB.
  void fill_columns_of_V(const HostWarp&, int i, const double* from, index_t ld) {
    for (int q = 0; q < CHAIN_COLUMNS; ++q) std::memcpy(slot(i) + q * LDB, from + q * ld, sizeof(double) * NB);
    filled_.store(i + 1, std::memory_order_release);
  }
  void close(const HostWarp&, int) { closed_.store(true, std::memory_order_release); }

 private:
  int slots_, words_, consumers_;
  std::vector<double> memory_;
  std::deque<std::atomic<int>> released_;
  std::atomic<int> filled_{0};
  std::atomic<bool> closed_{false};
};

constexpr int mail_slots = REACH;  ///< as on a GPU

/// P within a cluster: what DeviceMail is on a GPU.
struct HostMailboxes {
  std::vector<double> P[CLUSTER];
  std::atomic<int> arrived[CLUSTER][mail_slots]{}, expected[CLUSTER][mail_slots]{};  ///< warps; phases, which begin when one is expected
  HostMailboxes() {
    for (auto& p : P) p.assign(mail_slots * NB * LP, std::numeric_limits<double>::quiet_NaN());
    for (auto& of : expected)
      for (auto& phases : of) phases = 1;
  }
};
struct HostMail {
  HostMailboxes& post;
  int rank, first;  ///< the first row block whose P comes

  /// P of row blocks above the panel, as far as they are needed, for CHAIN_COLUMNS columns of V.
  template <int K, class S>
  void put(const S& s, int cluster) {
    for (int b = first; b < s.start(); ++b) {
      const double* from = s.messages + index_t(b) * Message<K>::stride + Message<K>::P + cluster * CHAIN_COLUMNS * LDB;
      double* to = post.P[rank].data() + (b - first) * NB * LP;
      for (int q = 0; q < CHAIN_COLUMNS; ++q)
        for (int i = 0; i < NB; ++i) to[i * LP + q] = from[q * LDB + i];
      post.arrived[rank][b - first].store(SOLVE_WARPS, std::memory_order_release);
    }
    for (int i = 0; i < Own<S>{s, rank}.unused_mail(); ++i) ++post.expected[rank][i];
  }

  bool wait(const HostWarp&, int b, const int* stop) const {
    const int i = b - first;
    while (post.arrived[rank][i % mail_slots].load(std::memory_order_acquire) < SOLVE_WARPS * (i / mail_slots + 1) ||
           post.expected[rank][i % mail_slots].load(std::memory_order_acquire) <= i / mail_slots) {
      if (HostWarp::load_acquire(stop) != 0) return false;
      HostWarp::pause();
    }
    return true;
  }
  const double* P(int b) const { return post.P[rank].data() + (b - first) % mail_slots * NB * LP; }
  void send(const HostWarp& warp, int b, const Tile<HostWarp>& tile) {
    const int slot = (b - first) % mail_slots;
    for (int to = 0; to < CLUSTER; ++to) {
      store_tile(warp, tile, post.P[to].data() + slot * NB * LP + warp.id * 16 * LP, LP);
      post.arrived[to][slot].fetch_add(1, std::memory_order_release);
    }
  }
  void expect_next(const HostWarp&, int b) { ++post.expected[rank][(b - first) % mail_slots]; }
};

template <class T>
struct HostPost {
  using S = SolveMemory<T>;
  HostInbox of_team[SOLVE_TEAMS] = {{S::tile_slots, S::tile, SOLVE_WARPS}, {S::tile_slots, S::tile, SOLVE_WARPS}};
  HostInbox X{1, INVERSE, SOLVE_WARPS}, V{1, S::V_words, SOLVE_WARPS};

  struct Post {
    HostInbox &tiles, &X, &V;
  };
  Post of(int side) { return {of_team[side], X, V}; }
};

/// Words of shared memory in which tiles of R come.
template <class S>
size_t places(const S&) {
  return size_t(std::max(ADVANCE_WARPS, REWRITE_WARPS) * Tiles<S, SUBS, HostWarp>::words);
}

template <int K, class S>
void run_segment_on_host(const S& s, const Disturb& disturb) {
  using T = typename S::Scalar;
  if (s.solvers > 0) {
    std::vector<double> shared(InverseMemory::words);
    const int inverted = __atomic_load_n(s.inverted, __ATOMIC_RELAXED);
    for (int pair = __atomic_load_n(s.linked, __ATOMIC_RELAXED); pair < s.blocks / 2; ++pair) {
      if (pair < inverted) take_inverses(HostTeam{shared.data()}, s, pair);
      else invert_pair(HostTeam{shared.data()}, s, pair);
      link_pair(HostTeam{shared.data()}, s, pair);
    }
  }
  std::vector<std::thread> running;
  std::deque<HostMailboxes> mailboxes(K / CHAIN_COLUMNS);
  using Post = typename HostPost<T>::Post;
  std::deque<HostPost<T>> posts;
  const int first_mail = Own<S>{s, 0}.first_mail();
  for (int cluster = 0; cluster < s.solvers / CLUSTER; ++cluster)
    for (int rank = 0; rank < CLUSTER; ++rank) HostMail{mailboxes[cluster], rank, first_mail}.template put<K>(s, cluster);
  const auto start = [&](const char* role, int number, auto f) {
    running.emplace_back([=, &disturb] {
      disturb(role, number);
      f();
    });
  };
  for (int cluster = 0; cluster < s.solvers / CLUSTER; ++cluster)
    for (int rank = 0; rank < CLUSTER; ++rank) {
      HostPost<T>& post = posts.emplace_back();
      for (int side = 0; side < SOLVE_TEAMS; ++side) {
        start("solve", 2 * rank + side, [=, &s, &mailboxes, &post] {
          HostMail mail{mailboxes[cluster], rank, first_mail};
          Post own = post.of(side);
          Solve<S, K, HostTeam, HostMail, Post>(HostTeam{nullptr, SOLVE_WARPS}, s, cluster, rank, side, mail, own).run();
        });
        start("feed", rank, [=, &s, &post] { feed_tiles(HostWarp{}, s, rank, side, post.of_team[side]); });
      }
      start("feed", rank, [=, &s, &post] { feed_solve<K>(HostWarp{}, s, cluster, rank, post.X, post.V); });
    }
  std::deque<HostInbox> inboxes;
  if constexpr (S::order == Order::forward) for (int i = 0; i < s.finishers; ++i) {
    HostInbox& inbox = inboxes.emplace_back(FinishMemory<K>::slots, FinishMemory<K>::P_words, FINISH_WARPS);
    start("finish", i, [=, &s, &inbox] {
      std::vector<double> shared(FinishMemory<K>::words);
      Finish<T, K, HostTeam, HostInbox>(HostTeam{shared.data(), FINISH_WARPS}, s, i, inbox).run();
    });
    start("feed", i, [=, &s, &inbox] { feed_P<K>(HostWarp{}, s, s.blocks, inbox); });
  }
  for (int w = 0; w < s.advancers; ++w) {
    const Share share{w, s.advancers, s.blocks * GROUPS};
    HostInbox& P = inboxes.emplace_back(3, K * LDB, ADVANCE_WARPS);
    start("advance", w, [=, &s, &P] {
      std::vector<double> shared(places(s) + size_t(near_groups(s, share)) * GroupsOfV<K>::words, std::numeric_limits<double>::quiet_NaN());
      Advance<S, K, HostTeam, HostInbox>(HostTeam{shared.data(), ADVANCE_WARPS}, s, share, P).run();
    });
    start("feed", w, [=, &s, &P] { feed_P<K>(HostWarp{}, s, s.blocks - 1 - REACH, P); });
  }
  if constexpr (S::order == Order::forward) for (int w = 0; w < s.workers; ++w) {
    const Share share{w, s.workers, s.blocks * GROUPS};
    HostInbox& messages = inboxes.emplace_back(2, int(Message<K>::words), REWRITE_WARPS);
    start("rewrite", w, [=, &s, &messages] {
      std::vector<double> shared(places(s) + size_t(std::max(share.count(), 1)) * GroupsOfV<K>::words);
      Rewrite<T, K, HostTeam, HostInbox>(HostTeam{shared.data(), REWRITE_WARPS}, s, share, messages).run();
    });
    start("feed", w, [=, &s, &messages] { feed_messages<K>(HostWarp{}, s, messages); });
  }
  for (std::thread& thread : running) thread.join();
}

}  // namespace gpucholmod::block_columns
