# What only a GPU can show. Everything else about its methods for ordinary matrices is tested on the CPU too.

test_that("the GPU holds the residual ratio for every family and precision", {
  skip_without_gpu()
  set.seed(1)
  for (method in cuda_methods) {
    for (k in c(1, 16, 33)) {
      for (n in c(130, 517)) {
        for (family in names(update_families)) {
          case <- update_families[[family]](n, k)
          for (precision in c("double", "single")) {
            up <- modify(case$R, case$V, FALSE, method, precision = precision)
            expect_lt(residual_ratio(up, case$R, case$V, FALSE, precision), 30, label = paste(family, precision, n, k))
            expect_true(all(diag(up) > 0) && all(up[lower.tri(up)] == 0))
          }
        }
        for (family in names(downdate_families)) {
          case <- downdate_families[[family]](n, k)
          down <- modify(case$R, case$V, TRUE, method)
          expect_lt(residual_ratio(down, case$R, case$V, TRUE), 30, label = paste(family, n, k))
        }
      }
    }
  }
})

test_that("the GPU agrees with the reference for every size", {
  skip_without_gpu()
  set.seed(2)
  for (n in c(0, 1, 2, 63, 64, 65, 127, 129, 300, 1000)) {
    for (k in c(0, 1, 2, 4, 5, 15, 16, 17, 32, 33, 70)) {
      R <- if (n) well_conditioned(n) else matrix(0, 0, 0)
      V <- normal(n, k, 0.1)
      for (method in cuda_methods) {
        expect_equal(modify(R, V, FALSE, method), modify(R, V, FALSE, cpu_methods[["reference, order B"]]),
                     tolerance = 1e-13)
      }
    }
  }
})

test_that("every compiled shape of the panel method's kernel is right, and repeatable bit for bit", {
  skip_without_gpu()
  set.seed(3)
  R <- well_conditioned(400)
  V <- normal(400, 37)
  expected <- modify(R, V, FALSE, cpu_methods[["reference, order B"]])
  for (elements in c(1, 4, 8, 16, 32)) {
    for (threads in c(32, 64, 256)) {
      for (rows in c(15, 64, 100)) {
        control <- cholupdate_control(blocks_per_kernel = 2, threads_per_block = threads,
                                      elements_per_thread = elements,
                                      panel_rows = rows)
        for (precision in c("double", "single")) {
          run <- function() {
            cholupdate_gpu(R, V, backend = "cuda", method = "panel", precision = precision, control = control)
          }
          up <- run()
          expect_equal(up, expected, tolerance = 1e3 * eps_of(precision))
          expect_identical(run(), up)
        }
      }
    }
  }
})

test_that("a downdate that cannot be done is reported as on the CPU, and the GPU can be used again", {
  skip_without_gpu()
  set.seed(4)
  R <- well_conditioned(300)
  for (at in c(1, 64, 65, 299, 300)) {
    v <- numeric(300)
    v[at] <- 1.5 * sqrt(crossprod(R)[at, at])
    for (method in cuda_methods) {
      error <- expect_error(modify(R, v, TRUE, method), class = "gpucholmod_not_positive_definite")
      expect_identical(error$pivot, as.integer(at))
      expect_lt(residual_ratio(modify(R, v, FALSE, method), R, v, FALSE), 30)
    }
  }
})

test_that("device memory of the panel method grows as O(n), is given back, and its limit is kept", {
  skip_without_gpu()
  peak <- function(n) {
    cholupdate_gpu(diag(n), rep(0.1, n), backend = "cuda", method = "panel")
    last_cholupdate()$device_bytes_peak
  }
  expect_lt(peak(4000), 4.1 * peak(1000))
  expect_lt(peak(4000), 8 * 4000^2 / 10)
  before <- gpu_info()$devices$memory_free[[1L]]
  for (i in 1:20) peak(1000)
  expect_equal(gpu_info()$devices$memory_free[[1L]], before, tolerance = 1e-4)
  error <- expect_error(cholupdate_gpu(diag(1000), rep(0.1, 1000), backend = "cuda", method = "panel",
                                       control = cholupdate_control(device_memory = 1e5)),
                        class = "gpucholmod_out_of_memory")
  expect_gt(error$needed, 1e5)
})

test_that("after fork() the child says that it cannot use the GPU, and 'auto' takes the CPU", {
  skip_on_os("windows")
  skip_without_gpu()
  R <- diag(50)
  modify(R, 1:50, FALSE, cuda_methods$panel)
  answers <- parallel::mclapply(1:2, function(i) {
    asked <- tryCatch(cholupdate_gpu(R, 1:50, backend = "cuda"), gpucholmod_backend_unavailable = function(e) e$reason)
    auto <- cholupdate_gpu(R, 1:50)
    list(asked, last_cholupdate()$backend, residual_ratio(auto, R, 1:50, FALSE))
  }, mc.cores = 2)
  for (answer in answers) {
    expect_identical(answer[1:2], list("forked", "cpu"))
    expect_lt(answer[[3]], 30)
  }
  expect_identical({ modify(R, 1:50, FALSE, cuda_methods$panel); last_cholupdate()$backend }, "cuda")
})
