#' Insert, delete and move rows and columns of many matrices
#'
#' For a handle from [chol_batch()], [cholinsert_gpu()] inserts rows and columns into the matrix \eqn{A} of every
#' member, and [choldelete_gpu()] deletes some of each: many Gaussian processes that get a point each, or lose their
#' oldest. [cholshift_gpu()] moves a row and column, those in between one step towards where it was, and
#' [cholpermute_gpu()] puts rows and columns in another order.
#'
#' New columns of \eqn{R} are found by a forward substitution and the factor of a \eqn{p \times p}{p x p} matrix.
#' Between other rows, rotations take them to their place, so that nothing is downdated. A deletion adds what was in the
#' deleted rows of \eqn{R} to the rest, as [cholupdate_batch()] adds columns. A move needs rotations only, and a
#' permutation is several moves.
#'
#' Members that cannot be enlarged may stay as they are (`check = FALSE`), so that a batch can have members of several
#' orders; `orders()` tells them. Then `dim()` tells the largest order, and `as.array()` and `diag()` show members of
#' that order, whose other rows and columns are those of the identity matrix. [cholupdate_batch()] expects zeros in rows
#' of \eqn{V} that a member does not have, `cholinsert_gpu()` ignores such rows of `X`, and `solve()` returns such rows
#' of `b` as they are. The new `z` has zeros in such rows.
#'
#' @param R A handle from [chol_batch()]. With `in_place = TRUE`, members in ordinary memory grow where they are, up to
#'   the capacity of the batch; beyond it, the batch moves to memory with room for half as many rows and columns again.
#'   On a GPU, a batch moves at every call, and can grow beyond an order of 1,024 only if its capacity, or its order,
#'   was larger at the beginning.
#' @param X The new columns of the new matrices, with rows in the order of the new matrices: an
#'   \eqn{(n + p) \times p \times b}{(n + p) x p x b} array; an \eqn{(n + p) \times p \times 1}{(n + p) x p x 1} array
#'   for all members; an \eqn{(n + 1) \times b}{(n + 1) x b} matrix, with one column for each member; or a vector of
#'   \eqn{n + 1} numbers, one column for all.
#' @param at Where the new columns are in the new matrices: the number of the first of them, one for all members or one
#'   for each. By default they are appended at the end of each member.
#' @param index The rows and columns to delete: what selects them as in [choldelete_gpu()], for all members; or a
#'   \eqn{p \times b}{p x b} matrix of numbers, a column for each member.
#' @param from,to The number or name of the row and column to move, and its number afterwards: each of them one for all
#'   members, or one for each member.
#' @param order The new order, as in [cholpermute_gpu()]: a permutation of the row numbers, or the row names, for all
#'   members; or an \eqn{n \times b}{n x b} matrix, a column for each member, in which rows that a member does not have
#'   stay where they are.
#' @param ... Must be empty.
#' @param z Right-hand sides whose rows come, go or move along with those of the factors, where \eqn{R'z = b}: an
#'   \eqn{n \times m \times b}{n x m x b} array, or in a form that [cholupdate_batch()] takes. All
#'   its numbers must be finite, also those of rows that a member does not have. On a GPU, `choldelete_gpu()` takes `z`
#'   only if the new order and \eqn{m} are at most 1,024 together, or if the order or capacity of the batch is above
#'   that.
#' @param b The new rows of the right-hand sides: a \eqn{p \times m \times b}{p x m x b} array, or in a form that
#'   [cholupdate_batch()] takes for `y`. A vector has a number for each member if \eqn{p = 1}.
#' @param rss Residual sums of squares, one for each column of `z`, as for [cholinsert_gpu()].
#' @param names Names of the new rows and columns, as for [cholinsert_gpu()].
#' @param in_place `FALSE`: the result is a new batch. `TRUE`: `R` itself is changed, for every variable that refers to
#'   it.
#' @param check Whether members whose insertion is not possible are an error (`TRUE`), or are reported in the return
#'   value (`FALSE`).
#' @param f A handle from [chol_batch()].
#'
#' @return The batch with the new factors (invisibly, if `in_place = TRUE`). Its rows and columns keep their names if
#'   all members get or lose the same ones; otherwise they have none.
#'
#'   `cholinsert_gpu()` with `check = FALSE`: a list of the batch `R`, and `pivot`, which has a number for each member:
#'   0, or the order of the first leading minor of its new matrix that is not positive definite. A member with such a
#'   minor stays as it is; all others get their rows.
#'
#'   With `z`: a list of the batch `R`, the new `z`, `rss` if it was given, and `pivot` if `check = FALSE`. A member
#'   that stays as it is keeps its `z` and `rss`.
#'
#'   `orders()`: the orders of the members, a vector of \eqn{b} integers.
#'
#' @section Errors:
#' As of [cholupdate_batch()] and [cholinsert_gpu()]. If an error is raised, nothing is changed.
#' @examples
#' # three Gaussian processes with points of their own get a point each, and lose their first
#' covariance <- function(x, y) exp(-20 * outer(x, y, "-")^2) + 1e-3 * outer(x, y, "==")
#' x <- matrix(runif(15), 5)
#' R <- apply(x[1:4, ], 2, function(x) chol(covariance(x, x)))
#' f <- chol_batch(array(R, c(4, 4, 3)), capacity = 5)
#' cholinsert_gpu(f, sapply(1:3, function(m) covariance(x[, m], x[5, m])), in_place = TRUE)
#' all.equal(f[[2]], chol(covariance(x[, 2], x[, 2])))
#' choldelete_gpu(f, 1, in_place = TRUE)
#' all.equal(f[[3]], chol(covariance(x[-1, 3], x[-1, 3])))
#'
#' # the last point becomes the first, in each process
#' moved <- cholshift_gpu(f, 4, 1)
#' all.equal(moved[[1]], chol(covariance(x[c(5, 2:4), 1], x[c(5, 2:4), 1])))
#'
#' # a point that the second process has already
#' new <- sapply(1:3, function(m) covariance(x[-1, m], 0.5)[c(1:4, 4)])
#' new[, 2] <- covariance(x[c(2:5, 5), 2], x[5, 2])
#' done <- cholinsert_gpu(f, new, check = FALSE)
#' done$pivot
#' orders(done$R)
#'
#' # three least squares fits get a variable each, and their coefficients and residuals
#' x <- array(rnorm(120), c(10, 4, 3))
#' y <- matrix(rnorm(30), 10)
#' products <- function(rows, columns) sapply(1:3, function(m) crossprod(x[, rows, m], columns[, m]))
#' fits <- chol_batch(array(apply(x[, 1:3, ], 3, function(x) chol(crossprod(x))), c(3, 3, 3)))
#' z <- solve_forward(fits, products(1:3, y))
#' rss <- colSums(y^2) - colSums(z^2)
#' done <- cholinsert_gpu(fits, products(1:4, x[, 4, ]), z = z, b = products(4, y), rss = rss)
#' all.equal(solve_back(done$R, done$z)[, 2], unname(lm.fit(x[, , 2], y[, 2])$coefficients))
#' all.equal(done$rss[2], sum(lm.fit(x[, , 2], y[, 2])$residuals^2))
#' @concept Gaussian process
#' @concept Bayesian optimisation
#' @concept many small matrices
#' @name cholinsert_gpu.chol_batch
#' @rdname cholinsert_gpu.chol_batch
#' @export
cholinsert_gpu.chol_batch <- function(R, X, at = NULL, ..., z = NULL, b = NULL, rss = NULL, names = NULL,
                                      in_place = FALSE, check = TRUE) {
  require_no_more(...)
  require_flag(in_place, "in_place")
  require_flag(check, "check")
  require_live_batch(R)
  require_same_places(.subset2(R, "dimnames")[[3L]], X = X, z = z, b = b, rss = rss, vectors = c("b", "rss"))
  p <- if (length(dim(X)) == 3L) dim(X)[[2L]] else 1L
  open <- function() open_members(X, R$n + p, R$count, "X", "as the new matrices have")
  given <- if (is.double(X)) open() else with_memory(open())
  at <- if (is.null(at)) integer() else places_in_members(at, rcpp_batch_orders(R), R$n)
  names <- new_names(names, p)
  sides <- with_memory(batch_sides(z, b, rss, R$n, p, R$count, c("b", "X")))
  n <- R$n
  order <- grown_order(R, p, at)
  modified <- if (in_place) R else descendant(R)
  dimnames <- list(reshaped_dimnames(R, order, names), members_alone(R$dimnames))
  if (p > 0L) require_same_rows(X, names_of_variables(dimnames[[1L]], R$uplo == "lower"), "X")
  insert <- function() rcpp_batch_insert(R, modified, list(given, at, sides, check), dimnames)
  done <- with_room(insert, R)
  failed <- any(done$pivots > 0L)
  if (check && failed) stop_members(done$pivots, "with what is inserted")
  if (failed) order <- if (all(done$pivots > 0L)) seq_len(n)  # members that stay have the rows that they had
  value <- reshaped_batch(modified, done, sides, n + p, order, names, check)
  if (in_place && check && is.null(sides)) invisible(value) else value
}

