#include "cuda/substitution.h"

#include <algorithm>
#include <climits>

#include "cuda/roles.cuh"
#include "cuda/transfer.cuh"
#include "cuda/kernels/substitute.cuh"

namespace gpucholmod::cuda {
namespace {

using namespace block_columns;

/// The places in ints() of Segment::inverted and of the refusal; then, cleared by every substitution, of
/// Segment::linked and of the flags of each block group.
constexpr int inverted_at = 0, refused_at = 1, linked_at = 2, flags_at = 3;

/// Returns the number of thread blocks of each block group that advance, on each of `ranks` devices; 0 if V has no room
/// in their shared memory, or there is no kernel.
template <class Card, class T, Order order>
int advancers(int gangs, int blocks, int most_blocks, int ranks) {
  const int cluster = in_clusters<Card>(1), most = most_blocks / cluster / gangs * cluster - Card::cluster;
  const int unit = ranks > 1 ? WORKERS_OF_STRIP : cluster, at_once = ADVANCE_WARPS * ranks;
  const int ahead = std::max(0, blocks - 1 - REACH) * GROUPS,
            wanted = std::max((ahead + at_once - 1) / at_once, blocks / Card::inverted_at_once / ranks);
  const int count = std::min((wanted + unit - 1) / unit, most / unit) * unit;
  if (count <= 0) return 0;
  Segment<T, order> s{};
  s.blocks = s.window = blocks;
  // In the order back every device advances all groups of columns.
  const Share share{0, order == Order::forward ? count * ranks : count, blocks * GROUPS};
  const int words =
      std::max(fixed_words<CHAIN_COLUMNS, Card, double>, AdvanceMemory<CHAIN_COLUMNS, Card, double>::words(s, share));
  return words * int(sizeof(double)) <= Card::shared ? count : 0;
}

/// Sets the number of thread blocks of each block group that solve, and that advance. `devices`: null for one device.
/// Returns false if there is no kernel or no room.
template <class T, Order order>
bool assign_roles(Segment<T, order>& s, int gangs, int blocks, const DeviceGroup* devices) {
  using Launch = SegmentLaunch<substitute<T, order>>;
  const int ranks = devices ? devices->ranks() : 1;
  const int least = devices ? least_at_once<Launch>(*devices) : INT_MAX;
  return Launch::if_it_runs([&](auto card, int most) {
    using Card = decltype(card);
    s.solvers = Card::cluster;
    s.advancers = ranks * advancers<Card, T, order>(gangs, blocks, std::min(most, least), ranks);
    return s.advancers > 0;
  });
}
template <class T, Order order>
bool has_room(int gangs, int blocks, const DeviceGroup* devices) {
  Segment<T, order> s{};
  return assign_roles(s, gangs, blocks, devices);
}

/// Returns whether all devices solve. The first is quicker alone if it reads little of the other devices' memory,
/// though it reads that memory again for every block group. Found on two H100 and two H200, 2026-11-26; why:
/// inst/design/several-gpus.md.
bool pays_on_several(int gangs, int blocks) { return blocks >= 32 && gangs * blocks >= 96; }

/// Returns the number of block groups that run side by side at most. With more of them, the second-level cache no
/// longer holds what the first has read until the last reads it.
int most_side_by_side(int blocks) { return blocks <= 128 ? most_gangs : most_gangs / 2; }

template <class T, Order order>
void launch(const Gangs<T, order>& gangs, cudaStream_t stream) {
  const Segment<T, order>& s = gangs.of[0];
  SegmentLaunch<substitute<T, order>>(gangs.count * (s.solvers + s.here(s.advancers)), stream)
      .start("start a substitution", gangs);
}

}  // namespace

template <class T>
typename Substitution<T>::AtOnce Substitution<T>::at_once(Context& context, index_t m, int strips) {
  const index_t wanted = (m + CHAIN_COLUMNS - 1) / CHAIN_COLUMNS;
  const int blocks = strips * BLOCKS;
  const auto fits = [&](int gangs, const DeviceGroup* devices) {
    return has_room<T, Order::forward>(gangs, blocks, devices) && has_room<T, Order::back>(gangs, blocks, devices);
  };
  for (int gangs = int(std::min<index_t>(wanted, most_side_by_side(blocks))); gangs > 0; --gangs) {
    DeviceGroup* const devices = pays_on_several(gangs, blocks) ? context.device_group() : nullptr;
    if (devices && fits(gangs, devices)) return {gangs * CHAIN_COLUMNS, devices};
    if (fits(gangs, nullptr)) return {gangs * CHAIN_COLUMNS, nullptr};
  }
  return {0, nullptr};
}

template <class T>
template <class Send, class Fetch>
index_t Substitution<T>::solve_by_passes(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                                         index_t m, Send&& send, Fetch&& fetch) {
  const AtOnce at_once = Substitution::at_once(context, m, layout.strips());
  const index_t most = at_once.columns;
  const cudaStream_t stream = context.stream();
  if (most == 0) return 0;
  try {
    Substitution chain(context, at_once, layout.strips(), R, layout.ld);
    int& refused = context.word();
    for (index_t first = 0; first < m; first += most) {
      const MatrixView<double> place = chain.place(layout.n, std::min(most, m - first), stream);
      send(first, place);
      chain.solve(which, stream);
      check(cudaMemcpyAsync(&refused, chain.ints() + refused_at, sizeof refused, cudaMemcpyDeviceToHost, stream),
            "fetch what became of it");
      if (!fetch(first, place, [&] { return refused == 0; })) return first;
    }
    return m;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;  // cuBLAS takes less memory
    return 0;
  }
}

template <class T>
index_t Substitution<T>::solve(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                               MatrixView<const double> B, MatrixView<double> X) {
  return solve_by_passes(
      context, layout, R, which, B.cols,
      [&](index_t first, MatrixView<double> place) {
        send_columns(B.block(0, first, place.rows, place.cols), place, context);
      },
      [&](index_t first, MatrixView<double> place, auto&& accept) {
        return fetch_columns(place, X.block(0, first, place.rows, place.cols), context, accept);
      });
}

template <class T>
index_t Substitution<T>::solve_there(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                                     MatrixView<double> B) {
  const auto copy = [&](MatrixView<const double> from, MatrixView<double> to) {
    copy_matrix(from, to, cudaMemcpyDeviceToDevice, context.stream());
  };
  return solve_by_passes(
      context, layout, R, which, B.cols,
      [&](index_t first, MatrixView<double> place) { copy(B.block(0, first, place.rows, place.cols), place); },
      [&](index_t first, MatrixView<double> place, auto&& accept) {
        check(cudaStreamSynchronize(context.stream()), "solve");
        if (!accept()) return false;
        copy(place, B.block(0, first, place.rows, place.cols));
        return true;
      });
}

template <class T>
Substitution<T>::Substitution(Context& context, const AtOnce& at_once, int strips, const T* R, index_t ld)
    : devices_(at_once.devices), ranks_(int(context.devices().size())), gangs_(at_once.columns / CHAIN_COLUMNS),
      strips_(strips), R_(R), ld_(ld), dmemory_(context.pool(), ints_at() + (int_count() + 1) / 2) {
  if (devices_)
    devices_->reserve(sizeof(double) * gangs_ * transform_words(), gangs_ * Segment<T>::flag_words(int(blocks())));
}

template <class T> index_t Substitution<T>::int_count() const {
  return flags_at + index_t(gangs_) * Segment<T>::flag_words(int(blocks()));
}

template <class T>
MatrixView<double> Substitution<T>::place(index_t n, index_t m, cudaStream_t stream) const {
  const index_t padded = index_t(strips_) * STRIP;
  if (n < padded || m < gangs_ * CHAIN_COLUMNS)
    check(cudaMemsetAsync(dmemory_.data(), 0, sizeof(double) * transforms_at(), stream), "clear right-hand sides");
  return {dmemory_.data(), n, m, padded};
}

template <class T>
void Substitution<T>::solve(TriangularSolve which, cudaStream_t stream) {
  if (which != TriangularSolve::back) run<Order::forward>(stream);
  if (which != TriangularSolve::forward) run<Order::back>(stream);
}

template <class T>
template <Order order>
void Substitution<T>::run(cudaStream_t stream) {
  const int blocks = strips_ * BLOCKS;
  const index_t column = index_t(CHAIN_COLUMNS) * blocks;
  Gangs<T, order> gangs{};
  gangs.count = gangs_;
  int* const ints = this->ints();
  gangs.inverted = inverted_;
  gangs.refused = ints + refused_at;
  for (int i = 0; i < gangs_; ++i) {
    Segment<T, order>& s = gangs.of[i];
    s.blocks = s.end = s.window = blocks;
    s.ldv = index_t(blocks) * NB;
    s.R = R_;
    s.ld = ld_;
    s.V = dmemory_.data() + i * column * NB;
    s.handed = dmemory_.data() + handed_at() + i * handed_words();
    s.transforms = dmemory_.data() + transforms_at() + i * transform_words();
    s.inverses = dmemory_.data() + inverses_at();
    s.links = dmemory_.data() + links_at();
    s.inverted = ints + inverted_at;
    s.linked = ints + linked_at;
    s.flags = ints + flags_at + i * s.flag_words(blocks);
    if (i == 0) assign_roles(s, gangs_, blocks, devices_);
    else static_cast<SegmentRoles&>(s) = gangs.of[0];
    s.device_ranks = ranks_;
    s.together = devices_ != nullptr;
  }
  const int kept = inverted_ ? linked_at : 0;
  check(cudaMemsetAsync(ints + kept, 0, sizeof(int) * int_count() - sizeof(int) * kept, stream), "clear the flags");
  if (devices_) start_on_others(gangs, stream);
  launch(gangs, stream);
  if (devices_) devices_->join(stream);
  collect_solutions<<<dim3(unsigned(blocks), unsigned(gangs_)), 256, 0, stream>>>(gangs);
  check(cudaGetLastError(), "collect solutions");
  inverted_ = true;
}

/// Starts the substitution on the ranks but the first, and completes `gangs` for the launch on the first rank.
template <class T>
template <Order order>
void Substitution<T>::start_on_others(Gangs<T, order>& gangs, cudaStream_t stream) {
  const int blocks = strips_ * BLOCKS;
  for (int i = 0; i < gangs_; ++i) {
    Segment<T, order>& s = gangs.of[i];
    s.device_rank = rank_in_order<order>(blocks, devices_->ranks(), 0);
    s.others = devices_->others();
    s.transforms_at = i * transform_words();
    s.flags_at = index_t(i) * s.flag_words(blocks);
  }
  devices_->each_other(stream, [&](int rank, cudaStream_t own) {
    Gangs<T, order> other = gangs;
    const auto [memory, flags] = devices_->of(rank);
    for (int i = 0; i < gangs_; ++i) {
      Segment<T, order>& s = other.of[i];
      s.device_rank = rank_in_order<order>(blocks, devices_->ranks(), rank);
      s.solvers = 0;
      s.transforms = memory + s.transforms_at;
      s.first_flags = s.flags;
      s.flags = flags + s.flags_at;
    }
    launch(other, own);
    // Clears the flags before anything is sent to this rank again. Nothing is on its way now: feed_P() has waited for P
    // of every row block.
    check(cudaMemsetAsync(flags, 0, sizeof(int) * gangs_ * Segment<T>::flag_words(blocks), own),
          "clear the flags of a rank");
  });
}

template class Substitution<float>;
template class Substitution<double>;

}  // namespace gpucholmod::cuda
