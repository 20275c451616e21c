#include <algorithm>
#include <vector>

#include "base/sizes.h"
#include "cpu/kernels.h"
#include "cuda/batch_prepared.h"
#include "cuda/batch_storage.cuh"
#include "cuda/large_batch.h"

namespace gpucholmod::cuda {
namespace {

/// A thread for each column; members beyond are factors of their own.
constexpr index_t most_order = 1024;

/// Columns of V in a pass, V having k columns.
index_t columns_of_pass(index_t n, index_t k) { return k <= 1 ? 1 : k <= 4 || n > most_columns<16> ? 4 : 16; }

/// What is done with a batch, and to it.
template <class T>
class Batch : public BatchStorage<T> {
  using Base = BatchStorage<T>;

 public:
  using Base::Base;
  using Base::bytes;
  using Base::device_name;
  using Base::precision;

  std::unique_ptr<HeldBatch> copy() const override { return duplicate(); }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    if (n_ * b_ * m == 0) return;
    constexpr int columns = 8;
    const Session session(context_);
    const PoolBuffer<double> dB(context_.pool(), n_ * m * b_);
    check(cudaMemcpyAsync(dB.data(), B, dB.bytes(), cudaMemcpyHostToDevice, stream()), "send right-hand sides");
    const BatchSolve<T> what{n_, m, Numbers<T>::of(dR_.data()), dB.data()};
    solve_batch<T, columns><<<blocks(), team(), 0, stream()>>>(what, b_, which != TriangularSolve::back,
                                                               which != TriangularSolve::forward);
    check(cudaGetLastError(), "start to solve");
    fetch(dB.data(), n_ * m * b_, B);
  }

  /// Updates whose results are in range are done in place at once: they cannot fail. All else by way of a second batch.
  Work modify(const double* V, const BatchTask& task, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              const Poll& poll, std::atomic<bool>& begun) override {
    pivots.assign(b_, -1);
    Work work;
    work.device = device_name();
    if (made) made->reset();
    if (n_ * b_ == 0 || (task.k == 0 && !task.scale)) {
      if (made) *made = duplicate();
      return work;
    }
    poll(0);
    const Session session(context_);
    if (modify_at_once(V, task, made, pivots, begun, work)) return work;
    std::vector<double> bounds(b_);
    fetch(dbounds_.data(), b_, bounds.data());
    const Prepared prepared = prepare<T>(V, n_, b_, bounds, task);
    const bool direct = !made && !prepared.removes && prepared.in_range;
    const index_t V_words = n_ * task.k * (task.common_V ? 1 : b_);
    work.device_bytes = 8.0 * double(V_words + prepared.by.size() + 3 * prepared.factors.size()) +
                        4.0 * double(prepared.order.size() + prepared.added.size() + b_) + (direct ? 1 : 2) * bytes();
    require_allowed(work.device_bytes - bytes(), task.device_memory);
    std::unique_ptr<Batch> other = direct ? nullptr : std::make_unique<Batch>(context_, n_, b_);
    std::vector<int> told(b_, -1);
    const OnDevice<double> dV(context_, V, V_words), dby(context_, prepared.by);
    const OnDevice<int> dorder(context_, prepared.order), dadded(context_, prepared.added), dpivots(context_, told);
    const OnDevice<Factors> dfactors(context_, prepared.factors);
    if (direct) begun = true;
    context_.marks().begin.record(stream());
    T* const out = direct ? dR_.data() : other->dR_.data();
    BatchPass<T> pass = pass_of(dV.data(), dorder.data(), dby.data(), dadded.data());
    pass.order_stride = prepared.added.size() > 1 ? task.k : 0;
    pass.added_stride = prepared.added.size() > 1 ? 1 : 0;
    pass.factors = dfactors.data();
    pass.may_overflow = !prepared.in_range;
    pass.pivots = dpivots.data();
    run(pass, task, out);
    context_.marks().end.record(stream());
    fetch(dpivots.data(), b_, told.data());
    work.seconds = context_.marks().end.seconds_since(context_.marks().begin);
    read(told, out, V, task, pivots);
    const bool any = std::any_of(told.begin(), told.end(), [](int pivot) { return pivot >= 0; });
    if (any && task.all_or_none) return work;
    Batch& changed = direct ? *this : *other;
    for (index_t m = 0; m < b_; ++m)
      if (told[m] < 0) bounds[m] = prepared.bounds[m];
    changed.put_bounds(bounds);
    session.finish();
    replace(std::move(other), made);
    return work;
  }

