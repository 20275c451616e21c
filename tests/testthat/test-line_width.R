# Holds lines of R code and C++ to 120 columns. R CMD check runs tests without the sources, so it skips this test.
test_that("no line of R code or C++ is longer than 120 columns", {
  root <- test_path("../..")
  if (!dir.exists(file.path(root, "R")) || !dir.exists(file.path(root, "src"))) skip("the sources are not here")
  folders <- file.path(root, c("R", "inst/include", "src", "tests/core", "tests/testthat"))
  files <- list.files(folders, "[.](R|cpp|h|hpp|cuh|cu)$", full.names = TRUE, recursive = TRUE)
  files <- files[basename(files) != "RcppExports.R" & basename(files) != "RcppExports.cpp"]
  long <- lapply(files, function(file) {
    line <- which(nchar(readLines(file, encoding = "UTF-8"), "width") > 120L)
    if (length(line)) paste0(file, ":", line)
  })
  expect_gt(length(files), 0L)
  expect_identical(unlist(long), NULL)
})
