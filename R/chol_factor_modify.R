#' Rank-k update or downdate of a factor with memory of its own
#'
#' This is the method of [cholupdate_gpu()] for the factor of a handle from [chol_factor()], [gpu_factor()] or
#' [gpu_chol()]. For a factor on a GPU, only \eqn{V} is sent to the GPU. The GPU reads and writes the factor once for up
#' to 32 columns of \eqn{V} (16 or 8 columns on a GPU with few multiprocessors or little shared memory); more columns
#' are done in passes. A factor in ordinary memory is read and written once, by the steps of method `"blocked"`.
#'
#' `updown(update, C, L)` of package \pkg{Matrix} accepts a handle as `L`, too. `update` is `TRUE` or `"+"` for an
#' update, `FALSE` or `"-"` for a downdate, and the value is a new handle.
#'
#' @param R A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @param V An \eqn{n \times k}{n x k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}; also of class `Matrix`
#'   or `float32`.
#' @param downdate,weights,scale,z,y,rss As for an ordinary factor, their values included: [cholupdate_gpu()].
#' @param ... Must be empty: the arguments below are given by name.
#' @param in_place `FALSE`: the result is a new handle, and `R` stays as it is. `TRUE`: `R` itself is changed, for every
#'   variable that refers to it. If the GPU has room for a second factor (for a third, if there are several passes), the
#'   result is written there and then replaces `R`, which takes no longer than a new factor. Without this room it takes
#'   longer. In ordinary memory a second factor is made only if numbers come near the ends of their range.
#' @param keep_intact Whether a downdate in place that is not possible leaves `R` as it was (`TRUE`). To this end, the
#'   call first tests whether the downdate is possible, which reads the factor once more. On a GPU with room for a
#'   second factor this is not needed. With `FALSE` there is no test, and a downdate that fails half way makes the
#'   handle unusable: its memory is given back, and every later use is an error of class `gpucholmod_invalid_factor`
#'   with the reason `"half_modified"`. This argument has no effect on updates and on calls that make a new handle.
#' @param method In ordinary memory `"auto"` or `"blocked"`, which are the same. On a GPU `"persistent"` or
#'   `"stepwise"`. `"persistent"` uses the quick unscaled step for the row blocks for which a test finds it accurate,
#'   many of them in one launch, and the slower, always stable Householder step for the others. `"stepwise"` uses the
#'   Householder step for every row block, with a launch for each, and runs on any GPU. `"auto"` is `"persistent"` if
#'   the GPU supports it.
#' @param check Whether a downdate that is not possible is an error (`TRUE`), or is reported in the return value
#'   (`FALSE`).
#' @param uplo,precision,backend A handle has its own, which cannot be changed.
#' @param control What [cholupdate_control()] returns. For a factor on a GPU, `device_memory` limits what the call
#'   allocates besides the factor, and `timeline` is used; for a factor in ordinary memory, `threads` and `instructions`
#'   are used.
#'
#' @return A handle of the class of `R`: a new handle, or, with `in_place = TRUE`, `R` itself, invisibly. With
#'   `check = FALSE`, a list of the handle `R` and `pivot`. `pivot` is 0 on success; otherwise it is the order of the
#'   first leading minor of \eqn{A - VV'} that is not positive definite, and `R` is the handle that was given. The
#'   result has the same bits every time on the same GPU, and on the same CPU for any number of threads.
#'
#' @section Errors:
#' A downdate that would leave the matrix not positive definite is an error of class `gpucholmod_not_positive_definite`
#' with the field `pivot`. If several passes take columns away in place, without room for a second factor and with
#' `keep_intact = FALSE`, `pivot` may not be the first such minor, because the factor that would tell this is gone.
#' [gpucholmod-package] lists the other classes.
#'
#' Ctrl-C and [setTimeLimit()] stop a call between passes, with a progress bar as for ordinary matrices. If a call in
#' place has begun to change the factor, the handle cannot be used afterwards. With room for a second factor on the GPU,
#' this does not happen.
#'
#' @aliases updown updown,ANY,ANY,chol_factor-method
#' @seealso [chol_factor()]; [drift()], which tells when to factorise again
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' f <- chol_factor(chol(A))
#' g <- cholupdate_gpu(f, V)                              # f stays as it is
#' cholupdate_gpu(g, V, downdate = TRUE, in_place = TRUE) # g is changed
#' all.equal(as.matrix(g), as.matrix(f))
#' last_cholupdate()
#'
#' # a downdate that is not possible: the error has the pivot
#' tryCatch(cholupdate_gpu(f, 100 * V, downdate = TRUE, in_place = TRUE),
#'          gpucholmod_not_positive_definite = function(e) e$pivot)
#' @export
cholupdate_gpu.chol_factor <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                       rss = NULL, in_place = FALSE, keep_intact = TRUE,
                                       method = c("auto", "blocked", "persistent", "stepwise"),
                                       check = TRUE, uplo = R$uplo, precision = R$precision,
                                       backend = if (inherits(R, "gpu_factor")) "cuda" else "cpu",
                                       control = cholupdate_control()) {
  if (...length()) require_no_more(...)
  if (!is.logical(in_place) || length(in_place) != 1L || is.na(in_place)) require_flag(in_place, "in_place")
  n <- order_of(R)
  if (!missing(uplo)) match_choice(uplo, own_choice(R, "uplo"), "uplo")
  if (!missing(precision)) match_choice(precision, own_choice(R, "precision"), "precision")
  on_gpu <- inherits(R, "gpu_factor")
  if (!missing(backend)) match_choice(backend, c(if (on_gpu) "cuda" else "cpu", "auto"), "backend")
  require_same_rows(V, variable_names(R))
  if (!are_plain_columns(V, n)) V <- with_memory(open_columns(V, n, float32 = FALSE))
  request <- default_request  # src/ knows uplo and the precision
  if (!identical(downdate, FALSE)) {
    request$downdate <- if (is.logical(downdate)) downdate else require_flag(downdate, "downdate")
  }
  if (!missing(check)) request$check <- if (is.logical(check)) check else require_flag(check, "check")
  request$backend <- if (on_gpu) 2L else 1L
  if (!missing(method)) {
    own <- if (on_gpu) c("persistent", "stepwise") else "blocked"
    request$method <- method_number(method, c("auto", own))
  }
  if (!missing(control)) request$control <- control_numbers(control)
  if (!is.null(weights)) request$weights <- check_weights(weights, downdate)
  if (!identical(scale, 1)) request$scale <- check_scale(scale)
  if (!missing(z) || !missing(y) || !missing(rss)) request["sides"] <- list(sides_of(z, y, rss, n, NCOL(V)))

  modified <- if (in_place) R else descendant(R)
  done <- carry_out(request, rcpp_factor_modify(R, modified, V, request, keep_intact), loss_of(R))
  value <- returned(if (done$pivot > 0L) R else modified, done, check, z, rss)
  if (in_place && check) invisible(value) else value
}
