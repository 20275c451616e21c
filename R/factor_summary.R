#' A summary of a factor, and how well conditioned its matrix may be
#'
#' @param object A handle from [chol_factor()], a [factor_file()] or a [chol_batch()].
#' @param ... Ignored.
#'
#' @return A list of class `summary.chol_factor`: `description`, lines that describe the factor and its place; `n`, the
#'   order; `diagonal`, the smallest and the largest diagonal entry of the factor; `logdet`, the logarithm of the
#'   determinant of \eqn{A}; `condition_at_least`, a lower bound of the condition number of \eqn{A}: the square of the
#'   quotient of those two diagonal entries; and, for handles of one factor, the number of `modifications` and the
#'   [drift()]. For a batch `logdet` has a number for each member, and `condition_at_least` is that of the member with
#'   the largest bound.
#' @seealso [chol_factor()], [factor_matrix]
#' @examples
#' summary(chol_factor(chol(diag(3) + 1)))
#' @export
summary.chol_factor <- function(object, ...) {
  d <- diag(object)
  summary_of(describe_factor(object), object$n, as.matrix(d), list(modifications = object$modifications,
                                                                   drift = drift(object)))
}

#' @rdname summary.chol_factor
#' @export
summary.factor_file <- function(object, ...) {
  d <- abs(file_diagonal(object))
  require_diagonal(d, zero = TRUE)
  summary_of(c(sprintf("<factor_file> %d x %d", object$n, object$n), object$path), object$n, as.matrix(d))
}

#' @rdname summary.chol_factor
#' @export
summary.chol_batch <- function(object, ...) {
  summary_of(describe_batch(object), object$n, batch_diagonals(object))
}

# Makes a summary from the diagonals of factors, one a column.
summary_of <- function(description, n, diagonals, more = NULL) {
  if (length(diagonals)) {
    ends <- apply(diagonals, 2L, range)
    diagonal <- c(min = min(ends[1L, ]), max = max(ends[2L, ]))
    condition <- max((ends[2L, ] / ends[1L, ])^2)
  } else {
    diagonal <- c(min = NA_real_, max = NA_real_)
    condition <- NA_real_
  }
  structure(c(list(description = description, n = n, diagonal = diagonal, logdet = 2 * colSums(log(diagonals)),
                   condition_at_least = condition), more), class = "summary.chol_factor")
}

#' @export
print.summary.chol_factor <- function(x, ...) {
  writeLines(c(x$description[[1L]], paste0("  ", x$description[-1L])))
  if (is.na(x$condition_at_least)) return(invisible(x))
  logdet <- range(x$logdet)
  writeLines(paste0("  ", c(
    sprintf("diagonal of the factor: from %.4g to %.4g", x$diagonal[[1L]], x$diagonal[[2L]]),
    if (length(x$logdet) == 1L) sprintf("logarithm of the determinant of A: %.6g", logdet[[1L]])
    else sprintf("logarithms of the determinants of A: from %.6g to %.6g", logdet[[1L]], logdet[[2L]]),
    sprintf("condition number of A: at least %.2g", x$condition_at_least)
  )))
  invisible(x)
}
