# Columns of V that are added and taken away in one call, and a matrix that is scaled: on every method.

families <- list(
  "one number" = function(k) 0.7, "of both signs" = function(k) rep_len(c(1, -0.05, 0, 3, -0.01), k),
  "negative" = function(k) rep_len(c(-0.02, -0.05), k), "far apart" = function(k) rep_len(c(1e-12, 1e3, -1e-6), k)
)

target <- function(R, V, weights, scale) scale * crossprod(R) + V %*% (rep_len(weights, ncol(V)) * t(V))

expect_modified <- function(X, R, V, weights, scale, eps, label) {
  size <- norm(scale * crossprod(R), "1") + norm(V %*% (abs(rep_len(weights, ncol(V))) * t(V)), "1")
  expect_lt(norm(crossprod(X) - target(R, V, weights, scale), "1") / (eps * size), 40, label = label)
  expect_identical(X[lower.tri(X)], numeric(sum(lower.tri(X))), label = label)
}

for (name in names(c(cpu_methods, cuda_methods))) {
  test_that(paste("weights and scale:", name), {
    how <- c(cpu_methods, cuda_methods)[[name]]
    if (how$backend == "cuda") skip_without_gpu()
    set.seed(1)
    for (n in c(1, 40, 150)) for (k in c(1, 6, 35)) {
      R <- well_conditioned(n)
      V <- matrix(rnorm(n * k) / sqrt(n * k), n)
      for (family in names(families)) for (precision in c("double", "single")) for (uplo in c("upper", "lower")) {
        w <- families[[family]](k)
        scale <- if (k == 6) 1 else 0.97
        given <- if (precision == "single") as_floats(R) else R
        columns <- if (precision == "single") as_floats(V) else V
        X <- do.call(cholupdate_gpu, c(list(if (uplo == "lower") t(given) else given, columns, weights = w,
                                            scale = scale,
                                            precision = precision, uplo = uplo), how))
        expect_modified(if (uplo == "lower") t(X) else X, given, columns, w, scale,
                        if (precision == "single") 2^-23 else .Machine$double.eps, paste(n, k, family, precision, uplo))
      }
    }
  })
}

test_that("weights of 1 and -1 are updates and downdates", {
  set.seed(2)
  R <- well_conditioned(60)
  V <- matrix(rnorm(180) / 50, 60)
  expect_identical(cholupdate_gpu(R, V, weights = 1), cholupdate_gpu(R, V))
  expect_identical(cholupdate_gpu(R, V, weights = -1), cholupdate_gpu(R, V, downdate = TRUE))
  expect_identical(cholupdate_gpu(R, V, weights = rep(4L, 3)), cholupdate_gpu(R, 2 * V))
  expect_identical(cholupdate_gpu(R, V, weights = 0, scale = 4), 2 * R)
  expect_identical(cholupdate_gpu(R, V[, 0], weights = numeric(), scale = 4), 2 * R)
})

test_that("what a result cannot do without is added first", {
  R <- diag(3)
  V <- cbind(c(2, 0, 0), c(3, 0, 0))
  expect_equal(cholupdate_gpu(R, V, weights = c(-1, 1))[1, 1], sqrt(6))
  error <- expect_error(cholupdate_gpu(R, V, weights = c(-1, 1 / 9)), class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 1L)
  expect_identical(cholupdate_gpu(R, V, weights = c(-1, 1 / 9), check = FALSE), list(R = R, pivot = 1L))
})

