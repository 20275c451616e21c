# The method "stream", from matrix to matrix: whole R calls, beside R's own copy of the matrix and chol().
#
#   Rscript stream.R [--sizes=2000,5000,10000,16384] [--k=16] [--repeats=9] [--backend=cuda|cpu] [--method=stream]
#                    [--memory=Inf,256MB] [--threads=] [--chol] [--chol-most=5000] [--out=stream.csv]
#
# For each n, VV' is added to a well-conditioned factor and taken off the result again. Wall-clock times, gc() before
# each call; medians, after one call to warm up. The markdown table comes last:
#   limit           `device_memory`
#   ms              the whole call. "R + 0" is what R itself takes to write such a matrix; "chol" is chol(A + VV'), that
#                   matrix being there already (at most 3 times, up to --chol-most), with as many threads of R's BLAS as
#                   are quickest
#   inside          last_cholupdate()$seconds
#   peak MB         most device memory at once, in 1e6 bytes
#   GB/s each way   4 n^2 bytes of the triangle, which go there and come back, by the time of the whole call
#   ratio           of the last result, the larger of two random vectors x, all norms being 2-norms; must be below 1:
#
#     ||R~'(R~x) - (R'(Rx) + sigma V(V'x))|| / ((n + k) eps (||R'(Rx)|| + ||V(V'x)||))
#
# --out writes the measurements, in seconds and bytes (stored_measurements()).
#
# A result whose ratio is not, or with anything but zeros below the diagonal, stops the script. Memory: four matrices.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))
options(matprod = "blas")  # R would look for NaN in every matrix first

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]] else default
}
sizes <- as.numeric(option("sizes", c(2000, 5000, 10000, 16384)))
k <- as.integer(option("k", 16))
repeats <- as.integer(option("repeats", 9))
backend <- match.arg(option("backend", "cuda"), c("cuda", "cpu"))
method <- option("method", "stream")
limits <- option("memory", c("Inf", "256MB"))
threads <- option("threads", NULL)
chol_most <- if ("--chol" %in% commandArgs(TRUE)) as.numeric(option("chol-most", 5000)) else 0

make <- function(n) {
  x <- rnorm(1000003) / sqrt(n)
  R <- matrix(rep_len(x, n * n), n, n)
  for (j in seq_len(n - 1)) R[(j + 1):n, j] <- 0
  R[cbind(1:n, 1:n)] <- 1 + runif(n)
  R
}

# The last result of f(), and medians of the seconds of the call and of what the report says.
timed <- function(f, times = repeats) {
  whole <- inside <- numeric(0)
  for (i in seq_len(times + 1L)) {
    result <- NULL
    gc()
    start <- Sys.time()
    result <- f()
    whole[i] <- as.numeric(difftime(Sys.time(), start, units = "secs"))
    inside[i] <- if (is.null(last_cholupdate())) NA else last_cholupdate()$seconds
  }
  list(result = result, whole = stats::median(whole[-1L]), inside = stats::median(inside[-1L]))
}

norms <- function(X) sqrt(colSums(X^2))
residual_ratio <- function(before, after, V, sigma) {
  X <- matrix(rnorm(2 * nrow(V)), ncol = 2L)
  AX <- crossprod(before, before %*% X)
  VVX <- V %*% crossprod(V, X)
  E <- crossprod(after, after %*% X) - AX - sigma * VVX
  max(norms(E) / ((nrow(V) + ncol(V)) * .Machine$double.eps * (norms(AX) + norms(VVX))))
}
zero_below_diagonal <- function(S) {
  n <- nrow(S)
  for (j in seq_len(n - 1)) if (!isTRUE(all(S[(j + 1):n, j] == 0))) return(FALSE)
  TRUE
}

rows <- list()
measured <- data.frame()
add_row <- function(n, what, whole, limit = "", inside = NA, panels = "", peak = NA, ratio = NA) {
  measured <<- rbind(measured, data.frame(n = n, k = k, call = what, device_memory = limit,
                                          seconds = whole, inside = inside, panels = panels,
                                          device_bytes_peak = peak, ratio = ratio))
  number <- function(format, x) if (is.na(x)) "" else sprintf(format, x)
  row <- c(sprintf("%.0f", n), what, limit, number("%.1f", 1000 * whole), number("%.1f", 1000 * inside), panels,
           number("%.1f", peak / 1e6), if (is.na(inside)) "" else sprintf("%.2f", 4 * n^2 / whole / 1e9),
           number("%.1e", ratio))
  message(paste(row, collapse = "  "))
  rows[[length(rows) + 1L]] <<- row
}

# `before` modified; the result is checked and returned.
modify <- function(before, V, downdate, limit) {
  control <- cholupdate_control(device_memory = if (limit == "Inf") Inf else limit,
                                threads = if (!is.null(threads)) as.integer(threads))
  done <- timed(function() cholupdate_gpu(before, V, downdate, backend = backend, method = method, control = control))
  report <- last_cholupdate()
  what <- if (downdate) "downdate" else "update"
  ratio <- residual_ratio(before, done$result, V, if (downdate) -1 else 1)
  add_row(nrow(V), what, done$whole, limit, done$inside, sprintf("%.0f", report$panels), report$device_bytes_peak,
          ratio)
  if (!isTRUE(ratio < 1)) stop(sprintf("n = %.0f, %s: the residual ratio is %.2g", nrow(V), what, ratio), call. = FALSE)
  if (!zero_below_diagonal(done$result))
    stop(sprintf("n = %.0f, %s: there are not only zeros below the diagonal", nrow(V), what), call. = FALSE)
  done$result
}

set.seed(2010)
for (n in sizes) {
  R <- make(n)
  V <- matrix(rnorm(n * k), n) / sqrt(n)
  add_row(n, "R + 0", timed(function() R + 0)$whole)
  if (n <= chol_most) {
    A1 <- crossprod(R) + tcrossprod(V)
    threads_of_blas <- gpucholmod:::quickest_blas_threads(function() chol(A1))
    add_row(n, "chol", gpucholmod:::with_blas_threads(threads_of_blas,
                                                      timed(function() chol(A1), min(repeats, 3L))$whole))
    rm(A1)
  }
  for (limit in limits) {
    up <- modify(R, V, FALSE, limit)
    modify(up, V, TRUE, limit)
    rm(up)
  }
}

report <- last_cholupdate()
cat(sprintf("%s; %s; BLAS %s; %d threads; %s\nmethod \"%s\", k = %d, medians of %d\n\n",
            if (nzchar(report$device)) report$device else "no GPU, on the CPU", R.version.string,
            basename(extSoftVersion()[["BLAS"]]), report$threads, format(Sys.Date()), report$method, k, repeats))
heading <- c("n", "call", "limit", "ms", "inside", "panels", "peak MB", "GB/s each way", "ratio")
cells <- rbind(heading, do.call(rbind, rows))
cells <- apply(cells, 2L, format, justify = "right")
lines <- apply(cells, 1L, function(row) paste0("| ", paste(row, collapse = " | "), " |"))
writeLines(c(lines[[1L]], gsub("[^|]", "-", lines[[1L]]), lines[-1L]))

out <- option("out", NULL)
if (!is.null(out)) {
  save_measurements(measured, out, "stream.R")
}
