# Rows and columns of factors in files come and go, in panels.

spd <- function(n) crossprod(well_conditioned(n))
same <- function(object, expected) expect_equal(object, expected, tolerance = 1e-11)

# Evaluates `code` with panels of so many columns of a factor of order n.
in_panels <- function(columns, n, fun) {
  environment(fun) <- list2env(list(over_panels = function(f, reverse, work) {
    gpucholmod:::over_panels(f, reverse, work, bytes = 8 * n * columns)
  }, write_with_inserted = {
    inner <- gpucholmod:::write_with_inserted
    environment(inner) <- list2env(list(over_panels = function(f, reverse, work) {
      gpucholmod:::over_panels(f, reverse, work, bytes = 8 * n * columns)
    }), parent = asNamespace("gpucholmod"))
    inner
  }), parent = asNamespace("gpucholmod"))
  fun
}

test_that("rows and columns of a file go", {
  skip_on_os("windows")
  folder <- new_folder()
  set.seed(1)
  A <- spd(30)
  f <- write_factor(chol(A), file.path(folder, "R"))
  out <- file.path(folder, "out")
  for (columns in c(1, 7, 30)) {
    delete <- in_panels(columns, 30, gpucholmod:::choldelete_gpu.factor_file)
    for (index in list(1, 30, c(3, 17), c(29, 30), 5:20, -4, integer(), c(1, 1, 30))) {
      kept <- setdiff(1:30, (1:30)[index])
      g <- delete(f, index, output = out, replace = TRUE)
      same(as.matrix(g), chol(A[kept, kept, drop = FALSE]))
    }
  }
  expect_same(as.matrix(f), chol(A))
  expect_identical(choldelete_gpu(g, 2, output = out, replace = TRUE)$n, 27L)
  expect_setequal(list.files(folder), c("R", "out"))
  expect_identical(expect_error(choldelete_gpu(f, 1:30, output = out, replace = TRUE),
                                class = "gpucholmod_bad_argument")$argument, "index")
  expect_bad_file(choldelete_gpu(f, 1, output = out), "exists", out)
  expect_identical(expect_error(choldelete_gpu(f, 1), class = "gpucholmod_bad_argument")$argument, "output")
  expect_identical(expect_error(choldelete_gpu(f, 31, output = out, replace = TRUE),
                                class = "gpucholmod_bad_argument")$argument, "index")
})

test_that("rows and columns come to a file", {
  skip_on_os("windows")
  folder <- new_folder()
  set.seed(2)
  A <- spd(30)
  out <- file.path(folder, "out")
  for (new in list(1, 30, 12, 5:8, 28:30, 1:3)) {
    f <- write_factor(chol(A[-new, -new]), file.path(folder, "R"), replace = TRUE)
    X <- A[, new, drop = FALSE]
    if (length(new) > 1L) X[new[[length(new)]], 1] <- NaN # below the diagonal of the new block
    for (columns in c(1, 7, 30)) {
      insert <- in_panels(columns, 30, gpucholmod:::cholinsert_gpu.factor_file)
      g <- insert(f, X, new[[1L]], output = out, replace = TRUE)
      same(as.matrix(g), chol(A))
    }
    expect_identical(insert(f, X, new[[1L]], output = out, replace = TRUE, check = FALSE)$pivot, 0L)
  }
  end <- cholinsert_gpu(f, A[c(4:30, 1), 1], output = f$path, replace = TRUE)
  same(as.matrix(end), chol(A[c(4:30, 1), c(4:30, 1)]))
  expect_setequal(list.files(folder), c("R", "out"))
})

test_that("what cannot be inserted into a file names the pivot, and writes nothing", {
  skip_on_os("windows")
  folder <- new_folder()
  R <- chol(diag(6) + 1)
  f <- write_factor(R, file.path(folder, "R"))
  out <- file.path(folder, "out")
  for (case in list(list(x = c(1, 1, 1, -1, 1, 1, 1), at = 4), list(x = c(2, 3, 1, 1, 1, 1, 1), at = 1),
                    list(x = c(rep(1, 6), 0), at = 7), list(x = c(1, 1, 1, 1, 9, 1, 0.1), at = 7))) {
    expected <- cholinsert_gpu(R, case$x, case$at, check = FALSE)$pivot
    expect_gt(expected, 0L)
    expect_untouched(folder, {
      error <- expect_error(cholinsert_gpu(f, case$x, case$at, output = out),
                            class = "gpucholmod_not_positive_definite")
      expect_identical(error$pivot, expected)
      done <- cholinsert_gpu(f, case$x, case$at, output = out, check = FALSE)
      expect_identical(done, list(R = f, pivot = expected))
    })
  }
  expect_untouched(folder, {
    error <- expect_error(cholinsert_gpu(f, c(1, NA, 1:5), 3, output = out), class = "gpucholmod_not_finite")
    expect_identical(unclass(error)[c("argument", "row", "col")], list(argument = "X", row = 2L, col = 1L))
    expect_error(cholinsert_gpu(f, 1:6, output = out), class = "gpucholmod_dimension_mismatch")
    at <- expect_error(cholinsert_gpu(f, diag(8)[, 1:2], c(1, 3), output = out), class = "gpucholmod_bad_argument")
    expect_identical(at$argument, "at")
    nowhere <- file.path(folder, "absent", "out")
    expect_identical(expect_error(choldelete_gpu(f, 1, output = nowhere), class = "gpucholmod_bad_file")$reason,
                     "not_writable")
  })
})

test_that("what does not take a file names what does", {
  skip_on_os("windows")
  f <- write_factor(diag(3), tempfile())
  on.exit(unlink(f$path))
  for (call in list(function() cholshift_gpu(f, 1, 2), function() cholpermute_gpu(f, 3:1),
                    function() solve_modified(f, list(1:3), 1:3))) {
    error <- expect_error(call(), class = "gpucholmod_not_supported")
    expect_identical(error$backend, "file")
    expect_match(conditionMessage(error), "chol_factor(R)", fixed = TRUE)
  }
})
