test_that("last_cholupdate() tells what was done", {
  cholupdate_gpu(diag(5), matrix(0.1, 5, 2), TRUE, backend = "cpu", method = "panel", precision = "single")
  last <- last_cholupdate()
  expect_s3_class(last, "gpucholmod_report")
  expect_identical(last[c("n", "k", "downdate", "backend", "method", "precision")],
                   list(n = 5, k = 2, downdate = TRUE, backend = "cpu", method = "panel", precision = "single"))
  expect_gte(last$seconds, 0)
  expect_gt(last$device_bytes_peak, 0)
  expect_output(print(last), "rank-2 downdate of order 5")
})

test_that("a downdate that was not done says so", {
  cholupdate_gpu(diag(2), c(0, 2), TRUE, check = FALSE)
  expect_identical(last_cholupdate()$pivot, 2L)
  expect_output(print(last_cholupdate()), "not done: the leading minor of order 2")
})

test_that("'auto' is resolved to what ran", {
  cholupdate_gpu(diag(5), 1:5, backend = "cpu")
  expect_identical(last_cholupdate()$method, "blocked")
  cholupdate_gpu(diag(5), 1:5, method = "reference")
  expect_identical(last_cholupdate()$backend, "cpu")
})

test_that("the panel method holds O(n) device memory, on the CPU's emulation of it too", {
  peak <- function(n) {
    cholupdate_gpu(diag(n), rep(0.1, n), backend = "cpu", method = "panel")
    last_cholupdate()$device_bytes_peak
  }
  expect_lt(peak(2400), 4.1 * peak(600))
  expect_lt(peak(2400), 8 * 2400^2 / 10)
})

test_that("what belongs to another method is 0 or FALSE", {
  cholupdate_gpu(diag(5), 1:5, backend = "cpu")
  expect_identical(last_cholupdate()[c("blocks", "fallbacks", "rescalings", "in_place", "panels", "gpus")],
                   list(blocks = 0, fallbacks = 0, rescalings = 0, in_place = FALSE, panels = 0, gpus = 0L))
})

test_that("of a batch it tells the members, and what is common to them", {
  R <- array(diag(3), c(3, 3, 4))
  cholupdate_batch(R, array(0.1, c(3, 2, 4)), weights = c(1, -1), scale = 0.9, backend = "cpu")
  last <- last_cholupdate()
  expect_identical(last[c("n", "k", "members", "removed", "method", "backend", "pivot")],
                   list(n = 3, k = 2, members = 4, removed = 1, method = "batch", backend = "cpu", pivot = 0L))
  expect_equal(last$scale, 0.9)
  expect_gte(last$seconds, 0)
  expect_output(print(last), "modification of 4 factors, of order 3, of rank 2")
  cholupdate_batch(chol_batch(R, "cpu"), array(c(2, 0, 0), c(3, 1, 4)), TRUE, check = FALSE, in_place = TRUE)
  expect_identical(last_cholupdate()[c("downdate", "in_place", "pivot")],
                   list(downdate = TRUE, in_place = TRUE, pivot = 1L))
  expect_output(print(last_cholupdate()), "leading minor of order 1")
  cholupdate_batch(list(diag(2), diag(3)), list(1:2, 1:3), backend = "cpu")
  expect_identical(last_cholupdate()[c("n", "k", "members")], list(n = NA_real_, k = NA_real_, members = 2))
  cholupdate_gpu(diag(5), 1:5, backend = "cpu")
  expect_identical(last_cholupdate()$members, 0)
})
