/* gpucholmod: rank-k modification of dense Cholesky factors, for programs in C and what can call C.
 *
 * A = R'R with R upper, or A = RR' with R lower (options->triangle). The other triangle may hold anything: it is
 * neither read nor written. Functions whose names begin with gpucholmod_factor_ use a factor with memory of its own, in
 * the host's memory or on a GPU; the others work in the caller's memory.
 *
 * Numbers may be in the memory of a GPU, as their pointers tell: all of a call that has options->device, where that is
 * not GPUCHOLMOD_HOST; all of a call for a factor on that GPU but modifications'; and the matrices of some calls for a
 * batch on that GPU (gpucholmod_batch.h). Everything else is in the host's memory. R and V stay on the GPU; what else
 * is there, and a factor with an entry on its diagonal that is not positive, goes by way of the host's memory.
 *
 *     double R[] = {2, 0, 1, 3};    R = [2 1; 0 3], by columns
 *     double V[] = {0.5, 1};        A becomes A + VV'
 *     gpucholmod_status status;
 *     if (gpucholmod_update(gpucholmod_double_matrix(R, 2, 2, 2), gpucholmod_const_double_matrix(V, 2, 1, 2), NULL, 1,
 *                           NULL, NULL, &status) != GPUCHOLMOD_OK)
 *       puts(status.message);
 *
 * Every function with a status returns GPUCHOLMOD_OK or another gpucholmod_code, and describes it in *status, which may
 * be NULL. If the code is neither GPUCHOLMOD_OK nor GPUCHOLMOD_HALF_MODIFIED, everything that the function was to
 * change has the same bits as before, unless its comment says otherwise. The sizes of a matrix are checked before its
 * numbers are read: one that is negative, does not fit the others, or makes a matrix of more than PTRDIFF_MAX bytes is
 * GPUCHOLMOD_BAD_ARGUMENT.
 *
 * Functions run in the calling thread alone, unless options->threads allows more; BLAS, LAPACK and CUDA may start
 * threads of their own. Several threads may call functions at once for different factors; those that work on a GPU wait
 * for each other. No function calls R. A progress function must not call functions that work on a GPU.
 *
 * A program links with libgpucholmod, which tools/library.mk builds. A package of R includes this header after
 * #define GPUCHOLMOD_FROM_R: gpucholmod_r.h says what else it does. In C++: gpucholmod.hpp. */
#ifndef GPUCHOLMOD_H
#define GPUCHOLMOD_H

#include <stddef.h>

#include "gpucholmod_matrix.h"

#define GPUCHOLMOD_ABI 2 /* increases when programs that were compiled with an older header have to be compiled again */

#ifdef GPUCHOLMOD_VISIBLE /* the build of the library defines it: other programs see the functions */
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- What functions are given, and what they return ---- */

typedef enum gpucholmod_code {
  GPUCHOLMOD_OK = 0,
  GPUCHOLMOD_NOT_POSITIVE_DEFINITE, /* status->pivot: order of the first leading minor that is not positive */
  GPUCHOLMOD_BAD_ARGUMENT,
  GPUCHOLMOD_NOT_FINITE,            /* status->row, col: the first number that is NaN or infinite */
  GPUCHOLMOD_BAD_DIAGONAL,          /* status->row: the entry of the diagonal of R that is zero or too small */
  GPUCHOLMOD_OVERFLOW,              /* a number is too large for the type of the factor, or of the result. Solutions and
                                       inverses that are too large for doubles are GPUCHOLMOD_OK, and not finite */
  GPUCHOLMOD_BACKEND_UNAVAILABLE,   /* a GPU was asked for, and none can be used */
  GPUCHOLMOD_OUT_OF_MEMORY,
  GPUCHOLMOD_CUDA_FAILURE,
  GPUCHOLMOD_INTERNAL,
  GPUCHOLMOD_NOT_BUILT,             /* a GPU was asked for, and this build has no code for GPUs */
  GPUCHOLMOD_HALF_MODIFIED,         /* the call failed while it was changing the factor, whose numbers are lost;
                                       right-hand sides are as they were. status->message tells why, and status->pivot
                                       is set if the matrix was not positive definite. A gpucholmod_factor can then only
                                       be destroyed: every other function with a status returns this code. Can happen to
                                       factors on a GPU, with options->trusted, and to a batch if memory runs out. */
  GPUCHOLMOD_STOPPED                /* options->progress returned a value that is not 0 */
} gpucholmod_code;

