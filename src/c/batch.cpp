#include "modify/batch.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

#include "base/factor_io.h"
#include "c/batch_sides.h"
#include "c/handle.h"
#include "cpu/host_batch.h"
#include "cuda/device_batch.h"

/// Functions for batches: many factors with memory of their own.
namespace gpucholmod::c {
namespace {

/// Returns the orders of the members; returns none if `orders` is null. Makes each R (n x n) the identity beyond the
/// order of its member. Throws bad_argument.
std::vector<index_t> orders_of(const index_t* orders, index_t n, index_t count, std::vector<double>& R) {
  if (!orders) return {};
  for (index_t m = 0; m < count; ++m) {
    require(orders[m] >= 0 && orders[m] <= n, "orders", "must be from 0 to n");
    const MatrixView<double> own{R.data() + m * n * n, n, n, n};
    for (index_t j = 0; j < n; ++j)
      for (index_t i = j < orders[m] ? orders[m] : 0; i < n; ++i) own(i, j) = i == j;
  }
  require(count == 0 || *std::max_element(orders, orders + count) == n, "orders", "must have n for one of the members");
  return {orders, orders + count};
}

/// Returns a batch with copies of the caller's factors. Throws what cpu::hold_batch() and cuda::upload_batch() throw.
std::unique_ptr<HeldBatch> held(const gpucholmod_const_matrix& R, index_t count, const index_t* orders,
                                index_t capacity, const Options& options) {
  require(count >= 0, "count", "must not be negative");
  const index_t n = R.rows;
  require_sizes("R", R);
  require(has_columns(R.cols, n, count), "R", "must have n columns for each of `count` members");
  std::vector<double> numbers = packed_doubles("R", R);
  const BatchRoom room{capacity, orders_of(orders, n, count, numbers)};
  const Precision precision = R.type == GPUCHOLMOD_DOUBLE ? Precision::double_ : Precision::single;
  std::unique_ptr<HeldBatch> made;
  naming_members([&] {
    if (options.device == GPUCHOLMOD_HOST)
      made = cpu::hold_batch(numbers.data(), n, count, options.uplo, precision, cpu::ordinary_memory, room);
    else
      made = cuda::upload_batch(numbers.data(), n, count, options.uplo, precision,
                                options.device == GPUCHOLMOD_ANY_GPU ? -1 : options.device, room);
  });
  return made;
}

/// Modifies all members. Returns the number of the first member that fails, or -1.
index_t update(const ChangingOf<HeldBatch>& changing, const gpucholmod_batch_modification& what,
               std::vector<index_t>& pivots, const Options& options) {
  HeldBatch& R = changing.R;
  BatchTask task = task_of(what, R, options);
  ReadColumns V("what->V", what.V, options);
  SidesOfMembers sides(what.sides, R, what.k, options, task);
  renaming("V", "what->V", [&] {
    naming_members([&] { R.modify(V.given(), task, changing.made, pivots, options.poll(), changing.begun); });
  });
  const index_t failed = first_failing(pivots);
  if (!task.all_or_none || failed < 0) {
    changing.begun = !changing.made;  // until the right-hand sides match the members
    sides.put_back(task, pivots, R.orders());
  }
  changing.begun = false;  // members that fail are unchanged
  return failed;
}

/// Overwrites B with the solutions; B has n x m numbers of S for each member.
template <class S>
void solve(const HeldBatch& R, TriangularSolve which, MatrixView<S> B, index_t m, int gpu) {
  if (gpu >= 0) {
    const auto& there = dynamic_cast<const DeviceBatch&>(R);
    return cuda::change_on_device<S>(gpu, B, [&](double* X) { there.solve_there(which, X, m); });
  }
  std::vector<double> X = packed<double>(MatrixView<const S>(B));
  if (!X.empty()) R.solve(which, X.data(), m);
  put_numbers(X, B);
}

}  // namespace

BatchTask task_of(const gpucholmod_batch_modification& what, const HeldBatch& R, const Options& options) {
  const index_t k = what.k, count = R.count();
  require_sizes("what->V", what.V);
  require(what.V.rows == R.order(), "what->V", "has another number of rows than the factors");
  require(k >= 0, "what->k", "must not be negative");
  BatchTask task;
  task.k = k;
  task.common_V = what.V.cols == k;
  require(task.common_V || has_columns(what.V.cols, k, count), "what->V",
          "must have k columns, or k for each member");
  if (what.weights) {
    task.common_weights = what.weights_count == k;
    require(task.common_weights || has_columns(what.weights_count, k, count), "what->weights_count",
            "must be k, or k times the number of members");
    require_weights("what->weights", what.weights, what.weights_count);
    task.weights = what.weights;
  }
  for (index_t j = 0; what.scales && j < count; ++j)
    require(std::isfinite(what.scales[j]) && what.scales[j] > 0, "what->scales", "must be positive");
  const auto differ = std::not_equal_to<double>();
  task.common_scale =
      !what.scales || std::adjacent_find(what.scales, what.scales + count, differ) == what.scales + count;
  const bool are_one = task.common_scale && (!what.scales || count == 0 || what.scales[0] == 1);
  task.scale = are_one ? nullptr : what.scales;
  require(what.independent == 0 || what.independent == 1, "what->independent", "must be 0 or 1");
  task.all_or_none = what.independent == 0;
  task.threads = options.threads;
  return task;
}

}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_batch_create(gpucholmod_const_matrix R, ptrdiff_t count, const ptrdiff_t* orders, ptrdiff_t capacity,
                            const gpucholmod_options* options, gpucholmod_batch** made, gpucholmod_status* status) {
  return make(made, status, [&] {
    return held(R, count, orders, capacity, options_of(options, option::triangle | option::device));
  });
}

