#pragma once

#include "block_columns/cards.h"
#include "block_columns/segment_factor.h"
#include "block_columns/warp.h"

/// A modification in one launch whose thread blocks have four roles. Taking V past row block b means V <- V - R_b'P_b.
///
///   solve     clusters of thread blocks compute P = R'^-1 V, row block after row block, 8 columns of V each
///   advance   takes V of the columns that the chain is about to reach past the preceding row blocks, with P alone
///   finish    computes H, Z and C of a row block from P, and asks the guard
///   update    computes R~ and V, row block after row block, over all columns
///
/// In its work on a row block a role waits for the roles above it, and for other roles on earlier row blocks only.
///
/// In place (out is R) separate thread blocks update the columns near the diagonal, some row blocks later, when solve
/// and advance have read these columns.
///
/// A factor may be stored on several GPUs, its device ranks. The first rank then solves and finishes, and its thread
/// blocks that finish also
///
///   send      copies P, transforms and verdicts to the memory of the other ranks
///
/// Each rank advances and updates its own strips.
///
/// With Order::back a strip holds the tiles of R that take all columns past the strip's row blocks. So each rank alone
/// takes all columns past the row blocks of its strips, and thread blocks that advance on the first rank also
///
///   add up    adds V and the partial sums of all ranks
///
/// This header declares what the roles share. Reference: inst/design/segments.md.
namespace gpucholmod::block_columns {

constexpr int REACH = 8;                  ///< row blocks before its own past which the chain itself takes a column
constexpr int CHAIN_COLUMNS = 8;          ///< columns of V that a cluster solves for

constexpr int SOLVE_WARPS = 4, ADVANCE_WARPS = 8, FINISH_WARPS = 8, UPDATE_WARPS = 11;
constexpr int WARPS_OF_GROUP = 3;  ///< warps that update one of the last groups of a worker
constexpr int LAST_GROUPS = UPDATE_WARPS / WARPS_OF_GROUP;  ///< number of these groups at most
constexpr int SEND_P_WARPS = 2, SEND_WARPS = 1;
constexpr int WORKERS_OF_STRIP = STRIP / GROUP;  ///< thread blocks that update a strip, a group each

/// Returns the number that a warp of `cluster` adds to `has_P` to publish its rows of P: each cluster has eight bits.
GPUCHOLMOD_HOST_DEVICE constexpr int published_by(int cluster) { return 1 << 8 * cluster; }
/// Returns how many warps of `cluster` have published their rows.
GPUCHOLMOD_HOST_DEVICE constexpr int published(int has_P, int cluster) { return has_P >> 8 * cluster & 255; }
/// The value of `has_P` when all clusters have published, V having K columns.
template <int K>
constexpr int all_published = [] {
  int sum = 0;
  for (int cluster = 0; cluster < K / CHAIN_COLUMNS; ++cluster) sum += SOLVE_WARPS * published_by(cluster);
  return sum;
}();

/// The leading dimension of tiles of R, inverses and links in the chain: free of bank conflicts, see load_left_apart().
constexpr int LDT = NB + 4;
constexpr int INVERSE = NB * LDT;
/// The method that finds P from the inverse X of a diagonal block. Reference: inst/design/guard.md.
enum Solving {
  by_inverse = 0,       ///< P = X'V
  by_refinement = 1,    ///< P = X'V, then one step of iterative refinement
  by_substitution = 2   ///< substitution with the diagonal block itself, as X is too inaccurate
};
/// The rows behind the NB rows of an inverse: row diagonal_at has the entry of R on the diagonal of each column; in the
/// first column, row solving_at has a Solving, and the row below it has that of the order back.
constexpr int diagonal_at = NB, solving_at = NB + 1;
static_assert(solving_at + 1 < LDT);

/// The state of a row block, in its flag `complete`.
enum Verdict { open = 0, accepted = 1, rejected = 2 };

/// Holds what the thread blocks of a segment tell each other besides transforms; zero at the start. Flags follow it.
struct SegmentState {
  int stop;      ///< true if a row block is rejected: row blocks behind it are not needed any more
  /// Twice the number of row blocks from the first rejected one to the end, plus 1 if the guard would reject that row
  /// block with H = I before it as well; 0 if no row block is rejected.
  int left;
  int renewed;   ///< row block before which H is renewed, plus 1; 0: none, or one above the panel (renewal.h)
};

/// The order in which blocks are solved for: R'P = V from the first on, or RP = V from the last on. Row blocks and
/// groups of columns count in this order. Only R, V, inverses and columns within a block of `handed` are stored by
/// place in the factor. With Order::back "block column c past row block b" is row block c past block column b.
enum class Order { forward, back };

/// The memory of another rank to which the first rank sends.
struct OtherRank {
  double* memory;
  int* flags;
};

/// Describes the part of the factor that a segment modifies: row blocks [first, end) of `blocks` block columns, of a
/// whole factor or of a panel, whose columns extend from the top of the factor to their diagonal. Row block b crosses
/// the diagonal in block column b. So row blocks above the diagonal blocks of a panel have negative numbers, down to
/// `top`; their transforms exist already. Block columns from `end` on are only updated: in a launch with all roles they
/// are right-hand sides.
struct SegmentRange {
  int first, end, blocks;
  int top;  ///< minus the number of row blocks above a panel; 0 for a whole factor
};

/// Describes the modification: A + sigma VV' for the first HALF columns of V, with sigma2 for the other columns.
template <class A>
struct SegmentSigns {
  A sigma, sigma2;  ///< 1 or -1
  A bound;  ///< bound of the eigenvalues of H if both signs are the same: upper in an update, lower in a downdate
  Scaling scaling;
};

/// Points to the memory of a pass, in words of the arithmetic A.
template <class A>
struct SegmentMemory {
  A* V;  ///< V of the block columns: K columns, leading dimension ldv
  /// The memory to which the remaining V is written if the segment stops early, because a row block is rejected or
  /// `end` is less than `blocks`: V itself on rank 0, the V of rank 0 on the other ranks.
  A* left_V;
  index_t ldv;
  A* V_outside;  ///< V during the update of groups for which shared memory has no room: GROUP * K words a group
  A* inverses;    ///< inverses of the diagonal blocks, by their place, INVERSE words each
  A* links;       ///< link R_(c-1)c R_cc^-1 of each block column c that has a block (c - 1, c), INVERSE words each
  A* transforms;    ///< BlockTransform<K>::stride words for each row block, and for one more
  /// V of each block column past all row blocks but the last REACH: K x LDB words. The partial sums of each rank, if
  /// there are any, follow: Segment::partial().
  A* handed;
  int* inverted;  ///< number of times that a thread block has written the inverses that it finds at once
  int* linked;    ///< number of times that a thread block has written their links
  int* flags;     ///< a SegmentState, then a flag of each kind for every row block; flag_words() ints
};

/// Holds the number of thread blocks of a launch in each role. If several devices work on the segment, `advancers`,
/// `workers` and `workers_within` are sums over the devices. Each device then has the same number of each, and a number
/// of workers that is a multiple of WORKERS_OF_STRIP.
struct SegmentRoles {
  int window;   ///< look-ahead distance: columns of this many row blocks ahead are advanced; more than REACH
  int solvers;  ///< Card::cluster thread blocks for each CHAIN_COLUMNS columns of V, or none
  int finishers, advancers, workers;
  /// The number of thread blocks that update row block b in block columns up to b + window, while `workers` update row
  /// block b in the block columns beyond. 0: `workers` update all block columns.
  int workers_within;
  /// The number of first groups of each of `workers` whose V is in V_outside, not in shared memory.
  int outside;
  /// The row block from which on each of `workers` has LAST_GROUPS groups at most, and three warps update each. Ignored
  /// if the card has no room for that.
  int by_three;
};

/// Describes the share of one device in a factor that is stored on several devices, its device ranks.
struct SegmentRanks {
  /// The number of GPUs that have strips of the factor, and the number of this GPU, which has strip `device_rank` and
  /// every device_ranks-th strip from there on; device_rank is 0 if the factor is on one device.
  int device_ranks, device_rank;
  /// True if all ranks work on the segment. `inverses`, `links`, their counters and `handed` are then in the memory of
  /// rank 0, which alone solves and finishes.
  bool together;
  int* first_flags;         ///< null on rank 0; on each other rank, which has flags and transforms of its own, rank 0's
  const OtherRank* others;  ///< memory of each other rank, for rank 0 alone; flags there are zero when rank 0 begins
  index_t transforms_at;    ///< offset of the transforms in the memory of each other rank, in doubles
  index_t flags_at;         ///< offset of the flags there, in ints
};

/// Returns Segment::device_rank of the rank that has strip `rank` of `blocks` block columns and every ranks-th strip
/// from there on. With Order::back strips are counted from the last.
template <Order order>
GPUCHOLMOD_HOST_DEVICE int rank_in_order(int blocks, int ranks, int rank) {
  if (order == Order::forward) return rank;
  return ((blocks / BLOCKS - 1 - rank) % ranks + ranks) % ranks;
}

/// A modification of row blocks by unscaled steps, up to the first that the guard rejects, as a launch receives it. R
/// is stored in T, all computed numbers in A. With `has_sides` right-hand sides, or parts of the factor, may be stored
/// apart. This case has a type of its own, as the code that looks for such parts takes 4 % longer at n = 1,000.
template <class T, Order order_ = Order::forward, class A = double, bool has_sides = false>
struct Segment : SegmentRange, SegmentSigns<A>, SegmentFactor<T>, SegmentMemory<A>, SegmentRoles, SegmentRanks {
  using Scalar = T;
  using Arithmetic = A;
  static constexpr Order order = order_;
  using SegmentRange::first, SegmentRange::end, SegmentRange::blocks;
  using SegmentSigns<A>::sigma, SegmentSigns<A>::sigma2;
  using SegmentFactor<T>::R, SegmentFactor<T>::out, SegmentFactor<T>::ld;
  using SegmentMemory<A>::inverses, SegmentMemory<A>::flags;

