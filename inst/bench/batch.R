# Many small factors: the core by itself beside Eigen, and the call from R, in microseconds a member.
#
#   Rscript inst/bench/batch.R [--seconds=0.5] [--instructions=auto] [--out=batch.csv]
#
# In the package's sources: batch.cpp, which says what is measured, is compiled together with src/cpu, by R's compiler and with R's flags;
# Eigen (RcppEigen) with -O3 -march=native. Every batch has 36 MB as n x n matrices. From R, an array in and an array out is compared with
# `R + 0` of the array, and the call in place of a handle with the core. Each figure is the least of many.
library(gpucholmod)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
src <- file.path(here, "..", "..", "src")
scratch <- tempfile("batch")
dir.create(scratch)
config <- function(what) system2(file.path(R.home("bin"), "R"), c("CMD", "config", what), stdout = TRUE)
eigen <- paste("-isystem", system.file("include", package = "RcppEigen"))
seconds <- option("seconds", "0.5")

measured <- function(name, command, ...) {
  program <- file.path(scratch, name)
  if (system(paste(command, ..., "-o", program)) != 0L) stop(name, " cannot be compiled")
  lines <- system2(program, c(option("instructions", "auto"), seconds), stdout = TRUE)
  utils::read.table(text = lines, sep = ";", col.names = c("name", "threads", "n", "k", "update", "downdate"))
}
batch <- file.path(here, "batch.cpp")
own <- measured("own", paste(config("CXX17"), config("CXX17STD"), config("CXX17FLAGS"), "-w"), eigen, paste0("-I", src), batch,
                paste(list.files(file.path(src, "cpu"), "[.]cpp$", full.names = TRUE), collapse = " "), config("LAPACK_LIBS"), config("BLAS_LIBS"),
                config("FLIBS"), "-lpthread")
eigens <- measured("eigen", paste(config("CXX17"), "-std=c++17 -O3 -march=native -DNDEBUG -DOF_EIGEN -w"), eigen, batch)

# The least time of f() in microseconds a member.
least <- function(f, b) {
  start <- proc.time()[["elapsed"]]
  times <- numeric()
  while (proc.time()[["elapsed"]] - start < as.numeric(seconds)) times <- c(times, system.time(f(), gcFirst = FALSE)[["elapsed"]])
  1e6 * min(times) / b
}
from_R <- function(n, k) {
  b <- floor(36e6 / 8 / n^2)
  set.seed(n)
  one <- chol(crossprod(matrix(stats::rnorm(2 * n^2), 2 * n)) / n)
  R <- array(one, c(n, n, b))
  V <- array(stats::rnorm(n * k * b) / 10, c(n, k, b))
  f <- chol_batch(R, "cpu")
  control <- cholupdate_control(threads = 1)
  data.frame(n, k, plus_0 = least(function() R + 0, b), array = least(function() cholupdate_batch(R, V, control = control, backend = "cpu"), b),
             array_2 = least(function() cholupdate_batch(R, V, backend = "cpu", control = cholupdate_control(threads = 2)), b),
             in_place = least(function() cholupdate_batch(f, V, in_place = TRUE, control = control), b))
}
figures <- rbind(own, eigens)
calls <- do.call(rbind, Map(from_R, c(10, 30, 100, 200), 1))
if (nzchar(option("out", ""))) save_measurements(figures, option("out", ""), "batch.R")

cat("The core, microseconds a member:\n")
print(figures, row.names = FALSE)
rate <- function(name, n, k) {
  at <- figures$name == name & figures$threads == 1 & figures$n == n & figures$k == k
  n * (n + 1) / 2 * k / figures$update[at] / 1e3
}
cat(sprintf("\nElements times k per nanosecond, k = 8, updates: %.1f in a batch at n = 100, %.1f unbatched at n = 1024\n", rate("batch", 100, 8),
            rate("unbatched", 1024, 8)))
cat("\nFrom R, microseconds a member:\n")
print(calls, row.names = FALSE, digits = 3)
