#' Rolling regression
#'
#' One call fits a linear regression to every window of the observations. The Cholesky factor of a window is made from
#' the factor of the window before it, by adding and removing observations as in [rls()]. So a window takes \eqn{O(p^2)}
#' operations for each observation that is added or removed, whereas [lm.fit()] takes \eqn{O(np^2)} operations for a
#' window of \eqn{n} observations.
#'
#' @param x A matrix with a row for each observation, in the order of time, and a column for each regressor (for an
#'   intercept, a column of ones); a vector is one column.
#' @param y The responses: a vector, or a matrix with a column for each of several responses.
#' @param window The number of observations in a window. With `times`, the length of a window: a number in the units of
#'   `times`, or a [difftime()]. Then the window that ends at time t has all observations after t - `window`, up to t.
#'   The window is complete if t - `window` is not before the first observation of its group.
#' @param by Fit every `by`-th window, beginning with the first complete window of each group.
#' @param weights Weights of the observations: one for each observation, or, in the method for matrices, one number. No
#'   weight is negative. An observation of weight 0 has its place in the window, but does not count.
#' @param times When the observations were made: numbers, dates or times, which must not decrease within a group.
#' @param groups The series to which each observation belongs, if there are several: no window reaches from one series
#'   into another.
#' @param partial Whether to fit also the windows at the beginning of each group that are not complete.
#' @param tol The tolerance for columns that depend on others; their coefficients are `NA`, as in [rls()].
#' @param na.action What to do about observations that have missing values. By default they are an error; for a formula,
#'   the default is that of [lm()]. [na.omit()] leaves such observations out before windows are formed: they have no
#'   place in a window, and `end` does not count them. If `d` has the variables of the formula and no others, the
#'   windows end at the rows `which(complete.cases(d))[end]` of `d`.
#' @param formula,data,subset As for [lm()]; `weights`, `times` and `groups` may be variables of `data`.
#' @param ... For the method for formulas: `by`, `partial` and `tol`. Otherwise it must be empty.
#' @return A list of class `rolling`, whose items have a row or an element for each window: `end`, the number of the
#'   window's last observation, counted among the observations that are used; `coefficients` and `std.error`, matrices
#'   with a column for each coefficient (with several responses, first all columns of the first response, then those of
#'   the next); `sigma`, `r.squared`, `nobs`, `df.residual`; and `times` and `groups` of the window's last observation,
#'   if they were given. `coef()`, [sigma()], [nobs()], [df.residual()] and [deviance()] return the values of all
#'   windows. `as.data.frame()` returns one row for each window, of which [head()] and subsets can be taken. `plot()`
#'   draws the paths of the coefficients, with two standard errors on both sides. If no window is complete, there is a
#'   warning of class `gpucholmod_no_window`.
#' @seealso [rls()]
#' @examples
#' x <- cbind(`(Intercept)` = 1, x = rnorm(500))
#' y <- 1 + cumsum(rnorm(500, sd = 0.1)) * x[, 2] + rnorm(500)
#' path <- rolling(x, y, window = 60)
#' path
#' plot(path)
#'
#' # the last 30 days of irregular observations, by groups
#' d <- data.frame(day = as.Date("2026-01-01") + cumsum(rpois(400, 1)), x = rnorm(400))
#' d$shop <- rep(c("A", "B"), 200)
#' d$y <- 2 * d$x + rnorm(400)
#' tail(as.data.frame(rolling(y ~ x, d, window = 30, times = day, groups = shop)))
#' @concept rolling window regression
#' @concept moving window regression
#' @concept time-varying coefficients
#' @export
rolling <- function(x, ...) {
  UseMethod("rolling")
}

#' @rdname rolling
#' @export
rolling.default <- function(x, y, window, by = 1, weights = 1, times = NULL, groups = NULL, partial = FALSE,
                            tol = 1e-7, na.action = "na.fail", ...) {
  if (...length()) require_no_more(...)
  with_memory({
    require_flag(partial, "partial")
    by <- require_count(by, "by")
    tol <- require_tolerance(tol)
    count <- NROW(x)
    rows <- observations(x, y, weights, na.action = na_action(na.action))
    if (!is.null(times)) times <- checked(times, times_of, count)[rows$complete]
    if (!is.null(groups)) groups <- checked(groups, group_numbers, count)[rows$complete]
    names <- rows$names
    order <- if (is.null(groups)) seq_along(rows$w) else order(group_numbers(groups, length(rows$w)))
    windows <- windows_of(window, times, groups, order, length(rows$w), partial)
    windows <- windows[windows$number %% by == 0, ]
    rows <- some_rows(rows, order)
    on.exit(end_bar("failed"))
    if (nrow(windows) == 0L && length(rows$w)) {
      warn_gpucholmod("no_window", "no window is complete; partial = TRUE fits windows that are not",
                      list(window = window))
    }
    made <- rcpp_rolling(rows, windows$first, windows$last, tol, default_request)
    end_bar("done")
    as_rolling(made, names, nrow(rows$x), order[windows$end], times, groups)
  })
}