/* What went wrong. Numbers count from 1; 0 means that the field does not apply. */
typedef struct gpucholmod_status {
  int code;                /* gpucholmod_code */
  ptrdiff_t pivot;
  ptrdiff_t row, col;
  ptrdiff_t member;        /* of a batch, or of the modifications of gpucholmod_solve_modified() */
  char argument[32];       /* the argument that is wrong: "V", "sides->z", "options->threads"; "": none is named */
  char message[240];
} gpucholmod_status;

/* Right-hand sides that are modified along with a factor. They belong to a regression with A = X'X and b = X'y: z is
 * the solution of R'z = b, and becomes that of the modified factor for b + V diag(weights) Y; rss likewise (LINPACK's
 * dchud and dchdd). A row of R whose diagonal entry is negative is multiplied by -1, and the row of z with it; those of
 * a factor or batch that is held were multiplied when it was made, and z belongs to what is held.
 *
 * z and Y are double, whatever the type of the factor, and finite, also in that type (GPUCHOLMOD_OVERFLOW). */
typedef struct gpucholmod_right_sides {
  gpucholmod_matrix z;       /* n x m. Insertion of p rows: n + p x m, whose first n rows are given */
  gpucholmod_const_matrix Y; /* k x m, a row for each column of V. Insertion: p x m, the new rows of b. Deletion and
                                shift: not used */
  double *rss;               /* m residual sums of squares, not negative, or NULL. NaN stays NaN; NaN on return if a sum
                                would have become negative */
} gpucholmod_right_sides;

enum gpucholmod_triangle { GPUCHOLMOD_UPPER = 0, GPUCHOLMOD_LOWER = 1 };

#define GPUCHOLMOD_HOST (-1)       /* options->device: ordinary memory */
#define GPUCHOLMOD_ANY_GPU (-2)    /* the first GPU that can be used */
#define GPUCHOLMOD_ALL_THREADS (-1)

/* Returns 0 to continue, anything else to stop the call. Is called now and then, by the thread that called the
 * function. done: the share of the work that is done, 0 to 1. data: options->progress_data. */
typedef int (*gpucholmod_progress)(double done, void *data);

/* How a function works. NULL instead of options means GPUCHOLMOD_OPTIONS_INIT:
 *
 *     gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
 *     options.triangle = GPUCHOLMOD_LOWER;
 *
 * The comment of each function names the options that it has; any other that is not as in GPUCHOLMOD_OPTIONS_INIT is
 * GPUCHOLMOD_BAD_ARGUMENT. `size` tells the library which fields the program knows. Fields that later versions add come
 * last, and are 0 in GPUCHOLMOD_OPTIONS_INIT. */
typedef struct gpucholmod_options {
  size_t size;                  /* sizeof(gpucholmod_options) */
  int triangle;                 /* gpucholmod_triangle: of every factor and symmetric matrix of the call */
  int trusted;                  /* 1: R has finite numbers and a positive diagonal, as these functions leave it. It is
                                   then not checked before it changes; if a number that the call reads is not so:
                                   GPUCHOLMOD_HALF_MODIFIED */
  int threads;                  /* most threads to compute with; 0: the calling one alone; GPUCHOLMOD_ALL_THREADS: as
                                   many as are of use */
  int device;                   /* where a factor is made, and numbers of a call may be: GPUCHOLMOD_HOST,
                                   GPUCHOLMOD_ANY_GPU, or the number of a GPU, from 0 */
  void *workspace;              /* memory of workspace_size bytes that the call may use; NULL: the call allocates it */
  size_t workspace_size;
  gpucholmod_progress progress; /* or NULL. A stopped call changes nothing; for that, a call with a progress function
                                   computes into a second factor */
  void *progress_data;
  void *stream;                 /* a cudaStream_t; NULL: the default one. Work on numbers in the memory of a GPU begins
                                   when what is queued in it is done. Calls return when all is done; while a stream is
                                   captured, they are GPUCHOLMOD_BAD_ARGUMENT */
  int *verdict;                 /* NULL, or a word in the memory of the GPU: the call then waits for nothing, see
                                   gpucholmod_update_into() */
  const int *devices;           /* the numbers of device_count GPUs that a factor lies on together, instead of device;
                                   NULL: there is one place. All numbers of calls are then in the host's memory */
  ptrdiff_t device_count;
} gpucholmod_options;

