# What a factor and V may come in: base matrices, and the classes of packages Matrix and float, known here by their
# slots so that neither package needs to be there.

# Opens a factor: list(x, lower, float32). `x` is a plain double matrix, or, for float32, an integer matrix that
# holds the bits of floats; NULL where `R` itself is one, see opened(). close_factor() puts a modified x back into what
# the user gave. uplo: one of the choices, or NULL where it was not given.
open_factor <- function(R, uplo = NULL, argument = "R") {
  lower <- identical(uplo, "lower")
  if (isS4(R) && (methods::is(R, "dtrMatrix") || methods::is(R, "Cholesky"))) {
    return(open_triangular_Matrix(R, uplo, argument))
  }
  if (is_float32(R)) {
    require_factor_shape(R@Data, argument)
    check_other_triangle(rcpp_other_triangle(R@Data, lower), lower, argument)
    return(list(x = R@Data, lower = lower, float32 = TRUE))
  }
  pivot <- attr(R, "pivot", exact = TRUE)
  if (!is.null(pivot)) stop_pivoted(pivot, argument)
  if (!is.numeric(R) || is.object(R)) stop_not_numeric(R, argument)
  x <- if (length(R) == 1L && is.null(dim(R))) matrix(as.double(R)) else if (!is.double(R)) as_double(R)
  require_factor_shape(if (is.null(x)) R else x, argument)
  check_other_triangle(rcpp_other_triangle(if (is.null(x)) R else x, lower), lower, argument)
  list(x = x, lower = lower, float32 = FALSE)
}

# Returns the dimnames of a factor as it was given.
factor_dimnames <- function(R) {
  if (!isS4(R)) dimnames(R) else if (is_float32(R)) dimnames(R@Data) else R@Dimnames
}

# Returns the matrix of an opened factor. A list that held R itself would count as a reference to R for good, and
# cholupdate_overwrite() would have to copy a matrix that nobody shares.
opened <- function(factor, R) if (is.null(factor$x)) R else factor$x

# Returns the matrix of an opened factor as doubles.
opened_doubles <- function(factor, R) {
  if (factor$float32) keep_dim(rcpp_from_float(factor$x), factor$x) else opened(factor, R)
}

# Returns `x`, a modified factor, in the form of `R`; as float32 only if `single`.
close_factor <- function(factor, R, x, single) {
  if (!isS4(R)) return(x)
  if (!factor$float32) {
    dim(x) <- NULL
    R@x <- x
    if (methods::.hasSlot(R, "diag")) R@diag <- "N"
    return(R)
  }
  if (!single) {
    dimnames(x) <- dimnames(R@Data)
    return(x)
  }
  R@Data <- x
  R
}

# Opens a triangular factor of package Matrix, as open_factor() does.
open_triangular_Matrix <- function(R, uplo, argument) {
  if (methods::.hasSlot(R, "perm") && length(R@perm)) stop_pivoted(R@perm, argument)
  own <- if (R@uplo == "L") "lower" else "upper"
  if (!is.null(uplo) && uplo != own) {
    stop_gpucholmod("bad_argument",
                    sprintf("'uplo' is \"%s\", but '%s' is %s triangular, a %s", uplo, argument, own, class(R)),
                    list(argument = "uplo", value = uplo))
  }
  x <- matrix(R@x, R@Dim[1L], R@Dim[2L])
  require_factor_shape(x, argument)
  if (methods::.hasSlot(R, "diag") && R@diag == "U") diag(x) <- 1
  list(x = x, lower = own == "lower", float32 = FALSE)
}

# Opens a list of factors, each as open_factor() does: returns shapes_of() of ordinary matrices, lower triangular if
# `lower`. uplo: one of the choices, or NULL where it was not given.
open_listed_factors <- function(R, lower, uplo) {
  pivots <- lapply(R, attr, "pivot", TRUE)
  pivoted <- which(lengths(pivots) > 0L)
  if (length(pivoted)) stop_pivoted(pivots[[pivoted[[1L]]]], sprintf("R[[%d]]", pivoted[[1L]]))
  shapes_of(R, "R", function(x, argument) {
    if (!isS4(x)) return(x)
    factor <- open_factor(x, uplo, argument)
    R <- unname(opened_doubles(factor, x))
    R[if (factor$lower) upper.tri(R) else lower.tri(R)] <- 0
    if (is_lower(x, lower) == lower) R else t(R)
  })
}

# Returns `x`, the factor of a member of a list as open_listed_factors() opens it, in the form of `R`.
close_listed_factor <- function(x, R, lower) {
  if (is_lower(R, lower) != lower) x <- t(x)
  dimnames(x) <- factor_dimnames(R)
  in_class_of(x, R)
}

# Is true if a factor says itself that it is lower triangular, and, if it says nothing, as `otherwise` says.
is_lower <- function(R, otherwise) {
  if (isS4(R) && methods::.hasSlot(R, "uplo")) identical(R@uplo, "L") else otherwise
}

