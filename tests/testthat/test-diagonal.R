# Factors whose diagonal is not positive: rows with a negative entry are turned.

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
    expect_identical(cholupdate_batch(list(negative, R), list(W, W))[[1L]], cholupdate_batch(list(turned), list(W))[[1L]])
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
