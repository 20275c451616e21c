/* Batches for gpucholmod.h, which includes this header. */
#ifndef GPUCHOLMOD_BATCH_H
#define GPUCHOLMOD_BATCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Batches: many factors with memory of their own, which are modified together. ----
 * Matrices of all members are stored side by side, and may be double or float, whatever the type of the batch. If the
 * numbers of a member are wrong, status->member is the number of the member. Large batches are copied, and solved with,
 * by several threads.
 *
 * In calls for a batch on a GPU, V, sides, X, B of _solve, and b and solution of _solve_modified may be in the memory
 * of that GPU. V and B stay there unless n or the capacity is above 1,024; all other numbers are copied by way of the
 * host's memory. The host gets a copy of V if it has to look at V: if there are sides, or weights of each member, if
 * numbers are not finite, very large or very small, if members have several orders, and if k is above 16 and a member
 * is not positive definite.
 *
 * If members have several orders, as when some members fail to grow, n is the largest order; rows and columns that a
 * member lacks are those of the identity. In such rows V must have zeros, solutions are equal to the right-hand sides,
 * and a modification does not change z. */

typedef struct gpucholmod_batch gpucholmod_batch;

/* These functions do what those for factors do. R: n x n count, whose diagonals have no zeros; orders: count, of which
 * n is the largest (numbers beyond the order of a member are not read), or NULL: all n; capacity: rows and columns that
 * there is room for, or n if n is more; a batch on a GPU has no such room unless the capacity is above 1,024. Options:
 * triangle, device. */
int gpucholmod_batch_create(gpucholmod_const_matrix R, ptrdiff_t count, const ptrdiff_t *orders, ptrdiff_t capacity,
                            const gpucholmod_options *options, gpucholmod_batch **made, gpucholmod_status *status);
