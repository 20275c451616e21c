#include "cuda/engine.h"

#include <algorithm>

#include "cuda/kernels/block_columns.cuh"

namespace gpucholmod::cuda {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&value, which, device), "ask about the device");
  return value;
}

namespace {

template <class T, int K>
constexpr int shared_bytes = block_columns::SharedMemory<K>::words * int(sizeof(double));

/// Whether the persistent kernel runs on this device: it has been compiled for it, and finds the shared memory it
/// needs.
template <class T, int K>
bool can_persist() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, modify_strips<T, K>), "ask about the persistent kernel");
  return GPUCHOLMOD_PERSISTENT(10 * attributes.ptxVersion) &&
         shared_bytes<T, K> <= attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

template <class T, int K>
void start_persistent(const block_columns::Job<T>& job, cudaStream_t stream) {
  constexpr int shared = shared_bytes<T, K>;
  check(cudaFuncSetAttribute(modify_strips<T, K>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "set up the persistent kernel");
  const int blocks = std::min(job.end - job.first, multiprocessors());
  modify_strips<T, K><<<unsigned(blocks), DeviceTeam::THREADS, shared, stream>>>(job);
}

template <class T, int K>
void start_stepwise(const block_columns::Job<T>& job, cudaStream_t stream) {
  begin_steps<T, K><<<unsigned(job.end - job.first), DeviceTeam::THREADS, 0, stream>>>(job);
  for (int b = job.first * block_columns::BLOCKS; b < job.end * block_columns::BLOCKS; ++b) {
    find_steps<T, K><<<1, DeviceTeam::THREADS, 0, stream>>>(job, b);
    apply_steps<T, K><<<unsigned(job.end - b / block_columns::BLOCKS), DeviceTeam::THREADS, 0, stream>>>(job, b);
  }
}

/// Throws backend_unavailable where the kernels asked for do not run.
template <class T>
Launch choose_launch(int width, Launch asked) {
  if (asked == Launch::stepwise) return asked;
  if (block_columns::with_width(width, [](auto K) { return can_persist<T, decltype(K)::value>(); })) return Launch::persistent;
  if (asked == Launch::automatic) return Launch::stepwise;
  throw Error(ErrorCode::backend_unavailable,
              "this method needs a GPU for data centres of compute capability 9.0 or later",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}

}  // namespace

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

template <class T>
Pass<T>::Pass(Pool& pool, index_t k, int strips, int panels, const Task& task)
    : size_{block_columns::padded_width(k), strips, panels}, k_(k), sign_(task.sign),
      householder_(task.algorithm == Algorithm::householder), launch_(choose_launch<T>(size_.width, task.launch)),
      dwords_(pool, size_.doubles()), dints_(pool, size_.ints()) {}

template <class T>
void Pass<T>::prepare(const double* V, index_t n, index_t ldv, cudaStream_t stream) const {
  // Transforms are copied with the gaps between their columns, so these are cleared too.
  check(cudaMemsetAsync(dwords_.data(), 0, dwords_.bytes(), stream), "clear the transforms");
  check(cudaMemsetAsync(dints_.data(), 0, dints_.bytes(), stream), "clear the flags");
  check(cudaMemcpy2DAsync(size_.V(dwords_.data()), sizeof(double) * size_.strips * block_columns::STRIP, V, sizeof(double) * ldv,
                          sizeof(double) * n, k_, cudaMemcpyHostToDevice, stream), "send V");
}

template <class T>
void Pass<T>::start(int panel, int first, int end, const T* R, T* out, index_t ld, double* own, cudaStream_t stream) const {
  const block_columns::Job<T> job = block_columns::make_job<T>(size_, dwords_.data(), dints_.data(), sign_, householder_, panel,
                                                               first, end, R, out, ld, own);
  block_columns::with_width(size_.width, [&](auto K) {
    if (launch_ == Launch::persistent) start_persistent<T, decltype(K)::value>(job, stream);
    else start_stepwise<T, decltype(K)::value>(job, stream);
  });
  check(cudaGetLastError(), "start the modification of a panel");
}

template <class T>
void Pass<T>::fetch_state(block_columns::PassState* to, cudaStream_t stream) const {
  check(cudaMemcpyAsync(to, size_.pass_state(dints_.data()), sizeof *to, cudaMemcpyDeviceToHost, stream),
        "fetch what became of a panel");
}

template <class T>
void Pass<T>::add_to(Work& work, const block_columns::PassState& state) const {
  work.launch = launch_;
  work.blocks += size_.blocks();
  work.fallbacks += launch_ == Launch::persistent ? state.fallbacks : size_.blocks();
  work.rescalings += state.rescalings;
}

template class Pass<float>;
template class Pass<double>;

}  // namespace gpucholmod::cuda
