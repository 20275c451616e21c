#' Recursive least squares
#'
#' A linear regression that is kept up to date while observations come and go: weighted, with a factor by which the past
#' is forgotten, a window, or a ridge penalty. `rls()` fits the first observations, [update()][update.rls] takes in
#' more, and [drop_rows()] takes some out. The methods of [lm()] work: see [summary()][summary.rls]. [rolling()] fits
#' all windows of a data set in one call.
#'
#' The fit keeps the Cholesky factor \eqn{R} of \eqn{X'WX}, \eqn{z = R'^{-1}X'Wy} and the residual sum of squares, and
#' new observations change all three by one call of [cholupdate_gpu()], in \eqn{O(kp^2)} operations for `k` of them,
#' however long the window is. The first fit is a QR decomposition. A window keeps its rows, and a bound of the digits
#' that rounding has cost. If that bound says that the coefficients may be off by more than 1e-10, the rows are
#' decomposed anew.
#'
#' @section Columns that depend on others:
#' As in [lm()], a column of which less than `tol` of the norm is independent of the columns before it has the
#' coefficient `NA`, until later observations make it independent. So a fit may begin with fewer rows than columns, or
#' with none, and a window may pass through a stretch in which the regressors are collinear. With `singular.ok = FALSE`
#' such a fit is an error of class `gpucholmod_singular_fit`, whose field `columns` names the columns, and the fit that
#' was to be updated stays as it was.
#'
#' @section Forgetting:
#' With `forget` below 1, what is known of a direction of which no observation tells anything fades too, and with it a
#' ridge penalty. `keep_ridge = TRUE` renews the penalty where less than 95 % of it is left, as Gay (1996) does one
#' coefficient at a time. Otherwise a direction without news is forgotten in the end: its coefficient becomes `NA`, with
#' a warning of class `gpucholmod_forgotten_direction`, before its numbers lose digits to the end of their range.
#'
#' @param x A matrix with a row for each observation and a column for each of the \eqn{p} regressors (for an intercept,
#'   a column of ones); a vector is one column.
#' @param y The responses: a vector, or a matrix with a column for each of several.
#' @param formula,data,weights,subset,na.action As for [lm()]. For a matrix, `weights` is one number, or one for each
#'   observation, none negative, and missing values are an error unless `na.action` is [na.omit()] or [na.exclude()]:
#'   then observations that have any are left out, in updates too. An observation of weight 0 does not count.
#' @param ridge The penalty: a number \eqn{\lambda \ge 0}, or one for each regressor, so that
#'   \eqn{\sum w_i (y_i - x_i'\beta)^2 + \lambda\beta'\beta} is what is minimised.
#' @param window How many of the last observations count. `Inf`: all.
#' @param forget What everything known so far is multiplied by at each update, from above 0 to 1; an update may say
#'   otherwise.
#' @param keep_rows Whether to keep the observations, \eqn{p + m} numbers each: for [residuals()], and for dropping any
#'   of them later. A window always keeps its own.
#' @param keep_ridge Whether the ridge penalty stays while everything else is forgotten.
#' @param tol The tolerance for columns that depend on others, as of [lm.fit()].
#' @param singular.ok Whether columns may depend on others.
#' @param backend `"cpu"`, `"cuda"`: the factor stays on the GPU, see [gpu_factor()]; `"auto"`: the GPU if there is one
#'   and \eqn{p} is at least 2,000.
#' @param ... For the method for formulas: further arguments, from `ridge` on. Otherwise it must be empty.
#'
#' @return A fit, an object of class `rls`.
#' @seealso [update()][update.rls] and [drop_rows()]; [summary()][summary.rls], [predict()][predict.rls] and the other
#'   methods; [rolling()]; [cholupdate_gpu()], whose arguments `z`, `y` and `rss` these are
#' @references
#' Å. Björck (1996). Numerical Methods for Least Squares Problems. SIAM, sections 3.2 and 3.3.
#'
#' S. L. Gay (1996). Dynamically regularized fast RLS with application to echo cancellation. Proceedings of ICASSP,
#' 957-960.
#' @examples
#' fit <- rls(Employed ~ GNP + Armed.Forces, longley[1:10, ])
#' for (i in 11:16) fit <- update(fit, longley[i, ])
#' fit
#' all.equal(coef(fit), coef(lm(Employed ~ GNP + Armed.Forces, longley)))
#'
#' # the last 100 observations only, one call for each new one
#' x <- cbind(1, rnorm(300))
#' y <- x %*% c(1, 2) + rnorm(300)
#' moving <- rls(x[1:100, ], y[1:100], window = 100)
#' for (i in 101:300) moving <- update(moving, x[i, ], y[i])
#' all.equal(coef(moving), coef(lm(y[201:300] ~ x[201:300, 2])), check.attributes = FALSE)
#'
#' # an adaptive filter that begins with nothing but a prior, and forgets
#' filter <- rls(matrix(0, 0, 2), numeric(), ridge = 0.01, forget = 0.98)
#' for (i in 1:300) filter <- update(filter, x[i, ], y[i])
#' coef(filter)
#' @concept online regression
#' @concept sliding window regression
#' @concept weighted regression
#' @concept ridge regression
#' @concept forgetting factor
#' @concept recursive least squares
#' @concept Kalman filter
#' @export
rls <- function(x, ...) {
  UseMethod("rls")
}

