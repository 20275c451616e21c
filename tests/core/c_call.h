#pragma once

#include <gpucholmod.h>

#include <cstddef>
#include <type_traits>

#include "base/types.h"

/// Overloads of the functions of gpucholmod.h that take a matrix as a pointer, its sizes and its leading dimension.
namespace gpucholmod::test {

inline gpucholmod_matrix matrix(double* A, index_t rows, index_t cols, index_t ld) {
  return gpucholmod_double_matrix(A, rows, cols, ld);
}
inline gpucholmod_matrix matrix(float* A, index_t rows, index_t cols, index_t ld) {
  return gpucholmod_float_matrix(A, rows, cols, ld);
}
inline gpucholmod_const_matrix matrix(const double* A, index_t rows, index_t cols, index_t ld) {
  return gpucholmod_const_double_matrix(A, rows, cols, ld);
}
inline gpucholmod_const_matrix matrix(const float* A, index_t rows, index_t cols, index_t ld) {
  return gpucholmod_const_float_matrix(A, rows, cols, ld);
}

/// The bit of a form for option `trusted`. A form is GPUCHOLMOD_UPPER or GPUCHOLMOD_LOWER, with this bit or without.
constexpr int trusted_form = 2;
inline gpucholmod_options options(int form) {
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  options.triangle = form & ~trusted_form;
  options.trusted = form & trusted_form ? 1 : 0;
  return options;
}
/// Returns the options of a form, for functions that have no option `trusted`.
inline gpucholmod_options triangle(int form) { return options(form & ~trusted_form); }

/// Returns right-hand sides with z (rows x m) and Y (k x m).
inline gpucholmod_right_sides right_sides(double* z, index_t rows, index_t m, index_t ldz, const double* Y, index_t k,
                                          index_t ldy, double* rss) {
  return {matrix(z, rows, m, ldz), matrix(Y, k, m, ldy), rss};
}

/// A type that is not deduced, so that a matrix can be nullptr.
template <class S>
using Same = std::common_type_t<S>;
/// Returns n + p, which is negative if the sum overflows.
inline index_t sum(index_t n, index_t p) { return index_t(std::size_t(n) + std::size_t(p)); }

template <class S>
int update(int form, index_t n, index_t k, S* R, index_t ldr, const Same<S>* V, index_t ldv, const double* weights,
           double scale, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const gpucholmod_options chosen = options(form);
  return gpucholmod_update(matrix(R, n, n, ldr), matrix(V, n, k, ldv), weights, scale, sides, &chosen, status);
}
template <class S>
int insert(int form, index_t n, index_t at, index_t p, S* R, index_t ldr, const Same<S>* X, index_t ldx,
           const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const gpucholmod_options chosen = triangle(form);
  const index_t m = sum(n, p);
  return gpucholmod_insert(matrix(R, m, m, ldr), at, matrix(X, m, p, ldx), sides, &chosen, status);
}
template <class S>
int remove(int form, index_t n, index_t count, const index_t* rows, S* R, index_t ldr,
           const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const gpucholmod_options chosen = triangle(form);
  return gpucholmod_delete(matrix(R, n, n, ldr), rows, count, sides, &chosen, status);
}

template <class S>
int create(int form, index_t n, const S* R, index_t ldr, index_t capacity, gpucholmod_factor** made,
           gpucholmod_status* status, int device = GPUCHOLMOD_HOST) {
  gpucholmod_options chosen = triangle(form);
  chosen.device = device;
  return gpucholmod_factor_create(matrix(R, n, n, ldr), capacity, &chosen, made, status);
}
inline int update(gpucholmod_factor* factor, index_t k, const double* V, index_t ldv, const double* weights,
                  double scale, const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const gpucholmod_const_matrix columns = matrix(V, gpucholmod_factor_order(factor), k, ldv);
  return gpucholmod_factor_update(factor, columns, weights, scale, sides, nullptr, status);
}
inline int insert(gpucholmod_factor* factor, index_t at, index_t p, const double* X, index_t ldx,
                  const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const gpucholmod_const_matrix columns = matrix(X, sum(gpucholmod_factor_order(factor), p), p, ldx);
  return gpucholmod_factor_insert(factor, at, columns, sides, nullptr, status);
}
inline int remove(gpucholmod_factor* factor, index_t count, const index_t* rows, const gpucholmod_right_sides* sides,
                  gpucholmod_status* status) {
  return gpucholmod_factor_delete(factor, rows, count, sides, nullptr, status);
}
inline int solve(const gpucholmod_factor* factor, int system, index_t m, double* B, index_t ldb,
                 gpucholmod_status* status) {
  return gpucholmod_factor_solve(factor, system, matrix(B, gpucholmod_factor_order(factor), m, ldb), status);
}
template <class S>
int get(const gpucholmod_factor* factor, int form, S* R, index_t ldr, gpucholmod_status* status) {
  const index_t n = gpucholmod_factor_order(factor);
  const gpucholmod_options chosen = triangle(form);
  return gpucholmod_factor_get(factor, matrix(R, n, n, ldr), &chosen, status);
}

}  // namespace gpucholmod::test
