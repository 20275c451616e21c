#pragma once

#include <cmath>

#include "block_columns/segment.h"

namespace gpucholmod::block_columns {

GPUCHOLMOD_HOST_DEVICE int exponent_of(double x) { return x > 1e-300 ? ilogb(x) : -1000; }

/// Modifies a row block by mixed hyperbolic Householder steps, row by row, with H = I: slower than the unscaled step,
/// and always stable. Used for a row block that the guard rejects at the start of a segment, and for all row blocks if
/// there are no kernels for segments.
///
/// Row i, r = R_ii, v = V(i, :), rho = sqrt(r^2 + sigma |v|^2), y = v / (r + rho), tau = rho / (r + rho):
///
///   R~_i = (R_i + sigma y'V) / tau - R_i
///   V <- V - y (R~_i + R_i)               update
///   V <- V - y (R~_i + y'V) / (1 - tau)   downdate, from the *new* row, as in Chambers' mixed rotations
///
/// Reference: inst/design/block-householder.md. One launch does all rows. Each thread has a column, and keeps V of this
/// column in registers. The first NB threads of every thread block have the columns of the diagonal block, from which
/// the thread block finds the steps for itself; so none waits for another.
///
///     for each row i:   y_i, rho_i, ... by the thread that has column i   | barrier |   the diagonal block's columns
///
/// Only the warps of the diagonal block do this, and wait for each other. The other warps take the steps of 8 rows when
/// these have been found, behind a barrier for all warps.
///
/// With columns of both signs, each row takes two steps: one with the added columns, then one with the removed columns.
///
/// The steps are stored as the transform of the row block, by which panels to its right take them: in such a panel the
/// row block has a negative number. The arithmetic is always double: these steps are rare, and are needed where single
/// precision has too few digits.
template <class Segment, int K, class Team>
class RejectedBlock {
  using T = typename Segment::Scalar;
  using A = typename Segment::Arithmetic;
  using Warp = typename Team::Warp;
  /// Rows whose steps are found before the other warps take them, and the leading dimension of these rows of a column.
  static constexpr int rows = 8, LDR = rows + 1;

 public:
  /// Threads of a block, a column each; those with columns behind the diagonal block; the diagonal block's warps.
  static constexpr int threads = WARPS * LANES, others = threads - NB, finders = NB / LANES;
  /// Returns the number of thread blocks for row block b.
  GPUCHOLMOD_HOST_DEVICE static int count(int blocks, int b) {
    if (b < 0) return (blocks * NB + threads - 1) / threads;
    const int columns = (blocks - 1 - b) * NB;
    return columns > 0 ? (columns + others - 1) / others : 1;
  }
  static constexpr int halves = K > HALF ? 2 : 1;
  /// The size of the transform in doubles, and of shared memory, which also has row(), from() and to() of every thread.
  static constexpr int words = NB * (K + 3 * halves), shared_words = words + threads * (LDR + 2);
  static_assert(NB * NB * sizeof(T) <= INVERSE * sizeof(A));                   // diagonal block in the place of a link
  static_assert(words * sizeof(double) <= BlockTransform<K>::scaling * sizeof(A));  // `scaling` is needed as well

  /// Takes over row block b as thread block `number` of those that modify it.
  GPUCHOLMOD_HOST_DEVICE RejectedBlock(Team team, const Segment& segment, int b, int number)
      : team_(team), s_(segment), b_(b), number_(number), steps_(team.shared) {}

