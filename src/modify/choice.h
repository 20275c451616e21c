#pragma once

#include <string>

#include "cuda/backend.h"
#include "modify/methods.h"

/// The choice of a method for a call. "auto" is resolved here and nowhere else.
namespace gpucholmod {

/// Holds the expected times of whole calls, from ordinary memory to ordinary memory, in seconds, by tuning::Costs.
struct Expected {
  double cpu = 0;       ///< the shorter of the times of methods blocked and refactor
  double blocked = 0;
  double refactor = 0;  ///< infinite if refactoring is out of the question: in single precision, or with a slow BLAS
  double gpu = 0;       ///< time of method stream, once CUDA has started
  double start = 0;     ///< time to start CUDA in this process; 0 if CUDA has started
};
Expected expected(const Request& request);

/// Returns the seconds to add to `gpu` on a device whose kernels are slower than the kernels on which the costs were
/// measured.
double longer_on(const cuda::Device& device, const Request& request);

/// The reasons for choosing a backend.
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

/// Describes the backend and the method that a call uses.
struct Choice {
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Reason reason = Reason::cpu_asked;
  bool refactors = false;  ///< True if method refactor was chosen, not asked for
  Expected expected;       ///< expected times; not set for Where::gpu and Where::held
  double saved = 0;        ///< seconds that the GPU would have saved in the calls so far, this one included
  std::string unusable;    ///< the reason why no GPU can be used, if `reason` is unusable

  Route route() const { return facts(method).route; }
  Algorithm algorithm() const { return backend == Backend::cpu ? facts(method).cpu : facts(method).cuda; }
};

/// Resolves "auto", and throws if what is asked for is not possible. If neither a backend nor a method is asked for,
/// chooses the GPU if the GPU is expected to be quicker. Does not start CUDA before the calls so far, this one
/// included, would have saved the time of starting it: so nobody waits for the start in vain, nor, by the model, ever
/// for more than twice the time of the best choice. The choice does not depend on measured times. It depends on the
/// arguments of this call and of the calls before (n, k, precision, threads), on the machine (instructions, kind of
/// BLAS) and on the GPU alone, so that the same script makes the same choices.
///
/// Throws bad_argument and backend_unavailable.
Choice choose(const Request& request, Where where);

/// Returns the reason of a choice as a sentence.
std::string why(const Choice& choice);

/// Adds what the GPU would have saved in a call on the CPU, if CUDA has not been started, to the sum that choose()
/// reads.
void remember(const Choice& choice);

/// Returns the request with the backend and method of the choice, and with algorithm, instructions and threads
/// resolved. Throws bad_argument.
Request resolved(const Request& request, const Choice& choice);

}  // namespace gpucholmod
