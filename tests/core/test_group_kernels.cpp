#include "cpu/group_pass.h"
#include "cpu/kernels.h"
#include "reshape_call.h"

/// Operations on all members of a group at once, by each set of instructions.
namespace gpucholmod::test {
namespace {

/// A group of order n in memory for `room` rows. Each lane holds a factor of its own times `scale[lane]`.
template <class T>
struct Group {
  static constexpr index_t lanes = cpu::group_size<T>;
  Group(index_t n, index_t room, const std::array<double, lanes>& scale) : n(n), room(room) {
    Random random(11);
    numbers.assign(cpu::group_words<T>(room), T(0));
    for (index_t l = 0; l < lanes; ++l) {
      const Matrix R = well_conditioned(n, random) * real(scale[l]);
      for (index_t i = 0; i < room; ++i)
        for (index_t j = i; j < room; ++j) at(i, j, l) = i < n && j < n ? T(R(i, j)) : T(i == j);
    }
  }
  T& at(index_t i, index_t j, index_t l) { return numbers[cpu::group_entry<T>(room, i, j) + l]; }
  Matrix factor(index_t l) {
    Matrix R = Matrix::Zero(n, n);
    for (index_t i = 0; i < n; ++i)
      for (index_t j = i; j < n; ++j) R(i, j) = real(at(i, j, l));
    return R;
  }
  index_t n, room;
  std::vector<T> numbers;
};

class GroupKernelsOf : public testing::TestWithParam<Instructions> {
 protected:
  void SetUp() override {
    if (!cpu::available(GetParam())) GTEST_SKIP() << "this machine does not have them";
  }
};

/// Checks that rows move in all lanes, and that a lane whose squares leave the range does not change other lanes.
template <class T>
void move_rows(Instructions instructions) {
  constexpr index_t n = 13, room = 15, lanes = cpu::group_size<T>;
  std::array<double, lanes> ones, extremes;
  ones.fill(1);
  extremes.fill(1);
  if (sizeof(T) == 8) extremes[1] = 0x1p-510, extremes[lanes - 1] = 0x1p505;
  for (const auto& [from, to] : {std::pair<index_t, index_t>{12, 0}, {12, 12}, {9, 8}, {7, 2}, {0, 0},
                                 {0, 12}, {8, 9}, {2, 7}, {5, 12}}) {
    Group<T> plain(n, room, ones), group(n, room, extremes);
    std::vector<Matrix> A;
    for (index_t l = 0; l < lanes; ++l) A.push_back(gram(group.factor(l)));
    std::vector<double> work(cpu::GroupShift<T>::words(n));
    for (Group<T>* const g : {&plain, &group})
      cpu::group_kernels<T>(instructions).shift({g->numbers.data(), room, n, from, to, work.data()});
    for (index_t l = 0; l < lanes; ++l) {
      const Matrix R = group.factor(l), expected = picked(A[l], with_moved(n, from, to));
      EXPECT_LT(double(norm_1(gram(R) - expected) / norm_1(expected)), 10 * std::numeric_limits<T>::epsilon()) << l;
      EXPECT_TRUE((R.diagonal().array() > 0).all());
      if (extremes[l] == 1) { EXPECT_TRUE(R == plain.factor(l)) << l; }
      EXPECT_EQ(group.at(n, n, l), 1);
      EXPECT_EQ(group.at(n - 1, n, l), 0);
    }
  }
}

TEST_P(GroupKernelsOf, MoveRows) {
  move_rows<double>(GetParam());
  move_rows<float>(GetParam());
}

template <class T>
void substitute(Instructions instructions) {
  constexpr index_t lanes = cpu::group_size<T>;
  std::array<double, lanes> scale;
  for (index_t l = 0; l < lanes; ++l) scale[l] = double(1 + l);
  for (const index_t n : {1, 2, 13, 40}) {
    Group<T> group(n, n, scale);
    Random random(12);
    std::vector<double> forward(n * lanes);
    for (double& b : forward) b = double(random.normal());
    std::vector<double> back = forward, given = forward;
    cpu::group_kernels<T>(instructions).solve_forward(group.numbers.data(), n, forward.data());
    cpu::group_kernels<T>(instructions).solve_back(group.numbers.data(), n, back.data());
    const auto lane = [&](const std::vector<double>& b, index_t l) {
      return Matrix(Eigen::Map<const Stored<double>>(b.data(), lanes, n).row(l).transpose().cast<real>());
    };
    for (index_t l = 0; l < lanes; ++l) {
      const Matrix R = group.factor(l), x = lane(forward, l), y = lane(back, l), b = lane(given, l);
      EXPECT_LT(double(norm_1(R.transpose() * x - b) / (norm_1(R) * norm_1(x) * real(n))), 1e-15) << n;
      EXPECT_LT(double(norm_1(R * y - b) / (norm_1(R) * norm_1(y) * real(n))), 1e-15) << n;
    }
  }
}

TEST_P(GroupKernelsOf, Substitute) {
  substitute<double>(GetParam());
  substitute<float>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Instructions, GroupKernelsOf, testing::ValuesIn(all_instructions),
                         [](const auto& info) { return text(info.param); });

}  // namespace
}  // namespace gpucholmod::test
