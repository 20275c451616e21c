#pragma once

#include "block_columns/segment.h"
#include "cuda/context.h"
#include "cuda/device_factor.h"
#include "cuda/layout.h"
#include "cuda/pass.h"

namespace gpucholmod::cuda {

template <class T, block_columns::Order order>
struct Gangs;

/// R'X = B or RX = B for few right-hand sides, by the chain of a modification (inst/design/segments.md), in double
/// whatever R is stored in. On the current device, or, where R lies on several, on all of them.
template <class T>
class Substitution {
 public:
  /// X <- the solution for B (layout.n x m each, in the host's memory; X may be B), with R in the layout of a factor,
  /// by passes of so many columns as go at once, or as far as that is possible. Returns how many columns have been
  /// solved for; the others of X are as they were. In a Session.
  static index_t solve(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                       MatrixView<const double> B, MatrixView<double> X);
  /// The same of B on the device, in place.
  static index_t solve_there(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                             MatrixView<double> B);

  /// How many right-hand sides are solved for at once, 0 where there is no kernel or no room, and by which devices:
  /// null where the first one solves alone.
  struct AtOnce {
    int columns;
    DeviceGroup* devices;
  };
  /// Of m right-hand sides, with a factor of so many strips.
  static AtOnce at_once(Context& context, index_t m, int strips);

  /// R: in the layout of a factor, from its first strip on; it may lie on several devices. Throws out_of_memory.
  Substitution(Context& context, const AtOnce& at_once, int strips, const T* R, index_t ld);

  /// Where n x m right-hand sides are, m <= columns, and their solution. Queues zeros behind row n and column m.
  MatrixView<double> place(index_t n, index_t m, cudaStream_t stream) const;
  /// Queues B <- the solution. What is found out about R the first time stays.
  void solve(TriangularSolve which, cudaStream_t stream);

 private:
  /// What solve() and solve_there() have in common: send(first, place) queues columns from `first` on to their place;
  /// fetch(first, place, accept) takes the solution from there if accept(), which the stream has come to by then, says
  /// that all of its entries are finite, and returns what that says.
  template <class Send, class Fetch>
  static index_t solve_by_passes(Context& context, const Layout& layout, const T* R, TriangularSolve which, index_t m,
                                 Send&& send, Fetch&& fetch);
  template <block_columns::Order order>
  void run(cudaStream_t stream);
  template <block_columns::Order order>
  void start_on_others(Gangs<T, order>& gangs, cudaStream_t stream);

  DeviceGroup* devices_;  ///< null where one device solves
  int ranks_;             ///< devices that R lies on
  int gangs_, strips_;
  bool inverted_ = false;
  const T* R_;
  index_t ld_;
  index_t blocks() const { return index_t(strips_) * block_columns::BLOCKS; }
  // One piece of memory, as to allocate takes as long as to launch: V, transforms, handed, inverses, links, ints.
  index_t transforms_at() const { return blocks() * block_columns::NB * gangs_ * block_columns::CHAIN_COLUMNS; }
  index_t transform_words() const {
    return blocks() * block_columns::BlockTransform<block_columns::CHAIN_COLUMNS>::stride;
  }
  index_t handed_at() const { return transforms_at() + gangs_ * transform_words(); }
  /// Of a gang; on several devices with what each takes off.
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
