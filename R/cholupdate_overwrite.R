#' Rank-k update or downdate in the memory of the factor
#'
#' `cholupdate_overwrite()` is for an ordinary matrix `R` that is so large that there is no memory for a second one.
#' [cholupdate_gpu()] returns a new matrix and leaves `R` as it is. This function writes the result into the memory of
#' `R` instead. It does not change the other triangle.
#'
#' To modify a factor again and again, keep it in a handle of [chol_factor()], and call
#' [cholupdate_gpu()][cholupdate_gpu.chol_factor] with `in_place = TRUE`: this needs as little memory, and none of the
#' care that is described below.
#'
#' `R` must be the name of a variable of the calling function (or of the global environment, at top level) that holds an
#' ordinary square matrix of doubles. If something else refers to the same matrix, such as another variable, a list or
#' the caller of a function that got it as an argument, this must not change. Then the matrix is copied first, as R does
#' itself for `R[i, j] <- x`, and a message says so. After that the variable holds the copy, which later calls
#' overwrite. R counts references, and may count too many, but never too few: after `R <- chol(A)` at the top level of
#' [source()], of [example()] or of a knitr document, or after a function has kept the matrix in a list. If there is no
#' memory for a copy, make the factor and overwrite it within a function.
#'
#' The call reads the factor once more before it changes anything, so that a factor or `V` that cannot be used is an
#' error in time. It also tests whether a downdate is possible, which takes about as long as the downdate.
#'
#' If the call ends later, by Ctrl-C, by a failure of CUDA, or because the result of an update is too large to
#' represent, `R` is lost, because half of it is modified. Its diagonal is then set to `NaN`, so that no computation
#' takes it for a factor. The error of such a failure has a field `lost`; an interrupt and R's time limit (see
#' [setTimeLimit()]) are signalled by R itself, and have none.
#'
#' @inheritParams cholupdate_gpu
#' @param R The name of a variable that holds the factor, see Details.
#' @param method `"auto"`, `"stream"`, or, on the GPU, `"resident"`.
#' @param copy What to do if something else refers to the matrix. `TRUE`: copy the matrix first, with a message of class
#'   `gpucholmod_copied` that has the fields `argument` and `bytes`. `FALSE`: stop with an error of class
#'   `gpucholmod_shared`, so that no second matrix is ever made.
#' @return `NULL`, invisibly, because a value would be another reference to `R`. With `z`, a list of `z`, `rss` if it
#'   was given, and `pivot` if `check = FALSE`. Without `z`, and with `check = FALSE`: `pivot`, which is 0 on success;
#'   otherwise it is the order of the first leading minor of \eqn{A - VV'} that is not positive definite, and `R` is as
#'   it was.
#' @seealso [cholupdate_gpu()]; [chol_factor()] for a factor that is modified often; [factor_file()] for a factor that
#'   does not fit into memory
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' R <- chol(A)
#' cholupdate_overwrite(R, V)
#' all.equal(R, chol(A + tcrossprod(V)))
#'
#' # within a function nothing else refers to R: no second matrix is made
#' update_twice <- function(A, V) {
#'   R <- chol(A)
#'   cholupdate_overwrite(R, V, copy = FALSE)
#'   cholupdate_overwrite(R, V, copy = FALSE)
#'   R
#' }
#' all.equal(update_twice(A, V), chol(A + 2 * tcrossprod(V)))
#' @export
cholupdate_overwrite <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL, rss = NULL,
                                 uplo = c("upper", "lower"), backend = getOption("gpucholmod.backend", "auto"),
                                 method = c("auto", "stream", "resident"), check = TRUE,
                                 control = cholupdate_control(), copy = TRUE) {
  if (missing(R) || missing(V)) require_given("R", "V")
  name <- substitute(R)  # R itself is not evaluated: that would be a reference to it
  if (!is.name(name)) {
    stop_gpucholmod("bad_argument", "'R' must be the name of a variable", list(argument = "R", value = name))
  }
  if (...length()) require_no_more(...)
  if (!missing(downdate)) require_flag(downdate, "downdate")
  if (!missing(check)) require_flag(check, "check")
  if (!missing(copy)) require_flag(copy, "copy")
  frame <- parent.frame()
  require_variable(as.character(name), frame)
  lower <- if (missing(uplo)) FALSE else match_choice(uplo, choices$uplo, "uplo") == "lower"
  weights <- check_weights(weights, downdate)
  force(V)  # which may be an expression that changes the variable, or refers to it
  found <- rcpp_overwrite_look(name, frame)
  require_same_rows(V, names_of_variables(found$dimnames, lower))
  if (!are_plain_columns(V, found$n)) V <- with_memory(open_columns(V, found$n, float32 = FALSE))
  request <- new_request(
    downdate, check, lower, backend = if (!missing(backend)) backend_number(backend),
    method = if (missing(method)) 0L else method_number(method, c("auto", "stream", "resident")),
    control = if (!missing(control)) control_numbers(control), weights = weights,
    scale = if (!identical(scale, 1)) check_scale(scale), sides = sides_of(z, y, rss, found$n, NCOL(V))
  )
  check_other_triangle(rcpp_overwrite_other_triangle(name, frame, lower), lower, as.character(name))
  if (found$shared) own_copy(name, frame, as.character(name), found$n, copy)

  done <- carry_out(request, rcpp_cholupdate_overwrite(name, frame, V, request))
  if (is.null(z)) return(if (check) invisible() else done$pivot)
  invisible(returned(NULL, done, check, z, rss)[-1L])
}

# Puts a copy of the matrix into the variable, or stops if `copy` is FALSE.
own_copy <- function(symbol, frame, name, n, copy) {
  fields <- list(argument = "R", value = "shared", bytes = 8 * n^2)
  if (!copy) {
    why <- paste("something else refers to the same matrix, or R cannot tell that nothing does. With copy = TRUE it",
                 "is copied first; a factor that is made within a function is not shared")
    stop_gpucholmod("shared", sprintf("'%s' cannot be overwritten: %s", name, why), fields)
  }
  told <- sprintf(paste("'%s' is copied first (%s), as something else may refer to the same matrix;",
                        "later calls overwrite the copy."), name, format_bytes(8 * n^2))
  message(structure(class = c("gpucholmod_copied", "message", "condition"),
                    c(list(message = paste(told, "See ?cholupdate_overwrite\n"), call = NULL), fields)))
  rcpp_overwrite_own(symbol, frame)
}

# Stops unless `name` is a variable of `frame` that may be changed.
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
