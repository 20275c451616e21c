#' A handle where a matrix is expected
#'
#' A factor of [chol_factor()] or in a [factor_file()] can be multiplied and indexed as the triangular matrix that
#' `as.matrix(f)` returns: \eqn{R}, or, if the factor was given as a lower triangular matrix, \eqn{R'}. Products are
#' computed where the factor is, in double precision, without making a matrix of it. (`solve(f)`, `determinant(f)` and
#' `logdet(f)` are about \eqn{A}.)
#'
#' `f %*% x` needs R 4.3.0 or later; earlier versions cannot call a method for it, and stop. `crossprod(f, x)`, which is
#' \eqn{f'x}, and `tcrossprod(f, t(x))`, which is \eqn{fx}, work in every version. Before R 4.4.0 they are S4 generics
#' of this package, which call the functions of base R for everything else.
#'
#' @param x,y A factor, and an ordinary matrix or a vector of suitable size; also of class `Matrix` or `float32`. If `y`
#'   is missing or `NULL`, the product is that of the factor with itself.
#' @param i,j,drop As for an ordinary matrix: numbers, negative numbers, logical values or names.
#' @param ... Ignored; for `[`, the indices.
#'
#' @return Ordinary matrices of doubles, named as a product of matrices is.
#'
#' | Call | Value |
#' |---|---|
#' | `f %*% x`, `x %*% f` | the products |
#' | `crossprod(f, x)`, `crossprod(x, f)` | \eqn{f'x}, \eqn{x'f} |
#' | `tcrossprod(f, x)`, `tcrossprod(x, f)` | \eqn{fx'}, \eqn{xf'} |
#' | `crossprod(f)`, `tcrossprod(f)` | \eqn{f'f}, \eqn{ff'}; \eqn{A} is the first if `f` is upper, or the second |
#' | `t(f)`, `f[i, j]` | of `as.matrix(f)`, a copy; for a file, `f[i, j]` reads only the columns `j` |
#' | `length(f)`, `dim(f)`, `diag(f)` | \eqn{n^2}, \eqn{(n, n)}, the diagonal |
#' | [summary(f)][summary.chol_factor] | size, place, and how well conditioned \eqn{A} may be |
#'
#' Other uses as numbers (`f + 1`, `exp(f)`, `max(f)`, `mean(f)`, `cbind(f, x)`, `as.numeric(f)`, `f[i, j] <- 1`,
#' `dimnames(f) <- x`) are errors of class `gpucholmod_not_supported` with the fields `operation` and `backend`, whose
#' message suggests `as.matrix()`. So are products, `t()` and `[` of a factor over several processes and of a
#' [chol_batch()], and `t(f)` and `f[i]` of a file. Functions of R that are not generic, such as `colSums()`, stop with
#' errors of their own, or take `as.matrix(f)`, as `svd()` does.
#' @seealso [chol_factor()]
#' @examples
#' A <- crossprod(matrix(rnorm(600), 30)) + diag(20)
#' f <- chol_factor(chol(A))
#' all.equal(crossprod(f, 1:20), crossprod(chol(A), 1:20))
#' all.equal(crossprod(f), A)
#' if (getRversion() >= "4.3.0") f %*% cbind(1:20)
#' f[1:2, 1:3]
#' @usage
#' \S4method{crossprod}{chol_factor,ANY}(x, y = NULL, ...)
#' \S4method{tcrossprod}{chol_factor,ANY}(x, y = NULL, ...)
#' @aliases crossprod,chol_factor,ANY-method crossprod,ANY,chol_factor-method crossprod,factor_file,ANY-method
#' @aliases tcrossprod,chol_factor,ANY-method tcrossprod,ANY,chol_factor-method tcrossprod,factor_file,ANY-method
#' @name factor_matrix
NULL

# Stops because `operation` is not there for the kind of handle that `f` is.
stop_no_matrix <- function(operation, f) {
  kind <- intersect(c("process_factor", "gpu_factor", "cpu_factor", "factor_file", "chol_batch"), class(f))
  if (length(kind) != 1L) stop_invalid("factor", "damaged")
  instead <- if (kind != "chol_batch") "as.matrix(f) gives the factor as an ordinary matrix"
             else "as.array(f) gives its factors as an ordinary array, f[[i]] one as a matrix"
  if (endsWith(operation, "<-")) {
    maker <- switch(kind, chol_batch = "chol_batch()", factor_file = "write_factor()", "chol_factor()")
    instead <- sprintf("%s; %s takes it when it is changed", instead, maker)
  }
  backend <- c(process_factor = "mpi", gpu_factor = "cuda", cpu_factor = "cpu", factor_file = "file",
               chol_batch = "batch")[[kind]]
  stop_gpucholmod("not_supported", sprintf("%s is not supported for a %s; %s", operation, kind, instead),
                  list(operation = operation, backend = backend))
}

# Is true if f stands for a matrix that can be multiplied: a factor of one process, or in a file.
multiplies <- function(f) inherits(f, c("cpu_factor", "gpu_factor", "factor_file"))

# Is true for every handle.
is_handle <- function(f) inherits(f, c("chol_factor", "factor_file", "chol_batch"))

