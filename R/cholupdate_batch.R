#' Rank-k update or downdate of many small Cholesky factors
#'
#' One call modifies many factors of small order, the *members* of a batch, each by a \eqn{V} of its own, as
#' [cholupdate_gpu()] modifies one factor. On the CPU, several members share the vector registers if \eqn{V} has at most
#' 64 columns, and threads divide the members among them. On a GPU, each member has threads of its own. The result for a
#' member has the same bits whatever the other members are, and for any number of members and threads.
#'
#' @param R The factors: an \eqn{n \times n \times b}{n x n x b} array; one \eqn{n \times n}{n x n} matrix, for all
#'   members; a list of matrices, of one order or of several, also of the other classes that [cholupdate_gpu()] accepts;
#'   or a handle from [chol_batch()].
#' @param V For a list `R`: a list of matrices or vectors, each the change of one member. Otherwise an
#'   \eqn{n \times k \times b}{n x k x b} array; an \eqn{n \times k \times 1}{n x k x 1} array for all members; an
#'   \eqn{n \times b}{n x b} matrix, with one column for each member; or a vector of length \eqn{n}, one column for all.
#'   A matrix `V` whose k columns are one change of every member, as in [cholupdate_gpu()], is `array(V, c(dim(V), 1))`
#'   here. Members are matched by position. If `V` gives a member the name of another member of `R`, that is an error.
#' @param downdate `FALSE` for \eqn{A + VV'}, `TRUE` for \eqn{A - VV'}. Leave it out if you give `weights`.
#' @param ... Must be empty: the arguments below are given by name.
#' @param weights Weights of the columns of V, of any sign, as for [cholupdate_gpu()]: one number; one for each column,
#'   the same for all members; a \eqn{k \times b}{k x b} matrix; or, for members with one column, one for each member.
#'   For a list `R`: one number; a vector or matrix like these, if all members have \eqn{k} columns; or a list with the
#'   weights of each member.
#' @param scale What \eqn{A} is multiplied by: one positive number, or one for each member.
#' @param z,y,rss Right-hand sides that are changed along with the factors, as for [cholupdate_gpu()]: `z` is an
#'   \eqn{n \times b}{n x b} matrix with one for each member, or an \eqn{n \times m \times b}{n x m x b} array; `y` a
#'   \eqn{k \times b}{k x b} matrix or a \eqn{k \times m \times b}{k x m x b} array, or \eqn{b} numbers if `V` has one
#'   column; `rss`, which may be left out, has a number for each column of `z`. As for `V`, a vector or an array whose
#'   third extent is 1 is for all members. Not for a list `R`. A row of an array `R` whose diagonal entry is negative is
#'   multiplied by -1, and the row of `z` with it; a handle was made with such rows multiplied, and `z` belongs to what
#'   it has. For a handle on a GPU, \eqn{n + m} must not be above 1,024, unless its order or capacity is.
#' @param check Whether members whose downdate is not possible are an error (`TRUE`), or are reported in the return
#'   value (`FALSE`).
#' @param uplo,precision As for [cholupdate_gpu()]. A handle has its own, which cannot be changed.
#' @param backend `"cpu"` or `"auto"` for the CPU, `"cuda"` for a GPU. Sending arrays and lists to a GPU and back takes
#'   longer than the CPU takes to compute, so `"cuda"` is meant for handles, which [chol_batch()] puts on a GPU.
#' @param control What [cholupdate_control()] returns: `threads` and `instructions` are used.
#' @param in_place `FALSE`: the result is a new batch. `TRUE`: `R` itself is changed, for every variable that refers to
#'   it.
#'
#' @return The modified factors, in the form of `R`: an array, a list, or a handle (with `in_place = TRUE` that is `R`
#'   itself, invisibly), with the dimnames of `R`. The other triangles are zero.
#'
#'   With `check = FALSE`: a list of the factors `R`, and `pivot`, which has a number for each member: 0, or the order
#'   of its first leading minor that is not positive definite. A member with such a minor stays as it is; the others are
#'   modified. `pivot` has the names of the members.
#'
#'   With `z`: a list of `R`, `z` (for each member) and `rss` in the form in which they were given, and `pivot` if
#'   `check = FALSE`. Members that are not modified keep their `z` and `rss`, and rows of `z` that a member has not
#'   stay. If a sum would become negative, the warning `gpucholmod_negative_rss` has the numbers of members and columns
#'   in the fields `members` and `columns`.
#'
#' @section Errors:
#' With `check = TRUE`, if some members cannot be downdated, the error has the class `gpucholmod_not_positive_definite`
#' and the fields `members`, their numbers, and `pivots`, their pivots; nothing is changed. Errors about the numbers of
#' one member (`gpucholmod_not_finite`, `gpucholmod_bad_diagonal`, `gpucholmod_overflow`) have its number in the field
#' `member`. [gpucholmod-package] lists the other classes and fields. If Ctrl-C stops a call in place, a handle in
#' ordinary memory may be unusable afterwards.
#'
#' @seealso [chol_batch()], which keeps the factors from call to call; `system.file("design", "batches.md", package =
#'   "gpucholmod")`, which describes the method
#' @examples
#' A <- replicate(5, crossprod(matrix(rnorm(60), 20)))       # 3 x 3 x 5
#' R <- array(apply(A, 3, chol), dim(A))
#' V <- array(rnorm(30), c(3, 2, 5))
#' up <- cholupdate_batch(R, V)
#' all.equal(up[, , 4], chol(A[, , 4] + tcrossprod(V[, , 4])))
#'
#' # scale by 0.9, add one column, take another away
#' moved <- cholupdate_batch(up, V, weights = c(1, -0.9), scale = 0.9)
#'
#' # factors of several orders
#' cholupdate_batch(list(diag(2), diag(3)), list(1:2, 1:3))
#'
#' # five regressions on three variables: coefficients after two more observations of each
#' z <- matrix(rnorm(15), 3)
#' y <- matrix(rnorm(10), 2)
#' both <- cholupdate_batch(chol_batch(R), V, z = z, y = y)
#' solve_back(both$R, both$z)
#'
#' # some members cannot be downdated
#' cholupdate_batch(R, V * c(1, 1, 1, 1, 1, 1, rep(0.01, 24)), downdate = TRUE, check = FALSE)$pivot
#' @concept many small matrices
#' @concept local Gaussian processes
#' @export
cholupdate_batch <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                             rss = NULL, check = TRUE, uplo = c("upper", "lower"),
                             precision = c("double", "single"), backend = getOption("gpucholmod.backend", "auto"),
                             control = cholupdate_control()) {
  if (missing(R) || missing(V)) require_given("R", "V")
  UseMethod("cholupdate_batch")
}

