// The CPU's core without R around it, and its opponents, in microseconds: a factor that is in the cache, modified in
// place by one thread, over and over. Compiled by core.R, once for each contender; the arguments are instructions
// ("avx512", "avx2", "plain"; for this package), seconds for each figure, the largest n, and how many bytes R is stored
// behind the beginning of a cache line. Prints lines "name;what;n;k;microseconds".
//
// Each figure is the least of many means of up to ten calls: updates and downdates by the same V in turn, so that the
// factor stays what it is. The times of this package include its checks; Eigen and hyhound check neither R nor V.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A factor and V. R is stored by columns (upper) or by rows (lower), `behind` bytes behind the beginning of a cache
/// line; its diagonal is at least 2.
template <class T>
struct Problem {
  int n, k;
  std::vector<T> memory, V;
  T* R;
  Problem(int n, int k, bool upper, int behind)
      : n(n), k(k), memory(std::size_t(n) * n + 128 / sizeof(T)), V(std::size_t(n) * k) {
    R = memory.data() + (64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64 + behind) / sizeof(T);
    std::mt19937 bits(n * 100 + k);
    std::normal_distribution<> normal;
    for (int j = 0; j < n; ++j)
      for (int i = 0; i <= j; ++i)
        R[upper ? i + std::size_t(j) * n : j + std::size_t(i) * n] =
            T(i == j ? 2 + std::abs(normal(bits)) : normal(bits) / std::sqrt(n));
    for (T& v : V) v = T(0.1 * normal(bits) / std::sqrt(n));
  }
};

void tell(const char* name, const std::string& what, int n, int k, double seconds) {
  std::printf("%s;%s;%d;%d;%.4g\n", name, what.c_str(), n, k, 1e6 * seconds);
  std::fflush(stdout);
}

/// Prints the least mean time of update() and of downdate().
template <class Update, class Downdate>
void measure(const char* name, const std::string& what, int n, int k, double budget, Update&& update,
             Downdate&& downdate) {
  for (int i = 0; i < 3; ++i) update(), downdate();
  double start = now();
  update(), downdate();
  const int calls = std::clamp(int(1e-4 / (now() - start)), 1, 10);
  double least[] = {1e9, 1e9};
  start = now();
  do {
    const double a = now();
    for (int i = 0; i < calls; ++i) update();
    const double b = now();
    for (int i = 0; i < calls; ++i) downdate();
    least[0] = std::min(least[0], (b - a) / calls);
    least[1] = std::min(least[1], (now() - b) / calls);
  } while (now() - start < budget * std::max(1.0, n / 400.0));
  tell(name, what + "update", n, k, least[0]);
  tell(name, what + "downdate", n, k, least[1]);
}

template <class F>
void each_case(int most, F&& f) {
  for (int k : {1, 2, 4, 16, 64})
    for (int n : {5, 10, 20, 30, 50, 64, 100, 128, 200, 256, 512, 1024, 2048, 4096})
      if (n <= most) f(n, k);
}

}  // namespace

#if defined(OF_EIGEN)

#include <Eigen/Dense>

int main(int, char** argv) {
  const int behind = std::atoi(argv[4]);
  each_case(std::atoi(argv[3]), [&](int n, int k) {
    Problem<double> p(n, k, false, behind);
    Eigen::Map<Eigen::MatrixXd> L(p.R, n, n), V(p.V.data(), n, k);
    const auto call = [&](double sigma) {
      for (int q = 0; q < k; ++q) Eigen::internal::llt_inplace<double, Eigen::Lower>::rankUpdate(L, V.col(q), sigma);
    };
    measure("Eigen", "", n, k, std::atof(argv[2]), [&] { call(1); }, [&] { call(-1); });
  });
}

#elif defined(OF_HYHOUND)

#include <hyhound/micro-kernels/householder-updowndate-diag.tpp>
#include <hyhound/micro-kernels/householder-updowndate-full.tpp>
#include <hyhound/micro-kernels/householder-updowndate-tail.tpp>
#include <hyhound/householder-updowndate-serial.tpp>
#include <hyhound/householder-updowndate-micro-kernels.tpp>

// hyhound overwrites V. V is copied for each call as this package does; the copy is part of the time.
template <int rows, int columns>
void by_blocks(const char* name, int n, int k, int padding, int behind, double budget) {
  using View = guanaqo::MatrixView<double, long long>;
  Problem<double> p(n, k, false, behind);
  std::vector<double> W((n + padding) * k);
  const auto call = [&](auto sign) {
    for (int q = 0; q < k; ++q) std::copy_n(p.V.data() + q * n, n, W.data() + q * (n + padding));
    View L{{.data = p.R, .rows = n, .cols = n, .outer_stride = n}},
        A{{.data = W.data(), .rows = n, .cols = k, .outer_stride = n + padding}};
    hyhound::update_cholesky<double, hyhound::Config<double>{.block_size_r = rows, .block_size_s = columns}>(L, A,
                                                                                                             sign);
  };
  measure(name, "", n, k, budget, [&] { call(hyhound::Update{}); }, [&] { call(hyhound::Downdate{}); });
}

int main(int, char** argv) {
  const double budget = std::atof(argv[2]) / 3;
  const int behind = std::atoi(argv[4]);
  each_case(std::atoi(argv[3]), [&](int n, int k) {  // core.R takes the best of the three
    by_blocks<8, 24>("hyhound", n, k, 0, behind, budget);
    by_blocks<8, 24>("hyhound", n, k, 8, behind, budget);
    by_blocks<4, 24>("hyhound", n, k, 8, behind, budget);
  });
}

#else

#include "cpu/blocked.h"

using namespace gpucholmod;

template <class T>
void ours(const char* name, Instructions instructions, double budget, int most, int behind) {
  const Poll poll = [](double) {};
  each_case(most, [&](int n, int k) {
    for (const Uplo uplo : {Uplo::upper, Uplo::lower}) {
      Problem<T> p(n, k, uplo == Uplo::upper, behind);
      const auto call = [&](index_t removed) {
        cpu::BlockedSweep<T> sweep({p.V.data(), n, k, n}, removed, T(1), uplo, instructions, 1);
        if (sweep.advance({p.R, n, n, n}, {p.R, n, n, n}, false, poll) >= 0) std::abort();
      };
      measure(name, uplo == Uplo::upper ? "upper, " : "lower, ", n, k, budget, [&] { call(0); }, [&] { call(k); });
    }
  });
}

int main(int, char** argv) {
  const Instructions instructions = !std::strcmp(argv[1], "plain")  ? Instructions::plain
                                    : !std::strcmp(argv[1], "avx2") ? Instructions::avx2
                                                                    : Instructions::avx512;
  if (!cpu::available(instructions)) return 0;
  ours<double>("double", instructions, std::atof(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
  ours<float>("single", instructions, std::atof(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
}

#endif
