// One factor on one GPU and on several of a machine, in double precision: device times of modifications, beside the
// time for reading and writing the triangle. The program needs no memory of the host for the factor, so n may be as
// large as the GPUs have room for.
//
//   make -C tests/core measure-devices &&
//     tests/core/build/plain/measure_devices [--repeats=5] [--same] [--solve] [--factorise]
//                                            [n:k,k,...:count,count,...]...
//
// R (n x n): ones on the diagonal, uniform noise of standard deviation 0.3 / sqrt(n) above it. The noise consists of 16
// million drawn numbers, which are repeated; each column begins at another of them. V normal / sqrt(n). VV' is added,
// as a new factor, in place, and in place without memory for a second factor, and taken off again in place. Times are
// by events: medians, after one call that does not count. A call that finds no memory is left out, and reported.
// --same: the first GPU takes the place of all; such times show the loss by several GPUs, not the gain. --solve: the
// time of a solution forward and back, too, by events. --factorise: the time by the clock in which a factor is made of
// A, n x n in memory of the host, which is copied.
//
//   sweep   ms to read and write each GPU's share: the time for the triangle of n = 16,384 on the first GPU alone,
//           scaled to 8 n^2 / count bytes
//   gpus    number of GPUs that took part
//   eps     max |R~'R~x - R'Rx - sigma VV'x| / (u (|R'Rx| + |VV'x|)), u = 2^-52, over vectors x of random signs,
//           2-norms
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "cuda/backend.h"
#include "cuda/device_factor.h"

namespace {

using namespace gpucholmod;
using Factor = std::unique_ptr<HeldFactor>;
using Doubles = std::vector<double>;

int repeats = 5;
bool same = false, solves = false, factorises = false;
constexpr index_t products = 2;

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

const Poll no_poll = [](double) {};

class Noise : public Source<double> {
 public:
  explicit Noise(index_t n) : numbers_(1 << 24) {
    std::mt19937_64 bits(1);
    const double scale = 0.3 * std::sqrt(12.0 / double(n));
    for (double& x : numbers_) x = scale * (double(bits() >> 11) / 9007199254740992.0 - 0.5);
  }
  const double* column(index_t j, index_t first, index_t last, double* scratch) const override {
    const std::size_t from = std::size_t(j) * 7919 % (numbers_.size() / 2);
    std::memcpy(scratch, numbers_.data() + from + std::size_t(first), sizeof(double) * std::size_t(last - first));
    if (last == j + 1) scratch[j - first] = 1;
    return scratch;
  }

 private:
  Doubles numbers_;
};

std::vector<int> ids(int count) {
  std::vector<int> all;
  for (const cuda::Device& device : cuda::status(false).devices)
    if (device.usable && int(all.size()) < count) all.push_back(device.id);
  return same ? std::vector<int>(std::size_t(count), all.at(0)) : all;
}

double norm(const double* x, index_t n) {
  double sum = 0;
  for (index_t i = 0; i < n; ++i) sum += x[i] * x[i];
  return std::sqrt(sum);
}

struct Measured {
  double seconds = 0, least = 0;
  int ranks = 0;
  Launch launch = Launch::automatic;
};

class Change {
 public:
  Change(index_t n, index_t k) : n_(n), k_(k), V_(std::size_t(n * k)), X_(std::size_t(n * products)) {
    std::mt19937_64 bits(2);
    std::normal_distribution<> normal;
    for (double& v : V_) v = normal(bits) / std::sqrt(double(n));
    for (double& x : X_) x = bits() & 1 ? 1 : -1;
  }

  /// Returns R'RX.
  Doubles times(const HeldFactor& F) const {
    Doubles Y = X_;
    F.multiply(TriangularProduct::both, Y.data(), products);
    return Y;
  }

