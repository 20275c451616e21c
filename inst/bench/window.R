# A sliding window: `rows` rows come and as many leave, by one call with weights and by two calls, in milliseconds.
#
#   Rscript inst/bench/window.R [--sizes=1000,5000,16384] [--rows=16,32] [--repeats=5] [--backend=cuda|cpu] [--out=FILE]
#
# A well-conditioned factor in double precision (family "ridge" of common.R). `how`: a factor on the GPU and a new one
# as the result ("new"), the same in place ("in place"), a new one with z, y and rss ("new, z"), an ordinary matrix by
# method "stream"; or, with --backend=cpu, an ordinary matrix by method "blocked" and one thread. `two`, `one`: by the
# wall clock, the median of the repeats, each the mean of several calls. `two_device`, `one_device`: what the GPU took,
# the least. `update`, `update_device`: an update with as many columns. `residual`: of the one call, ||R~'R~ x - A~ x||
# by eps (||R~'R~ x|| + ...), x random.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

sizes <- numbers("sizes", "1000,5000,16384")
counts <- numbers("rows", "16,32")
repeats <- numbers("repeats", "5")
backend <- option("backend", "cuda")
out <- option("out", character(0))

# Seconds of f(): median of the repeats, each the mean of as many calls as take 50 ms.
wall <- function(f) {
  once <- system.time(for (i in 1:2) f())[["elapsed"]] / 2
  times <- max(1, min(40, round(0.05 / max(once, 1e-4))))
  stats::median(vapply(seq_len(repeats),
                       function(i) system.time(for (j in seq_len(times)) f())[["elapsed"]] / times, 0))
}
# Seconds of the calls in a list, as the device took them: the least of several, the sum.
device <- function(calls) {
  sum(vapply(calls, function(call) min(vapply(1:6, function(i) {
    call()
    last_cholupdate()$seconds
  }, 0)), 0))
}

residual <- function(modified, R, V, w) {
  x <- rnorm(ncol(R))
  by <- function(M, x) crossprod(M, M %*% x)
  VWVx <- V %*% (w * crossprod(V, x))
  size <- function(x) sqrt(sum(x^2))
  size(by(modified, x) - by(R, x) - VWVx) / .Machine$double.eps /
    (size(by(R, x)) + size(V %*% (abs(w) * crossprod(V, x))))
}

rows <- list()
for (n in sizes) {
  set.seed(1)
  R <- families$ridge$R(n)
  for (count in counts) {
    come <- normal(n, count) / sqrt(n)
    go <- crossprod(R, normal(n, count)) / sqrt(n) / 4
    V <- cbind(come, go)
    w <- rep(c(1, -1), each = count)
    back <- cbind(go, come)
    little <- 1e-3 * V
    forth <- FALSE
    turn <- function() forth <<- !forth  # in place, what has come leaves again in the next call
    if (backend == "cpu") {
      control <- cholupdate_control(threads = 1)
      one <- function(f, ...)
        cholupdate_gpu(f, V, weights = w, ..., backend = "cpu", method = "blocked", control = control)
      two <- function(f) {
        g <- cholupdate_gpu(f, come, backend = "cpu", method = "blocked", control = control)
        cholupdate_gpu(g, go, downdate = TRUE, backend = "cpu", method = "blocked", control = control)
      }
      hows <- list(blocked = list(factor = R, two = two, one = one, update = function(f) {
        cholupdate_gpu(f, V, backend = "cpu", method = "blocked", control = control)
      }))
    } else {
      f <- gpu_factor(R)
      z <- rnorm(n)
      y <- rnorm(2 * count)
      two <- function(f, ...) cholupdate_gpu(cholupdate_gpu(f, come, ...), go, downdate = TRUE, ...)
      one <- function(f, ...) cholupdate_gpu(f, V, weights = w, ...)
      hows <- list(
        new = list(factor = f, two = two, one = one, update = function(f) cholupdate_gpu(f, V)),
        "in place" = list(factor = copy_factor(f), two = function(f) {
          cholupdate_gpu(f, if (turn()) come else go, in_place = TRUE)
          cholupdate_gpu(f, if (forth) go else come, downdate = TRUE, in_place = TRUE)
        }, one = function(f) cholupdate_gpu(f, if (turn()) V else back, weights = w, in_place = TRUE),
        update = function(f) cholupdate_gpu(f, little, in_place = TRUE)),
        "new, z" = list(factor = f, two = function(f) {
          g <- cholupdate_gpu(f, come, z = z, y = y[seq_len(count)], rss = 1e6)
          cholupdate_gpu(g$R, go, downdate = TRUE, z = g$z, y = y[-seq_len(count)], rss = g$rss)
        }, one = function(f) cholupdate_gpu(f, V, weights = w, z = z, y = y, rss = 1e6),
        update = function(f) cholupdate_gpu(f, V, z = z, y = y, rss = 1e6)),
        stream = list(factor = R, two = function(f) two(f, backend = "cuda", method = "stream"),
                      one = function(f) one(f, backend = "cuda", method = "stream"),
                      update = function(f) cholupdate_gpu(f, V, backend = "cuda", method = "stream"))
      )
    }
    for (how in names(hows)) {
      h <- hows[[how]]
      modified <- h$one(h$factor)
      if (how == "in place") modified <- copy_factor(modified)
      if (is.list(modified) && !is.null(modified$R)) modified <- modified$R
      row <- data.frame(n = n, rows = count, how = how, two = wall(function() h$two(h$factor)),
                        one = wall(function() h$one(h$factor)), update = wall(function() h$update(h$factor)),
                        two_device = NA, one_device = NA, update_device = NA,
                        residual = residual(as.matrix(modified), R, V, w))
      if (how == "new") {
        middle <- cholupdate_gpu(f, come)
        row$two_device <- device(list(function() cholupdate_gpu(f, come),
                                      function() cholupdate_gpu(middle, go, downdate = TRUE)))
        row$one_device <- device(list(function() h$one(f)))
        row$update_device <- device(list(function() h$update(f)))
      }
      rm(modified)
      times <- grep("^(two|one|update)", names(row))
      row[times] <- 1000 * row[times]
      rows[[length(rows) + 1L]] <- row
      print(format(row, digits = 3), row.names = FALSE)
      gc(verbose = FALSE)
    }
  }
}
measured <- do.call(rbind, rows)
cat("\nmilliseconds\n")
measured$ratio <- measured$one / measured$two
measured$ratio_device <- measured$one_device / measured$two_device
print(format(measured, digits = 3), row.names = FALSE)
if (length(out)) save_measurements(measured, out, "window.R")
