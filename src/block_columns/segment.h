#pragma once

#include "block_columns/cards.h"
#include "block_columns/segment_factor.h"
#include "block_columns/warp.h"

/// A modification in one launch whose blocks of threads have four roles, each of which waits only for those before it:
///
///   solve     clusters of blocks: P = R'^-1 V, row block after row block, 8 columns of V each
///   advance   V of columns that the chain is about to reach, past the row blocks before, by P alone
///   finish    H, the guard, Z and C of a row block, from P
///   update    R~ and V, row block after row block, over all columns
///
/// In place, where out is R, columns near the diagonal are updated by blocks of their own, some row blocks later,
/// when those before have read them.
///
/// Where a factor lies on several GPUs, its device ranks, the first solves and finishes, and those of its blocks of
/// threads that finish also
///
///   send      P, transforms and verdicts to the others' memory
///
/// Each rank advances and updates its own strips.
///
/// In the order back a strip has what takes all columns past its own row blocks. So each rank takes them all past its
/// own row blocks alone, and blocks of threads that advance on the first rank also
///
///   add up    V and what every rank has taken off it
///
/// This header: what they share. Reference: inst/design/segments.md.
namespace gpucholmod::block_columns {

constexpr int REACH = 8;                  ///< row blocks before its own that a column is taken past by the chain itself
constexpr int CHAIN_COLUMNS = 8;          ///< columns of V that a cluster solves for

constexpr int SOLVE_WARPS = 4, ADVANCE_WARPS = 8, FINISH_WARPS = 8, UPDATE_WARPS = 11;
constexpr int SEND_P_WARPS = 2, SEND_WARPS = 1;
constexpr int WORKERS_OF_STRIP = STRIP / GROUP;  ///< blocks of threads that update a strip, a group each

/// What a warp that solves adds to `has_P`: every cluster has eight bits of it.
GPUCHOLMOD_HOST_DEVICE constexpr int published_by(int cluster) { return 1 << 8 * cluster; }
/// What has been added of that cluster's.
GPUCHOLMOD_HOST_DEVICE constexpr int published(int has_P, int cluster) { return has_P >> 8 * cluster & 255; }
/// What `has_P` comes to, V having K columns.
template <int K>
constexpr int all_published = [] {
  int sum = 0;
  for (int cluster = 0; cluster < K / CHAIN_COLUMNS; ++cluster) sum += SOLVE_WARPS * published_by(cluster);
  return sum;
}();

/// Leading dimension of tiles of R, inverses and links where the chain has them: free of bank conflicts, see
/// load_left_apart().
constexpr int LDT = NB + 4;
constexpr int INVERSE = NB * LDT;
/// How P is found from the inverse X of a diagonal block. Reference: inst/design/guard.md.
enum Solving {
  by_inverse = 0,       ///< P = X'V
  by_refinement = 1,    ///< likewise, and one step of iterative refinement
  by_substitution = 2   ///< X is too inaccurate for that: by substitution with the diagonal block itself
};
/// Behind the NB rows of an inverse each of its columns has other words: first the entry of R on the diagonal; in the
/// first column then a Solving, and that of the order back.
constexpr int diagonal_at = NB, solving_at = NB + 1;
static_assert(solving_at + 1 < LDT);

/// What became of a row block, as its flag `complete` says.
enum Verdict { open = 0, accepted = 1, rejected = 2 };

/// What the blocks of threads of one segment tell each other besides transforms; zero at the start. Behind it lie the
/// flags.
struct SegmentState {
  int stop;      ///< some row block is rejected: nothing behind it is needed any more
  /// Is 0 if no row block is rejected; otherwise twice the number of row blocks from the first rejected one to the end,
  /// plus 1 if that one would be rejected with H = I before it as well.
  int left;
  int renewed;   ///< 1 more than the row block before which H is renewed; 0: none, or one above the panel (renewal.h)
};

/// The order in which blocks are solved for: R'P = V from the first on, or RP = V from the last on. Every number of a
/// row block or a group of columns counts in this order; only where R, V and handed lie is told by their place in the
/// factor, and with Order::back "block column c past row block b" is row block c past block column b.
enum class Order { forward, back };

/// Where another rank has what the first sends to it.
struct OtherRank {
  double* memory;
  int* flags;
};

/// Which part of the factor a segment modifies: row blocks [first, end) of `blocks` block columns, of a whole factor or
/// of a panel, whose columns go from the top of the factor to their diagonal. Row block b crosses the diagonal in block
/// column b; so the row blocks above the diagonal blocks of a panel have negative numbers, down to `top`, and their
/// transforms are there. Block columns from `end` on are only updated: in a launch that does all, they are those of
/// right-hand sides.
struct SegmentRange {
  int first, end, blocks;
  int top;  ///< 0, or, of a panel, minus the row blocks above it
};

/// What is done to it: A + sigma VV' for the first HALF columns of V, sigma2 for the others.
template <class A>
struct SegmentSigns {
  A sigma, sigma2;  ///< 1 or -1
  A bound;  ///< of the eigenvalues of H, where both signs are the same: from above in an update, from below otherwise
  Scaling scaling;
};

/// The memory of a pass, in the words that it computes with.
template <class A>
struct SegmentMemory {
  A* V;  ///< of the columns, with K columns of its own, leading dimension ldv
  /// Where the remaining V is written if the segment stops early, because a block is rejected or `end` is less than
  /// `blocks`: V itself on rank 0, the V of rank 0 on the others.
  A* left_V;
  index_t ldv;
  A* V_outside;  ///< V while it is updated, where shared memory has no room: GROUP * K words for each group
  A* inverses;    ///< of the diagonal blocks, by their place, INVERSE words each
  A* links;       ///< R_(c-1)c R_cc^-1 of every block column c above which there is a row block, INVERSE words each
  A* transforms;    ///< BlockTransform<K>::stride for each row block, and one more
  /// For each row block, V of its columns past all row blocks but the last REACH: K x LDB. Behind it, where there are
  /// partial sums, those of each rank: Segment::partial().
  A* handed;
  int* inverted;  ///< how often a block of threads has left inverses of the diagonal blocks that it takes at once
  int* linked;    ///< and their links
  int* flags;     ///< SegmentState, then a flag of each kind for every row block; flag_words() ints
};

/// How many blocks of threads a launch has for each role. Where several devices work on the segment, `advancers`,
/// `workers` and `workers_within` are sums over them: each has the same number, of workers a multiple of
/// WORKERS_OF_STRIP.
struct SegmentRoles {
  int window;   ///< columns of so many row blocks behind the one at hand are advanced: more than REACH
  int solvers;  ///< Card::cluster for each CHAIN_COLUMNS columns of V, or none
  int finishers, advancers, workers;
  /// Blocks of threads that update block columns up to b + window of row block b, where `workers` do so beyond; none:
  /// these update all.
  int workers_within;
  bool outside;  ///< V of what `workers` update is in V_outside, not in shared memory
  /// The row block from which on two warps of `workers` update a group, eight of its columns each. Where products take
  /// their factors in place it is not looked at.
  int halved;
};

/// The part of a device where a factor lies on several, its device ranks.
struct SegmentRanks {
  /// GPUs that have strips of the factor, and the number of this one, which has strip `device_rank` and every
  /// device_ranks-th from there; 0 where the factor lies on one device.
  int device_ranks, device_rank;
  /// Is true if all ranks work on the segment. `inverses`, `links`, their counters and `handed` are then in the memory
  /// of rank 0, which alone solves and finishes.
  bool together;
  int* first_flags;         ///< null on rank 0; on the others, whose flags and transforms are their own, rank 0's
  const OtherRank* others;  ///< on rank 0: of each of the others, whose flags are zero when this one begins
  index_t transforms_at;    ///< where in the memory of each transforms are, in doubles
  index_t flags_at;         ///< and where its flags are, in ints
};

/// Segment::device_rank of the rank that has strip `rank` of so many block columns, and every ranks-th from there: in
/// the order back strips are counted from the last.
template <Order order>
GPUCHOLMOD_HOST_DEVICE int rank_in_order(int blocks, int ranks, int rank) {
  if (order == Order::forward) return rank;
  return ((blocks / BLOCKS - 1 - rank) % ranks + ranks) % ranks;
}

/// A modification of row blocks by unscaled steps, up to the first that the guard rejects, as one launch gets it. R is
/// of T's, all that is computed of A's. `has_sides`: right-hand sides, or parts of the factor, may lie apart; a type of
/// its own, as what looks for them takes 4 % longer at n = 1,000.
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
  /// Whether columns are added and others taken away.
  GPUCHOLMOD_HOST_DEVICE bool mixed() const { return sigma2 != sigma; }

