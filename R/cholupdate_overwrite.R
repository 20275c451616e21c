#' Rank-k update or downdate in the memory of the factor
#'
#' [cholupdate_gpu()] returns a new matrix and leaves `R` as it is, which takes twice the memory of `R`. Where that is
#' not there, this function gives up `R`: its memory becomes the result's. It is the only function of the package that
#' changes an ordinary matrix. What is in the other triangle is neither read nor changed.
#'
#' `R` must be the name of a variable of the calling function (or of the global environment, at top level) that holds
#' an ordinary square matrix of doubles to which nothing else refers: not another variable, nor a list, nor a function
#' that got it as an argument. Otherwise the call is refused, with an error of class `gpucholmod_shared` or
#' `gpucholmod_bad_argument`, and nothing is changed.
#'
#' The factor is read once more beforehand, so that a factor or `V` that cannot be used is an error before anything is
#' written. So is a downdate that cannot be done: it is tried out first, which takes about as long as doing it.
#'
#' If the call breaks off later, by Ctrl-C, a failure of CUDA, or an update too large to represent, `R` is lost: half
#' of it is modified. Its diagonal is then set to `NaN`, so that no computation takes it for a factor. The condition
#' of such a failure has a field `lost`.
#'
#' @param R The name of a variable that holds the factor, see Details.
#' @param method `"auto"`, `"stream"`, or, on the GPU, `"resident"`.
#' @inheritParams cholupdate_gpu
#' @return `R`, invisibly. With `check = FALSE`, `pivot`: 0 on success; otherwise the order of the first leading minor
#'   of \eqn{A - VV'} that is not positive definite, and `R` is as it was.
#' @seealso [cholupdate_gpu()]; [gpu_factor()] for a factor that is to be modified often; [factor_file()] for one that
#'   does not fit into memory.
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' R <- chol(A)
#' cholupdate_overwrite(R, V, backend = "cpu")
#' all.equal(R, chol(A + tcrossprod(V)))
#'
#' # what is shared is not overwritten
#' S <- R
#' tryCatch(cholupdate_overwrite(R, V), gpucholmod_shared = function(e) conditionMessage(e))
#' @export
cholupdate_overwrite <- function(R, V, downdate = FALSE, ..., uplo = c("upper", "lower"),
                                 backend = getOption("gpucholmod.backend", "auto"),
                                 method = c("auto", "stream", "resident"), check = TRUE,
                                 control = cholupdate_control()) {
  name <- substitute(R)  # R itself is never evaluated: that would be a reference to it
  if (!is.name(name)) {
    stop_gpucholmod("bad_argument", "'R' must be the name of a variable", list(argument = "R", value = name))
  }
  require_no_more("those after 'downdate' must be given by their full names", ...)
  require_flag(downdate, "downdate")
  require_flag(check, "check")
  require_control(control)
  frame <- parent.frame()
  require_variable(as.character(name), frame)
  request <- list(
    downdate = downdate, uplo = match_choice(uplo, c("upper", "lower"), "uplo"), precision = "double",
    backend = match_choice(backend, c("auto", "cpu", "cuda"), "backend"),
    method = match_choice(method, c("auto", "stream", "resident"), "method"),
    control = control
  )
  V <- open_columns(V, rcpp_overwrite_order(name, frame), float32 = FALSE)

  result <- with_progress(request, function(request) rcpp_cholupdate_overwrite(name, frame, V, request))
  remember(result$report)
  if (result$pivot > 0L && check) stop_not_positive_definite("the downdated matrix", result$pivot)
  if (check) invisible(get(name, frame)) else result$pivot
}

require_variable <- function(name, frame) {
  why <- if (!exists(name, frame, inherits = FALSE)) {
    "there is no such variable here"
  } else if (bindingIsActive(name, frame)) {
    "it is an active binding"
  } else if (bindingIsLocked(name, frame)) {
    "the variable is locked"
  }
  if (!is.null(why)) {
    stop_gpucholmod("bad_argument", sprintf("'%s' cannot be overwritten: %s", name, why),
                    list(argument = "R", value = name))
  }
}
