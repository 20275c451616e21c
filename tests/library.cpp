// The core as a library, as a program in C++ uses it: a factor in memory and, where one can be used, on a GPU. Says
// what it ran on and what is wrong. With the argument "gpu", that there is no GPU is wrong as well:
// make -f tools/library.mk check CUDA=yes
#include <gpucholmod.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

using gpucholmod::Factor;
using gpucholmod::View;

namespace {

int wrong = 0;

void expect(bool holds, const char* where, const std::string& what) {
  if (holds) return;
  std::printf("%s: %s\n", where, what.c_str());
  ++wrong;
}

/// n x n, upper, 2 and small numbers above; and V, n x k.
template <class S>
std::vector<S> numbers(std::ptrdiff_t n, std::ptrdiff_t k, bool triangular) {
  std::mt19937 bits(7);
  std::normal_distribution<double> normal;
  std::vector<S> all(std::size_t(n * k));
  for (std::ptrdiff_t j = 0; j < k; ++j)
    for (std::ptrdiff_t i = 0; i < n; ++i) {
      const double small = normal(bits) / std::sqrt(double(n));
      all[std::size_t(i + j * n)] = S(!triangular || i < j ? small : i == j ? 2 + std::abs(small) : 0);
    }
  return all;
}

/// y <- R'R x, R n x n upper.
template <class S>
std::vector<double> times(const std::vector<S>& R, std::ptrdiff_t n, const std::vector<double>& x) {
  std::vector<double> half(x.size()), y(x.size());
  for (std::ptrdiff_t j = 0; j < n; ++j)
    for (std::ptrdiff_t i = 0; i <= j; ++i)
      half[std::size_t(i)] += double(R[std::size_t(i + j * n)]) * x[std::size_t(j)];
  for (std::ptrdiff_t j = 0; j < n; ++j)
    for (std::ptrdiff_t i = 0; i <= j; ++i)
      y[std::size_t(j)] += double(R[std::size_t(i + j * n)]) * half[std::size_t(i)];
  return y;
}

double distance(const std::vector<double>& x, const std::vector<double>& y) {
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) most = std::max(most, std::abs(x[i] - y[i]));
  return x.size() == y.size() ? most : std::numeric_limits<double>::infinity();
}

/// Everything that a factor does, on its device; `where` in words.
template <class S>
void use(const char* where, int device, std::ptrdiff_t n) {
  constexpr std::ptrdiff_t k = 5;
  const double tolerance = 200 * double(n) * double(std::numeric_limits<S>::epsilon());
  const std::vector<S> R = numbers<S>(n, n, true);
  const std::vector<double> V = numbers<double>(n, k, false), weights{1, 2, -0.001, 0, 0.5}, x(std::size_t(n), 1.0);
  Factor F(View(R, n, n), gpucholmod::Triangle::upper, device, n + 1);
  const int type = sizeof(S) == 8 ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT;
  expect(F.on_gpu() == (device != gpucholmod::on_host) && F.order() == n && F.type() == type, where,
         "is not what was asked for");

  // (0.5 A + V diag(weights) V') x, and back
  F.modify(View(V, n, k), weights, 0.5);
  std::vector<double> b = times(R, n, x);
  for (double& v : b) v /= 2;
  for (std::ptrdiff_t q = 0; q < k; ++q) {
    double dot = 0;
    for (std::ptrdiff_t i = 0; i < n; ++i) dot += V[std::size_t(i + q * n)];
    for (std::ptrdiff_t i = 0; i < n; ++i)
      b[std::size_t(i)] += weights[std::size_t(q)] * dot * V[std::size_t(i + q * n)];
  }
  const std::vector<double> modified = F.numbers();
  expect(distance(times(modified, n, x), b) < tolerance, where, "the modified factor is off");
  std::vector<double> solution = b;
  F.solve(solution);
  expect(distance(solution, x) < tolerance, where, "the solution is off");
  double log = 0;
  for (const double r : F.diagonal()) log += 2 * std::log(r);
  expect(std::abs(F.log_determinant() - log) < tolerance, where, "the determinant is off");

  // what cannot be done throws, and leaves the factor as it was
  std::vector<double> much(std::size_t(n), 0.0);
  much[std::size_t(n / 2)] = 100;
  try {
    F.downdate(much);
    expect(false, where, "a downdate that cannot be done was done");
  } catch (const gpucholmod::NotPositiveDefinite& failure) {
    expect(failure.pivot() == n / 2 + 1, where, "the pivot is " + std::to_string(failure.pivot()));
  }
  expect(F.numbers() == modified, where, "a downdate that cannot be done has changed the factor");

  // a copy; a row and column that come and go
  Factor other = F;
  std::vector<double> column(std::size_t(n + 1), 0.01);
  column[1] = 3;
  other.insert(1, column);
  expect(other.order() == n + 1 && F.order() == n, where, "the order is wrong");
  other.remove({1});
  expect(distance(other.numbers(), modified) < tolerance, where, "a row that came and went has left something");
  std::vector<S> lower(R.size());
  F.store(View(lower, n, n), gpucholmod::Triangle::lower);
  expect(double(lower[1]) == modified[std::size_t(n)] && lower[std::size_t(n)] == 0, where,
         "the lower triangle is off");
}

}  // namespace

int main(int count, char** arguments) {
  std::string gpu;
  try {
    gpu = gpucholmod::gpu_name();
  } catch (const gpucholmod::Failure& failure) {
    std::printf("no GPU: %s (%s)\n", failure.what(),
                failure.code() == GPUCHOLMOD_NOT_BUILT ? "not built" : "not available");
    if (count > 1 && std::strcmp(arguments[1], "gpu") == 0) return 1;
  }
  try {
    for (const std::ptrdiff_t n : {3, 150, 700}) {
      use<double>("memory, double", gpucholmod::on_host, n);
      use<float>("memory, single", gpucholmod::on_host, n);
      if (gpu.empty()) continue;
      use<double>("GPU, double", gpucholmod::any_gpu, n);
      use<float>("GPU, single", gpucholmod::any_gpu, n);
    }
  } catch (const gpucholmod::Failure& failure) {
    expect(false, "unexpected", failure.what());
  }
  std::printf("C++: ordinary memory%s%s: %s\n", gpu.empty() ? "" : " and ", gpu.c_str(),
              wrong == 0 ? "as expected" : "WRONG");
  return wrong != 0;
}
