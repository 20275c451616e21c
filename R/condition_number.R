#' The condition number of A, the factor, and comparison of factors
#'
#' For a handle, a batch or a file, these functions of base R are about the matrix \eqn{A = R'R}, as [solve()] and
#' [determinant()] are: `kappa()` and `rcond()` estimate its condition, `chol()` returns its factor, and `all.equal()`
#' compares factors.
#'
#' `kappa()` and `rcond()` are estimates, as LAPACK's are, by the method of Hager and Higham. They use lower bounds of
#' the norms of \eqn{A} and \eqn{A^{-1}}, which mostly are equal to the norms. The norm of \eqn{A^{-1}} takes 3 to 11
#' substitutions with \eqn{R}, and as many with \eqn{R'}, for up to 8 columns at once, in \eqn{O(n^2)} operations; these
#' are done where the factor is. The norm of \eqn{A} takes as many products with the factor. For these the factor is
#' copied to ordinary memory, that of process 0 if it is divided over several processes; a factor in a file is read in
#' panels for each product. For a factor in single precision, the estimates are those of the numbers that are stored.
#'
#' Functions of R that are not generic, such as `svd()`, `eigen()` and `backsolve()`, take a handle for the triangular
#' matrix that `as.matrix()` returns: `eigen(f)` returns the eigenvalues of the factor, not those of \eqn{A}.
#' `identical()` compares handles, not the factors that they refer to; use `all.equal()`.
#'
#' @param z,x,target A handle from [chol_factor()], [gpu_factor()], [gpu_chol()] or [chol_batch()], or a
#'   [factor_file()].
#' @param current Another handle, batch or file, or an ordinary matrix (for a batch, an array).
#' @param norm `"1"`, `"O"` or `"I"`, all of which are the same for a symmetric matrix.
#' @param exact Must be `FALSE`.
#' @param tolerance As for [base::all.equal()]. The default is 1.5e-8, or 3.5e-4 if one of the factors is in single
#'   precision.
#' @param ... Must be empty; for `all.equal()` further arguments of [base::all.equal()] for numbers.
#' @return `kappa()`: an estimate of the condition number \eqn{\|A\|_1 \|A^{-1}\|_1}{|A|_1 |A^-1|_1}. It is at least 1,
#'   and `Inf` if it is too large for a number. `rcond()`: its reciprocal. For a batch, one number for each member.
#'
#'   `chol()`: the factor as [base::chol()] returns it for \eqn{A}, an upper triangular matrix (for a batch, an array).
#'
#'   `all.equal()`: `TRUE`, or the differences between the matrices that `as.matrix()` returns, dimnames included. Where
#'   and in what precision the factors are stored does not matter, nor how they were modified before.
#'
#'   `qr()` is an error of class `gpucholmod_bad_argument` that says what to do instead.
#' @references
#' N. J. Higham (1988). FORTRAN codes for estimating the one-norm of a real or complex matrix, with applications to
#' condition estimation. ACM Transactions on Mathematical Software 14, 381-396. \doi{10.1145/50063.214386}
#' @seealso [solve()][solve.chol_factor]
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' f <- chol_factor(chol(A))
#' kappa(f)
#' c(rcond(f), rcond(A))
#' g <- cholupdate_gpu(cholupdate_gpu(f, 1:50), 1:50, downdate = TRUE)
#' all.equal(g, f)
#' all.equal(g, chol(A))
#' @aliases rcond,ANY,missing-method
#' @name condition_number
NULL

#' @rdname condition_number
#' @export
kappa.chol_factor <- function(z, exact = FALSE, norm = "1", ...) {
  require_no_more(...)
  require_one_norm(exact, norm)
  condition_of(z)
}

#' @rdname condition_number
#' @export
kappa.process_factor <- function(z, ...) together(kappa.chol_factor(z, ...))

#' @rdname condition_number
#' @export
kappa.factor_file <- function(z, exact = FALSE, norm = "1", ...) {
  require_no_more(...)
  require_one_norm(exact, norm)
  with_memory(unchanged(z, condition_of(z)))
}

#' @rdname condition_number
#' @export
kappa.chol_batch <- function(z, exact = FALSE, norm = "1", ...) {
  require_no_more(...)
  require_one_norm(exact, norm)
  all <- chol.chol_batch(z)
  of <- vapply(seq_len(length(z)), function(m) condition_of(matrix(all[, , m], nrow(all))), 0)
  names(of) <- dimnames(z)[[3L]]
  of
}

# Stops unless the condition that is asked for is the one that is estimated.
require_one_norm <- function(exact, norm) {
  require_flag(exact, "exact")
  if (exact) {
    stop_bad_argument("exact", exact, "must be FALSE; kappa(crossprod(chol(f)), exact = TRUE) is exact, of the 2-norm")
  }
  if (!is.null(norm)) match_choice(norm, c("1", "O", "I"), "norm")
}

