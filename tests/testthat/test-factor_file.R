skip_on_os("windows")

set.seed(12)
n <- 100
R <- well_conditioned(n)
V <- normal(n, 3)

test_that("a factor comes back from its file as it went there", {
  folder <- new_folder()
  path <- file.path(folder, "R.bin")
  f <- write_factor(R, path)
  expect_s3_class(f, "factor_file")
  expect_identical(f, factor_file(path))
  expect_identical(unclass(f), list(path = path, n = 100L))
  expect_identical(as.matrix(f), R)
  expect_identical(readBin(path, "double", n^2 + 1), as.vector(R))
  expect_identical(list.files(folder, all.files = TRUE, no.. = TRUE), "R.bin")
  for (small in list(matrix(2), matrix(c(1, 0, 2, 3), 2))) {
    expect_identical(as.matrix(write_factor(small, path, replace = TRUE)), small)
  }
})

test_that("the lower triangle is neither written nor read", {
  path <- file.path(new_folder(), "R.bin")
  full <- R
  full[lower.tri(full)] <- NaN
  write_factor(full, path)
  expect_identical(readBin(path, "double", n^2), as.vector(R))
  writeBin(as.vector(full), path)
  expect_identical(as.matrix(factor_file(path)), R)
})

test_that("values are written as they are", {
  x <- matrix(c(NaN, 0, -Inf, -0), 2)
  f <- write_factor(x, file.path(new_folder(), "R.bin"))
  expect_identical(as.matrix(f), x)
})

test_that("what cholupdate_gpu() accepts can be written", {
  path <- file.path(new_folder(), "R.bin")
  write <- function(x) as.matrix(write_factor(x, path, replace = TRUE))
  expect_identical(write(matrix(c(1L, 5L, 2L, 3L), 2)), matrix(c(1, 0, 2, 3), 2))
  expect_identical(write(3), matrix(3))
  named <- matrix(c(1, 0, 2, 3), 2, dimnames = list(NULL, c("a", "b")))
  expect_identical(write(named), unname(named))
  expect_identical(write(make_float32(R)), as_floats(R))
  expect_error(write(letters), class = "gpucholmod_not_numeric")
  expect_error(write(R[1:2, ]), class = "gpucholmod_not_square")
  expect_error(write(factor_file(path)), class = "gpucholmod_not_numeric")
  skip_if_not_installed("Matrix")
  triangle <- Matrix::triu(Matrix::Matrix(R, sparse = FALSE))
  expect_identical(write(methods::as(triangle, "dtrMatrix")), R)
  lower <- methods::as(Matrix::t(triangle), "dtrMatrix")
  expect_identical(expect_error(write(lower), class = "gpucholmod_bad_argument")$argument, "R")
})

test_that("a factor_file says what it is", {
  f <- write_factor(R, file.path(new_folder(), "R.bin"))
  expect_identical(dim(f), c(100L, 100L))
  expect_identical(c(nrow(f), ncol(f)), c(100L, 100L))
  expect_identical(format(f), paste0("<factor_file> 100 x 100, 78.1 KiB, ", f$path))
  expect_identical(capture.output(shown <- print(f)), c("<factor_file> 100 x 100, 78.1 KiB", paste0("  ", f$path)))
  expect_identical(shown, f)
})

test_that("names of files become absolute", {
  folder <- new_folder()
  old <- setwd(folder)
  on.exit(setwd(old), add = TRUE)
  dir.create("sub")
  expect_identical(write_factor(R, "sub/../R.bin")$path, file.path(folder, "R.bin"))
  expect_identical(factor_file("./R.bin")$path, file.path(folder, "R.bin"))
  file.symlink("R.bin", "link")
  expect_identical(factor_file("link")$path, file.path(folder, "link"))
  setwd(old)
  expect_bad_file(factor_file("/absent"), "missing", "/absent")
  name <- file.path(folder, "Gr\u00f6\u00dfe.bin")
  skip_if_not(l10n_info()[["UTF-8"]])
  write_factor(R, iconv(name, "UTF-8", "latin1"))
  expect_true(file.exists(name))
})

test_that("what is not a name of a file is refused", {
  for (bad in list(NULL, 1, character(), c("a", "b"), NA_character_, "")) {
    expect_identical(expect_error(factor_file(bad), class = "gpucholmod_bad_argument")$argument, "path")
    expect_identical(expect_error(write_factor(R, bad), class = "gpucholmod_bad_argument")$argument, "path")
  }
  expect_identical(expect_error(write_factor(R, tempfile(), NA), class = "gpucholmod_bad_argument")$argument, "replace")
})

