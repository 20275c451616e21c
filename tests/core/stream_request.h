#pragma once

#include <memory>

#include "stream_call.h"

/// Calls of modify() by method stream, on the CPU.
namespace gpucholmod::test {

inline Request streaming(Uplo uplo = Uplo::upper, Precision precision = Precision::double_) {
  Request request;
  request.backend = Backend::cpu;
  request.method = Method::stream;
  request.uplo = uplo;
  request.precision = precision;
  request.threads = 3;
  return request;
}
inline Request blocked(Request request) {
  request.method = Method::blocked;
  request.device_memory = ample;
  return request;
}
/// Returns a request for panels of one strip, one at a time.
inline Request in_least_memory(Request request, index_t n, index_t k) {
  request.device_memory = least_budget(n, k, request.precision == Precision::single ? 4 : 8);
  return request;
}

template <class S>
Result<S> call_within_a_minute(const Problem<S>& p, const Request& request, const Poll& poll = no_poll) {
  const auto result = std::make_shared<Result<S>>();
  within_a_minute([=] { *result = call(p, request, poll); });
  return *result;
}

}  // namespace gpucholmod::test