#define GPUCHOLMOD_OPTIONS_INIT \
  {sizeof(gpucholmod_options), GPUCHOLMOD_UPPER, 0, 0, GPUCHOLMOD_HOST, 0, 0, 0, 0, 0, 0, 0, 0}

enum gpucholmod_system {
  GPUCHOLMOD_A = 0,           /* A x = b */
  GPUCHOLMOD_R_TRANSPOSED,    /* R'x = b, for R upper; R x = b for R lower: forward substitution */
  GPUCHOLMOD_R                /* R x = b, for R upper; R'x = b for R lower: back substitution */
};

/* Returns the GPUCHOLMOD_ABI of the library. */
int gpucholmod_abi(void);

/* Returns GPUCHOLMOD_OK and the name of a GPU as status->message, or the reason why this GPU cannot be used. device:
 * its number, or GPUCHOLMOD_ANY_GPU. */
int gpucholmod_gpu(int device, gpucholmod_status *status);

/* ---- Factors in the caller's memory. R is n x n. All matrices of a call have the type of R. ----
 *
 * A row of an upper factor, or a column of a lower one, whose diagonal entry is negative is multiplied by -1 first,
 * which does not change A. A factor with zeros on its diagonal can be updated by weights that are not negative;
 * everything that needs a positive definite matrix returns GPUCHOLMOD_BAD_DIAGONAL. `sides` and `options` may be
 * NULL. */

/* R <- the factor of scale A + V diag(weights) V'. V: n x k; weights: k, of any sign, or NULL: 1; scale: positive.
 * Options: triangle, threads, progress, device, stream; trusted and workspace for R in the host's memory. */
int gpucholmod_update(gpucholmod_matrix R, gpucholmod_const_matrix V, const double *weights, double scale,
                      const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                      gpucholmod_status *status);

/* out <- what gpucholmod_update() makes of R, which stays. Unless the code is GPUCHOLMOD_OK, the triangle of out is
 * lost. No part of out is one of R or V. On a GPU this takes less time, and no memory of the size of R. Options: the
 * same, and verdict.
 *
 * With a verdict, the call only queues the modification, behind what options->stream holds; what is queued there
 * afterwards waits for it. *verdict is then 0, or 1: out is lost, R stays, and a call without verdict makes the
 * factor or says why there is none. It is 1 where the matrix is not positive definite, numbers need scaling or are
 * not finite, or the factor is so ill-conditioned that the host has to decide how to go on. Takes R, out and V in
 * the memory of one GPU, R and out upper, with columns that begin at multiples of 16 bytes, and the same ld;
 * weights in the host's memory, none of them 0; no right-hand sides. Everything else is GPUCHOLMOD_BAD_ARGUMENT. V
 * may change as soon as stream has come past the call. */
int gpucholmod_update_into(gpucholmod_const_matrix R, gpucholmod_matrix out, gpucholmod_const_matrix V,
                           const double *weights, double scale, const gpucholmod_right_sides *sides,
                           const gpucholmod_options *options, gpucholmod_status *status);

/* Returns the bytes of options->workspace that gpucholmod_update() needs for R (n x n) and V (n x k) of this
 * gpucholmod_type; SIZE_MAX: more than there can be; 0: an argument is wrong. Calls with right-hand sides, a progress
 * function, or numbers near the ends of the range allocate other memory. */
