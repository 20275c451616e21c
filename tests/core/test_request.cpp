#include <gtest/gtest.h>

#include <limits>
#include <tuple>

#include "call.h"
#include "cuda/backend.h"
#include "modify/choice.h"
#include "base/other_triangle.h"

/// The methods that requests lead to, and the requests that are refused, in a build without CUDA.
namespace gpucholmod::test {
namespace {

Request asking(Backend backend, Method method) {
  Request request;
  request.backend = backend;
  request.method = method;
  return request;
}

TEST(Resolve, ChoosesWhatThisMachineCanDo) {
  const struct {
    Backend backend;
    Method method, expected;
  } table[] = {{Backend::automatic, Method::automatic, Method::blocked},
               {Backend::automatic, Method::reference, Method::reference},
               {Backend::automatic, Method::blocked, Method::blocked},
               {Backend::automatic, Method::panel, Method::panel},
               {Backend::automatic, Method::stream, Method::stream},
               {Backend::cpu, Method::stream, Method::stream},
               {Backend::cpu, Method::automatic, Method::blocked},
               {Backend::cpu, Method::panel, Method::panel}};
  for (const auto& row : table) {
    const Choice decision = choose(asking(row.backend, row.method), Where::memory);
    EXPECT_EQ(decision.backend, Backend::cpu);
    EXPECT_EQ(decision.method, row.expected);
    EXPECT_FALSE(why(decision).empty());
  }
}

/// Checks that choose() and modify() throw the same error.
void expect_refused(const Request& request, ErrorCode code, const std::string& key, const std::string& value) {
  const Problem<double> p{Sign::update, Stored<double>::Identity(3, 3), Stored<double>::Ones(3, 1)};
  const auto resolving = error_of([&] { choose(request, Where::memory); });
  const auto modifying = error_of([&] { call(p, request); });
  for (const auto& error : {resolving, modifying}) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), code);
    EXPECT_EQ(text(*error, key), value);
  }
}

TEST(Resolve, RefusesCudaWhereItWasNotBuilt) {
  for (const Method method : {Method::automatic, Method::panel, Method::stream, Method::resident})
    expect_refused(asking(Backend::cuda, method), ErrorCode::backend_unavailable, "reason", "not_built");
}

TEST(Resolve, RefusesMethodsThatCudaDoesNotHave) {
  for (const Method method : {Method::reference, Method::blocked})
    expect_refused(asking(Backend::cuda, method), ErrorCode::bad_argument, "argument", "method");
}

TEST(Resolve, RefusesTheResidentMethodOnTheCpu) {
  expect_refused(asking(Backend::cpu, Method::resident), ErrorCode::bad_argument, "argument", "method");
  expect_refused(asking(Backend::automatic, Method::resident), ErrorCode::backend_unavailable, "reason", "not_built");
}

TEST(Expected, TheGpuPaysForLargeFactorsOnly) {
  for (const index_t k : {1, 16, 64}) {
    Request request;
    request.k = k;
    request.threads = 16;
    bool pays = false;
    int changes = 0;
    for (request.n = 100; request.n < 100000; request.n *= 2) {
      const Expected time = expected(request);
      EXPECT_GT(time.cpu, 0);
      EXPECT_GT(time.gpu, 0);
      changes += pays != (time.gpu < time.cpu);
      pays = time.gpu < time.cpu;
    }
    EXPECT_TRUE(pays);
    EXPECT_EQ(changes, 1) << "it begins to pay at one size";
  }
}

/// Checks that the GPU pays later, or never, with Householder steps alone or few units for double precision; nothing
/// else changes.
TEST(Expected, LongerOnSlowerDevices) {
  cuda::Device device;
  device.multiprocessors = 28;
  for (const index_t n : {1000, 16384})
    for (const index_t k : {1, 16, 64}) {
      Request request;
      request.n = n;
      request.k = k;
      const auto longer = [&](cuda::Kernels kernels) {
        device.kernels = kernels;
        return longer_on(device, request);
      };
      EXPECT_EQ(longer(cuda::Kernels::clusters), 0);
      EXPECT_EQ(longer(cuda::Kernels::tensor_cores), 0);
      EXPECT_EQ(longer(cuda::Kernels::steps), 8e-7 * double(n) * (k == 64 ? 2 : 1));
      const double passes = double((k + 15) / 16), width = k == 1 ? 8 : 16,
                   flops = double(n * n) * passes * (16 + 2 * width);
      EXPECT_DOUBLE_EQ(longer(cuda::Kernels::plain), flops / (28 * 6.8e9));
    }
}

TEST(AbsentBackend, SaysSo) {
  const cuda::Status status = cuda::status(true);
  EXPECT_FALSE(status.built);
  EXPECT_FALSE(status.usable);
  EXPECT_EQ(status.reason, "not_built");
  EXPECT_EQ(status.configured, "core tests");
  EXPECT_TRUE(status.devices.empty());
  const auto error = error_of([] {
    cuda::paper_panels<double>({nullptr, 0, 0, 0}, {nullptr, 0, 0, 0}, Sign::update, 0, paper::Shape(), [](double) {});
  });
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::backend_unavailable);
  EXPECT_EQ(text(*error, "backend"), "cuda");
  EXPECT_EQ(text(*error, "reason"), "not_built");
}

