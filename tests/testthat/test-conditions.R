R <- chol(diag(3) + 1)
V <- matrix(1:6 / 10, 3)

# The error of a call, which must have the class and the fields given.
expect_condition_fields <- function(call, class, ...) {
  error <- expect_error(call, class = paste0("gpucholmod_", class))
  expect_s3_class(error, "gpucholmod_error")
  expected <- list(...)
  if (length(expected)) expect_equal(unclass(error)[names(expected)], expected)
  invisible(error)
}

# The same wrong input must give the same condition on every backend that is there.
for (method in c(cpu_methods, if (gpu_info(FALSE)$usable) cuda_methods)) {
  on <- paste(method$backend, method$method)
  run <- function(R, V, downdate = FALSE) modify(R, V, downdate, method)

  test_that(paste("matrices that cannot be used are refused:", on), {
    expect_condition_fields(run("a", V), "not_numeric", argument = "R", type = "character")
    expect_condition_fields(run(R > 0, V), "not_numeric", argument = "R", type = "logical")
    expect_condition_fields(run(R + 0i, V), "not_numeric", argument = "R", type = "complex")
    expect_condition_fields(run(NULL, V), "not_numeric", argument = "R", type = "NULL")
    expect_condition_fields(run(as.data.frame(R), V), "not_numeric", argument = "R", type = "data.frame")
    expect_condition_fields(run(R, array(1, c(3, 1, 2))), "dimension_mismatch", expected = 3L, actual = c(3L, 1L, 2L))
    expect_condition_fields(run(R, letters[1:3]), "not_numeric", argument = "V", type = "character")
    expect_condition_fields(run(R, factor(1:3)), "not_numeric", argument = "V", type = "factor")
    expect_condition_fields(run(R[1:2, ], V), "not_square", nrow = 2L, ncol = 3L)
    expect_condition_fields(run(1:3, V), "not_square", nrow = 3L, ncol = NA_integer_)
    expect_condition_fields(run(array(1, c(1, 1, 1)), 1), "not_square", nrow = 1L, ncol = 1L)
    expect_condition_fields(run(R, V[1:2, ]), "dimension_mismatch", expected = 3L, actual = 2L)
    expect_condition_fields(run(R, 1:4), "dimension_mismatch", expected = 3L, actual = 4L)
    expect_condition_fields(run(R, numeric(0)), "dimension_mismatch", expected = 3L, actual = 0L)
    expect_match(conditionMessage(expect_error(run(R, t(V)))), "t(V)", fixed = TRUE)
  })

  test_that(paste("values that cannot be used are found:", on), {
    for (bad in c(NA, NaN, Inf, -Inf)) {
      expect_condition_fields(run(replace(R, 7, bad), V), "not_finite", argument = "R", row = 1, col = 3)
      expect_condition_fields(run(R, replace(V, 5, bad)), "not_finite", argument = "V", row = 2, col = 2)
    }
    expect_condition_fields(run(R, c(1L, NA, 2L)), "not_finite", argument = "V", row = 2, col = 1)
    expect_condition_fields(run(replace(R, 5, 0), V, TRUE), "bad_diagonal", index = 2, value = 0)
    expect_condition_fields(run(replace(R, 9, 1e-310), V), "bad_diagonal", index = 3, value = 1e-310)
    expect_condition_fields(run(replace(R, 9, 1e-310), matrix(0, 3, 0)), "bad_diagonal", index = 3, value = 1e-310)
    expect_condition_fields(run(R, 100 * V, TRUE), "not_positive_definite", pivot = 1L)
  })
}

test_that("a pivoted factor is refused", {
  A <- crossprod(matrix(c(1, 2, 3, 4, 5, 6, 7, 8, 10), 3))
  expect_condition_fields(cholupdate_gpu(chol(A, pivot = TRUE), 1:3), "pivoted",
                          pivot = attr(chol(A, pivot = TRUE), "pivot"))
  expect_equal(cholupdate_gpu(structure(R, pivot_info = 1), 1:3), cholupdate_gpu(R, 1:3))
})

