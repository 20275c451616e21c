#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "call.h"
#include "cpu/blocked.h"
#include "random_problem.h"

namespace gpucholmod::test {

/// Describes a call of BlockedSweep.
struct Sweep {
  Instructions instructions = Instructions::plain;
  Uplo uplo = Uplo::upper;
  int threads = 1;
  index_t panel = 0;    ///< columns of one advance(); 0: all
  index_t margin = 0;   ///< leading dimension of R less n
  bool in_place = false;
  bool discard = false;
  index_t behind = 0;   ///< distance of R from the beginning of a cache line, in numbers
  index_t result = 0;   ///< distance of the result from the beginning of a cache line, in numbers
};

template <class T>
struct Swept {
  index_t pivot;
  T squares;
  Stored<T> R;
};

constexpr double blank = 7;

template <class T>
using MatrixMap = Eigen::Map<Stored<T>>;

/// Returns an ld x n matrix of `value` in `memory`, which begins `numbers` numbers behind the beginning of a cache
/// line.
template <class T>
MatrixMap<T> behind_a_line(std::vector<T>& memory, index_t ld, index_t n, index_t numbers, T value) {
  constexpr index_t line = 64 / sizeof(T);
  memory.assign(ld * n + 2 * line, value);
  const index_t begins = index_t(reinterpret_cast<std::uintptr_t>(memory.data()) / sizeof(T) % line);
  return {memory.data() + (line - begins) % line + numbers, ld, n};
}

/// Modifies the factor of p, with NaN in entries that must not be read and `blank` in entries that must not be written.
template <class T>
Swept<T> sweep(const Problem<double>& p, const Sweep& how, const Poll& poll = [](double) {}) {
  const index_t n = p.R.cols(), ld = n + how.margin;
  std::vector<T> of_R, of_out;
  MatrixMap<T> R = behind_a_line(of_R, ld, n, how.behind, T(std::nan(""))),
               out = behind_a_line(of_out, ld, n, how.in_place ? how.behind : how.result, T(blank));
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i <= j; ++i) (how.uplo == Uplo::upper ? R(i, j) : R(j, i)) = T(p.R(i, j));
  const Stored<T> V = p.V.cast<T>();
  if (how.in_place) out = R;
  cpu::BlockedSweep<T> sweep({V.data(), n, V.cols(), n}, p.sign == Sign::downdate ? V.cols() : 0, T(1), how.uplo,
                             how.instructions, how.threads);
  index_t pivot = -1;
  for (index_t j = 0; j < n && pivot < 0; j += how.panel ? how.panel : n) {
    const index_t columns = how.panel ? std::min(how.panel, n - j) : n;
    const T* const from = how.in_place ? out.col(j).data() : R.col(j).data();
    pivot =
        sweep.advance({from, n, columns, ld}, {how.discard ? nullptr : out.col(j).data(), n, columns, ld}, true, poll);
  }
  EXPECT_TRUE(how.margin == 0 || how.in_place || (out.bottomRows(how.margin).array() == T(blank)).all());
  return {pivot, sweep.squares(), out.topRows(n)};
}

/// Calls f(instructions) for all sets that this machine has; for AVX-512 twice, with whole vectors and with halves.
template <class F>
void each_level(F&& f) {
  const bool usual = cpu::takes_halves;
  for (const Instructions instructions : all_instructions) {
    if (!cpu::available(instructions)) continue;
    for (const bool halves : {usual, !usual}) {
      if (halves != usual && instructions != Instructions::avx512) continue;
      SCOPED_TRACE(text(instructions) + (halves ? ", halves" : ", whole vectors"));
      cpu::takes_halves = halves;
      f(instructions);
    }
  }
  cpu::takes_halves = usual;
}

}  // namespace gpucholmod::test
