#pragma once

#include "cpu/host_factor.h"
#include "mpi/panels.h"

/// GPUs that process 0 can use together, played by ordinary memory.
namespace gpucholmod::test {

class MemoryTogether : public mpi::GpusTogether {
 public:
  explicit MemoryTogether(cpu::Allocate allocate) : allocate_(std::move(allocate)) {}
  std::unique_ptr<HeldFactor> hold(const double* R, index_t n, Uplo uplo, Precision precision) const override {
    return cpu::hold(R, n, uplo, precision, n, allocate_);
  }
  std::unique_ptr<HeldFactor> hold(const Source<double>& R, index_t n, Precision precision,
                                   const Poll&) const override {
    Stored<double> all = Stored<double>::Zero(n, n);
    std::vector<double> scratch(n);
    for (index_t j = 0; j < n; ++j) std::copy_n(R.column(j, 0, j + 1, scratch.data()), j + 1, all.col(j).data());
    return cpu::hold(all.data(), n, Uplo::upper, precision, n, allocate_);
  }

 private:
  cpu::Allocate allocate_;
};

/// Returns a maker whose leader opens the GPUs if there are `gpus` of them.
inline mpi::MakePanels led_here(std::size_t gpus, cpu::Allocate allocate, mpi::MakePanels make = {}) {
  make.leader = mpi::Leader{
      [] { return mpi::OwnGpu{"the only GPU", 3, "memory"}; },
      [=](const std::vector<std::string>& ids) -> std::unique_ptr<mpi::GpusTogether> {
        if (ids.size() != gpus) return nullptr;
        return std::make_unique<MemoryTogether>(allocate);
      }};
  return make;
}

}  // namespace gpucholmod::test
