#include "cuda/segments.h"

#include <algorithm>

#include "cuda/cluster_launch.cuh"
#include "cuda/engine.h"

namespace gpucholmod::cuda {
namespace {

using block_columns::PassState;
using block_columns::Segment;
using block_columns::SegmentState;

/// A row block takes one of them 5 us, with 32 columns 11, and the chain 1; twice as many where nobody else has use for a block.
constexpr int finishers = 8;

/// Row blocks near the diagonal whose columns are advanced ahead of being rewritten; measured: inst/design/segments.md.
constexpr int window = 16;
static_assert(window > block_columns::REACH);

/// ints: PassState, pairs inverted, pairs linked; and what every segment clears: SegmentState, a flag of each kind for every row block.
constexpr int inverted_at = sizeof(PassState) / sizeof(int), linked_at = inverted_at + 1, state_at = inverted_at + 2,
              flags_at = state_at + sizeof(SegmentState) / sizeof(int);

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
void start(Segment<T> s, Part part, cudaStream_t stream) {
  assign_roles<T, K>(s, part);
  const ClusterLaunch<modify_segment<T, K>> launch(s.solvers + s.advancers + s.finishers + s.workers, stream);
  check(cudaLaunchKernelEx(&launch.config, modify_segment<T, K>, s), "start a segment");
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
double SegmentPass<T>::bytes(int columns, int strips) {
  const double blocks = double(strips) * block_columns::BLOCKS;
  const double words = (block_columns::NB + block_columns::LDB) * columns + message_words(columns) + 2 * block_columns::INVERSE;
  return sizeof(double) * blocks * words +
         sizeof(int) * (flags_at + 4 * blocks);
}

template <class T>
SegmentPass<T>::SegmentPass(Pool& pool, int columns, int strips, const Task& task)
    : columns_(columns), strips_(strips), sign_(task.sign), dV_(pool, index_t(strips) * block_columns::STRIP * columns),
      dmessages_(pool, index_t(strips) * block_columns::BLOCKS * message_words(columns)),
      dhanded_(pool, index_t(strips) * block_columns::BLOCKS * block_columns::LDB * columns),
      dinverses_(pool, index_t(strips) * block_columns::BLOCKS * block_columns::INVERSE),
      dlinks_(pool, index_t(strips) * block_columns::BLOCKS * block_columns::INVERSE),
      dints_(pool, flags_at + 4 * index_t(strips) * block_columns::BLOCKS) {}

template <class T>
void SegmentPass<T>::prepare(const double* V, index_t n, index_t k, index_t ldv, cudaStream_t stream) const {
  const index_t padded = index_t(strips_) * block_columns::STRIP;
  if (n < padded || k < columns_) check(cudaMemsetAsync(dV_.data(), 0, dV_.bytes(), stream), "clear V");
  check(cudaMemcpy2DAsync(dV_.data(), sizeof(double) * padded, V, sizeof(double) * ldv, sizeof(double) * n, k, cudaMemcpyHostToDevice,
                          stream), "send V");
}

template <class T>
Segment<T> SegmentPass<T>::segment(const T* R, T* out, index_t ld) const {
  const int blocks = strips_ * block_columns::BLOCKS;
  int* const flags = dints_.data() + flags_at;
  Segment s{};
  s.blocks = blocks;
  s.sigma = sign_ == Sign::update ? 1 : -1;
  s.bound = sign_ == Sign::update ? block_columns::largest_update : block_columns::least_downdate;
  s.R = R;
  s.out = out;
  s.ld = ld;
  s.V = dV_.data();
  s.inverses = dinverses_.data();
  s.messages = dmessages_.data();
  s.handed = dhanded_.data();
  s.links = dlinks_.data();
  s.inverted = dints_.data() + inverted_at;
  s.linked = dints_.data() + linked_at;
  s.has_P = flags;
  s.has_V = flags + blocks;
  s.is_near = flags + 2 * blocks;
  s.complete = flags + 3 * blocks;
  s.state = reinterpret_cast<SegmentState*>(dints_.data() + state_at);
  return s;
}

template <class T>
index_t SegmentPass<T>::run(const T* R, T* out, index_t ld, void* state, Timer& end, const std::function<void()>& wait,
                            cudaStream_t stream) {
  Segment s = segment(R, out, ld);
  const PassState& steps = *static_cast<PassState*>(state);
  const SegmentState& unscaled = *reinterpret_cast<const SegmentState*>(static_cast<int*>(state) + state_at);
  const auto run_segment = [&](int first) {
    // Of the first segment everything is cleared; then the inverses, of R as it was, stay.
    const int kept = first > 0 ? state_at : 0;
    check(cudaMemsetAsync(dints_.data() + kept, 0, dints_.bytes() - sizeof(int) * kept, stream), "clear the flags");
    s.first = first;
    if (first < s.blocks)
      with_columns(columns_, [&](auto K) {
        if (R != out) return start<T, decltype(K)::value>(s, Part::all, stream);
        start<T, decltype(K)::value>(s, Part::chain, stream);
        start<T, decltype(K)::value>(s, Part::rest, stream);
      });
    end.record(stream);
    check(cudaMemcpyAsync(state, dints_.data(), state_bytes, cudaMemcpyDeviceToHost, stream), "fetch what became of a pass");
    wait();
    return block_columns::end_of(unscaled, s.blocks, steps.stop ? steps.pivot - (first - 1) * block_columns::NB : -1);
  };
  done_ = block_columns::by_segments(run_segment, [&](int b) { householder(b, s, stream); });
  return done_.pivot;
}

/// Queues row block b by Householder steps, V having been scaled so that H is I; where it fails, its PassState says so.
template <class T>
void SegmentPass<T>::householder(int b, const Segment& s, cudaStream_t stream) const {
  using namespace block_columns;
  with_columns(columns_, [&](auto K) {
    constexpr int k = decltype(K)::value;
    const int count = RefusedBlock<T, k, DeviceTeam>::count(s.blocks, b);
    take_refused<T, k><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, b, reinterpret_cast<PassState*>(dints_.data()));
    check(cudaGetLastError(), "start a row block by Householder steps");
    if (s.out)
      check(cudaMemcpy2DAsync(s.out + index_t(b) * NB * (s.ld + 1), sizeof(T) * s.ld, s.messages + index_t(b) * Message<k>::stride,
                              sizeof(T) * NB, sizeof(T) * NB, NB, cudaMemcpyDeviceToDevice, stream), "fetch a diagonal block");
  });
}

template <class T>
void SegmentPass<T>::add_to(Work& work) const {
  work.launch = Launch::persistent;
  work.blocks += index_t(strips_) * block_columns::BLOCKS;
  work.fallbacks += done_.fallbacks;
  work.rescalings += done_.rescalings;
}

template class SegmentPass<float>;
template class SegmentPass<double>;

}  // namespace gpucholmod::cuda
