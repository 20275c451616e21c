# Recursive least squares against lm() and against fits from scratch.

set.seed(11)
x <- cbind(a = 1, b = rnorm(80), c = rnorm(80))
y <- drop(x %*% c(1, 2, -1)) + rnorm(80)
homes <- c("cpu", "cuda")

in_home <- function(home, ...) {
  if (home == "cuda") skip_without_gpu()
  rls(..., backend = home)
}

for (home in homes) {
  test_that(paste("observations that come one by one give what lm() gives:", home), {
    fit <- in_home(home, x[1:10, ], y[1:10])
    before <- coef(fit)
    first <- fit
    for (i in 11:50) fit <- update(fit, x[i, ], y[i])
    fit <- update(fit, x[51:80, ], y[51:80])
    expect_identical(coef(first), before)
    all <- lm(y ~ 0 + x)
    expect_equal(coef(fit), coef(all), ignore_attr = TRUE, tolerance = 1e-12)
    expect_named(coef(fit), c("a", "b", "c"))
    expect_equal(deviance(fit), deviance(all), tolerance = 1e-12)
    expect_equal(df.residual(fit), df.residual(all))
    expect_equal(vcov(fit), vcov(all), ignore_attr = TRUE, tolerance = 1e-12)
    expect_identical(dimnames(vcov(fit)), list(colnames(x), colnames(x)))
    expect_equal(predict(fit, x[1:3, ]), fitted(all)[1:3], ignore_attr = TRUE)
    expect_equal(predict(fit, x[4, ]), fitted(all)[[4]])
    expect_output(print(fit), "3 coefficients, 80 observations")
  })

  test_that(paste("weights, several responses and a window:", home), {
    w <- runif(80)
    Y <- cbind(u = y, v = y^2)
    fit <- in_home(home, x[1:20, ], Y[1:20, ], weights = w[1:20], window = 30)
    for (i in list(21:28, 29, 30:80)) fit <- update(fit, x[i, , drop = FALSE], Y[i, , drop = FALSE], weights = w[i])
    last <- 51:80
    all <- lm(Y[last, ] ~ 0 + x[last, ], weights = w[last])
    expect_equal(coef(fit), coef(all), ignore_attr = TRUE, tolerance = 1e-10)
    expect_identical(dimnames(coef(fit)), list(colnames(x), colnames(Y)))
    expect_equal(deviance(fit), colSums(w[last] * (Y[last, ] - x[last, ] %*% coef(fit))^2), tolerance = 1e-10)
    expect_equal(df.residual(fit), 27)
    expect_error(vcov(fit), class = "gpucholmod_bad_argument")
    expect_identical(dim(predict(fit, x[1:5, ])), c(5L, 2L))
  })

  test_that(paste("forgetting, a ridge penalty, and a window over what is being forgotten:", home), {
    fit <- in_home(home, matrix(0, 0, 3), numeric(), ridge = c(1, 2, 3), window = 25)
    for (i in 1:80) fit <- update(fit, x[i, ], y[i], forget = 0.95)
    last <- 56:80
    w <- 0.95^(80 - last)
    A <- crossprod(x[last, ], w * x[last, ]) + 0.95^80 * diag(1:3)
    beta <- solve(A, crossprod(x[last, ], w * y[last]))
    expect_equal(coef(fit), drop(beta), ignore_attr = TRUE, tolerance = 1e-9)
    expect_equal(deviance(fit), sum(w * (y[last] - x[last, ] %*% beta)^2) + 0.95^80 * sum(1:3 * beta^2),
                 tolerance = 1e-9)
    expect_equal(df.residual(fit), sum(w))
  })
}

test_that("penalties of which some are zero", {
  fit <- rls(x[1:40, ], y[1:40], ridge = c(0, 2, 2), weights = 0.5, backend = "cpu")
  beta <- solve(0.5 * crossprod(x[1:40, ]) + diag(c(0, 2, 2)), 0.5 * crossprod(x[1:40, ], y[1:40]))
  expect_equal(coef(fit), drop(beta), tolerance = 1e-12)
  expect_equal(deviance(fit), 0.5 * sum((y[1:40] - x[1:40, ] %*% beta)^2) + 2 * sum(beta[-1]^2), tolerance = 1e-12)
  expect_equal(rls(x[1:40, ], y[1:40], ridge = c(1e-30, 2, 2), weights = 0.5, backend = "cpu")$R, fit$R,
               tolerance = 1e-12)
})

test_that("an observation that comes alone is taken in as one of many", {
  fit <- rls(x[1:10, ], y[1:10], backend = "cpu")
  expect_identical(update(fit, x[11, ], y[11], forget = 0.9)[c("R", "z", "rss", "count", "age")],
                   update(fit, x[11, , drop = FALSE], y[11], forget = 0.9)[c("R", "z", "rss", "count", "age")])
})

