#pragma once

#include "block_columns/segment.h"
#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/layout.h"
#include "cuda/pass.h"

namespace gpucholmod::cuda {

template <class T, block_columns::Order order>
struct Gangs;

/// Solves R'X = B or RX = B for few right-hand sides by the chain of a modification (inst/design/segments.md), in
/// double whatever R is stored in. Runs on the current device or on all devices that R lies on.
template <class T>
class Substitution {
 public:
  /// Computes X, the solution for B (layout.n x m each, in the host's memory; X may be B), with R in the layout of a
  /// factor. Each pass solves for as many columns as at_once() allows. Returns the number of columns that have been
  /// solved for, which may be less than m; the other columns of X are unchanged. Needs a Session.
  static index_t solve(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                       MatrixView<const double> B, MatrixView<double> X);
  /// Computes as solve() the solution for B on the device, in place.
  static index_t solve_there(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                             MatrixView<double> B);

  /// Describes how many right-hand sides are solved for at once, and by which devices.
  struct AtOnce {
    int columns;           ///< right-hand sides; 0 if there is no kernel or no room
    DeviceGroup* devices;  ///< null if the first device solves alone
  };
  /// Returns how many of m right-hand sides are solved for at once, and by which devices; the factor has `strips`
  /// strips.
  static AtOnce at_once(Context& context, index_t m, int strips);

  /// Allocates memory for substitutions with R, in the layout of a factor from its first strip on. R may lie on several
  /// devices. Throws out_of_memory.
  Substitution(Context& context, const AtOnce& at_once, int strips, const T* R, index_t ld);

  /// Returns the place of n x m right-hand sides, m <= columns, and of their solution. Queues zeros behind row n and
  /// column m.
  MatrixView<double> place(index_t n, index_t m, cudaStream_t stream) const;
  /// Queues B <- the solution, in place(). Inverses of diagonal blocks that the first call finds are kept.
  void solve(TriangularSolve which, cudaStream_t stream);

 private:
  /// Solves for solve() and solve_there(). send(first, place) queues a copy of columns from `first` on to `place`.
  /// fetch(first, place, accept) waits for the stream, and then copies the solution from `place` if accept() returns
  /// true, which means that all entries are finite. fetch() returns the result of accept().
  template <class Send, class Fetch>
  static index_t solve_by_passes(Context& context, const Layout& layout, const T* R, TriangularSolve which, index_t m,
                                 Send&& send, Fetch&& fetch);
  template <block_columns::Order order>
  void run(cudaStream_t stream);
  template <block_columns::Order order>
  void start_on_others(Gangs<T, order>& gangs, cudaStream_t stream);

  DeviceGroup* devices_;  ///< null if one device solves
  int ranks_;             ///< number of devices that R lies on
  int gangs_, strips_;
  bool inverted_ = false;
  const T* R_;
  index_t ld_;
  index_t blocks() const { return index_t(strips_) * block_columns::BLOCKS; }
  // One piece of memory, as an allocation takes as long as a launch: V, transforms, handed, inverses, links, ints.
  index_t transforms_at() const { return blocks() * block_columns::NB * gangs_ * block_columns::CHAIN_COLUMNS; }
  index_t transform_words() const {
    return blocks() * block_columns::BlockTransform<block_columns::CHAIN_COLUMNS>::stride;
  }
  index_t handed_at() const { return transforms_at() + gangs_ * transform_words(); }
  /// Returns the words of `handed` for a block group, on several devices with the partial sums of each device.
  index_t handed_words() const {
    const int parts = devices_ ? 1 + devices_->ranks() : 1;
    return parts * blocks() * block_columns::LDB * block_columns::CHAIN_COLUMNS;
  }
  index_t inverses_at() const { return handed_at() + gangs_ * handed_words(); }
  index_t links_at() const { return inverses_at() + blocks() * block_columns::INVERSE; }
  index_t ints_at() const { return links_at() + blocks() * block_columns::INVERSE; }
  index_t int_count() const;
  int* ints() const { return reinterpret_cast<int*>(dmemory_.data() + ints_at()); }

  PoolBuffer<double> dmemory_;
};

}  // namespace gpucholmod::cuda