 private:
  /// Numbers on the device while a call runs; nothing, and null, where there are none.
  template <class S>
  class OnDevice {
   public:
    OnDevice(Context& context, const S* numbers, index_t count) : memory_(context.workspace(), count) {
      if (count > 0)
        check(cudaMemcpyAsync(memory_.data(), numbers, memory_.bytes(), cudaMemcpyHostToDevice, context.stream()),
              "send numbers");
    }
    OnDevice(Context& context, const std::vector<S>& numbers)
        : OnDevice(context, numbers.data(), index_t(numbers.size())) {}
    S* data() const { return memory_.data(); }

   private:
    PoolBuffer<S> memory_;
  };

  /// Modifies members of which none needs care, by one pair of weights for all, though nobody has looked at V yet: the
  /// device does so first. Returns false, and has changed nothing, where that is not so.
  bool modify_at_once(const double* V, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                      std::vector<index_t>& pivots, std::atomic<bool>& begun, Work& work) {
    if (task.k == 0 || task.scale || (task.weights && !task.common_weights)) return false;
    cpu::ColumnOrder order;
    order.find(task, 0);
    const bool direct = !made && order.added == task.k, natural = !task.weights;
    const index_t V_words = n_ * task.k * (task.common_V ? 1 : b_);
    work.device_bytes =
        8.0 * double(V_words + b_) + 4.0 * double(b_ + 3) + (natural ? 0 : 12.0 * double(task.k)) +
        (direct ? 1 : 2) * bytes();
    if (work.device_bytes - bytes() > task.device_memory) return false;  // what takes less is left to say so
    std::unique_ptr<Batch> other = direct ? nullptr : std::make_unique<Batch>(context_, n_, b_);
    const PoolBuffer<double> dV(context_.workspace(), V_words);
    const std::vector<int> columns(order.column.begin(), order.column.end());
    const OnDevice<int> dorder(context_, columns.data(), natural ? 0 : task.k);
    const OnDevice<double> dby(context_, order.by.data(), natural ? 0 : task.k);
    PoolBuffer<double> dafter(context_.pool(), b_);
    // Whether a member needs care, and has failed; how many columns are added; pivots.
    const PoolBuffer<int> dtold(context_.workspace(), 3 + b_);
    const int begin[] = {0, 0, int(order.added)};
    check(cudaMemcpyAsync(dtold.data(), begin, sizeof begin, cudaMemcpyHostToDevice, stream()), "send numbers");
    check(cudaMemsetAsync(dtold.data() + 3, 0xff, sizeof(int) * b_, stream()), "clear pivots");
    send_staged(V, V_words, dV.data(), context_);
    look(pass_of(dV.data(), dorder.data(), dby.data(), dtold.data() + 2), task, double(order.added), dafter.data(),
         dtold.data());
    if (direct) begun = true;
    context_.marks().begin.record(stream());
    T* const out = direct ? dR_.data() : other->dR_.data();
    BatchPass<T> pass = pass_of(dV.data(), dorder.data(), dby.data(), dtold.data() + 2);
    pass.pivots = dtold.data() + 3;
    pass.needs_care = dtold.data();
    pass.any = dtold.data() + 1;
    run(pass, task, out);
    context_.marks().end.record(stream());
    int told[2];
    fetch(dtold.data(), 2, told);
    begun = begun && !told[0];
    if (told[0]) return false;
    work.seconds = context_.marks().end.seconds_since(context_.marks().begin);
    if (told[1]) {
      std::vector<int> of_members(b_);
      fetch(dtold.data() + 3, b_, of_members.data());
      read(of_members, out, V, task, pivots);
      if (task.all_or_none) return true;
      keep_bounds(of_members, dafter);
    }
    (direct ? *this : *other).dbounds_.swap(dafter);
    replace(std::move(other), made);
    return true;
  }

