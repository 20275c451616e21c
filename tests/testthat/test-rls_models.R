# A recursive regression among R's models: for a full-rank, growing fit, lm()'s generics give what they give for lm().

cars_now <- transform(mtcars, gear = factor(gear))
model <- mpg ~ wt + log(hp) + gear
grown <- function(rows = 1:12, ...) {
  fit <- rls(model, cars_now[rows, ], backend = "cpu", ...)
  for (i in setdiff(seq_len(32), rows)) fit <- update(fit, cars_now[i, ])
  fit
}
whole <- lm(model, cars_now)

test_that("lm()'s generics give what they give for lm()", {
  fit <- grown(keep_rows = TRUE)
  same <- function(f) expect_equal(f(fit), f(whole), tolerance = 1e-8)
  same(coef)
  same(vcov)
  same(confint)
  same(function(fit) confint(fit, c("wt", "gear4"), level = 0.9))
  same(sigma)
  same(nobs)
  same(df.residual)
  same(deviance)
  same(logLik)
  same(AIC)
  same(BIC)
  same(function(fit) nobs(fit, use.fallback = TRUE))
  same(function(fit) unname(residuals(fit)))
  same(function(fit) unname(fitted(fit)))
  same(function(fit) unname(predict(fit)))
  same(function(fit) coef(summary(fit)))
  for (part in c("r.squared", "adj.r.squared", "sigma", "fstatistic")) same(function(fit) summary(fit)[[part]])
  same(function(fit) formula(fit))
  new <- data.frame(wt = c(2, 3), hp = c(100, 150), gear = factor(c(4, 5), levels = 3:5))
  for (interval in c("none", "confidence", "prediction")) {
    same(function(fit) predict(fit, new, interval = interval, level = 0.8, se.fit = TRUE))
  }
  same(function(fit) predict(fit, new, interval = "conf"))
})

test_that("so they do for a fit that keeps no rows, but for those that need them", {
  fit <- grown()
  expect_equal(coef(summary(fit)), coef(summary(whole)), tolerance = 1e-8)
  expect_equal(logLik(fit), logLik(whole), tolerance = 1e-8)
  for (f in list(residuals, fitted, predict, weights, model.matrix, model.frame)) {
    expect_error(f(fit), class = "gpucholmod_rows_not_kept")
  }
})

test_that("a regression without an intercept, and one of a matrix, have the R-squared of lm()", {
  expect_equal(summary(rls(mpg ~ 0 + wt + hp, mtcars))$r.squared, summary(lm(mpg ~ 0 + wt + hp, mtcars))$r.squared)
  x <- cbind(1, mtcars$wt)
  said <- summary(lm(mpg ~ wt, mtcars))[c("r.squared", "fstatistic")]
  expect_equal(summary(rls(x, mtcars$mpg))[c("r.squared", "fstatistic")], said)
  fit <- rls(rbind(c(2, 5), x[1:9, ]), c(1, mtcars$mpg[1:9]), window = 32) # the 2 leaves
  fit <- update(update(fit, x[10:32, ], mtcars$mpg[10:32]), x[1, ], mtcars$mpg[[1L]])
  expect_equal(summary(fit)$r.squared, summary(lm(mpg[c(2:32, 1)] ~ wt[c(2:32, 1)], mtcars))$r.squared)
})

test_that("weights, subsets and missing values go as for lm()", {
  cars <- mtcars
  cars$wt[c(3, 20)] <- NA
  fit <- rls(mpg ~ wt, cars[1:16, ], weights = qsec, subset = cyl > 4)
  fit <- update(fit, cars[17:32, ], weights = cars$qsec[17:32])
  expected <- lm(mpg ~ wt, cars[c(which(cars$cyl[1:16] > 4), 17:32), ], weights = qsec)
  expect_equal(coef(summary(fit)), coef(summary(expected)), tolerance = 1e-10)
  expect_equal(logLik(fit), logLik(expected), ignore_attr = TRUE, tolerance = 1e-10)
  fit <- update(rls(mpg ~ hp, mtcars[1:10, ], weights = qsec), mtcars[11:32, ])
  expected <- lm(mpg ~ hp, mtcars, weights = qsec)
  expect_equal(coef(fit), coef(expected), tolerance = 1e-12)
  expect_equal(coef(update(rls(mpg ~ hp, mtcars[1:10, ], weights = qsec), mtcars[11:32, ], weights = 2 * qsec / 2)),
               coef(expected), tolerance = 1e-12)
  expect_equal(coef(drop_rows(fit, newdata = mtcars[3, ])), coef(update(expected, subset = -3)), tolerance = 1e-10)
})

