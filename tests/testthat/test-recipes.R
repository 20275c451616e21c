# The Kalman filters of vignette "Recipes", on small cases. Their code is read from the vignette.

# Returns an environment in which the chunks of the vignette with these labels have been run.
recipe <- function(labels) {
  sources <- test_path("..", "..", "vignettes", "recipes.Rmd")
  file <- Filter(file.exists, c(sources, system.file("doc", "recipes.Rmd", package = "gpucholmod")))
  skip_if(length(file) == 0, "the vignettes are not here")
  lines <- readLines(file[1], encoding = "UTF-8")
  within <- new.env(parent = environment(recipe))
  for (label in labels) {
    begin <- which(lines == sprintf("```{r %s}", label))
    stopifnot(length(begin) == 1)
    end <- begin + which(lines[-seq_len(begin)] == "```")[1]
    eval(parse(text = lines[(begin + 1):(end - 1)], keep.source = FALSE), within)
  }
  within
}

linear <- c("kalman", "kalman-textbook", "kalman-shift")
unscented_labels <- c("sigma-points", "ukf", "ukf-plain")

# Returns a model of n numbers, m measurements and q numbers of noise, with measurements of `steps` steps.
linear_model <- function(n, m, q, steps, phi) {
  model <- list(P = crossprod(well_conditioned(n)), G = normal(n, q, 0.3), phi = phi, sigma = 0.2)
  model$H <- replicate(steps, matrix(rnorm(m * n), m), simplify = FALSE)
  model$y <- replicate(steps, rnorm(m), simplify = FALSE)
  model
}

follow <- function(model, filter, now) {
  for (t in seq_along(model$y)) now <- filter(now, model$y[[t]], model$H[[t]], model$sigma, model$G, model$phi)
  now
}

# Returns mean and covariance of the last state given all measurements, from the covariance of all of them together.
at_once <- function(model) {
  n <- nrow(model$P)
  now <- seq_len(n)
  A <- model$P
  for (t in seq_along(model$y)) {
    move <- diag(nrow(A))
    move[now, now] <- diag(model$phi, n)
    A <- move %*% A %*% t(move)
    A[now, now] <- A[now, now] + tcrossprod(model$G)
    to <- cbind(model$H[[t]], matrix(0, nrow(model$H[[t]]), nrow(A) - n))
    A <- rbind(cbind(A, A %*% t(to)), cbind(to %*% A, to %*% A %*% t(to) + diag(model$sigma^2, nrow(to))))
  }
  gain <- A[now, -now] %*% solve(A[-now, -now])
  list(x = drop(gain %*% unlist(model$y)), P = A[now, now] - gain %*% A[-now, now])
}

test_that("the Kalman filters find mean and covariance given all measurements", {
  filters <- recipe(linear)
  set.seed(1)
  for (size in list(c(1, 1, 1), c(6, 2, 3), c(5, 1, 2), c(4, 6, 1))) {
    model <- linear_model(size[1], size[2], size[3], steps = 5, phi = 0.9)
    expected <- at_once(model)
    x <- numeric(size[1])
    expect_equal(follow(model, filters$kalman_plain, list(x = x, P = model$P)), expected)
    for (name in c("kalman", "kalman_qr", "kalman_shift")) {
      now <- follow(model, filters[[name]], list(x = x, S = chol(model$P)))
      expect_equal(list(x = now$x, P = crossprod(now$S)), expected, label = paste(name, toString(size)))
      expect_true(all(diag(now$S) > 0) && all(now$S[lower.tri(now$S)] == 0), label = name)
    }
  }
})

test_that("states whose numbers shrink each by a factor of its own cost no factorisation", {
  kalman <- recipe(linear)$kalman
  set.seed(2)
  model <- linear_model(6, 2, 3, steps = 1, phi = 1)
  d <- runif(6, 0.5, 1)
  x <- rnorm(6)
  S <- chol(model$P)
  now <- follow(model, kalman, list(x = d * x, S = S * rep(d, each = 6)))
  model$P <- diag(d) %*% model$P %*% diag(d)
  expect_equal(crossprod(now$S), at_once(model)$P)
  model$y[[1]] <- model$y[[1]] - drop(model$H[[1]] %*% (d * x))
  expect_equal(now$x, d * x + at_once(model)$x)
})

