#pragma once

#include "base/types.h"

namespace gpucholmod::cpu {

/// Computes the factor of R'R + VV', the last `removed` columns of V counting negative: forms this matrix and
/// factorises it with R's BLAS and LAPACK (dtrmm, dsyrk, dpotrf). Takes 2n^3/3 + kn^2 flops instead of 2kn^2, for k
/// that is not small beside n.
///
///   R    n x n, upper; the entries below the diagonal are not read. V: n x k.
///   out  n x n: the new factor, upper; the entries below the diagonal are not written. Must not overlap R.
///
/// Returns false if LAPACK finds that the formed matrix is not positive definite; `out` is then unspecified. The exact
/// matrix may be positive definite nevertheless, because of rounding errors of the size of ||A||. Error: residual
/// ratio < 30 (inst/design/accuracy.md).
bool refactor(MatrixView<const double> R, MatrixView<const double> V, index_t removed, MatrixView<double> out,
              const Poll& poll);

}  // namespace gpucholmod::cpu
