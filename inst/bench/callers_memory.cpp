// Factors in the memory of a GPU that is the caller's, modified by the C interface: whole calls, beside those of a
// handle on the same GPU.
//
//   make -C tests/core measure-callers-memory && tests/core/build/plain/measure_callers_memory [--repeats=21] [n:k...]
//
// R (n x n, double): ones on the diagonal, noise of standard deviation 0.3 / sqrt(n) in the triangle. V
// normal / sqrt(n); VV' is added and taken off in turn. Times are medians in ms, by the host's clock, of calls that
// begin with nothing queued.
//
//   host      a handle, V in the host's memory
//   gpu       a handle, V on the GPU
//   into      R and V in the caller's memory on the GPU, ld = n; the result goes to another matrix there
//   queued    as `into` with a verdict: from the call until the caller's stream is done
//   stream    as `queued` for 20 calls that follow each other in the stream, divided by 20
//   upper     as `into`, but in place
//   lower     as `upper`, with a lower factor, which is copied
//   eps       max |R~'R~x - R'Rx| / (2^-52 |R'Rx|) of a random x after all calls, which add VV' as often as they take
//             it off
#include <cuda_runtime_api.h>
#include <gpucholmod.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

using Doubles = std::vector<double>;
int repeats = 21;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

void require(bool holds, const char* what) {
  if (holds) return;
  std::fprintf(stderr, "%s\n", what);
  std::exit(1);
}