  double residual(const Doubles& before, const Doubles& after, double sigma) const {
    double most = 0;
    for (index_t p = 0; p < products; ++p) {
      const double* const x = X_.data() + p * n_;
      Doubles VVx(n_), E(n_);
      for (index_t q = 0; q < k_; ++q) {
        const double* const v = V_.data() + q * n_;
        long double dot = 0;
        for (index_t i = 0; i < n_; ++i) dot += (long double)(v[i]) * x[i];
        for (index_t i = 0; i < n_; ++i) VVx[i] += double(v[i] * dot);
      }
      for (index_t i = 0; i < n_; ++i) E[i] = after[p * n_ + i] - before[p * n_ + i] - sigma * VVx[i];
      most = std::max(most, norm(E.data(), n_) / (norm(before.data() + p * n_, n_) + norm(VVx.data(), n_)));
    }
    return most / 0x1p-52;
  }

  Work run(HeldFactor& F, bool downdate, double memory, Factor* made) const {
    Task task;
    task.n = n_;
    task.k = k_;
    task.removed = downdate ? k_ : 0;
    task.precision = Precision::double_;
    task.algorithm = Algorithm::unscaled;
    task.keep_intact = true;
    task.device_memory = memory;
    std::atomic<bool> begun{false};
    Work work = F.modify(V_.data(), task, made, no_poll, begun);
    if (work.pivot >= 0) std::printf("pivot %ld fails\n", long(work.pivot));
    return work;
  }

