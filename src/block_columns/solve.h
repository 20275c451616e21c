#pragma once

#include "block_columns/diagonal_solve.h"
#include "block_columns/feed.h"

namespace gpucholmod::block_columns {

/// The leading dimension of P, by rows, in the chain: free of bank conflicts.
constexpr int LP = CHAIN_COLUMNS + 4;

/// Describes the shared memory of a thread block that solves, in words.
template <class Card>
struct SolveMemory {
  static constexpr int tile = NB * LDT, V_words = CHAIN_COLUMNS * LDB;
  static constexpr int tiles = 0, X = tiles + Card::solve_teams * Card::tile_slots * tile, V = X + INVERSE,
                       words = V + V_words;
};

/// The block columns of a thread block: every Card::cluster-th, for its teams in turn.
template <class S, class Card>
struct Own {
  static constexpr int cluster = Card::cluster;
  const S& s;
  int rank;  ///< number of the thread block in the cluster
  GPUCHOLMOD_HOST_DEVICE int column(int i) const {
    return s.start() + (rank - s.start() % cluster + cluster) % cluster + i * cluster;
  }
  /// Returns whether P of block column c is found by way of its link, `solving` being its Solving. The first block
  /// columns have no time to wait for their links.
  GPUCHOLMOD_HOST_DEVICE bool by_link(int c, typename S::Arithmetic solving) const {
    return c >= s.first + REACH && solving == by_inverse;
  }
  /// Returns the first row block past which the chain itself takes block column c.
  GPUCHOLMOD_HOST_DEVICE int begin(int c) const { return c - REACH > s.first ? c - REACH : s.first; }
  /// Returns the first row block whose P arrives by mail or, above the panel, is there from the start. unused_mail()
  /// returns how many of these P the thread block does not need, as its own columns are further right.
  GPUCHOLMOD_HOST_DEVICE int first_mail() const { return begin(s.start()); }
  GPUCHOLMOD_HOST_DEVICE int unused_mail() const { return begin(column(0)) - first_mail(); }
};

/// Runs the chain: P_c = X_c'(V_c - sum over b < c of R_bc'P_b) for CHAIN_COLUMNS columns of V, by a cluster of thread
/// blocks. With Order::back P_c = X_c (V_c - sum over b < c of R_cb P_b), with blocks counted from the last.
///
/// Only one product waits for the row block before, as the link G_c is formed beforehand:
///
///     P_c = X_c'(V_c - sum over b < c - 1 of R_bc'P_b) - G_c'P_(c-1),   G_c = R_(c-1)c X_c
///
/// If R_cc is so ill-conditioned that its inverse is not used alone, P_c is found by the first formula and a step of
/// refinement or, if that is not enough, by substitution with R_cc.
///
/// Block column c belongs to thread block c mod Card::cluster of the cluster, and there to one of its teams in turn.
/// The team takes it past the last REACH row blocks before its diagonal, whose P arrives by `mail`; V past the row
/// blocks before these has been handed over. So every team works on one block column at a time. P is sent to the whole
/// cluster at once if the card has clusters, and to all other roles through global memory. `post`: the staging rings
/// `tiles` (the team's own), X and V.
template <class Segment, int K, class Team, class Mail, class Post>
class Solve {
  using T = typename Segment::Scalar;
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  using Card = typename Warp::Card;
  static constexpr bool forward = Segment::order == Order::forward;
  using Tiles = typename Team::template PerWarp<Tile<Warp>>;

