#' Many small factors with memory of their own
#'
#' `chol_batch()` keeps many Cholesky factors, the members of the batch, in ordinary memory or on a GPU, in the layout
#' in which they are modified most quickly. [cholupdate_batch()] modifies all of them in one call, in place on request.
#' [cholinsert_gpu()], [choldelete_gpu()], [cholshift_gpu()] and [cholpermute_gpu()] insert, delete and move rows and
#' columns of all of them.
#'
#' @param R The factors: an \eqn{n \times n \times b}{n x n x b} array, or a list of matrices, whose orders may differ
#'   (see [orders()]). Members of a list may also be of the other classes that [cholupdate_gpu()] accepts, such as
#'   `Cholesky` and `dtrMatrix`. The other triangle of each factor is not used.
#' @param uplo `"upper"` for \eqn{A = R'R}, `"lower"` for lower triangular factors. `as.array()` and `f[[i]]` return the
#'   factors in this form. Objects of package \pkg{Matrix} carry this information themselves. If `uplo` is missing, a
#'   list makes a lower batch if all its members are lower triangular objects of package \pkg{Matrix}; any other list
#'   makes an upper batch.
#' @param precision The precision in which the factors are stored and modified, `"double"` or `"single"`.
#' @param backend Where to keep the factors: `"cpu"` or `"auto"` in ordinary memory, `"cuda"` on a GPU. If the factors
#'   are on a GPU, a modification sends only \eqn{V} there.
#' @param device For `"cuda"`: the id of the GPU, from [gpu_info()]; `NULL` for the first GPU that can be used. With
#'   another `backend`, a device is an error.
#' @param capacity How many rows and columns to reserve room for in each member. In ordinary memory, [cholinsert_gpu()]
#'   in place inserts rows and columns up to this number without moving the batch. On a GPU, members that are to grow
#'   beyond an order of 1,024 need a capacity beyond it from the beginning; otherwise `capacity` has no effect there.
#' @param ... Must be empty.
#' @param x,a,f A handle of class `chol_batch`.
#' @param b Right-hand sides: an \eqn{n \times m \times b}{n x m x b} array, with \eqn{m} columns for each member; an
#'   \eqn{n \times m \times 1}{n x m x 1} array, with \eqn{m} columns for all members; an \eqn{n \times b}{n x b}
#'   matrix, with one column for each member; or a vector of length \eqn{n}, for all members. [solve_modified()] has the
#'   same rule.
#' @param i The number of a member, or its name.
#' @param names Whether the columns of `diag()` have the names of the members.
#' @param nrow,ncol These arguments of [base::diag()] must be left out.
#'
#' @return `chol_batch()`: a handle of class `chol_batch`. The handle refers to data, as the handles of [chol_factor()]
#'   do. The section Handles of that help page says what this means for assignment, files, other processes and memory.
#'
#' For a handle of \eqn{b} factors of order \eqn{n}, `dim()` is `c(n, n, b)` and `length()` is `b`.
#'
#' | Function | Value |
#' |---|---|
#' | `as.array()` | the factors, with the dimnames that they were given with |
#' | `f[[i]]` | one factor, a matrix |
#' | `diag()` | an \eqn{n \times b}{n x b} matrix of the diagonals of the factors |
#' | `logdet()` | the logarithms of the determinants of the \eqn{b} matrices \eqn{A} |
#' | `solve()`, `solve_forward()`, `solve_back()` | \eqn{A^{-1}b}, \eqn{R'^{-1}b}, \eqn{R^{-1}b} for each member |
#' | [solve_modified()] | the solutions for modified members, without changing the batch |
#' | [copy_factor()], [free()] | the same as for one factor |
#'
#' Solutions are in double precision: an array if `b` is one, otherwise an \eqn{n \times b}{n x b} matrix. Solutions
#' have the names of the members, if the batch or `b` has any; the solutions of `solve()` also have the row names of the
#' batch, and the column names of an array `b`. The other values have the names of the members, too.
#'
#' A member cannot be replaced: `f[[i]] <- x` is an error of class `gpucholmod_not_supported`, and so are `f[i] <- x`
#' and `dimnames(f) <- x`. Change the array instead, and make a new batch of it.
#' @seealso [cholupdate_batch()], [cholinsert_gpu.chol_batch()], [solve_modified()]
#' @examples
#' A <- replicate(5, crossprod(matrix(rnorm(60), 20)))       # 3 x 3 x 5
#' f <- chol_batch(array(apply(A, 3, chol), dim(A)))
#' f
#' cholupdate_batch(f, matrix(1:15, 3), in_place = TRUE)     # a column for each member
#' all.equal(crossprod(f[[2]]), A[, , 2] + tcrossprod(4:6))
#' solve(f, c(1, 0, 0))
#' logdet(f)
#' @export
chol_batch <- function(R, backend = getOption("gpucholmod.backend", "auto"), uplo = c("upper", "lower"),
                       precision = c("double", "single"), device = getOption("gpucholmod.device"), capacity = NULL,
                       ...) {
  require_no_more(...)
  if (missing(R)) require_given("R")
  backend <- match_choice(backend, choices$backend, if (missing(backend)) "gpucholmod.backend" else "backend")
  by_default <- missing(uplo)
  uplo <- match_choice(uplo, choices$uplo, "uplo")
  precision <- number_of(match_choice(precision, choices$precision, "precision"), "precision")
  if (!missing(device) && !is.null(device) && backend != "cuda") {
    stop_bad_argument("device", device, "is for backend = \"cuda\"; other batches are kept in ordinary memory")
  }
  device <- require_device(device, missing(device))
  listed <- is.list(R) && !is.object(R)
  if (listed && by_default) uplo <- triangle_of_list(R)
  given <- with_memory(if (listed) open_listed_batch(R, uplo == "lower", if (!by_default) uplo)
                       else list(x = open_batch(R, uplo == "lower"), orders = integer()))
  x <- given$x
  d <- dim(x)
  capacity <- capacity_for(capacity, d[[1L]])
  lower <- number_of(uplo, "uplo")
  made <- if (backend == "cuda") {
    with_room(function() rcpp_batch_upload(x, d[[1L]], d[[3L]], given$orders, capacity, lower, precision, device))
  } else {
    rcpp_batch_hold(x, d[[1L]], d[[3L]], given$orders, capacity, lower, precision)
  }
  names <- if (!listed) dimnames(R) else if (!is.null(names(R))) list(NULL, NULL, names(R))
  fields <- c(made, list(status = "live", uplo = uplo, dimnames = names))
  fields$precision <- choice_of(made$precision, "precision")
  structure(list2env(fields, parent = emptyenv()), class = "chol_batch")
}

