# Factors whose diagonal is not positive: rows with a negative entry are turned, and zeros are updated.

set.seed(31)
n <- 60L
X <- matrix(rnorm(90 * n), 90)
A <- crossprod(X)
negative <- qr.R(qr(X))
R <- chol(A)
v <- rnorm(n)
V <- matrix(rnorm(3 * n), n)
turn <- function(R) R * sign(diag(R))

test_that("qr.R() gives a factor, wherever it is taken", {
  expect_true(any(diag(negative) < 0))
  turned <- turn(negative)
  folder <- new_folder()
  on.exit(unlink(folder, recursive = TRUE))
  given <- negative + 0
  for (W in list(v, V)) {
    expected <- cholupdate_gpu(turned, W)
    expect_identical(cholupdate_gpu(negative, W), expected)
    expect_identical(cholupdate_gpu(t(negative), W, uplo = "lower"), t(expected))
    for (method in c("blocked", "refactor", "reference")) {
      expect_identical(cholupdate_gpu(negative, W, backend = "cpu", method = method),
                       cholupdate_gpu(turned, W, backend = "cpu", method = method))
    }
    overwritten <- negative + 0
    cholupdate_overwrite(overwritten, W)
    expect_identical(overwritten, expected)
    f <- chol_factor(negative, backend = "cpu")
    expect_identical(as.matrix(f), turned + 0)
    expect_identical(as.matrix(cholupdate_gpu(f, W)), expected)
    output <- file.path(folder, "out")
    out <- cholupdate_gpu(write_factor(negative, file.path(folder, "in"), TRUE), W, output = output, replace = TRUE)
    expect_identical(as.matrix(out), expected)
    expect_identical(cholupdate_batch(list(negative, R), list(W, W))[[1L]],
                     cholupdate_batch(list(turned), list(W))[[1L]])
  }
  batch <- chol_batch(array(c(negative, R), c(n, n, 2L)), backend = "cpu")
  expect_identical(as.array(batch)[, , 1L], turned + 0)
  expect_identical(negative, given)
})

test_that("rows and columns come, go and move", {
  turned <- turn(negative)
  x <- c(crossprod(X, X[, 1L] + 1), 1e4)
  expect_identical(cholinsert_gpu(negative, x, n + 1L), cholinsert_gpu(turned, x, n + 1L))
  expect_identical(choldelete_gpu(negative, c(2, 7)), choldelete_gpu(turned, c(2, 7)))
  expect_identical(cholshift_gpu(negative, 3, 50), cholshift_gpu(turned, 3, 50))
  z <- solve_forward(negative, v)
  expect_equal(choldelete_gpu(negative, 2, z = z)$z, choldelete_gpu(turned, 2, z = solve_forward(turned, v))$z)
})

test_that("right-hand sides are those of the factor that is given", {
  b <- rnorm(n)
  z <- solve_forward(negative, b)
  expect_equal(drop(crossprod(negative, z)), b)
  expect_equal(solve_back(negative, z), solve(A, b))
  expect_equal(logdet(negative), logdet(R))
  done <- cholupdate_gpu(negative, v, z = z, y = 2)
  expect_equal(solve_back(done$R, done$z), solve(A + tcrossprod(v), b + 2 * v))
  expect_equal(solve_modified(negative, cbind(v), b)$solution[, 1L], solve(A + tcrossprod(v), b))
})

test_that("a downdate that cannot be done leaves the matrix as it was", {
  overwritten <- negative + 0
  error <- expect_error(cholupdate_overwrite(overwritten, 1e3 * v, downdate = TRUE),
                        class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 1L)
  expect_identical(overwritten, negative + 0)
})

test_that("a factor in a file is solved with as it is", {
  file <- write_factor(negative, tempfile())
  on.exit(unlink(file$path))
  expect_equal(solve(file, v), solve(A, v))
  expect_equal(logdet(file), logdet(R))
  expect_equal(solve_forward(file, v), solve_forward(negative, v))
})

# The residual of an update of R to R1, in units of rounding.
residual <- function(R, W, R1) {
  more <- tcrossprod(W)
  norm(crossprod(R1) - crossprod(R) - more, "1") /
    (.Machine$double.eps * (norm(crossprod(R), "1") + norm(more, "1")))
}

test_that("a factor with zeros on its diagonal is updated", {
  some <- R
  diag(some)[c(2, 30, n)] <- 0
  some[30, ] <- 0
  nothing <- matrix(0, n, n)
  folder <- new_folder()
  on.exit(unlink(folder, recursive = TRUE))
  for (S in list(some, nothing)) for (W in list(v, V, matrix(rnorm(20 * n), n))) {
    W <- as.matrix(W)
    W[50:n, ] <- 0
    R1 <- cholupdate_gpu(S, W)
    expect_lt(residual(S, W, R1), 30 * n)
    if (all(S == 0)) expect_true(all(R1[50:n, ] == 0))
    expect_identical(cholupdate_gpu(t(S), W, uplo = "lower"), t(R1))
    overwritten <- S + 0
    cholupdate_overwrite(overwritten, W)
    expect_lt(residual(S, W, overwritten), 30 * n)
    for (method in c("reference", "refactor")) {
      expect_lt(residual(S, W, cholupdate_gpu(S, W, backend = "cpu", method = method)), 30 * n)
    }
    file <- cholupdate_gpu(write_factor(S, file.path(folder, "in"), TRUE), W, output = file.path(folder, "out"),
                           replace = TRUE)
    expect_lt(residual(S, W, as.matrix(file)), 30 * n)
    expect_identical(as.matrix(cholupdate_gpu(chol_factor(S, backend = "cpu"), W)), R1)
    for (downdate in list(list(downdate = TRUE), list(weights = c(-1, rep(1, ncol(W) - 1L))))) {
      error <- expect_error(do.call(cholupdate_gpu, c(list(S, W), downdate)), class = "gpucholmod_bad_diagonal")
      expect_identical(c(error$index, error$value), c(which(diag(S) == 0)[[1L]], 0))
      overwritten <- S + 0
      expect_error(do.call(cholupdate_overwrite, c(list(quote(overwritten), W), downdate)),
                   class = "gpucholmod_bad_diagonal")
      expect_identical(overwritten, S + 0)
    }
  }
})

