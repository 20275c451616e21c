#include <algorithm>
#include <optional>
#include <vector>

#include "base/reshaped_sides.h"
#include "base/sizes.h"
#include "cuda/batch_moved.cuh"
#include "cuda/batch_passes.cuh"
#include "cuda/batch_prepared.h"
#include "cuda/batch_reshaped.cuh"
#include "cuda/batch_sides.cuh"
#include "cuda/batch_solve.cuh"
#include "cuda/large_batch.h"

namespace gpucholmod::cuda {
namespace {

/// Implements the operations of HeldBatch and DeviceBatch that the base classes leave open.
template <class T>
class Batch : public BatchPasses<T> {
  using Base = BatchPasses<T>;

 public:
  using Base::Base;
  using Base::bytes;
  using Base::device_name;

  std::unique_ptr<HeldBatch> copy() const override { return duplicate(); }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    if (n_ * b_ * m == 0) return;
    const Session session(context_);
    const PoolBuffer<double> dB(context_.pool(), n_ * m * b_);
    check(cudaMemcpyAsync(dB.data(), B, dB.bytes(), cudaMemcpyHostToDevice, stream()), "send right-hand sides");
    queue_solve(dB.data(), m, which);
    fetch(dB.data(), n_ * m * b_, B);
  }

  void solve_there(TriangularSolve which, double* dB, index_t m) const override {
    if (n_ * b_ * m == 0) return;
    const Session session(context_);
    queue_solve(dB, m, which);
    session.finish();
  }

  /// Modifies the batch in place if `made` is null, no column is taken away, no member is scaled, and the results are
  /// in range: no member can then fail. Otherwise writes the result to a second batch.
  Work modify(const GivenColumns<double>& V, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
              std::vector<index_t>& pivots, const Poll& poll, std::atomic<bool>& begun) override {
    pivots.assign(b_, -1);
    Work work;
    work.device = device_name();
    if (made) made->reset();
    const index_t sides = task.sides.m;
    if (n_ * b_ == 0 || (task.k == 0 && !task.scale)) {
      for (index_t m = 0; m < b_; ++m) cpu::pass_through(task, n_, m);
      if (made) *made = duplicate();
      return work;
    }
    if (sides > 0) require_wide_member(n_ + sides);
    if (is_ragged()) require_zero_beyond(orders_, n_, V.host(), task);
    poll(0);
    const Session session(context_);
    if (modify_at_once(V, task, made, pivots, begun, work)) return work;
    std::vector<double> bounds(b_);
    fetch(dbounds_.data(), b_, bounds.data());
    const Prepared prepared = prepare<T>(V.host(), n_, b_, bounds, task);
    const bool direct = !made && !prepared.removes && prepared.in_range;
    const index_t V_words = words_to_send(V, task);
    work.device_bytes = 8.0 * double(V_words + prepared.by.size() + 3 * prepared.factors.size()) +
                        4.0 * double(prepared.order.size() + prepared.added.size() + b_) + (direct ? 1 : 2) * bytes();
    if (sides > 0) work.device_bytes += WideMembers<T>::bytes(n_, b_, task, direct ? 1 : 2);
    require_allowed(work.device_bytes - bytes(), task.device_memory);
    std::unique_ptr<Batch> other = direct ? nullptr : another();
    std::vector<int> told(b_, -1);
    const OnDevice<double> dsent(context_, V.host(), V_words), dby(context_, prepared.by);
    const OnDevice<int> dorder(context_, prepared.order), dadded(context_, prepared.added), dpivots(context_, told);
    const OnDevice<Factors> dfactors(context_, prepared.factors);
    context_.marks().begin.record(stream());
    const double* const dV = V.on_gpu() ? V.data() : dsent.data();
    T* const made_R = direct ? dR_.data() : other->dR_.data();
    std::optional<WideMembers<T>> wide;
    if (sides > 0) wide.emplace(context_, dR_.data(), n_, b_, dV, task, prepared);
    const PoolBuffer<T> dwide_out(context_.pool(), sides > 0 && !direct ? words_of(n_ + sides) * b_ : 0);
    const T* const from = wide ? wide->triangles() : dR_.data();
    T* const out = !wide ? made_R : direct ? wide->triangles() : dwide_out.data();
    BatchPass<T> pass = pass_of(dV, dorder.data(), dby.data(), dadded.data());
    pass.order_stride = prepared.added.size() > 1 ? task.k : 0;
    pass.added_stride = prepared.added.size() > 1 ? 1 : 0;
    pass.factors = dfactors.data();
    pass.may_overflow = !prepared.in_range;
    pass.pivots = dpivots.data();
    if (wide) wide->describe(pass);
    if (direct) begun = true;
    run(pass, task, from, out);
    if (wide) wide->part(out, dpivots.data(), made_R);
    if (task.scale && is_ragged()) clear_rows_beyond(made_R);
    context_.marks().end.record(stream());
    fetch(dpivots.data(), b_, told.data());
    work.seconds = context_.marks().end.seconds_since(context_.marks().begin);
    read(told, out, V, task, pivots);
    const bool any = std::any_of(told.begin(), told.end(), [](int pivot) { return pivot >= 0; });
    if (any && task.all_or_none) return work;
    if (wide) wide->fetch();
    Batch& changed = direct ? *this : *other;
    for (index_t m = 0; m < b_; ++m)
      if (told[m] < 0) bounds[m] = prepared.bounds[m];
    changed.put_bounds(bounds);
    session.finish();
    replace(std::move(other), made);
    return work;
  }

