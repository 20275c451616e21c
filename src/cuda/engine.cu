#include "cuda/engine.h"

#include <algorithm>
#include <climits>

#include "cuda/segment_launch.cuh"
#include "cuda/kernels/layout.cuh"

namespace gpucholmod::cuda {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&value, which, device), "ask about the device");
  return value;
}

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

namespace {

using block_columns::PassInts;
using block_columns::Segment;

/// A row block takes one of them 5 us, with 32 columns 11, and the chain 1; twice as many where nobody else has use for a block.
constexpr int finishers = 8;

/// Row blocks near the diagonal whose columns are advanced ahead of being rewritten; measured: inst/design/segments.md.
constexpr int window = 16;
static_assert(window > block_columns::REACH);

/// Blocks of threads that relay messages, on each owner but the first: a message takes one of them some 5 us.
constexpr int relays = 4;
static_assert(relays <= finishers);  // where the first owner has room for these, the others have for those

/// Turns that are queued before it is known whether they are needed: one that is not costs its launches.
constexpr int most_expected = 4;

/// What a launch does of a segment; `again`: what it has done, to a panel to its right.
enum class Part { all, chain, rest, again };

/// Shares the blocks of threads of a launch, `most` of which run at once, out between the roles. False where V does not find room in
/// shared memory.
template <class Card, int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, int most) {
  using namespace block_columns;
  if constexpr (!computes_with<T, A, Card> || !fits<K, Card, A>) return false;
  const int groups = s.blocks * GROUPS;
  const bool with_chain = part == Part::all || part == Part::chain;
  s.solvers = !with_chain ? 0 : K / CHAIN_COLUMNS * Card::cluster;
  s.window = part == Part::all ? window : s.blocks - s.top;
  const int first = s.top < 0 ? 0 : 1 + REACH;  // block column that is advanced
  const int ahead = std::max(0, std::min(s.blocks, 1 + s.window) - first) * GROUPS;  // groups to be advanced at a time
  s.advancers = !with_chain ? 0 : std::min(in_clusters<Card>((ahead + ADVANCE_WARPS - 1) / ADVANCE_WARPS), most - s.solvers);
  if (part == Part::chain) s.advancers = std::max(s.advancers, in_clusters<Card>(4));  // somebody has to invert
  s.finishers = part == Part::chain || part == Part::again ? 0 : finishers;
  const int left = most - s.solvers - s.advancers - s.finishers;
  int here = part == Part::chain ? 0 : std::min(left, in_clusters<Card>(groups));
  if (s.several()) here = std::min(here / WORKERS_OF_STRIP, (s.blocks / BLOCKS + s.owners - 1) / s.owners) * WORKERS_OF_STRIP;
  s.workers = s.several() ? here * s.owners : here;
  if (K > 16 && s.finishers > 0 && left - here >= finishers) s.finishers += finishers;
  if ((part == Part::all && ahead > 0 && s.advancers <= 0) || (part != Part::chain && s.workers <= 0)) return false;
  if (s.solvers + s.advancers + s.finishers + here > most) return false;
  int words = fixed_words<K, Card, A>;
  if (s.advancers > 0) words = std::max(words, AdvanceMemory<K, Card, A>::words(s, Share{0, s.advancers, groups}));
  if (s.workers > 0) words = std::max(words, WorkerMemory<K, Card, A>::template words<SegmentOf<T, A>>(Share{0, s.workers, groups}));
  return words * int(sizeof(A)) <= Card::shared;
}

/// The same for the current device, and whether it has kernels.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part) {
  return SegmentLaunch<modify_segment<T, K, A>>::if_it_runs(
      [&](auto card, int most) { return assign_roles<typename decltype(card)::template With<A>, K, T, A>(s, part, most); });
}

/// The same for the first of several owners, the current one, where all have room for as many.
template <int K, class T, class A>
bool assign_roles(SegmentOf<T, A>& s, Part part, const Crew& crew) {
  using Launch = SegmentLaunch<modify_segment<T, K, A>>;
  s.owners = crew.owners();
  int least = INT_MAX;
  for (int i = 0; i < crew.owners(); ++i) {
    const CurrentDevice current(crew.device(i));
    if (!Launch::if_it_runs([&](auto, int most) { return least = std::min(least, most); })) return false;
  }
  return Launch::if_it_runs([&](auto card, int) {
    using Card = typename decltype(card)::template With<A>;
    const int unit = in_clusters<Card>(1);
    return assign_roles<Card, K, T, A>(s, part, least / crew.side_by_side() / unit * unit);
  });
}

