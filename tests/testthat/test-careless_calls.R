# Calls that a careless hand types: they do what is meant, or are errors that say what to do instead.

# The error of `code`, of class gpucholmod_<class>, whose message has `remedy` and whose fields are ...
refused <- function(code, class, remedy, ...) {
  error <- expect_error(code, remedy, class = paste0("gpucholmod_", class))
  expect_s3_class(error, "gpucholmod_error")
  fields <- list(...)
  if (length(fields)) expect_equal(unclass(error)[names(fields)], fields)
}

set.seed(1)
R <- well_conditioned(8)
x <- cbind(1, normal(20, 1))
y <- normal(20, 1)[, 1]
d <- data.frame(a = x[, 2], y = y)

test_that("a number of V that is too large beside the factor is told to be in V", {
  refused(cholupdate_gpu(diag(c(1e-300, 1)), c(1, 1e300)), "bad_diagonal", "largest number of 'R' and 'V'", index = 1,
          value = 1e-300)
})

at_each_home("rows in place of columns are asked about", {
  for (f in list(R, keep(R))) {
    refused(cholinsert_gpu(f, t(1:9)), "dimension_mismatch", "did you mean t\\(X\\)", expected = 9L, actual = 1L)
    refused(cholinsert_gpu(f, matrix(1, 2, 10)), "dimension_mismatch", "did you mean t\\(X\\)", expected = 10L,
            actual = 2L)
    refused(cholinsert_gpu(f, matrix(1, 3, 5)), "dimension_mismatch", "'X' has 3 rows", expected = 13L, actual = 3L)
    refused(cholupdate_gpu(f, t(1:8)), "dimension_mismatch", "did you mean t\\(V\\)", expected = 8L, actual = 1L)
  }
})

test_that("uplo is taken as base R and Matrix abbreviate it", {
  expect_identical(cholupdate_gpu(t(R), 1:8, uplo = "L"), cholupdate_gpu(t(R), 1:8, uplo = "lower"))
  expect_identical(cholupdate_gpu(R, 1:8, uplo = "U"), cholupdate_gpu(R, 1:8))
  expect_identical(chol_factor(t(R), "cpu", uplo = "L")$uplo, "lower")
  expect_identical(solve_forward(t(R), 1:8, uplo = "L"), solve_forward(t(R), 1:8, uplo = "lower"))
  expect_identical(solve_modified(t(R), 1:8, uplo = "L"), solve_modified(t(R), 1:8, uplo = "lower"))
  expect_identical(choldelete_gpu(t(R), 1, uplo = "L"), choldelete_gpu(t(R), 1, uplo = "lower"))
  expect_identical(as.array(chol_batch(array(t(R), c(8, 8, 1)), "cpu", "L"))[, , 1], t(R))
  L <- t(R)
  suppressMessages(cholupdate_overwrite(L, 1:8, uplo = "L"))
  expect_equal(L, cholupdate_gpu(t(R), 1:8, uplo = "lower"))
  for (bad in list("l", "u", "", NA_character_, NA, 1, NULL, c("U", "L"))) {
    refused(cholupdate_gpu(R, 1:8, uplo = bad), "bad_argument", "one of \"upper\", \"lower\"", argument = "uplo")
  }
})

