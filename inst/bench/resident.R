# A factor that stays on the GPU: times of updates and downdates, beside what reading and writing the triangle takes and
# what cuSOLVER takes to factorise again.
#
#   Rscript resident.R [--sizes=1000,5000,16384,32768] [--ranks=1,16,64] [--precision=double,single] [--repeats=9]
#                      [--out=resident.csv]
#
# For each n, a well-conditioned R is put on the GPU once; then VV' is added and taken off again, each time as a new
# factor. All times are on the device, by events, the factor and V being there: medians, after one call to warm up.
#   steps      "guarded": the quick step where the guard allows it; "fallback": every block by Householder steps, as if
#              the guard refused each
#   GB/s       the triangle, read and written once, by the time
#   of sweep   time of a plain kernel that reads and writes the triangle, by the time
#   potrf      time of cuSOLVER's factorisation, of the upper or the lower triangle, whichever is quicker, by the time
#   fallback   blocks by Householder steps, of how many
#   ratio      residual ratio of what was timed, must be below 30:
#
#     ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1))
#
# with the norms estimated from products on the GPU. A time whose ratio is not below 30 is FAILED, and does not count:
# the exit status is then not zero. With n = 32,768 this takes 12 GB on the host and 30 GB on the GPU. --out writes the
# measurements, in seconds (stored_measurements()), "sweep" and "potrf" beside each.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]] else default
}
sizes <- as.integer(option("sizes", c(1000, 5000, 16384, 32768)))
ranks <- as.integer(option("ranks", c(1, 16, 64)))
precisions <- match.arg(option("precision", "double"), c("double", "single"), several.ok = TRUE)
repeats <- as.integer(option("repeats", 9))
out <- option("out", NULL)
if (!gpu_info(memory = FALSE)$usable) stop(gpu_info(memory = FALSE)$message)

# The identity, and noise of standard deviation 0.3 / sqrt(n) above it. In one n x n matrix, column by column: there may
# not be room for another.
random_factor <- function(n) {
  R <- matrix(0, n, n)
  width <- 0.3 * sqrt(12 / n)
  for (j in seq_len(n)) R[seq_len(j), j] <- c(width * (runif(j - 1L) - 0.5), 1)
  R
}

# On the GPU: AX, the ceiling, and factorising again.
times <- function(f, X) gpucholmod:::rcpp_factor_multiply(f$pointer, X)
sweep_seconds <- function(f) gpucholmod:::rcpp_factor_sweep_seconds(f$pointer, repeats)
potrf_seconds <- function(f) {
  tryCatch(gpucholmod:::rcpp_factor_refactor_seconds(f$pointer, repeats),
           gpucholmod_backend_unavailable = function(e) NA_real_)
}

# ||E||_1 of a symmetric n x n matrix E, given X -> EX: a lower bound that is nearly always sharp (Higham and Tisseur
# 2000, A block algorithm for matrix 1-norm estimation). It starts from random signs, then takes the columns of E where
# the norm grows fastest.
norm_1 <- function(product, n, rounds = 3L) {
  width <- min(4L, n)
  X <- matrix(sample(c(-1, 1), n * width, replace = TRUE), n) / n
  largest <- 0
  for (round in seq_len(rounds)) {
    Y <- product(X)
    largest <- max(largest, colSums(abs(Y)))
    growth <- apply(abs(product(sign(Y))), 1L, max)
    X <- matrix(0, n, width)
    X[cbind(order(growth, decreasing = TRUE)[seq_len(width)], seq_len(width))] <- 1
  }
  largest
}

residual_ratio <- function(before, after, V, sigma, eps) {
  n <- nrow(V)
  VV <- function(X) V %*% crossprod(V, X)
  A <- function(X) times(before, X)
  E <- function(X) times(after, X) - A(X) - sigma * VV(X)
  norm_1(E, n) / ((n + ncol(V)) * eps * (norm_1(A, n) + norm_1(VV, n)))
}

# Modifies `f` by V again and again; returns the last result, and the report of it with the median time.
modify <- function(f, V, downdate, only_householder) {
  seconds <- numeric(0)
  for (i in seq_len(repeats + 1L)) {
    if (i > 1L) free(result)
    result <- cholupdate_gpu(f, V, downdate, method = if (only_householder) "householder" else "auto")
    seconds[i] <- last_cholupdate()$seconds
  }
  report <- last_cholupdate()
  report$seconds <- stats::median(seconds[-1L])
  list(factor = result, report = report)
}

heading <- "      n    k  sign      steps           ms   GB/s  of sweep   potrf    fallback  rescalings    ratio\n"
failures <- 0L
measured <- data.frame()

print_row <- function(report, only_householder, ratio, sweep, potrf) {
  passed <- isTRUE(ratio < 30)
  if (!passed) failures <<- failures + 1L
  word <- if (report$precision == "double") 8 else 4
  measured <<- rbind(measured, data.frame(
    n = report$n, k = report$k, precision = report$precision, change = if (report$downdate) "downdate" else "update",
    steps = if (only_householder) "fallback" else "guarded", seconds = report$seconds, sweep = sweep, potrf = potrf,
    fallbacks = report$fallbacks, blocks = report$blocks, ratio = ratio, ok = passed
  ))
  seconds <- if (passed) report$seconds else NA
  cat(sprintf("%7.0f %4.0f  %-8s  %-8s %9s %6.0f %8.0f%% %6.1fx %11s %11.0f %8.2g\n", report$n, report$k,
              if (report$downdate) "downdate" else "update", if (only_householder) "fallback" else "guarded",
              if (passed) sprintf("%.3f", 1000 * seconds) else "FAILED",
              word * report$n^2 / seconds / 1e9, 100 * sweep / seconds, potrf / seconds,
              sprintf("%.0f of %.0f", report$fallbacks, report$blocks), report$rescalings, ratio))
}

# One V, on and off again.
run_case <- function(f, k, only_householder, sweep, potrf, eps) {
  n <- nrow(f)
  V <- matrix(rnorm(n * k, sd = 1 / sqrt(n)), n)
  up <- modify(f, V, FALSE, only_householder)
  print_row(up$report, only_householder, residual_ratio(f, up$factor, V, 1, eps), sweep, potrf)
  down <- modify(up$factor, V, TRUE, only_householder)
  print_row(down$report, only_householder, residual_ratio(up$factor, down$factor, V, -1, eps), sweep, potrf)
  free(up$factor)
  free(down$factor)
}

print(gpu_info())
cat(sprintf("\n%s; %s; medians of %d\n", format(Sys.Date()), R.version.string, repeats))
set.seed(2010)
for (n in sizes) {
  R <- random_factor(n)
  for (precision in precisions) {
    word <- if (precision == "double") 8 else 4
    eps <- if (precision == "double") .Machine$double.eps else 2^-23
    f <- gpu_factor(R, precision = precision)
    sweep <- sweep_seconds(f)
    potrf <- potrf_seconds(f)
    cat(sprintf("\nn = %d, %s: sweep over the triangle %.4f ms (%.0f GB/s), potrf %.2f ms\n%s", n, precision, 1000 * sweep,
                word * n^2 / sweep / 1e9, 1000 * potrf, heading))
    for (k in ranks) run_case(f, k, FALSE, sweep, potrf, eps)
    run_case(f, 16L, TRUE, sweep, potrf, eps)
    free(f)
  }
}
if (!is.null(out)) {
  save_measurements(measured, out, "resident.R")
}
if (failures > 0L) stop(failures, " residual ratios are not below 30: these times do not count", call. = FALSE)
