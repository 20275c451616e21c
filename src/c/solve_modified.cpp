#include "modify/solve_modified.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "c/handle.h"
#include "c/hold.h"
#include "c/right_sides.h"

/// Functions that solve with many modifications of one matrix.
namespace gpucholmod::c {
namespace {

/// Holds the arguments of a call in the core's terms, and the results until the call has succeeded.
class Modifications {
 public:
  /// Checks the arguments, and copies V, b and the scales. n: order of the factor. Throws bad_argument.
  Modifications(const gpucholmod_modifications* given, index_t n, Precision precision, const Options& options)
      : given_(require_given(given)), n_(n), count_(given->count) {
    require_counts();
    const MatrixView<const double> V = view<double>("what->V", given->V);
    require_shape("what->V", given->V, n, columns_);
    require_right_sides();
    require_weights("what->weights", given->weights, columns_);
    V_ = packed<double>(V);
    systems_.asked = request_of(n, 0, precision, options);
    systems_.k.assign(given->columns, given->columns + count_);
    systems_.V = V_.data();
    systems_.weights = given->weights;
    for (index_t j = 0; j < count_; ++j) {
      const double scale = given->scales ? given->scales[j] : 1;
      require(std::isfinite(scale) && scale > 0, "what->scales", "must be positive");
      systems_.scale.push_back(std::sqrt(scale));
    }
    take_right_sides();
    make_room();
  }

  const ModifiedSystems& systems() const { return systems_; }

  /// Copies results to the caller's memory. Returns the number of the first A_j that is not positive definite, or -1.
  index_t put_back(const ModifiedOutcome& outcome) {
    mark_failed(systems_, n_, outcome.pivot, std::numeric_limits<double>::quiet_NaN());
    if (systems_.solution) put_numbers(solution_, view<double>("what->solution", given_.solution));
    std::copy(quadratic_.begin(), quadratic_.end(), given_.quadratic);
    std::copy(logdet_.begin(), logdet_.end(), given_.logdet);
    for (index_t j = 0; given_.pivots && j < count_; ++j) given_.pivots[j] = outcome.pivot[j] + 1;
    return first_failing(outcome.pivot);
  }

 private:
  static const gpucholmod_modifications& require_given(const gpucholmod_modifications* given) {
    require(given != nullptr, "what", "is missing");
    return *given;
  }
  void require_counts() {
    require(count_ >= 0, "what->count", "must not be negative");
    require(can_exist(count_, 1, sizeof(double)), "what->count", "is more than any memory has");
    require(given_.columns != nullptr || count_ == 0, "what->columns", "are missing");
    for (index_t j = 0; j < count_; ++j) {
      require(given_.columns[j] >= 0 && given_.columns[j] <= std::numeric_limits<index_t>::max() - columns_,
              "what->columns", "must not be negative, nor more than can be counted");
      columns_ += given_.columns[j];
    }
    require(given_.m >= 0, "what->m", "must not be negative");
    require(given_.m <= std::numeric_limits<int>::max(), "what->m", "is more than BLAS can count");
    require(can_exist(given_.m, count_, sizeof(double)), "what->m", "is larger than there can be right-hand sides");
  }
  bool wants_solution() const { return given_.solution.rows != 0 && given_.solution.cols != 0; }
  /// Throws bad_argument unless b and the solution have the right sizes. Reads no number.
  void require_right_sides() const {
    const index_t m = given_.m;
    if (m > 0) {
      require(given_.b.cols == m || given_.b.cols == m * count_, "what->b",
              "must have m columns, or m for each modification");
      static_cast<void>(view<double>("what->b", given_.b));
      require_shape("what->b", given_.b, n_, given_.b.cols);
    }
    if (!wants_solution()) return;
    static_cast<void>(view<double>("what->solution", given_.solution));
    require_shape("what->solution", given_.solution, n_, m * count_);
  }
  void take_right_sides() {
    const index_t m = given_.m;
    systems_.m = m;
    if (m == 0) return;
    b_ = packed<double>(view<double>("what->b", given_.b));
    systems_.b = b_.data();
    systems_.own_b = given_.b.cols != m;
  }
  void make_room() {
    const index_t m = given_.m;
    if (wants_solution()) {
      solution_.resize(n_ * m * count_);
      systems_.solution = solution_.data();
    }
    if (given_.quadratic && m > 0) {
      quadratic_.resize(m * count_);
      systems_.quadratic = quadratic_.data();
    }
    if (given_.logdet) {
      logdet_.resize(count_);
      systems_.logdet = logdet_.data();
    }
  }

  const gpucholmod_modifications& given_;
  index_t n_, count_, columns_ = 0;
  ModifiedSystems systems_;
  std::vector<double> V_, b_, solution_, quadratic_, logdet_;
};

/// Solves with the modifications of the factor that factor(options) returns. Returns the code, and stores the number of
/// the first member that fails in *status.
template <class F>
int solve_modified(const gpucholmod_modifications* what, unsigned allowed, const gpucholmod_options* options,
                   gpucholmod_status* status, F&& factor) {
  index_t failed = -1;
  const int code = guarded(status, [&] {
    const Options chosen = options_of(options, allowed);
    HeldFactor& R = factor(chosen);
    Modifications given(what, R.order(), R.precision(), chosen);
    const ModifiedOutcome outcome = renaming("V", "what->V", [&] {
      return renaming("b", "what->b", [&] { return gpucholmod::solve_modified(R, given.systems(), chosen.poll()); });
    });
    failed = given.put_back(outcome);
    return failed >= 0 ? outcome.pivot[failed] : -1;
  });
  if (status && failed >= 0) status->member = failed + 1;
  return code;
}

/// Refers to a factor of the caller's in its place, if the factor can be used there; otherwise copies the factor.
template <class S>
std::unique_ptr<HeldFactor> borrowed(MatrixView<const S> R, const Options& options) {
  require(R.rows == R.cols, "R", "must be square");
  if constexpr (sizeof(S) == sizeof(double))
    if (R.ld == R.rows && options.uplo == Uplo::upper)
      return cpu::borrow(R.data, R.cols, cpu::ordinary_memory, options.threads);
  return held(R, 0, options);
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_solve_modified(gpucholmod_const_matrix R, const gpucholmod_modifications* what,
                              const gpucholmod_options* options, gpucholmod_status* status) {
  std::unique_ptr<HeldFactor> held;
  return c::solve_modified(what, option::triangle | option::threads | option::progress, options, status,
                           [&](const Options& chosen) -> HeldFactor& {
                             held = with_type("R", R.type, [&](auto s) {
                               return borrowed(view<decltype(s)>("R", R), chosen);
                             });
                             return *held;
                           });
}

int gpucholmod_factor_solve_modified(const gpucholmod_factor* given, const gpucholmod_modifications* what,
                                     const gpucholmod_options* options, gpucholmod_status* status) {
  return c::solve_modified(what, option::threads | option::progress, options, status,
                           [&](const Options&) -> HeldFactor& { return factor(given); });
}

}  // extern "C"
