# Rows and columns that come, go and move, beside factorising afresh, in milliseconds.
#
#   Rscript inst/bench/reshape.R [--backend=cpu|cuda] [--size=5000] [--grow=2000] [--repeats=5] [--warming=0.5]
#                                [--out=FILE]
#
# A factor of chol_factor(R, backend) with room for what comes, changed in place; 16 rows and columns, in the middle or
# scattered. Medians of the repeats, by the wall clock. `chol`: chol() of the new matrix, or, on a GPU, cuSOLVER's
# factorisation of one that is there, by events; `trsm`: one forward substitution with as many right-hand sides, by
# backsolve() or on the GPU by solve_forward(), which appending cannot be quicker than. Every factor that is timed is
# looked at: ||R'R x - A x|| below 1e-12 ||A|| ||x||, x random. Last, in ordinary memory, a Gaussian process that grows
# from 50 points one by one, its log-likelihood and the mean at a new point after each, and the same with chol() each
# time, of which every 50th is timed.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

backend <- option("backend", "cpu")
n <- as.numeric(option("size", 5000))
grow <- as.numeric(option("grow", if (backend == "cpu") 2000 else 0))
repeats <- as.numeric(option("repeats", 5))
warming <- as.numeric(option("warming", 0.5))
out <- option("out", character(0))

seconds_of <- function(f) {
  begin <- Sys.time()
  f()
  as.numeric(Sys.time() - begin, units = "secs")
}
# Returns the milliseconds of change(); undo() is run after each. Both are run for --warming seconds before: a GPU that
# has had nothing to do is slow.
time <- function(change, undo = function() NULL) {
  once <- function(i) {
    seconds <- seconds_of(change)
    undo()
    seconds
  }
  begin <- Sys.time()
  while (Sys.time() - begin < warming) once()
  1000 * stats::median(vapply(seq_len(repeats), once, 0))
}
# Stops where f is not the factor of A[keep, keep].
look_at <- function(f, keep) {
  x <- rnorm(length(keep))
  R <- as.matrix(f)
  stopifnot(max(abs(crossprod(R, R %*% x) - A[keep, keep] %*% x)) < 1e-12 * norm(A, "1") * max(abs(x)))
}

set.seed(1)
R <- families$ridge$R(n + 16)
A <- crossprod(R)
rows <- list()
add <- function(what, milliseconds) {
  rows[[length(rows) + 1L]] <<- data.frame(what = what, n = n, milliseconds = milliseconds)
  cat(sprintf("%-28s %10.3f ms\n", what, milliseconds))
}
cat(sprintf("n = %d\n", n))
if (backend == "cpu") {
  add("chol", time(function() chol(A[seq_len(n), seq_len(n)])))
} else {
  f <- chol_factor(R[seq_len(n), seq_len(n)], backend)
  add("chol", 1000 * gpucholmod:::rcpp_factor_refactor_seconds(f$pointer, repeats))
  rm(f)
}
for (p in c(1, 16)) {
  keep <- seq_len(n)
  f <- chol_factor(chol(A[keep, keep]), backend, capacity = n + 16)
  X <- A[seq_len(n + p), n + seq_len(p)]
  B <- A[keep, n + seq_len(p), drop = FALSE]
  small <- R[keep, keep]
  add(sprintf("trsm, %d", p), time(function()
    if (backend == "cpu") backsolve(small, B, transpose = TRUE) else solve_forward(f, B)))
  rm(small)
  add(sprintf("append %d", p), time(function() cholinsert_gpu(f, X, in_place = TRUE),
                                    function() choldelete_gpu(f, n + seq_len(p), in_place = TRUE)))
  add(sprintf("delete the last %d", p), time(
    function() choldelete_gpu(f, n - p + seq_len(p), in_place = TRUE),
    function() cholinsert_gpu(f, A[keep, n - p + seq_len(p)], in_place = TRUE)
  ))
  middle <- n %/% 2 + seq_len(p)
  Y <- A[keep, middle]
  add(sprintf("delete %d in the middle", p), time(function() choldelete_gpu(f, middle, in_place = TRUE),
                                                  function() cholinsert_gpu(f, Y, middle[[1L]], in_place = TRUE)))
  choldelete_gpu(f, middle, in_place = TRUE)
  add(sprintf("insert %d in the middle", p), time(function() cholinsert_gpu(f, Y, middle[[1L]], in_place = TRUE),
                                                  function() choldelete_gpu(f, middle, in_place = TRUE)))
  look_at(f, keep[-middle])
  rm(f)
}
scattered <- sort(sample(n, 16))
f <- chol_factor(chol(A[seq_len(n), seq_len(n)]), backend)
add("delete 16 scattered", time(function() g <<- choldelete_gpu(f, scattered), function() rm(g, envir = globalenv())))
back <- copy_factor(f)
add("delete 16 scattered in place", time(function() choldelete_gpu(back, scattered, in_place = TRUE), function() {
  look_at(back, seq_len(n)[-scattered])
  free(back)
  back <<- copy_factor(f)
}))
add("shift from the middle to the end", time(function() cholshift_gpu(f, n %/% 2, n, in_place = TRUE),
                                             function() cholshift_gpu(f, n, n %/% 2, in_place = TRUE)))
add("shift from the end to the middle", time(function() cholshift_gpu(f, n, n %/% 2, in_place = TRUE),
                                             function() cholshift_gpu(f, n %/% 2, n, in_place = TRUE)))
look_at(f, seq_len(n))
rm(f, back, R, A)

if (grow > 0) {
  x <- runif(grow)
  y <- sin(6 * x) + 0.1 * rnorm(grow)
  covariance <- function(x, y) exp(-50 * outer(x, y, "-")^2) + 0.01 * outer(x, y, "==")
  f <- chol_factor(chol(covariance(x[1:50], x[1:50])), backend, capacity = grow)
  grown <- system.time(for (i in 51:grow) {
    cholinsert_gpu(f, covariance(x[1:i], x[i]), in_place = TRUE)
    both <- solve_forward(f, cbind(y[1:i], covariance(x[1:i], 0.5)))
    seen <- c(-sum(both[, 1]^2) / 2 - logdet(f) / 2 - i * log(2 * pi) / 2, sum(both[, 1] * both[, 2]))
  })[["elapsed"]]
  K <- covariance(x, x)
  anew <- function(i) {
    R <- chol(K[1:i, 1:i])
    both <- backsolve(R, cbind(y[1:i], covariance(x[1:i], 0.5)), transpose = TRUE)
    c(-sum(both[, 1]^2) / 2 - sum(log(diag(R))) - i * log(2 * pi) / 2, sum(both[, 1] * both[, 2]))
  }
  stopifnot(all.equal(seen, anew(grow)))
  some <- seq(75, grow, 50)
  each <- vapply(some, function(i) system.time(anew(i))[["elapsed"]], 0)
  add(sprintf("grown from 50 to %d", grow), 1000 * grown)
  add(sprintf("chol() each time, to %d", grow), 1000 * 50 * sum(each))
  cat(sprintf("ratio %.1f\n", 50 * sum(each) / grown))
}
if (length(out)) save_measurements(do.call(rbind, rows), out, "reshape.R")
