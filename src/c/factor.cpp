#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "c/hold.h"
#include "c/update_held.h"
#include "modify/condition.h"

/// Functions for factors with memory of their own.
namespace gpucholmod::c {
namespace {

/// Returns the name of a GPU. Throws backend_unavailable, or bad_argument if no GPU that can be used has this number.
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

/// Stores f(factor) in *out. Returns the code.
template <class F>
int number_of(const gpucholmod_factor* given, double* out, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    const HeldFactor& R = factor(given);
    require(out != nullptr, "out", "is missing");
    *out = f(R);
    return index_t(-1);
  });
}

/// Returns options for a function that has none, but whose matrices may be on the GPU of the factor.
Options options_at(const HeldFactor& R) {
  Options options;
  options.device = device_of(R);
  return options;
}

/// Copies the factor to the triangle of `to` that `options` name; the other triangle becomes zero.
template <class S>
void get(const HeldFactor& held, MatrixView<S> to, const Options& options) {
  const index_t n = held.order();
  require_shape("R", to, n, n);
  const int gpu = options.gpu_of("R", to.data);
  const auto* const there = dynamic_cast<const DeviceFactor*>(&held);
  if (gpu >= 0 && there && there->precision() == precision_of<S>)
    return there->give(options.uplo, {to.data, to.ld}, true);
  std::vector<double> numbers(n * n);
  held.download(options.uplo, numbers.data());
  put_numbers(numbers, to, gpu);
}

/// Overwrites B (n x m numbers of S) with the solution.
template <class S>
void solve(const HeldFactor& R, int system, MatrixView<S> B, const Options& where) {
  require(B.rows == R.order(), "B", "has another number of rows than the factor");
  require_system(system, B.cols);
  const int gpu = where.gpu_of("B", B.data);
  CallersColumns X("B", {B.data, B.rows, B.cols, B.ld, type_of<S>}, where);
  if (!X.numbers().empty()) R.solve(TriangularSolve(system), X.numbers().data(), B.cols);
  put_numbers(X.numbers(), B, gpu);
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_factor_create(gpucholmod_const_matrix R, ptrdiff_t capacity, const gpucholmod_options* options,
                             gpucholmod_factor** made, gpucholmod_status* status) {
  return make(made, status, [&] {
    const Options chosen = options_of(options, option::triangle | option::threads | option::device | option::stream |
                                                option::devices);
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
    return c::update(what, V, {weights, scale, sides}, {sides, chosen});
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
    const Options where = options_at(R);
    with_type("B", B.type, [&](auto s) { solve(R, system, view<decltype(s)>("B", B), where); });
    return index_t(-1);
  });
}

int gpucholmod_factor_get(const gpucholmod_factor* given, gpucholmod_matrix R, const gpucholmod_options* options,
                          gpucholmod_status* status) {
  return guarded(status, [&] {
    const HeldFactor& held = factor(given);
    Options chosen = options_of(options, option::triangle | option::stream);
    chosen.device = device_of(held);
    with_type("R", R.type, [&](auto s) { get(held, view<decltype(s)>("R", R), chosen); });
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
    const Options where = options_at(R);
    const index_t n = R.order();
    with_type("out", out.type, [&](auto s) {
      const auto to = view<decltype(s)>("out", out);
      require_shape("out", out, n, n);
      std::vector<double> numbers(n * n);
      R.inverse(numbers.data());
      put_numbers(numbers, to, where.gpu_of("out", out.data));
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