test_that("factors that stay on a GPU have weights and a scale too", {
  skip_without_gpu()
  set.seed(4)
  for (n in c(1, 130, 300)) for (k in c(2, 35)) for (precision in c("double", "single")) {
    R <- well_conditioned(n)
    V <- matrix(rnorm(n * k) / sqrt(n * k), n)
    if (precision == "single") R <- as_floats(R)
    w <- families[["of both signs"]](k)
    f <- gpu_factor(R, precision = precision)
    for (method in c("auto", "persistent", "stepwise")) {
      label <- paste(n, k, precision, method)
      g <- cholupdate_gpu(f, V, weights = w, scale = 0.97, method = method)
      expect_modified(as.matrix(g), R, V, w, 0.97, eps_of(precision), label)
      expect_equal(g$trace, sum(as.matrix(g)^2), tolerance = 1e-5, label = label)
      expect_equal(last_cholupdate()[c("k", "removed", "scale")], list(k = k, removed = sum(w < 0), scale = 0.97))
      h <- copy_factor(f)
      cholupdate_gpu(h, V, weights = w, scale = 0.97, method = method, in_place = TRUE)
      expect_identical(as.matrix(h), as.matrix(g), label = label)
      expect_identical(as.matrix(f), R, label = label)
      free(g)
      free(h)
    }
    expect_identical(as.matrix(cholupdate_gpu(f, V, weights = 0, scale = 4)), 2 * R)
  }
  f <- gpu_factor(diag(3))
  V <- cbind(c(2, 0, 0), c(3, 0, 0))
  expect_equal(as.matrix(cholupdate_gpu(f, V, weights = c(-1, 1)))[1, 1], sqrt(6))
  error <- expect_error(cholupdate_gpu(f, V, weights = c(-1, 1 / 9), in_place = TRUE),
                        class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 1L)
  expect_identical(as.matrix(f), diag(3))
})

test_that("in the memory of the factor, and in files, it is the same", {
  set.seed(3)
  R <- well_conditioned(90)
  V <- matrix(rnorm(90 * 7) / 20, 90)
  w <- c(1, -0.2, 2, 0, -0.1, 1, 1)
  expected <- cholupdate_gpu(R, V, weights = w, scale = 0.9, backend = "cpu")
  X <- R + 0
  cholupdate_overwrite(X, V, weights = w, scale = 0.9, backend = "cpu")
  expect_equal(X, expected, tolerance = 1e-14)
  path <- tempfile("factor")
  f <- write_factor(R, path)
  g <- cholupdate_gpu(f, V, weights = w, scale = 0.9, output = paste0(path, "2"), backend = "cpu")
  expect_equal(as.matrix(g), expected, tolerance = 1e-14)
  unlink(c(path, paste0(path, "2")))
})

test_that("weights and scales that are none are errors that say which", {
  R <- diag(3)
  V <- diag(3)
  wrong <- function(class, argument, ...) {
    for (call in list(function(...) cholupdate_gpu(R, V, ...), function(...) {
      X <- diag(3)
      cholupdate_overwrite(X, V, ...)
    })) {
      error <- expect_error(call(...), class = paste0("gpucholmod_", class))
      expect_identical(error$argument, argument)
    }
  }
  wrong("bad_argument", "weights", weights = 1:2)
  wrong("bad_argument", "weights", weights = numeric())
  wrong("bad_argument", "weights", weights = 1, downdate = TRUE)
  wrong("not_finite", "weights", weights = c(1, NA, 1))
  wrong("not_finite", "weights", weights = c(1, 1, Inf))
  wrong("not_numeric", "weights", weights = 1i)
  wrong("not_numeric", "weights", weights = "1")
  wrong("not_numeric", "scale", scale = TRUE)
  wrong("bad_argument", "scale", scale = 0)
  wrong("bad_argument", "scale", scale = -1)
  wrong("bad_argument", "scale", scale = c(1, 2))
  wrong("bad_argument", "scale", scale = numeric())
  wrong("not_finite", "scale", scale = NaN)
  error <- expect_error(cholupdate_gpu(R, V, weights = c(1, NA, 1)), class = "gpucholmod_not_finite")
  expect_identical(error$row, 2L)
  expect_identical(cholupdate_gpu(R, V, downdate = FALSE, weights = 1), cholupdate_gpu(R, V))
})
