#' The methods of lm() for a recursive regression
#'
#' These methods of [lm()] also work for a fit of [rls()], and so do [predict()][predict.rls], [update()][update.rls],
#' [AIC()], [BIC()] and [terms()]. They take \eqn{O(p^2)} to \eqn{O(p^3)} operations, however many observations there
#' were, except the methods that return something for each observation. [anova()], [drop1()], [step()], [hatvalues()],
#' [rstandard()], [simulate()] and `plot()` do not work: compare models by their AIC.
#'
#' `deviance()` returns the minimum that the fit has found: the weighted sum of squares of the residuals, plus the ridge
#' penalty. If this sum is small beside what has left a window, it may have lost digits. Then `deviance()` sums the
#' squares of the residuals of the rows in the window instead.
#'
#' `nobs()` is the number of observations whose weight is not 0. With forgetting, an observation counts only for the
#' share of it that is left, in `df.residual()` too. `df.residual()` is `nobs()` minus the number of coefficients that
#' are not `NA`; with a ridge penalty it is `nobs()` itself. If no degree of freedom is left, `sigma()`, `vcov()` and
#' all that is computed from them are `NA`, with a warning of class `gpucholmod_no_variance`.
#'
#' `residuals()`, `fitted()`, `weights()` and `model.matrix()` return values for the observations that are kept, oldest
#' first, without names of observations. If no observations are kept, these functions stop with an error of class
#' `gpucholmod_rows_not_kept`. `model.frame()` always stops with this error, because no fit keeps the variables of its
#' formula.
#'
#' The R-squared is computed as for a model with an intercept if the first column is 1 in all observations, whether or
#' not the formula has an intercept.
#'
#' With several responses, `coef()`, `residuals()` and `predict()` return a matrix, and `deviance()` and `sigma()` a
#' vector. `summary()`, `vcov()`, `confint()` and `logLik()` are for one response, and so are the standard errors and
#' intervals of `predict()`.
#'
#' @param object A fit of [rls()].
#' @param parm Coefficients, by number or name; by default all of them.
#' @param level The confidence level.
#' @param formula A fit of [rls()].
#' @param ... Must be empty; `nobs()` and `formula()` do not look at it.
#' @return `coef()`: the coefficients. `vcov()`: \eqn{\hat\sigma^2 (X'WX)^{-1}}, where \eqn{X'WX} includes the ridge
#'   penalty. `confint()`: confidence intervals by Student's t. `sigma()`: \eqn{\hat\sigma}, the square root of the
#'   deviance divided by the degrees of freedom. `logLik()`: the log likelihood, for [AIC()] and [BIC()]; a fit with a
#'   penalty or with forgetting has no likelihood, which is an error of class `gpucholmod_no_likelihood`. `weights()`:
#'   the weights of the observations, as reduced by forgetting; these are numbers even if no weights were given, whereas
#'   [lm()] then has `NULL`. `model.matrix()`: the regressors, without the attributes that they have for [lm()].
#'   `summary()`: a list of class `summary.rls` with the table `coefficients`, `sigma`, `df`, `r.squared`,
#'   `adj.r.squared` and `fstatistic`; with a ridge penalty, the last three are absent.
#' @seealso [rls()], [predict()][predict.rls]
#' @examples
#' fit <- rls(mpg ~ wt + hp, mtcars[1:20, ])
#' fit <- update(fit, mtcars[21:32, ])
#' summary(fit)
#' confint(fit)
#' all.equal(AIC(fit), AIC(lm(mpg ~ wt + hp, mtcars)))
#' @name summary.rls
NULL

# Returns list(columns, beta, rss, effects, inverse, deviance): what a fit says, see rcpp_rls_solve().
solved <- function(fit, inverse = FALSE, deviance = FALSE) {
  on_gpu <- inherits(fit$R, "chol_factor")
  if (on_gpu && !deviance) {
    d <- diagonal_of(fit$R)
    p <- length(d)
    shift <- fit$account$shift
    if (!length(shift)) shift <- numeric(p + ncol(fit$z))
    shift[[1L]] <- 0
    norms <- sqrt(fit$account$sums[seq_len(p)] + shift[seq_len(p)]^2 * fit$account$sums[[1L]])
    if (all(d >= fit$tol * norms) && !rcpp_rls_is_worse(fit, d)) {
      beta <- solve_back(fit$R, fit$z)  # of the rows that are shifted, see src/regression/shift.h
      beta[1L, ] <- beta[1L, ] + shift[-seq_len(p)] - shift[seq_len(p)] %*% beta
      return(list(columns = seq_len(p), beta = beta, effects = fit$z))
    }
  }
  kept <- list(first = fit$first, kept = fit$kept, age = fit$age, whole = if (fit$penalised) fit$level * fit$ridge)
  rcpp_rls_solve(fit, if (on_gpu) as.matrix(fit$R) else fit$R, fit$tol, fit$history, kept, c(inverse, deviance))
}

freedom <- function(fit, solved) fit$count - if (fit$penalised) 0 else length(solved$columns)

# Returns the estimated variances of the responses; warns where there are none. solved: with deviances.
variances <- function(fit, solved) {
  df <- freedom(fit, solved)
  if (df > 0) return(solved$deviance / df)
  warn_gpucholmod("no_variance", sprintf("no degree of freedom is left (%s): no variance can be given", format(df)),
                  list(df = df))
  rep(NA_real_, ncol(fit$z))
}

# Returns (X'WX)^-1 of the columns that are independent.
unscaled <- function(fit, solved) tcrossprod(solved$inverse)

