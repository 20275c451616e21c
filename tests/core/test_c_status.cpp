#include <gpucholmod.hpp>

#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "c/interface.h"
#include "c_call.h"
#include "tests.h"

/// The argument that a status names.
namespace gpucholmod::test {
namespace {

constexpr index_t n = 3;
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// A factor of order 3, a batch whose one member is that factor, and the arguments of calls for both.
struct Given {
  std::vector<double> R{2, 0, 0, 0.5, 2, 0, 0.5, 0.5, 2}, V{0.5, 0.25, -0.5};
  std::vector<double> z{1, 1, 1}, Y{1}, b{1, 1, 1}, X{0.1, 9, 0, 0};
  double weight = 1, scale = 1, rss = 1, out[9] = {};
  ptrdiff_t one = 1;
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  gpucholmod_factor* held = nullptr;
  gpucholmod_batch* batch = nullptr;
  gpucholmod_status status{};

  Given() {
    EXPECT_EQ(gpucholmod_factor_create(factor(), 0, nullptr, &held, nullptr), GPUCHOLMOD_OK);
    EXPECT_EQ(gpucholmod_batch_create(factor(), 1, nullptr, 0, nullptr, &batch, nullptr), GPUCHOLMOD_OK);
  }
  Given(const Given&) = delete;
  ~Given() {
    gpucholmod_factor_destroy(held);
    gpucholmod_batch_destroy(batch);
  }
  gpucholmod_const_matrix factor() { return gpucholmod_as_const(matrix(R.data(), n, n, n)); }
  gpucholmod_const_matrix columns() { return gpucholmod_as_const(matrix(V.data(), n, 1, n)); }

