# cholupdate_gpu() on factors in files: results, and what is left where it cannot be done. Helpers:
# helper-factor_file.R.

skip_on_os("windows")

set.seed(12)
n <- 100
R <- well_conditioned(n)
V <- normal(n, 3)

in_memory <- function(R, V, downdate = FALSE) cholupdate_gpu(R, V, downdate, backend = "cpu", method = "blocked")

test_that("a factor in a file is modified as one in memory", {
  folder <- new_folder()
  for (n in c(1, 7, 32, 33, 131)) {
    for (k in c(0, 1, 16, 33)) {
      R <- well_conditioned(n)
      V <- normal(n, k, 1)
      full <- R
      full[lower.tri(full)] <- NaN
      writeBin(as.vector(full), path <- tempfile(tmpdir = folder))
      f <- factor_file(path)
      sum <- tools::md5sum(path)
      up <- cpu(f, V, output = tempfile(tmpdir = folder))
      expect_s3_class(up, "factor_file")
      expect_same(as.matrix(up), in_memory(R, V), sprintf("update, n %d, k %d", n, k))
      expect_identical(sum(abs(matrix(readBin(up$path, "double", n^2), n)[lower.tri(R)])), 0)
      down <- cpu(up, V, downdate = TRUE, output = tempfile(tmpdir = folder), method = "stream")
      expect_same(as.matrix(down), in_memory(as.matrix(up), V, TRUE), sprintf("downdate, n %d, k %d", n, k))
      expect_identical(tools::md5sum(path), sum)
    }
  }
  expect_identical(list.files(folder, "part$"), character())
})

test_that("a vector, integers and float32 serve as V", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  modified <- function(V) as.matrix(cpu(f, V, output = tempfile(tmpdir = folder)))
  expect_identical(modified(1:100), in_memory(R, 1:100))
  expect_identical(modified(make_float32(V)), in_memory(R, as_floats(V)))
})

test_that("a file is modified on the GPU", {
  skip_without_gpu()
  folder <- new_folder()
  set.seed(1)
  R <- well_conditioned(700)
  V <- normal(700, 20)
  f <- write_factor(R, file.path(folder, "R.bin"))
  up <- cholupdate_gpu(f, V, output = file.path(folder, "up.bin"), backend = "cuda")
  expect_lt(residual_ratio(as.matrix(up), R, V, FALSE), 30)
  expect_identical(last_cholupdate()$backend, "cuda")
  expect_error(cholupdate_gpu(f, 100 * V, downdate = TRUE, output = file.path(folder, "no.bin"), backend = "cuda"),
               class = "gpucholmod_not_positive_definite")
  expect_identical(list.files(folder), c("R.bin", "up.bin"))
})

test_that("the report is that of the file's modification", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  cpu(f, V, output = file.path(folder, "up.bin"))
  report <- last_cholupdate()
  expect_identical(report$n, 100)
  expect_identical(report$k, 3)
  expect_identical(report$backend, "cpu")
  expect_identical(report$method, "stream")
  expect_identical(report$pivot, 0L)
})

test_that("check = FALSE returns the pivot", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  output <- file.path(folder, "up.bin")
  expect_identical(cpu(f, V, output = output, check = FALSE), list(R = factor_file(output), pivot = 0L))
  expect_untouched(folder, {
    failed <- cpu(f, 100 * V, downdate = TRUE, output = file.path(folder, "no.bin"), check = FALSE)
    expect_identical(failed, list(R = f, pivot = 1L))
  })
})

test_that("nothing appears unless it is complete", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  old <- file.path(folder, "old.bin")
  write_factor(2 * R, old)
  bad <- write_factor(replace(R, 4902, NaN), file.path(folder, "bad.bin"))
  tiny <- write_factor(replace(R, 102, 1e-310), file.path(folder, "tiny.bin"))
  late <- numeric(100)
  late[90] <- 100
  expect_untouched(folder, {
    for (output in c(file.path(folder, "new.bin"), old)) {
      run <- function(...) cpu(..., output = output, replace = TRUE)
      error <- expect_error(run(f, late, downdate = TRUE), class = "gpucholmod_not_positive_definite")
      expect_identical(error$pivot, 90L)
      error <- expect_error(run(bad, V), class = "gpucholmod_not_finite")
      expect_identical(c(error$row, error$col), c(2, 50))
      expect_identical(expect_error(run(tiny, V), class = "gpucholmod_bad_diagonal")$index, 2)
      expect_error(run(f, replace(V, 4, Inf)), class = "gpucholmod_not_finite")
      expect_error(run(f, V[1:3, ]), class = "gpucholmod_dimension_mismatch")
    }
  })
})

test_that("cholupdate_gpu() replaces only what it may", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  expect_refusals(folder, function(path, replace) cpu(f, V, output = path, replace = replace))
  there <- file.path(folder, "there")
  expect_identical(as.matrix(cpu(f, V, output = there, replace = TRUE)), in_memory(R, V))
})

