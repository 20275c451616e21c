test_that("a plan says what the call then does", {
  R <- well_conditioned(300)
  V <- normal(300, 3)
  for (method in c("auto", "blocked", "reference", "panel", "stream")) {
    plan <- cholupdate_plan(R, V, backend = "cpu", method = method)
    cholupdate_gpu(R, V, backend = "cpu", method = method)
    expect_identical(plan[c("backend", "method")], unclass(last_cholupdate())[c("backend", "method")])
    expect_output(print(plan), sprintf("rank-3 modification of order 300: method \"%s\", backend cpu", plan$method))
  }
  control <- cholupdate_control(device_memory = "2MB", threads = 2)
  plan <- cholupdate_plan(300, 3, backend = "cpu", method = "stream", control = control)
  cholupdate_gpu(R, V, backend = "cpu", method = "stream", control = control)
  expect_identical(plan$panels, last_cholupdate()$panels)
  expect_identical(plan$device_bytes, last_cholupdate()$device_bytes_peak)
  expect_identical(plan$threads, last_cholupdate()$threads)
})

at_each_home("a plan for a handle is what the call then does, and refuses what it refuses", {
  f <- keep(well_conditioned(200))
  V <- normal(200, 3)
  for (method in c("auto", methods)) {
    plan <- cholupdate_plan(f, V, method = method)
    cholupdate_gpu(f, V, method = method)
    expect_identical(plan[c("backend", "method", "n", "k")],
                     unclass(last_cholupdate())[c("backend", "method", "n", "k")])
    expect_true(all(is.na(plan$expected)))
    expect_output(print(plan), sprintf("method \"%s\", backend %s", plan$method, home))
  }
  wrong <- list(method = "stream", backend = if (home == "cpu") "cuda" else "cpu", precision = "single")
  for (argument in names(wrong)) {
    arguments <- c(list(f, V), wrong[argument])
    error <- expect_error(do.call(cholupdate_plan, arguments), class = "gpucholmod_bad_argument")
    expect_identical(error[c("argument", "value")], list(argument = argument, value = wrong[[argument]]))
    expect_error(do.call(cholupdate_gpu, arguments), class = "gpucholmod_bad_argument")
  }
  expect_identical(cholupdate_plan(keep(diag(20), precision = "single"), 1)$n, 20)
  free(f)
  expect_error(cholupdate_plan(f, V), class = "gpucholmod_invalid_factor")
})

test_that("a plan for a file is what the call then does, and refuses what it refuses", {
  skip_on_os("windows")
  f <- write_factor(well_conditioned(200), tempfile())
  on.exit(unlink(f$path))
  V <- normal(200, 3)
  for (method in c("auto", "stream")) {
    plan <- cholupdate_plan(f, V, method = method, backend = "cpu")
    unlink(cholupdate_gpu(f, V, output = tempfile(), method = method, backend = "cpu")$path)
    expect_identical(plan[c("backend", "method", "panels", "threads")],
                     unclass(last_cholupdate())[c("backend", "method", "panels", "threads")])
  }
  for (method in c("blocked", "refactor", "reference", "panel", "resident", "persistent", "stepwise")) {
    expect_error(cholupdate_plan(f, 1, method = method), class = "gpucholmod_bad_argument")
    expect_error(cholupdate_gpu(f, V, output = tempfile(), method = method), class = "gpucholmod_bad_argument")
  }
  expect_error(cholupdate_plan(f, 1, precision = "single"), class = "gpucholmod_bad_argument")
  unlink(f$path)
  expect_identical(expect_error(cholupdate_plan(f, 1), class = "gpucholmod_bad_file")$reason, "missing")
})

test_that("what no call can be is not planned", {
  expect_error(cholupdate_plan(matrix(0, 3, 4), 1), class = "gpucholmod_not_square")
  expect_error(cholupdate_plan(diag(2) + 1, 1), class = "gpucholmod_not_triangular")
  expect_error(cholupdate_plan(matrix("a", 2, 2), 1), class = "gpucholmod_not_numeric")
  expect_error(cholupdate_plan(chol(diag(2) + 1, pivot = TRUE), 1), class = "gpucholmod_pivoted")
  expect_error(cholupdate_plan(chol_batch(array(1, c(1, 1, 1)), "cpu"), 1), class = "gpucholmod_bad_argument")
  error <- expect_error(cholupdate_plan(diag(5), matrix(0, 2, 5)), "t\\(k\\)", class = "gpucholmod_dimension_mismatch")
  expect_identical(error[c("expected", "actual")], list(expected = 5, actual = 2L))
  expect_silent(cholupdate_plan(matrix(0, 5, 5), 1))
  expect_silent(cholupdate_plan(t(well_conditioned(5)), 1))
  expect_error(cholupdate_plan(make_float32(diag(4)), 1, method = "refactor"), class = "gpucholmod_bad_argument")
  expect_identical(cholupdate_plan(make_float32(diag(4)), make_float32(diag(4)))$k, 4)
})