require_one_response <- function(fit, what) {
  if (ncol(fit$z) != 1L) stop_bad_argument("object", ncol(fit$z), sprintf("has several responses: %s is for one", what))
}

# Returns the names of the coefficients, or NULL.
coef_names <- function(fit) fit$names[[1L]]

#' @rdname summary.rls
#' @importFrom stats coef
#' @export
coef.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  as_coefficients(solved(object)$beta, object)
}

# Returns coefficients as the user sees them: a vector for one response without a name.
as_coefficients <- function(beta, fit) {
  if (ncol(beta) == 1L && is.null(fit$names[[2L]])) return(stats::setNames(beta[, 1L], coef_names(fit)))
  dimnames(beta) <- fit$names
  beta
}

#' @rdname summary.rls
#' @importFrom stats deviance
#' @export
deviance.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  stats::setNames(solved(object, deviance = TRUE)$deviance, object$names[[2L]])
}

#' @rdname summary.rls
#' @importFrom stats df.residual
#' @export
df.residual.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  freedom(object, solved(object))
}

#' @rdname summary.rls
#' @importFrom stats nobs
#' @export
nobs.rls <- function(object, ...) {  # some of R's functions give `use.fallback`
  require_fit(object)
  object$count
}

#' @rdname summary.rls
#' @importFrom stats sigma
#' @export
sigma.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  stats::setNames(sqrt(variances(object, solved(object, deviance = TRUE))), object$names[[2L]])
}

#' @rdname summary.rls
#' @importFrom stats vcov
#' @export
vcov.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_one_response(object, "vcov()")
  with_memory({
    known <- solved(object, inverse = TRUE, deviance = TRUE)
    p <- nrow(object$z)
    all <- matrix(NA_real_, p, p)
    if (!is.null(coef_names(object))) dimnames(all) <- object$names[c(1L, 1L)]
    all[known$columns, known$columns] <- unscaled(object, known) * variances(object, known)
    all
  })
}

#' @rdname summary.rls
#' @importFrom stats confint
#' @export
confint.rls <- function(object, parm, level = 0.95, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_one_response(object, "confint()")
  require_level(level)
  beta <- coef.rls(object)
  beta <- if (is.matrix(beta)) beta[, 1L] else beta
  names <- if (is.null(coef_names(object))) as.character(seq_along(beta)) else coef_names(object)
  parm <- if (missing(parm)) seq_along(beta) else which_coefficients(parm, names)
  outside <- c((1 - level) / 2, 1 - (1 - level) / 2)
  errors <- sqrt(diag(vcov.rls(object)))
  df <- df.residual.rls(object)
  t <- if (df > 0) stats::qt(outside, df) else c(NA_real_, NA_real_)
  matrix(beta[parm] + errors[parm] %o% t, ncol = 2L,
         dimnames = list(names[parm], paste(format(100 * outside, trim = TRUE, digits = 3), "%")))
}

# Returns the numbers of coefficients that a user names.
which_coefficients <- function(parm, names) {
  at <- if (is.character(parm)) match(parm, names) else parm
  if (!is.numeric(at) || anyNA(at) || any(at != round(at)) || any(at < 1 | at > length(names))) {
    stop_bad_argument("parm", parm, "must be names or numbers of coefficients")
  }
  at
}

require_level <- function(level) {
  if (!is_number(level) || level <= 0 || level >= 1) stop_bad_argument("level", level, "must be between 0 and 1")
}

#' @rdname summary.rls
#' @importFrom stats logLik
#' @export
logLik.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_one_response(object, "logLik()")
  if (object$penalised || object$age != 0) {
    stop_gpucholmod("no_likelihood", "a fit with a ridge penalty, or that forgets, has no likelihood")
  }
  known <- solved(object, deviance = TRUE)
  n <- object$count
  weights <- if (is.null(object$history)) object$sum_log_weights else {
    w <- object$history$w[object$first + seq_len(object$kept)]
    sum(log(w[w != 0]))
  }
  value <- 0.5 * (weights - n * (log(2 * pi) + 1 - log(n) + log(known$deviance)))
  structure(value, nall = n, nobs = n, df = length(known$columns) + 1, class = "logLik")
}

#' @rdname summary.rls
#' @importFrom stats residuals
#' @export
residuals.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_rows(object, "residuals()")
  rows <- kept_rows(object)
  drop_one(t(rows$y) - crossprod(rows$x, known_coefficients(object)), object)
}

#' @rdname summary.rls
#' @importFrom stats fitted
#' @export
fitted.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_rows(object, "fitted()")
  drop_one(crossprod(kept_rows(object)$x, known_coefficients(object)), object)
}

#' @rdname summary.rls
#' @importFrom stats weights
#' @export
weights.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_rows(object, "weights()")
  kept_rows(object)$w
}

# Returns the coefficients, p x m, with 0 for those that are NA: their columns add nothing to others.
known_coefficients <- function(fit, beta = solved(fit)$beta) {
  beta[is.na(beta)] <- 0
  beta
}

# Returns a vector if the fit has one response without a name.
drop_one <- function(x, fit) {
  if (ncol(fit$z) == 1L && is.null(fit$names[[2L]])) return(x[, 1L])
  dimnames(x) <- list(rownames(x), fit$names[[2L]])
  x
}

#' @rdname summary.rls
#' @importFrom stats formula
#' @export
formula.rls <- function(x, ...) {
  if (is.null(x$terms)) stop_bad_argument("x", NULL, "is a fit of a matrix, and has no formula")
  stats::formula(x$terms)
}
