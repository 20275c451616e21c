#' Recursive least squares
#'
#' A linear regression that is kept up to date while observations come and go: weighted, with a factor by which the past
#' is forgotten, a window, or a ridge penalty. What is kept is the Cholesky factor \eqn{R} of \eqn{X'WX},
#' \eqn{z = R'^{-1}X'Wy} and the residual sum of squares; new observations change all three by one call of
#' [cholupdate_gpu()], in \eqn{O(kp^2)} operations for `k` of them.
#'
#' @param x,y The observations: a matrix with a row for each of them and a column for each of the \eqn{p} regressors
#'   (for an intercept, a column of ones), and the responses, a vector, or a matrix with a column for each of several.
#'   For `rls()`, `x` may have no rows where there is a ridge penalty. For `update()`, a vector `x` is a single
#'   observation.
#' @param weights Of the observations, positive: one number, or one for each.
#' @param ridge The penalty: a number \eqn{\lambda \ge 0}, or one for each regressor, so that
#'   \eqn{\sum w_i (y_i - x_i'\beta)^2 + \lambda\beta'\beta} is what is minimised. Without one, there have to be at
#'   least \eqn{p} observations to begin with, with linearly independent columns. It is forgotten as observations are.
#' @param window How many of the last observations count. `Inf`: all. Those that drop out are taken away in the call
#'   that adds the new ones; so they are kept, \eqn{p + m} numbers each.
#' @param forget In `update()`: what everything known so far is multiplied by beforehand, from above 0 to 1. All that is
#'   known of a direction of which no observation tells anything is forgotten in the end: an error of class
#'   `gpucholmod_bad_diagonal`, with 0.98 after 70,000 calls, and the fit stays as it was. Observations of every
#'   direction prevent that, or rows of a small multiple of the identity matrix with responses of 0: a new ridge
#'   penalty.
#' @param backend `"cpu"`, `"cuda"`: the factor stays on the GPU, see [gpu_factor()]; `"auto"`: the GPU if there is one
#'   and \eqn{p} is at least 2,000.
#' @param object A fit.
#' @param ... Must be empty.
#'
#' @return `rls()` and `update()`: a fit, an object of class `rls`; `update()` leaves the one it is given as it is. \cr
#' `coef()`: the coefficients, a vector, or a matrix for several responses. `predict()`: for new `x`. \cr
#' `deviance()`: what has been minimised: the sum of squares of the residuals, weighted, and of the ridge penalty.
#' `df.residual()`: the number of observations, those that are being forgotten counting for as much as is left of them,
#' minus \eqn{p} where there is no ridge penalty. \cr
#' `vcov()`: \eqn{\hat\sigma^2 (X'WX)^{-1}}, \eqn{\hat\sigma^2} being the deviance by the degrees of freedom; for a
#' single response.
#' @seealso [cholupdate_gpu()], whose arguments `z`, `y` and `rss` these are
#' @references
#' Å. Björck (1996). Numerical Methods for Least Squares Problems. SIAM, sections 3.2 and 3.3.
#' @examples
#' x <- cbind(1, as.matrix(longley[, c("GNP", "Armed.Forces")]))
#' fit <- rls(x[1:10, ], longley$Employed[1:10])
#' for (i in 11:16) fit <- update(fit, x[i, ], longley$Employed[i])
#' fit
#' all.equal(coef(fit), coef(lm(Employed ~ GNP + Armed.Forces, longley)), check.attributes = FALSE)
#' all.equal(deviance(fit), deviance(lm(Employed ~ GNP + Armed.Forces, longley)))
#'
#' # the last 100 observations only, one call for each new one
#' x <- cbind(1, rnorm(300))
#' y <- x %*% c(1, 2) + rnorm(300)
#' moving <- rls(x[1:100, ], y[1:100], window = 100)
#' for (i in 101:300) moving <- update(moving, x[i, ], y[i])
#' all.equal(coef(moving), coef(lm(y[201:300] ~ x[201:300, 2])), check.attributes = FALSE)
#'
#' # an adaptive filter that begins with nothing but a prior, and forgets
#' filter <- rls(matrix(0, 0, 2), numeric(), ridge = 0.01)
#' for (i in 1:300) filter <- update(filter, x[i, ], y[i], forget = 0.98)
#' coef(filter)
#' @importFrom stats coef deviance df.residual predict update vcov
#' @export
rls <- function(x, y, weights = 1, ridge = 0, window = Inf, backend = getOption("gpucholmod.backend", "auto")) {
  with_memory({
    x <- regressors(x, NULL)
    y <- responses(y, nrow(x), NULL)
    weights <- check_not_negative(weights, "weights", nrow(x), "observations")
    p <- ncol(x)
    penalty <- check_not_negative(ridge, "ridge", p, "regressors")
    if (!is_window(window)) stop_bad_argument("window", window, "must be a whole number of observations, or Inf")
    if (nrow(x) > window) {
      stop_bad_argument("window", window, sprintf("is less than the %d observations that are given", nrow(x)))
    }
    backend <- match_choice(backend, choices$backend, "backend")

    on_gpu <- held_on_gpu(backend, p)
    start <- if (all(penalty > 0)) {
      list(R = diag(sqrt(penalty), p), z = matrix(0, p, ncol(y)), rss = numeric(ncol(y)))
    } else {
      first_fit(sqrt(weights) * x, sqrt(weights) * y, penalty)
    }
    if (on_gpu) start$R <- gpu_factor(start$R)
    if (all(penalty > 0) && nrow(x) > 0L) {
      start <- cholupdate_gpu(start$R, t(x), weights = weights, z = start$z, y = y, rss = start$rss)
    }
    structure(c(start, list(
      count = nrow(x), penalised = any(penalty > 0), window = window,
      kept = if (is.finite(window) && nrow(x) > 0L) list(list(x = x, y = y, weights = weights, age = 0)),
      age = 0, names = list(colnames(x), colnames(y))
    )), class = "rls")
  })
}