  /// Queues a look at V of every member, as `pass` has it: BatchLook.
  void look(const BatchPass<T>& pass, const BatchTask& task, double added, double* after, int* needs_care) const {
    BatchLook look{};
    look.V = pass.V;
    look.V_stride = task.common_V ? 0 : n_ * task.k;
    look.n = n_;
    look.count = b_;
    look.k = int(task.k);
    look.order = pass.order;
    look.by = pass.by;
    look.added = added;
    look.least = 0x1p-400;
    look.most = 0x1p400;
    look.top = double(std::numeric_limits<T>::max());
    look.bounds = dbounds_.data();
    look.after = after;
    look.needs_care = needs_care;
    const unsigned blocks = unsigned((b_ + warps_of_block - 1) / warps_of_block);
    look_at_members<<<blocks, dim3(WARP, warps_of_block), 0, stream()>>>(look);
    check(cudaGetLastError(), "start to look at members");
  }

  /// Members that have failed keep their bounds.
  void keep_bounds(const std::vector<int>& told, const PoolBuffer<double>& dafter) const {
    std::vector<double> before(b_), after(b_);
    fetch(dbounds_.data(), b_, before.data());
    fetch(dafter.data(), b_, after.data());
    for (index_t m = 0; m < b_; ++m)
      if (told[m] >= 0) after[m] = before[m];
    check(cudaMemcpyAsync(dafter.data(), after.data(), dafter.bytes(), cudaMemcpyHostToDevice, stream()),
          "send numbers");
    check(cudaStreamSynchronize(stream()), "send numbers");
  }

  static BatchPass<T> pass_of(const double* V, const int* order, const double* by, const int* added) {
    BatchPass<T> pass{};
    pass.V = V;
    pass.order = order;
    pass.by = by;
    pass.added = added;
    return pass;
  }

  /// Queues the passes of a modification from this batch to `out`; of `pass` only what they have in common is given.
  void run(BatchPass<T> pass, const BatchTask& task, T* out) const {
    const index_t columns = columns_of_pass(n_, task.k);
    pass.n = n_;
    pass.out = Numbers<T>::of(out);
    pass.origin = Numbers<T>::of(dR_.data());
    pass.V_stride = task.common_V ? 0 : n_ * task.k;
    for (index_t first = 0; first < std::max<index_t>(task.k, 1); first += columns) {
      pass.R = Numbers<T>::of(first == 0 ? dR_.data() : out);
      pass.first = int(first);
      pass.columns = int(std::min(columns, task.k - first));
      pass.last = first + columns >= task.k;
      if (columns == 1) launch<1>(pass);
      else if (columns == 4) launch<4>(pass);
      else launch<16>(pass);
    }
  }

  /// Reads what passes have told of the members of `out`. Throws the error of the first that is lost.
  void read(const std::vector<int>& told, const T* out, const double* V, const BatchTask& task,
            std::vector<index_t>& pivots) const {
    const bool several = columns_of_pass(n_, task.k) < task.k;
    for (index_t m = 0; m < b_; ++m) {
      if (told[m] == -1) continue;
      cpu::for_member(m, [&] {
        if (told[m] < -1) throw lost(told[m], out + m * words_of(n_));
        pivots[m] = several ? pivot_of_all_columns(m, told[m], V, task) : told[m];
      });
    }
  }

  /// What is in `other`, where there is one, becomes *made, or, where `made` is null, this batch.
  void replace(std::unique_ptr<Batch> other, std::unique_ptr<HeldBatch>* made) {
    if (made) *made = std::move(other);
    else if (other) this->swap(*other);
  }

