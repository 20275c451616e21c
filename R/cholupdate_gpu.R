#' Rank-k update or downdate of a Cholesky factor
#'
#' Given the factor \eqn{R} of \eqn{A = R'R} and an \eqn{n \times k}{n x k} matrix \eqn{V}, computes the factor of
#' \eqn{A + VV'} (update) or \eqn{A - VV'} (downdate) in \eqn{O(kn^2)} operations, on a GPU or on the CPU. This page is
#' about factors that are matrices. Handles of [chol_factor()] and factors in files have pages of their own:
#' [cholupdate_gpu.chol_factor()] and [cholupdate_gpu.factor_file()].
#'
#' @param R The Cholesky factor: the upper triangular \eqn{n \times n}{n x n} matrix that [chol()] returns, or a lower
#'   triangular matrix with `uplo = "lower"`. Integer matrices, `dtrMatrix` and `Cholesky` objects of package
#'   \pkg{Matrix} and `float32` matrices of package \pkg{float} are accepted too. If a diagonal entry is negative, as
#'   `qr.R()` may return it, its row is multiplied by -1 first, which does not change \eqn{R'R}; the same row of `z` is
#'   multiplied by -1, too. Updates accept zeros on the diagonal, such as those of `matrix(0, n, n)`. The other triangle
#'   is not used, as in LAPACK, but it is checked: a symmetric matrix is an error of class `gpucholmod_not_triangular`,
#'   which suggests [chol()], unless it is diagonal, and so a factor too; any other triangle that is not zero may cause
#'   a warning (see [gpucholmod-package]).
#' @param V An \eqn{n \times k}{n x k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}, which is one column.
#'   Rows go by place: names of the factor's variables in another order are an error. Logical values are numbers, of
#'   which `TRUE` is 1. `V` may be of class `Matrix` or `float32`, or numeric with an S3 class, such as a time series.
#'   All columns together are one change of \eqn{A}. [cholupdate_batch()] and [solve_modified()] make many changes:
#'   there, each column of a matrix is a change.
#' @param downdate `FALSE` for \eqn{A + VV'}, `TRUE` for \eqn{A - VV'}. Leave it out if you give `weights`.
#' @param ... Must be empty: the arguments below are given by name.
#' @param weights,scale The result is the factor of
#'   \eqn{scale\,A + V\,\mathrm{diag}(weights)\,V'}{scale A + V diag(weights) V'}. `weights` is one number, or one for
#'   each column of `V`, of any sign; `weights = -1` is the same as `downdate = TRUE`. `scale` is one positive number,
#'   such as the forgetting factor of a filter. Columns with positive weights are added before the others are taken
#'   away, so no matrix in between is indefinite unless the result is. If large columns of both signs cancel each other,
#'   digits are lost: see section Accuracy. One pass over the factor does columns of both signs: all of them with method
#'   `"blocked"`, up to 16 of each sign on a GPU.
#' @param z,y,rss Right-hand sides that are changed along with `R`. If \eqn{Ax = b} is solved by \eqn{Rx = z}, then `z`
#'   is \eqn{R'^{-1}b}: a vector, or a matrix with a column for each \eqn{b}. `y` has a row for each column of `V`. The
#'   new `z` belongs to the new factor and to
#'   \eqn{scale\,b + V\,\mathrm{diag}(weights)\,y}{scale b + V diag(weights) y}. In a regression, the columns of `V` are
#'   observations, and the rows of `y` are their responses. `rss`, which may be left out, has the residual sum of
#'   squares for each column of `z`; it may be `NaN` or `Inf` if an earlier call returned that. [rls()] keeps `R`, `z`
#'   and `rss` together.
#' @param uplo `"upper"` or `"U"` for \eqn{A = R'R}, `"lower"` or `"L"` for a lower triangular factor, \eqn{A = RR'}. It
#'   is never guessed from the numbers; `dtrMatrix` and `Cholesky` objects say it themselves.
#' @param precision The precision of the computation, `"double"` or `"single"`. The default is the precision in which
#'   `R` is stored. With `"double"`, the result for a `float32` matrix `R` is an ordinary matrix; `V` is rounded to
#'   single precision even then.
#' @param backend `"cuda"` for a GPU, `"cpu"` for the CPU, or `"auto"`: a GPU if one can be used (see [gpu_info()]) and
#'   is expected to be quicker, otherwise the CPU. [cholupdate_plan()] tells which of them a call would use, and why.
#'   The results of the two differ by rounding errors. The first GPU that can be used is taken; to choose another, set
#'   the environment variable `CUDA_VISIBLE_DEVICES` before R starts. If `"cuda"` is given and no GPU can be used, the
#'   error says why. `options(gpucholmod.backend =)` sets the default.
#' @param method `"auto"` is `"stream"` on a GPU; on the CPU it is `"blocked"`, or `"refactor"` if that is expected to
#'   be quicker.
#'
#'   * `"blocked"` (CPU): transforms blocks of rows by mixed hyperbolic Householder steps, or by rotations for up to
#'     four columns; accurate for updates and downdates alike. It reads and writes the factor once, with vector
#'     instructions and several threads. The number of threads does not change the result.
#'   * `"refactor"` (CPU): forms \eqn{A \pm VV'}{A +/- VV'} and factorises it, with R's BLAS and LAPACK, in double
#'     precision. If LAPACK finds the matrix not positive definite, `"blocked"` is run instead, because it decides this
#'     more accurately.
#'   * `"reference"` (CPU): one plane rotation after the other, Givens' for updates and Chambers' mixed form for
#'     downdates. It is slow and simple; the tests compare the other methods with it.
#'   * `"stream"` (GPU): sends the factor through the GPU once, in panels of whole columns, of which only the triangle
#'     is sent. Several threads of the CPU fill and empty the buffers, while other panels are sent, modified and sent
#'     back. Device memory is \eqn{O(nk)}, within the limit that `control` sets; the limit does not change a bit of the
#'     result. With `backend = "cpu"` the same schedule runs with the steps of `"blocked"`.
#'   * `"resident"` (GPU): the same with a single panel, so that the whole factor is on the GPU at once.
#'   * `"panel"` (GPU): the method of Walder (2010). The CPU modifies the diagonal blocks; the GPU modifies everything
#'     to their right, in panels that are sent there and back. Device memory is \eqn{O(n)}. With `backend = "cpu"` the
#'     CPU runs the same schedule and the same code per thread, for study and tests.
#' @param check Whether a downdate that is not possible is an error (`TRUE`), or is reported in the return value
#'   (`FALSE`).
#' @param control Tunables: see [cholupdate_control()].
#'
#' @return The modified factor, of the class and with the dimnames of `R` (doubles if `R` has integers). Its diagonal is
#'   positive, and the other triangle exactly zero. A zero on the diagonal of `R` stays exactly zero if the columns of
#'   `V` add nothing to it.
#'
#'   With `check = FALSE`: a list of the factor `R` and `pivot`. `pivot` is 0 on success. Otherwise it is the order of
#'   the first leading minor of \eqn{A - VV'} that is not positive definite, and `R` is the factor that was given.
#'
#'   With `z`: a list of `R`, `z` in the form in which it was given, `rss` if it was given, and `pivot` if
#'   `check = FALSE`. If `pivot` is not 0, `z` and `rss` are those that were given.
#'
#' @section Right-hand sides:
#' The orthogonal and hyperbolic transforms of `R` are applied to `z` and `rss` too, as in LINPACK's `dchud` and
#' `dchdd`. So no digits are lost by forming the equations and solving them anew. Methods `"refactor"`, `"reference"`
#' and `"panel"` cannot do this.
#'
#' A downdate that \eqn{R} allows may take more away from a residual sum of squares than there is. The package compares
#' the deficit with the sum of \eqn{\|z\|^2}{|z|^2} before and after, `rss`, and the squares that are added and taken
#' away. If the deficit is at most 100 units of rounding (2.2e-16, or 1.2e-7 in single precision) of that sum, it is due
#' to rounding, and the new `rss` is 0. Otherwise the new `rss` is `NaN`, and a warning of class
#' `gpucholmod_negative_rss` has the numbers of such columns of `z` in the field `columns`. `R` and `z` are right in
#' both cases. A sum that was `NaN` before stays `NaN`, without a warning.
#'
#' Sums of squares are doubles. A residual above 1.3e154 makes the sum `Inf`; it stays `Inf`, or becomes `NaN` if
#' another such residual is taken away. A residual below 1.5e-162 adds nothing.
#'
#' @section Accuracy:
#' The result is the exact factor of a matrix that differs from
#' \eqn{scale\,A + V\,\mathrm{diag}(weights)\,V'}{scale A + V diag(weights) V'} by a few units of rounding times
#' \eqn{\|scale\,A\| + \|V\,\mathrm{diag}(|weights|)\,V'\|}{|scale A| + |V diag(|weights|) V'|}; see
#' `system.file("design", "accuracy.md", package = "gpucholmod")`. If a downdate removes nearly all of \eqn{A} in some
#' direction, every method knows the result to fewer digits in that direction. If large columns of both signs cancel
#' each other, all of the result is known to fewer digits: with `R = diag(2, 2)`, a column (1e8, 1) with weight 1 and
#' the same column with weight -1 leave 5.96 in the first diagonal entry of the matrix, where exact numbers leave 4.
#'
#' With method `"blocked"`, with `"stream"` on the CPU, and for factors in ordinary memory, the number of units of
#' rounding does not grow with the number of columns: 1 to 5 units were measured for 5 to 30,000 columns. With the other
#' methods it grows like the square root of the number of columns. On a GPU, which takes up to 32 columns in a pass, it
#' grows like the square root of the number of passes.
#'
#' @section Errors:
#' A downdate of a factor with a zero on its diagonal is an error of class `gpucholmod_bad_diagonal`, even if the same
#' call adds columns.
#'
#' A downdate that would leave the matrix not positive definite is an error of class `gpucholmod_not_positive_definite`
#' with the field `pivot`. Rounding decides if the matrix is as close to singular as the error above: it may be refused
#' though it is just positive definite, or be factorised though it is just not.
#'
#' An entry of the result that is too large to represent is an error of class `gpucholmod_overflow`. A diagonal entry of
#' the result below the smallest normal number (2.2e-308, or 1.2e-38 if the factor is stored in single precision) is an
#' error of class `gpucholmod_bad_diagonal` with the fields `index` and `value`: such numbers have lost digits, and have
#' no inverse. A `scale` below 1 that is applied again and again leads to this error, in a direction to which nothing is
#' added: 0.9 after 13,400 calls. While a factor with zeros on its diagonal is modified, very small numbers stand in for
#' the zeros. So an update of such a factor is the same error if all its other numbers and those of `V` are below 1e-261
#' (in single precision 1e-19), or if `scale` is below 1e-80 (1e-15 for a handle in single precision). The package
#' divides columns of `V` by \eqn{\sqrt{scale}}{sqrt(scale)}; a quotient that is too large is an error of class
#' `gpucholmod_overflow`. [gpucholmod-package] lists the other classes. `R` and `V` are unchanged in every case.
#'
#' @section Progress and interruption:
#' In an interactive session in which package \pkg{cli} is installed, a call that takes longer than two seconds shows a
#' progress bar with the time that is left. `options(gpucholmod.progress = FALSE)` turns the bar off, and `TRUE` turns
#' it on in scripts too. `options(gpucholmod.progress_after =)` sets the seconds before it is shown. The
#' [options of cli][cli::cli-config] set how and where it is shown.
#'
#' Ctrl-C stops a long call, and so does the limit of [setTimeLimit()]. The call then frees its memory, the GPU's
#' included, and changes nothing.
#'
#' @references J. J. Dongarra, C. B. Moler, J. R. Bunch, G. W. Stewart (1979). LINPACK Users' Guide. SIAM, chapter 10.
#'
#' C. Walder (2010). Rank k Cholesky Up/Down-dating on the GPU: gpucholmodV0.2. arXiv:1011.1173.
#' \doi{10.48550/arXiv.1011.1173}
#'
#' @seealso [solve_factor()], [solve_forward()], [solve_back()] and [logdet()] use the result. [chol_factor()] keeps a
#'   factor that is modified again and again. [solve_modified()] is for many `V` if no factors are needed.
#'   [cholupdate_overwrite()], [factor_file()], [cholupdate_plan()], [last_cholupdate()], [cholupdate_control()],
#'   [gpu_info()], [chol()]
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' R <- chol(A)
#'
#' up <- cholupdate_gpu(R, V)
#' all.equal(up, chol(A + tcrossprod(V)))
#'
#' down <- cholupdate_gpu(up, V, downdate = TRUE)
#' all.equal(down, R)
#'
#' # solve (A + VV') x = b; the logarithm of the determinant of A + VV'
#' b <- rnorm(50)
#' x <- solve_factor(up, b)
#' all.equal(x, solve(A + tcrossprod(V), b))
#' logdet(up)
#'
#' # a sliding window with forgetting: scale by 0.99, add one row, take the oldest away
#' x <- rnorm(50)
#' moved <- cholupdate_gpu(up, cbind(x, V[, 1]), weights = c(1, -0.99), scale = 0.99)
#' all.equal(crossprod(moved), 0.99 * (crossprod(up) - tcrossprod(V[, 1])) + tcrossprod(x))
#'
#' # the coefficients of a regression without its first two observations
#' x <- cbind(1, as.matrix(stackloss[1:3]))
#' S <- chol(crossprod(x))
#' z <- solve_forward(S, crossprod(x, stackloss$stack.loss))
#' less <- cholupdate_gpu(S, t(x[1:2, ]), downdate = TRUE, z = z, y = stackloss$stack.loss[1:2])
#' again <- lm(stack.loss ~ ., stackloss[-(1:2), ])
#' all.equal(c(solve_back(less$R, less$z)), coef(again), check.attributes = FALSE)
#'
#' # a downdate that is not possible: the error has the pivot
#' tryCatch(cholupdate_gpu(R, 100 * V, downdate = TRUE),
#'          gpucholmod_not_positive_definite = function(e) e$pivot)
#' @concept rank-one update
#' @concept rank-1 update
#' @concept rank-one downdate
#' @concept low-rank update
#' @concept Kalman filter
#' @concept square-root filter
#' @concept adaptive Metropolis
#' @export
cholupdate_gpu <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL, rss = NULL,
                           uplo = c("upper", "lower"), precision = c("double", "single"),
                           backend = getOption("gpucholmod.backend", "auto"), method = "auto", check = TRUE,
                           control = cholupdate_control()) {
  if (missing(R) || missing(V)) require_given("R", "V")
  UseMethod("cholupdate_gpu")
}

