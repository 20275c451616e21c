#include <deque>

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
  Simulated card = Simulated::clusters;
  int ranks = 1;  ///< ranks that hold the factor; if several, WORKERS_OF_STRIP thread blocks of each advance
};

/// A factor as stored on a GPU, and the inverses that a substitution leaves for the next.
template <class T>
struct Factor {
  int blocks;
  Stored<T> R;
  std::vector<double> inverses;
  int inverted = 0;

  explicit Factor(const Stored<T>& upper)
      : blocks(strips_of(upper.rows()) * BLOCKS), inverses(size_t(blocks) * INVERSE, nan) {
    const index_t n = upper.rows(), padded = index_t(blocks) * NB;
    R = Stored<T>::Constant(padded + margin, padded, T(nan));
    for (index_t j = 0; j < padded; ++j)
      for (index_t i = 0; i < padded; ++i)
        if (i <= j || i / NB == j / NB) R(i, j) = i < n && j < n ? (i <= j ? upper(i, j) : T(0)) : T(i == j);
  }
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();
};

/// A rank other than the first: of R its own strips, in order back also the blocks that link its blocks to others; NaN
/// elsewhere.
template <Order order, class T>
struct OtherThanFirst {
  Stored<T> R;
  std::vector<double> transforms;
  std::vector<int> flags;
  Segment<T, order> s;

  OtherThanFirst(const Factor<T>& factor, const Segment<T, order>& first, int rank, index_t stride)
      : R(factor.R), transforms(size_t(first.blocks * stride), factor.nan), flags(first.flag_words(first.blocks)),
        s(first) {
    for (index_t j = 0; j < R.cols(); ++j)
      if (j / STRIP % first.device_ranks != rank)
        for (index_t i = 0; i < R.rows(); ++i)
          if (order == Order::forward || i / NB + 1 < j / NB) R(i, j) = T(factor.nan);
    s.device_rank = rank_in_order<order>(first.blocks, first.device_ranks, rank);
    s.solvers = 0;
    s.R = R.data();
    s.transforms = transforms.data();
    s.first_flags = first.flags;
    s.flags = flags.data();
  }
};

/// Returns X with R'X = B, or RX = B.
template <Order order, int K, class T>
Stored<double> substitute_of(Factor<T>& R, const Stored<double>& B, const SubstitutionRun& how) {
  const index_t n = B.rows(), k = B.cols();
  const int blocks = R.blocks;
  Stored<double> V = Stored<double>::Zero(index_t(blocks) * NB, K);
  V.topLeftCorner(n, k) = B;
  std::vector<double> links(R.inverses.size(), R.nan), handed(size_t(blocks) * LDB * K * (1 + how.ranks), R.nan),
      transforms(size_t(blocks) * BlockTransform<K>::stride, R.nan);
  std::vector<int> flags(Segment<T, order>::flag_words(blocks));
  int linked = 0;
  Segment<T, order> s{};
  s.blocks = s.end = s.window = blocks;
  s.ldv = V.rows();
  s.R = R.R.data();
  s.ld = R.R.rows();
  s.V = V.data();
  s.inverses = R.inverses.data();
  s.links = links.data();
  s.handed = handed.data();
  s.transforms = transforms.data();
  s.inverted = &R.inverted;
  s.linked = &linked;
  s.flags = flags.data();
  s.advancers = how.advancers;
  std::deque<OtherThanFirst<order, T>> others;
  std::vector<OtherRank> of_others;
  if (how.ranks > 1) {
    s.advancers = WORKERS_OF_STRIP * how.ranks;
    s.device_ranks = how.ranks;
    s.device_rank = rank_in_order<order>(blocks, how.ranks, 0);
    s.together = true;
    for (int rank = 1; rank < how.ranks; ++rank) {
      auto& other = others.emplace_back(R, s, rank, BlockTransform<K>::stride);
      of_others.push_back({other.transforms.data(), other.flags.data()});
    }
    s.others = of_others.data();
  }
  const auto run = [&](auto card) {
    using Card = decltype(card);
    const auto disturb = [&](const char* role, int number) {
      if (how.delay && (unsigned(role[0]) + unsigned(number)) % how.delay == 0)
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
    };
    s.solvers = K / CHAIN_COLUMNS * Card::cluster;
    std::vector<std::thread> running;
    for (auto& other : others) running.emplace_back([&] { run_segment_on_host<K, Card>(other.s, disturb); });
    run_segment_on_host<K, Card>(s, disturb);
    for (std::thread& thread : running) thread.join();
  };
  if constexpr (K == CHAIN_COLUMNS && std::is_same_v<T, double>) {
    if (how.card == Simulated::data_centre) run(Card80{});
    if (how.card == Simulated::graphics) run(Card86{});
  }
  if (how.card == Simulated::clusters) run(Card90{});
  Stored<double> X(n, k);
  for (index_t q = 0; q < k; ++q)
    for (index_t i = 0; i < n; ++i)
      X(i, q) = transforms[s.place(int(i / NB)) * size_t(BlockTransform<K>::stride) + BlockTransform<K>::P + q * LDB +
                           i % NB];
  return X;
}

template <Order order, class T>
Stored<double> substitute(Factor<T>& R, const Stored<double>& B, const SubstitutionRun& how = {}) {
  Stored<double> X;
  within_a_minute([&] {
    X = B.cols() <= 8    ? substitute_of<order, 8>(R, B, how)
        : B.cols() <= 16 ? substitute_of<order, 16>(R, B, how)
                         : substitute_of<order, 32>(R, B, how);
  });
  return X;
}

