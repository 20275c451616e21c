#pragma once

#include <cmath>

#include "base/host_device.h"
#include "base/types.h"

/// The work of a team of threads on one member of a batch. The code is written once, over a class Team: MemberTeam
/// (batch.cuh) runs on the device, HostTeam (tests/core/host_team.h) runs the threads one after the other. This header
/// holds the parts of a modification (member_modify.h).
///
/// The triangle is packed by rows: R(i, j) is at row_of(n, i) + j. Every row is read once and written once for up to K
/// columns of V. These columns stay in registers; the thread of column j has V(j, .). Row i takes one reflection for
/// the added columns, and then a hyperbolic one for the removed columns; v is V(i, .) of the columns of one sign:
///
///   d^2 = r_ii^2 +- v'v      r~_j = (r_ii r_j +- v'V(j, .)) / d      V(j, .) <- V(j, .) - v (r_j + r~_j) / (r_ii + d)
///
/// The hyperbolic reflection has the mixed form: V(j, .) is computed from the new r~_j.
/// Reference: inst/design/batches.md; inst/design/block-householder.md for one row.
namespace gpucholmod::cuda {

constexpr double least_double = 0x1p-1022;  ///< the least double that has all its digits

/// A pointer to numbers of type T in memory. Arithmetic with these numbers is in double.
template <class T>
struct Numbers {
  T* at;