  void insert(const BatchInsertion& what, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              std::atomic<bool>&) override {
    pivots.assign(b_, -1);
    if (made) made->reset();
    const index_t grown = n_ + what.p;
    require_member(grown);
    const Session session(context_);
    auto other = std::make_unique<Batch>(context_, grown, b_);
    if (b_ * what.p > 0) {
      QueuedInsertion<T> insertion(context_, what, orders_, n_);
      insertion.send();
      if (n_ > 0) queue_solve(insertion.columns(), what.p, TriangularSolve::forward);
      insertion.put(dR_.data(), dbounds_.data(), other->dR_.data(), other->dbounds_.data(), grown);
      insertion.read(pivots);
      const bool any = std::any_of(pivots.begin(), pivots.end(), [](index_t pivot) { return pivot >= 0; });
      if (any && what.all_or_none) return;
      for (index_t m = 0; m < b_; ++m) other->orders_[m] = orders_[m] + (pivots[m] < 0 ? what.p : 0);
      if (const index_t largest = largest_order(other->orders_); largest < grown) {
        auto smaller = std::make_unique<Batch>(context_, largest, b_);
        smaller->orders_ = other->orders_;
        insertion.put(dR_.data(), dbounds_.data(), smaller->dR_.data(), smaller->dbounds_.data(), largest);
        smaller->take_bounds(*other);
        other = std::move(smaller);
      }
      insertion.fetch_sides();
    } else if (b_ > 0) {
      other = duplicate();
      std::copy_n(what.sides.first.z, n_ * what.sides.m * b_, what.sides.first.out);
    }
    session.finish();
    replace(std::move(other), made);
  }

  void remove(const BatchRemoval& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>&) override {
    const Session session(context_);
    const index_t left = n_ - what.p;
    auto other = std::make_unique<Batch>(context_, left, b_);
    for (index_t m = 0; m < b_; ++m) other->orders_[m] = orders_[m] - what.p;
    const PoolBuffer<double> dV(context_.pool(), left * what.p * b_);
    if (b_ > 0) remove_from_members(context_, what, orders_, n_, dR_.data(), other->dR_.data(), dV.data());
    other->take_bounds(*this);
    other->add(dV, what.p, SidesOfRemoval(what, orders_, n_).of_modification());
    other->take_bounds(*this);  // no column norm grows when rows are removed
    session.finish();
    replace(std::move(other), made);
  }

