# Which rows and columns are meant; insertions at several places, and permutations, which are several of the changes of
# cholinsert.R.

# Returns the numbers of rows and columns of f that are given by number or name.
places_of <- function(index, f, argument = "index") {
  if (is.character(index)) {
    found <- match(index, variable_names(f))
    if (anyNA(found)) {
      unknown <- index[is.na(found)][[1L]]
      stop_bad_argument(argument, index, sprintf("has a name that the factor has not: \"%s\"", unknown))
    }
    return(found)
  }
  selected_in(index, f$n, argument, ", or names")
}

# Returns one number from 1 to `most`, or, if there is an f, the number of a name.
place_of <- function(index, most, argument, f) {
  if (is.character(index) && length(index) == 1L && !is.null(f)) return(places_of(index, f, argument))
  if (!is.numeric(index) || length(index) != 1L || is.na(index) || index != round(index) || index < 1 || index > most) {
    or_name <- if (is.null(f)) "" else ", or a name"
    stop_bad_argument(argument, index, sprintf("must be a number from 1 to %d%s", most, or_name))
  }
  as.integer(index)
}

# Returns the numbers, in the new matrix, of p columns that are inserted into a factor of order n: one, if they stand
# side by side, otherwise all of them.
new_places <- function(at, n, p) {
  if (length(at) == 1L || p <= 1L) return(place_of(at, n + 1L, "at", NULL))
  whole <- is.numeric(at) && length(at) == p && !anyNA(at) && all(at == round(at)) && all(at >= 1 & at <= n + p)
  if (!whole || anyDuplicated(at)) {
    stop_bad_argument("at", at, sprintf(paste("must be the place of the first column, a number from 1 to %d, or the",
                                              "places of all %d, different numbers from 1 to %d"), n + 1L, p, n + p))
  }
  if (all(diff(at) == 1)) as.integer(at[[1L]]) else as.integer(at)
}

# Inserts columns X, column q as number at[[q]] of the new matrix, as insert_run() does: those that stand side by side
# at once, from the left. A handle is copied first, so that a failure half way leaves it as it was.
insert_apart <- function(f, X, at, right, names, in_place, control) {
  require_flag(in_place, "in_place")
  p <- length(at)
  given <- list(X = X, at = at)
  by_place <- order(at)
  X <- X[, by_place, drop = FALSE]
  at <- at[by_place]
  b <- right$b
  if (!is.null(right$z) && !is.null(b)) {
    b <- open_columns(b, p, FALSE, "b", sprintf("'X' has %d columns", p))[by_place, , drop = FALSE]
  }
  names <- names[by_place]
  now <- list(R = if (is_held(f)) copy_factor(f) else f, z = right$z, rss = right$rss)
  for (run in split(seq_len(p), cumsum(c(0L, diff(at) != 1L)))) {
    rows <- setdiff(seq_len(nrow(X)), at[seq_len(p) > run[[length(run)]]])
    now <- insert_run(now$R, X[rows, run, drop = FALSE], at[[run[[1L]]]],
                      list(z = now$z, b = if (is.matrix(b)) b[run, , drop = FALSE] else b, rss = now$rss), names[run],
                      is_held(f), control)
    if (now$pivot > 0L) {
      pivot <- first_pivot(f, given$X, given$at, rows[[now$pivot]], control)
      return(list(R = if (is_held(f)) f else f$matrix, pivot = pivot, z = right$z, rss = right$rss))
    }
    if (!is_held(f)) now$R <- as_held_for_now(now$R)
  }
  now$R <- if (!is_held(f)) now$R$matrix else if (in_place) take_over(f, now$R) else now$R
  now
}

