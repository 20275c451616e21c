#' Insert, delete and move rows and columns of A
#'
#' Given the Cholesky factor of \eqn{A}, these functions compute the factor of \eqn{A} with rows and columns inserted
#' (`cholinsert_gpu()`), deleted (`choldelete_gpu()`), with one row and column moved to another place
#' (`cholshift_gpu()`), or with all of them permuted (`cholpermute_gpu()`). Growing Gaussian processes, active-set
#' methods and cross-validation need this. It is much quicker than factorising again, and leaves the entries left of and
#' above the change as they are.
#'
#' `cholinsert_gpu()` makes a forward substitution, factorises a \eqn{p \times p}{p x p} matrix, and downdates the part
#' of the factor behind the inserted rows, if there is one. `choldelete_gpu()` updates the part behind the first deleted
#' row, by as many columns as rows are deleted. `cholshift_gpu()` uses reflections, and works for every positive
#' definite matrix. `cholpermute_gpu()` makes several such moves.
#'
#' @param R The Cholesky factor: what [cholupdate_gpu()] accepts, or a handle from [chol_factor()]. A handle with room
#'   to grow and `in_place = TRUE` is the quickest. For a factor in a file see [cholinsert_gpu.factor_file()], for many
#'   factors [cholinsert_gpu.chol_batch()].
#' @param X The new columns of the new matrix, with rows in the order of the new matrix: an
#'   \eqn{(n + p) \times p}{(n + p) x p} matrix, or a vector for one column. Only the upper triangle is used of the
#'   \eqn{p \times p}{p x p} block that the new columns have on the diagonal. Row names that are those of the new
#'   matrix in another order are an error.
#' @param at Where the new columns are in the new matrix: the number of the first of them, if they are side by side; or
#'   the numbers of all of them, so that column `q` of `X` becomes column `at[q]`. By default they are appended at the
#'   end.
#' @param index The rows and columns to delete: their numbers or names, or anything else that selects them as in
#'   `(1:n)[index]`. So negative numbers select all others (`-1` deletes all but the first), a logical vector selects
#'   its `TRUE` values, zeros select nothing, and a number that is given twice counts once.
#' @param order A permutation of the numbers from 1 to \eqn{n}, or of the names. Row and column `order[i]` become number
#'   `i`, so the result is the factor of `A[order, order]`.
#' @param from,to Row and column `from` become number `to`, and those in between move one place towards `from`. `from`
#'   is a number or a name, `to` is a number.
#' @param ... Must be empty.
#' @param z Right-hand sides that are changed along with the factor, where \eqn{R'z = b}: a vector of \eqn{n} numbers,
#'   or a matrix with \eqn{n} rows. The new `z` belongs to the new factor and to the new \eqn{b}; the call does not
#'   solve for all of it again.
#' @param b The new rows of \eqn{b}, one for each column of `X`.
#' @param rss Residual sums of squares, one for each column of `z`, as for [cholupdate_gpu()]. If `z` and `rss` belong
#'   to a least squares fit, and the rows and columns of \eqn{A} to its variables, `rss` grows when variables are
#'   deleted, and shrinks when they are inserted.
#' @param names Names of the new rows and columns. If the factor has names and `names` is not given, the new names are
#'   the column names of `X`, or `""`.
#' @param uplo As for [cholupdate_gpu()].
#' @param in_place As for [cholupdate_gpu()][cholupdate_gpu.chol_factor]. If the new order is within the capacity of the
#'   factor, such a call allocates memory for the changed rows and columns only. It needs a second factor if numbers are
#'   near the ends of their range; on a GPU also for an insertion before the end, if there is room for a second factor
#'   or if more than 32 columns are inserted. Beyond the capacity, the factor is moved to memory with room for half as
#'   many rows and columns again, if there is so much. Columns at several places and `cholpermute_gpu()` always need a
#'   second factor, which replaces `R` at the end.
#' @param check Whether an insertion that is not possible is an error (`TRUE`), or is reported in the return value
#'   (`FALSE`).
#' @param jitter The most that may be added to the diagonal entries of the inserted rows, if the new matrix is not
#'   positive definite otherwise, as a matrix with two equal rows is not. It is tried in growing steps, as in
#'   [chol_factor()], and a message tells what was added. A handle keeps the most that was added so far in the field
#'   `jitter`, an ordinary matrix has what this call has added as the attribute `"jitter"`, and a list as the element
#'   `jitter`.
#' @param control What [cholupdate_control()] returns: `threads` and `instructions`; on a GPU `device_memory`, which
#'   limits what the call allocates besides the factor.
#'
#' @return The new factor, in the form of `R`, with its dimnames and those of the inserted rows and columns.
#'
#'   `cholinsert_gpu()` with `check = FALSE`: a list of the factor `R` and `pivot`. `pivot` is 0 on success. Otherwise
#'   it is the order of the first leading minor of the new matrix that is not positive definite, and `R` is the factor
#'   that was given.
#'
#'   With `z`: a list of `R`, the new `z`, and `rss` if it was given. If `pivot` is not 0, `z` and `rss` are those that
#'   were given.
#'
#'   [last_cholupdate()] does not report these calls.
#'
#' @section Errors:
#' If the new rows and columns would leave the matrix not positive definite, such as those of a point that is there
#' already, the error has the class `gpucholmod_not_positive_definite` and the field `pivot`, counted in the new order;
#' nothing is changed. The same error is raised if their numbers are so large beside the factor that no positive
#' definite matrix has them. A new diagonal entry below the smallest normal number is an error of class
#' `gpucholmod_bad_diagonal`; `cholshift_gpu()` can fail in this way only. [gpucholmod-package] lists the other classes.
#'
#' On a GPU without room for a second factor, an insertion in place before the end may turn out to be impossible after
#' it has begun, if the matrix is singular up to rounding. The handle cannot be used after that.
#'
#' @references MATLAB and Octave have `cholinsert()`, `choldelete()` and `cholshift()`, from the library qrupdate, for
#'   one row and column. G. H. Golub and C. F. Van Loan (2013). Matrix Computations, 4th ed., section 6.5.
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
#' # a Gaussian process that grows, in memory that is allocated once
#' x <- runif(200)
#' covariance <- function(x, y) exp(-20 * outer(x, y, "-")^2) + 1e-3 * outer(x, y, "==")
#' f <- chol_factor(chol(covariance(x[1], x[1])), "cpu", capacity = 200)
#' for (i in 2:200) cholinsert_gpu(f, covariance(x[1:i], x[i]), in_place = TRUE)
#' logdet(f)
#' cholinsert_gpu(f, covariance(x, x)[c(1:200, 7), 7], jitter = 1e-3) # point 7 again
#' @concept Gaussian process
#' @concept Bayesian optimisation
#' @concept Bayesian optimization
#' @concept active set
#' @concept kriging
#' @concept non-negative least squares
#' @export
cholinsert_gpu <- function(R, X, ...) {
  if (missing(R) || missing(X)) require_given("R", "X")
  UseMethod("cholinsert_gpu")
}

