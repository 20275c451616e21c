/* gpucholmod: rank-k modification of dense Cholesky factors, for programs in C and languages that can call C.
 *
 * A = R'R with R upper, or A = RR' with R lower (options->triangle). The other triangle may hold anything: it is
 * neither read nor written. Functions whose names begin with gpucholmod_factor_ or gpucholmod_batch_ use factors with
 * memory of their own, in the host's memory or on a GPU; the other functions work in the caller's memory.
 *
 * Numbers may be in the memory of a GPU, as the library finds out from their pointers: all numbers of a call in which
 * options->device is not GPUCHOLMOD_HOST; all numbers of a call for a factor on that GPU, except those of
 * gpucholmod_modifications; and the matrices of some calls for a batch on that GPU (gpucholmod_batch.h). All other
 * numbers must be in the host's memory. R and V stay on the GPU. Other numbers on a GPU, and a factor with an entry on
 * its diagonal that is not positive, are copied by way of the host's memory.
 *
 *     double R[] = {2, 0, 1, 3};    R = [2 1; 0 3], by columns
 *     double V[] = {0.5, 1};        A becomes A + VV'
 *     gpucholmod_status status;
 *     if (gpucholmod_update(gpucholmod_double_matrix(R, 2, 2, 2), gpucholmod_const_double_matrix(V, 2, 1, 2), NULL, 1,
 *                           NULL, NULL, &status) != GPUCHOLMOD_OK)
 *       puts(status.message);
 *
 * Every function with a status returns GPUCHOLMOD_OK or another gpucholmod_code, and describes the code in *status;
 * `status` may be NULL. If the code is neither GPUCHOLMOD_OK nor GPUCHOLMOD_HALF_MODIFIED, everything that the function
 * was to change has the same bits as before, unless the comment of the function says otherwise. The sizes of a matrix
 * are checked before its numbers are read. The code is GPUCHOLMOD_BAD_ARGUMENT if a size is negative, does not fit the
 * other sizes, or makes a matrix of more than PTRDIFF_MAX bytes.
 *
 * Functions run in the calling thread alone, unless options->threads allows more threads; BLAS, LAPACK and CUDA may
 * start threads of their own. Several threads may call functions at once for different factors; calls that work on a
 * GPU wait for each other. No function calls R. A progress function must not call functions that work on a GPU.
 *
 * A program links with libgpucholmod, which tools/library.mk builds. A package of R includes this header after
 * #define GPUCHOLMOD_FROM_R: gpucholmod_r.h says what else such a package does. In C++: gpucholmod.hpp. */
#ifndef GPUCHOLMOD_H
#define GPUCHOLMOD_H

#include <stddef.h>

#include "gpucholmod_matrix.h"

#define GPUCHOLMOD_ABI 2 /* increases when programs that were compiled with an older header have to be compiled again */

