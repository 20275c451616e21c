/* Batches for gpucholmod.h, which includes this. */
#ifndef GPUCHOLMOD_BATCH_H
#define GPUCHOLMOD_BATCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Batches: many factors with memory of their own, which are modified together. ----
 * Matrices of all members are stored side by side, and may be double or float, whatever the type of the batch. If the
 * numbers of a member are wrong, status->member tells which. Several threads copy large batches and solve with them.
 *
 * In calls for a batch on a GPU, V, sides, X, B of _solve, and b and solution of _solve_modified may be in the memory
 * of that GPU. V and B stay there unless n or the capacity is above 1,024; all else goes by the host's memory. The host
 * gets a copy of V if it has to look at it: if there are sides, or weights of each member, if numbers are not finite,
 * very large or very small, if members have several orders, and if k is above 16 and a member is not positive definite.
 *
 * If members have several orders, as when some fail to grow, n is the largest of them; rows and columns that a member
 * has not are those of the identity. V has zeros there; solutions have what B had, and z stays. */

typedef struct gpucholmod_batch gpucholmod_batch;

/* As for factors. R: n x n count, whose diagonals have no zeros; orders: count, of which n is the largest (what is
 * beyond a member's order is not read), or NULL: all n; capacity: rows and columns that there is room for, or n if that
 * is more; on a GPU none is kept unless it is above 1,024. Options: triangle, device. */
int gpucholmod_batch_create(gpucholmod_const_matrix R, ptrdiff_t count, const ptrdiff_t *orders, ptrdiff_t capacity,
                            const gpucholmod_options *options, gpucholmod_batch **made, gpucholmod_status *status);
int gpucholmod_batch_copy(const gpucholmod_batch *batch, gpucholmod_batch **made, gpucholmod_status *status);
void gpucholmod_batch_destroy(gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_order(const gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_capacity(const gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_count(const gpucholmod_batch *batch);
int gpucholmod_batch_type(const gpucholmod_batch *batch);
int gpucholmod_batch_on_gpu(const gpucholmod_batch *batch);

/* Each member becomes the factor of scale A + V diag(weights) V'. */
typedef struct gpucholmod_batch_modification {
  ptrdiff_t k;               /* columns of each V */
  gpucholmod_const_matrix V; /* n x k, the same for all members; or n x k count */
  const double *weights;     /* of any sign; NULL: 1 */
  ptrdiff_t weights_count;   /* k, the same for all members; or k count */
  const double *scales;      /* count, positive; NULL: 1 */
  int independent;           /* if a member would not be positive definite, 0: no member changes, 1: all others do */
  const gpucholmod_right_sides *sides; /* z: n x m count, Y: k x m count, rss: m count. A member that stays keeps its
                                          own. On a GPU n + m is at most 1,024 unless n or the capacity is above.
                                          NULL: none */
} gpucholmod_batch_modification;

/* Modifies every member. pivots (count, or NULL) <- 0, or the order of the first leading minor that is not positive. If
 * a member has one, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE, and status->member is the first such member. Options:
 * threads, progress, stream. */
int gpucholmod_batch_update(gpucholmod_batch *batch, const gpucholmod_batch_modification *what, ptrdiff_t *pivots,
                            const gpucholmod_options *options, gpucholmod_status *status);

/* p rows and columns that every A gets. */
typedef struct gpucholmod_batch_insertion {
  ptrdiff_t p;
  gpucholmod_const_matrix X; /* n + p x p, the same for all members; or n + p x p count: new columns of the new A */
  const ptrdiff_t *at;       /* from 0, what number the first of them becomes; NULL: they come last */
  ptrdiff_t at_count;        /* 1, the same for all members; or count */
  int independent;           /* if a new A would not be positive definite, 0: no member changes, 1: all others do */
  const gpucholmod_right_sides *sides; /* z: n + p x m count, of which the first n rows belong to the factors before,
                                          and all to those after; Y: p x m count, the new rows of b; NULL: none */
} gpucholmod_batch_insertion;

/* Adds rows and columns to every A; pivots and the code are as of gpucholmod_batch_update(). A batch that has no room
 * for them grows; on a GPU, one whose order and capacity were at most 1,024 does not grow beyond that,
 * which is GPUCHOLMOD_BAD_ARGUMENT. Rows of z that a member does not have become 0. */
int gpucholmod_batch_insert(gpucholmod_batch *batch, const gpucholmod_batch_insertion *what, ptrdiff_t *pivots,
                            gpucholmod_status *status);

/* Deletes p rows and columns of every A; rows: their numbers, from 0, ascending: p, the same for all members, or
 * p count. sides: z is n x m count; its first n - p rows become those of the new factors, 0 where a member does not
 * have them. Y is not read. NULL: none. */
int gpucholmod_batch_delete(gpucholmod_batch *batch, ptrdiff_t p, const ptrdiff_t *rows, ptrdiff_t rows_count,
                            const gpucholmod_right_sides *sides, gpucholmod_status *status);

/* Row and column from[j] of A of member j becomes number to[j], those in between move one step towards where it was.
 * places_count: 1, the same for all members; or count. sides: z is n x m count, whose rows move along; Y is not read,
 * and rss stays. NULL: none. If an entry of a new diagonal would be too small to represent, nothing has changed. */
int gpucholmod_batch_shift(gpucholmod_batch *batch, const ptrdiff_t *from, const ptrdiff_t *to, ptrdiff_t places_count,
                           const gpucholmod_right_sides *sides, gpucholmod_status *status);

/* orders (count) <- those of the members. */
int gpucholmod_batch_orders(const gpucholmod_batch *batch, ptrdiff_t *orders, gpucholmod_status *status);

/* B (n x m count) <- the solutions of a gpucholmod_system, each with its member; R (n x n count) <- the factors; out
 * (count) <- log det of every A. Options of _get: triangle. */
int gpucholmod_batch_solve(const gpucholmod_batch *batch, int system, gpucholmod_matrix B, gpucholmod_status *status);
int gpucholmod_batch_get(const gpucholmod_batch *batch, gpucholmod_matrix R, const gpucholmod_options *options,
                         gpucholmod_status *status);
int gpucholmod_batch_logdet(const gpucholmod_batch *batch, double *out, gpucholmod_status *status);

/* What is wanted of the matrices that members would have. */
typedef struct gpucholmod_batch_systems {
  ptrdiff_t m;                /* right-hand sides of each */
  gpucholmod_const_matrix b;  /* n x m, the same for all members; or n x m count */
  gpucholmod_matrix solution; /* n x m count; if it has no elements, it is not wanted */
  double *quadratic;          /* m x count: the diagonals of b' times the solutions; NULL: not wanted */
  double *logdet;             /* count: log det; NULL: not wanted */
  ptrdiff_t *pivots;          /* count: 0, or the order of the first leading minor that is not positive; or NULL */
} gpucholmod_batch_systems;

/* Solves with every A as gpucholmod_batch_update() would make it; the batch does not change, and what->independent does
 * not count. If some of the matrices are not positive definite, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE,
 * status->member is the first of them, their results are NaN, and the results of all others are there. With another
 * code than this and GPUCHOLMOD_OK, nothing has changed. On a GPU there must be memory for a second batch. Options:
 * threads, progress, stream. */
int gpucholmod_batch_solve_modified(const gpucholmod_batch *batch, const gpucholmod_batch_modification *what,
                                    const gpucholmod_batch_systems *wanted, const gpucholmod_options *options,
                                    gpucholmod_status *status);

#ifdef __cplusplus
}
#endif
#endif
