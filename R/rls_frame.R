# The data of a formula, for a fit of rls(): model frames, and what their variables must be.

# Is true where the formula of the fit finds its variables in the new data.
is_modelled <- function(fit, newdata) !is.null(fit$terms) && is.list(newdata)

# Returns the weights that the call of a fit of a formula names, in the new data; 1 if it names none. Stops unless the
# new data have the variables of the weights.
own_weights <- function(fit, newdata) {
  if (is.null(fit$weights_call)) return(1)
  if (!any(variables_in(fit$weights_call) %in% names(newdata)) || !all(fit$observed_weights %in% names(newdata))) {
    stop_bad_argument("weights", NULL, sprintf("is missing: the weights of the fit, %s, are not in 'newdata'",
                                               deparse1(fit$weights_call)))
  }
  as_model(eval(fit$weights_call, newdata, environment(fit$terms)))
}

# Returns the names of the variables of an expression: of x$y only x; without those that are `indexed`, as x in x[i], if
# that is FALSE.
variables_in <- function(expression, indexed = TRUE) {
  if (is.name(expression)) return(setdiff(as.character(expression), ""))
  if (!is.call(expression)) return(character())
  parts <- as.list(expression)[-1L]
  of <- if (is.name(expression[[1L]])) as.character(expression[[1L]]) else ""
  if (of %in% c("$", "@")) parts <- parts[1L]
  if (of %in% c("[", "[[") && !indexed) parts <- parts[-1L]
  unique(unlist(lapply(parts, variables_in, indexed), use.names = FALSE))
}

# Returns the value of a variable, or NULL.
value_of <- function(name, data, environment) {
  tryCatch(eval(as.name(name), data, environment), error = function(e) NULL)
}

# Returns the names of the variables of an expression that have a value for each of `count` observations: those in
# `data`, and others as long as that, but for those that are only indexed. Of a single observation, whose values are as
# long as a constant, these are variables that stand for themselves.
observed_variables <- function(expression, data, environment, count) {
  all <- variables_in(expression)
  is_long <- function(name) {
    value <- value_of(name, data, environment)
    (is.atomic(value) || is.data.frame(value)) && NROW(value) == count
  }
  within <- if (is.environment(data)) character() else intersect(all, names(data))
  if (!is.data.frame(data)) within <- Filter(is_long, within)
  alone <- vapply(Filter(is.name, as.list(expression)[-1L]), as.character, "")
  outside <- setdiff(if (count > 1L) variables_in(expression, indexed = FALSE) else alone, within)
  if (count == 1L && is.data.frame(data)) outside <- character()
  c(within, Filter(is_long, outside))
}

# Returns the number of observations of a formula, those that are left out among them.
observation_count <- function(terms, data) {
  if (is.data.frame(data)) return(nrow(data))
  NROW(eval(attr(terms, "variables")[[1L + attr(terms, "response")]], data, environment(terms)))
}

# Stops unless new data have all variables of the terms that have a value for each observation: R would take those that
# are missing from where the formula was written.
require_variables <- function(fit, newdata, terms) {
  absent <- setdiff(intersect(variables_in(attr(terms, "variables")), fit$observed), names(newdata))
  if (!length(absent)) return(invisible())
  stop_gpucholmod("bad_model", sprintf("'newdata' has no variable %s, which the formula has",
                                       paste(absent, collapse = ", ")), list(variable = absent))
}

# Returns the model frame of new data, with missing values.
frame_of <- function(fit, newdata, terms) {
  require_variables(fit, newdata, terms)
  newdata <- with_missing_values(newdata, fit$variables)
  frame <- as_model(stats::model.frame(terms, newdata, na.action = stats::na.pass, xlev = fit$xlevels))
  require_same_classes(frame, terms)
  frame
}

# Returns the matrix of regressors of a model frame of new data.
matrix_of <- function(fit, frame) {
  x <- as_model(stats::model.matrix(attr(frame, "terms"), frame, contrasts.arg = fit$contrasts))
  attr(x, "assign") <- attr(x, "contrasts") <- NULL
  x
}

# Returns the observations of new data for a fit of a formula, as observations() does.
modelled_observations <- function(fit, newdata, weights) {
  frame <- frame_of(fit, newdata, fit$terms)
  frame[["(weights)"]] <- weights_of(weights, nrow(frame))
  if (fit$na.action == "fail") require_complete(frame) else frame <- complete_part(frame)
  x <- matrix_of(fit, frame)
  y <- response_of(frame)
  require_no_infinite(frame, x, y)
  observations(x, y, frame[["(weights)"]], fit, na.action = "fail")
}

# Returns the observations of a model frame that have no missing values.
complete_part <- function(frame) {
  if (!anyNA(frame, recursive = TRUE)) return(frame)
  terms <- attr(frame, "terms")
  complete <- stats::complete.cases(frame)
  frame <- frame[complete, , drop = FALSE]
  attr(frame, "terms") <- terms
  attr(frame, "na.action") <- which(!complete)  # as model.frame() has it
  frame
}

