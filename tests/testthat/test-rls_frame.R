# The data of recursive regressions: classes, missing and infinite values, names, weights, and what is no argument.

days <- as.Date("2026-01-01") + 0:11
d <- data.frame(y = sin(1:12), x = as.double(1:12), g = gl(4, 3), s = rep(c("a", "b"), 6), day = days,
                f = rep(c(TRUE, FALSE, FALSE), 4), w = 1:12 / 4)
model <- y ~ x + g + s + format(day, "%d") + f

test_that("a variable of another class is an error with the variable and both classes", {
  fit <- rls(y ~ x + g + s, d)
  wrong <- list(x = c("4", "5"), x = factor(4:5), x = c(TRUE, FALSE), g = 1:2, s = 1:2)
  actual <- c("character", "factor", "logical", "numeric", "numeric")
  for (i in seq_along(wrong)) {
    new <- d[1:2, ]
    new[[names(wrong)[[i]]]] <- wrong[[i]]
    for (use in list(predict, update, function(fit, new) drop_rows(fit, newdata = new))) {
      error <- suppressWarnings(expect_error(use(fit, new), class = "gpucholmod_bad_model"))  # model.frame() warns too
      expect_identical(error[c("variable", "actual")], list(variable = names(wrong)[[i]], actual = actual[[i]]))
      expect_identical(error$expected, c(x = "numeric", g = "factor", s = "character")[[names(wrong)[[i]]]])
    }
  }
  same <- transform(d[1:2, ], x = as.integer(x), g = as.character(g), s = factor(s))
  expect_equal(predict(fit, same), predict(fit, d[1:2, ]))
  expect_equal(coef(update(fit, same)), coef(update(fit, d[1:2, ])))
})

test_that("a variable that is all NA has missing values of its own class", {
  fit <- suppressWarnings(rls(model, d))
  for (name in c("y", "x", "g", "s", "day", "f")) {
    new <- d[1:2, ]
    new[[name]] <- NA
    expect_identical(coef(update(fit, new)), coef(fit))
    expect_identical(nobs(update(fit, new)), 12)
    expect_identical(coef(drop_rows(fit, newdata = new)), coef(fit))
    if (name != "y") expect_identical(unname(suppressWarnings(predict(fit, new))), c(NA_real_, NA_real_))
  }
  new <- d[1:2, ]
  new$g <- c("1", NA)
  fit <- rls(y ~ x + g, d)
  expect_equal(predict(fit, new), c(predict(lm(y ~ x + g, d), d[1, ]), `2` = NA))
  expect_identical(nobs(update(fit, new)), 13)
  expect_identical(nobs(update(fit, d[1:2, ], weights = c(1, NA))), 13)
  local({
    g <- d$g
    x <- d$x
    y <- d$y
    expect_identical(nobs(update(rls(y ~ x + g), data.frame(y = 1, x = 1, g = NA))), 12)
  })
  Y <- cbind(d$y, d$x)
  fit <- rls(Y ~ w, list(Y = Y, w = d$w))
  expect_identical(nobs(update(fit, list(Y = matrix(NA, 2, 2), w = c(1, 2)))), 12)
})

test_that("what is infinite is an error, not missing", {
  expect_infinite <- function(code, argument) {
    error <- expect_error(code, class = "gpucholmod_not_finite")
    expect_identical(error$argument, argument)
  }
  d <- data.frame(y = cos(1:8), x = as.double(1:8), g = gl(2, 1, 8))
  fit <- rls(y ~ x * g, d)
  one <- data.frame(y = 1, x = 1, g = "1")
  expect_infinite(update(fit, transform(one, x = Inf)), "x")
  expect_infinite(update(fit, transform(one, y = -Inf)), "y")
  expect_infinite(update(fit, one, weights = Inf), "weights")
  expect_infinite(drop_rows(fit, newdata = transform(one, x = Inf)), "x")
  expect_infinite(rls(y ~ x * g, transform(d, x = replace(x, 3, Inf))), "x")
  expect_infinite(rolling(y ~ x * g, transform(d, x = replace(x, 3, Inf)), window = 5), "x")
  error <- expect_error(predict(fit, data.frame(x = c(NA, 1, Inf), g = "1")), class = "gpucholmod_not_finite")
  expect_identical(error$row, 3L)
  expect_identical(nobs(update(fit, transform(one, x = NaN))), 8)
  gap <- data.frame(y = 1, x = c(2, NA), g = "1", h = c(0, Inf))
  fit <- rls(y ~ x + h, transform(d, h = sin(x)))
  expect_identical(nobs(update(fit, gap)), 9)
  expect_identical(is.na(predict(fit, gap)), c(`1` = FALSE, `2` = TRUE))
  expect_infinite(rls(y ~ z, transform(d, z = as.difftime(c(Inf, 1:7), units = "secs"))), "z")
  expect_length(coef(rls(y ~ . - h, transform(d, h = Inf))), 3)
})