TEST(PanelShape, IsChecked) {
  const struct {
    const char* argument;
    int paper::Shape::*member;
    std::vector<int> good, bad;
  } table[] = {
      {"blocks_per_kernel", &paper::Shape::blocks_per_kernel, {1, 28, 65535}, {0, -1}},
      {"threads_per_block", &paper::Shape::threads_per_block, {32, 64, 256}, {0, -32, 1, 31, 48, 257, 288}},
      {"elements_per_thread", &paper::Shape::elements_per_thread, {1, 4, 8, 16, 32}, {0, -1, 2, 3, 5, 31, 33, 64}},
      {"panel_rows", &paper::Shape::panel_rows, {1, 5, 1000}, {0, -64}},
  };
  const Problem<double> p{Sign::update, Stored<double>::Identity(3, 3), Stored<double>::Ones(3, 1)};
  for (const auto& row : table) {
    Request request = asking(Backend::cpu, Method::panel);
    for (const int value : row.good) {
      request.shape.emplace().*row.member = value;
      EXPECT_EQ(call(p, request).outcome.pivot, -1) << row.argument << " " << value;
    }
    for (const int value : row.bad) {
      request.shape.emplace().*row.member = value;
      const auto error = error_of([&] { call(p, request); });
      ASSERT_TRUE(error) << row.argument << " " << value;
      EXPECT_EQ(error->code(), ErrorCode::bad_argument);
      EXPECT_EQ(text(*error, "argument"), row.argument);
      EXPECT_EQ(number(*error, "value"), value);
    }
  }
}

TEST(Error, HasTheNamesOfTheConditionClasses) {
  EXPECT_STREQ(name(ErrorCode::bad_argument), "bad_argument");
  EXPECT_STREQ(name(ErrorCode::not_finite), "not_finite");
  EXPECT_STREQ(name(ErrorCode::bad_diagonal), "bad_diagonal");
  EXPECT_STREQ(name(ErrorCode::overflow), "overflow");
  EXPECT_STREQ(name(ErrorCode::backend_unavailable), "backend_unavailable");
  EXPECT_STREQ(name(ErrorCode::out_of_memory), "out_of_memory");
  EXPECT_STREQ(name(ErrorCode::cuda_failure), "cuda_failure");
}

TEST(Resolve, ABuildWithoutCudaSaysNothingOfTheTimeOnAGpu) {
  Request request = asking(Backend::automatic, Method::automatic);
  request.n = 5000;
  request.k = 16;
  const std::string reason = why(choose(request, Where::memory));
  EXPECT_EQ(reason.find("on the GPU"), std::string::npos) << reason;
  EXPECT_NE(reason.find("without CUDA"), std::string::npos) << reason;
}

TEST(Resolve, TimesThatAreComparedAreToldApart) {
  Request request = asking(Backend::cpu, Method::automatic);
  request.optimised_blas = true;
  int compared = 0;
  for (request.n = 20; request.n < 3000; request.n += 7)
    for (request.k = request.n / 8; request.k <= 4 * request.n; request.k += request.n / 8 + 1) {
      const std::string why = gpucholmod::why(choose(request, Where::memory));
      const std::size_t instead = why.find(" instead of "), colon = why.rfind(": ", instead);
      if (instead == std::string::npos) continue;
      ++compared;
      EXPECT_NE(why.substr(colon + 2, instead - colon - 2), why.substr(instead + 12)) << why;
    }
  EXPECT_GT(compared, 100);
}

/// Returns what the other triangle of X (n x n) looks like.
template <class T>
OtherTriangle look(const Stored<T>& X, Uplo uplo) {
  return look_at_other_triangle(MatrixView<const T>{X.data(), X.rows(), X.rows(), X.rows()}, uplo);
}

TEST(OtherTriangle, IsZeroFilledTransposedOrSymmetric) {
  for (const index_t n : {2, 3, 31, 32, 33, 63, 64, 65, 128, 129, 200, 517}) {
    Stored<double> R = Stored<double>::Random(n, n).cwiseAbs().triangularView<Eigen::Upper>();
    R(0, n - 1) += 0.1;
    const Stored<double> L = R.transpose(), A = L * R;
    for (const auto& [own, other, uplo] : {std::tuple(R, L, Uplo::upper), std::tuple(L, R, Uplo::lower)}) {
      EXPECT_EQ(look(own, uplo), OtherTriangle::zero);
      EXPECT_EQ(look(other, uplo), OtherTriangle::transposed);
      EXPECT_EQ(look(A, uplo), OtherTriangle::symmetric);
      EXPECT_EQ(look<double>(own + 0.5 * other, uplo), OtherTriangle::filled);
      EXPECT_EQ(look<double>(Stored<double>::Identity(n, n), uplo), OtherTriangle::zero);
      EXPECT_EQ(look<double>(Stored<double>::Identity(n, n) + 0 * A, uplo), OtherTriangle::zero);
      EXPECT_EQ(look<double>(A / A.maxCoeff() * 1e307, uplo), OtherTriangle::symmetric);
      const double nan = std::numeric_limits<double>::quiet_NaN();
      Stored<double> odd = A;
      odd.diagonal().setConstant(nan);
      EXPECT_EQ(look(odd, uplo), OtherTriangle::symmetric);
      odd = Stored<double>::Constant(n, n, nan);
      for (index_t j = 0; j < n; ++j)
        for (index_t i = 0; i < n; ++i)
          if (i == j || own(i, j) != 0) odd(i, j) = own(i, j);
      EXPECT_EQ(look(odd, uplo), OtherTriangle::filled);
    }
  }
}

