# The C interface as another package uses it: tests/client, which tools/test.sh installs. Stops at the first thing that
# is wrong.
library(gpucholmodclient)

# every function that gpucholmod.h declares, with the header of batches that it includes, is there
headers <- system.file("include", c("gpucholmod.h", "gpucholmod_batch.h"), package = "gpucholmod", mustWork = TRUE)
lines <- unlist(lapply(headers, readLines))
prototype <- "^(int|size_t|ptrdiff_t|void) (gpucholmod_\\w+)\\(.*"
declared <- sub(prototype, "\\2", grep(prototype, lines, value = TRUE))
stopifnot(length(declared) > 40, setequal(client_names(), declared))

# a table of the same version is taken, with functions that the package does not know; others are an error
client_load_other(0, 8)
for (other in list(c(1, 0), c(-1, 0), c(0, -8)))
  stopifnot(grepl("install it again", try(client_load_other(other[[1]], other[[2]]), silent = TRUE)))

set.seed(1)
A <- crossprod(matrix(rnorm(900), 30)) + diag(30)
R <- chol(A)
V <- matrix(rnorm(90), 30)
stopifnot(all.equal(client_update(R, V), chol(A + tcrossprod(V))),
          all.equal(client_update(t(R), V, c(1, 2, -0.01), TRUE), t(chol(A + V %*% (c(1, 2, -0.01) * t(V))))),
          identical(client_update(R, V),
                    gpucholmod::cholupdate_gpu(R, V, backend = "cpu",
                                               control = gpucholmod::cholupdate_control(threads = 1))))

# what cannot be done is told, and changes nothing
told <- client_refused(R, 100 * V[, 1, drop = FALSE], -1)
stopifnot(told[[1]] == 1L, told[[2]] >= 1L, nzchar(told[[3]]), identical(told[[4]], R))
stopifnot(inherits(try(client_update(R, V, 1:2 / 2), silent = TRUE), "try-error"),
          inherits(try(client_update(R, V[-1, ]), silent = TRUE), "try-error"))
V[7, 2] <- NaN
stopifnot(inherits(try(client_update(R, V), silent = TRUE), "try-error"))

# The sampler in R, step by step as in the package.
ram_in_r <- function(B, steps, target) {
  d <- ncol(B)
  f <- gpucholmod::chol_factor(diag(d), "cpu", uplo = "lower")
  S <- diag(d)
  x <- numeric(d)
  energy <- function(x) sum((B %*% x)^2) / 2
  here <- energy(x)
  accepted <- 0
  for (step in seq_len(steps)) {
    u <- rnorm(d)
    change <- drop(S %*% u)
    there <- energy(x + change)
    chance <- min(1, exp(here - there))
    if (runif(1) < chance) {
      x <- x + change
      here <- there
      accepted <- accepted + (step > steps / 2)
    }
    weight <- min(1, d * step^(-2 / 3)) * (chance - target) / sum(u^2)
    gpucholmod::cholupdate_gpu(f, change, weights = weight, in_place = TRUE)
    S <- as.matrix(f)
  }
  accepted / (steps - steps %/% 2)
}

shape <- 0.9^abs(outer(1:20, 1:20, "-"))
B <- chol(solve(shape))
seconds <- system.time(one <- ram(B, 1e5))[["elapsed"]]
in_r <- ram_in_r(B, 5000, 0.234)
eight <- ram(B, 1e5, seeds = 1:8)
cat(sprintf("RAM, d = 20: %.2f us a step; accepted %.3f (in R %.3f; eight threads %s)\n", 10 * seconds, one[[1]], in_r,
            paste(sprintf("%.3f", eight[[1]]), collapse = " ")))
stopifnot(abs(one[[1]] - 0.234) < 0.01, abs(in_r - 0.234) < 0.06, all(abs(eight[[1]] - 0.234) < 0.03))
# what was learnt is the shape of the distribution
learnt <- rowMeans(apply(array(eight[[2]], c(20, 20, 8)), 3, tcrossprod))
stopifnot(cor(learnt[upper.tri(shape)], shape[upper.tri(shape)]) > 0.8)
# a chain that runs beside others is the same as alone
stopifnot(identical(eight[[2]][1:400 + 400], ram(B, 1e5, seeds = 2L)[[2]]))
