# Runs the tests of the installed package, and writes "passed failed skipped" (test_that blocks) to a file. On a machine
# without a GPU files run side by side, a process for each, as many at once as there are cores; a GPU they would share,
# and some look at how much of its memory is free.
#
#   Rscript tools/testthat.R COUNTS_FILE [PATTERN]
#
# With PATTERN, where there is no GPU, those files alone whose names it matches.

library(testthat)

# The package is loaded by those that test it: what it has found out about the machine does not go to forked processes.
has_gpu <- system2(file.path(R.home("bin"), "Rscript"),
                   c("-e", shQuote("quit(status = as.integer(gpucholmod::gpu_info(memory = FALSE)$usable))"))) == 1L

run <- function(test, where) {
  library(gpucholmod)
  local_edition(3)
  as.data.frame(test(where, reporter = "check", stop_on_failure = FALSE))
}

if (has_gpu) {
  results <- list(run(test_dir, "tests/testthat"))
} else {
  files <- list.files("tests/testthat", "^test-.*[.]R$", full.names = TRUE)
  files <- grep(c(commandArgs(TRUE), "")[[2L]], files, value = TRUE)
  files <- files[order(-file.size(files))] # the longest first
  log <- tempfile()
  results <- parallel::mclapply(files, function(file) {
    sink(paste0(log, basename(file)))
    on.exit(sink())  # one file alone is run in this process
    run(test_file, file)
  }, mc.cores = parallel::detectCores(), mc.preschedule = FALSE)
  names(results) <- basename(files)
  for (file in files) writeLines(c(basename(file), readLines(paste0(log, basename(file)))))
}
ended <- vapply(results, is.data.frame, NA)
for (file in names(results)[!ended]) cat(file, "was not run to its end\n")
results <- do.call(rbind, results[ended])
failed <- results$failed > 0 | results$error
skipped <- results$skipped & !failed
cat(sum(!failed & !skipped), sum(failed, !ended), sum(skipped), "\n", file = commandArgs(TRUE)[[1L]])
quit(status = any(failed, !ended))
