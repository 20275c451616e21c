#pragma once

#include "cuda/memory.h"

namespace gpucholmod::test {

/// Queues a kernel on the current device, each of whose thread blocks holds a multiprocessor for `seconds`.
void hold_multiprocessors(int blocks, double seconds, cudaStream_t stream);

}  // namespace gpucholmod::test