  /// Computes V <- the remaining V behind the row block. Writes the rows of the row block to s.out, but those in its
  /// diagonal block to the place of its link, until store_diagonal_block(), as other thread blocks read the diagonal
  /// block of R, which s.out may be. If a downdate fails, or look_at_diagonal() stops the pass, sets pass_state.
  GPUCHOLMOD_HOST_DEVICE void run(PassState* pass_state) {
    double* transform = reinterpret_cast<double*>(s_.transforms + index_t(b_) * BlockTransform<K>::stride);
    team_.threads_sync([&](int thread) {
      begin(thread, columns_[thread]);
      if (b_ < 0)
        for (int i = thread; i < words; i += threads) steps_[i] = transform[i];
    });
    team_.each_warp([&](Warp& warp) {
      fetch(warp, 0);
      if (b_ < 0)
        GPUCHOLMOD_NO_UNROLL for (int i = 0; i < NB; i += rows) take_steps(warp, i);
    });
    if (b_ >= 0 && !find_steps(pass_state)) return;
    team_.each_thread([&](int thread) { leave(thread, columns_[thread]); });
    if (number_ > 0 || b_ < 0) return;
    team_.each_thread([&](int thread) {
      for (int i = thread; i < words; i += threads) transform[i] = steps_[i];
    });
    look_at_diagonal(pass_state);
  }

  /// Copies the diagonal block to s.out, in a later launch, with `threads` threads.
  GPUCHOLMOD_HOST_DEVICE static void store_diagonal_block(const Segment& s, int b, int thread, int threads) {
    if (!s.out) return;
    const T* from = tile(s, b);
    T* to = s.after(b, b * GROUPS);
    GPUCHOLMOD_NO_UNROLL for (int i = thread; i < NB * NB; i += threads) to[i / NB * s.ld + i % NB] = from[i];
  }

 private:
  /// Finds and takes all steps. Returns false if a downdate fails.
  GPUCHOLMOD_HOST_DEVICE bool find_steps(PassState* pass_state) {
    GPUCHOLMOD_NO_UNROLL for (int i = 0; i <= NB; i += rows) {
      int failing = NB;
      if (i < NB) team_.with_first(finders, [&](Team own) { failing = find_steps(own, i); });
      team_.each_warp([&](Warp& warp) {
        if (warp.id >= finders && i > 0) take_steps(warp, i - rows);
      });
      if (team_.all_sync([&](Warp&) { return failing == NB; })) continue;
      if (number_ == 0) team_.stop(pass_state, not_definite, b_ * NB + failing);
      return false;
    }
    return true;
  }

  /// Finds the steps of `rows` rows from `first` on, and takes them on the diagonal block, with the warps of the
  /// diagonal block. Returns the row in which a downdate fails, or NB.
  GPUCHOLMOD_HOST_DEVICE int find_steps(Team own, int first) {
    own.each_warp([&](Warp& warp) { put(warp, first); });
    GPUCHOLMOD_NO_UNROLL for (int i = first; i < first + rows; ++i) {
      own.threads_sync([&](int thread) {
        if (thread == i && !find(columns_[thread], row(thread)[i - first], i)) scalars(i, 0)[rho] = -1;
      });
      own.each_thread([&](int thread) {
        double& r = row(thread)[i - first];
        if (thread > i) r = apply(columns_[thread], r, i);
        else r = thread == i ? scalars(i, halves > 1 && s_.mixed())[rho] : 0;
      });
    }
    int failing = NB;  // found without a branch for each row, for which a warp would wait
    GPUCHOLMOD_UNROLL for (int i = rows - 1; i >= 0; --i)
      if (scalars(first + i, 0)[rho] < 0) failing = first + i;
    if (failing == NB) own.each_warp([&](Warp& warp) { store(warp, first); });
    return failing;
  }
  /// Takes the steps of `rows` rows from `first` on, which have been found, on the warp's columns.
  GPUCHOLMOD_HOST_DEVICE void take_steps(const Warp& warp, int first) {
    put(warp, first);
    warp.each([&](int lane) {
      const int thread = warp.id * LANES + lane;
      if (!from(thread)) return;
      GPUCHOLMOD_NO_UNROLL for (int i = 0; i < rows; ++i)
        row(thread)[i] = apply(columns_[thread], row(thread)[i], first + i);
    });
    store(warp, first);
  }