#' @rdname rolling
#' @export
rolling.formula <- function(formula, data, window, weights, times, groups, subset, na.action, ...) {
  if (!missing(data) && !is.list(data) && !is.environment(data)) {
    stop_bad_argument("data", data, "must be a data frame")
  }
  frame <- match.call(expand.dots = FALSE)
  require_known_names(frame$..., c("by", "partial", "tol"))
  frame <- frame[c(1L, match(c("formula", "data", "subset", "weights", "na.action", "times", "groups"),
                             names(frame), 0L))]
  for (argument in c("times", "groups")) {
    value <- frame[[argument]]
    if (is.character(value) || (is.call(value) && identical(value[[1L]], quote(`~`)))) {
      name <- if (is.character(value)) value else all.vars(value)
      stop_bad_argument(argument, value, paste0("must be a variable, not its name or a formula",
                                                if (length(name)) sprintf(": %s = %s", argument, name[[1L]])))
    }
  }
  frame$drop.unused.levels <- TRUE
  frame[[1L]] <- quote(stats::model.frame)
  fails <- is_na_fail(if (missing(na.action)) getOption("na.action") else na.action)
  if (fails) frame$na.action <- quote(stats::na.pass)
  frame <- as_model(eval(frame, parent.frame()))
  if (fails) require_complete(frame)
  weights <- stats::model.weights(frame)
  x <- as_model(stats::model.matrix(attr(frame, "terms"), frame))
  y <- response_of(frame)
  require_no_infinite(frame, x, y)
  rolling.default(x, y, window, weights = if (is.null(weights)) 1 else weights,
                  times = frame[["(times)"]], groups = frame[["(groups)"]], ...)
}

# Returns what has one value for each of `count` observations, as `check` says.
checked <- function(values, check, count) {
  check(values, count)
  values
}

# Returns a number for the group of each of `count` observations.
group_numbers <- function(groups, count) {
  if (length(groups) != count || anyNA(groups)) {
    stop_bad_argument("groups", groups, sprintf("must have one value for each of %d observations, none missing", count))
  }
  as.integer(factor(groups, unique(groups)))
}

# Returns a data frame with a row for each window: its first and last observation and the one that it belongs to, in the
# order of groups, and its number in the group, from 0 for the first that is wanted.
windows_of <- function(window, times, groups, order, count, partial) {
  group <- if (is.null(groups)) rep(1L, count) else group_numbers(groups, count)[order]
  start <- match(group, group)  # the first observation of the group of each
  end <- last <- seq_len(count)
  if (is.null(times)) {
    window <- require_window(window)
    first <- pmax(last - window + 1, start)
    complete <- last - start + 1 >= window
  } else {
    at <- times_of(times, count)[order]
    length <- length_of(window, times)
    if (any(diff(at) < 0 & diff(group) == 0)) stop_bad_argument("times", NULL, "must not decrease within a group")
    first <- start
    for (g in split(end, group)) {
      first[g] <- g[[1L]] + findInterval(at[g] - length, at[g])
      last[g] <- g[[1L]] - 1L + findInterval(at[g], at[g])  # of those at the same time
    }
    complete <- at - length >= at[start]
  }
  kept <- end[complete | partial]
  data.frame(first = first[kept], last = last[kept], end = kept,
             number = stats::ave(as.double(kept), group[kept], FUN = seq_along) - if (length(kept)) 1 else 0)
}

# Returns times as numbers.
times_of <- function(times, count) {
  at <- tryCatch(as.double(times), error = function(e) NULL, warning = function(w) NULL)
  if (length(at) != count || anyNA(at)) {
    stop_bad_argument("times", NULL, sprintf("must be a time for each of %d observations, none missing", count))
  }
  at
}

# Returns the length of a window in the units of as.double(times).
length_of <- function(window, times) {
  if (inherits(window, "difftime")) {
    units <- if (inherits(times, "POSIXct")) "secs" else if (inherits(times, "Date")) "days" else attr(times, "units")
    if (is.null(units)) stop_bad_argument("window", window, "must be a number, as 'times' are numbers")
    window <- as.double(window, units = units)
  }
  if (!is_number(window) || window <= 0) stop_bad_argument("window", window, "must be a length of time above 0")
  as.double(window)
}

