#ifndef GPUCHOLMOD_CPU_EIGEN_H
#define GPUCHOLMOD_CPU_EIGEN_H

// A system header's warnings are not shown: Eigen 3.3 draws hundreds of them from GCC.
#pragma GCC system_header

#include <Eigen/Core>

#endif