  GPUCHOLMOD_HOST_DEVICE bool in_place() const { return out == R; }
  /// Returns whether columns are added and others removed.
  GPUCHOLMOD_HOST_DEVICE bool mixed() const { return sigma2 != sigma; }

  static constexpr int state_words = sizeof(SegmentState) / sizeof(int);
  GPUCHOLMOD_HOST_DEVICE static int flag_words(int blocks) { return state_words + 5 * blocks; }

  GPUCHOLMOD_HOST_DEVICE SegmentState* state() const { return reinterpret_cast<SegmentState*>(flags); }
  /// Returns the counter, by cluster, of warps that have published their rows of P_b, CHAIN_COLUMNS wide: published().
  GPUCHOLMOD_HOST_DEVICE int* has_P(int b) const { return flags + state_words + b; }
  /// Returns the counter of groups of block column b that have been written to `handed`.
  GPUCHOLMOD_HOST_DEVICE int* has_V(int b) const { return has_P(blocks + b); }
  /// Returns the counter of the columns of V that have been left to Advance, and to the workers within the window. If
  /// sums are partial: the counter of their groups that have been written, by all ranks.
  GPUCHOLMOD_HOST_DEVICE int* is_near(int b) const { return has_P(2 * blocks + b); }
  /// Returns the flag that holds the Verdict on row block b.
  GPUCHOLMOD_HOST_DEVICE int* complete(int b) const { return has_P(3 * blocks + b); }
  /// Returns the flag, on the first of several ranks, that is 1 when P_b has been sent to the other ranks.
  GPUCHOLMOD_HOST_DEVICE int* was_sent(int b) const { return has_P(4 * blocks + b); }
  /// Returns the first rank's flag of the same kind and number; of_other(), on the first rank, returns another rank's.
  GPUCHOLMOD_HOST_DEVICE int* of_first(int* flag) const { return is_led() ? first_flags + (flag - flags) : flag; }
  GPUCHOLMOD_HOST_DEVICE int* of_other(int other, int* flag) const {
    return others[other].flags + flags_at + (flag - flags);
  }
  GPUCHOLMOD_HOST_DEVICE A* transforms_of(int other) const {
    return reinterpret_cast<A*>(others[other].memory + transforms_at);
  }