at_each_home("logical values of V, X and right-hand sides are the numbers 0 and 1", {
  yes <- c(TRUE, FALSE, TRUE, TRUE, FALSE, FALSE, TRUE, TRUE)
  for (f in list(R, keep(R))) {
    both <- cbind(yes, !yes)
    expect_identical(as.matrix(cholupdate_gpu(f, yes)), as.matrix(cholupdate_gpu(f, yes + 0)))
    expect_identical(as.matrix(cholupdate_gpu(f, both, weights = c(1, -0.01))),
                     as.matrix(cholupdate_gpu(f, both + 0, weights = c(1, -0.01))))
    expect_equal(cholupdate_gpu(f, yes, z = yes, y = TRUE)$z, cholupdate_gpu(f, yes + 0, z = yes + 0, y = 1)$z)
    expect_identical(as.matrix(cholinsert_gpu(f, rep(c(FALSE, TRUE), c(8, 1)))),
                     as.matrix(cholinsert_gpu(f, rep(0:1, c(8, 1)))))
    expect_identical(solve_factor(f, yes), solve_factor(f, yes + 0))
    expect_identical(solve_modified(f, list(yes), yes), solve_modified(f, list(yes + 0), yes + 0))
    refused(cholupdate_gpu(f, rep(NA, 8)), "not_finite", "", argument = "V")
  }
  f <- keep_batch(array(R, c(8, 8, 2)))
  expect_identical(as.array(cholupdate_batch(f, yes)), as.array(cholupdate_batch(f, yes + 0)))
  expect_identical(cholupdate_batch(list(R), list(yes)), cholupdate_batch(list(R), list(yes + 0)))
  expect_identical(solve(f, yes), solve(f, yes + 0))
})

test_that("a list of factors makes the batch that an array of them makes", {
  listed <- chol_batch(list(R, R), "cpu")
  expect_identical(as.array(listed), as.array(chol_batch(simplify2array(list(R, R)), "cpu")))
  refused(chol_batch(list(R, "R")), "not_numeric", "R\\[\\[2\\]\\]")
})

test_that("members that are named in another order are refused, wherever many are", {
  both <- function(x, names) array(x, c(dim(as.matrix(x)), 2), list(NULL, NULL, names))
  listed <- list(a = diag(2), b = diag(2))
  V <- list(a = 1:2, b = 1:2)
  other <- function(code, argument) {
    refused(code, "bad_argument", "number 1 is \"b\", which is the name of number 2", argument = argument,
            value = c("b", "a"))
  }
  other(cholupdate_batch(listed, V[2:1]), "V")
  other(cholupdate_batch(listed, V, weights = list(b = 1, a = 2)), "weights")
  other(cholupdate_batch(listed, V, scale = c(b = 1, a = 2)), "scale")
  expect_named(cholupdate_batch(listed, V), c("a", "b"))
  array <- both(R, c("a", "b"))
  batch <- chol_batch(array, "cpu")
  for (f in list(array, batch)) {
    other(cholupdate_batch(f, both(1:8, c("b", "a"))), "V")
    other(cholupdate_batch(f, matrix(1, 8, 2, dimnames = list(NULL, c("b", "a")))), "V")
    other(cholupdate_batch(f, 1:8, weights = matrix(1, 1, 2, dimnames = list(NULL, c("b", "a")))), "weights")
    expect_silent(cholupdate_batch(f, both(1:8, c("a", "x"))))
    expect_silent(cholupdate_batch(f, both(1:8, c("x", "y"))))
    expect_silent(cholupdate_batch(f, structure(1:8 + 0, names = c("b", "a", letters[3:8]))))
  }
  other(solve(batch, both(1:8, c("b", "a"))), "b")
  other(solve_forward(batch, matrix(1, 8, 2, dimnames = list(NULL, c("b", "a")))), "b")
  W <- list(a = 1:8, b = 8:1)
  other(solve_modified(R, W, weights = list(b = 1, a = 2)), "weights")
  other(solve_modified(R, W, matrix(1, 8, 2, dimnames = list(NULL, c("b", "a")))), "b")
  other(solve_modified(R, W, scale = c(b = 1, a = 1)), "scale")
  expect_silent(solve_modified(R, W, structure(1:8, names = letters[8:1])))
})

test_that("a regression begins with columns, and with what determines none of its coefficients", {
  refused(rls(matrix(0, 5, 0), 1:5), "dimension_mismatch", "at least one regressor", expected = 1L, actual = 0L)
  refused(rolling(matrix(0, 5, 0), 1:5, 2), "dimension_mismatch", "at least one regressor")
  expect_identical(coef(rls(matrix(0, 0, 2), numeric(), ridge = c(1, 0))), c(0, NA))
  refused(rls(matrix(0, 0, 2), numeric(), ridge = c(1, 0), singular.ok = FALSE), "singular_fit", "singular.ok = TRUE",
          columns = 2L)
})

