#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "c/handle.h"
#include "c/hold.h"
#include "c/reshape.h"
#include "cpu/kernels.h"
#include "modify/condition.h"
#include "modify/modify.h"

/// Factors with memory of their own.
namespace gpucholmod::c {
namespace {

index_t update_held(const Changing& changing, const gpucholmod_const_matrix& V, const Modification& what,
                    const Options& options) {
  HeldFactor& R = changing.R;
  const index_t n = R.order();
  require_sizes("V", V);
  require(V.rows == n, "V", "has another number of rows than the factor");
  const index_t k = V.cols;
  const std::shared_ptr<OwnedRightHandSides> sides = copied(what.sides, n, k, n);
  what.require_sound(k);
  if (n == 0 && !sides) return -1;
  const bool is_plain = !what.weights && what.scale == 1 && !sides && V.type == GPUCHOLMOD_DOUBLE && V.ld == n;
  if (is_plain && !options.progress && options.threads == 1 && !R.on_gpu()) {  // as samplers call: nothing to prepare
    static const Instructions instructions = cpu::resolve(Instructions::automatic);
    Task task;
    task.n = n;
    task.k = k;
    task.threads = 1;
    task.instructions = instructions;
    return R.modify(static_cast<const double*>(V.data), task, nullptr, unwatched, changing.begun).pivot;
  }
  const std::vector<double> columns = packed_doubles("V", V);
  const Request request = what.request(n, k, R.precision(), options, sides);
  const Outcome outcome =
      modify(Place<double>::held(R, changing.made, changing.begun), columns.data(), request, options.poll());
  if (outcome.pivot < 0) put_back_sides(sides.get(), what.sides);
  return outcome.pivot;
}

/// Returns the name of a GPU. Throws backend_unavailable, and bad_argument where there is no such device.
std::string gpu_name(int id) {
  const cuda::Status now = cuda::status(false);
  if (!now.usable)
    throw Error(ErrorCode::backend_unavailable, now.message, {{"backend", "cuda"}, {"reason", now.reason}});
  for (const cuda::Device& device : now.devices)
    if (device.usable && device.id == (id == GPUCHOLMOD_ANY_GPU ? now.device : id)) return device.name;
  throw Error(ErrorCode::bad_argument, "there is no GPU " + std::to_string(id) + " that can be used",
              {{"argument", "device"}});
}

std::vector<double> diagonal(const HeldFactor& R) {
  std::vector<double> all(R.order());
  R.diagonal(all.data());
  return all;
}

/// Returns the code for *out <- f(factor).
template <class F>
int number_of(const gpucholmod_factor* given, double* out, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    require(out != nullptr, "out", "is missing");
    *out = f(R);
    return index_t(-1);
  });
}