/// Returns ||B - op(R) X||_1 / (eps (||R||_1 ||X||_1 + ||B||_1)), in long double.
template <class T>
double residual(Order order, const Stored<T>& R, const Stored<double>& B, const Stored<double>& X) {
  const Matrix U = Stored<T>(R.template triangularView<Eigen::Upper>()).template cast<real>();
  const Matrix Y = X.cast<real>(), C = B.cast<real>();
  const Matrix left = C - product(order == Order::forward ? Matrix(U.transpose()) : U, Y);
  return double(norm_1(left) / (eps<double> * (norm_1(U) * norm_1(Y) + norm_1(C))));
}

template <Order order, class T>
void expect_solved(const Matrix& R, index_t k) {
  SCOPED_TRACE("n " + std::to_string(R.cols()) + ", k " + std::to_string(k));
  Random random(3);
  const Stored<T> stored = R.cast<T>();
  const Stored<double> B = random.normal(R.cols(), k).cast<double>();
  Factor<T> factor(stored);
  const Stored<double> X = substitute<order>(factor, B);
  EXPECT_LT(residual(order, stored, B, X), 10);
  for (const SubstitutionRun how : {SubstitutionRun{1, 0}, {3, 2}, {5, 3}}) {
    Factor<T> anew(stored);
    EXPECT_TRUE(same_bits(substitute<order>(anew, B, how), X));
  }
  if constexpr (std::is_same_v<T, double>)
    if (k <= CHAIN_COLUMNS)
      for (const Simulated card : {Simulated::data_centre, Simulated::graphics}) {
        Factor<T> anew(stored);
        EXPECT_TRUE(same_bits(substitute<order>(anew, B, {3, 2, card}), X));
      }
  Factor<T> other(stored);  // its inverses have been found in the other order
  substitute<order == Order::forward ? Order::back : Order::forward>(other, B);
  EXPECT_TRUE(same_bits(substitute<order>(other, B), X));
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

/// Checks solutions on several ranks. Forward, a column has the same sums whichever rank subtracts them; back, sums are
/// added up in an order of their own.
template <Order order, class T>
void expect_solved_on_ranks(index_t n, index_t k) {
  Random random(8);
  const Stored<T> R = well_conditioned(n, random).cast<T>();
  const Stored<double> B = random.normal(n, k).cast<double>();
  for (const int ranks : {2, 3}) {
    SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k) + ", ranks " + std::to_string(ranks));
    Factor<T> factor(R), anew(R), alone(R);
    const Stored<double> X = substitute<order>(factor, B, {0, 0, Simulated::clusters, ranks});
    EXPECT_LT(residual(order, R, B, X), 10);
    EXPECT_TRUE(same_bits(substitute<order>(anew, B, {0, 3, Simulated::clusters, ranks}), X));
    EXPECT_TRUE(same_bits(substitute<order>(factor, B, {0, 2, Simulated::clusters, ranks}), X));  // inverses are known
    if (order == Order::forward) {
      EXPECT_TRUE(same_bits(substitute<order>(alone, B), X));
    }
    if (std::is_same_v<T, float> || n > 700 || sanitized) continue;
    for (const Simulated card : {Simulated::data_centre, Simulated::graphics}) {
      Factor<T> other(R);
      EXPECT_TRUE(same_bits(substitute<order>(other, B, {0, 0, card, ranks}), X));
    }
  }
}

TEST(Substitution, RunsOnSeveralRanks) {
  for (const index_t n : {1, 700, 1100}) {
    if (sanitized && n > 700) continue;
    expect_solved_on_ranks<Order::forward, double>(n, 3);
    expect_solved_on_ranks<Order::back, double>(n, 3);
  }
  expect_solved_on_ranks<Order::forward, float>(700, 1);
  expect_solved_on_ranks<Order::back, float>(700, 1);
}

/// Diagonal blocks that are refined, between blocks that are not.
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

/// Graded rows with a condition of 1e4 and of 1e13, which spoils an inverse in the order back alone; and an entry whose
/// square vanishes.
TEST(Substitution, SubstitutesWhereAnInverseIsTooInaccurate) {
  Random random(6);
  Matrix R = well_conditioned(320, random);
  for (index_t i = 64; i < 128; ++i) R.row(i) *= std::pow(10.0L, -real(i % 64) / 15);
  for (index_t i = 192; i < 256; ++i) R.row(i) *= std::pow(10.0L, -real(i % 64) / 5);
  R(290, 290) = 1e-300;
  Factor<double> factor(R.cast<double>());
  substitute<Order::back>(factor, random.normal(320, 1).cast<double>());
  std::vector<double> forward, back;
  for (size_t b = 0; b < 5; ++b) {
    forward.push_back(factor.inverses[b * INVERSE + solving_at]);
    back.push_back(factor.inverses[b * INVERSE + solving_at + 1]);
  }
  EXPECT_EQ(forward, (std::vector<double>{by_inverse, by_refinement, by_inverse, by_refinement, by_substitution}));
  EXPECT_EQ(back, (std::vector<double>{by_inverse, by_refinement, by_inverse, by_substitution, by_substitution}));
  R(290, 290) = 1;
  expect_solved<Order::forward, double>(R, 5);
  expect_solved<Order::back, double>(R, 5);
}

/// Factors for which the inverses of some diagonal blocks, or of all, are useless.
TEST(Substitution, LeavesAResidualOfRoundingWhateverTheCondition) {
  Random random(7);
  for (const index_t n : {64, 200, 700})
    for (const real decades : {3.0L, 5.0L, 7.0L}) {
      if (sanitized && n > 200) continue;
      const Matrix R = graded_mixed(n, decades, 0.1L, random);
      expect_solved<Order::forward, double>(R, 5);
      expect_solved<Order::back, double>(R, 5);
      expect_solved<Order::forward, float>(graded_mixed(n, decades / 2, 0.1L, random), 3);
    }
}

}  // namespace
}  // namespace gpucholmod::test
