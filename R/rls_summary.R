# The summary of a fit of rls(), and what is printed: rls_fit.R has the help page.

#' @rdname summary.rls
#' @export
summary.rls <- function(object, ...) {
  if (...length()) require_no_more(...)
  require_fit(object)
  require_one_response(object, "summary()")
  with_memory({
    known <- solved(object, inverse = TRUE, deviance = TRUE)
    rank <- length(known$columns)
    df <- freedom(object, known)
    variance <- variances(object, known)
    beta <- known$beta[known$columns, 1L]
    error <- sqrt(diag(unscaled(object, known)) * variance)
    t <- beta / error
    names <- coef_names(object)
    names <- if (is.null(names)) paste0("x", seq_len(nrow(object$z))) else names
    table <- cbind(Estimate = beta, `Std. Error` = error, `t value` = t,
                   `Pr(>|t|)` = if (df > 0) 2 * stats::pt(-abs(t), df) else rep(NA_real_, rank))
    rownames(table) <- names[known$columns]
    fitted <- if (object$penalised) list() else goodness(object, known, df, variance)
    structure(c(list(call = object$call, coefficients = table,
                     aliased = stats::setNames(is.na(known$beta[, 1L]), names), sigma = sqrt(variance),
                     df = c(rank, df, nrow(object$z)), nobs = object$count, what = describe(object)), fitted),
              class = "summary.rls")
  })
}

# Returns list(r.squared, adj.r.squared, fstatistic), as summary.lm() defines them.
goodness <- function(fit, known, df, variance) {
  rank <- length(known$columns)
  ones <- if (is.null(fit$history)) fit$intercept else all(kept_rows(fit)$x[1L, ] == 1)
  intercept <- ones && 1L %in% known$columns
  mss <- sum(known$effects[if (intercept) -1L else seq_len(rank), 1L]^2)
  rss <- known$deviance
  fitted <- rank - intercept
  r2 <- if (fitted > 0) mss / (mss + rss) else 0
  list(r.squared = r2, adj.r.squared = if (fitted > 0) 1 - (1 - r2) * ((fit$count - intercept) / df) else 0,
       fstatistic = if (fitted > 0) c(value = mss / fitted / variance, numdf = fitted, dendf = df))
}

# Returns what kind of fit it is, in words.
describe <- function(fit) {
  paste0(sprintf("Recursive least squares: %d coefficients, %s observations", nrow(fit$z), format(fit$count)),
         if (is.finite(fit$window)) sprintf(", the last %s", format(fit$window)) else "",
         if (fit$on_gpu) "; the factor is on the GPU" else "")
}

#' @rdname summary.rls
#' @param x A fit, or its summary.
#' @param digits How many to show.
#' @export
print.summary.rls <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  if (!is.null(x$call)) cat("Call: ", paste(deparse(x$call), collapse = "\n"), "\n", sep = "")
  cat(x$what, "\n\n", sep = "")
  if (any(x$aliased)) cat(sprintf("Not determined, as they depend on others: %s\n",
                                  paste(names(x$aliased)[x$aliased], collapse = ", ")))
  if (nrow(x$coefficients)) stats::printCoefmat(x$coefficients, digits = digits, ...) else cat("No coefficients\n")
  cat(sprintf("\nResidual standard error: %s on %s degrees of freedom\n", format(signif(x$sigma, digits)),
              format(x$df[[2L]], digits = digits)))
  if (!is.null(x$r.squared) && nrow(x$coefficients)) {
    cat(sprintf("R-squared: %s, adjusted: %s\n", format(x$r.squared, digits = digits),
                format(x$adj.r.squared, digits = digits)))
  }
  if (!is.null(x$fstatistic)) {
    f <- unname(x$fstatistic)
    cat(sprintf("F-statistic: %s on %s and %s degrees of freedom, p-value: %s\n", format(f[[1L]], digits = digits),
                format(f[[2L]]), format(f[[3L]], digits = digits),
                format.pval(stats::pf(f[[1L]], f[[2L]], f[[3L]], lower.tail = FALSE), digits = digits)))
  }
  invisible(x)
}

#' @rdname summary.rls
#' @export
print.rls <- function(x, digits = max(3L, getOption("digits") - 3L), ...) {
  if (...length()) require_no_more(...)
  require_fit(x)
  cat(describe(x), "\n", sep = "")
  print(coef(x), digits = digits)
  cat(sprintf("deviance %s\n", paste(format(deviance(x), digits = digits), collapse = ", ")))
  invisible(x)
}