 public:
  /// Takes over team number `side` of a thread block.
  GPUCHOLMOD_HOST_DEVICE Solve(Team team, const Segment& segment, int cluster, int rank, int side, Mail& mail,
                               Post& post)
      : team_(team), s_(segment), own_{segment, rank}, side_(side), cluster_(cluster), mail_(mail), post_(post) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](Warp& warp) { stopped_[warp] = false; });
    for (int i = side_; own_.column(i) < s_.last(); i += Card::solve_teams) {
      const int c = own_.column(i);
      team_.each_warp([&](Warp& warp) { sum_[warp] = zero_tile(warp); });
      for (int b = own_.begin(c); b < c - 1; ++b)
        team_.each_warp([&](Warp& warp) { multiply<T, forward>(warp, b, product_ + b - own_.begin(c), sum_[warp]); });
      product_ += c - own_.begin(c);  // solve() takes the last of them
      if (!solve(i, c)) return;
    }
  }

 private:
  /// Computes sum <- sum - M'P_b for the warp's rows. M is fill `number` of the staging ring: a tile of R, or a link.
  template <class S, bool by_rows>
  GPUCHOLMOD_HOST_DEVICE void multiply(const Warp& warp, int b, int number, Tile<Warp>& sum) {
    const int* stop = &s_.state()->stop;
    auto& tiles = post_.tiles;
    if (stopped_[warp] || !tiles.wait(warp, number, stop)) {
      stopped_[warp] = true;
      return;
    }
    const S* M = reinterpret_cast<const S*>(tiles.slot(number)) + warp.id * 16 * (by_rows ? LDT : 1);
    if constexpr (Warp::in_place && by_rows && std::is_same_v<S, A>) {
      static_assert(Mail::row == 1);
      const auto rows = warp.load_rows(M, LDT);
      tiles.release(warp, number);
      stopped_[warp] = !mail_.wait(warp, b, stop);
      if (!stopped_[warp]) warp.template multiply_add_rows_of<-1>(sum, rows, mail_.P(b), Mail::column);
    } else {
      Left<Warp> rows[NB / 8];
      GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l)
        rows[l] = by_rows ? load_left_apart(warp, M + 8 * l, LDT, 1) : load_left_apart(warp, M + 8 * l * LDT, 1, LDT);
      tiles.release(warp, number);
      if (!mail_.wait(warp, b, stop)) {
        stopped_[warp] = true;
        return;
      }
      const A* P_b = mail_.P(b);
      Tile<Warp> D[2] = {sum, zero_tile(warp)};
      GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l)
        warp.template multiply_add_apart<-1>(D[l % 2], rows[l], P_b + 8 * l * Mail::row, Mail::row, Mail::column);
      add_tile(warp, D[0], D[1]);
      sum = D[0];
      if (side_ == 0 && warp.id == 0) mail_.expect_next(warp, b);
    }
  }

  /// Finds and publishes P of block column c, number i of the thread block. Returns false if all roles are to stop.
  GPUCHOLMOD_HOST_DEVICE bool solve(int i, int c) {
    Tiles V, P_c;
    const auto solving = [&] { return post_.X.slot(i)[Segment::solving]; };
    const bool go_on = team_.all_sync([&](Warp& warp) {
      const int* stop = &s_.state()->stop;
      if (stopped_[warp] || !post_.V.wait(warp, i, stop) || !post_.X.wait(warp, i, stop)) return false;
      if (c > s_.first && !own_.by_link(c, solving())) multiply<T, forward>(warp, c - 1, product_ - 1, sum_[warp]);
      V[warp] = load_columns(warp, post_.V.slot(i) + warp.id * 16, LDB);
      add_tile(warp, V[warp], sum_[warp]);
      put(warp, i, V[warp]);
      return !stopped_[warp];
    });
    if (!go_on) return false;
    const bool by_link = own_.by_link(c, solving());
    team_.each_warp([&](Warp& warp) { P_c[warp] = multiply_by_X(warp, zero_tile(warp), i); });
    if (solving() != by_inverse) {
      team_.barrier();
      if (solving() == by_refinement) refine(i, c, V, P_c);
      else substitute(i, c, P_c);
    }
    team_.each_warp([&](Warp& warp) {
      post_.X.release(warp, i);
      post_.V.release(warp, i);
      if (by_link) multiply<A, true>(warp, c - 1, product_ - 1, P_c[warp]);
    });
    A* to =
        s_.transforms + index_t(c) * BlockTransform<K>::stride + BlockTransform<K>::P + cluster_ * CHAIN_COLUMNS * LDB;
    team_.each_warp([&](Warp& warp) {
      if (stopped_[warp]) return;
      mail_.send(warp, c, P_c[warp]);
      store_columns(warp, P_c[warp], to + warp.id * 16, LDB);
      warp.sync();
      warp.once([&] { Warp::add_release(s_.has_P(c), published_by(cluster_)); });
    });
    return true;
  }

  /// Computes P <- the solution of R_cc'P = V, by substitution.
  GPUCHOLMOD_HOST_DEVICE void substitute(int i, int c, Tiles& P_c) {
    substitute_in_block<Segment::order>(team_, s_.tile(c, c), s_.ld, post_.X.slot(i), post_.V.slot(i));
    team_.each_warp([&](Warp& warp) { P_c[warp] = load_columns(warp, post_.V.slot(i) + warp.id * 16, LDB); });
  }

  /// Computes P <- P + X'(V - R_cc'P).
  GPUCHOLMOD_HOST_DEVICE void refine(int i, int c, Tiles& V, Tiles& P_c) {
    team_.warps_sync([&](Warp& warp) { put(warp, i, P_c[warp]); });
    Tiles left;
    team_.warps_sync([&](Warp& warp) {
      const index_t ld = s_.ld;
      const T* R = s_.tile(c, c) + warp.id * 16 * (forward ? ld : 1);
      Left<Warp> rows[NB / 8];
      GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l)
        if constexpr (forward) fetch_rows<Access::transform>(warp, rows[l], R + 8 * l, ld);
        else fetch_transposed<Access::transform>(warp, rows[l], R + 8 * l * ld, ld);
      left[warp] = V[warp];
      GPUCHOLMOD_UNROLL for (int l = 0; l < NB / 8; ++l)
        warp.template multiply_add<-1, Access::shared>(left[warp], rows[l], post_.V.slot(i) + 8 * l, LDB);
    });
    team_.warps_sync([&](Warp& warp) { put(warp, i, left[warp]); });
    team_.each_warp([&](Warp& warp) { P_c[warp] = multiply_by_X(warp, P_c[warp], i); });
  }

  /// Stores a tile in the place of V, for all warps of the team.
  GPUCHOLMOD_HOST_DEVICE void put(const Warp& warp, int i, const Tile<Warp>& tile) {
    store_columns(warp, tile, post_.V.slot(i) + warp.id * 16, LDB);
  }

  /// Returns `begin` + X'V for the warp's rows of P; X is upper triangular.
  GPUCHOLMOD_HOST_DEVICE Tile<Warp> multiply_by_X(const Warp& warp, const Tile<Warp>& begin, int i) const {
    const A *X = post_.X.slot(i), *V = post_.V.slot(i);
    const int m = warp.id * 16;
    Tile<Warp> D[2] = {begin, zero_tile(warp)};
    if constexpr (Warp::in_place && forward) {
      warp.template multiply_add_rows_of<1>(D[0], warp.load_rows(X + m * LDT, LDT), V, LDB);
    } else {
      GPUCHOLMOD_UNROLL for (int l = 0; l < NB; l += 16) {
        if (forward && l > m) break;
        if (!forward && l < m) continue;
        GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
          const int k = l + 8 * half;
          const Left<Warp> X_left =
              forward ? load_left_apart(warp, X + m * LDT + k, LDT, 1) : load_left_apart(warp, X + k * LDT + m, 1, LDT);
          warp.template multiply_add_apart<1>(D[half], X_left, V + k, 1, LDB);
        }
      }
      add_tile(warp, D[0], D[1]);
    }
    return D[0];
  }

  Team team_;
  const Segment& s_;
  Own<Segment, Card> own_;
  int side_, cluster_;
  Mail& mail_;
  Post& post_;
  int product_ = 0;  ///< number of tiles of R and links of the block columns so far
  Tiles sum_;        ///< minus the sum of R_bc'P_b
  /// True if the warp has seen that all roles are to stop; the other warps of the team learn of it before they solve.
  typename Team::template PerWarp<bool> stopped_;
};

