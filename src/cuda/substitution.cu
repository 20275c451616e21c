#include "cuda/substitution.h"

#include <algorithm>

#include "cuda/segment_launch.cuh"
#include "cuda/transfer.cuh"
#include "cuda/kernels/substitute.cuh"

namespace gpucholmod::cuda {
namespace {

using namespace block_columns;

/// ints: pairs inverted, whether it was refused; and what every substitution clears: pairs linked, the flags of each
/// gang.
constexpr int inverted_at = 0, refused_at = 1, linked_at = 2, flags_at = 3;

/// Blocks of threads that advance in each gang; 0 where V does not find room in their shared memory, or there is no
/// kernel.
template <class Card, class T, Order order>
int advancers(int gangs, int blocks, int most_blocks) {
  const int unit = in_clusters<Card>(1), most = most_blocks / unit / gangs * unit - Card::cluster;
  const int ahead = std::max(0, blocks - 1 - REACH) * GROUPS,
            wanted = std::max((ahead + ADVANCE_WARPS - 1) / ADVANCE_WARPS, blocks / Card::inverted_at_once);
  const int count = std::min(in_clusters<Card>(wanted), most);
  if (count <= 0) return 0;
  Segment<T, order> s{};
  s.blocks = s.window = blocks;
  const Share share{0, count, blocks * GROUPS};
  const int words =
      std::max(fixed_words<CHAIN_COLUMNS, Card, double>, AdvanceMemory<CHAIN_COLUMNS, Card, double>::words(s, share));
  return words * int(sizeof(double)) <= Card::shared ? count : 0;
}

/// Blocks of threads of each gang: those that solve and those that advance. False where there is no kernel, or no room.
template <class T, Order order>
bool assign_roles(Segment<T, order>& s, int gangs, int blocks) {
  return SegmentLaunch<substitute<T, order>>::if_it_runs([&](auto card, int most) {
    using Card = decltype(card);
    s.solvers = Card::cluster;
    s.advancers = advancers<Card, T, order>(gangs, blocks, most);
    return s.advancers > 0;
  });
}
template <class T, Order order>
bool has_room(int gangs, int blocks) {
  Segment<T, order> s{};
  return assign_roles(s, gangs, blocks);
}

/// Gangs that run side by side: with more of them the second-level cache no longer holds what one reads until the last
/// has read it.
int most_side_by_side(int blocks) { return blocks <= 128 ? most_gangs : most_gangs / 2; }

}  // namespace

template <class T>
int Substitution<T>::columns(index_t m, int strips) {
  const index_t wanted = (m + CHAIN_COLUMNS - 1) / CHAIN_COLUMNS;
  for (int gangs = int(std::min<index_t>(wanted, most_side_by_side(strips * BLOCKS))); gangs > 0; --gangs)
    if (has_room<T, Order::forward>(gangs, strips * BLOCKS) && has_room<T, Order::back>(gangs, strips * BLOCKS))
      return gangs * CHAIN_COLUMNS;
  return 0;
}

template <class T>
template <class Send, class Fetch>
index_t Substitution<T>::solve_by_passes(Context& context, const Layout& layout, const T* R, TriangularSolve which,
                                         index_t m, Send&& send, Fetch&& fetch) {
  const index_t most = columns(m, layout.strips());
  const cudaStream_t stream = context.stream();
  if (most == 0) return 0;
  try {
    Substitution chain(context, int(most), layout.strips(), R, layout.ld);
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
    if (error.code() != ErrorCode::out_of_memory) throw;  // cuBLAS takes less
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
Substitution<T>::Substitution(Context& context, int columns, int strips, const T* R, index_t ld)
    : gangs_(columns / CHAIN_COLUMNS), strips_(strips), ranks_(int(context.devices().size())), R_(R), ld_(ld),
      dmemory_(context.pool(), ints_at() + (int_count() + 1) / 2) {}

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
    s.handed = dmemory_.data() + handed_at() + i * column * LDB;
    s.transforms = dmemory_.data() + transforms_at() + index_t(i) * blocks * BlockTransform<CHAIN_COLUMNS>::stride;
    s.inverses = dmemory_.data() + inverses_at();
    s.links = dmemory_.data() + links_at();
    s.inverted = ints + inverted_at;
    s.linked = ints + linked_at;
    s.device_ranks = ranks_;
    s.flags = ints + flags_at + i * s.flag_words(blocks);
    assign_roles(s, gangs_, blocks);
  }
  const int kept = inverted_ ? linked_at : 0;
  check(cudaMemsetAsync(ints + kept, 0, sizeof(int) * int_count() - sizeof(int) * kept, stream), "clear the flags");
  SegmentLaunch<substitute<T, order>>(gangs_ * (gangs.of[0].solvers + gangs.of[0].advancers), stream)
      .start("start a substitution", gangs);
  collect_solutions<<<dim3(unsigned(blocks), unsigned(gangs_)), 256, 0, stream>>>(gangs);
  check(cudaGetLastError(), "collect solutions");
  inverted_ = true;
}

template class Substitution<float>;
template class Substitution<double>;

}  // namespace gpucholmod::cuda
