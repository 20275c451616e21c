# Recursive and rolling regression: update() of a window of rls(), and rolling() beside lm.fit() in a loop and, where it
# is installed, package rollRegres, in microseconds.
#
#   Rscript inst/bench/regression.R [--windows=250,1000,5000,50000] [--p=10] [--steps=2000] [--wide=500x2000x16]
#                                   [--repeats=5] [--out=FILE]
#
# --windows: rows of the windows of p regressors, moved on by one row `steps` times; --wide: p, rows and rows at a time
# of one window more. A figure is the least of the repeats, each the mean of all steps; `off` is the largest difference
# of the last coefficients from those of lm.fit(), relative to the largest of these. Of rolling() there is the first of
# --windows: coefficients, standard errors, sigma and R-squared; of the others coefficients.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

numbers <- function(text, by = ",") as.numeric(strsplit(text, by)[[1L]])
windows <- numbers(option("windows", "250,1000,5000,50000"))
p <- as.numeric(option("p", "10"))
steps <- as.numeric(option("steps", "2000"))
wide <- numbers(option("wide", "500x2000x16"), "x")
repeats <- as.numeric(option("repeats", "5"))
out <- option("out", character(0))

least <- function(f, count) 1e6 * min(vapply(seq_len(repeats), function(i) system.time(f())[["elapsed"]], 0)) / count
draw <- function(rows, p) {
  x <- cbind(1, matrix(rnorm(rows * (p - 1)), rows))
  list(x = x, y = drop(x %*% rnorm(p)) + rnorm(rows))
}
compare <- function(beta, x, y) {
  expected <- lm.fit(x, y)$coefficients
  max(abs(beta - expected)) / max(abs(expected))
}

# Moves a window on by `at_a_time` rows, so many steps.
move <- function(window, p, at_a_time, steps) {
  set.seed(1)
  data <- draw(window + steps * at_a_time, p)
  blocks <- lapply(seq_len(steps), function(i) window + (i - 1) * at_a_time + seq_len(at_a_time))
  x <- lapply(blocks, function(rows) if (at_a_time == 1) data$x[rows, ] else data$x[rows, , drop = FALSE])
  y <- lapply(blocks, function(rows) data$y[rows])
  begin <- seq_len(window)
  first <- rls(data$x[begin, , drop = FALSE], data$y[begin], window = window, backend = "cpu")
  us <- least(function() {
    fit <<- first
    for (i in seq_len(steps)) fit <<- update(fit, x[[i]], y[[i]])
  }, steps)
  last <- utils::tail(seq_along(data$y), window)
  data.frame(what = "update()", window, p, rows = at_a_time, us, off = compare(coef(fit), data$x[last, ], data$y[last]))
}

# Fits all windows of the data.
roll <- function(window, p, steps) {
  set.seed(1)
  data <- draw(window + steps - 1, p)
  ends <- window + seq_len(min(steps, 500)) - 1
  us <- c("rolling()" = least(function() path <<- rolling(data$x, data$y, window), steps),
          "lm.fit()" = least(function() for (i in ends) {
            rows <- (i - window + 1):i
            lm.fit(data$x[rows, ], data$y[rows])
          }, length(ends)))
  if (requireNamespace("rollRegres", quietly = TRUE)) {
    us[["rollRegres"]] <- least(function() rollRegres::roll_regres.fit(data$x, data$y, window, do_compute = "sigmas"),
                                steps)
  }
  last <- utils::tail(seq_along(data$y), window)
  off <- compare(path$coefficients[steps, ], data$x[last, ], data$y[last])
  data.frame(what = names(us), window, p, rows = 1, us = unname(us), off = ifelse(names(us) == "rolling()", off, NA))
}

fit <- path <- NULL
measured <- do.call(rbind, c(lapply(windows, move, p, 1, steps),
                             list(move(wide[[2]], wide[[1]], wide[[3]], min(steps, 100)),
                                  roll(windows[[1L]], p, 10 * steps))))
print(measured, digits = 3, row.names = FALSE)
if (length(out)) save_measurements(measured, out, "regression.R")
