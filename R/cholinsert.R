#' Rows and columns that come, go and move
#'
#' These functions turn the factor of \eqn{A} into the factor of \eqn{A} with rows and columns inserted or deleted, or
#' with one row and column moved to another place; `cholpermute_gpu()` makes any permutation, of several moves. A
#' growing Gaussian process, an active set and cross-validation need this. It is much quicker than factorising afresh,
#' and leaves all entries left of and above the change as they are.
#'
#' `choldelete_gpu()` updates the part of the factor behind the first deleted row, by as many columns as rows are
#' deleted. `cholinsert_gpu()` makes a forward substitution, factorises a \eqn{p \times p}{p x p} matrix, and downdates
#' the part behind the inserted rows, if there is one. `cholshift_gpu()` uses reflections, and works for every positive
#' definite matrix.
#'
#' @param R The Cholesky factor: what [cholupdate_gpu()] accepts, or one with memory of its own, from [chol_factor()];
#'   with `in_place` and room to grow that is the quickest. For one in a file see [cholinsert_gpu.factor_file()].
#' @param X The new columns of the new matrix, in its order: an \eqn{(n + p) \times p}{(n + p) x p} matrix, or a vector
#'   for one. Of the \eqn{p \times p}{p x p} block that they have on the diagonal the upper triangle is looked at.
#' @param at The number that the first of them has in the new matrix, where they stand side by side; or, for columns at
#'   several places, the numbers that all of them have there: column `q` of `X` is column `at[q]` of the new matrix. The
#'   default is behind the last.
#' @param index Those that go: their numbers, or their names, or what else selects them as in `(1:n)[index]`. So
#'   negative numbers stand for all others (`-1` deletes all but the first), a logical vector for its `TRUE` values,
#'   zeros for nothing, and a number that is there twice for one.
#' @param order A permutation, of the numbers from 1 to \eqn{n} or of the names: row and column `order[i]` become
#'   number `i`, so that the result is the factor of `A[order, order]`.
#' @param from,to Numbers, or `from` a name: row and column `from` becomes number `to`, and those in between go one step
#'   towards where it was.
#' @param ... Must be empty.
#' @param z Right-hand sides that come along, with \eqn{R'z = b}: a vector of \eqn{n} numbers, or a matrix with so many
#'   rows. They become what they are for the new factor and the new \eqn{b}, without solving for all of it.
#' @param b The new rows of \eqn{b}, one for each column of `X`.
#' @param rss As for [cholupdate_gpu()]: residual sums of squares, one for each column of `z`. They grow where rows and
#'   columns go, and shrink where they come: of a least squares fit, whose `z` and `rss` they are, when variables do.
#' @param names Names of the new rows and columns. Where the factor has names and none are given, they are the column
#'   names of `X`, or `""`.
#' @param uplo As for [cholupdate_gpu()].
#' @param in_place As for [cholupdate_gpu()][cholupdate_gpu.chol_factor]. Within the capacity of the factor that takes
#'   memory for what comes or goes alone, and a second factor where numbers come near the ends of their range, and on a
#'   GPU, where there is room for one, or more than 32 columns are inserted, for an insertion before the end. Beyond the
#'   capacity there is half as much again afterwards, where that can be had. Columns at several places, and
#'   `cholpermute_gpu()`, always take a second factor, which takes the place of `R` at the end.
#' @param check Whether an insertion that cannot be done stops (`TRUE`), or is reported in the return value (`FALSE`).
#' @param jitter The most that may be added to the diagonal entries of what is inserted, so that the new matrix is
#'   positive definite, as a matrix with two rows that are the same is not: tried in growing steps, as
#'   [chol_factor()] says, and told by a message. The field `jitter` of a handle is the most that was added so far, the
#'   attribute `"jitter"` of an ordinary matrix what this call has added; a list has an element `jitter`.
#' @param control What [cholupdate_control()] gives: `threads` and `instructions`; on a GPU `device_memory`, which
#'   limits what the call takes besides the factor.
#'
#' @return The factor, in the form of `R`, with its dimnames, those that are inserted included. For `cholinsert_gpu()`
#'   with `check = FALSE`, a list of the factor `R` and `pivot`: 0 on success, otherwise the order of the first leading
#'   minor of the new matrix that is not positive definite, and `R` is the factor as it was given. With `z` a list too:
#'   `R`, `z` with as many rows as there are then, and `rss` if it was given; both are as they were given where `pivot`
#'   is not 0. [last_cholupdate()] tells nothing of these calls.
#'
#' @section Errors:
#' New rows and columns that would leave the matrix not positive definite, such as those of points that are there
#' already, are an error of class `gpucholmod_not_positive_definite` with the field `pivot`, counted in the new order;
#' nothing has changed then. So are rows and columns whose numbers are so large beside the factor that no positive
#' definite matrix has them. An entry of the new diagonal below the smallest normal number is an error of class
#' `gpucholmod_bad_diagonal`, also where a row and column move, which cannot fail otherwise. The other classes are
#' listed in [gpucholmod-package]. On a GPU without room for a second factor, an insertion in place before the end may
#' turn out to be impossible when it has begun, where the matrix is singular but for rounding: the handle cannot be used
#' any more then.
#'
#' @references
#' MATLAB and Octave have `cholinsert()`, `choldelete()` and `cholshift()`, from the library qrupdate, for one row and
#' column. G. H. Golub and C. F. Van Loan (2013). Matrix Computations, 4th ed., section 6.5.
#' @examples
#' A <- crossprod(matrix(rnorm(600), 30)) + diag(20)
#' R <- chol(A[1:18, 1:18])
#' all.equal(cholinsert_gpu(R, A[, 19:20]), chol(A))
#' all.equal(choldelete_gpu(chol(A), c(3, 17)), chol(A[-c(3, 17), -c(3, 17)]))
#' order <- c(1:4, 6:12, 5, 13:20)
#' all.equal(cholshift_gpu(chol(A), 5, 12), chol(A[order, order]))
#' all.equal(cholpermute_gpu(chol(A), order), chol(A[order, order]))
#' all.equal(cholinsert_gpu(chol(A[-c(2, 9), -c(2, 9)]), A[, c(2, 9)], at = c(2, 9)), chol(A))
#'
#' # a Gaussian process that grows, in memory that is taken once
#' x <- runif(200)
#' covariance <- function(x, y) exp(-20 * outer(x, y, "-")^2) + 1e-3 * outer(x, y, "==")
#' f <- chol_factor(chol(covariance(x[1], x[1])), "cpu", capacity = 200)
#' for (i in 2:200) cholinsert_gpu(f, covariance(x[1:i], x[i]), in_place = TRUE)
#' logdet(f)
#' cholinsert_gpu(f, covariance(x, x)[c(1:200, 7), 7], jitter = 1e-3) # a point that is there already
#' @concept Gaussian process
#' @concept Bayesian optimisation
#' @concept Bayesian optimization
#' @concept active set
#' @concept kriging
#' @concept non-negative least squares
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
cholinsert_gpu.default <- function(R, X, at = NULL, ..., z = NULL, b = NULL, rss = NULL, names = NULL,
                                   uplo = c("upper", "lower"), check = TRUE, jitter = 0,
                                   control = cholupdate_control()) {
  require_no_more(...)
  require_flag(check, "check")
  with_memory({
    f <- held_for_now(R, uplo, missing(uplo), columns_in(X))
    options <- list(check = check, jitter = jitter, control = if (!missing(control)) control_numbers(control))
    done <- insert_into(f, X, at, list(z = z, b = b, rss = rss), names, is_held(f), options)
    if (check && is.null(z)) return(given_back(done, R))
    done$R <- if (!check && done$pivot > 0L) R else given_back(done$R, R)
    done
  })
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu.default <- function(R, index, ..., z = NULL, rss = NULL, uplo = c("upper", "lower"),
                                   control = cholupdate_control()) {
  require_no_more(...)
  with_memory({
    f <- held_for_now(R, uplo, missing(uplo))
    done <- delete_from(f, index, z, rss, is_held(f), if (!missing(control)) control_numbers(control))
    if (is.null(z)) given_back(done, R) else replace(done, "R", list(given_back(done$R, R)))
  })
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu.default <- function(R, from, to, ..., z = NULL, uplo = c("upper", "lower"),
                                  control = cholupdate_control()) {
  require_no_more(...)
  with_memory({
    f <- held_for_now(R, uplo, missing(uplo))
    done <- shift_within(f, from, to, z, is_held(f), if (!missing(control)) control_numbers(control))
    if (is.null(z)) given_back(done, R) else replace(done, "R", list(given_back(done$R, R)))
  })
}

# Prepares an ordinary factor for one call of the functions below. A plain upper matrix of doubles is kept as it is, as
# `matrix`, with the fields that they read from a handle; any other factor is copied to memory of its own, with room for
# `more` rows and columns.
held_for_now <- function(R, uplo, by_default, more = 0L) {
  if (!by_default) uplo <- match_choice(uplo, choices$uplo, "uplo")
  if (is.double(R) && is.matrix(R) && !is.object(R) && (by_default || uplo == "upper")) {
    open_factor(R)
    return(as_held_for_now(R))
  }
  n <- dim(if (is_float32(R)) R@Data else R)[1L]
  capacity <- if (more > 0L && length(n)) n + more
  if (by_default) return(chol_factor.default(R, "cpu", capacity = capacity))
  chol_factor.default(R, "cpu", uplo = uplo, capacity = capacity)
}

# Is true if the factor is a handle.
is_held <- function(f) inherits(f, "chol_factor")

# Returns the number of columns of a matrix; a vector is one column.
columns_in <- function(X) {
  shape <- dim(if (is_float32(X)) X@Data else X)
  if (length(shape) == 2L) shape[[2L]] else 1L
}

# Returns the result, a matrix or a handle, in the form of `R`.
given_back <- function(f, R) {
  if (!is_held(f)) return(f)
  x <- as.matrix(f)
  if (!isS4(R)) {
    attr(x, "jitter") <- .subset2(f, "jitter")
    return(x)
  }
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
cholinsert_gpu.chol_factor <- function(R, X, at = NULL, ..., z = NULL, b = NULL, rss = NULL, names = NULL,
                                       in_place = FALSE, check = TRUE, jitter = 0,
                                       control = cholupdate_control()) {
  require_no_more(...)
  options <- list(check = check, jitter = jitter, control = if (!missing(control)) control_numbers(control))
  value <- insert_into(R, X, at, list(z = z, b = b, rss = rss), names, in_place, options)
  if (in_place && check) invisible(value) else value
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu.chol_factor <- function(R, index, ..., z = NULL, rss = NULL, in_place = FALSE,
                                       control = cholupdate_control()) {
  require_no_more(...)
  value <- delete_from(R, index, z, rss, in_place, if (!missing(control)) control_numbers(control))
  if (in_place) invisible(value) else value
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu.chol_factor <- function(R, from, to, ..., z = NULL, in_place = FALSE, control = cholupdate_control()) {
  require_no_more(...)
  value <- shift_within(R, from, to, z, in_place, if (!missing(control)) control_numbers(control))
  if (in_place) invisible(value) else value
}

# Inserts columns X into a factor f, as held_for_now() prepares it, or a handle.
#
#   right     list(z, b, rss)
#   options   list(check, jitter, control): control_numbers(), or NULL if none was given
#
# `order`, see reshape_factor(), is computed only if there are names: for a small change of a large factor that would
# take longer than the change.
insert_into <- function(f, X, at, right, names, in_place, options) {
  require_flag(options$check, "check")
  n <- if (is_held(f)) order_of(f) else f$n
  p <- columns_in(X)
  at <- if (is.null(at)) n + 1L else new_places(at, n, p)
  if (!are_plain_columns(X, n + p)) {
    require_not_transposed(X, n)
    X <- open_columns(X, n + p, float32 = FALSE, "X", sprintf("the new matrix is %d x %d", n + p, n + p))
  }
  if (!is.null(names) && (!is.character(names) || length(names) != p || anyNA(names))) {
    stop_bad_argument("names", names, sprintf("must be %d names, one for each column of 'X'", p))
  }
  if (is.null(names) && !is.null(.subset2(f, "dimnames"))) names <- colnames(X)
  insert <- if (length(at) == 1L) insert_run else insert_apart
  done <- if (identical(options$jitter, 0)) insert(f, X, at, right, names, in_place, options$control)
          else insert_with_jitter(f, X, at, options$jitter, function(X) {
            insert(f, X, at, right, names, in_place, options$control)
          })
  if (options$check && done$pivot > 0L) {
    stop_not_positive_definite("the matrix with what is inserted", done$pivot,
                               paste0(if (is.null(done$also)) jitter_hint else done$also, loss_of(f)))
  }
  value <- reshaped(done, right$z, right$rss, options$check)
  if (is.null(done$added) || (options$check && is.null(right$z))) value else c(value, list(jitter = done$added))
}

# Inserts the p columns of X from place `at` of the new matrix on, and returns what reshape_factor() does.
insert_run <- function(f, X, at, right, names, in_place, control) {
  p <- NCOL(X)
  n <- NROW(X) - p
  delayedAssign("order", append(seq_len(n), rep(NA_integer_, p), at - 1L))
  sides <- sides_of(right$z, right$b, right$rss, n, p, "b", "X", reshaped_form(right$z, n + p, order, names))
  reshape_factor(f, in_place, control, order, names, sides, function(modified, ...) {
    rcpp_factor_insert(f, modified, at, X, ...)
  })
}

# Stops if X has the new columns of a factor of order n in its rows.
require_not_transposed <- function(X, n) {
  d <- dim(if (is_float32(X)) X@Data else X)
  if (length(d) != 2L || d[[1L]] == n + d[[2L]] || d[[2L]] != n + d[[1L]]) return(invisible())
  stop_gpucholmod("dimension_mismatch",
                  sprintf("'X' has %d rows and %d columns, the factor is %d x %d; did you mean t(X)?", d[[1L]], d[[2L]],
                          n, n), list(expected = d[[2L]], actual = d[[1L]]))
}

# Deletes rows and columns from a factor, as insert_into() inserts them.
delete_from <- function(f, index, z, rss, in_place, control) {
  n <- if (is_held(f)) order_of(f) else f$n
  index <- places_of(index, f)
  if (anyDuplicated(index)) index <- unique(index)
  delayedAssign("order", if (length(index)) seq_len(n)[-index] else seq_len(n))
  sides <- sides_of(z, NULL, rss, n, NULL, form = reshaped_form(z, n - length(index), order))
  done <- reshape_factor(f, in_place, control, order, NULL, sides, function(modified, ...) {
    rcpp_factor_delete(f, modified, index, ...)
  })
  reshaped(done, z, rss)
}

# Moves a row and column of a factor, as insert_into() inserts them.
shift_within <- function(f, from, to, z, in_place, control) {
  n <- if (is_held(f)) order_of(f) else f$n
  from <- place_of(from, n, "from", f)
  to <- place_of(to, n, "to", NULL)
  delayedAssign("order", append(seq_len(n)[-from], from, to - 1L))
  sides <- sides_of(z, NULL, NULL, n, NULL, form = reshaped_form(z, n, order))
  done <- reshape_factor(f, in_place, control, order, NULL, sides, function(modified, ...) {
    rcpp_factor_shift(f, modified, from, to, ...)
  })
  reshaped(done, z, NULL)
}
