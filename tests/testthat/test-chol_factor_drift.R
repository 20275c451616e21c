eps <- .Machine$double.eps

test_that("the error of a modification is counted by the larger of the two matrices", {
  expect_identical(gpucholmod:::modification_error("double", 1, 10), 40 * eps)
  expect_identical(gpucholmod:::modification_error("double", 10, 1), 40 * eps)
  expect_identical(gpucholmod:::modification_error("single", 2, 1), 8 * 2^-23)
})

test_that("the trace follows V, and is asked for where too few digits would be right", {
  after <- gpucholmod:::modified_trace
  expect_identical(after("double", 10, 3, 0), 13)
  expect_identical(after("double", 10, 0, 3), 7)
  expect_identical(after("double", 10, 0, 10 * (1 - 1e-6)), 10 - 10 * (1 - 1e-6))
  expect_identical(after("single", 10, 0, 10 * (1 - 1e-6)), NA_real_)
  expect_identical(after("double", 10, 0, 10), NA_real_)
  expect_identical(after("double", 10, 0, 10.1), NA_real_)
  expect_identical(after("double", 10, Inf, 0), NA_real_)
})

test_that("modifications add up in the handle", {
  f <- handle_of_nothing()
  gpucholmod:::count_modification(f, c(1, 0))
  gpucholmod:::count_modification(f, c(0, 2))
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