#' @rdname cholinsert_gpu.chol_batch
#' @export
choldelete_gpu.chol_batch <- function(R, index, ..., z = NULL, rss = NULL, in_place = FALSE) {
  require_no_more(...)
  require_flag(in_place, "in_place")
  require_live_batch(R)
  own <- rcpp_batch_orders(R)
  each <- is.numeric(index) && is.matrix(index)
  gone <- if (each) rows_of_members(index, own) else sort(unique(places_of(index, R)))
  if (each && nrow(gone) > R$n) stop_bad_argument("index", index, sprintf("has more than %d rows", R$n))
  short <- which(own < if (length(gone)) gone[[length(gone)]] else 0L)
  if (!each && length(short)) {
    why <- sprintf("'index' has number %d, but member %d has %d rows; a matrix 'index' has numbers for each member",
                   gone[[length(gone)]], short[[1L]], own[[short[[1L]]]])
    stop_gpucholmod("bad_argument", why, list(argument = "index", value = index, member = short[[1L]]))
  }
  require_same_places(.subset2(R, "dimnames")[[3L]], z = z, rss = rss)
  sides <- with_memory(batch_sides(z, NULL, rss, R$n, 0L, R$count, NULL))
  p <- if (each) nrow(gone) else length(gone)
  left <- R$n - p
  order <- if (!each) if (p > 0L) seq_len(R$n)[-gone] else seq_len(R$n)
  modified <- if (in_place) R else descendant(R)
  remove <- function() rcpp_batch_delete(R, modified, list(gone, p, sides), reshaped_dimnames(R, order))
  done <- with_room(remove, R)
  value <- reshaped_batch(modified, done, sides, left, order)
  if (in_place && is.null(sides)) invisible(value) else value
}

