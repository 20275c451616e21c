# Entries, the transpose and the length of a handle, as of the matrix that as.matrix() returns; arithmetic, for which
# that is named. Documented in factor_matrix.R.

#' @rdname factor_matrix
#' @export
`[.chol_factor` <- function(x, ..., drop = TRUE) {
  if (inherits(x, "process_factor")) stop_no_matrix("[", x)
  as.matrix(x)[..., drop = drop]
}

#' @rdname factor_matrix
#' @export
`[.factor_file` <- function(x, i, j, ..., drop = TRUE) {
  if (nargs() - (!missing(drop)) != 3L) stop_no_matrix("[ with one index", x)
  n <- sound_file(x)$n
  rows <- if (missing(i)) seq_len(n) else selected_in(i, n, "i")
  columns <- if (missing(j)) seq_len(n) else selected_in(j, n, "j")
  with_memory(unchanged(x, entries_in_file(x, rows, columns)))[, , drop = drop]
}

# Returns these rows and columns of a factor in a file; reads the columns once, in panels.
entries_in_file <- function(f, rows, columns) {
  out <- matrix(0, length(rows), length(columns))
  wanted <- sort(unique(columns))
  widest <- max(1L, as.integer(2^27 / (8 * f$n)))
  run <- cumsum(c(0L, diff(wanted) != 1L))
  for (J in split(wanted, list(run, seq_along(wanted) %/% widest), drop = TRUE)) {
    last <- J[[length(J)]]
    panel <- rcpp_read_factor_file(f$path, J[[1L]] - 1L, last)
    at <- which(columns %in% J)
    there <- rows <= last
    out[there, at] <- panel[rows[there], match(columns[at], J)]
  }
  out
}

#' @rdname factor_matrix
#' @export
`[.chol_batch` <- function(x, ..., drop = TRUE) stop_no_matrix("[", x)

#' @rdname factor_matrix
#' @usage NULL
#' @export
`[<-.chol_factor` <- function(x, ..., value) stop_no_matrix("[<-", x)
#' @export
`[<-.factor_file` <- `[<-.chol_factor`
#' @export
`[<-.chol_batch` <- `[<-.chol_factor`
#' @export
`[[<-.chol_batch` <- function(x, i, ..., value) stop_no_matrix("[[<-", x)
#' @export
`dimnames<-.chol_factor` <- function(x, value) stop_no_matrix("dimnames<-", x)
#' @export
`dimnames<-.chol_batch` <- `dimnames<-.chol_factor`
#' @export
`dimnames<-.factor_file` <- `dimnames<-.chol_factor`

#' @rdname factor_matrix
#' @export
t.chol_factor <- function(x) {
  if (inherits(x, "process_factor")) stop_no_matrix("t()", x)
  t(as.matrix(x))
}
#' @export
t.factor_file <- function(x) stop_no_matrix("t()", x)
#' @export
t.chol_batch <- t.factor_file

#' @rdname factor_matrix
#' @export
length.chol_factor <- function(x) {
  n <- as.double(dim(x)[[1L]])
  if (n^2 <= .Machine$integer.max) as.integer(n^2) else n^2
}
#' @export
length.factor_file <- length.chol_factor

#' @export
str.factor_file <- function(object, ...) cat(" ", format(object), "\n", sep = "")

# Arithmetic and functions of numbers: of the groups Ops, Math and Summary.
#' @export
Ops.chol_factor <- function(e1, e2) stop_no_matrix(.Generic, if (is_handle(e1)) e1 else e2)
#' @export
Ops.factor_file <- Ops.chol_factor
#' @export
Ops.chol_batch <- Ops.chol_factor
#' @export
Math.chol_factor <- function(x, ...) stop_no_matrix(paste0(.Generic, "()"), x)
#' @export
Math.factor_file <- Math.chol_factor
#' @export
Math.chol_batch <- Math.chol_factor
#' @export
Summary.chol_factor <- function(..., na.rm = FALSE) stop_no_matrix(paste0(.Generic, "()"), Find(is_handle, list(...)))
#' @export
Summary.factor_file <- Summary.chol_factor
#' @export
Summary.chol_batch <- Summary.chol_factor

# Functions that would otherwise take the parts of a handle for numbers.
#' @export
mean.chol_factor <- function(x, ...) stop_no_matrix("mean()", x)
#' @export
mean.factor_file <- mean.chol_factor
#' @export
mean.chol_batch <- mean.chol_factor
#' @export
as.double.chol_factor <- function(x, ...) stop_no_matrix("as.numeric()", x)
#' @export
as.double.factor_file <- as.double.chol_factor
#' @export
as.double.chol_batch <- as.double.chol_factor
#' @export
cbind.chol_factor <- function(..., deparse.level = 1) stop_no_matrix("cbind()", Find(is_handle, list(...)))
#' @export
cbind.factor_file <- cbind.chol_factor
#' @export
cbind.chol_batch <- cbind.chol_factor
#' @export
rbind.chol_factor <- function(..., deparse.level = 1) stop_no_matrix("rbind()", Find(is_handle, list(...)))
#' @export
rbind.factor_file <- rbind.chol_factor
#' @export
rbind.chol_batch <- rbind.chol_factor

# Returns the numbers, from 1 to n, that `index` selects as `[` does: positive ones, of which zeros are left out, or all
# but negative ones, or logical values. Stops where it has NA, or is out of range, and for NULL, which is rather a name
# that was mistyped. Repeated numbers stay.
selected_in <- function(index, n, argument, or = "") {
  if (is.numeric(index) && !is.object(index) && isTRUE(all(index >= 1 & index <= n & index == round(index)))) {
    return(as.integer(index))  # as most are
  }
  refuse <- function(why) stop_bad_argument(argument, index, why)
  if (is.object(index) || !(is.numeric(index) || is.logical(index)) || anyNA(index)) {
    refuse(sprintf("must be numbers from 1 to %d, or from -1 to -%d for all others, or logical values%s", n, n, or))
  }
  if (is.logical(index)) {
    if (length(index) > n) refuse(sprintf("has %d logical values, the factor is %d x %d", length(index), n, n))
    return(seq_len(n)[index])
  }
  if (any(index != round(index)) || any(abs(index) > n)) {
    refuse(sprintf("must be whole numbers from 1 to %d, or from -1 to -%d for all others%s", n, n, or))
  }
  if (any(index < 0) && any(index > 0)) refuse("must not have both positive and negative numbers")
  seq_len(n)[index]
}
