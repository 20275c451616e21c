# Windows and streams in which digits could get lost: what lm.fit() of the rows that count gives, after anything.

roll_on <- function(x, y, window, ...) {
  fit <- rls(x[seq_len(window), , drop = FALSE], y[seq_len(window)], window = window, backend = "cpu", ...)
  for (i in (window + 1L):length(y)) fit <- update(fit, x[i, ], y[i])
  fit
}

# Evaluates `code` with another function in the place of one of the package.
with_replaced <- function(name, other, code) {
  package <- asNamespace("gpucholmod")
  put <- function(value) {
    unlockBinding(name, package)
    assign(name, value, package)
    lockBinding(name, package)
  }
  old <- get(name, package)
  on.exit(put(old))
  put(other)
  force(code)
}

# Compares with lm.fit() of the last rows.
expect_as_lm <- function(fit, x, y, tolerance = 1e-10) {
  last <- utils::tail(seq_along(y), fit$window)
  all <- lm.fit(x[last, , drop = FALSE], y[last])
  expect_equal(unname(coef(fit)), unname(all$coefficients), tolerance = tolerance)
  expect_equal(deviance(fit), sum(all$residuals^2), tolerance = tolerance)
}

test_that("data that fit exactly for a while leave a window alive, with a deviance of 0", {
  fit <- roll_on(matrix(1, 13, 1), rep(3, 13), 10)
  expect_equal(coef(fit), 3, tolerance = 1e-14)
  expect_lt(deviance(fit), 1e-25)
  set.seed(5)
  x <- cbind(1, rnorm(300))
  fit <- roll_on(x, drop(x %*% c(1, 2)), 10)
  expect_equal(coef(fit), c(1, 2), tolerance = 1e-12)
  expect_lt(deviance(fit), 1e-20)
  y <- rnorm(20)
  for (i in 1:20) fit <- update(fit, x[i, ], y[i])
  expect_as_lm(fit, x[1:20, ], y)
})

test_that("an observation that has left a window leaves no trace", {
  y <- c(1, -1, 0, 1, 3, 2, -2, 1e10, 1, 2, 0, -2, 1, 3, 0)
  fit <- roll_on(matrix(1, 15, 1), y, 6)
  expect_equal(coef(fit), 2 / 3, tolerance = 1e-14)
  expect_equal(sigma(fit), sd(y[10:15]), tolerance = 1e-14)
  set.seed(4)
  x <- cbind(1, rnorm(600))
  y <- drop(x %*% c(1, 2)) + rnorm(600) * 0.1
  for (size in 10^(2:14)) {
    x[30, 2] <- size
    fit <- roll_on(x, y, 20)
    expect_as_lm(fit, x, y)
    expect_equal(vcov(fit), vcov(lm(y[581:600] ~ x[581:600, 2])), ignore_attr = TRUE, tolerance = 1e-10)
  }
})

test_that("of a block longer than the window only the last rows count", {
  set.seed(1)
  x <- cbind(1, rnorm(40))
  y <- rnorm(40)
  x[15, 2] <- 1e10
  expect_as_lm(update(rls(x[1:10, ], y[1:10], window = 10), x[11:40, ], y[11:40]), x, y, 1e-13)
  expect_as_lm(rls(x, y, window = 10), x, y, 1e-13)
})

test_that("columns of every scale are independent, and collinear ones are not", {
  set.seed(1)
  x <- cbind(1, rnorm(100) * 1e-9, rnorm(100) * 1e9)
  y <- drop(x %*% c(1, 1e9, 1e-9)) + rnorm(100)
  expect_equal(coef(rls(x, y)), unname(lm.fit(x, y)$coefficients), tolerance = 1e-12)
  x <- cbind(1, rep(0:1, c(60, 40)), rnorm(100))
  y <- rnorm(100)
  for (end in c(65, 68, 75, 95, 100)) {
    expect_as_lm(roll_on(x[56:end, ], y[56:end], 8), x[56:end, ], y[56:end], 1e-12)
  }
  fit <- roll_on(x[1:75, ], y[1:75], 10)
  expect_identical(is.na(coef(fit)), c(FALSE, TRUE, FALSE))
  for (i in c(1:5, 76:80)) fit <- update(fit, x[i, ], y[i])
  expect_as_lm(fit, x[c(1:5, 76:80), ], y[c(1:5, 76:80)], 1e-12) # it has come back
})

