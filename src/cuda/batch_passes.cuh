#pragma once

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "cpu/kernels.h"
#include "cuda/batch_storage.cuh"
#include "cuda/kernels/batch_reshape.cuh"

namespace gpucholmod::cuda {

/// The largest order of packed triangles. If a batch has a larger order or capacity, its members are separate factors.
constexpr index_t most_order = 1024;

constexpr int most_columns_of_pass = 16;

/// A copy of numbers on the device, for the time of a call; null if there are none.
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

/// Runs the passes of a modification, from a batch to another one or to itself.
template <class T>
class BatchPasses : public BatchStorage<T> {
  using Base = BatchStorage<T>;

 public:
  using Base::Base;
  using Base::precision;

 protected:
  using Base::at;
  using Base::b_;
  using Base::context_;
  using Base::dR_;
  using Base::dbounds_;
  using Base::fetch;
  using Base::n_;
  using Base::orders_;
  using Base::stream;
  using Base::unpack;

  /// Queues a look at V of every member, by the columns and factors of `pass` (see BatchLook).
  void look(const BatchPass<T>& pass, const BatchTask& task, double added, double* after, int* needs_care) const {
    BatchLook look{};
    look.V = pass.V;
    look.V_stride = task.common_V ? 0 : n_ * task.k;
    look.n = n_;
    look.count = b_;
    look.k = int(task.k);
    look.order = pass.order;
    look.by = pass.by;
    look.order_stride = pass.order_stride;
    look.factors = pass.factors;
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

  static BatchPass<T> pass_of(const double* V, const int* order, const double* by, const int* added) {
    BatchPass<T> pass{};
    pass.V = V;
    pass.order = order;
    pass.by = by;
    pass.added = added;
    return pass;
  }

  /// Queues the passes of a modification from the triangles `from`, those of this batch or the wide ones made of them,
  /// to `out`. The caller sets only those fields of `pass` that all passes have in common.
  void run(BatchPass<T> pass, const BatchTask& task, const T* from, T* out) const {
    const bool wide = task.sides.m > 0;
    pass.n = n_ + task.sides.m;
    pass.rows = n_;
    pass.k = task.k;
    pass.out = Numbers<T>::of(out);
    pass.origin = Numbers<T>::of(from);
    pass.V_stride = task.common_V && !wide ? 0 : pass.n * task.k;
    index_t first = 0;
    do {
      pass.R = Numbers<T>::of(first == 0 ? from : out);
      pass.first = int(first);
      first += launch(pass, task.k - first);
    } while (first < task.k);
  }

  /// Sets `pivots` from `told`, the reports of the passes on the members of `out`. Throws the error of the first member
  /// whose result T cannot hold.
  void read(const std::vector<int>& told, const T* out, const GivenColumns<double>& V, const BatchTask& task,
            std::vector<index_t>& pivots) const {
    const index_t columns = n_ + task.sides.m;
    const bool several = task.k > most_columns_of_pass;
    for (index_t m = 0; m < b_; ++m) {
      if (told[m] == -1) continue;
      cpu::for_member(m, [&] {
        if (told[m] < -1) throw lost(told[m], out + m * words_of(columns), columns);
        pivots[m] = several ? pivot_of_all_columns(m, told[m], V.host(), task) : told[m];
      });
    }
  }

  /// Returns how many numbers of V have to be sent to the device.
  index_t words_to_send(const GivenColumns<double>& V, const BatchTask& task) const {
    return V.on_gpu() ? 0 : n_ * task.k * (task.common_V ? 1 : b_);
  }
  /// Replaces the new bounds of members that have failed by the old ones.
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

  bool is_ragged() const {
    return std::any_of(orders_.begin(), orders_.end(), [&](index_t own) { return own != n_; });
  }
  void clear_rows_beyond(T* out) const {
    const std::vector<int> orders(orders_.begin(), orders_.end());
    const OnDevice<int> dorders(context_, orders);
    clear_beyond<T><<<unsigned((n_ * b_ + 255) / 256), 256, 0, stream()>>>(out, n_, n_ * b_, dorders.data());
    check(cudaGetLastError(), "start to clear rows");
    check(cudaStreamSynchronize(stream()), "clear rows");
  }

 private:
  /// Queues a pass over at most `left` columns of V, by L threads a member, or by as many as its order takes. Returns
  /// how many columns the kernel has room for. Other numbers of columns are not worth the size of a kernel of their
  /// own.
  template <int L = SLOTS>
  int launch(const BatchPass<T>& pass, index_t left) const {
    constexpr bool of_doubles = sizeof(T) == 8;
    if constexpr (SLOTS * L < most_order) {
      if (threads_of_member(pass.n) > L) return launch<2 * L>(pass, left);
    }
    if constexpr (of_doubles && L <= 64) {
      if (left <= 1) return start<1, L>(pass, left);
    }
    if (left <= 4) return start<4, L>(pass, left);
    if constexpr (of_doubles) {
      if (left <= 8) return start<8, L>(pass, left);
    }
    return start<most_columns_of_pass, L>(pass, left);
  }

  template <int K, int L>
  int start(BatchPass<T> pass, index_t left) const {
    constexpr int members = members_of_block<L>;
    pass.columns = int(std::min<index_t>(K, left));
    pass.last = left <= K;
    modify_members<T, K, L><<<unsigned((b_ + members - 1) / members), dim3(L, members), 0, stream()>>>(pass, b_);
    check(cudaGetLastError(), "start the modification of a batch");
    return K;
  }

  /// Returns the first pivot at which all columns together fail, after a pass of some columns has failed at `pivot`.
  /// The pivot of all columns may be an earlier one.
  index_t pivot_of_all_columns(index_t m, index_t pivot, const double* V, const BatchTask& task) const {
    std::vector<T> words(words_of(n_));
    fetch(at(m), words_of(n_), words.data());
    std::vector<double> R(n_ * n_);
    unpack(words.data(), Uplo::upper, R.data(), n_);
    cpu::ColumnOrder order;
    order.find(task, m);
    Task alone = cpu::task_alone(task, order, n_, m, precision());
    alone.scale = 1;
    alone.instructions = cpu::resolve(task.instructions);
    const index_t found = cpu::modify_alone(R, order.taken(task.V_of(V, n_, m), n_), alone);
    return found >= 0 ? std::min(found, pivot) : pivot;
  }

  /// Returns the error that `told`, by too_large_at() or vanished_at(), stands for. `member` is what the pass has left,
  /// of `columns` columns.
  Error lost(int told, const T* member, index_t columns) const {
    const bool large = (told + 2) % 2 == 0;
    const int j = large ? -(told + 2) / 2 : -(told + 3) / 2;
    if (large)
      return Error(ErrorCode::overflow, "the modified factor has entries too large to represent",
                   {{"col", double(j + 1)}});
    T value = 0;
    fetch(member + row_of(columns, j) + j, 1, &value);
    return is_normal(value) ? too_small_to_compute(j, double(value))
                            : vanished(j, double(value), double(std::numeric_limits<T>::min()));
  }
};

}  // namespace gpucholmod::cuda