/// Prefetches tile (b, c) of R, if there is one, into the second-level cache. Does nothing if some of R is on another
/// GPU: to prefetch lines of that GPU's memory takes 20 ns each, one after the other (two H100 with NVLink:
/// inst/design/several-gpus.md).
template <class S, class Warp>
GPUCHOLMOD_HOST_DEVICE void prefetch_tile(const Warp& warp, const S& s, int b, int c) {
  using T = typename S::Scalar;
  if (c >= s.last() || s.device_ranks > 1) return;
  constexpr int line = 128 / int(sizeof(T)), lines = NB / line;
  const T* from = s.tile(b, c);
  warp.each([&](int lane) {
    GPUCHOLMOD_UNROLL
    for (int i = lane; i < NB * lines; i += LANES) Warp::prefetch(from + i / lines * s.ld + i % lines * line);
  });
}

/// Copies tiles of R and links to the staging ring of one team, in the order of its products.
template <class S, class Warp, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_tiles(const Warp& warp, const S& s, int rank, int side, StagingRing& ring) {
  using Card = typename Warp::Card;
  const Own<S, Card> own{s, rank};
  const int* stop = &s.state()->stop;
  const auto over = [&] { return Warp::load_acquire(stop) != 0; };
  int product = 0;
  for (int i = side; own.column(i) < s.last(); i += Card::solve_teams) {
    const int c = own.column(i);
    for (int b = own.begin(c); b < c; ++b, ++product) {
      bool by_link = false;
      if (b == c - 1 && own.by_link(c, 0)) {
        if (!wait_until(warp, s.linked, s.last() / Card::inverted_at_once, stop, s.several())) return;
        by_link = own.by_link(c, Warp::template read<Access::transform>(s.inverse(c) + S::solving));
      }
      if (!ring.wait_empty(warp, product, over)) return;
      if (by_link) ring.fill_columns(warp, product, s.links + index_t(c) * INVERSE, LDT);
      else ring.fill_columns(warp, product, s.tile(b, c), s.ld);
      prefetch_tile(warp, s, b + REACH, c + REACH);
    }
    prefetch_tile(warp, s, c + REACH, c + REACH);  // for refine()
  }
}