# Stops where a variable of a model frame has a missing value.
require_complete <- function(frame) {
  if (!nrow(frame)) return(invisible())
  for (name in names(frame)) {
    row <- match(FALSE, stats::complete.cases(frame[[name]]))
    if (!is.na(row)) {
      stop_gpucholmod("not_finite",
                      sprintf("'%s' is missing in observation %d; na.action = na.omit leaves such observations out",
                              name, row), list(argument = name, row = row, col = 1L, value = NA))
    }
  }
}

# Stops where a variable of a model frame is infinite, if its regressors x or responses y are. Observations that have
# been left out are counted.
require_no_infinite <- function(frame, x, y = numeric()) {
  are_finite <- function(x) !is.numeric(x) || all(is.finite(x))
  if (are_finite(x) && are_finite(y)) return(invisible())
  for (name in grep("^\\(", names(frame), value = TRUE, invert = TRUE)) {
    value <- frame[[name]]
    if (is.factor(value) || !is.numeric(unclass(value)) || !any(is.infinite(unclass(value)))) next
    at <- match(TRUE, is.infinite(unclass(value)))
    row <- (at - 1L) %% nrow(frame) + 1L
    left_out <- attr(frame, "na.action")
    if (length(left_out)) row <- setdiff(seq_len(nrow(frame) + length(left_out)), left_out)[[row]]
    stop_gpucholmod("not_finite", sprintf("'%s' is not finite in observation %d", name, row),
                    list(argument = name, row = row, col = (at - 1L) %/% nrow(frame) + 1L, value = value[[at]]))
  }
}

# Is true for na.fail(), or its name.
is_na_fail <- function(action) identical(action, stats::na.fail) || identical(action, "na.fail")

# Returns the variables of a formula without their values. With them, with_missing_values() knows of what class missing
# values are.
empty_variables <- function(terms, data) {
  values <- lapply(stats::setNames(nm = all.vars(attr(terms, "variables"))), value_of, data, environment(terms))
  lapply(Filter(function(value) is.atomic(value) && !is.null(value), values), missing_like, 0L)
}

# Returns so many missing values of the class of a vector, a factor or a matrix.
missing_like <- function(value, count) {
  gone <- rep_len(NA_integer_, count)
  if (length(dim(value)) == 2L) value[gone, , drop = FALSE] else unname(value[gone])
}

# Returns new data in which a variable that has nothing but NA, which is logical in R, has missing values of the class
# that the variable has in the fit. variables: as empty_variables() returned them.
with_missing_values <- function(newdata, variables) {
  for (name in intersect(names(newdata), names(variables))) {
    value <- newdata[[name]]
    if (is.logical(value) && all(is.na(value)) && !is.logical(variables[[name]])) {
      newdata[[name]] <- missing_like(variables[[name]], NROW(value))
    }
  }
  newdata
}

# Stops unless the regressors in a model frame are of the classes that the terms of the fit say, as predict.lm() does.
require_same_classes <- function(frame, terms) {
  expected <- attr(terms, "dataClasses")
  response <- attr(terms, "response")
  names <- intersect(if (response > 0L) names(frame)[-response] else names(frame), names(expected))
  plain <- function(classes) replace(classes, classes == "ordered", "factor")
  expected <- plain(expected[names])
  actual <- plain(vapply(frame[names], stats::.MFclass, ""))
  wrong <- actual != expected & !(actual == "factor" & expected == "character")
  if (!any(wrong)) return(invisible())
  names <- names[wrong]
  expected <- unname(expected[wrong])
  actual <- unname(actual[wrong])
  stop_gpucholmod("bad_model",
                  sprintf("the new data are not of the classes of the fit: %s; convert them first",
                          paste(sprintf("'%s' is %s, not %s", names, actual, expected), collapse = ", ")),
                  list(variable = names, expected = expected, actual = actual))
}

# Stops where the arguments of a method for formulas that it hands on, in `given`, unevaluated, have names that are not
# among those of the `known` arguments, or their beginnings.
require_known_names <- function(given, known) {
  unknown <- Filter(function(name) nzchar(name) && !any(startsWith(known, name)), names(given))
  if (!length(unknown)) return(invisible())
  name <- unknown[[1L]]
  why <- switch(name, offset = "is not supported: subtract the offset from the response",
                contrasts = "is not supported: set the contrasts of the factors, or option 'contrasts'",
                sprintf("is not known here; known are %s", paste0("'", known, "'", collapse = ", ")))
  stop_bad_argument(name, given[[name]], why)
}

#' @rdname summary.rls
#' @importFrom stats model.matrix
#' @export
model.matrix.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_rows(object, "model.matrix()")
  x <- t(kept_rows(object)$x)
  if (!is.null(coef_names(object))) colnames(x) <- coef_names(object)
  x
}

#' @rdname summary.rls
#' @importFrom stats model.frame
#' @export
model.frame.rls <- function(formula, ...) {
  stop_gpucholmod("rows_not_kept", paste("a fit of rls() never keeps the variables of its formula; with keep_rows =",
                                         "TRUE, model.matrix() returns the regressors of the observations"))
}