  int update() {
    const gpucholmod_right_sides sides = right_sides(z.data(), n, 1, n, Y.data(), 1, 1, &rss);
    return gpucholmod_update(matrix(R.data(), n, n, n), columns(), &weight, scale, &sides, &options, &status);
  }
  int update_held() {
    const gpucholmod_right_sides sides = right_sides(z.data(), n, 1, n, Y.data(), 1, 1, &rss);
    return gpucholmod_factor_update(held, columns(), &weight, scale, &sides, &options, &status);
  }
  int insert_held() {
    const gpucholmod_const_matrix columns = gpucholmod_as_const(matrix(X.data(), n + 1, 1, n + 1));
    return gpucholmod_factor_insert(held, one, columns, nullptr, &options, &status);
  }
  int update_batch() {
    const gpucholmod_batch_modification what{1, columns(), &weight, 1, &scale, 0, nullptr};
    return gpucholmod_batch_update(batch, &what, nullptr, &options, &status);
  }
  int solve_modified() {
    const gpucholmod_const_matrix sides = gpucholmod_as_const(matrix(b.data(), n, 1, n));
    const gpucholmod_modifications what{1,     &one,                 columns(), &weight, &scale, 1,
                                        sides, matrix(out, n, 1, n), nullptr,   nullptr, nullptr};
    return gpucholmod_factor_solve_modified(held, &what, &options, &status);
  }
  int create() {
    gpucholmod_factor* made = nullptr;
    const int code = gpucholmod_factor_create(factor(), 0, &options, &made, &status);
    gpucholmod_factor_destroy(made);
    return code;
  }
  int factorise() { return gpucholmod_factorise(matrix(R.data(), n, n, n), &options, &status); }
};

/// A call, the change that spoils its arguments, its code, and the argument that its status names.
struct Wrong {
  int (Given::*call)();
  void (*spoil)(Given& given);
  int code;
  const char* argument;
};

TEST(CStatus, NamesTheArgument) {
  const std::vector<Wrong> all{
      {&Given::update, [](Given& g) { g.R[3] = nan; }, GPUCHOLMOD_NOT_FINITE, "R"},
      {&Given::update, [](Given& g) { g.V[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "V"},
      {&Given::update, [](Given& g) { g.V[1] = 1e300, g.weight = 1e300; }, GPUCHOLMOD_OVERFLOW, "V"},
      {&Given::update, [](Given& g) { g.weight = nan; }, GPUCHOLMOD_BAD_ARGUMENT, "weights"},
      {&Given::update, [](Given& g) { g.scale = 0; }, GPUCHOLMOD_BAD_ARGUMENT, "scale"},
      {&Given::update, [](Given& g) { g.z[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "sides->z"},
      {&Given::update, [](Given& g) { g.Y[0] = nan; }, GPUCHOLMOD_NOT_FINITE, "sides->Y"},
      {&Given::update, [](Given& g) { g.rss = -1; }, GPUCHOLMOD_BAD_ARGUMENT, "sides->rss"},
      {&Given::update, [](Given& g) { g.options.threads = -2; }, GPUCHOLMOD_BAD_ARGUMENT, "options->threads"},
      {&Given::update, [](Given& g) { g.options.triangle = 2; }, GPUCHOLMOD_BAD_ARGUMENT, "options->triangle"},
      {&Given::update_held, [](Given& g) { g.V[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "V"},
      {&Given::update_held, [](Given& g) { g.z[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "sides->z"},
      {&Given::update_held, [](Given& g) { g.options.trusted = 1; }, GPUCHOLMOD_BAD_ARGUMENT, "options->trusted"},
      {&Given::insert_held, [](Given& g) { g.X[2] = nan; }, GPUCHOLMOD_NOT_FINITE, "X"},
      {&Given::insert_held, [](Given& g) { g.one = 4; }, GPUCHOLMOD_BAD_ARGUMENT, "at"},
      {&Given::update_batch, [](Given& g) { g.V[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "what->V"},
      {&Given::update_batch, [](Given& g) { g.V[1] = 1e300, g.weight = 1e300; }, GPUCHOLMOD_OVERFLOW, "what->V"},
      {&Given::update_batch, [](Given& g) { g.weight = nan; }, GPUCHOLMOD_BAD_ARGUMENT, "what->weights"},
      {&Given::update_batch, [](Given& g) { g.scale = -1; }, GPUCHOLMOD_BAD_ARGUMENT, "what->scales"},
      {&Given::solve_modified, [](Given& g) { g.V[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "what->V"},
      {&Given::solve_modified, [](Given& g) { g.b[1] = nan; }, GPUCHOLMOD_NOT_FINITE, "what->b"},
      {&Given::solve_modified, [](Given& g) { g.weight = nan; }, GPUCHOLMOD_BAD_ARGUMENT, "what->weights"},
      {&Given::solve_modified, [](Given& g) { g.one = -1; }, GPUCHOLMOD_BAD_ARGUMENT, "what->columns"},
      {&Given::create, [](Given& g) { g.R[3] = nan; }, GPUCHOLMOD_NOT_FINITE, "R"},
      {&Given::create, [](Given& g) { g.options.device = -3; }, GPUCHOLMOD_BAD_ARGUMENT, "options->device"},
      {&Given::factorise, [](Given& g) { g.R[3] = nan; }, GPUCHOLMOD_NOT_FINITE, "A"},
      {&Given::create, [](Given& g) { g.R[4] = -0.0, g.options.device = 0; }, GPUCHOLMOD_NOT_BUILT, ""},
      {&Given::factorise, [](Given& g) { g.R[4] = -1; }, GPUCHOLMOD_NOT_POSITIVE_DEFINITE, ""},
      {&Given::update, [](Given& g) { g.weight = -100; }, GPUCHOLMOD_NOT_POSITIVE_DEFINITE, ""},
      {&Given::update, [](Given&) {}, GPUCHOLMOD_OK, ""}};
  for (const Wrong& wrong : all) {
    Given given;
    wrong.spoil(given);
    std::memset(given.status.argument, '?', sizeof given.status.argument);
    EXPECT_EQ((given.*wrong.call)(), wrong.code) << given.status.message;
    EXPECT_STREQ(given.status.argument, wrong.argument) << given.status.message;
  }
}

/// Names that cannot occur here: the core's name for the argument of a missing GPU, and a name that is too long.
TEST(CStatus, RenamesAndCutsOff) {
  gpucholmod_status status;
  const auto fail = [](const char* argument) -> index_t {
    throw Error(ErrorCode::bad_argument, "'" + std::string(argument) + "' is wrong",
                {{"argument", argument}, {"row", 2.0}});
  };
  const auto told = [&](const char* argument) {
    const auto f = [&] { return c::renaming("device", "options->device", [&] { return fail(argument); }); };
    EXPECT_EQ(c::guarded(&status, f), GPUCHOLMOD_BAD_ARGUMENT);
    EXPECT_EQ(status.row, 2);
    return std::string(status.argument);
  };
  EXPECT_EQ(told("device"), "options->device");
  EXPECT_STREQ(status.message, "'options->device' is wrong");
  EXPECT_EQ(told("devices"), "devices");
  const std::string longest(sizeof status.argument - 1, 'a');
  EXPECT_EQ(told(longest.c_str()), longest);
  EXPECT_EQ(told((longest + "bc").c_str()), longest);
}

TEST(CStatus, IsPassedOnByExceptions) {
  const double R[] = {2}, V[] = {nan};
  Factor F(View<const double>(R, 1, 1));
  try {
    F.update(View<const double>(V, 1, 1));
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.argument(), "V");
  }
  try {
    Factor(View<const double>(R, 1, 1)).update(View<const double>(std::vector<double>(2), 2, 2));
    ADD_FAILURE();
  } catch (const Failure& failure) {
    EXPECT_STREQ(failure.argument(), "all");
  }
}

}  // namespace
}  // namespace gpucholmod::test