 private:
  index_t n_, k_;
  Doubles V_, X_;
};

double sweep_of_16384 = 0;

void show(const char* what, index_t n, index_t k, int count, std::vector<double> seconds, const Work& work,
          double eps) {
  std::sort(seconds.begin(), seconds.end());
  const double sweep = sweep_of_16384 * std::pow(double(n) / 16384, 2) / count, median = seconds[seconds.size() / 2];
  std::printf("%7ld %3ld %2d  %-32s %9.3f ms  least %9.3f  sweep %8.3f  %5.2f sweeps  %d gpus  %s  %.2g eps\n", long(n),
              long(k), count, what, 1e3 * median, 1e3 * seconds[0], 1e3 * sweep, median / sweep, work.device_ranks,
              work.launch == Launch::persistent ? "persistent" : "stepwise", eps);
  std::fflush(stdout);
}

constexpr double unlimited = std::numeric_limits<double>::infinity();

/// Calls f(). Returns false if memory is short; prints so unless `what` is null.
bool finds_room(const char* what, index_t n, index_t k, int count, const std::function<void()>& f) {
  try {
    f();
    return true;
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    if (what) std::printf("%7ld %3ld %2d  %-32s left out: %s\n", long(n), long(k), count, what, error.what());
    return false;
  }
}

void measure(HeldFactor& F, index_t n, index_t k, int count) {
  const Change change(n, k);
  finds_room("update", n, k, count, [&] {
    Factor made;
    std::vector<double> seconds;
    Work work;
    for (int i = 0; i <= repeats; ++i) {
      made.reset();
      work = change.run(F, false, unlimited, &made);
      if (i > 0) seconds.push_back(work.seconds);
    }
    show("update", n, k, count, seconds, work, change.residual(change.times(F), change.times(*made), 1));
  });
  // Changes F and, if memory allows, changes it back.
  const auto in_place = [&](const char* what, bool downdate, double memory) {
    finds_room(what, n, k, count, [&] {
      std::vector<double> seconds;
      Work work;
      double eps = 0;
      for (int i = 0; i <= repeats; ++i) {
        if (downdate) change.run(F, false, unlimited, nullptr);
        const Doubles before = i == repeats ? change.times(F) : Doubles();
        work = change.run(F, downdate, memory, nullptr);
        if (i > 0) seconds.push_back(work.seconds);
        if (i == repeats) eps = change.residual(before, change.times(F), downdate ? -1 : 1);
        if (!downdate) finds_room(nullptr, n, k, count, [&] { change.run(F, true, unlimited, nullptr); });
      }
      show(what, n, k, count, seconds, work, eps);
    });
  };
  const double bytes = F.bytes();
  in_place("update in place", false, unlimited);
  in_place("downdate in place", true, unlimited);
  in_place("update in place, no room", false, 0.9 * bytes);
  in_place("downdate in place, no room", true, 0.9 * bytes);
}

void measure_solve(const DeviceFactor& F, index_t n, int count) {
  const Doubles b(std::size_t(n), 1.0);
  std::printf("%7ld   1 %2d  solve, 1 right-hand side %19.3f ms\n", long(n), count,
              1e3 * F.solve_seconds(b.data(), 1, false, repeats));
}

void measure_factorise(index_t n, int count) {
  Doubles A(std::size_t(n * n));
  const Noise noise(n);
  for (index_t j = 0; j < n; ++j) noise.column(j, 0, j + 1, A.data() + j * n);
  Doubles seconds;
  for (int i = 0; i <= repeats; ++i) {
    const double begun = now();
    index_t pivot = -1;
    const auto made = cuda::factorise(A.data(), n, Uplo::upper, Precision::double_, ids(count), pivot);
    if (i > 0) seconds.push_back(now() - begun);
    if (!made) std::printf("A is not positive definite: pivot %ld\n", long(pivot));
  }
  std::sort(seconds.begin(), seconds.end());
  std::printf("%7ld     %2d  factorise A, by the clock %18.1f ms\n", long(n), count,
              1e3 * seconds[seconds.size() / 2]);
}

Doubles numbers(const std::string& text) {
  Doubles all;
  std::stringstream stream(text);
  for (std::string one; std::getline(stream, one, ',');) all.push_back(std::atof(one.c_str()));
  return all;
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> cases;
  for (int i = 1; i < argc; ++i) {
    const std::string one = argv[i];
    if (one.rfind("--repeats=", 0) == 0) repeats = std::atoi(one.c_str() + 10);
    else if (one == "--same") same = true;
    else if (one == "--solve") solves = true;
    else if (one == "--factorise") factorises = true;
    else cases.push_back(one);
  }
  if (cases.empty()) cases = {"16384:1,16,64:1,2", "32768:1,16,64:1,2", "65536:1,16:1,2"};
  try {
    for (const cuda::Device& device : cuda::status(true).devices)
      std::printf("GPU %d: %s, %.1f GB free\n", device.id, device.name.c_str(), device.memory_free / 1e9);
    {
      const auto F = cuda::upload(Noise(16384), 16384, Precision::double_, 0, ids(1), no_poll);
      sweep_of_16384 = F->sweep_seconds(7);
      std::printf("one GPU reads and writes %.0f GB/s\n", 8 * 16384.0 * 16384.0 / sweep_of_16384 / 1e9);
    }
    for (const std::string& one : cases) {
      std::string n, ranks, counts;
      std::stringstream parts(one);
      std::getline(parts, n, ':'), std::getline(parts, ranks, ':'), std::getline(parts, counts, ':');
      for (const double count : numbers(counts)) {
        try {
          const double begun = now();
          const index_t order = std::atol(n.c_str());
          const auto F = cuda::upload(Noise(order), order, Precision::double_, 0, ids(int(count)), no_poll);
          std::printf("n = %ld on %d: made in %.1f s;", long(order), int(count), now() - begun);
          for (const auto& share : F->shares()) std::printf(" %.1f GB on GPU %d", share.bytes / 1e9, share.device);
          std::printf("\n");
          for (const double k : numbers(ranks)) measure(*F, order, index_t(k), int(count));
          if (solves) measure_solve(*F, order, int(count));
          if (factorises) measure_factorise(order, int(count));
        } catch (const Error& error) {
          std::printf("%s, %d GPUs: %s\n", one.c_str(), int(count), error.what());
        }
        cuda::release();
      }
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
