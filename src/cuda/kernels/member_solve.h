#pragma once

#include "cuda/kernels/member.h"

/// The solution of triangular systems with the members of a batch, by a team of W warps for each member.
///
/// The right-hand sides B stay in shared memory. R is read in tiles of 32 x 32. Blocks are counted in the direction of
/// the substitution. Block t of B belongs to warp t % W. This warp solves with the diagonal tile of block t, and
/// applies all other tiles to block t of B:
///
///            s     t > s
///         [ R_ss   R_st  . ]      x_s = R_ss'^-1 b_s           the warp of s, in registers
///         [        R_tt  . ]      a barrier, or none if W = 1
///         [              . ]      b_t <- b_t - R_st' x_s       the warp of each t
///
/// Back substitution has R_ts in place of R_st'. A warp copies its next tile while it waits for other warps. A number
/// of B changes in the order of s alone, so its bits depend neither on W nor on the other right-hand sides.
///
/// The threads of a warp form H groups. A thread owns H columns of a tile (rows, in back substitution) and H right-hand
/// sides, so that it loads 2 H numbers for H^2 products.
/// Reference: inst/design/batches.md, "Solving".
namespace gpucholmod::cuda {

/// A triangle of order `capacity`, packed by rows, of which the first n rows and columns are used.
template <class T>
struct PackedFactor {
  const T* R;
  int n, capacity;

  GPUCHOLMOD_HOST_DEVICE int blocks() const { return (n + WARP - 1) / WARP; }
  /// Returns the number of rows of a block that are among the first n.
  GPUCHOLMOD_HOST_DEVICE int rows_of(int block) const { return n - block * WARP < WARP ? n - block * WARP : WARP; }
};

/// Describes a solve with all members: every member has m right-hand sides (n x m), of which columns [first, last) are
/// solved for.
template <class T>
struct BatchSolve {
  index_t n, capacity, m, first, last;
  Numbers<T> R;
  double* B;

  GPUCHOLMOD_HOST_DEVICE PackedFactor<T> factor(index_t member) const {
    return {R.at + member * words_of(capacity), int(n), int(capacity)};
  }
  /// Returns B of a member, from column q on.
  GPUCHOLMOD_HOST_DEVICE double* sides(index_t member, index_t q) const { return B + (member * m + q) * n; }
};

/// The rows of half a tile, and the words of shared memory for a tile. A tile off the diagonal is copied in halves of
/// 16 rows, or, in back substitution, of 16 columns. The distance between the rows in shared memory avoids bank
/// conflicts. A diagonal tile is a packed triangle of order 32.
constexpr int HALF = WARP / 2, tile_words = WARP * (HALF + 1);
static_assert(HALF * (WARP + 1) <= tile_words && words_of(WARP) <= tile_words);

/// Returns the distance, in doubles, from one right-hand side in shared memory to the next. With this distance H
/// right-hand sides are in different banks.
GPUCHOLMOD_HOST_DEVICE constexpr index_t side_stride(index_t n) { return (n + WARP - 1) / WARP * WARP + 4; }

/// Returns the bytes of shared memory of a team that solves for K right-hand sides at a time: a multiple of 16.
template <class T>
GPUCHOLMOD_HOST_DEVICE constexpr index_t solve_bytes(index_t n, int K, int warps) {
  return index_t(sizeof(double)) * K * side_stride(n) + index_t(sizeof(T)) * warps * tile_words;
}

/// The shared memory of a team.
template <class T>
struct SolveRoom {
  double* sB;  ///< right-hand sides, zeros beyond row n
  T* sTiles;   ///< a tile for each warp
  int stride;

  GPUCHOLMOD_HOST_DEVICE SolveRoom(double* shared, index_t n, int K)
      : sB(shared),
        sTiles(reinterpret_cast<T*>(shared + K * side_stride(n))),
        stride(int(side_stride(n))) {}
};

/// Starts to copy `columns` right-hand sides of n numbers to shared memory. Writes zeros beyond row n and for the rest
/// of the K right-hand sides.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void start_sides(const Team& team, const double* B, int n, int columns,
                                        const SolveRoom<T>& room) {
  const int rows = (n + WARP - 1) / WARP * WARP;
  team.threads([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < rows; i += team.size())
      GPUCHOLMOD_UNROLL_BY(4) for (int q = 0; q < K; ++q) {
        if (q < columns && i < n) Team::start_copy(room.sB + q * room.stride + i, B + index_t(q) * n + i);
        else room.sB[q * room.stride + i] = 0;
      }
  });
}