test_that("a measurement that is nearly exact is refused by the downdate, and not by the shift", {
  filters <- recipe(linear)
  H <- diag(3)[1, , drop = FALSE]
  sigma <- 1e-9
  now <- list(x = numeric(3), S = diag(3))
  expect_error(filters$kalman(now, 1, H, sigma, matrix(0, 3, 1), 1), class = "gpucholmod_not_positive_definite")
  for (t in 1:10) now <- filters$kalman_shift(now, 1, H, sigma, matrix(0, 3, 1), 1)
  expect_equal(sum(now$S[, 1]^2) / sigma^2, 1 / 10)
  expect_equal(now$x, c(1, 0, 0))
})

test_that("the unscented filter is the Kalman filter where the functions are linear", {
  filters <- recipe(c(linear, unscented_labels))
  set.seed(3)
  model <- linear_model(4, 2, 4, steps = 1, phi = 0.8)
  S <- chol(model$P)
  x <- rnorm(4)
  expected <- follow(model, filters$kalman, list(x = x, S = S))
  for (alpha in c(1, 0.5, 0.1)) {
    now <- filters$ukf(list(x = x, S = S), model$y[[1]], function(X) 0.8 * X, function(X) model$H[[1]] %*% X,
                       positive_qr(t(model$G)), diag(0.2, 2), filters$unscented(4, alpha))
    expect_equal(now, expected, label = paste("alpha", alpha))
  }
})

test_that("the unscented filter is the plain one where the functions are not linear", {
  filters <- recipe(unscented_labels)
  u <- filters$unscented(3, 0.5)
  expect_equal(u$covariance[1], -0.25)
  f <- function(X) rbind(X[1, ] + sin(X[2, ]), 0.9 * X[2, ] + 0.1 * X[3, ]^2, X[3, ])
  h <- function(X) rbind(exp(X[1, ] / 4), X[2, ] * X[3, ])
  Q <- diag(c(0.1, 0.2, 0.3))
  N <- chol(matrix(c(0.2, 0.1, 0.1, 0.3), 2))
  S <- chol(matrix(c(1, 0.5, 0, 0.5, 1, 0.2, 0, 0.2, 1), 3))
  now <- list(x = c(1, 0, -1), S = S)
  plain <- list(x = now$x, P = crossprod(S))
  set.seed(4)
  for (t in 1:20) {
    y <- rnorm(2)
    now <- filters$ukf(now, y, f, h, Q, N, u)
    plain <- filters$ukf_plain(plain, y, f, h, Q, N, u)
  }
  expect_equal(list(x = now$x, P = crossprod(now$S)), plain)
})

test_that("covariances of sigma points are indefinite for other weights alone", {
  filters <- recipe(unscented_labels)
  n <- 5
  f <- function(X) matrix(colSums(X^2), n, ncol(X), byrow = TRUE)
  step <- function(u) {
    filters$ukf(list(x = numeric(n), S = diag(n)), 0, f, function(X) X[1, , drop = FALSE], diag(0.1, n), diag(1), u)
  }
  for (alpha in c(1, 0.5)) for (beta in c(0, 2)) {
    expect_equal(dim(step(filters$unscented(n, alpha, beta))$S), c(n, n), label = paste(alpha, beta))
  }
  # kappa = 3 - n of Julier and Uhlmann
  weights <- c(1 - n / 3, rep(1 / 6, 2 * n))
  u <- list(mean = weights, covariance = weights,
            points = function(x, S) x + sqrt(3) * cbind(0, t(S), -t(S)))
  expect_error(step(u), class = "gpucholmod_not_positive_definite")
})
