#include <gtest/gtest.h>

#include <cmath>
#include <utility>

#include "factor_call.h"
#include "gpu_memory.h"
#include "hold.h"

/// Calls of the C interface with matrices in the memory of a GPU. Modifications are in test_modify_contract.cpp.
namespace gpucholmod::test {
namespace {

constexpr int forms[] = {GPUCHOLMOD_UPPER, GPUCHOLMOD_LOWER};

/// Holds a factor in the memory of a GPU, with room for more rows and columns, and a handle of the same factor there.
struct Both {
  int form;
  index_t n, room, ld;
  Doubles start;
  OnGpu<double> R;
  gpucholmod_factor* handle = nullptr;
  gpucholmod_options options = on_any_gpu(form);

  Both(index_t n, index_t room, int form)
      : form(form), n(n), room(room), ld(room + 5), start(Doubles::Constant(room, room, unused)),
        R(spaced(in_room(), ld)) {
    EXPECT_EQ(gpucholmod_factor_create(gpucholmod_as_const(at(n)), 0, &options, &handle, nullptr), GPUCHOLMOD_OK);
  }
  Both(const Both&) = delete;
  ~Both() { gpucholmod_factor_destroy(handle); }

  gpucholmod_matrix at(index_t order) const { return matrix(R.data(), order, order, ld); }
  /// Expects both factors to be the same, and nothing else to have changed.
  void expect_same() const {
    const index_t order = gpucholmod_factor_order(handle);
    Doubles expected(order, order);
    EXPECT_EQ(get(handle, GPUCHOLMOD_UPPER, expected.data(), order, nullptr), GPUCHOLMOD_OK);
    Padded<double> now(start, ld);
    now.data = R.get();
    EXPECT_TRUE(same_bits(upper(now.matrix(order), form == GPUCHOLMOD_LOWER), expected));
    for (index_t j = 0; j < room; ++j)
      for (index_t i = room; i < ld; ++i) EXPECT_EQ(now.data[i + j * ld], unused);
  }