test_that("a fit may begin with fewer rows than columns, or none", {
  set.seed(2)
  x <- cbind(1, rnorm(12), rnorm(12))
  y <- rnorm(12)
  for (window in c(5, Inf)) {
    fit <- rls(x[0, ], y[0], window = window, backend = "cpu")
    expect_identical(coef(fit), rep(NA_real_, 3))
    for (i in 1:12) {
      fit <- update(fit, x[i, ], y[i])
      expect_as_lm(fit, x[1:i, , drop = FALSE], y[1:i], 1e-12)
    }
  }
})

test_that("with singular.ok = FALSE dependent columns are an error that leaves the fit", {
  x <- cbind(a = c(1, 1, 1, 1, 1), b = c(1, 2, 3, 3, 3))
  fit <- rls(x[1:3, ], 1:3, window = 3, singular.ok = FALSE, backend = "cpu")
  fit <- update(fit, x[4, ], 4)
  before <- coef(fit)
  error <- expect_error(update(fit, x[5, ], 5), class = "gpucholmod_singular_fit")
  expect_identical(error$columns, "b")
  expect_identical(coef(fit), before)
  expect_equal(coef(update(fit, x[1, ], 5)), lm.fit(x[c(3, 4, 1), ], c(3, 4, 5))$coefficients, tolerance = 1e-12)
})

test_that("observations of weight 0 do not count", {
  set.seed(3)
  x <- cbind(1, rnorm(10))
  y <- rnorm(10)
  w <- rep(1:0, c(7, 3))
  fit <- rls(x, y, w)
  expect_identical(df.residual(fit), 5)
  expect_equal(sigma(fit), sigma(lm(y ~ x[, 2], weights = w)), tolerance = 1e-12)
  fit <- update(rls(x[1:4, ], y[1:4], window = 5), x[5:10, ], y[5:10], w[5:10])
  expect_identical(nobs(fit), 2)
})

test_that("where no degree of freedom is left there is no variance, with a warning", {
  set.seed(6)
  fit <- rls(cbind(1, rnorm(20), rnorm(20)), rnorm(20), forget = 0.5)
  for (i in 1:200) fit <- update(fit, c(1, rnorm(2)), rnorm(1))
  expect_equal(nobs(fit), 2, tolerance = 1e-12)
  warning <- expect_warning(v <- vcov(fit), class = "gpucholmod_no_variance")
  expect_equal(warning$df, -1, tolerance = 1e-12)
  expect_identical(v, matrix(NA_real_, 3, 3))
})

test_that("a direction without news is forgotten with a warning, or keeps its ridge", {
  stream <- function(...) {
    set.seed(1)
    fit <- rls(matrix(0, 0, 2), numeric(), ridge = 1, forget = 0.5, backend = "cpu", ...)
    for (i in 1:1000) fit <- update(fit, c(rnorm(1), if (i <= 50) rnorm(1) else 0), rnorm(1))
    fit
  }
  warning <- expect_warning(fit <- stream(), class = "gpucholmod_forgotten_direction")
  expect_identical(warning$columns, 2L)
  expect_identical(is.na(coef(fit)), c(FALSE, TRUE))
  fit <- update(update(fit, c(1, 2), 3), c(1, 3), 4)
  expect_false(anyNA(coef(fit)))
  expect_error(stream(singular.ok = FALSE), class = "gpucholmod_singular_fit") |>
    expect_warning(class = "gpucholmod_forgotten_direction")
  fit <- expect_no_warning(stream(keep_ridge = TRUE))
  expect_lt(abs(coef(fit)[[2L]]), 1e-12)
  expect_gt(min(diag(crossprod(fit$R))), 0.9)
})

test_that("a ridge penalty that is kept is between 0.95 and 1 times what it was", {
  set.seed(2)
  x <- matrix(rnorm(120), 40)
  y <- rnorm(40)
  fit <- rls(x[1:5, ], y[1:5], ridge = c(1, 2, 3), forget = 0.97, keep_ridge = TRUE, backend = "cpu")
  for (i in 6:40) {
    fit <- update(fit, x[i, ], y[i])
    expect_true(fit$level >= 0.95 && fit$level <= 1)
  }
  w <- 0.97^pmin(40 - 1:40, 35)
  beta <- solve(crossprod(x, w * x) + fit$level * diag(1:3), crossprod(x, w * y))
  expect_equal(coef(fit), drop(beta), tolerance = 1e-12)
})

