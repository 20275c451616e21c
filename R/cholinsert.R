#' Rows and columns that come, go and move
#'
#' From the factor of \eqn{A} that of \eqn{A} with rows and columns inserted, deleted, or one of them moved to another place: a growing Gaussian
#' process, an active set, cross-validation. Much quicker than factorising afresh: nothing left of and above what changes is touched.
#'
#' Deleting is a rank-\eqn{|D|} update of what lies behind the first that goes; inserting a forward substitution, the factor of a \eqn{p \times p}{p x p}
#' matrix, and a downdate of what lies behind; at the end there is none. Moving is done by rotations, and cannot fail.
#'
#' @param R The Cholesky factor: what [cholupdate_gpu()] accepts, or a factor in ordinary memory of its own, from
#'   [chol_factor()]; with `in_place` and room to grow that is the quickest.
#' @param X The new columns of the new matrix, in its order: an \eqn{(n + p) \times p}{(n + p) x p} matrix, or a vector for one. Of the
#'   \eqn{p \times p}{p x p} block that they have on the diagonal the upper triangle is looked at.
#' @param at The number that the first of them has in the new matrix. The default is behind the last.
#' @param index The numbers of those that go; or their names.
#' @param from,to Numbers, or `from` a name: row and column `from` becomes number `to`, and those in between go one step towards where it was.
#' @param ... Must be empty.
#' @param names Names of the new rows and columns. Where the factor has names and none are given, they are `""`.
#' @param uplo As for [cholupdate_gpu()].
#' @param in_place As for [cholupdate_gpu()][cholupdate_gpu.chol_factor]. Within the capacity of the factor nothing is allocated; beyond it there
#'   is half as much room again afterwards.
#' @param check Whether an insertion that cannot be done stops (`TRUE`), or is reported in the return value (`FALSE`).
#' @param control What [cholupdate_control()] gives: `threads` and `instructions`.
#'
#' @return The factor, in the form of `R`, with its dimnames, those that are inserted included. For `cholinsert_gpu()` with `check = FALSE`, a list of the factor
#'   `R` and `pivot`: 0 on success, otherwise the order of the first leading minor of the new matrix that is not positive definite, and `R` is
#'   the factor as it was given. [last_cholupdate()] tells nothing of these calls.
#'
#' @section Errors:
#' New rows and columns that would leave the matrix not positive definite, such as those of points that are there already, are an error of class
#' `gpucholmod_not_positive_definite` with the field `pivot`, counted in the new order; nothing has changed then. The other classes are
#' listed in [gpucholmod-package]. For a factor on a GPU there are no such functions yet: that is an error too.
#'
#' @references
#' MATLAB and Octave have `cholinsert()`, `choldelete()` and `cholshift()`, from the library qrupdate, for one row and column.
#' G. H. Golub and C. F. Van Loan (2013). Matrix Computations, 4th ed., section 6.5.
#' @examples
#' A <- crossprod(matrix(rnorm(600), 30)) + diag(20)
#' R <- chol(A[1:18, 1:18])
#' all.equal(cholinsert_gpu(R, A[, 19:20]), chol(A))
#' all.equal(choldelete_gpu(chol(A), c(3, 17)), chol(A[-c(3, 17), -c(3, 17)]))
#' order <- c(1:4, 6:12, 5, 13:20)
#' all.equal(cholshift_gpu(chol(A), 5, 12), chol(A[order, order]))
#'
#' # a Gaussian process that grows, in memory that is taken once
#' x <- runif(200)
#' covariance <- function(x, y) exp(-20 * outer(x, y, "-")^2) + 1e-3 * outer(x, y, "==")
#' f <- chol_factor(chol(covariance(x[1], x[1])), "cpu", capacity = 200)
#' for (i in 2:200) cholinsert_gpu(f, covariance(x[1:i], x[i]), in_place = TRUE)
#' logdet(f)
#' @export
cholinsert_gpu <- function(R, X, ...) {
  UseMethod("cholinsert_gpu")
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu <- function(R, index, ...) {
  UseMethod("choldelete_gpu")
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu <- function(R, from, to, ...) {
  UseMethod("cholshift_gpu")
}

#' @rdname cholinsert_gpu
#' @export
cholinsert_gpu.default <- function(R, X, at = NULL, ..., names = NULL, uplo = c("upper", "lower"), check = TRUE,
                                   control = cholupdate_control()) {
  require_no_more(...)
  f <- held_for_now(R, if (!missing(uplo)) uplo)
  done <- cholinsert_gpu.chol_factor(f, X, at, names = names, in_place = TRUE, check = FALSE, control = control)
  require_flag(check, "check")
  if (done$pivot > 0L && check) stop_not_positive_definite("the matrix with what is inserted", done$pivot)
  value <- if (done$pivot > 0L) R else given_back(f, R)
  if (check) value else list(R = value, pivot = done$pivot)
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu.default <- function(R, index, ..., uplo = c("upper", "lower"), control = cholupdate_control()) {
  require_no_more(...)
  given_back(choldelete_gpu.chol_factor(held_for_now(R, if (!missing(uplo)) uplo), index, in_place = TRUE, control = control), R)
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu.default <- function(R, from, to, ..., uplo = c("upper", "lower"), control = cholupdate_control()) {
  require_no_more(...)
  given_back(cholshift_gpu.chol_factor(held_for_now(R, if (!missing(uplo)) uplo), from, to, in_place = TRUE, control = control), R)
}

# An ordinary factor in memory of its own, for one call, and the result in the form of `R`.
held_for_now <- function(R, uplo) {
  if (is.null(uplo)) chol_factor.default(R, "cpu") else chol_factor.default(R, "cpu", uplo = uplo)
}
given_back <- function(f, R) {
  x <- as.matrix(f)
  if (!isS4(R)) return(x)
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

#' @rdname cholinsert_gpu
#' @export
cholinsert_gpu.chol_factor <- function(R, X, at = NULL, ..., names = NULL, in_place = FALSE, check = TRUE, control = cholupdate_control()) {
  require_no_more(...)
  require_flag(check, "check")
  n <- R$n
  at <- if (is.null(at)) n + 1L else place_of(at, n + 1L, "at", NULL)
  p <- if (length(dim(if (is_float32(X)) X@Data else X)) == 2L) ncol(X) else 1L
  X <- open_columns(X, n + p, float32 = FALSE, "X", sprintf("the new matrix is %d x %d", n + p, n + p))
  if (!is.null(names) && (!is.character(names) || length(names) != p || anyNA(names))) {
    stop_bad_argument("names", names, sprintf("must be %d names, one for each column of 'X'", p))
  }
  order <- append(seq_len(n), rep(NA_integer_, p), at - 1L)
  done <- reshape_factor(R, in_place, control, function(pointer, request, begun) {
    rcpp_factor_insert(pointer, at, X, request, in_place, begun)
  }, new_dimnames(R$dimnames, order, names))
  if (done$pivot > 0L && check) stop_not_positive_definite("the matrix with what is inserted", done$pivot)
  value <- if (check) done$R else list(R = done$R, pivot = done$pivot)
  if (in_place && check) invisible(value) else value
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu.chol_factor <- function(R, index, ..., in_place = FALSE, control = cholupdate_control()) {
  require_no_more(...)
  index <- sort(unique(places_of(index, R)))
  done <- reshape_factor(R, in_place, control, function(pointer, request, begun) {
    rcpp_factor_delete(pointer, index, request, in_place, begun)
  }, new_dimnames(R$dimnames, setdiff(seq_len(R$n), index)))
  if (in_place) invisible(done$R) else done$R
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu.chol_factor <- function(R, from, to, ..., in_place = FALSE, control = cholupdate_control()) {
  require_no_more(...)
  from <- place_of(from, R$n, "from", R)
  to <- place_of(to, R$n, "to", NULL)
  done <- reshape_factor(R, in_place, control, function(pointer, request, begun) {
    rcpp_factor_shift(pointer, from, to, request, in_place, begun)
  }, new_dimnames(R$dimnames, append(seq_len(R$n)[-from], from, to - 1L)))
  if (in_place) invisible(done$R) else done$R
}

# Runs call(pointer, request, begun), one of the rcpp_factor_*() that change the order of a factor or its rows' order: list(R, pivot).
reshape_factor <- function(f, in_place, control, call, dimnames) {
  require_flag(in_place, "in_place")
  force(dimnames)  # of the factor as it is now
  pointer <- live(f, "R")
  if (inherits(f, "gpu_factor")) {
    stop_bad_argument("R", "gpu_factor", "is on a GPU, where rows and columns do not come, go or move yet: chol_factor(as.matrix(R), \"cpu\") can")
  }
  request <- list(FALSE, FALSE, FALSE, f$precision == "single", 1L, 0L, control_numbers(control), NULL, NULL, NULL)
  begun <- logical(1)
  on.exit(if (begun) abandon(f, "half_modified"))
  done <- call(pointer, request, begun)
  on.exit()
  if (done$pivot > 0L) return(list(R = f, pivot = done$pivot))
  changed <- if (in_place) f else descendant(f, done$made)
  list2env(done[c("n", "bytes", "capacity")], changed)
  assign("dimnames", dimnames, changed)
  count_modification(changed, done$traces)
  list(R = changed, pivot = 0L)
}

# The dimnames of what has row order[[i]] of a factor as its row i; NA: one that is new.
new_dimnames <- function(dimnames, order, names = NULL) {
  if (is.null(dimnames) && is.null(names)) return(NULL)
  own <- lapply(if (is.null(dimnames)) list(NULL, NULL) else dimnames, function(old) {
    if (is.null(old) && (is.null(names) || !is.null(dimnames))) return(NULL)
    if (is.null(old)) old <- character(sum(!is.na(order)))
    fresh <- is.na(order)
    replace(ifelse(fresh, "", old[order]), which(fresh), if (is.null(names)) "" else names)
  })
  if (all(vapply(own, is.null, TRUE))) NULL else own
}

# Numbers of rows and columns of f, by number or name.
places_of <- function(index, f, argument = "index") {
  if (is.character(index)) {
    found <- match(index, variable_names(f))
    if (anyNA(found)) stop_bad_argument(argument, index, sprintf("has a name that the factor has not: \"%s\"", index[is.na(found)][[1L]]))
    return(found)
  }
  if (!is.numeric(index) || anyNA(index) || any(index != round(index)) || any(index < 1 | index > f$n)) {
    stop_bad_argument(argument, index, sprintf("must be numbers from 1 to %d, or names", f$n))
  }
  as.integer(index)
}
place_of <- function(index, most, argument, f) {
  if (is.character(index) && length(index) == 1L && !is.null(f)) return(places_of(index, f, argument))
  if (!is.numeric(index) || length(index) != 1L || is.na(index) || index != round(index) || index < 1 || index > most) {
    stop_bad_argument(argument, index, sprintf("must be a number from 1 to %d%s", most, if (is.null(f)) "" else ", or a name"))
  }
  as.integer(index)
}
