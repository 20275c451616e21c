# Making a factor with memory of its own, and having it back.

test_that("where a factor is kept can be chosen; small ones are in ordinary memory", {
  expect_s3_class(chol_factor(diag(3)), "cpu_factor")
  old <- options(gpucholmod.backend = "cpu")
  on.exit(options(old))
  expect_s3_class(chol_factor(diag(3000)), "cpu_factor")
  options(gpucholmod.backend = "gpu")
  expect_identical(expect_error(chol_factor(diag(3)), class = "gpucholmod_bad_argument")$argument, "gpucholmod.backend")
  expect_identical(expect_error(chol_factor(diag(3), "gpu"), class = "gpucholmod_bad_argument")$argument, "backend")
  expect_identical(expect_error(chol_factor(chol_factor(diag(3), "cpu")), class = "gpucholmod_bad_argument")$argument,
                   "R")
  if (gpu_info(memory = FALSE)$usable) expect_s3_class(chol_factor(diag(2000), "auto"), "gpu_factor")
})

test_that("what cannot be a factor is refused, with or without a GPU", {
  R <- chol(diag(3) + 1)
  expect_error(gpu_factor("a"), class = "gpucholmod_not_numeric")
  expect_error(gpu_factor(R[1:2, ]), class = "gpucholmod_not_square")
  expect_error(gpu_factor(chol(diag(3), pivot = TRUE)), class = "gpucholmod_pivoted")
  expect_identical(expect_error(gpu_factor(R, "l"), class = "gpucholmod_bad_argument")$argument, "uplo")
  expect_identical(expect_error(gpu_factor(R, precision = "half"), class = "gpucholmod_bad_argument")$argument,
                   "precision")
  expect_identical(expect_error(gpu_factor(R, backend = "cuda"), class = "gpucholmod_bad_argument")$argument, "backend")
  expect_identical(expect_error(gpu_factor(handle_of_nothing()), class = "gpucholmod_bad_argument")$argument, "R")
  for (device in list(-1, 0.5, NA_integer_, "0", 0:1, 1e10)) {
    expect_identical(expect_error(gpu_factor(R, device = device), class = "gpucholmod_bad_argument")$argument, "device")
    expect_identical(expect_error(gpu_chol(R, device = device), class = "gpucholmod_bad_argument")$argument, "device")
  }
})

test_that("what cannot be factorised is refused, with or without a GPU", {
  expect_identical(expect_error(gpu_chol("a"), class = "gpucholmod_not_numeric")$argument, "A")
  expect_identical(expect_error(gpu_chol(handle_of_nothing()), class = "gpucholmod_not_numeric")$type, "gpu_factor")
  expect_identical(expect_error(gpu_chol(diag(3)[1:2, ]), class = "gpucholmod_not_square")$nrow, 2L)
  expect_identical(expect_error(gpu_chol(diag(3), "half"), class = "gpucholmod_bad_argument")$argument, "precision")
})

test_that("where there is no GPU, that is an error which says why", {
  info <- gpu_info(memory = FALSE)
  if (info$usable) skip("there is a GPU")
  for (call in list(quote(gpu_factor(diag(3))), quote(gpu_factor(diag(3), device = 0)), quote(gpu_chol(diag(3))))) {
    error <- expect_error(eval(call), class = "gpucholmod_backend_unavailable")
    expect_identical(unclass(error)[c("backend", "reason")], list(backend = "cuda", reason = info$reason))
  }
})

at_each_home("a factor comes back as it went", {
  set.seed(1)
  for (n in c(0, 1, 2, 63, 64, 65, 127, 128, 129, 300, 1000)) {
    R <- if (n) well_conditioned(n) else matrix(0, 0, 0)
    dirty <- R
    dirty[lower.tri(dirty)] <- NaN
    f <- suppressWarnings(keep(dirty), classes = "gpucholmod_other_triangle")
    expect_s3_class(f, c(if (home == "cpu") "cpu_factor" else "gpu_factor", "chol_factor"), exact = TRUE)
    expect_identical(dim(f), dim(R))
    expect_same(as.matrix(f), R, n)
    expect_same(as.matrix(keep(t(dirty), uplo = "lower")), t(R), n)
    rounded <- as_floats(R)
    expect_same(as.matrix(keep(dirty, precision = "single")), rounded, n)
    expect_same(as.matrix(keep(t(dirty), "lower", "single")), t(rounded), n)
  }
})

