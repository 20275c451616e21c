# Many modifications of one factor, solved with, beside factorising and modifying each, in milliseconds.
#
#   Rscript inst/bench/solve_modified.R [--backend=cpu|cuda] [--size=300] [--members=40] [--columns=25]
#                                       [--downdate=TRUE] [--repeats=30]
#
# A = X'X + 5 I, X with members * columns rows, of which each member adds, or leaves out, as many as it has columns; a
# right-hand side of its own for each. The least of the repeats, which take turns, by the wall clock. No member needs
# its factor, and the solutions agree to 1e-9: otherwise it stops.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

n <- as.numeric(option("size", 300))
f <- as.numeric(option("members", 40))
k <- as.numeric(option("columns", 25))
downdate <- as.logical(option("downdate", TRUE))
repeats <- as.numeric(option("repeats", 30))

set.seed(1)
V <- array(rnorm(n * k * f), c(n, k, f))
A <- tcrossprod(matrix(V, n)) + diag(5, n)
R <- chol(A)
b <- array(rnorm(n * f), c(n, 1, f))
factor <- chol_factor(R, option("backend", "cpu"))
sign <- if (downdate) -1 else 1
slices <- lapply(seq_len(f), function(j) matrix(V[, , j], n))
matrices <- if (n * n * f < 1e8) lapply(slices, function(v) A + sign * tcrossprod(v))
each <- function(solution) vapply(seq_len(f), solution, numeric(n))
by_chol <- function(A, j) {
  R <- chol(A)
  backsolve(R, backsolve(R, b[, 1, j], transpose = TRUE))
}
ways <- list(
  "solve_modified()" = function() solve_modified(factor, V, b, downdate, what = "solution")$solution[, 1, ],
  "cholupdate_gpu(), solve()" = function()
    each(function(j) solve(cholupdate_gpu(factor, slices[[j]], downdate), b[, 1, j])),
  "chol(), backsolve(), of matrices that are there" = if (!is.null(matrices))
    function() each(function(j) by_chol(matrices[[j]], j)),
  "tcrossprod(), chol(), backsolve()" = function() each(function(j) by_chol(A + sign * tcrossprod(slices[[j]]), j))
)
ways <- Filter(Negate(is.null), ways)
for (way in ways) stopifnot(isTRUE(all.equal(way(), ways[[1]](), tolerance = 1e-9)))
stopifnot(length(solve_modified(factor, V, downdate = downdate)$by_factor) == 0)
seconds <- replicate(repeats, vapply(ways, function(way) {
  begin <- Sys.time()
  way()
  as.numeric(Sys.time() - begin, units = "secs")
}, 0))
least <- 1000 * apply(seconds, 1, min)
print(data.frame(ms = signif(least, 3), ratio = signif(least / least[[1]], 3)))
