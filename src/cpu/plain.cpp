#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>

#include "cpu/eigen.h"
#include "cpu/group_pass.h"
#include "cpu/kernels.h"
#include "cpu/kernels/macros.h"

namespace gpucholmod::cpu::plain {

#include "cpu/kernels/pack_plain.h"
#include "cpu/kernels/tail.h"
#include "cpu/kernels/diagonal.h"
#include "cpu/kernels/rotations.h"
#include "cpu/kernels/level.h"
#include "cpu/kernels/triangle.h"
#include "cpu/kernels/group.h"
#include "cpu/kernels/group_reshape.h"

}  // namespace gpucholmod::cpu::plain
