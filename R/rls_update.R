#' Add observations to a recursive regression, and remove them
#'
#' `update()` returns the fit with further observations. If the fit has a window, `update()` also removes the
#' observations that leave the window. `drop_rows()` returns the fit without some observations. Neither function changes
#' the fit that it is given.
#'
#' If there are more new observations than the window holds, only the last of them count. For a fit of a formula, the
#' variables are found in the data frame by their names. The data frame must have every variable that had a value for
#' each observation in the fit; constants, and vectors that the formula only indexes, may be elsewhere. For a fit of a
#' matrix, the columns of the new matrix, or the elements of a vector, are matched with the columns of the fit by name
#' if both have names. Several responses are matched in the same way. If only some columns of `newdata` have names, as
#' in `cbind(1, x)`, the columns must be in the order of the fit.
#'
#' @param object A fit of [rls()].
#' @param newdata The observations. For a fit of a formula: a data frame or a list of the variables, or, if `y` is
#'   given, a matrix of the regressors, as [model.matrix()] makes it. For a fit of a matrix: a matrix with a row for
#'   each observation; a data frame with the columns of the matrix; or a vector. A vector is one observation; for a fit
#'   with one regressor, a vector has the values of the regressor in several observations.
#' @param y The responses of the observations. Leave it out if `newdata` has the variables of a formula. If there is
#'   one observation with several responses, `y` may be a vector.
#' @param weights The weights of the observations: one number, or one for each, and no weight is negative. If
#'   `newdata` has the variables of a formula, `weights` is evaluated there first, as by [lm()]. By default the
#'   weights that were given with the formula, if there were any, are evaluated in `newdata`; it is an error if
#'   `newdata` lacks their variables.
#' @param forget The forgetting factor of this update, which first multiplies the weights of all earlier observations.
#'   The default is the factor of the fit. Each call multiplies the weights once, however many observations it adds, and
#'   even if it adds none, or only observations that have weight 0 or missing values.
#' @param rows For `drop_rows()` of a fit that keeps its observations: the numbers of the observations to remove. Number
#'   1 is the oldest observation that is kept. If the fit keeps no observations, give those to remove as `newdata`.
#' @param left For `drop_rows()` of observations in `newdata`: the share of these observations that forgetting has left,
#'   one number. It is the product of the forgetting factors of all updates after the update that added the
#'   observations. `weights` are the weights that the observations had when they were added. Observations that were
#'   added by different updates need different calls of `drop_rows()`.
#' @param ... Must be empty.
#' @return A fit.
#' @section Errors:
#' `gpucholmod_unknown_columns`: the names of the columns are not those of the fit; fields `argument`, `unknown`,
#' `missing` and `expected`. `gpucholmod_rows_not_kept`: `rows` is given, but the fit keeps no observations.
#' `gpucholmod_lost_digits`: if `drop_rows()` removed the observations, it would leave coefficients with an error above
#' 1e-10, or a deviance with an error above 1e-8.
#' @seealso [rls()]
#' @examples
#' fit <- rls(dist ~ speed, cars[1:20, ], keep_rows = TRUE)
#' fit <- update(fit, cars[21:50, ])
#' fit <- drop_rows(fit, 49)
#' all.equal(coef(fit), coef(lm(dist ~ speed, cars[-49, ])))
#'
#' # A fit that forgets, and keeps no observations. The first observation has 0.9^2 of its
#' # weight when it is removed.
#' fading <- rls(dist ~ speed, cars[1:20, ], forget = 0.9)
#' fading <- update(update(fading, cars[21:30, ]), cars[31:50, ])
#' nobs(drop_rows(fading, newdata = cars[1, ], left = 0.9^2))
#' @importFrom stats update
#' @export
update.rls <- function(object, newdata, y = NULL, weights = NULL, forget = object$forget, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  if (!missing(forget)) forget <- require_forget(forget)
  if (missing(newdata)) require_given("newdata")
  if (inherits(newdata, "formula")) {
    stop_bad_argument("newdata", NULL, "must be further observations: to change the formula, make a new fit")
  }
  if (!missing(weights) && is_modelled(object, newdata)) {
    weights <- as_model(eval(substitute(weights), newdata, parent.frame()))
  }
  with_memory({
    fit <- unclass(object)  # for "$" would look for a method
    fit <- advance(fit, last_rows(new_observations(fit, newdata, y, weights), fit$window), forget)
    class(fit) <- "rls"
    fit
  })
}

# Returns a fit after `rows` have come; those leave the window that have no place in it any more.
advance <- function(fit, rows, forget) {
  after <- fit
  after$age <- fit$age - log(forget)
  coming <- sum(rows$w != 0)
  leaving <- 0
  penalty <- NULL
  if (fit$penalised) {
    after$level <- fit$level * forget
    if (fit$keep_ridge && after$level < 0.95) {
      penalty <- (1 - after$level) * fit$ridge
      after$level <- 1
    }
  }
  gone <- 0
  if (!is.null(fit$history)) {
    after <- keep(after, rows)
    gone <- max(0, after$kept - fit$window)
    if (gone > 0) {
      which <- after$first + seq_len(gone)
      leaving <- sum(exp(after$history$age[which] - after$age)[after$history$w[which] != 0])
    }
  }
  step <- list(x = rows$x, y = rows$y, w = rows$w, forget = forget, penalty = penalty,
               whole = if (fit$penalised) after$level * fit$ridge, age = after$age, first = after$first, gone = gone,
               kept = after$kept - gone)
  made <- rcpp_rls_step(fit, step, after$history, NULL, fit$on_gpu, default_request)
  after$first <- after$first + gone
  after$kept <- after$kept - gone
  after$count <- forget * fit$count + coming - leaving
  if (after$intercept) after$intercept <- all(rows$x[1L, ] == 1)
  if (is.null(fit$history)) after$sum_log_weights <- fit$sum_log_weights + sum(log(rows$w[rows$w != 0]))
  settled(after, made, forget)
}

