/* Descriptions of matrices that the functions of gpucholmod.h take. That header includes this one. */
#ifndef GPUCHOLMOD_MATRIX_H
#define GPUCHOLMOD_MATRIX_H

#include <stddef.h>

enum gpucholmod_type { GPUCHOLMOD_DOUBLE = 1, GPUCHOLMOD_FLOAT = 2 };

/* Describes a matrix in the caller's memory, column-major: element (i, j) is data[i + j * ld], and ld >= rows. data may
 * be NULL if the matrix has no elements. */
typedef struct gpucholmod_matrix {
  void *data;
  ptrdiff_t rows, cols, ld;
  int type; /* gpucholmod_type */
} gpucholmod_matrix;

/* Describes a matrix that functions only read. */
typedef struct gpucholmod_const_matrix {
  const void *data;
  ptrdiff_t rows, cols, ld;
  int type;
} gpucholmod_const_matrix;

static inline gpucholmod_matrix gpucholmod_double_matrix(double *data, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld) {
  const gpucholmod_matrix A = {data, rows, cols, ld, GPUCHOLMOD_DOUBLE};
  return A;
}
static inline gpucholmod_matrix gpucholmod_float_matrix(float *data, ptrdiff_t rows, ptrdiff_t cols, ptrdiff_t ld) {
  const gpucholmod_matrix A = {data, rows, cols, ld, GPUCHOLMOD_FLOAT};
  return A;
}
static inline gpucholmod_const_matrix gpucholmod_const_double_matrix(const double *data, ptrdiff_t rows, ptrdiff_t cols,
                                                                     ptrdiff_t ld) {
  const gpucholmod_const_matrix A = {data, rows, cols, ld, GPUCHOLMOD_DOUBLE};
  return A;
}
static inline gpucholmod_const_matrix gpucholmod_const_float_matrix(const float *data, ptrdiff_t rows, ptrdiff_t cols,
                                                                    ptrdiff_t ld) {
  const gpucholmod_const_matrix A = {data, rows, cols, ld, GPUCHOLMOD_FLOAT};
  return A;
}
/* Returns a description of the same matrix, to be read only. */
static inline gpucholmod_const_matrix gpucholmod_as_const(gpucholmod_matrix A) {
  const gpucholmod_const_matrix B = {A.data, A.rows, A.cols, A.ld, A.type};
  return B;
}

#endif
