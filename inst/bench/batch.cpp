// A batch of factors, modified in place over and over; compiled by batch.R. The arguments are instructions (for this
// package), seconds for each figure, and megabytes of the factors as n x n matrices of doubles. Prints lines
// "name;threads;n;k;update;downdate", in microseconds a member, the least of many calls: updates and downdates by the
// same V in turn, so that the factors stay what they are. Eigen's rankUpdate checks nothing.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// A batch of factors and columns. R is stored by rows: a lower factor.
struct Problem {
  int n, k;
  std::size_t b;
  std::vector<double> R, V;
  Problem(int n, int k, double megabytes)
      : n(n), k(k), b(std::max<std::size_t>(1, std::size_t(megabytes * 1e6 / 8 / n / n))), R(b * n * n), V(b * n * k) {
    std::mt19937 bits(n * 100 + k);
    std::normal_distribution<> normal;
    for (std::size_t m = 0; m < b; ++m)
      for (int i = 0; i < n; ++i)
        for (int j = i; j < n; ++j)
          R[m * n * n + j + std::size_t(i) * n] = i == j ? 2 + std::abs(normal(bits)) : normal(bits) / std::sqrt(n);
    for (double& v : V) v = 0.1 * normal(bits) / std::sqrt(n);
  }
};

template <class F>
void measure(const char* name, int threads, const Problem& p, double budget, F&& change) {
  change(1), change(-1);
  double least[] = {1e9, 1e9};
  const double start = now();
  do {
    for (int i = 0; i < 2; ++i) {
      const double t = now();
      change(1 - 2 * i);
      least[i] = std::min(least[i], now() - t);
    }
  } while (now() - start < budget);
  std::printf("%s;%d;%d;%d;%.4g;%.4g\n", name, threads, p.n, p.k, 1e6 * least[0] / double(p.b),
              1e6 * least[1] / double(p.b));
  std::fflush(stdout);
}

const int sizes[][2] = {{10, 1},  {30, 1}, {100, 1}, {200, 1}, {10, 2},  {30, 2}, {100, 2},
                        {200, 2}, {30, 8}, {100, 8}, {200, 8}, {400, 1}, {400, 8}};

}  // namespace

#if defined(OF_EIGEN)

#include <Eigen/Dense>

int main(int, char** argv) {
  for (const auto& [n, k] : sizes) {
    Problem p(n, k, std::atof(argv[3]));
    measure("Eigen", 1, p, std::atof(argv[2]), [&, n = n, k = k](double sigma) {
      for (std::size_t m = 0; m < p.b; ++m) {
        Eigen::Map<Eigen::MatrixXd> L(p.R.data() + m * n * n, n, n), V(p.V.data() + m * n * k, n, k);
        for (int q = 0; q < k; ++q) Eigen::internal::llt_inplace<double, Eigen::Lower>::rankUpdate(L, V.col(q), sigma);
      }
    });
  }
}

#else

#include "cpu/blocked.h"
#include "cpu/host_batch.h"

using namespace gpucholmod;

int main(int, char** argv) {
  Instructions instructions = Instructions::automatic;
  for (const Instructions set : {Instructions::plain, Instructions::avx2, Instructions::avx512})
    if (std::strcmp(argv[1], std::vector{"auto", "plain", "avx2", "avx512"}[std::size_t(set)]) == 0) instructions = set;
  if (!cpu::available(instructions)) return 0;
  const double budget = std::atof(argv[2]);
  const auto nothing = [](double) {};
  for (const int threads : {1, 2})
    for (const auto& [n, k] : sizes) {
      Problem p(n, k, std::atof(argv[3]));
      const auto held = cpu::hold_batch(p.R.data(), n, p.b, Uplo::lower, Precision::double_,
                                        cpu::ordinary_memory);
      std::vector<index_t> pivots;
      std::atomic<bool> begun{false};
      BatchTask task;
      task.k = k;
      task.threads = threads;
      task.instructions = instructions;
      measure("batch", threads, p, budget, [&, k = k](double sigma) {
        const std::vector<double> weights(k, sigma);
        task.weights = weights.data();
        held->modify(p.V.data(), task, nullptr, pivots, nothing, begun);
      });
    }
  const int k = 8;
  Problem p(1024, k, 0);  // one factor, by the unbatched core
  const MatrixView<double> R{p.R.data(), p.n, p.n, p.n};
  measure("unbatched", 1, p, budget, [&](double sigma) {
    cpu::BlockedSweep<double>({p.V.data(), p.n, k, p.n}, sigma < 0 ? k : 0, 1, Uplo::lower, cpu::resolve(instructions),
                              1)
        .advance({R.data, p.n, p.n, p.n}, R, false, nothing);
  });
}

#endif