test_that("with na.fail missing values are the same error everywhere", {
  gaps <- transform(d, g = replace(g, 3, NA))
  fit <- rls(y ~ x + g, d, na.action = na.fail)
  for (use in list(function() rls(y ~ x + g, gaps, na.action = na.fail),
                   function() rls(y ~ x + g, gaps, na.action = "na.fail"),
                   function() rolling(y ~ x + g, gaps, window = 6, na.action = na.fail),
                   function() update(fit, gaps))) {
    error <- expect_error(use(), class = "gpucholmod_not_finite")
    expect_identical(error[c("argument", "row")], list(argument = "g", row = 3L))
  }
  expect_identical(nobs(rls(y ~ x + g, gaps, na.action = na.exclude)), 11)
})

test_that("responses and penalties with names are matched by them", {
  x <- cbind(a = 1, b = d$x)
  fit <- rls(x, cbind(u = d$y, v = d$w))
  expected <- coef(update(fit, c(1, 9), c(7, 0)))
  expect_identical(coef(update(fit, c(1, 9), c(v = 0, u = 7))), expected)
  expect_identical(coef(update(fit, c(1, 9), cbind(v = 0, u = 7))), expected)
  expect_identical(coef(update(fit, c(b = 9, a = 1), c(u = 7, v = 0))), expected)
  for (y in list(c(v = 0, w = 7), c(v = 0, 7), c(u = 0, 7), c(u = 1, u = 2))) {
    error <- expect_error(update(fit, c(1, 9), y), class = "gpucholmod_unknown_columns")
    expect_identical(error$argument, "y")
  }
  expect_error(drop_rows(fit, newdata = x[1, ], y = c(z = 1, u = 2)), class = "gpucholmod_unknown_columns")

  expected <- coef(rls(y ~ x, d, ridge = c(0, 1e6)))
  expect_identical(coef(rls(y ~ x, d, ridge = c(x = 1e6, "(Intercept)" = 0))), expected)
  expect_identical(coef(rls(y ~ x, d, ridge = c(lambda = 3))), coef(rls(y ~ x, d, ridge = 3)))
  for (ridge in list(c(x = 1), c(x = 1, 2), c(0, x = 1), c(x = 1, z = 2), c(x = 1, x = 2))) {
    error <- expect_error(rls(y ~ x, d, ridge = ridge), class = "gpucholmod_unknown_columns")
    expect_identical(error$argument, "ridge")
  }
})

test_that("columns of which some have names are not taken in another order", {
  fit <- rls(cbind(1, x = d$x, w = d$w^2), d$y)
  expected <- coef(update(fit, c(1, 2, 3), 4))
  expect_identical(unname(coef(update(fit, cbind(1, w = 3, x = 2), 4))), unname(expected))
  expect_identical(coef(update(fit, cbind(1, new = 2, 3), 4)), expected)
  expect_error(update(fit, cbind(1, w = 3, 2), 4), class = "gpucholmod_unknown_columns")
  expect_error(predict(fit, cbind(x = 1, 2, 3)), class = "gpucholmod_unknown_columns")
})

test_that("weights() has what forgetting has left of the weights that are kept", {
  expect_identical(weights(rls(y ~ x, d, weights = w, keep_rows = TRUE)), d$w)
  fit <- update(rls(cbind(1, d$x), d$y, window = 3, forget = 0.5), c(1, 2), 3, weights = 4)
  expect_equal(weights(fit), c(0.5, 0.5, 4))
  expect_error(weights(rls(y ~ x, d, weights = w)), class = "gpucholmod_rows_not_kept")
})

