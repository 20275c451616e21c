# What the random calls of test-fuzz.R are about: orders, factors, columns, changes and options, drawn at random.

one_of <- function(x, prob = NULL) x[[sample.int(length(x), 1L, prob = prob)]]
whole <- function(from, to) from + sample.int(to - from + 1L, 1L) - 1L
chance <- function(p) runif(1) < p

draw_order <- function() {
  switch(one_of(c("small", "edge", "medium", "large"), c(0.55, 0.23, 0.18, 0.04)),
         small = whole(0L, 24L), edge = one_of(c(31:34, 63:66, 127:130)), medium = whole(25L, 260L),
         large = whole(261L, 520L))
}

draw_rank <- function() {
  switch(one_of(c("few", "edge", "any"), c(0.7, 0.2, 0.1)),
         few = one_of(0:5, c(1, 4, 2, 2, 2, 2)), edge = one_of(c(7:9, 15:17, 31:33, 63:66)), any = whole(0L, 100L))
}

draw_factor <- function(n) {
  R <- upper(matrix(rnorm(n * n) / sqrt(max(n, 1)), n))
  diag(R) <- runif(n, 0.5, 2)
  switch(one_of(c("plain", "graded", "steep", "mixed", "diagonal"), c(5, 2, 2, 2, 1)),
         plain = R, graded = R * 10^runif(n, -6, 0), steep = R * rep(10^sort(runif(n, -8, 0)), each = n),
         mixed = graded_mixed(R, runif(1, 0, 6), 10^runif(1, -3, 0)), diagonal = R * diag(n))
}

draw_columns <- function(n, k) {
  V <- matrix(rnorm(n * k) / sqrt(max(n, 1)), n, k) * 10^runif(1, -3, 1)
  switch(one_of(c("plain", "scaled", "sparse", "late", "parallel", "zero"), c(8, 2, 1, 1, 1, 0.5)),
         plain = V, scaled = V * rep(10^runif(k, -6, 3), each = n), sparse = V * (runif(n * k) < 0.1),
         late = V * (seq_len(n) > n / 2),
         parallel = V[, rep(1L, k)[seq_len(k)], drop = FALSE] * (1 + 1e-7 * rnorm(n * k)),
         zero = V * 0)
}

# As much as V, in the directions of R'R.
draw_columns_of <- function(R, V) if (chance(0.8)) V else crossprod(R, V)

# R and V of order near 1. What a downdate comes to is found out later, see judge_input().
draw_numbers <- function(n, k, downdate, integers) {
  if (integers) {
    R <- upper(matrix(sample(-3:3, n * n, TRUE), n, n))
    diag(R) <- sample(1:9, n, TRUE)
    return(list(R = R, V = matrix(sample(-2:2, n * k, TRUE), n, k)))
  }
  R <- draw_factor(n)
  V <- draw_columns_of(R, draw_columns(n, k))
  if (!downdate || n == 0L || k == 0L) return(list(R = R, V = V))
  k <- min(n, k)
  switch(one_of(c("undo", "any", "nearly singular", "impossible"), c(5, 2, 2, 2)),
         undo = list(R = factor_of_sum(R, V), V = V),
         any = list(R = R, V = V),
         "nearly singular" = nearly_singular(R, k, 10^runif(1, -16, 0)),
         impossible = nearly_singular(R, k, -10^runif(1, -15, 3)))
}

# Of R'R + VV'.
factor_of_sum <- function(R, V) {
  tryCatch(chol(crossprod(R) + tcrossprod(V)),
           error = function(e) if (nrow(R) < 200) positive_qr(rbind(R, t(V))) else R)
}

# How the columns of V are asked to change A: the arguments, and the weights and the scale that they come to. Those
# whose numbers are near a limit keep to `downdate`.
draw_change <- function(k, downdate, moderate) {
  if (!moderate || chance(0.65)) {
    return(list(args = list(downdate = downdate), weights = rep(if (downdate) -1 else 1, k), scale = 1))
  }
  weights <- (if (downdate) -1 else 1) * switch(one_of(c("one", "ones", "spread")), one = 10^runif(1, -2, 0),
                                                ones = rep(1, k),
                                                spread = 10^runif(k, -6, 0))
  if (length(weights) > 1L) {
    other <- runif(k) < one_of(c(0, 0.2, 0.6))
    weights[other] <- weights[other] * -one_of(c(0.01, 0.3, 1))
    if (chance(0.3)) weights[runif(k) < 0.2] <- 0
  }
  args <- list(weights = weights)
  if (chance(0.5)) args$scale <- one_of(c(0.25, 0.99, 1, runif(1, 0.1, 3)))
  list(args = args, weights = rep_len(weights, k), scale = if (is.null(args$scale)) 1 else args$scale)
}

# What to multiply R and V by. Float32 has a smaller range.
draw_scales <- function(R, V, float32) {
  most <- if (float32) 30 else 300
  top <- if (float32) 3.4e38 else 1.79e308
  switch(one_of(c("none", "common", "each", "top"), c(12, 4, 4, 1)),
         none = c(1, 1), common = rep(10^runif(1, -most, most), 2), each = 10^runif(2, -most, most),
         top = top * 10^-runif(2, 0, 0.6) / pmax(1, c(max(0, abs(R)), max(0, abs(V)))))
}

draw_control <- function(threads_most = 4L) {
  if (chance(0.5)) return(cholupdate_control())
  maybe <- function(value, p = 0.4) if (chance(p)) value
  given <- list(
    blocks_per_kernel = maybe(whole(1L, 40L)), threads_per_block = maybe(32L * whole(1L, 8L)),
    elements_per_thread = maybe(one_of(c(1, 4, 8, 16, 32))), panel_rows = maybe(whole(1L, 200L)),
    loop_order = maybe(one_of(c("A", "B"))), threads = maybe(whole(1L, threads_most)),
    device_memory = maybe(one_of(list(1, 20000, 1e5, "1MB", "3 MiB", "1GB", Inf))),
    instructions = maybe(one_of(c("auto", "plain", "avx2", "avx512"))), timeline = maybe(chance(0.5), 0.2)
  )
  do.call(cholupdate_control, Filter(Negate(is.null), given))
}