/// Checks that a triangle with one number that mirrors nothing, finite or not, is found to be filled.
TEST(OtherTriangle, MayHoldAnything) {
  for (const Uplo uplo : {Uplo::upper, Uplo::lower})
    for (const double x : {HUGE_VAL, -HUGE_VAL, std::nan(""), 1e300})
      for (const index_t n : {2, 3, 40}) {
        Stored<double> R = Stored<double>::Constant(n, n, 2);
        (uplo == Uplo::upper ? R(n - 1, 0) : R(0, n - 1)) = x;
        EXPECT_EQ(look(R, uplo), OtherTriangle::filled) << n << ' ' << x;
      }
}

TEST(OtherTriangle, IsSymmetricButForRounding) {
  for (const index_t n : {2, 5, 32, 33, 150}) {
    const Stored<double> X = Stored<double>::Random(n, n), A = X * X.transpose();
    const Stored<double> noise = Stored<double>::Random(n, n).cwiseProduct(A);
    for (const Uplo uplo : {Uplo::upper, Uplo::lower}) {
      EXPECT_EQ(look<double>(A + 1e-9 * noise, uplo), OtherTriangle::symmetric);
      EXPECT_EQ(look<double>(A + 1e-6 * noise, uplo), OtherTriangle::nearly_symmetric);
      EXPECT_EQ(look<double>(A + 0.5 * noise, uplo), OtherTriangle::filled);
      EXPECT_EQ(look<float>((A + 1e-5 * noise).cast<float>(), uplo), OtherTriangle::symmetric);
      EXPECT_EQ(look<float>((A + 2e-3 * noise).cast<float>(), uplo), OtherTriangle::nearly_symmetric);
    }
  }
  // numbers that should be 0 are rounding errors of either sign, as in the inverse of a covariance of an AR(1) process
  Stored<double> A = 1e-17 * Stored<double>::Random(100, 100);
  A.diagonal().setConstant(2);
  A.diagonal(1).setConstant(-0.9);
  A.diagonal(-1).setConstant(-0.9);
  EXPECT_EQ(look(A, Uplo::upper), OtherTriangle::symmetric);
}

TEST(OtherTriangle, IsFoundWhereSymmetricMatricesAreSparse) {
  for (const index_t n : {3, 20, 32, 33, 64, 65, 130, 400})
    for (const index_t distance : {index_t(1), index_t(2), n / 3, n / 2, n - 1}) {
      if (distance == 0) continue;
      Stored<double> A = 2 * Stored<double>::Identity(n, n);
      A.diagonal(distance).setOnes();
      A.diagonal(-distance).setOnes();
      EXPECT_EQ(look(A, Uplo::upper), OtherTriangle::symmetric) << n << ' ' << distance;
      EXPECT_EQ(look(A, Uplo::lower), OtherTriangle::symmetric) << n << ' ' << distance;
    }
  for (index_t pairs = 0; pairs < 2; ++pairs) {  // blocks of order 2
    Stored<double> A = 2 * Stored<double>::Identity(300, 300);
    for (index_t i = pairs; i + 1 < 300; i += 2) A(i, i + 1) = A(i + 1, i) = 1;
    EXPECT_EQ(look(A, Uplo::upper), OtherTriangle::symmetric);
  }
}

TEST(OutOfMemory, IsToldInNumbers) {
  EXPECT_EQ(text_of_bytes(0), "0 B");
  EXPECT_EQ(text_of_bytes(1000), "1000 B");
  EXPECT_EQ(text_of_bytes(1536), "1.5 KiB");
  EXPECT_EQ(text_of_bytes(64.5 * 1024 * 1024), "64.5 MiB");
  EXPECT_EQ(text_of_bytes(5e12), "4657 GiB");
  EXPECT_EQ(text_of_bytes(0x1p130), "1267650600228229401496703205376 GiB");
  const Error error = out_of_memory("full", 2048, 1024);
  EXPECT_STREQ(error.what(), "full: 2 KiB needed, 1 KiB available");
}

}  // namespace
}  // namespace gpucholmod::test