test_that("the input is not taken for the output, unless it is to be replaced", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  link <- file.path(folder, "link")
  file.symlink(f$path, link)
  hard <- file.path(folder, "hard")
  file.link(f$path, hard)
  expect_untouched(folder, for (output in c(f$path, link, hard)) {
    expect_bad_file(cpu(f, V, output = output), "same_file", output)
  })
  expected <- R
  for (i in 1:3) {
    f <- cpu(f, V, output = f$path, replace = TRUE)
    expected <- in_memory(expected, V)
    expect_identical(as.matrix(f), expected)
  }
  expect_identical(as.matrix(factor_file(hard)), R)
  expect_setequal(list.files(folder), c("hard", "link", "R.bin"))
})

test_that("a file that was cut off is an error", {
  folder <- new_folder()
  path <- file.path(folder, "R.bin")
  f <- write_factor(R, path)
  writeBin(as.vector(R)[1:9900], path)
  expect_untouched(folder, {
    expect_bad_file(cpu(f, V, output = file.path(folder, "up.bin")), "wrong_size", path, size = 8 * 9900)
  })
})

test_that("Ctrl-C leaves no file behind", {
  skip_on_cran()
  folder <- new_folder()
  f <- write_factor(diag(3000), file.path(folder, "R.bin"))
  V <- matrix(rnorm(3000 * 100, sd = 1e-3), 3000, 3000)
  expect_untouched(folder, {
    interrupt_after(1)
    result <- tryCatch(
      {
        cpu(f, V, output = file.path(folder, "up.bin"),
            control = cholupdate_control(threads = 1, instructions = "plain"))
        Sys.sleep(5) # for a signal that comes too late
      },
      interrupt = function(e) "interrupted"
    )
    expect_identical(result, "interrupted")
  })
  unlink(folder, recursive = TRUE)
})

test_that("arguments that cannot be used are named", {
  folder <- new_folder()
  f <- write_factor(R, file.path(folder, "R.bin"))
  output <- file.path(folder, "up.bin")
  expect_argument <- function(call, argument) {
    expect_identical(expect_error(call, class = "gpucholmod_bad_argument")$argument, argument)
  }
  expect_untouched(folder, {
    expect_argument(cpu(f, V), "output")
    expect_argument(cpu(f, V, output = NULL), "output")
    expect_argument(cpu(f, V, output = c("a", "b")), "output")
    expect_argument(cpu(f, V, output = output, replace = NA), "replace")
    expect_argument(cpu(f, V, output = output, precision = "single"), "precision")
    expect_argument(cpu(f, V, output = output, method = "blocked"), "method")
    expect_argument(cpu(f, V, output = output, control = list()), "control")
    expect_argument(cpu(f, V, output = output, uplo = "lower"), "uplo")
    expect_argument(cpu(f, V, output = output, downdate = NA), "downdate")
    expect_argument(cpu(f, V, output = output, check = 0), "check")
    expect_argument(cholupdate_gpu(f, V, output = output, backend = "gpu"), "backend")
  })
})

test_that("what a process that was killed has left is deleted when the same output is written again", {
  skip_on_cran()
  folder <- new_folder()
  f <- write_factor(diag(3000), file.path(folder, "R"))
  output <- file.path(folder, "out")
  code <- sprintf(".libPaths(%s); library(gpucholmod); f <- factor_file('%s')
    cat(Sys.getpid(), '\n', file = '%s'); V <- matrix(1e-3, 3000, 3000)
    cholupdate_gpu(f, V, output = '%s', backend = 'cpu', control = cholupdate_control(instructions = 'plain'))",
                  paste(deparse(.libPaths()), collapse = ""), f$path, file.path(folder, "pid"), output)
  script <- file.path(folder, "script.R")
  writeLines(code, script)
  system2(file.path(R.home("bin"), "Rscript"), c("--vanilla", script), wait = FALSE, stdout = FALSE, stderr = FALSE)
  part <- function() list.files(folder, "^out[.].{6}[.]part$")
  wait <- function(until) for (i in 1:200) if (until()) break else Sys.sleep(0.1)
  wait(function() length(part()) == 1)
  left <- part()
  expect_length(left, 1)
  # while it is being written, it is nobody else's to delete
  g <- cpu(factor_file(f$path), numeric(3000), output = output)
  expect_identical(part(), left)
  tools::pskill(as.integer(readLines(file.path(folder, "pid"))), tools::SIGTERM)
  wait(function() isFALSE(tools::pskill(as.integer(readLines(file.path(folder, "pid"))), 0)))
  expect_identical(part(), left)
  h <- cpu(f, numeric(3000), output = output, replace = TRUE)
  expect_identical(part(), character())
  expect_same(as.matrix(h), diag(3000))
})
