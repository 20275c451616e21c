#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>
#include <vector>

#include "c/right_sides.h"
#include "cpu/host_factor.h"
#include "cpu/kernels.h"
#include "cuda/device_factor.h"
#include "modify/choice.h"
#include "modify/modify.h"

struct gpucholmod_factor {
  std::unique_ptr<gpucholmod::HeldFactor> held;
};

/// Factors with memory of their own, and rows and columns that come and go.
namespace gpucholmod::c {
namespace {

std::shared_ptr<void> allocate(std::size_t bytes) {
  void* const data = std::malloc(bytes);
  if (!data) throw std::bad_alloc();
  return {data, std::free};
}

std::unique_ptr<HeldFactor> held(int form, index_t n, const double* R, index_t ldr, index_t capacity, int home, int device) {
  require(form >= 0 && form <= (GPUCHOLMOD_LOWER | GPUCHOLMOD_TRUSTED), "form", "must be of gpucholmod_form");
  require(n >= 0, "n", "must not be negative");
  require(home == GPUCHOLMOD_MEMORY || home == GPUCHOLMOD_GPU, "home", "must be one of gpucholmod_home");
  const MatrixView<const double> given = matrix("R", R, n, n, ldr);
  std::vector<double> copied;
  if (ldr != n) copied = packed(given);
  const double* const numbers = ldr != n ? copied.data() : R;
  const Uplo uplo = uplo_of(form);
  if (home == GPUCHOLMOD_GPU) return cuda::upload(numbers, n, uplo, Precision::double_, capacity, device);
  return cpu::hold(numbers, n, uplo, Precision::double_, capacity, allocate);
}


Request request_of(index_t n, index_t k, const SidesOfCall& sides) {
  Request request;
  request.n = n;
  request.k = k;
  request.threads = 1;
  request.sides = sides.sides();
  return request;
}

/// f(factor, task, begun), by which rows and columns come (k > 0) or go; `rows`: of sides->Y.
template <class F>
index_t reshape(HeldFactor& R, index_t k, bool coming, const gpucholmod_sides* given, F&& f) {
  const index_t n = R.order(), after = coming ? n + k : n - k;
  const SidesOfCall sides(given, n, coming ? k : 0, std::max(n, after));
  Request what = resolved(request_of(n, k, sides), Choice{});
  what.removed = coming ? k : 0;  // of the sum of squares, as of a modification
  Carried carried(what, what.sides ? what.sides->Y.data() : nullptr, after);
  what.right = carried.task();
  std::unique_ptr<HeldFactor> made;
  std::atomic<bool> begun{false};
  const index_t pivot = f(what, begun);
  if (pivot >= 0) return pivot;
  carried.settle(false);
  sides.put_back();
  return -1;
}

index_t insert(HeldFactor& R, index_t at, index_t p, const double* X, index_t ldx, const gpucholmod_sides* sides) {
  const index_t n = R.order();
  require(p >= 0, "p", "must not be negative");
  require(at >= 0 && at <= n, "at", "must be one of 0 .. n");
  const std::vector<double> columns = packed(matrix("X", X, n + p, p, ldx));
  if (p == 0) return -1;
  return reshape(R, p, true, sides, [&](const Task& task, std::atomic<bool>& begun) {
    return R.insert(at, columns.data(), p, task, nullptr, unwatched, begun);
  });
}

index_t remove(HeldFactor& R, index_t count, const index_t* gone, const gpucholmod_sides* sides) {
  require(count >= 0, "count", "must not be negative");
  require(gone != nullptr || count == 0, "gone", "is missing");
  for (index_t i = 0; i < count; ++i)
    require(gone[i] >= 0 && gone[i] < R.order() && (i == 0 || gone[i] > gone[i - 1]), "gone", "must be rows of the factor in ascending order");
  if (count == 0) return -1;
  return reshape(R, count, false, sides, [&](const Task& task, std::atomic<bool>& begun) {
    R.remove(std::vector<index_t>(gone, gone + count), task, nullptr, unwatched, begun);
    return index_t(-1);
  });
}

index_t modify_held(HeldFactor& R, index_t k, const double* V, index_t ldv, const double* weights, double scale, const gpucholmod_sides* given) {
  const index_t n = R.order();
  require(k >= 0, "k", "must not be negative");
  require(std::isfinite(scale) && scale > 0, "scale", "must be positive");
  for (index_t q = 0; q < k && weights; ++q) require(std::isfinite(weights[q]), "weights", "must be finite");
  const MatrixView<const double> given_V = matrix("V", V, n, k, ldv);
  std::atomic<bool> begun{false};
  if (!weights && scale == 1 && !given && ldv == n && !R.on_gpu()) {  // what samplers do: nothing to be prepared
    static const Instructions instructions = cpu::resolve(Instructions::automatic);
    Task task;
    task.n = n;
    task.k = k;
    task.threads = 1;
    task.instructions = instructions;
    return R.modify(V, task, nullptr, unwatched, begun).pivot;
  }
  const std::vector<double> columns = packed(given_V);
  const SidesOfCall sides(given, n, k, n);
  Request request = request_of(n, k, sides);
  if (weights) request.weights.assign(weights, weights + k);
  request.scale = std::sqrt(scale);
  request.precision = R.precision();
  const Outcome outcome = modify(Place<double>::held(R, nullptr, begun), columns.data(), request, unwatched);
  if (outcome.pivot < 0) sides.put_back();
  return outcome.pivot;
}

const HeldFactor& factor(const gpucholmod_factor* given) {
  require(given != nullptr, "factor", "is missing");
  return *given->held;
}
HeldFactor& factor(gpucholmod_factor* given) {
  require(given != nullptr, "factor", "is missing");
  return *given->held;
}

/// f(), which makes a factor, to *made.
template <class F>
int make(gpucholmod_factor** made, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    require(made != nullptr, "made", "is missing");
    *made = new gpucholmod_factor{f()};
    return index_t(-1);
  });
}