#' @rdname cholupdate_batch
#' @export
cholupdate_batch.default <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                     rss = NULL, check = TRUE, uplo = c("upper", "lower"),
                                     precision = c("double", "single"),
                                     backend = getOption("gpucholmod.backend", "auto"),
                                     control = cholupdate_control()) {
  require_no_more(...)
  with_memory(modify_members(R, V, downdate, weights, scale, list(z = z, y = y, rss = rss), check,
                             if (!missing(uplo)) uplo, precision, if (!missing(backend)) backend,
                             if (!missing(control)) control))
}

# Modifies an array, a matrix or a list of factors. right: list(z, y, rss). uplo, backend, control: NULL if none was
# given.
modify_members <- function(R, V, downdate, weights, scale, right, check, uplo, precision, backend, control) {
  many <- is.list(R) && !is.object(R)
  one <- !many && length(dim(R)) < 3L
  uplo <- if (!is.null(uplo)) match_choice(uplo, choices$uplo, "uplo")
  factor <- if (one) open_factor(R, uplo)
  lower <- if (one) factor$lower else identical(if (many && is.null(uplo)) triangle_of_list(R) else uplo, "lower")
  single <- match_choice(precision, choices$precision, "precision") == "single"
  request <- batch_request(downdate, check, lower, single, if (!is.null(backend)) backend_number(backend), control)
  if (many && !all(vapply(right, is.null, TRUE))) {
    stop_bad_argument("z", right$z, "comes along with an array or a handle of chol_batch(), not with a list")
  }
  if (many) return(modify_list(R, V, downdate, weights, scale, check, uplo, request))
  x <- if (one) opened_doubles(factor, R) else open_batch(R, lower)
  n <- nrow(x)
  require_same_places(if (one) names_of_members(V) else dimnames(R)[[3L]], V = V, weights = weights, scale = scale,
                      z = right$z, y = right$y, rss = right$rss)
  require_same_rows(V, names_of_variables(if (one) factor_dimnames(R) else dimnames(R), lower))
  given <- open_members(V, n, if (!one) dim(x)[[3L]])
  b <- given$b
  weights <- batch_weights(weights, downdate, given$k, b)
  sides <- batch_sides(right$z, right$y, right$rss, n, given$k, b)
  done <- rcpp_cholupdate_batch(x, one, list(given, weights, batch_scale(scale, b), sides, check), request)
  if (is.null(done$R)) stop_members(done$pivots)
  names <- if (one) factor_dimnames(R) else dimnames(R)
  if (!is.null(names)) dimnames(done$R) <- if (one) c(names, list(NULL)) else names
  batch_value(done$R, done, sides, check)
}

