#pragma once

#include <cstddef>
#include <functional>
#include <memory>

#include "base/held_factor.h"

namespace gpucholmod::cpu {

/// Memory for a factor, so many bytes; it is given back with the last pointer to it.
using Allocate = std::function<std::shared_ptr<void>(std::size_t bytes)>;

/// Returns ordinary memory. Throws std::bad_alloc.
inline std::shared_ptr<void> ordinary_memory(std::size_t bytes) {
  return {::operator new(bytes), [](void* data) { ::operator delete(data); }};
}

/// Keeps the factor R (n x n, upper, or lower when uplo says so; the other triangle is never read) in memory of its
/// own, in the scalar that is asked for. It is modified by BlockedSweep, with the threads and instructions of a task,
/// and used by R's BLAS and LAPACK, in double precision; there is room for `capacity` rows and columns. S is double or
/// float. copying_threads: that copy a large factor; 0: as many as there are cores. Throws not_finite, bad_diagonal,
/// overflow, out_of_memory, and what `allocate` throws.
template <class S>
std::unique_ptr<HeldFactor> hold(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                 Allocate allocate, int copying_threads = 0);

/// The upper factor R (n x n) where it is, in memory of somebody else, which outlives this: new factors can be made of
/// it, of no more than they need, and nothing is to be done in place. Throws as hold() does.
std::unique_ptr<HeldFactor> borrow(const double* R, index_t n, Allocate allocate, int copying_threads = 0);

/// The upper factor R (n x n) where it is, in memory of somebody else, which outlives this and has ld rows: its rows
/// and columns come, go and move in place, as long as there are no more than ld. Where numbers need scaling, `allocate`
/// is called, R stays as it was, and the new factor is in that memory. Throws not_finite and bad_diagonal.
template <class T>
std::unique_ptr<HeldFactor> hold_in_place(T* R, index_t n, index_t ld, Allocate allocate, int copying_threads);

}  // namespace gpucholmod::cpu