#' @rdname cholinsert_gpu.chol_batch
#' @export
cholshift_gpu.chol_batch <- function(R, from, to, ..., z = NULL, in_place = FALSE) {
  require_no_more(...)
  require_flag(in_place, "in_place")
  require_live_batch(R)
  require_same_places(.subset2(R, "dimnames")[[3L]], z = z, vectors = c("from", "to"), from = from, to = to)
  own <- rcpp_batch_orders(R)
  from <- rows_to_move(if (is.character(from)) places_of(from, R, "from") else from, own, "from", R$n)
  to <- rows_to_move(to, own, "to", R$n)
  order <- if (all(from == to)) seq_len(R$n)
           else if (length(unique(from)) == 1L && length(unique(to)) == 1L) {
             append(seq_len(R$n)[-from[[1L]]], from[[1L]], to[[1L]] - 1L)
           }
  each <- max(length(from), length(to))
  move_members(R, matrix(rep_len(from, each), 1L), matrix(rep_len(to, each), 1L), order, z, in_place)
}

#' @rdname cholinsert_gpu.chol_batch
#' @export
cholpermute_gpu.chol_batch <- function(R, order, ..., z = NULL, in_place = FALSE) {
  require_no_more(...)
  require_flag(in_place, "in_place")
  require_live_batch(R)
  each <- is.matrix(order)
  require_same_places(.subset2(R, "dimnames")[[3L]], z = z, order = if (each) order)
  own <- rcpp_batch_orders(R)
  if (each && ncol(order) != length(own)) {
    stop_gpucholmod("dimension_mismatch", sprintf("'order' is for %d members, there are %d", ncol(order), length(own)),
                    list(expected = length(own), actual = ncol(order)))
  }
  columns <- if (each) lapply(seq_along(own), function(m) order[, m]) else list(order)
  if (is.character(order)) columns <- lapply(columns, places_of, R, "order")
  columns <- lapply(columns, require_permutation, order, R$n)
  for (m in seq_along(own)) {
    beyond <- which(seq_len(R$n) > own[[m]])
    if (!identical(columns[[if (each) m else 1L]][beyond], beyond)) {
      stop_bad_argument("order", order, sprintf("moves rows that member %d does not have", m))
    }
  }
  moves <- lapply(columns, moves_of)
  steps <- max(0L, lengths(lapply(moves, `[[`, "from")))
  padded <- function(what) vapply(moves, function(move) c(move[[what]], rep(1L, steps))[seq_len(steps)], integer(steps))
  order <- if (length(unique(columns)) <= 1L) if (length(columns)) columns[[1L]] else seq_len(R$n)
  move_members(R, matrix(padded("from"), steps), matrix(padded("to"), steps), order, z, in_place)
}

