# A factor over the processes that mpirun starts, or in one process: what a call takes, on CPUs or GPUs.
#
#   mpirun -np 2 Rscript processes.R [--n=4096] [--k=16] [--repeats=7] [--threads=1] [--cuda] [--dealt] [--only=update]
#   Rscript processes.R --alone [--threads=2] [--cuda] [--devices=2] [--only=update]
#
# R (n x n, double precision): ones on the diagonal, normal noise of standard deviation 0.3 / sqrt(n) above it; V
# (n x k) and right-hand sides are normal. `ms`: the least of `repeats` calls, by the wall clock of process 0, all that
# a call does included; "sweep" is what last_cholupdate() says of the update in place, without what comes before and
# after it. --alone: the same calls for chol_factor() in ordinary memory, without MPI. threads: of each process;
# without, its share of the cores, and 2 alone. --cuda: each on a GPU. --dealt: process 0 does not hold the factor on
# the GPUs of all. --devices: the GPUs of one process. --only: a pattern of the calls that are timed. At the end
#
#   ratio   max |R~'R~x - R'Rx - VV'x|_1 / ((n + k) eps (|R'R|_1 + |VV'|_1)) for random signs x; must be below 30

library(gpucholmod)
option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) as.integer(sub("^[^=]*=", "", given[[1L]])) else default
}
n <- option("n", 4096L)
k <- option("k", 16L)
repeats <- option("repeats", 7L)
only <- sub("^--only=", "", c(grep("^--only=", commandArgs(TRUE), value = TRUE), ""))[[1L]]
alone <- "--alone" %in% commandArgs(TRUE)
devices <- option("devices", 1L)
if ("--dealt" %in% commandArgs(TRUE)) options(gpucholmod.led = FALSE)
backend <- if ("--cuda" %in% commandArgs(TRUE)) "cuda" else "cpu"
options(gpucholmod.threads = option("threads", if (alone) 2L))
first <- alone || process_info()$process == 0L

set.seed(1)
R <- if (first) local({
  R <- matrix(0, n, n)
  above <- row(R) < col(R)
  R[above] <- rnorm(sum(above), sd = 0.3 / sqrt(n))
  diag(R) <- 1
  R
})
set.seed(2)  # the same in all processes
V <- matrix(rnorm(n * k), n) / sqrt(n)
few <- V[, seq_len(min(k, 4L)), drop = FALSE]
come <- n %/% 2L + seq_len(k)
X <- matrix(rnorm((n + k) * k), n + k) / n
X[come, ] <- 4 * diag(k)
b <- rnorm(n)
z <- matrix(rnorm(8 * n), n)

f <- if (alone && devices > 1L) chol_factor(R, devices = seq_len(devices) - 1L) else
  if (alone) chol_factor(R, backend = backend) else chol_factor(R, processes = TRUE, backend = backend)
updated <- copy_factor(f)
cholupdate_gpu(updated, V, in_place = TRUE)

# The least milliseconds of call(g), g a copy of f where one is asked for. What it makes is given back.
sweep <- Inf
least <- function(call, copied = FALSE, times = repeats) {
  1000 * min(vapply(seq_len(times), function(i) {
    g <- if (copied) copy_factor(f) else f
    begin <- Sys.time()  # to the microsecond; system.time() counts milliseconds
    made <- call(g)
    took <- as.double(Sys.time()) - as.double(begin)
    if (copied && !is.null(last_cholupdate())) sweep <<- min(sweep, 1000 * last_cholupdate()$seconds)
    if (inherits(made, "chol_factor")) free(made) else if (copied) free(g)
    took
  }, 0))
}

calls <- list(
  "update in place" = function() least(function(g) cholupdate_gpu(g, V, in_place = TRUE), TRUE),
  "sweep" = function() sweep,
  "update and downdate in place" = function() {
    least(function(g) cholupdate_gpu(cholupdate_gpu(g, V, in_place = TRUE), V, downdate = TRUE, in_place = TRUE), TRUE)
  },
  "update, new" = function() least(function(g) cholupdate_gpu(g, V)),
  "update, new, 8 right-hand sides z" = function() {
    least(function(g) cholupdate_gpu(g, V, z = z, y = matrix(0, k, 8))$R)
  },
  "insertion of k in the middle" = function() least(function(g) cholinsert_gpu(g, X, at = come[[1L]])),
  "deletion of k in the middle" = function() least(function(g) choldelete_gpu(g, come)),
  "shift from the end to the front" = function() least(function(g) cholshift_gpu(g, n, 1L)),
  "shift from the front to the end" = function() least(function(g) cholshift_gpu(g, 1L, n)),
  "solve, 1 right-hand side" = function() least(function(g) solve(g, b)),
  "solve_modified, 4 modifications" = function() least(function(g) solve_modified(g, rep(list(few), 4), b)),
  "inverse, once" = function() least(function(g) solve(g), times = 1L)
)
times <- vapply(calls[grepl(only, names(calls))], function(call) call(), 0)

made <- as.matrix(updated)
if (first) {
  how <- if (alone) {
    paste0("one process without MPI, threads: ", getOption("gpucholmod.threads"), ", GPUs: ", devices)
  } else {
    paste0("processes: ", process_info()$processes, if (isTRUE(f$led)) ", of which process 0 holds the factor")
  }
  cat(sprintf("n = %d, k = %d, %s, %s, gpucholmod %s, %s\n",
              n, k, backend, how, utils::packageVersion("gpucholmod"), Sys.Date()))
  cat(sprintf("%-36s %9.2f ms\n", names(times), times), sep = "")
  x <- matrix(sample(c(-1, 1), 4 * n, TRUE), n)
  product <- function(R, x) crossprod(R, R %*% x)
  apart <- product(made, x) - product(R, x) - V %*% crossprod(V, x)
  scale <- max(crossprod(abs(R), rowSums(abs(R)))) + max(abs(V) %*% colSums(abs(V)))
  ratio <- max(colSums(abs(apart))) / ((n + k) * .Machine$double.eps * scale)
  cat(sprintf("ratio %.2g\n", ratio))
  if (!(ratio < 30)) stop("the ratio is not below 30")
}
