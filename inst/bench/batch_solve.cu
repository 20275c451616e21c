// Solving with a batch of factors on a GPU: the device's time alone, by events.
//
//   make -C tests/core measure-batch-solve && tests/core/build/plain/measure_batch_solve [--repeats=9] [n:b:m ...]
//
// b members of order n, m right-hand sides for each: median ms of a launch, forward alone and forward and back, for
// doubles and for floats. Beside it, its ratio to the time that reading R (once for each substitution), reading B and
// writing B take at the rate at which the device copies memory.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "cuda/batch_solve.cuh"
#include "cuda/context.h"

namespace {

using namespace gpucholmod;
using namespace gpucholmod::cuda;

int repeats = 9;

/// Numbers on the device: `count` numbers that repeat `some`. Their values do not matter to the time.
template <class S>
class OnDevice {
 public:
  OnDevice(const std::vector<S>& some, index_t count) : bytes_(sizeof(S) * count) {
    check(cudaMalloc(&data_, bytes_), "allocate memory");
    for (index_t at = 0; at < count; at += index_t(some.size()))
      check(cudaMemcpy(data() + at, some.data(), sizeof(S) * std::min(index_t(some.size()), count - at),
                       cudaMemcpyHostToDevice),
            "send numbers");
  }
  OnDevice(const OnDevice&) = delete;
  ~OnDevice() { cudaFree(data_); }
  S* data() const { return static_cast<S*>(data_); }
  double bytes() const { return double(bytes_); }

 private:
  void* data_ = nullptr;
  std::size_t bytes_;
};

/// Returns the median seconds of launch().
template <class Prepare, class Launch>
double seconds_of(Prepare&& prepare, Launch&& launch) {
  Timer begin, end;
  std::vector<double> all;
  for (int i = 0; i < repeats + 2; ++i) {
    prepare();
    begin.record(nullptr);
    launch();
    end.record(nullptr);
    check(cudaDeviceSynchronize(), "measure");
    if (i >= 2) all.push_back(end.seconds_since(begin));
  }
  std::nth_element(all.begin(), all.begin() + repeats / 2, all.end());
  return all[repeats / 2];
}

/// Returns the bytes that a copy reads and writes in a second.
double copy_rate() {
  const OnDevice<double> from(std::vector<double>(1 << 20, 1.5), 1 << 27), to(std::vector<double>(1 << 20), 1 << 27);
  return 2 * from.bytes() / seconds_of([] {}, [&] {
           check(cudaMemcpyAsync(to.data(), from.data(), std::size_t(from.bytes()), cudaMemcpyDeviceToDevice), "copy");
         });
}

template <class T>
void measure(index_t n, index_t b, index_t m, double rate) {
  std::mt19937 bits(static_cast<unsigned>(n));
  std::normal_distribution<> normal;
  std::vector<T> R(words_of(n) * std::min<index_t>(b, 32));
  for (T& r : R) r = T(normal(bits) / double(n));
  for (index_t at = 0; at < index_t(R.size()); at += words_of(n))
    for (index_t i = 0; i < n; ++i) R[at + row_of(n, i) + i] = T(1 + normal(bits) / 10);
  std::vector<double> B(n * m * std::min<index_t>(b, 32));
  for (double& x : B) x = normal(bits);
  const OnDevice<T> dR(R, words_of(n) * b);
  const OnDevice<double> dB0(B, n * m * b), dB(B, n * m * b);
  std::printf("%s %5td %7td %3td", sizeof(T) == 8 ? "double" : "single", n, b, m);
  for (const TriangularSolve which : {TriangularSolve::forward, TriangularSolve::both}) {
    const double took = seconds_of(
        [&] {
          check(cudaMemcpyAsync(dB.data(), dB0.data(), std::size_t(dB.bytes()), cudaMemcpyDeviceToDevice), "copy");
        },
        [&] { queue_solve<T>({n, n, m, 0, m, Numbers<T>::of(dR.data()), dB.data()}, b, which, nullptr); });
    const double bytes = (which == TriangularSolve::both ? 2 : 1) * dR.bytes() + 2 * dB.bytes();
    std::printf("  %8.3f ms %5.2f times", 1e3 * took, took * rate / bytes);
  }
  std::printf("\n");
  std::fflush(stdout);
}

void measure_both(index_t n, index_t b, index_t m, double rate) {
  measure<double>(n, b, m, rate);
  measure<float>(n, b, m, rate);
}

}  // namespace

int main(int count, char** arguments) {
  const double rate = copy_rate();
  cudaDeviceProp properties;
  check(cudaGetDeviceProperties(&properties, 0), "ask about the device");
  std::printf("%s, copies %.2f TB/s\n", properties.name, rate / 1e12);
  std::printf("           n members   m          forward                  both\n");
  bool asked = false;
  for (int i = 1; i < count; ++i) {
    if (std::strncmp(arguments[i], "--repeats=", 10) == 0) {
      repeats = std::max(1, std::atoi(arguments[i] + 10));
      continue;
    }
    long n, b, m;
    if (std::sscanf(arguments[i], "%ld:%ld:%ld", &n, &b, &m) != 3 || n < 1 || n > 1024 || b < 1 || m < 1) {
      std::fprintf(stderr, "not understood: %s\n", arguments[i]);
      return 1;
    }
    measure_both(n, b, m, rate);
    asked = true;
  }
  if (asked) return 0;
  constexpr index_t sizes[][2] = {{32, 100000}, {128, 4000}, {200, 3000}, {512, 500}, {1024, 200}};
  for (const auto& [n, b] : sizes)
    for (const index_t m : {1, 4, 16}) measure_both(n, b, m, rate);
}
