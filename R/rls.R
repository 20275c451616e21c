#' Recursive least squares
#'
#' `rls()` fits a linear regression that can be kept up to date while observations are added and removed. The fit may
#' have weights, a forgetting factor, a window of the last observations, or a ridge penalty. [update()][update.rls] adds
#' observations, and [drop_rows()] removes them. Many methods of [lm()] work for the fit: [summary()][summary.rls] lists
#' them. [rolling()] fits all windows of a data set in one call.
#'
#' The first fit is a QR decomposition. The fit keeps the Cholesky factor \eqn{R} of \eqn{X'WX}, \eqn{z = R'^{-1}X'Wy}
#' and the residual sum of squares. When `k` new observations are added, one modification changes all three, as
#' [cholupdate_gpu()] does, in \eqn{O(kp^2)} operations, however long the window is. A fit with a window also keeps the
#' rows of the window, and a bound on the rounding errors. If this bound says that the coefficients may be off by more
#' than 1e-10, the rows are decomposed again.
#'
#' @section Columns that depend on others:
#' As in [lm()], a column gets the coefficient `NA` if the part of it that is independent of the columns before it has a
#' norm below `tol` times the norm of the whole column. Later observations may make such a column independent. So a fit
#' may begin with fewer rows than columns, or with no rows, and a window may pass through a stretch in which the
#' regressors are collinear. With `singular.ok = FALSE`, columns that depend on others are an error of class
#' `gpucholmod_singular_fit`, whose field `columns` names them. If an update raises this error, the fit that was to be
#' updated stays as it was.
#'
#' @section Formulas:
#' A formula means the same as in [lm()], with these exceptions:
#' * Levels of factors that no observation has are kept, with coefficients that are `NA`, so that later observations
#'   may have these levels. A level that the factors of the first data do not have is an error.
#' * There are no arguments `contrasts` and `offset`, and the formula cannot contain [offset()]. The contrasts are those
#'   that the factors of the first data have, or those of the option `contrasts`; later observations get the same.
#' * [na.exclude()] means the same as [na.omit()]: [residuals()] and [fitted()] are not padded with `NA`.
#'
#' In later data, each variable must have the class that it had first: a number in place of a factor is an error of
#' class `gpucholmod_bad_model`, whose fields are `variable`, `expected` and `actual`. If all values of a variable are
#' `NA`, the variable is logical in R; these values are taken as missing values of the class that the variable had
#' first. Infinite values are an error of class `gpucholmod_not_finite` everywhere, [predict()][predict.rls] included;
#' missing values are such an error with [na.fail()].
#'
#' @section Forgetting:
#' With `forget` below 1, everything that is known fades, unless new observations renew it. A ridge penalty fades too;
#' `keep_ridge = TRUE` renews the penalty when less than 95 % of it is left, as Gay (1996) does for one coefficient at a
#' time. Without this renewal, the fit finally forgets a direction in the space of the coefficients if no observation
#' tells anything about it. Before the numbers of this direction become so small that they lose digits, its coefficient
#' becomes `NA`, with a warning of class `gpucholmod_forgotten_direction`.
#'
#' @param x A matrix with a row for each observation and a column for each of the \eqn{p} regressors (for an intercept,
#'   a column of ones). A vector is one column.
#' @param y The responses: a vector, or a matrix with a column for each of several responses.
#' @param formula,data,weights,subset,na.action As for [lm()]. For a matrix, `weights` is one number, or one for each
#'   observation, and no weight is negative. Missing values in a matrix are an error unless `na.action` is [na.omit()]
#'   or [na.exclude()], which leave out the observations that have missing values, in updates too. An observation of
#'   weight 0 does not count, but has its place in the window; an observation that is left out has none.
#' @param ridge The penalty \eqn{\lambda \ge 0}: one number, or one for each regressor. If the numbers have names, these
#'   are matched with the names of the coefficients. The fit minimises
#'   \eqn{\sum w_i (y_i - x_i'\beta)^2 + \lambda\beta'\beta}{sum w_i (y_i - x_i'beta)^2 + lambda beta'beta}.
#' @param window The number of the last observations that the fit is about, observations of weight 0 among them. With
#'   `Inf`, the fit is about all observations.
#' @param forget The forgetting factor, above 0 and at most 1. Each call of [update()][update.rls] first multiplies the
#'   weights of all earlier observations by this factor. It does so exactly once, even if the call adds many
#'   observations, or none that counts. An update may give another factor.
#' @param keep_rows Whether to keep the observations, each of which is \eqn{p + m} numbers if there are \eqn{m}
#'   responses. [residuals()] needs the observations, and so does [drop_rows()] if it drops them by number. A fit with a
#'   window always keeps the observations of the window.
#' @param keep_ridge Whether the ridge penalty stays while everything else is forgotten.
#' @param tol The tolerance for columns that depend on others, as in [lm.fit()].
#' @param singular.ok Whether columns may depend on others.
#' @param backend Where the factor is kept: `"cpu"`; `"cuda"`, on a GPU (see [gpu_factor()]); or `"auto"`, on a GPU if
#'   one can be used and \eqn{p} is at least 2,000, otherwise on the CPU.
#' @param ... For a formula: the arguments of the method for matrices from `ridge` on, except `na.action`. For a matrix,
#'   it must be empty.
#'
#' @return A fit, an object of class `rls`.
#' @seealso [update()][update.rls] and [drop_rows()]; [summary()][summary.rls], [predict()][predict.rls] and the other
#'   methods; [rolling()]; [cholupdate_gpu()], whose arguments `z`, `y` and `rss` do the same for a factor of your own
#' @references Å. Björck (1996). Numerical Methods for Least Squares Problems. SIAM, sections 3.2 and 3.3.
#'
#' S. L. Gay (1996). Dynamically regularized fast RLS with application to echo cancellation. Proceedings of ICASSP,
#' 957-960.
#' @examples
#' fit <- rls(Employed ~ GNP + Armed.Forces, longley[1:10, ])
#' for (i in 11:16) fit <- update(fit, longley[i, ])
#' fit
#' all.equal(coef(fit), coef(lm(Employed ~ GNP + Armed.Forces, longley)))
#'
#' # a window of 100 observations, and one call for each new observation
#' x <- cbind(1, rnorm(300))
#' y <- x %*% c(1, 2) + rnorm(300)
#' moving <- rls(x[1:100, ], y[1:100], window = 100)
#' for (i in 101:300) moving <- update(moving, x[i, ], y[i])
#' all.equal(coef(moving), coef(lm(y[201:300] ~ x[201:300, 2])), check.attributes = FALSE)
#'
#' # an adaptive filter with forgetting, which begins with a prior and no observations
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
    fit$ridge <- check_not_negative(penalties_in_order(ridge, fit$names[[1L]]), "ridge", p, "regressors")
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
  known <- names(formals(rls.default))
  require_known_names(match.call(expand.dots = FALSE)$..., setdiff(known, c("x", "y", "weights", "na.action", "...")))
  if (!missing(data) && !is.list(data) && !is.environment(data)) {
    stop_bad_argument("data", data, "must be a data frame")
  }
  frame <- match.call(expand.dots = FALSE)
  frame <- frame[c(1L, match(c("formula", "data", "subset", "weights", "na.action"), names(frame), 0L))]
  frame[[1L]] <- quote(stats::model.frame)  # levels of factors that have not been seen yet may come later
  action <- if (missing(na.action)) na_action(getOption("na.action", "na.omit")) else na_action(na.action)
  frame$na.action <- if (action == "omit") quote(stats::na.omit) else quote(stats::na.pass)
  frame <- as_model(eval(frame, parent.frame()))
  if (action == "fail") require_complete(frame)
  terms <- attr(frame, "terms")
  x <- as_model(stats::model.matrix(terms, frame))
  y <- response_of(frame)
  require_no_infinite(frame, x, y)
  weights <- stats::model.weights(frame)
  fit <- rls.default(x, y, weights = if (is.null(weights)) 1 else weights, ...)
  fit$terms <- terms
  fit$xlevels <- stats::.getXlevels(terms, frame)
  fit$contrasts <- attr(x, "contrasts")
  fit$weights_call <- call$weights
  data <- if (missing(data)) environment(terms) else data
  fit$variables <- empty_variables(terms, data)
  observed_in <- function(call) {
    observed_variables(call, data, environment(terms), observation_count(terms, data))
  }
  fit$observed <- observed_in(attr(terms, "variables"))
  fit$observed_weights <- observed_in(call$weights)
  fit$na.action <- action
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
