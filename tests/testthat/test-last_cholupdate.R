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
  expect_identical(last_cholupdate()[c("blocks", "fallbacks", "rescalings", "in_place", "panels")],
                   list(blocks = 0, fallbacks = 0, rescalings = 0, in_place = FALSE, panels = 0))
})