 private:
  Doubles& in_room() {
    Random random(3);
    const Doubles made = well_conditioned(n, random).cast<double>();
    start.topLeftCorner(n, n) = test::stored(made, form == GPUCHOLMOD_LOWER);
    return start;
  }
};

TEST(CallersMemory, RowsAndColumnsComeGoAndMove) {
  for (const int form : forms)
    for (const index_t n : {1, 5, 64, 300}) {
      SCOPED_TRACE(n);
      Both both(n, n + 2, form);
      const Doubles X = Doubles::Identity(n + 2, 2) * 3 + Doubles::Constant(n + 2, 2, 0.01);
      Doubles columns = X;
      columns.row(n) = X.row(0);
      columns(n, 0) = columns(n + 1, 1) = 50;
      columns(n + 1, 0) = columns(n, 1) = 0.5;
      const OnGpu<double> there(numbers_of(columns));
      const gpucholmod_const_matrix on_gpu = matrix(static_cast<const double*>(there.data()), n + 2, 2, n + 2);
      gpucholmod_status status;
      EXPECT_EQ(gpucholmod_insert(both.at(n + 2), n, on_gpu, nullptr, &both.options, &status), GPUCHOLMOD_OK)
          << status.message;
      EXPECT_EQ(gpucholmod_factor_insert(both.handle, n, on_gpu, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
      both.expect_same();
      EXPECT_EQ(gpucholmod_shift(both.at(n + 2), 0, n + 1, nullptr, &both.options, nullptr), GPUCHOLMOD_OK);
      EXPECT_EQ(gpucholmod_factor_shift(both.handle, 0, n + 1, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
      both.expect_same();
      const index_t gone = n / 2;
      EXPECT_EQ(gpucholmod_delete(both.at(n + 2), &gone, 1, nullptr, &both.options, nullptr), GPUCHOLMOD_OK);
      EXPECT_EQ(gpucholmod_factor_delete(both.handle, &gone, 1, nullptr, nullptr, nullptr), GPUCHOLMOD_OK);
      both.expect_same();
    }
}

/// Checks that a handle gives the same numbers to the memory of a GPU as to host memory, in doubles and floats.
TEST(CallersMemory, TakesWhatAHandleHas) {
  for (const int form : forms) {
    const index_t n = 70;
    const Both both(n, n, form);
    const gpucholmod_options chosen = triangle(form);
    const OnGpu<double> doubles(std::vector<double>(n * n, unused));
    const OnGpu<float> floats(std::vector<float>(n * n, float(unused)));
    const OnGpu<double> inverse(std::vector<double>(n * n, unused));
    Stored<double> expected(n, n), inverted(n, n);
    EXPECT_EQ(get(both.handle, form, expected.data(), n, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_factor_get(both.handle, matrix(doubles.data(), n, n, n), &chosen, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_factor_get(both.handle, matrix(floats.data(), n, n, n), &chosen, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(doubles.get(), numbers_of(expected));
    EXPECT_EQ(floats.get(), numbers_of(Stored<float>(expected.cast<float>())));
    EXPECT_EQ(gpucholmod_factor_inverse(both.handle, matrix(inverted.data(), n, n, n), nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_factor_inverse(both.handle, matrix(inverse.data(), n, n, n), nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(inverse.get(), numbers_of(inverted));
  }
}

TEST(CallersMemory, SolvesWhereTheRightHandSidesAre) {
  const index_t n = 200;
  const Both both(n, n, GPUCHOLMOD_UPPER);
  for (const index_t m : {1, 3, 40}) {
    Stored<double> B = Stored<double>::Constant(n, m, 2);
    const OnGpu<double> there(spaced(B, n + 3));
    for (const int system : {GPUCHOLMOD_A, GPUCHOLMOD_R_TRANSPOSED, GPUCHOLMOD_R}) {
      EXPECT_EQ(gpucholmod_factor_solve(both.handle, system, matrix(B.data(), n, m, n), nullptr), GPUCHOLMOD_OK);
      EXPECT_EQ(gpucholmod_factor_solve(both.handle, system, matrix(there.data(), n, m, n + 3), nullptr),
                GPUCHOLMOD_OK);
      EXPECT_EQ(there.get(), spaced(B, n + 3));
    }
  }
}

/// Checks that updates of a handle by columns in the memory of its GPU, in doubles and floats, have the bits of updates
/// by columns in host memory.
TEST(CallersMemory, HasColumnsForAHandle) {
  for (const index_t k : {1, 16, 70}) {
    const index_t n = 300;
    const Both both(n, n, GPUCHOLMOD_UPPER), other(n, n, GPUCHOLMOD_UPPER);
    const Stored<float> V = Stored<float>::Random(n, k);
    const Doubles doubles = V.cast<double>();
    const OnGpu<float> there(spaced(V, n + 1));
    const OnGpu<double> doubles_there(numbers_of(doubles));
    const auto update = [&](const Both& to, const gpucholmod_const_matrix& columns) {
      gpucholmod_status status;
      EXPECT_EQ(gpucholmod_factor_update(to.handle, columns, nullptr, 1, nullptr, nullptr, &status), GPUCHOLMOD_OK)
          << status.message;
    };
    update(both, matrix(static_cast<const float*>(there.data()), n, k, n + 1));
    update(both, matrix(static_cast<const double*>(doubles_there.data()), n, k, n));
    update(other, matrix(doubles.data(), n, k, n));
    update(other, matrix(doubles.data(), n, k, n));
    Doubles R(n, n), expected(n, n);
    EXPECT_EQ(get(both.handle, GPUCHOLMOD_UPPER, R.data(), n, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(get(other.handle, GPUCHOLMOD_UPPER, expected.data(), n, nullptr), GPUCHOLMOD_OK);
    EXPECT_TRUE(same_bits(R, expected));
  }
}

/// Updates and downdates a factor in the memory of a GPU, in place and into another matrix, and expects the bits of a
/// handle.
template <class S>
void modify_everywhere(index_t n, index_t ld, index_t k) {
  SCOPED_TRACE(n);
  Stored<S> R = Stored<S>::Random(n, n) * S(0.3 / std::sqrt(double(n)));
  R.diagonal().setOnes();
  const Stored<S> V = Stored<S>::Random(n, k) / S(std::sqrt(double(n))), stored = test::stored(R, false);
  const OnGpu<S> R_there(spaced(stored, ld)), out_there(std::vector<S>(ld * n, S(unused))), V_there(numbers_of(V));
  const gpucholmod_matrix factor = matrix(R_there.data(), n, n, ld), out = matrix(out_there.data(), n, n, ld);
  const gpucholmod_const_matrix columns = matrix(static_cast<const S*>(V_there.data()), n, k, n);
  const gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
  gpucholmod_factor* handle = nullptr;
  gpucholmod_status status;
  ASSERT_EQ(gpucholmod_factor_create(gpucholmod_as_const(factor), 0, &options, &handle, &status), GPUCHOLMOD_OK);
  Stored<S> expected(n, n);
  const auto expect_equal = [&](const OnGpu<S>& numbers) {
    Padded<S> now(stored, ld);
    now.data = numbers.get();
    EXPECT_TRUE(same_bits(upper(now.matrix(n), false), expected));
  };
  for (const double weight : {1.0, -1.0}) {
    const std::vector<double> weights(k, weight);
    ASSERT_EQ(gpucholmod_factor_update(handle, columns, weights.data(), 1, nullptr, nullptr, &status), GPUCHOLMOD_OK);
    EXPECT_EQ(get(handle, GPUCHOLMOD_UPPER, expected.data(), n, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_update_into(gpucholmod_as_const(factor), out, columns, weights.data(), 1, nullptr, &options,
                                     &status),
              GPUCHOLMOD_OK)
        << status.message;
    expect_equal(out_there);
    EXPECT_EQ(gpucholmod_update(factor, columns, weights.data(), 1, nullptr, &options, &status), GPUCHOLMOD_OK)
        << status.message;
    expect_equal(R_there);
  }
  const std::vector<double> too_much(k, -1e4);
  for (int repeat = 0; repeat < 2; ++repeat)
    EXPECT_EQ(gpucholmod_update(factor, columns, too_much.data(), 1, nullptr, &options, &status),
              GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  EXPECT_EQ(gpucholmod_factor_update(handle, columns, too_much.data(), 1, nullptr, nullptr, nullptr),
            GPUCHOLMOD_NOT_POSITIVE_DEFINITE);
  expect_equal(R_there);
  gpucholmod_factor_destroy(handle);
}

TEST(CallersMemory, IsModifiedWhereItIs) {
  for (const index_t k : {1, 16, 40})
    for (const index_t n : {1, 64, 127, 128, 129, 640, 1001}) {
      modify_everywhere<double>(n, n + n % 2, k);
      modify_everywhere<float>(n, (n + 3) / 4 * 4, k);
    }
  modify_everywhere<double>(200, 201, 3);  // not aligned
}
/// Checks a factor so large that it is modified in place, without memory for the result.
TEST(CallersMemory, IsModifiedInPlaceWhereItIsLarge) {
  for (const index_t k : {16, 40}) modify_everywhere<double>(6100, 6100, k);
}

/// Numbers in the columns of a second pass that are not plain, beside a factor so large that it is modified in place.
/// The first pass must not have changed R when they are seen.
TEST(CallersMemory, ALaterPassWithNumbersThatAreNotPlain) {
  const index_t n = 6100, k = 40;
  const Stored<double> identity = Stored<double>::Identity(n, n);
  const gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
  const auto update = [&](const OnGpu<double>& R, const double* V, gpucholmod_status* status) {
    return gpucholmod_update(matrix(R.data(), n, n, n), matrix(V, n, k, n), nullptr, 1, nullptr, &options, status);
  };
  Stored<double> V = Stored<double>::Zero(n, k);
  V(0, 0) = std::sqrt(3.0);
  for (const bool there : {true, false})
    for (const double number : {1e200, nan}) {
      SCOPED_TRACE(number);
      V(n - 1, k - 1) = number;
      const OnGpu<double> R(numbers_of(identity)), V_there(numbers_of(V));
      gpucholmod_status status;
      const int done = update(R, there ? V_there.data() : V.data(), &status);
      EXPECT_EQ(done, std::isnan(number) ? GPUCHOLMOD_NOT_FINITE : GPUCHOLMOD_OK) << status.message;
      const std::vector<double> now = R.get();
      EXPECT_DOUBLE_EQ(now.front(), std::isnan(number) ? 1 : 2);
      EXPECT_DOUBLE_EQ(now.back(), std::isnan(number) ? 1 : number);
    }
}

/// Checks that an entry that is not finite is found wherever it is, and that entries below the diagonal do not matter.
TEST(CallersMemory, NamesWhatIsNotFinite) {
  const index_t n = 300;
  const gpucholmod_options options = on_any_gpu(GPUCHOLMOD_UPPER);
  for (const auto& [i, j] : {std::pair<index_t, index_t>{0, 0}, {0, n - 1}, {130, 131}, {n - 1, n - 1}}) {
    Doubles R = Doubles::Constant(n, n, nan);
    R.triangularView<Eigen::Upper>() = Doubles::Identity(n, n);
    const OnGpu<double> good(numbers_of(R)), V(std::vector<double>(n, 1));
    R(i, j) = nan;
    const OnGpu<double> bad(numbers_of(R));
    const auto update = [&](const OnGpu<double>& numbers, gpucholmod_status* status) {
      return gpucholmod_update(matrix(numbers.data(), n, n, n), matrix(static_cast<const double*>(V.data()), n, 1, n),
                               nullptr, 1, nullptr, &options, status);
    };
    gpucholmod_status status;
    EXPECT_EQ(update(bad, &status), GPUCHOLMOD_NOT_FINITE) << status.message;
    EXPECT_EQ(status.row, i + 1);
    EXPECT_EQ(status.col, j + 1);
    EXPECT_EQ(update(good, &status), GPUCHOLMOD_OK) << status.message;
  }
}

/// Checks that a call waits for the caller's stream, in which V arrives long after the call has begun.
TEST(CallersMemory, WaitsForTheStream) {
  const index_t n = 100;
  cudaStream_t stream;
  ASSERT_EQ(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), cudaSuccess);
  Both both(n, n, GPUCHOLMOD_UPPER);
  const std::vector<double> ones(n, 1);
  const OnGpu<double> V(std::vector<double>(n, 0)), come(ones);
  const gpucholmod_const_matrix columns = matrix(static_cast<const double*>(V.data()), n, 1, n);
  both.options.stream = stream;
  hold_multiprocessors(1, 0.05, stream);
  ASSERT_EQ(cudaMemcpyAsync(V.data(), come.data(), n * sizeof(double), cudaMemcpyDeviceToDevice, stream), cudaSuccess);
  EXPECT_EQ(gpucholmod_update(both.at(n), columns, nullptr, 1, nullptr, &both.options, nullptr), GPUCHOLMOD_OK);
  EXPECT_EQ(gpucholmod_factor_update(both.handle, matrix(ones.data(), n, 1, n), nullptr, 1, nullptr, nullptr, nullptr),
            GPUCHOLMOD_OK);
  both.expect_same();

  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed), cudaSuccess);
  gpucholmod_status status;
  EXPECT_EQ(gpucholmod_update(both.at(n), columns, nullptr, 1, nullptr, &both.options, &status),
            GPUCHOLMOD_BAD_ARGUMENT);
  EXPECT_NE(std::string(status.message).find("stream"), std::string::npos) << status.message;
  cudaGraph_t graph = nullptr;
  EXPECT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  cudaGraphDestroy(graph);
  both.expect_same();
  cudaStreamDestroy(stream);
}

}  // namespace
}  // namespace gpucholmod::test