  /// Returns whether several ranks work on the segment, so that other ranks set flags here.
  GPUCHOLMOD_HOST_DEVICE bool several() const { return together; }
  /// Returns whether another rank is the first, so that flags are set from one GPU to another.
  GPUCHOLMOD_HOST_DEVICE bool is_led() const { return first_flags != nullptr; }
  /// Returns the i-th block column of the strips that this rank has; of all strips if the rank is alone.
  GPUCHOLMOD_HOST_DEVICE int own_column(int i) const {
    return several() ? (i / BLOCKS * device_ranks + device_rank) * BLOCKS + i % BLOCKS : i;
  }
  /// Returns how many of `all` thread blocks that advance, or update, are on this rank; worker() returns the number of
  /// the i-th of these among all that share the groups. Each thread block has every all-th group, so a rank advances
  /// and updates its own strips.
  GPUCHOLMOD_HOST_DEVICE int here(int all) const { return several() ? all / device_ranks : all; }
  GPUCHOLMOD_HOST_DEVICE int worker(int i) const {
    if (!several() || adds_up()) return i;
    return (i / WORKERS_OF_STRIP * device_ranks + device_rank) * WORKERS_OF_STRIP + i % WORKERS_OF_STRIP;
  }

  /// Returns whether every rank takes all columns past its own row blocks alone, which leaves partial sums to add up.
  GPUCHOLMOD_HOST_DEVICE bool adds_up() const { return order == Order::back && several(); }
  /// Returns the number of thread blocks that share all groups to be advanced.
  GPUCHOLMOD_HOST_DEVICE int sharing() const { return adds_up() ? here(advancers) : advancers; }
  /// Returns the first row block from b on past which this rank takes columns. number_of_row_block() returns the number
  /// of row block b among such row blocks.
  GPUCHOLMOD_HOST_DEVICE int own_row_block(int b) const {
    if (!adds_up()) return b;
    const int behind = (device_rank + device_ranks - b / BLOCKS % device_ranks) % device_ranks;
    return behind == 0 ? b : (b / BLOCKS + behind) * BLOCKS;
  }
  GPUCHOLMOD_HOST_DEVICE int number_of_row_block(int b) const {
    return adds_up() ? b / BLOCKS / device_ranks * BLOCKS + b % BLOCKS : b - first;
  }
  /// Returns the address of a rank's partial sum: V of block column c past the rank's row blocks, minus V at the start.
  template <int K>
  GPUCHOLMOD_HOST_DEVICE A* partial(int rank, int c) const {
    return this->handed + (index_t(1 + rank) * blocks + c) * K * LDB;
  }

