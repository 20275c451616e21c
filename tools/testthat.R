# Runs the tests of the installed package, and writes "passed failed skipped" (test_that blocks) to a file.
#
#   Rscript tools/testthat.R COUNTS_FILE

library(testthat)
library(gpucholmod)

local_edition(3)
results <- as.data.frame(test_dir("tests/testthat", reporter = "check", stop_on_failure = FALSE))
failed <- results$failed > 0 | results$error
skipped <- results$skipped & !failed
cat(sum(!failed & !skipped), sum(failed), sum(skipped), "\n", file = commandArgs(TRUE)[[1L]])
quit(status = any(failed))
