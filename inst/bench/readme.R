# The times of the README's first picture on the CPU: factorising again, and an update of a factor that is kept.
#
#   Rscript inst/bench/readme.R [--sizes=100,300,1000,2000,5000] [--ranks=1,16] [--seconds=3] [--threads=2]
#                                   [--out=FILE]
#
# `what`: "chol", chol(A) of a matrix A that is there; "in place", cholupdate_gpu(f, V, in_place = TRUE) of a factor
# f of chol_factor(R, "cpu"); "new", cholupdate_gpu(R, V) from an ordinary matrix to a new one. Whole calls from R by
# the wall clock, V in ordinary memory. For each n all calls are timed by turns until --seconds have passed, and at
# least five times each; `seconds` is the least of them, as others may use the machine. R's BLAS takes its own number of
# threads. Every result is checked: a random x is multiplied by A + VV' and by R~'R~.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

sizes <- numbers("sizes", "100,300,1000,2000,5000")
ranks <- numbers("ranks", "1,16")
budget <- numbers("seconds", "3")
out <- option("out", "")
options(gpucholmod.threads = numbers("threads", "2"))
set.seed(1)

# Returns the seconds of one call of f().
timed <- function(f) {
  begin <- Sys.time()
  f()
  as.numeric(Sys.time() - begin, units = "secs")
}

# Stops if S is not the factor of A + VV'.
check <- function(S, A, V) {
  x <- stats::rnorm(nrow(A))
  wanted <- A %*% x + V %*% crossprod(V, x)
  error <- sqrt(sum((crossprod(S, S %*% x) - wanted)^2) / sum(wanted^2))
  if (!isTRUE(error < 1e-13)) stop(sprintf("n = %d, k = %d: a relative error of %g", nrow(A), ncol(V), error))
}

# Returns the least seconds of each of `calls`, timed by turns, and how often each was called.
by_turns <- function(calls) {
  least <- rep(Inf, length(calls))
  turns <- 0
  begin <- Sys.time()
  while (turns < 5 || as.numeric(Sys.time() - begin, units = "secs") < budget) {
    least <- pmin(least, vapply(calls, timed, 0))
    turns <- turns + 1
  }
  data.frame(seconds = least, repeats = turns)
}

measured <- do.call(rbind, lapply(sizes, function(n) {
  A <- crossprod(matrix(stats::rnorm(n * n), n)) / n + diag(n)
  R <- chol(A)
  V <- lapply(ranks, function(k) matrix(stats::rnorm(n * k) * 1e-3, n))
  for (v in V) check(cholupdate_gpu(R, v), A, v)
  f <- lapply(V, function(v) chol_factor(R, "cpu"))
  in_place <- Map(function(f, v) function() cholupdate_gpu(f, v, in_place = TRUE), f, V)
  new <- lapply(V, function(v) function() cholupdate_gpu(R, v))
  times <- by_turns(c(list(function() chol(A)), in_place, new))
  lapply(f, free)
  cbind(what = c("chol", rep(c("in place", "new"), each = length(ranks))), n = n, k = c(0, ranks, ranks), times)
}))
print(transform(measured, ms = 1e3 * seconds)[c("what", "n", "k", "ms", "repeats")], row.names = FALSE, digits = 3)
if (nzchar(out)) save_measurements(measured, out, "readme.R")
