#' Rank-k update or downdate of a factor with memory of its own
#'
#' The method of [cholupdate_gpu()] for a factor that [chol_factor()], [gpu_factor()] or [gpu_chol()] keeps. On a GPU
#' only \eqn{V} travels, and the factor is read and written once for up to 32 columns of \eqn{V} (16 or 8 where the
#' factor is so large that \eqn{V} would not find room on the multiprocessors); more are done in passes. In ordinary
#' memory it is read and written once, by the steps of method `"blocked"`.
#'
#' `updown(update, C, L)` of package \pkg{Matrix} takes such a factor as `L` too: `update` is `TRUE` or `"+"`, or, for a
#' downdate, `FALSE` or `"-"`, and the value a new factor.
#'
#' @param R A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @param V An \eqn{n \times k}{n x k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}; also of class `Matrix`
#'   or `float32`.
#' @param downdate,weights,scale,z,y,rss As for an ordinary factor, the value included: [cholupdate_gpu()].
#' @param ... Must be empty: the arguments below are given by name.
#' @param in_place `FALSE`: the result is a new factor with memory of its own, and `R` stays as it is. `TRUE`: `R`
#'   itself is changed, for every variable that refers to it. Where there is room on the GPU for a second factor (for a
#'   third, where there are several passes), the result is written there and takes the place of `R`, which takes no
#'   longer than a new factor; otherwise it takes longer. In ordinary memory a second factor is made only where numbers
#'   come near the ends of their range.
#' @param keep_intact Whether a downdate in place that cannot be done leaves `R` as it was (`TRUE`). In ordinary memory,
#'   and where there is no room for a second factor on the GPU, it is to that end first found out whether it can be
#'   done, which reads the factor once more. With `FALSE` that is left out, and a downdate that fails half way makes the
#'   handle unusable: its memory is given back, and every later use is an error of class `gpucholmod_invalid_factor`
#'   with reason `"half_modified"`. It changes nothing for updates and new factors.
#' @param method In ordinary memory `"auto"` or `"blocked"`, which are the same. On a GPU `"persistent"`: one launch for
#'   as many row blocks of the factor as a test allows to be done by the unscaled step, and the slower, always stable
#'   one where it would lose accuracy. `"stepwise"`: the stable step for every row block, with a launch for each,
#'   on any GPU. `"auto"` takes the first where the GPU can do it.
#' @param check Whether a downdate that cannot be done stops (`TRUE`), or is reported in the return value (`FALSE`).
#' @param uplo,precision,backend Those of the factor: they may be given, but not changed.
#' @param control What [cholupdate_control()] gives: for a factor on a GPU, `device_memory` limits what the call
#'   allocates besides the factor, `timeline` is filled; for one in ordinary memory `threads` and `instructions`;
#'   nothing else applies here.
#'
#' @return A handle of the class of `R`: a new one, or, with `in_place = TRUE`, `R` (invisibly). With `check = FALSE`,
#'   a list of the handle `R` and `pivot`: 0 on success; otherwise the order of the first leading minor of \eqn{A - VV'}
#'   that is not positive definite, and `R` is the handle as it was given. The result has the same bits every time
#'   on the same GPU, and on the same CPU whatever the threads.
#'
#' @section Errors:
#' A downdate that would leave the matrix not positive definite is an error of class
#' `gpucholmod_not_positive_definite` with the field `pivot`. (Where several passes take columns off in place without
#' room for a second factor, and with `keep_intact = FALSE`, a minor before that one may fail too: the factor from which
#' that could be told is gone.) The other classes are listed in [gpucholmod-package].
#'
#' Ctrl-C and [setTimeLimit()] stop a call between passes, with a bar as for ordinary matrices. A call in
#' place that has begun to change the factor leaves a handle that cannot be used; with room for a second factor on the
#' GPU, none has.
#'
#' @aliases updown updown,ANY,ANY,chol_factor-method
#' @seealso [chol_factor()]; [drift()] for when to factorise afresh
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' f <- chol_factor(chol(A))
#' g <- cholupdate_gpu(f, V)                              # f stays as it is
#' cholupdate_gpu(g, V, downdate = TRUE, in_place = TRUE) # g is changed
#' all.equal(as.matrix(g), as.matrix(f))
#' last_cholupdate()
#'
#' # a downdate that cannot be done names the pivot
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
