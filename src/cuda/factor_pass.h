#pragma once

#include <functional>
#include <optional>

#include "cuda/pass.h"

namespace gpucholmod::cuda {

/// The addresses of the parts of a whole factor that lie apart from it: see SegmentFactor.
template <class T>
struct Apart {
  T* diagonal;
  int first_beside;
  const T* last;  ///< the last strip before the pass; null: the strip is in the factor
  T* last_out;    ///< the last strip after the pass
};

/// A pass over a factor on this device: over the whole factor, or over panels of whole columns, one after the other
/// from the left.
template <class T>
class FactorPass : public Pass<T> {
 public:
  FactorPass(Pool& pool, Launch launch, const block_columns::SegmentSize& size,
             const block_columns::PassColumns& columns, block_columns::Scaling scaling = {},
             DeviceGroup* devices = nullptr, int strip = 0)
      : Pass<T>(pool, launch, size, columns, scaling, devices, strip) {}

  /// Begins the panel of strips [first, end), from R to `out`; both point to the first row of the panel's columns.
  /// `out` may be R, or null for a whole factor, of which the pass is then a dry run. Queues the turns so far on the
  /// panel's row blocks above its diagonal blocks. Makes work that is queued from here to the next call a no-op if the
  /// pass `before` needs more than the `turns` that are queued on these strips.
  void begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream,
                   const FactorPass* before = nullptr, int turns = 1);

  /// Sets the addresses of parts that lie apart from a whole factor, before run() or queue().
  void lie_apart(const Apart<T>& apart) { apart_ = apart; }

  /// Queues the copy to the device of right-hand sides, which run() modifies in the side_strips of the pass: of Y, and,
  /// if this is the `first` pass, of z.
  void take_sides(const SidesOnTheWay<T>& sides, bool first, cudaStream_t stream);
  /// Queues, from run()'s wait(), the copy back of what is left of Y, and of z~ if this is the `last` pass.
  void give_sides(const SidesOnTheWay<T>& sides, bool last, cudaStream_t stream) const;

  /// Modifies a whole factor from R to `out`, and returns when the work is done. Calls `wait` when something has been
  /// queued; `wait` returns when the stream has completed it. Records `end` when the modification itself is done.
  /// `turns`: the number expected, which are queued at once; by segments, becomes the number that the pass has
  /// taken, or most_expected if that is less. `staging`: page-locked, outcome_bytes().
  block_columns::PassOutcome run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                 const std::function<void()>& wait, cudaStream_t stream);

  /// Queues `turns` turns of the modification of a whole factor, behind what the pass `before`, if there is one, has
  /// queued. Returns the PassEnd that tells on the device whether both passes are done. Nothing is written if V holds a
  /// number that is not plain, or if `before` is not done.
  block_columns::PassEnd queue(const T* R, T* out, index_t ld, int turns, const FactorPass* before,
                               cudaStream_t stream);

  /// Queues the transforms of all panels on a strip of right-hand sides, when all panels are done and the outcome of
  /// every turn has been read. z: in device memory, with as many rows as the factor and STRIP columns, zero beyond the
  /// right-hand sides. Y (m rows, leading dimension ldy, in host memory): the part that belongs to V, of which the pass
  /// takes its columns. `rest`: what is left of Y, in the same layout.
  void carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, cudaStream_t stream);

 private:
  using typename Pass<T>::Last;
  using Pass<T>::panel_, Pass<T>::turns_, Pass<T>::size;

  /// Sets panel_ to strips [first, end), and queues nothing.
  void place_panel(int first, int end, const T* R, T* out, index_t ld);
  /// Returns the row of V that belongs to the first right-hand side.
  index_t first_side() const { return index_t(size().strips - size().side_strips) * block_columns::STRIP; }

  T* z_ = nullptr;
  std::optional<Apart<T>> apart_;
};

}  // namespace gpucholmod::cuda