class OnGpu {
 public:
  explicit OnGpu(const Doubles& numbers) : bytes_(numbers.size() * sizeof(double)) {
    require(cudaMalloc(&data_, bytes_) == cudaSuccess, "no memory on the GPU");
    cudaMemcpy(data_, numbers.data(), bytes_, cudaMemcpyHostToDevice);
  }
  OnGpu(const OnGpu&) = delete;
  ~OnGpu() { cudaFree(data_); }
  double* data() const { return static_cast<double*>(data_); }
  Doubles get() const {
    Doubles numbers(bytes_ / sizeof(double));
    cudaMemcpy(numbers.data(), data_, bytes_, cudaMemcpyDeviceToHost);
    return numbers;
  }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Returns the median ms of call(weight), which adds and takes off in turn.
template <class F>
double median_of(F&& call) {
  Doubles ms;
  for (int i = 0; i < 2 * repeats + 2; ++i) {
    cudaDeviceSynchronize();
    const double start = now();
    call(i % 2 == 0);
    if (i >= 2) ms.push_back(1e3 * (now() - start));
  }
  std::nth_element(ms.begin(), ms.begin() + repeats, ms.end());
  return ms[repeats];
}

/// Returns R'Rx for an upper R (n x n).
Doubles product(const Doubles& R, ptrdiff_t n, const Doubles& x) {
  Doubles y(n), b(n);
  for (ptrdiff_t j = 0; j < n; ++j)
    for (ptrdiff_t i = 0; i <= j; ++i) y[i] += R[i + j * n] * x[j];
  for (ptrdiff_t j = 0; j < n; ++j)
    for (ptrdiff_t i = 0; i <= j; ++i) b[j] += R[i + j * n] * y[i];
  return b;
}

void measure(ptrdiff_t n, ptrdiff_t k) {
  std::mt19937_64 bits(1);
  std::normal_distribution<double> normal;
  Doubles R(n * n), L(n * n), V(n * k), plus(k, 1), minus(k, -1), x(n);
  for (ptrdiff_t j = 0; j < n; ++j)
    for (ptrdiff_t i = 0; i <= j; ++i)
      L[j + i * n] = R[i + j * n] = i == j ? 1 : 0.3 / std::sqrt(double(n)) * normal(bits);
  for (double& v : V) v = normal(bits) / std::sqrt(double(n));
  for (double& e : x) e = normal(bits);
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT, lower = options;
  options.device = lower.device = GPUCHOLMOD_ANY_GPU;
  lower.triangle = GPUCHOLMOD_LOWER;
  gpucholmod_status status;
  const auto check = [&](int code) { require(code == GPUCHOLMOD_OK, status.message); };
  gpucholmod_factor* held = nullptr;
  check(gpucholmod_factor_create(gpucholmod_const_double_matrix(R.data(), n, n, n), 0, &options, &held, &status));
  const OnGpu V_there(V), R_there(R), L_there(L);
  const gpucholmod_const_matrix here = gpucholmod_const_double_matrix(V.data(), n, k, n),
                                there = gpucholmod_const_double_matrix(V_there.data(), n, k, n);
  const auto of_handle = [&](const gpucholmod_const_matrix& columns) {
    return median_of([&](bool add) {
      check(gpucholmod_factor_update(held, columns, (add ? plus : minus).data(), 1, nullptr, nullptr, &status));
    });
  };
  const auto of_callers = [&](const OnGpu& factor, const gpucholmod_options& how) {
    return median_of([&](bool add) {
      check(gpucholmod_update(gpucholmod_double_matrix(factor.data(), n, n, n), there, (add ? plus : minus).data(), 1,
                              nullptr, &how, &status));
    });
  };
  const double host = of_handle(here), gpu = of_handle(there);
  gpucholmod_factor_destroy(held);
  const OnGpu other(R), verdict(Doubles(1, -1.0));
  gpucholmod_options queue = options;
  queue.verdict = reinterpret_cast<int*>(verdict.data());
  const auto update_into = [&](bool add, const gpucholmod_options& how) {
    const OnGpu &from = add ? R_there : other, &to = add ? other : R_there;
    check(gpucholmod_update_into(gpucholmod_const_double_matrix(from.data(), n, n, n),
                                 gpucholmod_double_matrix(to.data(), n, n, n), there, (add ? plus : minus).data(), 1,
                                 nullptr, &how, &status));
  };
  const auto finish = [&] {
    cudaStreamSynchronize(nullptr);
    int word = -1;
    cudaMemcpy(&word, verdict.data(), sizeof word, cudaMemcpyDeviceToHost);
    require(word == 0, "a verdict is not 0");
  };
  constexpr int in_stream = 20;
  const double into = median_of([&](bool add) { update_into(add, options); });
  const double queued = median_of([&](bool add) {
    update_into(add, queue);
    cudaStreamSynchronize(nullptr);
  });
  finish();
  const double stream = median_of([&](bool) {
    for (int i = 0; i < in_stream; ++i) update_into(i % 2 == 0, queue);
    cudaStreamSynchronize(nullptr);
  }) / in_stream;
  finish();
  const double upper = of_callers(R_there, options), of_lower = of_callers(L_there, lower);
  const Doubles before = product(R, n, x), after = product(R_there.get(), n, x);
  double off = 0, size = 0;
  for (ptrdiff_t i = 0; i < n; ++i) {
    off = std::max(off, std::abs(after[i] - before[i]));
    size = std::max(size, std::abs(before[i]));
  }
  std::printf("%7td %4td %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %9.3f %8.1f\n", n, k, host, gpu, into, queued,
              stream, upper, of_lower, off / size * 0x1p52);
  std::fflush(stdout);
}

}  // namespace

int main(int count, char** arguments) {
  std::vector<std::pair<long, long>> sizes;
  for (int i = 1; i < count; ++i) {
    long n = 0, k = 0;
    if (std::strncmp(arguments[i], "--repeats=", 10) == 0) repeats = std::max(1, std::atoi(arguments[i] + 10));
    else require(std::sscanf(arguments[i], "%ld:%ld", &n, &k) == 2 && n > 0 && k > 0, "usage: [--repeats=21] [n:k...]");
    if (n > 0) sizes.push_back({n, k});
  }
  if (sizes.empty()) sizes = {{300, 1}, {1000, 16}, {5000, 16}, {5000, 64}, {16384, 16}};
  gpucholmod_status status;
  require(gpucholmod_gpu(GPUCHOLMOD_ANY_GPU, &status) == GPUCHOLMOD_OK, status.message);
  std::printf("%s, ms\n"
              "%7s %4s %9s %9s %9s %9s %9s %9s %9s %8s\n",
              status.message, "n", "k", "host", "gpu", "into", "queued", "stream", "upper", "lower", "eps");
  for (const auto& [n, k] : sizes) measure(n, k);
}