# Returns f x, or f'x if `transposed`; x: a matrix with n rows, or a vector, called `what` in messages.
product_with <- function(f, x, transposed, what) {
  in_file <- inherits(f, "factor_file")
  n <- if (in_file) dim(f)[[1L]] else order_of(f)
  if (!are_plain_columns(x, n)) x <- with_memory(open_columns(x, n, float32 = FALSE, what))
  y <- if (in_file) {
    with_memory(unchanged(f, product_with_file(f, as.matrix(x), transposed)))
  } else {
    live(f)
    which <- if (transposed != (.subset2(f, "uplo") == "lower")) 1L else 2L
    with_room(function() rcpp_factor_multiply(f, x, which))
  }
  rows <- if (!in_file) .subset2(f, "dimnames")[[if (transposed) 2L else 1L]]
  columns <- colnames(x)
  if (!is.null(rows) || !is.null(columns)) dimnames(y) <- list(rows, columns)
  y
}

# Returns f x, or f'x, for a factor in a file, which is read once.
product_with_file <- function(f, x, transposed) {
  y <- matrix(0, nrow(x), ncol(x))
  over_panels(f, reverse = FALSE, function(J, top, block) {
    above <- seq_len(J[[1L]] - 1L)
    if (transposed) {
      y[J, ] <<- crossprod(block, x[J, , drop = FALSE]) + crossprod(top, x[above, , drop = FALSE])
    } else {
      y[above, ] <<- y[above, , drop = FALSE] + top %*% x[J, , drop = FALSE]
      y[J, ] <<- block %*% x[J, , drop = FALSE]
    }
  })
  y
}

# Returns the transpose of an ordinary matrix; a vector, which is one row, is returned as it is.
transposed_rows <- function(x) {
  if (is_float32(x)) x <- keep_dim(rcpp_from_float(x@Data), x@Data)
  if (isS4(x)) x <- as.matrix(x)
  if (length(dim(x)) == 2L) t(x) else x
}

# Returns op(x) op(y), where x, y or both are handles; operation: as the user called it. transposed: of x, and of y.
handle_product <- function(x, y, transposed, operation) {
  first <- multiplies(x)
  if (!first && is_handle(x)) stop_no_matrix(operation, x)
  if (is_handle(y) && !multiplies(y)) stop_no_matrix(operation, y)
  if (first) {
    if (is_handle(y)) y <- as.matrix(y)
    return(product_with(x, if (transposed[[2L]]) transposed_rows(y) else y, transposed[[1L]],
                        if (transposed[[2L]]) "t(y)" else "y"))
  }
  t(product_with(y, if (transposed[[1L]]) x else transposed_rows(x), !transposed[[2L]],
                 if (transposed[[1L]]) "x" else "t(x)"))
}

#' @rdname factor_matrix
#' @usage NULL
#' @rawNamespace S3method("%*%", chol_factor)
`%*%.chol_factor` <- function(x, y) handle_product(x, y, c(FALSE, FALSE), "%*%")

#' @rdname factor_matrix
#' @usage NULL
#' @rawNamespace S3method(crossprod, chol_factor)
crossprod.chol_factor <- function(x, y = NULL, ...) {
  if (!is.null(y)) return(handle_product(x, y, c(TRUE, FALSE), "crossprod()"))
  if (!multiplies(x)) stop_no_matrix("crossprod()", x)
  base::crossprod(as.matrix(x))
}

#' @rdname factor_matrix
#' @usage NULL
#' @rawNamespace S3method(tcrossprod, chol_factor)
tcrossprod.chol_factor <- function(x, y = NULL, ...) {
  if (!is.null(y)) return(handle_product(x, y, c(FALSE, TRUE), "tcrossprod()"))
  if (!multiplies(x)) stop_no_matrix("tcrossprod()", x)
  base::tcrossprod(as.matrix(x))
}

#' @rawNamespace S3method("%*%", factor_file)
`%*%.factor_file` <- `%*%.chol_factor`
#' @rawNamespace S3method(crossprod, factor_file)
crossprod.factor_file <- crossprod.chol_factor
#' @rawNamespace S3method(tcrossprod, factor_file)
tcrossprod.factor_file <- tcrossprod.chol_factor
#' @rawNamespace S3method("%*%", chol_batch)
`%*%.chol_batch` <- `%*%.chol_factor`
#' @rawNamespace S3method(crossprod, chol_batch)
crossprod.chol_batch <- crossprod.chol_factor
#' @rawNamespace S3method(tcrossprod, chol_batch)
tcrossprod.chol_batch <- tcrossprod.chol_factor

# Before R 4.4.0, crossprod() and tcrossprod() know S4 methods alone.
#' @rawNamespace exportMethods(crossprod, tcrossprod)
set_products <- function(classes) {
  for (one in classes) {
    for (pair in c(list(c(one, "ANY"), c("ANY", one)), lapply(classes, function(other) c(one, other)))) {
      setMethod("crossprod", pair, function(x, y = NULL, ...) crossprod.chol_factor(x, y))
      setMethod("tcrossprod", pair, function(x, y = NULL, ...) tcrossprod.chol_factor(x, y))
    }
  }
}
set_products(c("chol_factor", "factor_file", "chol_batch"))