  /// Returns the first row block without a transform; it is also the first block column that is solved for.
  GPUCHOLMOD_HOST_DEVICE int start() const { return first > 0 ? first : 0; }

  /// Returns the place of block b in the factor, and group_place() that of a group of columns.
  GPUCHOLMOD_HOST_DEVICE int place(int b) const { return order == Order::forward ? b : blocks - 1 - b; }
  GPUCHOLMOD_HOST_DEVICE int group_place(int group) const {
    return order == Order::forward ? group : blocks * GROUPS - 1 - group;
  }
  GPUCHOLMOD_HOST_DEVICE A* inverse(int c) const { return inverses + index_t(place(c)) * INVERSE; }
  /// The index in an inverse of the Solving for this order.
  static constexpr int solving = solving_at + (order == Order::back ? 1 : 0);
  /// Returns the end of the row blocks that a launch with all roles computes.
  GPUCHOLMOD_HOST_DEVICE int last() const { return has_sides ? end : blocks; }
  /// Returns the address from which row block b of a group of columns, of the factor or of right-hand sides, is read;
  /// group_out() returns the address to which it is written, if anything is.
  GPUCHOLMOD_HOST_DEVICE const T* group_in(int b, int group) const {
    if constexpr (has_sides) return this->before(b, group);
    return R + index_t(group) * GROUP * ld + index_t(b) * NB;
  }
  GPUCHOLMOD_HOST_DEVICE T* group_out(int b, int group) const {
    if constexpr (has_sides) return this->after(b, group);
    return out + index_t(group) * GROUP * ld + index_t(b) * NB;
  }
  /// Returns whether row block b of a group of columns may be stored elsewhere than below the row block before it.
  GPUCHOLMOD_HOST_DEVICE bool is_apart(int b, int group) const { return has_sides && b == group / GROUPS; }
  using WithSides = Segment<T, order_, A, true>;
  /// Returns this segment as the type whose parts may be stored apart.
  GPUCHOLMOD_HOST_DEVICE WithSides with_sides() const {
    WithSides same{};
    static_cast<SegmentRange&>(same) = *this;
    static_cast<SegmentSigns<A>&>(same) = *this;
    static_cast<SegmentFactor<T>&>(same) = *this;
    static_cast<SegmentMemory<A>&>(same) = *this;
    static_cast<SegmentRoles&>(same) = *this;
    static_cast<SegmentRanks&>(same) = *this;
    return same;
  }
  /// Places right-hand sides behind row blocks [first, end); z points to the first one.
  void set_sides(T* z) {
    this->last_columns_out = z - index_t(end) * NB * ld;
    this->last_columns = this->last_columns_out;
    this->first_of_last = end * GROUPS;
  }