as_rolling <- function(made, names, p, end, times, groups) {
  columns <- if (is.null(names[[1L]])) paste0("x", seq_len(p)) else names[[1L]]
  m <- ncol(made$sigma)
  responses <- if (is.null(names[[2L]])) paste0("y", seq_len(m)) else names[[2L]]
  all <- if (m == 1L) columns else paste(rep(responses, each = p), columns, sep = ":")
  colnames(made$coefficients) <- colnames(made$errors) <- all
  drop <- function(x) if (m == 1L) x[, 1L] else `colnames<-`(x, responses)
  structure(c(list(end = end, coefficients = made$coefficients, std.error = made$errors, sigma = drop(made$sigma),
                   r.squared = drop(made$r_squared), nobs = made$nobs, df.residual = made$nobs - made$rank),
              if (!is.null(times)) list(times = times[end]), if (!is.null(groups)) list(groups = groups[end])),
            class = "rolling")
}

#' @rdname rolling
#' @param object What `rolling()` returned.
#' @export
coef.rolling <- function(object, ...) object$coefficients

#' @importFrom stats sigma
#' @export
sigma.rolling <- function(object, ...) object$sigma
#' @importFrom stats nobs
#' @export
nobs.rolling <- function(object, ...) object$nobs
#' @importFrom stats df.residual
#' @export
df.residual.rolling <- function(object, ...) object$df.residual

# Stops because the function `what` would need the observations of a window, or the formula.
stop_no_observations <- function(what) {
  stop_gpucholmod("not_supported",
                  sprintf("%s is not supported for a result of rolling(), which keeps no observations", what),
                  list(operation = what))
}
#' @export
residuals.rolling <- function(object, ...) stop_no_observations("residuals()")
#' @export
fitted.rolling <- function(object, ...) stop_no_observations("fitted()")
#' @export
predict.rolling <- function(object, ...) stop_no_observations("predict()")
#' @export
weights.rolling <- function(object, ...) stop_no_observations("weights()")
#' @export
deviance.rolling <- function(object, ...) {
  sums <- object$sigma^2 * object$df.residual
  replace(sums, rep_len(object$df.residual == 0, length(sums)), 0)
}

#' @rdname rolling
#' @param row.names,optional Not used.
#' @export
as.data.frame.rolling <- function(x, row.names = NULL, optional = FALSE, ...) {
  if (...length()) require_no_more(...)
  parts <- unclass(x)
  errors <- parts$std.error
  colnames(errors) <- paste0("std.error.", colnames(errors))
  few <- parts[intersect(c("end", "times", "groups"), names(parts))]
  spread <- function(part, name) if (is.matrix(part)) `colnames<-`(part, paste0(name, ".", colnames(part))) else part
  data.frame(few, parts$coefficients, errors, sigma = spread(parts$sigma, "sigma"),
             r.squared = spread(parts$r.squared, "r.squared"), nobs = parts$nobs, df.residual = parts$df.residual,
             check.names = FALSE)
}

#' @rdname rolling
#' @param digits How many digits to show.
#' @export
print.rolling <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  if (...length()) require_no_more(...)
  count <- length(x$end)
  cat(sprintf("Rolling regression: %d windows, %d coefficients each\n", count, ncol(x$coefficients)))
  if (count > 0L) {
    shown <- unique(c(seq_len(min(3L, count)), seq.int(max(1L, count - 2L), count)))
    print(as.data.frame(x)[shown, c("end", colnames(x$coefficients), if (!is.matrix(x$sigma)) "sigma")],
          digits = digits, row.names = FALSE)
  }
  invisible(x)
}

#' @rdname rolling
#' @param columns Which coefficients to draw: names or numbers; all of them by default.
#' @export
plot.rolling <- function(x, columns = colnames(x$coefficients), ...) {
  if (!length(x$end)) stop_bad_argument("x", x$end, "has no window to draw")
  columns <- which_coefficients(columns, colnames(x$coefficients))
  at <- if (!is.null(x$times) && is.null(x$groups)) x$times else x$end
  old <- graphics::par(mfrow = grDevices::n2mfrow(length(columns)), mar = c(4, 4, 2, 1))
  on.exit(graphics::par(old))
  for (j in columns) {
    beta <- x$coefficients[, j]
    band <- cbind(beta - 2 * x$std.error[, j], beta + 2 * x$std.error[, j])
    graphics::matplot(at, cbind(band, beta), type = "n", xlab = if (identical(at, x$end)) "observation" else "time",
                      ylab = "", main = colnames(x$coefficients)[[j]], xaxt = if (is.numeric(at)) "s" else "n", ...)
    if (!is.numeric(at)) graphics::Axis(at, side = 1)
    known <- stats::complete.cases(band)
    graphics::polygon(c(at[known], rev(at[known])), c(band[known, 1L], rev(band[known, 2L])), col = "grey85",
                      border = NA)
    graphics::lines(at, beta)
  }
  invisible(x)
}
