#include "cuda/resident.h"

#include <algorithm>

#include "cuda/kernels/resident.cuh"
#include "cuda/timer.h"

namespace gpucholmod::cuda {
namespace {

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&value, which, device), "ask about the device");
  return value;
}

template <class T, int K>
constexpr int shared_bytes = block_columns::SharedMemory<K>::words * int(sizeof(double));

/// Whether the persistent kernel runs on this device: it has been compiled for it, and finds the shared memory it
/// needs.
template <class T, int K>
bool can_persist() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, modify_strips<T, K>), "ask about the resident kernel");
  return GPUCHOLMOD_PERSISTENT(10 * attributes.ptxVersion) &&
         shared_bytes<T, K> <= attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

template <class T, int K>
void start_persistent(const block_columns::Job<T>& job, cudaStream_t stream) {
  constexpr int shared = shared_bytes<T, K>;
  check(cudaFuncSetAttribute(modify_strips<T, K>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "set up the resident kernel");
  const int blocks = std::min(job.end - job.first, multiprocessors());
  modify_strips<T, K><<<unsigned(blocks), DeviceTeam::THREADS, shared, stream>>>(job);
}

template <class T, int K>
void start_stepwise(const block_columns::Job<T>& job, cudaStream_t stream) {
  constexpr int per_strip = block_columns::STRIP / block_columns::NB;
  begin_steps<T, K><<<unsigned(job.end - job.first), DeviceTeam::THREADS, 0, stream>>>(job);
  for (int b = job.first * per_strip; b < job.end * per_strip; ++b) {
    find_steps<T, K><<<1, DeviceTeam::THREADS, 0, stream>>>(job, b);
    apply_steps<T, K><<<unsigned(job.end - b / per_strip), DeviceTeam::THREADS, 0, stream>>>(job, b);
  }
}

}  // namespace

int multiprocessors() { return attribute(cudaDevAttrMultiProcessorCount); }

template <class T>
ResidentMethod choose_resident(int width, ResidentMethod asked) {
  if (asked == ResidentMethod::stepwise) return asked;
  if (block_columns::with_width(width, [](auto K) { return can_persist<T, decltype(K)::value>(); }))
    return ResidentMethod::persistent;
  if (asked == ResidentMethod::automatic) return ResidentMethod::stepwise;
  throw Error(ErrorCode::backend_unavailable,
              "method \"persistent\" needs a GPU for data centres of compute capability 9.0 or later",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}

template <class T>
void start_job(int width, ResidentMethod method, const block_columns::Job<T>& job, cudaStream_t stream) {
  block_columns::with_width(width, [&](auto K) {
    if (method == ResidentMethod::persistent) start_persistent<T, decltype(K)::value>(job, stream);
    else start_stepwise<T, decltype(K)::value>(job, stream);
  });
  check(cudaGetLastError(), "start the resident method");
}

void prepare_pass(const block_columns::PassSize& size, const double* V, index_t n, index_t k, double* dwords, int* dints,
                  cudaStream_t stream) {
  // Messages are copied with the gaps between their columns, so these are cleared too.
  check(cudaMemsetAsync(dwords, 0, sizeof(double) * size.doubles(), stream), "clear the messages");
  check(cudaMemsetAsync(dints, 0, sizeof(int) * size.ints(), stream), "clear the flags");
  check(cudaMemcpy2DAsync(size.V(dwords), sizeof(double) * size.strips * block_columns::STRIP, V, sizeof(double) * n,
                          sizeof(double) * n, k, cudaMemcpyHostToDevice, stream), "send V");
}

template <class T>
void modify_resident(const T* dR, T* dOut, const Layout& layout, const double* V, const ResidentRequest& request,
                     bool dry_run, Pool& pool, cudaStream_t stream, ResidentOutcome& outcome) {
  static_assert(Layout::strip == block_columns::STRIP && Layout::block == block_columns::NB, "what a factor looks like");
  const int strips = int(layout.padded / block_columns::STRIP);
  for (index_t first = 0; first < request.k && outcome.pivot < 0; first += block_columns::most_columns) {
    const index_t k = std::min(block_columns::most_columns, request.k - first);
    const block_columns::PassSize size{block_columns::padded_width(k), strips, 1};
    outcome.method = choose_resident<T>(size.width, request.method);
    const PoolBuffer<double> dwords(pool, size.doubles()), down(pool, strips * size.strip_words());
    const PoolBuffer<int> dints(pool, size.ints());
    prepare_pass(size, V + first * layout.n, layout.n, k, dwords.data(), dints.data(), stream);
    Timer begin, end;
    begin.record(stream);
    start_job<T>(size.width, outcome.method,
                 block_columns::make_job<T>(size, dwords.data(), dints.data(), request.sign, request.always_fall_back, 0, 0,
                                       strips, first == 0 ? dR : dOut, dry_run ? nullptr : dOut, layout.ld, down.data()),
                 stream);
    end.record(stream);

    block_columns::Progress progress;
    check(cudaMemcpyAsync(&progress, size.progress(dints.data()), sizeof progress, cudaMemcpyDeviceToHost, stream),
          "fetch the outcome");
    check(cudaStreamSynchronize(stream), "modify the factor");
    outcome.seconds += end.seconds_since(begin);
    outcome.blocks += size.blocks();
    outcome.fallbacks += outcome.method == ResidentMethod::persistent ? progress.fallbacks : size.blocks();
    outcome.rescalings += progress.rescalings;
    if (progress.stop) outcome.pivot = progress.pivot;
  }
}

#define GPUCHOLMOD_INSTANTIATE(T)                                                                                       \
  template ResidentMethod choose_resident<T>(int, ResidentMethod);                                                      \
  template void start_job(int, ResidentMethod, const block_columns::Job<T>&, cudaStream_t);                                  \
  template void modify_resident(const T*, T*, const Layout&, const double*, const ResidentRequest&, bool, Pool&,        \
                                cudaStream_t, ResidentOutcome&);
GPUCHOLMOD_INSTANTIATE(float)
GPUCHOLMOD_INSTANTIATE(double)
#undef GPUCHOLMOD_INSTANTIATE

}  // namespace gpucholmod::cuda
