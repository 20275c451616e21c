#' Solve with a factor in a file
#'
#' For a factor of \eqn{A} in a file, these functions solve with \eqn{A}, and compute its determinant, its inverse, and
#' the diagonal of the factor, as [for handles][solve.chol_factor]. [solve_forward()], [solve_back()] and [logdet()]
#' accept such a factor too. The file is read in panels of columns, once for each of the two substitutions; its diagonal
#' is read before. Only the inverse needs memory for a whole matrix.
#'
#' @param a,x A factor in a file, from [factor_file()] or [write_factor()].
#' @param b Right-hand sides: a vector of length \eqn{n}, or a matrix with \eqn{n} rows, also of class `Matrix` or
#'   `float32`. If missing, the identity matrix.
#' @param logarithm Whether to return the logarithm of the determinant.
#' @param nrow,ncol,names Not for factors in files: see [base::diag()].
#' @param ... Ignored.
#' @return `solve()`: \eqn{A^{-1}b}, a vector if `b` is a vector, otherwise a matrix; without `b`, \eqn{A^{-1}}, as
#'   `chol2inv()`. `determinant()`: the determinant of \eqn{A}, in the form of [base::determinant()]. `diag()`: the
#'   diagonal of the factor.
#' @section Errors:
#' The numbers that are read are checked. A number that is not finite is an error of class `gpucholmod_not_finite`; a
#' diagonal entry that is not finite, or less than 2.2e-308 in size, is an error of class `gpucholmod_bad_diagonal`.
#' @seealso [factor_file()]
#' @examplesIf .Platform$OS.type != "windows"
#' A <- crossprod(matrix(rnorm(100), 10)) + diag(10)
#' f <- write_factor(chol(A), tempfile())
#' all.equal(solve(f, 1:10), solve(A, 1:10))
#' all.equal(logdet(f), as.vector(determinant(A)$modulus))
#' unlink(f$path)
#' @export
solve.factor_file <- function(a, b, ...) {
  with_memory({
    if (missing(b)) {
      R <- as.matrix(a)
      require_diagonal(diag(R))
      require_finite_columns(R, 1L)
      return(chol2inv(R))
    }
    x <- unchanged(a, substitute_back(a, substitute_forward(a, right_sides(b, a$n))))
    if (length(dim(x)) == 2L && !is_float32(b) && !is.null(colnames(b))) colnames(x) <- colnames(b)
    like_right_sides(x, b)
  })
}

#' @export
solve_forward.factor_file <- function(f, b, ...) {
  require_no_more(...)
  with_memory(like_right_sides(unchanged(f, substitute_forward(f, right_sides(b, f$n))), b))
}

#' @export
solve_back.factor_file <- function(f, b, ...) {
  require_no_more(...)
  with_memory(like_right_sides(unchanged(f, substitute_back(f, right_sides(b, f$n))), b))
}

#' @export
logdet.factor_file <- function(f, ...) {
  require_no_more(...)
  logdet_of(file_diagonal(f))
}

#' @rdname solve.factor_file
#' @export
determinant.factor_file <- function(x, logarithm = TRUE, ...) {
  require_flag(logarithm, "logarithm")
  as_det(logdet(x), logarithm)
}

# Evaluates `code`, which reads the file more than once; stops if the file changed meanwhile.
unchanged <- function(f, code) {
  before <- rcpp_factor_file_state(present(f)$path)
  force(code)
  if (!identical(rcpp_factor_file_state(f$path), before)) {
    stop_gpucholmod("bad_file", sprintf("'%s' was written to while it was read", f$path),
                    list(path = f$path, reason = "changed"))
  }
  code
}

# Returns the diagonal of a factor in a file.
file_diagonal <- function(f) rcpp_factor_file_diagonal(present(f)$path)

# Calls work(J, top, block) for panels of columns, from the left, or from the right if `reverse`: J are the indices of
# the columns, `block` is the triangle on the diagonal, `top` the rows above it.
over_panels <- function(f, reverse, work, bytes = 2^27) {
  width <- max(1L, as.integer(bytes / (8 * f$n)))
  first <- seq(1L, f$n, by = width)
  for (begin in if (reverse) rev(first) else first) {
    J <- begin:min(f$n, begin + width - 1L)
    panel <- rcpp_read_factor_file(f$path, begin - 1L, J[[length(J)]])
    require_finite_columns(panel, begin)
    work(J, panel[seq_len(begin - 1L), , drop = FALSE], panel[J, , drop = FALSE])
  }
}

# Stops if columns of a factor, from number `first` on and with zeros below the diagonal, have a number that is not
# finite. Looks at their sum first, which needs no other matrix.
require_finite_columns <- function(columns, first) {
  if (is.finite(sum(columns))) return(invisible())
  bad <- match(FALSE, is.finite(columns), 0L)
  if (bad == 0L) return(invisible())
  row <- (bad - 1L) %% nrow(columns) + 1L
  col <- (bad - 1L) %/% nrow(columns) + first
  stop_gpucholmod("not_finite", sprintf("the factor has a value that is not finite at [%.0f, %.0f]", row, col),
                  list(argument = "f", row = row, col = col, value = columns[[bad]]))
}

# Returns R'^-1 B for a factor in a file; B is n x m.
substitute_forward <- function(f, B) {
  require_diagonal(file_diagonal(f))
  if (ncol(B) == 0L) return(unname(B))
  over_panels(f, reverse = FALSE, function(J, top, block) {
    known <- seq_len(J[[1L]] - 1L)
    B[J, ] <<- backsolve(block, B[J, , drop = FALSE] - crossprod(top, B[known, , drop = FALSE]), transpose = TRUE)
  })
  unname(B)
}

# Returns R^-1 B for a factor in a file; B is n x m.
substitute_back <- function(f, B) {
  require_diagonal(file_diagonal(f))
  if (ncol(B) == 0L) return(unname(B))
  over_panels(f, reverse = TRUE, function(J, top, block) {
    above <- seq_len(J[[1L]] - 1L)
    B[J, ] <<- backsolve(block, B[J, , drop = FALSE])
    B[above, ] <<- B[above, , drop = FALSE] - top %*% B[J, , drop = FALSE]
  })
  unname(B)
}

setOldClass("factor_file")

#' @rdname solve.factor_file
#' @aliases chol2inv,factor_file-method
#' @export
setMethod("chol2inv", "factor_file", function(x, ...) solve.factor_file(x))

#' @rdname solve.factor_file
#' @aliases diag,factor_file-method
#' @export
setMethod("diag", "factor_file", function(x = 1, nrow, ncol, names = TRUE) {
  refuse_shape(!missing(nrow), !missing(ncol))
  file_diagonal(x)
})