  /// Returns the tile of R that takes block column c past row block b; the diagonal block if b is c.
  GPUCHOLMOD_HOST_DEVICE const T* tile(int b, int c) const {
    if constexpr (has_sides) return this->before(b, c * GROUPS);
    const index_t row = place(order == Order::forward ? b : c), column = place(order == Order::forward ? c : b);
    return R + column * NB * ld + row * NB;
  }
};

/// The effect of a row block on the columns to its right, as the trailing update takes it, in words. Z and C are stored
/// by sub-blocks, each as the left factors of a product, in the order of registers.
template <int K>
struct BlockTransform {
  static constexpr int P = 0;  ///< P(i, q) at q * LDB + i
  static constexpr int Z = P + K * LDB;           ///< sigma C_a^-T Z_a, K / 8 left factors each
  static constexpr int C = Z + SUBS * K / 8 * LEFT;  ///< C_a^-T, 2 left factors each
  static constexpr int diagonal = C + SUBS * 2 * LEFT;  ///< the diagonal of R~, scaled
  static constexpr int words = diagonal + NB;
  static constexpr int KP = K < IB ? IB : K;  ///< the order of H
  static constexpr int scaling = words;       ///< U^-1 of the H before a rejected row block, ld LDB
  static constexpr int stride = scaling + KP * LDB;
};

/// The guard's bounds. An accepted row block leaves all eigenvalues of H above the first in a downdate, below the
/// second in an update. In a pass with both signs the second holds for H of the added columns, the first for the Schur
/// complement of the removed columns, and I + P'P of the removed columns stays below the third. Proven and measured:
/// inst/design/guard.md.
constexpr double least_downdate = 1.0 / 16, largest_update = 20, largest_removed = 5;

/// Describes the groups of columns of one thread block: every `workers`-th group of the factor.
struct Share {
  int worker, workers, groups;
  GPUCHOLMOD_HOST_DEVICE int count() const { return groups > worker ? (groups - worker + workers - 1) / workers : 0; }
};

/// Returns whether row block b is behind a rejected row block.
template <class Warp, class S>
GPUCHOLMOD_HOST_DEVICE bool is_over(const S& s, int b) {
  return Warp::load_acquire(&s.state()->stop, s.is_led()) != 0 &&
         s.blocks - Warp::load_relaxed(&s.state()->left) / 2 < b;
}

/// Waits until a counter, to which other ranks may add, has reached `value`. Returns false if all roles are to stop.
template <class Warp>
GPUCHOLMOD_HOST_DEVICE bool wait_until(const Warp& warp, const int* counter, int value, const int* stop, bool several) {
  const typename Warp::Wait wait;
  while (Warp::load_acquire(counter, several) < value) {
    if (Warp::load_acquire(stop) != 0) return false;
    wait.pause();
  }
  warp.sync();
  return true;
}

}  // namespace gpucholmod::block_columns
