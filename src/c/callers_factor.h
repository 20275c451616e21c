#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "c/hold.h"
#include "c/reshape.h"

namespace gpucholmod::c {

/// Holds the factor of a call that is in the caller's memory, n being its order before the call. An upper factor with a
/// positive diagonal in the host's memory changes in place, unless the call may be stopped or numbers need scaling. Of
/// any other factor, also in the memory of a GPU, a copy in the same memory is changed.
template <class S>
class CallersFactor : NotCopied {
 public:
  CallersFactor(MatrixView<S> R, index_t n, const Options& options)
      : R_(R), options_(options), gpu_(options.gpu_of("R", R.data)) {
    if (gpu_ >= 0) {
      take(R.block(0, 0, n, n));
      return;
    }
    options_.device = GPUCHOLMOD_HOST;
    const MemorySource<S> source(R.data, R.ld);
    rows_.emplace(source, n, options.uplo);
    in_place_ = options.uplo == Uplo::upper && !options.progress && !rows_->any() && !Zeros(source, n).any();
    const auto allocate = [this](std::size_t bytes) {
      in_place_ = false;
      return cpu::ordinary_memory(bytes);
    };
    held_ = in_place_ ? cpu::hold_in_place(R.data, n, R.ld, allocate, options.threads)
                      : held_from_host<S>(R.block(0, 0, n, n), R.cols, options_);
  }

  /// Makes another matrix the place of the result; it is on the same GPU as the factor, and as large.
  void set_result(MatrixView<S> to) { R_ = to; }
  /// Calls f(changing, reshaping), and then copies the result to the caller's memory if a copy was changed. With a
  /// copy, nothing of the caller's changes before every step that can fail has succeeded.
  template <class F>
  index_t change(const gpucholmod_right_sides* sides, F&& f) {
    std::atomic<bool> begun{false};
    const Reshaping given{sides, options_, [this] { fetch(); }, rows_ && rows_->any() ? &*rows_ : nullptr};
    index_t pivot;
    try {
      pivot = f(Changing{*held_, nullptr, begun}, given);
    } catch (const Error& error) {
      if (begun && in_place_) throw HalfModified(std::string("'R' is half modified: ") + error.what());
      throw options_.uplo == Uplo::lower ? of_lower(error) : error;
    } catch (const std::exception& error) {
      if (begun && in_place_) throw HalfModified(std::string("'R' is half modified: ") + error.what());
      throw;
    }
    if (pivot < 0 && !in_place_) put_back();
    return pivot;
  }

 private:
  void take(MatrixView<const S> R) {
    std::vector<S> here;
    options_.device = gpu_;
    held_ = held_from_gpu(gpu_, R, R_.cols, options_, here);
    if (!here.empty()) rows_.emplace(MemorySource<S>(here.data(), R.cols), R.cols, options_.uplo);
  }
  /// Returns the error for a factor that is stored as a lower one: an entry of R~ is an entry of the transpose, so that
  /// row and column change places.
  static Error of_lower(const Error& error) {
    if (error.code() != ErrorCode::overflow || error.fields().size() != 2) return error;  // not an entry of R~
    const Position at = position_of(error);
    return overflow(at.col - 1, at.row - 1);
  }
  /// Copies the result to numbers_ if the changed copy is in the host's memory, or if only the host knows its zeros.
  void fetch() {
    if (in_place_ || on_gpu()) return;
    numbers_.resize(held_->order() * held_->order());
    held_->download(options_.uplo, numbers_.data());
  }
  void put_back() const {
    const index_t m = held_->order();
    if (const DeviceFactor* const there = on_gpu()) return there->give(options_.uplo, {R_.data, R_.ld}, false);
    if (gpu_ >= 0) {
      const std::vector<S> entries(numbers_.begin(), numbers_.end());
      return cuda::copy_triangle_to_device<S>(gpu_, entries.data(), options_.uplo, R_.block(0, 0, m, m));
    }
    for (index_t j = 0; j < m; ++j) {
      const auto [first, last] = rows_of(j, m, options_.uplo);
      std::copy(numbers_.data() + j * m + first, numbers_.data() + j * m + last, R_.col(j) + first);
    }
  }
  const DeviceFactor* on_gpu() const { return dynamic_cast<const DeviceFactor*>(held_.get()); }

  MatrixView<S> R_;
  Options options_;
  int gpu_;
  std::optional<TurnedRows> rows_;
  bool in_place_ = false;
  std::unique_ptr<HeldFactor> held_;
  std::vector<double> numbers_;
};

}  // namespace gpucholmod::c
