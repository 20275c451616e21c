#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "base/factor_io.h"
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

template <class S>
std::unique_ptr<HeldFactor> held(int form, index_t n, const S* R, index_t ldr, index_t capacity, int home, int device) {
  require(form >= 0 && form <= (GPUCHOLMOD_LOWER | GPUCHOLMOD_TRUSTED), "form", "must be of gpucholmod_form");
  require(n >= 0, "n", "must not be negative");
  require(home == GPUCHOLMOD_MEMORY || home == GPUCHOLMOD_GPU, "home", "must be one of gpucholmod_home");
  const MatrixView<const S> given = matrix("R", R, n, n, ldr);
  std::vector<S> copied;
  if (ldr != n) copied = packed(given);
  const S* const numbers = ldr != n ? copied.data() : R;
  const Uplo uplo = uplo_of(form);
  const Precision precision = sizeof(S) == 8 ? Precision::double_ : Precision::single;
  if (home == GPUCHOLMOD_GPU) return cuda::upload(numbers, n, uplo, precision, capacity, device);
  return cpu::hold(numbers, n, uplo, precision, capacity, allocate);
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

template <class S>
index_t insert(HeldFactor& R, index_t at, index_t p, const S* X, index_t ldx, const gpucholmod_sides* sides) {
  const index_t n = R.order();
  require(p >= 0, "p", "must not be negative");
  require(at >= 0 && at <= n, "at", "must be one of 0 .. n");
  const std::vector<S> given = packed(matrix("X", X, n + p, p, ldx));
  const std::vector<double> columns(given.begin(), given.end());
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

/// Throws backend_unavailable, and bad_argument where there is no such device.
std::string gpu_name(int id) {
  const cuda::Status now = cuda::status(false);
  if (!now.usable) throw Error(ErrorCode::backend_unavailable, now.message, {{"backend", "cuda"}, {"reason", now.reason}});
  for (const cuda::Device& device : now.devices)
    if (device.usable && device.id == (id == -1 ? now.device : id)) return device.name;
  throw Error(ErrorCode::bad_argument, "there is no GPU " + std::to_string(id) + " that can be used", {{"argument", "device"}});
}

std::vector<double> diagonal(const HeldFactor& R) {
  std::vector<double> all(R.order());
  R.diagonal(all.data());
  return all;
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
template <class S, class F>
int in_memory(int form, index_t n, index_t room, S* R, index_t ldr, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    require(ldr >= room, "ldr", "leaves no room for the rows that come");
    const std::unique_ptr<HeldFactor> copy = held(form, n, R, ldr, std::max(n, room), GPUCHOLMOD_MEMORY, -1);
    std::vector<double> numbers(room * room);  // nothing can fail behind f
    const index_t pivot = f(*copy);
    if (pivot >= 0) return pivot;
    const index_t m = copy->order();
    copy->download(uplo_of(form), numbers.data());
    const MatrixView<S> to{R, m, m, ldr};
    for (index_t j = 0; j < m; ++j) {
      const auto [first, last] = rows_of(j, m, uplo_of(form));
      std::copy(numbers.data() + j * m + first, numbers.data() + j * m + last, to.col(j) + first);
    }
    return index_t(-1);
  });
}

template <class S>
int insert_in_memory(int form, index_t n, index_t at, index_t p, S* R, index_t ldr, const S* X, index_t ldx, const gpucholmod_sides* sides,
                     gpucholmod_status* status) {
  return in_memory(form, n, n + std::max<index_t>(p, 0), R, ldr, status, [&](HeldFactor& copy) { return insert(copy, at, p, X, ldx, sides); });
}

template <class S>
int remove_in_memory(int form, index_t n, index_t count, const index_t* gone, S* R, index_t ldr, const gpucholmod_sides* sides,
                     gpucholmod_status* status) {
  return in_memory(form, n, n, R, ldr, status, [&](HeldFactor& copy) { return remove(copy, count, gone, sides); });
}

/// R (n x n) <- the factor, in S.
template <class S>
void store(const HeldFactor& held, int form, S* R, index_t ldr) {
  require(form >= 0 && form <= (GPUCHOLMOD_LOWER | GPUCHOLMOD_TRUSTED), "form", "must be of gpucholmod_form");
  const index_t n = held.order();
  const MatrixView<S> to = matrix("R", R, n, n, ldr);
  std::vector<double> numbers(n * n);
  held.download(uplo_of(form), numbers.data());
  for (index_t i = 0; i < n * n; ++i)
    if (!std::isfinite(S(numbers[i]))) throw overflow(i % n, i / n);
  for (index_t j = 0; j < n; ++j) std::copy_n(numbers.data() + j * n, n, to.col(j));
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_insert_d(int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, double* R, ptrdiff_t ldr, const double* X, ptrdiff_t ldx,
                        const gpucholmod_sides* sides, gpucholmod_status* status) {
  return insert_in_memory(form, n, at, p, R, ldr, X, ldx, sides, status);
}
int gpucholmod_insert_s(int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, float* R, ptrdiff_t ldr, const float* X, ptrdiff_t ldx,
                        const gpucholmod_sides* sides, gpucholmod_status* status) {
  return insert_in_memory(form, n, at, p, R, ldr, X, ldx, sides, status);
}

int gpucholmod_remove_d(int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t* gone, double* R, ptrdiff_t ldr, const gpucholmod_sides* sides,
                        gpucholmod_status* status) {
  return remove_in_memory(form, n, count, gone, R, ldr, sides, status);
}
int gpucholmod_remove_s(int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t* gone, float* R, ptrdiff_t ldr, const gpucholmod_sides* sides,
                        gpucholmod_status* status) {
  return remove_in_memory(form, n, count, gone, R, ldr, sides, status);
}

int gpucholmod_hold(int form, ptrdiff_t n, const double* R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device, gpucholmod_factor** made,
                    gpucholmod_status* status) {
  return make(made, status, [&] { return held(form, n, R, ldr, capacity, home, device); });
}
int gpucholmod_hold_s(int form, ptrdiff_t n, const float* R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device, gpucholmod_factor** made,
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
ptrdiff_t gpucholmod_capacity(const gpucholmod_factor* given) { return given ? given->held->capacity() : 0; }
int gpucholmod_home(const gpucholmod_factor* given) { return given && given->held->on_gpu() ? GPUCHOLMOD_GPU : GPUCHOLMOD_MEMORY; }
size_t gpucholmod_scalar(const gpucholmod_factor* given) { return !given ? 0 : given->held->precision() == Precision::double_ ? 8 : 4; }

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
  return guarded(status, [&] { return store(factor(given), form, R, ldr), index_t(-1); });
}
int gpucholmod_store_s(const gpucholmod_factor* given, int form, float* R, ptrdiff_t ldr, gpucholmod_status* status) {
  return guarded(status, [&] { return store(factor(given), form, R, ldr), index_t(-1); });
}

int gpucholmod_diagonal(const gpucholmod_factor* given, double* out, gpucholmod_status* status) {
  return guarded(status, [&] {
    const std::vector<double> all = diagonal(factor(given));
    require(out != nullptr || all.empty(), "out", "is missing");
    std::copy(all.begin(), all.end(), out);
    return index_t(-1);
  });
}

int gpucholmod_logdet(const gpucholmod_factor* given, double* out, gpucholmod_status* status) {
  return guarded(status, [&] {
    require(out != nullptr, "out", "is missing");
    double sum = 0;
    for (const double r : diagonal(factor(given))) sum += std::log(r);
    *out = 2 * sum;
    return index_t(-1);
  });
}

int gpucholmod_gpu(int device, gpucholmod_status* status) {
  std::string name;
  const int code = guarded(status, [&] { return name = gpu_name(device), index_t(-1); });
  return code == GPUCHOLMOD_OK ? tell(status, code, name.c_str()) : code;
}

}  // extern "C"
