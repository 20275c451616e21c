#include "block_columns/pass.h"
#include "grid_measure.h"
#include "segment_call.h"

/// Forward and back substitution by the chain, on the CPU.
namespace gpucholmod::test {
namespace {

using namespace block_columns;

struct SubstitutionRun {
  int advancers = 2;
  unsigned delay = 0;
};

/// X with R'X = B, or RX = B.
template <Order order, int K, class T>
Stored<double> substitute_of(const Stored<T>& R, const Stored<double>& B, const SubstitutionRun& how) {
  const index_t n = R.rows(), k = B.cols();
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const int blocks = strips_of(n) * BLOCKS;
  const index_t padded = index_t(blocks) * NB, ld = padded + margin;
  Stored<T> stored = Stored<T>::Constant(ld, padded, T(nan));
  for (index_t j = 0; j < padded; ++j)
    for (index_t i = 0; i < padded; ++i)
      if (i <= j || i / NB == j / NB) stored(i, j) = i < n && j < n ? (i <= j ? R(i, j) : T(0)) : T(i == j);
  Stored<double> V = Stored<double>::Zero(padded, K);
  V.topLeftCorner(n, k) = B;
  std::vector<double> inverses(size_t(blocks) * INVERSE, nan), links(inverses), handed(size_t(blocks) * LDB * K, nan),
      messages(size_t(blocks) * Message<K>::stride, nan);
  std::vector<int> flags(4 * size_t(blocks));
  SegmentState state{};
  int inverted = 0, linked = 0;
  Segment<T, order> s{};
  s.blocks = blocks;
  s.R = stored.data();
  s.ld = ld;
  s.V = V.data();
  s.inverses = inverses.data();
  s.links = links.data();
  s.handed = handed.data();
  s.messages = messages.data();
  s.inverted = &inverted;
  s.linked = &linked;
  s.has_P = flags.data();
  s.has_V = s.has_P + blocks;
  s.is_near = s.has_V + blocks;
  s.complete = s.is_near + blocks;
  s.state = &state;
  s.window = blocks;
  s.solvers = K / CHAIN_COLUMNS * CLUSTER;
  s.advancers = how.advancers;
  run_segment_on_host<K>(s, [&](const char* role, int number) {
    if (how.delay && (unsigned(role[0]) + unsigned(number)) % how.delay == 0) std::this_thread::sleep_for(std::chrono::milliseconds(3));
  });
  Stored<double> X(n, k);
  for (index_t q = 0; q < k; ++q)
    for (index_t i = 0; i < n; ++i) X(i, q) = messages[s.place(int(i / NB)) * size_t(Message<K>::stride) + Message<K>::P + q * LDB + i % NB];
  return X;
}

template <Order order, class T>
Stored<double> substitute(const Stored<T>& R, const Stored<double>& B, const SubstitutionRun& how = {}) {
  Stored<double> X;
  within_a_minute([&] {
    X = B.cols() <= 8 ? substitute_of<order, 8>(R, B, how) : B.cols() <= 16 ? substitute_of<order, 16>(R, B, how) : substitute_of<order, 32>(R, B, how);
  });
  return X;
}

/// ||B - op(R) X||_1 / (eps (||R||_1 ||X||_1 + ||B||_1)), in long double.
template <class T>
double residual(Order order, const Stored<T>& R, const Stored<double>& B, const Stored<double>& X) {
  const auto wide = [](const auto& A) { return A.template cast<long double>().eval(); };
  const auto norm = [](const auto& A) { return A.cwiseAbs().colwise().sum().maxCoeff(); };
  const auto U = wide(Stored<T>(R.template triangularView<Eigen::Upper>()));
  const auto left = (wide(B) - (order == Order::forward ? (U.transpose() * wide(X)).eval() : (U * wide(X)).eval())).eval();
  return double(norm(left) / (eps<double> * (norm(U) * norm(wide(X)) + norm(wide(B)))));
}

template <Order order, class T>
void expect_solved(const Matrix& R, index_t k) {
  SCOPED_TRACE("n " + std::to_string(R.cols()) + ", k " + std::to_string(k));
  Random random(3);
  const Stored<T> stored = R.cast<T>();
  const Stored<double> B = random.normal(R.cols(), k).cast<double>();
  const Stored<double> X = substitute<order>(stored, B);
  EXPECT_LT(residual(order, stored, B, X), 10);
  for (const SubstitutionRun how : {SubstitutionRun{1, 0}, {3, 2}, {5, 3}}) EXPECT_TRUE(same_bits(substitute<order>(stored, B, how), X));
}

TEST(Substitution, SolvesInEitherOrderWithAnySize) {
  Random random(4);
  for (const index_t n : {1, 64, 65, 130, 300, 700, 960}) {
    if (sanitized && n > 300) continue;
    const Matrix R = well_conditioned(n, random);
    for (const index_t k : {1, 16, 17}) {
      expect_solved<Order::forward, double>(R, k);
      expect_solved<Order::back, double>(R, k);
    }
    expect_solved<Order::forward, float>(R, 3);
    expect_solved<Order::back, float>(R, 3);
  }
}

/// Diagonal blocks that are refined, between such as are not.
TEST(Substitution, RefinesWhereAnInverseIsIllConditioned) {
  Random random(5);
  const index_t n = 960;
  Matrix R = well_conditioned(n, random);
  for (index_t j = 0; j < n; ++j)
    if (j / 64 % 3 == 1) R.col(j).head(j) *= 30;
  for (index_t i = 5 * 64; i < 6 * 64; ++i) R.row(i) *= std::pow(10.0L, -real(i % 64) / 10);
  expect_solved<Order::forward, double>(R, 5);
  expect_solved<Order::back, double>(R, 5);
}

}  // namespace
}  // namespace gpucholmod::test
