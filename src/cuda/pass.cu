#include "cuda/pass.h"

#include <algorithm>

#include "base/factor_io.h"
#include "cuda/roles.cuh"

namespace gpucholmod::cuda {

int current_device() {
  int device = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  return device;
}

int attribute(cudaDeviceAttr which) {
  int value = 0;
  check(cudaDeviceGetAttribute(&value, which, current_device()), "ask about the device");
  return value;
}

template <class T>
index_t failing_pivot(const block_columns::PassOutcome& done, index_t column) {
  const index_t row = column + done.pivot;
  if (done.stop == block_columns::too_small) throw vanished(row, done.entry, double(std::numeric_limits<T>::min()));
  if (done.stop == block_columns::too_large) throw overflow(row, row);
  return done.pivot < 0 ? -1 : row;
}
template index_t failing_pivot<double>(const block_columns::PassOutcome&, index_t);
template index_t failing_pivot<float>(const block_columns::PassOutcome&, index_t);

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

namespace {

using block_columns::PassInts;
using block_columns::Segment;

template <int K, class T, class A>
void launch_segment(const SegmentOf<T, A>& s, PassInts ints, int turn, cudaStream_t stream) {
  const int blocks = s.solvers + s.finishers + s.here(s.advancers + s.workers_within + s.workers);
  using WithSides = typename SegmentOf<T, A>::WithSides;
  if (s.last_columns || s.diagonal)
    SegmentLaunch<modify_segment<T, K, A, WithSides>>(blocks, stream)
        .start("start a segment", s.with_sides(), ints, turn);
  else SegmentLaunch<modify_segment<T, K, A>>(blocks, stream).start("start a segment", s, ints, turn);
}

template <int K, class T, class A>
void start_segment(SegmentOf<T, A> s, PassInts ints, int turn, Part part, cudaStream_t stream) {
  assign_roles<K, T, A>(s, part);
  launch_segment<K, T, A>(s, ints, turn, stream);
}

/// Starts Householder steps for all row blocks, a launch each, and one launch more, as every launch brings the diagonal
/// block of the row block before to its place.
template <class T, int K>
void start_steps(const Segment<T>& s, PassInts ints, cudaStream_t stream) {
  for (int b = 0; b <= s.end; ++b) {
    const int count = b < s.end ? block_columns::RejectedBlock<Segment<T>, K, DeviceTeam>::count(s.blocks, b) : 1;
    take_steps<T, K><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, b, ints);
    check(cudaGetLastError(), "start a row block by Householder steps");
  }
}

/// Repeats on the panel the Householder steps of row block b, which lies above the panel.
template <int K, class T, class A>
void start_repeating(const SegmentOf<T, A>& s, int b, PassInts ints, cudaStream_t stream) {
  const int count = block_columns::RejectedBlock<SegmentOf<T, A>, K, DeviceTeam>::count(s.blocks, b);
  repeat_steps<T, K, A><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, b, ints);
  check(cudaGetLastError(), "repeat steps");
}

/// Returns segment s with pointers to A's: an address that is i doubles into the memory of a pass in s becomes one that
/// is i A's into that memory.
template <class A, class T>
SegmentOf<T, A> in_words(const Segment<T>& s, double* memory) {
  if constexpr (std::is_same_v<A, double>) {
    return s;
  } else {
    const auto at = [=](double* p) { return reinterpret_cast<A*>(memory) + (p - memory); };
    SegmentOf<T, A> words{};
    static_cast<block_columns::SegmentRange&>(words) = s;
    static_cast<block_columns::SegmentSigns<A>&>(words) = {A(s.sigma), A(s.sigma2), A(s.bound), s.scaling};
    static_cast<block_columns::SegmentFactor<T>&>(words) = s;
    static_cast<block_columns::SegmentMemory<A>&>(words) = {
        at(s.V),          at(s.left_V), s.ldv,      at(s.V_outside), at(s.inverses), at(s.links),
        at(s.transforms), at(s.handed), s.inverted, s.linked,        nullptr};
    words.device_ranks = s.device_ranks;
    words.device_rank = s.device_rank;
    return words;  // assign_roles() and start_on_ranks() set the rest, for each launch
  }
}

}  // namespace

