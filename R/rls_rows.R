# The observations of a fit of rls(): how they are given, and how they are kept.

# Returns list(x, y, w, names, complete) of observations: x (p x k) and y (m x k) with a column for each, w (k) their
# weights. x, y, weights: as the user gave them. fit: what they are for, or NULL for a new one. Leaves out observations
# with missing values if `na.action` is "omit"; complete: which it did not leave out.
observations <- function(x, y, weights, fit = NULL, na.action = fit$na.action) {
  x <- regressors(x, fit)
  y <- responses(y, nrow(x), fit)
  weights <- weights_of(weights, nrow(x))
  names <- list(colnames(x), colnames(y))
  complete <- TRUE
  if (na.action == "omit" && (anyNA(x) || anyNA(y) || anyNA(weights))) {
    complete <- stats::complete.cases(x, y, weights)
    x <- x[complete, , drop = FALSE]
    y <- y[complete, , drop = FALSE]
    weights <- weights[complete]
  }
  require_finite(x, name_of_regressors(fit))
  require_finite(y, "y")
  check_not_negative(weights, "weights", nrow(x), "observations")
  list(x = transposed(x), y = transposed(y), w = weights, names = names, complete = complete)
}

# Returns the transpose, without names.
transposed <- function(x) {
  if (nrow(x) == 1L || ncol(x) == 1L) {
    dim(x) <- c(ncol(x), nrow(x))
    x
  } else {
    t(unname(x))
  }
}

# Returns the argument that has the regressors: of a new fit, if `fit` is NULL, or for a fit.
name_of_regressors <- function(fit) if (is.null(fit)) "x" else "newdata"

# Returns a matrix of doubles, a row for each observation. A vector is one column where there is one regressor, as in a
# new fit, and otherwise one row. Columns with names are put in the order of the fit.
regressors <- function(x, fit) {
  argument <- name_of_regressors(fit)
  if (is.data.frame(x) && !is.null(fit)) x <- columns_of(x, fit$names[[1L]])
  x <- missing_numbers(x)
  if (!isS4(x) && !is.numeric(x)) stop_not_numeric(x, argument)
  p <- if (!is.null(fit)) nrow(fit$z)
  one <- !is.null(fit) && is.null(dim(x))
  if (is.null(dim(x)) && !isS4(x)) {
    column <- is.null(fit) || (p == 1L && length(x) != 1L)
    x <- if (column) as.matrix(x) else matrix(x, 1L, dimnames = if (!is.null(names(x))) list(NULL, names(x)))
  }
  if (is.null(fit)) p <- ncol(x)
  if (!is.double(x) || is.object(x) || length(dim(x)) != 2L) {
    x <- open_columns(x, nrow(x), float32 = FALSE, argument, sprintf("there are %d observations", nrow(x)))
  }
  if (p == 0L) {
    stop_gpucholmod("dimension_mismatch", "'x' has no columns: a regression has at least one regressor",
                    list(expected = 1L, actual = ncol(x)))
  }
  if (ncol(x) != p) {
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' has %d columns, the fit %d coefficients%s", argument, ncol(x),
                                                  p, if (one) "; a vector is one observation"
                                                  else ask_for_t(argument, nrow(x) == p)),
                    list(expected = p, actual = ncol(x)))
  }
  if (!is.null(fit)) in_order(x, fit$names[[1L]], argument) else x
}

# Returns the columns of a matrix in the order of the names that a fit has.
in_order <- function(x, names, argument) {
  places <- order_of_names(colnames(x), names, argument)
  if (is.null(places)) x else x[, places, drop = FALSE]
}

# Returns the places at which the `own` names of an argument have those of the fit, as many; NULL if it is to be taken
# as it is: where either has no names; and where not all names tell columns apart, as those of cbind(1, x), and none
# stands at another place than in the fit. Stops where the names are others. Only regressors may lack names that the fit
# has.
order_of_names <- function(own, names, argument) {
  if (is.null(own) || is.null(names) || identical(own, names)) return(NULL)
  if (setequal(own, names) && !anyDuplicated(own) && !anyDuplicated(names)) return(match(names, own))
  differ <- function(names) all(nzchar(names)) && !anyDuplicated(names)
  partly <- !differ(names) || (!differ(own) && argument %in% c("x", "newdata"))
  if (partly && !any(nzchar(own) & own %in% names & own != names)) return(NULL)
  stop_unknown_columns(own[nzchar(own)], names, argument)
}

