#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/group_pass.h"
#include "cpu/kernels.h"
#include "cpu/kernels/macros.h"

#if GPUCHOLMOD_X86

#include <immintrin.h>

GPUCHOLMOD_TARGET_BEGIN("avx2,fma")
namespace gpucholmod::cpu::avx2 {

#include "cpu/kernels/pack_avx2.h"
#include "cpu/kernels/tail.h"
#include "cpu/kernels/diagonal.h"
#include "cpu/kernels/rotations.h"
#include "cpu/kernels/level.h"
#include "cpu/kernels/triangle.h"
#include "cpu/kernels/group.h"
#include "cpu/kernels/group_reshape.h"

}  // namespace gpucholmod::cpu::avx2
GPUCHOLMOD_TARGET_END

#endif