# Returns the triangle of a list of factors where none was given: "lower" if all of them say so themselves.
triangle_of_list <- function(R) {
  if (length(R) && is_lower(R[[1L]], FALSE) && all(vapply(R, is_lower, TRUE, FALSE))) "lower" else "upper"
}

# Returns `x`, an ordinary matrix of doubles, as an object of the class of `R`, of package Matrix or float.
in_class_of <- function(x, R) {
  if (is_float32(R)) {
    R@Data <- keep_dim(rcpp_to_float(unname(x)), x)
    dimnames(R@Data) <- dimnames(x)
    return(R)
  }
  R@x <- as.vector(x)
  R@Dim <- dim(x)
  R@Dimnames <- if (is.null(dimnames(x))) list(NULL, NULL) else dimnames(x)
  if (methods::.hasSlot(R, "diag")) R@diag <- "N"
  R
}

# Judges what rcpp_other_triangle() says of the triangle that is not used: stops because of a symmetric matrix, and
# warns of what else the user hardly means. A triangle that is merely not zero may be so on purpose: that is told once a
# session. member: the number of the matrix in a batch.
check_other_triangle <- function(looks, lower, argument, member = NULL) {
  if (looks == 0L) return(invisible())
  looks <- choice_of(looks, "other_triangle")
  if (looks == "filled" && isTRUE(state$told_of_other_triangle)) return(invisible())
  if (looks == "filled") state$told_of_other_triangle <- TRUE
  uplo <- if (lower) "lower" else "upper"
  other <- if (lower) "upper" else "lower"
  what <- sprintf("'%s'", argument)
  if (!is.null(member)) what <- sprintf("member %d of %s", member, what)
  fields <- c(list(argument = argument, uplo = uplo, looks = looks), if (!is.null(member)) list(member = member))
  factor <- sprintf(if (lower) "t(chol(%s))" else "chol(%s)", if (is.null(member)) argument else "A")
  message <- switch(
    looks,
    symmetric = sprintf(paste("%s is a symmetric matrix, not a Cholesky factor: give %s. If it is a factor all the",
                              "same, set its %s triangle, which is not used, to 0"), what, factor, other),
    nearly_symmetric = sprintf(paste("%s looks like a symmetric matrix but for rounding errors, and is taken for a",
                                     "factor: its %s triangle is used. %s would be the factor of that matrix"), what,
                               uplo, factor),
    transposed = sprintf(paste("%s looks like a factor that is %s triangular, and is taken for one that is %s:",
                               "only its diagonal is used. Give %s, or uplo = \"%s\" where there is such an argument"),
                         what, other, uplo, sprintf("t(%s)", if (is.null(member)) argument else "R"), other),
    filled = sprintf("%s is not zero in its %s triangle, which is not used (told once a session)", what, other)
  )
  if (looks == "symmetric") stop_gpucholmod("not_triangular", message, fields)
  warn_gpucholmod("other_triangle", message, fields)
}

# Opens a symmetric matrix: list(x, float32, dimnames), x as in open_factor().
open_symmetric <- function(A) {
  float32 <- is_float32(A)
  if (float32) {
    A <- A@Data
  } else {
    if (isS4(A) && methods::is(A, "Matrix")) A <- as.matrix(A)
    A <- without_class(A)
    if (!is.numeric(A) || is.object(A)) stop_not_numeric(A, "A")
    if (length(A) == 1L && is.null(dim(A))) A <- matrix(A)
    A <- as_double(A)
  }
  require_factor_shape(A, "A")
  if (choice_of(rcpp_other_triangle(A, FALSE), "other_triangle") == "transposed") {
    stop_bad_argument("A", NULL, paste("is lower triangular, and only its upper triangle is read: give t(A), or, if it",
                                       "is a factor, R = A and uplo = \"lower\""))
  }
  list(x = A, float32 = float32, dimnames = dimnames(A))
}

# Returns the end of a message that asks whether the transpose of an argument was meant, if it fits.
ask_for_t <- function(argument, fits) if (fits) sprintf("; did you mean t(%s)?", argument) else ""

# Opens a matrix with a row for every row of the factor, V or right-hand sides: returns a matrix of doubles, or, if
# `float32`, of the bits of floats.
open_columns <- function(V, n, float32, argument = "V", beside = sprintf("the factor is %d x %d", n, n)) {
  if (float32 && is_float32(V)) {
    x <- V@Data
  } else {
    V <- ordinary_numbers(V)
    if (!is.numeric(V) || is.object(V)) stop_not_numeric(V, argument)
    x <- if (float32) keep_dim(rcpp_to_float(as_double(V)), V) else as_double(V)
  }
  if (length(dim(x)) > 2L) {
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' must be a matrix or a vector", argument),
                    list(expected = n, actual = dim(x)))
  }
  if (length(dim(x)) != 2L) x <- matrix(x, ncol = 1L)
  if (nrow(x) != n) {
    stop_gpucholmod("dimension_mismatch",
                    sprintf("'%s' has %d rows, %s%s", argument, nrow(x), beside, ask_for_t(argument, ncol(x) == n)),
                    list(expected = n, actual = nrow(x)))
  }
  x
}