# Returns the first leading minor of the new matrix that is not positive, where the minor of order `last` is not one.
first_pivot <- function(f, X, at, last, control) {
  before <- at < last
  if (!any(before)) return(last)
  old <- last - 1L - sum(before)
  n <- if (is_held(f)) order_of(f) else f$n
  less <- delete_from(f, seq_len(n)[seq_len(n) > old], NULL, NULL, FALSE, control)
  if (!is_held(f)) less <- as_held_for_now(less)
  X <- X[seq_len(last - 1L), before, drop = FALSE]
  places <- new_places(at[before], old, sum(before))
  insert <- if (length(places) == 1L) insert_run else insert_apart
  pivot <- insert(less, X, places, list(), NULL, FALSE, control)$pivot
  if (pivot > 0L) pivot else last
}

# Returns an upper matrix of doubles as held_for_now() does, without a look at it.
as_held_for_now <- function(R) {
  list2env(list(matrix = R, n = nrow(R), uplo = "upper", precision = "double", dimnames = dimnames(R)),
           parent = emptyenv())
}

# Makes the handle `f` refer to what `other`, a handle of the same kind, refers to. Returns f.
take_over <- function(f, other) {
  for (field in ls(other)) assign(field, .subset2(other, field), envir = f)
  f
}

#' @rdname cholinsert_gpu
#' @export
cholpermute_gpu <- function(R, order, ...) {
  if (missing(R) || missing(order)) require_given("R", "order")
  UseMethod("cholpermute_gpu")
}

#' @rdname cholinsert_gpu
#' @export
cholpermute_gpu.default <- function(R, order, ..., z = NULL, uplo = c("upper", "lower"),
                                    control = cholupdate_control()) {
  require_no_more(...)
  with_memory({
    f <- if (missing(uplo)) chol_factor.default(R, "cpu") else chol_factor.default(R, "cpu", uplo = uplo)
    done <- permute(f, order, z, TRUE, if (!missing(control)) control_numbers(control))
    if (is.null(z)) given_back(done, R) else replace(done, "R", list(given_back(done$R, R)))
  })
}

#' @rdname cholinsert_gpu
#' @export
cholpermute_gpu.chol_factor <- function(R, order, ..., z = NULL, in_place = FALSE, control = cholupdate_control()) {
  require_no_more(...)
  value <- permute(R, order, z, in_place, if (!missing(control)) control_numbers(control))
  if (in_place) invisible(value) else value
}

# Permutes rows and columns of a handle. In a copy, so that a failure half way leaves the handle as it was.
permute <- function(f, order, z, in_place, control) {
  require_flag(in_place, "in_place")
  live(f, "R")
  order <- require_permutation(if (is.character(order)) places_of(order, f, "order") else order, order, f$n)
  made <- copy_factor(f)
  moves <- moves_of(order)
  for (q in seq_along(moves$from)) {
    done <- shift_within(made, moves$from[[q]], moves$to[[q]], z, TRUE, control)
    if (!is.null(z)) z <- done$z
  }
  R <- if (in_place) take_over(f, made) else made
  if (is.null(z)) R else list(R = R, z = z)
}

# Returns the moves that make a permutation, one after the other: list(from, to). Each row goes to its place, from the
# first on; where the one that belongs to a place stands next to it, the one that is there goes to its own place.
moves_of <- function(order) {
  now <- seq_along(order)
  moves <- list(from = integer(), to = integer())
  for (place in seq_along(order)) {
    from <- match(order[[place]], now)
    if (from == place) next
    to <- place
    if (from == place + 1L) {
      from <- place
      to <- match(now[[place]], order)
    }
    moves <- list(from = c(moves$from, from), to = c(moves$to, to))
    now <- append(now[-from], now[[from]], to - 1L)
  }
  moves
}

# Returns `order` if it has each number from 1 to n once; given: as the user gave it.
require_permutation <- function(order, given, n) {
  if (!is.numeric(order) || length(order) != n || !identical(sort(as.double(order)), as.double(seq_len(n)))) {
    stop_bad_argument("order", given, sprintf("must be a permutation of the numbers from 1 to %d, or of the names", n))
  }
  as.integer(order)
}
