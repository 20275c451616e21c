# Backward error against condition number: the package's methods, refactoring, and forms that the package does not use.
#
#   Rscript conditioning.R [--n=256] [--k=8] [--seeds=5] [--out=FILE]
#
# Families, each with a parameter that runs over powers of ten.
#   update                 A of condition 1e2 ... 1e17: the Gaussian kernel exp(-20 d^2) of n points of [0, 1], in their
#                          order, plus a nugget of its largest eigenvalue / (condition - 1); V normal. R comes by QR
#                          from the square roots of the eigenvalues: so it exists, and has that condition, where
#                          chol() fails. In random order, or in the plane, the forms that lose digits lose fewer.
#   downdate               the same backwards: A~ is that matrix, R the triangular factor of [R~; V'] by QR
#   downdate in early rows R well-conditioned, V = R'P with all singular values of P equal. The parameter, 1 - p'p, is
#                          what the downdate leaves of A in k directions: 1e-1 ... 1e-13. Rows of P from 65 on are
#                          smaller by its square root. (E2 and E3 of tests/core/families.cpp are such.)
# With k at most 4 the CPU's methods would use rotations instead of Householder steps.
#
# Methods: chol(A + sigma VV'); all of the package's, on the CPU and, where it can be used, on the GPU; and, in plain R
# and not used by the package,
#   paper's rotations      as Walder (2010) writes them: R <- (R + sigma s V) / c, V <- c V - s R for both signs
#   plain Householder      hyperbolic reflectors, with a new diagonal entry that comes from a difference
#   unguarded solve-first  the block step of inst/design/block-columns.md, 64 rows at a time, without its guard
#
# Errors: ||R~'R~ - (R'R + sigma VV')||_F / (u max(||R'R||_F, ||R'R + sigma VV'||_F)), u = 2^-53, with a difference that
# is formed to more than 60 bits; NA where a method finds no factor, and `failed` is TRUE. The script stops where an
# error of the package's own is not below 2 (n + k), a residual ratio of 1 (inst/design/accuracy.md), and if an update
# fails.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
n <- as.integer(option("n", 256))
k <- as.integer(option("k", 8))
seeds <- seq_len(as.integer(option("seeds", 5)))
out <- option("out", "")
u <- 2^-53
nb <- 64L
stopifnot(n > nb, k <= n)

# M'SM for S = diag(signs): every column is cut, by powers of two, into slices of so few bits that no sum of products of
# two slices rounds, whatever BLAS does, and the large terms cancel exactly. (R's `matprod = "internal"` would not do:
# its sums are in extended precision, but the products that go into them are not.)
gram_exactly <- function(M, signs) {
  bits <- (53 - ceiling(log2(nrow(M)))) %/% 2
  scale <- 2^(floor(log2(apply(abs(M), 2, max))) + 1)
  rest <- M / rep(scale, each = nrow(M))
  slices <- list()
  for (i in seq_len(ceiling(63 / bits))) {
    slices[[i]] <- trunc(rest * 2^(i * bits)) / 2^(i * bits)
    rest <- rest - slices[[i]]
  }
  G <- 0
  for (order in 2:(length(slices) + 1)) {
    for (i in seq_len(order - 1)) G <- G + crossprod(slices[[i]], signs * slices[[order - i]])
  }
  G * outer(scale, scale)
}
residual <- function(R1, R, V, sigma) {
  gram_exactly(rbind(R1, R, t(V)), rep(c(1, -1, -sigma), c(nrow(R1), nrow(R), ncol(V))))
}
# The square of 3 (1 + 2^-30) has a bit that products in double precision lose.
stopifnot(residual(matrix(3 + 3 * 2^-30), matrix(3), matrix(3 * 2^-14), 1) == 9 * (2^-60 + 2^-29 - 2^-28))

upper <- function(M) {
  R <- qr.R(qr(M, LAPACK = FALSE))
  R * ifelse(diag(R) < 0, -1, 1)
}
kernel <- function() {
  x <- sort(runif(n))
  decomposition <- eigen(exp(-20 * outer(x, x, "-")^2), symmetric = TRUE)
  list(values = pmax(decomposition$values, 0), vectors = decomposition$vectors)
}
with_condition <- function(kernel, condition) {
  upper(sqrt(kernel$values + max(kernel$values) / (condition - 1)) * t(kernel$vectors))
}
families <- list(
  "update" = list(
    parameters = 10^(2:17),
    make = function(parameter, about) list(R = with_condition(about$kernel, parameter), V = about$normal, sigma = 1)
  ),
  "downdate" = list(
    parameters = 10^(2:17),
    make = function(parameter, about) {
      list(R = upper(rbind(with_condition(about$kernel, parameter), t(about$normal))), V = about$normal, sigma = -1)
    }
  ),
  "downdate in early rows" = list(
    parameters = 10^-(1:13),
    make = function(parameter, about) {
      P <- qr.Q(qr(about$normal * ifelse(seq_len(n) > nb, sqrt(parameter), 1)))
      list(R = about$well, V = sqrt(1 - parameter) * crossprod(about$well, P), sigma = -1)
    }
  )
)

