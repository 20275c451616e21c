# solve_forward(), solve_back() and logdet() of ordinary factors; on a GPU: test-gpu_factor_solve.R, in a file:
# test-factor_file_solve.R.

set.seed(1)
A <- crossprod(well_conditioned(60))
R <- chol(A)
B <- normal(60, 3)

test_that("together they solve with A, for upper and lower factors", {
  expect_equal(solve_back(R, solve_forward(R, B)), solve(A, B), tolerance = 1e-12)
  L <- t(R)
  expect_equal(solve_back(L, solve_forward(L, B, uplo = "lower"), uplo = "lower"), solve(A, B), tolerance = 1e-12)
  expect_equal(solve_forward(L, B, uplo = "lower"), solve_forward(R, B), tolerance = 1e-12)
  expect_equal(sum(solve_forward(R, 1:60)^2), sum(1:60 * solve(A, 1:60)), tolerance = 1e-12)
})

test_that("a vector gives a vector, a matrix a matrix, without names", {
  b <- stats::setNames(1:60, paste0("x", 1:60))
  expect_identical(solve_forward(R, b), solve_forward(R, as.matrix(1:60))[, 1])
  expect_null(names(solve_back(R, b)))
  expect_identical(dim(solve_back(R, B)), dim(B))
  expect_identical(dim(solve_back(R, matrix(0, 60, 0))), c(60L, 0L))
  expect_identical(solve_forward(matrix(0, 0, 0), numeric(0)), numeric(0))
  expect_identical(solve_forward(R, ts(1:60)), solve_forward(R, 1:60))
})

test_that("the determinant is that of A", {
  expect_equal(logdet(R), as.numeric(determinant(A)$modulus), tolerance = 1e-12)
  expect_identical(logdet(t(R), uplo = "lower"), logdet(R))
  expect_identical(logdet(matrix(0, 0, 0)), 0)
})

test_that("factors of package Matrix and float are taken", {
  expect_equal(solve_back(make_float32(R), 1:60), solve_back(R, 1:60), tolerance = 1e-5)
  expect_equal(logdet(make_float32(R)), logdet(R), tolerance = 1e-5)
  skip_if_not_installed("Matrix")
  dense <- Matrix::chol(Matrix::Matrix(A))
  expect_equal(solve_forward(dense, B), solve_forward(R, B), tolerance = 1e-12)
  expect_equal(logdet(dense), logdet(R), tolerance = 1e-12)
})

test_that("what cannot be used is an error of its own", {
  refused <- function(call, class) expect_error(call, class = paste0("gpucholmod_", class))
  expect_identical(refused(solve_forward(R, 1:59), "dimension_mismatch")$expected, 60L)
  expect_identical(refused(solve_back(replace(R, 62, 0), 1:60), "bad_diagonal")$index, 2L)
  uses <- list(logdet, function(f) solve_forward(f, 1:60), function(f) solve_back(f, 1:60))
  for (bad in c(NA, Inf, 1e-310)) for (use in uses) {
    error <- refused(use(replace(R, 1, bad)), "bad_diagonal")
    expect_identical(unlist(error[c("index", "value")]), c(index = 1, value = bad))
  }
  expect_identical(refused(logdet("a"), "not_numeric")$argument, "f")
  expect_identical(refused(solve_back(R, "a"), "not_numeric")$argument, "b")
  refused(solve_back(R[1:2, ], 1:2), "not_square")
  expect_identical(refused(solve_back(R, 1:60, uplo = "u"), "bad_argument")$argument, "uplo")
  expect_identical(refused(logdet(R, log = TRUE), "bad_argument")$argument, "log")
})

test_that("factors of package Matrix are solved with as what they are", {
  skip_if_not_installed("Matrix")
  A <- crossprod(well_conditioned(6))
  b <- cos(1:6)
  upper <- methods::as(methods::as(chol(A), "triangularMatrix"), "unpackedMatrix")
  for (f in list(upper, Matrix::t(upper), Matrix::chol(methods::as(A, "dpoMatrix")))) {
    expect_equal(solve_back(f, solve_forward(f, b)), solve(A, b))
    expect_equal(solve_forward(f, b), backsolve(chol(A), b, transpose = TRUE))
    expect_equal(logdet(f), as.vector(determinant(A)$modulus))
    own <- if (f@uplo == "U") "upper" else "lower"
    expect_equal(solve_forward(f, b, uplo = own), solve_forward(f, b))
    expect_error(solve_back(f, b, uplo = setdiff(c("upper", "lower"), own)), class = "gpucholmod_bad_argument")
  }
  expect_equal(as.vector(Matrix::solve(upper, b)), backsolve(chol(A), b)) # of the triangle, as ?solve_forward says
  expect_error(solve_forward(methods::as(A, "dpoMatrix"), b), "chol\\(f\\)", class = "gpucholmod_not_numeric")
})