/// Copies `columns` solutions of n numbers from shared memory to B.
template <int K, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void store_sides(const Team& team, const SolveRoom<T>& room, int n, int columns, double* B) {
  team.threads([&](int thread) {
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < n; i += team.size())
      GPUCHOLMOD_UNROLL_BY(4) for (int q = 0; q < K; ++q)
        if (q < columns) B[index_t(q) * n + i] = room.sB[q * room.stride + i];
  });
}

/// Runs one substitution for H^2 right-hand sides in shared memory: B <- R'^-1 B, or B <- R^-1 B if `back`. Copies of B
/// to shared memory may still be under way. The team must sync() before a thread reads solutions.
template <int H, bool back, class Team, class T>
class Substitution {
  static constexpr int G = WARP / H;  ///< number of threads of a group

 public:
  GPUCHOLMOD_HOST_DEVICE Substitution(const Team& team, const PackedFactor<T>& R, const SolveRoom<T>& room)
      : team_(team), R_(R), room_(room), blocks_(R.blocks()), warps_(team.size() / WARP) {}

  GPUCHOLMOD_HOST_DEVICE void run() {
    team_.each_warp([&](int w) {
      next_[w] = {0, w, 0};
      start(w);
    });
    Team::wait_for_copies();
    team_.sync();
    GPUCHOLMOD_NO_UNROLL for (int s = 0; s < blocks_; ++s) {
      team_.each_warp([&](int w) {
        if (next_[w].s != s || next_[w].t != s) return;
        Team::wait_for_copies();
        team_.sync_warp();
        solve_diagonal(tile(w), R_.rows_of(place(s)), room_.sB + place(s) * WARP);
        advance(w);
      });
      team_.sync();
      team_.each_warp([&](int w) {
        while (next_[w].s == s && next_[w].t < blocks_) apply(w, room_.sB + place(s) * WARP, place(next_[w].t));
      });
    }
  }

 private:
  /// The tile, or half of one, that a warp takes next: block s is solved for, block t changes.
  struct Next {
    int s, t, half;
  };
  template <class S>
  using PerThread = typename Team::template PerThread<S>;
  /// The entries of B that a thread owns: rows g + G c, g = lane % G, of right-hand sides H q + h, h = lane / G.
  struct Own {
    double b[H][H];
  };
  /// The reciprocals 1 / R(j, j) of the rows that a thread owns.
  struct Inverses {
    double of[H];
  };

  GPUCHOLMOD_HOST_DEVICE int place(int t) const { return back ? blocks_ - 1 - t : t; }
  /// Returns the place of R(i, j) in the triangle of a diagonal tile.
  GPUCHOLMOD_HOST_DEVICE static int in_triangle(int i, int j) { return i * (2 * WARP - 1 - i) / 2 + j; }
  GPUCHOLMOD_HOST_DEVICE T* tile(int w) const { return room_.sTiles + w * tile_words; }

  /// Finds the next tile, or half of one, of warp w, and starts to copy it to the place of the previous one.
  GPUCHOLMOD_HOST_DEVICE void advance(int w) {
    Next& next = next_[w];
    next.half = next.s != next.t && next.half == 0;
    if (next.half == 0) next.t += warps_;
    if (next.t >= blocks_) {
      ++next.s;
      next.t = next.s + (w + warps_ - next.s % warps_) % warps_;
    }
    team_.sync_warp();
    start(w);
  }

  GPUCHOLMOD_HOST_DEVICE void start(int w) {
    const Next next = next_[w];
    if (next.t >= blocks_) return;
    const int s = place(next.s), t = place(next.t);
    if (s == t) start_triangle(s * WARP, tile(w));
    else start_half(back ? t * WARP : s * WARP + next.half * HALF, back ? s * WARP + next.half * HALF : t * WARP,
                    tile(w));
  }

