# Runs R code, lines of it, in a process of its own, in which a crash is no more than a status: list(lines, status),
# what it has printed and how it has ended. `shell` comes before it on the command line.
in_child <- function(code, shell = NULL) {
  file <- tempfile(fileext = ".R")
  on.exit(unlink(file))
  writeLines(c(sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")), "library(gpucholmod)", code), file)
  rscript <- shQuote(file.path(R.home("bin"), "Rscript"))
  command <- paste(c(shell, rscript, "--no-init-file", shQuote(file), "2>&1"), collapse = " ")
  lines <- suppressWarnings(system(command, intern = TRUE, timeout = 300))
  list(lines = lines, status = c(attr(lines, "status"), 0L)[[1L]])
}

# That such code has printed these lines and has ended as it should.
expect_printed <- function(child, lines) {
  expect_equal(child$lines, lines)
  expect_equal(child$status, 0L)
}
