/* gpucholmod: rank-k modification of dense Cholesky factors, for programs in C and what can call C.
 *
 * A = R'R with R upper, or A = RR' with R lower, column-major, ld >= n. The other triangle may hold anything, and is
 * neither read nor written (gpucholmod_hold() for a GPU copies parts of it there, which nothing looks at). Functions
 * that end in _d take doubles, those in _s floats; what belongs to the least squares side (right-hand sides, weights)
 * is double in both.
 *
 * Every function that takes a status returns GPUCHOLMOD_OK or another gpucholmod_code, and tells more in *status, which
 * may be NULL. If the code is neither GPUCHOLMOD_OK nor GPUCHOLMOD_HALF_MODIFIED, what the function was given to change
 * is as it was, to the last bit. Sizes are checked before anything is read: a negative one, or one with which a matrix
 * would have more than PTRDIFF_MAX bytes, is GPUCHOLMOD_BAD_ARGUMENT; a capacity that no memory has is
 * GPUCHOLMOD_OUT_OF_MEMORY.
 *
 * Functions run in the calling thread and start no other threads; the BLAS and LAPACK that insertions and solutions
 * use, and CUDA, may start some. Several threads may call functions at once for different factors; for factors on a GPU
 * only one thread at a time may. No function calls R.
 *
 * From an R package: LinkingTo: gpucholmod, Imports: gpucholmod, and
 *
 *     #define GPUCHOLMOD_FROM_R      before this header, in every file
 *     GPUCHOLMOD_DEFINE              once, outside of functions
 *     gpucholmod_load();             in R_init_<package>, after importing the namespace of gpucholmod: an R error where the versions differ
 *
 * From any other program: link with libgpucholmod, which tools/library.mk builds. In C++: gpucholmod.hpp. */
#ifndef GPUCHOLMOD_H
#define GPUCHOLMOD_H

#include <stddef.h>

#define GPUCHOLMOD_ABI 1 /* changes where this header stops being right for a program that was compiled with an older one */

typedef enum gpucholmod_code {
  GPUCHOLMOD_OK = 0,
  GPUCHOLMOD_NOT_POSITIVE_DEFINITE, /* status->pivot: order of the first leading minor that is not */
  GPUCHOLMOD_BAD_ARGUMENT,
  GPUCHOLMOD_NOT_FINITE,            /* row, col */
  GPUCHOLMOD_BAD_DIAGONAL,          /* of R; row: which entry */
  GPUCHOLMOD_OVERFLOW,              /* of V in the precision of R, or of the result */
  GPUCHOLMOD_BACKEND_UNAVAILABLE,   /* a GPU was asked for, and there is none that can be used */
  GPUCHOLMOD_OUT_OF_MEMORY,
  GPUCHOLMOD_CUDA_FAILURE,
  GPUCHOLMOD_INTERNAL,
  GPUCHOLMOD_NOT_BUILT,             /* a GPU was asked for, and this build has no code for any */
  GPUCHOLMOD_HALF_MODIFIED          /* the call failed while it was changing the factor, whose numbers are lost;
                                       right-hand sides are as they were. status->message: why; status->pivot: as
                                       above, if that is why. A gpucholmod_factor can then only be released: every other
                                       function that takes a status returns this code; order, capacity, home and scalar
                                       stay. This may happen to a factor on a GPU that fails or has no memory for a
                                       second factor, and with GPUCHOLMOD_TRUSTED. */
} gpucholmod_code;

/* How a factor is given: one of the first two, and the third or not. A row of an upper factor, or a column of a lower
 * one, whose diagonal entry is negative is multiplied by -1 first, which does not change A; so is that row of sides->z.
 * A factor with zeros on its diagonal can be held, and columns can be added to it; everything that needs a positive
 * definite matrix returns GPUCHOLMOD_BAD_DIAGONAL. */
enum gpucholmod_form {
  GPUCHOLMOD_UPPER = 0,
  GPUCHOLMOD_LOWER = 1,
  GPUCHOLMOD_TRUSTED = 2 /* finite numbers and a positive diagonal, as these functions leave it: an update does not look for what is wrong before it
                            changes R. If something is, the update returns GPUCHOLMOD_HALF_MODIFIED. */
};

/* What went wrong. Indices count from 1; 0: there is none. */
typedef struct gpucholmod_status {
  int code; /* gpucholmod_code */
  ptrdiff_t pivot, row, col;
  char message[240];
} gpucholmod_status;

/* Right-hand sides that come along: of R'z = b, b being X'y of a regression, z becomes that of the modified factor, for b + V diag(w) Y; rss
 * likewise (LINPACK's dchud and dchdd). Where rows and columns of A come or go, Y is their rows of b, p x m.
 *
 * Every function requires z and Y to be finite (otherwise GPUCHOLMOD_NOT_FINITE), also in the precision of R
 * (GPUCHOLMOD_OVERFLOW), and rss not to be negative (GPUCHOLMOD_BAD_ARGUMENT). An rss that is NaN stays NaN. */
