#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/timeline.h"
#include "base/types.h"

namespace gpucholmod {

/// What is computed.
enum class Algorithm {
  rotations,    ///< one plane rotation after the other
  householder,  ///< row blocks by mixed hyperbolic Householder steps
  unscaled,     ///< row blocks by the unscaled (Woodbury) step, where a guard allows it, otherwise as above; on a GPU
  refactor      ///< A + sigma VV' is formed and factorised
};

/// How a GPU is kept busy.
enum class Launch {
  automatic,
  persistent,  ///< blocks of threads that wait for each other do as many row blocks as they can in one launch
  stepwise     ///< a launch per row block, in plain arithmetic: any GPU
};

/// Right-hand sides that come along with a modification: from z, with R'z = b, z~, with R~'z~ = scale^2 b + V diag(+-1)
/// Y', by the transforms that take [R; V'] to [R~; 0], which take [z; Y'] to [z~ / scale; rest]. So the sum of squares
/// of what the equations leave over, rho^2 for each column, becomes scale^2 (rho^2 +- the squares of `rest`): LINPACK's
/// dchud and dchdd (Dongarra et al. 1979, ch. 10).
///
/// Where rows and columns of A come or go, b has as many more or fewer: Y is the new rows of b, transposed, and not
/// looked at otherwise; z~ has the order of the new factor; rho^2 grows by the squares of `rest` for rows that go, and
/// shrinks by them for rows that come.
struct RightHandSideView {
  MatrixView<const double> z{};  ///< n x m
  MatrixView<const double> Y{};  ///< m x k: a column for each of V
  MatrixView<double> out{};      ///< z~, n x m; may be z; written where the modification can be done
  MatrixView<double> rest{};     ///< m x k, likewise

  index_t m() const { return z.cols; }
  /// Copies z to `out` and Y to `rest`, as a modification does that leaves R as it is.
  void pass_through() const {
    copy(z, out);
    copy(Y, rest);
  }
  /// Returns the rows of `out` from `first` on as right-hand sides that are modified in place; `columns` (m x k)
  /// replaces Y, and has to outlive the view.
  RightHandSideView trailing(index_t first, const std::vector<double>& columns) const {
    if (m() == 0) return {};
    const MatrixView<double> rows = out.block(first, 0, out.rows - first, out.cols);
    return {rows, {columns.data(), rest.rows, rest.cols, rest.ld}, rows, rest};
  }

 private:
  static void copy(MatrixView<const double> from, MatrixView<double> to) {
    for (index_t j = 0; j < from.cols; ++j) std::copy_n(from.col(j), from.rows, to.col(j));
  }
};

/// A modification as a backend sees it: everything but the numbers themselves.
struct Task {
  index_t n = 0;  ///< order of R
  index_t k = 0;        ///< columns of V
  index_t removed = 0;  ///< of these, the last: A shrinks by them, and grows by the others
  double scale = 1;     ///< what comes of R and V is multiplied by
  Uplo uplo = Uplo::upper;                     ///< how R is stored
  Precision precision = Precision::double_;    ///< what is computed in
  Algorithm algorithm = Algorithm::householder;
  Launch launch = Launch::automatic;
  Instructions instructions = Instructions::automatic;
  int threads = 0;  ///< of the CPU; 0: as many as are of use
  double device_memory = std::numeric_limits<double>::infinity();  ///< most device memory to allocate, bytes
  bool at_once = false;      ///< the whole factor goes through the device as one panel
  bool keep_intact = true;   ///< find out first whether a downdate in place can be done
  RightHandSideView right;
  bool timeline = false;     ///< whether to fill Work::timeline (what goes through a device, or is on one)

  index_t added() const { return k - removed; }
  /// f(sign, first, count) for those columns of V that A grows by, and then for those that it shrinks by, if there are
  /// any. In this order nothing on the way is indefinite but what the result is.
  template <class F>
  void each_sign(F&& f) const {
    if (added() > 0) f(Sign::update, index_t(0), added());
    if (removed > 0) f(Sign::downdate, added(), removed);
  }
};

/// What a backend has done. What it has no part in stays as it is here.
struct Work {
  index_t pivot = -1;        ///< first pivot (from 0) at which a downdate fails; -1: success
  std::string device;        ///< name of the GPU
  int device_ranks = 1;      ///< GPUs; one may stand in for several
  Launch launch = Launch::automatic;
  index_t panels = 0;        ///< panels processed: off-diagonal ones (the paper's), or of whole columns
  double device_bytes = 0;   ///< most device memory held at once
  bool pinned = false;       ///< R was page-locked during the transfers (the paper's method)
  index_t blocks = 0;        ///< row blocks done on a GPU
  index_t fallbacks = 0;     ///< of these, by Householder steps
  index_t rescalings = 0;    ///< blocks before which V was rescaled
  /// Sums of the squares of V that was added, and that was taken away, where the method has them; otherwise NaN.
  double squares[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  bool unscaled_z = false;   ///< Task::right.out is still to be multiplied by Task::scale
  /// The modification itself, without checks and copies; what goes through a device in panels of columns: everything,
  /// as it goes hand in hand; a factor on a GPU: on the device, by events, without sending V.
  double seconds = 0;
  std::vector<Timeline::Entry> timeline;
};

}  // namespace gpucholmod