# Returns the estimate of the condition of A of a factor: a handle, a factor_file, or an upper triangular matrix. All
# numbers are of A divided by the square of a power of 2 near the largest number on the diagonal of R.
condition_of <- function(f) {
  diagonal <- if (inherits(f, "chol_factor")) factor_diagonal(f) else if (is.matrix(f)) diag(f) else file_diagonal(f)
  require_diagonal(diagonal)
  n <- length(diagonal)
  if (n == 0L) return(1)
  s <- 2^round(log2(max(abs(diagonal))))
  inverse <- rcpp_estimated_norm(n, function(x) s * substituted(f, s * substituted(f, x, "forward"), "back"))
  max(1, norm_of_A(f, n, s) * inverse)
}

# Returns R'^-1 b or R^-1 b of a matrix b; `f` as in condition_of().
substituted <- function(f, b, which) {
  if (is.matrix(f)) return(backsolve(f, b, transpose = which == "forward"))
  if (inherits(f, "chol_factor")) return(solve_with(f, b, which))
  if (which == "forward") substitute_forward(f, b) else substitute_back(f, b)
}

# Returns the estimate of ||A / s^2||_1; `f` as in condition_of().
norm_of_A <- function(f, n, s) {
  if (inherits(f, "process_factor")) {
    R <- chol.process_factor(f)
    own <- if (f$process == 0L) norm_of_A(R, n, s)
    return(agreed(own, "processes", "norm"))
  }
  rcpp_estimated_norm(n, function(x) upper_product(f, upper_product(f, x / s, FALSE), TRUE) / s)
}

# Returns R x, or R'x if `transposed`, of a matrix x, R being upper; `f` as in condition_of(), of one process.
upper_product <- function(f, x, transposed) {
  if (is.matrix(f)) return(if (transposed) crossprod(f, x) else f %*% x)
  if (inherits(f, "factor_file")) return(product_with_file(f, x, transposed))
  with_room(function() rcpp_factor_multiply(f, x, if (transposed) 1L else 2L))
}

# The default that setMethod() makes of base::rcond() fails where `norm` is missing. Package Matrix has the same method.
setMethod("rcond", c("ANY", "missing"), function(x, norm, ...) rcond(x, norm = "O", ...))

#' @rdname condition_number
#' @aliases rcond,chol_factor,ANY-method
#' @export
setMethod("rcond", "chol_factor", function(x, norm, ...) 1 / kappa(x, norm = norm, ...))
#' @rdname condition_number
#' @aliases rcond,chol_factor,missing-method
#' @export
setMethod("rcond", c("chol_factor", "missing"), function(x, norm, ...) 1 / kappa(x, ...))

#' @rdname condition_number
#' @aliases rcond,factor_file,ANY-method
#' @export
setMethod("rcond", "factor_file", function(x, norm, ...) 1 / kappa(x, norm = norm, ...))
#' @rdname condition_number
#' @aliases rcond,factor_file,missing-method
#' @export
setMethod("rcond", c("factor_file", "missing"), function(x, norm, ...) 1 / kappa(x, ...))

#' @rdname condition_number
#' @aliases rcond,chol_batch,ANY-method
#' @export
setMethod("rcond", "chol_batch", function(x, norm, ...) 1 / kappa(x, norm = norm, ...))
#' @rdname condition_number
#' @aliases rcond,chol_batch,missing-method
#' @export
setMethod("rcond", c("chol_batch", "missing"), function(x, norm, ...) 1 / kappa(x, ...))

#' @rdname condition_number
#' @export
chol.chol_factor <- function(x, ...) {
  require_no_more(...)
  live(x, "x")
  with_room(function() rcpp_factor_download(x, number_of("upper", "uplo"), upper_dimnames(x)))
}

#' @rdname condition_number
#' @export
chol.process_factor <- function(x, ...) {
  require_no_more(...)
  in_process_0(x, "upper", upper_dimnames(x))
}

# Returns the dimnames of R, of which as.matrix() may return the transpose.
upper_dimnames <- function(f) {
  names <- dimnames(f)
  if (is.null(names) || own_choice(f, "uplo") == "upper") names else rev(names)
}

#' @rdname condition_number
#' @export
chol.factor_file <- function(x, ...) {
  require_no_more(...)
  R <- as.matrix(x)
  R * signs_of(diag(R))
}

#' @rdname condition_number
#' @export
chol.chol_batch <- function(x, ...) {
  require_no_more(...)
  all <- as.array.chol_batch(x)
  if (x$uplo == "lower") aperm(all, c(2L, 1L, 3L)) else all
}

# Stops, as a QR decomposition of a factor is not what the user wants.
refuse_qr <- function(x, ...) {
  if (inherits(x, "chol_factor")) live(x, "x")
  stop_bad_argument("x", class(x), paste("is a Cholesky factor, which solve() and solve_forward() solve with as it is;",
                                         "qr(as.matrix(x)) decomposes the factor, qr(crossprod(chol(x))) the matrix A"))
}

#' @rdname condition_number
#' @export
qr.chol_factor <- refuse_qr
#' @rdname condition_number
#' @export
qr.factor_file <- refuse_qr
#' @rdname condition_number
#' @export
qr.chol_batch <- refuse_qr
