# Solving in one call, with whatever holds the factor.

set.seed(5)
A <- structure(crossprod(well_conditioned(20)), dimnames = rep(list(paste0("x", 1:20)), 2L))
b <- matrix(rnorm(40), 20, dimnames = list(NULL, c("p", "q")))
same <- function(object, expected) expect_equal(object, expected, tolerance = 1e-10)

test_that("an ordinary factor solves with its matrix, in both triangles, named as by solve()", {
  R <- chol(A)
  same(solve_factor(R, b), solve(A, b))
  same(solve_factor(R, 1:20), solve(A, 1:20))
  same(solve_factor(R), solve(A))
  same(solve_factor(t(R), b, uplo = "lower"), solve(A, b))
  same(solve_factor(t(R), uplo = "lower"), solve(A))
  same(solve_factor(unname(R), 1:20), unname(solve(A, 1:20)))
  same(solve_factor(make_float32(R), 1:20), unname(solve(crossprod(as_floats(R)), 1:20)))
  same(solve_factor(cholupdate_gpu(R, 1:20), 1:20), solve(A + tcrossprod(1:20), 1:20))
  expect_identical(solve_factor(matrix(0, 0, 0)), matrix(0, 0, 0))
  skip_if_not_installed("Matrix")
  same(solve_factor(methods::as(Matrix::Matrix(R), "triangularMatrix"), 1:20), solve(A, 1:20))
})

at_each_home("a handle and a batch give what solve() gives", {
  f <- keep(chol(A))
  expect_identical(solve_factor(f, b), solve(f, b))
  expect_identical(solve_factor(f), solve(f))
  batch <- keep_batch(array(chol(A), c(20, 20, 2)))
  expect_identical(solve_factor(batch, 1:20), solve(batch, 1:20))
})

test_that("a file gives what solve() gives", {
  skip_on_os("windows")
  f <- write_factor(chol(A), tempfile())
  on.exit(unlink(f$path))
  expect_identical(solve_factor(f, b), solve(f, b))
})

test_that("what cannot be solved with is refused", {
  expect_error(solve_factor(diag(c(1, NaN)), 1:2), class = "gpucholmod_bad_diagonal")
  expect_error(solve_factor(diag(3), 1:2), class = "gpucholmod_dimension_mismatch")
  expect_error(solve_factor(diag(3), 1:3, 4), class = "gpucholmod_bad_argument")
})