at_each_home("values that cannot be used are found", {
  R <- well_conditioned(200)
  error <- expect_error(keep(replace(R, 401, NA)), class = "gpucholmod_not_finite")
  expect_identical(unclass(error)[c("argument", "row", "col")], list(argument = "R", row = 1, col = 3))
  expect_identical(expect_error(keep(replace(R, 202, 1e-310)), class = "gpucholmod_bad_diagonal")$index, 2)
  expect_error(keep(replace(R, 401, 1e300), precision = "single"), class = "gpucholmod_overflow")
  expect_error(keep(replace(R, 202, 1e-300), precision = "single"), class = "gpucholmod_bad_diagonal")
})

at_each_home("a factor with zeros on its diagonal is updated", {
  f <- keep(matrix(0, 200, 200))
  V <- normal(200, 20)
  V[151:200, ] <- 0
  f <- cholupdate_gpu(f, V)
  expect_lt(norm(crossprod(as.matrix(f)) - tcrossprod(V), "1"), 1e-12 * norm(tcrossprod(V), "1"))
  expect_true(all(as.matrix(f)[151:200, ] == 0))
  expect_error(solve(f, 1:200), class = "gpucholmod_bad_diagonal")
  expect_error(cholupdate_gpu(f, V[, 1], TRUE), class = "gpucholmod_bad_diagonal")
  R <- chol(tcrossprod(V) + diag(200))
  expect_close(as.matrix(cholupdate_gpu(f, diag(200), in_place = TRUE)), R, 1e-12)
  expect_close(as.matrix(keep(R * rep(c(1, -1), 100))), R, 1e-15)
})

at_each_home("containers and names", {
  R <- chol(structure(diag(3) + 1, dimnames = list(letters[1:3], letters[1:3])))
  f <- keep(R)
  expect_identical(as.matrix(f), R)
  expect_identical(dimnames(f), dimnames(R))
  expect_identical(as.matrix(keep(2L)), matrix(2))
  float <- keep(make_float32(R))
  expect_identical(float$precision, "single")
  expect_identical(as.matrix(float), as_floats(unname(R)))
  expect_identical(as.matrix(keep(make_float32(R), precision = "double")), as_floats(unname(R)))
  skip_if_not_installed("Matrix")
  T <- methods::as(methods::as(Matrix::Matrix(R), "triangularMatrix"), "unpackedMatrix")
  expect_identical(as.matrix(keep(T)), as.matrix(T))
  lower <- keep(Matrix::t(T))
  expect_identical(lower$uplo, "lower")
  expect_identical(as.matrix(lower), t(as.matrix(T)))
})

test_that("gpu_chol() agrees with chol()", {
  skip_without_gpu()
  expect_identical(expect_error(gpu_chol(replace(diag(3), 5, Inf)), class = "gpucholmod_not_finite")$argument, "A")
  set.seed(2)
  for (n in c(0, 1, 2, 64, 129, 500)) {
    A <- if (n) crossprod(well_conditioned(n)) else matrix(0, 0, 0)
    upper <- A
    upper[lower.tri(upper)] <- NaN
    expected <- if (n) chol(A) else A
    expect_close(as.matrix(gpu_chol(upper)), expected, tolerance = 1e-13, n)
    expect_close(as.matrix(gpu_chol(upper, "single")), expected, tolerance = 1e3 * eps_of("single"), n)
  }
  named <- structure(diag(3) + 1, dimnames = list(letters[1:3], letters[1:3]))
  expect_equal(as.matrix(gpu_chol(named)), chol(named), tolerance = 1e-15)
  float <- gpu_chol(make_float32(named))
  expect_identical(float$precision, "single")
  expect_equal(as.matrix(float), unname(chol(named)), tolerance = 1e-6)
  skip_if_not_installed("Matrix")
  expect_equal(as.matrix(gpu_chol(methods::as(named, "dpoMatrix"))), chol(named), tolerance = 1e-15)
})

