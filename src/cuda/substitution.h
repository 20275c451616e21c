#pragma once

#include "block_columns/segment.h"
#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/layout.h"
#include "cuda/pass.h"

namespace gpucholmod::cuda {

/// R'X = B or RX = B for few right-hand sides, by the chain of a modification (inst/design/segments.md), in double
/// whatever R is stored in. On the current device.
template <class T>
class Substitution {
 public:
  /// B (layout.n x m, on the host or the device) <- the solution, with R in the layout of a factor, by passes of so
  /// many columns as go at once, or as far as that is possible. Returns how many columns have been solved for; the
  /// others are as they were. In a Session.
  static index_t solve(Context& context, const Layout& layout, const T* R, TriangularSolve which, double* B,
                       index_t ldb, index_t m);

  /// Right-hand sides that are solved for at once, of m, with a factor of so many strips; 0 where this device has no
  /// kernel for it.
  static int columns(index_t m, int strips);

  /// R: in the layout of a factor, from its first strip on; it may lie on several devices. Throws out_of_memory.
  Substitution(Context& context, int columns, int strips, const T* R, index_t ld);

  /// Queues to send B (n x m, m <= columns; what is behind row n counts as zero); from the device, or host memory that
  /// may be reused on return where it is pageable.
  void send(const double* B, index_t ldb, index_t n, index_t m, cudaStream_t stream) const;
  /// Queues B <- the solution. What is found out about R the first time stays.
  void solve(TriangularSolve which, cudaStream_t stream);
  /// B <- the solution. Returns false, and leaves B as it is, where an entry of the solution is not finite.
  bool fetch(double* B, index_t ldb, index_t n, index_t m, cudaStream_t stream) const;

 private:
  template <block_columns::Order order>
  void run(cudaStream_t stream);

  int gangs_, strips_, ranks_;
  bool inverted_ = false;
  const T* R_;
  index_t ld_;
  index_t blocks() const { return index_t(strips_) * block_columns::BLOCKS; }
  // One piece of memory, as to allocate takes as long as to launch: V, transforms, handed, inverses, links, ints.
  index_t transforms_at() const { return blocks() * block_columns::NB * gangs_ * block_columns::CHAIN_COLUMNS; }
  index_t handed_at() const {
    return transforms_at() + blocks() * gangs_ * block_columns::BlockTransform<block_columns::CHAIN_COLUMNS>::stride;
  }
  index_t inverses_at() const {
    return handed_at() + blocks() * block_columns::LDB * gangs_ * block_columns::CHAIN_COLUMNS;
  }
  index_t links_at() const { return inverses_at() + blocks() * block_columns::INVERSE; }
  index_t ints_at() const { return links_at() + blocks() * block_columns::INVERSE; }
  index_t int_count() const;
  int* ints() const { return reinterpret_cast<int*>(dmemory_.data() + ints_at()); }

  PoolBuffer<double> dmemory_;
};

}  // namespace gpucholmod::cuda
