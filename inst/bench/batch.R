# Many small factors: the core by itself beside Eigen, and the call from R, in microseconds a member.
#
#   Rscript inst/bench/batch.R [--seconds=0.5] [--megabytes=36] [--instructions=auto] [--gpu-only=no] [--build=DIR]
#                              [--out=batch.csv]
#
# batch.cpp says what is measured; compile.R compiles it with this package's core and with Eigen, in the package's
# sources. Every batch has --megabytes as n x n matrices, and one matrix at least. From R, an array in and an array out
# is compared with `R + 0` of the array, and the call in place of a handle with the core. Each figure is the least of
# many. With a GPU, batches that stay on it are measured too; their numbers of members are in proportion to --megabytes.
library(gpucholmod)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
source(file.path(here, "compile.R"))
seconds <- option("seconds", "0.5")
megabytes <- option("megabytes", "36")

measured <- function(program) {
  lines <- system2(program, c(option("instructions", "auto"), seconds, megabytes), stdout = TRUE)
  if (!is.null(attr(lines, "status"))) stop(basename(program), ": failed", call. = FALSE)
  utils::read.table(text = lines, sep = ";", col.names = c("name", "threads", "n", "k", "update", "downdate"))
}
# The least time of f() in microseconds a member; by a clock of microseconds.
least <- function(f, b) {
  now <- function() as.numeric(Sys.time())
  start <- now()
  times <- numeric()
  while (now() - start < as.numeric(seconds)) {
    begin <- now()
    f()
    times <- c(times, now() - begin)
  }
  1e6 * min(times) / b
}
from_R <- function(n, k) {
  b <- max(1, floor(as.numeric(megabytes) * 1e6 / 8 / n^2))
  set.seed(n)
  one <- chol(crossprod(matrix(stats::rnorm(2 * n^2), 2 * n)) / n)
  R <- array(one, c(n, n, b))
  V <- array(stats::rnorm(n * k * b) / 10, c(n, k, b))
  f <- chol_batch(R, "cpu")
  control <- cholupdate_control(threads = 1)
  data.frame(n, k, plus_0 = least(function() R + 0, b),
             array = least(function() cholupdate_batch(R, V, control = control, backend = "cpu"), b),
             array_2 = least(function() cholupdate_batch(R, V, backend = "cpu",
                                                         control = cholupdate_control(threads = 2)), b),
             in_place = least(function() cholupdate_batch(f, V, in_place = TRUE, control = control), b))
}

# On a GPU: milliseconds of the device for a batch of b, the median of nine, and how often that is what reading and
# writing the triangles takes, at the rate at which a plain kernel reads and writes the triangle of a large factor.
on_gpu <- function(n, k, b, precision, rate) {
  set.seed(n)
  one <- chol(crossprod(matrix(stats::rnorm(2 * n^2), 2 * n)) / n)
  f <- chol_batch(array(one, c(n, n, b)), "cuda", precision = precision)
  V <- array(stats::rnorm(n * k * b) / 10, c(n, k, b))
  times <- replicate(9, vapply(c(FALSE, TRUE), function(downdate) {
    cholupdate_batch(f, V, downdate, in_place = TRUE)
    last_cholupdate()$seconds
  }, 0))
  least <- 2 * n * (n + 1) / 2 * b * (if (precision == "double") 8 else 4) / rate
  took <- apply(times, 1L, stats::median)
  error <- max(abs(crossprod(f[[b]]) - crossprod(one))) / max(crossprod(one))
  free(f)
  data.frame(n, k, b, precision, update = 1e3 * took[[1L]], downdate = 1e3 * took[[2L]],
             times_sweep = took[[1L]] / least, times_sweep_down = took[[2L]] / least, error)
}
sweep_rate <- function(n = 12000L) {
  f <- chol_factor(diag(n), "cuda")
  on.exit(free(f))
  8 * n * (n + 1) / gpucholmod:::rcpp_factor_sweep_seconds(f$pointer, 9L)
}
if (gpu_info()$usable) {
  rate <- sweep_rate()
  cases <- data.frame(n = c(10, 32, 32, 32, 64, 100, 128, 128, 200, 256, 512, 1000, 1000),
                      k = c(1, 1, 4, 16, 8, 1, 1, 16, 1, 16, 4, 4, 16),
                      b = c(400000, 100000, 100000, 50000, 20000, 10000, 8000, 4000, 3000, 2000, 500, 200, 200),
                      precision = "double")
  cases <- rbind(cases, transform(cases[c(2, 8), ], precision = "single"))
  cases$b <- pmax(1, floor(cases$b * as.numeric(megabytes) / 36))
  there <- do.call(rbind, lapply(seq_len(nrow(cases)),
                                 function(i) do.call(on_gpu, c(as.list(cases[i, ]), rate = rate))))
  cat(sprintf("On %s, in place, ms of the device; a sweep reads and writes %.2f TB/s:\n",
              gpu_info()$devices$name[[1L]], rate / 1e12))
  print(there, row.names = FALSE, digits = 3)
}
if (option("gpu-only", "no") == "yes") quit()

batch <- file.path(here, "batch.cpp")
figures <- rbind(measured(with_core(batch)), measured(with_eigen(batch)))
calls <- do.call(rbind, Map(from_R, c(10, 30, 100, 200), 1))
if (nzchar(option("out", ""))) save_measurements(figures, option("out", ""), "batch.R")

cat("The core, microseconds a member:\n")
print(figures, row.names = FALSE)
rate <- function(name, n, k) {
  at <- figures$name == name & figures$threads == 1 & figures$n == n & figures$k == k
  n * (n + 1) / 2 * k / figures$update[at] / 1e3
}
cat(sprintf(
  "\nElements times k per nanosecond, k = 8, updates: %.1f in a batch at n = 100, %.1f unbatched at n = 1024\n",
  rate("batch", 100, 8), rate("unbatched", 1024, 8)
))
cat("\nFrom R, microseconds a member:\n")
print(calls, row.names = FALSE, digits = 3)