# Is true for doubles of the right shape, a matrix or a vector, which open_columns() would not change.
are_plain_columns <- function(V, n) {
  is.double(V) && !is.object(V) && (if (is.null(d <- dim(V))) length(V) == n else length(d) == 2L && d[[1L]] == n)
}

# Returns numbers with an S3 class, such as a time series, without the class. integer64 stays, as its doubles hold no
# doubles.
without_class <- function(x) {
  if (is.object(x) && !isS4(x) && is.numeric(x) && !inherits(x, "integer64")) unclass(x) else x
}

# Returns what goes with a factor, such as V, as ordinary numbers, as far as it can: of class Matrix or float32, with an
# S3 class, or logical values, of which TRUE is 1.
ordinary_numbers <- function(x) {
  if (is_float32(x)) return(keep_dim(rcpp_from_float(x@Data), x@Data))
  x <- without_class(if (isS4(x) && methods::is(x, "Matrix")) as.matrix(x) else x)
  if (is.logical(x) && !is.object(x)) as_double(x) else x
}

# Is true for a matrix of package float.
is_float32 <- function(x) isS4(x) && methods::is(x, "float32")

# Returns doubles, without a copy if `x` holds doubles already.
as_double <- function(x) {
  if (!is.double(x)) storage.mode(x) <- "double"
  x
}

# Returns `x` with the dimensions of `like`.
keep_dim <- function(x, like) {
  dim(x) <- dim(like)
  x
}

# Stops unless `R` is a square matrix.
require_factor_shape <- function(R, argument = "R") {
  d <- dim(R)
  if (length(d) != 2L || d[1L] != d[2L]) {
    hint <- if (length(d) == 3L && d[1L] == d[2L]) sprintf("; chol_batch(%s) makes a batch of many", argument)
    stop_gpucholmod("not_square", paste0(sprintf("'%s' must be a square matrix", argument), hint),
                    list(nrow = if (length(d)) d[1L] else length(R), ncol = if (length(d) > 1L) d[2L] else NA_integer_))
  }
}

# Stops if a row of x, columns for a factor whose variables have `names`, has the name of another variable: rows go by
# place, not by name.
require_same_rows <- function(x, names, argument = "V") {
  if (is.null(names)) return(invisible())
  if (is.list(x) && !is.data.frame(x)) {
    for (one in x) require_same_rows(one, names, argument)
    return(invisible())
  }
  if (is_float32(x)) x <- x@Data
  own <- if (length(dim(x)) >= 2L) dimnames(x)[[1L]] else names(x)
  if (is.null(own) || length(own) != length(names)) return(invisible())
  wrong <- which(nzchar(own) & own != names & own %in% names)
  if (!length(wrong)) return(invisible())
  first <- wrong[[1L]]
  stop_bad_argument(argument, own,
                    sprintf("has its rows in another order than the factor: row %d is \"%s\", the factor's number %d",
                            first, own[[first]], match(own[[first]], names)))
}

# Stops because an argument is not numeric.
stop_not_numeric <- function(x, argument) {
  type <- if (is.object(x)) class(x)[[1L]] else typeof(x)
  of <- function(class) isS4(x) && methods::is(x, class)
  hint <- if (of("CHMfactor")) {
    sprintf("; made with perm = FALSE, its factor is t(as.matrix(Matrix::expand(%s)$L))", argument)
  } else if (of("symmetricMatrix")) {
    sprintf(": that is no factor; chol(%s) gives one", argument)
  } else if (of("Matrix") || is.data.frame(x)) {
    "; convert it with as.matrix() first"
  } else if (argument == "R" && inherits(x, "chol_batch")) {
    "; cholupdate_batch() modifies its members, and R[[i]] is the factor of member i"
  } else if (argument == "R" && inherits(x, "chol_factor")) {
    "; cholupdate_gpu() modifies a handle, and as.matrix(R) is the factor as a matrix"
  } else if (argument == "R" && is.list(x) && !is.object(x)) {
    "; chol_batch(R) makes a batch of many"
  }
  stop_gpucholmod("not_numeric", paste0(sprintf("'%s' must be a numeric matrix, not %s", argument, type), hint),
                  list(argument = argument, type = type))
}

# Stops because a factor comes from a pivoted factorisation.
stop_pivoted <- function(pivot, argument = "R") {
  stop_gpucholmod(
    "pivoted",
    sprintf(paste("'%s' comes from a pivoted factorisation: it is the factor of a permuted matrix,",
                  "and its pivots would be lost"), argument),
    list(pivot = pivot)
  )
}
