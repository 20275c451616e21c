# How a modification, of whatever kind of factor, is asked for and carried out.

# Returns a request, whose elements to_request() in src/rcpp_request.cpp reads by these names, in this order:
#
#   downdate, check   as the caller gave them; checked there
#   lower, single     TRUE or FALSE
#   backend           its number, or NULL where none was given: the option's, or the first
#   method            its number
#   control           control_numbers(), or NULL where none was given
#   weights, scale    check_weights(), check_scale(), or NULL where none was given
#   sides             sides_of(), or NULL
new_request <- function(downdate = FALSE, check = TRUE, lower = FALSE, single = FALSE, backend = NULL, method = 0L,
                        control = NULL, weights = NULL, scale = NULL, sides = NULL) {
  list(downdate = downdate, check = check, lower = lower, single = single, backend = backend, method = method,
       control = control, weights = weights, scale = scale, sides = sides)
}

# A request of which nothing is given. Functions in which a call of new_request() would take as long as a small
# modification begin with it, and set elements by their names: to NULL, which would remove an element, by list(NULL).
default_request <- new_request()

# The choices that the core knows by number, from 0, in the order of its enums (src/base/types.h, src/modify/request.h).
choices <- list(
  uplo = c("upper", "lower"),
  precision = c("double", "single"),
  backend = c("auto", "cpu", "cuda"),
  method = c("auto", "blocked", "refactor", "reference", "panel", "stream", "resident", "persistent",
             "stepwise"),
  instructions = c("auto", "plain", "avx2", "avx512"),
  loop_order = c("A", "B"),
  where = c("memory", "in_place", "file", "gpu", "held"),
  other_triangle = c("zero", "filled", "transposed", "nearly_symmetric", "symmetric")
)
ordinary_methods <- choices$method[1:7]

# Returns the number by which the core knows a choice.
number_of <- function(value, what) match(value, choices[[what]]) - 1L
# Returns the choice that the core knows by a number.
choice_of <- function(number, what) choices[[what]][[number + 1L]]

# Returns the number of the backend in the option, which must be set.
default_backend <- function() {
  number_of(match_choice(getOption("gpucholmod.backend"), choices$backend, "gpucholmod.backend"), "backend")
}

# Checks the weights of the columns of V, or of several V, of which V number j has counts[[j]] columns, and returns them
# as doubles: NULL if none were given; one number; one number for each column, if all V have the same count; a matrix
# with a column for each V; or, from a list, a list with a number for each column of each V.
#
#   downdate   as the caller gave it: TRUE cannot be combined with weights
#   counts     NULL if the core compares the number of weights with that of the columns
#   by_column  TRUE if every V is a column of one matrix, so that one number for each V is accepted too
#   lists      TRUE if a list is accepted
check_weights <- function(weights, downdate, counts = NULL, by_column = FALSE, lists = FALSE) {
  if (is.null(weights)) return(NULL)
  refuse <- function(rule, ...) stop_bad_argument("weights", weights, sprintf(rule, ...))
  if (isTRUE(downdate)) {
    refuse("tells already what is taken away, by negative numbers: leave out 'downdate', which means weights of -1")
  }
  if (lists && is.list(weights) && !is.object(weights)) {
    if (length(weights) != length(counts)) refuse("must be one number, or a list of %d, one for each V", length(counts))
    return(Map(function(w, count) {
      w <- finite_numbers(if (is.null(w)) numeric() else w, "weights")
      if (length(w) != 1L && length(w) != count) {
        refuse("must have one number for each of the columns of its V, %d, not %d", count, length(w))
      }
      rep_len(w, count)
    }, weights, counts))
  }
  w <- finite_numbers(weights, "weights")
  if (is.null(counts)) return(w)
  if (length(dim(weights)) == 2L) {
    if (ncol(weights) != length(counts) || any(counts != nrow(weights))) {
      refuse("must have a row for each column of every V, and a column for each V")
    }
    dim(w) <- dim(weights)
  } else if (length(w) != 1L && any(counts != length(w)) && !(by_column && length(w) == length(counts))) {
    refuse(paste("must be one number, one for each column of every V, a matrix with a column for each V, or, if each V",
                 "is one column, one for each V, not %d numbers"), length(w))
  }
  w
}

# Checks the scale of A, and returns it as doubles: one positive number, or one for each of so many `members`.
check_scale <- function(scale, members = 1L) {
  scale <- finite_numbers(scale, "scale")
  if (!length(scale) %in% c(1L, members) || any(scale <= 0)) {
    others <- if (members != 1L) sprintf(", or %d of them", members)
    stop_bad_argument("scale", scale, paste0("must be one positive number", others))
  }
  scale
}

# Returns the numbers of an argument as doubles; stops if one of them is not finite.
finite_numbers <- function(x, argument) {
  if (!is.numeric(x) || is.object(x)) {
    stop_gpucholmod("not_numeric", sprintf("'%s' must be numeric, not %s", argument, class(x)[[1L]]),
                    list(argument = argument, type = class(x)[[1L]]))
  }
  at <- match(FALSE, is.finite(x), 0L)
  if (at > 0L) {
    stop_gpucholmod("not_finite", sprintf("'%s' has a value that is not finite at [%d]", argument, at),
                    list(argument = argument, row = at, col = 1, value = x[[at]]))
  }
  as.double(x)
}