  static constexpr int state_words = sizeof(SegmentState) / sizeof(int);
  GPUCHOLMOD_HOST_DEVICE static int flag_words(int blocks) { return state_words + 5 * blocks; }

  GPUCHOLMOD_HOST_DEVICE SegmentState* state() const { return reinterpret_cast<SegmentState*>(flags); }
  /// How many warps of each cluster have published their rows of P_b, CHAIN_COLUMNS wide: published().
  GPUCHOLMOD_HOST_DEVICE int* has_P(int b) const { return flags + state_words + b; }
  /// How many groups of `handed` are there.
  GPUCHOLMOD_HOST_DEVICE int* has_V(int b) const { return has_P(blocks + b); }
  /// How many columns of V have been left to Advance, and to those that update within the window; where sums are
  /// partial, how many groups of them are there, of all ranks.
  GPUCHOLMOD_HOST_DEVICE int* is_near(int b) const { return has_P(2 * blocks + b); }
  /// Verdict.
  GPUCHOLMOD_HOST_DEVICE int* complete(int b) const { return has_P(3 * blocks + b); }
  /// On the first of several ranks: whether P_b has gone to the others.
  GPUCHOLMOD_HOST_DEVICE int* was_sent(int b) const { return has_P(4 * blocks + b); }
  /// The first rank's flag of that kind and number; and, where this is the first, another's.
  GPUCHOLMOD_HOST_DEVICE int* of_first(int* flag) const { return is_led() ? first_flags + (flag - flags) : flag; }
  GPUCHOLMOD_HOST_DEVICE int* of_other(int other, int* flag) const {
    return others[other].flags + flags_at + (flag - flags);
  }
  GPUCHOLMOD_HOST_DEVICE A* transforms_of(int other) const {
    return reinterpret_cast<A*>(others[other].memory + transforms_at);
  }

