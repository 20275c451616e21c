#pragma once

#include <string>

#include "modify/request.h"

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

/// Where a request is to run, and why.
struct Decision {
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  std::string why;
};

/// Resolves "auto". Where nothing else is said, the GPU is taken if it is expected to be quicker, and starting CUDA
/// is put off until the calls so far, this one included, would have saved what it takes: so nobody waits for it in
/// vain, nor, by the model, ever for more than twice the time of the best choice. That goes by n, k, precision, threads
/// and what the machine has (instructions, kind of BLAS) alone, hence the same script makes the same choices.
///
/// Throws bad_argument and backend_unavailable.
Decision decide(const Request& request);

/// Takes note of a call that was carried out as decided.
void remember(const Request& request, const Decision& decision);

}  // namespace gpucholmod