# Checks right-hand sides that are modified with a factor of order n, and returns list(z, y, rss, argument, form), z and
# y matrices of doubles and rss doubles, or NULL if there are none. y has a row for each of the k columns of V or X; if
# k is NULL, there is no y. The core checks that z and y are finite, where it reads them. name: what the user calls y.
# form: the attributes of the new z, which src/ sets before it changes anything: to set them here might copy a vector.
sides_of <- function(z, y, rss, n, k, name = "y", columns = "V", form = form_of(z)) {
  if (is.null(z)) {
    if (is.null(y) && is.null(rss)) return(NULL)
    belong <- c(if (!is.null(k)) name, "rss")
    stop_bad_argument("z", NULL, sprintf("is missing, to which %s belong%s",
                                         paste0("'", belong, "'", collapse = " and "),
                                         if (length(belong) == 1L) "s" else ""))
  }
  force(form)
  z <- open_columns(z, n, float32 = FALSE, "z")
  if (!is.null(k)) {
    if (is.null(y)) stop_bad_argument(name, NULL, sprintf("is missing: it has a row for each column of '%s'", columns))
    y <- ordinary_numbers(y)
    if (!is.numeric(y)) stop_not_numeric(y, name)
    if (k == 1L && is.null(dim(y))) y <- t(y)
    y <- open_columns(y, k, float32 = FALSE, name, sprintf("'%s' has %d columns", columns, k))
    if (ncol(y) != ncol(z)) {
      stop_gpucholmod("dimension_mismatch", sprintf("'%s' has %d columns, 'z' has %d", name, ncol(y), ncol(z)),
                      list(expected = ncol(z), actual = ncol(y)))
    }
  }
  if (!is.null(rss)) {
    rss <- sums_of_squares(rss)
    if (length(rss) != ncol(z)) {
      stop_gpucholmod("dimension_mismatch", sprintf("'rss' has %d numbers, 'z' has %d columns", length(rss), ncol(z)),
                      list(expected = ncol(z), actual = length(rss)))
    }
  }
  list(z = z, y = y, rss = rss, argument = name, form = form)
}

# Returns residual sums of squares as doubles, which may be NaN or Inf, as this package returns them.
sums_of_squares <- function(rss) {
  if (!is.numeric(rss) || is.object(rss)) stop_not_numeric(rss, "rss")
  if (any(rss < 0, na.rm = TRUE)) stop_bad_argument("rss", rss, "must not be negative")
  as.double(rss)
}

# Returns the attributes of right-hand sides, without an S3 class.
form_of <- function(z) {
  if (isS4(z)) return(list(dim = dim(z)))
  form <- attributes(z)
  form[names(form) != "class"]
}

# Returns the value of a function that modifies: the factor alone; or a list with the right-hand sides, and with the
# pivot if `check` is FALSE. done: what carry_out() returns. After a failure z and rss are as the caller gave them.
returned <- function(R, done, check, z = NULL, rss = NULL) {
  if (is.null(z)) return(if (check) R else list(R = R, pivot = done$pivot))
  taken <- if (done$pivot > 0L) list(z = z, rss = rss) else done[c("z", "rss")]
  with_sides(R, taken, if (!check) done$pivot, rss)
}

# Returns the list of R, the new right-hand sides and the pivot; warns of sums of squares that became NaN. taken:
# list(z, rss), rss NULL if none was given. given: rss before the modification, whose form the new one gets. m: of a
# batch, whose rss has its form already, how many right-hand sides each member has.
with_sides <- function(R, taken, pivot, given = taken$rss, m = NULL) {
  negative <- which(is.na(taken$rss) & !is.na(given))
  if (is.null(m) && !is.null(taken$rss)) attributes(taken$rss) <- attributes(given)
  if (length(negative)) {
    fields <- if (is.null(m)) list(columns = negative)
              else list(members = (negative - 1L) %/% m + 1L, columns = (negative - 1L) %% m + 1L)
    warn_gpucholmod("negative_rss", paste("a residual sum of squares would become negative: it is NaN; the",
                                          if (is.null(m)) "factor" else "factors", "and z are what they should be"),
                    fields)
  }
  c(list(R = R), taken["z"], if (!is.null(taken$rss)) taken["rss"], if (!is.null(pivot)) list(pivot = pivot))
}

# Returns the number of one of the allowed methods.
method_number <- function(method, allowed) number_of(match_choice(method, allowed, "method"), "method")
# Returns the number of a backend.
backend_number <- function(backend) number_of(match_choice(backend, choices$backend, "backend"), "backend")

# Evaluates `code`, a call of src/ that carries out a request, under its bar, and returns its value: list(pivot, factor,
# z, rss), see Result in src/rcpp_request.h. A pivot other than 0 is the pivot that fails: an error if the request says
# so, whose message ends with `consequence`.
carry_out <- function(request, code, consequence = NULL) {
  on.exit(if (!is.null(state$bar)) end_bar("failed"))
  done <- code
  if (!is.null(state$bar)) end_bar("done")
  if (done$pivot > 0L && request$check) stop_not_positive_definite("the downdated matrix", done$pivot, consequence)
  done
}
