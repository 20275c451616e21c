# Rolling regression beside lm() of every window.

set.seed(21)
n <- 120
x <- cbind(`(Intercept)` = 1, a = rnorm(n), b = rnorm(n))
y <- drop(x %*% c(1, 2, -1)) + rnorm(n)

# Compares windows of rolling() with lm() of these rows.
expect_windows <- function(path, windows, x, y, weights = rep(1, nrow(x)), tolerance = 1e-10) {
  expect_length(path$end, length(windows))
  for (i in seq_along(windows)) {
    rows <- windows[[i]]
    all <- lm(y[rows] ~ 0 + x[rows, ], weights = weights[rows])
    said <- summary(lm(y[rows] ~ x[rows, -1], weights = weights[rows]))
    expect_equal(unname(path$coefficients[i, ]), unname(coef(all)), tolerance = tolerance)
    expect_equal(unname(path$std.error[i, ]), unname(sqrt(diag(vcov(all)))), tolerance = tolerance)
    expect_equal(c(path$sigma[[i]], path$r.squared[[i]]), c(said$sigma, said$r.squared), tolerance = tolerance)
    expect_identical(c(path$nobs[[i]], path$df.residual[[i]]), as.double(c(nobs(all), df.residual(all))))
  }
}

test_that("every window, or every so many of them, has what lm() says of it", {
  path <- rolling(x, y, window = 20)
  expect_identical(path$end, 20:n)
  expect_windows(path, lapply(20:n, function(i) (i - 19L):i), x, y)
  expect_identical(colnames(coef(path)), colnames(x))
  path <- rolling(x, y, window = 20, by = 15, weights = rep(c(1, 0, 2), 40))
  expect_equal(path$end, seq(20, n, 15))
  expect_windows(path, lapply(path$end, function(i) (i - 19L):i), x, y, rep(c(1, 0, 2), 40))
  path <- rolling(x, y, window = 20, partial = TRUE)
  expect_identical(path$end, seq_len(n))
  expect_identical(is.na(path$coefficients[2, ]), c(`(Intercept)` = FALSE, a = FALSE, b = TRUE))
})

test_that("windows of time, and groups, have the rows that they should", {
  times <- as.Date("2026-01-01") + cumsum(rep(c(0, 1, 1, 3), 30))
  path <- rolling(x, y, window = as.difftime(4, units = "weeks"), times = times)
  rows <- lapply(path$end, function(i) which(times > times[i] - 28 & times <= times[i]))
  expect_windows(path, rows, x, y)
  expect_identical(path$end, which(times - 28 >= times[[1L]]))
  minutes <- rolling(x, y, as.difftime(20, units = "mins"), times = as.difftime(seq_len(n), units = "mins"))
  expect_equal(minutes$coefficients, rolling(x, y, 20)$coefficients[-1, ])
  expect_error(rolling(x, y, as.difftime(20, units = "mins"), times = seq_len(n)), class = "gpucholmod_bad_argument")
  groups <- rep(c("B", "A", "B"), 40)
  path <- rolling(x, y, window = 15, groups = groups)
  rows <- lapply(path$end, function(i) utils::tail(which(groups == groups[i] & seq_along(groups) <= i), 15))
  expect_windows(path, rows, x, y)
  expect_identical(path$groups, groups[path$end])
  expect_setequal(path$end, c(which(groups == "A")[15:40], which(groups == "B")[15:80]))
})

test_that("outliers that have left, exact fits and collinear stretches are as for lm.fit()", {
  for (size in 10^c(4, 8, 12)) {
    far <- x
    far[30, 2] <- size
    wild <- replace(y, 60, size)
    path <- rolling(far, wild, window = 12)
    for (i in which(path$end > 41 & path$end < 60 | path$end > 71)) {
      rows <- path$end[i] - 11:0
      all <- lm.fit(far[rows, ], wild[rows])
      expect_equal(path$coefficients[i, ], all$coefficients, tolerance = 1e-10)
      expect_equal(path$sigma[i], sqrt(sum(all$residuals^2) / 9), tolerance = 1e-10)
    }
  }
  exact <- rolling(x, drop(x %*% 1:3), window = 12)
  expect_equal(exact$coefficients, matrix(1:3, 109, 3, byrow = TRUE), ignore_attr = TRUE, tolerance = 1e-12)
  expect_lt(max(exact$sigma), 1e-12)
  still <- x
  still[40:70, 3] <- 2
  path <- rolling(still, y, window = 10)
  expect_identical(which(is.na(path$coefficients[, 3])), 40:61)
  expect_equal(path$coefficients[45, 1:2], lm.fit(still[45:54, 1:2], y[45:54])$coefficients, tolerance = 1e-12)
})