# Does not call cholupdate_batch(): the columns of a matrix V are one change here, and one for each member there.
#' @export
cholupdate_gpu.chol_batch <- function(R, V, ...) stop_not_numeric(R, "R")

#' @rdname cholupdate_batch
#' @export
cholupdate_batch.chol_batch <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                        rss = NULL, check = TRUE, uplo = R$uplo, precision = R$precision,
                                        backend = if (is.na(R$device)) "cpu" else "cuda",
                                        control = cholupdate_control(), in_place = FALSE) {
  require_no_more(...)
  require_flag(in_place, "in_place")
  require_live_batch(R)
  if (!missing(uplo)) match_choice(uplo, R$uplo, "uplo")
  if (!missing(precision)) match_choice(precision, R$precision, "precision")
  on_gpu <- !is.na(R$device)
  if (!missing(backend)) match_choice(backend, c(if (on_gpu) "cuda" else "cpu", "auto"), "backend")
  request <- batch_request(downdate, check, FALSE, FALSE, if (on_gpu) 2L else 1L, if (!missing(control)) control)
  require_same_places(.subset2(R, "dimnames")[[3L]], V = V, weights = weights, scale = scale, z = z, y = y, rss = rss)
  require_same_rows(V, names_of_variables(.subset2(R, "dimnames"), R$uplo == "lower"))
  given <- if (is.double(V)) open_members(V, R$n, R$count) else with_memory(open_members(V, R$n, R$count))
  weights <- batch_weights(weights, downdate, given$k, R$count)
  scale <- batch_scale(scale, R$count)
  sides <- with_memory(batch_sides(z, y, rss, R$n, given$k, R$count))
  modified <- if (in_place) R else descendant(R)
  modify <- function() rcpp_batch_modify(R, modified, list(given, weights, scale, sides, check), request)
  done <- with_room(modify, R)
  if (check && any(done$pivots > 0L)) stop_members(done$pivots)
  value <- batch_value(modified, done, sides, check)
  if (in_place && check && is.null(sides)) invisible(value) else value
}

# Opens right-hand sides of b members of order n: list(z, y, rss, m, forms), z n x m x b, y k x m x b, rss m x b or
# NULL; NULL if there are none. forms: the attributes of the new z and rss. y_is: the name of y, and the
# name of the argument that has a column for each row of y; NULL: there is no y.
batch_sides <- function(z, y, rss, n, k, b, y_is = c("y", "V")) {
  if (is.null(z) && is.null(y) && is.null(rss)) return(NULL)
  if (is.null(z)) {
    others <- paste(sprintf("'%s'", c(y_is[1L], "rss")), collapse = " and ")
    stop_bad_argument("z", NULL, paste("is missing, to which", others, if (length(y_is)) "belong" else "belongs"))
  }
  left <- open_members(z, n, b, "z")
  m <- left$k
  right <- if (length(y_is)) open_new_sides(y, k, m, b, y_is)
  several <- length(dim(z)) == 3L
  form <- if (left$common) list(dim = if (several) c(n, m, b) else c(n, b)) else form_of(z)
  if (!is.null(rss)) {
    if (length(rss) != m * b) {
      stop_gpucholmod("dimension_mismatch", sprintf("'rss' has %d numbers, 'z' has %d columns", length(rss), m * b),
                      list(expected = m * b, actual = length(rss)))
    }
    sums <- form_of(rss)
    rss <- sums_of_squares(rss)
  }
  list(z = for_each_member(left), y = if (!is.null(right)) for_each_member(right), rss = rss, m = m,
       forms = list(z = form, rss = if (!is.null(rss)) sums))
}

