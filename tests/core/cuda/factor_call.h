#pragma once

#include "../call.h"
#include "cuda/backend.h"
#include "cuda/device_factor.h"

/// A factor in the memory of a GPU: upload, download and modification.
namespace gpucholmod::test {

using Factor = std::unique_ptr<HeldFactor>;
using Doubles = Stored<double>;

constexpr Uplo uplos[] = {Uplo::upper, Uplo::lower};
constexpr index_t sizes[] = {0, 1, 2, 63, 127, 128, 129, 300, 1100};

inline int first_device() { return cuda::status(false).device; }

/// Returns `ranks` GPUs; if there are fewer, the first GPU `ranks` times.
inline std::vector<int> times(int ranks) {
  std::vector<int> all;
  for (const cuda::Device& device : cuda::status(false).devices)
    if (device.usable && int(all.size()) < ranks) all.push_back(device.id);
  return int(all.size()) == ranks ? all : std::vector<int>(std::size_t(ranks), first_device());
}

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

inline double free_memory() { return cuda::status(true).devices.at(cuda::status(false).device).memory_free; }

/// Returns R as `uplo` stores it, with NaN in the other triangle.
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

/// Downloads a factor into memory full of NaN.
inline Doubles download(const HeldFactor& F, Uplo uplo = Uplo::upper) {
  Doubles out = Doubles::Constant(F.order(), F.order(), nan);
  F.download(uplo, out.data());
  return out;
}

/// Returns an upper factor with numbers of full length, which is cheap to make for any n.
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


/// Modifies F into a new factor. modify() below modifies F in place; `changed` becomes `begun` of HeldFactor::modify().
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

/// Returns the number of passes that a modification of a factor of order n has taken.
inline int passes(const Work& work, index_t n) { return work.blocks / int((n + 127) / 128 * 2); }

/// Returns the number of columns of the widest pass: fewer on a GPU with less shared memory that computes with numbers
/// that take more of it.
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
