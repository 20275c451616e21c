# Draws from normal distributions, against the standard normal numbers that they are made of, and by their moments.

set.seed(2)
A <- structure(crossprod(well_conditioned(12)), dimnames = rep(list(letters[1:12]), 2L))
R <- chol(A)
mu <- sin(1:12)
same <- function(object, expected) expect_equal(object, expected, tolerance = 1e-12)

# The standard normal numbers, then the draws, with one seed.
with_seed <- function(code) {
  set.seed(3)
  code
}
z <- with_seed(matrix(rnorm(36), 12))

expect_draws <- function(f, named = TRUE, ...) {
  form <- function(x) if (named) structure(x, dimnames = list(letters[1:12], NULL)) else unname(x)
  same(with_seed(draw(f, 3, mu, ...)), form(mu + t(unname(R)) %*% z))
  same(with_seed(draw(f, 3, mu, "precision", ...)), form(mu + backsolve(R, z)))
  same(with_seed(draw(f, 3, 5, ...)), form(5 + t(unname(R)) %*% z))
  means <- matrix(1:36, 12)
  same(with_seed(draw(f, 3, means, ...)), form(means + t(unname(R)) %*% z))
  same(with_seed(draw(f, ...)), form(t(unname(R)) %*% z[, 1, drop = FALSE]))
  expect_identical(dim(draw(f, 0, ...)), c(12L, 0L))
}

test_that("draws with an ordinary factor are those of the same standard normal numbers", {
  expect_draws(R)
  expect_draws(t(R), uplo = "lower")
  filled <- R
  filled[lower.tri(filled)] <- 7
  suppressWarnings(expect_draws(filled), classes = "gpucholmod_other_triangle")
})

at_each_home("draws with a handle are those of the same standard normal numbers", {
  expect_draws(keep(R))
  expect_draws(keep(t(R), uplo = "lower"))
})

test_that("draws with a file are those of the same standard normal numbers", {
  skip_on_os("windows")
  f <- write_factor(R, tempfile())
  on.exit(unlink(f$path))
  expect_draws(f, named = FALSE)
})

test_that("mean and covariance of many draws are those that were asked for", {
  m <- 20000
  for (of in c("covariance", "precision")) {
    x <- with_seed(draw(R, m, mu, of))
    variance <- unname(if (of == "covariance") A else solve(A))
    s <- sqrt(diag(variance))
    expect_lt(max(abs(rowMeans(x) - mu) / s), 5 / sqrt(m))
    expect_lt(max(abs(cov(t(x)) - variance) / tcrossprod(s)), 10 / sqrt(m))
  }
})

test_that("arguments that cannot be used are named", {
  refused <- function(call) expect_error(call, class = "gpucholmod_bad_argument")$argument
  for (bad in list(-1, 1.5, NA, "2", 1:2)) expect_identical(refused(draw(R, bad)), "m")
  expect_identical(refused(draw(R, 1, of = "variance")), "of")
  expect_identical(refused(draw(R, 1, 0, "precision", 3)), "...")
  expect_identical(expect_error(draw(R, 2, 1:11), class = "gpucholmod_dimension_mismatch")$expected, 12L)
  expect_error(draw(R, 2, matrix(0, 3, 8)), class = "gpucholmod_dimension_mismatch")
  expect_error(draw(R, 2, c(NA, 1:11)), class = "gpucholmod_not_finite")
  expect_error(draw(chol_batch(array(R, c(12, 12, 1)))), class = "gpucholmod_not_supported")
  expect_error(draw(handle_of_nothing("freed")), class = "gpucholmod_invalid_factor")
})

test_that("processes draw with the random numbers of the first", {
  skip_on_cran()
  set.seed(4)
  expected <- draw(chol(diag(3) + 1), 2, of = "precision")
  run <- in_processes(2, c(
    "f <- chol_factor(if (rank == 0) chol(diag(3) + 1), processes = TRUE)",
    "set.seed(4 + rank)",
    "x <- draw(f, 2, of = 'precision')",
    "tell(format(sum(x * 1:6), digits = 10))",
    "tell(class_of(draw(f, 2)), class_of(crossprod(f, 1:3)), class_of(f[1, 2]))"
  ))
  expect_told(run, 0:1, c(format(sum(expected * 1:6), digits = 10),
                          paste(rep("gpucholmod_not_supported", 3), collapse = " ")))
})