test_that("sizes may be given as such or by what has them", {
  expect_identical(cholupdate_plan(diag(4), 1:4)[c("n", "k")], list(n = 4, k = 1))
  expect_identical(cholupdate_plan(4, matrix(0, 4, 2))[c("n", "k")], list(n = 4, k = 2))
  for (bad in list(-1, 1.5, NA, "a", NULL, Inf, 1e300, 2^31)) {
    expect_error(cholupdate_plan(bad, 1), class = "gpucholmod_bad_argument")
    expect_error(cholupdate_plan(10, bad), class = "gpucholmod_bad_argument")
  }
  expect_error(cholupdate_plan(10, 1, control = list()), class = "gpucholmod_bad_argument")
  expect_error(cholupdate_plan(10, 1, "cpu"), class = "gpucholmod_bad_argument")
  expect_error(cholupdate_plan(100, 1, backend = "cpu", method = "resident"), class = "gpucholmod_bad_argument")
})

test_that("the GPU is expected to pay for large factors, and small ones stay on the CPU", {
  skip_if_not(gpu_info(memory = FALSE)$built, "built without CUDA")
  small <- cholupdate_plan(100, 1)
  expect_identical(small$backend, "cpu")
  expect_gt(small$expected[["gpu"]], small$expected[["cpu"]])
  large <- cholupdate_plan(30000, 16, control = cholupdate_control(threads = 16))
  expect_lt(large$expected[["gpu"]], large$expected[["cpu"]])
  started <- large$expected[["start"]] == 0 # otherwise one such call does not pay for it
  expect_identical(large$backend, if (started) gpu_info(memory = FALSE)$backend else "cpu")
})

test_that("CUDA is started once it would have paid, and not before", {
  skip_without_gpu()
  skip_on_cran()
  library_path <- dirname(find.package("gpucholmod"))
  code <- sprintf("library(gpucholmod, lib.loc = \"%s\"); R <- diag(4000); V <- matrix(1e-3, 4000, 64);
    control <- cholupdate_control(instructions = \"plain\", threads = 16)
    cat(replicate(80, { cholupdate_gpu(R, V, control = control); last_cholupdate()$backend }))", library_path)
  taken <- scan(text = system2(file.path(R.home("bin"), "Rscript"), c("-e", shQuote(code)), stdout = TRUE), what = "",
                quiet = TRUE)
  expect_identical(rle(taken)$values, c("cpu", "cuda"))
})

test_that("without CUDA, nothing is said of a GPU's time", {
  skip_if(gpu_info(memory = FALSE)$built)
  plan <- cholupdate_plan(5000, 16)
  expect_identical(plan$backend, "cpu")
  expect_true(is.na(plan$expected[["gpu"]]))
  expect_match(plan$why, "built without CUDA")
  expect_no_match(plan$why, "on the GPU")
})

test_that("two times that are compared are told with as many digits as tell them apart", {
  control <- cholupdate_control()
  control$optimised_blas <- TRUE
  compared <- 0
  for (n in c(40, 60, 100, 300, 1000)) {
    for (k in c(0.2, 0.3, 0.4, 0.5, 1, 2) * n) {
      why <- cholupdate_plan(n, k, backend = "cpu", control = control)$why
      if (!grepl("instead of", why)) next
      times <- regmatches(why, regexec("quicker: ([0-9.]+ ms) instead of ([0-9.]+ ms)", why))[[1]]
      compared <- compared + 1
      expect_length(times, 3)
      expect_false(times[[2]] == times[[3]], label = why)
    }
  }
  expect_gt(compared, 0)
})

test_that("columns of weight 0 do not count, and 16 of each sign share a pass", {
  expect_identical(cholupdate_plan(300, 40, weights = rep(c(1, 0), 20))$expected, cholupdate_plan(300, 20)$expected)
  expect_identical(cholupdate_plan(20000, 32, weights = rep(c(1, -1), 16))$expected,
                   cholupdate_plan(20000, 32)$expected)
  both <- cholupdate_plan(20000, 64, weights = rep(c(1, -1), c(20, 44)))$expected
  one <- cholupdate_plan(20000, 64)$expected
  expect_identical(both[["cpu"]], one[["cpu"]])
  if (!is.na(one[["gpu"]])) expect_gt(both[["gpu"]], one[["gpu"]])
  expect_error(cholupdate_plan(300, 40, weights = 1:3), class = "gpucholmod_bad_argument")
  expect_error(cholupdate_plan(300, 40, weights = NA_real_), class = "gpucholmod_not_finite")
})
