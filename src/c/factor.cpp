#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "base/factor_io.h"
#include "base/semidefinite.h"
#include "c/handle.h"
#include "c/right_sides.h"
#include "cpu/host_factor.h"
#include "cpu/kernels.h"
#include "cuda/device_factor.h"
#include "modify/choice.h"
#include "modify/modify.h"

/// Factors with memory of their own, and rows and columns that come and go.
namespace gpucholmod::c {
namespace {

template <class S>
std::unique_ptr<HeldFactor> held(int form, index_t n, const S* R, index_t ldr, index_t capacity, int home, int device) {
  require_form(form);
  require(n >= 0, "n", "must not be negative");
  require(home == GPUCHOLMOD_MEMORY || home == GPUCHOLMOD_GPU, "home", "must be one of gpucholmod_home");
  const MatrixView<const S> given = matrix("R", R, n, n, ldr);
  bytes_of(std::max(n, capacity), std::max(n, capacity), sizeof(S));  // throws where there can be no such factor
  const Uplo uplo = uplo_of(form);
  std::vector<S> copied;
  if (ldr != n) copied = packed_triangle(given, uplo);
  const S* const numbers = ldr != n ? copied.data() : R;
  const Precision precision = precision_of<S>;
  return keep_with_zeros(numbers, n, uplo, precision, [&](const S* positive) -> std::unique_ptr<HeldFactor> {
    if (home == GPUCHOLMOD_GPU) return cuda::upload(positive, n, uplo, precision, capacity, device);
    return cpu::hold(positive, n, uplo, precision, capacity, cpu::ordinary_memory, 1);
  });
}

/// What is done for a factor in the caller's memory, whose copy is changed, when rows and columns come or go.
struct Caller {
  /// Is called when they have come or gone, before the caller's right-hand sides change.
  std::function<void()> then = [] {};
  const TurnedRows* turned = nullptr;  ///< of the copy, if any
};
const Caller no_caller;

/// Calls f(task), by which k rows and columns come, or go. Returns the failing pivot, or -1.
template <class F>
index_t reshape(const HeldFactor& R, index_t k, bool coming, const gpucholmod_sides* given, const Caller& caller,
                F&& f) {
  const index_t n = R.order(), after = coming ? n + k : n - k;
  const std::shared_ptr<OwnedRightHandSides> sides = copied(given, n, coming ? k : 0, std::max(n, after));
  if (sides && caller.turned) caller.turned->turn(*sides);
  if (k == 0) {
    caller.then();
    if (caller.turned) put_back_sides(sides.get(), given);
    return -1;
  }
  Request what = resolved(request_of(n, k, R.precision(), nullptr, 1, sides), Choice{});
  what.removed = coming ? k : 0;  // of the sum of squares, as of a modification
  if (sides) what.right = sides->view(what, sides->Y.data(), after);
  const index_t pivot = f(what);
  if (pivot >= 0) return pivot;
  caller.then();
  if (sides) sides->settle(what, false);
  put_back_sides(sides.get(), given);
  return -1;
}

void require_more(index_t n, index_t p) {
  require(p >= 0, "p", "must not be negative");
  require(p <= std::numeric_limits<index_t>::max() - n, "p", "makes more rows and columns than can be counted");
}

/// Rows and columns that come, the first of which becomes number `at`, and their columns X (n + p x p) of the new A.
template <class S>
struct Coming {
  index_t at, p;
  const S* X;
  index_t ldx;
};

template <class S>
index_t insert(HeldFactor& R, const Coming<S>& what, const gpucholmod_sides* sides, std::atomic<bool>& begun,
               const Caller& caller = no_caller) {
  const index_t n = R.order(), at = what.at, p = what.p;
  require_more(n, p);
  require(at >= 0 && at <= n, "at", "must be one of 0 .. n");
  const std::vector<S> given = packed(matrix("X", what.X, n + p, p, what.ldx));
  const std::vector<double> columns(given.begin(), given.end());
  return reshape(R, p, true, sides, caller,
                 [&](const Task& task) { return R.insert(at, columns.data(), p, task, nullptr, unwatched, begun); });
}

index_t remove(HeldFactor& R, index_t count, const index_t* gone, const gpucholmod_sides* sides,
               std::atomic<bool>& begun, const Caller& caller = no_caller) {
  require(count >= 0, "count", "must not be negative");
  require(gone != nullptr || count == 0, "gone", "is missing");
  for (index_t i = 0; i < count; ++i)
    require(gone[i] >= 0 && gone[i] < R.order() && (i == 0 || gone[i] > gone[i - 1]), "gone",
            "must be rows of the factor in ascending order");
  return reshape(R, count, false, sides, caller, [&](const Task& task) {
    R.remove(std::vector<index_t>(gone, gone + count), task, nullptr, unwatched, begun);
    return index_t(-1);
  });
}

index_t modify_held(HeldFactor& R, index_t k, const double* V, index_t ldv, const double* weights, double scale,
                    const gpucholmod_sides* given, std::atomic<bool>& begun) {
  const index_t n = R.order();
  require(k >= 0, "k", "must not be negative");
  require(std::isfinite(scale) && scale > 0, "scale", "must be positive");
  const MatrixView<const double> given_V = matrix("V", V, n, k, ldv);
  require_weights(weights, k);
  const std::shared_ptr<OwnedRightHandSides> sides = copied(given, n, k, n);
  if (n == 0 && !sides) return -1;
  if (!weights && scale == 1 && !sides && ldv == n && !R.on_gpu()) {  // as samplers call: nothing to prepare
    static const Instructions instructions = cpu::resolve(Instructions::automatic);
    Task task;
    task.n = n;
    task.k = k;
    task.threads = 1;
    task.instructions = instructions;
    return R.modify(V, task, nullptr, unwatched, begun).pivot;
  }
  const std::vector<double> columns = packed(given_V);
  const Request request = request_of(n, k, R.precision(), weights, scale, sides);
  const Outcome outcome = modify(Place<double>::held(R, nullptr, begun), columns.data(), request, unwatched);
  if (outcome.pivot < 0) put_back_sides(sides.get(), given);
  return outcome.pivot;
}

/// Returns the name of a GPU. Throws backend_unavailable, and bad_argument where there is no such device.
std::string gpu_name(int id) {
  const cuda::Status now = cuda::status(false);
  if (!now.usable)
    throw Error(ErrorCode::backend_unavailable, now.message, {{"backend", "cuda"}, {"reason", now.reason}});
  for (const cuda::Device& device : now.devices)
    if (device.usable && device.id == (id == -1 ? now.device : id)) return device.name;
  throw Error(ErrorCode::bad_argument, "there is no GPU " + std::to_string(id) + " that can be used",
              {{"argument", "device"}});
}

std::vector<double> diagonal(const HeldFactor& R) {
  std::vector<double> all(R.order());
  R.diagonal(all.data());
  return all;
}

/// Stores a new handle of the factor that f() makes in *made.
template <class F>
int make(gpucholmod_factor** made, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    require(made != nullptr, "made", "is missing");
    *made = new gpucholmod_factor{f()};
    return index_t(-1);
  });
}

