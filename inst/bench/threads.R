# What threads of the CPU save: milliseconds of modifications in place, as last_cholupdate() tells them, by the number of threads.
#
#   Rscript inst/bench/threads.R [--threads=1,2,4,8,16] [--out=threads.csv]
#
# For each n and k, and for R by columns (upper) and by rows (lower): medians of updates, of which downdates by the same V undo each, for 0.2 seconds, three
# at least, and a row for the number of threads that a call takes by itself.
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
library(gpucholmod)
counts <- as.integer(strsplit(option("threads", "1,2,4,8,16"), ",")[[1L]])
options(gpucholmod.backend = "cpu", gpucholmod.threads = max(counts))

milliseconds <- function(R, V, uplo, threads) {
  control <- cholupdate_control(threads = threads)
  start <- proc.time()[["elapsed"]]
  seconds <- numeric()
  while (length(seconds) < 4L || proc.time()[["elapsed"]] - start < 0.2) {
    suppressMessages(cholupdate_overwrite(R, V, uplo = uplo, control = control))  # that it copies R first
    seconds <- c(seconds, last_cholupdate()$seconds)
    cholupdate_overwrite(R, V, downdate = TRUE, uplo = uplo, control = control)
  }
  1e3 * median(seconds[-1L])
}

set.seed(1)
figures <- NULL
for (n in c(512L, 1024L, 2048L, 8192L)) {
  for (uplo in c("upper", "lower")) {
    R <- by_columns(n, function(j) c(rnorm(j - 1L) / sqrt(n), 2 + abs(rnorm(1))))
    if (uplo == "lower") R <- t(R)
    for (k in c(1L, 4L, 16L, 64L)) {
      V <- normal(n, k) / sqrt(n) / 10
      for (threads in c(counts, NA)) {
        ms <- milliseconds(R, V, uplo, if (is.na(threads)) NULL else threads)
        figures <- rbind(figures, data.frame(uplo, n, k, threads = last_cholupdate()$threads, chosen = is.na(threads), ms))
      }
    }
  }
}
if (nzchar(option("out", ""))) save_measurements(figures, option("out", ""), "threads.R")
cat("| | n | k |", paste(counts, collapse = " | "), "| chosen |\n|---|---|---|", strrep("---|", length(counts) + 1L), "\n", sep = "")
for (case in split(figures, ~ k + n + uplo, drop = TRUE)) {
  ms <- format(signif(case$ms, 3))
  cat("|", paste(c(case$uplo[[1L]], case$n[[1L]], case$k[[1L]], ms[!case$chosen], sprintf("%s (%d)", ms[case$chosen], case$threads[case$chosen])),
                 collapse = " | "), "|\n")
}
