# The panel method's tunables, one after the other: where the defaults in src/base/tuning.h come from.
#
#   Rscript panel_tuning.R [--n=5000] [--k=16] [--repeats=7]
#
# Prints the median time of the modification itself (transfers included), in milliseconds, and the device memory held.

library(gpucholmod)

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) as.numeric(sub("^[^=]*=", "", given[[1L]])) else default
}
n <- option("n", 5000)
k <- option("k", 16)
repeats <- option("repeats", 7)
if (!gpu_info(memory = FALSE)$usable) stop(gpu_info(memory = FALSE)$message)

set.seed(1)
R <- matrix(rnorm(n * n, sd = 0.1 / sqrt(n)), n)
R[lower.tri(R)] <- 0
diag(R) <- 1 + runif(n)
V <- matrix(rnorm(n * k, sd = 1 / sqrt(n)), n)

measure <- function(...) {
  control <- cholupdate_control(...)
  seconds <- vapply(seq_len(repeats + 1), function(i) {
    cholupdate_gpu(R, V, backend = "cuda", method = "panel", control = control)
    last_cholupdate()$seconds
  }, 0)[-1L]
  last <- last_cholupdate()
  cat(sprintf("blocks %4d  threads %3d  elements %2d  rows %3d : %7.2f ms (min %.2f), %6d panels, %6.1f MiB\n",
              control$blocks_per_kernel, control$threads_per_block, control$elements_per_thread, control$panel_rows,
              1000 * stats::median(seconds), 1000 * min(seconds), as.integer(last$panels),
              last$device_bytes_peak / 2^20))
}

cat(sprintf("n = %d, k = %d, %s, %s\n", as.integer(n), as.integer(k), gpu_info(FALSE)$devices$name[[1L]],
            format(Sys.Date())))
cat("the paper's shape:\n")
measure(blocks_per_kernel = 28, threads_per_block = 32, elements_per_thread = 16, panel_rows = 32)
measure(blocks_per_kernel = 28, threads_per_block = 32, elements_per_thread = 16, panel_rows = 64)
cat("rows:\n")
for (rows in c(16, 32, 48, 64, 96, 128, 256)) measure(panel_rows = rows)
cat("threads:\n")
for (threads in c(32, 64, 128, 256)) measure(threads_per_block = threads, blocks_per_kernel = 8448 / threads)
cat("elements:\n")
for (elements in c(4, 8, 16, 32)) measure(elements_per_thread = elements)
cat("width:\n")
for (blocks in c(8, 16, 32, 66, 132, 264)) measure(blocks_per_kernel = blocks)
