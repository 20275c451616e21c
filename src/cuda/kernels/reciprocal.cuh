#pragma once

/// Reciprocals of numbers far from the ends of the range; NaN at the ends. The device has a first guess of 20 bits, and
/// a step of third order makes these 60 bits.
namespace gpucholmod::cuda {

/// Returns 1 / x, in half the time of a division.
__device__ __forceinline__ double reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

/// Returns 1 / sqrt(x), in less than half the time of rsqrt().
__device__ __forceinline__ double reciprocal_root(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  const double e = fma(-x * y, y, 1.0);
  return fma(y * e, fma(0.375, e, 0.5), y);
}

}  // namespace gpucholmod::cuda