# Returns list(R, z, rss), by orthogonal transforms of x and y with rows for the penalties below them, some of which may
# be zero.
first_fit <- function(x, y, penalty) {
  p <- ncol(x)
  rows <- diag(sqrt(penalty), p)[penalty > 0, , drop = FALSE]
  qr <- qr(rbind(x, rows), tol = 0)
  R <- if (nrow(qr$qr) >= p) qr.R(qr)
  if (is.null(R) || min(abs(diag(R))) <= p * .Machine$double.eps * max(abs(diag(R)))) {
    stop_bad_argument("x", dim(x), "must have linearly independent columns, unless there is a ridge penalty")
  }
  signs <- ifelse(diag(R) < 0, -1, 1)
  effects <- qr.qty(qr, rbind(y, matrix(0, nrow(rows), ncol(y))))
  list(R = unname(signs * R), z = signs * effects[seq_len(p), , drop = FALSE],
       rss = colSums(effects[-seq_len(p), , drop = FALSE]^2))
}

#' @rdname rls
#' @export
update.rls <- function(object, x, y, weights = 1, forget = 1, ...) {
  if (...length()) require_no_more(...)
  if (!is.list(object)) require_fit(object)
  fit <- object
  if (!is_number(forget) || forget <= 0 || forget > 1) {
    stop_bad_argument("forget", forget, "must be a number above 0, up to 1")
  }
  one <- is.double(x) && is.null(attributes(x)) && identical(dim(fit$z), c(length(x), 1L)) && all(is.finite(x)) &&
    length(y) == 1L && missing(weights) && identical(fit$window, Inf) && is.numeric(fit$age) && is.numeric(fit$count)
  if (one) { # in a filter for few coefficients it takes longer to look at an observation than to take it in
    made <- cholupdate_gpu(fit$R, x, scale = forget, z = fit$z, y = y, rss = fit$rss)
    count <- 1L
  } else {
    require_fit(fit)
    with_memory({
      x <- regressors(x, nrow(fit$z))
      count <- nrow(x)
      change <- list(x = x, y = responses(y, count, ncol(fit$z)),
                     weights = check_not_negative(weights, "weights", count, "observations"))
      blocks <- if (is.finite(fit$window)) c(fit$kept, list(c(change, age = fit$age - log(forget))))
      moved <- if (is.finite(fit$window)) move_window(blocks, fit$window)
      for (gone in moved$gone) {
        faded <- forget * exp(gone$age - fit$age)
        count <- count - faded * nrow(gone$x)
        change <- list(x = rbind(change$x, gone$x), y = rbind(change$y, gone$y),
                       weights = c(change$weights, -faded * gone$weights))
      }
      made <- cholupdate_gpu(fit$R, t(change$x), weights = change$weights, scale = forget, z = fit$z, y = change$y,
                             rss = fit$rss)
      fit["kept"] <- list(moved$kept)
    })
  }
  fit$R <- made$R
  fit$z <- made$z
  fit$rss <- made$rss
  fit$age <- fit$age - log(forget)
  fit$count <- forget * fit$count + count
  fit
}