# Returns a fit with what src/ has made of it.
settled <- function(fit, made, forget) {
  fit$R <- made$R
  fit$z <- made$z
  fit$rss <- made$rss
  fit$account <- made$account
  if (forget < 1) fit <- forgotten(fit)
  require_full_rank(fit)
  fit
}

# Numbers of R below this, whose squares are near the end of the range, are taken as 0.
least_known <- 1e-140

# Returns a fit without the directions of which next to nothing is known any more, and warns of them.
forgotten <- function(fit) {
  d <- diagonal_of(fit$R)
  if (!any(d < least_known & d > 0)) return(fit)
  R <- as.matrix(fit$R)
  columns <- which(d < least_known & d > 0)
  R[abs(R) < least_known] <- 0
  fit$z[abs(fit$z) < least_known] <- 0
  fit$R <- R
  fit$account$regular <- FALSE
  names <- if (is.null(fit$names[[1L]])) columns else fit$names[[1L]][columns]
  warn_gpucholmod("forgotten_direction",
                  sprintf("what was known of coefficient %s has been forgotten; keep_ridge = TRUE prevents that",
                          paste(names, collapse = ", ")), list(columns = names))
  fit
}

#' @rdname update.rls
#' @export
drop_rows <- function(object, ...) {
  UseMethod("drop_rows")
}

#' @rdname update.rls
#' @export
drop_rows.rls <- function(object, rows = NULL, newdata = NULL, y = NULL, weights = NULL, left = 1, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  if (is.list(rows) || length(dim(rows)) > 1L) {
    stop_bad_argument("rows", rows, "must be numbers of observations: give observations by name, as 'newdata' and 'y'")
  }
  if (is.null(rows) == is.null(newdata)) {
    stop_bad_argument("rows", rows, paste("must give numbers of the observations that are to go, or 'newdata' and 'y',",
                                          "by name, the observations"))
  }
  left <- require_forget(left, "left")
  if (left != 1 && is.null(newdata)) stop_bad_argument("left", left, "is for 'newdata': a fit knows it for its 'rows'")
  if (!missing(weights) && is_modelled(object, newdata)) {
    weights <- as_model(eval(substitute(weights), newdata, parent.frame()))
  }
  with_memory({
    after <- object
    if (is.null(rows)) {
      if (!is.null(object$history)) stop_bad_argument("newdata", NULL, "is for fits that keep no rows: give 'rows'")
      gone <- new_observations(object, newdata, y, weights)[c("x", "y", "w")]
      after$sum_log_weights <- object$sum_log_weights - sum(log(gone$w[gone$w != 0]))
      leaving <- left * sum(gone$w != 0)
      gone$w <- gone$w * left
    } else {
      require_rows(object, "drop_rows() by numbers")
      rows <- row_numbers(rows, object$kept)
      if (!length(rows)) return(object)
      all <- object$first + seq_len(object$kept)
      gone <- some_rows(kept_rows(object), rows)
      leaving <- sum(exp(object$history$age[all[rows]] - object$age)[object$history$w[all[rows]] != 0])
      after$history <- without_rows(object$history, all[-rows])
      after$first <- 0
      after$kept <- length(all) - length(rows)
    }
    none <- some_rows(gone, integer())
    step <- c(none, list(forget = 1, penalty = NULL, whole = if (object$penalised) object$level * object$ridge,
                         age = object$age, first = 0, gone = 0, kept = after$kept))
    made <- rcpp_rls_step(object, step, after$history, gone, object$on_gpu, default_request)
    lost <- is.null(made)
    if (!lost) {
      after$count <- object$count - leaving
      after <- settled(after, made, 1)
      lost <- is.null(after$history) && any(rcpp_rls_loss_of_deviance(after, solved(after)) > 1e-8)
    }
    if (lost) {
      stop_gpucholmod("lost_digits", paste("without these observations, if they were in the fit at all, coefficients",
                                           "or the deviance would lose digits: fit with keep_rows = TRUE, or the",
                                           "rest anew"))
    }
    after
  })
}

# Checks numbers of rows, of which there are `count`, and returns each once.
row_numbers <- function(rows, count) {
  if (!is.numeric(rows) || anyNA(rows) || any(rows != round(rows)) || any(rows < 1 | rows > count)) {
    stop_bad_argument("rows", rows, sprintf("must be numbers of observations, from 1 to %d", count))
  }
  unique(as.integer(rows))
}

# Returns a log with these columns alone.
without_rows <- function(log, which) {
  made <- new.env(parent = emptyenv())
  made$x <- log$x[, which, drop = FALSE]
  made$y <- log$y[, which, drop = FALSE]
  made$w <- log$w[which]
  made$age <- log$age[which]
  made$used <- length(which)
  made
}