template <class T>
Way way_of(index_t k, index_t removed, int panel_strips, bool whole, const Task& task, const DeviceGroup* devices) {
  constexpr int narrowest = block_columns::CHAIN_COLUMNS;
  const int blocks = panel_strips * block_columns::BLOCKS, parts = devices ? devices->side_by_side() : 1;
  const int widest = block_columns::widest_pass(k, removed);
  if (task.launch == Launch::stepwise || task.algorithm == Algorithm::householder) return {Launch::stepwise, widest};
  for (int columns = widest; columns >= narrowest; columns /= 2)
    if (has_room<T>(columns, blocks, whole, parts)) return {Launch::persistent, columns};
  if (task.launch == Launch::automatic) return {Launch::stepwise, widest};
  throw Error(ErrorCode::backend_unavailable,
              "this method needs a GPU of compute capability 8.0 or later, with enough multiprocessors",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}
template Way way_of<float>(index_t, index_t, int, bool, const Task&, const DeviceGroup*);
template Way way_of<double>(index_t, index_t, int, bool, const Task&, const DeviceGroup*);

namespace {

/// Holds the size and the offsets of the memory on a rank but the first, in doubles: V at the start, V while it is
/// updated, and transforms.
struct SizeOnOthers {
  index_t V_outside, transforms, words;

  explicit SizeOnOthers(const block_columns::SegmentSize& size)
      : V_outside(size.transforms()), transforms(2 * V_outside) {
    const int blocks = size.strips * block_columns::BLOCKS;
    words = transforms + blocks * block_columns::with_width(size.columns, [](auto K) {
                         return index_t(block_columns::BlockTransform<decltype(K)::value>::stride);
                       });
  }
};

}  // namespace

template <class T>
Pass<T>::Pass(Pool& pool, Launch launch, const block_columns::SegmentSize& size,
              const block_columns::PassColumns& columns, block_columns::Scaling scaling, DeviceGroup* devices,
              int strip)
    : launch_(launch),
      single_(launch != Launch::stepwise &&
              with_arithmetic<T>([](auto arithmetic) { return std::is_same_v<decltype(arithmetic), float>; })),
      size_(size), columns_(columns), scaling_(scaling), dmemory_(pool, size.words()),
      on_(devices ? devices->ranks() : 1), strip_(strip),
      devices_(devices && launch != Launch::stepwise &&
                       fits_on<T>(*devices, size.columns, size.strips * block_columns::BLOCKS)
                   ? devices
                   : nullptr) {
  if (devices_) reserve(*devices_, size);
}

void reserve(DeviceGroup& devices, const block_columns::SegmentSize& size) {
  devices.reserve(sizeof(double) * SizeOnOthers(size).words,
               Segment<double>::flag_words(size.strips * block_columns::BLOCKS));
}

/// Copies V to the other ranks: in place, the thread blocks that update within the window read from their rank's memory
/// the V that other thread blocks of the rank have left there.
template <class T>
template <int K, class A>
void Pass<T>::start_on_ranks(int turn, cudaStream_t stream) const {
  SegmentOf<T, A> s = in_words<A>(panel_, memory());
  assign_roles<K, T, A>(s, Part::all, *devices_);
  const SizeOnOthers at(size_);
  s.others = devices_->others();
  s.transforms_at = at.transforms;
  devices_->each_other(stream, [&](int rank, cudaStream_t own) {
    SegmentOf<T, A> other = s;
    const auto [memory, flags] = devices_->of(rank);
    other.device_rank = strips_of_rank(rank);
    other.solvers = other.finishers = 0;
    other.V = reinterpret_cast<A*>(memory);
    other.V_outside = reinterpret_cast<A*>(memory + at.V_outside);
    other.transforms = reinterpret_cast<A*>(memory + at.transforms);
    other.first_flags = ints().flags_of(turn, s.blocks);
    other.flags = flags;
    check(cudaMemcpyAsync(other.V, s.V, sizeof(A) * K * s.ldv, cudaMemcpyDefault, own),
          "copy columns to another device");
    launch_segment<K, T, A>(other, ints(), turn, own);
    // Clears the flags before anything is sent to this rank again.
    check(cudaMemsetAsync(flags, 0, sizeof(int) * s.flag_words(s.blocks), own), "clear the flags of a rank");
  });
  launch_segment<K, T, A>(s, ints(), turn, stream);
  devices_->join(stream);
}

template <class T>
template <class F>
void Pass<T>::with_words(F&& f) const {
  block_columns::with_width(size_.columns, [&](auto width) {
    if constexpr (std::is_same_v<T, float> && has_single)
      if (single_) return f(width, float());
    f(width, double());
  });
}

template <class T>
block_columns::Segment<T> Pass<T>::placed(int first, int end, int above, index_t transform, const T* R, T* out,
                                          index_t ld) const {
  using namespace block_columns;
  Segment<T> s{};
  s.blocks = s.end = (end - first) * BLOCKS;
  s.top = -above * BLOCKS;
  s.sigma = columns_.sigma();
  s.sigma2 = columns_.sigma2();
  s.bound = s.sigma > 0 ? largest_update : least_downdate;
  s.scaling = scaling_;
  s.R = R;
  s.out = out;
  s.ld = ld;
  s.V = s.left_V = memory() + index_t(first) * STRIP;
  s.ldv = index_t(size_.strips) * STRIP;
  s.V_outside = memory() + size_.V_outside();
  s.inverses = memory() + size_.inverses();
  s.links = memory() + size_.links();
  s.handed = memory() + size_.handed();
  s.inverted = ints().at + PassInts::inverted;
  s.linked = ints().at + PassInts::linked;
  s.device_ranks = on_;
  s.device_rank = strips_of_rank(0);
  with_width(size_.columns, [&](auto K) {
    s.transforms = memory() + size_.transforms() + (transform - s.top) * BlockTransform<decltype(K)::value>::stride;
  });
  return s;
}

template <class T>
void Pass<T>::begin(int from, const Pass* before, int turn, cudaStream_t stream) const {
  begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, from, before ? before->ints() : PassInts{}, turn,
                                      Pieces{looks(), int(pieces_ * columns_.count), block_columns::largest_plain<T>});
  check(cudaGetLastError(), "begin with a panel");
}