# Splits observations, a list of blocks in the order of time, into list(kept, gone): those that stay in the window and
# those that leave it, which may have come with the last block.
move_window <- function(blocks, window) {
  rows <- vapply(blocks, function(block) nrow(block$x), 0L)
  excess <- sum(rows) - window
  gone <- list()
  while (excess > 0) {
    first <- blocks[[1L]]
    leaving <- seq_len(min(excess, nrow(first$x)))
    part <- function(rows) list(x = first$x[rows, , drop = FALSE], y = first$y[rows, , drop = FALSE],
                                weights = first$weights[rows], age = first$age)
    gone <- c(gone, list(part(leaving)))
    blocks <- if (length(leaving) == nrow(first$x)) blocks[-1L] else c(list(part(-leaving)), blocks[-1L])
    excess <- excess - length(leaving)
  }
  list(kept = blocks, gone = gone)
}

#' @rdname rls
#' @export
coef.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  beta <- if (inherits(object$R, "chol_factor")) {
    solve_back(object$R, object$z)
  } else {
    require_diagonal(diag(object$R))
    backsolve(object$R, object$z)
  }
  if (ncol(beta) == 1L && is.null(object$names[[2L]])) return(stats::setNames(beta[, 1L], object$names[[1L]]))
  dimnames(beta) <- object$names
  beta
}

#' @rdname rls
#' @export
predict.rls <- function(object, x, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  with_memory({
    x <- regressors(x, nrow(object$z))
    drop_one(x %*% coef(object), object)
  })
}

#' @rdname rls
#' @export
deviance.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  stats::setNames(object$rss, object$names[[2L]])
}

#' @rdname rls
#' @export
df.residual.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  object$count - if (object$penalised) 0 else nrow(object$z)
}

#' @rdname rls
#' @export
vcov.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  if (ncol(object$z) != 1L) stop_bad_argument("object", ncol(object$z), "has several responses: vcov() is for one")
  with_memory({
    inverse <- chol2inv(object$R) * object$rss / df.residual.rls(object)
    dimnames(inverse) <- object$names[c(1L, 1L)]
    inverse
  })
}

#' @rdname rls
#' @param digits How many to show.
#' @export
print.rls <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  if (...length()) require_no_more(...)
  require_fit(x)
  cat(sprintf("Recursive least squares: %d coefficients, %s observations%s%s\n", nrow(x$z),
              format(x$count, digits = digits),
              if (is.finite(x$window)) sprintf(", the last %s", format(x$window)) else "",
              if (inherits(x$R, "gpu_factor")) "; the factor is on the GPU" else ""))
  print(coef(x), digits = digits)
  cat(sprintf("deviance %s\n", paste(format(x$rss, digits = digits), collapse = ", ")))
  invisible(x)
}

# Stops unless `fit` can be what rls() or update() has returned: its parts may have been changed by hand.
require_fit <- function(fit) {
  own <- unclass(fit)
  names <- if (is.list(own)) own$names
  is_one <- function(x) is_number(x) && is.null(attributes(x))
  sound <- is.list(own) && is.double(own$z) && is.matrix(own$z) && nrow(own$z) > 0L && is_square(own$R, nrow(own$z)) &&
    is.numeric(own$rss) && is.null(dim(own$rss)) && length(own$rss) == ncol(own$z) &&
    is_one(own$count) && is_one(own$age) && is_one(own$window) && is_window(own$window) &&
    (isTRUE(own$penalised) || isFALSE(own$penalised)) && is.list(names) && length(names) == 2L &&
    are_names(names[[1L]], nrow(own$z)) && are_names(names[[2L]], ncol(own$z)) &&
    (is.null(own$kept) || is.list(own$kept)) &&
    (is.infinite(own$window) || all(vapply(own$kept, is_block, NA, dim(own$z))))
  if (!sound) stop_bad_argument("object", fit, "is not as rls() or update() has returned it: make a new fit")
}