test_that("what is not a factor is refused", {
  folder <- new_folder()
  path <- file.path(folder, "R.bin")
  expect_bad_file(factor_file(path), "missing", path)
  expect_bad_file(factor_file(folder), "not_a_file", folder)
  writeBin(numeric(3), path)
  expect_bad_file(factor_file(path), "wrong_size", path, size = 24)
  file.create(path) # empty
  expect_bad_file(factor_file(path), "wrong_size", path, size = 0)
  expect_bad_file(write_factor(matrix(0, 0, 0), path, replace = TRUE), "wrong_size", path, size = 0)
  writeBin(raw(33), path)
  expect_bad_file(factor_file(path), "wrong_size", path, size = 33)
  expect_bad_file(factor_file("/dev/null"), "not_a_file", "/dev/null")
})

test_that("a file that has become another is an error", {
  path <- file.path(new_folder(), "R.bin")
  f <- write_factor(R, path)
  write_factor(R[1:2, 1:2], path, replace = TRUE)
  expect_bad_file(as.matrix(f), "changed", path)
  expect_bad_file(cpu(f, V, output = tempfile()), "changed", path)
  writeBin(numeric(3), path)
  expect_bad_file(as.matrix(f), "wrong_size", path, size = 24)
  unlink(path)
  expect_bad_file(as.matrix(f), "missing", path)
  expect_bad_file(cpu(f, V, output = tempfile()), "missing", path)
  expect_output(print(f), "100 x 100")
})

# Every way of writing refuses the same, and leaves everything as it was; `write(path, replace)`.

test_that("write_factor() replaces only what it may", {
  folder <- new_folder()
  expect_refusals(folder, function(path, replace) write_factor(R, path, replace))
  there <- file.path(folder, "there")
  Sys.chmod(there, "640")
  expect_identical(as.matrix(write_factor(R, there, replace = TRUE)), R)
  expect_identical(format(file.mode(there)), "640")
})

test_that("a link is replaced, not what it points to", {
  folder <- new_folder()
  target <- file.path(folder, "target")
  link <- file.path(folder, "link")
  f <- write_factor(R, target)
  file.symlink(target, link)
  expect_identical(as.matrix(factor_file(link)), R)
  write_factor(2 * R, link, replace = TRUE)
  expect_identical(Sys.readlink(link), "")
  expect_identical(as.matrix(f), R)
  expect_identical(as.matrix(factor_file(link)), 2 * R)
})

# The numbers of a factor in memory, by columns as they are stored.

test_that("a factor_file that was changed by hand has an error of its own", {
  skip_on_os("windows")
  file <- write_factor(chol(diag(3) + 1), tempfile())
  on.exit(unlink(file$path))
  uses <- list(as.matrix, solve, function(f) solve(f, 1:3), function(f) solve_forward(f, 1:3), logdet, determinant,
               diag, dim, format, print, function(f) cholupdate_gpu(f, 1:3, output = tempfile()),
               function(f) chol_factor(f, "cpu"))
  for (value in list(NULL, NA, -1, 1.5, 4L, "x", c("a", "b"), list(), quote(x), globalenv(), diag(2))) {
    for (part in names(file)) {
      other <- unclass(file)
      other[part] <- list(value)
      class(other) <- "factor_file"
      for (use in uses) {
        found <- tryCatch(utils::capture.output(use(other)), error = identity)
        if (inherits(found, "error")) expect_s3_class(found, "gpucholmod_error")
      }
    }
  }
})

at_each_home("a handle is written, whichever its triangle and precision", {
  skip_on_os("windows")
  path <- tempfile()
  on.exit(unlink(path))
  set.seed(1)
  R <- well_conditioned(20)
  for (f in list(keep(R), keep(t(R), uplo = "lower"), keep(R, capacity = 30))) {
    expect_identical(as.matrix(write_factor(f, path, replace = TRUE)), R)
  }
  expect_identical(as.matrix(write_factor(keep(R, precision = "single"), path, replace = TRUE)), as_floats(R))
  expect_error(write_factor(handle_of_nothing("freed"), path), class = "gpucholmod_invalid_factor")
  expect_error(write_factor(chol_batch(array(R, c(20, 20, 1))), path), class = "gpucholmod_not_numeric")
})
