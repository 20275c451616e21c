# Whole R calls, from matrix to matrix: modifying a factor against factorising again, by n and k.
#
#   Rscript when_it_pays.R [--n=250,500,1000,2000,4000,8000] [--k=1,16,64]
#
# Milliseconds, medians. `gpu` and `cpu` are cholupdate_gpu(R, V) with backend "cuda" and "cpu"; `chol` is chol(A1) with
# A1 = A + VV' there already, so the opponent is not charged for forming it.

library(gpucholmod)

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) as.numeric(strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]]) else default
}
orders <- option("n", c(250, 500, 1000, 2000, 4000, 8000))
ranks <- option("k", c(1, 16, 64))
gpu <- gpu_info(memory = FALSE)$usable

# Median milliseconds of a call, repeated for about half a second, at least three times.
milliseconds <- function(f) {
  f()
  times <- numeric(0)
  while (length(times) < 3 || (sum(times) < 500 && length(times) < 200)) {
    start <- Sys.time()
    f()
    times <- c(times, 1000 * as.numeric(difftime(Sys.time(), start, units = "secs")))
  }
  stats::median(times)
}

set.seed(1)
rows <- list()
for (n in orders) {
  R <- matrix(rnorm(n * n, sd = 0.5 / sqrt(n)), n)
  R[lower.tri(R)] <- 0
  diag(R) <- 1 + runif(n)
  A <- crossprod(R)
  chol_ms <- milliseconds(function() chol(A))
  for (k in ranks) {
    V <- matrix(rnorm(n * k, sd = 1 / sqrt(n)), n)
    gpu_ms <- if (gpu) milliseconds(function() cholupdate_gpu(R, V, backend = "cuda")) else NA
    cpu_ms <- milliseconds(function() cholupdate_gpu(R, V, backend = "cpu"))
    rows <- c(rows, list(data.frame(n = n, k = k, gpu = gpu_ms, cpu = cpu_ms, chol = chol_ms)))
  }
}
table <- do.call(rbind, rows)
table[-(1:2)] <- signif(table[-(1:2)], 3)
info <- gpu_info(memory = FALSE)
cat(sprintf("%s, BLAS %s, %s, %s\n", R.version.string, basename(extSoftVersion()[["BLAS"]]),
            if (gpu) info$devices$name[[1L]] else "no GPU", format(Sys.Date())))
print(table, row.names = FALSE)