  /// Whether other ranks tell here what they have done.
  GPUCHOLMOD_HOST_DEVICE bool several() const { return together; }
  /// Whether another rank is the first, so that what is told goes from one GPU to another.
  GPUCHOLMOD_HOST_DEVICE bool is_led() const { return first_flags != nullptr; }
  /// The i-th block column of the strips that this rank has; where it is alone, of all.
  GPUCHOLMOD_HOST_DEVICE int own_column(int i) const {
    return several() ? (i / BLOCKS * device_ranks + device_rank) * BLOCKS + i % BLOCKS : i;
  }
  /// Of so many blocks of threads that advance, or update, those on this rank; and the number of the i-th of them
  /// among those that share all groups. As every all-th group belongs to one, a rank advances and updates its own
  /// strips.
  GPUCHOLMOD_HOST_DEVICE int here(int all) const { return several() ? all / device_ranks : all; }
  GPUCHOLMOD_HOST_DEVICE int worker(int i) const {
    if (!several() || adds_up()) return i;
    return (i / WORKERS_OF_STRIP * device_ranks + device_rank) * WORKERS_OF_STRIP + i % WORKERS_OF_STRIP;
  }

  /// Whether every rank takes all columns past its own row blocks alone, so that these partial sums are added up.
  GPUCHOLMOD_HOST_DEVICE bool adds_up() const { return order == Order::back && several(); }
  /// Blocks of threads that share all groups to be advanced.
  GPUCHOLMOD_HOST_DEVICE int sharing() const { return adds_up() ? here(advancers) : advancers; }
  /// The first row block from b on that columns are taken past on this rank; and its number among such.
  GPUCHOLMOD_HOST_DEVICE int own_row_block(int b) const {
    if (!adds_up()) return b;
    const int behind = (device_rank + device_ranks - b / BLOCKS % device_ranks) % device_ranks;
    return behind == 0 ? b : (b / BLOCKS + behind) * BLOCKS;
  }
  GPUCHOLMOD_HOST_DEVICE int number_of_row_block(int b) const {
    return adds_up() ? b / BLOCKS / device_ranks * BLOCKS + b % BLOCKS : b - first;
  }
  /// Where V of block column c past the row blocks of a rank is, less V at the start; behind all of `handed`.
  template <int K>
  GPUCHOLMOD_HOST_DEVICE A* partial(int rank, int c) const {
    return this->handed + (index_t(1 + rank) * blocks + c) * K * LDB;
  }

  /// The first row block whose transform is not there, and the first block column that is solved for.
  GPUCHOLMOD_HOST_DEVICE int start() const { return first > 0 ? first : 0; }