test_that("of one regressor a vector has the values in several observations, of several one observation", {
  one <- rls(x[, 2], y)
  expect_equal(predict(one, c(1, 2, 3)), coef(one) * 1:3)
  expect_equal(predict(one, 2), coef(one) * 2)
  expect_equal(coef(update(one, c(1, 2, 3), c(3, 2, 1))), coef(rls(c(x[, 2], 1:3), c(y, 3:1))))
  named <- rls(cbind(u = x[, 2]), y)
  expect_equal(predict(named, c(u = 2)), unname(coef(named)) * 2)
  expect_equal(unname(predict(named, c(1, 2))), unname(coef(named)) * 1:2)
  refused(predict(named, c(v = 2)), "unknown_columns", "no column v", unknown = "v")
  fit <- rls(x, y)
  expect_length(predict(fit, c(1, 2)), 1)
  refused(predict(fit, c(1, 1, 1)), "dimension_mismatch", "a vector is one observation", expected = 2L, actual = 3L)
  refused(update(fit, 1, 1), "dimension_mismatch", "a vector is one observation", expected = 2L, actual = 1L)
})

test_that("NA is a missing value, whatever its type", {
  fit <- rls(x, y)
  refused(update(fit, x[1, ], NA), "not_finite", "na.action = na.omit", argument = "y", row = 1, col = 1)
  refused(update(fit, c(NA, NA), 1), "not_finite", "na.action = na.omit", argument = "newdata")
  refused(rls(x, rep(NA, 20)), "not_finite", "na.action = na.omit", argument = "y")
  refused(rolling(x, rep(NA, 20), 5), "not_finite", "na.action = na.omit", argument = "y")
  refused(update(fit, x[1, ], 1, weights = NA), "not_finite", "weights", argument = "weights")
  leaving_out <- rls(x, y, na.action = na.omit)
  expect_equal(coef(update(leaving_out, x[1, ], NA)), coef(fit))
  expect_equal(nobs(update(leaving_out, x[1:2, ], c(NA, 1))), 21)
  refused(update(fit, x[1, ], TRUE), "not_numeric", "not logical", argument = "y", type = "logical")
  refused(rls(x, logical()), "not_numeric", "not logical", argument = "y")
})

test_that("what is missing from a regression, or is no number of observations, is told as such", {
  fit <- rls(x, y)
  refused(rls(~ a, d), "bad_argument", "has no response", argument = "formula")
  refused(rolling(~ a, d, 5), "bad_argument", "has no response", argument = "formula")
  refused(update(fit, x[1, ], NULL), "bad_argument", "is missing: the responses", argument = "y")
  refused(update(fit, NULL, 1), "not_numeric", "not NULL", argument = "newdata", type = "NULL")
  for (window in list(10.5, 0, NA, "a", NULL, 1:2)) {
    refused(rls(x, y, window = window), "bad_argument", "whole number of observations", argument = "window")
  }
  refused(rls(y ~ a, d, window = 10.5), "bad_argument", "whole number of observations", argument = "window")
})

test_that("a window that turns collinear is told in the words of a regression", {
  fit <- rls(x[1:5, ], y[1:5], window = 5, singular.ok = FALSE)
  for (i in 1:4) fit <- update(fit, c(1, 0), 1)
  before <- coef(fit)
  refused(update(fit, c(1, 0), 1), "singular_fit", "columns of x depend on those before them: 2", columns = 2L)
  expect_identical(coef(fit), before)
})

test_that("a matrix is not modified in place, and a single right-hand side is not taken for all modifications", {
  R <- chol(crossprod(x) + diag(ncol(x)))
  v <- x[1, ]
  refused(cholupdate_gpu(R, v, in_place = TRUE), "bad_argument", "only a handle from chol_factor()",
          argument = "in_place")
  refused(solve_modified(R, list(v, v), matrix(v)), "dimension_mismatch", "if all of them have the same right-hand")
})
