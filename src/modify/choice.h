#pragma once

#include <string>

#include "cuda/backend.h"
#include "modify/methods.h"

/// How a call chooses its method: the only place where "auto" is resolved.
namespace gpucholmod {

/// What whole calls are expected to take, from ordinary memory to ordinary memory, in seconds: tuning::Costs.
struct Expected {
  double cpu = 0;       ///< the quicker of methods blocked and refactor
  double blocked = 0;
  double refactor = 0;  ///< infinite where it is out of the question: in single precision, or with a slow BLAS
  double gpu = 0;       ///< method stream, once CUDA has started
  double start = 0;     ///< of CUDA in this process; 0 when it has
};
Expected expected(const Request& request);

/// Returns the seconds to add to `gpu` on a device whose kernels are slower than those which the model of costs was
/// measured on.
double longer_on(const cuda::Device& device, const Request& request);

/// Why a backend was taken.
enum class Reason {
  cpu_asked,
  cpu_method,
  not_built,
  cpu_quicker,
  not_started,
  gpu_quicker,
  gpu_asked,
  unusable,
  on_gpu,
  held
};

/// What is to be run.
struct Choice {
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Reason reason = Reason::cpu_asked;
  bool refactors = false;  ///< method refactor was chosen, not asked for
  Expected expected;       ///< not for Where::gpu and held
  double saved = 0;        ///< seconds that calls so far, this one included, would have saved on the GPU
  std::string unusable;    ///< why no GPU can be used, where that is the reason

  Route route() const { return facts(method).route; }
  Algorithm algorithm() const { return backend == Backend::cpu ? facts(method).cpu : facts(method).cuda; }
};

/// Resolves "auto", and refuses what cannot be. Where nothing else is said, the GPU is taken if it is expected to be
/// quicker, and starting CUDA is put off until the calls so far, this one included, would have saved what it takes: so
/// nobody waits for it in vain, nor, by the model, ever for more than twice the time of the best choice. That goes by
/// n, k, precision, threads and what the machine has (instructions, kind of BLAS) alone, hence the same script makes
/// the same choices.
///
/// Throws bad_argument and backend_unavailable.
Choice choose(const Request& request, Where where);

/// The reason as a sentence.
std::string why(const Choice& choice);

/// Takes note of a call that is carried out as chosen.
void remember(const Choice& choice);

/// The task with what the choice leaves to be resolved: algorithm, instructions, threads. Throws bad_argument.
Request resolved(const Request& request, const Choice& choice);

}  // namespace gpucholmod