  // The next three functions move numbers of `rows` rows of the warp's columns; each lane moves one row of every fourth
  // column. They read all addresses first, so that no number waits for another.

  /// Begins to fetch rows from `first` on.
  GPUCHOLMOD_HOST_DEVICE void fetch(const Warp& warp, int first) {
    if (first >= NB) return;
    warp.each([&](int lane) {
      const T* R[rows];
      GPUCHOLMOD_UNROLL for (int l = 0; l < rows; ++l) R[l] = from(moved(warp, lane, l));
      T* const next = columns_[warp.id * LANES + lane].next;
      GPUCHOLMOD_UNROLL for (int l = 0; l < rows; ++l) next[l] = R[l] ? R[l][first + lane % rows] : T(0);
    });
  }
  /// Writes the fetched rows to shared memory, and begins to fetch the next rows.
  GPUCHOLMOD_HOST_DEVICE void put(const Warp& warp, int first) {
    warp.each([&](int lane) {
      const T* const next = columns_[warp.id * LANES + lane].next;
      GPUCHOLMOD_UNROLL for (int l = 0; l < rows; ++l) row(moved(warp, lane, l))[lane % rows] = double(next[l]);
    });
    warp.sync();
    fetch(warp, first + rows);
  }
  /// Stores row() of the warp's columns in to(), scaled, as rows from `first` on.
  GPUCHOLMOD_HOST_DEVICE void store(const Warp& warp, int first) {
    warp.sync();
    warp.each([&](int lane) {
      T *out[rows], r[rows];
      const double scale = s_.scaling.of(index_t(b_) * NB + first + lane % rows);
      GPUCHOLMOD_UNROLL for (int l = 0; l < rows; ++l) {
        out[l] = to(moved(warp, lane, l));
        r[l] = T(row(moved(warp, lane, l))[lane % rows] * scale);
      }
      GPUCHOLMOD_UNROLL for (int l = 0; l < rows; ++l)
        if (out[l]) out[l][first + lane % rows] = r[l];
    });
    warp.sync();
  }
  /// Returns the thread that has the column of the l-th number that a lane moves.
  GPUCHOLMOD_HOST_DEVICE static int moved(const Warp& warp, int lane, int l) {
    return warp.id * LANES + l * (LANES / rows) + lane / rows;
  }

  static constexpr int inv_tau = 0, inv_ctau = 1, rho = 2;  ///< rho = -1 in the first half: a downdate fails in row i

  struct Column {
    double V[K];
    double by_pivot;  ///< 1 / R_ii of column i of the diagonal block, possibly not finite; 0 of other columns
    T next[rows];     ///< numbers that are being fetched, of several columns
  };

  /// Returns the place of a diagonal block until store_diagonal_block(): that of its link.
  GPUCHOLMOD_HOST_DEVICE static T* tile(const Segment& s, int b) {
    return reinterpret_cast<T*>(s.links + index_t(b) * INVERSE);
  }
  /// Returns the scalars of row i, for either half of V's columns.
  GPUCHOLMOD_HOST_DEVICE double* scalars(int i, int half) const { return steps_ + NB * K + 3 * (halves * i + half); }
  GPUCHOLMOD_HOST_DEVICE double* y(int i) const { return steps_ + i * K; }
  /// Returns the shared memory of `rows` rows of a thread's column. from() returns the address from which the row block
  /// of this column is read, null if there is no such column; to() the address to which it is written, or null.
  GPUCHOLMOD_HOST_DEVICE double* row(int thread) const { return steps_ + words + thread * LDR; }
  GPUCHOLMOD_HOST_DEVICE const T*& from(int thread) const { return reinterpret_cast<const T**>(row(threads))[thread]; }
  GPUCHOLMOD_HOST_DEVICE T*& to(int thread) const { return reinterpret_cast<T**>(row(threads) + threads)[thread]; }