test_that("bad observations are told apart, and change nothing", {
  error <- expect_error(rls(x[1:2, ], y[1:2], singular.ok = FALSE), class = "gpucholmod_singular_fit")
  expect_identical(error$columns, "c")
  expect_error(rls(cbind(x, x[, 1]), y, singular.ok = FALSE), class = "gpucholmod_singular_fit")
  expect_error(rls(x, y[-1]), class = "gpucholmod_dimension_mismatch")
  expect_error(rls(x, y, weights = -1), class = "gpucholmod_bad_argument")
  expect_error(rls(x, y, ridge = c(1, 2)), class = "gpucholmod_bad_argument")
  expect_error(rls(x, y, window = 0), class = "gpucholmod_bad_argument")
  expect_error(rls(letters, y), class = "gpucholmod_not_numeric")
  fit <- rls(x, y, backend = "cpu")
  error <- expect_error(update(fit, c(1, NaN, 2), 1), class = "gpucholmod_not_finite")
  expect_identical(unlist(error[c("argument", "row", "col")]), c(argument = "newdata", row = "1", col = "2"))
  expect_error(update(fit, x[1, ], NA_real_), class = "gpucholmod_not_finite")
  expect_error(update(fit, x[1, -1], 1), class = "gpucholmod_dimension_mismatch")
  expect_error(update(fit, x[1, ], 1:2), class = "gpucholmod_dimension_mismatch")
  for (transposed in list(quote(update(fit, t(x[1:2, ]), 1:2)), quote(predict(fit, t(x))))) {
    expect_error(eval(transposed), "did you mean t(newdata)?", fixed = TRUE, class = "gpucholmod_dimension_mismatch")
  }
  expect_error(update(fit, x[1, ], 1, forget = 0), class = "gpucholmod_bad_argument")
  expect_error(update(fit, x[1, ], 1, forgets = 1), class = "gpucholmod_bad_argument")
  expect_error(update(fit, x[1, ], 1, weights = c(1, 2)), class = "gpucholmod_bad_argument")
  expect_error(coef(fit, 1), class = "gpucholmod_bad_argument")
})

test_that("what is no argument of rls(), or no fit, is told in a condition of the package", {
  junk <- list(NULL, NA, NaN, -1, 1.5, "x", character(), 1i, list(), list(1), quote(x), quote(f(x)), function(x) x,
               globalenv(), factor("a"), data.frame(a = 1), array(1, c(1, 1, 1)), y ~ x,
               structure(list(), class = "chol_factor"),
               structure(3, class = "chol_factor"), structure(list(), class = "rls"))
  small <- x[1:8, ]
  fit <- rls(small, y[1:8], window = 9, backend = "cpu")
  own <- function(code) {
    found <- tryCatch(code, error = identity)
    if (inherits(found, "error")) expect_s3_class(found, "gpucholmod_error")
  }
  for (bad in junk) {
    own(rls(bad, y[1:8]))
    own(rls(small, bad))
    own(rls(small, y[1:8], weights = bad))
    own(rls(small, y[1:8], ridge = bad))
    own(rls(small, y[1:8], window = bad))
    own(rls(small, y[1:8], backend = bad))
    own(update(fit, bad, 1))
    own(update(fit, small[1, ], bad))
    own(update(fit, small[1, ], 1, weights = bad))
    own(update(fit, small[1, ], 1, forget = bad))
    own(predict(fit, bad))
    own(predict(fit, small, interval = bad))
    own(drop_rows(fit, bad))
    own(drop_rows(fit, newdata = bad, y = 1))
    own(confint(fit, bad))
    for (argument in c("forget", "tol", "singular.ok", "keep_ridge", "keep_rows", "na.action")) {
      own(do.call(rls, c(list(small, y[1:8]), stats::setNames(list(bad), argument)), quote = TRUE))
    }
    for (part in names(fit)) {
      other <- fit
      other[part] <- list(bad)
      for (use in list(function() update(other, small[1, ], 1), function() update(other, small[1:2, ], y[1:2]),
                       function() coef(other), function() predict(other, small), function() deviance(other),
                       function() df.residual(other), function() vcov(other), function() format(print(other)))) {
        own(utils::capture.output(suppressWarnings(use())))
      }
    }
  }
  expect_error(rls(NULL, y), class = "gpucholmod_not_numeric")
  expect_error(rls(small, y[1:8], window = 9.5), class = "gpucholmod_bad_argument")
  expect_error(coef(structure(list(), class = "rls")), class = "gpucholmod_bad_argument")
})