/// f(factor), for a factor in the caller's memory, which becomes what f leaves; `room`: rows that there has to be place for.
template <class F>
int in_memory(int form, index_t n, index_t room, double* R, index_t ldr, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    require(ldr >= room, "ldr", "leaves no room for the rows that come");
    const std::unique_ptr<HeldFactor> copy = held(form, n, R, ldr, std::max(n, room), GPUCHOLMOD_MEMORY, -1);
    std::vector<double> numbers(room * room);  // nothing can fail behind f
    const index_t pivot = f(*copy);
    if (pivot >= 0) return pivot;
    const Uplo uplo = uplo_of(form);
    const index_t m = copy->order();
    copy->download(uplo, numbers.data());
    copy_triangle<double>({numbers.data(), m, m, m}, uplo, {R, m, m, ldr});
    return index_t(-1);
  });
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_insert_d(int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, double* R, ptrdiff_t ldr, const double* X, ptrdiff_t ldx,
                        const gpucholmod_sides* sides, gpucholmod_status* status) {
  return in_memory(form, n, n + std::max<ptrdiff_t>(p, 0), R, ldr, status, [&](HeldFactor& copy) { return c::insert(copy, at, p, X, ldx, sides); });
}

int gpucholmod_remove_d(int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t* gone, double* R, ptrdiff_t ldr, const gpucholmod_sides* sides,
                        gpucholmod_status* status) {
  return in_memory(form, n, n, R, ldr, status, [&](HeldFactor& copy) { return c::remove(copy, count, gone, sides); });
}

int gpucholmod_hold(int form, ptrdiff_t n, const double* R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device, gpucholmod_factor** made,
                    gpucholmod_status* status) {
  return make(made, status, [&] { return held(form, n, R, ldr, capacity, home, device); });
}

int gpucholmod_copy(const gpucholmod_factor* given, gpucholmod_factor** made, gpucholmod_status* status) {
  return make(made, status, [&] { return factor(given).copy(); });
}

int gpucholmod_release(gpucholmod_factor* given) {
  delete given;
  return GPUCHOLMOD_OK;
}

ptrdiff_t gpucholmod_order(const gpucholmod_factor* given) { return given ? given->held->order() : 0; }

int gpucholmod_modify(gpucholmod_factor* given, ptrdiff_t k, const double* V, ptrdiff_t ldv, const double* weights, double scale,
                      const gpucholmod_sides* sides, gpucholmod_status* status) {
  return guarded(status, [&] { return modify_held(factor(given), k, V, ldv, weights, scale, sides); });
}

int gpucholmod_insert(gpucholmod_factor* given, ptrdiff_t at, ptrdiff_t p, const double* X, ptrdiff_t ldx, const gpucholmod_sides* sides,
                      gpucholmod_status* status) {
  return guarded(status, [&] { return c::insert(factor(given), at, p, X, ldx, sides); });
}

int gpucholmod_remove(gpucholmod_factor* given, ptrdiff_t count, const ptrdiff_t* gone, const gpucholmod_sides* sides, gpucholmod_status* status) {
  return guarded(status, [&] { return c::remove(factor(given), count, gone, sides); });
}

int gpucholmod_solve(const gpucholmod_factor* given, int system, ptrdiff_t m, double* B, ptrdiff_t ldb, gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    require(system >= GPUCHOLMOD_BOTH && system <= GPUCHOLMOD_BACK, "system", "must be one of gpucholmod_system");
    require(m >= 0, "m", "must not be negative");
    const MatrixView<double> to = matrix("B", B, R.order(), m, ldb);
    std::vector<double> X = packed<double>({B, R.order(), m, ldb});
    if (!X.empty()) R.solve(TriangularSolve(system), X.data(), m);
    for (index_t j = 0; j < m; ++j) std::copy_n(X.data() + j * to.rows, to.rows, to.col(j));
    return index_t(-1);
  });
}

int gpucholmod_store(const gpucholmod_factor* given, int form, double* R, ptrdiff_t ldr, gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& held = factor(given);
    require(form >= 0 && form <= (GPUCHOLMOD_LOWER | GPUCHOLMOD_TRUSTED), "form", "must be of gpucholmod_form");
    const index_t n = held.order();
    const MatrixView<double> to = matrix("R", R, n, n, ldr);
    std::vector<double> numbers(n * n);
    held.download(uplo_of(form), numbers.data());
    for (index_t j = 0; j < n; ++j) std::copy_n(numbers.data() + j * n, n, to.col(j));
    return index_t(-1);
  });
}

}  // extern "C"
