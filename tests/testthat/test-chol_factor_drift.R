eps <- .Machine$double.eps

# A handle whose factor has trace 10, or what it is said to be, after one modification.
counted <- function(added, removed, scale = 1, precision = "double", trace = 10, error = 0) {
  f <- chol_factor(diag(sqrt(5), 2), "cpu", precision = precision)
  f$trace <- trace
  f$error <- error
  gpucholmod:::rcpp_factor_count(f, added, removed, scale)
  f
}

test_that("the error of a modification is counted by the larger of the two matrices", {
  expect_identical(counted(3, 0)$error, 4 * eps * 13)
  expect_identical(counted(0, 3)$error, 4 * eps * 10)
  expect_identical(counted(3, 4)$error, 4 * eps * 13)
  expect_identical(counted(0, 3, precision = "single")$error, 40 * 2^-23)
  expect_identical(counted(3, 0, scale = 0.5, error = 1)$error, 0.5 + 4 * eps * 8)
})

test_that("the trace follows V, and is asked for where too few digits would be right", {
  expect_identical(counted(3, 0)$trace, 13)
  expect_identical(counted(0, 3)$trace, 7)
  expect_identical(counted(1, 2, scale = 3)$trace, 29)
  expect_identical(counted(0, 10 * (1 - 1e-6))$trace, 10 - 10 * (1 - 1e-6))
  asked <- counted(0, 0, precision = "double", trace = NaN)$trace
  expect_equal(asked, 10)
  for (removed in c(10, 10.1, Inf)) expect_identical(counted(0, removed)$trace, asked)
  expect_identical(counted(Inf, 0)$trace, asked)
  expect_equal(counted(0, 10 * (1 - 1e-6), precision = "single")$trace, 10, tolerance = 1e-6)
})

test_that("the trace is asked for again where what it may be off has added up", {
  for (precision in c("double", "single")) {
    f <- chol_factor(diag(2, 2), "cpu", precision = precision)
    step <- eps_of(precision)^-0.25 / 4
    gpucholmod:::rcpp_factor_count(f, 0, 8 - 8 / step, 1)
    before <- f$trace
    expect_identical(before, 8 - (8 - 8 / step))
    expect_identical(f$trace_error, 32 * eps_of(precision))
    gpucholmod:::rcpp_factor_count(f, 0, before - before / step, 1)
    expect_lt(f$trace, 1.01 * before / step)
    gpucholmod:::rcpp_factor_count(f, 0, 0.99 * f$trace, 1)
    expect_identical(f$trace, 8)
    expect_identical(f$trace_error, 0)
    for (i in 1:3) gpucholmod:::rcpp_factor_count(f, 8, 8, 0.5)  # the larger traces: 12, 10, 9
    expect_equal(f$trace_error, 4 * eps_of(precision) * (12 / 4 + 10 / 2 + 9))
  }
})

at_each_home("the trace keeps its digits through deletions and downdates in a row", {
  set.seed(3)
  for (precision in c("double", "single")) {
    sizes <- if (precision == "double") 10^-(0:8) else 10^-(0:4)
    n <- length(sizes)
    f <- keep(well_conditioned(n) %*% diag(sizes), precision = precision)
    for (j in seq_len(n - 1L)) {
      choldelete_gpu(f, 1L, in_place = TRUE)
      expect_equal(f$trace / sum(as.matrix(f)^2), 1, tolerance = sqrt(eps_of(precision)))
    }
    expect_lt(f$trace, 2 * min(sizes)^2 * n)
  }
})

test_that("modifications add up in the handle", {
  f <- chol_factor(chol(diag(3)), "cpu")
  gpucholmod:::rcpp_factor_count(f, 1, 0, 1)
  gpucholmod:::rcpp_factor_count(f, 0, 2, 1)
  expect_identical(f$modifications, 2L)
  expect_identical(f$trace, 2)
  expect_equal(f$error, 4 * eps * (4 + 4))
})

at_each_home("drift() grows with modifications, and lies above the error that there is", {
  set.seed(1)
  for (precision in c("double", "single")) {
    R <- well_conditioned(200)
    f <- keep(R, precision = precision)
    A <- crossprod(as.matrix(f))
    expect_identical(drift(f), 0)
    for (i in 1:20) {
      V <- as_floats(normal(200, 5))
      cholupdate_gpu(f, V, in_place = TRUE)
      cholupdate_gpu(f, V, downdate = TRUE, in_place = TRUE)
    }
    expect_identical(f$modifications, 40L)
    expect_equal(f$trace, sum(diag(A)), tolerance = 1e-5)
    error <- norm(crossprod(as.matrix(f)) - A, "F") / sum(diag(A))
    expect_gt(drift(f), error)
    expect_lt(drift(f), 200 * eps_of(precision) * 2)
    expect_identical(cholupdate_gpu(f, matrix(0, 200, 0))$modifications, 40L)
  }
})

at_each_home("a downdate that removes nearly all of A shows", {
  set.seed(2)
  V <- normal(50, 2, 1)
  up <- cholupdate_gpu(keep(1e-5 * well_conditioned(50)), V)
  before <- drift(up)
  cholupdate_gpu(up, V, downdate = TRUE, in_place = TRUE)
  expect_gt(drift(up), 1e8 * before)
  expect_equal(up$trace, sum(as.matrix(up)^2), tolerance = 1e-12)
})

at_each_home("drift() is NA where the trace is too small or too large for doubles", {
  for (size in c(1e-165, 1e160)) {
    f <- keep(size * well_conditioned(20))
    expect_identical(drift(f), 0)
    cholupdate_gpu(f, rep(size, 20), in_place = TRUE)
    expect_identical(drift(f), NA_real_)
  }
  f <- keep(1e-130 * well_conditioned(20))
  cholupdate_gpu(f, rep(1e-130, 20), in_place = TRUE)
  expect_gt(drift(f), 0)
  expect_lt(drift(f), 1e-13)
})
