#pragma once

#include "block_columns/diagonal.h"
#include "block_columns/householder.h"

namespace gpucholmod::block_columns {

/// One strip of columns, from its first tile to its diagonal blocks: what a block of threads does between two tickets.
///
///   stream      for each row block above the strip: the tiles of R come in, are modified, and go out, while V of the
///               strip stays in registers
///   run ahead   near the diagonal, where the transforms are not complete yet: V alone, by P alone
///   diagonal    the strip's own two blocks: P is found and published, which lets the next strip go on
///   transforms  the rest of what others need of the two blocks
///   stream      again from where it began to run ahead, and the diagonal blocks themselves
///
/// Failure: a downdate that cannot be done sets pass_state->pivot and pass_state->stop, and run() returns false; it also
/// does so when another strip has set it. Reference: inst/design/block-columns.md.
template <class T, int K, class Team>
class StripTask {
  using Warp = typename Team::Warp;
  using Registers = State<Warp, K>;
  using Parts = Transform<K>;
  using S = SharedMemory<K>;

 public:
  using States = typename Team::template PerWarp<Registers>;
  using Blocks = DiagonalBlocks<K, Team>;

  /// `blocks` and `states` belong to this strip alone; they are apart so that the compiler can keep states in
  /// registers.
  GPUCHOLMOD_HOST_DEVICE StripTask(Team team, const Job<T>& job, int strip, Blocks& blocks, States& states)
      : team_(team), job_(job), blocks_(blocks), states_(states), first_(strip * BLOCKS),
        column_(index_t(strip - job.first) * STRIP), shared_(team.shared) {}

  GPUCHOLMOD_HOST_DEVICE bool run() {
    team_.warps_sync([&](Warp& warp) { load_V(warp, states_[warp], job_, first_); });
    invert();
    bool diagonal_done = false;
    for (int b = 0; b < first_ + BLOCKS;) {
      if ((diagonal_done || b < first_) && !know(b, !diagonal_done)) return false;
      if (!diagonal_done && (b == first_ || known_ <= b || (chain_near_ && b >= first_ - farthest_run_ahead))) {
        if (!run_ahead(b)) return false;
        GPUCHOLMOD_NO_UNROLL for (int x = 0; x < BLOCKS; ++x)
          if (!diagonal(x)) return false;
        if (!blocks_.complete_transforms()) return false;
        diagonal_done = true;
        staged_ = b;
        team_.warps_sync([&](Warp& warp) { restore_V(warp, states_[warp], job_, column_); });
        continue;
      }
      stage(b);
      apply(b);
      ++b;
    }
    return true;
  }

 private:
  GPUCHOLMOD_HOST_DEVICE double* transform(int b) const { return job_.shared.transforms + index_t(b) * Parts::words; }
  GPUCHOLMOD_HOST_DEVICE double* ring_slot(int b) const { return shared_ + S::ring_slots + b % S::ring * Parts::image; }

  /// Where a warp's columns stand against row block b.
  GPUCHOLMOD_HOST_DEVICE Diagonal against(const Warp& warp, int b) const {
    const int x = b - first_;
    if (x < 0 || warp.id / (WARPS / BLOCKS) != x) return {};
    return {-(warp.id % (WARPS / BLOCKS)) * WARP_COLUMNS};
  }
  /// Whether row block b crosses them at all.
  GPUCHOLMOD_HOST_DEVICE bool has_tile(const Warp& warp, int b) const { return b <= first_ + warp.id / (WARPS / BLOCKS); }
  GPUCHOLMOD_HOST_DEVICE index_t offset(const Warp& warp, int b) const {
    return (column_ + warp.id * WARP_COLUMNS) * job_.ld + index_t(b) * NB;
  }

  GPUCHOLMOD_HOST_DEVICE double* inverse(int x) const { return job_.inverses + (column_ / NB + x) * S::SQUARE; }