  std::unique_ptr<Batch> duplicate() const {
    const Session session(context_);
    auto made = std::make_unique<Batch>(context_, n_, b_);
    this->copy_to(*made);
    session.finish();
    return made;
  }

  dim3 team() const { return n_ <= WARP ? dim3(WARP, warps_of_block) : dim3(unsigned((n_ + WARP - 1) / WARP * WARP)); }
  unsigned blocks() const { return unsigned(n_ <= WARP ? (b_ + warps_of_block - 1) / warps_of_block : b_); }

  template <int K>
  void launch(const BatchPass<T>& pass) const {
    const unsigned quarters = unsigned((b_ + warps_of_block - 1) / warps_of_block);
    const dim3 warps(WARP, warps_of_block);
    if (n_ <= WARP) modify_by_warps<T, K, 1><<<quarters, warps, 0, stream()>>>(pass, b_);
    else if (n_ <= 4 * WARP) modify_by_warps<T, K, 4><<<quarters, warps, 0, stream()>>>(pass, b_);
    else modify_by_blocks<T, K><<<unsigned(b_), team(), 0, stream()>>>(pass);
    check(cudaGetLastError(), "start the modification of a batch");
  }

  /// Where a pass of some of the columns has failed at `pivot`: the first pivot that fails of all of them, which may be
  /// an earlier one.
  index_t pivot_of_all_columns(index_t m, index_t pivot, const double* V, const BatchTask& task) const {
    std::vector<T> words(words_of(n_));
    fetch(at(m), words_of(n_), words.data());
    std::vector<double> R(n_ * n_);
    unpack(words.data(), Uplo::upper, R.data());
    cpu::ColumnOrder order;
    order.find(task, m);
    const index_t found = cpu::modify_alone(R, n_, order.taken(task.V_of(V, n_, m), n_), task.k, task.k - order.added,
                                            1, precision(), cpu::resolve(task.instructions));
    return found >= 0 ? std::min(found, pivot) : pivot;
  }

  /// What too_large_at() and vanished_at() stand for, where a pass has left `member`.
  Error lost(int told, const T* member) const {
    const bool large = (told + 2) % 2 == 0;
    const int j = large ? -(told + 2) / 2 : -(told + 3) / 2;
    if (large)
      return Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
                   {{"col", double(j + 1)}});
    T value = 0;
    fetch(member + row_of(n_, j) + j, 1, &value);
    return is_normal(value) ? too_small_to_compute(j, double(value))
                            : vanished(j, double(value), double(std::numeric_limits<T>::min()));
  }


  using Base::at;
  using Base::b_;
  using Base::context_;
  using Base::dR_;
  using Base::dbounds_;
  using Base::fetch;
  using Base::n_;
  using Base::stream;
  using Base::unpack;
};

template <class T>
std::unique_ptr<DeviceBatch> upload_as(const double* R, index_t n, index_t b, Uplo uplo, int device) {
  Context& context = Context::of(device);
  const Session session(context);
  auto made = std::make_unique<Batch<T>>(context, n, b);
  made->send(R, uplo);
  return made;
}

std::unique_ptr<DeviceBatch> upload_large(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                          int device) {
  LargeBatch::Members members;
  for (index_t m = 0; m < b; ++m)
    cpu::for_member(m, [&] { members.push_back(upload(R + m * n * n, n, uplo, precision, n, device)); });
  const auto& first = static_cast<const DeviceFactor&>(*members[0]);
  const int where = first.device();
  std::string name = first.device_name();
  return std::make_unique<LargeBatch>(std::move(members), where, std::move(name));
}

}  // namespace

std::unique_ptr<DeviceBatch> upload_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                          int device) {
  bytes_of(n, n, 64);  // as cpu::hold_batch()
  if (n > most_order && b > 0) return upload_large(R, n, b, uplo, precision, device);
  return precision == Precision::single ? upload_as<float>(R, n, b, uplo, device)
                                        : upload_as<double>(R, n, b, uplo, device);
}

}  // namespace gpucholmod::cuda