# Returns the columns of a data frame that a fit of a matrix has.
columns_of <- function(data, names) {
  if (is.null(names)) stop_bad_argument("newdata", NULL, "is a data frame, but the columns of the fit have no names")
  if (!all(names %in% names(data))) stop_unknown_columns(intersect(names(data), names), names, "newdata")
  x <- as.matrix(data[names])
  rownames(x) <- NULL
  x
}

# Stops because the names of an argument are not those of the fit.
stop_unknown_columns <- function(own, names, argument) {
  unknown <- setdiff(own, names)
  absent <- setdiff(names, own)
  why <- c(if (length(unknown)) paste("the fit has no column", paste(unknown, collapse = ", ")),
           if (length(absent)) sprintf("missing from '%s': %s", argument, paste(absent, collapse = ", ")))
  if (is.null(why)) why <- sprintf("the names of '%s' do not tell which column of the fit is meant", argument)
  stop_gpucholmod("unknown_columns", paste(why, collapse = "; "),
                  list(argument = argument, unknown = unknown, missing = absent, expected = names))
}

# Returns a matrix with a row for each of `count` observations.
responses <- function(y, count, fit) {
  m <- if (!is.null(fit)) ncol(fit$z)
  y <- missing_numbers(y)
  if (!isS4(y) && !is.numeric(y)) stop_not_numeric(y, "y")
  if (is.null(dim(y)) && !isS4(y)) y <- if (is.null(m) || m == 1L || count != 1L) as.matrix(y) else t(y)
  if (!is.double(y) || is.object(y) || length(dim(y)) != 2L || nrow(y) != count) {
    y <- open_columns(y, count, float32 = FALSE, "y", sprintf("there are %d observations", count))
  }
  if (!is.null(m) && ncol(y) != m) {
    stop_gpucholmod("dimension_mismatch", sprintf("'y' has %d columns, the fit %d responses", ncol(y), m),
                    list(expected = m, actual = ncol(y)))
  }
  if (!is.null(fit)) in_order(y, fit$names[[2L]], "y") else y
}

# Stops where a matrix has a value that is not finite.
require_finite <- function(x, argument) {
  if (all(is.finite(x))) return(invisible())
  at <- match(FALSE, is.finite(x))
  row <- (at - 1L) %% nrow(x) + 1L
  col <- (at - 1L) %/% nrow(x) + 1L
  stop_gpucholmod("not_finite",
                  sprintf("'%s' has a value that is not finite at [%d, %d]%s", argument, row, col,
                          if (is.na(x[[at]]) && !is.nan(x[[at]])) "; na.action = na.omit leaves such observations out"
                          else ""),
                  list(argument = argument, row = row, col = col, value = x[[at]]))
}

# Returns missing values, which are logical in R where there is nothing else, as numbers.
missing_numbers <- function(x) {
  if (is.logical(x) && !is.object(x) && length(x) && all(is.na(x))) storage.mode(x) <- "double"
  x
}

# Returns a weight for each of so many observations, which may be missing.
weights_of <- function(weights, count) {
  weights <- without_class(missing_numbers(weights))
  if (!is.numeric(weights) || is.object(weights)) finite_numbers(weights, "weights")  # says what they are
  if (!length(weights) %in% c(1L, count)) {
    stop_bad_argument("weights", weights,
                      sprintf("must be one number that is not negative, or one for each of %d observations", count))
  }
  rep_len(as.double(weights), count)
}

# Checks the weights of observations or the penalties of regressors, and returns `count` of them. This is not
# check_weights(): a weighted sum of squares has no negative weights, so update() alone makes them, to remove rows.
check_not_negative <- function(x, argument, count, of) {
  x <- finite_numbers(without_class(x), argument)
  if (any(x < 0) || !length(x) %in% c(1L, count)) {
    why <- sprintf("must be one number that is not negative, or one for each of %d %s", count, of)
    stop_bad_argument(argument, x, why)
  }
  rep_len(x, count)
}

# Returns penalties, which may have the names of regressors, in the order of these. One number is for all of them.
penalties_in_order <- function(ridge, names) {
  own <- names(ridge)
  if (is.null(own) || is.null(names)) return(ridge)
  if (length(ridge) == 1L && !own %in% names) return(unname(ridge))
  if (length(ridge) == 1L && length(names) > 1L) stop_unknown_columns(own, names, "ridge")
  if (length(ridge) != length(names)) return(ridge)
  places <- order_of_names(own, names, "ridge")
  if (is.null(places)) ridge else ridge[places]
}