  /// Starts to copy the diagonal tile that begins at row `first`, packed as a triangle of order 32.
  GPUCHOLMOD_HOST_DEVICE void start_triangle(int first, T* sTile) const {
    team_.lanes([&](int lane) {
      const int j = first + lane;
      if (j >= R_.n) return;
      const T* from = R_.R + row_of(R_.capacity, first) + j;
      T* to = sTile + lane;
      GPUCHOLMOD_UNROLL_BY(8) for (int i = 0; i < WARP; ++i) {
        if (i <= lane) Team::start_copy(to, from);
        from += R_.capacity - 1 - first - i;
        to += WARP - 1 - i;
      }
    });
  }

  /// Starts to copy the half of a tile that begins at row `first` and `column`: 16 x 32, or 32 x 16 if `back`. Writes
  /// zeros beyond column n.
  GPUCHOLMOD_HOST_DEVICE void start_half(int first, int column, T* sTile) const {
    constexpr int width = back ? HALF : WARP, at_once = WARP / width;
    team_.lanes([&](int lane) {
      const int j = column + lane % width;
      int row = first + lane / width;
      const T* from = R_.R + row_of(R_.capacity, row) + j;
      T* to = sTile + lane / width * (width + 1) + lane % width;
      GPUCHOLMOD_UNROLL_BY(8) for (int u = 0; u < HALF; ++u) {
        if (j < R_.n) Team::start_copy(to, from);
        else *to = 0;
        GPUCHOLMOD_UNROLL for (int v = 0; v < at_once; ++v) from += R_.capacity - 1 - row++;
        to += at_once * (width + 1);
      }
    });
  }

