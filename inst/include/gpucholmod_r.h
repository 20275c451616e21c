/* gpucholmod.h for packages of R, which get the functions from the installed package gpucholmod and link with nothing:
 *
 *     LinkingTo: gpucholmod          in DESCRIPTION, and
 *     Imports: gpucholmod
 *     importFrom(gpucholmod, chol_factor)   in NAMESPACE, or any other function, so that R loads the package
 *
 *     #define GPUCHOLMOD_FROM_R      in every file, before
 *     #include <gpucholmod.h>        or gpucholmod.hpp
 *     GPUCHOLMOD_DEFINE              in one file, outside of functions
 *     gpucholmod_load();             in R_init_<package>. An R error if the installed version does not fit this header
 *
 * The functions then have the names that gpucholmod.h declares. */
#ifndef GPUCHOLMOD_R_H
#define GPUCHOLMOD_R_H

#include "gpucholmod.h"

/* Every function, in the order of the table. A new function is appended. */
#define GPUCHOLMOD_FUNCTIONS(X) \
  X(abi) X(gpu) X(workspace) X(update) X(update_into) X(insert) X(delete) X(shift) X(solve) X(solve_modified) \
  X(factorise) X(inverse) X(logdet) X(rcond) \
  X(factor_create) X(factor_copy) X(factor_destroy) X(factor_order) X(factor_capacity) X(factor_type) X(factor_on_gpu) \
  X(factor_update) X(factor_insert) X(factor_delete) X(factor_shift) X(factor_solve) X(factor_solve_modified) \
  X(factor_get) X(factor_diagonal) X(factor_inverse) X(factor_logdet) X(factor_rcond) \
  X(batch_create) X(batch_copy) X(batch_destroy) X(batch_order) X(batch_capacity) X(batch_count) X(batch_type) \
  X(batch_on_gpu) X(batch_update) X(batch_insert) X(batch_delete) X(batch_orders) X(batch_solve) X(batch_get) \
  X(batch_logdet) X(batch_solve_modified) X(batch_shift)

/* The table of functions: R_GetCCallable("gpucholmod", "gpucholmod_api") finds a function that returns the table. */
#define GPUCHOLMOD_MEMBER(name) __typeof__(&gpucholmod_##name) name##_;
typedef struct gpucholmod_api {
  int version; /* GPUCHOLMOD_ABI */
  size_t size; /* sizeof(gpucholmod_api) */
  GPUCHOLMOD_FUNCTIONS(GPUCHOLMOD_MEMBER)
} gpucholmod_api;

#ifdef GPUCHOLMOD_FROM_R

#include <R_ext/Error.h>
#include <R_ext/Rdynload.h>

#ifdef __cplusplus
#define GPUCHOLMOD_C extern "C"
#else
#define GPUCHOLMOD_C extern
#endif
GPUCHOLMOD_C const gpucholmod_api *gpucholmod_table;
#define GPUCHOLMOD_DEFINE const gpucholmod_api *gpucholmod_table = 0;

/* Makes the functions of this header call those of `table`. Raises an R error if the table does not fit this header. */
static inline void gpucholmod_use(const gpucholmod_api *table) {
  if (table->version != GPUCHOLMOD_ABI || table->size < sizeof(gpucholmod_api))
    Rf_error("this package was compiled for version %d of the C interface of gpucholmod, with a table of %d bytes, and "
             "version %d with %d bytes is installed: install it again",
             GPUCHOLMOD_ABI, (int)sizeof(gpucholmod_api), table->version, (int)table->size);
  gpucholmod_table = table;
}
static inline void gpucholmod_load(void) {
  gpucholmod_use(((const gpucholmod_api *(*)(void))R_GetCCallable("gpucholmod", "gpucholmod_api"))());
}

#define gpucholmod_abi gpucholmod_table->abi_
#define gpucholmod_gpu gpucholmod_table->gpu_
#define gpucholmod_workspace gpucholmod_table->workspace_
#define gpucholmod_update gpucholmod_table->update_
#define gpucholmod_update_into gpucholmod_table->update_into_
#define gpucholmod_insert gpucholmod_table->insert_
#define gpucholmod_delete gpucholmod_table->delete_
#define gpucholmod_shift gpucholmod_table->shift_
#define gpucholmod_solve gpucholmod_table->solve_
#define gpucholmod_solve_modified gpucholmod_table->solve_modified_
#define gpucholmod_factorise gpucholmod_table->factorise_
#define gpucholmod_inverse gpucholmod_table->inverse_
#define gpucholmod_logdet gpucholmod_table->logdet_
#define gpucholmod_rcond gpucholmod_table->rcond_
#define gpucholmod_factor_create gpucholmod_table->factor_create_
#define gpucholmod_factor_copy gpucholmod_table->factor_copy_
#define gpucholmod_factor_destroy gpucholmod_table->factor_destroy_
#define gpucholmod_factor_order gpucholmod_table->factor_order_
#define gpucholmod_factor_capacity gpucholmod_table->factor_capacity_
#define gpucholmod_factor_type gpucholmod_table->factor_type_
#define gpucholmod_factor_on_gpu gpucholmod_table->factor_on_gpu_
#define gpucholmod_factor_update gpucholmod_table->factor_update_
#define gpucholmod_factor_insert gpucholmod_table->factor_insert_
#define gpucholmod_factor_delete gpucholmod_table->factor_delete_
#define gpucholmod_factor_shift gpucholmod_table->factor_shift_
#define gpucholmod_factor_solve gpucholmod_table->factor_solve_
#define gpucholmod_factor_solve_modified gpucholmod_table->factor_solve_modified_
#define gpucholmod_factor_get gpucholmod_table->factor_get_
#define gpucholmod_factor_diagonal gpucholmod_table->factor_diagonal_
#define gpucholmod_factor_inverse gpucholmod_table->factor_inverse_
#define gpucholmod_factor_logdet gpucholmod_table->factor_logdet_
#define gpucholmod_factor_rcond gpucholmod_table->factor_rcond_
#define gpucholmod_batch_create gpucholmod_table->batch_create_
#define gpucholmod_batch_copy gpucholmod_table->batch_copy_
#define gpucholmod_batch_destroy gpucholmod_table->batch_destroy_
#define gpucholmod_batch_order gpucholmod_table->batch_order_
#define gpucholmod_batch_capacity gpucholmod_table->batch_capacity_
#define gpucholmod_batch_count gpucholmod_table->batch_count_
#define gpucholmod_batch_type gpucholmod_table->batch_type_
#define gpucholmod_batch_on_gpu gpucholmod_table->batch_on_gpu_
#define gpucholmod_batch_update gpucholmod_table->batch_update_
#define gpucholmod_batch_insert gpucholmod_table->batch_insert_
#define gpucholmod_batch_delete gpucholmod_table->batch_delete_
#define gpucholmod_batch_orders gpucholmod_table->batch_orders_
#define gpucholmod_batch_solve gpucholmod_table->batch_solve_
#define gpucholmod_batch_get gpucholmod_table->batch_get_
#define gpucholmod_batch_logdet gpucholmod_table->batch_logdet_
#define gpucholmod_batch_solve_modified gpucholmod_table->batch_solve_modified_
#define gpucholmod_batch_shift gpucholmod_table->batch_shift_

#endif

#endif