test_that("several responses, formulas and data frames", {
  path <- rolling(x, cbind(u = y, v = y^2), window = 30)
  one <- rolling(x, y^2, window = 30)
  expect_equal(path$coefficients[, 4:6], one$coefficients, tolerance = 1e-13, ignore_attr = TRUE)
  expect_identical(colnames(path$coefficients)[c(1, 6)], c("u:(Intercept)", "v:b"))
  expect_equal(path$sigma[, "v"], one$sigma, tolerance = 1e-14)
  data <- data.frame(y, a = x[, 2], b = x[, 3], w = runif(n), g = rep(1:2, 60))
  path <- rolling(y ~ a + b, data, window = 25, weights = w, groups = g, by = 2)
  expect_identical(path, rolling(x, y, window = 25, weights = data$w, groups = data$g, by = 2))
  frame <- as.data.frame(path)
  expect_identical(names(frame), c("end", "groups", "(Intercept)", "a", "b", "std.error.(Intercept)", "std.error.a",
                                   "std.error.b", "sigma", "r.squared", "nobs", "df.residual"))
  expect_output(print(path), "windows, 3 coefficients")
})

test_that("a plot is drawn, and gives back what it sets", {
  grDevices::pdf(NULL)
  on.exit(grDevices::dev.off())
  before <- graphics::par("mfrow")
  expect_invisible(plot(rolling(x, y, window = 30), "a"))
  plot(rolling(x, y, window = 30, times = as.POSIXct("2026-01-01", tz = "UTC") + seq_len(n)))
  expect_identical(graphics::par("mfrow"), before)
  expect_error(plot(rolling(x, y, window = 30), "z"), class = "gpucholmod_bad_argument")
})

test_that("what cannot be is told, and no window is no error", {
  expect_error(rolling(x, y, window = 0), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, y, window = 10, by = 0), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, y, window = 10, times = n:1), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, y, window = 10, times = 1:3), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, y, window = -1, times = 1:n), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, y, window = 10, groups = 1), class = "gpucholmod_bad_argument")
  expect_error(rolling(x, replace(y, 3, NA), window = 10), class = "gpucholmod_not_finite")
  expect_error(rolling(y ~ nothing, data.frame(y = y), window = 10), class = "gpucholmod_bad_model")
  expect_warning(none <- rolling(x, y, window = n + 1), class = "gpucholmod_no_window")
  expect_identical(dim(coef(none)), c(0L, 3L))
  expect_error(plot(none), class = "gpucholmod_bad_argument")
  expect_identical(dim(coef(rolling(x[0, ], y[0], window = 3))), c(0L, 3L))
  path <- rolling(x, replace(y, 3, NA), window = 10, times = 1:n, na.action = na.omit)
  expect_equal(path[c("coefficients", "times")], rolling(x[-3, ], y[-3], window = 10, times = (1:n)[-3])[c(2, 8)])
})

test_that("what a rolling regression has for each window is found by R's functions, the rest is refused", {
  set.seed(8)
  X <- cbind(1, normal(40, 2))
  path <- rolling(X, rnorm(40), window = 10)
  expect_identical(sigma(path), path$sigma)
  expect_identical(nobs(path), path$nobs)
  expect_identical(df.residual(path), path$df.residual)
  expect_equal(deviance(path), path$sigma^2 * 7)
  both <- rolling(X, normal(40, 2), window = 10)
  expect_equal(deviance(both), both$sigma^2 * 7)
  expect_identical(deviance(rolling(y ~ x, data.frame(y = c(1, 3, 2), x = 1:3), window = 2)), c(0, 0))
  for (f in list(residuals, fitted, predict, weights)) expect_error(f(path), class = "gpucholmod_not_supported")
})

test_that("names of variables and formulas are no times or groups", {
  d <- data.frame(y = rnorm(20), x = rnorm(20), at = 1:20, shop = gl(2, 10))
  expect_error(rolling(y ~ x, d, window = 5, times = "at"), "times = at", class = "gpucholmod_bad_argument")
  expect_error(rolling(y ~ x, d, window = 5, groups = ~shop), "groups = shop", class = "gpucholmod_bad_argument")
})
