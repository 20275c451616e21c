# Batches whose members get and lose rows: whole calls from R, in milliseconds.
#
#   Rscript inst/bench/batch_growth.R [--cpu=10000x30,2000x100] [--gpu=512x200,512x30] [--rows=1,4] [--repeats=20]
#                                     [--out=FILE]
#
# b x n: members, and their order. `append`: p rows at the end, in place, with room for them; `insert`: at the front;
# `delete`: the first p; `up`, `down`: the last row becomes the first, and the first the last; `solve`: with one
# right-hand side, for comparison; `refactor`: chol() of the new matrix of 50 members, times b / 50, which needs that
# matrix. Each figure is the median of the repeats. `residual`: of the last member after appending,
# ||R'R - A||_1 / (eps n ||A||_1). One thread computes if OMP_THREAD_LIMIT and OMP_NUM_THREADS, which BLAS reads, are 1.
library(gpucholmod)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
repeats <- numbers("repeats", "20")

# Returns the median milliseconds of f(); undo() follows each call, off the clock.
timed <- function(f, undo = function() NULL) {
  f()
  undo()
  1e3 * stats::median(vapply(seq_len(repeats), function(i) {
    begin <- Sys.time()
    f()
    took <- as.numeric(Sys.time() - begin, units = "secs")
    undo()
    took
  }, 0))
}

measured <- function(backend, b, n, p) {
  set.seed(n)
  A <- crossprod(matrix(stats::rnorm(2 * (n + p)^2), 2 * (n + p))) / (n + p)
  first <- seq_len(n)
  front <- c(n + seq_len(p), first)
  f <- chol_batch(array(chol(A[first, first]), c(n, n, b)), backend, capacity = n + p)
  X <- array(A[, n + seq_len(p)], c(n + p, p, b))
  Y <- array(A[front, n + seq_len(p)], c(n + p, p, b))
  last <- n + seq_len(p)
  append <- timed(function() cholinsert_gpu(f, X, in_place = TRUE),
                  function() choldelete_gpu(f, last, in_place = TRUE))
  cholinsert_gpu(f, X, in_place = TRUE)
  residual <- norm(crossprod(f[[b]]) - A, "1") / (.Machine$double.eps * (n + p) * norm(A, "1"))
  choldelete_gpu(f, last, in_place = TRUE)
  insert <- timed(function() cholinsert_gpu(f, Y, at = 1, in_place = TRUE),
                  function() choldelete_gpu(f, seq_len(p), in_place = TRUE))
  cholinsert_gpu(f, Y, at = 1, in_place = TRUE)
  delete <- timed(function() choldelete_gpu(f, seq_len(p), in_place = TRUE),
                  function() cholinsert_gpu(f, Y, at = 1, in_place = TRUE))
  choldelete_gpu(f, seq_len(p), in_place = TRUE)
  up <- timed(function() cholshift_gpu(f, n, 1, in_place = TRUE), function() cholshift_gpu(f, 1, n, in_place = TRUE))
  down <- timed(function() cholshift_gpu(f, 1, n, in_place = TRUE), function() cholshift_gpu(f, n, 1, in_place = TRUE))
  right <- matrix(1, n, b)
  solve <- timed(function() solve(f, right))
  free(f)
  refactor <- timed(function() for (m in 1:50) chol(A)) * b / 50
  data.frame(backend, b, n, p, append, insert, delete, up, down, solve, refactor, residual)
}

sizes <- function(which, default) {
  lapply(strsplit(strsplit(option(which, default), ",")[[1L]], "x", fixed = TRUE), as.numeric)
}
cases <- function(backend, all) {
  do.call(rbind, lapply(all, function(size) {
    do.call(rbind, lapply(numbers("rows", "1,4"), function(p) measured(backend, size[[1L]], size[[2L]], p)))
  }))
}
found <- rbind(cases("cpu", sizes("cpu", "10000x30,2000x100")),
               if (gpu_info()$usable) cases("cuda", sizes("gpu", "512x200,512x30")))
print(found, row.names = FALSE, digits = 3)
if (nzchar(option("out", ""))) save_measurements(found, option("out", ""), "batch_growth.R")
