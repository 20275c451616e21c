#' Rank-k update or downdate of a Cholesky factor
#'
#' Given the factor \eqn{R} of \eqn{A = R'R} and an \eqn{n \times k}{n x k} matrix \eqn{V}, computes the factor of
#' \eqn{A + VV'} (update) or \eqn{A - VV'} (downdate) in \eqn{O(kn^2)} operations, on the GPU or on the CPU. A factor
#' with memory of its own, on a GPU or not, see [chol_factor()], has a [method of its own][cholupdate_gpu.chol_factor].
#'
#' @param R The Cholesky factor: the upper triangular \eqn{n \times n}{n x n} matrix that [chol()] returns. Rows with a
#'   negative diagonal entry, as `qr.R()` returns them, are multiplied by -1 first, which does not change \eqn{R'R}; so
#'   are those rows of `z`. Zeros on the diagonal, as of `matrix(0, n, n)`, are taken by updates. The other triangle is
#'   not used, as in LAPACK, but looked at: a symmetric matrix is an error of class `gpucholmod_not_triangular`, which
#'   names [chol()]; where the triangle is otherwise not zero, a warning may say what else `R` looks like (see
#'   [gpucholmod-package]). Integer matrices, `dtrMatrix` and `Cholesky` objects of package \pkg{Matrix} and `float32`
#'   matrices of package \pkg{float} are accepted too, and come back as they came (integers as doubles).
#' @param V An \eqn{n \times k}{n x k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}; also of class `Matrix`
#'   or `float32`, or numbers with a class of S3, such as a time series. All its columns are one change of \eqn{A}; in
#'   [cholupdate_batch()] and [solve_modified()], which are for many changes, a matrix has a column for each of them.
#' @param downdate `FALSE` for \eqn{A + VV'}, `TRUE` for \eqn{A - VV'}. With `weights` it is left out.
#' @param ... Must be empty: the arguments below are given by name.
#' @param weights,scale The factor of \eqn{scale\,A + V\,\mathrm{diag}(weights)\,V'}{scale A + V diag(weights) V'}.
#'   `weights`: one number, or one for each column of `V`, of any sign; `downdate = TRUE` is `weights = -1`. `scale`:
#'   one positive number, such as a factor by which a filter forgets. What is added goes first, so that no matrix on the
#'   way is indefinite unless the result is. Columns of both signs that cancel each other cost digits, see Accuracy.
#'   Both signs share a pass over the factor: with method `"blocked"` always, on the GPU up to 16 columns of each.
#' @param z,y,rss Right-hand sides that come along. With \eqn{A x = b} solved by \eqn{R x = z}, `z` is \eqn{R'^{-1}b}, a
#'   vector or a matrix with a column for each \eqn{b}, and `y` has a row for each column of `V`; what comes of `z`
#'   belongs to \eqn{scale\,b + V\,\mathrm{diag}(weights)\,y}{scale b + V diag(weights) y}. In a regression the columns
#'   of `V` are observations, and those of `y` their responses. `rss`: the residual sums of squares, one for each column
#'   of `z`, `NaN` and `Inf` included where earlier calls returned them; or nothing. [rls()] keeps all of that together.
#' @param uplo `"upper"` or `"U"` for \eqn{A = R'R}, `"lower"` or `"L"` for a lower triangular factor, \eqn{A = RR'}.
#'   Never guessed; for `dtrMatrix` and `Cholesky` objects it is taken from the object.
#' @param precision What to compute in, `"double"` or `"single"`. The default is what `R` is stored in. With `"double"`,
#'   a `float32` `R` gives an ordinary matrix; `V` is rounded to single precision as `R` is.
#' @param backend `"cuda"` for the GPU, `"cpu"`, or `"auto"`: the GPU where there is one that can be used (see
#'   [gpu_info()]) and that is expected to be quicker, the CPU otherwise; [cholupdate_plan()] tells which, and why. The
#'   results differ by rounding errors. The first GPU that can be used is taken; the environment variable
#'   `CUDA_VISIBLE_DEVICES`, set before R starts, chooses among several. Where `"cuda"` cannot be had, that is an error
#'   which says why. The default can be set with `options(gpucholmod.backend =)`.
#' @param method `"auto"`: `"stream"` on the GPU; on the CPU `"blocked"`, or `"refactor"` where that is expected to be
#'   quicker.
#'
#'   * `"blocked"` (CPU): blocks of mixed hyperbolic Householder steps, for up to four columns rotations, accurate for
#'     updates and downdates alike. Reads and writes the factor once, with the vector instructions that the machine has
#'     and by several threads; the result does not depend on how many.
#'   * `"refactor"` (CPU): forms \eqn{A \pm VV'}{A +/- VV'} and factorises it, with R's BLAS and LAPACK, in double
#'     precision. Where LAPACK does not find that matrix positive definite, `"blocked"` is run instead: it can tell
#'     better.
#'   * `"reference"` (CPU): one plane rotation after the other, Givens for updates and Chambers' mixed form for
#'     downdates. Slow and plain: what the others are tested against.
#'   * `"stream"` (GPU): the factor goes through the GPU once, in panels of whole columns, of which only the triangle
#'     travels; several threads of the CPU fill and empty the buffers, while panels are sent, modified and fetched
#'     side by side. Device memory is \eqn{O(nk)}, within the limit that `control` sets; the limit does not change a
#'     bit of the result. With `backend = "cpu"` the same schedule runs with the steps of `"blocked"`.
#'   * `"resident"` (GPU): the same with a single panel, so that the whole factor is on the GPU at once.
#'   * `"panel"` (GPU): the method of Walder (2010). The CPU does the diagonal blocks, the GPU everything to their
#'     right, in panels that are sent there and brought back; device memory is \eqn{O(n)}. With `backend = "cpu"` the
#'     CPU runs the same schedule and the same per-thread code, for study and tests.
#' @param check Whether a downdate that cannot be done stops (`TRUE`), or is reported in the return value (`FALSE`).
#' @param control Tunables: see [cholupdate_control()].
#'
#' @return The modified factor, in the form and with the dimnames of `R`: positive diagonal, the other triangle exactly
#'   zero. A zero on the diagonal of `R` stays exactly zero where the columns of `V` bring nothing. With `check =
#'   FALSE`, a list of the factor `R` and `pivot`: 0 on success; otherwise the order of the first leading minor of
#'   \eqn{A - VV'} that is not positive definite, and `R` is the factor as it was given. With `z`, a list of `R`, `z`
#'   in the form in which it was given, `rss` if that was, and `pivot` with `check = FALSE`; where that is not 0, `z`
#'   and `rss` are as they were given too.
#'
#' @section Right-hand sides:
#' `z` and `rss` are changed by the same orthogonal and hyperbolic transforms as `R`, as by LINPACK's `dchud` and
#' `dchdd`: so nothing is lost that forming and solving the equations anew would lose. Methods `"refactor"`,
#' `"reference"` and `"panel"` do not know of them.
#'
#' More may be taken away from a residual sum of squares than there is, though \eqn{R} can be downdated. If what is
#' missing is at most 100 units of rounding (2.2e-16, or 1.2e-7 in single precision) of what was there,
#' \eqn{\|z\|^2}{|z|^2} before and after, `rss` and the squares that are added and taken away, then rounding has done
#' it, and the sum becomes 0. Otherwise it becomes `NaN`, with a warning of class `gpucholmod_negative_rss` that has a
#' field `columns`; `R` and `z` are what they should be. A sum that is `NaN` stays so, without a warning.
#'
#' Sums of squares are doubles: a residual above 1.3e154 makes the sum `Inf`, which stays `Inf` (and becomes `NaN` where
#' another such residual is taken away); one below 1.5e-162 adds nothing.
#'
#' @section Accuracy:
#' The result is the exact factor of a matrix that differs from the one that is asked for by a few units of rounding
#' times \eqn{\|scale\,A\| + \|V\,\mathrm{diag}(|weights|)\,V'\|}{|scale A| + |V diag(|weights|) V'|}; see
#' `system.file("design", "accuracy.md", package = "gpucholmod")`. When a downdate removes nearly all of \eqn{A} in some
#' direction, that direction of the result is known to fewer digits, with any method. So is all of the result where
#' columns of both signs are large and cancel each other: with `R = diag(2, 2)`, the columns (1e8, 1) with weight 1 and
#' (1e8, 1) with weight -1 leave 5.96 where exact numbers leave 4.
#'
#' With method `"blocked"`, `"stream"` on the CPU and factors in ordinary memory the units of rounding do not grow with
#' the number of columns: 1 to 5 of them were measured for 5 to 30,000 columns. With the other methods, and on a GPU,
#' where columns go in passes of up to 32, they grow like the square root of the number of columns, or of passes.
#'
#' @section Errors:
#' A downdate of a factor with a zero on its diagonal is an error of class `gpucholmod_bad_diagonal`, also where columns
#' are added by the same call.
#'
#' A downdate that would leave the matrix not positive definite is an error of class `gpucholmod_not_positive_definite`
#' with the field `pivot`. Within the error above rounding decides: a matrix that is positive definite by less than that
#' may be refused, and one that is not, by less, be factorised.
#'
#' An entry of the result that is too large to represent is an error of class `gpucholmod_overflow`; an entry of its
#' diagonal below the smallest normal number (2.2e-308, or 1.2e-38 where the factor is stored in single precision) one
#' of class `gpucholmod_bad_diagonal` with the fields `index` and `value`: such numbers lose their digits, and have no
#' inverse. A `scale` below 1 that is applied again and again leads there, in a direction to which nothing is added:
#' with 0.9 after 13,400 calls. The other classes are listed in [gpucholmod-package]. `R` and `V` are unchanged in every
#' case.
#'
#' @section Progress and interruption:
#' In an interactive session, a call that takes longer than two seconds shows a bar with the share of the work that is
#' done and the time that is left, where package \pkg{cli} is installed. `options(gpucholmod.progress = FALSE)` turns
#' that off, `TRUE` turns it on in scripts too; `options(gpucholmod.progress_after =)` sets the seconds to wait. How the
#' bar looks, and where it is shown, is set by the [options of cli][cli::cli-config].
#'
#' Ctrl-C stops a long call, and so does a limit set by [setTimeLimit()]: what it held is freed, the GPU's memory
#' included, and nothing is changed.
#'
#' @references
#' J. J. Dongarra, C. B. Moler, J. R. Bunch, G. W. Stewart (1979). LINPACK Users' Guide. SIAM, chapter 10.
#'
#' C. Walder (2010). Rank k Cholesky Up/Down-dating on the GPU: gpucholmodV0.2. arXiv:1011.1173.
#' \doi{10.48550/arXiv.1011.1173}
#'
#' @seealso [solve_forward()], [solve_back()] and [logdet()] for what to do with the result; [solve_modified()] for many
#' `V`, where no factors are wanted; [cholupdate_plan()], [cholupdate_overwrite()], [factor_file()], [gpu_factor()],
#' [chol()], [gpu_info()],
#'   [last_cholupdate()], [cholupdate_control()]
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
#' # to solve (A + VV') x = b, and the logarithm of its determinant
#' b <- rnorm(50)
#' x <- solve_back(up, solve_forward(up, b))
#' all.equal(x, solve(A + tcrossprod(V), b))
#' logdet(up)
#'
#' # a sliding window: one row comes, another goes, and what is old counts less
#' x <- rnorm(50)
#' moved <- cholupdate_gpu(up, cbind(x, V[, 1]), weights = c(1, -0.99), scale = 0.99)
#' all.equal(crossprod(moved), 0.99 * (crossprod(up) - tcrossprod(V[, 1])) + tcrossprod(x))
#'
#' # a regression: its coefficients without the first two observations
#' x <- cbind(1, as.matrix(stackloss[1:3]))
#' R <- chol(crossprod(x))
#' z <- solve_forward(R, crossprod(x, stackloss$stack.loss))
#' less <- cholupdate_gpu(R, t(x[1:2, ]), downdate = TRUE, z = z, y = stackloss$stack.loss[1:2])
#' again <- lm(stack.loss ~ ., stackloss[-(1:2), ])
#' all.equal(c(solve_back(less$R, less$z)), coef(again), check.attributes = FALSE)
#' R <- chol(A)
#'
#' # a downdate that cannot be done names the pivot
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
