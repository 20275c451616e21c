#include <array>
#include <cstring>

#include "cuda/context.h"
#include "cuda/kernels/panel_rotate.cuh"
#include "paper/drive.h"

namespace gpucholmod::cuda {
namespace {

/// Runs the device side of the panel method; the contract is in paper/drive.h.
///
/// Three streams overlap: `up_` sends panels and rotations, `compute_` runs the kernels in order, which keeps V right,
/// and `down_` fetches panels. A fourth stream, `small_`, fetches V for the next diagonal block ahead of the queue.
/// Device memory: V (n k), `panel_slots` panels, two sets of rotations: O(n).
template <class T>
class Executor {
 public:
  Executor(MatrixView<T> R, index_t k, Sign sign, const paper::Shape& shape, const paper::Footprint<T>& footprint,
           Context& context)
      : n_(R.cols), k_(k), sign_(sign), shape_(shape), footprint_(footprint),
        dV_(context.pool(), footprint_.V),
        dpanels_(context.pool(), paper::panel_slots * footprint_.slot),
        drotations_(context.pool(), 2 * footprint_.rotations),
        rotations_(2 * footprint_.rotations),
        rows_of_V_(shape.panel_rows * k),
        registration_(R.data, sizeof(T) * R.ld * R.cols) {
    check(cudaStreamSynchronize(context.stream()), "allocate device memory");
  }

  /// Waits for all transfers: while one runs, no memory may be freed, and R must stay page-locked.
  ~Executor() {
    for (const Stream* stream : {&up_, &compute_, &down_, &small_}) cudaStreamSynchronize(*stream);
  }

  bool pinned() const { return registration_.locked(); }

  void send_V(MatrixView<const T> V) {
    check(cudaMemcpyAsync(dV_.data(), V.data, sizeof(T) * n_ * k_, cudaMemcpyHostToDevice, compute_), "send V");
    compute_.synchronize();
  }

  void fetch_V(index_t col, MatrixView<T> Vt) {
    small_.wait(look_ahead_done_);
    check(cudaMemcpy2DAsync(rows_of_V_.data(), sizeof(T) * Vt.cols, dV_.data() + col, sizeof(T) * n_,
                            sizeof(T) * Vt.cols, k_, cudaMemcpyDeviceToHost, small_), "fetch rows of V");
    small_.synchronize();
    for (index_t j = 0; j < Vt.cols; ++j)
      for (index_t q = 0; q < k_; ++q) Vt(q, j) = rows_of_V_.data()[j + q * Vt.cols];
  }

  void send_rotations(const Rotation<T>* rotations, index_t rows) {
    set_ = 1 - set_;
    rotations_unused_[set_].synchronize();
    const index_t offset = set_ * footprint_.rotations;
    std::memcpy(rotations_.data() + offset, rotations, sizeof(Rotation<T>) * rows * k_);
    check(cudaMemcpyAsync(drotations_.data() + offset, rotations_.data() + offset, sizeof(Rotation<T>) * rows * k_,
                          cudaMemcpyHostToDevice, up_), "send rotations");
  }

  void rotate(MatrixView<T> R, index_t col, bool look_ahead) {
    slot_ = (slot_ + 1) % paper::panel_slots;
    T* dpanel = dpanels_.data() + slot_ * footprint_.slot;
    up_.wait(slot_free_[slot_]);
    copy(dpanel, R.rows, R.data, R.ld, R, cudaMemcpyHostToDevice, up_, "send a panel");
    panel_here_[slot_].record(up_);

    compute_.wait(panel_here_[slot_]);
    const paper::Launch<T> launch{dpanel, R.rows, R.cols, R.rows, dV_.data() + col, n_, k_,
                                  drotations_.data() + set_ * footprint_.rotations};
    paper::with_elements(std::min<index_t>(k_, shape_.elements_per_thread), [&](auto elements) {
      constexpr int E = decltype(elements)::value;
      if (sign_ == Sign::update) start<E, Sign::update>(launch);
      else start<E, Sign::downdate>(launch);
    });
    rotated_[slot_].record(compute_);
    rotations_unused_[set_].record(compute_);
    if (look_ahead) look_ahead_done_.record(compute_);

    down_.wait(rotated_[slot_]);
    copy(R.data, R.ld, dpanel, R.rows, R, cudaMemcpyDeviceToHost, down_, "fetch a panel");
    slot_free_[slot_].record(down_);
  }

  void finish() { down_.synchronize(); }

 private:
  static void copy(T* to, index_t ld_to, const T* from, index_t ld_from, MatrixView<T> shape, cudaMemcpyKind kind,
                   cudaStream_t stream, const char* what) {
    check(cudaMemcpy2DAsync(to, sizeof(T) * ld_to, from, sizeof(T) * ld_from, sizeof(T) * shape.rows, shape.cols, kind,
                            stream), what);
  }

  template <int E, Sign sign>
  void start(const paper::Launch<T>& launch) {
    const int threads = shape_.threads_per_block;
    const unsigned blocks = unsigned((launch.cols + threads - 1) / threads);
    panel_rotate<E, sign><<<blocks, threads, paper::shared_bytes<T>(threads, E), compute_>>>(launch);
    check(cudaGetLastError(), "start the panel kernel");
  }

  index_t n_, k_;
  Sign sign_;
  paper::Shape shape_;
  paper::Footprint<T> footprint_;
  PoolBuffer<T> dV_, dpanels_;
  PoolBuffer<Rotation<T>> drotations_;
  PinnedBuffer<Rotation<T>> rotations_;
  PinnedBuffer<T> rows_of_V_;
  HostRegistration registration_;
  Stream up_, compute_, down_, small_;
  std::array<Event, paper::panel_slots> panel_here_, rotated_, slot_free_;
  std::array<Event, 2> rotations_unused_;
  Event look_ahead_done_;
  int slot_ = 0, set_ = 0;
};

}  // namespace

template <class T>
Work paper_panels(MatrixView<T> R, MatrixView<const T> V, Sign sign, double device_memory, const paper::Shape& shape,
                  const Poll& poll) {
  Context& context = Context::of(-1);
  const CurrentDevice current(context.device());
  const paper::Footprint<T> footprint(R.cols, V.cols, shape);
  footprint.require_within(device_memory);
  Executor<T> executor(R, V.cols, sign, shape, footprint, context);
  Work work = paper::drive(R, V, sign, shape, executor, poll);
  work.device = context.device_name();
  work.device_bytes = footprint.bytes();
  work.pinned = executor.pinned();
  return work;
}

template Work paper_panels(MatrixView<float>, MatrixView<const float>, Sign, double, const paper::Shape&, const Poll&);
template Work paper_panels(MatrixView<double>, MatrixView<const double>, Sign, double, const paper::Shape&,
                           const Poll&);

}  // namespace gpucholmod::cuda