template <int K, class T, class A>
void launch_segment(const SegmentOf<T, A>& s, PassInts ints, int turn, cudaStream_t stream) {
  const int blocks = s.solvers + s.advancers + s.finishers + s.relays + s.workers_here();
  SegmentLaunch<modify_segment<T, K, A>>(blocks, stream).start("start a segment", s, ints, turn);
}

/// f(A()), A being what segments of a factor of T's are computed with on the current device.
template <class T, class F>
auto with_arithmetic(F&& f) {
  if constexpr (std::is_same_v<T, double> || !has_single) {
    return f(double());
  } else {
    return SegmentLaunch<modify_segment<T, block_columns::CHAIN_COLUMNS, double>>::with_its_card(
        [&](auto card) { return f(typename decltype(card)::template Arithmetic<T>()); });
  }
}

template <int K, class T, class A>
void start_segment(SegmentOf<T, A> s, PassInts ints, int turn, Part part, cudaStream_t stream) {
  assign_roles<K, T, A>(s, part);
  launch_segment<K, T, A>(s, ints, turn, stream);
}

/// All row blocks by steps, a launch each; one more, as every launch brings the diagonal block of the one before to its place.
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
    return {s.first, s.end, s.blocks, s.top, A(s.sigma), A(s.later), A(s.bound), s.scaling, s.R, s.out, s.ld, at(s.V), s.ldv, at(s.inverses),
            at(s.links), at(s.messages), at(s.handed), s.inverted, s.linked, s.flags, s.window, s.solvers, s.advancers, s.finishers, s.workers};
  }
}

/// to <- from (m x count), in the scalar of `to`.
template <class S, class U>
void convert_columns(const S* from, index_t from_ld, U* to, index_t to_ld, index_t m, index_t count, cudaStream_t stream) {
  const dim3 grid(unsigned((m + convert_tile - 1) / convert_tile), unsigned((count + convert_tile - 1) / convert_tile));
  convert<false><<<grid, dim3(convert_tile, convert_rows), 0, stream>>>(MatrixView<const S>{from, m, count, from_ld},
                                                                       MatrixView<U>{to, m, count, to_ld});
  check(cudaGetLastError(), "convert columns");
}

/// Whether V of a whole factor, or of a panel, finds room in shared memory, and there are kernels.
template <class T>
bool has_room(int columns, int blocks, bool whole) {
  return with_arithmetic<T>([&](auto arithmetic) {
    using A = decltype(arithmetic);
    return block_columns::with_width(columns, [&](auto width) {
      constexpr int K = decltype(width)::value;
      SegmentOf<T, A> s{};
      s.blocks = s.end = blocks;
      s.top = whole ? 0 : -1;
      return (!whole || assign_roles<K, T, A>(s, Part::all)) && assign_roles<K, T, A>(s, Part::chain) && assign_roles<K, T, A>(s, Part::rest);
    });
  });
}

}  // namespace

