#include "modify/choice.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <utility>

#include "base/error.h"
#include "base/threads.h"
#include "block_columns/pass.h"
#include "cuda/backend.h"
#include "cpu/blocked.h"

namespace gpucholmod {
namespace {

/// Returns the seconds that the GPU would have saved in calls that ran on the CPU, as long as CUDA has not been
/// started.
double& missed() {
  static double seconds = 0;
  return seconds;
}

/// Returns a time as text, with `digits` significant digits, and with all digits before the point.
std::string milliseconds(double seconds, int digits = 2) {
  const double ms = 1e3 * seconds;
  const int before = ms >= 1 ? int(std::floor(std::log10(ms))) + 1 : 1;
  char text[32];
  std::snprintf(text, sizeof text, "%.*f ms", std::max(digits - before, ms < 1 ? digits - 1 : 0), ms);
  return text;
}

/// Returns two times as text, with two digits, or with three digits if the two-digit texts are the same.
std::pair<std::string, std::string> apart(double a, double b) {
  const int digits = milliseconds(a) == milliseconds(b) ? 3 : 2;
  return {milliseconds(a, digits), milliseconds(b, digits)};
}

[[noreturn]] void refuse(Method method, const char* rule) {
  const char* const name = facts(method).name;
  throw Error(ErrorCode::bad_argument, std::string("method \"") + name + "\" " + rule,
              {{"argument", "method"}, {"value", name}});
}

/// Throws bad_argument if the method that is asked for by name cannot carry out the request.
void require_possible(const Request& request, Where where) {
  const MethodFacts& asked = facts(request.method);
  if (request.backend == Backend::cuda && !asked.on_cuda)
    refuse(asked.method, "runs on the CPU only; ask for backend \"cpu\" or \"auto\"");
  if (asked.method == Method::refactor && request.precision == Precision::single)
    refuse(asked.method, "computes in double precision only, as R's LAPACK does");
  if (request.backend == Backend::cpu && !asked.on_cpu)
    refuse(asked.method, "needs a GPU; ask for backend \"cuda\" or \"auto\"");
  if (request.sides && !asked.carries) refuse(asked.method, "takes no right-hand sides along");
  if (asked.places & int(where)) return;
  switch (where) {
    case Where::memory: refuse(asked.method, "is for factors that gpu_factor() has put on a GPU");
    case Where::in_place: refuse(asked.method, "cannot overwrite a factor");
    case Where::file: refuse(asked.method, "cannot modify a factor in a file");
    case Where::gpu: refuse(asked.method, "cannot modify a factor that stays on a GPU");
    case Where::held: refuse(asked.method, "cannot modify a factor that chol_factor() keeps in ordinary memory");
  }
}

/// Returns the number by which the costs of tuning.h divide the time of a modification that takes at most `threads`
/// threads. The costs were found with the rule of threads_that_pay().
double gain_of_threads(const Request& request, double threads) {
  const double n = double(request.n), help = tuning::Costs::thread_help[request.uplo == Uplo::upper ? 0 : 1],
               work = n * n * double(request.k + 8) / help;
  return std::clamp(threads_that_pay(work), 1.0,
                    std::min(threads, std::max(1.0, std::ceil(n / tuning::blocked_strip))));
}

}  // namespace

Expected expected(const Request& request) {
  using tuning::Costs;
  const double n = double(request.n), k = double(request.k);
  const double word = request.precision == Precision::single ? 0.5 : 1;
  const double passes =
      double(block_columns::passes_of(request.k, request.removed, block_columns::most_columns).size());
  const double threads = threads_for(request.threads);
  const int instructions = int(cpu::resolve(request.instructions)) - int(Instructions::plain);
  const double working = gain_of_threads(request, threads);
  Expected time;
  time.blocked =
      Costs::cpu_call +
      n * n * word * (Costs::cpu_element + (Costs::cpu_thread_element + Costs::cpu_column[instructions] * k) / working);
  time.refactor =
      request.optimised_blas && word == 1
          ? Costs::cpu_call + n * n * (Costs::refactor_element + (2 * n / 3 + k) * Costs::refactor_flops / threads)
          : HUGE_VAL;
  time.cpu = std::min(time.blocked, time.refactor);
  time.gpu = Costs::gpu_call + n * (Costs::gpu_row * std::ceil(passes / 2) + Costs::gpu_column * k) +
             n * n * word * std::max(Costs::gpu_element, Costs::staging / std::max(threads - 1, 1.0));
  time.start = cuda::built() && !cuda::started() ? Costs::gpu_start : 0;
  return time;
}

double longer_on(const cuda::Device& device, const Request& request) {
  using tuning::Costs;
  using namespace block_columns;
  const double n = double(request.n);
  if (device.kernels == cuda::Kernels::steps)
    return n * Costs::gpu_step_row * double(passes_of(request.k, request.removed, most_columns).size());
  if (device.kernels != cuda::Kernels::plain) return 0;
  double flops = 0;  // half of the operations for each of the n^2 / 2 entries of the triangle
  for (const PassColumns& pass : passes_of(request.k, request.removed, 16)) flops += IB + 2 * pass.width();
  return n * n * flops / (Costs::gpu_plain_flops * device.multiprocessors);
}

/// Returns longer_on() for the device that is used.
double longer_there(const cuda::Status& status, const Request& request) {
  double longer = 0;
  for (const cuda::Device& device : status.devices)
    if (device.id == status.device) longer += longer_on(device, request);
  return longer;
}

Choice choose(const Request& request, Where where) {
  const bool any_method = request.method == Method::automatic;
  if (!any_method) require_possible(request, where);
  Choice choice;
  if (where == Where::gpu) {
    choice.backend = Backend::cuda;
    choice.method = any_method ? Method::persistent : request.method;
    choice.reason = Reason::on_gpu;
    return choice;
  }
  if (where == Where::held) {
    choice.reason = Reason::held;
    return choice;
  }
  const Expected time = choice.expected = expected(request);
  choice.refactors = any_method && where == Where::memory && !request.sides && time.refactor < time.blocked;
  choice.saved = missed() + time.cpu - time.gpu;
  choice.method = !any_method              ? request.method
                  : choice.refactors       ? Method::refactor
                  : where == Where::file   ? Method::stream
                                           : Method::blocked;
  const auto because = [&](Reason reason) {
    choice.reason = reason;
    return choice;
  };
  if (request.backend == Backend::cpu) return because(Reason::cpu_asked);
  if (!any_method && !facts(request.method).on_cuda) return because(Reason::cpu_method);
  const bool free_choice = request.backend == Backend::automatic && any_method;
  if (free_choice && !cuda::built()) return because(Reason::not_built);
  if (free_choice && time.gpu >= time.cpu) return because(Reason::cpu_quicker);
  if (free_choice && choice.saved < time.start) return because(Reason::not_started);

  const cuda::Status status = cuda::status(false);
  if (status.usable) {
    if (free_choice) {
      choice.expected.gpu += longer_there(status, request);
      choice.saved = missed() + choice.expected.cpu - choice.expected.gpu;
      if (choice.expected.gpu >= choice.expected.cpu) return because(Reason::cpu_quicker);
    }
    choice.backend = Backend::cuda;
    if (any_method) choice.method = Method::stream;
    choice.refactors = false;
    return because(free_choice ? Reason::gpu_quicker : Reason::gpu_asked);
  }
  if (request.backend == Backend::cuda || !facts(choice.method).on_cpu)
    throw Error(ErrorCode::backend_unavailable, "backend \"cuda\" cannot be used: " + status.message,
                {{"backend", "cuda"}, {"reason", status.reason}});
  choice.unusable = status.message;
  return because(Reason::unusable);
}

std::string why(const Choice& choice) {
  const Expected& time = choice.expected;
  const auto [on_gpu, on_cpu] = apart(time.gpu, time.cpu);
  const std::string times = "expected: " + on_gpu + " on the GPU, " + on_cpu + " on the CPU";
  std::string text;
  switch (choice.reason) {
    case Reason::cpu_asked: text = "backend \"cpu\" was asked for"; break;
    case Reason::cpu_method: text = "the method that was asked for runs on the CPU only"; break;
    case Reason::not_built:
      text = "expected: " + milliseconds(time.cpu) + "; this package was built without CUDA";
      break;
    case Reason::cpu_quicker: text = times; break;
    case Reason::not_started:
      text = times + "; but CUDA has not been started, which takes " + milliseconds(time.start) +
             ", and would have saved " + milliseconds(choice.saved) + " so far";
      break;
    case Reason::gpu_quicker: return times;
    case Reason::gpu_asked: return "the GPU was asked for";
    case Reason::unusable: text = "there is no GPU that can be used: " + choice.unusable; break;
    case Reason::on_gpu: return "the factor is on the GPU";
    case Reason::held: return "the factor is kept in ordinary memory";
  }
  if (!choice.refactors) return text;
  const auto [refactor, blocked] = apart(time.refactor, time.blocked);
  const std::string gain =
      refactor == blocked ? "take as long, " + refactor : "be quicker: " + refactor + " instead of " + blocked;
  return text + "; for this k, factorising afresh is expected to " + gain;
}

void remember(const Choice& choice) {
  const bool free_choice = choice.reason == Reason::not_built || choice.reason == Reason::cpu_quicker ||
                           choice.reason == Reason::not_started || choice.reason == Reason::unusable;
  if (free_choice && choice.expected.start > 0) missed() += std::max(0.0, choice.expected.cpu - choice.expected.gpu);
}

Request resolved(const Request& request, const Choice& choice) {
  Request task = request;
  task.method = choice.method;
  task.backend = choice.backend;
  task.algorithm = choice.algorithm();
  task.launch = choice.method == Method::stepwise                                            ? Launch::stepwise
                : request.method == Method::automatic || choice.route() != Route::on_gpu ? Launch::automatic
                                                                                         : Launch::persistent;
  task.at_once = choice.method == Method::resident;
  if (choice.backend == Backend::cpu && task.algorithm == Algorithm::householder)
    task.instructions = cpu::resolve(request.instructions);
  const auto useful = [&](int most) { return cpu::useful_threads(request.n, request.k, request.uplo, most); };
  // threads_for() reads the environment, which takes as long as a small modification.
  task.threads = choice.route() == Route::column_panels  ? threads_for(request.threads)
                 : choice.method != Method::blocked      ? 0
                 : useful(tuning::most_threads) == 1     ? 1
                                                         : useful(threads_for(request.threads));
  return task;
}

}  // namespace gpucholmod
