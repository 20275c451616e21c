# `k` must be large enough for the call to last longer than a second.
expect_interruptible <- function(method, k) {
  set.seed(1)
  R <- diag(3000)
  V <- matrix(rnorm(3000 * 100, sd = 1e-3), 3000, k)
  R_before <- unshared(R)
  finished <- FALSE
  interrupt_after(1)
  start <- proc.time()[["elapsed"]]
  result <- tryCatch(
    {
      modify(R, V, FALSE, method)
      finished <- TRUE
      Sys.sleep(5) # for a signal that comes too late
    },
    interrupt = function(e) "interrupted"
  )
  expect_identical(result, "interrupted")
  expect_false(finished)
  expect_lt(proc.time()[["elapsed"]] - start, 10)
  expect_identical(R, R_before)
  small <- well_conditioned(30)
  expect_lt(residual_ratio(modify(small, 1:30, FALSE, method), small, 1:30, FALSE), 30)
}

test_that("Ctrl-C stops a long call, which leaves nothing changed", {
  skip_on_cran()
  skip_on_os("windows")
  for (name in c("reference, order A", "reference, order B", "panel on the CPU")) {
    expect_interruptible(cpu_methods[[name]], 3000)
  }
  for (threads in 1:2) {
    for (method in c("blocked", "stream")) {
      control <- cholupdate_control(threads = threads, instructions = "plain")
      expect_interruptible(list(backend = "cpu", method = method, control = control), 5000)
    }
  }
})

test_that("Ctrl-C stops a long call on the GPU, which frees what it held", {
  skip_on_os("windows")
  skip_without_gpu()
  modify(diag(10), 1:10, FALSE, cuda_methods$panel)
  invisible(gc()) # factors on the GPU that nobody refers to any more
  gpu_release()
  before <- gpu_info()$devices$memory_free[[1L]]
  expect_interruptible(cuda_methods$panel, 12000)
  expect_equal(gpu_info()$devices$memory_free[[1L]], before, tolerance = 1e-4)
  expect_interruptible(list(backend = "cuda", method = "stream", control = cholupdate_control(threads = 1)), 40000)
  gpu_release()
  expect_equal(gpu_info()$devices$memory_free[[1L]], before, tolerance = 1e-4)
})

test_that("a time limit stops a long call as an error, which tryCatch() gets to see", {
  skip_on_cran()
  R <- diag(3000)
  V <- matrix(rnorm(3000 * 100, sd = 1e-3), 3000, 3000)
  for (method in c("blocked", "stream", "reference", "panel")) {
    caught <- tryCatch({
      setTimeLimit(elapsed = 0.5, transient = TRUE)
      cholupdate_gpu(R, V, backend = "cpu", method = method, control = cholupdate_control(instructions = "plain"))
      "finished"
    }, error = function(e) if (gpucholmod:::is_time_limit(e)) "the limit" else e,
    interrupt = function(e) "an interrupt")
    setTimeLimit()
    expect_identical(caught, "the limit", label = method)
  }
  expect_identical(R, diag(3000))
})

test_that("a time limit stops bench_paper() too, and is not saved as a failure", {
  skip_on_cran()
  file <- tempfile(fileext = ".csv")
  on.exit(unlink(file))
  caught <- tryCatch({
    setTimeLimit(elapsed = 1, transient = TRUE)
    bench_paper(sizes = 2000, ranks = 500, methods = "sweeps", precisions = "double", repeats = 50, file = file,
                longest = 1e6, verbose = FALSE)
  }, error = function(e) if (gpucholmod:::is_time_limit(e)) "the limit" else e)
  setTimeLimit()
  expect_identical(caught, "the limit")
  expect_false(any(grepl("failed", readLines(file))))
})