  /// Solves with the diagonal tile R_ss, packed in sTile, for `rows` rows of B, one after the other.
  GPUCHOLMOD_HOST_DEVICE void solve_diagonal(const T* sTile, int rows, double* sB) const {
    PerThread<Own> own;
    PerThread<Inverses> inverse;
    team_.lanes([&](int lane) {
      load(sB, lane, own[lane]);
      GPUCHOLMOD_UNROLL for (int c = 0; c < H; ++c) {
        const int j = lane % G + G * c;
        inverse[lane].of[c] = j < rows ? 1 / double(sTile[in_triangle(j, j)]) : 0;
      }
    });
    GPUCHOLMOD_UNROLL for (int turn = 0; turn < H; ++turn) {
      const int c = back ? H - 1 - turn : turn, last = rows - G * c < G ? rows - G * c : G;
      GPUCHOLMOD_UNROLL_BY(4) for (int u = 0; u < last; ++u)
        find_row(sTile, back ? last - 1 - u : u, c, inverse, own);
    }
    team_.lanes([&](int lane) {
      GPUCHOLMOD_UNROLL for (int c = 0; c < H; ++c)
        GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q) own[lane].b[c][q] *= inverse[lane].of[c];
      store(own[lane], lane, rows, sB);
    });
  }

  /// Sends row g + G c of X from the threads that own it to all threads of their groups, which subtract its multiples
  /// from their rows that are still to be found.
  GPUCHOLMOD_HOST_DEVICE void find_row(const T* sTile, int g, int c, PerThread<Inverses>& inverse,
                                       PerThread<Own>& own) const {
    const int i = g + G * c;
    PerThread<double> x[H];
    GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q) {
      team_.lanes([&](int lane) { x[q][lane] = own[lane].b[c][q] * inverse[lane].of[c]; });
      x[q] = team_.shuffled(x[q], [&](int lane) { return lane / G * G + g; });
    }
    team_.lanes([&](int lane) {
      GPUCHOLMOD_UNROLL for (int d = back ? 0 : c; d < (back ? c + 1 : H); ++d) {
        const int j = lane % G + G * d;
        if (back ? j >= i : j <= i) continue;
        const double r = -double(sTile[back ? in_triangle(j, i) : in_triangle(i, j)]);
        GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q) own[lane].b[d][q] = fma(r, x[q][lane], own[lane].b[d][q]);
      }
    });
  }

  /// Computes b_t <- b_t - R_st' x_s, or b_t - R_ts x_s if `back`, by warp w. The copy of the first half of the tile is
  /// under way.
  GPUCHOLMOD_HOST_DEVICE void apply(int w, const double* sX, int t) {
    double* const sB = room_.sB + t * WARP;
    PerThread<Own> own;
    team_.lanes([&](int lane) { load(sB, lane, own[lane]); });
    GPUCHOLMOD_NO_UNROLL for (int half = 0; half < 2; ++half) {
      Team::wait_for_copies();
      team_.sync_warp();
      team_.lanes([&](int lane) { subtract_product(tile(w), sX + half * HALF, lane, own[lane]); });
      advance(w);
    }
    team_.lanes([&](int lane) { store(own[lane], lane, R_.rows_of(t), sB); });
  }

  /// Subtracts a thread's share of the product with one half of a tile.
  GPUCHOLMOD_HOST_DEVICE void subtract_product(const T* sTile, const double* sX, int lane, Own& own) const {
    constexpr int by_found = back ? 1 : WARP + 1, by_own = back ? HALF + 1 : 1;
    const T* const at = sTile + lane % G * by_own;
    GPUCHOLMOD_UNROLL_BY(4) for (int i = 0; i < HALF; i += 2) {
      ColumnOfV<2> x[H];
      GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q)
        x[q] = Team::template load<2>(
            *reinterpret_cast<const double(*)[2]>(sX + (H * q + lane / G) * room_.stride + i));
      GPUCHOLMOD_UNROLL for (int u = 0; u < 2; ++u)
        GPUCHOLMOD_UNROLL for (int c = 0; c < H; ++c) {
          const double r = -double(at[(i + u) * by_found + G * c * by_own]);
          GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q) own.b[c][q] = fma(r, x[q].q[u], own.b[c][q]);
        }
    }
  }

  GPUCHOLMOD_HOST_DEVICE void load(const double* sB, int lane, Own& own) const {
    GPUCHOLMOD_UNROLL for (int c = 0; c < H; ++c)
      GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q)
        own.b[c][q] = sB[(H * q + lane / G) * room_.stride + lane % G + G * c];
  }
  GPUCHOLMOD_HOST_DEVICE void store(const Own& own, int lane, int rows, double* sB) const {
    GPUCHOLMOD_UNROLL for (int c = 0; c < H; ++c)
      GPUCHOLMOD_UNROLL for (int q = 0; q < H; ++q)
        if (lane % G + G * c < rows) sB[(H * q + lane / G) * room_.stride + lane % G + G * c] = own.b[c][q];
  }

  const Team& team_;
  const PackedFactor<T>& R_;
  const SolveRoom<T>& room_;
  int blocks_, warps_;
  PerThread<Next> next_;
};

/// Computes B <- R'^-1 B for H^2 right-hand sides in shared memory. Ends with sync().
template <int H, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_forward(const Team& team, const PackedFactor<T>& R, const SolveRoom<T>& room) {
  Substitution<H, false, Team, T>(team, R, room).run();
  team.sync();
}
/// Computes B <- R^-1 B for H^2 right-hand sides in shared memory. Ends with sync().
template <int H, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void substitute_back(const Team& team, const PackedFactor<T>& R, const SolveRoom<T>& room) {
  Substitution<H, true, Team, T>(team, R, room).run();
  team.sync();
}

/// Solves for the right-hand sides of one member, H^2 at a time.
template <int H, class Team, class T>
GPUCHOLMOD_HOST_DEVICE void solve_member(const Team& team, const BatchSolve<T>& solve, index_t member, bool forward,
                                         bool back, const SolveRoom<T>& room) {
  const PackedFactor<T> R = solve.factor(member);
  GPUCHOLMOD_NO_UNROLL for (index_t q = solve.first; q < solve.last; q += H * H) {
    const int columns = int(solve.last - q < H * H ? solve.last - q : H * H);
    start_sides<H * H>(team, solve.sides(member, q), R.n, columns, room);
    if (forward) substitute_forward<H>(team, R, room);
    if (back) substitute_back<H>(team, R, room);
    store_sides<H * H>(team, room, R.n, columns, solve.sides(member, q));
    team.sync();
  }
}

}  // namespace gpucholmod::cuda