#' @rdname rls
#' @export
rls.default <- function(x, y, weights = 1, ridge = 0, window = Inf, forget = 1, keep_rows = is.finite(window),
                        keep_ridge = FALSE, tol = 1e-7, singular.ok = TRUE, na.action = "na.fail",
                        backend = getOption("gpucholmod.backend", "auto"), ...) {
  if (...length()) require_no_more(...)
  with_memory({
    fit <- list(window = require_window(window), forget = require_forget(forget), tol = require_tolerance(tol),
                na.action = na_action(na.action))
    require_flag(singular.ok, "singular.ok")
    require_flag(keep_ridge, "keep_ridge")
    require_flag(keep_rows, "keep_rows")
    fit$singular.ok <- singular.ok
    fit$keep_ridge <- keep_ridge
    rows <- observations(x, y, weights, na.action = fit$na.action)
    p <- nrow(rows$x)
    fit$names <- rows$names
    fit$ridge <- check_not_negative(ridge, "ridge", p, "regressors")
    fit$penalised <- any(fit$ridge > 0)
    fit$on_gpu <- held_on_gpu(match_choice(backend, choices$backend, "backend"), p)
    rows <- last_rows(rows, fit$window)
    start <- rcpp_rls_begin(rows, if (fit$penalised) fit$ridge, fit$on_gpu)
    fit[names(start)] <- start
    fit$intercept <- all(rows$x[1L, ] == 1)
    fit$age <- 0
    fit$level <- 1  # what is left of the penalty
    fit$count <- as.double(sum(rows$w != 0))
    fit$sum_log_weights <- sum(log(rows$w[rows$w != 0]))
    fit["history"] <- list(NULL)  # the rows that are kept: R/rls_rows.R
    fit$first <- 0
    fit$kept <- 0
    if (keep_rows || is.finite(fit$window)) fit <- keep(fit, rows)
    require_full_rank(fit)
    structure(fit, class = "rls")
  })
}

#' @rdname rls
#' @export
rls.formula <- function(formula, data, weights, subset, na.action, ...) {
  call <- match.call()
  call[[1L]] <- quote(rls)
  if (!missing(data) && !is.list(data) && !is.environment(data)) {
    stop_bad_argument("data", data, "must be a data frame")
  }
  frame <- match.call(expand.dots = FALSE)
  frame <- frame[c(1L, match(c("formula", "data", "subset", "weights", "na.action"), names(frame), 0L))]
  frame[[1L]] <- quote(stats::model.frame)  # levels of factors that have not been seen yet may come later
  frame <- as_model(eval(frame, parent.frame()))
  terms <- attr(frame, "terms")
  x <- as_model(stats::model.matrix(terms, frame))
  weights <- stats::model.weights(frame)
  fit <- rls.default(x, response_of(frame), weights = if (is.null(weights)) 1 else weights, ...)
  fit$terms <- terms
  fit$xlevels <- stats::.getXlevels(terms, frame)
  fit$contrasts <- attr(x, "contrasts")
  fit$weights_call <- call$weights
  fit$na.action <- if (missing(na.action)) na_action(getOption("na.action", "na.omit")) else na_action(na.action)
  fit$call <- call
  fit
}

# Returns the response of a model frame; an offset is not known here.
response_of <- function(frame) {
  if (!is.null(stats::model.offset(frame))) {
    stop_bad_argument("formula", NULL, "has an offset, which is not supported: subtract it from the response")
  }
  y <- stats::model.response(frame, "any")
  if (is.null(y)) stop_bad_argument("formula", NULL, "has no response")
  y
}

# Evaluates a call of R's functions for models, whose errors become those of class gpucholmod_bad_model.
as_model <- function(code) {
  tryCatch(code, error = function(e) {
    if (inherits(e, "gpucholmod_error") || is_memory_error(e) || is_time_limit(e)) stop(e)
    stop_gpucholmod("bad_model", paste("the formula and the data do not make a model:", conditionMessage(e)))
  })
}

# Stops where a fit that may have no dependent columns has some. The factor in a fit that began with a penalty for all
# coefficients has none.
require_full_rank <- function(fit) {
  if (fit$singular.ok) return(invisible())
  dependent <- setdiff(seq_len(nrow(fit$z)), solved(fit)$columns)
  if (!length(dependent)) return(invisible())
  names <- fit$names[[1L]]
  columns <- if (is.null(names)) dependent else names[dependent]
  stop_gpucholmod("singular_fit", paste0("columns of x depend on those before them: ", paste(columns, collapse = ", "),
                                         "; with singular.ok = TRUE their coefficients are NA"),
                  list(columns = columns, tolerance = fit$tol))
}

# Returns the diagonal of the factor of a fit: a handle or a matrix.
diagonal_of <- function(R) {
  if (inherits(R, "chol_factor")) rcpp_factor_diagonal(R) else R[seq.int(1L, length(R), nrow(R) + 1L)]
}

# Modifies the factor of a fit on a GPU, for src/rcpp_rls.cpp. y: a column for each of V.
modify_rls <- function(R, V, weights, scale, z, y, rss) {
  withCallingHandlers(
    cholupdate_gpu(R, V, weights = weights, scale = scale, z = z, y = t(y), rss = rss, check = FALSE),
    gpucholmod_negative_rss = function(w) tryInvokeRestart("muffleWarning")  # deviance() takes the rows then
  )
}