int gpucholmod_batch_copy(const gpucholmod_batch* given, gpucholmod_batch** made, gpucholmod_status* status) {
  return make(made, status, [&] { return batch(given).copy(); });
}

void gpucholmod_batch_destroy(gpucholmod_batch* given) { delete given; }

ptrdiff_t gpucholmod_batch_order(const gpucholmod_batch* given) { return given ? given->held->order() : 0; }
ptrdiff_t gpucholmod_batch_capacity(const gpucholmod_batch* given) { return given ? given->held->capacity() : 0; }
ptrdiff_t gpucholmod_batch_count(const gpucholmod_batch* given) { return given ? given->held->count() : 0; }
int gpucholmod_batch_on_gpu(const gpucholmod_batch* given) { return given && given->held->on_gpu(); }
int gpucholmod_batch_type(const gpucholmod_batch* given) {
  return !given ? 0 : given->held->precision() == Precision::double_ ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT;
}

int gpucholmod_batch_update(gpucholmod_batch* given, const gpucholmod_batch_modification* what, ptrdiff_t* pivots,
                            const gpucholmod_options* options, gpucholmod_status* status) {
  index_t failed = -1;
  const auto f = [&](const ChangingOf<HeldBatch>& changing, const Options& chosen) {
    require(what != nullptr, "what", "is missing");
    std::vector<index_t> found;
    failed = c::update(changing, *what, found, chosen);
    for (std::size_t j = 0; pivots && j < found.size(); ++j) pivots[j] = found[j] + 1;
    return failed >= 0 ? found[failed] : -1;
  };
  const int code = change<HeldBatch>("batch", given, options, status, f);
  if (status && failed >= 0) status->member = failed + 1;
  return code;
}

int gpucholmod_batch_solve(const gpucholmod_batch* given, int system, gpucholmod_matrix B, gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldBatch& R = batch(given);
    require_sizes("B", gpucholmod_as_const(B));
    const index_t n = R.order(), count = R.count(), m = count > 0 ? B.cols / count : 0;
    require(B.rows == n, "B", "has another number of rows than the factors");
    require(has_columns(B.cols, m, count), "B", "must have as many columns for each member");
    require_system(system, m);
    Options where;
    where.device = device_of(R);
    const int gpu = where.gpu_of("B", B.data);
    with_type("B", B.type, [&](auto s) {
      c::solve(R, TriangularSolve(system), view<decltype(s)>("B", B), m, gpu);
    });
    return index_t(-1);
  });
}

int gpucholmod_batch_get(const gpucholmod_batch* given, gpucholmod_matrix R, const gpucholmod_options* options,
                         gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldBatch& held = batch(given);
    const Options chosen = options_of(options, option::triangle);
    with_type("R", R.type, [&](auto s) {
      const auto to = view<decltype(s)>("R", R);
      require_shape("R", R, held.order(), held.order() * held.count());
      std::vector<double> numbers(R.rows * R.cols);
      if (!numbers.empty()) held.download(chosen.uplo, numbers.data());
      put_numbers(numbers, to);
    });
    return index_t(-1);
  });
}

int gpucholmod_batch_logdet(const gpucholmod_batch* given, double* out, gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldBatch& R = batch(given);
    const index_t n = R.order(), count = R.count();
    require(out != nullptr || count == 0, "out", "is missing");
    std::vector<double> diagonals(n * count);
    if (!diagonals.empty()) R.diagonals(diagonals.data());
    for (index_t j = 0; j < count; ++j) out[j] = logdet_of(diagonals.data() + j * n, n);
    return index_t(-1);
  });
}

}  // extern "C"