template <class T>
Way way_of(index_t k, index_t removed, int panel_strips, bool whole, const Task& task) {
  const int widest = block_columns::widest_pass(k, removed);
  if (task.launch == Launch::stepwise || task.algorithm == Algorithm::householder) return {Launch::stepwise, widest};
  for (int columns = widest; columns >= 8; columns /= 2)
    if (has_room<T>(columns, panel_strips * block_columns::BLOCKS, whole)) return {Launch::persistent, columns};
  if (task.launch == Launch::automatic) return {Launch::stepwise, widest};
  throw Error(ErrorCode::backend_unavailable, "this method needs a GPU of compute capability 8.0 or later, and room for its columns in shared memory",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}
template Way way_of<float>(index_t, index_t, int, bool, const Task&);
template Way way_of<double>(index_t, index_t, int, bool, const Task&);

namespace {

/// Whether several owners have room for a pass; one does it alone otherwise, in the same way.
template <class T>
bool fits_on(const Crew& crew, const block_columns::SegmentSize& size) {
  return block_columns::with_width(size.columns, [&](auto width) {
    constexpr int K = decltype(width)::value;
    return with_arithmetic<T>([&](auto arithmetic) {
      using A = decltype(arithmetic);
      SegmentOf<T, A> s{};
      s.blocks = s.end = size.strips * block_columns::BLOCKS;
      return assign_roles<K, T, A>(s, Part::all, crew) && assign_roles<K, T, A>(s, Part::rest, crew);
    });
  });
}

/// On an owner but the first: messages, and behind them its own flags.
index_t messages_on_others(const block_columns::SegmentSize& size) {
  const index_t stride = block_columns::with_width(size.columns, [](auto K) { return index_t(block_columns::Message<decltype(K)::value>::stride); });
  return index_t(size.strips) * block_columns::BLOCKS * stride;
}

}  // namespace

template <class T>
Pass<T>::Pass(Pool& pool, Launch launch, const block_columns::SegmentSize& size, const block_columns::PassColumns& columns,
              block_columns::Scaling scaling, Crew* crew)
    : launch_(launch),
      single_(launch != Launch::stepwise && with_arithmetic<T>([](auto arithmetic) { return std::is_same_v<decltype(arithmetic), float>; })),
      size_(size), columns_(columns), scaling_(scaling), dmemory_(pool, size.words()),
      crew_(crew && launch != Launch::stepwise && fits_on<T>(*crew, size) ? crew : nullptr) {
  if (crew_) crew_->reserve(bytes_on_others(size));
}

template <class T>
std::size_t Pass<T>::bytes_on_others(const block_columns::SegmentSize& size) {
  return sizeof(double) * messages_on_others(size) + sizeof(int) * Segment<T>::own_flag_words(size.strips * block_columns::BLOCKS);
}

template <class T>
template <int K, class A>
void Pass<T>::start_on_owners(bool all, int turn, cudaStream_t stream) const {
  SegmentOf<T, A> s = in_words<A>(panel_, memory());
  assign_roles<K, T, A>(s, all ? Part::all : Part::rest, *crew_);
  crew_->each_other(stream, [&](int owner, cudaStream_t own) {
    SegmentOf<T, A> other = s;
    double* const messages = static_cast<double*>(crew_->memory(owner));
    other.owner = owner;
    other.solvers = other.advancers = other.finishers = 0;
    other.relays = relays;
    other.messages = reinterpret_cast<A*>(messages);
    other.first_messages = s.messages;
    other.own_flags = reinterpret_cast<int*>(messages + messages_on_others(size_));
    check(cudaMemsetAsync(other.own_flags, 0, sizeof(int) * s.own_flag_words(s.blocks), own), "clear the flags of an owner");
    launch_segment<K, T, A>(other, ints(), turn, own);
  });
  launch_segment<K, T, A>(s, ints(), turn, stream);
  crew_->join(stream);
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
void Pass<T>::send(const double* V, index_t ldv, index_t m, index_t rows, cudaStream_t stream) const {
  double* const to = single_ ? memory() + size_.ints() / 2 : memory();
  if (m < rows || columns_.count < size_.columns)
    check(cudaMemsetAsync(memory(), 0, (single_ ? sizeof(float) : sizeof(double)) * rows * size_.columns, stream), "clear columns");
  columns_.each([&](index_t own, index_t from, index_t count) {
    check(cudaMemcpy2DAsync(to + own * rows, sizeof(double) * rows, V + from * ldv, sizeof(double) * ldv, sizeof(double) * m, count,
                            cudaMemcpyDefault, stream), "send columns");
    if (single_) convert_columns(to + own * rows, rows, reinterpret_cast<float*>(memory()) + own * rows, rows, m, count, stream);
  });
}

template <class T>
void Pass<T>::fetch(double* V, index_t ldv, index_t m, index_t rows, cudaStream_t stream) const {
  double* const from = single_ ? memory() + size_.ints() / 2 : memory();
  columns_.each([&](index_t own, index_t to, index_t count) {
    if (single_) convert_columns(reinterpret_cast<const float*>(memory()) + own * rows, rows, from + own * rows, rows, m, count, stream);
    check(cudaMemcpy2DAsync(V + to * ldv, sizeof(double) * ldv, from + own * rows, sizeof(double) * rows, sizeof(double) * m, count,
                            cudaMemcpyDeviceToHost, stream), "fetch columns");
  });
}

template <class T>
void Pass<T>::prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) const {
  send(V, ldv, n, index_t(size_.strips) * block_columns::STRIP, stream);
}

template <class T>
void Pass<T>::place_panel(int first, int end, const T* R, T* out, index_t ld) {
  using namespace block_columns;
  const index_t above = index_t(first) * STRIP;
  Segment<T>& s = panel_ = {};
  s.blocks = s.end = (end - first) * BLOCKS;
  s.top = -first * BLOCKS;
  s.sigma = columns_.sigma();
  s.later = columns_.later();
  s.bound = s.sigma > 0 ? largest_update : least_downdate;
  s.scaling = scaling_;
  s.R = R + above;
  s.out = out ? out + above : nullptr;
  s.ld = ld;
  s.V = memory() + above;
  s.ldv = index_t(size_.strips) * STRIP;
  s.inverses = memory() + size_.inverses();
  s.links = memory() + size_.links();
  s.handed = memory() + size_.handed();
  s.inverted = ints().at + PassInts::inverted;
  s.linked = ints().at + PassInts::linked;
  with_width(size_.columns, [&](auto K) { s.messages = memory() + size_.messages() - s.top * Message<decltype(K)::value>::stride; });
}

template <class T>
void Pass<T>::begin_panel(int first, int end, const T* R, T* out, index_t ld, cudaStream_t stream, const Pass* before) {
  place_panel(first, end, R, out, ld);
  gpucholmod::cuda::begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, turns_.back().first + panel_.top,
                                                         before ? before->ints() : PassInts{});
  check(cudaGetLastError(), "begin with a panel");
  with_words([&](auto K, auto words) { repeat_turns<decltype(K)::value, decltype(words)>(stream, false); });
}