test_that("observations go with what forgetting has left of them, by number and by value", {
  x <- cbind(1, d$x)
  grow <- function(...) {
    fit <- rls(x[1:5, ], d$y[1:5], weights = 2, forget = 0.9, ...)
    for (i in 6:12) fit <- update(fit, x[i, ], d$y[i], weights = 2)
    fit
  }
  by_number <- drop_rows(grow(keep_rows = TRUE), 8)
  by_value <- drop_rows(grow(), newdata = x[8, ], y = d$y[8], weights = 2, left = 0.9^4)
  for (f in list(nobs, coef, deviance, sigma)) expect_equal(f(by_value), f(by_number), tolerance = 1e-12)
  expect_equal(nobs(by_value), 5 * 0.9^7 + sum(0.9^c(0:3, 5:6)), tolerance = 1e-12)
  for (left in list(0, 2, NA, "a", c(1, 1))) {
    error <- expect_error(drop_rows(grow(), newdata = x[8, ], y = 1, left = left), class = "gpucholmod_bad_argument")
    expect_identical(error$argument, "left")
  }
  expect_error(drop_rows(grow(keep_rows = TRUE), 8, left = 0.5), class = "gpucholmod_bad_argument")
  expect_equal(nobs(update(grow(), x[0, ], numeric())), 0.9 * nobs(grow())) # an update without observations
})

test_that("the regressors of the observations that are kept are those of lm()", {
  fit <- update(rls(y ~ x * g, d[1:5, ], keep_rows = TRUE), d[6:12, ])
  expect_equal(model.matrix(fit), unname(model.matrix(y ~ x * g, d)), ignore_attr = TRUE)
  expect_identical(colnames(model.matrix(fit)), names(coef(fit)))
  expect_identical(model.matrix(rls(cbind(1, d$x), d$y, window = 4)), cbind(1, d$x)[9:12, ])
  expect_error(model.frame(fit), class = "gpucholmod_rows_not_kept")
})

test_that("what a formula does not take is told by its name, unevaluated", {
  for (name in c("offset", "contrasts", "method", "y")) {
    for (call in list(quote(rls(y ~ x, d)), quote(rolling(y ~ x, d, window = 5)))) {
      call[[name]] <- quote(no_such_variable)
      error <- expect_error(eval(call), class = "gpucholmod_bad_argument")
      expect_identical(error$argument, name)
    }
  }
  expect_identical(nobs(rls(y ~ x, d, win = 5)), 5)
})

test_that("observations given the wrong way are told from numbers of rows and missing responses", {
  fit <- rls(y ~ x, d)
  x <- cbind(1, d$x)
  argument <- function(code) expect_error(code, class = "gpucholmod_bad_argument")$argument
  expect_identical(argument(drop_rows(fit, x, d$y)), "rows")
  expect_identical(argument(drop_rows(fit, d[1, ])), "rows")
  expect_identical(argument(update(fit, x)), "newdata")
  expect_identical(argument(update(rls(x, d$y), x)), "y")
  expect_identical(coef(update(fit, as.list(d[1:2, ]))), coef(update(fit, d[1:2, ])))
  expect_identical(unname(predict(fit, list(x = 3))), unname(predict(fit, d[3, ])))
})

test_that("time series are numbers", {
  x <- cbind(1, d$x)
  expected <- coef(rls(x, d$y, weights = d$w))
  expect_identical(coef(rls(x, ts(d$y), weights = ts(d$w))), expected)
  series <- data.frame(y = ts(d$y), x = ts(d$x), w = ts(d$w))
  fit <- update(rls(y ~ x, series[1:6, ], weights = w), series[7:12, ])
  expect_equal(unname(coef(fit)), expected)
  expect_identical(coef(rls(x, d$y, ridge = ts(1:2))), coef(rls(x, d$y, ridge = 1:2)))
  error <- expect_error(rls(x, d$y, weights = "a"), class = "gpucholmod_not_numeric")
  expect_identical(error[c("argument", "type")], list(argument = "weights", type = "character"))
})