/// Solves in place, B being n x m numbers of S.
template <class S>
void solve(const HeldFactor& R, int system, MatrixView<S> B) {
  require(B.rows == R.order(), "B", "has another number of rows than the factor");
  require_system(system, B.cols);
  std::vector<double> X = packed<double>(MatrixView<const S>(B));
  if (!X.empty()) R.solve(TriangularSolve(system), X.data(), B.cols);
  put_numbers(X, B);
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_factor_create(gpucholmod_const_matrix R, ptrdiff_t capacity, const gpucholmod_options* options,
                             gpucholmod_factor** made, gpucholmod_status* status) {
  return make(made, status, [&] {
    const Options chosen = options_of(options, option::triangle | option::threads | option::device);
    return with_type("R", R.type, [&](auto s) { return held(view<decltype(s)>("R", R), capacity, chosen); });
  });
}

int gpucholmod_factor_copy(const gpucholmod_factor* given, gpucholmod_factor** made, gpucholmod_status* status) {
  return make(made, status, [&] { return factor(given).copy(); });
}

void gpucholmod_factor_destroy(gpucholmod_factor* given) { delete given; }

ptrdiff_t gpucholmod_factor_order(const gpucholmod_factor* given) { return given ? given->held->order() : 0; }
ptrdiff_t gpucholmod_factor_capacity(const gpucholmod_factor* given) { return given ? given->held->capacity() : 0; }
int gpucholmod_factor_on_gpu(const gpucholmod_factor* given) { return given && given->held->on_gpu(); }
int gpucholmod_factor_type(const gpucholmod_factor* given) {
  return !given ? 0 : given->held->precision() == Precision::double_ ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT;
}

int gpucholmod_factor_update(gpucholmod_factor* given, gpucholmod_const_matrix V, const double* weights, double scale,
                             const gpucholmod_right_sides* sides, const gpucholmod_options* options,
                             gpucholmod_status* status) {
  return change<HeldFactor>("factor", given, options, status, [&](const Changing& what, const Options& chosen) {
    return update_held(what, V, {weights, scale, sides}, chosen);
  });
}

int gpucholmod_factor_insert(gpucholmod_factor* given, ptrdiff_t at, gpucholmod_const_matrix X,
                             const gpucholmod_right_sides* sides, const gpucholmod_options* options,
                             gpucholmod_status* status) {
  return change<HeldFactor>("factor", given, options, status, [&](const Changing& what, const Options& chosen) {
    return c::insert(what, at, X, {sides, chosen});
  });
}

int gpucholmod_factor_delete(gpucholmod_factor* given, const ptrdiff_t* rows, ptrdiff_t count,
                             const gpucholmod_right_sides* sides, const gpucholmod_options* options,
                             gpucholmod_status* status) {
  return change<HeldFactor>("factor", given, options, status, [&](const Changing& what, const Options& chosen) {
    return c::remove(what, rows, count, {sides, chosen});
  });
}

int gpucholmod_factor_shift(gpucholmod_factor* given, ptrdiff_t from, ptrdiff_t to, const gpucholmod_right_sides* sides,
                            const gpucholmod_options* options, gpucholmod_status* status) {
  return change<HeldFactor>("factor", given, options, status, [&](const Changing& what, const Options& chosen) {
    return c::shift(what, from, to, {sides, chosen});
  });
}

int gpucholmod_factor_solve(const gpucholmod_factor* given, int system, gpucholmod_matrix B,
                            gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    with_type("B", B.type, [&](auto s) { solve(R, system, view<decltype(s)>("B", B)); });
    return index_t(-1);
  });
}

int gpucholmod_factor_get(const gpucholmod_factor* given, gpucholmod_matrix R, const gpucholmod_options* options,
                          gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& held = factor(given);
    const Options chosen = options_of(options, option::triangle);
    const index_t n = held.order();
    with_type("R", R.type, [&](auto s) {
      const auto to = view<decltype(s)>("R", R);
      require_shape("R", R, n, n);
      std::vector<double> numbers(n * n);
      held.download(chosen.uplo, numbers.data());
      put_numbers(numbers, to);
    });
    return index_t(-1);
  });
}

int gpucholmod_factor_diagonal(const gpucholmod_factor* given, double* out, gpucholmod_status* status) {
  return guarded(status, [&] {
    const std::vector<double> all = diagonal(factor(given));
    require(out != nullptr || all.empty(), "out", "is missing");
    std::copy(all.begin(), all.end(), out);
    return index_t(-1);
  });
}

int gpucholmod_factor_inverse(const gpucholmod_factor* given, gpucholmod_matrix out, gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    const index_t n = R.order();
    with_type("out", out.type, [&](auto s) {
      const auto to = view<decltype(s)>("out", out);
      require_shape("out", out, n, n);
      std::vector<double> numbers(n * n);
      R.inverse(numbers.data());
      put_numbers(numbers, to);
    });
    return index_t(-1);
  });
}

int gpucholmod_factor_logdet(const gpucholmod_factor* given, double* out, gpucholmod_status* status) {
  return number_of(given, out, status, [](const HeldFactor& R) {
    double sum = 0;
    for (const double r : diagonal(R)) sum += std::log(r);
    return 2 * sum;
  });
}

int gpucholmod_factor_rcond(const gpucholmod_factor* given, double* out, gpucholmod_status* status) {
  return number_of(given, out, status, [](const HeldFactor& R) { return reciprocal_condition(R); });
}

int gpucholmod_gpu(int device, gpucholmod_status* status) {
  std::string name;
  const int code = guarded(status, [&] {
    require(device >= 0 || device == GPUCHOLMOD_ANY_GPU, "device",
            "must be the number of a GPU, or GPUCHOLMOD_ANY_GPU");
    return name = gpu_name(device), index_t(-1);
  });
  return code == GPUCHOLMOD_OK ? tell(status, code, name.c_str()) : code;
}

}  // extern "C"
