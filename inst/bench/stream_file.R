# A factor from file to file, beside copying the file.
#
#   Rscript stream_file.R [--n=16384] [--k=16] [--repeats=5] [--folder=] [--backend=cuda|cpu]
#
# Milliseconds, medians of whole calls; the files are in the page cache as far as it reaches, and every output is
# synchronised with the disk before it gets its name. `folder` is where they go; it takes three times 8 n^2 bytes.

library(gpucholmod)

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
n <- as.integer(option("n", 16384))
k <- as.integer(option("k", 16))
repeats <- as.integer(option("repeats", 5))
backend <- match.arg(option("backend", "cuda"), c("cuda", "cpu"))
folder <- option("folder", tempdir())

milliseconds <- function(f) {
  stats::median(vapply(seq_len(repeats), function(i) {
    start <- Sys.time()
    f()
    1000 * as.numeric(difftime(Sys.time(), start, units = "secs"))
  }, 0))
}

set.seed(2010)
R <- matrix(rep_len(rnorm(1000003) / sqrt(n), n * n), n, n)
for (j in seq_len(n - 1)) R[(j + 1):n, j] <- 0
R[cbind(1:n, 1:n)] <- 1 + runif(n)
V <- matrix(rnorm(n * k), n) / sqrt(n)
paths <- file.path(folder, paste0("gpucholmod-", c("in", "out", "copy")))
input <- write_factor(R, paths[[1L]], replace = TRUE)
expected <- cholupdate_gpu(R, V, backend = backend, method = "stream")
rm(R)
modify <- function() cholupdate_gpu(input, V, output = paths[[2L]], replace = TRUE, backend = backend)
if (!identical(as.matrix(modify()), expected)) stop("the result is not that of a matrix in memory")
rm(expected)
cat(sprintf("n = %d, k = %d, %.2f GB, backend %s, %d threads; medians of %d; %s\n", n, k, 8 * n^2 / 1e9, backend,
            last_cholupdate()$threads, repeats, format(Sys.Date())))
cat(sprintf("modify, file to file %8.0f ms\n", milliseconds(modify)))
cat(sprintf("  of that, until all is written and before it is synchronised %8.0f ms\n",
            1000 * last_cholupdate()$seconds))
copy <- function() file.copy(paths[[1L]], paths[[3L]], overwrite = TRUE)
cat(sprintf("file.copy()          %8.0f ms\n", milliseconds(copy)))
unlink(paths)
