#' gpucholmod: rank-k modification of dense Cholesky factors
#'
#' Kalman filters, recursive least squares, Gaussian processes, active-set solvers and adaptive MCMC keep the Cholesky
#' factor \eqn{R} of a matrix \eqn{A = R'R} and change \eqn{A} a little, over and over. [cholupdate_gpu()] turns \eqn{R}
#' into the factor of \eqn{A + VV'} or \eqn{A - VV'}, where \eqn{V} is \eqn{n \times k}{n x k}, in \eqn{O(kn^2)}
#' operations, on the CPU or on a GPU. Begin with `vignette("getting-started", package = "gpucholmod")`. If there is no
#' such vignette, the package was installed from its folder, or with `--no-build-vignettes`: see the end of the next
#' section.
#'
#' @section All help pages:
#' Change a factor:
#'
#' | Page | What it is about |
#' |---|---|
#' | [cholupdate_gpu()] | add \eqn{VV'} to \eqn{A}, or take it off |
#' | [cholupdate_overwrite()] | the same in the memory of the matrix `R` |
#' | [cholinsert_gpu()] | insert, delete, move and permute rows and columns of \eqn{A} |
#' | [solve_factor()] | solve with \eqn{A} by a factor of any kind |
#' | [draw()] | draws from a normal distribution with covariance or precision \eqn{A} |
#' | [condition_number] | `kappa()`, `rcond()`, `chol()`, `all.equal()` of a factor |
#' | [solve_forward()] | `solve_forward()`, `solve_back()`, `logdet()`: use a factor of any kind |
#' | [solve_modified()] | solve with many changes of one matrix, or with one of each member of a batch |
#' | [cholupdate_plan()] | what a call would do, and why |
#' | [last_cholupdate()] | what the last call did |
#' | [cholupdate_control()] | tunables |
#'
#' Keep a factor in memory of its own, on a GPU or not, in one process or in several:
#'
#' | Page | What it is about |
#' |---|---|
#' | [chol_factor()] | `chol_factor()`, `gpu_factor()`, `gpu_chol()`: make a handle |
#' | [cholupdate_gpu.chol_factor()] | change the factor of a handle |
#' | [solve.chol_factor()] | `solve()`, `determinant()`, `chol2inv()`, `diag()` of a handle |
#' | [factor_matrix] | `%*%`, `crossprod()`, `t()`, `f[i, j]`: the factor as a matrix |
#' | [summary()][summary.chol_factor] | how well conditioned \eqn{A} is |
#' | [copy_factor()] | `copy_factor()`, `free()`, `as.matrix()` |
#' | [drift()] | an estimate of the rounding errors of all modifications |
#' | [process_info()] | one factor in several processes under `mpirun` |
#'
#' Many small factors, and factors in files:
#'
#' | Page | What it is about |
#' |---|---|
#' | [cholupdate_batch()] | change many small factors in one call |
#' | [chol_batch()] | keep many small factors in memory of their own |
#' | [cholinsert_gpu.chol_batch()] | insert, delete and move rows and columns of many small matrices; `orders()` |
#' | [factor_file()] | `factor_file()`, `write_factor()`: a factor that is larger than memory |
#' | [cholupdate_gpu.factor_file()] | change a factor in a file |
#' | [cholinsert_gpu.factor_file()] | insert rows and columns into \eqn{A}, or delete them, with a factor in a file |
#' | [solve.factor_file()] | solve with a factor in a file |
#'
#' Regression:
#'
#' | Page | What it is about |
#' |---|---|
#' | [rls()] | a regression that is kept up to date while observations are added and removed |
#' | [update.rls()] | `update()`, `drop_rows()`: add and remove observations |
#' | [summary.rls()] | `summary()`, `confint()`, `residuals()` and others |
#' | [predict.rls()] | predictions |
#' | [rolling()] | a regression for every window of the data |
#'
#' GPUs, and measurements:
#'
#' | Page | What it is about |
#' |---|---|
#' | [gpu_info()] | whether a GPU can be used, and if not, why |
#' | [gpu_release()] | give back the memory that the package keeps between calls |
#' | [bench_paper()] | measure time and error of all methods on this machine |
#' | [plot.bench_paper()] | figures and findings of these measurements |
#' | [stored_measurements()] | the measurements that come with the package |
#'
#' The vignettes are `"getting-started"`, `"recipes"`, `"how-it-works"`, `"installation"`, `"measurements"`,
#' `"other-packages"`, `"from-c"` and `"the-papers-experiment"`. `R CMD INSTALL` of a folder does not install them, as
#' for every package, nor are they in a package that `R CMD build --no-build-vignettes` has made. To have them, run
#' `R CMD build` in the folder above the sources, which needs packages \pkg{knitr} and \pkg{rmarkdown}, and
#' `R CMD INSTALL` of the file that it makes. Their text is in the folder `vignettes` of the sources, too.
#'
#' @section Words as arguments:
#' An argument that is one of several words, such as `backend`, must have the whole word; `uplo` may be `"U"` or `"L"`
#' too. Only `interval` of [predict.rls()] may be abbreviated, as that of [predict.lm()][stats::predict.lm].
#'
#' @section Errors:
#' Every error that the package raises has the class `gpucholmod_error`, a class of its own, and data fields. The
#' caller's `R` and `V` are unchanged after an error, unless the call was to overwrite them: see
#' [cholupdate_overwrite()], and `in_place` and `keep_intact` of [cholupdate_gpu.chol_factor()].
#'
#' | Class | When | Fields |
#' |---|---|---|
#' | `gpucholmod_not_numeric` | `R`, `V`, `A` or `b` is not a numeric matrix | `argument`, `type` |
#' | `gpucholmod_not_square` | `R` or `A` is not square | `nrow`, `ncol` |
#' | `gpucholmod_dimension_mismatch` | `V` or `b` has the wrong number of rows | `expected`, `actual` |
#' | `gpucholmod_not_finite` | NA, NaN or Inf in `V`, or in `R` or `A` | `argument`, `row`, `col`, `value` |
#' | `gpucholmod_bad_diagonal` | a diagonal entry is subnormal, or must not be 0: see below | `index`, `value` |
#' | `gpucholmod_not_triangular` | `R` is a symmetric matrix, not a factor: see below | `argument`, `uplo`, `looks` |
#' | `gpucholmod_pivoted` | `R` comes from a pivoted factorisation | `pivot` |
#' | `gpucholmod_shared` | the matrix to overwrite is shared, and must not be copied | `argument`, `value`, `bytes` |
#' | `gpucholmod_bad_argument` | any other argument cannot be used | `argument`, `value` |
#' | `gpucholmod_not_positive_definite` | \eqn{A - VV'}, or `A`, is not positive definite | `pivot` |
#' | `gpucholmod_overflow` | an entry that is given, or of the result, is too large to represent | `row`, `col` |
#' | `gpucholmod_invalid_factor` | a handle cannot be used, or not now: see [chol_factor()] | `reason` |
#' | `gpucholmod_bad_file` | a file cannot be read or written: see below | `path`, `reason`; `size` or `error` |
#' | `gpucholmod_backend_unavailable` | no usable GPU or MPI: see below | `backend`, `reason`; `device`, `peer` |
#' | `gpucholmod_process_failed` | a process does not take part: see [process_info()] | `process`, `reason` |
#' | `gpucholmod_not_supported` | this kind of factor does not support the operation | `operation`, `backend` |
#' | `gpucholmod_out_of_memory` | not enough memory, also for a result | `needed`, `available`: bytes, if known |
#' | `gpucholmod_cuda_failure` | any other failure of CUDA | `cuda_error`, `operation` |
#' | `gpucholmod_bad_model` | a formula and its data do not make a model: [rls()], [rolling()] | |
#' | `gpucholmod_singular_fit` | columns depend on others: [rls()] | `columns`, `tolerance` |
#' | `gpucholmod_unknown_columns` | wrong columns: [update.rls()] | `unknown`, `missing`, `expected` |
#' | `gpucholmod_rows_not_kept` | the fit does not keep its observations: [update.rls()] | |
#' | `gpucholmod_lost_digits` | removing observations would lose digits: [update.rls()] | |
#' | `gpucholmod_no_likelihood` | the fit has no likelihood: [summary.rls()] | |
#'
#' [factor_file()] and [bench_paper()] list the reasons of `gpucholmod_bad_file`. `gpucholmod_backend_unavailable` is
#' also raised if several GPUs cannot hold a factor together: see [chol_factor()].
#'
#' `gpucholmod_bad_diagonal` is raised for a factor that is given and for a result. A diagonal entry below the smallest
#' normal number has lost digits, and is always an error. A factor with zeros on its diagonal can be kept and updated;
#' functions that need a positive definite matrix raise this error.
#'
#' An error about one of many factors ([cholupdate_batch()], [solve_modified()]) also has its number in the field
#' `member`. `gpucholmod_not_positive_definite` has the fields `members` and `pivots` instead.
#'
#' `diag()`, `chol2inv()` and `rcond()`, and before R 4.4.0 also `crossprod()` and `tcrossprod()`, are S4 generics when
#' this package is attached. So an error in an expression that is given to them as an argument loses its class. To keep
#' the class, assign the factor to a variable first.
#'
#' Errors of R itself, such as that of [setTimeLimit()], pass through as they are.
#'
#' @section The other triangle:
#' The triangle of a factor that is not used is checked: completely up to order 32; for larger factors in its longest
#' column and at 64 places beside the diagonal. Three things can be found:
#'
#' * It mirrors the used triangle, up to 1.5e-8 of the sum of the magnitudes (3.5e-4 in single precision). Then `R` is a
#'   symmetric matrix, such as a result of [crossprod()] or [solve()]. This is the error `gpucholmod_not_triangular`,
#'   which suggests [chol()]. If `R` is a factor nevertheless, set this triangle to zero.
#' * It looks like a factor of the other kind (`"transposed"`), or `R` is symmetric up to 1.2e-4 (`"nearly_symmetric"`).
#'   This is a warning of class `gpucholmod_other_triangle`, each time.
#' * It is not zero otherwise (`"filled"`). This is the same warning, once a session.
#'
#' Of a batch, 64 to 127 members are checked, and the field `member` has the number of the member.
#'
#' @section Warnings and messages:
#' Warnings have the class `gpucholmod_warning` and a class of their own:
#'
#' | Class | When | Fields |
#' |---|---|---|
#' | `gpucholmod_other_triangle` | see above | `argument`, `uplo`, `looks` |
#' | `gpucholmod_negative_rss` | a sum of squares became `NaN`: [cholupdate_gpu()] | `columns`, for a batch `members` |
#' | `gpucholmod_forgotten_direction` | a coefficient was forgotten: [rls()] | `columns` |
#' | `gpucholmod_rank_deficient` | predictions need unknown coefficients: [predict.rls()] | `columns`, `rows` |
#' | `gpucholmod_no_variance` | no degree of freedom is left: [summary.rls()] | `df` |
#' | `gpucholmod_no_window` | no window is complete: [rolling()] | `window` |
#'
#' Messages have the class `gpucholmod_copied` ([cholupdate_overwrite()] has copied a matrix) or `gpucholmod_jitter`,
#' whose field `jitter` tells what [chol_factor()], [gpu_chol()] or [cholinsert_gpu()] has added to a diagonal.
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
