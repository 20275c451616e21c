/* The core as a library, as a program in C uses it: tools/test.sh compiles and runs this. Prints what is wrong. */
#include <gpucholmod.h>

#include <math.h>
#include <stdio.h>

int main(void) {
  /* A = R'R, by columns; and A + vv' */
  double R[9] = {2, 0, 0, 1, 3, 0, -1, 0.5, 1.5};
  const double v[3] = {0.5, -1, 2}, minus = -1;
  double A[9], largest = 0;
  gpucholmod_status status;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) {
      A[i + 3 * j] = v[i] * v[j];
      for (int l = 0; l < 3; ++l) A[i + 3 * j] += R[l + 3 * i] * R[l + 3 * j];
    }
  if (gpucholmod_abi() != GPUCHOLMOD_ABI) return puts("another version"), 1;
  const gpucholmod_matrix of_R = gpucholmod_double_matrix(R, 3, 3, 3);
  const gpucholmod_const_matrix of_v = gpucholmod_const_double_matrix(v, 3, 1, 3);
  if (gpucholmod_update(of_R, of_v, NULL, 1, NULL, NULL, &status) != GPUCHOLMOD_OK) return puts(status.message), 1;
  for (int j = 0; j < 3; ++j)
    for (int i = 0; i < 3; ++i) {
      double sum = -A[i + 3 * j];
      for (int l = 0; l < 3; ++l) sum += R[l + 3 * i] * R[l + 3 * j];
      if (fabs(sum) > largest) largest = fabs(sum);
    }
  if (largest > 1e-14) return printf("off by %g\n", largest), 1;
  const double much[3] = {0, 100, 0};
  if (gpucholmod_update(of_R, gpucholmod_const_double_matrix(much, 3, 1, 3), &minus, 1, NULL, NULL, &status) !=
          GPUCHOLMOD_NOT_POSITIVE_DEFINITE ||
      status.pivot != 2)
    return puts("a downdate that cannot be done was done"), 1;
  gpucholmod_factor *factor = NULL;
  double x[3] = {1, 2, 3};
  if (gpucholmod_factor_create(gpucholmod_as_const(of_R), 3, NULL, &factor, &status) != GPUCHOLMOD_OK ||
      gpucholmod_factor_solve(factor, GPUCHOLMOD_A, gpucholmod_double_matrix(x, 3, 1, 3), &status) != GPUCHOLMOD_OK)
    return puts(status.message), 1;
  for (int i = 0; i < 3; ++i) {
    double sum = -(i + 1);
    for (int j = 0; j < 3; ++j) sum += A[i + 3 * j] * x[j];
    if (fabs(sum) > 1e-13) return printf("solved wrongly, by %g\n", sum), 1;
  }
  gpucholmod_factor_destroy(factor);

  /* what cannot be: a factor that no memory holds, and one that is trusted and is none */
  factor = NULL;
  const ptrdiff_t far = (ptrdiff_t)1 << 31;
  const int made = gpucholmod_factor_create(gpucholmod_as_const(of_R), far, NULL, &factor, &status);
  if (made != GPUCHOLMOD_OUT_OF_MEMORY || factor != NULL)
    return puts("a factor was made that no memory holds"), 1;
  R[6] = NAN;
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  const int codes[2] = {GPUCHOLMOD_NOT_FINITE, GPUCHOLMOD_HALF_MODIFIED};
  for (int i = 0; i < 2; ++i) {
    options.trusted = i;
    if (gpucholmod_update(of_R, of_v, NULL, 1, NULL, &options, &status) != codes[i])
      return puts("a number that is none was taken"), 1;
  }
  return 0;
}