  static Numbers of(const T* numbers) { return {const_cast<T*>(numbers)}; }
  GPUCHOLMOD_HOST_DEVICE Numbers operator+(index_t i) const { return {at + i}; }
  GPUCHOLMOD_HOST_DEVICE void operator+=(int i) { at += i; }
  GPUCHOLMOD_HOST_DEVICE static constexpr double largest() {
    return sizeof(T) == 4 ? 0x1.fffffep127 : 0x1.fffffffffffffp1023;
  }
  GPUCHOLMOD_HOST_DEVICE static constexpr double least_normal() { return sizeof(T) == 4 ? 0x1p-126 : least_double; }
  GPUCHOLMOD_HOST_DEVICE double get(index_t i = 0) const { return double(at[i]); }
  GPUCHOLMOD_HOST_DEVICE void set(double x, index_t i = 0) const { at[i] = T(x); }
};

constexpr int WARP = 32;

/// Returns the offset of row i of a packed triangle of order n: R(i, j) is at row_of(n, i) + j.
GPUCHOLMOD_HOST_DEVICE constexpr index_t row_of(index_t n, index_t i) { return i * (2 * n - i - 1) / 2; }
GPUCHOLMOD_HOST_DEVICE constexpr index_t words_of(index_t n) { return n * (n + 1) / 2; }

/// The multipliers of a member's numbers: `in` when a pass reads them, `out` when it writes them, `last` when the last
/// pass does.
struct Factors {
  double in, out, last;
};

/// Returns the value of `pivots` for a member whose result cannot be held, as column j has an entry that is too large.
GPUCHOLMOD_HOST_DEVICE constexpr int too_large_at(int j) { return -2 - 2 * j; }
/// Returns the value of `pivots` for a member whose result cannot be held, as the diagonal entry of column j vanishes.
GPUCHOLMOD_HOST_DEVICE constexpr int vanished_at(int j) { return -3 - 2 * j; }

/// Describes a pass over all members: up to K columns of V of each. The factors are of scalars T. A stride is the
/// distance from one member to the next, or 0 if all members share the array.
template <class T>
struct BatchPass {
  index_t n;               ///< number of columns of R
  index_t rows;            ///< rows of R: n, or less if right-hand sides are the last columns of R and rows of V
  Numbers<T> R;            ///< packed triangles, of which only the first `rows` rows exist
  Numbers<T> out;          ///< modified triangles; may be R
  Numbers<T> origin;       ///< triangles that are copied to `out` if a member fails, unless `origin` is `out`
  const double* V;         ///< columns, n x k for each member
  index_t V_stride;
  const int* order;        ///< columns of V in the order of work, added ones first, k for each member; null: as stored
  const double* by;        ///< multipliers of the columns in that order; null if `order` is null
  const int* added;        ///< number of added columns of each member
  index_t order_stride, added_stride;
  const Factors* factors;  ///< multipliers of each member; null: all are 1
  int first, columns;      ///< first column of this pass, in the order of work, and number of columns of this pass
  bool last;               ///< True if no pass follows this one
  bool may_overflow;       ///< True if results may be too large for T
  double* rest;            ///< V left in rows from `rows` on, k x (n - rows) for each member, in the order of columns
  index_t k;               ///< number of columns of V, of all passes
  int* pivots;             ///< pivot of each member: below zero if no row has failed; on exit the first row that fails
  const int* needs_care;   ///< null, or a flag: the pass does nothing if the flag is not 0
  int* any;                ///< null, or a flag that becomes 1 if `pivots` records a failure
};

/// The coefficients of one step of a row: r~_j = inverse (before r_j + sign v'V(j, .)), V(j, .) -= v beta (r_j + r~_j).
struct alignas(16) Step {
  double before, inverse, beta, sign;
};

/// The part of row i that all threads read.
template <int K>
struct alignas(16) PublishedRow {
  double v[2][K];  ///< V(i, .) times `up`: for each sign, zeros in columns of the other; v[1] only if there are both
  double r, up;    ///< r_ii times `up`; and `up`, a multiplier that keeps squares from vanishing
};

/// Describes the signs of the columns of a pass.
struct Signs {
  int added;
  bool both;
  double first;  ///< sign of the first step; the second step has -1
  GPUCHOLMOD_HOST_DEVICE Signs(int added, int columns)
      : added(added), both(added > 0 && added < columns), first(added > 0 ? 1 : -1) {}
};

template <int K>
struct ColumnOfV {
  double q[K];
};
/// Returns x'y, summed up in at most four chains.
template <int K>
GPUCHOLMOD_HOST_DEVICE double product(const ColumnOfV<K>& x, const ColumnOfV<K>& y) {
  constexpr int chains = K < 4 ? K : 4;
  double sums[chains];
  GPUCHOLMOD_UNROLL
  for (int q = 0; q < K; ++q) sums[q % chains] = q < chains ? x.q[q] * y.q[q] : fma(x.q[q], y.q[q], sums[q % chains]);
  return chains == 4 ? (sums[0] + sums[1]) + (sums[chains / 2] + sums[chains - 1]) : sums[0];
}

constexpr double tiny = 0x1p-300, up_from_tiny = 0x1p600;

/// Multiplies r_ii and V(i, .) by `up` if all of them are tiny, so that their squares do not vanish. Makes the row fail
/// if r_ii lost digits when the member was scaled. Also makes the row fail if the squares of r_ii and of the added
/// columns vanish beside those of the removed columns: the square of the new r_ii is negative then.
template <int K>
GPUCHOLMOD_HOST_DEVICE_CALL void lift(PublishedRow<K>& row, bool both) {
  double largest = row.r, taken = 0;
  for (int q = 0; q < K; ++q) largest = fmax(largest, fabs(row.v[0][q]));
  for (int q = 0; q < K && both; ++q) taken = fmax(taken, fabs(row.v[1][q]));
  if (row.r < least_double || (taken >= tiny && largest < 0x1p-500)) row.r = NAN;
  if (!(fmax(largest, taken) < tiny)) return;
  row.up = up_from_tiny;
  row.r *= row.up;
  for (int q = 0; q < K; ++q) row.v[0][q] *= row.up;
  for (int q = 0; q < K && both; ++q) row.v[1][q] *= row.up;
}

/// Writes r_ii and V(i, .) to `row`. The thread that has column i calls this function.
template <int K>
GPUCHOLMOD_HOST_DEVICE void publish_row(PublishedRow<K>& row, double r, const ColumnOfV<K>& v, const Signs& signs) {
  row.r = r;
  row.up = 1;
  if (!signs.both) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) row.v[0][q] = v.q[q];
  } else {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) {
      row.v[0][q] = q < signs.added ? v.q[q] : 0;
      row.v[1][q] = q < signs.added ? 0 : v.q[q];
    }
  }
  if (r <= tiny) lift<K>(row, signs.both);
}

