#include "cuda/engine.h"

#include <algorithm>

#include "base/factor_io.h"
#include "cuda/roles.cuh"
#include "cuda/kernels/layout.cuh"

namespace gpucholmod::cuda {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&value, which, device), "ask about the device");
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

/// Turns that are queued before it is known whether they are needed: one that is not costs its launches.
constexpr int most_expected = 4;

template <int K, class T, class A>
void launch_segment(const SegmentOf<T, A>& s, PassInts ints, int turn, cudaStream_t stream) {
  const int blocks = s.solvers + s.finishers + s.here(s.advancers + s.workers_within + s.workers);
  SegmentLaunch<modify_segment<T, K, A>>(blocks, stream).start("start a segment", s, ints, turn);
}

template <int K, class T, class A>
void start_segment(SegmentOf<T, A> s, PassInts ints, int turn, Part part, cudaStream_t stream) {
  assign_roles<K, T, A>(s, part);
  launch_segment<K, T, A>(s, ints, turn, stream);
}

/// All row blocks by steps, a launch each; one more, as every launch brings the diagonal block of the one before to its
/// place.
template <class T, int K>
void start_steps(const Segment<T>& s, PassInts ints, cudaStream_t stream) {
  for (int b = 0; b <= s.blocks; ++b) {
    const int count = b < s.blocks ? block_columns::RefusedBlock<Segment<T>, K, DeviceTeam>::count(s.blocks, b) : 1;
    take_steps<T, K><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, b, ints);
    check(cudaGetLastError(), "start a row block by Householder steps");
  }
}

/// Row block b above the panel, on the panel.
template <int K, class T, class A>
void start_repeating(const SegmentOf<T, A>& s, int b, PassInts ints, cudaStream_t stream) {
  const int count = block_columns::RefusedBlock<SegmentOf<T, A>, K, DeviceTeam>::count(s.blocks, b);
  repeat_steps<T, K, A><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, b, ints);
  check(cudaGetLastError(), "repeat steps");
}

/// The segment of a pass whose pointers say in doubles where everything is in its memory, in words of A's.
template <class A, class T>
SegmentOf<T, A> in_words(const Segment<T>& s, double* memory) {
  if constexpr (std::is_same_v<A, double>) {
    return s;
  } else {
    const auto at = [=](double* p) { return reinterpret_cast<A*>(memory) + (p - memory); };
    SegmentOf<T, A> words{};
    words.first = s.first;
    words.end = s.end;
    words.blocks = s.blocks;
    words.top = s.top;
    words.sigma = A(s.sigma);
    words.sigma2 = A(s.sigma2);
    words.bound = A(s.bound);
    words.scaling = s.scaling;
    words.R = s.R;
    words.out = s.out;
    words.ld = s.ld;
    words.V = at(s.V);
    words.left_V = at(s.left_V);
    words.ldv = s.ldv;
    words.inverses = at(s.inverses);
    words.links = at(s.links);
    words.messages = at(s.messages);
    words.handed = at(s.handed);
    words.inverted = s.inverted;
    words.linked = s.linked;
    words.owners = s.owners;
    words.owner = s.owner;
    return words;  // what a launch decides comes later: assign_roles(), start_on_owners()
  }
}

