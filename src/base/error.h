#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace gpucholmod {

/// The kinds of errors; each becomes the R condition class `gpucholmod_<name>`.
enum class ErrorCode {
  bad_argument,
  shared,
  not_finite,
  bad_diagonal,
  overflow,
  bad_file,
  backend_unavailable,
  out_of_memory,
  cuda_failure,
  process_failed,
  not_supported
};

/// Returns the `<name>` of the R condition class.
inline const char* name(ErrorCode code) {
  constexpr const char* names[] = {"bad_argument", "shared", "not_finite", "bad_diagonal", "overflow", "bad_file",
                                   "backend_unavailable", "out_of_memory", "cuda_failure", "process_failed",
                                   "not_supported"};
  return names[int(code)];
}

/// The one exception type of the core.
///
/// `fields` become the data fields of the condition that a user sees, so indices in them count from 1
/// and amounts of memory are in bytes.
class Error : public std::runtime_error {
 public:
  using Value = std::variant<double, std::string>;
  using Fields = std::vector<std::pair<std::string, Value>>;

  Error(ErrorCode code, const std::string& message, Fields fields = {})
      : std::runtime_error(message), code_(code), fields_(std::move(fields)) {}

  ErrorCode code() const { return code_; }
  const Fields& fields() const { return fields_; }

 private:
  ErrorCode code_;
  Fields fields_;
};

/// Returns an amount of memory as R's format_bytes() writes it: "1.5 GiB".
inline std::string text_of_bytes(double bytes) {
  const char* const units[] = {"B", "KiB", "MiB", "GiB"};
  int unit = 0;
  for (; bytes >= 1024 && unit < 3; ++unit) bytes /= 1024;
  char text[344];  // room for the largest number
  std::snprintf(text, sizeof text, bytes < 999.5 ? "%.3g %s" : "%.0f %s", bytes, units[unit]);
  return text;
}

/// Returns an out_of_memory error: `what` describes the failure; `needed` and `available` are bytes.
inline Error out_of_memory(const std::string& what, double needed, double available) {
  return Error(ErrorCode::out_of_memory,
               what + ": " + text_of_bytes(needed) + " needed, " + text_of_bytes(available) + " available",
               {{"needed", needed}, {"available", available}});
}
/// Throws out_of_memory if a call takes more bytes of device memory than the user allows.
inline void require_allowed(double bytes, double allowed) {
  if (bytes > allowed) throw out_of_memory("'device_memory' allows less device memory than this takes", bytes, allowed);
}

}  // namespace gpucholmod