# Checks an n x n x b array and returns it as doubles.
open_batch <- function(R, lower, argument = "R") {
  R <- without_class(R)
  if (!is.numeric(R) || is.object(R)) stop_not_numeric(R, argument)
  d <- dim(R)
  if (length(d) != 3L || d[[1L]] != d[[2L]]) {
    stop_gpucholmod("not_square", sprintf("'%s' must be an n x n x b array", argument),
                    list(nrow = if (length(d)) d[[1L]] else length(R),
                         ncol = if (length(d) > 1L) d[[2L]] else NA_integer_))
  }
  x <- as_double(R)
  check_members(x, d[[1L]], lower, argument)
  x
}

# Opens a list of factors, whose orders may differ: list(x, orders), x an array in which those of smaller order are the
# identity beyond. lower, uplo: as of open_listed_factors().
open_listed_batch <- function(R, lower, uplo) {
  shape <- open_listed_factors(R, lower, uplo)
  if (any(odd <- shape$rows != shape$columns)) stop_member_not_square(shape, which(odd)[[1L]])
  check_members(shape$of, 0L, lower)
  n <- max(shape$rows, 0L)
  x <- array(if (all(shape$rows == n)) 0 else diag(n), c(n, n, length(R)))
  for (m in seq_along(R)) x[seq_len(shape$rows[[m]]), seq_len(shape$rows[[m]]), m] <- shape$of[[m]]
  list(x = x, orders = shape$rows)
}

# Stops as member m of a list, whose shapes_of() are given, is not square.
stop_member_not_square <- function(shape, m) {
  stop_gpucholmod("not_square", sprintf("member %d of 'R' is not a square matrix", m),
                  list(nrow = shape$rows[[m]], ncol = shape$columns[[m]], member = m))
}

# Looks at the triangles that are not read, of the members of an array or a list.
check_members <- function(x, n, lower, argument = "R") {
  found <- rcpp_batch_other_triangle(x, n, lower)
  check_other_triangle(found[[1L]], lower, argument, found[[2L]])
}

# Stops unless the handle of a batch can be used.
require_live_batch <- function(f) {
  reason <- rcpp_handle_trouble(f)
  if (!is.null(reason)) stop_invalid("batch", reason)
}

#' @rdname chol_batch
#' @export
copy_factor.chol_batch <- function(x, ...) {
  require_no_more(...)
  require_live_batch(x)
  descendant(x, with_room(function() rcpp_batch_copy(x)))
}

#' @rdname chol_batch
#' @export
free.chol_batch <- function(x, ...) {
  require_no_more(...)
  abandon(x, "freed")
}

#' @rdname chol_batch
#' @export
as.array.chol_batch <- function(x, ...) {
  require_no_more(...)
  require_live_batch(x)
  out <- with_room(function() rcpp_batch_download(x, 0L, number_of(x$uplo, "uplo")))
  if (!is.null(x$dimnames)) dimnames(out) <- x$dimnames
  out
}

#' @rdname chol_batch
#' @export
`[[.chol_batch` <- function(x, i, ...) {
  require_no_more(...)
  if (missing(i)) require_given("i")
  require_live_batch(x)
  member <- if (is.character(i)) match(i, .subset2(x, "dimnames")[[3L]]) else i
  count <- .subset2(x, "count")
  if (!is_number(member) || member != round(member) || member < 1 || member > count) {
    stop_bad_argument("i", i, sprintf("must be the number of a member, from 1 to %d, or its name", count))
  }
  uplo <- number_of(.subset2(x, "uplo"), "uplo")
  out <- with_room(function() rcpp_batch_download(x, as.integer(member), uplo))
  names <- .subset2(x, "dimnames")
  if (!is.null(names[[1L]]) || !is.null(names[[2L]])) dimnames(out) <- lapply(names[1:2], utils::head, nrow(out))
  out
}

