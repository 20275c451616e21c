#pragma once

#include "base/types.h"

namespace gpucholmod::cpu {

/// The factor of R'R + VV', the last `removed` columns of V counting negative, by forming that matrix and factorising
/// it with R's BLAS and LAPACK (dtrmm, dsyrk, dpotrf): 2n^3/3 + kn^2 flops instead of 2kn^2, for k that is not small
/// beside n.
///
///   R    n x n, upper; what is below the diagonal is not read. V: n x k.
///   out  n x n: the new factor, upper; below the diagonal it is left alone. May not overlap R.
///
/// False if the matrix that was formed is not positive definite, in LAPACK's opinion: which it may be nevertheless, for
/// rounding errors of the size of ||A||; `out` is then unspecified. Error: residual ratio < 30
/// (inst/design/accuracy.md).
bool refactor(MatrixView<const double> R, MatrixView<const double> V, index_t removed, MatrixView<double> out,
              const Poll& poll);

}  // namespace gpucholmod::cpu