/// Calls f(copy, begun, caller) for a copy of a factor in the caller's memory, and f calls caller.then(); what becomes
/// of the copy is put back. `room`: rows that the caller has memory for. Nothing of the caller's changes before nothing
/// can fail any more.
template <class S, class F>
index_t in_memory(int form, index_t n, index_t room, S* R, index_t ldr, F&& f) {
  require(ldr >= room, "ldr", "leaves no room for the rows that come");
  static_cast<void>(matrix("R", R, room, room, ldr));
  const std::unique_ptr<HeldFactor> copy = held(form, n, R, ldr, room, GPUCHOLMOD_MEMORY, -1);
  std::vector<double> numbers(room * room);
  std::atomic<bool> begun{false};  // of the copy: it says nothing
  const TurnedRows rows(MemorySource<S>(R, ldr), n, uplo_of(form));
  const Caller caller{[&] { copy->download(uplo_of(form), numbers.data()); }, rows.any() ? &rows : nullptr};
  const index_t pivot = f(*copy, begun, caller);
  if (pivot >= 0) return pivot;
  const index_t m = copy->order();
  const MatrixView<S> to{R, m, m, ldr};
  for (index_t j = 0; j < m; ++j) {
    const auto [first, last] = rows_of(j, m, uplo_of(form));
    std::copy(numbers.data() + j * m + first, numbers.data() + j * m + last, to.col(j) + first);
  }
  return -1;
}