/// Copies inverses of diagonal blocks, and V as it is at the start or is handed over, to staging rings, for all teams.
template <int K, class S, class Warp, class StagingRing>
GPUCHOLMOD_HOST_DEVICE void feed_solve(const Warp& warp, const S& s, int cluster, int rank, StagingRing& X,
                                       StagingRing& V) {
  using Card = typename Warp::Card;
  const Own<S, Card> own{s, rank};
  const int* stop = &s.state()->stop;
  const auto over = [&] { return Warp::load_acquire(stop) != 0; };
  if (!wait_until(warp, s.inverted, s.last() / Card::inverted_at_once, stop, s.several())) return;
  for (int i = 0; own.column(i) < s.last(); ++i) {
    const int c = own.column(i);
    if (!X.wait_empty(warp, i, over)) return;
    X.fill(warp, i, s.inverse(c), INVERSE);
    if (!V.wait_empty(warp, i, over)) return;
    if (c <= s.first + REACH) {  // no other role takes these block columns past a row block
      V.fill_columns_of_V(warp, i, s.V + cluster * CHAIN_COLUMNS * s.ldv + index_t(s.place(c)) * NB, s.ldv);
      continue;
    }
    if (!wait_until(warp, s.has_V(c), GROUPS, stop, s.several())) return;
    V.fill(warp, i, s.handed + (index_t(c) * K + cluster * CHAIN_COLUMNS) * LDB, CHAIN_COLUMNS * LDB);
  }
}

}  // namespace gpucholmod::block_columns