test_that("columns with large means cost no digits, and no decompositions", {
  set.seed(12)
  x <- cbind(1, 1e6 + matrix(rnorm(1800), 600))
  y <- 1e6 + rnorm(600) + x[, 2] - 1e6
  fit <- roll_on(x, y, 50)
  expect_gt(fit$account$moved, 1000) # rows that have come and gone since the last decomposition
  centred <- lm.fit(cbind(1, x[551:600, -1] - 1e6), y[551:600])
  expect_equal(coef(fit)[-1], unname(centred$coefficients[-1]), tolerance = 1e-9)
  expect_equal(sigma(fit), sqrt(sum(centred$residuals^2) / 46), tolerance = 1e-9)
  ridge <- rls(x[1:50, ], y[1:50], ridge = c(1, 2, 0, 3), window = 50, backend = "cpu")
  for (i in 51:100) ridge <- update(ridge, x[i, ], y[i])
  direct <- qr.solve(rbind(x[51:100, ], diag(sqrt(c(1, 2, 0, 3)))), c(y[51:100], rep(0, 4)))
  expect_equal(coef(ridge), direct, tolerance = 1e-6)
})

test_that("a huge response that has left does not make later answers decompose the rows", {
  set.seed(13)
  x <- cbind(1, rnorm(200))
  y <- replace(rnorm(200), 25, 1e12)
  fit <- roll_on(x, y, 20)
  expect_gt(fit$account$moved, 100)
  expect_lt(abs(fit$account$shift[[3L]]), 10)
  expect_as_lm(fit, x, y)
  constant <- roll_on(x, rep(c(0.1, 0.3), c(30, 170)), 20) # no rest at all
  expect_gt(constant$account$moved, 100)
})

test_that("numbers with names are numbers", {
  set.seed(1)
  x <- cbind(1, rnorm(20))
  y <- rnorm(20)
  named <- rls(x, y, forget = c(lambda = 0.9), tol = c(t = 1e-7), window = c(w = 15), backend = "cpu")
  named <- update(update(named, x[1, ], 1), x[2, ], 2, forget = c(a = 0.8))
  plain <- update(rls(x, y, forget = 0.9, window = 15, backend = "cpu"), x[1, ], 1)
  expect_identical(coef(update(named, x[3, ], 3)), coef(update(update(plain, x[2, ], 2, forget = 0.8), x[3, ], 3)))
})

test_that("missing values are left out where the user says so", {
  x <- cbind(1, c(1, 2, NA, 4, 5, 7))
  y <- c(1, NA, 3, 4, 5, 5)
  error <- expect_error(rls(x, y), class = "gpucholmod_not_finite")
  expect_identical(c(error$row, error$col), c(3L, 2L))
  fit <- rls(x[1:3, ], y[1:3], na.action = na.omit)
  fit <- update(fit, x[4:6, ], y[4:6])
  expect_equal(coef(fit), unname(coef(lm(y ~ x[, 2]))), tolerance = 1e-12)
  expect_error(update(fit, c(1, Inf), 1), class = "gpucholmod_not_finite")
})

test_that("rows are dropped at will, of those kept by number, of others by value", {
  set.seed(8)
  x <- cbind(1, rnorm(30))
  y <- rnorm(30)
  w <- runif(30)
  kept <- rls(x, y, w, keep_rows = TRUE, backend = "cpu")
  fit <- drop_rows(kept, c(3, 30, 7))
  expected <- lm(y ~ x[, 2], weights = w, subset = -c(3, 7, 30))
  gone <- c(3, 7, 30)
  by_value <- drop_rows(rls(x, y, w), newdata = x[gone, ], y = y[gone], weights = w[gone])
  for (fit in list(fit, by_value)) {
    expect_equal(coef(fit), unname(coef(expected)), tolerance = 1e-12)
    expect_equal(logLik(fit), logLik(expected), ignore_attr = TRUE, tolerance = 1e-12)
    expect_identical(nobs(fit), 27)
  }
  expect_identical(drop_rows(kept, integer()), kept)
  expect_error(drop_rows(kept, 31), class = "gpucholmod_bad_argument")
  expect_error(drop_rows(rls(x, y), 1), class = "gpucholmod_rows_not_kept")
  y[5] <- 1e6
  expect_error(drop_rows(rls(x, y), newdata = x[5, ], y = y[[5]]), class = "gpucholmod_lost_digits")
  y[5] <- 1
  x[4, 2] <- 1e9
  expect_error(drop_rows(rls(x, y), newdata = x[4, ], y = y[[4]]), class = "gpucholmod_lost_digits")
  expect_equal(coef(drop_rows(rls(x, y, keep_rows = TRUE), 4)), unname(coef(lm(y[-4] ~ x[-4, 2]))), tolerance = 1e-12)
})

