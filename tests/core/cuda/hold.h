#pragma once

#include "cuda/memory.h"

namespace gpucholmod::test {

/// Queues a kernel that holds a multiprocessor with each of its blocks, for so long. On the current device.
void hold_multiprocessors(int blocks, double seconds, cudaStream_t stream);

}  // namespace gpucholmod::test