# Opens y as batch_sides() takes it, m columns of k numbers for each of the b members.
open_new_sides <- function(y, k, m, b, y_is) {
  name <- y_is[[1L]]
  if (is.null(y)) stop_bad_argument(name, NULL, sprintf("is missing: it has a row for each column of '%s'", y_is[[2L]]))
  y <- ordinary_numbers(y)
  if (k == 1L && is.numeric(y) && is.null(dim(y)) && length(y) > 1L) y <- t(y)
  opened <- open_members(y, k, b, name, sprintf("as '%s' has columns for each member", y_is[[2L]]))
  if (opened$k == m) return(opened)
  stop_gpucholmod("dimension_mismatch", sprintf("'%s' has %d columns for each member, 'z' has %d", name, opened$k, m),
                  list(expected = m, actual = opened$k))
}

# Returns the numbers of opened columns, one behind the other for each of the b members.
for_each_member <- function(opened) if (opened$common) rep(opened$x, opened$b) else opened$x

# Returns the value of a call that modifies a batch. done: list(pivots, z, rss); sides: of batch_sides(), or NULL.
batch_value <- function(R, done, sides, check) {
  pivot <- if (!check) stats::setNames(done$pivots, if (is.environment(R)) .subset2(R, "dimnames")[[3L]]
                                                    else dimnames(R)[[3L]])
  if (is.null(sides)) return(if (check) R else list(R = R, pivot = pivot))
  attributes(done$z) <- sides$forms$z
  attributes(done$rss) <- sides$forms$rss
  with_sides(R, done, pivot, sides$rss, sides$m)
}

# Makes the request of a batch from arguments that it checks. control: NULL if none was given.
batch_request <- function(downdate, check, lower, single, backend, control) {
  require_flag(downdate, "downdate")
  require_flag(check, "check")
  new_request(downdate, check, lower, single, backend, control = if (!is.null(control)) control_numbers(control))
}

# Opens the columns of b members, or, if b is NULL, of as many members as V has: list(x, k, b, common), x doubles.
open_members <- function(V, n, b, argument = "V", as = "as the factors have") {
  V <- ordinary_numbers(V)
  if (!is.numeric(V) || is.object(V)) stop_not_numeric(V, argument)
  d <- dim(V)
  if (is.null(d)) d <- c(length(V), 1L, 1L)
  if (length(d) == 2L) d <- c(d[[1L]], 1L, d[[2L]])
  if (length(d) != 3L || d[[1L]] != n) {
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' must have %d rows, %s", argument, n, as),
                    list(expected = n, actual = d[[1L]]))
  }
  if (is.null(b)) b <- d[[3L]]
  common <- d[[3L]] == 1L && b != 1L && length(dim(V)) != 2L
  if (d[[3L]] != b && !common) {
    hint <- if (length(dim(V)) == 2L) sprintf("; one for all members is array(%s, c(dim(%s), 1))", argument, argument)
            else ""
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' is for %d members, there are %d%s", argument, d[[3L]], b, hint),
                    list(expected = b, actual = d[[3L]]))
  }
  list(x = as_double(V), k = d[[2L]], b = b, common = common)
}

# Stops if an argument of ... gives one of the members the name of another: they go by place, not by name. names: of the
# members; vectors: arguments of which a vector has a number for each member.
require_same_places <- function(names, ..., vectors = c("scale", "y", "rss")) {
  if (is.null(names)) return(invisible())
  given <- list(...)
  for (argument in names(given)) {
    own <- names_of_members(given[[argument]], argument %in% vectors)
    if (length(own) != length(names)) next
    wrong <- which(nzchar(own) & own != names & own %in% names)
    if (!length(wrong)) next
    first <- wrong[[1L]]
    why <- sprintf("is in another order: number %d is \"%s\", which is the name of number %d", first, own[[first]],
                   match(own[[first]], names))
    stop_bad_argument(argument, own, why)
  }
}