# A form that fails returns NULL.
papers_rotations <- function(R, V, sigma) {
  Rt <- t(R)  # rows of R as columns, which R reads faster
  for (q in seq_len(k)) {
    v <- V[, q]
    for (i in seq_len(n)) {
      r <- Rt[i, i]
      square <- if (sigma > 0) r^2 + v[i]^2 else (r - v[i]) * (r + v[i])
      if (!(square > 0)) return(NULL)
      c <- sqrt(square) / r
      s <- v[i] / r
      Rt[, i] <- (Rt[, i] + sigma * s * v) / c
      Rt[i, i] <- sqrt(square)
      v <- c * v - s * Rt[, i]
    }
  }
  R1 <- t(Rt)
  R1[lower.tri(R1)] <- 0
  R1
}
plain_householder <- function(R, V, sigma) {
  Rt <- t(R)
  for (i in seq_len(n)) {
    r <- Rt[i, i]
    square <- r^2 + sigma * sum(V[i, ]^2)
    if (!(square > 0)) return(NULL)
    y <- V[i, ] / (r + sqrt(square))
    x <- (Rt[, i] + sigma * (V %*% y)) / ((1 + sigma * sum(y^2)) / 2)
    Rt[, i] <- x - Rt[, i]
    V <- V - tcrossprod(x, y)
  }
  R1 <- t(Rt)
  R1[lower.tri(R1)] <- 0
  R1
}
unguarded_solve_first <- function(R, V, sigma) {
  for (first in seq(1, n, nb)) {
    b <- first:min(first + nb - 1, n)
    j <- seq_len(n)[-seq_len(max(b))]
    P <- backsolve(R[b, b], V[b, , drop = FALSE], transpose = TRUE)
    S <- chol(diag(k) + sigma * crossprod(P))
    C <- chol(diag(length(b)) + sigma * tcrossprod(P))
    R_bj <- R[b, j, drop = FALSE]
    R[b, b] <- C %*% R[b, b]
    R[b, j] <- backsolve(C, R_bj + sigma * P %*% t(V[j, , drop = FALSE]), transpose = TRUE)
    V[j, ] <- t(backsolve(S, t(V[j, , drop = FALSE]) - crossprod(P, R_bj), transpose = TRUE))
  }
  R
}

usable <- gpu_info(memory = FALSE)$usable
ours <- function(method, backend) {
  list(method = method, where = if (backend == "cpu") "cpu" else "gpu", ours = TRUE, run = function(R, V, sigma) {
    cholupdate_gpu(R, V, downdate = sigma < 0, backend = backend, method = method)
  })
}
other <- function(method, run) list(method = method, where = "cpu", ours = FALSE, run = run)
methods <- c(
  list(other("chol(A + sigma VV')", function(R, V, sigma) chol(crossprod(R) + sigma * tcrossprod(V)))),
  lapply(c("reference", "blocked"), ours, backend = "cpu"),
  lapply(c("panel", "stream"), ours, backend = if (usable) "cuda" else "cpu"),
  if (usable) {
    list(list(method = "resident", where = "gpu", ours = TRUE, run = function(R, V, sigma) {
      as.matrix(cholupdate_gpu(gpu_factor(R), V, downdate = sigma < 0))
    }))
  },
  list(other("paper's rotations", papers_rotations), other("plain Householder", plain_householder),
       other("unguarded solve-first", unguarded_solve_first))
)

rows <- list()
for (seed in seeds) {
  set.seed(seed)
  about <- list(kernel = kernel(), normal = matrix(rnorm(n * k), n),
                well = upper(matrix(rnorm(2 * n * n), 2 * n) / sqrt(2 * n)))
  for (family in names(families)) {
    for (parameter in families[[family]]$parameters) {
      problem <- families[[family]]$make(parameter, about)
      A <- crossprod(problem$R)
      scale <- u * max(norm(A, "F"), norm(A + problem$sigma * tcrossprod(problem$V), "F"))
      for (method in methods) {
        R1 <- tryCatch(do.call(method$run, problem), error = function(e) {
          if (method$ours && !inherits(e, "gpucholmod_not_positive_definite")) stop(e)
        })
        failed <- is.null(R1) || !all(is.finite(R1))
        error <- if (failed) NA else norm(do.call(residual, c(list(R1), problem)), "F") / scale
        rows <- c(rows, list(data.frame(family = family, parameter = parameter, seed = seed, method = method$method,
                                        where = method$where, error = error, failed = failed, ours = method$ours)))
      }
    }
  }
}
data <- do.call(rbind, rows)

worst <- with(data, tapply(error, list(paste0(method, ", ", where), family), max, na.rm = TRUE))
failures <- with(data, tapply(failed, list(paste0(method, ", ", where), family), sum))
cat(sprintf("n = %d, k = %d, %d seeds; largest error in units of 2^-53\n", n, k, length(seeds)))
print(signif(worst[, names(families)], 2))
cat("how many found no factor, of", length(seeds), "a parameter\n")
print(failures[, names(families)])

if (nzchar(out)) {
  save_measurements(
    transform(data, error = signif(error, 4), ours = NULL), out, "conditioning.R",
    about = c(n = n, k = k, error = "units of 2^-53, relative to the larger of ||A||_F and ||A + sigma VV'||_F",
              parameter = "condition of A (update), of A + sigma VV' (downdate); 1 - p'p (downdate in early rows)",
              gpucholmod:::machine())
  )
}
if (any(data$ours & data$failed & data$family == "update")) stop("an update has failed")
if (any(data$ours & !data$failed & !(data$error < 2 * (n + k)))) stop("an error is not below 2 (n + k)")
