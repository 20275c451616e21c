#pragma once

#include <atomic>
#include <optional>

#include "base/range.h"
#include "cpu/blocked.h"

namespace gpucholmod::cpu {

/// Describes a modification of a factor in ordinary memory.
template <class T>
struct InMemory {
  MatrixView<const T> R;                     ///< n x n
  MatrixView<T> out;                         ///< R itself, or another n x n matrix, whose other triangle becomes zero
  MatrixView<const T> V;                     ///< n x k, ld = n
  index_t removed;                           ///< number of columns of V that are taken away, the last ones
  double scale;                              ///< factor by which the result is multiplied
  Uplo uplo;
  Instructions instructions;                 ///< resolved
  int threads = 1;
  const RightHandSideView* right = nullptr;
  std::atomic<bool>* begun = nullptr;        ///< flag that becomes true before R changes in place
  bool trusted = false;                      ///< true if an update in place checks only the diagonal of R
  T* copy = nullptr;                         ///< n (n + 1) / 2 numbers for a copy of R, instead of a downdate's dry run
};

/// Modifies R (n x n, n <= kernels.rows) in place, by columns of one sign. Gives the same bits as a BlockedSweep,
/// without its work memory. Returns the failing pivot, or -1.
template <class T>
index_t modify_block(const Kernels<T>& kernels, MatrixView<const T> V, MatrixView<T> R) {
  const index_t n = R.cols, k = V.cols, ldv = kernels.rows + kernels.lanes;
  Scratch<T> scratch;
  T* const H = scratch.take(kernels.transform_words(k));
  Strip<T> strip{R.data, R.data, R.ld, R.ld, n, scratch.take(k * ldv), ldv};
  for (index_t q = 0; q < k; ++q) kernels.fill(strip.Vt + q * ldv, ldv, V.col(q), n);
  return kernels.diagonal(H, 0, 0, n, k, strip);
}

/// Returns whether no number of R needs scaling, and no entry of its diagonal may become too small; judges a trusted R
/// by the diagonal alone. Copies the triangle, unless `copy` is null.
template <class T>
[[gnu::always_inline]] inline bool is_plain(const InMemory<T>& f, bool trusted, T* copy) {
  T least = f.R(0, 0), largest = least;
  for (index_t j = 1; j < f.R.cols; ++j) {
    least = std::min(least, f.R(j, j));
    largest = std::max(largest, f.R(j, j));
  }
  if (!is_normal(least)) return false;
  if (least < least_safe<T> && prospect<T>({0, double(least)}, 0, 0, f.removed, f.scale).vanishes) return false;
  if (trusted) return in_range(largest * largest) && largest < T(1e30) * least;
  return in_range(f.threads == 1 || copy ? squares_of_triangle(f.instructions, f.R, f.uplo, copy)
                                         : squares_by_threads(f.instructions, f.R, f.uplo, f.threads));
}

/// Modifies a factor by Householder steps, without scaling. Returns the failing pivot, or -1. Returns nullopt, and
/// leaves R as it was, if V is not finite or numbers need scaling; in place also if an entry of the diagonal may become
/// too small, or R cannot be used. Into another matrix, the last two cases throw bad_diagonal or not_finite. Throws
/// bad_argument if R is half modified: R has changed during the call, or a trusted R has failed.
template <class T>
[[gnu::always_inline]] inline std::optional<index_t> modify_in_memory(const InMemory<T>& f, const Poll& poll) {
  const index_t n = f.R.cols, k = f.V.cols;
  const bool in_place = f.out.data == f.R.data, downdate = f.removed > 0;
  if (!is_moderate(f.scale)) return {};
  if (const T of_V = sum_of_squares(f.V.data, n * k); !in_range(of_V) && (in_place || of_V != 0)) return {};
  T squares = 0;
  bool sums_all = true;
  const auto run = [&](MatrixView<T> out) {
    if (n <= 8 && in_place && out.data && f.scale == 1 && !f.right && (!downdate || f.removed == k)) {
      const Kernels<T>& kernels = cpu::kernels<T>(f.instructions, k, downdate ? Sign::downdate : Sign::update, f.uplo);
      if (n <= kernels.rows) return modify_block(kernels, f.V, out);
    }
    BlockedSweep<T> sweep(f.V, f.removed, T(f.scale), f.uplo, f.instructions, f.threads);
    const index_t pivot = sweep.run(f.R, out, !in_place, f.right, poll);
    squares = sweep.squares();
    sums_all = sweep.sums_all();
    return pivot;
  };
  if (!in_place) {
    const index_t pivot = run(f.out);
    // A scale may make an entry far from the diagonal too large.
    if (f.scale > 1 && !sums_all) squares = squares_of_triangle<T>(f.instructions, f.R, f.uplo, nullptr);
    if (pivot < 0 && in_range(squares)) return pivot;
    // A factor that cannot be used is an error even if a downdate of its leading part fails.
    if (scale_exponent<T>(check_input(f.R, f.V, f.uplo)) != 0) return {};
    for (index_t j = 0; j < n; ++j) require_not_vanished(f.R(j, j), f.R(j, j), j);
    for (index_t j = 0; j < n && pivot < 0; ++j) require_normal(f.out(j, j), j);
    return pivot < 0 || downdate ? std::optional(pivot) : std::nullopt;
  }
  T* const copy = downdate ? f.copy : nullptr;
  if (!is_plain(f, f.trusted && !downdate, copy)) return {};
  if (downdate && !copy)
    if (const index_t pivot = run({nullptr, n, n, n}); pivot >= 0) return pivot;
  if (f.begun) *f.begun = true;
  const index_t pivot = run(f.out);
  if (pivot < 0) return pivot;
  if (!copy)
    throw Error(ErrorCode::bad_argument, "'R' has changed while it was read", {{"argument", std::string("R")}});
  const T* from = copy;
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, f.uplo);
    std::copy_n(std::exchange(from, from + last - first), last - first, f.out.col(j) + first);
  }
  return pivot;
}

}  // namespace gpucholmod::cpu