template <class S>
int insert_in_memory(int form, index_t n, S* R, index_t ldr, const Coming<S>& what, const gpucholmod_sides* sides,
                     gpucholmod_status* status) {
  return guarded(status, [&] {
    require(n >= 0, "n", "must not be negative");
    require_more(n, what.p);
    const auto change = [&](HeldFactor& copy, std::atomic<bool>& begun, const Caller& caller) {
      return insert(copy, what, sides, begun, caller);
    };
    return in_memory(form, n, n + what.p, R, ldr, change);
  });
}

template <class S>
int remove_in_memory(int form, index_t n, index_t count, const index_t* gone, S* R, index_t ldr,
                     const gpucholmod_sides* sides, gpucholmod_status* status) {
  return guarded(status, [&] {
    require(n >= 0, "n", "must not be negative");
    return in_memory(form, n, n, R, ldr, [&](HeldFactor& copy, std::atomic<bool>& begun, const Caller& caller) {
      return remove(copy, count, gone, sides, begun, caller);
    });
  });
}

/// R (n x n) <- the factor, in S.
template <class S>
void store(const HeldFactor& held, int form, S* R, index_t ldr) {
  require_form(form);
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

int gpucholmod_insert_d(int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, double* R, ptrdiff_t ldr, const double* X,
                        ptrdiff_t ldx, const gpucholmod_sides* sides, gpucholmod_status* status) {
  return insert_in_memory<double>(form, n, R, ldr, {at, p, X, ldx}, sides, status);
}
int gpucholmod_insert_s(int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, float* R, ptrdiff_t ldr, const float* X,
                        ptrdiff_t ldx, const gpucholmod_sides* sides, gpucholmod_status* status) {
  return insert_in_memory<float>(form, n, R, ldr, {at, p, X, ldx}, sides, status);
}

int gpucholmod_remove_d(int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t* gone, double* R, ptrdiff_t ldr,
                        const gpucholmod_sides* sides, gpucholmod_status* status) {
  return remove_in_memory(form, n, count, gone, R, ldr, sides, status);
}
int gpucholmod_remove_s(int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t* gone, float* R, ptrdiff_t ldr,
                        const gpucholmod_sides* sides, gpucholmod_status* status) {
  return remove_in_memory(form, n, count, gone, R, ldr, sides, status);
}

int gpucholmod_hold(int form, ptrdiff_t n, const double* R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device,
                    gpucholmod_factor** made, gpucholmod_status* status) {
  return make(made, status, [&] { return held(form, n, R, ldr, capacity, home, device); });
}
int gpucholmod_hold_s(int form, ptrdiff_t n, const float* R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device,
                      gpucholmod_factor** made, gpucholmod_status* status) {
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
int gpucholmod_home(const gpucholmod_factor* given) {
  return given && given->held->on_gpu() ? GPUCHOLMOD_GPU : GPUCHOLMOD_MEMORY;
}
size_t gpucholmod_scalar(const gpucholmod_factor* given) {
  return !given ? 0 : given->held->precision() == Precision::double_ ? 8 : 4;
}

int gpucholmod_modify(gpucholmod_factor* given, ptrdiff_t k, const double* V, ptrdiff_t ldv, const double* weights,
                      double scale, const gpucholmod_sides* sides, gpucholmod_status* status) {
  return change(given, status, [&](HeldFactor& R, std::atomic<bool>& begun) {
    return modify_held(R, k, V, ldv, weights, scale, sides, begun);
  });
}

int gpucholmod_insert(gpucholmod_factor* given, ptrdiff_t at, ptrdiff_t p, const double* X, ptrdiff_t ldx,
                      const gpucholmod_sides* sides, gpucholmod_status* status) {
  return change(given, status, [&](HeldFactor& R, std::atomic<bool>& begun) {
    return c::insert<double>(R, {at, p, X, ldx}, sides, begun);
  });
}

int gpucholmod_remove(gpucholmod_factor* given, ptrdiff_t count, const ptrdiff_t* gone, const gpucholmod_sides* sides,
                      gpucholmod_status* status) {
  return change(given, status,
                [&](HeldFactor& R, std::atomic<bool>& begun) { return c::remove(R, count, gone, sides, begun); });
}

int gpucholmod_solve(const gpucholmod_factor* given, int system, ptrdiff_t m, double* B, ptrdiff_t ldb,
                     gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    require(system >= GPUCHOLMOD_BOTH && system <= GPUCHOLMOD_BACK, "system", "must be one of gpucholmod_system");
    require(m >= 0, "m", "must not be negative");
    require(m <= std::numeric_limits<int>::max(), "m",
            "is more than BLAS can count: solve for fewer right-hand sides at a time");
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
