#' Draw from a normal distribution by its factor
#'
#' Draws from the multivariate normal distribution whose covariance matrix, or whose precision matrix (the inverse of
#' the covariance matrix), is \eqn{A}, given the Cholesky factor of \eqn{A}.
#'
#' With \eqn{A = R'R} and a vector \eqn{z} of independent standard normal numbers, a draw is \eqn{mean + R'z} if \eqn{A}
#' is the covariance, and \eqn{mean + R^{-1}z} if it is the precision. The vectors \eqn{z} are the columns of
#' `matrix(rnorm(n * m), n)`, so [set.seed()] makes draws repeatable. With the same seed, every kind of factor gives the
#' same draws, apart from rounding.
#'
#' @param f The Cholesky factor: what [cholupdate_gpu()] accepts, a handle from [chol_factor()], [gpu_factor()] or
#'   [gpu_chol()], or a [factor_file()].
#' @param m The number of draws.
#' @param mean The mean: one number, a vector of \eqn{n} numbers, or an \eqn{n \times m}{n x m} matrix with one mean for
#'   each draw.
#' @param of Whether \eqn{A} is the `"covariance"` or the `"precision"` matrix of the distribution.
#' @param ... Must be empty.
#' @param uplo For ordinary matrices, as for [solve_forward()]. Other kinds of factors say it themselves.
#'
#' @return An \eqn{n \times m}{n x m} matrix with a draw in each column, whose rows have the names of the rows of
#'   \eqn{A}. Functions such as `mvtnorm::rmvnorm()` return its transpose.
#'
#'   If the factor is divided over several processes, the random numbers are those of process 0, and only draws with
#'   `of = "precision"` are possible. `"covariance"`, and a [chol_batch()], are errors of class
#'   `gpucholmod_not_supported`.
#' @seealso [solve_back()], [factor_matrix]
#' @examples
#' A <- matrix(c(2, 1, 1, 3), 2)
#' set.seed(1)
#' x <- draw(chol(A), 10000, mean = c(5, -5))
#' rowMeans(x)
#' cov(t(x))
#'
#' # draws from the posterior of a Bayesian regression, whose precision matrix is X'X + I
#' X <- matrix(rnorm(300), 100)
#' y <- X %*% 1:3 + rnorm(100)
#' f <- chol_factor(chol(crossprod(X) + diag(3)))
#' rowMeans(draw(f, 1000, mean = solve(f, crossprod(X, y)), of = "precision"))
#' @export
draw <- function(f, m = 1, mean = 0, of = c("covariance", "precision"), ...) {
  if (missing(f)) require_given("f")
  UseMethod("draw")
}

#' @rdname draw
#' @export
draw.default <- function(f, m = 1, mean = 0, of = c("covariance", "precision"), ..., uplo = c("upper", "lower")) {
  require_no_more(...)
  with_memory({
    factor <- open_ordinary(f, if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo"))
    R <- opened_doubles(factor, f)
    n <- nrow(R)
    names <- factor_dimnames(f)[[if (factor$lower) 1L else 2L]]
    drawn(n, m, mean, of, names, function(z, of) {
      z <- z * signs_of(diag(R))
      if (of == "precision") return(as.matrix(solve_ordinary(f, z, factor, forward = FALSE)))
      R[if (factor$lower) upper.tri(R) else lower.tri(R)] <- 0
      unname(if (factor$lower) R %*% z else base::crossprod(R, z))
    })
  })
}

#' @rdname draw
#' @export
draw.chol_factor <- function(f, m = 1, mean = 0, of = c("covariance", "precision"), ...) {
  require_no_more(...)
  live(f)
  drawn(f$n, m, mean, of, variable_names(f), function(z, of) {
    if (of == "precision") solve_with(f, z, "back") else with_room(function() rcpp_factor_multiply(f, z, 1L))
  })
}

#' @export
draw.process_factor <- function(f, m = 1, mean = 0, of = c("covariance", "precision"), ...) {
  require_no_more(...)
  live(f)
  drawn(f$n, m, mean, of, variable_names(f), function(z, of) {
    if (of == "covariance") stop_no_matrix("draw(of = \"covariance\")", f)
    solve_back(f, if (f$process == 0L) z)
  })
}

#' @rdname draw
#' @export
draw.factor_file <- function(f, m = 1, mean = 0, of = c("covariance", "precision"), ...) {
  require_no_more(...)
  drawn(present(f)$n, m, mean, of, NULL, function(z, of) {
    z <- z * signs_of(file_diagonal(f))
    if (of == "precision") solve_back(f, z) else product_with(f, z, TRUE, "z")
  })
}

#' @export
draw.chol_batch <- function(f, ...) stop_no_matrix("draw()", f)

# Returns what the rows of a factor with this diagonal are multiplied by where a handle keeps it.
signs_of <- function(diagonal) ifelse(diagonal < 0, -1, 1)

# Checks the arguments of draw() for a factor of order n, and returns the draws. turn(z, of): turns standard normal
# numbers into draws of mean 0.
drawn <- function(n, m, mean, of, names, turn) {
  of <- match_choice(of, c("covariance", "precision"), "of")
  if (!is_number(m) || m != round(m) || m < 0 || m > .Machine$integer.max) {
    stop_bad_argument("m", m, "must be a number of draws, a whole number from 0 on")
  }
  m <- as.integer(m)
  mean <- mean_of_draws(mean, n, m)
  x <- mean + turn(matrix(stats::rnorm(as.double(n) * m), n, m), of)
  if (!is.null(names)) dimnames(x) <- list(names, NULL)
  x
}

# Returns the mean of draws, of n numbers each: one number, n numbers, or a matrix with a column for each draw.
mean_of_draws <- function(mean, n, m) {
  if (isS4(mean)) mean <- as.matrix(mean)
  if (length(mean) == as.double(n) * m && length(dim(mean)) == 2L && m != 1L) {
    if (nrow(mean) != n) stop_dimension("mean", nrow(mean), n)
    return(matrix(finite_numbers(mean, "mean"), n, m))
  }
  if (identical(mean, 0)) return(mean)  # the default
  if (length(mean) != 1L && length(mean) != n) stop_dimension("mean", length(mean), n)
  as.vector(finite_numbers(mean, "mean"))
}

# Stops because an argument has not as many rows as the factor.
stop_dimension <- function(argument, actual, n) {
  stop_gpucholmod("dimension_mismatch", sprintf("'%s' has %d rows, the factor is %d x %d", argument, actual, n, n),
                  list(expected = n, actual = actual))
}
