#' Solve with a factor, in one call
#'
#' `solve_factor(f, b)` solves \eqn{Ax = b} with the Cholesky factor of \eqn{A}, which may be a matrix, a handle, a
#' batch or a file. With an ordinary matrix `R` from [chol()], `solve(R, b)` solves \eqn{Rx = b} instead, and
#' [chol2inv()] makes the whole inverse of \eqn{A}.
#'
#' @inheritParams solve_forward
#' @param b Right-hand sides: a vector of length \eqn{n}, or a matrix with \eqn{n} rows, also of class `Matrix` or
#'   `float32`; for a [chol_batch()], what its `solve()` accepts. If missing, which a batch does not allow, the identity
#'   matrix.
#' @return \eqn{A^{-1}b}: a vector if `b` is a vector, otherwise a matrix, named as by [base::solve()]. Without `b`,
#'   \eqn{A^{-1}}. For a handle, a batch or a file this is what `solve(f, b)` returns.
#' @section Errors:
#' The errors of [solve_forward()].
#' @seealso [solve_forward()] and [solve_back()], which solve with one triangle; [solve_modified()] for many changes of
#'   \eqn{A}
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' R <- chol(A)
#' all.equal(solve_factor(R, 1:50), solve(A, 1:50))
#' all.equal(solve_factor(cholupdate_gpu(R, 1:50), 1:50), solve(A + tcrossprod(1:50), 1:50))
#' all.equal(solve_factor(t(R), 1:50, uplo = "lower"), solve(A, 1:50))
#' @export
solve_factor <- function(f, b, ...) {
  if (missing(f)) require_given("f")
  UseMethod("solve_factor")
}

#' @rdname solve_factor
#' @export
solve_factor.default <- function(f, b, ..., uplo = c("upper", "lower")) {
  require_no_more(...)
  with_memory({
    if (!missing(b)) force(b)
    factor <- open_ordinary(f, if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo"))
    names <- factor_dimnames(f)[[if (factor$lower) 1L else 2L]]
    if (missing(b)) return(inverse_of_ordinary(f, factor, names))
    x <- solve_ordinary(f, solve_ordinary(f, b, factor, forward = TRUE), factor, forward = FALSE)
    if (length(dim(x)) != 2L) return(if (is.null(names)) x else stats::setNames(x, names))
    columns <- if (!is_float32(b)) colnames(b)
    if (!is.null(names) || !is.null(columns)) dimnames(x) <- list(names, columns)
    x
  })
}

# Returns A^-1 from an opened factor in ordinary memory, named as A.
inverse_of_ordinary <- function(f, factor, names) {
  R <- unname(opened_doubles(factor, f))
  inverse <- if (nrow(R)) chol2inv(if (factor$lower) t(R) else R) else R
  if (!is.null(names)) dimnames(inverse) <- list(names, names)
  inverse
}

#' @export
solve_factor.chol_factor <- function(f, b, ...) {
  require_no_more(...)
  if (missing(b)) solve(f) else solve(f, b)
}

#' @export
solve_factor.factor_file <- solve_factor.chol_factor

#' @export
solve_factor.chol_batch <- solve_factor.chol_factor
