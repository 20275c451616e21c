# What a factor and V may come in: base matrices, and the classes of packages Matrix and float, known here by their
# slots so that neither package needs to be there.

# Opens a factor: list(x, uplo, float32, dimnames, close). `x` is a plain double matrix, or, for float32, an integer
# matrix that holds the bits of floats; `close(x, single)` puts a modified x back into what the user gave.
open_factor <- function(R, uplo, uplo_given) {
  force(uplo_given)  # or else `close` would keep the caller's frame, and with it a reference to the result
  if (isS4(R) && (methods::is(R, "dtrMatrix") || methods::is(R, "Cholesky"))) {
    return(open_triangular_Matrix(R, uplo, uplo_given))
  }
  if (is_float32(R)) {
    x <- R@Data
    require_factor_shape(x)
    names <- dimnames(x)
    return(list(x = x, uplo = uplo, float32 = TRUE, dimnames = names, close = function(x, single) {
      if (!identical(dimnames(x), names)) dimnames(x) <- names
      if (!single) return(x)
      R@Data <- x
      R
    }))
  }
  pivot <- attr(R, "pivot", exact = TRUE)
  if (!is.null(pivot)) stop_pivoted(pivot)
  if (!is.numeric(R) || is.object(R)) stop_not_numeric(R, "R")
  if (length(R) == 1L && is.null(dim(R))) R <- matrix(R)
  require_factor_shape(R)
  names <- dimnames(R)
  list(x = as_double(R), uplo = uplo, float32 = FALSE, dimnames = names, close = function(x, single) {
    if (!identical(dimnames(x), names)) dimnames(x) <- names
    x
  })
}

open_triangular_Matrix <- function(R, uplo, uplo_given) {
  if (methods::.hasSlot(R, "perm") && length(R@perm)) stop_pivoted(R@perm)
  own <- if (R@uplo == "L") "lower" else "upper"
  if (uplo_given && uplo != own) {
    stop_gpucholmod("bad_argument", sprintf("'uplo' is \"%s\", but 'R' is a %s triangular %s", uplo, own, class(R)),
                    list(argument = "uplo", value = uplo))
  }
  x <- matrix(R@x, R@Dim[1L], R@Dim[2L])
  require_factor_shape(x)
  if (methods::.hasSlot(R, "diag") && R@diag == "U") diag(x) <- 1
  list(x = x, uplo = own, float32 = FALSE, dimnames = R@Dimnames, close = function(x, single) {
    dim(x) <- NULL
    R@x <- x
    if (methods::.hasSlot(R, "diag")) R@diag <- "N"
    R
  })
}

# A symmetric matrix: list(x, float32, dimnames), x as in open_factor().
open_symmetric <- function(A) {
  float32 <- is_float32(A)
  if (float32) {
    A <- A@Data
  } else {
    if (isS4(A) && methods::is(A, "Matrix")) A <- as.matrix(A)
    if (!is.numeric(A) || is.object(A)) stop_not_numeric(A, "A")
    if (length(A) == 1L && is.null(dim(A))) A <- matrix(A)
    A <- as_double(A)
  }
  require_factor_shape(A, "A")
  list(x = A, float32 = float32, dimnames = dimnames(A))
}

# What has a row for every row of the factor, V or right-hand sides: a matrix of doubles or, where `float32` says so, of
# the bits of floats.
open_columns <- function(V, n, float32, argument = "V") {
  if (is_float32(V)) {
    x <- V@Data
    if (!float32) x <- keep_dim(rcpp_from_float(x), x)
  } else {
    if (isS4(V) && methods::is(V, "Matrix")) V <- as.matrix(V)
    if (!is.numeric(V) || is.object(V)) stop_not_numeric(V, argument)
    x <- if (float32) keep_dim(rcpp_to_float(as_double(V)), V) else as_double(V)
  }
  if (length(dim(x)) > 2L) {
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' must be a matrix or a vector", argument),
                    list(expected = n, actual = dim(x)))
  }
  if (length(dim(x)) != 2L) x <- matrix(x, ncol = 1L)
  if (nrow(x) != n) {
    hint <- if (ncol(x) == n) sprintf("; did you mean t(%s)?", argument) else ""
    stop_gpucholmod("dimension_mismatch",
                    sprintf("'%s' has %d rows, the factor is %d x %d%s", argument, nrow(x), n, n, hint),
                    list(expected = n, actual = nrow(x)))
  }
  x
}

is_float32 <- function(x) isS4(x) && methods::is(x, "float32")

# Double storage, without a copy where it is that already.
as_double <- function(x) {
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

keep_dim <- function(x, like) {
  dim(x) <- dim(like)
  x
}

require_factor_shape <- function(R, argument = "R") {
  d <- dim(R)
  if (length(d) != 2L || d[1L] != d[2L]) {
    stop_gpucholmod("not_square", sprintf("'%s' must be a square matrix", argument),
                    list(nrow = if (length(d)) d[1L] else length(R), ncol = if (length(d) > 1L) d[2L] else NA_integer_))
  }
}

stop_not_numeric <- function(x, argument) {
  type <- if (is.object(x)) class(x)[[1L]] else typeof(x)
  hint <- if (isS4(x)) "; convert it with as.matrix() first" else ""
  stop_gpucholmod("not_numeric", sprintf("'%s' must be a numeric matrix, not %s%s", argument, type, hint),
                  list(argument = argument, type = type))
}

stop_pivoted <- function(pivot) {
  stop_gpucholmod(
    "pivoted",
    "'R' comes from a pivoted factorisation: it is the factor of a permuted matrix, and its pivots would be lost",
    list(pivot = pivot)
  )
}
