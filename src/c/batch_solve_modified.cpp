#include <limits>
#include <optional>
#include <vector>

#include "c/batch.h"
#include "c/handle.h"
#include "modify/batch.h"
#include "modify/solve_modified.h"

/// The function that solves with a modification of every member of a batch.
namespace gpucholmod::c {
namespace {

/// Holds the arguments of a call in the core's terms, and the results until the call has succeeded.
class Wanted {
 public:
  /// Checks the arguments. n, count: order of the batch, and number of its members. Throws bad_argument.
  Wanted(const gpucholmod_batch_systems& given, index_t n, index_t count, const Options& options)
      : given_(given), n_(n) {
    const index_t m = given.m;
    require(m >= 0, "wanted->m", "must not be negative");
    require(can_exist(m, count, sizeof(double)), "wanted->m", "is larger than there can be right-hand sides");
    require_right_sides(count);
    systems_.m = m;
    if (m > 0) b_.emplace("wanted->b", given.b, options);
    if (m > 0) systems_.b = b_->given().host();
    systems_.common_b = given.b.cols == m;
    if (wants_solution()) {
      solution_on_ = options.gpu_of("wanted->solution", given.solution.data);
      systems_.solution = room(solution_, n * m * count);
    }
    if (given.quadratic) systems_.quadratic = room(quadratic_, m * count);
    if (given.logdet) systems_.logdet = room(logdet_, count);
  }

  const BatchSystems& systems() const { return systems_; }

  /// Copies results to the caller's memory; results of members that have failed are NaN. Throws overflow.
  void put_back(const std::vector<index_t>& pivots) const {
    mark_failed(systems_, n_, pivots, std::numeric_limits<double>::quiet_NaN());
    const gpucholmod_matrix& to = given_.solution;
    if (wants_solution())
      with_type("wanted->solution", to.type,
                [&](auto s) { put_numbers(solution_, view<decltype(s)>("wanted->solution", to), solution_on_); });
    std::copy(quadratic_.begin(), quadratic_.end(), given_.quadratic);
    std::copy(logdet_.begin(), logdet_.end(), given_.logdet);
    for (std::size_t j = 0; given_.pivots && j < pivots.size(); ++j) given_.pivots[j] = pivots[j] + 1;
  }

 private:
  bool wants_solution() const { return given_.solution.rows != 0 && given_.solution.cols != 0; }
  static double* room(std::vector<double>& results, index_t count) {
    results.resize(count);
    return results.data();
  }
  /// Throws bad_argument unless b and the solution have the right sizes. Reads no number.
  void require_right_sides(index_t count) const {
    const index_t m = given_.m;
    if (m > 0) {
      require_sizes("wanted->b", given_.b);
      require(given_.b.rows == n_, "wanted->b", "has another number of rows than the factors");
      require(given_.b.cols == m || has_columns(given_.b.cols, m, count), "wanted->b",
              "must have m columns, or m for each member");
    }
    if (!wants_solution()) return;
    require_sizes("wanted->solution", gpucholmod_as_const(given_.solution));
    require(given_.solution.rows == n_, "wanted->solution", "has another number of rows than the factors");
    require(has_columns(given_.solution.cols, m, count), "wanted->solution", "must have m columns for each member");
  }

  const gpucholmod_batch_systems& given_;
  index_t n_;
  BatchSystems systems_;
  int solution_on_ = -1;  ///< the GPU in whose memory the caller wants the solution; -1: the host's memory
  std::optional<ReadColumns> b_;
  std::vector<double> solution_, quadratic_, logdet_;
};

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" int gpucholmod_batch_solve_modified(const gpucholmod_batch* given, const gpucholmod_batch_modification* what,
                                               const gpucholmod_batch_systems* wanted,
                                               const gpucholmod_options* options, gpucholmod_status* status) {
  index_t failed = -1;
  const int code = guarded(status, [&] {
    HeldBatch& R = held_by<HeldBatch>("batch", given);
    Options chosen = options_of(options, changes_held);
    chosen.device = device_of(R);
    require(what != nullptr, "what", "is missing");
    require(wanted != nullptr, "wanted", "is missing");
    require(what->sides == nullptr, "what->sides", "must be NULL: nothing is modified");
    const BatchTask task = task_of(*what, R, chosen);
    Wanted results(*wanted, R.order(), R.count(), chosen);
    ReadColumns V("what->V", what->V, chosen);
    std::vector<index_t> found;
    renaming("V", "what->V", [&] {
      renaming("b", "wanted->b",
               [&] { solve_modified(R, V.given(), task, results.systems(), found, chosen.poll()); });
    });
    results.put_back(found);
    failed = first_failing(found);
    return failed >= 0 ? found[failed] : -1;
  });
  if (status && failed >= 0) status->member = failed + 1;
  return code;
}