  void shift(const BatchShift& what, std::unique_ptr<HeldBatch>* made, std::atomic<bool>&) override {
    std::unique_ptr<Batch> other = duplicate();
    const Session session(context_);
    if (!move_rows_of_members(context_, what, orders_, n_, other->dR_.data())) other->require_normal_diagonals();
    session.finish();
    replace(std::move(other), made);
  }

 private:
  static void require_member(index_t order) {
    if (order > most_order)
      throw Error(ErrorCode::not_supported,
                  "members of a batch on a GPU cannot grow beyond " + std::to_string(most_order) +
                      " rows; as.array() and chol_batch(capacity =) make a batch of larger ones",
                  {{"limit", double(most_order)}});
  }
  void take_bounds(const Batch& of) {
    if (b_ == 0) return;
    check(cudaMemcpyAsync(dbounds_.data(), of.dbounds_.data(), dbounds_.bytes(), cudaMemcpyDeviceToDevice, stream()),
          "copy numbers");
  }
  /// Updates every member by V (n x k of each member, on the device), along with right-hand sides.
  void add(const PoolBuffer<double>& dV, index_t k, const BatchSides& sides) {
    BatchTask task;
    task.k = k;
    task.sides = sides;
    std::vector<index_t> pivots(b_, -1);
    std::atomic<bool> begun{false};
    Work work;
    std::vector<double> here;
    const GivenColumns<double> V(dV.data(), [&] {
      here.resize(n_ * k * b_);
      fetch(dV.data(), n_ * k * b_, here.data());
      return here.data();
    });
    const bool done = n_ * b_ > 0 && modify_at_once(V, task, nullptr, pivots, begun, work);
    if (!done) modify(V, task, nullptr, pivots, unwatched, begun);
  }
  /// Modifies the members before the host has looked at V: the device looks first. Returns false, and has changed
  /// nothing, if a member needs care, members have weights of their own, there are right-hand sides, k is 0, or the
  /// device memory that the task allows does not suffice.
  bool modify_at_once(const GivenColumns<double>& V, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                      std::vector<index_t>& pivots, std::atomic<bool>& begun, Work& work) {
    if (task.k == 0 || task.sides.m > 0 || (task.weights && !task.common_weights)) return false;
    const TakenColumns taken(task, n_, b_);
    const bool direct = !made && taken.added == task.k && !task.scale;
    const index_t V_words = words_to_send(V, task);
    work.device_bytes =
        8.0 * double(V_words + b_) + 4.0 * double(b_ + 3) + taken.bytes() + (direct ? 1 : 2) * bytes();
    if (work.device_bytes - bytes() > task.device_memory) return false;  // modify() may take less, or throws
    std::unique_ptr<Batch> other = direct ? nullptr : another();
    const PoolBuffer<double> dsent(context_.workspace(), V_words);
    const double* const dV = V.on_gpu() ? V.data() : dsent.data();
    const OnDevice<int> dorder(context_, taken.order);
    const OnDevice<double> dby(context_, taken.by);
    const OnDevice<Factors> dfactors(context_, taken.factors);
    PoolBuffer<double> dafter(context_.pool(), b_);
    // In this order: 1 if a member needs care; 1 if a member has failed; number of columns added; pivots.
    const PoolBuffer<int> dtold(context_.workspace(), 3 + b_);
    const int begin[] = {0, 0, int(taken.added)};
    check(cudaMemcpyAsync(dtold.data(), begin, sizeof begin, cudaMemcpyHostToDevice, stream()), "send numbers");
    check(cudaMemsetAsync(dtold.data() + 3, 0xff, sizeof(int) * b_, stream()), "clear pivots");
    if (V_words > 0) send_staged(V.host(), V_words, dsent.data(), context_);
    BatchPass<T> pass = pass_of(dV, dorder.data(), dby.data(), dtold.data() + 2);
    pass.order_stride = taken.stride;
    pass.factors = dfactors.data();
    look(pass, task, double(taken.added), dafter.data(), dtold.data());
    if (direct) begun = true;
    context_.marks().begin.record(stream());
    T* const out = direct ? dR_.data() : other->dR_.data();
    pass.pivots = dtold.data() + 3;
    pass.needs_care = dtold.data();
    pass.any = dtold.data() + 1;
    run(pass, task, dR_.data(), out);
    if (task.scale && is_ragged()) clear_rows_beyond(out);
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

  /// Moves `other` to *made. If `made` is null, swaps the contents of this batch with those of `other`, if that is not
  /// null.
  void replace(std::unique_ptr<Batch> other, std::unique_ptr<HeldBatch>* made) {
    if (made) *made = std::move(other);
    else if (other) this->swap(*other);
  }

  std::unique_ptr<Batch> duplicate() const {
    const Session session(context_);
    auto made = another();
    this->copy_to(*made);
    session.finish();
    return made;
  }

  /// Allocates a batch for members of the same orders as in this one.
  std::unique_ptr<Batch> another() const {
    auto made = std::make_unique<Batch>(context_, n_, b_);
    made->orders_ = orders_;
    return made;
  }

  /// Queues the solution with all members for right-hand sides dB (n x m each) on the device, in place.
  void queue_solve(double* dB, index_t m, TriangularSolve which) const {
    cuda::queue_solve<T>({n_, n_, m, 0, m, Numbers<T>::of(dR_.data()), dB}, b_, which, stream());
  }

  using Base::b_;
  using Base::clear_rows_beyond;
  using Base::context_;
  using Base::dR_;
  using Base::dbounds_;
  using Base::fetch;
  using Base::is_ragged;
  using Base::keep_bounds;
  using Base::look;
  using Base::n_;
  using Base::orders_;
  using Base::pass_of;
  using Base::read;
  using Base::run;
  using Base::stream;
  using Base::words_to_send;
};

template <class T>
std::unique_ptr<DeviceBatch> upload_as(const double* R, index_t n, index_t b, Uplo uplo, const BatchRoom& room,
                                       int device) {
  Context& context = Context::of(device);
  const Session session(context);
  auto made = std::make_unique<Batch<T>>(context, n, b);
  made->send(R, uplo, room.orders);
  return made;
}

/// Puts each member, up to its own order, on the GPU as a factor of its own.
std::unique_ptr<DeviceBatch> upload_large(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                          const BatchRoom& room, int device) {
  LargeBatch::Members members;
  for (index_t m = 0; m < b; ++m) {
    const index_t own = room.orders.empty() ? n : room.orders[m];
    std::vector<double> alone;
    for (index_t j = 0; own < n && j < own; ++j)
      alone.insert(alone.end(), R + m * n * n + j * n, R + m * n * n + j * n + own);
    cpu::for_member(m, [&] {
      members.push_back(upload(own < n ? alone.data() : R + m * n * n, own, uplo, precision,
                               std::max(own, room.capacity), device));
    });
  }
  const auto& first = static_cast<const DeviceFactor&>(*members[0]);
  const int where = first.device();
  std::string name = first.device_name();
  return std::make_unique<LargeBatch>(std::move(members), where, std::move(name));
}

}  // namespace

std::unique_ptr<DeviceBatch> upload_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                          int device, const BatchRoom& room) {
  bytes_of(n, n, 64);  // throws for too large an order, as in cpu::hold_batch()
  if (std::max(n, room.capacity) > most_order && b > 0) return upload_large(R, n, b, uplo, precision, room, device);
  return precision == Precision::single ? upload_as<float>(R, n, b, uplo, room, device)
                                        : upload_as<double>(R, n, b, uplo, room, device);
}

}  // namespace gpucholmod::cuda