test_that("columns are found by their names", {
  x <- as.matrix(mtcars[c("wt", "hp", "qsec")])
  fit <- rls(x[1:10, ], mtcars$mpg[1:10])
  expected <- coef(update(fit, x[11:32, ], mtcars$mpg[11:32]))
  expect_equal(expected, lm.fit(x, mtcars$mpg)$coefficients, tolerance = 1e-10)
  expect_identical(coef(update(fit, x[11:32, 3:1], mtcars$mpg[11:32])), expected)
  expect_identical(coef(update(fit, mtcars[11:32, ], mtcars$mpg[11:32])), expected)
  expect_identical(update(fit, x[11, 3:1], mtcars$mpg[11]), update(fit, x[11, ], mtcars$mpg[11]), ignore_attr = TRUE)
  expect_equal(predict(fit, x[1:3, c(2, 1, 3)]), predict(fit, x[1:3, ]))
  error <- expect_error(update(fit, cbind(x[, 1:2], disp = 1), mtcars$mpg), class = "gpucholmod_unknown_columns")
  expect_identical(error[c("unknown", "missing")], list(unknown = "disp", missing = "qsec"))
  expect_error(update(fit, mtcars["wt"], mtcars$mpg), class = "gpucholmod_unknown_columns")
})

test_that("what a formula cannot be is told in a condition of the package", {
  expect_error(rls(mpg ~ nothing, mtcars), class = "gpucholmod_bad_model")
  expect_error(rls(~ wt, mtcars), class = "gpucholmod_bad_argument")
  expect_error(rls(mpg ~ wt + offset(hp), mtcars), class = "gpucholmod_bad_argument")
  expect_error(rls(mpg ~ wt, 3), class = "gpucholmod_bad_argument")
  fit <- rls(mpg ~ wt, mtcars)
  expect_error(update(fit, . ~ . + hp), class = "gpucholmod_bad_argument")
  expect_error(update(fit, mtcars, mtcars$mpg), class = "gpucholmod_bad_argument")
  expect_error(update(fit, data.frame(wt = 1)), class = "gpucholmod_bad_model")
  expect_error(predict(fit, data.frame(hp = 1)), class = "gpucholmod_bad_model")
  expect_error(formula(rls(cbind(1, mtcars$wt), mtcars$mpg)), class = "gpucholmod_bad_argument")
  new <- data.frame(mpg = 20, wt = 3, gear = factor(6))
  expect_error(update(rls(mpg ~ factor(gear), mtcars), new), class = "gpucholmod_bad_model")
})

test_that("dependent columns are NA in every method, as lm() has it", {
  cars <- transform(mtcars, twice = 2 * wt)
  fit <- rls(mpg ~ wt + twice + hp, cars)
  all <- lm(mpg ~ wt + twice + hp, cars)
  for (f in list(coef, vcov, confint, df.residual, sigma, function(fit) coef(summary(fit)), logLik)) {
    expect_equal(f(fit), f(all), tolerance = 1e-10)
  }
  expect_output(print(summary(fit)), "twice")
  expect_no_warning(predicted <- predict(fit, cars))
  expect_equal(predicted, fitted(all), ignore_attr = TRUE, tolerance = 1e-10)
  other <- transform(cars[1:5, ], twice = twice + c(0, 1, 0, NA, -1))
  warning <- expect_warning(predicted <- predict(fit, other), "2 of 5 predictions need the coefficient of twice",
                            class = "gpucholmod_rank_deficient")
  expect_identical(warning[c("columns", "rows")], list(columns = "twice", rows = c(2L, 5L)), ignore_attr = TRUE)
  expect_equal(predicted, replace(fitted(all)[1:5], 4, NA), ignore_attr = TRUE, tolerance = 1e-10)
})