# Moves rows of the members of a batch, from[q, m] to to[q, m] of member m, or of all where there is one column, one
# after the other. order: see reshaped_dimnames().
move_members <- function(R, from, to, order, z, in_place) {
  sides <- with_memory(batch_sides(z, NULL, NULL, R$n, 0L, R$count, NULL))
  if (ncol(from) == 1L) from <- from[, 1L]
  if (is.matrix(to) && ncol(to) == 1L) to <- to[, 1L]
  at_once <- in_place && NROW(from) == 1L
  modified <- if (at_once) R else descendant(R)
  moves <- list(from, to, sides)
  done <- with_room(function() rcpp_batch_shift(R, modified, moves, reshaped_dimnames(R, order)), R)
  if (in_place && !at_once) modified <- take_over(R, modified)
  value <- reshaped_batch(modified, done, sides, R$n, order)
  if (in_place && is.null(sides)) invisible(value) else value
}

# Returns numbers of rows, one for all members or one for each, of orders `own`, as integers. Of no members, it is the
# order n that counts.
rows_to_move <- function(rows, own, name, n) {
  whole <- is.numeric(rows) && length(rows) %in% c(1L, length(own)) && !anyNA(rows) && all(rows == round(rows)) &&
    all(rows >= 1 & rows <= if (length(own)) own else n)
  if (!whole) {
    stop_bad_argument(name, rows, sprintf("must be one number for all %d members or one for each, of a row that it has",
                                          length(own)))
  }
  as.integer(rows)
}

#' @rdname cholinsert_gpu.chol_batch
#' @export
orders <- function(f) {
  if (missing(f)) require_given("f")
  if (!inherits(f, "chol_batch")) stop_bad_argument("f", f, "must be a handle from chol_batch()")
  require_live_batch(f)
  value <- rcpp_batch_orders(f)
  names(value) <- .subset2(f, "dimnames")[[3L]]
  value
}

