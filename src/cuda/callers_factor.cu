#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "base/check_column.h"
#include "cuda/callers_memory.h"
#include "cuda/kernels/too_large.cuh"
#include "cuda/modification.cuh"

namespace gpucholmod::cuda {
namespace {

/// The least entry of the diagonal of a factor that is modified without scaling, by V of plain numbers; the largest
/// entry is the inverse.
template <class T>
constexpr double least_entry = sizeof(T) == sizeof(float) ? 0x1p-40 : 0x1p-300;

/// Returns whether kernels can read and write A in place, 16 bytes at a time.
template <class T>
bool is_aligned(MatrixView<const T> A) {
  return reinterpret_cast<std::uintptr_t>(A.data) % 16 == 0 && sizeof(T) * std::size_t(A.ld) % 16 == 0;
}

/// Runs a modification of a factor in the caller's memory.
template <class T>
class CallersModification {
 public:
  CallersModification(Context& context, const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task,
                      const Poll& poll)
      : context_(context), R_(factor.R), out_(factor.out), V_(V), layout_(Layout::of_callers(task.n, R_.ld)),
        task_(task),
        modification_(context, layout_, {V.given(), task.n, task.k, task.n}, 0, task.scale, task,
                      PartsApart<T>::bytes(layout_), poll),
        parts_(context, R_, layout_, least_entry<T>, 1 / least_entry<T>) {
    modification_.multiply(V.scaled());
    modification_.look();
    modification_.lie_apart(parts_);
  }

  /// Queues the modification of R into `out`, another matrix, and the kernel that sets *verdict.
  void queue(int* verdict) {
    modification_.queue(R_.data, out_.data,
                        [&](const block_columns::PassEnd& pass) { parts_.give(out_, pass, verdict); });
  }

  /// Runs the modification, and returns whether it is done. If not, nothing has changed but `out`, if it is another
  /// matrix.
  bool run(bool trusted, std::atomic<bool>& begun) {
    parts_.look();
    try {
      if (R_.data != out_.data) return into(out_) && (parts_.give(out_), true);
      if (double(sizeof(T)) * double(layout_.words()) <= double(tuning::stream_kept)) return by_way_of_second();
      return can_be_done(trusted) && in_place(begun);
    } catch (const Error& error) {
      if (begun || (error.code() != ErrorCode::overflow && error.code() != ErrorCode::bad_diagonal &&
                    error.code() != ErrorCode::out_of_memory))
        throw;
      return false;
    }
  }
  Work finish() { return modification_.finish(-1); }

 private:
  bool is_plain() const { return modification_.largest() <= block_columns::largest_plain<T>; }
  bool into(MatrixView<T> to) {
    return modification_.run(R_.data, to.data, task_.n) < 0 && is_plain() && parts_.is_moderate();
  }
  /// Modifies R by way of memory for a second factor: a pass from one matrix to another and the copy back take less
  /// time than a pass in place. Returns whether the modification is done.
  bool by_way_of_second() {
    const auto second = modification_.with_room(double(sizeof(T)) * double(layout_.words()), [&] {
      return std::make_unique<PoolBuffer<T>>(context_.workspace(), layout_.words());
    });
    const index_t n = task_.n, whole = n < layout_.padded ? layout_.padded - block_columns::STRIP : n;
    if (!into({second->data(), n, n, R_.ld})) return false;
    if (whole > 0) {
      const unsigned tiles = unsigned((whole + convert_tile - 1) / convert_tile);
      give_triangle<false, T><<<dim3(tiles, tiles), dim3(convert_tile, convert_rows), 0, context_.stream()>>>(
          {second->data(), whole, whole, R_.ld}, {out_.data, whole, whole, out_.ld});
      check(cudaGetLastError(), "give a factor");
    }
    parts_.give(out_);
    return true;
  }
  /// Returns whether R can be modified in place. Looks at its diagonal; then tests a downdate by a dry run, or, for an
  /// update, looks at all of R unless R is trusted, and at all of V if there are several passes. Throws not_finite.
  bool can_be_done(bool trusted) {
    check(cudaStreamSynchronize(context_.stream()), "look at the diagonal of a factor");
    if (!parts_.is_moderate() || (task_.removed > 0 && modification_.passes() > 1)) return false;
    if (task_.removed > 0) return modification_.run(R_.data, nullptr, task_.n) < 0 && is_plain();
    return (modification_.passes() == 1 || V_is_plain()) && (trusted || all_finite());
  }
  /// Returns whether all numbers of V are plain. With several passes that has to be known before the first pass writes
  /// to R, as a later pass looks at its columns of V only then.
  bool V_is_plain() const {
    constexpr double most = block_columns::largest_plain<T>;
    if (device_of(V_.given()) != context_.device()) return largest_in_V<T>(V_.view(task_.n, task_.k)) <= most;
    index_t columns = V_.scaled() ? 0 : task_.k;
    double by = V_.scaled() ? 0 : 1;
    for (const ScaledColumn& column : V_.scaled() ? *V_.scaled() : std::vector<ScaledColumn>()) {
      columns = std::max(columns, column.from + 1);
      by = std::max(by, std::abs(column.by));
    }
    const cudaStream_t stream = context_.stream();
    const PoolBuffer<int> dfound(context_.pool(), 1);
    check(cudaMemsetAsync(dfound.data(), 0, dfound.bytes(), stream), "prepare to look at V");
    const index_t count = task_.n * columns;
    const unsigned blocks = unsigned(std::min<index_t>((count + look_threads - 1) / look_threads, 1024));
    find_beyond<<<blocks, look_threads, 0, stream>>>(
        V_.given(), count, std::min(most / by, std::numeric_limits<double>::max()), dfound.data());
    check(cudaGetLastError(), "start to look at V");
    int found = 0;
    check(cudaMemcpyAsync(&found, dfound.data(), sizeof found, cudaMemcpyDeviceToHost, stream), "look at V");
    check(cudaStreamSynchronize(stream), "look at V");
    return found == 0;
  }
  bool all_finite() const {
    const PoolBuffer<unsigned long long> dlargest(context_.pool(), 1);
    check(cudaMemsetAsync(dlargest.data(), 0, dlargest.bytes(), context_.stream()), "prepare to look at a factor");
    const unsigned tiles = unsigned((task_.n + convert_tile - 1) / convert_tile);
    take_triangle<false, T><<<dim3(tiles, tiles), dim3(convert_tile, convert_rows), 0, context_.stream()>>>(
        R_, {nullptr, task_.n, task_.n, task_.n}, dlargest.data());
    check(cudaGetLastError(), "look at a factor");
    double largest = 0;
    check(cudaMemcpyAsync(&largest, dlargest.data(), sizeof largest, cudaMemcpyDeviceToHost, context_.stream()),
          "fetch the largest entry of a factor");
    check(cudaStreamSynchronize(context_.stream()), "look at a factor");
    return std::isfinite(largest);
  }
  bool in_place(std::atomic<bool>& begun) {
    const index_t pivot = modification_.run(out_.data, out_.data, task_.n, &begun);
    if (!is_plain()) {
      if (modification_.passes() > 1)
        throw Error(ErrorCode::bad_argument, "'V' has changed while it was read", {{"argument", std::string("V")}});
      return begun = false;  // a pass whose V is not plain is a no-op
    }
    if (pivot >= 0) throw overflow(pivot, pivot);
    parts_.give(out_);
    return true;
  }

