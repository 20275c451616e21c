#pragma once

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "modify/modify.h"
#include "base/error.h"
#include "cpu/kernels.h"
#include "matrices.h"

/// Calls of modify(), and functions that look at the outcome.
namespace gpucholmod::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  ///< True if a sanitizer slows down all code: fewer sizes will do
#else
constexpr bool sanitized = false;
#endif

/// A way through the core that needs no GPU.
struct Way {
  const char* name;
  Method method;
  LoopOrder loop_order;
  Instructions instructions = Instructions::automatic;
};
constexpr Instructions all_instructions[] = {Instructions::plain, Instructions::avx2, Instructions::avx512};
inline std::string text(Instructions instructions) {
  return std::array{"auto", "plain", "avx2", "avx512"}[std::size_t(instructions)];
}
/// All ways. The blocked method has one more for each set of instructions that the machine has.
inline const std::vector<Way> ways = [] {
  std::vector<Way> all = {{"reference_A", Method::reference, LoopOrder::a},
                          {"reference_B", Method::reference, LoopOrder::b},
                          {"blocked", Method::blocked, LoopOrder::b},
                          {"panel", Method::panel, LoopOrder::b}};
  const char* const names[] = {"blocked_plain", "blocked_avx2", "blocked_avx512"};
  for (const Instructions instructions : all_instructions)
    if (cpu::available(instructions))
      all.push_back({names[int(instructions) - 1], Method::blocked, LoopOrder::b, instructions});
  return all;
}();
constexpr Precision precisions[] = {Precision::double_, Precision::single};
constexpr Sign signs[] = {Sign::update, Sign::downdate};

/// Returns right-hand sides as a backend sees them: z (n x m), Y (m x k), and the results `out` and `rest`.
inline RightHandSideView sides_in(const Stored<double>& z, const Stored<double>& Y, Stored<double>& out,
                                  Stored<double>& rest) {
  return {{z.data(), z.rows(), z.cols(), z.rows()},
          {Y.data(), Y.rows(), Y.cols(), Y.rows()},
          {out.data(), out.rows(), out.cols(), out.rows()},
          {rest.data(), rest.rows(), rest.cols(), rest.rows()}};
}

inline Request by(const Way& way, Precision precision = Precision::double_) {
  Request request;
  request.backend = Backend::cpu;
  request.method = way.method;
  request.loop_order = way.loop_order;
  request.instructions = way.instructions;
  request.precision = precision;
  return request;
}

template <class S>
struct Result {
  Outcome outcome;
  Stored<S> R;
};

/// Calls modify() with memory full of NaN for the result, so that an entry that is not written shows.
template <class S>
Result<S> call(const Problem<S>& p, Request request, const Poll& poll = [](double) {}) {
  request.n = p.R.cols();
  request.k = p.V.cols();
  request.removed = p.sign == Sign::downdate ? request.k : 0;
  Result<S> result{{}, Stored<S>::Constant(request.n, request.n, std::numeric_limits<S>::quiet_NaN())};
  result.outcome = modify(Place<S>::memory(p.R.data(), result.R.data()), p.V.data(), request, poll);
  return result;
}

template <class S>
bool same_bits(const Stored<S>& a, const Stored<S>& b) {
  return a.rows() == b.rows() && a.cols() == b.cols() &&
         (a.size() == 0 || std::memcmp(a.data(), b.data(), sizeof(S) * a.size()) == 0);
}

/// Returns the Error that `f` throws, or nothing if f() throws no Error.
template <class F>
std::optional<Error> error_of(F&& f) {
  try {
    f();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

inline const Error::Value* field(const Error& error, const std::string& key) {
  for (const auto& [name, value] : error.fields())
    if (name == key) return &value;
  return nullptr;
}
inline double number(const Error& error, const std::string& key) {
  const Error::Value* value = field(error, key);
  return value ? std::get<double>(*value) : std::numeric_limits<double>::quiet_NaN();
}
inline std::string text(const Error& error, const std::string& key) {
  const Error::Value* value = field(error, key);
  return value ? std::get<std::string>(*value) : "";
}

inline const Poll no_poll = [](double) {};

}  // namespace gpucholmod::test