  /// Returns whether a thread's column is behind the diagonal block; column() returns its number.
  GPUCHOLMOD_HOST_DEVICE bool is_behind(int thread) const { return b_ < 0 || thread >= NB; }
  GPUCHOLMOD_HOST_DEVICE index_t column(int thread) const {
    if (b_ < 0) return index_t(number_) * threads + thread;
    return thread < NB ? index_t(b_) * NB + thread : index_t(b_ + 1) * NB + index_t(number_) * others + thread - NB;
  }

  GPUCHOLMOD_HOST_DEVICE void begin(int thread, Column& own) const {
    const index_t c = column(thread);
    const bool exists = c < index_t(s_.blocks) * NB;
    from(thread) = exists ? s_.column_before(b_, c) : nullptr;
    if (is_behind(thread)) to(thread) = exists && s_.out ? s_.column_after(b_, c) : nullptr;
    else to(thread) = number_ == 0 ? tile(s_, b_) + thread * NB : nullptr;
    own.by_pivot = !is_behind(thread) ? 1 / double(from(thread)[thread]) : 0;
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) own.V[q] = exists ? double(s_.V[q * s_.ldv + c]) : 0;
  }

  /// Returns x'y, in eight sums: an addition waits only for the one before in its own sum.
  template <int COUNT>
  GPUCHOLMOD_HOST_DEVICE static double dot(const double* x, const double* y) {
    static_assert(COUNT >= 8);
    double sum[8];
    GPUCHOLMOD_UNROLL for (int q = 0; q < 8; ++q) sum[q] = x[q] * y[q];
    GPUCHOLMOD_UNROLL for (int q = 8; q < COUNT; ++q) sum[q % 8] += x[q] * y[q];
    return ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  }

  /// Finds the steps of row i from its pivot and the column of the diagonal block that has the pivot. Returns false if
  /// a downdate fails.
  GPUCHOLMOD_HOST_DEVICE bool find(const Column& own, double pivot, int i) const {
    double* const of_step = scalars(i, 0);
    if constexpr (halves > 1)
      if (s_.mixed())
        return find<HALF>(own.V, s_.sigma, pivot, own.by_pivot, y(i), of_step) &&
               find<HALF>(own.V + HALF, s_.sigma2, of_step[rho], 1 / of_step[rho], y(i) + HALF, scalars(i, 1));
    return find<K>(own.V, s_.sigma, pivot, own.by_pivot, y(i), of_step);
  }

