#include <gtest/gtest.h>

#include <atomic>
#include <set>

#include "call.h"
#include "cpu/reshape.h"
#include "reshape_call.h"

/// Rows and columns that go, come and move, against the matrix itself in long double.
namespace gpucholmod::test {
namespace {

const Poll no_poll = [](double) {};
const Task how = [] {
  Task task;
  task.instructions = Instructions::plain;
  task.threads = 1;
  return task;
}();

template <class T>
Stored<T> upper(const Stored<T>& M) { return M.template triangularView<Eigen::Upper>(); }

/// Returns R in memory of order `room`, with NaN where nothing may be read.
template <class T>
Stored<T> in_room(const Stored<T>& R, index_t room) {
  Stored<T> memory = Stored<T>::Constant(room, room, std::numeric_limits<T>::quiet_NaN());
  for (index_t j = 0; j < R.cols(); ++j) memory.col(j).head(j + 1) = R.col(j).head(j + 1);
  return memory;
}

/// Returns ||X'X - A||_1 / (eps ||A||_1), X the leading part of the memory, of A's order.
template <class T>
double residual(const Stored<T>& memory, const Matrix& A) {
  const index_t n = A.cols();
  const Stored<T> X = upper(Stored<T>(memory.topLeftCorner(n, n)));
  if (n == 0) return 0;
  if (!X.allFinite() || !(X.diagonal().minCoeff() > 0)) return std::numeric_limits<double>::infinity();
  return double(norm_1(gram(X) - A) / (real(std::numeric_limits<T>::epsilon()) * norm_1(A)));
}

/// Checks that f(R, out) from R, which has to stay as it is, gives the same bits in other memory and in place. Returns
/// the other memory.
template <class T, class F>
Stored<T> both(const Stored<T>& R, index_t m, F&& f) {
  const index_t n = R.cols(), room = std::max(n, m) + 3;
  const Stored<T> from = in_room(R, room);
  Stored<T> out = in_room(Stored<T>(0, 0), room), place = from;
  f(MatrixView<const T>{from.data(), n, n, room}, MatrixView<T>{out.data(), m, m, room});
  f(MatrixView<const T>{place.data(), n, n, room}, MatrixView<T>{place.data(), m, m, room});
  const Stored<T> a = upper(Stored<T>(out.topLeftCorner(m, m))), b = upper(Stored<T>(place.topLeftCorner(m, m)));
  EXPECT_TRUE(same_bits(a, b));
  for (index_t j = 0; j < m; ++j)
    for (index_t i = j + 1; i < room; ++i) EXPECT_TRUE(std::isnan(out(i, j)));
  return out;
}

template <class T>
void expect_right() {
  Random random(8);
  std::atomic<bool> begun{false};
  for (const index_t n : {1, 2, 7, 64, 130, 257}) {
    const Stored<T> R = well_conditioned(n, random).cast<T>();
    const Matrix A = gram(R);
    for (const index_t k : {0, 1, 5, 33}) {
      if (k > n) continue;
      SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(k));
      std::set<index_t> drawn;
      while (index_t(drawn.size()) < k) drawn.insert(index_t(random.uniform() * n));
      const std::vector<index_t> gone(drawn.begin(), drawn.end());
      std::vector<index_t> keep;
      for (index_t j = 0; j < n; ++j)
        if (!drawn.count(j)) keep.push_back(j);
      const index_t m = n - k;
      const Stored<T> less =
          both(R, m, [&](auto from, auto to) { cpu::remove<T>(from, gone, to, how, no_poll, begun); });
      EXPECT_LT(residual(less, picked(A, keep)), 40);
      // and back: the rows and columns that were removed are inserted again, all at one place
      for (const index_t at : {index_t(0), m / 2, m}) {
        std::vector<index_t> order(keep.begin(), keep.begin() + at);
        order.insert(order.end(), gone.begin(), gone.end());
        order.insert(order.end(), keep.begin() + at, keep.end());
        const Matrix again = picked(A, order);
        Stored<double> X = again.middleCols(at, k).cast<double>();
        for (index_t q = 0; q < k; ++q)
          X.col(q).segment(at, k).tail(k - q - 1).setConstant(std::numeric_limits<double>::quiet_NaN());
        const Stored<T> before = upper(Stored<T>(less.topLeftCorner(m, m)));
        const Stored<T> back = both(before, n, [&](auto from, auto to) {
          EXPECT_EQ(cpu::insert<T>(from, at, {X.data(), n, k, n}, 0, to, how, no_poll, begun), -1);
        });
        EXPECT_LT(residual(back, again), 40 + 40);  // the errors of both changes
      }
    }
    for (const index_t from : {index_t(0), n / 3, n - 1})
      for (const index_t to : {index_t(0), n / 2, n - 1}) {
        SCOPED_TRACE("n " + std::to_string(n) + ", from " + std::to_string(from) + " to " + std::to_string(to));
        std::vector<index_t> order;
        for (index_t j = 0; j < n; ++j)
          if (j != from) order.push_back(j);
        order.insert(order.begin() + to, from);
        const Stored<T> moved = both(R, n, [&](auto a, auto b) { cpu::shift<T>(a, from, to, b, how, no_poll, begun); });
        EXPECT_LT(residual(moved, picked(A, order)), 40);
      }
  }
}

TEST(Reshape, RowsAndColumnsGoComeAndMove) {
  expect_right<double>();
  expect_right<float>();
}

/// An insertion in single precision, for which the columns to the right are taken by blocks.
TEST(Reshape, InsertsInTheMiddleOfManyColumns) {
  Random random(11);
  std::atomic<bool> begun{false};
  const index_t n = 620, at = 310, p = 2;
  const Stored<float> R = well_conditioned(n + p, random).cast<float>();
  const Matrix A = gram(R);
  std::vector<index_t> gone = {at, at + 1};
  Stored<float> less = in_room(Stored<float>(0, 0), n), out = in_room(Stored<float>(0, 0), n + p);
  cpu::remove<float>({R.data(), n + p, n + p, n + p}, gone, {less.data(), n, n, n}, how, no_poll, begun);
  const Stored<double> X = A.middleCols(at, p).cast<double>();
  EXPECT_EQ(cpu::insert<float>({less.data(), n, n, n}, at, {X.data(), n + p, p, n + p}, 0,
                               {out.data(), n + p, n + p, n + p}, how, no_poll, begun),
            -1);
  EXPECT_LT(residual(out, A), 80);
}

/// Checks that a column that cannot be appended or inserted names the pivot in the new order, and leaves R as it was.
TEST(Reshape, APivotThatIsNotPositive) {
  Random random(9);
  const index_t n = 150, p = 3;
  const Stored<double> R = well_conditioned(n, random).cast<double>();
  const Matrix A = gram(R);
  std::atomic<bool> begun{false};
  for (const index_t at : {0, 70, 150})
    for (const index_t bad : {0, 1, 2}) {
      Matrix X = Matrix::Zero(n + p, p);
      for (index_t q = 0; q < p; ++q) X(at + q, q) = q == bad ? -1 : 1;
      const Stored<double> columns = X.cast<double>(), from = in_room(R, n + p);
      Stored<double> place = from;
      const MatrixView<double> out{place.data(), n + p, n + p, n + p};
      EXPECT_EQ(cpu::insert<double>({place.data(), n, n, n + p}, at, {columns.data(), n + p, p, n + p}, 0, out, how,
                                    no_poll, begun),
                at + bad);
      EXPECT_TRUE(same_bits(upper(place.topLeftCorner(n, n).eval()), upper(from.topLeftCorner(n, n).eval())));
    }
  // a new row that nearly equals row 100, which is behind it: row 100 fails
  Stored<double> X(n + 1, 1);
  X << A.col(100).head(40).cast<double>(), double(A(100, 100)) * (1 - 1e-10), A.col(100).tail(n - 40).cast<double>();
  Stored<double> place = in_room(R, n + 1);
  const MatrixView<double> out{place.data(), n + 1, n + 1, n + 1};
  EXPECT_EQ(cpu::insert<double>({place.data(), n, n, n + 1}, 40, {X.data(), n + 1, 1, n + 1}, 0, out, how, no_poll,
                                begun),
            101);
  EXPECT_TRUE(same_bits(upper(place.topLeftCorner(n, n).eval()), R));
  EXPECT_FALSE(begun);
}

/// Nearly singular matrices, which have a factor in every order: a shift of them never fails.
TEST(Reshape, ShiftsWhatIsNearlySingular) {
  Random random(10);
  std::atomic<bool> begun{false};
  const index_t n = 90;
  const Stored<double> R = random_with_condition(1e15L, n, random).cast<double>();
  for (const auto& [from, to] : {std::pair<index_t, index_t>{0, n - 1}, {n - 1, 0}, {20, 70}, {70, 20}}) {
    std::vector<index_t> order;
    for (index_t j = 0; j < n; ++j)
      if (j != from) order.push_back(j);
    order.insert(order.begin() + to, from);
    Stored<double> out = in_room(R, n);
    cpu::shift<double>({R.data(), n, n, n}, from, to, {out.data(), n, n, n}, how, no_poll, begun);
    EXPECT_LT(residual(out, picked(gram(R), order)), 40);
  }
}

}  // namespace
}  // namespace gpucholmod::test
