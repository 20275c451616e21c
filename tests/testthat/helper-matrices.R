# Families of factors R and matrices V, and the residual that judges a result.

eps_of <- function(precision) if (precision == "double") .Machine$double.eps else 2^-23

# ratio = ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)),  to be below 30
residual_ratio <- function(modified, R, V, downdate, precision = "double") {
  V <- as.matrix(V)
  A <- crossprod(R)
  W <- tcrossprod(V)
  E <- crossprod(modified) - if (downdate) A - W else A + W
  scale <- (nrow(R) + ncol(V)) * eps_of(precision) * (norm(A, "1") + norm(W, "1"))
  if (scale == 0) 0 else norm(E, "1") / scale
}

positive_qr <- function(X) {
  R <- qr.R(qr(X, LAPACK = FALSE, tol = 0))
  R * ifelse(diag(R) < 0, -1, 1)
}
well_conditioned <- function(n) positive_qr(matrix(rnorm(2 * n * n), 2 * n) / sqrt(2 * n))
with_spectrum <- function(n, condition) {
  Q <- qr.Q(qr(matrix(rnorm(n * n), n)))
  positive_qr(sqrt(10^seq(0, -log10(condition), length.out = n)) * t(Q))
}
normal <- function(n, k, scale = 1 / sqrt(n)) matrix(rnorm(n * k) * scale, n)
orthonormal <- function(n, k) qr.Q(qr(matrix(rnorm(n * k), n)))[, seq_len(k), drop = FALSE]
upper <- function(X) X * upper.tri(X, diag = TRUE)

# Graded rows of R, mixed by an upper triangle near the identity: what an update of a factor with graded rows leaves.
# Inverses of diagonal blocks are inaccurate.
graded_mixed <- function(R, decades, mixing) {
  n <- nrow(R)
  M <- upper(matrix(rnorm(n * n) * mixing / sqrt(max(n, 1)), n))
  diag(M) <- exp(rnorm(n) / 4)
  upper(M %*% (10^(decades * runif(n, -1, 1)) * R))
}

# Each: function(n, k) list(R, V), for updates (U) and for downdates (D) that leave the matrix positive definite.
update_families <- list(
  "the paper's uniform" = function(n, k) {
    list(R = chol(crossprod(matrix(runif(n * n), n)) + diag(n)), V = matrix(runif(n * k), n))
  },
  "U1 well-conditioned" = function(n, k) list(R = well_conditioned(n), V = normal(n, k)),
  "U2 condition 1e12" = function(n, k) list(R = with_spectrum(n, 1e12), V = normal(n, k)),
  "U3 condition 1e12, V times 1e6" = function(n, k) list(R = with_spectrum(n, 1e12), V = normal(n, k, 1e6)),
  "U4 radial basis, nugget 1e-8" = function(n, k) {
    x <- sort(runif(n))
    list(R = chol(exp(-50 * outer(x, x, "-")^2) + 1e-8 * diag(n)), V = normal(n, k, 1))
  },
  "U5 nearly parallel columns of V" = function(n, k) {
    list(R = with_spectrum(n, 1e12), V = as.vector(normal(n, 1, 1)) + normal(n, k, 1e-7))
  },
  "U6 graded rows" = function(n, k) {
    list(R = upper(10^seq(-8, 0, length.out = n) * well_conditioned(n)), V = normal(n, k))
  },
  "U7 graded and mixed rows" = function(n, k) {
    R <- graded_mixed(well_conditioned(n), 6, 0.1)
    list(R = R, V = crossprod(R, normal(n, k, 30 / sqrt(n))))
  },
  "columns of V from 1e-6 to 1e6" = function(n, k) {
    list(R = well_conditioned(n), V = sweep(normal(n, k), 2, 10^seq(-6, 6, length.out = k), "*"))
  }
)

# R with p'p = 1 - gap for each of k orthonormal directions: V = sqrt(1 - gap) R'q
nearly_singular <- function(R, k, gap, q = orthonormal(nrow(R), k)) list(R = R, V = sqrt(1 - gap) * crossprod(R, q))

downdate_families <- list(
  "D1 well-conditioned result" = function(n, k) {
    V <- normal(n, k)
    list(R = positive_qr(rbind(well_conditioned(n), t(V))), V = V)
  },
  "D2 gap 1e-8" = function(n, k) nearly_singular(well_conditioned(n), k, 1e-8),
  "D2 gap 1e-12" = function(n, k) nearly_singular(well_conditioned(n), k, 1e-12),
  "D4 condition 1e10, gap 1e-8" = function(n, k) nearly_singular(with_spectrum(n, 1e10), k, 1e-8),
  "D5 update undone, condition 1e8" = function(n, k) {
    V <- normal(n, k, 1)
    list(R = positive_qr(rbind(with_spectrum(n, 1e8), t(V))), V = V)
  },
  "D6 nearly all of A goes" = function(n, k) {
    V <- normal(n, k, 1e4 / sqrt(n))
    list(R = positive_qr(rbind(well_conditioned(n), t(V))), V = V)
  },
  "D7 graded rows, gap 1e-8" = function(n, k) {
    nearly_singular(upper(10^seq(-6, 0, length.out = n) * well_conditioned(n)), k, 1e-8)
  },
  "E mass in the early rows" = function(n, k) {
    q <- normal(n, k, 1)
    q[-seq_len(min(n, 64)), ] <- 1e-4 * q[-seq_len(min(n, 64)), ]
    nearly_singular(well_conditioned(n), k, 1e-8, qr.Q(qr(q)))
  }
)

# expect_identical() and expect_equal() for matrices too large to print.
expect_same <- function(object, expected, label = NULL) {
  expect_true(identical(object, expected), label = paste(label, "the same bits"))
}
expect_close <- function(object, expected, tolerance, label = NULL) {
  expect_identical(all.equal(object, expected, tolerance = tolerance), TRUE, label = paste(label, "difference"))
}