size_t gpucholmod_workspace(ptrdiff_t n, ptrdiff_t k, int type);

/* Adds p rows and columns to A; the first of them becomes number `at`, 0 .. n. R: n + p x n + p, whose first n rows and
 * columns are the factor of A. X: n + p x p, the new columns of the new A. Options, also of the next two functions:
 * triangle, threads, progress, device, stream. */
int gpucholmod_insert(gpucholmod_matrix R, ptrdiff_t at, gpucholmod_const_matrix X, const gpucholmod_right_sides *sides,
                      const gpucholmod_options *options, gpucholmod_status *status);

/* Deletes `count` rows and columns of A; rows: their numbers, from 0, ascending. The first n - count rows and columns
 * of R become the new factor; the others stay. */
int gpucholmod_delete(gpucholmod_matrix R, const ptrdiff_t *rows, ptrdiff_t count, const gpucholmod_right_sides *sides,
                      const gpucholmod_options *options, gpucholmod_status *status);

/* Moves row and column `from` of A to be number `to`, both from 0; the ones between move by one place. */
int gpucholmod_shift(gpucholmod_matrix R, ptrdiff_t from, ptrdiff_t to, const gpucholmod_right_sides *sides,
                     const gpucholmod_options *options, gpucholmod_status *status);

/* B (n x m) <- the solution of a gpucholmod_system with right-hand sides B, computed in double precision. m: at most
 * INT_MAX. Options: triangle. */
int gpucholmod_solve(gpucholmod_const_matrix R, int system, gpucholmod_matrix B, const gpucholmod_options *options,
                     gpucholmod_status *status);

/* Many modifications of one matrix A that stays as it is, A_j = scale_j A + V_j diag(w_j) V_j', j = 1 .. count, and
 * which results are wanted of each. All matrices are double, whatever the type of the factor. */
typedef struct gpucholmod_modifications {
  ptrdiff_t count;
  const ptrdiff_t *columns;   /* count: the columns of each V_j */
  gpucholmod_const_matrix V;  /* n x sum(columns): all V_j, side by side */
  const double *weights;      /* sum(columns), of any sign; NULL: 1 */
  const double *scales;       /* count, positive; NULL: 1 */
  ptrdiff_t m;                /* right-hand sides of each */
  gpucholmod_const_matrix b;  /* n x m, the same for all; or n x m count, side by side */
  gpucholmod_matrix solution; /* n x m count: A_j^-1 b; if it has no elements, it is not wanted */
  double *quadratic;          /* m x count: the diagonals of b'A_j^-1 b; NULL: not wanted */
  double *logdet;             /* count: log det A_j; NULL: not wanted */
  ptrdiff_t *pivots;          /* count: 0, or the order of the first leading minor that is not positive; or NULL */
} gpucholmod_modifications;

/* Solves with all A_j. If some of them are not positive definite, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE,
 * status->member is the first of them, their results are NaN, and the results of all others are there. With another
 * code than this and GPUCHOLMOD_OK, nothing has changed. Options: triangle, threads, progress. */
int gpucholmod_solve_modified(gpucholmod_const_matrix R, const gpucholmod_modifications *what,
                              const gpucholmod_options *options, gpucholmod_status *status);

/* A (n x n, symmetric, of which one triangle is read and written) <- its factor, computed in double precision; and out
 * (n x n, not R) <- the inverse of A, both triangles. Options: triangle. */
int gpucholmod_factorise(gpucholmod_matrix A, const gpucholmod_options *options, gpucholmod_status *status);
int gpucholmod_inverse(gpucholmod_const_matrix R, gpucholmod_matrix out, const gpucholmod_options *options,
                       gpucholmod_status *status);

/* *out <- log det A, which is -infinity if the diagonal of R has a zero; and an estimate of 1 / (||A|| ||A^-1||) in the
 * 1-norm, by the method of Hager and Higham. Options: triangle. */
int gpucholmod_logdet(gpucholmod_const_matrix R, double *out, const gpucholmod_options *options,
                      gpucholmod_status *status);
int gpucholmod_rcond(gpucholmod_const_matrix R, double *out, const gpucholmod_options *options,
                     gpucholmod_status *status);