/// Computes the step from r_ii (`before`) and v'v (`square`), and sets `before` to the new r_ii. Returns false if the
/// row fails. The function has no branches, so that other work can be done while roots are being computed.
template <class Team>
GPUCHOLMOD_HOST_DEVICE bool find_step(double& before, double square, double sign, Step& step) {
  const double squared = fma(sign, square, Team::rounded_square(before));  // exactly zero if both round to the same
  const double inverse = Team::reciprocal_root(squared), d = squared * inverse, beta = Team::reciprocal(before + d);
  const bool nothing = square == 0;  // then the row stays as it is, to the bit
  step = {nothing ? 1 : before, nothing ? 1 : inverse, nothing ? 0 : beta, nothing ? 0 : sign};
  before = nothing ? before : d;
  return nothing || squared > 0;
}

/// Takes a step on R(i, j), given as r, and on V(j, .), given as v; uv is u'v. Returns the new R(i, j).
template <int K>
GPUCHOLMOD_HOST_DEVICE double take_step(const ColumnOfV<K>& u, double uv, const Step& step, double r,
                                        ColumnOfV<K>& v) {
  const double made = step.inverse * fma(step.before, r, step.sign * uv), by = (r + made) * step.beta;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) v.q[q] -= u.q[q] * by;
  return made;
}

/// The data of a member that all of its threads hold.
template <class T>
struct MemberPass {
  int n, rows;
  Numbers<T> R, origin, out;
  double in, up;
  Signs signs;

  GPUCHOLMOD_HOST_DEVICE MemberPass(const BatchPass<T>& pass, index_t member)
      : n(int(pass.n)),
        rows(int(pass.rows)),
        R(pass.R + member * words_of(pass.n)),
        origin(pass.origin + member * words_of(pass.n)),
        out(pass.out + member * words_of(pass.n)),
        in(pass.factors ? pass.factors[member].in : 1),
        up(!pass.factors ? 1 : pass.last ? pass.factors[member].last : pass.factors[member].out),
        signs(pass.added[member * pass.added_stride] - pass.first, pass.columns) {}
};

/// Loads V(j, .) of a pass. All loads are under way before the first number is used.
template <int K, class T>
GPUCHOLMOD_HOST_DEVICE void load_V(const BatchPass<T>& pass, index_t member, double in, int j, ColumnOfV<K>& V) {
  const double* const from = pass.V + member * pass.V_stride + j;
  const int columns = j < pass.n ? pass.columns : 0;
  if (!pass.order) {
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] = q < columns ? from[(pass.first + q) * pass.n] : 0;
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] *= in;
    return;
  }
  const index_t at = member * pass.order_stride + pass.first;
  int order[K];
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) order[q] = q < pass.columns ? pass.order[at + q] : 0;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] = q < columns ? from[order[q] * pass.n] : 0;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) V.q[q] *= q < columns ? pass.by[at + q] * in : 0;
}

/// Records `what` as the pivot of a member, and sets `any`.
template <class T>
GPUCHOLMOD_HOST_DEVICE void tell(const BatchPass<T>& pass, index_t member, int what) {
  pass.pivots[member] = what;
  if (pass.any) *pass.any = 1;
}

/// Finishes a member after its last row. If row `failed` has failed, restores the member and records the pivot.
/// Otherwise checks columns j, j + threads, ... for entries that cannot be held.
template <class T>
GPUCHOLMOD_HOST_DEVICE void finish_member(const BatchPass<T>& pass, index_t member, const MemberPass<T>& own,
                                          int failed, int j, int threads) {
  if (failed < 0) {
    for (; j < own.rows; j += threads) {
      if (!(own.out.get(row_of(own.n, j) + j) >= own.out.least_normal())) tell(pass, member, vanished_at(j));
      for (int i = 0; i <= j && pass.may_overflow; ++i)
        if (!(fabs(own.out.get(row_of(own.n, i) + j)) <= own.out.largest())) tell(pass, member, too_large_at(j));
    }
    return;
  }
  if (j == 0) {
    const bool vanished = own.origin.get(row_of(own.n, failed) + failed) * own.in < least_double;
    tell(pass, member, vanished ? vanished_at(failed) : failed);
  }
  const index_t words = row_of(own.n, own.rows) + own.rows;
  if (own.out.at != own.origin.at)
    for (index_t at = j; at < words; at += threads) own.out.set(own.origin.get(at), at);
}

}  // namespace gpucholmod::cuda
