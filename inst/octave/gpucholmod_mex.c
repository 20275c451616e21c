/* What cholupdate_gpu.m and the others beside it call. Built by  make -f tools/library.mk octave
 *
 *   [result, code, pivot, message] = gpucholmod_mex (what, ...)
 *
 *   "update", R, V, weights      R1; "insert", R, j, X; "delete", R, j; "shift", R, i, j likewise. X: the columns of the new matrix. R: n x n, real, double or single,
 *                                upper triangular; V and X of the same class. Where code is not 0, the result is R.
 *   "hold", R, gpu, device       a factor with memory of its own: its number, of class uint64. "copy", F likewise
 *   "modify", F, V, weights, scale; "insert_held", F, j, X; "remove_held", F, j; "shift_held", F, i, j: [], F is changed. All that is given is double.
 *   "solve", F, B                X; "store", F; "diagonal", F; "logdet", F; "order", F; "scalar", F; "home", F: what there is to be told
 *   "release", F                 []; a factor that is not there is passed over
 *
 * code: gpucholmod_code. */
#include <stdlib.h>
#include <string.h>

#include "gpucholmod.h"
#include "mex.h"

/* Factors that have been given out, and not come back. */
static gpucholmod_factor **held = NULL;
static size_t held_count = 0;

struct call {
  const mxArray **in; /* behind the name */
  mxArray *out;
  gpucholmod_status status;
};

static ptrdiff_t columns(const mxArray *A) { return (ptrdiff_t)mxGetN(A); }
static ptrdiff_t whole(const mxArray *x) { return (ptrdiff_t)mxGetScalar(x); }
static mxArray *matrix(ptrdiff_t rows, ptrdiff_t cols, int single) {
  return mxCreateNumericMatrix((mwSize)rows, (mwSize)cols, single ? mxSINGLE_CLASS : mxDOUBLE_CLASS, mxREAL);
}

/* The numbers of an array as a matrix. */
static gpucholmod_matrix numbers(mxArray *A) {
  const gpucholmod_matrix of = {mxGetData(A), (ptrdiff_t)mxGetM(A), (ptrdiff_t)mxGetN(A), (ptrdiff_t)mxGetM(A),
                                mxIsSingle(A) ? GPUCHOLMOD_FLOAT : GPUCHOLMOD_DOUBLE};
  return of;
}
static gpucholmod_const_matrix read_only(const mxArray *A) { return gpucholmod_as_const(numbers((mxArray *)A)); }

/* The upper triangle of `from`, n x n, to `to`, in columns of ld numbers. */
static void copy_upper(const mxArray *from, ptrdiff_t n, mxArray *to) {
  const size_t size = mxGetElementSize(from), ld_from = mxGetM(from), ld = mxGetM(to);
  for (ptrdiff_t j = 0; j < n; ++j)
    memcpy((char *)mxGetData(to) + j * ld * size, (const char *)mxGetData(from) + j * ld_from * size, size * (size_t)(j + 1));
}

static int update(struct call *c) {
  c->out = mxDuplicateArray(c->in[0]);
  return gpucholmod_update(numbers(c->out), read_only(c->in[1]), mxGetPr(c->in[2]), 1, NULL, NULL, &c->status);
}

static int insert(struct call *c) {
  const ptrdiff_t n = columns(c->in[0]), at = whole(c->in[1]) - 1, m = n + columns(c->in[2]);
  copy_upper(c->in[0], n, c->out = matrix(m, m, mxIsSingle(c->in[0])));
  return gpucholmod_insert(numbers(c->out), at, read_only(c->in[2]), NULL, NULL, &c->status);
}

static int delete_row(struct call *c) {
  const ptrdiff_t n = columns(c->in[0]), gone = whole(c->in[1]) - 1;
  mxArray *all = mxDuplicateArray(c->in[0]);
  const int code = gpucholmod_delete(numbers(all), &gone, 1, NULL, NULL, &c->status);
  if (code == GPUCHOLMOD_OK) copy_upper(all, n - 1, c->out = matrix(n - 1, n - 1, mxIsSingle(all)));
  mxDestroyArray(all);
  return code;
}

static int shift(struct call *c) {
  c->out = mxDuplicateArray(c->in[0]);
  return gpucholmod_shift(numbers(c->out), whole(c->in[1]) - 1, whole(c->in[2]) - 1, NULL, NULL, &c->status);
}

static size_t place_of(const gpucholmod_factor *factor) {
  size_t i = 0;
  while (i < held_count && held[i] != factor) ++i;
  return i;
}
static gpucholmod_factor *named(const mxArray *number) {
  if (!mxIsUint64(number) || mxGetNumberOfElements(number) != 1) return NULL;
  return (gpucholmod_factor *)(size_t) * (const unsigned long long *)mxGetData(number);
}
static gpucholmod_factor *factor(struct call *c) {
  gpucholmod_factor *found = named(c->in[0]);
  if (found == NULL || place_of(found) == held_count) mexErrMsgTxt("gpucholmod_mex: there is no such factor");
  return found;
}

static void release_all(void) {
  while (held_count > 0) gpucholmod_factor_destroy(held[--held_count]);
  free(held);
  held = NULL;
}

/* A new factor becomes one of those that have been given out. */
static int give_out(struct call *c, int code, gpucholmod_factor *made) {
  if (code != GPUCHOLMOD_OK) return code;
  gpucholmod_factor **more = realloc(held, sizeof *held * (held_count + 1));
  if (more == NULL) {
    gpucholmod_factor_destroy(made);
    strcpy(c->status.message, "the host is out of memory");
    return GPUCHOLMOD_OUT_OF_MEMORY;
  }
  held = more;
  if (held_count == 0) {
    mexAtExit(release_all);
    mexLock();
  }
  held[held_count++] = made;
  c->out = mxCreateNumericMatrix(1, 1, mxUINT64_CLASS, mxREAL);
  *(unsigned long long *)mxGetData(c->out) = (size_t)made;
  return code;
}

