#pragma once

#include "../call.h"
#include "cuda/backend.h"
#include "cuda/device_factor.h"

/// A factor in the memory of a GPU, put there and modified.
namespace gpucholmod::test {

using Factor = std::unique_ptr<HeldFactor>;
using Doubles = Stored<double>;

constexpr Uplo uplos[] = {Uplo::upper, Uplo::lower};
constexpr index_t sizes[] = {0, 1, 2, 63, 127, 128, 129, 300, 1100};

inline int first_device() { return cuda::status(false).device; }

/// So many GPUs; the first, so many times, where there are not as many.
inline std::vector<int> times(int ranks) {
  std::vector<int> all;
  for (const cuda::Device& device : cuda::status(false).devices)
    if (device.usable && int(all.size()) < ranks) all.push_back(device.id);
  return int(all.size()) == ranks ? all : std::vector<int>(std::size_t(ranks), first_device());
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline double free_memory() { return cuda::status(true).devices.at(cuda::status(false).device).memory_free; }

/// R as `uplo` stores it, with NaN in the other triangle.
template <class S>
Stored<S> stored(const Stored<S>& R, Uplo uplo) {
  Stored<S> out = uplo == Uplo::upper ? R : Stored<S>(R.transpose());
  for (index_t j = 0; j < R.cols(); ++j)
    for (index_t i = 0; i < R.cols(); ++i)
      if (uplo == Uplo::upper ? i > j : i < j) out(i, j) = S(nan);
  return out;
}

template <class S>
std::unique_ptr<DeviceFactor> upload(const Stored<S>& R, Precision precision = Precision::double_,
                                     Uplo uplo = Uplo::upper, const cuda::Devices& devices = -1) {
  return cuda::upload(stored(R, uplo).data(), R.cols(), uplo, precision, 0, devices);
}

/// Into memory full of NaN.
inline Doubles download(const HeldFactor& F, Uplo uplo = Uplo::upper) {
  Doubles out = Doubles::Constant(F.order(), F.order(), nan);
  F.download(uplo, out.data());
  return out;
}

/// An upper factor with numbers of full length, cheap to make for any n.
inline Doubles example(index_t n, unsigned seed = 7) {
  Random random(seed);
  Doubles R = random.uniform(n, n).cast<double>() / std::max<index_t>(n, 1);
  for (index_t j = 0; j < n; ++j) {
    R(j, j) += 1;
    R.col(j).tail(n - j - 1).setZero();
  }
  return R;
}

inline Doubles in(Precision precision, const Doubles& R) {
  return precision == Precision::single ? Doubles(R.cast<float>().cast<double>()) : R;
}

inline Task task(const HeldFactor& F, index_t k, Sign sign) {
  Task t;
  t.n = F.order();
  t.k = k;
  t.removed = sign == Sign::downdate ? k : 0;
  t.precision = F.precision();
  t.algorithm = Algorithm::unscaled;
  return t;
}


/// As a new factor, and in place; `begun` as in HeldFactor::modify().
inline Factor modified(HeldFactor& F, const Doubles& V, const Task& task, Work& work) {
  Factor made;
  std::atomic<bool> begun{false};
  work = F.modify(V.data(), task, &made, no_poll, begun);
  EXPECT_FALSE(begun);
  return made;
}
inline Work modify(HeldFactor& F, const Doubles& V, const Task& task, bool* changed = nullptr) {
  std::atomic<bool> begun{false};
  const Work work = F.modify(V.data(), task, nullptr, no_poll, begun);
  if (changed) *changed = begun;
  return work;
}

/// Passes that a modification of a factor of order n has taken.
inline int passes(const Work& work, index_t n) { return work.blocks / int((n + 127) / 128 * 2); }

/// Columns of the widest pass: fewer where a GPU has less shared memory, and computes with numbers that take more of
/// it.
inline index_t widest_pass(Precision precision = Precision::double_) {
  const auto width = [](Precision precision) {
    const index_t n = 100;
    const Factor F = upload(example(n), precision);
    Work work;
    modified(*F, Doubles::Constant(n, 32, 1e-3), task(*F, 32, Sign::update), work);
    return 32 / passes(work, n);
  };
  static const index_t of_double = width(Precision::double_), of_single = width(Precision::single);
  return precision == Precision::single ? of_single : of_double;
}

}  // namespace gpucholmod::test
