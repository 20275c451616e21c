#pragma once

#include "block_columns/shared_memory.h"
#include "block_columns/small_matrices.h"

namespace gpucholmod::block_columns {

/// Waits for a flag. False: everybody is to stop.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE bool wait(const Warp& warp, const int* flag, const int* stop) {
  const typename Warp::Wait wait;
  while (Warp::load_acquire(flag) == 0) {
    if (Warp::load_acquire(stop) != 0) return false;
    wait.pause();
  }
  warp.sync();
  return true;
}

/// The two diagonal blocks of a strip, as far as they concern others: H, rescalings, transforms. Everything happens in
/// shared and global memory; nothing of it is on the way of the chain, but for a rescaling.
///
/// H is such that V H^-1 V' is what V V' would be had V been rescaled after every block: H = I + sigma sum of P'P over
/// the blocks since the last rescaling (inst/design/block-columns.md).
template <int K, class Team>
class DiagonalBlocks {
  using Warp = typename Team::Warp;
  using Parts = Transform<K>;
  using S = SharedMemory<K>;
  static constexpr int KP = Parts::KP;

 public:
  GPUCHOLMOD_HOST_DEVICE DiagonalBlocks(Team team, const Shared& job, int first)
      : team_(team), job_(job), first_(first), shared_(team.shared) {}

  double trace_before[BLOCKS] = {};  ///< trace of sigma (H - I) before each block
  bool by_householder[BLOCKS] = {};  ///< the kind of its transform
  bool refine[BLOCKS] = {};          ///< whether the inverse of a block alone is not accurate enough to solve with
  bool stopped = false;              ///< somebody's downdate has failed

  GPUCHOLMOD_HOST_DEVICE double* transform(int x) const { return job_.transforms + index_t(first_ + x) * Parts::words; }
  GPUCHOLMOD_HOST_DEVICE int* ints() const { return reinterpret_cast<int*>(shared_ + S::ints); }

  GPUCHOLMOD_HOST_DEVICE bool wait_for(const int* flag) {
    return team_.all_sync([&](Warp& warp) { return wait(warp, flag, &job_.pass_state->stop); });
  }

