#' Solve with a factor that has memory of its own
#'
#' For a handle of the factor of \eqn{A}, from [chol_factor()], [gpu_factor()] or [gpu_chol()], these functions solve
#' with \eqn{A}, and compute its determinant, its inverse, and the diagonal of the factor. The factor stays where it is;
#' the right-hand sides and the results are in ordinary memory. [solve_forward()], [solve_back()] and [logdet()] accept
#' every kind of factor.
#'
#' `chol2inv()` and `diag()` are S4 methods, since base R has no S3 generics of these names. For anything but a factor
#' they return what they always do.
#'
#' For a factor in ordinary memory, R's BLAS and LAPACK compute the results, in double precision. On GPUs of compute
#' capability 8.0 and later, kernels of the package solve for up to 192 right-hand sides (64 if n is above 8,192), in
#' double precision whatever the precision of the factor. The solution for a column is then the same to the last bit
#' whatever the other columns are. In all other cases cuBLAS solves, in the precision of the factor: for more right-hand
#' sides, on older GPUs, and with a factor that has diagonal blocks (of 64 rows) of condition above \eqn{10^7} or a
#' number that is not finite.
#'
#' @param a,x A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @param b Right-hand sides: a vector of length \eqn{n}, or a matrix with \eqn{n} rows, also of class `Matrix` or
#'   `float32`. If missing, the identity matrix.
#' @param logarithm Whether to return the logarithm of the determinant.
#' @param names Whether the diagonal gets names, if row and column names of the factor are the same.
#' @param nrow,ncol Not for factors: see [base::diag()].
#' @param ... Ignored.
#'
#' @return `solve()`: \eqn{A^{-1}b}, a vector if `b` is a vector, otherwise a matrix, named as by [base::solve()];
#'   without `b`, \eqn{A^{-1}}. The numbers are always doubles, with the accuracy of the precision of the factor.
#'
#' `chol2inv()`: \eqn{A^{-1}}, the same as `solve(f)`.
#'
#' `determinant()`: the determinant of \eqn{A}, in the form of [base::determinant()]. (For a `Cholesky` object, some
#' versions of package \pkg{Matrix} return the determinant of the factor.)
#'
#' `diag()`: the diagonal of the factor.
#' @seealso [chol_factor()]
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' f <- chol_factor(chol(A))
#' all.equal(solve(f, 1:50), solve(A, 1:50))
#' z <- solve_forward(f, 1:50)
#' # the density of a normal distribution with variance A
#' -0.5 * (sum(z^2) + logdet(f) + 50 * log(2 * pi))
#' @export
solve.chol_factor <- function(a, b, ...) {
  if (!missing(b)) return(solve_with(a, b, "both", named = TRUE))
  live(a)
  names <- variable_names(a)
  with_room(function() rcpp_factor_inverse(a, if (!is.null(names)) list(names, names)))
}

#' @export
solve_forward.chol_factor <- function(f, b, ...) {
  require_no_more(...)
  solve_with(f, b, "forward")
}

#' @export
solve_back.chol_factor <- function(f, b, ...) {
  require_no_more(...)
  solve_with(f, b, "back")
}

# Solves with the factor of a handle; returns a matrix, or a vector if b is one.
solve_with <- function(f, b, which, named = FALSE) {
  live(f)
  as_vector <- length(dim(if (is_float32(b)) b@Data else b)) != 2L
  B <- if (are_plain_columns(b, f$n)) b else with_memory(open_columns(b, f$n, float32 = FALSE, argument = "b"))
  rows <- if (named) variable_names(f)
  columns <- if (named && !as_vector) colnames(B)
  names <- if (as_vector) rows else if (!is.null(rows) || !is.null(columns)) list(rows, columns)
  which <- match(which, c("both", "forward", "back")) - 1L
  with_room(function() rcpp_factor_solve(f, B, which, as_vector, names))
}

# Returns the names of the rows and columns of A.
variable_names <- function(f) names_of_variables(f$dimnames, identical(f$uplo, "lower"))

# Returns the names of the variables in the dimnames of a factor, which are not checked yet if a handle has them.
names_of_variables <- function(dimnames, lower) {
  names <- if (is.list(dimnames) && length(dimnames) >= 2L) dimnames[[if (lower) 1L else 2L]]
  if (is.character(names)) names
}

#' @rdname solve.chol_factor
#' @export
determinant.chol_factor <- function(x, logarithm = TRUE, ...) {
  require_flag(logarithm, "logarithm")
  as_det(logdet(x), logarithm)
}

# Returns the logarithm of a determinant in the form of base::determinant().
as_det <- function(modulus, logarithm) {
  structure(
    list(modulus = structure(if (logarithm) modulus else exp(modulus), logarithm = logarithm), sign = 1L),
    class = "det"
  )
}

#' @export
logdet.chol_factor <- function(f, ...) {
  require_no_more(...)
  2 * sum(log(factor_diagonal(f)))
}

# Returns the diagonal of the factor of a handle.
factor_diagonal <- function(f) {
  live(f)
  with_room(function() rcpp_factor_diagonal(f))
}

#' @importFrom methods setMethod setOldClass
setOldClass(c("gpu_factor", "chol_factor"))
setOldClass(c("cpu_factor", "chol_factor"))
setOldClass(c("process_factor", "chol_factor"))

#' @rdname solve.chol_factor
#' @aliases chol2inv,chol_factor-method
#' @export
setMethod("chol2inv", "chol_factor", function(x, ...) {
  if (inherits(x, "process_factor")) solve.process_factor(x) else solve.chol_factor(x)
})

#' @rdname solve.chol_factor
#' @aliases diag,chol_factor-method
#' @export
setMethod("diag", "chol_factor", function(x = 1, nrow, ncol, names = TRUE) {
  refuse_shape(!missing(nrow), !missing(ncol))
  if (inherits(x, "process_factor")) together(named_diagonal(x, names)) else named_diagonal(x, names)
})

# Stops if the shape of a matrix is asked for, by `nrow` or `ncol`, where diag() returns the diagonal of a factor.
refuse_shape <- function(has_nrow, has_ncol) {
  if (!has_nrow && !has_ncol) return(invisible())
  stop_bad_argument(if (has_nrow) "nrow" else "ncol", NULL, "cannot be given where diag() is of a factor; leave it out")
}

# Returns the diagonal of the factor of a handle, with names if its rows and columns have the same ones.
named_diagonal <- function(f, names) {
  require_flag(names, "names")
  d <- factor_diagonal(f)
  both <- dimnames(f)
  if (names && !is.null(both[[1L]]) && identical(both[[1L]], both[[2L]])) names(d) <- both[[1L]]
  d
}