#' @export
dim.chol_batch <- function(x) {
  c(rep(order_of(x), 2L), length(x))
}

#' @export
length.chol_batch <- function(x) {
  order_of(x)
  count <- .subset2(x, "count")
  if (!is.integer(count) || length(count) != 1L) stop_invalid("batch", "damaged")
  count
}

#' @export
dimnames.chol_batch <- function(x) {
  order_of(x)
  .subset2(x, "dimnames")
}

# Returns lines that describe a batch, or say why it cannot be used.
describe_batch <- function(f) {
  reason <- rcpp_handle_trouble(f)
  if (identical(reason, "damaged")) return(c("<chol_batch>", paste("cannot be used:", invalid_message(reason))))
  least <- if (is.null(reason)) min(rcpp_batch_orders(f), f$n) else f$n
  orders <- sprintf(if (least == f$n) "%d x %d" else "%d to %d rows", least, f$n)
  shape <- sprintf("<chol_batch> %d of %s, %s, %s precision", .subset2(f, "count"), orders, f$uplo, f$precision)
  if (!is.null(reason)) return(c(shape, paste("cannot be used:", invalid_message(reason))))
  room <- if (f$capacity > f$n) sprintf(", room for %d x %d", f$capacity, f$capacity)
  c(shape, paste0(format_bytes(f$bytes), " ", if (is.na(f$device)) "in ordinary memory"
                                              else sprintf("on device %d (%s)", f$device, f$device_name), room))
}

#' @export
format.chol_batch <- function(x, ...) {
  paste(describe_batch(x), collapse = ", ")
}

#' @export
print.chol_batch <- function(x, ...) {
  lines <- describe_batch(x)
  writeLines(c(lines[1L], paste0("  ", lines[-1L])))
  invisible(x)
}

#' @export
str.chol_batch <- function(object, ...) {
  cat(" ", format(object), "\n", sep = "")
}

#' @rdname chol_batch
#' @export
solve.chol_batch <- function(a, b, ...) {
  require_no_more(...)
  solve_batch(a, b, 0L)
}

#' @rdname chol_batch
#' @export
solve_forward.chol_batch <- function(f, b, ...) {
  require_no_more(...)
  solve_batch(f, b, 1L)
}

#' @rdname chol_batch
#' @export
solve_back.chol_batch <- function(f, b, ...) {
  require_no_more(...)
  solve_batch(f, b, 2L)
}

# Solves for each member of a batch. which: 0 with A, 1 with R', 2 with R.
solve_batch <- function(f, b, which) {
  require_live_batch(f)
  if (missing(b)) {
    stop_bad_argument("b", NULL, "is missing: an inverse for each member is solve(f, array(diag(n), c(n, n, b)))")
  }
  require_same_places(f$dimnames[[3L]], b = b)
  given <- with_memory(open_members(b, f$n, f$count, "b"))
  B <- with_memory(if (given$common) rep(given$x, f$count) else given$x)
  out <- with_room(function() rcpp_batch_solve(f, B, given$k, which))
  several <- length(dim(b)) == 3L
  if (!several) dim(out) <- c(f$n, f$count)
  rows <- if (which == 0L) .subset2(f, "dimnames")[[if (.subset2(f, "uplo") == "lower") 1L else 2L]]
  columns <- if (several) dimnames(b)[[2L]]
  members <- members_named(f, b)
  if (!is.null(rows) || !is.null(columns) || !is.null(members)) {
    dimnames(out) <- if (several) list(rows, columns, members) else list(rows, members)
  }
  out
}

# Returns names for the members of a batch: its own, or, if it has none, those that one of the arguments ... gives them.
members_named <- function(f, ...) {
  own <- .subset2(f, "dimnames")[[3L]]
  if (!is.null(own)) return(own)
  for (argument in list(...)) {
    names <- names_of_members(argument)
    if (!is.null(names) && length(names) == .subset2(f, "count")) return(names)
  }
  NULL
}

#' @rdname chol_batch
#' @export
logdet.chol_batch <- function(f, ...) {
  require_no_more(...)
  2 * colSums(log(batch_diagonals(f)))
}

# Returns the diagonals of all members of a batch, one a column, which has the name of the member.
batch_diagonals <- function(f) {
  require_live_batch(f)
  d <- with_room(function() rcpp_batch_diagonals(f))
  colnames(d) <- .subset2(f, "dimnames")[[3L]]
  d
}

setOldClass("chol_batch")

#' @rdname chol_batch
#' @aliases diag,chol_batch-method
#' @export
setMethod("diag", "chol_batch", function(x = 1, nrow, ncol, names = TRUE) {
  refuse_shape(!missing(nrow), !missing(ncol))
  require_flag(names, "names")
  d <- batch_diagonals(x)
  if (names) d else unname(d)
})
