#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/timeline.h"
#include "base/types.h"

namespace gpucholmod {

/// The algorithm of a modification.
enum class Algorithm {
  rotations,    ///< one plane rotation after the other
  householder,  ///< row blocks by mixed hyperbolic Householder steps
  unscaled,     ///< row blocks by the unscaled (Woodbury) step if a guard allows it, otherwise as above; on a GPU
  refactor      ///< forming A + sigma VV' and factorising it
};

/// The way of launching kernels on a GPU.
enum class Launch {
  automatic,
  persistent,  ///< one launch for as many row blocks as possible, by thread blocks that wait for each other
  stepwise     ///< one launch for each row block, in plain arithmetic: any GPU
};

/// Refers to right-hand sides that are modified along with a factor: from z, with R'z = b, to z~, with
/// R~'z~ = scale^2 b + V diag(+-1) Y'. The transforms that take [R; V'] to [R~; 0] take [z; Y'] to [z~ / scale; rest].
/// So the residual sum of squares of the equations, rho^2 for each column, becomes scale^2 (rho^2 +- the squares of
/// `rest`): LINPACK's dchud and dchdd (Dongarra et al. 1979, ch. 10).
///
/// If rows and columns of A are inserted or removed, b gains or loses as many rows. For an insertion, Y is the new rows
/// of b, transposed; for a removal, Y is not read. z~ has the order of the new factor. rho^2 grows by the squares of
/// `rest` for rows that are removed, and shrinks by them for rows that are inserted.
struct RightHandSideView {
  MatrixView<const double> z{};  ///< n x m
  MatrixView<const double> Y{};  ///< m x k: a column for each column of V
  MatrixView<double> out{};      ///< z~, n x m; may be z; written if the modification can be done
  MatrixView<double> rest{};     ///< m x k; written if the modification can be done

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
  index_t removed = 0;  ///< number of V's last columns, by which A shrinks; A grows by the first k - removed
  double scale = 1;     ///< multiplier of the modified factor
  Uplo uplo = Uplo::upper;                     ///< triangle in which R is stored
  Precision precision = Precision::double_;    ///< precision of the computation
  Algorithm algorithm = Algorithm::householder;
  Launch launch = Launch::automatic;
  Instructions instructions = Instructions::automatic;
  int threads = 0;  ///< number of CPU threads; 0: as many as are of use
  double device_memory = std::numeric_limits<double>::infinity();  ///< most device memory to allocate, bytes
  bool at_once = false;      ///< True if the whole factor is sent through the device as one panel
  bool keep_intact = true;   ///< True if a dry run first tests whether a downdate in place can be done
  RightHandSideView right;
  bool timeline = false;     ///< True if Work::timeline is filled (factors sent through a device, or on one)

  index_t added() const { return k - removed; }
  /// Calls f(sign, first, count) for the columns of V by which A grows, and then for those by which A shrinks, if there
  /// are any. In this order no matrix on the way is indefinite unless the result is.
  template <class F>
  void each_sign(F&& f) const {
    if (added() > 0) f(Sign::update, index_t(0), added());
    if (removed > 0) f(Sign::downdate, added(), removed);
  }
};

/// Reports what a backend has done. Fields that a backend has no part in keep the values below.
struct Work {
  index_t pivot = -1;        ///< first pivot (from 0) at which a downdate fails; -1: success
  std::string device;        ///< name of the GPU
  int device_ranks = 1;      ///< number of GPUs; one GPU may stand in for several
  Launch launch = Launch::automatic;
  index_t panels = 0;        ///< panels processed: off-diagonal panels (the paper's method), or panels of whole columns
  double device_bytes = 0;   ///< most device memory held at once
  bool pinned = false;       ///< True if R was page-locked during the transfers (the paper's method)
  index_t blocks = 0;        ///< row blocks modified on a GPU
  index_t fallbacks = 0;     ///< row blocks of these that were modified by Householder steps
  index_t rescalings = 0;    ///< row blocks before which V was rescaled
  /// The sums of the squares of V's added columns, and of the columns taken away, if the method has these sums;
  /// otherwise NaN.
  double squares[2] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::quiet_NaN()};
  bool unscaled_z = false;   ///< True if Task::right.out is still to be multiplied by Task::scale
  /// The seconds of the modification itself, without checks and copies. For a factor sent through a device in panels of
  /// columns: the seconds of all work, because it overlaps. For a factor on a GPU: seconds on the device, by events,
  /// without sending V.
  double seconds = 0;
  std::vector<Timeline::Entry> timeline;
};

}  // namespace gpucholmod
