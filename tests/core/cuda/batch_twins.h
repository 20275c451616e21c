#pragma once

#include <cstring>
#include <vector>

#include "../batch_call.h"
#include "gpu_memory.h"

/// Batch calls with numbers in the memory of a GPU, beside the same calls with numbers in host memory.
namespace gpucholmod::test {

/// Holds two batches of the same factors on a GPU. A call passes its numbers to the first batch from host memory, and
/// to the second from the GPU's memory.
class Twins {
 public:
  Twins(const Batch& of, Precision precision, const std::vector<ptrdiff_t>& orders = {}) : n_(of.n), count_(of.b) {
    const gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
    const std::vector<float> floats(of.R.begin(), of.R.end());
    const index_t cols = n_ * count_;
    const gpucholmod_const_matrix R = precision == Precision::single ? matrix(floats.data(), n_, cols, n_)
                                                                     : matrix(of.R.data(), n_, cols, n_);
    for (gpucholmod_batch*& made : held_) {
      const ptrdiff_t* const of_members = orders.empty() ? nullptr : orders.data();
      EXPECT_EQ(gpucholmod_batch_create(R, count_, of_members, 0, &options, &made, &status), GPUCHOLMOD_OK)
          << status.message;
    }
  }
  Twins(const Twins&) = delete;
  ~Twins() {
    for (gpucholmod_batch* const made : held_) gpucholmod_batch_destroy(made);
  }

  gpucholmod_batch* here() const { return held_[0]; }
  gpucholmod_batch* there() const { return held_[1]; }

  /// Updates both batches by V (n x k or n x k count), with `gap` unused rows below it. Returns the code.
  template <class S>
  int update(gpucholmod_batch_modification what, const Stored<S>& V, index_t gap = 0) {
    const std::vector<S> numbers = spaced(V, n_ + gap);
    const OnGpu<S> on_gpu(numbers);
    const auto columns = [&](const S* data) { return matrix(data, n_, V.cols(), n_ + gap); };
    const auto call = [&](gpucholmod_batch* batch, const S* data, Pivots& found, gpucholmod_status& told) {
      what.V = columns(data);
      found.assign(std::size_t(count_), -7);
      return gpucholmod_batch_update(batch, &what, found.data(), nullptr, &told);
    };
    Pivots expected;
    gpucholmod_status told;
    const int code = call(here(), numbers.data(), expected, told);
    EXPECT_EQ(call(there(), on_gpu.data(), pivots, status), code) << status.message;
    EXPECT_EQ(pivots, expected);
    expect_same(told);
    EXPECT_EQ(std::memcmp(on_gpu.get().data(), numbers.data(), numbers.size() * sizeof(S)), 0);
    return code;
  }

  /// Solves with both batches for B (n x m count), with `gap` unused rows below it. Returns the code.
  template <class S>
  int solve(int system, const Stored<S>& B, index_t gap = 0) {
    std::vector<S> numbers = spaced(B, n_ + gap);
    const OnGpu<S> on_gpu(numbers);
    gpucholmod_status told;
    const int code =
        gpucholmod_batch_solve(here(), system, matrix(numbers.data(), n_, B.cols(), n_ + gap), &told);
    EXPECT_EQ(gpucholmod_batch_solve(there(), system, matrix(on_gpu.data(), n_, B.cols(), n_ + gap), &status), code)
        << status.message;
    expect_same(told);
    EXPECT_EQ(std::memcmp(on_gpu.get().data(), numbers.data(), numbers.size() * sizeof(S)), 0);
    changed = std::memcmp(spaced(B, n_ + gap).data(), numbers.data(), numbers.size() * sizeof(S)) != 0;
    return code;
  }

  std::vector<double> numbers(const gpucholmod_batch* of) const {
    std::vector<double> R(std::size_t(n_ * n_ * count_));
    EXPECT_EQ(gpucholmod_batch_get(of, matrix(R.data(), n_, n_ * count_, n_), nullptr, nullptr), GPUCHOLMOD_OK);
    return R;
  }
  /// Expects both batches to have the same bits.
  void expect_same_factors() const { EXPECT_TRUE(same(numbers(here()), numbers(there()))); }

  gpucholmod_status status;  ///< status of the last call with numbers on the GPU
  Pivots pivots;
  bool changed = false;      ///< True if the last solution differs from its right-hand sides

 private:
  void expect_same(const gpucholmod_status& told) const {
    EXPECT_EQ(status.code, told.code);
    EXPECT_EQ(status.pivot, told.pivot);
    EXPECT_EQ(status.row, told.row);
    EXPECT_EQ(status.col, told.col);
    EXPECT_EQ(status.member, told.member);
    EXPECT_STREQ(status.argument, told.argument);
    EXPECT_STREQ(status.message, told.message);
  }

  index_t n_, count_;
  gpucholmod_batch* held_[2] = {nullptr, nullptr};
};

inline gpucholmod_batch_modification modification(const Batch& of, bool independent) {
  return {of.k,        {},     of.weights.data(), of.k * of.b, of.scale.empty() ? nullptr : of.scale.data(),
          independent, nullptr};
}
template <class S>
Stored<S> columns(const Batch& of) {
  return Eigen::Map<const Doubles>(of.V.data(), of.n, of.k * of.b).cast<S>();
}

}  // namespace gpucholmod::test