test_that("an older fit goes on from where it was", {
  set.seed(9)
  x <- cbind(1, rnorm(60))
  y <- rnorm(60)
  old <- rls(x[1:10, ], y[1:10], window = 10, backend = "cpu")
  new <- old
  for (i in 11:30) new <- update(new, x[i, ], y[i])
  other <- update(old, x[41:45, ], y[41:45])
  expect_as_lm(new, x[1:30, ], y[1:30])
  expect_as_lm(other, x[c(1:10, 41:45), ], y[c(1:10, 41:45)])
  expect_as_lm(old, x[1:10, ], y[1:10])
  file <- tempfile()
  saveRDS(new, file)
  expect_as_lm(update(readRDS(file), x[31, ], y[31]), x[1:31, ], y[1:31])
})

test_that("NIST's regressions lose no digit by rows, and half a digit at most in a window", {
  digits <- function(beta, certified) min(15, -log10(max(abs(beta / certified - 1))))
  power <- function(x, degree) outer(x, 0:degree, `^`)
  x <- 0:20
  wampler <- list(list(power(x, 5), rowSums(power(x, 5)), rep(1, 6), 8.5),
                  list(power(x, 5), drop(power(x, 5) %*% 10^-(0:5)), 10^-(0:5), 12))
  certified <- c(-3482258.63459582, 15.0618722713733, -0.0358191792925910, -2.02022980381683, -1.03322686717359,
                 -0.0511041056535807, 1829.15146461355)
  cases <- c(wampler, list(list(cbind(1, as.matrix(longley[c("GNP.deflator", "GNP", "Unemployed", "Armed.Forces",
                                                            "Population", "Year")]) *
                                        rep(c(1, 1e3, 10, 10, 1e3, 1), each = 16)), 1000 * longley$Employed,
                                certified, 10)))
  for (case in cases) {
    n <- nrow(case[[1L]])
    rows <- rls(case[[1L]][0, ], numeric(), tol = 1e-14, backend = "cpu")
    for (i in seq_len(n)) rows <- update(rows, case[[1L]][i, ], case[[2L]][i])
    begin <- rbind(case[[1L]][n:1, ], case[[1L]])
    window <- rls(begin[1:n, ], 2 * case[[2L]], window = n, tol = 1e-14, backend = "cpu")
    for (i in seq_len(n)) window <- update(window, begin[n + i, ], case[[2L]][i])
    whole <- rls(case[[1L]], case[[2L]], tol = 1e-14, backend = "cpu")
    expect_gt(digits(unname(coef(whole)), case[[3L]]), case[[4L]])
    expect_gt(digits(unname(coef(rows)), case[[3L]]), case[[4L]])
    expect_gt(digits(unname(coef(window)), case[[3L]]), digits(unname(coef(whole)), case[[3L]]) - 0.5)
  }
})

test_that("on a GPU a fit passes through a singular stretch too", {
  set.seed(10)
  x <- cbind(1, rep(c(0, 1, 0), c(10, 12, 8)) * rnorm(30), rnorm(30))
  y <- rnorm(30)
  last <- c(28:30, 12, 15, 17)
  pass <- function(backend) {
    fit <- rls(x[1, , drop = FALSE], y[1], window = 6, backend = backend)
    fit$on_gpu <- TRUE
    for (i in 2:30) {
      fit <- update(fit, x[i, ], y[i])
      expect_as_lm(fit, x[1:i, ], y[1:i], 1e-9)
    }
    fit <- update(fit, x[last[4:6], ], y[last[4:6]])
    expect_s3_class(fit$R, "chol_factor")
    expect_as_lm(fit, x[last, ], y[last], 1e-9)
    expect_equal(vcov(fit), vcov(lm(y[last] ~ 0 + x[last, ])), ignore_attr = TRUE)
  }
  # Where there is none, ordinary memory stands in for it.
  if (gpu_info(memory = FALSE)$usable) pass("cuda")
  else with_replaced("gpu_factor", function(R, ...) chol_factor(R, backend = "cpu"), pass("cpu"))
})
