#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/held_factor.h"

namespace gpucholmod::cpu {

/// A function that allocates `bytes` of memory for a factor; the last pointer to the memory frees the memory.
using Allocate = std::function<std::shared_ptr<void>(std::size_t bytes)>;

/// Returns ordinary memory. Throws std::bad_alloc.
inline std::shared_ptr<void> ordinary_memory(std::size_t bytes) {
  return {::operator new(bytes), [](void* data) { ::operator delete(data); }};
}

/// Returns a copy of the factor R (n x n, upper or lower as uplo says; the other triangle is never read) in memory of
/// its own, in the scalars of `precision`, with room for `capacity` rows and columns. BlockedSweep modifies the copy,
/// with the threads and instructions of a task; R's BLAS and LAPACK solve and multiply with it, in double precision.
/// S is double or float. copying_threads: number of threads that copy a large factor; 0: as many as there are cores.
/// Throws not_finite, bad_diagonal, overflow, out_of_memory, and what `allocate` throws.
template <class S>
std::unique_ptr<HeldFactor> hold(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                 Allocate allocate, int copying_threads = 0);

/// Wraps the upper factor R (n x n) in the caller's memory, which must outlive the result. New factors can be made of
/// the result, with room for no more rows than they have; the result must not be modified in place. Throws the errors
/// of hold().
std::unique_ptr<HeldFactor> borrow(const double* R, index_t n, Allocate allocate, int copying_threads = 0);

/// Wraps the upper factor R (n x n, leading dimension ld) in the caller's memory, which must outlive the result. Rows
/// and columns are inserted, deleted and moved in place, up to ld rows. If numbers need scaling, `allocate` is called,
/// R stays as it was, and the new factor is stored in the allocated memory. Throws not_finite and bad_diagonal.
template <class T>
std::unique_ptr<HeldFactor> hold_in_place(T* R, index_t n, index_t ld, Allocate allocate, int copying_threads);

}  // namespace gpucholmod::cpu