# Returns the names that an argument gives to the many that it is for; of a vector only if `vector`.
names_of_members <- function(x, vector = FALSE) {
  if (is.list(x) && !is.object(x)) names(x)
  else if (is_float32(x)) colnames(x@Data)
  else if (length(dim(x)) %in% 2:3) dimnames(x)[[length(dim(x))]]
  else if (vector) names(x)
}

# Returns the weights for the core: NULL, k numbers, or a k x b matrix.
batch_weights <- function(weights, downdate, k, b) {
  columns <- list(k = k, b = b, counts = rep.int(k, b), each = k == 1L)
  weights_for_members(weights, downdate, columns, lists = FALSE)
}

# Returns the scale for the core: NULL if it is 1, otherwise one number or b.
batch_scale <- function(scale, b) if (!identical(scale, 1)) check_scale(scale, b)

# Modifies a list of factors; the core takes members of one size together. uplo: NULL if none was given.
modify_list <- function(R, V, downdate, weights, scale, check, uplo, request) {
  b <- length(R)
  if (!is.list(V) || is.object(V) || length(V) != b) {
    stop_gpucholmod("dimension_mismatch", sprintf("'V' must be a list of %d, as 'R' is", b),
                    list(expected = b, actual = length(V)))
  }
  require_same_places(names(R), V = V, weights = weights, scale = scale)
  given <- R
  V_given <- V
  shape <- open_listed_factors(R, request$lower, uplo)
  R <- shape$of
  columns <- shapes_of(V, "V", function(x, argument) ordinary_numbers(x))
  V <- columns$of
  if (any(odd <- shape$rows != shape$columns)) stop_member_not_square(shape, which(odd)[[1L]])
  if (any(odd <- columns$rows != shape$rows)) {
    m <- which(odd)[[1L]]
    stop_gpucholmod("dimension_mismatch", sprintf("member %d of 'V' has %d rows, the factor %d", m, columns$rows[[m]],
                                                  shape$rows[[m]]),
                    list(expected = shape$rows[[m]], actual = columns$rows[[m]], member = m))
  }
  check_members(R, 0L, request$lower)
  for (m in seq_len(b)) require_same_rows(V_given[[m]], names_of_variables(factor_dimnames(given[[m]]), request$lower))
  weights <- check_weights(weights, downdate, columns$columns, by_column = all(columns$columns == 1L), lists = TRUE)
  if (length(weights) > 1L && all(columns$columns == 1L) && !is.list(weights)) weights <- matrix(weights, 1L)
  if (is.null(weights)) {
    if (downdate) weights <- -1
  } else if (is.matrix(weights)) {
    weights <- lapply(seq_len(b), function(m) weights[, m])
  } else if (!is.list(weights) && length(weights) != 1L) {
    weights <- rep(list(weights), b)
  }
  done <- rcpp_cholupdate_list(R, V, request, weights, batch_scale(scale, b), check)
  if (is.null(done$R)) stop_members(done$pivots)
  for (m in shape$opened) {
    if (isS4(given[[m]])) done$R[[m]] <- close_listed_factor(done$R[[m]], given[[m]], request$lower)
  }
  names(done$R) <- names(R)
  if (check) done$R else list(R = done$R, pivot = stats::setNames(done$pivots, names(R)))
}

# Returns list(of, rows, columns, opened): the list with its members as doubles, their shapes, and the numbers of those
# that were no doubles, for which open(x, argument) was called.
shapes_of <- function(of, argument, open) {
  shape <- rcpp_batch_shapes(of)
  opened <- which(is.na(shape[1L, ]))
  for (m in opened) {
    name <- sprintf("%s[[%d]]", argument, m)
    x <- open(of[[m]], name)
    if (!is.numeric(x) || is.object(x) || length(dim(x)) > 2L) stop_not_numeric(x, name)
    of[[m]] <- as_double(x)
  }
  if (anyNA(shape)) shape <- rcpp_batch_shapes(of)
  list(of = of, rows = shape[1L, ], columns = shape[2L, ], opened = opened)
}