#' @rdname cholupdate_gpu
#' @export
cholupdate_gpu.default <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                   rss = NULL, uplo = c("upper", "lower"), precision = c("double", "single"),
                                   backend = getOption("gpucholmod.backend", "auto"),
                                   method = c("auto", "blocked", "refactor", "reference", "panel", "stream",
                                              "resident"),
                                   check = TRUE, control = cholupdate_control()) {
  if (...length()) require_no_more(...)
  lower <- if (missing(uplo)) FALSE else match_choice(uplo, choices$uplo, "uplo") == "lower"
  plain <- rcpp_are_plain(R, V, lower)
  factor <- if (!plain) with_memory(open_factor(R, if (!missing(uplo)) if (lower) "lower" else "upper"))
  require_same_rows(V, names_of_variables(factor_dimnames(R), if (plain) lower else factor$lower))
  single <- if (!missing(precision)) match_choice(precision, choices$precision, "precision") == "single"
            else !plain && factor$float32
  request <- default_request
  if (!identical(downdate, FALSE)) {
    request$downdate <- if (is.logical(downdate)) downdate else require_flag(downdate, "downdate")
  }
  if (!missing(check)) request$check <- if (is.logical(check)) check else require_flag(check, "check")
  if (if (plain) lower else factor$lower) request$lower <- TRUE
  if (single) request$single <- TRUE
  if (!missing(backend)) request$backend <- backend_number(backend)
  if (!missing(method)) request$method <- method_number(method, ordinary_methods)
  if (!missing(control)) request$control <- control_numbers(control)
  if (!is.null(weights)) request$weights <- check_weights(weights, downdate)
  if (!identical(scale, 1)) request$scale <- check_scale(scale)
  if (plain) {
    x <- R
    if (!missing(z) || !missing(y) || !missing(rss)) request["sides"] <- list(sides_of(z, y, rss, nrow(R), NCOL(V)))
  } else {
    with_memory({
      widened <- factor$float32 && !single
      x <- if (widened) opened_doubles(factor, R) else opened(factor, R)
      V <- open_columns(V, nrow(x), factor$float32)
      request["sides"] <- list(sides_of(z, y, rss, nrow(x), ncol(V)))
      if (widened) V <- keep_dim(rcpp_from_float(V), V)
      NULL
    })
  }
  done <- carry_out(request, rcpp_cholupdate(x, V, request))
  if (done$pivot > 0L) return(returned(R, done, check, z, rss))
  modified <- done$factor
  done$factor <- NULL  # a list that held it would count as a reference to it for good, see opened()
  if (!plain) {
    with_memory({
      modified <- close_factor(factor, R, modified, single = !widened)
      NULL
    })
  }
  returned(modified, done, check, z, rss)
}
