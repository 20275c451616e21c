expect_refused <- function(call, argument) {
  expect_identical(expect_error(call, class = "gpucholmod_bad_argument")$argument, argument)
}

test_that("the default is what NULL stands for", {
  control <- cholupdate_control()
  expect_s3_class(control, "gpucholmod_control")
  expect_identical(control$device_memory, Inf)
  expect_identical(control$threads, 0L)
  expect_false(control$timeline)
  expect_identical(cholupdate_control(threads = NULL, panel_rows = NULL), control)
})

test_that("device memory is a number of bytes or a string with a unit", {
  bytes <- function(x) cholupdate_control(device_memory = x)$device_memory
  expect_identical(bytes(0), 0)
  expect_identical(bytes(1000L), 1000)
  expect_identical(bytes(Inf), Inf)
  given <- c("1000000", "12 B", "7kb", "256MB", "1.5 GB", " .5tb ", "3 KiB", "512MiB", "4gIB", "2.TIB")
  meant <- c(1e6, 12, 7e3, 256e6, 1.5e9, 0.5e12, 3 * 1024, 512 * 1024^2, 4 * 1024^3, 2 * 1024^4)
  expect_identical(vapply(given, bytes, 0, USE.NAMES = FALSE), meant)
  for (bad in list("256M", "4G", "4g", "", "GB", "4 bytes", "-1GB", "1e3.5", "1,5GB", "4 G B", "1GB 2", NA,
                   NA_character_,
                   NaN, -1, TRUE, NULL, c(1, 2), c("1GB", "2GB"), list("1GB"))) {
    expect_refused(bytes(bad), "device_memory")
  }
})

test_that("threads are a whole number, from the option where they are not given", {
  expect_identical(cholupdate_control(threads = 3)$threads, 3L)
  for (bad in list(0, -1, 1.5, NA, "2", c(1, 2), Inf)) expect_refused(cholupdate_control(threads = bad), "threads")
  old <- options(gpucholmod.threads = 2)
  on.exit(options(old))
  expect_identical(cholupdate_control()$threads, 2L)
  expect_identical(cholupdate_control(threads = 5L)$threads, 5L)
  expect_identical(cholupdate_control(threads = NULL)$threads, 0L)
  options(gpucholmod.threads = "many")
  expect_refused(cholupdate_control(), "gpucholmod.threads")
})

test_that("a control that lacks something is refused", {
  control <- cholupdate_control()
  control$threads <- NULL
  expect_identical(expect_error(cholupdate_gpu(diag(2), 1:2, control = control),
                                class = "gpucholmod_bad_argument")$argument,
                   "control")
})

test_that("timeline is TRUE or FALSE", {
  expect_true(cholupdate_control(timeline = TRUE)$timeline)
  for (bad in list(NA, 1, "yes", NULL, c(TRUE, FALSE))) expect_refused(cholupdate_control(timeline = bad), "timeline")
})