/// to <- from (m x count), in the scalar of `to`.
template <class S, class U>
void convert_columns(const S* from, index_t from_ld, U* to, index_t to_ld, index_t m, index_t count,
                     cudaStream_t stream) {
  const dim3 grid(unsigned((m + convert_tile - 1) / convert_tile), unsigned((count + convert_tile - 1) / convert_tile));
  convert<false><<<grid, dim3(convert_tile, convert_rows), 0, stream>>>(MatrixView<const S>{from, m, count, from_ld},
                                                                       MatrixView<U>{to, m, count, to_ld});
  check(cudaGetLastError(), "convert columns");
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
  if (devices && fits_on<T>(*devices, narrowest, blocks)) return {Launch::persistent, narrowest};
  if (task.launch == Launch::automatic) return {Launch::stepwise, widest};
  throw Error(ErrorCode::backend_unavailable,
              "this method needs a GPU of compute capability 8.0 or later, and room for its columns in shared memory",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}
template Way way_of<float>(index_t, index_t, int, bool, const Task&, const DeviceGroup*);
template Way way_of<double>(index_t, index_t, int, bool, const Task&, const DeviceGroup*);

namespace {

/// Memory on an owner but the first, in doubles: V and messages.
struct SizeOnOthers {
  index_t messages, words;

  explicit SizeOnOthers(const block_columns::SegmentSize& size) : messages(size.messages()) {
    const int blocks = size.strips * block_columns::BLOCKS;
    words = messages + blocks * block_columns::with_width(size.columns, [](auto K) {
                         return index_t(block_columns::Message<decltype(K)::value>::stride);
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
      on_(devices ? devices->owners() : 1), strip_(strip),
      devices_(devices && launch != Launch::stepwise && fits_on<T>(*devices, size.columns, blocks()) ? devices
                                                                                                     : nullptr) {
  if (devices_) reserve(*devices_, size);
}

template <class T>
void Pass<T>::reserve(DeviceGroup& devices, const block_columns::SegmentSize& size) {
  devices.reserve(sizeof(double) * SizeOnOthers(size).words,
               Segment<double>::flag_words(size.strips * block_columns::BLOCKS));
}

/// V goes to the others by a copy: in place, those that rewrite within the window have from their own memory what
/// others there have left.
template <class T>
template <int K, class A>
void Pass<T>::start_on_owners(int turn, cudaStream_t stream) const {
  SegmentOf<T, A> s = in_words<A>(panel_, memory());
  assign_roles<K, T, A>(s, Part::all, *devices_);
  const SizeOnOthers at(size_);
  s.others = devices_->others();
  s.messages_at = at.messages;
  devices_->each_other(stream, [&](int owner, cudaStream_t own) {
    SegmentOf<T, A> other = s;
    const auto [memory, flags] = devices_->of(owner);
    other.owner = strips_of_owner(owner);
    other.solvers = other.finishers = 0;
    other.V = reinterpret_cast<A*>(memory);
    other.messages = reinterpret_cast<A*>(memory + at.messages);
    other.first_flags = ints().flags_of(turn, s.blocks);
    other.flags = flags;
    check(cudaMemcpyAsync(other.V, s.V, sizeof(A) * K * s.ldv, cudaMemcpyDefault, own),
          "copy columns to another device");
    launch_segment<K, T, A>(other, ints(), turn, own);
    // Before anything is sent there again.
    check(cudaMemsetAsync(flags, 0, sizeof(int) * s.flag_words(s.blocks), own), "clear the flags of an owner");
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

/// Floats take the first half of the memory; in the second, which holds nothing else, there is room for V in double.
template <class T>
void Pass<T>::clear_columns(index_t m, index_t rows, cudaStream_t stream) const {
  if (m < rows || columns_.count < size_.columns)
    check(cudaMemsetAsync(memory(), 0, (single_ ? sizeof(float) : sizeof(double)) * rows * size_.columns, stream),
          "clear columns");
}

template <class T>
void Pass<T>::send(const double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const {
  double* const to = single_ ? memory() + size_.ints() / 2 : memory();
  columns_.each([&](index_t own, index_t from, index_t count) {
    const index_t at = own * rows + first;
    check(cudaMemcpy2DAsync(to + at, sizeof(double) * rows, V + from * ldv, sizeof(double) * ldv, sizeof(double) * m,
                            count, cudaMemcpyDefault, stream),
          "send columns");
    if (single_) convert_columns(to + at, rows, reinterpret_cast<float*>(memory()) + at, rows, m, count, stream);
  });
}

template <class T>
void Pass<T>::fetch(double* V, index_t ldv, index_t m, index_t rows, index_t first, cudaStream_t stream) const {
  double* const from = single_ ? memory() + size_.ints() / 2 : memory();
  columns_.each([&](index_t own, index_t to, index_t count) {
    const index_t at = own * rows + first;
    if (single_)
      convert_columns(reinterpret_cast<const float*>(memory()) + at, rows, from + at, rows, m, count, stream);
    check(cudaMemcpy2DAsync(V + to * ldv, sizeof(double) * ldv, from + at, sizeof(double) * rows, sizeof(double) * m,
                            count, cudaMemcpyDeviceToHost, stream),
          "fetch columns");
  });
}

template <class T>
void Pass<T>::prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) const {
  const index_t rows = index_t(size_.strips) * block_columns::STRIP;
  clear_columns(n, rows, stream);
  send(V, ldv, n, rows, 0, stream);
}

template <class T>
block_columns::Segment<T> Pass<T>::placed(int first, int end, int above, index_t message, const T* R, T* out,
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
  s.inverses = memory() + size_.inverses();
  s.links = memory() + size_.links();
  s.handed = memory() + size_.handed();
  s.inverted = ints().at + PassInts::inverted;
  s.linked = ints().at + PassInts::linked;
  s.owners = on_;
  s.owner = strips_of_owner(0);
  with_width(size_.columns, [&](auto K) {
    s.messages = memory() + size_.messages() + (message - s.top) * Message<decltype(K)::value>::stride;
  });
  return s;
}

template <class T>
void Pass<T>::place_panel(int first, int end, const T* R, T* out, index_t ld) {
  const index_t above = index_t(first) * block_columns::STRIP;
  panel_ = placed(first, end, first, 0, R + above, out ? out + above : nullptr, ld);
}

template <class T>
void Pass<T>::begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream, const Pass* before) {
  place_panel(first, end, R, out, ld);
  gpucholmod::cuda::begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, turns_.back().first + panel_.top,
                                                         before ? before->ints() : PassInts{});
  check(cudaGetLastError(), "begin with a panel");
  repeat(panel_, turns_, Last::open, stream);
}

template <class T>
void Pass<T>::clear(cudaStream_t stream) const {
  check(
      cudaMemsetAsync(ints().at, 0, sizeof(int) * PassInts::words(size_.panel_strips * block_columns::BLOCKS), stream),
      "clear flags");
}

template <class T>
void Pass<T>::begin_anew(int first, int end, index_t rows, int slot, const T* R, T* out, index_t ld,
                         cudaStream_t stream) {
  panel_ = placed(first, end, 0, first_message(slot), R, out, ld);
  panel_.scaling.rows = rows;
  turns_ = {{0, 0}};
  gpucholmod::cuda::begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, 0, PassInts{});
  check(cudaGetLastError(), "begin with a panel");
}

template <class T>
const typename Pass<T>::Turns& Pass<T>::close(cudaStream_t stream) const {
  if (!by_steps() && turns_.back().first < panel_.end)
    with_words([&](auto K, auto words) {
      auto last = panel_;
      last.first = turns_.back().first;
      close<decltype(K)::value, decltype(words)>(last, stream);
    });
  return turns_;
}

template <class T>
template <int K, class A>
void Pass<T>::close(const Segment<T>& segment, cudaStream_t stream) const {
  close_segment<T, K, A><<<1, DeviceTeam::THREADS, 0, stream>>>(in_words<A>(segment, memory()));
  check(cudaGetLastError(), "close a segment");
}

/// Scalings of row blocks are left out where no turn begins with one; that which closes the last turn stands behind all
/// row blocks.
template <class T>
template <class Copy>
void Pass<T>::each_part(int strips, int slot, const Turns& turns, Copy&& copy) const {
  block_columns::with_width(size_.columns, [&](auto K) {
    using Parts = block_columns::Message<decltype(K)::value>;
    const std::size_t word = single_ ? sizeof(float) : sizeof(double),
                      blocks = std::size_t(strips) * block_columns::BLOCKS;
    char* const at =
        reinterpret_cast<char*>(memory()) + word * std::size_t(size_.messages() + first_message(slot) * Parts::stride);
    copy(at, word * Parts::stride, word * (turns.size() > 1 ? Parts::stride : Parts::words), blocks);
    copy(at + word * blocks * Parts::stride, word * Parts::stride, word * Parts::stride, std::size_t(1));
  });
}

template <class T>
std::size_t Pass<T>::message_bytes(int strips, const Turns& turns) const {
  std::size_t all = 0;
  each_part(strips, 0, turns, [&](char*, std::size_t, std::size_t bytes, std::size_t count) { all += bytes * count; });
  return all;
}

template <class T>
void Pass<T>::fetch_message(char* to, int strips, int slot, const Turns& turns, cudaStream_t stream) const {
  each_part(strips, slot, turns, [&](char* from, std::size_t apart, std::size_t bytes, std::size_t count) {
    check(cudaMemcpy2DAsync(to, bytes, from, apart, bytes, count, cudaMemcpyDeviceToHost, stream), "fetch a message");
    to += bytes * count;
  });
}

template <class T>
void Pass<T>::put_message(const char* from, int strips, int slot, const Turns& turns, cudaStream_t stream) const {
  each_part(strips, slot, turns, [&](char* to, std::size_t apart, std::size_t bytes, std::size_t count) {
    check(cudaMemcpy2DAsync(to, apart, from, bytes, bytes, count, cudaMemcpyHostToDevice, stream), "send a message");
    from += bytes * count;
  });
}

template <class T>
void Pass<T>::follow(const Turns& turns, int strips, int slot, int first, int end, const T* R, T* out, index_t ld,
                     cudaStream_t stream) const {
  if (first < end) repeat(placed(first, end, strips, first_message(slot), R, out, ld), turns, Last::closed, stream);
}

template <class T>
void Pass<T>::send_V(const double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const {
  send(V, ldv, m, index_t(size_.strips) * block_columns::STRIP, first, stream);
}

template <class T>
void Pass<T>::fetch_V(double* V, index_t ldv, index_t m, index_t first, cudaStream_t stream) const {
  fetch(V, ldv, m, index_t(size_.strips) * block_columns::STRIP, first, stream);
}

/// Y takes the place of V, of which nothing is left.
template <class T>
void Pass<T>::carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, cudaStream_t stream) {
  constexpr index_t STRIP = block_columns::STRIP;
  place_panel(size_.strips, size_.strips + 1, z, z, ld);
  panel_.V = panel_.left_V = memory();
  panel_.ldv = STRIP;
  clear_columns(m, STRIP, stream);
  send(Y, ldy, m, STRIP, 0, stream);
  gpucholmod::cuda::begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, 0, PassInts{});
  check(cudaGetLastError(), "begin with right-hand sides");
  repeat(panel_, turns_, Last::to_close, stream);
  fetch(rest, ldy, m, STRIP, 0, stream);
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
      if (is_last && last == Last::to_close) close<K, A>(done, stream);
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
    const int count = block_columns::RefusedBlock<SegmentOf<T, A>, K, DeviceTeam>::count(s.blocks, 0);
    begin_turn<T, K, A><<<unsigned(count), DeviceTeam::THREADS, 0, stream>>>(s, ints(), turn);
    check(cudaGetLastError(), "begin a turn");
  }
  if (devices_) return start_on_owners<K, A>(turn, stream);
  start_segment<K, T, A>(s, ints(), turn, Part::all, stream);
}

template <class T>
void Pass<T>::fetch_outcome(void* to, cudaStream_t stream) const {
  const std::size_t bytes = sizeof(int) * std::size_t(PassInts::outcome_words(panel_.blocks));
  check(cudaMemcpyAsync(to, ints().at, bytes, cudaMemcpyDeviceToHost, stream), "fetch what became of a pass");
}

template <class T>
std::size_t Pass<T>::outcome_bytes() const {
  return sizeof(int) * std::size_t(PassInts::outcome_words(size_.panel_strips * block_columns::BLOCKS));
}

template <class T>
std::optional<block_columns::PassOutcome> Pass<T>::outcome(void* fetched, int turn) {
  const PassInts host{static_cast<int*>(fetched)};
  if (by_steps()) {
    const block_columns::PassState& state = host.pass_state();
    return block_columns::PassOutcome{state.stop ? state.pivot : -1, panel_.blocks, 0, 1,
                                      block_columns::Stop(state.stop), state.get_entry()};
  }
  const auto done = block_columns::outcome(host, turn, panel_.blocks);
  if (!done) {
    const block_columns::Progress next = host.behind(turn, panel_.blocks);
    turns_.push_back({next.first - panel_.top, next.steps});
  }
  return done;
}

template <class T>
block_columns::PassOutcome Pass<T>::run(const T* R, T* out, index_t ld, int& turns, void* staging, Timer& end,
                                               const std::function<void()>& wait, cudaStream_t stream) {
  begin_panel(0, size_.strips, R, out, ld, stream);
  const int expected = by_steps() ? 1 : turns;
  for (int turn = 0;; ++turn) {
    start_turn(turn, stream);
    if (turn + 1 < expected) continue;
    end.record(stream);
    fetch_outcome(staging, stream);
    wait();
    const auto done = outcome(staging, turn);
    if (!done) continue;
    if (!by_steps()) turns = std::min(done->turns, most_expected);
    return *done;
  }
}

template class Pass<float>;
template class Pass<double>;

}  // namespace gpucholmod::cuda