test_that("arguments that cannot be used are named", {
  expect_condition_fields(cholupdate_gpu(R, V, FALSE, "lower"), "bad_argument", argument = "...")
  expect_condition_fields(cholupdate_gpu(R, V, up = FALSE), "bad_argument", argument = "up")
  expect_condition_fields(cholupdate_gpu(R, V, NA), "bad_argument", argument = "downdate")
  expect_condition_fields(cholupdate_gpu(R, V, check = 1), "bad_argument", argument = "check", value = 1)
  expect_condition_fields(cholupdate_gpu(R, V, uplo = "u"), "bad_argument", argument = "uplo", value = "u")
  expect_condition_fields(cholupdate_gpu(R, V, precision = "half"), "bad_argument", argument = "precision")
  expect_condition_fields(cholupdate_gpu(R, V, backend = "gpu"), "bad_argument", argument = "backend")
  expect_condition_fields(cholupdate_gpu(R, V, method = "fast"), "bad_argument", argument = "method")
  expect_condition_fields(cholupdate_gpu(R, V, control = list()), "bad_argument", argument = "control")
  expect_condition_fields(cholupdate_gpu(R, V, backend = "cuda", method = "blocked"), "bad_argument",
                          argument = "method", value = "blocked")
})

test_that("arguments that are missing are named, of every function and kind of factor", {
  alone <- c("cholupdate_gpu", "cholupdate_batch", "cholinsert_gpu", "choldelete_gpu", "cholshift_gpu",
             "cholpermute_gpu", "cholupdate_overwrite", "cholupdate_plan", "solve_modified", "solve_forward",
             "solve_back", "logdet", "draw", "solve_factor", "copy_factor", "free", "drift", "orders", "factor_file",
             "write_factor", "chol_factor", "gpu_factor", "gpu_chol", "chol_batch")
  for (name in alone) {
    fun <- getExportedValue("gpucholmod", name)
    error <- expect_condition_fields(fun(), "bad_argument", argument = names(formals(fun))[[1L]])
    expect_identical(as.character(error$call[[1L]]), "fun")
  }
  second <- c(cholupdate_gpu = "V", cholupdate_batch = "V", cholinsert_gpu = "X", choldelete_gpu = "index",
              cholshift_gpu = "from", cholpermute_gpu = "order", solve_modified = "V", solve_forward = "b",
              solve_back = "b", cholupdate_plan = "k", write_factor = "path")
  for (f in list(R, chol_factor(R, "cpu"), chol_batch(array(R, c(3, 3, 1)), "cpu"))) {
    for (name in names(second)) {
      fun <- getExportedValue("gpucholmod", name)
      expect_condition_fields(fun(f), "bad_argument", argument = second[[name]])
      passing_on <- function(f, x) fun(f, x)
      expect_condition_fields(passing_on(f), "bad_argument", argument = second[[name]])
    }
    expect_condition_fields(cholshift_gpu(f, 1), "bad_argument", argument = "to")
    expect_condition_fields(cholshift_gpu(f, to = 1), "bad_argument", argument = "from")
  }
  S <- R + 0
  expect_condition_fields(cholupdate_overwrite(S), "bad_argument", argument = "V")
  expect_condition_fields(all.equal(chol_factor(R, "cpu")), "bad_argument", argument = "current")
  by_default <- function(R, V = 1:3) cholupdate_gpu(R, V)
  expect_identical(by_default(R), cholupdate_gpu(R, 1:3))
})

test_that("tunables that cannot be used are named", {
  expect_condition_fields(cholupdate_control(blocks_per_kernel = 0), "bad_argument", argument = "blocks_per_kernel")
  expect_condition_fields(cholupdate_control(panel_rows = 1.5), "bad_argument", argument = "panel_rows", value = 1.5)
  expect_condition_fields(cholupdate_control(loop_order = "C"), "bad_argument", argument = "loop_order")
  expect_condition_fields(cholupdate_control(device_memory = "1G"), "bad_argument", argument = "device_memory")
  panel <- function(...) cholupdate_gpu(R, V, backend = "cpu", method = "panel", control = cholupdate_control(...))
  expect_condition_fields(panel(threads_per_block = 33), "bad_argument", argument = "threads_per_block", value = 33)
  expect_condition_fields(panel(threads_per_block = 512), "bad_argument", argument = "threads_per_block")
  expect_condition_fields(panel(elements_per_thread = 5), "bad_argument", argument = "elements_per_thread", value = 5)
})

test_that("too little memory says how much is needed", {
  error <- expect_error(cholupdate_gpu(R, V, backend = "cpu", method = "panel",
                                       control = cholupdate_control(device_memory = 100)),
                        class = "gpucholmod_out_of_memory")
  expect_identical(error$available, 100)
  expect_gt(error$needed, 100)
})