#ifdef GPUCHOLMOD_VISIBLE /* defined when the library is built: makes the functions visible to other programs */
#pragma GCC visibility push(default)
#endif
#ifdef __cplusplus
extern "C" {
#endif

/* ---- Arguments and results of functions ---- */

typedef enum gpucholmod_code {
  GPUCHOLMOD_OK = 0,
  GPUCHOLMOD_NOT_POSITIVE_DEFINITE, /* status->pivot: order of the first leading minor that is not positive */
  GPUCHOLMOD_BAD_ARGUMENT,
  GPUCHOLMOD_NOT_FINITE,            /* status->row, col: the first number that is NaN or infinite */
  GPUCHOLMOD_BAD_DIAGONAL,          /* status->row: the entry of the diagonal of R that is zero or too small */
  GPUCHOLMOD_OVERFLOW,              /* a number is too large for the type of the factor, or of the result. Solutions and
                                       inverses that are too large for doubles are no error, but are not finite */
  GPUCHOLMOD_BACKEND_UNAVAILABLE,   /* a GPU was asked for, and none can be used */
  GPUCHOLMOD_OUT_OF_MEMORY,
  GPUCHOLMOD_CUDA_FAILURE,
  GPUCHOLMOD_INTERNAL,
  GPUCHOLMOD_NOT_BUILT,             /* a GPU was asked for, and this build has no code for GPUs */
  GPUCHOLMOD_HALF_MODIFIED,         /* the call failed while it was changing the factor, whose numbers are lost;
                                       right-hand sides are as they were. status->message tells why, and status->pivot
                                       is set if the matrix was not positive definite. A gpucholmod_factor or
                                       gpucholmod_batch can then only be destroyed: every other function with a status
                                       returns this code. Can happen to factors on a GPU, with options->trusted, and to
                                       a batch if memory runs out. */
  GPUCHOLMOD_STOPPED                /* options->progress returned a value that is not 0 */
} gpucholmod_code;

/* Describes an error. Numbers count from 1; 0 means that the field does not apply. */
typedef struct gpucholmod_status {
  int code;                /* gpucholmod_code */
  ptrdiff_t pivot;
  ptrdiff_t row, col;
  ptrdiff_t member;        /* number of a member of a batch, or of a modification of gpucholmod_solve_modified() */
  char argument[32];       /* the name of the wrong argument: "V", "sides->z", "options->threads"; "": none is named */
  char message[240];
} gpucholmod_status;

/* Right-hand sides that are modified along with a factor. They belong to a regression with A = X'X and b = X'y: z is
 * the solution of R'z = b. A modification replaces z by the solution for the modified factor and
 * scale b + V diag(weights) Y, and rss by the residual sums of squares of that regression (LINPACK's dchud and dchdd).
 * A row of R whose diagonal entry is negative is multiplied by -1, and the row of z with it. Such rows of a
 * gpucholmod_factor or gpucholmod_batch were multiplied when it was made, so z has to belong to the rows that it holds.
 *
 * z and Y are double, whatever the type of the factor. Their numbers must be finite, also as numbers of that type; if a
 * number is too large for that type, the code is GPUCHOLMOD_OVERFLOW. */
typedef struct gpucholmod_right_sides {
  gpucholmod_matrix z;       /* n x m. Insertion of p rows: n + p x m, of which the caller gives the first n rows */
  gpucholmod_const_matrix Y; /* k x m, a row for each column of V. Insertion: p x m, the new rows of b. Deletion and
                                shift: not used */
  double *rss;               /* m residual sums of squares, not negative, or NULL. A sum that is NaN stays NaN; a sum
                                that would have become negative is NaN on return */
} gpucholmod_right_sides;

enum gpucholmod_triangle { GPUCHOLMOD_UPPER = 0, GPUCHOLMOD_LOWER = 1 };

#define GPUCHOLMOD_HOST (-1)       /* options->device: ordinary memory */
#define GPUCHOLMOD_ANY_GPU (-2)    /* the first GPU that can be used */
#define GPUCHOLMOD_ALL_THREADS (-1)

/* A function that is called now and then by the thread that made the call. Returns 0 to continue, anything else to stop
 * the call. done: the share of the work that is done, 0 to 1. data: options->progress_data. */
typedef int (*gpucholmod_progress)(double done, void *data);

/* Says how a function works. NULL instead of options means GPUCHOLMOD_OPTIONS_INIT:
 *
 *     gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
 *     options.triangle = GPUCHOLMOD_LOWER;
 *
 * The comment of each function names the options that the function has. If any other option differs from
 * GPUCHOLMOD_OPTIONS_INIT, the code is GPUCHOLMOD_BAD_ARGUMENT. `size` tells the library which fields the program
 * knows. Later versions add fields at the end, which are 0 in GPUCHOLMOD_OPTIONS_INIT. */
typedef struct gpucholmod_options {
  size_t size;                  /* sizeof(gpucholmod_options) */
  int triangle;                 /* the gpucholmod_triangle of every factor and symmetric matrix of the call */
  int trusted;                  /* 1: the caller declares that R has finite numbers and a positive diagonal, as these
                                   functions leave R. R is then not checked before it changes; if a number that the call
                                   reads is not as declared, the code is GPUCHOLMOD_HALF_MODIFIED */
  int threads;                  /* most threads to compute with; 0: the calling thread alone; GPUCHOLMOD_ALL_THREADS: as
                                   many as are of use */
  int device;                   /* the place where a factor is made, and where numbers of a call may be:
                                   GPUCHOLMOD_HOST, GPUCHOLMOD_ANY_GPU, or the number of a GPU, from 0 */
  void *workspace;              /* memory of workspace_size bytes that the call may use; NULL: the call allocates it */
  size_t workspace_size;
  gpucholmod_progress progress; /* or NULL. A call that is stopped changes nothing; for that reason, a call with a
                                   progress function computes into a second factor */
  void *progress_data;
  void *stream;                 /* a cudaStream_t; NULL: the default stream. Work on numbers in the memory of a GPU
                                   begins when the work that is already in the stream is done. Calls return when all
                                   work is done. While the stream is captured, the code of calls is
                                   GPUCHOLMOD_BAD_ARGUMENT */
  int *verdict;                 /* NULL, or an int in the memory of the GPU: the call then waits for nothing, see
                                   gpucholmod_update_into() */
  const int *devices;           /* the numbers of device_count GPUs that hold a factor together, instead of `device`;
                                   NULL: one place holds the factor. All numbers of calls for a factor on several GPUs
                                   must be in the host's memory */
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

/* Returns GPUCHOLMOD_OK, and stores the name of a GPU in status->message; or returns another code, and stores the
 * reason why this GPU cannot be used. device: the number of the GPU, or GPUCHOLMOD_ANY_GPU. */
int gpucholmod_gpu(int device, gpucholmod_status *status);

/* ---- Factors in the caller's memory. R is n x n. All matrices of a call have the type of R. ----
 *
 * A row of an upper factor, or a column of a lower factor, whose diagonal entry is negative is first multiplied by -1,
 * which does not change A. A factor with zeros on its diagonal can be updated by weights that are not negative; every
 * function that needs a positive definite matrix returns GPUCHOLMOD_BAD_DIAGONAL. `sides` and `options` may be NULL. */

/* Replaces R by the factor of scale A + V diag(weights) V'. V: n x k; weights: k, of any sign, or NULL: 1; scale:
 * positive. Options: triangle, threads, progress, device, stream; trusted and workspace for R in the host's memory. */
int gpucholmod_update(gpucholmod_matrix R, gpucholmod_const_matrix V, const double *weights, double scale,
                      const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                      gpucholmod_status *status);

/* Computes in out the factor that gpucholmod_update() would compute; R stays as it is. Unless the code is
 * GPUCHOLMOD_OK, the triangle of out is lost. out must not overlap R or V. On a GPU this function takes less time than
 * gpucholmod_update(), and no memory of the size of R. Options: those of gpucholmod_update(), and verdict.
 *
 * With a verdict, the call only queues the modification. The modification begins after the work that options->stream
 * already holds, and work that is queued there afterwards waits for the modification. *verdict is then 0 for success,
 * or 1: out is lost, R stays as it is, and a call without a verdict makes the factor or says why there is none.
 * *verdict is 1 if the matrix is not positive definite, if numbers need scaling or are not finite, or if the factor is
 * so ill-conditioned that the host has to decide how to go on. Such a call takes R, out and V in the memory of one GPU,
 * R and out upper, with columns that begin at multiples of 16 bytes and the same ld, at most 4 n + 4096; at least one
 * column of V; weights in the host's memory, none of them 0; no right-hand sides and no progress function. For anything
 * else the code is GPUCHOLMOD_BAD_ARGUMENT. V may change as soon as the stream has passed the call. */
int gpucholmod_update_into(gpucholmod_const_matrix R, gpucholmod_matrix out, gpucholmod_const_matrix V,
                           const double *weights, double scale, const gpucholmod_right_sides *sides,
                           const gpucholmod_options *options, gpucholmod_status *status);

/* Returns the bytes of options->workspace that gpucholmod_update() needs for R (n x n) and V (n x k) of this
 * gpucholmod_type; SIZE_MAX if these are more than there can be; 0 if an argument is wrong. Calls with right-hand
 * sides, a progress function, or numbers near the ends of the range allocate other memory. */
size_t gpucholmod_workspace(ptrdiff_t n, ptrdiff_t k, int type);

/* Inserts p rows and columns into A; the first of them becomes number `at`, 0 .. n. R: n + p x n + p, whose first n
 * rows and columns are the factor of A. X: n + p x p, the new columns of the new A. Options, also of the next two
 * functions: triangle, threads, progress, device, stream. */
int gpucholmod_insert(gpucholmod_matrix R, ptrdiff_t at, gpucholmod_const_matrix X, const gpucholmod_right_sides *sides,
                      const gpucholmod_options *options, gpucholmod_status *status);

/* Deletes `count` rows and columns of A; rows: their numbers, from 0, ascending. The first n - count rows and columns
 * of R become the new factor; the other rows and columns stay as they are. */
int gpucholmod_delete(gpucholmod_matrix R, const ptrdiff_t *rows, ptrdiff_t count, const gpucholmod_right_sides *sides,
                      const gpucholmod_options *options, gpucholmod_status *status);

/* Moves row and column `from` of A to number `to`, both from 0; the rows and columns in between move by one place. */
int gpucholmod_shift(gpucholmod_matrix R, ptrdiff_t from, ptrdiff_t to, const gpucholmod_right_sides *sides,
                     const gpucholmod_options *options, gpucholmod_status *status);

/* Replaces B (n x m) by the solution of a gpucholmod_system with right-hand sides B, computed in double precision. m:
 * at most INT_MAX. Options: triangle. */
int gpucholmod_solve(gpucholmod_const_matrix R, int system, gpucholmod_matrix B, const gpucholmod_options *options,
                     gpucholmod_status *status);

/* Describes many modifications of one matrix A, which stays as it is: A_j = scale_j A + V_j diag(w_j) V_j', j = 1 ..
 * count; and the results that are wanted of each. All matrices are double, whatever the type of the factor. */
typedef struct gpucholmod_modifications {
  ptrdiff_t count;
  const ptrdiff_t *columns;   /* count: the number of columns of each V_j */
  gpucholmod_const_matrix V;  /* n x sum(columns): all V_j, side by side */
  const double *weights;      /* sum(columns), of any sign; NULL: 1 */
  const double *scales;       /* count, positive; NULL: 1 */
  ptrdiff_t m;                /* number of right-hand sides of each A_j */
  gpucholmod_const_matrix b;  /* n x m, the same for all A_j; or n x m count, side by side */
  gpucholmod_matrix solution; /* n x m count: A_j^-1 b; a matrix without elements: not wanted */
  double *quadratic;          /* m x count: the diagonals of b'A_j^-1 b; NULL: not wanted */
  double *logdet;             /* count: log det A_j; NULL: not wanted */
  ptrdiff_t *pivots;          /* count: 0, or the order of the first leading minor that is not positive; or NULL */
} gpucholmod_modifications;

/* Solves with all A_j. If some A_j are not positive definite, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE,
 * status->member is the number of the first, the results of these A_j are NaN, and the results of all others are
 * stored. If the code is neither this code nor GPUCHOLMOD_OK, nothing has changed. Options: triangle, threads,
 * progress. */
int gpucholmod_solve_modified(gpucholmod_const_matrix R, const gpucholmod_modifications *what,
                              const gpucholmod_options *options, gpucholmod_status *status);

/* The first function replaces A (n x n, symmetric, of which one triangle is read and written) by its factor, computed
 * in double precision. The second function computes the inverse of A, both triangles, in out (n x n, not R). Options:
 * triangle. */
int gpucholmod_factorise(gpucholmod_matrix A, const gpucholmod_options *options, gpucholmod_status *status);
int gpucholmod_inverse(gpucholmod_const_matrix R, gpucholmod_matrix out, const gpucholmod_options *options,
                       gpucholmod_status *status);

/* The first function stores log det A in *out, -infinity if the diagonal of R has a zero. The second function stores an
 * estimate of 1 / (||A|| ||A^-1||) in the 1-norm in *out, by the method of Hager and Higham. Options: triangle. */
int gpucholmod_logdet(gpucholmod_const_matrix R, double *out, const gpucholmod_options *options,
                      gpucholmod_status *status);
int gpucholmod_rcond(gpucholmod_const_matrix R, double *out, const gpucholmod_options *options,
                     gpucholmod_status *status);

/* ---- Factors with memory of their own. All matrices may be double or float, whatever the type of the factor. ---- */

typedef struct gpucholmod_factor gpucholmod_factor;

/* Makes a factor of the type of R in *made: a copy of R (n x n), with room for `capacity` rows and columns, or for n if
 * n is more. If no memory has room for the capacity, the code is GPUCHOLMOD_OUT_OF_MEMORY. Options: triangle, threads,
 * device, devices, stream. */
int gpucholmod_factor_create(gpucholmod_const_matrix R, ptrdiff_t capacity, const gpucholmod_options *options,
                             gpucholmod_factor **made, gpucholmod_status *status);

/* The first function copies a factor to *made, in the same kind of memory. The second function frees a factor (NULL is
 * allowed). */
int gpucholmod_factor_copy(const gpucholmod_factor *factor, gpucholmod_factor **made, gpucholmod_status *status);
void gpucholmod_factor_destroy(gpucholmod_factor *factor);

/* Return n, the most rows and columns without growing, the gpucholmod_type, and 1 for a factor on a GPU; 0 for NULL. */
ptrdiff_t gpucholmod_factor_order(const gpucholmod_factor *factor);
ptrdiff_t gpucholmod_factor_capacity(const gpucholmod_factor *factor);
int gpucholmod_factor_type(const gpucholmod_factor *factor);
int gpucholmod_factor_on_gpu(const gpucholmod_factor *factor);

/* Modifies a factor as gpucholmod_update() does, with the same bits as for an upper factor. A factor of at most 256 MiB
 * in the host's memory from which columns are taken away keeps as much memory again from the 17th such call on.
 * Options: threads, progress, stream. */
int gpucholmod_factor_update(gpucholmod_factor *factor, gpucholmod_const_matrix V, const double *weights, double scale,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);

/* Do what gpucholmod_insert(), gpucholmod_delete() and gpucholmod_shift() do. A factor that has no room for new rows
 * and columns grows. Options: threads, progress, stream. */
int gpucholmod_factor_insert(gpucholmod_factor *factor, ptrdiff_t at, gpucholmod_const_matrix X,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);
int gpucholmod_factor_delete(gpucholmod_factor *factor, const ptrdiff_t *rows, ptrdiff_t count,
                             const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                             gpucholmod_status *status);
int gpucholmod_factor_shift(gpucholmod_factor *factor, ptrdiff_t from, ptrdiff_t to,
                            const gpucholmod_right_sides *sides, const gpucholmod_options *options,
                            gpucholmod_status *status);

/* Solve as gpucholmod_solve() does with R upper, and as gpucholmod_solve_modified() does. Options of the latter:
 * threads, progress. */
int gpucholmod_factor_solve(const gpucholmod_factor *factor, int system, gpucholmod_matrix B,
                            gpucholmod_status *status);
int gpucholmod_factor_solve_modified(const gpucholmod_factor *factor, const gpucholmod_modifications *what,
                                     const gpucholmod_options *options, gpucholmod_status *status);

/* The first function copies the factor to R (n x n), whose other triangle becomes zero. The second copies the diagonal
 * to out (n, in the host's memory). Options: triangle, stream. */
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
