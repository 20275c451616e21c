#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "factor_call.h"
#include "gpu_memory.h"
#include "hold.h"

/// Modifications that are queued in the caller's stream, with a verdict, and calls of several threads.
namespace gpucholmod::test {
namespace {

class OwnStream {
 public:
  OwnStream() { EXPECT_EQ(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), cudaSuccess); }
  OwnStream(const OwnStream&) = delete;
  ~OwnStream() { cudaStreamDestroy(stream_); }
  operator cudaStream_t() const { return stream_; }
  void synchronize() const { EXPECT_EQ(cudaStreamSynchronize(stream_), cudaSuccess); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Two factors and V (n x k) in the memory of a GPU, and words for verdicts.
template <class S>
struct Queue {
  index_t n, k;
  OnGpu<S> A, B, V;
  OnGpu<int> verdicts{std::vector<int>(8, -7)};
  OwnStream stream;
  gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
  gpucholmod_status status;

  Queue(index_t n, index_t k) : Queue(factor(n), Stored<S>::Random(n, k) / S(std::sqrt(double(n)))) {}
  Queue(const Stored<S>& R, const Stored<S>& columns)
      : n(R.cols()), k(columns.cols()), A(numbers_of(R)), B(std::vector<S>(n * n, S(unused))), V(numbers_of(columns)) {
    options.stream = stream;
  }

  static Stored<S> factor(index_t n) {
    Stored<S> R = Stored<S>::Random(n, n) * S(0.3 / std::sqrt(double(n)));
    R.diagonal().setOnes();
    return R;
  }
  /// Computes to <- from with V added or taken away. Queues the call with this verdict, or waits for it if `verdict` is
  /// -1.
  int update(const OnGpu<S>& from, const OnGpu<S>& to, double weight, int verdict) {
    const std::vector<double> weights(k, weight);
    gpucholmod_options chosen = options;
    if (verdict >= 0) chosen.verdict = verdicts.data() + verdict;
    return gpucholmod_update_into(gpucholmod_as_const(matrix(from.data(), n, n, n)), matrix(to.data(), n, n, n),
                                  matrix(static_cast<const S*>(V.data()), n, k, n), weights.data(), 1, nullptr, &chosen,
                                  &status);
  }
};

/// Expects `made` to have the bits of a handle of the factor `from` after the same update.
template <class S>
void expect_bits_of_handle(const Queue<S>& queue, const OnGpu<S>& from, const std::vector<S>& made) {
  const index_t n = queue.n;
  const gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER), upper = triangle(GPUCHOLMOD_UPPER);
  gpucholmod_factor* handle = nullptr;
  std::vector<S> expected(n * n);
  EXPECT_EQ(gpucholmod_factor_create(gpucholmod_as_const(matrix(from.data(), n, n, n)), 0, &options, &handle, nullptr),
            GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_update(handle, matrix(static_cast<const S*>(queue.V.data()), n, queue.k, n), nullptr, 1,
                                     nullptr, nullptr, nullptr),
            GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_get(handle, matrix(expected.data(), n, n, n), &upper, nullptr), GPUCHOLMOD_OK);
  gpucholmod_factor_destroy(handle);
  for (index_t j = 0; j < n; ++j)
    EXPECT_TRUE(std::equal(&made[j * n], &made[j * n] + j + 1, &expected[j * n])) << "column " << j;
}

template <class S>
void queue_several(index_t n, index_t k) {
  SCOPED_TRACE(n);
  Queue<S> queue(n, k);
  const std::vector<S> start = queue.A.get(), columns = queue.V.get();
  ASSERT_EQ(queue.update(queue.A, queue.B, 1, -1), GPUCHOLMOD_OK) << queue.status.message;
  expect_bits_of_handle(queue, queue.A, queue.B.get());
  ASSERT_EQ(queue.update(queue.B, queue.A, -0.5, -1), GPUCHOLMOD_OK) << queue.status.message;
  const std::vector<S> expected = queue.A.get(), between = queue.B.get();
  queue.A.set(start);
  queue.B.set(std::vector<S>(n * n, S(unused)));
  const OnGpu<S> nothing(std::vector<S>(n * k, S(nan))), again(columns);
  const auto put = [&](const OnGpu<S>& numbers) {
    EXPECT_EQ(cudaMemcpyAsync(queue.V.data(), numbers.data(), columns.size() * sizeof(S), cudaMemcpyDeviceToDevice,
                              queue.stream),
              cudaSuccess);
  };
  put(nothing);
  hold_multiprocessors(1, 0.02, queue.stream);
  put(again);  // V is complete when the stream reaches the call,
  ASSERT_EQ(queue.update(queue.A, queue.B, 1, 0), GPUCHOLMOD_OK) << queue.status.message;
  put(nothing);  // and is read before the stream continues
  put(again);
  ASSERT_EQ(queue.update(queue.B, queue.A, -0.5, 1), GPUCHOLMOD_OK) << queue.status.message;
  queue.stream.synchronize();
  const std::vector<int> verdicts = queue.verdicts.get();
  EXPECT_EQ(verdicts[0], 0);
  EXPECT_EQ(verdicts[1], 0);
  EXPECT_EQ(verdicts[2], -7);
  EXPECT_EQ(queue.A.get(), expected);
  EXPECT_EQ(queue.B.get(), between);
}

/// Checks the bits of queued calls against those of calls that wait, and of a handle. Some factors have less than a
/// strip; in one, columns of the last strip are longer than the leading dimension.
TEST(Queued, GivesTheBitsOfACallThatWaits) {
  for (const index_t k : {1, 16, 40, 70}) {
    for (const index_t n : {2, 64, 128, 130, 194, 640, 1002}) queue_several<double>(n, k);
    for (const index_t n : {4, 132, 640, 1000}) queue_several<float>(n, k);
  }
}

/// Checks that calls return before the stream has reached them, also with so many columns that memory has to be given
/// back afterwards.
TEST(Queued, ReturnsBeforeTheStreamHasComeToIt) {
  for (const auto& [n, k] : {std::pair<index_t, index_t>{640, 16}, {5600, 128}}) {
    Queue<double> queue(n, k);
    ASSERT_EQ(queue.update(queue.A, queue.B, 1, 0), GPUCHOLMOD_OK) << queue.status.message;
    queue.stream.synchronize();
    hold_multiprocessors(1, 0.5, queue.stream);
    for (int i = 0; i < 4; ++i) {
      ASSERT_EQ(queue.update(queue.A, queue.B, 1, i), GPUCHOLMOD_OK) << queue.status.message;
      EXPECT_EQ(cudaStreamQuery(queue.stream), cudaErrorNotReady);
    }
    queue.stream.synchronize();
    for (int i = 0; i < 4; ++i) EXPECT_EQ(queue.verdicts.get()[i], 0);
  }
}

/// Expects a verdict of 1, `code` from a call that waits, and R to stay as it was.
template <class S>
void expect_undecided(const Stored<S>& R, const Stored<S>& V, double weight, int code) {
  Queue<S> queue(R, V);
  const std::vector<S> before = queue.A.get();
  ASSERT_EQ(queue.update(queue.A, queue.B, weight, 0), GPUCHOLMOD_OK) << queue.status.message;
  queue.stream.synchronize();
  EXPECT_EQ(queue.verdicts.get()[0], 1);
  EXPECT_EQ(queue.update(queue.A, queue.B, weight, -1), code) << queue.status.message;
  EXPECT_TRUE(std::memcmp(queue.A.get().data(), before.data(), before.size() * sizeof(S)) == 0);
}

TEST(Queued, HasAVerdictOnWhatTheHostHasToLookAt) {
  for (const index_t n : {4, 640}) {
    const Stored<double> R = Queue<double>::factor(n), V = Stored<double>::Constant(n, 40, 0.1);
    expect_undecided<double>(R, V, -1e4, GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
    Stored<double> other = V;
    other(n - 1, 39) = nan;
    expect_undecided<double>(R, other, 1, GPUCHOLMOD_NOT_FINITE);
    other(n - 1, 39) = 1e200;
    expect_undecided<double>(R, other, 1, GPUCHOLMOD_OK);
    other = R;
    other(n / 2, n / 2) = -1;
    expect_undecided<double>(other, V, 1, GPUCHOLMOD_OK);
    other(n / 2, n / 2) = nan;
    expect_undecided<double>(other, V, 1, GPUCHOLMOD_NOT_FINITE);
  }
}

TEST(Queued, RefusesWhatItCannotQueue) {
  Queue<double> queue(8, 2);
  const auto refused = [&](const char* argument, auto&& change) {
    gpucholmod_options options = queue.options;
    options.verdict = queue.verdicts.data();
    gpucholmod_matrix R = matrix(queue.A.data(), 8, 8, 8), out = matrix(queue.B.data(), 8, 8, 8);
    gpucholmod_const_matrix V = matrix(static_cast<const double*>(queue.V.data()), 8, 2, 8);
    const double* weights = nullptr;
    change(options, R, out, V, weights);
    EXPECT_EQ(gpucholmod_update_into(gpucholmod_as_const(R), out, V, weights, 1, nullptr, &options, &queue.status),
              GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_STREQ(queue.status.argument, argument) << queue.status.message;
  };
  const std::vector<double> here(64, 1);
  int word = 0;
  refused("options->verdict", [](auto& options, auto&...) { options.triangle = GPUCHOLMOD_LOWER; });
  refused("options->verdict", [&](auto& options, auto&...) { options.verdict = &word; });
  refused("options->verdict", [](auto&, auto& R, auto& out, auto&...) { out = R; });
  refused("options->verdict", [](auto&, auto& R, auto& out, auto&...) { R.ld = out.ld = 4 * 8 + 4098; });
  refused("options->verdict", [](auto&, auto& R, auto& out, auto& V, auto&) {
    R = matrix(static_cast<double*>(R.data) + 1, 7, 7, 8);
    out = matrix(static_cast<double*>(out.data), 7, 7, 8);
    V.rows = 7;
  });
  refused("V", [&](auto&, auto&, auto&, auto& V, auto&) { V = matrix(here.data(), 8, 2, 8); });
  refused("weights", [&](auto&, auto&, auto&, auto&, auto& weights) { weights = queue.V.data(); });
  const std::vector<double> some{1, 0};
  refused("weights", [&](auto&, auto&, auto&, auto&, auto& weights) { weights = some.data(); });
  refused("R", [](auto& options, auto&...) { options.device = GPUCHOLMOD_HOST, options.stream = nullptr; });
  gpucholmod_options options = queue.options;
  options.verdict = queue.verdicts.data();
  const gpucholmod_const_matrix V = matrix(static_cast<const double*>(queue.V.data()), 8, 2, 8);
  EXPECT_EQ(gpucholmod_update(matrix(queue.A.data(), 8, 8, 8), V, nullptr, 1, nullptr, &options, &queue.status),
            GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_STREQ(queue.status.argument, "options->verdict");
  EXPECT_EQ(queue.verdicts.get(), std::vector<int>(8, -7));
}

/// Modifies factors of a thread in its own stream: a handle, and a factor in the caller's memory. Returns their
/// numbers.
std::vector<double> life(int number) {
  const index_t n = 130 + 10 * number, k = 5;
  Random random(number + 1);
  const Stored<double> R = well_conditioned(n, random).template cast<double>();
  const OwnStream stream;
  gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
  const OnGpu<double> there(numbers_of(R)), V(std::vector<double>(n * k, 0.01));
  gpucholmod_factor* handle = nullptr;
  const gpucholmod_matrix factor = matrix(there.data(), n, n, n);
  EXPECT_EQ(gpucholmod_factor_create(gpucholmod_as_const(factor), 0, &options, &handle, nullptr), GPUCHOLMOD_OK);
  options.stream = stream;
  const gpucholmod_const_matrix columns = matrix(static_cast<const double*>(V.data()), n, k, n);
  std::vector<double> x(n, 1), numbers(n * n);
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(gpucholmod_update(factor, columns, nullptr, 1, nullptr, &options, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_factor_update(handle, columns, nullptr, 1, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
    gpucholmod_factor* copy = nullptr;
    EXPECT_EQ(gpucholmod_factor_copy(handle, &copy, nullptr), GPUCHOLMOD_OK);
    gpucholmod_factor_destroy(handle);
    handle = copy;
    EXPECT_EQ(gpucholmod_factor_solve(handle, GPUCHOLMOD_A, matrix(x.data(), n, 1, n), nullptr), GPUCHOLMOD_OK);
  }
  EXPECT_EQ(gpucholmod_factor_get(handle, matrix(numbers.data(), n, n, n), nullptr, nullptr), GPUCHOLMOD_OK);
  gpucholmod_factor_destroy(handle);
  numbers.insert(numbers.end(), x.begin(), x.end());
  const std::vector<double> callers = there.get();
  numbers.insert(numbers.end(), callers.begin(), callers.end());
  return numbers;
}

TEST(Threads, DoWhatOneDoes) {
  constexpr int count = 4;
  std::vector<std::vector<double>> alone(count), together(count);
  for (int i = 0; i < count; ++i) alone[i] = life(i);
  std::vector<std::thread> threads;
  for (int i = 0; i < count; ++i) threads.emplace_back([&, i] { together[i] = life(i); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(alone, together);
}

}  // namespace
}  // namespace gpucholmod::test
