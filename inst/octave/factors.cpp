#include "arguments.h"

#include <climits>
#include <cstdint>
#include <map>

#include <octave/interpreter.h>

/// Factors with memory of their own, which cholfactor_gpu.m identifies by numbers.
namespace gpucholmod_octave {
namespace {

constexpr const char* who = "cholfactor_gpu";

/// The factors that have been given out and not released. The function is locked while there are any.
std::map<std::uint64_t, Held> factors;
std::uint64_t last_number = 0;

struct Call {
  octave::interpreter& interpreter;
  const octave_value_list& args;  ///< args(0): the command
  gpucholmod_status& status;

  std::uint64_t number() const {
    const octave_value& given = args(1);
    return given.class_name() == "uint64" && given.numel() == 1 ? given.uint64_scalar_value().value() : 0;
  }
  /// Returns the factor that args(1) names. Raises an error if there is none.
  gpucholmod_factor* factor() const {
    const auto found = factors.find(number());
    if (found == factors.end()) error("%s: there is no such factor", who);
    return found->second.get();
  }
  octave_idx_type order() const { return gpucholmod_factor_order(factor()); }
};

/// Returns the number of a new factor, or nothing if it could not be made.
octave_value give_out(const Call& call, gpucholmod_factor* made) {
  Held factor(made);
  if (!factor) return Matrix();
  factors.emplace(++last_number, std::move(factor));
  if (factors.size() == 1) call.interpreter.mlock();
  return octave_uint64(last_number);
}

octave_value create(const Call& call) {
  const octave_value& R = call.args(1);
  require_factor(who, R);
  const std::string backend = call.args(2).is_string() ? call.args(2).string_value() : "";
  if (backend != "cpu" && backend != "gpu") error("%s: BACKEND must be \"cpu\" or \"gpu\"", who);
  const octave_value& device = call.args(3);
  const double at = device.isnumeric() && device.isreal() && device.numel() == 1 ? device.double_value() : -2;
  if (at != std::trunc(at) || !(at >= -1 && at <= INT_MAX)) error("%s: DEVICE must be the number of a GPU", who);
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  if (backend == "gpu") options.device = at < 0 ? GPUCHOLMOD_ANY_GPU : int(at);
  return with_class(R.is_single_type(), [&](auto t) {
    gpucholmod_factor* made = nullptr;
    gpucholmod_factor_create(read_only<decltype(t)>(numbers<decltype(t)>(R)), 0, &options, &made, &call.status);
    return give_out(call, made);
  });
}
octave_value copy(const Call& call) {
  gpucholmod_factor* made = nullptr;
  gpucholmod_factor_copy(call.factor(), &made, &call.status);
  return give_out(call, made);
}
/// Releases the factor that args(1) names. Does nothing if there is no such factor.
octave_value release(const Call& call) {
  if (factors.erase(call.number()) == 1 && factors.empty()) call.interpreter.munlock();
  return Matrix();
}

octave_value update(const Call& call) {
  const octave_value &X = call.args(2), &scale = call.args(4);
  require_numbers(who, "X", X);
  if (X.rows() != call.order()) error("%s: dimension mismatch between F and X", who);
  if (!scale.isfloat() || !scale.isreal() || scale.numel() != 1) error("%s: SCALE must be a number", who);
  const Weights weights(who, call.args(3), X.columns());
  const Matrix columns = numbers<double>(X);
  gpucholmod_factor_update(call.factor(), read_only<double>(columns), weights.data(), scale.double_value(), nullptr,
                           nullptr, &call.status);
  return Matrix();
}
octave_value insert(const Call& call) {
  const octave_value& X = call.args(3);
  require_numbers(who, "X", X);
  const octave_idx_type n = call.order();
  if (X.rows() != n + X.columns()) error("%s: dimension mismatch between F and X", who);
  const std::ptrdiff_t at = index(who, "J", call.args(2), n + 1);
  const Matrix columns = numbers<double>(X);
  gpucholmod_factor_insert(call.factor(), at, read_only<double>(columns), nullptr, nullptr, &call.status);
  return Matrix();
}
octave_value delete_row(const Call& call) {
  const std::ptrdiff_t gone = index(who, "J", call.args(2), call.order());
  gpucholmod_factor_delete(call.factor(), &gone, 1, nullptr, nullptr, &call.status);
  return Matrix();
}
octave_value shift(const Call& call) {
  const std::ptrdiff_t from = index(who, "I", call.args(2), call.order()),
                       to = index(who, "J", call.args(3), call.order());
  gpucholmod_factor_shift(call.factor(), from, to, nullptr, nullptr, &call.status);
  return Matrix();
}

/// Returns the solution for b, which may be logical, as for Octave's `\`.
octave_value solve(const Call& call) {
  const octave_value& b = call.args(2);
  if (!b.islogical()) require_numbers(who, "b", b);
  if (b.ndims() != 2 || b.rows() != call.order()) error("%s: dimension mismatch between F and b", who);
  Matrix x = numbers<double>(b);
  gpucholmod_factor_solve(call.factor(), GPUCHOLMOD_A, writable<double>(x), &call.status);
  return x;
}
octave_value get(const Call& call) {
  const gpucholmod_factor* const F = call.factor();
  return with_class(gpucholmod_factor_type(F) == GPUCHOLMOD_FLOAT, [&](auto t) {
    MatrixOf<decltype(t)> R(call.order(), call.order());
    gpucholmod_factor_get(F, writable<decltype(t)>(R), nullptr, &call.status);
    return octave_value(R);
  });
}
octave_value diagonal(const Call& call) {
  ColumnVector out(call.order());
  gpucholmod_factor_diagonal(call.factor(), out.fortran_vec(), &call.status);
  return out;
}
octave_value logdet(const Call& call) {
  double out = 0;
  gpucholmod_factor_logdet(call.factor(), &out, &call.status);
  return out;
}
octave_value order(const Call& call) { return double(call.order()); }
octave_value precision(const Call& call) {
  return gpucholmod_factor_type(call.factor()) == GPUCHOLMOD_FLOAT ? "single" : "double";
}
octave_value backend(const Call& call) { return gpucholmod_factor_on_gpu(call.factor()) ? "gpu" : "cpu"; }

struct Command {
  const char* name;
  int takes;  ///< number of arguments after the name
  octave_value (*run)(const Call&);
};
constexpr Command commands[] = {
    {"create", 3, create}, {"copy", 1, copy},         {"release", 1, release},     {"update", 4, update},
    {"insert", 3, insert}, {"remove", 2, delete_row}, {"shift", 3, shift},         {"solve", 2, solve},
    {"get", 1, get},       {"diagonal", 1, diagonal}, {"logdet", 1, logdet},       {"order", 1, order},
    {"backend", 1, backend}, {"precision", 1, precision}};

}  // namespace
}  // namespace gpucholmod_octave

using namespace gpucholmod_octave;

DEFMETHOD_DLD(gpucholmod_factor, interpreter, args, ,
              R"([result, code, message] = gpucholmod_factor (command, ...)

What cholfactor_gpu calls. code is a gpucholmod_code; unless it is 0, result is of no use, and message says why.
)") {
  const std::string name = args.length() > 0 && args(0).is_string() ? args(0).string_value() : "";
  const Command* const command = std::find_if(std::begin(commands), std::end(commands),
                                              [&](const Command& one) { return name == one.name; });
  if (command == std::end(commands) || args.length() != command->takes + 1) print_usage();
  gpucholmod_status status = {};
  const octave_value result = command->run({interpreter, args, status});
  return ovl(result, double(status.code), message_of(status));
}
