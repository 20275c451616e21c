# Times of one update and one downdate by every method, and the error of each.
#
#   Rscript methods_table.R [--n=5000] [--k=16] [--repeats=5] [--precision=double]
#
# Procedure of Walder (2010): B (n x n) and V (n x k) uniform on [0, 1]; an update starts from A = B'B + I, a downdate
# from A = B'B + I + VV'. Times are medians, in milliseconds:
#   call     the whole R call, from an ordinary matrix to an ordinary matrix
#   modify   the modification itself, as last_cholupdate() reports it (transfers to the GPU are part of it)
# Errors: max|A~ - R~'R~|, the paper's, and the residual ratio of inst/design/accuracy.md, which must be below 30.

library(gpucholmod)

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
n <- as.integer(option("n", 5000))
k <- as.integer(option("k", 16))
repeats <- as.integer(option("repeats", 5))
precision <- option("precision", "double")
eps <- if (precision == "double") .Machine$double.eps else 2^-23

milliseconds <- function(f) {
  times <- vapply(seq_len(repeats), function(i) {
    start <- proc.time()[["elapsed"]]
    f()
    1000 * (proc.time()[["elapsed"]] - start)
  }, 0)
  stats::median(times)
}

set.seed(2010)
B <- matrix(runif(n * n), n)
V <- matrix(runif(n * k), n)
base <- crossprod(B) + diag(n)
raised <- base + tcrossprod(V)
factors <- list(update = chol(base), downdate = chol(raised))
targets <- list(update = raised, downdate = base)
rm(B)

methods <- list(
  "stream, GPU" = list(backend = "cuda", method = "stream"),
  "panel, GPU" = list(backend = "cuda", method = "panel"),
  "blocked, CPU" = list(backend = "cpu", method = "blocked"),
  "rank-1 sweeps, CPU" = list(backend = "cpu", method = "reference")
)
if (!gpu_info(memory = FALSE)$usable) {
  cat("no GPU:", gpu_info(memory = FALSE)$message, "\n")
  methods[c("stream, GPU", "panel, GPU")] <- NULL
}

errors <- function(R, sign) {
  A <- targets[[sign]]
  E <- abs(crossprod(R) - A)
  other <- targets[[setdiff(names(targets), sign)]]
  scale <- (n + k) * eps * (norm(other, "1") + norm(tcrossprod(V), "1"))
  list(max = max(E), ratio = max(colSums(E)) / scale)
}

row <- function(name, sign, call, modify, R) {
  e <- errors(R, sign)
  data.frame(method = name, sign = sign, call_ms = call, modify_ms = modify, max_error = e$max, ratio = e$ratio)
}

rows <- list()
for (sign in c("update", "downdate")) {
  for (name in names(methods)) {
    run <- function() {
      do.call(cholupdate_gpu, c(list(factors[[sign]], V, sign == "downdate", precision = precision), methods[[name]]))
    }
    R <- run()
    seconds <- numeric(0)
    call <- milliseconds(function() {
      run()
      seconds <<- c(seconds, last_cholupdate()$seconds)
    })
    rows <- c(rows, list(row(name, sign, call, 1000 * stats::median(seconds), R)))
  }
  A <- targets[[setdiff(names(targets), sign)]]
  refit <- function() chol(if (sign == "update") A + tcrossprod(V) else A - tcrossprod(V))
  R <- refit()
  A_ready <- targets[[sign]]
  rows <- c(rows, list(row("chol(A + VV') in R", sign, milliseconds(refit), milliseconds(function() chol(A_ready)), R)))
}
table <- do.call(rbind, rows)

info <- gpu_info(memory = FALSE)
blas <- tryCatch(basename(extSoftVersion()[["BLAS"]]), error = function(e) "")
cat(sprintf("n = %d, k = %d, %s precision, medians of %d; %s; %s; BLAS %s; %s\n", n, k, precision, repeats,
            R.version.string, if (info$usable) info$devices$name[[1L]] else "no GPU", blas, format(Sys.Date())))
cat("(for chol(), 'call' includes forming A + VV', 'modify' is chol() alone)\n")
table$call_ms <- round(table$call_ms, 1)
table$modify_ms <- round(table$modify_ms, 1)
table$max_error <- signif(table$max_error, 2)
table$ratio <- signif(table$ratio, 2)
print(table, row.names = FALSE)
if (any(!(table$ratio < 30))) stop("a residual ratio is not below 30: the times do not count")
