#include "cuda/kernels/member_reshape.h"

#include "cuda/kernels/member_solve.h"
#include "host_team.h"
#include "reshape_call.h"

/// Rows that members of a batch get and lose on a GPU, by threads that run one after the other.
namespace gpucholmod::test {
namespace {

using namespace cuda;

/// Two members in triangles of order n: the first of order n, the second of a smaller order.
template <class T>
struct TwoMembers {
  index_t n, own[2];
  std::vector<T> R;
  std::vector<Matrix> A;

  TwoMembers(index_t n, index_t smaller, Random& random) : n(n), own{n, smaller} {
    for (const index_t order : own) {
      Stored<double> all = Stored<double>::Identity(n, n);
      if (order > 0)
        all.topLeftCorner(order, order) = well_conditioned(order, random).cast<T>().template cast<double>();
      const std::vector<T> words = packed<T>(all);
      R.insert(R.end(), words.begin(), words.end());
      A.push_back(gram(Stored<double>(all.topLeftCorner(order, order))));
    }
  }
};

/// Returns ||R'R - A||_1 / (eps n ||A||_1) of a member in a packed triangle, which is the identity beyond the member.
template <class T>
double units(const T* words, index_t n, const Matrix& A) {
  const index_t own = A.rows();
  const Stored<double> R = unpacked(words, n).template cast<double>();
  EXPECT_TRUE(R.bottomRightCorner(n - own, n - own) == Stored<double>::Identity(n - own, n - own));
  EXPECT_TRUE((R.topRightCorner(own, n - own).array() == 0).all());
  const Stored<double> top = R.topLeftCorner(own, own);
  EXPECT_TRUE((top.diagonal().array() > 0).all());
  return own == 0 ? 0 : double(norm_1(gram(top) - A) / (real(std::numeric_limits<T>::epsilon()) * own * norm_1(A)));
}

/// Returns the first `own` rows and columns of a packed triangle.
template <class T>
Matrix top_of(const T* words, index_t n, index_t own) {
  return unpacked(words, n).topLeftCorner(own, own).template cast<real>();
}

constexpr int sides = 3;

template <class T>
class MemberReshape : public testing::Test {};
using Scalars = testing::Types<double, float>;
TYPED_TEST_SUITE(MemberReshape, Scalars);

TYPED_TEST(MemberReshape, InsertsRows) {
  using T = TypeParam;
  Random random(1), for_sides(5);
  for (const auto& [n, smaller, p] : {std::array<index_t, 3>{0, 0, 1}, {1, 1, 1}, {5, 3, 2}, {31, 30, 1}, {33, 0, 3},
                                      {64, 20, 2}, {100, 99, 33}})
    for (const bool good : {true, false}) {
      const TwoMembers<T> members(n, smaller, random);
      const index_t made_n = n + p;
      const MemberRows rows[] = {{int(n), int(n / 2)}, {int(smaller), int(smaller)}};
      std::vector<double> X(made_n * p * 2, NAN), C(n * p * 2), corner(p * p * 2), bounds(2, 0.5), after(2);
      std::vector<Matrix> A;
      for (int m = 0; m < 2; ++m) {
        A.push_back(enlarged(members.A[m], rows[m].at, p, good || m == 1 ? 3 : -1, random));
        for (index_t q = 0; q < p; ++q)
          for (index_t i = 0; i < A[m].rows(); ++i) X[i + (q + m * p) * made_n] = double(A[m](i, rows[m].at + q));
      }
      std::vector<T> out(2 * words_of(made_n), T(-7));
      NewDiagonal found[2];
      int any = 0, needs_look = 0;
      const Stored<double> z = for_sides.normal(n, 2 * sides).template cast<double>(),
                           b = for_sides.normal(p, 2 * sides).template cast<double>();
      Stored<double> rest(p, 2 * sides), made_z(made_n, 2 * sides);
      const BatchRows<T> of{int(n), int(made_n), int(p), Numbers<T>::of(members.R.data()), Numbers<T>::of(out.data()),
                            rows, X.data(), made_n * p, C.data(), corner.data(), bounds.data(), after.data(), found,
                            &any, &needs_look, sides, z.data(), b.data(), rest.data(), made_z.data()};
      static ReshapeRoom room;
      const HostTeam block{a_thread_for_each(made_n)}, warp{WARP};
      for (int m = 0; m < 2; ++m) {
        part_new_columns(block, of, m);
        const Stored<double> R = unpacked(members.R.data() + m * words_of(n), n).template cast<double>();
        for (index_t q = 0; q < p; ++q) {
          Eigen::Map<Stored<double>> c(C.data() + (q + m * p) * n, n, 1);
          R.template triangularView<Eigen::Upper>().transpose().solveInPlace(c);
        }
        factorise_corner(warp, of, m);
        append_rows(block, of, m);
        place_rows(block, of, m, room);
      }
      EXPECT_EQ(needs_look, 0);
      EXPECT_EQ(any, !good);
      EXPECT_EQ(found[0], good ? NewDiagonal::good : NewDiagonal::not_positive);
      EXPECT_EQ(found[1], NewDiagonal::good);
      EXPECT_EQ(after[0] > 1, good);
      for (int m = 0; m < 2; ++m)
        EXPECT_LT(units(out.data() + m * words_of(made_n), made_n, good || m == 1 ? A[m] : members.A[m]), 10)
            << n << ", " << p << ", member " << m;
      for (int m = 0; m < 2; ++m) {
        const index_t own = rows[m].order, fresh = good || m == 1 ? p : 0;
        const Matrix before = top_of(members.R.data() + m * words_of(n), n, own),
                     after = top_of(out.data() + m * words_of(made_n), made_n, own + fresh),
                     old = before.transpose() * z.block(0, m * sides, own, sides).template cast<real>(),
                     now = made_z.block(0, m * sides, own + fresh, sides).template cast<real>();
        Matrix expected(own + fresh, sides);
        expected << old.topRows(rows[m].at), b.block(0, m * sides, fresh, sides).template cast<real>(),
            old.bottomRows(own - rows[m].at);
        const Matrix sizes = after.transpose().cwiseAbs() * now.cwiseAbs();
        if (own + fresh > 0) {
          EXPECT_LT(double(norm_1(after.transpose() * now - expected) / norm_1(sizes)),
                    40 * std::numeric_limits<T>::epsilon()) << n << ", " << p << ", member " << m;
        }
      }
    }
}

TYPED_TEST(MemberReshape, RemovesRows) {
  using T = TypeParam;
  Random random(2);
  for (const auto& [n, smaller, p] :
       {std::array<index_t, 3>{1, 1, 1}, {5, 3, 2}, {33, 31, 1}, {64, 2, 2}, {100, 70, 33}}) {
    const TwoMembers<T> members(n, smaller, random);
    const index_t left = n - p;
    const int orders[] = {int(n), int(smaller)};
    std::vector<int> gone;
    for (const index_t own : members.own)
      for (const index_t row : draw(p, own, random)) gone.push_back(int(row));
    std::vector<double> V(left * p * 2, NAN);
    std::vector<T> out(2 * words_of(left), T(-7));
    const BatchRowsGone<T> of{int(n), int(p), Numbers<T>::of(members.R.data()), Numbers<T>::of(out.data()), orders,
                              gone.data(), p, V.data()};
    static ReshapeRoom room;
    for (int m = 0; m < 2; ++m) {
      remove_rows(HostTeam{a_thread_for_each(n)}, of, m, room);
      const index_t own = orders[m] - p;
      const Matrix rest = Eigen::Map<Stored<double>>(V.data() + m * left * p, left, p).template cast<real>();
      EXPECT_TRUE((rest.bottomRows(left - own).array() == 0).all());
      const Stored<T> all = unpacked(out.data() + m * words_of(left), left);
      const Stored<double> R = all.topLeftCorner(own, own).template cast<double>();
      const Matrix made = gram(R) + rest.topRows(own) * rest.topRows(own).transpose();
      const std::vector<index_t> of_member(gone.begin() + m * p, gone.begin() + (m + 1) * p);
      const Matrix expected = picked(members.A[m], without(of_member, orders[m]));
      if (own > 0) {
        EXPECT_LT(double(norm_1(made - expected) / norm_1(expected)), 1e-16 * double(n)) << n;
      }
    }
  }
}

TYPED_TEST(MemberReshape, MovesRows) {
  using T = TypeParam;
  Random random(3);
  for (const auto& [n, from, to] : {std::array<int, 3>{1, 0, 0}, {2, 0, 1}, {2, 1, 0}, {9, 0, 8}, {9, 8, 0},
                                    {33, 3, 20}, {33, 20, 3}, {70, 30, 39}, {70, 40, 31}, {70, 10, 11}}) {
    TwoMembers<T> members(n, n - 1, random);
    const std::vector<T> before = members.R;
    const int last = std::max(0, n - 2);
    const MemberMove moves[] = {{n, from, to}, {n - 1, std::min(to, last), std::min(from, last)}};
    const Stored<double> z = random.normal(n, 2 * sides).template cast<double>();
    Stored<double> made_z = z;
    int any = 0;
    const BatchMoves<T> of{n, Numbers<T>::of(members.R.data()), moves, sides, made_z.data(), &any};
    static ReshapeRoom room;
    for (int m = 0; m < 2; ++m) {
      move_rows(HostTeam{a_thread_for_each(n)}, of, m, room);
      const index_t own = moves[m].order;
      const auto order = own > 0 ? with_moved(own, moves[m].from, moves[m].to) : std::vector<index_t>();
      EXPECT_LT(units(members.R.data() + m * words_of(n), n, picked(members.A[m], order)), 10) << n << ", " << from;
      const Matrix was = top_of(before.data() + m * words_of(n), n, own),
                   is = top_of(members.R.data() + m * words_of(n), n, own),
                   now = made_z.block(0, m * sides, own, sides).template cast<real>(),
                   expected = picked_rows(
                       was.transpose() * z.block(0, m * sides, own, sides).template cast<real>(), order),
                   sizes = is.transpose().cwiseAbs() * now.cwiseAbs();
      if (own > 0) {
        EXPECT_LT(double(norm_1(is.transpose() * now - expected) / norm_1(sizes)),
                  40 * std::numeric_limits<T>::epsilon()) << n << ", " << from << ", member " << m;
      }
    }
    EXPECT_EQ(any, 0);
  }
}

}  // namespace
}  // namespace gpucholmod::test