  template <int COUNT>
  GPUCHOLMOD_HOST_DEVICE static bool find(const double* v, double sigma, double pivot, double by_pivot, double* y,
                                          double* of_step) {
    const double sum = dot<COUNT>(v, v), square = fma(pivot, pivot, sigma * sum);
    const double by_length = Warp::reciprocal_root(square), length = square * by_length,
                 by = Warp::reciprocal(pivot + length);
    GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) y[q] = v[q] * by;
    of_step[inv_tau] = (pivot + length) * by_length;
    of_step[inv_ctau] = (pivot + length) * by_pivot;
    of_step[rho] = length;
    // Asked last, so that the step does not wait for the answer. Entries of v whose squares underflow are negligible
    // beside the pivot.
    const bool plain = pivot > 1e-100 && pivot < 1e100 && sum > 0 && sum < 1e200 && square > 0x1p-10 * pivot * pivot;
    return plain || find_with_care<COUNT>(v, sigma, pivot, y, of_step);
  }

  /// Finds a step with numbers of any size, or if nearly all of the pivot is taken away. Forms no square and no
  /// reciprocal that could over- or underflow, and no difference of squares.
  template <int COUNT>
  GPUCHOLMOD_HOST_DEVICE static bool find_with_care(const double* v, double sigma, double pivot, double* y,
                                                    double* of_step) {
    double top = 0, sum = 0;
    bool nothing = true;
    GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) {
      top = fmax(top, fabs(v[q]));
      nothing = nothing && v[q] == 0;
    }
    if (nothing) {  // the row stays as it is, to the last bit
      GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) y[q] = 0;
      of_step[inv_tau] = of_step[inv_ctau] = 2;
      of_step[rho] = pivot;
      return pivot > 0 || (pivot == 0 && sigma > 0);
    }
    const int exponent = exponent_of(top);
    const double scale = scalbn(1.0, -exponent);
    GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) sum += v[q] * scale * (v[q] * scale);
    const double norm = scalbn(sqrt(sum), exponent);
    if (sigma < 0 && !(pivot > norm)) return false;
    const double length = sigma > 0 ? hypot(pivot, norm) : sqrt(pivot - norm) * sqrt(pivot + norm);
    GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) y[q] = v[q] / (pivot + length);
    of_step[inv_tau] = (pivot + length) / length;
    of_step[inv_ctau] = (pivot + length) / pivot;
    of_step[rho] = length;
    return length >= 0;  // length may be NaN
  }

  /// Stops the pass if R~_ii, as it is stored, is not finite, or if it is too small for a normal number, unless it is
  /// positive and at least R_ii.
  GPUCHOLMOD_HOST_DEVICE void look_at_diagonal(PassState* pass_state) {
    const T* const R = s_.before(b_, b_ * GROUPS);
    const auto entry = [&](int i) {
      return T(scalars(i, halves > 1 && s_.mixed())[rho] * s_.scaling.of(index_t(b_) * NB + i));
    };
    const auto verdict = [&](int i) {
      if (is_normal(entry(i))) return not_stopped;
      if (!(entry(i) <= 1)) return too_large;
      return entry(i) > 0 && entry(i) >= R[i * (s_.ld + 1)] ? not_stopped : too_small;
    };
    const bool all = team_.all_sync([&](auto& warp) {
      return warp.leading([&](int lane) {
        return warp.id * LANES + lane >= NB || verdict(warp.id * LANES + lane) == not_stopped;
      }) == LANES;
    });
    if (all) return;
    int i = 0;
    while (verdict(i) == not_stopped) ++i;
    team_.stop(pass_state, verdict(i), b_ * NB + i, double(entry(i)));
  }

  /// Takes the steps of row i on a column. Returns the new value of r, the column's number in that row.
  GPUCHOLMOD_HOST_DEVICE double apply(Column& own, double r, int i) const {
    if constexpr (halves > 1)
      if (s_.mixed()) {
        r = apply<HALF>(own.V, s_.sigma, r, y(i), scalars(i, 0));
        return apply<HALF>(own.V + HALF, s_.sigma2, r, y(i) + HALF, scalars(i, 1));
      }
    return apply<K>(own.V, s_.sigma, r, y(i), scalars(i, 0));
  }
  /// Takes one step. Returns the new value of r.
  template <int COUNT>
  GPUCHOLMOD_HOST_DEVICE static double apply(double* v, double sigma, double r, const double* y,
                                             const double* of_step) {
    const double yv = dot<COUNT>(y, v);
    const double sum = (r + sigma * yv) * of_step[inv_tau], changed = fma(r + sigma * yv, of_step[inv_tau], -r);
    const double z = sigma > 0 ? sum : (changed + yv) * of_step[inv_ctau];
    GPUCHOLMOD_UNROLL for (int q = 0; q < COUNT; ++q) v[q] -= y[q] * z;
    return changed;
  }

  GPUCHOLMOD_HOST_DEVICE void leave(int thread, const Column& own) const {
    if (!is_behind(thread) || !from(thread)) return;
    GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) s_.V[q * s_.ldv + column(thread)] = A(own.V[q]);
  }

  Team team_;
  const Segment& s_;
  int b_, number_;
  double* steps_;   ///< y_i, K numbers each, then 1 / tau_i, 1 / (1 - tau_i), rho_i; then row(), from(), to()
  typename Team::template PerThread<Column> columns_;
};

}  // namespace gpucholmod::block_columns
