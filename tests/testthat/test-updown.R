# Matrix::updown() of factors with memory of their own.

skip_if_not_installed("Matrix")

# Evaluates `lines` in a process of their own, where this package comes first: what it prints last.
elsewhere <- function(lines) {
  script <- tempfile(fileext = ".R")
  writeLines(lines, script)
  path <- paste0("R_LIBS=", paste(.libPaths(), collapse = .Platform$path.sep))
  utils::tail(system2(file.path(R.home("bin"), "Rscript"), shQuote(script), stdout = TRUE, env = path), 1L)
}

test_that("updown() gives what cholupdate_gpu() gives, for dense and sparse C, and a new factor", {
  set.seed(1)
  dense <- normal(20, 3) * (runif(60) < 0.3)
  for (precision in c("double", "single")) {
    f <- chol_factor(well_conditioned(20), "cpu", precision = precision)
    before <- as.matrix(f)
    up <- cholupdate_gpu(f, dense)
    back <- as.matrix(cholupdate_gpu(up, dense, downdate = TRUE))
    for (C in list(dense, Matrix::Matrix(dense, sparse = TRUE), Matrix::Matrix(dense, sparse = FALSE))) {
      for (sign in list("+", TRUE)) expect_same(as.matrix(Matrix::updown(sign, C, f)), as.matrix(up))
      for (sign in list("-", FALSE)) expect_same(as.matrix(Matrix::updown(sign, C, up)), back)
    }
    expect_same(as.matrix(f), before)
  }
  expect_same(as.matrix(Matrix::updown("+", dense[, 1], f)), as.matrix(cholupdate_gpu(f, dense[, 1])))
})

test_that("updown() refuses what it cannot use by the errors of this package", {
  f <- chol_factor(chol(diag(3) + 1), "cpu")
  for (bad in list(NA, 1, "x", c("+", "-"), NULL, list("+"))) {
    expect_identical(expect_error(Matrix::updown(bad, 1:3, f), class = "gpucholmod_bad_argument")$argument, "update")
  }
  expect_identical(expect_error(Matrix::updown("+", 1:4, f), class = "gpucholmod_dimension_mismatch")$actual, 4L)
  expect_identical(expect_error(Matrix::updown("-", c(0, 9, 0), f), class = "gpucholmod_not_positive_definite")$pivot,
                   2L)
  expect_error(Matrix::updown("+", 1:3, handle_of_nothing("freed")), class = "gpucholmod_invalid_factor")
})

test_that("updown() is there in whatever order the packages come, and factors of Matrix still have their own", {
  skip_on_cran()
  use <- "cat(as.matrix(Matrix::updown('+', 3, gpucholmod::chol_factor(matrix(4), 'cpu'))))"
  expect_identical(elsewhere(c("loadNamespace('gpucholmod')", "library(Matrix)", use)), "5")
  expect_identical(elsewhere(c("loadNamespace('Matrix')", "library(gpucholmod)", use)), "5")
  expect_identical(elsewhere(c("library(gpucholmod)", "cat(isNamespaceLoaded('Matrix'))")), "FALSE")
  L <- Matrix::Cholesky(methods::as(Matrix::Matrix(diag(4) + 1, sparse = TRUE), "symmetricMatrix"))
  expect_s4_class(Matrix::updown("+", Matrix::Matrix(c(1, 0, 0, 0), sparse = TRUE), L), "CHMfactor")
})
