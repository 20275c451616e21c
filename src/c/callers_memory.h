#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/columns_of_v.h"
#include "base/huge_pages.h"
#include "c/options.h"
#include "cuda/callers_memory.h"
#include "cuda/device_batch.h"
#include "cuda/device_factor.h"

/// Classes for numbers of the caller's that may be in the memory of a GPU.
namespace gpucholmod::c {

/// Returns the GPU that holds a factor; numbers of calls for the factor may be in the memory of this GPU too. Returns
/// GPUCHOLMOD_HOST if no GPU or several GPUs hold the factor.
inline int device_of(const HeldFactor& R) {
  const auto* const on_gpu = dynamic_cast<const DeviceFactor*>(&R.plain());
  return on_gpu && !on_gpu->is_shared() ? on_gpu->device() : GPUCHOLMOD_HOST;
}

/// Returns the GPU that holds a batch, or GPUCHOLMOD_HOST.
inline int device_of(const HeldBatch& R) {
  const auto* const on_gpu = dynamic_cast<const DeviceBatch*>(&R);
  return on_gpu ? on_gpu->device() : GPUCHOLMOD_HOST;
}

/// Holds the numbers of a matrix as doubles without gaps: a copy in the host's memory, or, if the matrix is on a GPU,
/// columns in the memory of that GPU.
class CallersColumns : NotCopied {
 public:
  /// Copies A to the host's memory, unless A is on a GPU. Throws bad_argument.
  CallersColumns(const char* argument, const gpucholmod_const_matrix& A, const Options& options)
      : rows_(A.rows), cols_(A.cols), gpu_(options.gpu_of(argument, A.data)) {
    if (gpu_ < 0) {
      here_ = packed_doubles(argument, A);
      return;
    }
    with_type(argument, A.type, [&](auto s) { there_.emplace(gpu_, view<decltype(s)>(argument, A)); });
  }

  GivenColumns<double> given() {
    if (gpu_ < 0) return here_.data();
    return {there_->data(), [this] { return host(); }};
  }
  /// Returns the numbers, in a copy in the host's memory.
  const double* host() { return numbers().data(); }
  std::vector<double>& numbers() {
    if (gpu_ >= 0 && here_.empty() && rows_ > 0 && cols_ > 0) {
      here_.resize(rows_ * cols_);
      cuda::copy_to_host<double>(gpu_, {there_->data(), rows_, cols_, rows_}, here_.data());
    }
    return here_;
  }

 private:
  index_t rows_, cols_;
  int gpu_;
  std::vector<double> here_;
  std::optional<cuda::ColumnsOnDevice> there_;
};

/// Holds the numbers of a matrix that the call only reads, as doubles without gaps. A matrix in the host's memory is
/// copied only if it has gaps or floats.
class ReadColumns : NotCopied {
 public:
  /// Refers to A, or to a copy of A. Throws bad_argument.
  ReadColumns(const char* argument, const gpucholmod_const_matrix& A, const Options& options)
      : rows_(A.rows), cols_(A.cols), gpu_(options.gpu_of(argument, A.data)) {
    if (gpu_ >= 0) there_.emplace(argument, A, options);
    else here_ = PackedDoubles(argument, A);
  }
  GivenColumns<double> given() {
    if (!there_) return here_.data();
    return {there_->given().data(), [this] { return fetched(); }};
  }

 private:
  const double* fetched() {
    if (!fetched_) {
      fetched_.reset(new double[rows_ * cols_]);
      prefer_huge_pages(fetched_.get(), sizeof(double) * std::size_t(rows_ * cols_));
      cuda::fetch_many(gpu_, {there_->given().data(), rows_, cols_, rows_}, fetched_.get());
    }
    return fetched_.get();
  }

  index_t rows_, cols_;
  int gpu_;
  PackedDoubles here_;
  std::optional<CallersColumns> there_;
  std::unique_ptr<double[]> fetched_;
};

/// The k weights of a call, in the host's memory; null if the call has none.
class WeightsOnHost : NotCopied {
 public:
  /// Copies the weights from a GPU to the host's memory, if they are there. Throws bad_argument.
  WeightsOnHost(const double* given, index_t k, const Options& options) : data_(given) {
    if (!given || options.gpu_of("weights", given) < 0) return;
    require(can_exist(k, 1, sizeof(double)), "weights", "are more than any memory has");
    copy_.emplace("weights", gpucholmod_const_double_matrix(given, k, 1, k), options);
    data_ = copy_->host();
  }
  const double* data() const { return data_; }

