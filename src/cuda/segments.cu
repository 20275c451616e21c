#include "cuda/segments.h"

#include <algorithm>

#include "cuda/cluster_launch.cuh"
#include "cuda/engine.h"

namespace gpucholmod::cuda {
namespace {

using block_columns::PassInts;
using block_columns::Segment;

/// A row block takes one of them 5 us, with 32 columns 11, and the chain 1; twice as many where nobody else has use for a block.
constexpr int finishers = 8;

/// Row blocks near the diagonal whose columns are advanced ahead of being rewritten; measured: inst/design/segments.md.
constexpr int window = 16;
static_assert(window > block_columns::REACH);

/// Turns that are queued before it is known whether they are needed: one that is not costs its launches.
constexpr int most_expected = 4;

/// What a launch does of a segment.
enum class Part { all, chain, rest };

/// Shares the blocks of threads out between the roles of a launch. False where V does not find room in shared memory.
template <class T, int K>
bool assign_roles(Segment<T>& s, Part part) {
  using namespace block_columns;
  const int most = ClusterLaunch<modify_segment<T, K>>::most_blocks(), groups = s.blocks * GROUPS;
  s.solvers = part == Part::rest ? 0 : K / CHAIN_COLUMNS * CLUSTER;
  s.window = part == Part::all ? window : s.blocks;
  const int ahead = std::max(0, std::min(s.blocks - 1, s.window) - REACH) * GROUPS;  // groups to be advanced at a time
  s.advancers = part == Part::rest ? 0 : std::min(in_clusters((ahead + ADVANCE_WARPS - 1) / ADVANCE_WARPS), most - s.solvers);
  if (part == Part::chain) s.advancers = std::max(s.advancers, CLUSTER);  // somebody has to invert
  s.finishers = part == Part::chain ? 0 : finishers;
  const int left = most - s.solvers - s.advancers - s.finishers;
  s.workers = part == Part::chain ? 0 : std::min(left, in_clusters(groups));
  if (K > 16 && part != Part::chain && left - s.workers >= finishers) s.finishers += finishers;
  if ((part == Part::all && ahead > 0 && s.advancers <= 0) || (part != Part::chain && s.workers <= 0)) return false;
  int words = fixed_words<T, K>;
  if (s.advancers > 0) words = std::max(words, AdvanceMemory<K>::words(s, Share{0, s.advancers, groups}));
  if (s.workers > 0) words = std::max(words, WorkerMemory<K>::template words<T>(Share{0, s.workers, groups}));
  return words * int(sizeof(double)) <= segment_shared;
}

template <class T, int K>
void start_segment(Segment<T> s, PassInts ints, int turn, Part part, cudaStream_t stream) {
  assign_roles<T, K>(s, part);
  const ClusterLaunch<modify_segment<T, K>> launch(s.solvers + s.advancers + s.finishers + s.workers, stream);
  check(cudaLaunchKernelEx(&launch.config, modify_segment<T, K>, s, ints, turn), "start a segment");
}

template <class T, int K>
void start_turn(const Segment<T>& s, PassInts ints, int turn, cudaStream_t stream) {
  if (turn > 0) {
    const int count = block_columns::RefusedBlock<T, K, DeviceTeam>::count(s.blocks, 0);
    begin_turn<T, K><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, ints, turn);
    check(cudaGetLastError(), "begin a turn");
  }
  if (s.R != s.out) return start_segment<T, K>(s, ints, turn, Part::all, stream);
  start_segment<T, K>(s, ints, turn, Part::chain, stream);
  start_segment<T, K>(s, ints, turn, Part::rest, stream);
}

/// f(std::integral_constant<int, K>()) for K = 8, 16, 32.
template <class F>
decltype(auto) with_columns(int columns, F&& f) {
  switch (columns) {
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    default: return f(std::integral_constant<int, 32>());
  }
}

index_t message_words(int columns) {
  return with_columns(columns, [](auto K) { return index_t(block_columns::Transform<decltype(K)::value>::words); });
}

}  // namespace