  /// The inverses of the strip's diagonal blocks, to global memory.
  GPUCHOLMOD_HOST_DEVICE void invert() {
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < BLOCKS * NB * NB; i += team_.size() * LANES) {
        const int x = i / (NB * NB), l = i / NB % NB, r = i % NB;
        shared_[S::D + (x * NB + r) * LDB + l] =
            double(job_.R[(column_ + x * NB + l) * job_.ld + index_t(first_ + x) * NB + r]);
      }
    });
    const double* sX = shared_ + S::inverses;
    invert_diagonal_blocks(team_, shared_ + S::D, shared_ + S::inverses, shared_ + S::E);
    team_.threads_sync([&](int thread) {
      double* to = inverse(0);
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < BLOCKS * S::SQUARE; i += team_.size() * LANES) to[i] = sX[i];
    });
    double* partial = shared_ + S::partial;
    team_.warps_sync([&](Warp& warp) {  // ||R_bb||_F^2 and ||X||_F^2, in two parts each
      const bool of_X = warp.id % 2 == 1;
      const double* from = shared_ + (of_X ? S::inverses : S::D) + warp.id / 2 * (S::SQUARE / 2);
      typename Warp::template PerLane<double> sum;
      warp.each([&](int lane) {
        sum[lane] = 0;
        for (int i = lane; i < S::SQUARE / 2; i += LANES)
          if (i % LDB < NB) sum[lane] += from[i] * from[i];
      });
      const double all = warp.total(sum);
      warp.once([&] { partial[warp.id] = all; });
    });
    GPUCHOLMOD_UNROLL for (int x = 0; x < BLOCKS; ++x) {
      const double* part = partial + 4 * x;
      blocks_.refine[x] = !((part[0] + part[2]) * (part[1] + part[3]) < unrefined * unrefined);
    }
    team_.barrier();
  }

  GPUCHOLMOD_HOST_DEVICE T* tiles(const Warp& warp) const {
    return reinterpret_cast<T*>(shared_ + S::R + warp.id * (NB / 8) * S::TILE);
  }
  /// Begins to copy sub-block a of the warp's columns in row block b to its tiles in shared memory, if there is such a
  /// block: one copy.
  GPUCHOLMOD_HOST_DEVICE void load_R(const Warp& warp, int b, int a) const {
    constexpr int words = 16 / sizeof(T), parts = IB / words, columns = LANES / parts;  // that a warp copies at a time
    if (has_tile(warp, b))
      warp.each([&](int lane) {
        const int column = lane / parts, row = lane % parts * words;
        const T* from = job_.R + offset(warp, b) + a * IB + column * job_.ld + row;
        T* to = tiles(warp) + 2 * a * S::TILE + row / 8 * S::TILE + column * 8 + row % 8;
        GPUCHOLMOD_UNROLL for (int i = 0; i < WARP_COLUMNS; i += columns) Warp::copy_16(to + i * 8, from + i * job_.ld);
      });
    Warp::end_copy();
  }
  GPUCHOLMOD_HOST_DEVICE void load_R(const Warp& warp, int b) const {
    GPUCHOLMOD_NO_UNROLL for (int a = 0; a < SUBS; ++a) load_R(warp, b, a);
  }
  /// Sub-block a of what was loaded.
  GPUCHOLMOD_HOST_DEVICE void take_R(const Warp& warp, int a, Left<Warp> R[2]) const {
    GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
      R[half] = load_left(warp, tiles(warp) + (2 * a + half) * S::TILE, 8);
  }

  /// The flag that says that the chain is near enough for a strip that is at row block b to run ahead.
  GPUCHOLMOD_HOST_DEVICE const int* near_flag(int b) const {
    return job_.shared.has_P + (b > first_ - run_ahead_blocks ? b : first_ - run_ahead_blocks);
  }

  /// Sets known_ to a number of leading row blocks whose transforms are complete, and waits until that is more than b; a
  /// strip near its diagonal, if `may_run_ahead`, not longer than until P of block b is there. False: stop.
  GPUCHOLMOD_HOST_DEVICE bool know(int b, bool may_run_ahead) {
    if (known_ > b) return true;
    const Shared& job = job_.shared;
    const int* near = near_flag(b);
    int* ints = blocks_.ints();
    team_.warps_sync([&](Warp& warp) {
      if (warp.id != 0) return;
      int found = 0;
      bool stop = false;
      const typename Warp::Wait wait;
      for (;;) {
        found = warp.leading([&](int lane) {
          return known_ + lane < job.strips * BLOCKS && Warp::load_acquire(job.has_C + known_ + lane) != 0;
        });
        if (known_ + found > b || (may_run_ahead && Warp::load_acquire(near) != 0)) break;
        stop = Warp::load_acquire(&job.pass_state->stop) != 0;
        if (stop) break;
        wait.pause();
      }
      warp.once([&] {
        ints[0] = known_ + found;
        ints[1] = stop;
      });
    });
    known_ = ints[0];
    const bool go_on = ints[1] == 0;
    team_.barrier();
    return go_on;
  }

  /// V, and if `out` is given the factor too, past row block b, whose transform is of kind householder.
  GPUCHOLMOD_HOST_DEVICE void apply_steps(const Warp& warp, Registers& state, int b, T* out) const {
    Registers copy = state;  // its address is taken
    apply_householder<K>(warp, copy, transform(b), job_.R + offset(warp, b), out, job_.ld, job_.shared.sigma,
                         against(warp, b));
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = copy.V[j];
  }
  GPUCHOLMOD_HOST_DEVICE void rescale_V(const Warp& warp, Registers& state, int b) const {
    Registers copy = state;
    rescale<K>(warp, copy, transform(b) + Parts::T);
    GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) state.V[j] = copy.V[j];
  }

  /// Has the transform of row block b in ring_slot(b), the tiles of R in theirs, and begins with the next transform.
  GPUCHOLMOD_HOST_DEVICE void stage(int b) {
    const bool late = staged_ <= b;
    if (loaded_ != b) team_.each_warp([&](Warp& warp) { load_R(warp, b); });
    if (late) team_.template copy<Parts::image>(ring_slot(b), transform(b));
    staged_ = late ? b + 1 : staged_;
    if (S::ring == 2 && b + 1 < known_ && b + 1 < first_ + BLOCKS)
      team_.template copy<Parts::image>(ring_slot(staged_++), transform(b + 1));
    else Warp::end_copy();
    Warp::template wait_for_copies<1>();
    team_.barrier();
  }

  /// Row block b on the strip: its transform is in ring_slot(b). Loads the tiles of block b + 1 as it goes.
  GPUCHOLMOD_HOST_DEVICE void apply(int b) {
    const double* image = ring_slot(b);
    const bool by_householder = image[Parts::kind] != unscaled, rescaled = image[Parts::rescaled] != 0;
    loaded_ = by_householder ? -1 : b + 1;
    chain_near_ = !team_.all_sync([&](Warp& warp) {
      const bool near = warp.id == WARPS - 1 && b < first_ && Warp::load_relaxed(near_flag(b)) != 0;
      if (has_tile(warp, b)) apply(warp, b, image, by_householder, rescaled);
      return !near;
    });
  }

  GPUCHOLMOD_HOST_DEVICE void apply(const Warp& warp, int b, const double* image, bool by_householder, bool rescaled) {
    Registers& state = states_[warp];
    if (rescaled) rescale_V(warp, state, b);
    T* out = job_.out ? job_.out + offset(warp, b) : nullptr;
    if (by_householder) {
      apply_steps(warp, state, b, out);
      return;
    }
    const Diagonal diagonal = against(warp, b);
    GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
      Left<Warp> R[2];
      Tile<Warp> Y[2];
      take_R(warp, a, R);
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
        Y[half] = load_tile<Access::shared>(warp, tiles(warp) + (2 * a + half) * S::TILE, 8);
      warp.sync();
      load_R(warp, b + 1, a);
      apply_sub_block<K>(warp, state, a, image, R, Y);
      if (!out) continue;
      GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half) {
        const int row = a * IB + 8 * half;
        if (diagonal.crosses()) clear_below(warp, Y[half], diagonal, row);
        store_tile<Access::stream>(warp, Y[half], out + row, job_.ld);
      }
    }
  }

  /// Waits until P of row block i is there, and finds out how far the chain has come. False: stop.
  GPUCHOLMOD_HOST_DEVICE bool see(const Warp& warp, int i, int& seen) const {
    const typename Warp::Wait wait;
    for (;;) {
      const int more = warp.leading(
          [&](int lane) { return i + lane < first_ && Warp::load_acquire(job_.shared.has_P + i + lane) != 0; });
      seen = i + more;
      if (more > 0) return true;
      if (Warp::load_acquire(&job_.shared.pass_state->stop) != 0) return false;
      wait.pause();
    }
  }

  /// V after all row blocks above the diagonal, from block b on by P alone; what it was before is saved. False: stop.
  GPUCHOLMOD_HOST_DEVICE bool run_ahead(int b) {
    team_.warps_sync([&](Warp& warp) {
      save_V(warp, states_[warp], job_, column_);
      constexpr int line = 128 / sizeof(T), lines = NB / line;
      GPUCHOLMOD_NO_UNROLL for (int i = b + 1; has_tile(warp, i) && i < first_ + BLOCKS; ++i)
        warp.each([&](int lane) {
          for (int l = lane; l < WARP_COLUMNS * lines; l += LANES)
            Warp::prefetch(job_.R + offset(warp, i) + l / lines * job_.ld + l % lines * line);
        });
    });
    team_.template copy<S::SQUARE>(shared_ + S::X, inverse(0));
    if (loaded_ != b) team_.each_warp([&](Warp& warp) { load_R(warp, b); });
    loaded_ = -1;
    trace_ = b > 0 ? Warp::template read<Access::transform>(transform(b - 1) + Parts::trace) : 0;
    // Two transforms may be on their way while a third is in use. Each warp copies its share of every transform when it
    // sees that it is there; the barrier of block i says that all shares have arrived.
    const auto ready = [&](int i) { return shared_ + S::ring_slots + i % 3 * S::run_ahead_words; };
    typename Team::template PerWarp<int> seen, copied;
    team_.each_warp([&](Warp& warp) { seen[warp] = copied[warp] = b; });
    GPUCHOLMOD_NO_UNROLL for (int i = b; i < first_; ++i) {
      const bool go_on = team_.all_sync([&](Warp& warp) {
        if (seen[warp] <= i && !see(warp, i, seen[warp])) return false;
        for (; copied[warp] < i + 2 && copied[warp] < seen[warp]; ++copied[warp]) {
          double* to = ready(copied[warp]);
          const double* from = transform(copied[warp]);
          team_.template copy_share<K * LDB>(warp, to, from + Parts::P);
          team_.template copy_share<8>(warp, to + K * LDB, from + Parts::kind);
          Warp::end_copy();
        }
        if (copied[warp] > i + 1) Warp::template wait_for_copies<1>();
        else Warp::template wait_for_copies<0>();
        return true;
      });
      if (!go_on) return false;
      const double *sP = ready(i), *head = sP + K * LDB - Parts::kind;
      const bool by_householder = head[Parts::kind] != unscaled, rescaled = head[Parts::rescaled] != 0;
      trace_ = head[Parts::trace];
      team_.each_warp([&](Warp& warp) {
        Registers& state = states_[warp];
        if (rescaled) rescale_V(warp, state, i);
        if (by_householder) {
          apply_steps(warp, state, i, nullptr);
          load_R(warp, i + 1);
          return;
        }
        GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
          Left<Warp> R[2];
          take_R(warp, a, R);
          warp.sync();
          load_R(warp, i + 1, a);
          subtract<K>(warp, state.V, R, sP + a * IB);
        }
      });
    }
    Warp::template wait_for_copies<0>();
    team_.barrier();
    return true;
  }

  /// Diagonal block x of the strip: finds its P, or its Householder steps, publishes them, and takes V of the columns
  /// to its right past it. V has been taken past everything above, and the tiles of block x have been loaded. False:
  /// stop.
  GPUCHOLMOD_HOST_DEVICE bool diagonal(int x) {
    const int b = first_ + x;
    double* to = transform(b);
    bool rescaled = false;
    blocks_.trace_before[x] = trace_;
    bool accepted = !job_.shared.only_householder && find_P(x, rescaled);
    if (blocks_.stopped) return false;
    if (!accepted && !find_steps(x)) return false;
    blocks_.by_householder[x] = !accepted;
    team_.once([&] {
      to[Parts::kind] = accepted ? unscaled : householder;
      to[Parts::rescaled] = rescaled;
      to[Parts::trace] = trace_;
    });
    team_.store_release(job_.shared.has_P + b);
    if (!accepted) team_.store_release(job_.shared.has_C + b);
    if (!accepted) team_.add(&job_.shared.pass_state->fallbacks, 1);
    if (rescaled) team_.add(&job_.shared.pass_state->rescalings, 1);
    if (x == BLOCKS - 1) return true;
    team_.template copy<S::SQUARE>(shared_ + S::X, inverse(1));
    team_.each_warp([&](Warp& warp) {
      if (warp.id >= WARPS / BLOCKS) {
        Registers& state = states_[warp];
        if (accepted) subtract_all(warp, state.V);
        else apply_steps(warp, state, b, nullptr);
        warp.sync();
      }
      load_R(warp, b + 1);
    });
    Warp::template wait_for_copies<0>();
    team_.barrier();
    return true;
  }

  /// V <- V - R'P for the tiles at hand, P in shared memory.
  GPUCHOLMOD_HOST_DEVICE void subtract_all(const Warp& warp, Tile<Warp>* V) const {
    GPUCHOLMOD_UNROLL for (int a = 0; a < SUBS; ++a) {
      Left<Warp> R[2];
      take_R(warp, a, R);
      subtract<K>(warp, V, R, shared_ + S::P + a * IB);
    }
  }

  /// P of diagonal block x, if the guard accepts it; V is rescaled first if that is what it takes.
  GPUCHOLMOD_HOST_DEVICE bool find_P(int x, bool& rescaled) {
    const double most = job_.shared.sigma > 0 ? most_trace_update : most_trace_downdate;
    GPUCHOLMOD_NO_UNROLL for (;;) {
      const double trace = trace_ + solve(x);
      if (trace <= most) {  // which NaN is not
        trace_ = trace;
        return true;
      }
      if (job_.shared.sigma < 0) {  // a closer look: the trace may be far above the norm
        const double distance = blocks_.distance(x);
        blocks_.stopped = distance < 0;
        if (blocks_.stopped) return false;
        if (distance <= most) {
          blocks_.fetch_P(x, shared_ + S::P);
          trace_ = distance;
          return true;
        }
      }
      if (trace_ == 0) break;
      rescaled = true;
      blocks_.stopped = !blocks_.find_rescaling(x);
      if (blocks_.stopped) return false;
      team_.warps_sync([&](Warp& warp) { rescale_V(warp, states_[warp], first_ + x); });
      trace_ = 0;
    }
    if (job_.shared.sigma > 0 || !blocks_.mildly_grown(x)) return false;
    trace_ = trace_beyond_limits;
    return true;
  }

  /// P <- R_bb^-T V_b, with one step of refinement where R_bb is not well-conditioned, to shared memory and to the
  /// transform. Returns ||P||_F^2.
  GPUCHOLMOD_HOST_DEVICE double solve(int x) {
    double *sV = shared_ + S::V, *partial = shared_ + S::partial;
    const auto has_columns = [x](const Warp& warp) { return warp.id / (WARPS / BLOCKS) == x; };
    const auto place = [&](const Warp& warp) { return sV + warp.id % (WARPS / BLOCKS) * WARP_COLUMNS; };
    team_.warps_sync([&](Warp& warp) {
      if (!has_columns(warp)) return;
      GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
        store_columns(warp, states_[warp].V[j], place(warp) + 8 * j * LDB, LDB);
    });
    multiply_by_X(x, false);
    if (blocks_.refine[x]) {
      team_.warps_sync([&](Warp& warp) {  // what is left: V_b - R_bb'P
        if (!has_columns(warp)) return;
        const Registers& state = states_[warp];
        Tile<Warp> left[K / 8];
        GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j) left[j] = state.V[j];
        subtract_all(warp, left);
        GPUCHOLMOD_UNROLL for (int j = 0; j < K / 8; ++j)
          store_columns(warp, left[j], place(warp) + 8 * j * LDB, LDB);
      });
      multiply_by_X(x, true);
    }
    double sum = 0;
    GPUCHOLMOD_UNROLL for (int w = 0; w < WARPS; ++w) sum += partial[w];
    return sum;
  }

  /// P <- X'V, or P + X'V, V and P in shared memory; P goes to the transform too.
  GPUCHOLMOD_HOST_DEVICE void multiply_by_X(int x, bool add) {
    const double *sX = shared_ + S::X, *sV = shared_ + S::V;
    double *sP = shared_ + S::P, *sPr = shared_ + S::Pr, *partial = shared_ + S::partial;
    double* to = transform(first_ + x) + Parts::P;
    team_.warps_sync([&](Warp& warp) {
      double squares = 0;
      GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < NB / 16 * (K / 8); task += WARPS) {
        const int m = task % (NB / 16) * 16, q = task / (NB / 16) * 8;
        Tile<Warp> D[2] = {zero_tile(warp), zero_tile(warp)};
        if (add) D[0] = load_tile<Access::shared>(warp, sPr + m * S::LDW + q, S::LDW);
        GPUCHOLMOD_UNROLL for (int l = 0; l < NB; l += 16) {
          if (l > m) break;  // X is upper
          GPUCHOLMOD_UNROLL for (int half = 0; half < 2; ++half)
            warp.template multiply_add<1, Access::shared>(
                D[half], load_left(warp, sX + m * LDB + l + 8 * half, LDB), sV + q * LDB + l + 8 * half,
                LDB);
        }
        warp.each([&](int lane) {
          GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) D[0][lane].e[e] += D[1][lane].e[e];
        });
        store_columns(warp, D[0], sP + q * LDB + m, LDB);
        store_columns(warp, D[0], to + q * LDB + m, LDB);
        store_tile(warp, D[0], sPr + m * S::LDW + q, S::LDW);
        squares += sum_of_squares(warp, D[0]);
      }
      warp.once([&] { partial[warp.id] = squares; });
    });
  }

  /// Diagonal block x by Householder steps; V has just been rescaled, if it had to be. False: a downdate fails, which
  /// everybody is told.
  GPUCHOLMOD_HOST_DEVICE bool find_steps(int x) {
    States copy = states_;  // its address is taken
    const int first_warp = x * (WARPS / BLOCKS);
    const T* R = job_.R + (column_ + x * NB) * job_.ld + index_t(first_ + x) * NB;
    const int failing = find_householder<K>(team_, copy, first_warp, transform(first_ + x), R, job_.ld,
                                            job_.shared.sigma, blocks_.ints() + 2);
    if (failing < 0) return true;
    team_.stop(job_.shared.pass_state, (first_ + x) * NB + failing);
    return false;
  }

  Team team_;
  const Job<T>& job_;
  Blocks& blocks_;
  States& states_;
  int first_;       ///< the strip's first row block on the diagonal
  index_t column_;  ///< its first column, counted from the panel's
  double* shared_;
  bool chain_near_ = false;
  int known_ = 0;
  int loaded_ = -1;   ///< row block whose tiles are on their way or there
  int staged_ = 0;    ///< transforms before this one are in their slots, or on their way
  double trace_ = 0;  ///< trace of sigma (H - I) before the block at hand
};

}  // namespace gpucholmod::block_columns
