# What threads of the CPU save: milliseconds of modifications in place, as last_cholupdate() tells them, by the number
# of threads.
#
#   Rscript inst/bench/threads.R [--threads=1,2,4,8,16] [--sizes=512,1024,2048,8192] [--ranks=1,4,16,64] [--seconds=0.2]
#                                [--out=threads.csv]
#
# For each n and k, and for R by columns (upper) and by rows (lower): medians of updates, each undone by a downdate by
# the same V, for --seconds and three updates at least; and a column for the number of threads that a call takes by
# itself.
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
library(gpucholmod)
numbers <- function(name, default) as.integer(strsplit(option(name, default), ",")[[1L]])
counts <- numbers("threads", "1,2,4,8,16")
seconds_each <- as.numeric(option("seconds", 0.2))
options(gpucholmod.backend = "cpu", gpucholmod.threads = max(counts))

milliseconds <- function(R, V, uplo, threads) {
  control <- cholupdate_control(threads = threads)
  start <- proc.time()[["elapsed"]]
  seconds <- numeric()
  while (length(seconds) < 4L || proc.time()[["elapsed"]] - start < seconds_each) {
    suppressMessages(cholupdate_overwrite(R, V, uplo = uplo, control = control))  # that it copies R first
    seconds <- c(seconds, last_cholupdate()$seconds)
    cholupdate_overwrite(R, V, downdate = TRUE, uplo = uplo, control = control)
  }
  1e3 * median(seconds[-1L])
}

set.seed(1)
figures <- NULL
for (n in numbers("sizes", "512,1024,2048,8192")) {
  for (uplo in c("upper", "lower")) {
    R <- by_columns(n, function(j) c(rnorm(j - 1L) / sqrt(n), 2 + abs(rnorm(1))))
    if (uplo == "lower") R <- t(R)
    for (k in numbers("ranks", "1,4,16,64")) {
      V <- normal(n, k) / sqrt(n) / 10
      for (threads in c(counts, NA)) {
        ms <- milliseconds(R, V, uplo, if (is.na(threads)) NULL else threads)
        figures <- rbind(figures, data.frame(uplo, n, k, threads = last_cholupdate()$threads,
                                             chosen = is.na(threads), ms))
      }
    }
  }
}
if (nzchar(option("out", ""))) save_measurements(figures, option("out", ""), "threads.R")
cat("| | n | k |", paste(counts, collapse = " | "), "| chosen |\n|---|---|---|",
    strrep("---|", length(counts) + 1L), "\n", sep = "")
for (case in split(figures, ~ k + n + uplo, drop = TRUE)) {
  ms <- format(signif(case$ms, 3))
  cat("|", paste(c(case$uplo[[1L]], case$n[[1L]], case$k[[1L]], ms[!case$chosen],
                   sprintf("%s (%d)", ms[case$chosen], case$threads[case$chosen])),
                 collapse = " | "), "|\n")
}
