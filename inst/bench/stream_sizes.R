# Factors far larger than the device memory allowed, and than that of the card.
#
#   Rscript stream_sizes.R --n=100000 [--memory=256MB] [--k=16] [--overwrite] [--downdate] [--backend=cuda|cpu]
#                          [--threads=] [--columns=2000]
#
# With --overwrite the factor is changed where it is, so that there is one n x n matrix, 8 n^2 bytes (157 GB for
# n = 140,000), and never another: it is made and looked at by columns, and multiplied by BLAS as it is. Otherwise there
# are two. With --downdate, VV' is taken off again afterwards. For each phase its wall-clock time is printed as it ends.
#
# What has come out is checked by products with one random vector x, of before and after; a ratio that is not below 1
# stops the script:
#
#     ||R~'(R~x) - (R'(Rx) + sigma V(V'x))|| / ((n + k) eps (||R'(Rx)|| + ||V(V'x)||))        2-norms
#
# and so does anything but zeros below the diagonal of --columns columns, evenly spread.

library(gpucholmod)
options(matprod = "blas")  # R would look for NaN in all of the matrix first

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
flag <- function(name) paste0("--", name) %in% commandArgs(TRUE)
n <- as.numeric(option("n", stop("--n= must be given", call. = FALSE)))  # double: n * n may not be an integer
k <- as.integer(option("k", 16))
backend <- match.arg(option("backend", "cuda"), c("cuda", "cpu"))
columns <- as.numeric(option("columns", 2000))
threads <- option("threads", NULL)
overwrite <- flag("overwrite")
control <- cholupdate_control(device_memory = option("memory", Inf),
                              threads = if (!is.null(threads)) as.integer(threads))

start <- Sys.time()
begin <- function() start <<- Sys.time()
took <- function(phase) {
  seconds <- as.numeric(difftime(Sys.time(), start, units = "secs"))
  cat(sprintf("%-34s %9.2f s\n", phase, seconds))
  invisible(seconds)
}

# R lets garbage grow with what is in use: beside so large a matrix, to many gigabytes.
tidy <- function(i) if (i %% 256 == 0) gc(full = FALSE)

# The peak of this process's memory, in 1e9 bytes; NA where the system does not tell.
peak_on_host <- function() {
  status <- if (file.exists("/proc/self/status")) readLines("/proc/self/status") else character(0)
  line <- grep("^VmHWM:", status, value = TRUE)
  if (length(line)) as.numeric(gsub("[^0-9]", "", line)) * 1024 / 1e9 else NA_real_
}

check_zeros <- function(R) {
  n <- nrow(R)
  if (n < 2) return(invisible())
  looked_at <- unique(round(seq(1, n - 1, length.out = min(n, columns))))
  for (i in seq_along(looked_at)) {
    j <- looked_at[[i]]
    if (!isTRUE(all(R[(j + 1):n, j] == 0))) stop("column ", j, " has not only zeros below the diagonal", call. = FALSE)
    tidy(i)
  }
}

check_products <- function(y, expected, scale) {
  ratio <- sqrt(sum((y - expected)^2)) / ((n + k) * .Machine$double.eps * scale)
  cat(sprintf("%-34s %9.2g\n", "  residual ratio", ratio))
  if (!isTRUE(ratio < 1)) stop("the residual ratio is not below 1", call. = FALSE)
}

cat(sprintf("n = %.0f, k = %d: %.2f GB, %s device memory allowed; %s\n", n, k, 8 * n^2 / 1e9,
            if (is.finite(control$device_memory)) sprintf("%.1f MB (%.0f times less)", control$device_memory / 1e6,
                                                          8 * n^2 / control$device_memory) else "any",
            if (overwrite) "overwritten" else "into another matrix"))
cat(sprintf("%s; BLAS %s; %s\n\n", R.version.string, basename(extSoftVersion()[["BLAS"]]), format(Sys.Date())))

# No function but the last takes hold of R: it must stay the only name of its memory, to be written to without a copy.
set.seed(2010)
V <- matrix(rnorm(n * k), n) / sqrt(n)
x <- rnorm(n)
noise <- rnorm(n + 1000003) / sqrt(n)
diagonal <- 1 + runif(n)

begin()
R <- numeric(n * n)
dim(R) <- c(n, n)
took("allocate")

begin()
for (j in seq_len(n)) {
  rows <- seq_len(j)
  R[rows, j] <- noise[(j * 7919) %% 1000003 + rows]
  R[j, j] <- diagonal[[j]]
  tidy(j)
}
took("fill")

# y = R'(Rx), as a vector: neither product copies R
begin()
y <- drop(crossprod(R, R %*% x))
took("products before")

VVx <- drop(V %*% crossprod(V, x))
norm <- function(x) sqrt(sum(x^2))
for (downdate in c(FALSE, if (flag("downdate")) TRUE)) {
  what <- if (downdate) "downdate" else "update"
  gc()
  begin()
  if (overwrite) {
    cholupdate_overwrite(R, V, downdate = downdate, backend = backend, control = control)
  } else {
    R <- cholupdate_gpu(R, V, downdate, backend = backend, method = "stream", control = control)
  }
  seconds <- took(what)
  print(last_cholupdate())
  cat(sprintf("%-34s %9.2f GB/s\n", "  triangle, each way", 4 * n^2 / seconds / 1e9))
  begin()
  expected <- y + (if (downdate) -1 else 1) * VVx
  scale <- norm(y) + norm(VVx)
  y <- drop(crossprod(R, R %*% x))
  took("products after")
  check_products(y, expected, scale)
  begin()
  check_zeros(R)
  took("zeros below the diagonal")
}
cat(sprintf("\npeak memory of the process on the host: %.2f GB, %.2f n x n matrices\n", peak_on_host(),
            peak_on_host() * 1e9 / (8 * n^2)))
