#' Solve with a triangular factor, and the determinant
#'
#' `solve_forward()` and `solve_back()` solve with \eqn{R'} and with \eqn{R}, the Cholesky factor of \eqn{A = R'R};
#' `logdet()` computes the logarithm of the determinant of \eqn{A}. The factor may be a matrix, a handle or a file. The
#' solution of \eqn{Ax = b} is `solve_back(R, solve_forward(R, b))`, which [solve_factor()] computes in one call. For
#' handles and files `solve(f, b)` does so too, but `solve()` of a matrix solves with the triangle alone, \eqn{Rx = b},
#' as it does for a `dtrMatrix` of package \pkg{Matrix}, and for a `Cholesky` object in those versions of \pkg{Matrix}
#' in which it is a `dtrMatrix`, such as 1.5.
#'
#' Matrices are solved with by [backsolve()] and R's BLAS. A factor in a file is read once by each of the two functions,
#' in panels of columns of about 128 MB, of which two are in memory at a time.
#'
#' @param f The Cholesky factor: what [cholupdate_gpu()] accepts, a handle from [chol_factor()], [gpu_factor()] or
#'   [gpu_chol()], or a [factor_file()].
#' @param b Right-hand sides: a vector of length \eqn{n}, or a matrix with \eqn{n} rows, also of class `Matrix` or
#'   `float32`.
#' @param ... Must be empty, but for `uplo`.
#' @param uplo For ordinary and `float32` matrices: `"upper"` for \eqn{A = R'R}, `"lower"` for a lower triangular factor
#'   \eqn{L}, \eqn{A = LL'}. With `"lower"`, `solve_forward()` returns \eqn{L^{-1}b} and `solve_back()` \eqn{L'^{-1}b}.
#'   A `dtrMatrix` or `Cholesky` object says it itself; an `uplo` that contradicts it is an error. Handles and files say
#'   it themselves, too, and have no such argument.
#'
#' @return `solve_forward()`: \eqn{R'^{-1}b}. `solve_back()`: \eqn{R^{-1}b}. Each is a vector if `b` is a vector,
#'   otherwise a matrix, without names, as from [base::backsolve()]. With `z <- solve_forward(f, b)`, `sum(z^2)` is
#'   \eqn{b'A^{-1}b}.
#'
#' If an ordinary matrix or a file has negative diagonal entries, these are the solutions with `R` as it is. A handle
#' has a positive diagonal.
#'
#' `logdet()`: the logarithm of the determinant of \eqn{A}, \eqn{2 \sum_i \log |R_{ii}|}{2 sum log |R_ii|}. It is `-Inf`
#' if the factor has zeros on its diagonal.
#' @section Errors:
#' A diagonal entry that is not finite, or less than 2.2e-308 in size, is an error of class `gpucholmod_bad_diagonal`;
#' for `logdet()` it may be 0. A symmetric matrix is an error of class `gpucholmod_not_triangular`. Nothing else of a
#' matrix is checked.
#' @seealso [cholupdate_gpu()]; [solve()][solve.chol_factor] of handles and [of files][solve.factor_file]
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' b <- rnorm(50)
#' R <- cholupdate_gpu(chol(A), 1:50)          # the factor of A + 1:50 %*% t(1:50)
#' x <- solve_back(R, solve_forward(R, b))
#' all.equal(x, solve(A + tcrossprod(1:50), b))
#'
#' # the density of a normal distribution with that variance
#' z <- solve_forward(R, b)
#' -0.5 * (sum(z^2) + logdet(R) + 50 * log(2 * pi))
#' @export
solve_forward <- function(f, b, ...) {
  if (missing(f) || missing(b)) require_given("f", "b")
  UseMethod("solve_forward")
}

#' @rdname solve_forward
#' @export
solve_back <- function(f, b, ...) {
  if (missing(f) || missing(b)) require_given("f", "b")
  UseMethod("solve_back")
}

#' @rdname solve_forward
#' @export
logdet <- function(f, ...) {
  if (missing(f)) require_given("f")
  UseMethod("logdet")
}

#' @rdname solve_forward
#' @export
solve_forward.default <- function(f, b, ..., uplo = c("upper", "lower")) {
  require_no_more(...)
  with_memory({
    force(b)
    factor <- open_ordinary(f, if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo"))
    solve_ordinary(f, b, factor, forward = TRUE)
  })
}

#' @rdname solve_forward
#' @export
solve_back.default <- function(f, b, ..., uplo = c("upper", "lower")) {
  require_no_more(...)
  with_memory({
    force(b)
    factor <- open_ordinary(f, if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo"))
    solve_ordinary(f, b, factor, forward = FALSE)
  })
}

#' @rdname solve_forward
#' @export
logdet.default <- function(f, ..., uplo = c("upper", "lower")) {
  require_no_more(...)
  with_memory({
    R <- opened_doubles(open_factor(f, if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo"), "f"), f)
    logdet_of(diag(R))
  })
}

# Opens a factor as open_factor() does, and checks its diagonal.
open_ordinary <- function(f, uplo) {
  factor <- open_factor(f, uplo, "f")
  R <- opened_doubles(factor, f)
  require_diagonal(diag(R))
  factor
}

# Returns log det A from the diagonal of a factor.
logdet_of <- function(diagonal) {
  require_diagonal(diagonal, zero = TRUE)
  2 * sum(log(abs(diagonal)))
}

# Stops unless the entries of the diagonal of a factor, which may be negative, are finite, not subnormal, and, unless
# `zero` is TRUE, not 0: a subnormal number has lost digits, and its inverse is not finite.
require_diagonal <- function(diagonal, zero = FALSE) {
  bad <- match(FALSE, is.finite(diagonal) & (abs(diagonal) >= .Machine$double.xmin | zero & diagonal == 0), 0L)
  if (bad == 0L) return(invisible())
  fields <- list(index = bad, value = diagonal[[bad]])
  rule <- "this factor cannot be solved with: its diagonal must be finite and at least %.3g in size, entry %d is %g"
  stop_gpucholmod("bad_diagonal", sprintf(rule, .Machine$double.xmin, fields$index, fields$value), fields)
}

# Opens right-hand sides of n rows as a matrix of doubles.
right_sides <- function(b, n) open_columns(b, n, float32 = FALSE, argument = "b")
# Returns the solution x as a vector if the right-hand side b was one.
like_right_sides <- function(x, b) {
  if (length(dim(if (is_float32(b)) b@Data else b)) == 2L) x else as.vector(x)
}

# Solves with an opened factor in ordinary memory, with R' if `forward`, otherwise with R.
solve_ordinary <- function(f, b, factor, forward) {
  R <- opened_doubles(factor, f)
  B <- right_sides(b, nrow(R))
  lower <- factor$lower
  x <- if (length(B) == 0L) matrix(0, nrow(B), ncol(B))
       else backsolve(R, B, upper.tri = !lower, transpose = forward != lower)
  like_right_sides(x, b)
}