# Returns the last rows of observations, at most `window`.
last_rows <- function(rows, window) {
  count <- length(rows$w)
  if (count <= window) return(rows)
  some_rows(rows, seq.int(count - window + 1, count))
}
some_rows <- function(rows, which) {
  list(x = rows$x[, which, drop = FALSE], y = rows$y[, which, drop = FALSE], w = rows$w[which])
}

# Fits that come one from the other share a log of observations, an environment list(x, y, w, age, used): each has
# fit$kept of them, behind the first fit$first, and `used` are there. The newest fit writes behind its own; another one,
# which would overwrite rows of that, copies its rows first. So an update copies nothing that stays, on average.

# Returns a fit whose log has `rows` behind its own, which src/ may read; log$used says later that they are there.
keep <- function(fit, rows) {
  count <- length(rows$w)
  log <- fit$history
  end <- fit$first + fit$kept
  if (is.null(log) || log$used != end || end + count > length(log$w)) {
    log <- new_log(fit, count)
    fit$history <- log
    fit$first <- 0
  }
  rcpp_rls_append(log, rows, fit$first + fit$kept, fit$age)
  fit$kept <- fit$kept + count
  log$used <- fit$first + fit$kept
  fit
}

# Returns a log with the rows that a fit has, and room for twice as many, and `more`.
new_log <- function(fit, more) {
  own <- fit$first + seq_len(fit$kept)
  room <- 2 * (fit$kept + more) + 16
  old <- fit$history
  if (is.null(old)) old <- list(x = matrix(0, nrow(fit$z), 0L), y = matrix(0, ncol(fit$z), 0L))
  log <- new.env(parent = emptyenv())
  for (part in c("x", "y")) log[[part]] <- rcpp_rls_widened(old[[part]], fit$first, fit$kept, room)
  for (part in c("w", "age")) log[[part]] <- c(old[[part]][own], numeric(room - length(own)))
  log$used <- fit$kept
  log
}

# Returns the rows that a fit keeps: list(x, y, w), the weights as they are by now.
kept_rows <- function(fit) {
  own <- fit$first + seq_len(fit$kept)
  list(x = fit$history$x[, own, drop = FALSE], y = fit$history$y[, own, drop = FALSE],
       w = fit$history$w[own] * exp(fit$history$age[own] - fit$age))
}

# Stops unless a fit keeps its rows.
require_rows <- function(fit, what) {
  if (is.null(fit$history)) {
    stop_gpucholmod("rows_not_kept", sprintf("%s needs the observations: fit with keep_rows = TRUE", what))
  }
}

# Returns the observations of new data for a fit: of a data frame for a fit of a formula by its terms.
new_observations <- function(fit, newdata, y, weights) {
  if (is.null(weights)) weights <- if (is_modelled(fit, newdata)) own_weights(fit, newdata) else 1
  if (is_one_observation(newdata, y, weights, dim(fit$z))) {
    return(list(x = matrix(newdata), y = matrix(y), w = as.double(weights)))
  }
  if (!is_modelled(fit, newdata)) {
    if (is.null(y)) stop_no_responses(fit, newdata)
    return(observations(newdata, y, weights, fit))
  }
  if (!is.null(y)) stop_bad_argument("y", NULL, "is not needed: the formula tells the response in 'newdata'")
  modelled_observations(fit, newdata, weights)
}

# Stops because new observations have no responses.
stop_no_responses <- function(fit, newdata) {
  if (is.null(fit$terms)) stop_bad_argument("y", NULL, "is missing: the responses of the new observations")
  stop_bad_argument("newdata", newdata,
                    paste("must be a data frame with the variables of the formula, or, if 'y' gives the responses,",
                          "a matrix of the regressors"))
}

# Is true for one observation without names, which need not be looked at any further. d: the numbers of coefficients and
# responses.
is_one_observation <- function(x, y, w, d) {
  is.double(x) && is.null(attributes(x)) && length(x) == d[[1L]] && is.double(y) && is.null(attributes(y)) &&
    length(y) == d[[2L]] && is.double(w) && length(w) == 1L && is.null(attributes(w)) &&
    all(is.finite(c(x, y, w))) && w >= 0
}

# Returns what is done with missing values: "omit" or "fail".
na_action <- function(action) {
  known <- list(na.omit = "omit", na.exclude = "omit", na.fail = "fail", na.pass = "fail")
  if (is.function(action)) {
    same <- vapply(names(known), function(name) identical(action, getExportedValue("stats", name)), NA)
    action <- names(known)[same]
  }
  if (!is.character(action) || length(action) != 1L || !action %in% names(known)) {
    stop_bad_argument("na.action", action, "must be na.omit, na.exclude or na.fail")
  }
  known[[action]]
}