# Returns places, one for all members or one for each, of orders `own`, as integers. Of no members, it is the order n
# that counts.
places_in_members <- function(at, own, n) {
  whole <- is.numeric(at) && length(at) %in% c(1L, length(own)) && !anyNA(at) && all(at == round(at)) &&
    all(at >= 1 & at <= 1 + if (length(own)) own else n)
  if (!whole) {
    stop_bad_argument("at", at, sprintf(paste("must be one number for all %d members or one for each, from 1 to one",
                                              "more than the member has rows"), length(own)))
  }
  as.integer(at)
}

# Returns a p x b matrix of numbers of rows, for members of orders `own`, with ascending columns.
rows_of_members <- function(index, own) {
  p <- nrow(index)
  if (ncol(index) != length(own)) {
    stop_gpucholmod("dimension_mismatch", sprintf("'index' is for %d members, there are %d", ncol(index), length(own)),
                    list(expected = length(own), actual = ncol(index)))
  }
  whole <- !anyNA(index) && all(index == round(index)) && all(index >= 1) && all(index <= rep(own, each = p)) &&
    !any(apply(index, 2L, anyDuplicated) > 0L)
  if (!whole) stop_bad_argument("index", index, "must have different numbers of rows of the member in each column")
  sorted <- matrix(if (p > 1L) apply(index, 2L, sort) else index, p, length(own))
  storage.mode(sorted) <- "integer"
  sorted
}

# Returns names of p new rows, or NULL.
new_names <- function(names, p) {
  if (is.null(names)) return(NULL)
  if (!is.character(names) || length(names) != p || anyNA(names)) {
    stop_bad_argument("names", names, sprintf("must be %d names, one for each new column", p))
  }
  names
}

# Returns what the rows of a batch have been whose members get p rows at `at`, NA for new ones; NULL if members get them
# at different places.
grown_order <- function(f, p, at) {
  own <- rcpp_batch_orders(f)
  place <- if (length(at)) unique(at) else unique(own + 1L)
  if (length(place) == 1L && all(own == f$n)) append(seq_len(f$n), rep(NA_integer_, p), place - 1L)
}

# Returns the dimnames of a batch whose row i was row order[[i]]; NULL for those of rows and columns if it has no order.
reshaped_dimnames <- function(f, order, names = NULL) {
  old <- .subset2(f, "dimnames")
  if (is.null(old) && is.null(names)) return(NULL)
  if (is.null(order)) return(members_alone(old))
  with_members(new_dimnames(old[1:2], order, names), old)
}

# Returns the value of a call by which members of a batch R get or lose rows. done: list(pivots, z, rss), z with `rows`
# rows; sides: of batch_sides(), or NULL; order, names: of the rows of R, as above.
reshaped_batch <- function(R, done, sides, rows, order, names = NULL, check = TRUE) {
  if (is.null(sides)) return(batch_value(R, done, sides, check))
  if (R$n < rows) done$z <- matrix(done$z, rows)[seq_len(R$n), ]
  form <- sides$forms$z
  of_rows <- function(old) if (!is.null(old) && !is.null(order)) new_dimnames(list(old), order, names)[[1L]]
  if (!is.null(form$names)) form$names <- of_rows(form$names)  # a vector, of a single member
  if (!is.null(form$dim)) form$dim[[1L]] <- R$n
  if (!is.null(form$dimnames)) form$dimnames[1L] <- list(of_rows(form$dimnames[[1L]]))
  sides$forms["z"] <- list(form)
  batch_value(R, done, sides, check)
}

# Returns dimnames with these names of rows and columns, a list or NULL, and the names of members of `old`.
with_members <- function(rows, old) {
  if (is.null(rows)) return(members_alone(old))
  c(rows, list(old[[3L]]))
}

# Returns the dimnames of a batch with the names of members alone, or NULL.
members_alone <- function(old) if (!is.null(old[[3L]])) list(NULL, NULL, old[[3L]])
