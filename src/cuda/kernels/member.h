#pragma once

#include <cmath>

#include "base/host_device.h"
#include "base/types.h"

/// A member of a batch: the work of a team of threads. Written once, over a class Team: MemberTeam (batch.cuh) is the
/// real thing, HostTeam (tests/core/host_team.h) runs the threads one after the other. Here is what a modification
/// (member_modify.h) is made of.
///
/// The triangle lies packed by rows: R(i, j) at row_of(n, i) + j. Every row is read once and written once for up to K
/// columns of V, which stay in the registers, V(j, .) with the thread that has column j. Row i takes one reflection for
/// the columns that are added, and then a hyperbolic one for those that are taken away, v = V(i, .) of the one sign:
///
///   d^2 = r_ii^2 +- v'v      r~_j = (r_ii r_j +- v'V(j, .)) / d      V(j, .) <- V(j, .) - v (r_j + r~_j) / (r_ii + d)
///
/// the latter in the mixed form, from the new r.
/// Reference: inst/design/batches.md; inst/design/block-householder.md for one row.
namespace gpucholmod::cuda {

constexpr double least_double = 0x1p-1022;  ///< that has all its digits

/// Numbers in memory; what is computed with them is in double.
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

/// R(i, j) of a packed triangle of order n is at row_of(n, i) + j.
GPUCHOLMOD_HOST_DEVICE constexpr index_t row_of(index_t n, index_t i) { return i * (2 * n - i - 1) / 2; }
GPUCHOLMOD_HOST_DEVICE constexpr index_t words_of(index_t n) { return n * (n + 1) / 2; }

/// What numbers of a member are multiplied by on their way in and out, and out of the last pass.
struct Factors {
  double in, out, last;
};

/// What `pivots` tells of a member after all of it has been done: that a result cannot be held, and the column.
GPUCHOLMOD_HOST_DEVICE constexpr int too_large_at(int j) { return -2 - 2 * j; }
GPUCHOLMOD_HOST_DEVICE constexpr int vanished_at(int j) { return -3 - 2 * j; }

/// Up to K columns of V, of every member; the factors are of scalars T. Strides are from one member to the next, 0
/// where something is common to all.
template <class T>
struct BatchPass {
  index_t n;               ///< columns of R
  index_t rows;            ///< of R: n, or less where right-hand sides are the last columns of R and rows of V
  Numbers<T> R;            ///< packed triangles, of which only those rows are there
  Numbers<T> out;          ///< may be R
  Numbers<T> origin;       ///< what `out` becomes where a member fails, unless it is `out`
  const double* V;         ///< n x k each
  index_t V_stride;
  const int* order;        ///< the columns of V as they are taken, added ones first, k each; null: as they are
  const double* by;        ///< what each of these is multiplied by; null where `order` is
  const int* added;        ///< how many are added
  index_t order_stride, added_stride;
  const Factors* factors;  ///< null: 1
  int first, columns;      ///< in that order, of this pass
  bool last;               ///< no pass comes behind this one
  bool may_overflow;       ///< results may be too large for T
  double* rest;            ///< what is left of V in rows from `rows` on, k x n - rows each, in the order of columns
  index_t k;               ///< columns of V, of all passes
  int* pivots;             ///< of the members: below zero where none has failed; on exit the first row that does
  const int* needs_care;   ///< null, or: where this is not 0, nothing is done
  int* any;                ///< null, or: becomes 1 where `pivots` tells of a failure
};

/// One step of a row: r~_j = inverse (before r_j + sign v'V(j, .)), V(j, .) -= v beta (r_j + r~_j).
struct alignas(16) Step {
  double before, inverse, beta, sign;
};

/// What all threads need of row i.
template <int K>
struct alignas(16) PublishedRow {
  double v[2][K];  ///< V(i, .) times `up`; of one sign each, zeros for the other, the second only where there are both
  double r, up;    ///< r_ii times `up`, so that squares do not vanish
};

/// Columns of a pass by their sign.
struct Signs {
  int added;
  bool both;
  double first;  ///< what the first step does; the second takes away
  GPUCHOLMOD_HOST_DEVICE Signs(int added, int columns)
      : added(added), both(added > 0 && added < columns), first(added > 0 ? 1 : -1) {}
};

template <int K>
struct ColumnOfV {
  double q[K];
};
/// x'y, in four chains at most.
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
/// if r_ii has lost digits when the member was scaled, and if a column is taken away beside which the squares of r_ii
/// and of the added columns vanish: the square of the new r_ii is negative then.
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

/// Writes r_ii and V(i, .), as the thread that has column i.
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

/// Finds the step from r_ii, `before`, which becomes the new one, with v'v. Returns false if the row fails. It has no
/// branches, so that other work can be done while roots are on their way.
template <class Team>
GPUCHOLMOD_HOST_DEVICE bool find_step(double& before, double square, double sign, Step& step) {
  const double squared = fma(sign, square, Team::rounded_square(before));  // exactly zero where it should be
  const double inverse = Team::reciprocal_root(squared), d = squared * inverse, beta = Team::reciprocal(before + d);
  const bool nothing = square == 0;  // to the bit
  step = {nothing ? 1 : before, nothing ? 1 : inverse, nothing ? 0 : beta, nothing ? 0 : sign};
  before = nothing ? before : d;
  return nothing || squared > 0;
}

/// What a step makes of R(i, j), returned, and of V(j, .); uv: u'v.
template <int K>
GPUCHOLMOD_HOST_DEVICE double take_step(const ColumnOfV<K>& u, double uv, const Step& step, double r,
                                        ColumnOfV<K>& v) {
  const double made = step.inverse * fma(step.before, r, step.sign * uv), by = (r + made) * step.beta;
  GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) v.q[q] -= u.q[q] * by;
  return made;
}

/// What all threads know of their member.
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

/// V(j, .) of a pass; all loads are under way before the first is used.
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

/// Tells what has become of a member.
template <class T>
GPUCHOLMOD_HOST_DEVICE void tell(const BatchPass<T>& pass, index_t member, int what) {
  pass.pivots[member] = what;
  if (pass.any) *pass.any = 1;
}

/// After the last row: where one has failed, the member is put back; otherwise column j is looked at.
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