test_that("recursive least squares begins with nothing", {
  f <- chol_factor(matrix(0, 5, 5), backend = "cpu")
  x <- matrix(rnorm(60), 12)
  y <- rnorm(12)
  z <- numeric(5)
  expect_identical(as.matrix(f), matrix(0, 5, 5))
  expect_identical(logdet(f), -Inf)
  expect_identical(unname(diag(f)), numeric(5))
  for (i in 1:12) {
    if (i < 5) {
      for (use in list(solve, chol2inv, function(f) solve_forward(f, 1:5), function(f) choldelete_gpu(f, 1),
                       function(f) cholinsert_gpu(f, 1:6), function(f) cholshift_gpu(f, 1, 2),
                       function(f) solve_modified(f, 1:5, 1:5), function(f) cholupdate_gpu(f, 1:5, TRUE))) {
        expect_error(use(f), class = "gpucholmod_bad_diagonal")
      }
    }
    z <- cholupdate_gpu(f, x[i, ], z = z, y = y[[i]], in_place = TRUE)$z
  }
  expect_equal(solve_back(f, z), unname(coef(lm(y ~ x - 1))))
  expect_equal(as.matrix(f), chol(crossprod(x)))
  expect_equal(as.matrix(cholupdate_gpu(f, x[1, ], downdate = TRUE)), chol(crossprod(x[-1, ])))
  expect_true(is.finite(drift(f)))
})

test_that("a matrix with zeros is not solved with, and says so", {
  zero <- replace(R, 62, 0)
  expect_identical(logdet(zero), -Inf)
  for (use in list(function(f) solve_back(f, v), function(f) choldelete_gpu(f, 1),
                   function(f) solve_modified(f, v, v), function(f) chol_batch(array(f, c(n, n, 1L))))) {
    expect_equal(expect_error(use(zero), class = "gpucholmod_bad_diagonal")$index, 2)
  }
})

test_that("condition, summary, draws and chol() do not depend on the signs of rows, nor on where the factor is", {
  signed <- R * rep_len(c(1, -1), n)
  file <- write_factor(signed, tempfile())
  on.exit(unlink(file$path))
  f <- chol_factor(R, "cpu")
  expect_equal(kappa(file), kappa(f))
  expect_equal(rcond(file), rcond(f))
  expect_equal(chol(file), unname(R), ignore_attr = TRUE)
  expect_equal(summary(file)$logdet, summary(f)$logdet)
  expect_equal(summary(file)$condition_at_least, summary(f)$condition_at_least)
  expect_identical(summary(write_factor(replace(R, 62, 0), tempfile()))$logdet, -Inf)
  for (of in c("covariance", "precision")) {
    draws <- lapply(list(f, R, signed, file, t(signed)), function(factor) {
      set.seed(4)
      if (is.matrix(factor) && factor[1, n] == 0) draw(factor, 3, of = of, uplo = "lower") else draw(factor, 3, of = of)
    })
    for (i in 2:5) expect_equal(draws[[i]], draws[[1]], ignore_attr = TRUE)
  }
})

test_that("a handle with zeros takes numbers of any size, as a matrix does", {
  for (precision in c("double", "single")) {
    sizes <- if (precision == "double") c(1e-250, 1, 1e200) else c(1e-15, 1, 1e19)
    for (size in sizes) {
      f <- chol_factor(matrix(0, 3, 3), "cpu", precision = precision)
      columns <- size * cbind(c(1, 0, 2), c(0, 0, 1))
      expected <- cholupdate_gpu(matrix(0, 3, 3), columns, precision = precision)
      expect_equal(as.matrix(cholupdate_gpu(f, columns)) / size, expected / size)
      expect_identical(as.matrix(f), matrix(0, 3, 3))
      cholupdate_gpu(f, columns, in_place = TRUE)
      expect_equal(as.matrix(f) / size, expected / size)
      expect_identical(as.matrix(f)[2, ], c(0, 0, 0))
    }
  }
  f <- chol_factor(diag(c(1, 0)), "cpu")
  expect_equal(as.matrix(cholupdate_gpu(f, c(1e200, 0))), diag(c(1e200, 0)))
})

test_that("a GPU keeps the zeros of a factor that it reads from a file", {
  skip_without_gpu()
  zero <- replace(R, 62, 0)
  f <- chol_factor(write_factor(zero, tempfile()), "cuda")
  expect_equal(as.matrix(f), zero)
  cholupdate_gpu(f, v, in_place = TRUE)
  expect_equal(crossprod(as.matrix(f)), crossprod(zero) + tcrossprod(v))
})

test_that("an entry of the diagonal that is too small beside V is an error that says so", {
  wide <- function(size) cholupdate_gpu(diag(c(1 / size, 1)), c(1, size), backend = "cpu")
  expect_error(wide(1e300), "too small to be computed with: beside the largest number of 'R' and 'V'", fixed = TRUE,
               class = "gpucholmod_bad_diagonal")
  expect_equal(wide(1e200), matrix(c(1, 0, 1e200, sqrt(2)), 2L))
})