  /// sP (KP x NB, ld LDB) <- P of diagonal block x, from its transform.
  GPUCHOLMOD_HOST_DEVICE_CALL void fetch_P(int x, double* sP) {
    const double* from = transform(x) + Parts::P;
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * NB; i += team_.size() * LANES) {
        const int q = i / NB, at = q * LDB + i % NB;
        sP[at] = q < K ? Warp::template read<Access::transform>(from + at) : 0;
      }
    });
  }

  /// Waits until the H before diagonal block x is there. False: stop.
  GPUCHOLMOD_HOST_DEVICE bool wait_for_H(int x) {
    return trace_before[x] == 0 || wait_for(job_.has_H + first_ + x - 1);
  }

  /// sH (KP x KP, ld LDB) <- H before diagonal block x, which is there.
  GPUCHOLMOD_HOST_DEVICE_CALL void fetch_H(Team team, int x, double* sH) {
    const bool identity = trace_before[x] == 0;
    const double* from = identity ? nullptr : transform(x) - Parts::words + Parts::H;
    team.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team.size() * LANES) {
        const int q = i / KP, l = i % KP;
        sH[q * LDB + l] = identity ? double(q == l) : Warp::template read<Access::transform>(from + q * LDB + l);
      }
    });
  }

  /// The tile of P'P at (m, q), P by columns in shared memory.
  GPUCHOLMOD_HOST_DEVICE static Tile<Warp> gram(const Warp& warp, const double* sP, int m, int q) {
    Tile<Warp> D = zero_tile(warp);
    GPUCHOLMOD_NO_UNROLL for (int i = 0; i < NB; i += 8)
      warp.template multiply_add<1, Access::shared>(D, load_left(warp, sP + m * LDB + i, LDB),
                                                    sP + q * LDB + i, LDB);
    return D;
  }

  /// Publishes H + sigma P'P, the H behind diagonal block `blocks` - 1, and behind those before it. False: stop.
  GPUCHOLMOD_HOST_DEVICE_CALL bool publish_H(int blocks) {
    double *sH = shared_ + S::rescale_H, *sP = shared_ + S::rescale_B;
    for (; H_published_ < blocks; ++H_published_) {
      const int x = H_published_;
      if (by_householder[x]) continue;
      if (!wait_for_H(x)) return false;
      fetch_H(team_, x, sH);
      fetch_P(x, sP);
      double* to = transform(x) + Parts::H;
      team_.warps_sync([&](Warp& warp) {
        GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < KP / 16 * (KP / 8); task += team_.size()) {
          const int m = task % (KP / 16) * 16, q = task / (KP / 16) * 8;
          Tile<Warp> D = gram(warp, sP, m, q);
          const Tile<Warp> H = load_tile<Access::shared>(warp, sH + m * LDB + q, LDB);
          warp.each([&](int lane) {
            for (int e = 0; e < 4; ++e) D[lane].e[e] = H[lane].e[e] + job_.sigma * D[lane].e[e];
          });
          store_tile(warp, D, to + m * LDB + q, LDB);
        }
      });
      team_.store_release(job_.has_H + first_ + x);
    }
    return true;
  }

  GPUCHOLMOD_HOST_DEVICE void set_identity(Team team, double* s) {
    team.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team.size() * LANES)
        s[i / KP * LDB + i % KP] = i / KP == i % KP;
    });
  }

  /// T(x) <- U^-1 with U'U = H, to the transform of diagonal block x: V T is V with H = I again. False: stop.
  GPUCHOLMOD_HOST_DEVICE_CALL bool find_rescaling(int x) {
    double *sH = shared_ + S::rescale_H, *sY = shared_ + S::rescale_B;
    if (!publish_H(x) || !wait_for_H(x)) return false;
    fetch_H(team_, x, sH);
    set_identity(team_, sY);
    eliminate(team_, KP, KP, sH, sY, sY, shared_ + S::rescale_C, shared_ + S::rescale_G, ints());
    double* to = transform(x) + Parts::T;
    team_.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team_.size() * LANES) to[i / KP * LDB + i % KP] = sY[i % KP * LDB + i / KP];
    });
    trace_before[x] = 0;
    return true;
  }

  /// ||H - I||_F with the H behind diagonal block x, whose P is in its transform. Negative: stop.
  GPUCHOLMOD_HOST_DEVICE_CALL double distance(int x) {
    double *sH = shared_ + S::rescale_H, *sP = shared_ + S::P, *partial = shared_ + S::partial;
    if (!publish_H(x) || !wait_for_H(x)) return -1;
    fetch_H(team_, x, sH);
    fetch_P(x, sP);
    team_.warps_sync([&](Warp& warp) {
      double squares = 0;
      GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < KP / 16 * (KP / 8); task += team_.size()) {
        const int m = task % (KP / 16) * 16, q = task / (KP / 16) * 8;
        Tile<Warp> D = gram(warp, sP, m, q), H = load_tile<Access::shared>(warp, sH + m * LDB + q, LDB);
        warp.each([&](int lane) {
          GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e)
            H[lane].e[e] += job_.sigma * D[lane].e[e] - on_diagonal(m, q, lane, e);
        });
        squares += sum_of_squares(warp, H);
      }
      warp.once([&] { partial[warp.id] = squares; });
    });
    double sum = 0;
    for (int w = 0; w < WARPS; ++w) sum += partial[w];
    team_.barrier();
    return sqrt(sum);
  }

  /// Whether the unscaled step will do for a downdate all the same: trace of (I - P'P)^-1 - I at most `most_growth`.
  /// H before diagonal block x is I. Its P is in shared memory, and is so again afterwards.
  GPUCHOLMOD_HOST_DEVICE_CALL bool mildly_grown(int x) {
    double *sH = shared_ + S::rescale_H, *sY = shared_ + S::rescale_B;
    double *sP = shared_ + S::P, *partial = shared_ + S::partial;
    fetch_P(x, sP);
    team_.warps_sync([&](Warp& warp) {
      GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < KP / 16 * (KP / 8); task += team_.size()) {
        const int m = task % (KP / 16) * 16, q = task / (KP / 16) * 8;
        Tile<Warp> D = gram(warp, sP, m, q);
        warp.each([&](int lane) {
          GPUCHOLMOD_UNROLL for (int e = 0; e < 4; ++e) D[lane].e[e] = on_diagonal(m, q, lane, e) - D[lane].e[e];
        });
        store_tile(warp, D, sH + m * LDB + q, LDB);
      }
    });
    set_identity(team_, sY);
    bool good = eliminate(team_, KP, KP, sH, sY, sY, shared_ + S::rescale_C, shared_ + S::rescale_G, ints());
    if (good) {
      team_.warps_sync([&](Warp& warp) {
        double squares = 0;
        GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < KP / 16 * (KP / 8); task += team_.size())
          squares += sum_of_squares(warp, load_tile<Access::shared>(
                                              warp, sY + task % (KP / 16) * 16 * LDB + task / (KP / 16) * 8, LDB));
        warp.once([&] { partial[warp.id] = squares; });
      });
      double trace = 0;
      for (int w = 0; w < WARPS; ++w) trace += partial[w];
      good = trace - KP <= most_growth;
    }
    team_.barrier();
    fetch_P(x, sP);
    return good;
  }

  /// What the others need of the strip's diagonal blocks besides P. False: stop.
  GPUCHOLMOD_HOST_DEVICE_CALL bool complete_transforms() {
    if (!publish_H(BLOCKS)) return false;
    int* verdicts = ints() + 4;
    team_.threads_sync([&](int thread) {
      if (thread < BLOCKS) verdicts[thread] = 1;
    });
    if constexpr (S::both) {
      team_.halves_sync([&](Team half, int x) {
        if (!by_householder[x]) complete(half, x, shared_ + x * S::m_words, verdicts + x);
      });
    } else {
      GPUCHOLMOD_NO_UNROLL for (int x = 0; x < BLOCKS; ++x)
        if (!by_householder[x]) complete(team_, x, shared_, verdicts + x);
    }
    GPUCHOLMOD_NO_UNROLL for (int x = 0; x < BLOCKS; ++x)
      if (!verdicts[x]) {
        team_.stop(job_.pass_state, (first_ + x) * NB);
        return false;
      }
    return true;
  }

  /// Z and the C_a^-1 of diagonal block x (inst/design/block-columns.md):
  ///
  ///   U'U = H, W = P U^-1, Z = W U'^-1, M = I + sigma W W'; then elimination on M with Z on the right
  GPUCHOLMOD_HOST_DEVICE_CALL void complete(Team team, int x, double* work, int* verdict) {
    double *sP = work + S::m_P, *sH = work + S::m_H, *sB = work + S::m_B, *sY = work + S::m_Y;
    double *sC = work + S::m_C, *sG = work + S::m_G, *sW = sH, *sM = sP;
    double* to = transform(x);
    if (trace_before[x] == 0) {
      set_identity(team, sY);
    } else {
      fetch_H(team, x, sH);
      set_identity(team, sB);
      eliminate(team, KP, KP, sH, sB, sY, sC, sG, verdict);
    }
    team.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * KP; i += team.size() * LANES) sB[i / KP * LDB + i % KP] = sY[i % KP * LDB + i / KP];
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < KP * NB; i += team.size() * LANES) {
        const int q = i / NB, row = i % NB;
        sP[row * S::LDW + q] = q < K ? Warp::template read<Access::transform>(to + Parts::P + q * LDB + row) : 0;
      }
    });
    team.warps_sync([&](Warp& warp) {  // W
      GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < NB / 16 * (KP / 8); task += team.size()) {
        const int m = task % (NB / 16) * 16, q = task / (NB / 16) * 8;
        Tile<Warp> D = zero_tile(warp);
        for (int l = 0; l < KP; l += 8)
          warp.template multiply_add<1, Access::shared>(
              D, load_left(warp, sP + m * S::LDW + l, S::LDW), sB + q * LDB + l, LDB);
        store_tile(warp, D, sW + m * S::LDW + q, S::LDW);
      }
    });
    team.warps_sync([&](Warp& warp) {  // Z' and the lower triangle of M
      constexpr int tasks_Z = KP / 16 * (NB / 8), tasks_M = NB / 16 * (NB / 8);
      GPUCHOLMOD_NO_UNROLL for (int task = warp.id; task < tasks_Z + tasks_M; task += team.size()) {
        const bool is_Z = task < tasks_Z;
        const int m = (is_Z ? task : task - tasks_Z) / (NB / 8) * 16, n = (is_Z ? task : task - tasks_Z) % (NB / 8) * 8;
        if (!is_Z && n > m + 8) continue;
        Tile<Warp> D = zero_tile(warp);
        for (int l = 0; l < KP; l += 8)
          warp.template multiply_add<1, Access::shared>(
              D, is_Z ? load_left(warp, sY + m * LDB + l, LDB)
                      : load_left(warp, sW + m * S::LDW + l, S::LDW),
              sW + n * S::LDW + l, S::LDW);
        if (!is_Z)
          warp.each([&](int lane) {
            for (int e = 0; e < 4; ++e)
              D[lane].e[e] = on_diagonal(m, n, lane, e) + job_.sigma * D[lane].e[e];
          });
        store_tile(warp, D, (is_Z ? sB : sM) + m * LDB + n, LDB);
      }
    });
    if (!eliminate(team, NB, KP, sM, sB, sY, sC, sG, verdict)) return;
    team.threads_sync([&](int thread) {
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < NB * K; i += team.size() * LANES) {
        const int row = i / K, q = i % K;
        to[Parts::Z + row * Parts::LDK + q] = job_.sigma * sB[q * LDB + row];
      }
      GPUCHOLMOD_NO_UNROLL for (int i = thread; i < SUBS * IB * LDC; i += team.size() * LANES) to[Parts::C + i] = sC[i];
    });
    team.store_release(job_.has_C + first_ + x);
  }

 private:
  Team team_;
  Shared job_;
  int first_;  ///< number of the first row block
  double* shared_;
  int H_published_ = 0;
};

}  // namespace gpucholmod::block_columns
