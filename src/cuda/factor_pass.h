#pragma once

#include <functional>
#include <optional>

#include "cuda/pass.h"

namespace gpucholmod::cuda {

/// Where parts of a whole factor lie that are apart from it: see SegmentFactor.
template <class T>
struct Apart {
  T* diagonal;
  int first_beside;
  const T* last;  ///< the last strip, before and after; null: it is where it belongs
  T* last_out;
};

/// A pass over a factor on this device: over the whole of it, or over panels of whole columns that come one after the
/// other, from the left.
template <class T>
class FactorPass : public Pass<T> {
 public:
  FactorPass(Pool& pool, Launch launch, const block_columns::SegmentSize& size,
             const block_columns::PassColumns& columns, block_columns::Scaling scaling = {},
             DeviceGroup* devices = nullptr, int strip = 0)
      : Pass<T>(pool, launch, size, columns, scaling, devices, strip) {}

  /// Begins with strips [first, end), from R to out, columns from their first row on; out may be R itself, or null for
  /// a whole factor: then only whether it can be done is found out. Queues what has been done so far to the row blocks
  /// above them. Work that is queued from here to the next call does nothing if the pass `before` needs more than the
  /// `turns` that have been queued on these strips.
  void begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream,
                   const FactorPass* before = nullptr, int turns = 1);

  /// Tells where parts of a whole factor lie, before run().
  void lie_apart(const Apart<T>& apart) { apart_ = apart; }

  /// Queues the way of right-hand sides, which come along in run(), in the side_strips of the pass, to where they
  /// become z~ and what is left of Y: z if this is the `first` pass.
  void take_sides(const SidesOnTheWay<T>& sides, bool first, cudaStream_t stream);
  /// Queues, from run()'s wait(), the way back of what is left of Y, and of z~ if this is the `last` pass.
  void give_sides(const SidesOnTheWay<T>& sides, bool last, cudaStream_t stream) const;

  /// Takes a whole factor from R to out. Returns when it is done. `wait` is called when something has been queued,
  /// and returns when the stream has come past it; `end` is when the modification itself was done. `turns`: how many
  /// are expected, which are queued at once; becomes how many it took. `staging`: page-locked, outcome_bytes().
  block_columns::PassOutcome run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                 const std::function<void()>& wait, cudaStream_t stream);

  /// Queues the same, so many turns of it, behind what the pass `before` has queued, if there is one. Returns what
  /// tells on the device whether both are done. Nothing is written where V holds what is no plain number, or `before`
  /// is not done.
  block_columns::PassEnd queue(const T* R, T* out, index_t ld, int turns, const FactorPass* before,
                               cudaStream_t stream);

  /// When all panels are done, of each of which every turn has been looked at: queues what has been done to them to a
  /// strip of right-hand sides. z: in device memory, as high as the factor and STRIP wide, zero where there is nothing.
  /// Y (m rows, leading dimension ldy, in host memory): what belongs to V, of which the pass takes its columns; `rest`,
  /// likewise, what is left of it.
  void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, cudaStream_t stream);

 private:
  using typename Pass<T>::Last;
  using Pass<T>::panel_, Pass<T>::turns_, Pass<T>::size;

  /// The panel that is next, its own row blocks left aside.
  void place_panel(int first, int end, const T* R, T* out, index_t ld);
  /// The row of V that belongs to the first right-hand side.
  index_t first_side() const { return index_t(size().strips - size().side_strips) * block_columns::STRIP; }

  T* z_ = nullptr;
  std::optional<Apart<T>> apart_;
};

}  // namespace gpucholmod::cuda