/// Y takes the place of V, of which nothing is left.
template <class T>
void Pass<T>::carry(T* z, index_t ld, const double* Y, double* rest, index_t ldy, index_t m, cudaStream_t stream) {
  constexpr index_t STRIP = block_columns::STRIP;
  place_panel(size_.strips, size_.strips + 1, z, z, ld);
  panel_.V = memory();
  panel_.ldv = STRIP;
  send(Y, ldy, m, STRIP, stream);
  gpucholmod::cuda::begin_panel<<<1, 1024, 0, stream>>>(ints(), panel_.blocks, 0, PassInts{});
  check(cudaGetLastError(), "begin with right-hand sides");
  with_words([&](auto K, auto words) { repeat_turns<decltype(K)::value, decltype(words)>(stream, true); });
  fetch(rest, ldy, m, STRIP, stream);
}

/// To the row blocks above the panel; `all`: the last turn is over too.
template <class T>
template <int K, class A>
void Pass<T>::repeat_turns(cudaStream_t stream, bool all) const {
  const SegmentOf<T, A> panel = in_words<A>(panel_, memory());
  if (by_steps())
    for (int b = panel_.top; b < 0; ++b) start_repeating<K, T, A>(panel, b, ints(), stream);
  if (by_steps() || panel_.top == 0) return;
  for (std::size_t i = 0; i < turns_.size(); ++i) {
    SegmentOf<T, A> done = panel;
    done.first = turns_[i].first + done.top;
    if (turns_[i].steps) start_repeating<K, T, A>(done, done.first - 1, ints(), stream);
    const bool last = i + 1 == turns_.size();
    if (last && !all) break;
    done.end = last ? 0 : turns_[i + 1].first - turns_[i + 1].steps + done.top;
    if (done.end <= done.first) continue;
    if (last) {
      close_segment<T, K, A><<<1, DeviceTeam::THREADS, 0, stream>>>(done);
      check(cudaGetLastError(), "close a segment");
    }
    start_segment<K, T, A>(done, ints(), -1, Part::again, stream);
  }
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
  const bool at_once = s.R != s.out;
  if (!at_once) start_segment<K, T, A>(s, ints(), turn, Part::chain, stream);
  if (crew_) return start_on_owners<K, A>(at_once, turn, stream);
  start_segment<K, T, A>(s, ints(), turn, at_once ? Part::all : Part::rest, stream);
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
  if (by_steps()) return block_columns::PassOutcome{host.pass_state().stop ? host.pass_state().pivot : -1, panel_.blocks};
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