#' @rdname cholinsert_gpu
#' @export
choldelete_gpu <- function(R, index, ...) {
  if (missing(R) || missing(index)) require_given("R", "index")
  UseMethod("choldelete_gpu")
}

#' @rdname cholinsert_gpu
#' @export
cholshift_gpu <- function(R, from, to, ...) {
  if (missing(R) || missing(from) || missing(to)) require_given("R", "from", "to")
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
  in_class_of(x, R)
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
  rows <- X
  if (!are_plain_columns(X, n + p)) {
    require_not_transposed(X, n)
    X <- open_columns(X, n + p, float32 = FALSE, "X", sprintf("the new matrix is %d x %d", n + p, n + p))
  }
  if (!is.null(names) && (!is.character(names) || length(names) != p || anyNA(names))) {
    stop_bad_argument("names", names, sprintf("must be %d names, one for each column of 'X'", p))
  }
  if (is.null(names) && !is.null(.subset2(f, "dimnames"))) names <- colnames(X)
  if (p > 0L) {
    own <- names_of_variables(.subset2(f, "dimnames"), identical(.subset2(f, "uplo"), "lower"))
    if (!is.null(own)) require_same_rows(rows, names_with(own, names, at, p), "X")
  }
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

# Returns the names of variables after p new ones have come: names `new`, or none if that is NULL, at `at`, the first of
# their places or all of them.
names_with <- function(own, new, at, p) {
  places <- if (length(at) == 1L) at + seq_len(p) - 1L else at
  all <- character(length(own) + p)
  all[-places] <- own
  if (!is.null(new)) all[places] <- new
  all
}

# Stops if X has the new columns of a factor of order n in its rows.
require_not_transposed <- function(X, n) {
  d <- dim(if (is_float32(X)) X@Data else X)
  if (length(d) != 2L || d[[1L]] == n + d[[2L]] || d[[2L]] != n + d[[1L]]) return(invisible())
  stop_gpucholmod("dimension_mismatch",
                  sprintf("'X' has %d rows and %d columns, the factor is %d x %d%s", d[[1L]], d[[2L]], n, n,
                          ask_for_t("X", TRUE)), list(expected = d[[2L]], actual = d[[1L]]))
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
