# What a call of cholupdate_gpu() costs beside the work: microseconds of calls for small factors (k = 1, one thread),
# with where they go.
#
#   Rscript inst/bench/call_cost.R [--most=1000] [--seconds=0.05] [--out=FILE]
#
# For n up to --most. Columns: "call", the whole call; "core", what last_cholupdate() says that the modification took,
# the least of 200; "copy", R + 0, what R takes to make such a matrix; "rest", the call without these two; "mgcv",
# mgcv::cholup(), where that package is installed. Each is the least of nine means of as many calls as take --seconds,
# in a loop of compiled code. The second table has the steps of a call for n = 20. Then calls for a factor with memory
# of its own, in place, by the wall clock: on the CPU, and where there is a GPU there; "core" is what the modification
# took, on a GPU by its clock; "z" is a call with a right-hand side. --out writes the first (stored_measurements(), in
# microseconds).
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

out <- option("out", "")
most_n <- as.numeric(option("most", 1000))
seconds <- as.numeric(option("seconds", 0.05))
up_to <- function(sizes) sizes[sizes <= most_n]
ours <- asNamespace("gpucholmod")
options(gpucholmod.threads = NULL)

# Returns the microseconds of f().
cost <- function(f) {
  loop <- compiler::cmpfun(function(times) for (i in seq_len(times)) f())
  seconds_of <- function(times) {
    begin <- Sys.time()  # system.time() collects garbage, and counts milliseconds
    loop(times)
    as.numeric(Sys.time() - begin, units = "secs")
  }
  gc(FALSE)
  loop(20)
  times <- 20
  while ((once <- seconds_of(times)) < seconds / 4) times <- 2 * times
  times <- max(20, round(times * seconds / once))
  1e6 / times * min(vapply(rep(times, 9), seconds_of, 0))
}

least_core <- function(call) {
  1e6 * min(vapply(1:200, function(i) {
    call()
    last_cholupdate()$seconds
  }, 0))
}

rows <- lapply(up_to(c(5, 20, 50, 100, 200, 500)), function(n) {
  set.seed(1)
  R <- chol(crossprod(matrix(rnorm(n^2), n)) + diag(n))
  v <- rnorm(n)
  call <- function() cholupdate_gpu(R, v)
  row <- data.frame(n = n, call = cost(call), core = least_core(call), copy = cost(function() R + 0))
  row$rest <- row$call - row$core - row$copy
  row$mgcv <- if (requireNamespace("mgcv", quietly = TRUE)) cost(function() mgcv::cholup(R, v)) else NA
  row
})
measured <- do.call(rbind, rows)
cat("microseconds of an update, k = 1\n")
print(round(measured, 1), row.names = FALSE)

R <- chol(diag(20) + 0.5)
v <- rep(0.1, 20)
look <- ours$rcpp_are_plain
run <- function(...) ours$rcpp_cholupdate_usual(..., NULL, NULL, NULL)
method <- ours$cholupdate_gpu.matrix
steps <- c(
  "the method found" = cost(function() cholupdate_gpu(R, v)) - cost(function() method(R, v)),
  "R and V looked at" = cost(function() look(R, v, FALSE)),
  "src/ called, which looks at them and returns the result" = cost(function() run(R, v, FALSE, NULL, 1)),
  "the same by the method for all calls" = cost(function() ours$cholupdate_gpu.default(R, v)),
  "an empty function" = cost(function() NULL)
)
cat("\nmicroseconds of its steps, n = 20\n")
print(round(steps, 2))

for (home in c("cpu", if (gpu_info(memory = FALSE)$usable) "cuda")) {
  handles <- do.call(rbind, lapply(up_to(c(20, 100, 500, 1000)), function(n) {
    f <- chol_factor(diag(n), home)
    v <- rep(1e-3, n)
    call <- function() cholupdate_gpu(f, v, in_place = TRUE)
    with_z <- function() cholupdate_gpu(f, v, z = v, y = 1, in_place = TRUE)
    data.frame(n = n, call = cost(call), core = least_core(call), z = cost(with_z))
  }))
  handles$rest <- handles$call - handles$core
  cat(sprintf("\nmicroseconds of an update in place, k = 1, of chol_factor(R, \"%s\")\n", home))
  print(round(handles, 1), row.names = FALSE)
}
if (nzchar(out)) save_measurements(measured, out, "call_cost.R")
