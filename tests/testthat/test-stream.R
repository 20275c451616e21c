# Method "stream": a factor that goes through the device in panels of columns. On the CPU the same plan, staging and
# schedule run as on the GPU; what only the GPU can show is skipped without one.

streams <- function() {
  c(list(cpu = list(backend = "cpu", method = "stream")),
    if (gpu_info(memory = FALSE)$usable) list(cuda = list(backend = "cuda", method = "stream")))
}

least_memory <- function(R, V, method) {
  tryCatch(modify(R, V, FALSE, method, control = cholupdate_control(device_memory = 1)),
           gpucholmod_out_of_memory = function(e) {
             expect_identical(e$available, 1)
             e$needed
           })
}

test_that("any budget of device memory gives the same bits, and is kept", {
  set.seed(1)
  for (method in streams()) {
    for (case in list(c(300, 1), c(517, 16), c(700, 70))) {
      R <- well_conditioned(case[[1]])
      V <- normal(case[[1]], case[[2]], 0.3)
      for (uplo in c("upper", "lower")) {
        X <- if (uplo == "upper") R else t(R)
        expected <- modify(X, V, FALSE, method, uplo = uplo)
        least <- least_memory(R, V, method)
        for (budget in c(least, 1.3 * least, 3 * least, Inf)) {
          for (threads in c(1, 3)) {
            control <- cholupdate_control(device_memory = budget, threads = threads)
            expect_identical(modify(X, V, FALSE, method, uplo = uplo, control = control), expected)
            expect_lte(last_cholupdate()$device_bytes_peak, budget)
          }
        }
        error <- expect_error(modify(R, V, FALSE, method, control = cholupdate_control(device_memory = least - 1)),
                              class = "gpucholmod_out_of_memory")
        expect_identical(error[c("needed", "available")], list(needed = least, available = least - 1))
      }
    }
  }
})

test_that("on the CPU the bits are those of method blocked", {
  set.seed(2)
  for (n in c(1, 31, 128, 129, 400)) {
    for (precision in c("double", "single")) {
      R <- well_conditioned(n)
      V <- normal(n, 5, 0.3)
      up <- modify(R, V, FALSE, cpu_methods$blocked, precision = precision)
      expect_identical(modify(R, V, FALSE, streams()$cpu, precision = precision), up)
      expect_identical(modify(up, V, TRUE, streams()$cpu, precision = precision),
                       modify(up, V, TRUE, cpu_methods$blocked, precision = precision))
    }
  }
})

test_that("on the GPU a single panel gives the same bits, and a factor that stays there agrees", {
  skip_without_gpu()
  set.seed(3)
  for (n in c(1, 127, 129, 1000)) {
    for (k in c(1, 16, 65)) {
      R <- well_conditioned(n)
      V <- normal(n, k, 0.3)
      up <- modify(R, V, FALSE, streams()$cuda)
      expect_equal(as.matrix(cholupdate_gpu(gpu_factor(R), V)), up, tolerance = 1e-14)
      expect_identical(cholupdate_gpu(R, V, method = "resident"), up)
      expect_identical(last_cholupdate()$panels, 1)
      expect_identical(cholupdate_gpu(t(R), V, method = "resident", uplo = "lower"), t(up))
    }
  }
})

test_that("a downdate that fails in the last panel changes nothing, and the next call works", {
  set.seed(4)
  for (method in streams()) {
    R <- well_conditioned(600)
    v <- numeric(600)
    v[[600]] <- 1.5 * sqrt(crossprod(R)[600, 600])
    method$control <- cholupdate_control(device_memory = least_memory(R, v, method))
    before <- unshared(R)
    for (i in 1:3) {
      error <- expect_error(modify(R, v, TRUE, method), class = "gpucholmod_not_positive_definite")
      expect_identical(error$pivot, 600L)
    }
    expect_gt(last_cholupdate()$panels, 2)
    expect_identical(R, before)
    expect_lt(residual_ratio(modify(R, v, FALSE, method), R, v, FALSE), 30)
  }
})

test_that("bad input is an error whatever the first panels come to", {
  for (method in streams()) {
    method$control <- cholupdate_control(device_memory = least_memory(diag(600), 1:600, method))
    R <- diag(600)
    R[5, 590] <- NaN
    error <- expect_error(modify(R, 1:600, TRUE, method), class = "gpucholmod_not_finite")
    expect_identical(c(error$row, error$col), c(5, 590))
    R[5, 590] <- 0
    R[599, 599] <- 1e-310
    error <- expect_error(modify(R, 1:600, TRUE, method), class = "gpucholmod_bad_diagonal")
    expect_identical(error$index, 599)
  }
})

test_that("factors near the ends of the range are scaled, in whichever panel that is found out", {
  set.seed(5)
  R <- well_conditioned(400)
  V <- normal(400, 3)
  for (method in streams()) {
    up <- modify(R, V, FALSE, method)
    for (scale in 2^c(-1000, 600, 1000)) expect_equal(modify(R * scale, V * scale, FALSE, method) / scale, up)
    large <- R
    large[2, 399] <- 2^900
    expect_lt(residual_ratio(modify(large, V, FALSE, method) * 2^-600, large * 2^-600, V * 2^-600, FALSE), 30)
  }
})

test_that("the report tells what was done, with a timeline where that is asked for", {
  R <- well_conditioned(600)
  for (method in streams()) {
    modify(R, 1:600, FALSE, method, control = cholupdate_control(threads = 2, timeline = TRUE))
    report <- last_cholupdate()
    expect_identical(report[c("method", "backend", "threads")],
                     list(method = "stream", backend = method$backend, threads = 2L))
    expect_output(print(report), "2 threads to move data")
    stages <- c("fill", "empty", if (method$backend == "cuda") c("send", "modify", "fetch"))
    expect_setequal(report$timeline$stage, stages)
    expect_true(all(report$timeline$begin <= report$timeline$end))
    expect_setequal(report$timeline$panel, seq_len(report$panels))
    modify(R, 1:600, FALSE, method)
    expect_null(last_cholupdate()$timeline)
  }
})

test_that("calls reuse what is kept between them, and gpu_release() gives it back", {
  skip_without_gpu()
  method <- streams()$cuda
  R <- diag(2000)
  V <- normal(2000, 16, 0.1)
  modify(R, V, FALSE, method)
  gpu_release()
  expect_identical(gpu_release(), 0)
  device_before <- gpu_info()$devices$memory_free[[1L]]
  for (i in 1:3) modify(R, V, FALSE, method)
  kept <- device_before - gpu_info()$devices$memory_free[[1L]]
  for (i in 1:30) modify(R, V, FALSE, method)
  expect_equal(device_before - gpu_info()$devices$memory_free[[1L]], kept)
  expect_lte(kept, 2^28 + 2^25)
  bytes <- gpu_release()
  expect_gt(bytes, 0)
  expect_lt(bytes, 80e6)
  expect_equal(gpu_info()$devices$memory_free[[1L]], device_before, tolerance = 1e-4)
})

test_that("host memory does not grow from call to call", {
  skip_on_os(c("windows", "mac", "solaris"))
  resident_bytes <- function() {
    invisible(gc())
    status <- readLines("/proc/self/status")
    1024 * as.numeric(sub("\\D*(\\d+).*", "\\1", grep("^VmRSS", status, value = TRUE)))
  }
  for (method in streams()) {
    run <- function(times) for (i in seq_len(times)) modify(diag(1000), 1:1000, FALSE, method)
    run(10)
    before <- resident_bytes()
    run(50) # each result takes 8 MB
    expect_lt(resident_bytes() - before, 60e6)
  }
})