template <class T>
int SegmentPass<T>::columns(index_t k, int strips, const Task& task) {
  if (task.launch == Launch::stepwise || task.algorithm == Algorithm::householder) return 0;
  for (int columns = std::min(block_columns::padded_width(k), 32); columns >= 8; columns /= 2)
    if (with_columns(columns, [&](auto K) {
          Segment s{};
          s.blocks = strips * block_columns::BLOCKS;
          return assign_roles<T, decltype(K)::value>(s, Part::all) && assign_roles<T, decltype(K)::value>(s, Part::chain);
        }))
      return columns;
  return 0;
}

template <class T>
SegmentPass<T>::Words::Words(int columns, int strips) {
  const index_t blocks = index_t(strips) * block_columns::BLOCKS;
  messages = blocks * block_columns::NB * columns;
  handed = messages + blocks * message_words(columns);
  inverses = handed + blocks * block_columns::LDB * columns;
  links = inverses + blocks * block_columns::INVERSE;
  ints = links + blocks * block_columns::INVERSE;
  all = ints + (PassInts::words(int(blocks)) + 1) / 2;
}

template <class T>
SegmentPass<T>::SegmentPass(Pool& pool, int columns, int strips, const Task& task)
    : columns_(columns), strips_(strips), sign_(task.sign), words_(columns, strips), dmemory_(pool, words_.all) {}

template <class T>
void SegmentPass<T>::prepare(const double* V, index_t n, index_t k, index_t ldv, cudaStream_t stream) const {
  const index_t padded = index_t(strips_) * block_columns::STRIP;
  if (n < padded || k < columns_) check(cudaMemsetAsync(dmemory_.data(), 0, sizeof(double) * padded * columns_, stream), "clear V");
  check(cudaMemcpy2DAsync(dmemory_.data(), sizeof(double) * padded, V, sizeof(double) * ldv, sizeof(double) * n, k, cudaMemcpyHostToDevice,
                          stream), "send V");
}

template <class T>
Segment<T> SegmentPass<T>::segment(const T* R, T* out, index_t ld) const {
  double* const memory = dmemory_.data();
  const PassInts ints = this->ints();
  Segment s{};
  s.blocks = strips_ * block_columns::BLOCKS;
  s.sigma = sign_ == Sign::update ? 1 : -1;
  s.bound = sign_ == Sign::update ? block_columns::largest_update : block_columns::least_downdate;
  s.R = R;
  s.out = out;
  s.ld = ld;
  s.V = memory;
  s.inverses = memory + words_.inverses;
  s.messages = memory + words_.messages;
  s.handed = memory + words_.handed;
  s.links = memory + words_.links;
  s.inverted = ints.at + PassInts::inverted;
  s.linked = ints.at + PassInts::linked;
  return s;
}

template <class T>
block_columns::PassOutcome SegmentPass<T>::run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                               const std::function<void()>& wait, cudaStream_t stream) const {
  const Segment s = segment(R, out, ld);
  const PassInts device = ints(), host{static_cast<int*>(staging)};
  check(cudaMemsetAsync(device.at, 0, sizeof(int) * PassInts::words(s.blocks), stream), "clear the flags");
  const int expected = turns;
  for (int turn = 0;; ++turn) {
    with_columns(columns_, [&](auto K) { start_turn<T, decltype(K)::value>(s, device, turn, stream); });
    if (turn + 1 < expected) continue;
    end.record(stream);
    check(cudaMemcpyAsync(host.at, device.at, outcome_bytes(strips_), cudaMemcpyDeviceToHost, stream), "fetch what became of a pass");
    wait();
    const auto done = block_columns::outcome(host, turn, s.blocks);
    if (!done) continue;
    turns = std::min(done->turns, most_expected);
    return *done;
  }
}

template class SegmentPass<float>;
template class SegmentPass<double>;

}  // namespace gpucholmod::cuda