test_that("the summary of a fit without observations has a table without rows", {
  for (fit in list(rls(cbind(1, d$x)[0, ], numeric()), rls(y ~ x, d[0, ]))) {
    expect_warning(said <- summary(fit), class = "gpucholmod_no_variance")
    expect_identical(dim(said$coefficients), c(0L, 4L))
    expect_identical(said[c("r.squared", "adj.r.squared")], list(r.squared = 0, adj.r.squared = 0))
    expect_false(any(grepl("Pr(", utils::capture.output(print(said)), fixed = TRUE)))
  }
})

test_that("new data have all variables of the formula: none is taken from where the formula was written", {
  d <- data.frame(x = 1:8, y = c(1, 3, 2, 5, 4, 6, 8, 7))
  x <- 99
  y <- 5
  fit <- rls(y ~ x, d[1:4, ])
  for (use in list(function() update(fit, data.frame(X = 5, y = 4)), function() predict(fit, data.frame(X = 5)),
                   function() drop_rows(fit, newdata = data.frame(X = 5, y = 4)))) {
    error <- expect_error(use(), "'newdata' has no variable x", class = "gpucholmod_bad_model")
    expect_identical(error$variable, "x")
  }
  expect_identical(expect_error(update(fit, data.frame(x = 5)), class = "gpucholmod_bad_model")$variable, "y")
  expect_length(predict(fit, data.frame(x = 5)), 1)
  x <- as.double(d$x)
  y <- d$y
  fit <- rls(y ~ x)
  expect_identical(expect_error(predict(fit, data.frame(z = 1)), class = "gpucholmod_bad_model")$variable, "x")
  degree <- 2
  expect_equal(coef(update(rls(y ~ I(x^degree), d[1:4, ]), d[5:8, ])), coef(lm(y ~ I(x^degree), d)))
  knots <- c(2, 3, 5, 7)  # as many as there are observations
  expect_equal(coef(update(rls(y ~ pmax(x, knots[2]), d[1:4, ]), d[5:8, ])), coef(lm(y ~ pmax(x, 3), d)),
               ignore_attr = TRUE)
  both <- data.frame(u = x, v = y)
  for (fit in list(rls(both$v ~ u, both), rls(v ~ both$u, both))) {
    expect_identical(expect_error(update(fit, data.frame(u = 1, v = 1)), class = "gpucholmod_bad_model")$variable,
                     "both")
  }
  fit <- local({
    x <- 1
    y <- 2
    rls(y ~ x)
  })
  expect_identical(expect_error(update(fit, data.frame(z = 1)), class = "gpucholmod_bad_model")$variable, c("y", "x"))
})

test_that("weights of a formula are found in new data, or are missing", {
  d <- data.frame(x = 1:8, y = c(1, 3, 2, 5, 4, 6, 8, 7), v = c(1, 1, 4, 1, 2, 1, 1, 9))
  w <- d$v
  ways <- list(rls(y ~ x, d[1:4, ], weights = w[1:4]), rls(y ~ x, d[1:4, ], weights = d$v[1:4]),
               rls(y ~ x, d[1:4, ], weights = c(1, 1, 4, 1)))
  for (fit in ways) {
    for (rows in list(5:8, 5)) {
      error <- expect_error(update(fit, d[rows, ]), "the weights of the fit.*are not in 'newdata'",
                            class = "gpucholmod_bad_argument")
      expect_identical(error$argument, "weights")
    }
    expect_equal(coef(update(fit, d[5:8, ], weights = v)), coef(lm(y ~ x, d, weights = w)))
  }
  levels <- list(weight = c(1, 3))
  code <- c(1, 2, 2, 1, 2, 1, 1, 2)
  d$code <- code
  expect_equal(coef(update(rls(y ~ x, d[1:4, ], weights = levels$weight[code]), d[5:8, ])),
               coef(lm(y ~ x, d, weights = c(1, 3)[code])))
  power <- 2
  fit <- rls(y ~ x, d[1:4, ], weights = 1 / v^power)
  expect_equal(coef(update(fit, d[5:8, ])), coef(lm(y ~ x, d, weights = 1 / w^2)))
  v <- w[5:8]
  expect_error(update(fit, d[5:8, c("x", "y")]), class = "gpucholmod_bad_argument")
})
