# Holds lines of R code, C++ and Python to 120 columns. R CMD check runs tests without the sources, and skips this test.
test_that("no line of R code, C++ or Python is longer than 120 columns", {
  root <- test_path("../..")
  if (!dir.exists(file.path(root, "R")) || !dir.exists(file.path(root, "src"))) skip("the sources are not here")
  folders <- c("R", "inst/include", "inst/python", "src", "tests/core", "tests/python", "tests/testthat")
  files <- list.files(file.path(root, folders), "[.](R|cpp|h|hpp|cuh|cu|py)$", full.names = TRUE, recursive = TRUE)
  files <- files[basename(files) != "RcppExports.R" & basename(files) != "RcppExports.cpp"]
  long <- lapply(files, function(file) {
    line <- which(nchar(readLines(file, encoding = "UTF-8"), "width") > 120L)
    if (length(line)) paste0(file, ":", line)
  })
  expect_gt(length(files), 0L)
  expect_identical(unlist(long), NULL)
})