test_that("asking for CUDA where there is none says why", {
  info <- gpu_info(memory = FALSE)
  if (info$usable) skip("there is a GPU")
  expect_condition_fields(cholupdate_gpu(R, V, backend = "cuda"), "backend_unavailable",
                          backend = "cuda", reason = info$reason)
})

test_that("the condition's call is the user's", {
  f <- function(x) cholupdate_gpu(x, 1:4)
  expect_identical(expect_error(f(R), class = "gpucholmod_error")$call, quote(cholupdate_gpu(x, 1:4)))
  expect_identical(expect_error(f(replace(R, 1, NA)))$call, quote(cholupdate_gpu(x, 1:4)))
  g <- function(x) cholupdate_gpu(x, 1:3)
  expect_identical(expect_error(g(replace(R, 1, NA)))$call, quote(cholupdate_gpu(x, 1:3)))
})

test_that("an argument that is not there is named, with the one that may be meant", {
  said <- function(call) conditionMessage(expect_condition_fields(call, "bad_argument"))
  expect_match(said(cholupdate_gpu(R, V, dowdate = TRUE)), "'dowdate'.*mean 'downdate'")
  expect_match(said(cholupdate_gpu(R, V, prec = "single")), "'prec'.*mean 'precision'")
  expect_match(said(cholupdate_plan(3, 1, bakend = "cpu")), "'bakend'.*mean 'backend'")
  expect_match(said(cholupdate_overwrite(R, V, ulpo = "lower")), "'ulpo'.*mean 'uplo'")
  expect_no_match(said(cholupdate_gpu(R, V, rhubarb = 1)), "mean")
  expect_match(said(cholupdate_gpu(R, V, FALSE, "lower")), "'downdate' must be given by name")
})

test_that("an option that cannot be used is named as such", {
  refused <- function(option, value, call) {
    old <- options(stats::setNames(list(value), option))
    on.exit(options(old))
    error <- expect_condition_fields(call, "bad_argument", argument = option, value = value)
    expect_match(conditionMessage(error), sprintf("option '%s'", option), fixed = TRUE)
  }
  refused("gpucholmod.backend", "gpu", cholupdate_gpu(R, V))
  refused("gpucholmod.backend", 1, cholupdate_plan(R, V))
  S <- R + 0
  refused("gpucholmod.backend", "gpu", cholupdate_overwrite(S, V))
  refused("gpucholmod.threads", 0, cholupdate_gpu(R, V))
  refused("gpucholmod.device", "first", gpu_factor(R))
  refused("gpucholmod.device", -1, gpu_chol(crossprod(R)))
  expect_condition_fields(cholupdate_gpu(R, V, backend = "gpu"), "bad_argument", argument = "backend")
})

test_that("too little memory is told in numbers", {
  error <- expect_condition_fields(cholupdate_gpu(diag(100), 1:100, backend = "cpu", method = "stream",
                                                  control = cholupdate_control(device_memory = 1000)), "out_of_memory")
  for (field in c("needed", "available")) {
    expect_match(conditionMessage(error), gpucholmod:::format_bytes(error[[field]]), fixed = TRUE)
  }
})

test_that("the arguments of all methods can be seen, and completed", {
  expect_true(all(c("uplo", "precision", "backend", "method", "check", "control") %in% names(formals(cholupdate_gpu))))
  for (method in c("default", "factor_file", "chol_factor")) {
    own <- names(formals(getS3method("cholupdate_gpu", method)))
    expect_true(all(names(formals(cholupdate_gpu)) %in% own), label = method)
  }
})

test_that("nothing of other packages is masked, but for functions of base that go on doing what they did", {
  base_packages <- c("base", "stats", "utils", "methods", "graphics", "grDevices")
  theirs <- unlist(lapply(base_packages, getNamespaceExports))
  expect_identical(sort(intersect(getNamespaceExports("gpucholmod"), theirs)),
                   c("chol2inv", if (getRversion() < "4.4.0") "crossprod", "diag", "rcond",
                     if (getRversion() < "4.4.0") "tcrossprod"))
  x <- structure(matrix(1:6, 2), dimnames = list(NULL, letters[1:3]))
  expect_identical(crossprod(x), base::crossprod(x))
  expect_identical(crossprod(x, 1:2), base::crossprod(x, 1:2))
  expect_identical(tcrossprod(x, x), base::tcrossprod(x, x))
  expect_false("copy" %in% getNamespaceExports("gpucholmod")) # data.table's would stop working
})
