#pragma once

#include <algorithm>

#include "cuda/context.h"
#include "cuda/kernels/layout.cuh"
#include "mpi_cuda/locked_messages.h"
#include "mpi_cuda/panel_pass.h"

/// The panels of a process in the memory of its GPU.
namespace gpucholmod::mpi_cuda {

using namespace cuda;
using block_columns::STRIP;
using block_columns::strips_of;

template <class T>
class PanelsModification;

/// The panels of a process, one behind the other, each as tall as the factor and a whole number of strips wide, laid
/// out as cuda::Layout lays out a factor. So one launch can update all panels behind another panel.
template <class T>
class DevicePanels : public mpi::Panels<T> {
 public:
  DevicePanels(Context& context, const mpi::Layout& layout, int rank)
      : context_(context), layout_(layout), rank_(rank),
        ld_(index_t(strips_of(layout.n)) * STRIP + block_columns::margin), session_(std::make_unique<Session>(context)),
        dR_(context.factors(), ld_ * STRIP * end(layout.blocks())) {
    const index_t last = layout.blocks() - 1, more = last < 0 ? 0 : STRIP * strips(last) - layout.columns(last);
    if (last >= 0 && layout.owner(last) == rank && more > 0) {
      set_identity<<<unsigned(more), 256, 0, stream()>>>(
          MatrixView<T>{at(last, 0) + layout.columns(last) * ld_, ld_ - block_columns::margin, more, ld_}, layout.n);
      check(cudaGetLastError(), "start the continuation of a factor");
    }
    session_.reset();
  }
  ~DevicePanels() override {
    if (context_.forked()) dR_.abandon();
  }

  std::unique_ptr<mpi::Panels<T>> another() const override {
    return std::make_unique<DevicePanels>(context_, layout_, rank_);
  }
  double bytes() const override { return double(dR_.bytes()); }
  int device() const override { return context_.device(); }
  std::string device_name() const override { return context_.device_name(); }
  int compute_capability() const override {
    const CurrentDevice current(context_.device());
    return 10 * attribute(cudaDevAttrComputeCapabilityMajor) + attribute(cudaDevAttrComputeCapabilityMinor);
  }
  mpi::MessageMemory* message_memory() const override { return &messages_of(context_.device()); }

  void put(index_t b, MatrixView<const T> R) override {
    const Session session(context_);
    copy(R.data, R.ld, at(b, 0), ld_, R, cudaMemcpyHostToDevice);
    clear_below<<<unsigned(R.cols), 32, 0, stream()>>>(MatrixView<T>{at(b, layout_.first(b)), R.cols, R.cols, ld_},
                                                       block_columns::NB);
    check(cudaGetLastError(), "clear below the diagonal");
    session.finish();
  }
  void get(index_t b, MatrixView<T> R) const override {
    const Session session(context_);
    copy(at(b, 0), ld_, R.data, R.ld, R, cudaMemcpyDeviceToHost);
    session.finish();
  }
  void copy(const mpi::Panels<T>& from) override {
    if (bytes() == 0) return;
    const Session session(context_);
    check(cudaMemcpyAsync(dR_.data(), dynamic_cast<const DevicePanels&>(from).dR_.data(), dR_.bytes(),
                          cudaMemcpyDeviceToDevice, stream()),
          "copy a factor");
    session.finish();
  }

  /// Returns the way with room for the columns of process 0, which has at least as many as any other process.
  mpi::PanelWay way(const Task& task) const override {
    const CurrentDevice current(context_.device());
    const int most = int((layout_.blocks() + layout_.size - 1) / layout_.size) * strips(0);
    const Way panel = way_of<T>(task.k, task.removed, strips(0), true, task),
              behind = way_of<T>(task.k, task.removed, most, false, task);
    if (panel.launch == Launch::stepwise || behind.launch == Launch::stepwise)
      return {Launch::stepwise, block_columns::widest_pass(task.k, task.removed)};
    return {Launch::persistent, std::min(panel.columns, behind.columns)};
  }

  std::unique_ptr<mpi::PanelModification<T>> modification(mpi::Panels<T>* out, MatrixView<const double> V,
                                                          const Task& task, double scale, mpi::PanelWay way,
                                                          const RightHandSideView& right,
                                                          const std::function<void()>& tend) override {
    return std::make_unique<PanelsModification<T>>(*this, dynamic_cast<DevicePanels*>(out), V, task, scale, way, right,
                                                   tend);
  }

  Context& context() const { return context_; }
  cudaStream_t stream() const { return context_.stream(); }
  const mpi::Layout& layout() const { return layout_; }
  index_t ld() const { return ld_; }
  /// Returns the number of strips of panel b.
  int strips(index_t b) const { return strips_of(layout_.columns(b)); }
  /// Returns the number of the strip, among this process's, at which panel b begins. If this process has no panel b:
  /// the strip behind its panels before b.
  int first(index_t b) const { return int(layout_.next_of(rank_, b) / layout_.size) * strips(0); }
  /// Returns first(b), but at most the number of this process's strips.
  int end(index_t b) const {
    const index_t last = layout_.blocks() - 1;
    if (last < 0) return 0;
    return first(b) - (b > last && layout_.owner(last) == rank_ ? strips(0) - strips(last) : 0);
  }
  /// Returns the address of row `row` of the first column of a strip or, in at(), of a panel.
  T* at_strip(int strip, index_t row) const { return dR_.data() + index_t(strip) * STRIP * ld_ + row; }
  T* at(index_t b, index_t row) const { return at_strip(first(b), row); }

 private:
  template <class Shape>
  void copy(const T* from, index_t from_ld, T* to, index_t to_ld, const Shape& R, cudaMemcpyKind kind) const {
    check(
        cudaMemcpy2DAsync(to, sizeof(T) * to_ld, from, sizeof(T) * from_ld, sizeof(T) * R.rows, R.cols, kind, stream()),
        "copy a panel");
  }

  Context& context_;
  mpi::Layout layout_;
  int rank_;
  index_t ld_;
  std::unique_ptr<Session> session_;  ///< held while the constructor runs
  PoolBuffer<T> dR_;
};

}  // namespace gpucholmod::mpi_cuda