  Context& context_;
  MatrixView<const T> R_;
  MatrixView<T> out_;
  const ColumnsOfV& V_;
  Layout layout_;
  const Task& task_;
  Modification<T> modification_;
  PartsApart<T> parts_;
};

/// Returns whether kernels can work on the factor and on the result in place. Parts that lie apart (parts_apart.cuh)
/// have the factor's leading dimension, which therefore must not be much larger than the order.
template <class T>
bool can_stay(const CallersFactor<T>& factor, const Task& task) {
  const bool fits = is_aligned(factor.R) && is_aligned<T>(factor.out) && factor.out.ld == factor.R.ld;
  return fits && factor.R.ld <= 4 * task.n + 4096 && task.n > 0 && task.k > 0 && task.right.m() == 0;
}

}  // namespace

template <class T>
std::optional<Work> modify_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task,
                                       const Poll& poll, std::atomic<bool>& begun) {
  if (!can_stay(factor, task)) return {};
  Context& context = Context::of(factor.device);
  const Session session(context);
  CallersModification<T> modification(context, factor, V, task, poll);
  if (!modification.run(factor.trusted, begun)) return {};
  session.finish();
  return modification.finish();
}

template <class T>
bool queue_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task, const Queued& how) {
  Context& context = Context::of(factor.device);
  const CurrentDevice current(factor.device);
  const auto join = [&] {  // waits for the conversion of V too, and for work queued before a failure
    Event& done = context.marks().done;
    done.record(context.stream());
    check(cudaStreamWaitEvent(static_cast<cudaStream_t>(how.stream), done, 0), "order two streams");
  };
  context.workspace().set_trims(false);
  const Finally trims([&] { context.workspace().set_trims(true); });
  try {
    const int strips = block_columns::strips_of(task.n);
    const bool can_be = can_stay(factor, task) && factor.R.data != factor.out.data &&
                        way_of<T>(task.k, task.removed, strips, true, task).launch == Launch::persistent;
    if (can_be) CallersModification<T>(context, factor, V, task, unwatched).queue(how.verdict);
    join();
    return can_be;
  } catch (...) {
    join();
    throw;
  }
}

template bool queue_where_it_is(const CallersFactor<float>&, const ColumnsOfV&, const Task&, const Queued&);
template bool queue_where_it_is(const CallersFactor<double>&, const ColumnsOfV&, const Task&, const Queued&);
template std::optional<Work> modify_where_it_is(const CallersFactor<float>&, const ColumnsOfV&, const Task&,
                                                const Poll&, std::atomic<bool>&);
template std::optional<Work> modify_where_it_is(const CallersFactor<double>&, const ColumnsOfV&, const Task&,
                                                const Poll&, std::atomic<bool>&);

}  // namespace gpucholmod::cuda
