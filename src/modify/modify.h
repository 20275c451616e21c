#pragma once

#include <atomic>

#include "modify/request.h"
#include "base/storage.h"

namespace gpucholmod {

/// The rank-k modification of a Cholesky factor: everything a caller needs of the core.
///
///   R    n x n, the factor of A: upper with A = R'R, or (uplo lower) lower with A = RR'. The other triangle is
///        never read. Not changed.
///   V    n x k. Not changed.
///   out  n x n, may not overlap R or V. On success the factor of A + sigma VV' with positive diagonal, its other
///        triangle zero; after a throw or with a failing pivot, unspecified.
///   S    double or float, what the matrices are stored in; request.precision is what is computed in.
///
/// A downdate that would leave A - VV' not positive definite is not an error here: outcome.pivot tells.
/// Throws Error: not_finite, bad_diagonal, bad_argument (what is wrong with R itself, methods blocked and stream may find
/// out while they compute); backend_unavailable, out_of_memory, cuda_failure, overflow; and whatever `poll` throws.
template <class S>
Outcome modify(const S* R, const S* V, S* out, const Request& request, const Poll& poll);

/// The same with the factor wherever it is, by method stream or, on a GPU, resident (automatic: stream). With a
/// failing pivot or after a throw, what `out` holds is unspecified; the rest of what `out` is not told to write has
/// to be zero.
///
/// `overwrites`: out takes the place of R. Whatever can be wrong with R is then found out before anything is written,
/// at the price of one more reading of R; whether a downdate can be done too, by a run that writes nothing.
template <class S>
Outcome modify_stored(const Source<S>& R, const S* V, Sink<S>& out, const Request& request, const Poll& poll,
                      bool overwrites = false);

/// The same in the memory of R, whose other triangle stays as it is: on the CPU by method blocked, otherwise as
/// modify_stored() that overwrites. A downdate that cannot be done, or an error found before `begun` becomes true, has
/// changed nothing; after that, R is lost.
template <class S>
Outcome modify_in_place(S* R, const S* V, const Request& request, const Poll& poll, std::atomic<bool>& begun);

}  // namespace gpucholmod