 private:
  const double* data_;
  std::optional<CallersColumns> copy_;
};

/// Refers to numbers that the host reads and may write: the caller's numbers, or a copy of numbers on a GPU.
class NumbersOnHost : NotCopied {
 public:
  /// Refers to a vector of `count` numbers. Throws bad_argument, also if a vector on a GPU is larger than any memory.
  NumbersOnHost(const char* argument, double* given, index_t count, const Options& options)
      : NumbersOnHost(argument, MatrixView<double>{given, count, 1, count}, options) {}
  NumbersOnHost(const char* argument, MatrixView<double> given, const Options& options)
      : given_(given), gpu_(options.gpu_of(argument, given.data)) {
    if (gpu_ < 0) return;
    const bool exists = given.rows >= 0 && can_exist(given.rows, given.cols, sizeof(double));
    require(exists, argument, "is larger than any memory");
    copy_.resize(given.rows * given.cols);
    if (!copy_.empty()) cuda::copy_to_host<double>(gpu_, given, copy_.data());
  }
  bool copied() const { return gpu_ >= 0; }
  MatrixView<double> view() {
    if (gpu_ < 0) return given_;
    return {copy_.data(), given_.rows, given_.cols, given_.rows};
  }
  /// Copies the numbers, which the host may have changed, back to the GPU, if they came from a GPU.
  void put_back() const {
    if (!copy_.empty()) cuda::copy_to_device<double>(gpu_, copy_.data(), given_);
  }

 private:
  MatrixView<double> given_;
  int gpu_;
  std::vector<double> copy_;
};

/// Copies numbers without gaps to a matrix on GPU `gpu`, or in the host's memory if `gpu` is negative. Throws overflow.
template <class S>
void put_numbers(const std::vector<double>& numbers, MatrixView<S> to, int gpu) {
  if (gpu < 0) return put_numbers(numbers, to);
  std::vector<S> packed(numbers.size());
  put_numbers(numbers, MatrixView<S>{packed.data(), to.rows, to.cols, to.rows});
  if (!packed.empty()) cuda::copy_to_device<S>(gpu, packed.data(), to);
}

/// Refers to the right-hand sides of a call in the host's memory: the caller's, or copies of right-hand sides on a GPU.
class SidesOnHost : NotCopied {
 public:
  /// Copies right-hand sides that are on a GPU. reads_Y: true if the call reads Y. Throws bad_argument.
  SidesOnHost(const gpucholmod_right_sides* given, bool reads_Y, const Options& options) {
    if (!given || options.device == GPUCHOLMOD_HOST) {
      sides_ = given;
      return;
    }
    copy_ = *given;
    z_.emplace("sides->z", view<double>("sides->z", given->z), options);
    if (z_->copied()) copy_.z = gpucholmod_double_matrix(z_->view().data, given->z.rows, given->z.cols, given->z.rows);
    rss_.emplace("sides->rss", given->rss, given->rss ? given->z.cols : 0, options);
    if (rss_->copied()) copy_.rss = rss_->view().data;
    sides_ = &copy_;
    if (!reads_Y || options.gpu_of("sides->Y", given->Y.data) < 0) return;
    view<double>("sides->Y", given->Y);
    Y_.emplace("sides->Y", given->Y, options);
    copy_.Y = gpucholmod_const_double_matrix(Y_->host(), given->Y.rows, given->Y.cols, given->Y.rows);
  }
  const gpucholmod_right_sides* get() const { return sides_; }
  /// Copies z and rss, which the call has written, back to the GPU, if they came from a GPU.
  void put_back() const {
    if (z_) z_->put_back();
    if (rss_) rss_->put_back();
  }

 private:
  const gpucholmod_right_sides* sides_;
  gpucholmod_right_sides copy_;
  std::optional<NumbersOnHost> z_, rss_;
  std::optional<CallersColumns> Y_;
};

}  // namespace gpucholmod::c