test_that("a matrix that is not positive definite names the pivot", {
  skip_without_gpu()
  for (at in c(1, 64, 150)) {
    A <- diag(150)
    A[at, at] <- -1
    error <- expect_error(gpu_chol(A), class = "gpucholmod_not_positive_definite")
    expect_identical(error$pivot, as.integer(at))
  }
})

test_that("several devices are ids, each once, or all", {
  R <- chol(diag(3) + 1)
  for (devices in list(-1, 0.5, NA_integer_, "0", integer(), c(0, 1e10), c(0, 0), "each", c(0, NA))) {
    expect_identical(expect_error(chol_factor(R, devices = devices), class = "gpucholmod_bad_argument")$argument,
                     "devices")
    expect_identical(expect_error(gpu_factor(R, devices = devices), class = "gpucholmod_bad_argument")$argument,
                     "devices")
    expect_identical(expect_error(gpu_chol(R, devices = devices), class = "gpucholmod_bad_argument")$argument,
                     "devices")
  }
  for (call in expression(chol_factor(R, "cpu", device = 0), chol_factor(A = R, backend = "cpu", device = 0))) {
    expect_identical(expect_error(eval(call), class = "gpucholmod_bad_argument")$argument, "device")
  }
  for (call in expression(chol_factor(R, "cpu", devices = 0), gpu_factor(R, device = 0, devices = 0:1),
                          gpu_chol(R, device = 0, devices = "all"))) {
    expect_identical(expect_error(eval(call), class = "gpucholmod_bad_argument")$argument, "devices")
  }
  if (gpu_info(memory = FALSE)$usable) {
    error <- expect_error(gpu_factor(R, devices = c(gpu_info(memory = FALSE)$device, 10000)),
                          class = "gpucholmod_bad_argument")
    expect_identical(unclass(error)[c("argument", "value")], list(argument = "devices", value = 10000))
    expect_identical(gpu_chol(R, devices = "all")$n, 3L)
  } else {
    expect_error(chol_factor(R, devices = "all"), class = "gpucholmod_backend_unavailable")
    expect_error(gpu_chol(R, devices = 0:1), class = "gpucholmod_backend_unavailable")
  }
})

test_that("a factor on several devices is used as one on one", {
  skip_without_gpu()
  old <- options(gpucholmod.repeat_devices = TRUE)
  on.exit(options(old))
  ids <- two_gpus()
  set.seed(1)
  n <- 1500
  R <- well_conditioned(n)
  V <- matrix(rnorm(20 * n), n) / 100
  f <- gpu_factor(R, devices = ids)
  g <- gpu_factor(R, device = ids[[1]])
  expect_identical(f$devices, ids)
  expect_match(format(f), sprintf("on devices %d \\(.*\\), %d \\(.*\\)", ids[[1]], ids[[2]]))
  expect_identical(as.matrix(f), R)
  same <- function(f, g) {
    expect_identical(as.matrix(f), as.matrix(g))
    expect_identical(solve(f, V[, 1:2]), solve(g, V[, 1:2]))
    expect_identical(solve(f, V), solve(g, V))
    expect_identical(c(logdet(f), diag(f), drift(f)), c(logdet(g), diag(g), drift(g)))
  }
  same(cholupdate_gpu(f, V), cholupdate_gpu(g, V))
  expect_identical(last_cholupdate()$gpus, 1L)
  cholupdate_gpu(f, V)
  expect_identical(last_cholupdate()$gpus, 2L)
  expect_output(print(last_cholupdate()), "2 times", fixed = TRUE)
  w <- rep(c(1, -0.1), 10)
  for (h in list(f, g)) cholupdate_gpu(h, V, weights = w, scale = 2, in_place = TRUE)
  same(f, g)
  error <- expect_error(cholupdate_gpu(f, 1e3 * V, downdate = TRUE, in_place = TRUE),
                        class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, expect_error(cholupdate_gpu(g, 1e3 * V, downdate = TRUE),
                                             class = "gpucholmod_not_positive_definite")$pivot)
  same(copy_factor(f), g)
  free(f)
  expect_error(diag(f), class = "gpucholmod_invalid_factor")
})