typedef struct gpucholmod_sides {
  ptrdiff_t m;     /* columns */
  double *z;       /* n x m, changed; of insert: with room for n + p rows */
  ptrdiff_t ldz;
  const double *Y; /* k x m: a row for each column of V. remove: not looked at */
  ptrdiff_t ldy;
  double *rss;     /* m residual sums of squares, changed; or NULL. NaN on return if it would have become negative */
} gpucholmod_sides;

/* A factor with memory of its own, of doubles or of floats, in ordinary memory or on a GPU. V, X and B of its functions
 * are double. */
typedef struct gpucholmod_factor gpucholmod_factor;
enum gpucholmod_home { GPUCHOLMOD_MEMORY = 0, GPUCHOLMOD_GPU = 1 };
enum gpucholmod_system { GPUCHOLMOD_BOTH = 0, GPUCHOLMOD_FORWARD = 1, GPUCHOLMOD_BACK = 2 };

/* Every function: X(result, name, parameters, arguments).
 *
 *   abi               GPUCHOLMOD_ABI of the library.
 *   workspace         bytes that update_d (scalar 8) or update_s (scalar 4) need for n and k; SIZE_MAX if it is more.
 *   update_d, _s      R <- the factor of scale A + V diag(weights) V', V n x k. weights: k, of any sign; NULL: 1. form: gpucholmod_form. workspace: memory
 *                     of so many bytes, or NULL: then it is allocated.
 *   insert_d, _s      R (n x n, room for n + p) <- with p rows and columns of A more, from number `at` (0 .. n) on. X (n + p x p): their
 *                     columns of the new A.
 *   remove_d, _s      R <- without `count` rows and columns of A, `gone`, ascending, from 0 on. Order n - count afterwards.
 *   hold, hold_s      a factor with memory of its own, of the scalar of R, with room for `capacity` rows and columns (at least n). R is copied. home:
 *                     gpucholmod_home; device: the GPU's number, or -1 for the first that can be used.
 *   copy, release     another one that is the same; give the memory back (NULL is allowed).
 *   order             rows and columns.
 *   modify            as update_d, in place; of factors in memory to the same bits as there for R upper.
 *   insert, remove    as insert_d, remove_d. Beyond its capacity a factor grows.
 *   solve             B (n x m) <- the solution of A x = b, R'x = b or R x = b, for R upper: gpucholmod_system.
 *                     m: at most INT_MAX.
 *   store, store_s    R (n x n) <- the factor, upper or lower; the other triangle zero.
 *   diagonal, logdet  out (n) <- that of the factor; *out <- log det A.
 *   home, scalar, capacity
 *                     gpucholmod_home; 8 or 4; rows and columns that there is room for. Of NULL: 0.
 *   gpu               whether a GPU can be used, with `device` as above: OK and its name as status->message, or why not. */
