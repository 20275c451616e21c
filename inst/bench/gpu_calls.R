# What calls take for factors on a GPU, by the user's clock, beside the device's own time: milliseconds.
#
#   Rscript inst/bench/gpu_calls.R [--sizes=300,1000,5000,16384] [--ranks=1,16,64] [--repeats=30] [--devices=1]
#                                  [--batches=100000x32x1,4000x128x16] [--upload=10000] [--out=FILE]
#
# V is an ordinary matrix of normal numbers times 1e-3. `what`: an update of a handle "in place", as a "new" factor, the
# last one having been freed, in place by a V that is zero above some row, in place with "weights", a "scale", or "z"
# (one right-hand side); a "batch" in place; "solve" with k = 1 and 64 right-hand sides; gpu_factor() as "upload", and
# as.matrix() as "download". `call`: the median of the repeats. `device`: the median of last_cholupdate()$seconds, NA
# where that tells nothing of the call. `residual`: of one update in place, ||R~'R~ x - A x - VV'x|| by
# eps ||R~'R~ x||, x random. --devices=2: on two GPUs.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

sizes <- numbers("sizes", "300,1000,5000,16384")
ranks <- numbers("ranks", "1,16,64")
repeats <- numbers("repeats", "30")
devices <- seq_len(numbers("devices", "1")) - 1L
batches <- strsplit(option("batches", "100000x32x1,4000x128x16"), ",")[[1L]]
upload <- numbers("upload", "10000")
out <- option("out", "")
set.seed(1)

# Returns the median milliseconds of f(), and of the device in it; after() follows each call, off the clock.
timed <- function(f, after = function(value) NULL, device = TRUE) {
  first <- f()
  after(first)
  each <- vapply(seq_len(repeats), function(i) {
    begin <- Sys.time()
    value <- f()
    seconds <- as.numeric(Sys.time() - begin, units = "secs")
    after(value)
    c(seconds, if (device) last_cholupdate()$seconds else NA)
  }, c(0, 0))
  1e3 * apply(each, 1L, stats::median)
}
rows <- list()
note <- function(what, n, k, seconds, residual = NA) {
  rows[[length(rows) + 1L]] <<- data.frame(what = what, n = n, k = k, call = seconds[[1L]], device = seconds[[2L]],
                                           residual = residual)
}
random_factor <- function(n) {
  R <- matrix(stats::rnorm(n * n) / sqrt(n), n)
  R[lower.tri(R)] <- 0
  diag(R) <- 2 + abs(diag(R))
  R
}

for (n in sizes) {
  f <- gpu_factor(random_factor(n), devices = devices)
  for (k in ranks) {
    V <- matrix(stats::rnorm(n * k) * 1e-3, n)
    update <- function(...) cholupdate_gpu(f, V, ..., in_place = TRUE)
    x <- matrix(stats::rnorm(n))
    times_A <- function() gpucholmod:::rcpp_factor_multiply(f, x, 0L)
    before <- times_A()
    update()
    after <- times_A()
    residual <- norm(after - before - V %*% crossprod(V, x), "F") / (.Machine$double.eps * norm(after, "F"))
    note("in place", n, k, timed(update), residual)
    note("new", n, k, timed(function() cholupdate_gpu(f, V), function(made) {
      free(f)
      f <<- made
    }))
    for (zeros in c(n %/% 2L, n - 1L)) {
      below <- replace(V, row(V) <= zeros, 0)
      what <- sprintf("in place, from row %s", if (zeros < n - 1L) "n / 2" else "n")
      note(what, n, k, timed(function() cholupdate_gpu(f, below, in_place = TRUE)))
    }
    if (k != 16) next
    y <- stats::rnorm(k)
    note("weights", n, k, timed(function() update(weights = rep(1.5, k))))
    note("scale", n, k, timed(function() update(scale = 1.0001)))
    note("z", n, k, timed(function() update(z = x, y = y)))
  }
  for (m in c(1, 64)) {
    b <- matrix(stats::rnorm(n * m), n)
    note("solve", n, m, timed(function() solve(f, b), device = FALSE))
  }
  free(f)
}
for (batch in batches) {
  size <- as.numeric(strsplit(batch, "x", fixed = TRUE)[[1L]])
  b <- size[[1L]]
  n <- size[[2L]]
  k <- size[[3L]]
  f <- chol_batch(array(diag(2, n), c(n, n, b)), backend = "cuda")
  V <- array(stats::rnorm(n * k * b) * 1e-3, c(n, k, b))
  note(paste("batch of", format(b, scientific = FALSE)), n, k,
       timed(function() cholupdate_batch(f, V, in_place = TRUE)))
  free(f)
}
for (n in upload) {
  R <- diag(2, n)
  repeats <- min(repeats, 9)
  f <- NULL
  note("upload", n, NA, timed(function() gpu_factor(R, devices = devices), function(made) {
    if (!is.null(f)) free(f)
    f <<- made
  }, device = FALSE))
  note("download", n, NA, timed(function() as.matrix(f), device = FALSE))
  free(f)
}
measured <- do.call(rbind, rows)
measured$gpus <- length(devices)
cat(sprintf("%s, %d GPU(s), milliseconds\n", gpu_info()$devices$name[[1L]], length(devices)))
print(measured, row.names = FALSE, digits = 3)
if (nzchar(out)) save_measurements(measured, out, "gpu_calls.R")
