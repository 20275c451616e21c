#' gpucholmod: rank-k modification of dense Cholesky factors
#'
#' Kalman filters, recursive least squares, Gaussian processes, active-set solvers and adaptive MCMC keep the Cholesky
#' factor \eqn{R} of a matrix \eqn{A = R'R} and change \eqn{A} a little, over and over. [cholupdate_gpu()] turns
#' \eqn{R} into the factor of \eqn{A + VV'} or \eqn{A - VV'}, where \eqn{V} is \eqn{n \times k}{n x k}, in
#' \eqn{O(kn^2)} operations, on the CPU or on a GPU.
#'
#' @section All help pages:
#' Change a factor:
#'
#' | Page | What it is about |
#' |---|---|
#' | [cholupdate_gpu()] | add \eqn{VV'} to \eqn{A}, or take it off |
#' | [cholupdate_overwrite()] | the same in the memory of the matrix `R` |
#' | [cholinsert_gpu()] | `cholinsert_gpu()`, `choldelete_gpu()`, `cholshift_gpu()`: rows and columns of \eqn{A} |
#' | [solve_factor()] | solve with \eqn{A} by a factor of any kind |
#' | [draw()] | draws from a normal distribution with covariance or precision \eqn{A} |
#' | [condition_number] | `kappa()`, `rcond()`, `chol()`, `all.equal()` of a factor |
#' | [solve_forward()] | `solve_forward()`, `solve_back()`, `logdet()`: use a factor of any kind |
#' | [solve_modified()] | solve with many changes of one matrix |
#' | [cholupdate_plan()] | what a call would do, and why |
#' | [last_cholupdate()] | what the last call did |
#' | [cholupdate_control()] | tunables |
#'
#' Keep a factor in memory of its own, on a GPU or not, in one process or in several:
#'
#' | Page | What it is about |
#' |---|---|
#' | [chol_factor()] | `chol_factor()`, `gpu_factor()`, `gpu_chol()`: make a handle |
#' | [cholupdate_gpu.chol_factor()] | change it |
#' | [solve.chol_factor()] | `solve()`, `determinant()`, `chol2inv()`, `diag()` |
#' | [factor_matrix] | `%*%`, `crossprod()`, `t()`, `f[i, j]`: the factor as a matrix |
#' | [summary()][summary.chol_factor] | how well conditioned it is |
#' | [copy_factor()] | `copy_factor()`, `free()`, `as.matrix()` |
#' | [drift()] | how far modifications may have taken it from exact |
#' | [process_info()] | one factor in several processes under `mpirun` |
#'
#' Many small factors, and factors in files:
#'
#' | Page | What it is about |
#' |---|---|
#' | [cholupdate_batch()] | change many small factors in one call |
#' | [chol_batch()] | keep them in memory of their own |
#' | [factor_file()] | `factor_file()`, `write_factor()`: a factor that is larger than memory |
#' | [cholupdate_gpu.factor_file()] | change it |
#' | [cholinsert_gpu.factor_file()] | insert into it, and delete from it |
#' | [solve.factor_file()] | solve with it |
#'
#' Regression:
#'
#' | Page | What it is about |
#' |---|---|
#' | [rls()] | a regression to which observations come, and which they leave |
#' | [update.rls()] | `update()`, `drop_rows()`: let observations come and go |
#' | [summary.rls()] | `summary()`, `confint()`, `residuals()` and others |
#' | [predict.rls()] | predictions |
#' | [rolling()] | a regression for every window of the data |
#'
#' GPUs, and measurements:
#'
#' | Page | What it is about |
#' |---|---|
#' | [gpu_info()] | whether a GPU can be used, and if not, why |
#' | [gpu_release()] | give back the memory that is kept between calls |
#' | [bench_paper()] | measure time and error of all methods on this machine |
#' | [plot.bench_paper()] | figures and findings of these measurements |
#' | [stored_measurements()] | what was measured elsewhere |
#'
#' The vignettes: `vignette("getting-started", package = "gpucholmod")`, and there `"recipes"`, `"how-it-works"`,
#' `"installation"`, `"measurements"`, `"other-packages"`, `"from-c"` and `"the-papers-experiment"`. `R CMD INSTALL` of
#' a folder leaves them out, as it does for every package; a package that `R CMD build` has built brings them.
#'
#' @section Conditions:
#' Every error that the package raises has the class `gpucholmod_error` and a class of its own, with data fields:
#'
#' | Class | When | Fields |
#' |---|---|---|
#' | `gpucholmod_not_numeric` | `R`, `V`, `A` or `b` is not a numeric matrix | `argument`, `type` |
#' | `gpucholmod_not_square` | `R` or `A` is not square | `nrow`, `ncol` |
#' | `gpucholmod_dimension_mismatch` | `V` or `b` has the wrong number of rows | `expected`, `actual` |
#' | `gpucholmod_not_finite` | NA, NaN or Inf in `V`, or a triangle of `R` or `A` | `argument`, `row`, `col`, `value` |
#' | `gpucholmod_bad_diagonal` | a diagonal entry is 0 where it must not, or subnormal: see below | `index`, `value` |
#' | `gpucholmod_not_triangular` | `R` is a symmetric matrix, not a factor: see below | `argument`, `uplo`, `looks` |
#' | `gpucholmod_pivoted` | `R` comes from a pivoted factorisation | `pivot` |
#' | `gpucholmod_shared` | the matrix to overwrite is shared, and must not be copied | `argument`, `value`, `bytes` |
#' | `gpucholmod_bad_argument` | any other argument cannot be used | `argument`, `value` |
#' | `gpucholmod_not_positive_definite` | \eqn{A - VV'}, or `A`, is not positive definite | `pivot` |
#' | `gpucholmod_overflow` | an entry given, or of the result, is too large to represent | `row`, `col` |
#' | `gpucholmod_invalid_factor` | a handle cannot be used, or not now: see [chol_factor()] | `reason` |
#' | `gpucholmod_bad_file` | a file cannot be read or written: see below | `path`, `reason`; `size` or `error` |
#' | `gpucholmod_backend_unavailable` | no usable GPU or MPI: see below | `backend`, `reason`; `device`, `peer` |
#' | `gpucholmod_process_failed` | a process does not take part: see [process_info()] | `process`, `reason` |
#' | `gpucholmod_not_supported` | a handle, a file or a batch cannot do that | `operation`, `backend` |
#' | `gpucholmod_out_of_memory` | not enough memory, also for a result | `needed`, `available`: bytes, where known |
#' | `gpucholmod_cuda_failure` | any other failure of CUDA | `cuda_error`, `operation` |
#'
#' [factor_file()] and [bench_paper()] list the reasons of `gpucholmod_bad_file`. `gpucholmod_backend_unavailable` is
#' also raised if several GPUs cannot hold a factor together: see [chol_factor()]. `gpucholmod_bad_diagonal` is raised
#' for a factor that is given and for a result; a diagonal entry below the smallest normal number has lost digits. A
#' factor with zeros on its diagonal can be kept and updated; whatever needs a positive definite matrix refuses it.
#'
#' What is wrong with one of many factors ([cholupdate_batch()], [solve_modified()]) has its number as a field `member`
#' besides; for `gpucholmod_not_positive_definite` there are `members` and `pivots`.
#'
#' An error in an expression that is given to `diag()`, `chol2inv()` or `rcond()`, or, before R 4.4.0, to
#' `crossprod()` or `tcrossprod()`, loses its class, as these are S4 generics as soon as this package is attached:
#' assign the factor to a variable first.
#'
#' A factor is also looked at in the triangle that is not used: up to order 32 in all of it, beyond that in its longest
#' column and at 64 places beside the diagonal. If that triangle mirrors the other one but for 1.5e-8 of the sum of its
#' magnitudes (3.5e-4 in single precision), `R` is the symmetric matrix, such as a result of [crossprod()] or [solve()],
#' and `gpucholmod_not_triangular` names [chol()]. A factor all the same, such as LAPACK may leave it beside the matrix,
#' has to have zeros there. Otherwise a triangle that is not zero is worth the warning `gpucholmod_other_triangle`
#' (fields `argument`, `uplo`, `looks`): each time where `R` is symmetric but for 1.2e-4 (`"nearly_symmetric"`) or looks
#' like a factor of the other kind (`"transposed"`), and once a session where the triangle is merely not zero
#' (`"filled"`). Of a batch, 64 to 127 members are looked at, and the number of one is the field `member`.
#'
#' Three more are no errors: the warning `gpucholmod_negative_rss` of [cholupdate_gpu()], the message
#' `gpucholmod_copied` of [cholupdate_overwrite()], and the message `gpucholmod_jitter` (field `jitter`) of
#' [chol_factor()], [gpu_chol()] and [cholinsert_gpu()], where something was added to a diagonal.
#'
#' Errors of R itself pass through as they are, such as that of [setTimeLimit()]. Whatever happens, the
#' caller's `R` and `V` are not changed, unless that is asked for: [cholupdate_overwrite()], and `in_place` and
#' `keep_intact` of [cholupdate_gpu.chol_factor()].
#'
#' @references
#' C. Walder (2010). Rank k Cholesky Up/Down-dating on the GPU: gpucholmodV0.2. arXiv:1011.1173.
#' \doi{10.48550/arXiv.1011.1173}
#'
#' @examples
#' # a factor, modified, and modified back
#' R <- chol(crossprod(matrix(rnorm(2500), 50)))
#' V <- matrix(rnorm(100), 50)
#' all.equal(cholupdate_gpu(cholupdate_gpu(R, V), V, downdate = TRUE), R)
#' @concept Kalman filter
#' @concept Gaussian process
#' @concept recursive least squares
#' @concept regression
#' @concept rank-one update
#' @concept downdate
#' @concept cross-validation
#' @concept Cholesky update
#' @concept cholupdate
#' @concept CUDA
#' @useDynLib gpucholmod, .registration = TRUE
#' @importFrom Rcpp evalCpp
#' @keywords internal
"_PACKAGE"
