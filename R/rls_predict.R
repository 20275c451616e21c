#' Predictions of a recursive regression
#'
#' @param object A fit of [rls()].
#' @param newdata The observations to predict. For a fit of a formula: a data frame or a list with the variables
#'   that [update()][update.rls] needs, but for the response; they must have the classes that they had in the fit.
#'   If the value of a variable is missing, so is the prediction. For a fit of a matrix: a matrix with a row for
#'   each prediction, or a vector. A vector is one row; for a fit with one regressor, a vector has the values of the
#'   regressor in several rows. If `newdata` is missing, `predict()` returns the fitted values of the observations
#'   that are kept.
#' @param se.fit Whether to return standard errors.
#' @param interval,level Whether to return intervals, for the means (`"confidence"`) or for further observations of
#'   weight 1 (`"prediction"`), and the level of the intervals.
#' @param ... Must be empty.
#' @return As from [predict.lm()]: a vector; with an interval, a matrix with columns `fit`, `lwr` and `upr`; with
#'   `se.fit`, a list of this vector or matrix (`fit`), `se.fit`, `df` and `residual.scale`. With several responses,
#'   `predict()` returns a matrix of predictions only.
#'
#'   If columns of the fit depend on others, or are zero, predictions leave these columns out. A prediction whose row
#'   of regressors does not depend in the same way needs a coefficient that is not known. For such predictions, as for
#'   a level of a factor that no observation has, there is a warning of class `gpucholmod_rank_deficient`, with the
#'   columns and the numbers of the rows in the fields `columns` and `rows`.
#' @examples
#' fit <- rls(dist ~ speed, cars)
#' predict(fit, data.frame(speed = c(10, 20)), interval = "prediction")
#' @importFrom stats predict
#' @export
predict.rls <- function(object, newdata, se.fit = FALSE, interval = c("none", "confidence", "prediction"),
                        level = 0.95, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_flag(se.fit, "se.fit")
  intervals <- c("none", "confidence", "prediction")
  if (is.character(interval) && length(interval) == 1L && !is.na(pmatch(interval, intervals))) {
    interval <- intervals[[pmatch(interval, intervals)]]  # predict.lm() takes the beginning of a name too
  }
  interval <- match_choice(interval, intervals, "interval")
  require_level(level)
  with_memory({
    x <- predictors(object, newdata)
    wanted <- se.fit || interval != "none"
    if (wanted) require_one_response(object, "an interval or a standard error")
    known <- solved(object, inverse = wanted, deviance = wanted)
    if (length(known$columns) < ncol(x)) warn_of_unknown(object, x, known$columns)
    fit <- drop_one(x %*% known_coefficients(object, known$beta), object)
    if (wanted) with_errors(object, known, fit, x, se.fit, interval, level) else fit
  })
}

# Returns the matrix of regressors of new data, a row for each prediction, which may be missing values.
predictors <- function(fit, newdata) {
  if (missing(newdata)) {
    require_rows(fit, "predict() without 'newdata'")
    return(t(kept_rows(fit)$x))
  }
  if (is_modelled(fit, newdata)) {
    frame <- frame_of(fit, newdata, stats::delete.response(fit$terms))
    x <- matrix_of(fit, frame)
    known <- x
    if (anyNA(x)) known[!stats::complete.cases(frame), ] <- 0
    require_no_infinite(complete_part(frame), known)
    require_finite(known, "newdata")
    return(x)
  }
  x <- regressors(newdata, fit)
  require_finite(x, "newdata")
  x
}

# Warns of rows of x, regressors to predict from, that need coefficients other than those of the `known` columns: their
# other columns do not depend on the known ones as they do in the fit.
warn_of_unknown <- function(fit, x, known) {
  R <- as.matrix(fit$R)
  p <- ncol(R)
  given <- x
  shift <- fit$account$shift[seq_len(p)]  # of the rows that R is a factor of: src/regression/shift.h
  if (length(fit$account$shift)) x <- x - tcrossprod(x[, 1L], replace(shift, 1L, 0))
  left <- setdiff(seq_len(p), known)
  of_known <- qr.coef(qr(R[, known, drop = FALSE], tol = 1e-14), R[, left, drop = FALSE])
  own <- x[, known, drop = FALSE]
  size <- abs(x[, left, drop = FALSE]) + abs(own) %*% abs(of_known)
  # As far as columns may depend on others in the fit, tol of their size, they may here.
  wrong <- abs(x[, left, drop = FALSE] - own %*% of_known) > 1e-6 * size + fit$tol * abs(given[, left, drop = FALSE])
  rows <- unname(which(rowSums(wrong, na.rm = TRUE) > 0))
  if (!length(rows)) return(invisible())
  columns <- left[colSums(wrong, na.rm = TRUE) > 0]
  names <- fit$names[[1L]][columns]
  if (length(names) && all(nzchar(names))) columns <- names
  warn_gpucholmod("rank_deficient",
                  sprintf("%d of %d predictions need the coefficient of %s, which is not known, and leave it out",
                          length(rows), nrow(x), paste(columns, collapse = ", ")),
                  list(columns = columns, rows = rows))
}

# Returns predictions with what predict.lm() returns beside them.
with_errors <- function(object, known, fit, x, se.fit, interval, level) {
  x <- x[, known$columns, drop = FALSE]
  variance <- variances(object, known)
  df <- freedom(object, known)
  of_mean <- rowSums((x %*% unscaled(object, known)) * x) * variance
  if (interval != "none") {
    half <- if (df > 0) stats::qt((1 + level) / 2, df) else NA_real_
    half <- half * sqrt(of_mean + if (interval == "prediction") variance else 0)
    fit <- drop(fit)
    fit <- cbind(fit = fit, lwr = fit - half, upr = fit + half)
  }
  if (!se.fit) return(fit)
  list(fit = fit, se.fit = sqrt(of_mean), df = df, residual.scale = sqrt(variance))
}
