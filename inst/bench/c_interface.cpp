// Times of a modification by one column through inst/include/gpucholmod.h, in cache and by one thread, beside Eigen's
// rankUpdate, which checks nothing:
//
//   make -f tools/library.mk bench [ARGS="SECONDS MOST"]
//
// The program takes SECONDS for each figure, 0.3 by default, and n up to MOST, 1,000 by default. It prints a line for
// each n: microseconds a call, the least of many runs. A run consists of some updates, then as many downdates by the
// same column, so that the factor stays what it is. A second table has an upper factor that is trusted, and columns
// that begin with zeros.
#include <gpucholmod.h>

#include <Eigen/Dense>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Least {
  double update = 1e9, downdate = 1e9;
};

/// Calls change(1) many times, then change(-1) as often, over and over for `seconds`. Returns the least microseconds a
/// call.
template <class F>
Least measure(int n, double seconds, F&& change) {
  const int calls = std::max(1, 2000 / n);
  Least least;
  for (const double start = now(); now() - start < seconds;) {
    const double t = now();
    for (int i = 0; i < calls; ++i) change(1);
    const double between = now();
    for (int i = 0; i < calls; ++i) change(-1);
    least.update = std::min(least.update, 1e6 * (between - t) / calls);
    least.downdate = std::min(least.downdate, 1e6 * (now() - between) / calls);
  }
  return least;
}

void require(int code, const gpucholmod_status& status) {
  if (code != GPUCHOLMOD_OK) std::puts(status.message), std::exit(1);
}

/// Prints the times of columns whose first nonzero number is in the first, the middle and the last row.
void print_zeros(const Eigen::MatrixXd& U, const Eigen::VectorXd& v, double seconds) {
  const int n = int(U.rows());
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  options.trusted = 1;
  gpucholmod_status status;
  std::printf("n = %-5d", n);
  for (const int first : {0, n / 2, n - 1}) {
    Eigen::MatrixXd R = U;
    Eigen::VectorXd column = v;
    column.head(first).setZero();
    const Least t = measure(n, seconds, [&](double sign) {
      require(gpucholmod_update(gpucholmod_double_matrix(R.data(), n, n, n),
                                gpucholmod_const_double_matrix(column.data(), n, 1, n), &sign, 1, nullptr, &options,
                                &status),
              status);
    });
    std::printf("  %7.3g / %-7.3g", t.update, t.downdate);
  }
  std::puts("");
}

/// A factor of order n, and a column.
struct Given {
  explicit Given(int n) {
    std::mt19937 bits(n);
    std::normal_distribution<> normal;
    const Eigen::MatrixXd B = Eigen::MatrixXd::NullaryExpr(n + 3, n, [&] { return normal(bits); });
    const Eigen::LLT<Eigen::MatrixXd> factor(B.transpose() * B + Eigen::MatrixXd::Identity(n, n));
    L = factor.matrixL();
    U = factor.matrixU();
    v = 0.3 * Eigen::VectorXd::NullaryExpr(n, [&] { return normal(bits); });
  }
  Eigen::MatrixXd L, U;
  Eigen::VectorXd v;
};

}  // namespace

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? std::atof(argv[1]) : 0.3;
  const int most = argc > 2 ? std::atoi(argv[2]) : 1000;
  const std::vector<int> orders{5, 10, 20, 50, 100, 200, 300, 500, 1000};
  std::puts("update / downdate, us         lower          trusted            upper           factor            Eigen");
  for (const int n : orders) {
    if (n > most) break;
    const Given given(n);
    const Eigen::MatrixXd &L = given.L, &U = given.U;
    const Eigen::VectorXd& v = given.v;
    std::vector<char> workspace(gpucholmod_workspace(n, 1, GPUCHOLMOD_DOUBLE));
    const gpucholmod_const_matrix V = gpucholmod_const_double_matrix(v.data(), n, 1, n);
    gpucholmod_status status;
    const auto updates = [&](int triangle, int trusted) {
      Eigen::MatrixXd R = triangle == GPUCHOLMOD_LOWER ? L : U;
      gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
      options.triangle = triangle;
      options.trusted = trusted;
      options.workspace = workspace.data();
      options.workspace_size = workspace.size();
      return measure(n, seconds, [&](double sign) {
        const gpucholmod_matrix all = gpucholmod_double_matrix(R.data(), n, n, n);
        require(gpucholmod_update(all, V, &sign, 1, nullptr, &options, &status), status);
      });
    };
    const Least lower = updates(GPUCHOLMOD_LOWER, 0), trusted = updates(GPUCHOLMOD_LOWER, 1),
                upper = updates(GPUCHOLMOD_UPPER, 0);
    gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
    options.triangle = GPUCHOLMOD_LOWER;
    gpucholmod_factor* held = nullptr;
    const gpucholmod_const_matrix all = gpucholmod_const_double_matrix(L.data(), n, n, n);
    require(gpucholmod_factor_create(all, n, &options, &held, &status), status);
    const Least of_factor = measure(n, seconds, [&](double sign) {
      require(gpucholmod_factor_update(held, V, &sign, 1, nullptr, nullptr, &status), status);
    });
    gpucholmod_factor_destroy(held);
    Eigen::MatrixXd M = L;
    const Least eigen = measure(n, seconds, [&](double sign) {
      Eigen::internal::llt_inplace<double, Eigen::Lower>::rankUpdate(M, v, sign);
    });
    std::printf("n = %-5d", n);
    for (const Least& t : {lower, trusted, upper, of_factor, eigen})
      std::printf("  %7.3g / %-7.3g", t.update, t.downdate);
    std::puts("");
  }
  std::puts("first number in           row 1               row n / 2 + 1      row n");
  for (const int n : orders)
    if (n <= most) print_zeros(Given(n).U, Given(n).v, seconds);
}