# Is true for a whole number of observations, at least 1, or Inf.
is_window <- function(x) is_number(x) && x >= 1 && x == round(x)
# Is true for a handle, or an n x n matrix of doubles.
is_square <- function(R, n) inherits(R, "chol_factor") || is.double(R) && identical(dim(R), c(n, n))
# Is true for NULL, or n names.
are_names <- function(names, n) is.null(names) || is.character(names) && length(names) == n

# Is true for a block of observations that a window keeps. d: the numbers of regressors and of responses.
is_block <- function(block, d) {
  is.list(block) && is.numeric(block$x) && is.matrix(block$x) && is.numeric(block$y) && is.matrix(block$y) &&
    ncol(block$x) == d[[1L]] && identical(dim(block$y), c(nrow(block$x), d[[2L]])) && is.numeric(block$weights) &&
    length(block$weights) == nrow(block$x) && is_number(block$age)
}

# Returns a vector if the fit has one response without a name.
drop_one <- function(x, fit) if (ncol(fit$z) == 1L && is.null(fit$names[[2L]])) x[, 1L] else x

# Returns a matrix of finite doubles with p columns; a vector is one row. If p is NULL, any number of columns is
# accepted, and a vector is one column.
regressors <- function(x, p) {
  if (!isS4(x) && !is.numeric(x)) stop_not_numeric(x, "x")
  if (is.null(dim(x)) && !isS4(x)) x <- if (is.null(p)) as.matrix(x) else t(x)
  columns <- if (is.null(p)) ncol(x) else p
  x <- finite_matrix(x, nrow(x), "x")
  if (ncol(x) != columns || columns == 0L) {
    stop_gpucholmod("dimension_mismatch", sprintf("'x' has %d columns, the fit %d coefficients", ncol(x), columns),
                    list(expected = columns, actual = ncol(x)))
  }
  x
}

# Returns a matrix with a row for each of `count` observations, and with m columns if m is not NULL.
responses <- function(y, count, m) {
  if (!isS4(y) && !is.numeric(y)) stop_not_numeric(y, "y")
  if (is.null(dim(y)) && !isS4(y)) y <- if (is.null(m) || m == 1L || count != 1L) as.matrix(y) else t(y)
  y <- finite_matrix(y, count, "y")
  if (!is.null(m) && ncol(y) != m) {
    stop_gpucholmod("dimension_mismatch", sprintf("'y' has %d columns, the fit %d responses", ncol(y), m),
                    list(expected = m, actual = ncol(y)))
  }
  y
}

# Returns a matrix of finite doubles with `rows` rows.
finite_matrix <- function(x, rows, argument) {
  x <- open_columns(x, rows, float32 = FALSE, argument, sprintf("there are %d observations", rows))
  at <- match(FALSE, is.finite(x), 0L)
  if (at > 0L) {
    row <- (at - 1L) %% nrow(x) + 1L
    col <- (at - 1L) %/% nrow(x) + 1L
    stop_gpucholmod("not_finite", sprintf("'%s' has a value that is not finite at [%d, %d]", argument, row, col),
                    list(argument = argument, row = row, col = col, value = x[[at]]))
  }
  x
}

# Checks the weights of observations or the penalties of regressors, and returns `count` of them. This is not
# check_weights(): a weighted sum of squares has no negative weights, so update() alone makes them, to remove rows.
check_not_negative <- function(x, argument, count, of) {
  x <- finite_numbers(x, argument)
  if (any(x < 0) || !length(x) %in% c(1L, count)) {
    why <- sprintf("must be one number that is not negative, or one for each of %d %s", count, of)
    stop_bad_argument(argument, x, why)
  }
  rep_len(x, count)
}
