test_that("gpu_info() says what 'auto' takes, and why", {
  info <- gpu_info()
  expect_s3_class(info, "gpucholmod_info")
  expect_identical(info$backend, if (info$usable) "cuda" else "cpu")
  expect_true(nzchar(info$configured))
  expect_identical(nzchar(info$reason), !info$usable)
  expect_identical(nzchar(info$message), !info$usable)
  if (!info$usable) {
    expect_true(info$reason %in% c("not_built", "no_driver", "driver_too_old", "no_device", "device_too_old", "forked",
                                   "failed"))
  }
  if (!info$built) {
    expect_identical(info$reason, "not_built")
    expect_true(is.na(info$toolkit_version))
  }
  expect_s3_class(info$devices, "data.frame")
  expect_true(all(info$devices$kernels %in% c("clusters", "tensor_cores", "plain", "steps", NA)))
  expect_identical(is.na(info$devices$kernels), !info$devices$usable)
  expect_output(print(info), "backend \"auto\"")
  expect_identical(cholupdate_plan(50000, 16, control = cholupdate_control(threads = 16))$backend, info$backend)
})

test_that("a GPU that can be used is described", {
  skip_without_gpu()
  info <- gpu_info()
  device <- info$devices[info$devices$id == info$device, ]
  expect_true(device$usable)
  expect_gt(device$memory_total, 2^30)
  expect_lte(device$memory_free, device$memory_total)
  expect_output(print(info), device$name, fixed = TRUE)
  expect_output(print(info), if (device$kernels == "steps") "stepwise" else "quick kernels")
})

test_that("loading the package calls nothing of CUDA", {
  skip_on_cran()
  code <- "library(gpucholmod); cat(any(grepl('libcuda[.]so', readLines('/proc/self/maps'))))"
  skip_if_not(file.exists("/proc/self/maps"))
  libs <- paste(.libPaths(), collapse = .Platform$path.sep)
  out <- system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE,
                 env = paste0("R_LIBS=", shQuote(libs)))
  expect_identical(out, "FALSE")
})
