#include "cuda/resident.h"

#include <algorithm>
#include <type_traits>

#include "cuda/kernels/resident.cuh"
#include "cuda/timer.h"

namespace gpucholmod::cuda {
namespace {

/// The width that V is padded to.
template <class F>
void with_width(index_t k, F&& f) {
  if (k <= 8) f(std::integral_constant<int, 8>());
  else if (k <= 16) f(std::integral_constant<int, 16>());
  else if (k <= 32) f(std::integral_constant<int, 32>());
  else f(std::integral_constant<int, 64>());
}

int attribute(cudaDeviceAttr which) {
  int device = 0, value = 0;
  check(cudaGetDevice(&device), "ask for the current device");
  check(cudaDeviceGetAttribute(&value, which, device), "ask about the device");
  return value;
}

template <class T, int K>
constexpr int shared_bytes = resident::SharedMemory<K>::words * int(sizeof(double));

/// Whether the persistent kernel runs on this device: it has been compiled for it, and finds the shared memory it needs.
template <class T, int K>
bool can_persist() {
  cudaFuncAttributes attributes;
  check(cudaFuncGetAttributes(&attributes, modify_strips<T, K>), "ask about the resident kernel");
  return GPUCHOLMOD_PERSISTENT(10 * attributes.ptxVersion) &&
         shared_bytes<T, K> <= attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
}

template <class T, int K>
ResidentMethod choose(ResidentMethod asked) {
  if (asked == ResidentMethod::stepwise) return asked;
  if (can_persist<T, K>()) return ResidentMethod::persistent;
  if (asked == ResidentMethod::automatic) return ResidentMethod::stepwise;
  throw Error(ErrorCode::backend_unavailable,
              "method \"persistent\" needs a GPU for data centres of compute capability 9.0 or later",
              {{"backend", "cuda"}, {"reason", "device_too_old"}});
}

template <class T, int K>
void start_persistent(const resident::Job<T>& job, cudaStream_t stream) {
  constexpr int shared = shared_bytes<T, K>;
  check(cudaFuncSetAttribute(modify_strips<T, K>, cudaFuncAttributeMaxDynamicSharedMemorySize, shared),
        "set up the resident kernel");
  const int blocks = std::min(job.shared.strips, attribute(cudaDevAttrMultiProcessorCount));
  modify_strips<T, K><<<unsigned(blocks), DeviceTeam::THREADS, shared, stream>>>(job);
}

template <class T, int K>
void start_stepwise(const resident::Job<T>& job, cudaStream_t stream) {
  const int strips = job.shared.strips, per_strip = resident::STRIP / resident::NB;
  begin_steps<T, K><<<unsigned(strips), DeviceTeam::THREADS, 0, stream>>>(job);
  for (int b = 0; b < strips * per_strip; ++b) {
    find_steps<T, K><<<1, DeviceTeam::THREADS, 0, stream>>>(job, b);
    apply_steps<T, K><<<unsigned(strips - b / per_strip), DeviceTeam::THREADS, 0, stream>>>(job, b);
  }
}

/// One pass: at most `resident_pass` columns of V, in host memory.
template <class T, int K>
void pass(const T* dR, T* dOut, const Layout& layout, const double* V, index_t k, const ResidentRequest& request,
          bool dry_run, Pool& pool, cudaStream_t stream, ResidentOutcome& outcome) {
  using M = resident::Message<K>;
  outcome.method = choose<T, K>(request.method);
  static_assert(Layout::strip == resident::STRIP && Layout::block == resident::NB, "what a factor looks like");
  const int strips = int(layout.padded / resident::STRIP), blocks = strips * (resident::STRIP / resident::NB);
  constexpr index_t progress_ints = sizeof(resident::Progress) / sizeof(int);

  const PoolBuffer<double> dV(pool, layout.padded * K), dmessages(pool, index_t(blocks) * M::words),
      dsaved(pool, layout.padded * K), dinverses(pool, index_t(blocks) * resident::NB * resident::LDB);
  const PoolBuffer<int> dints(pool, progress_ints + 3 * index_t(blocks));
  check(cudaMemsetAsync(dV.data(), 0, dV.bytes(), stream), "clear V");
  // They are copied with the gaps between their columns.
  check(cudaMemsetAsync(dmessages.data(), 0, dmessages.bytes(), stream), "clear the messages");
  check(cudaMemcpy2DAsync(dV.data(), sizeof(double) * layout.padded, V, sizeof(double) * layout.n,
                          sizeof(double) * layout.n, k, cudaMemcpyHostToDevice, stream), "send V");

  int* dflags = dints.data() + progress_ints;
  auto* dprogress = reinterpret_cast<resident::Progress*>(dints.data());
  const resident::Job<T> job{{strips, request.sign == Sign::update ? 1.0 : -1.0, dmessages.data(), dflags, dflags + blocks,
                              dflags + 2 * blocks, dprogress, request.always_fall_back},
                             dR, dry_run ? nullptr : dOut, layout.ld, dV.data(), dsaved.data(), dinverses.data()};
  Timer begin, end;
  begin.record(stream);
  check(cudaMemsetAsync(dints.data(), 0, dints.bytes(), stream), "clear the flags");
  if (outcome.method == ResidentMethod::persistent) start_persistent<T, K>(job, stream);
  else start_stepwise<T, K>(job, stream);
  check(cudaGetLastError(), "start the resident method");
  end.record(stream);

  resident::Progress progress;
  check(cudaMemcpyAsync(&progress, dprogress, sizeof progress, cudaMemcpyDeviceToHost, stream), "fetch the outcome");
  check(cudaStreamSynchronize(stream), "modify the factor");
  outcome.seconds += end.seconds_since(begin);
  outcome.blocks += blocks;
  outcome.fallbacks += outcome.method == ResidentMethod::persistent ? progress.fallbacks : blocks;
  outcome.rescalings += progress.rescalings;
  if (progress.stop) outcome.pivot = progress.pivot;
}

}  // namespace

template <class T>
void modify_resident(const T* dR, T* dOut, const Layout& layout, const double* V, const ResidentRequest& request,
                     bool dry_run, Pool& pool, cudaStream_t stream, ResidentOutcome& outcome) {
  for (index_t first = 0; first < request.k && outcome.pivot < 0; first += resident_pass) {
    const index_t k = std::min(resident_pass, request.k - first);
    with_width(k, [&](auto width) {
      pass<T, decltype(width)::value>(first == 0 ? dR : dOut, dOut, layout, V + first * layout.n, k, request, dry_run,
                                      pool, stream, outcome);
    });
  }
}

template void modify_resident(const float*, float*, const Layout&, const double*, const ResidentRequest&, bool, Pool&,
                              cudaStream_t, ResidentOutcome&);
template void modify_resident(const double*, double*, const Layout&, const double*, const ResidentRequest&, bool, Pool&,
                              cudaStream_t, ResidentOutcome&);

}  // namespace gpucholmod::cuda