  /// The place in the factor of block b, and of a group of columns.
  GPUCHOLMOD_HOST_DEVICE int place(int b) const { return order == Order::forward ? b : blocks - 1 - b; }
  GPUCHOLMOD_HOST_DEVICE int group_place(int group) const {
    return order == Order::forward ? group : blocks * GROUPS - 1 - group;
  }
  GPUCHOLMOD_HOST_DEVICE A* inverse(int c) const { return inverses + index_t(place(c)) * INVERSE; }
  /// Where an inverse says how to solve with it, in this order.
  static constexpr int solving = solving_at + (order == Order::back ? 1 : 0);
  /// Behind the last row block that a launch which does all does.
  GPUCHOLMOD_HOST_DEVICE int last() const { return has_sides ? end : blocks; }
  /// Row block b of a group of columns, of the factor, or right-hand sides: where it is read, and where it is written,
  /// if anything is.
  GPUCHOLMOD_HOST_DEVICE const T* group_in(int b, int group) const {
    if constexpr (has_sides) return this->before(b, group);
    return R + index_t(group) * GROUP * ld + index_t(b) * NB;
  }
  GPUCHOLMOD_HOST_DEVICE T* group_out(int b, int group) const {
    if constexpr (has_sides) return this->after(b, group);
    return out + index_t(group) * GROUP * ld + index_t(b) * NB;
  }
  /// Whether row block b of a group of columns may lie elsewhere than below the row block before it.
  GPUCHOLMOD_HOST_DEVICE bool is_apart(int b, int group) const { return has_sides && b == group / GROUPS; }
  using WithSides = Segment<T, order_, A, true>;
  /// The same, with what lies apart, if anything does.
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
  /// z: the first right-hand side, behind row blocks [first, end).
  void set_sides(T* z) {
    this->last_columns_out = z - index_t(end) * NB * ld;
    this->last_columns = this->last_columns_out;
    this->first_of_last = end * GROUPS;
  }

  /// The tile that takes block column c past row block b; its diagonal block where b is c.
  GPUCHOLMOD_HOST_DEVICE const T* tile(int b, int c) const {
    if constexpr (has_sides) return this->before(b, c * GROUPS);
    const index_t row = place(order == Order::forward ? b : c), column = place(order == Order::forward ? c : b);
    return R + column * NB * ld + row * NB;
  }
};

/// What a row block does to the columns to its right, as the trailing update takes it, in words; Z and C by sub-blocks,
/// each the left factors of a product as they lie in the registers.
template <int K>
struct BlockTransform {
  static constexpr int P = 0;  ///< P(i, q) at q * LDB + i
  static constexpr int Z = P + K * LDB;           ///< sigma C_a^-T Z_a, K / 8 of each
  static constexpr int C = Z + SUBS * K / 8 * LEFT;  ///< C_a^-T, 2 of each
  static constexpr int diagonal = C + SUBS * 2 * LEFT;  ///< the diagonal of R~, scaled
  static constexpr int words = diagonal + NB;
  static constexpr int KP = K < IB ? IB : K;  ///< the order of H
  static constexpr int scaling = words;       ///< of a row block that is rejected: U^-1 of the H before it, ld LDB
  static constexpr int stride = scaling + KP * LDB;
};

/// The guard's bounds: an accepted row block leaves all eigenvalues of H above the one in a downdate, below the other
/// in an update. In a pass with both, the other holds for the added columns, the one for the Schur complement of the
/// rest, and of those I + P'P stays below the third. Proven and measured: inst/design/guard.md.
constexpr double least_downdate = 1.0 / 16, largest_update = 20, largest_removed = 5;

/// The groups of columns of one block of threads: every `workers`-th of the factor.
struct Share {
  int worker, workers, groups;
  GPUCHOLMOD_HOST_DEVICE int count() const { return groups > worker ? (groups - worker + workers - 1) / workers : 0; }
  /// Returns how many groups all blocks of threads before this one have.
  GPUCHOLMOD_HOST_DEVICE int before() const {
    const int longer = groups % workers;
    return groups / workers * worker + (worker < longer ? worker : longer);
  }
};

/// Whether row block b lies behind one that is rejected.
template <class Warp, class S>
GPUCHOLMOD_HOST_DEVICE bool is_over(const S& s, int b) {
  return Warp::load_acquire(&s.state()->stop, s.is_led()) != 0 &&
         s.blocks - Warp::load_relaxed(&s.state()->left) / 2 < b;
}

/// Waits until a counter, at which other ranks may count, has reached `value`. False: everybody is to stop.
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