test_that("predictions at the mean of columns that depend on others are known", {
  d <- data.frame(y = cos(1:30), a = 1:30 * 0.1, b = 1:30 * 0.3)
  fit <- rls(y ~ a + b, d)
  expect_no_warning(predict(fit, data.frame(a = 1.55, b = 4.65)))
  expect_warning(predict(fit, data.frame(a = 1.55, b = 4.66)), class = "gpucholmod_rank_deficient")
  near <- transform(d, b = 1 + 1e-9 * sin(1:30))
  expect_no_warning(predict(rls(y ~ b + a, near), near))
})

test_that("a level of a factor that no observation has cannot be predicted, the others can", {
  d <- data.frame(y = c(1, 3, 2, 5, 4, 7), x = 1:6, g = factor(rep(c("a", "b"), 3), c("a", "b", "c")))
  fit <- rls(y ~ x + g, d, window = 5)
  expect_no_warning(predict(fit, d))
  warning <- expect_warning(predict(fit, data.frame(x = 1, g = c("b", "c"))), class = "gpucholmod_rank_deficient")
  expect_identical(warning$columns, "gc")
  expect_identical(warning$rows, 2L)
})

test_that("several responses have a matrix of coefficients, and vectors of deviances", {
  Y <- as.matrix(mtcars[c("mpg", "qsec")])
  fit <- rls(Y ~ wt + hp, list(Y = Y[1:9, ], wt = mtcars$wt[1:9], hp = mtcars$hp[1:9]), keep_rows = TRUE)
  fit <- update(fit, cbind(1, as.matrix(mtcars[10:32, c("wt", "hp")])), Y[10:32, ])
  all <- lm(Y ~ wt + hp, mtcars)
  expect_equal(coef(fit), coef(all), tolerance = 1e-10)
  expect_equal(deviance(fit), deviance(all), tolerance = 1e-10)
  expect_equal(sigma(fit), sqrt(deviance(all) / 29), tolerance = 1e-10)
  expect_equal(residuals(fit), residuals(all), ignore_attr = TRUE, tolerance = 1e-10)
  for (f in list(vcov, confint, logLik, summary)) expect_error(f(fit), class = "gpucholmod_bad_argument")
})

test_that("with a penalty or forgetting there is no likelihood, and no R-squared with a penalty", {
  expect_error(logLik(rls(mpg ~ wt, mtcars, ridge = 1)), class = "gpucholmod_no_likelihood")
  fit <- update(rls(mpg ~ wt, mtcars), mtcars[1, ], forget = 0.9)
  expect_error(AIC(fit), class = "gpucholmod_no_likelihood")
  expect_null(summary(rls(mpg ~ wt, mtcars, ridge = 1))$r.squared)
})

test_that("what is printed has the names", {
  told <- utils::capture.output(print(grown(window = 20)))
  expect_identical(told[[1L]], "Recursive least squares: 5 coefficients, 20 observations, the last 20")
  expect_match(told[[2L]], "\\(Intercept\\) +wt +log\\(hp\\) +gear4 +gear5")
  expect_match(told[[4L]], "^deviance [0-9.]+$")
  told <- utils::capture.output(print(summary(grown())))
  expect_identical(told[[1L]], "Call: rls(formula = model, data = cars_now[rows, ], backend = \"cpu\")")
  expect_match(told, "^log\\(hp\\) +-[0-9.]+ +[0-9.]+ +-[0-9.]+", all = FALSE)
  expect_match(told, "^Residual standard error: 2[0-9.]+ on 27 degrees of freedom$", all = FALSE)
  expect_match(told, "^R-squared: 0[.][0-9]+, adjusted: 0[.][0-9]+$", all = FALSE)
  expect_match(told, "^F-statistic: [0-9.]+ on 4 and 27 degrees of freedom, p-value: [0-9.]+e-[0-9]+$", all = FALSE)
})