#define GPUCHOLMOD_FUNCTIONS(X) \
  X(int, abi, (void), ()) \
  X(size_t, workspace, (ptrdiff_t n, ptrdiff_t k, size_t scalar), (n, k, scalar)) \
  X(int, update_d, (int form, ptrdiff_t n, ptrdiff_t k, double *R, ptrdiff_t ldr, const double *V, ptrdiff_t ldv, const double *weights, \
                    double scale, const gpucholmod_sides *sides, void *workspace, size_t bytes, gpucholmod_status *status), \
    (form, n, k, R, ldr, V, ldv, weights, scale, sides, workspace, bytes, status)) \
  X(int, update_s, (int form, ptrdiff_t n, ptrdiff_t k, float *R, ptrdiff_t ldr, const float *V, ptrdiff_t ldv, const double *weights, \
                    double scale, const gpucholmod_sides *sides, void *workspace, size_t bytes, gpucholmod_status *status), \
    (form, n, k, R, ldr, V, ldv, weights, scale, sides, workspace, bytes, status)) \
  X(int, insert_d, (int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, double *R, ptrdiff_t ldr, const double *X, ptrdiff_t ldx, \
                    const gpucholmod_sides *sides, gpucholmod_status *status), (form, n, at, p, R, ldr, X, ldx, sides, status)) \
  X(int, remove_d, (int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t *gone, double *R, ptrdiff_t ldr, const gpucholmod_sides *sides, \
                    gpucholmod_status *status), (form, n, count, gone, R, ldr, sides, status)) \
  X(int, hold, (int form, ptrdiff_t n, const double *R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device, gpucholmod_factor **made, \
                gpucholmod_status *status), (form, n, R, ldr, capacity, home, device, made, status)) \
  X(int, copy, (const gpucholmod_factor *factor, gpucholmod_factor **made, gpucholmod_status *status), (factor, made, status)) \
  X(int, release, (gpucholmod_factor *factor), (factor)) \
  X(ptrdiff_t, order, (const gpucholmod_factor *factor), (factor)) \
  X(int, modify, (gpucholmod_factor *factor, ptrdiff_t k, const double *V, ptrdiff_t ldv, const double *weights, double scale, \
                  const gpucholmod_sides *sides, gpucholmod_status *status), (factor, k, V, ldv, weights, scale, sides, status)) \
  X(int, insert, (gpucholmod_factor *factor, ptrdiff_t at, ptrdiff_t p, const double *X, ptrdiff_t ldx, const gpucholmod_sides *sides, \
                  gpucholmod_status *status), (factor, at, p, X, ldx, sides, status)) \
  X(int, remove, (gpucholmod_factor *factor, ptrdiff_t count, const ptrdiff_t *gone, const gpucholmod_sides *sides, gpucholmod_status *status), \
    (factor, count, gone, sides, status)) \
  X(int, solve, (const gpucholmod_factor *factor, int system, ptrdiff_t m, double *B, ptrdiff_t ldb, gpucholmod_status *status), \
    (factor, system, m, B, ldb, status)) \
  X(int, store, (const gpucholmod_factor *factor, int form, double *R, ptrdiff_t ldr, gpucholmod_status *status), \
    (factor, form, R, ldr, status)) \
  X(int, insert_s, (int form, ptrdiff_t n, ptrdiff_t at, ptrdiff_t p, float *R, ptrdiff_t ldr, const float *X, ptrdiff_t ldx, \
                    const gpucholmod_sides *sides, gpucholmod_status *status), (form, n, at, p, R, ldr, X, ldx, sides, status)) \
  X(int, remove_s, (int form, ptrdiff_t n, ptrdiff_t count, const ptrdiff_t *gone, float *R, ptrdiff_t ldr, const gpucholmod_sides *sides, \
                    gpucholmod_status *status), (form, n, count, gone, R, ldr, sides, status)) \
  X(int, hold_s, (int form, ptrdiff_t n, const float *R, ptrdiff_t ldr, ptrdiff_t capacity, int home, int device, gpucholmod_factor **made, \
                  gpucholmod_status *status), (form, n, R, ldr, capacity, home, device, made, status)) \
  X(int, store_s, (const gpucholmod_factor *factor, int form, float *R, ptrdiff_t ldr, gpucholmod_status *status), \
    (factor, form, R, ldr, status)) \
  X(int, diagonal, (const gpucholmod_factor *factor, double *out, gpucholmod_status *status), (factor, out, status)) \
  X(int, logdet, (const gpucholmod_factor *factor, double *out, gpucholmod_status *status), (factor, out, status)) \
  X(int, home, (const gpucholmod_factor *factor), (factor)) \
  X(size_t, scalar, (const gpucholmod_factor *factor), (factor)) \
  X(ptrdiff_t, capacity, (const gpucholmod_factor *factor), (factor)) \
  X(int, gpu, (int device, gpucholmod_status *status), (device, status))

#ifdef __cplusplus
extern "C" {
#endif

#ifdef GPUCHOLMOD_FROM_R

#include <R_ext/Error.h>
#include <R_ext/Rdynload.h>

#define GPUCHOLMOD_DECLARE(result, name, parameters, arguments) \
  extern result(*gpucholmod_##name##_) parameters; \
  static inline result gpucholmod_##name parameters { return gpucholmod_##name##_ arguments; }
#define GPUCHOLMOD_VARIABLE(result, name, parameters, arguments) result(*gpucholmod_##name##_) parameters = 0;
#define GPUCHOLMOD_FETCH(result, name, parameters, arguments) \
  gpucholmod_##name##_ = (result(*) parameters)R_GetCCallable("gpucholmod", "gpucholmod_" #name);
GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_DECLARE)

#ifdef __cplusplus
#define GPUCHOLMOD_DEFINE extern "C" { GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_VARIABLE) }
#else
#define GPUCHOLMOD_DEFINE GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_VARIABLE)
#endif

static inline void gpucholmod_load(void) {
  gpucholmod_abi_ = (int (*)(void))R_GetCCallable("gpucholmod", "gpucholmod_abi");
  if (gpucholmod_abi_() != GPUCHOLMOD_ABI)
    Rf_error("this package was compiled for version %d of the C interface of gpucholmod, and version %d is installed: install it again",
             GPUCHOLMOD_ABI, gpucholmod_abi_());
  GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_FETCH)
}

#else

#ifndef GPUCHOLMOD_EXPORT /* for those who build the library: visible from outside of it */
#define GPUCHOLMOD_EXPORT
#endif
#define GPUCHOLMOD_DECLARE(result, name, parameters, arguments) GPUCHOLMOD_EXPORT result gpucholmod_##name parameters;
GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_DECLARE)

#endif

#ifdef __cplusplus
}
#endif

#endif
