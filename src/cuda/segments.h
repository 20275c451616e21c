#pragma once

#include <functional>

#include "base/task.h"
#include "block_columns/by_segments.h"
#include "block_columns/segment.h"
#include "cuda/context.h"

namespace gpucholmod::cuda {

/// One pass of a modification of a factor that stays on a GPU: segments of unscaled steps, and between them row blocks by
/// Householder steps where the guard refuses one from the start (inst/design/segments.md). On the current device.
template <class T>
class SegmentPass {
 public:
  /// Columns of V that a pass takes, of k that are left, for a factor of so many strips; 0 where this device has no kernel
  /// for it, or the task asks for another.
  static int columns(index_t k, int strips, const Task& task);
  /// What a pass of so many columns takes, in bytes.
  static double bytes(int columns, int strips) { return double(sizeof(double)) * double(Words(columns, strips).all); }

  /// Throws out_of_memory.
  SegmentPass(Pool& pool, int columns, int strips, const Task& task);

  /// Queues what the pass begins with: V (n x k, k <= columns; what is behind row n counts as zero), from host memory that
  /// may be reused on return where it is pageable.
  void prepare(const double* V, index_t n, index_t k, index_t ldv, cudaStream_t stream) const;

  /// R to out, which may be R itself, or null: then only whether it can be done is found out. Returns when it is done. `wait` is
  /// called when something has been queued, and returns when the stream has come past it; `end` is when the modification itself was
  /// done. `turns`: how many are expected, which are queued at once; becomes how many it took. `staging`: page-locked memory,
  /// outcome_bytes().
  block_columns::PassOutcome run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                 const std::function<void()>& wait, cudaStream_t stream) const;
  static std::size_t outcome_bytes(int strips) {
    return sizeof(int) * std::size_t(block_columns::PassInts::outcome_words(strips * block_columns::BLOCKS));
  }

 private:
  using Segment = block_columns::Segment<T>;
  Segment segment(const T* R, T* out, index_t ld) const;
  block_columns::PassInts ints() const { return {reinterpret_cast<int*>(dmemory_.data() + words_.ints)}; }

  /// Where the parts of the memory of a pass begin behind V, in doubles. It is one piece: to allocate takes as long as to launch.
  struct Words {
    index_t messages, handed, inverses, links, ints, all;
    Words(int columns, int strips);
  };

  int columns_, strips_;
  Sign sign_;
  Words words_;
  PoolBuffer<double> dmemory_;
};

}  // namespace gpucholmod::cuda
