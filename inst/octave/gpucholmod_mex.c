/* What cholupdate_gpu.m, cholinsert_gpu.m and choldelete_gpu.m call. Built by  make -f tools/library.mk octave
 *
 *   [R1, code, pivot, message] = gpucholmod_mex ("update", R, V, weights)
 *   [R1, code, pivot, message] = gpucholmod_mex ("insert", R, j, X)       X: the columns of the new matrix
 *   [R1, code, pivot, message] = gpucholmod_mex ("delete", R, j)
 *
 * R: n x n, real, double or single (update; the others double), upper triangular. code: gpucholmod_code; where it is not 0, R1 is R. */
#include <string.h>

#include "gpucholmod.h"
#include "mex.h"

/* The factor with room for p rows and columns more, or fewer; what is below its diagonal is zero. */
static mxArray *resized(const mxArray *R, ptrdiff_t from, ptrdiff_t to) {
  mxArray *made = mxCreateDoubleMatrix(to, to, mxREAL);
  const ptrdiff_t m = from < to ? from : to;
  for (ptrdiff_t j = 0; j < m; ++j) memcpy(mxGetPr(made) + j * to, mxGetPr(R) + j * from, sizeof(double) * (j + 1));
  return made;
}

void mexFunction(int count, mxArray *out[], int given, const mxArray *in[]) {
  char what[16];
  if (given < 3 || mxGetString(in[0], what, sizeof what) != 0) mexErrMsgTxt("gpucholmod_mex: called by cholupdate_gpu and others only");
  const mxArray *R = in[1];
  const ptrdiff_t n = (ptrdiff_t)mxGetN(R);
  gpucholmod_status status;
  int code;
  if (strcmp(what, "update") == 0) {
    const mxArray *V = in[2];
    const ptrdiff_t k = (ptrdiff_t)mxGetN(V);
    out[0] = mxDuplicateArray(R);
    if (mxIsSingle(R))
      code = gpucholmod_update_s(GPUCHOLMOD_UPPER, n, k, (float *)mxGetData(out[0]), n, (const float *)mxGetData(V), n, mxGetPr(in[3]), 1, NULL,
                                 NULL, 0, &status);
    else
      code = gpucholmod_update_d(GPUCHOLMOD_UPPER, n, k, mxGetPr(out[0]), n, mxGetPr(V), n, mxGetPr(in[3]), 1, NULL, NULL, 0, &status);
  } else if (strcmp(what, "insert") == 0) {
    const ptrdiff_t p = (ptrdiff_t)mxGetN(in[3]);
    out[0] = resized(R, n, n + p);
    code = gpucholmod_insert_d(GPUCHOLMOD_UPPER, n, (ptrdiff_t)mxGetScalar(in[2]) - 1, p, mxGetPr(out[0]), n + p, mxGetPr(in[3]), n + p, NULL,
                               &status);
  } else {
    const ptrdiff_t gone = (ptrdiff_t)mxGetScalar(in[2]) - 1;
    mxArray *whole = mxDuplicateArray(R);
    code = gpucholmod_remove_d(GPUCHOLMOD_UPPER, n, 1, &gone, mxGetPr(whole), n, NULL, &status);
    out[0] = mxCreateDoubleMatrix(n - 1, n - 1, mxREAL);
    for (ptrdiff_t j = 0; j < n - 1; ++j) memcpy(mxGetPr(out[0]) + j * (n - 1), mxGetPr(whole) + j * n, sizeof(double) * (j + 1));
    mxDestroyArray(whole);
  }
  if (code != GPUCHOLMOD_OK) {
    mxDestroyArray(out[0]);
    out[0] = mxDuplicateArray(R);
  }
  if (count > 1) out[1] = mxCreateDoubleScalar(code);
  if (count > 2) out[2] = mxCreateDoubleScalar((double)status.pivot);
  if (count > 3) out[3] = mxCreateString(status.message);
}