template <class T>
void Pass<T>::close(const Segment<T>& segment, int turn, cudaStream_t stream) const {
  if (by_steps()) return;  // H is I
  with_words([&](auto K, auto words) { close<decltype(K)::value, decltype(words)>(segment, turn, stream); });
}

template <class T>
template <int K, class A>
void Pass<T>::close(const Segment<T>& segment, int turn, cudaStream_t stream) const {
  close_segment<T, K, A><<<1, DeviceTeam::THREADS, 0, stream>>>(in_words<A>(segment, memory()), ints(), turn);
  check(cudaGetLastError(), "close a segment");
}

template <class T>
void Pass<T>::repeat(const Segment<T>& panel, const Turns& turns, Last last, cudaStream_t stream) const {
  with_words([&](auto width, auto words) {
    constexpr int K = decltype(width)::value;
    using A = decltype(words);
    if (by_steps())
      for (int b = panel.top; b < 0; ++b) start_repeating<K, T, A>(in_words<A>(panel, memory()), b, ints(), stream);
    if (by_steps() || panel.top == 0) return;
    for (std::size_t i = 0; i < turns.size(); ++i) {
      Segment<T> done = panel;
      done.first = turns[i].first + done.top;
      if (turns[i].steps) start_repeating<K, T, A>(in_words<A>(done, memory()), done.first - 1, ints(), stream);
      const bool is_last = i + 1 == turns.size();
      if (is_last && last == Last::open) break;
      done.end = is_last ? 0 : turns[i + 1].first - turns[i + 1].steps + done.top;
      if (done.end <= done.first) continue;
      if (is_last && last == Last::to_close) close<K, A>(done, -1, stream);
      start_segment<K, T, A>(in_words<A>(done, memory()), ints(), -1, Part::again, stream);
    }
  });
}

template <class T>
void Pass<T>::start_turn(int turn, cudaStream_t stream) const {
  with_words([&](auto K, auto words) { start_turn<decltype(K)::value, decltype(words)>(turn, stream); });
}

template <class T>
template <int K, class A>
void Pass<T>::start_turn(int turn, cudaStream_t stream) const {
  if (by_steps()) return start_steps<T, K>(panel_, ints(), stream);
  const SegmentOf<T, A> s = in_words<A>(panel_, memory());
  if (turn > 0) {
    const int count = block_columns::RejectedBlock<SegmentOf<T, A>, K, DeviceTeam>::count(s.blocks, 0);
    begin_turn<T, K, A><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, ints(), turn);
    check(cudaGetLastError(), "begin a turn");
  }
  if (devices_) return start_on_ranks<K, A>(turn, stream);
  start_segment<K, T, A>(s, ints(), turn, Part::all, stream);
}

template <class T>
void Pass<T>::fetch_outcome(void* to, cudaStream_t stream) const {
  // The looks at V lie just before the ints, and are fetched with them.
  const std::size_t bytes = sizeof(int) * std::size_t(PassInts::outcome_words(panel_.blocks)),
                    looks_bytes = pieces_ > 0 ? look_room : 0;
  check(cudaMemcpyAsync(static_cast<char*>(to) + look_room - looks_bytes,
                        reinterpret_cast<char*>(ints().at) - looks_bytes, bytes + looks_bytes, cudaMemcpyDeviceToHost,
                        stream),
        "fetch what became of a pass");
}

template <class T>
std::optional<block_columns::PassOutcome> Pass<T>::outcome(void* fetched, int turn) {
  const PassInts host{reinterpret_cast<int*>(static_cast<char*>(fetched) + look_room)};
  if (by_steps()) {
    const block_columns::PassState& state = host.pass_state();
    return block_columns::PassOutcome{state.stop ? state.pivot : -1, panel_.end, 0, 0, 1,
                                      block_columns::Stop(state.stop), state.get_entry()};
  }
  const auto done = block_columns::outcome(host, turn, panel_.blocks);
  if (!done) {
    const block_columns::Progress next = host.behind(turn, panel_.blocks);
    turns_.push_back({next.first - panel_.top, next.steps});
  }
  return done;
}

template class Pass<float>;
template class Pass<double>;

}  // namespace gpucholmod::cuda