/* ---- Factors with memory of their own. All matrices may be double or float, whatever the type of the factor. ---- */

typedef struct gpucholmod_factor gpucholmod_factor;

/* *made <- a factor of the type of R, a copy of R (n x n), with room for `capacity` rows and columns, or n if that is
 * more. A capacity that no memory has is GPUCHOLMOD_OUT_OF_MEMORY. Options: triangle, threads, device, devices,
 * stream. */
int gpucholmod_factor_create(gpucholmod_const_matrix R, ptrdiff_t capacity, const gpucholmod_options *options,
                             gpucholmod_factor **made, gpucholmod_status *status);

/* *made <- a copy in the same kind of memory; gives the memory back (NULL is allowed). */
int gpucholmod_factor_copy(const gpucholmod_factor *factor, gpucholmod_factor **made, gpucholmod_status *status);
void gpucholmod_factor_destroy(gpucholmod_factor *factor);

/* Return n, the most rows and columns without growing, the gpucholmod_type, and 1 if it is on a GPU; 0 for NULL. */
ptrdiff_t gpucholmod_factor_order(const gpucholmod_factor *factor);
ptrdiff_t gpucholmod_factor_capacity(const gpucholmod_factor *factor);
int gpucholmod_factor_type(const gpucholmod_factor *factor);
int gpucholmod_factor_on_gpu(const gpucholmod_factor *factor);

/* As gpucholmod_update(), with the same bits as for an upper factor. A factor in the host's memory, of at most 256 MiB,
 * from which columns are taken away keeps as much memory again from the 17th time on. Options: threads, progress,
 * stream. */
int gpucholmod_factor_update(gpucholmod_factor *factor, gpucholmod_const_matrix V, const double *weights, double scale,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);

/* As gpucholmod_insert(), gpucholmod_delete() and gpucholmod_shift(). A factor that has no room for new rows and
 * columns grows. Options: threads, progress, stream. */
int gpucholmod_factor_insert(gpucholmod_factor *factor, ptrdiff_t at, gpucholmod_const_matrix X,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);
int gpucholmod_factor_delete(gpucholmod_factor *factor, const ptrdiff_t *rows, ptrdiff_t count,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);
int gpucholmod_factor_shift(gpucholmod_factor *factor, ptrdiff_t from, ptrdiff_t to,
                            const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                            gpucholmod_status *status);

/* As gpucholmod_solve(), with R upper, and gpucholmod_solve_modified(). Options of the latter: threads, progress. */
int gpucholmod_factor_solve(const gpucholmod_factor *factor, int system, gpucholmod_matrix B,
                            gpucholmod_status *status);
int gpucholmod_factor_solve_modified(const gpucholmod_factor *factor, const gpucholmod_modifications *what,
                                     const gpucholmod_options *options, gpucholmod_status *status);

/* R (n x n) <- the factor, its other triangle zero; and out (n, in the host's memory) <- its diagonal. Options:
 * triangle, stream. */
int gpucholmod_factor_get(const gpucholmod_factor *factor, gpucholmod_matrix R, const gpucholmod_options *options,
                          gpucholmod_status *status);
int gpucholmod_factor_diagonal(const gpucholmod_factor *factor, double *out, gpucholmod_status *status);

/* As gpucholmod_inverse(), gpucholmod_logdet() and gpucholmod_rcond(). */
int gpucholmod_factor_inverse(const gpucholmod_factor *factor, gpucholmod_matrix out, gpucholmod_status *status);
int gpucholmod_factor_logdet(const gpucholmod_factor *factor, double *out, gpucholmod_status *status);
int gpucholmod_factor_rcond(const gpucholmod_factor *factor, double *out, gpucholmod_status *status);

#ifdef __cplusplus
}
#endif

#include "gpucholmod_batch.h"
#ifdef GPUCHOLMOD_VISIBLE
#pragma GCC visibility pop
#endif

#ifdef GPUCHOLMOD_FROM_R
#include "gpucholmod_r.h"
#endif

#endif
