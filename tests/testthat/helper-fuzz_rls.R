# Random calls, see helper-fuzz.R: histories of recursive regressions, beside lm.fit() of the rows that count.

fuzz_rls <- function(gpu) {
  p <- whole(1L, 6L)
  m <- one_of(1:2, c(4, 1))
  window <- one_of(list(Inf, whole(1L, 40L)))
  ridge <- one_of(list(0, 10^runif(p, -3, 2)))
  keep_rows <- is.finite(window) || chance(0.3)
  home <- if (gpu && chance(0.2)) "cuda" else "cpu"
  draw <- rows_of_a_stream(p, m)
  rows <- draw(one_of(c(0L, 1L, p, 3L * p, 40L)))
  now <- saved <- list(fit = rls(rows$x, rows$y, rows$w, ridge, window, keep_rows = keep_rows, backend = home),
                       rows = last_of(rows, window))
  for (step in seq_len(whole(1L, 25L))) {
    kept <- length(now$rows$w)
    if (chance(0.1)) {  # the history forks
      now <- saved
    } else if (keep_rows && kept > 1L && chance(0.1)) {
      gone <- sample(kept, whole(1L, kept - 1L))
      now <- list(fit = drop_rows(now$fit, gone), rows = some_of(now$rows, -gone))
    } else {
      new <- draw(one_of(c(1L, 2L, whole(0L, 12L)), c(6, 2, 1)))
      now <- list(fit = update(now$fit, new$x, new$y, new$w), rows = last_of(Map(join_rows, now$rows, new), window))
    }
    if (chance(0.2)) saved <- now
  }
  record(sprintf("rls: p %d, m %d, window %s, %s, %s", p, m, window, if (any(ridge > 0)) "ridge" else "plain", home),
         "ok", check_rls(now$fit, now$rows, rep_len(ridge, p)))
}

join_rows <- function(a, b) if (is.matrix(a)) rbind(a, b) else c(a, b)
some_of <- function(rows, which) lapply(rows, function(x) if (is.matrix(x)) x[which, , drop = FALSE] else x[which])
last_of <- function(rows, window) some_of(rows, utils::tail(seq_along(rows$w), min(window, length(rows$w))))

# Returns a function that draws so many observations of one model: list(x, y, w).
rows_of_a_stream <- function(p, m) {
  sizes <- 10^runif(p, -6, 6)
  truth <- matrix(rnorm(p * m), p) / sizes
  noise <- one_of(c(1, 1e-3, 0))
  intercept <- chance(0.4)
  means <- c(0, if (intercept) sizes[-1L] * 10^runif(p - 1L, 0, 5) else numeric(p - 1L))
  function(k) {
    x <- matrix(rnorm(k * p), k, p) * rep(sizes, each = k)
    x <- x + rep(means, each = k)
    if (intercept || chance(0.3)) x[, 1L] <- 1
    if (p > 1L && chance(0.2)) x[, p] <- x[, 1L] # collinear for a while
    y <- x %*% truth + noise * matrix(rnorm(k * m), k, m)
    if (k > 0L && chance(0.1)) y[whole(1L, k), ] <- 10^runif(1, 2, 9)
    list(x = x, y = y, w = if (chance(0.3)) sample(c(0, 0.5, 1, 2), k, TRUE) else rep(1, k))
  }
}

# Compares a fit with lm.fit() of its rows, and of rows for the ridge penalties. Columns are brought to norm 1, so that
# coefficients are in units of what they do. Where it is hard to say which columns depend on others, nothing is
# compared.
check_rls <- function(fit, rows, ridge) {
  p <- length(ridge)
  x <- rbind(sqrt(rows$w) * rows$x, diag(sqrt(ridge), p))
  y <- rbind(sqrt(rows$w) * rows$y, matrix(0, p, ncol(rows$y)))
  norms <- sqrt(colSums(x^2))
  norms[norms == 0] <- 1
  decomposed <- qr(x / rep(norms, each = nrow(x)), tol = 1e-7)
  share <- abs(diag(qr.R(decomposed)))[seq_len(min(decomposed$rank + 1L, p))]
  if (any(share > 1e-12 & share < 1e-4)) return(character())
  rank <- decomposed$rank
  beta <- coef(fit)
  beta <- if (is.matrix(beta)) unname(beta) else matrix(beta)
  expected <- matrix(NA_real_, p, ncol(y))
  for (j in seq_len(ncol(y))) if (rank > 0L) expected[, j] <- qr.coef(decomposed, y[, j])
  rest <- y - (x / rep(norms, each = nrow(x))) %*% ifelse(is.na(expected), 0, expected)
  size <- max(sqrt(colSums(y^2)), 1e-300)
  off <- abs(beta * norms - expected)
  dependent <- sort(decomposed$pivot[seq_len(p) > rank])
  c(if (!identical(which(is.na(beta[, 1L])), dependent)) "other columns are NA than lm() says",
    if (any(off > 1e-7 * size, na.rm = TRUE)) {
      sprintf("coefficients are off by %.1e of |y|", max(off, na.rm = TRUE) / size)
    },
    if (any(abs(unname(deviance(fit)) - colSums(rest^2)) > 1e-9 * colSums(rest^2) + 1e-14 * size^2))
      "the deviance is not that of the residuals",
    if (fit$count != sum(rows$w != 0)) "the number of observations is not that of the rows that count")
}
