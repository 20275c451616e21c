# The factor in use, against base R.

named <- function(A, names) structure(A, dimnames = list(names, names))

at_each_home("right-hand sides that cannot be used are refused", {
  f <- keep(chol(diag(3) + 1))
  for (call in list(function(b) solve(f, b), function(b) solve_forward(f, b), function(b) solve_back(f, b))) {
    error <- expect_error(call(1:4), class = "gpucholmod_dimension_mismatch")
    expect_identical(unclass(error)[c("expected", "actual")], list(expected = 3L, actual = 4L))
    expect_identical(expect_error(call("a"), class = "gpucholmod_not_numeric")$argument, "b")
    expect_error(call(array(1, c(3, 1, 1))), class = "gpucholmod_dimension_mismatch")
  }
})

at_each_home("solve() agrees with base R, in numbers, shape and names", {
  set.seed(1)
  for (n in c(1, 2, 64, 129, 500)) {
    A <- crossprod(well_conditioned(n))
    names <- paste0("x", seq_len(n))
    for (A in list(A, named(A, names))) {
      R <- chol(A)
      for (precision in c("double", "single")) {
        tolerance <- 1e4 * eps_of(precision)
        for (f in list(keep(R, precision = precision), keep(t(R), "lower", precision))) {
          one <- matrix(rnorm(n), dimnames = list(NULL, "one"))
          for (b in list(rnorm(n), seq_len(n), one, matrix(rnorm(7 * n), n))) {
            before <- unshared(b)
            expect_close(solve(f, b), solve(A, b), tolerance, n)
            expect_close(solve_forward(f, b), backsolve(R, b, transpose = TRUE), tolerance, n)
            expect_close(solve_back(f, b), backsolve(R, b), tolerance, n)
            expect_identical(b, before)
          }
          expect_close(solve(f), solve(A), tolerance, n)
          expect_same(solve(f), t(solve(f)), n)
          expect_close(chol2inv(f), solve(A), tolerance, n)
          expect_close(unname(chol2inv(f)), chol2inv(R), tolerance, n)
          expect_close(determinant(f), determinant(A), tolerance, n)
          expect_close(determinant(f, logarithm = FALSE), determinant(A, logarithm = FALSE), 10 * tolerance, n)
          expect_close(logdet(f), as.numeric(determinant(A)$modulus), tolerance, n)
          expect_close(diag(f), diag(R), tolerance, n)
          expect_null(names(diag(f, names = FALSE)))
        }
      }
    }
  }
})

at_each_home("no right-hand sides give no solutions, and a factor of order 0 has the determinant 1", {
  expect_identical(solve(keep(diag(2)), matrix(0, 2, 0)), matrix(0, 2, 0))
  f <- keep(matrix(0, 0, 0))
  expect_identical(logdet(f), 0)
  expect_identical(solve(f), matrix(0, 0, 0))
  expect_identical(solve(f, numeric(0)), numeric(0))
  expect_identical(diag(f), numeric(0))
})

at_each_home("b may be a Matrix or a float32", {
  A <- diag(3) + 1
  f <- keep_chol(A)
  B <- matrix(c(1, 2, 3, 0, 0, 1), 3)
  expect_equal(solve(f, make_float32(B)), solve(A, B), tolerance = 1e-14)
  skip_if_not_installed("Matrix")
  expect_equal(solve(f, Matrix::Matrix(B, sparse = TRUE)), solve(A, B), tolerance = 1e-14)
})

at_each_home("a column that is not finite leaves the others alone", {
  A <- diag(3) + 1
  x <- solve(keep_chol(A), cbind(1:3, c(NA, 1, 2)))
  expect_equal(x[, 1], solve(A, 1:3), tolerance = 1e-14)
  expect_true(all(is.nan(x[, 2]) | is.na(x[, 2])))
})

at_each_home("solving with a modified factor solves with the modified matrix", {
  set.seed(2)
  A <- crossprod(well_conditioned(300))
  V <- normal(300, 16)
  f <- keep_chol(A)
  up <- cholupdate_gpu(f, V)
  expect_close(solve(up, 1:300), solve(A + tcrossprod(V), 1:300), tolerance = 1e-11)
  expect_equal(logdet(up), as.numeric(determinant(A + tcrossprod(V))$modulus), tolerance = 1e-12)
  expect_close(solve(f, 1:300), solve(A, 1:300), tolerance = 1e-11)
})

test_that("chol2inv() and diag() do to everything else what they did", {
  R <- chol(diag(3) + 1)
  expect_identical(gpucholmod::chol2inv(R), base::chol2inv(R))
  expect_identical(gpucholmod::chol2inv(R, size = 2), base::chol2inv(R, size = 2))
  expect_identical(gpucholmod::diag(R), base::diag(R))
  expect_identical(gpucholmod::diag(3), base::diag(3))
  expect_identical(gpucholmod::diag(c(a = 1, b = 2)), base::diag(c(a = 1, b = 2)))
  expect_identical(gpucholmod::diag(2, 3, 4), base::diag(2, 3, 4))
  expect_identical(gpucholmod::diag(nrow = 2), base::diag(nrow = 2))
  skip_if_not_installed("Matrix")
  M <- Matrix::Matrix(c(2, 1, 1, 3), 2)
  expect_identical(gpucholmod::diag(M), c(2, 3))
  expect_equal(as.matrix(gpucholmod::chol2inv(Matrix::chol(M))), solve(as.matrix(M)))
})
