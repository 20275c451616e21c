# Holds lines of R code, C++, Octave and Python to 120 columns. R CMD check runs tests without the sources, and skips
# this test.
test_that("no line of R code, C++, Octave or Python is longer than 120 columns", {
  root <- test_path("../..")
  if (!dir.exists(file.path(root, "R")) || !dir.exists(file.path(root, "src"))) skip("the sources are not here")
  files <- list.files(file.path(root, c("R", "inst", "src", "tests", "tools")), "[.](R|cpp|h|hpp|cuh|cu|m|py)$",
                      full.names = TRUE, recursive = TRUE)
  files <- files[!grepl("/build/", files) & !basename(files) %in% c("RcppExports.R", "RcppExports.cpp")]
  long <- lapply(files, function(file) {
    line <- which(nchar(readLines(file, encoding = "UTF-8"), "width") > 120L)
    if (length(line)) paste0(file, ":", line)
  })
  expect_gt(length(files), 0L)
  expect_identical(unlist(long), NULL)
})
