# Factors in files: folders for them, and what must be true where something is refused.

cpu <- function(f, V, ...) cholupdate_gpu(f, V, ..., backend = "cpu")

new_folder <- function() {
  folder <- tempfile("factors")
  dir.create(folder)
  normalizePath(folder)
}

expect_bad_file <- function(call, reason, path, ...) {
  error <- expect_error(call, class = "gpucholmod_bad_file")
  expect_s3_class(error, "gpucholmod_error")
  expect_identical(error$reason, reason)
  expect_identical(error$path, path)
  expected <- list(...)
  if (length(expected)) expect_identical(unclass(error)[names(expected)], expected)
  invisible(error)
}

# Evaluates `call`, by which nothing in `folder` may change: names, contents, modes.
expect_untouched <- function(folder, call) {
  look <- function() {
    files <- list.files(folder, all.files = TRUE, recursive = TRUE, full.names = TRUE)
    list(names = list.files(folder, all.files = TRUE), sums = tools::md5sum(files), modes = file.mode(files))
  }
  before <- look()
  force(call)
  expect_identical(look(), before)
}

expect_refusals <- function(folder, write) {
  there <- file.path(folder, "there")
  writeBin(c(1, 2, 3), there)
  locked <- file.path(folder, "locked")
  writeBin(c(1, 2, 3), locked)
  Sys.chmod(locked, "444")
  sub <- file.path(folder, "sub")
  dir.create(sub)
  nowhere <- file.path(folder, "absent", "out")
  expect_untouched(folder, {
    expect_bad_file(write(there, FALSE), "exists", there)
    expect_bad_file(write(locked, FALSE), "exists", locked)
    expect_bad_file(write(locked, TRUE), "read_only", locked)
    for (replace in c(FALSE, TRUE)) {
      expect_bad_file(write(sub, replace), "not_a_file", sub)
      expect_bad_file(write("/dev/null", replace), "not_a_file", "/dev/null")
      expect_bad_file(write(nowhere, replace), "missing", nowhere)
    }
  })
}
