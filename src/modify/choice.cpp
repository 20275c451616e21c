#include "modify/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "cuda/backend.h"
#include "base/error.h"
#include "base/threads.h"
#include "cpu/blocked.h"

namespace gpucholmod {
namespace {

/// Seconds that calls on the CPU would have saved on the GPU, while CUDA has not been started.
double& missed() {
  static double seconds = 0;
  return seconds;
}

/// With `digits` significant digits, and all of those before the point.
std::string milliseconds(double seconds, int digits = 2) {
  const double ms = 1e3 * seconds;
  const int before = ms >= 1 ? int(std::floor(std::log10(ms))) + 1 : 1;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f ms", std::max(digits - before, ms < 1 ? digits - 1 : 0), ms);
  return text;
}

/// Two times with two digits, or with three if that tells them apart.
std::pair<std::string, std::string> apart(double a, double b) {
  const int digits = milliseconds(a) == milliseconds(b) ? 3 : 2;
  return {milliseconds(a, digits), milliseconds(b, digits)};
}

[[noreturn]] void refuse(const char* method, const char* rule) {
  throw Error(ErrorCode::bad_argument, std::string("method \"") + method + "\" " + rule,
              {{"argument", "method"}, {"value", method}});
}

}  // namespace

Expected expected(const Request& request) {
  using tuning::Costs;
  const double n = double(request.n), k = double(request.k);
  const double word = request.precision == Precision::single ? 0.5 : 1;
  const double passes = std::ceil(k / 64), threads = threads_for(request.threads);
  const int instructions = int(cpu::resolve(request.instructions)) - int(Instructions::plain);
  const double working = cpu::useful_threads(request.n, request.k, int(threads));
  Expected time;
  time.blocked = Costs::cpu_call + n * n * word * (Costs::cpu_element + (Costs::cpu_thread_element +
                                                                         Costs::cpu_column[instructions] * k) / working);
  time.refactor = request.optimised_blas && word == 1
                      ? Costs::cpu_call + n * n * (Costs::refactor_element + (2 * n / 3 + k) * Costs::refactor_flops / threads)
                      : HUGE_VAL;
  time.cpu = std::min(time.blocked, time.refactor);
  time.gpu = Costs::gpu_call + n * (Costs::gpu_row * passes + Costs::gpu_column * k) +
             n * n * word * std::max(Costs::gpu_element, Costs::staging / std::max(threads - 1, 1.0));
  time.start = cuda::built() && !cuda::started() ? Costs::gpu_start : 0;
  return time;
}

Decision decide(const Request& request) {
  const Method asked = request.method;
  const bool for_cpu = asked == Method::reference || asked == Method::blocked || asked == Method::refactor;
  if (request.backend == Backend::cuda && for_cpu)
    refuse(asked == Method::blocked ? "blocked" : asked == Method::refactor ? "refactor" : "reference",
           "runs on the CPU only; ask for backend \"cpu\" or \"auto\"");
  if (asked == Method::refactor && request.precision == Precision::single)
    refuse("refactor", "computes in double precision only, as R's LAPACK does");
  if (request.backend == Backend::cpu && asked == Method::resident)
    refuse("resident", "needs a GPU; ask for backend \"cuda\" or \"auto\"");
  const Expected time = expected(request);
  const bool refactors = asked == Method::automatic && time.refactor < time.blocked;
  const Method cpu_method = refactors ? Method::refactor : asked == Method::automatic ? Method::blocked : asked;
  const auto on_cpu = [&](const std::string& why) {
    if (!refactors) return Decision{Backend::cpu, cpu_method, why};
    const auto [refactor, blocked] = apart(time.refactor, time.blocked);
    const std::string afresh = "; for this k, factorising afresh is expected to ";
    const std::string gain = refactor == blocked ? "take as long, " + refactor : "be quicker: " + refactor + " instead of " + blocked;
    return Decision{Backend::cpu, cpu_method, why + afresh + gain};
  };
  if (request.backend == Backend::cpu) return on_cpu("backend \"cpu\" was asked for");
  if (for_cpu) return on_cpu("the method that was asked for runs on the CPU only");

  const bool free_choice = request.backend == Backend::automatic && asked == Method::automatic;
  if (free_choice && !cuda::built())
    return on_cpu("expected: " + milliseconds(time.cpu) + "; this package was built without CUDA");
  const auto [on_gpu, on_host] = apart(time.gpu, time.cpu);
  const std::string times = "expected: " + on_gpu + " on the GPU, " + on_host + " on the CPU";
  if (free_choice && time.gpu >= time.cpu) return on_cpu(times);
  if (free_choice && missed() + time.cpu - time.gpu < time.start)
    return on_cpu(times + "; but CUDA has not been started, which takes " + milliseconds(time.start) +
                                  ", and would have saved " + milliseconds(missed() + time.cpu - time.gpu) + " so far");

  const cuda::Status status = cuda::status(false);
  if (status.usable)
    return {Backend::cuda, asked == Method::automatic ? Method::stream : asked,
            free_choice ? times : "the GPU was asked for"};
  if (request.backend == Backend::cuda || asked == Method::resident)
    throw Error(ErrorCode::backend_unavailable, "backend \"cuda\" cannot be used: " + status.message,
                {{"backend", "cuda"}, {"reason", status.reason}});
  return on_cpu("there is no GPU that can be used: " + status.message);
}

void remember(const Request& request, const Decision& decision) {
  const bool chosen = request.backend == Backend::automatic && request.method == Method::automatic;
  if (decision.backend == Backend::cuda || !chosen) return;
  const Expected time = expected(request);
  if (time.start > 0) missed() += std::max(0.0, time.cpu - time.gpu);
}

}  // namespace gpucholmod