test_that("a factor in a file is held as one in memory", {
  folder <- new_folder()
  on.exit(unlink(folder, recursive = TRUE))
  path <- file.path(folder, "R")
  set.seed(1)
  n <- 700
  R <- well_conditioned(n)
  file <- write_factor(R, path)
  V <- matrix(rnorm(3 * n), n) / 100
  same <- function(f, g) {
    expect_identical(as.matrix(f), as.matrix(g))
    expect_identical(f$capacity, g$capacity)
    expect_identical(as.matrix(cholupdate_gpu(f, V)), as.matrix(cholupdate_gpu(g, V)))
  }
  same(chol_factor(file, "cpu"), chol_factor(R, "cpu"))
  same(chol_factor(file, "cpu", precision = "single", capacity = 800),
       chol_factor(R, "cpu", precision = "single", capacity = 800))
  for (backend in c("cpu", "cuda")) {
    error <- expect_error(chol_factor(file, backend, uplo = "lower"), class = "gpucholmod_bad_argument")
    expect_identical(error$argument, "uplo")
  }
  error <- expect_error(chol_factor(file, "cpu", capacity = 3), class = "gpucholmod_bad_argument")
  expect_identical(error$argument, "capacity")
  unlink(path)
  for (call in expression(chol_factor(file), gpu_factor(file), gpu_factor(file, devices = 0:1))) {
    expect_bad_file(eval(call), "missing", path)
  }
})

test_that("a factor in a file goes to a GPU, and to several, without being whole in memory", {
  skip_without_gpu()
  old <- options(gpucholmod.repeat_devices = TRUE)
  folder <- new_folder()
  on.exit({
    options(old)
    unlink(folder, recursive = TRUE)
  })
  ids <- two_gpus()
  set.seed(1)
  n <- 1500
  R <- well_conditioned(n)
  file <- write_factor(R, file.path(folder, "R"))
  for (devices in list(ids[[1]], ids)) {
    f <- gpu_factor(file, devices = devices)
    expect_identical(f$devices, devices)
    expect_identical(as.matrix(f), R)
    g <- chol_factor(file, precision = "single", devices = devices, capacity = 1600)
    expect_identical(as.matrix(g), as.matrix(gpu_factor(R, precision = "single")))
    expect_identical(g$capacity, 1600L)
  }
  R[700, 1000] <- NaN
  bad <- write_factor(R, file.path(folder, "bad"))
  error <- expect_error(gpu_factor(bad, devices = ids), class = "gpucholmod_not_finite")
  expect_identical(c(error$row, error$col), c(700, 1000))
  R[700, 1000] <- 0
  R[900, 900] <- 1e-310
  bad <- write_factor(R, file.path(folder, "bad"), replace = TRUE)
  expect_identical(expect_error(gpu_factor(bad, devices = ids), class = "gpucholmod_bad_diagonal")$index, 900)
})

test_that("the device can be chosen by argument and option", {
  skip_without_gpu()
  id <- gpu_info(memory = FALSE)$device
  expect_identical(gpu_factor(diag(2), device = id)$device, id)
  old <- options(gpucholmod.device = 10000)
  on.exit(options(old))
  expect_identical(expect_error(gpu_factor(diag(2)), class = "gpucholmod_bad_argument")$argument, "device")
  expect_identical(gpu_chol(diag(2), device = NULL)$device, id)
})

test_that("a triangular matrix in place of A is told from a symmetric one", {
  L <- t(chol(diag(3) + 1))
  error <- expect_error(chol_factor(A = L), "is lower triangular", class = "gpucholmod_bad_argument")
  expect_identical(error$argument, "A")
  bad <- matrix(c(1, 0, 3, 2), 2)
  expect_error(chol_factor(A = bad), "a factor is given as 'R'", class = "gpucholmod_not_positive_definite")
  expect_error(chol_factor(A = rbind(c(1, 2), c(NA, 1))), "jitter", class = "gpucholmod_not_positive_definite")
  expect_error(chol_factor(A = -diag(2)), "jitter", class = "gpucholmod_not_positive_definite")
  upper <- diag(3) + 1
  upper[lower.tri(upper)] <- 0
  expect_equal(as.matrix(chol_factor(A = upper)), chol(diag(3) + 1))
})