static int hold(struct call *c) {
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  if (whole(c->in[1])) options.device = whole(c->in[2]) < 0 ? GPUCHOLMOD_ANY_GPU : (int)whole(c->in[2]);
  gpucholmod_factor *made = NULL;
  const int code = gpucholmod_factor_create(read_only(c->in[0]), 0, &options, &made, &c->status);
  return give_out(c, code, made);
}
static int copy(struct call *c) {
  gpucholmod_factor *made = NULL;
  const int code = gpucholmod_factor_copy(factor(c), &made, &c->status);
  return give_out(c, code, made);
}
static int release(struct call *c) {
  gpucholmod_factor *gone = named(c->in[0]);
  const size_t at = place_of(gone);
  if (at == held_count) return GPUCHOLMOD_OK;
  held[at] = held[--held_count];
  if (held_count == 0) mexUnlock();
  gpucholmod_factor_destroy(gone);
  return GPUCHOLMOD_OK;
}

static int modify(struct call *c) {
  return gpucholmod_factor_update(factor(c), read_only(c->in[1]), mxGetPr(c->in[2]), mxGetScalar(c->in[3]), NULL, NULL,
                                  &c->status);
}
static int insert_held(struct call *c) {
  return gpucholmod_factor_insert(factor(c), whole(c->in[1]) - 1, read_only(c->in[2]), NULL, NULL, &c->status);
}
static int remove_held(struct call *c) {
  const ptrdiff_t gone = whole(c->in[1]) - 1;
  return gpucholmod_factor_delete(factor(c), &gone, 1, NULL, NULL, &c->status);
}
static int shift_held(struct call *c) {
  return gpucholmod_factor_shift(factor(c), whole(c->in[1]) - 1, whole(c->in[2]) - 1, NULL, NULL, &c->status);
}

static int solve(struct call *c) {
  const gpucholmod_factor *F = factor(c);
  c->out = mxDuplicateArray(c->in[1]);
  return gpucholmod_factor_solve(F, GPUCHOLMOD_A, numbers(c->out), &c->status);
}
static int store(struct call *c) {
  const gpucholmod_factor *F = factor(c);
  const ptrdiff_t n = gpucholmod_factor_order(F);
  c->out = matrix(n, n, gpucholmod_factor_type(F) == GPUCHOLMOD_FLOAT);
  return gpucholmod_factor_get(F, numbers(c->out), NULL, &c->status);
}
static int diagonal(struct call *c) {
  const gpucholmod_factor *F = factor(c);
  c->out = matrix(gpucholmod_factor_order(F), 1, 0);
  return gpucholmod_factor_diagonal(F, mxGetPr(c->out), &c->status);
}
static int logdet(struct call *c) {
  const gpucholmod_factor *F = factor(c);
  c->out = matrix(1, 1, 0);
  return gpucholmod_factor_logdet(F, mxGetPr(c->out), &c->status);
}

static int number(struct call *c, double value) {
  c->out = mxCreateDoubleScalar(value);
  return GPUCHOLMOD_OK;
}
static int order(struct call *c) { return number(c, (double)gpucholmod_factor_order(factor(c))); }
static int scalar(struct call *c) { return number(c, gpucholmod_factor_type(factor(c)) == GPUCHOLMOD_FLOAT ? 4 : 8); }
static int home(struct call *c) { return number(c, gpucholmod_factor_on_gpu(factor(c))); }

static const struct command {
  const char *name;
  int takes; /* arguments behind the name */
  int (*run)(struct call *);
} commands[] = {{"update", 3, update},           {"insert", 3, insert},           {"delete", 2, delete_row}, {"shift", 3, shift}, {"hold", 3, hold},
                {"copy", 1, copy},               {"release", 1, release},         {"modify", 4, modify},     {"insert_held", 3, insert_held},
                {"remove_held", 2, remove_held}, {"shift_held", 3, shift_held}, {"solve", 2, solve},             {"store", 1, store},       {"diagonal", 1, diagonal},
                {"logdet", 1, logdet},           {"order", 1, order},             {"scalar", 1, scalar},     {"home", 1, home}};

void mexFunction(int count, mxArray *out[], int given, const mxArray *in[]) {
  char what[16];
  const struct command *command = commands, *const end = commands + sizeof commands / sizeof *commands;
  if (given < 1 || mxGetString(in[0], what, sizeof what) != 0) mexErrMsgTxt("gpucholmod_mex: called by cholupdate_gpu and others only");
  while (command != end && strcmp(command->name, what) != 0) ++command;
  if (command == end || given != command->takes + 1) mexErrMsgTxt("gpucholmod_mex: called by cholupdate_gpu and others only");
  struct call call = {in + 1, NULL, {0, 0, 0, 0, 0, {0}}};
  const int code = command->run(&call);
  const int keeps = command - commands < 4; /* R of the caller's */
  if (code != GPUCHOLMOD_OK && call.out != NULL) mxDestroyArray(call.out);
  if (code != GPUCHOLMOD_OK || call.out == NULL) call.out = keeps ? mxDuplicateArray(in[1]) : matrix(0, 0, 0);
  out[0] = call.out;
  if (count > 1) out[1] = mxCreateDoubleScalar(code);
  if (count > 2) out[2] = mxCreateDoubleScalar((double)call.status.pivot);
  if (count > 3) out[3] = mxCreateString(call.status.message);
}
