#pragma once

#include <cmath>

#include "call.h"
#include "cpu/blocked.h"
#include "random_problem.h"

namespace gpucholmod::test {

/// How BlockedSweep is called.
struct Sweep {
  Instructions instructions = Instructions::plain;
  Uplo uplo = Uplo::upper;
  int threads = 1;
  index_t panel = 0;    ///< columns of one advance(); 0: all
  index_t margin = 0;   ///< leading dimension of R less n
  bool in_place = false;
  bool discard = false;
};

template <class T>
struct Swept {
  index_t pivot;
  T squares;
  Stored<T> R;
};

constexpr double blank = 7;

/// The factor of p, with NaN where it must not be read, and `blank` where it must not be written.
template <class T>
Swept<T> sweep(const Problem<double>& p, const Sweep& how, const Poll& poll = [](double) {}) {
  const index_t n = p.R.cols(), ld = n + how.margin;
  Stored<T> R = Stored<T>::Constant(ld, n, std::nan("")), out = Stored<T>::Constant(ld, n, T(blank));
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

template <class F>
void each_level(F&& f) {
  for (const Instructions instructions : all_instructions) {
    SCOPED_TRACE(text(instructions));
    if (cpu::available(instructions)) f(instructions);
  }
}

}  // namespace gpucholmod::test
