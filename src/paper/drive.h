#pragma once

#include <vector>

#include "base/task.h"
#include "cpu/reference.h"
#include "paper/schedule.h"

namespace gpucholmod::paper {

/// Runs the panel method: computes diagonal blocks on the host, and sends panels through `executor`.
///
///   R  n x n, upper, positive diagonal. On exit R~ with R~'R~ = R'R + sigma V V'.
///   V  n x k, read only.
///
/// `Executor` owns the device side; panels may be in flight while the host computes the next diagonal block:
///   send_V(V)                      copies V to the device
///   fetch_V(col, Vt)               copies rows col .. of the device's V, transposed, to Vt (k x m); waits for the
///                                  look-ahead panels submitted so far
///   send_rotations(G, rows)        sends rotations for the panels that follow; G may be reused on return
///   rotate(R_panel, col, look_ahead)  applies these rotations to a panel of R, in place, and to rows col .. of V
///   finish()                       waits until R is complete; until then its panels belong to the executor
/// The executor's destructor waits for all work in flight, so that a throw leaves nothing behind.
///
/// Returns the failing pivot (R is then partly modified) and the number of panels.
template <class T, class Executor>
Work drive(MatrixView<T> R, MatrixView<const T> V, Sign sign, const Shape& shape, Executor& executor,
           const Poll& poll) {
  Work work;
  const index_t k = V.cols, nb = shape.panel_rows;
  std::vector<Rotation<T>> rotations(nb * k);
  std::vector<T> rows_of_V(nb * k);
  executor.send_V(V);
  for (const Step& step : schedule(R.cols, shape)) {
    if (step.kind == Step::Kind::diagonal) {
      poll(share_of_rows(step.row, R.cols));
      const MatrixView<T> Vt{rows_of_V.data(), k, step.rows, k};
      executor.fetch_V(step.row, Vt);
      const index_t i = cpu::sweep_columns(R.block(step.row, step.row, step.rows, step.rows), Vt, sign,
                                           rotations.data(), unwatched);
      if (i >= 0) {
        work.pivot = step.row + i;
        return work;
      }
      executor.send_rotations(rotations.data(), step.rows);
    } else {
      executor.rotate(R.block(step.row, step.col, step.rows, step.cols), step.col, step.look_ahead);
      ++work.panels;
    }
  }
  executor.finish();
  return work;
}

}  // namespace gpucholmod::paper
