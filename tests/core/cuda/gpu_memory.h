#pragma once

#include <cuda_runtime_api.h>

#include <utility>
#include <vector>

#include "../c_storage.h"

/// The numbers and factors of a caller of the C interface in the memory of a GPU.
namespace gpucholmod::test {

/// Holds numbers in the memory of the current device; data() is null if there are none.
template <class T>
class OnGpu {
 public:
  explicit OnGpu(const std::vector<T>& numbers) : count_(numbers.size()) {
    if (count_ == 0) return;
    EXPECT_EQ(cudaMalloc(&data_, bytes()), cudaSuccess);
    set(numbers);
  }
  OnGpu(const OnGpu&) = delete;
  ~OnGpu() { cudaFree(data_); }
  T* data() const { return static_cast<T*>(data_); }
  void set(const std::vector<T>& numbers) {
    EXPECT_EQ(cudaMemcpy(data_, numbers.data(), bytes(), cudaMemcpyHostToDevice), cudaSuccess);
  }
  std::vector<T> get() const {
    std::vector<T> numbers(count_);
    EXPECT_EQ(cudaMemcpy(numbers.data(), data_, bytes(), cudaMemcpyDeviceToHost), cudaSuccess);
    return numbers;
  }

 private:
  std::size_t bytes() const { return count_ * sizeof(T); }
  std::size_t count_;
  void* data_ = nullptr;
};
template <class T>
OnGpu(const std::vector<T>&) -> OnGpu<T>;

template <class Matrix>
std::vector<typename Matrix::Scalar> numbers_of(const Matrix& A) {
  return {A.data(), A.data() + A.size()};
}
/// Returns the numbers of a matrix with leading dimension ld, with unused numbers between its columns.
template <class S>
std::vector<S> spaced(const Stored<S>& A, index_t ld) {
  return Padded<S>(A, ld).data;
}

inline gpucholmod_options on_any_gpu(int form) {
  gpucholmod_options chosen = triangle(form);
  chosen.device = GPUCHOLMOD_ANY_GPU;
  return chosen;
}

/// Describes a factor of the caller in the memory of a GPU. With `all_on_gpu`, everything else of a call is there, too.
struct GpuMemory {
  int form;
  bool all_on_gpu;
};
template <class S>
class GpuMemoryFactor {
 public:
  GpuMemoryFactor(const Doubles& R, const GpuMemory& how)
      : form_(how.form), all_on_gpu_(how.all_on_gpu),
        R_(test::stored(Stored<S>(R.cast<S>()), is_lower()), R.cols() + 3), there_(R_.data) {}

  Doubles get() const {
    Padded<S> now = R_;
    now.data = there_.get();
    return upper(now.matrix(now.rows), is_lower()).template cast<double>();
  }
  Answer modify(const Modification& asked, bool& half_modified) {
    const index_t n = R_.rows, k = asked.k(), m = asked.sides.m, rows = m > 0 ? k : 0;
    const Stored<S> columns = asked.V.cast<S>();
    const std::vector<S> V = spaced(columns, n + 2);
    const Doubles transposed = Eigen::Map<const Doubles>(asked.sides.Y.data(), m, rows).transpose();
    const std::vector<double> Y = numbers_of(transposed);
    Answer answer;
    answer.sides = asked.sides;
    const OnGpu V_there(V);
    const OnGpu w_there(asked.weights), Y_there(Y), z_there(answer.sides.z), rss_there(answer.sides.rss);
    const auto at = [&](auto& there, auto& here) -> decltype(here.data()) {
      return all_on_gpu_ ? there.data() : here.data();
    };
    const gpucholmod_right_sides sides = right_sides(at(z_there, answer.sides.z), n, m, n, at(Y_there, Y), rows, rows,
                                                     at(rss_there, answer.sides.rss));
    const gpucholmod_options chosen = on_any_gpu(form_);
    gpucholmod_status status;
    const S* const columns_at = at(V_there, V);
    gpucholmod_update(matrix(there_.data(), n, n, R_.ld), matrix(columns_at, n, k, n + 2), at(w_there, asked.weights),
                      asked.scale * asked.scale, m > 0 ? &sides : nullptr, &chosen, &status);
    half_modified = tell(status, answer);
    if (all_on_gpu_) {
      answer.sides.z = z_there.get();
      answer.sides.rss = rss_there.get();
    }
    return answer;
  }

 private:
  bool is_lower() const { return form_ & GPUCHOLMOD_LOWER; }

  int form_;
  bool all_on_gpu_;
  Padded<S> R_;
  OnGpu<S> there_;
};

using GpuMemoryStorage = CStorageOf<GpuMemoryFactor, GpuMemory>;

}  // namespace gpucholmod::test