int gpucholmod_batch_copy(const gpucholmod_batch *batch, gpucholmod_batch **made, gpucholmod_status *status);
void gpucholmod_batch_destroy(gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_order(const gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_capacity(const gpucholmod_batch *batch);
ptrdiff_t gpucholmod_batch_count(const gpucholmod_batch *batch);
int gpucholmod_batch_type(const gpucholmod_batch *batch);
int gpucholmod_batch_on_gpu(const gpucholmod_batch *batch);

/* Describes a modification of every member: the member becomes the factor of scale A + V diag(weights) V'. */
typedef struct gpucholmod_batch_modification {
  ptrdiff_t k;               /* columns of each V */
  gpucholmod_const_matrix V; /* n x k, the same for all members; or n x k count */
  const double *weights;     /* signed weights of the columns; NULL: 1 */
  ptrdiff_t weights_count;   /* k, the same for all members; or k count */
  const double *scales;      /* count, positive; NULL: 1 */
  int independent;           /* if a member would not be positive definite, 0: no member changes, 1: all others do */
  const gpucholmod_right_sides *sides; /* z: n x m count, Y: k x m count, rss: m count. A member that stays as it is
                                          keeps its z and rss. On a GPU n + m is at most 1,024 unless n or the capacity
                                          is above 1,024. NULL: none */
} gpucholmod_batch_modification;

/* Modifies every member. Sets pivots (count, or NULL) to 0, or to the order of the first leading minor that is not
 * positive. If a member has such a minor, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE, and status->member is the first
 * such member. Options: threads, progress, stream. */
int gpucholmod_batch_update(gpucholmod_batch *batch, const gpucholmod_batch_modification *what, ptrdiff_t *pivots,
                            const gpucholmod_options *options, gpucholmod_status *status);

/* Describes p rows and columns that are inserted into every A. */
typedef struct gpucholmod_batch_insertion {
  ptrdiff_t p;
  gpucholmod_const_matrix X; /* n + p x p, the same for all members; or n + p x p count: new columns of the new A */
  const ptrdiff_t *at;       /* number, from 0, of the first new row and column; NULL: the new rows are the last */
  ptrdiff_t at_count;        /* 1, the same for all members; or count */
  int independent;           /* if a new A would not be positive definite, 0: no member changes, 1: all others do */
  const gpucholmod_right_sides *sides; /* z: n + p x m count; before the call the first n rows belong to the factors,
                                          after the call all rows do; Y: p x m count, the new rows of b; NULL: none */
} gpucholmod_batch_insertion;

/* Inserts rows and columns into every A; pivots and the code are as for gpucholmod_batch_update(). A batch that has no
 * room for the new rows grows. A batch on a GPU whose order and capacity were at most 1,024 does not grow beyond 1,024:
 * the code is then GPUCHOLMOD_BAD_ARGUMENT. Rows of z that a member does not have become 0. */
int gpucholmod_batch_insert(gpucholmod_batch *batch, const gpucholmod_batch_insertion *what, ptrdiff_t *pivots,
                            gpucholmod_status *status);

/* Deletes p rows and columns of every A. rows: their numbers, from 0, ascending: p, the same for all members, or
 * p count. sides: z is n x m count; its first n - p rows become those of the new factors, and 0 where a member lacks
 * such rows. Y is not read. NULL: none. */
int gpucholmod_batch_delete(gpucholmod_batch *batch, ptrdiff_t p, const ptrdiff_t *rows, ptrdiff_t rows_count,
                            const gpucholmod_right_sides *sides, gpucholmod_status *status);

/* Moves row and column from[j] of A of member j to number to[j]; the rows in between move one step towards the old
 * place. places_count: 1, the same for all members; or count. sides: z is n x m count, whose rows move along; Y is not
 * read, and rss does not change. NULL: none. If an entry of a new diagonal would be too small to represent, nothing has
 * changed. */
int gpucholmod_batch_shift(gpucholmod_batch *batch, const ptrdiff_t *from, const ptrdiff_t *to, ptrdiff_t places_count,
                           const gpucholmod_right_sides *sides, gpucholmod_status *status);

/* Stores the orders of the members in orders (count). */
int gpucholmod_batch_orders(const gpucholmod_batch *batch, ptrdiff_t *orders, gpucholmod_status *status);

/* The first function replaces B (n x m count) by the solutions of a gpucholmod_system, with each member for its own m
 * columns. The second copies the factors to R (n x n count). The third stores log det of every A in out (count).
 * Options of _get: triangle. */
int gpucholmod_batch_solve(const gpucholmod_batch *batch, int system, gpucholmod_matrix B, gpucholmod_status *status);
int gpucholmod_batch_get(const gpucholmod_batch *batch, gpucholmod_matrix R, const gpucholmod_options *options,
                         gpucholmod_status *status);
int gpucholmod_batch_logdet(const gpucholmod_batch *batch, double *out, gpucholmod_status *status);

/* Describes the results that are wanted of the matrices that members would have. */
typedef struct gpucholmod_batch_systems {
  ptrdiff_t m;                /* number of right-hand sides of each member */
  gpucholmod_const_matrix b;  /* n x m, the same for all members; or n x m count */
  gpucholmod_matrix solution; /* n x m count; a matrix without elements: not wanted */
  double *quadratic;          /* m x count: the diagonals of b' times the solutions; NULL: not wanted */
  double *logdet;             /* count: log det; NULL: not wanted */
  ptrdiff_t *pivots;          /* count: 0, or the order of the first leading minor that is not positive; or NULL */
} gpucholmod_batch_systems;

/* Solves with every A as gpucholmod_batch_update() would make it. The batch does not change, and what->independent is
 * ignored. If some of the matrices are not positive definite, the code is GPUCHOLMOD_NOT_POSITIVE_DEFINITE,
 * status->member is the first of these members, their results are NaN, and the results of all other members are stored.
 * If the code is neither this code nor GPUCHOLMOD_OK, nothing has changed. On a GPU there must be memory for a second
 * batch. Options: threads, progress, stream. */
int gpucholmod_batch_solve_modified(const gpucholmod_batch *batch, const gpucholmod_batch_modification *what,
                                    const gpucholmod_batch_systems *wanted, const gpucholmod_options *options,
                                    gpucholmod_status *status);

#ifdef __cplusplus
}
#endif
#endif
