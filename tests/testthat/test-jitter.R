# What is added to the diagonal of a matrix that is just not positive definite.

points <- c(seq(0, 1, length.out = 12), 5 / 11)
K <- exp(-20 * outer(points, points, "-")^2) # not positive definite, by little
diag(K) <- diag(K) - 1e-13

# list(value, added): what `code` returns, and what it tells that it has added, one number for each message.
told <- function(code) {
  added <- numeric()
  value <- withCallingHandlers(code, gpucholmod_jitter = function(m) {
    added <<- c(added, m$jitter)
    invokeRestart("muffleMessage")
  })
  list(value = value, added = added)
}

test_that("steps grow from a few units of rounding of the diagonal, and end with the most", {
  steps <- gpucholmod:::jitter_steps
  expect_identical(steps(0, 1, "double"), numeric())
  expect_equal(steps(1e-12, 1, "double"), 8 * .Machine$double.eps * c(1, 10, 100, 1e-12 / (8 * .Machine$double.eps)))
  expect_equal(steps(1e-20, 1, "double"), 1e-20)
  expect_equal(steps(1, 0, "double"), 1)
  expect_equal(steps(1e-5, 1, "single"), c(8 * 2^-23, 80 * 2^-23, 1e-5))
})

test_that("a jitter for a factor that is given is refused", {
  for (code in expression(chol_factor(diag(3), "cpu", jitter = 1), chol_factor(diag(3), "cpu", jitter = -1))) {
    expect_identical(expect_error(eval(code), class = "gpucholmod_bad_argument")$argument, "jitter")
  }
  expect_identical(as.matrix(chol_factor(diag(3), "cpu", jitter = 0)), diag(3))
})

test_that("chol_factor(A = ) factorises, adds what is needed, and says so", {
  A <- structure(crossprod(well_conditioned(9)), dimnames = rep(list(letters[1:9]), 2L))
  f <- expect_silent(chol_factor(A = A, backend = "cpu", jitter = 1))
  expect_equal(as.matrix(f), chol(A), tolerance = 1e-12)
  expect_null(f$jitter)
  expect_equal(as.matrix(chol_factor(A = A, backend = "cpu", uplo = "lower")), t(chol(A)), tolerance = 1e-12)
  expect_identical(chol_factor(A = A, backend = "cpu", precision = "single", capacity = 20)$capacity, 20L)
  error <- expect_error(chol_factor(A = K, backend = "cpu"), class = "gpucholmod_not_positive_definite")
  expect_lte(error$pivot, 13L)
  expect_match(conditionMessage(error), "'jitter'", fixed = TRUE)
  done <- told(chol_factor(A = K, backend = "cpu", jitter = 1e-8))
  expect_length(done$added, 1L)
  expect_true(done$added > 0 && done$added <= 1e-8)
  expect_identical(done$value$jitter, done$added)
  expect_output(print(done$value), "added to the diagonal")
  same <- crossprod(as.matrix(done$value))
  expect_lt(max(abs(same - K - diag(done$added, 13))), 1e-14)
  g <- cholupdate_gpu(done$value, points)
  expect_identical(g$jitter, done$added)
})

test_that("with too little, the error is that without, and tells what was tried", {
  error <- expect_error(chol_factor(A = diag(c(1, -1)), jitter = 0.5), class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 2L)
  expect_match(conditionMessage(error), "nor with 0.5 added to the diagonal")
  error <- expect_error(cholinsert_gpu(diag(2), c(1, 0, 0.5), jitter = 0.1), class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 3L)
  expect_match(conditionMessage(error), "nor with 0.1 added to the diagonal")
})

test_that("A, R and jitter that cannot be used are named", {
  expect_identical(cholinsert_gpu(diag(2), c(0, 0, 4), jitter = 0L), diag(c(1, 1, 2)))
  refused <- function(call) expect_error(call, class = "gpucholmod_bad_argument")$argument
  expect_identical(refused(chol_factor(diag(2), A = diag(2))), "A")
  expect_identical(refused(chol_factor()), "R")
  for (bad in list(-1, NA, Inf, "a", 1:2)) {
    expect_identical(refused(chol_factor(A = diag(2), jitter = bad)), "jitter")
    expect_identical(refused(cholinsert_gpu(diag(2), 1:3, jitter = bad)), "jitter")
  }
  expect_error(chol_factor(A = matrix(0, 2, 3)), class = "gpucholmod_not_square")
  expect_error(chol_factor(A = "a"), class = "gpucholmod_not_numeric")
  error <- expect_error(chol_factor(A = diag(c(1, NaN)), backend = "cpu"), class = "gpucholmod_not_finite")
  expect_identical(error$argument, "A")
})

test_that("gpu_chol() and chol_factor(A = ) on a GPU add what is needed", {
  skip_without_gpu()
  expect_error(gpu_chol(K), class = "gpucholmod_not_positive_definite")
  for (make in list(gpu_chol, function(A, ...) chol_factor(A = A, backend = "cuda", ...))) {
    done <- told(make(K, jitter = 1e-8))
    expect_true(done$added > 0 && done$added <= 1e-8)
    expect_lt(max(abs(crossprod(as.matrix(done$value)) - K - diag(done$added, 13))), 1e-14)
  }
  expect_equal(as.matrix(chol_factor(A = diag(2:4), backend = "cuda", uplo = "lower")), diag(sqrt(2:4)))
})

test_that("an insertion into a matrix adds to what is inserted alone", {
  A <- K + diag(1e-6, 13)
  twice <- c(A[1:13, 5], A[5, 5] - 1e-13) # point 5 once more
  expect_error(cholinsert_gpu(chol(A), twice), class = "gpucholmod_not_positive_definite")
  done <- told(cholinsert_gpu(chol(A), twice, jitter = 1e-4))
  expect_identical(attr(done$value, "jitter"), done$added)
  new <- rbind(cbind(A, twice[1:13]), twice)
  new[14, 14] <- new[14, 14] + done$added
  expect_lt(max(abs(crossprod(done$value) - new)), 1e-13)
  reported <- told(cholinsert_gpu(chol(A), twice, jitter = 1e-4, check = FALSE))
  expect_identical(reported$value[c("pivot", "jitter")], list(pivot = 0L, jitter = done$added))
  expect_identical(reported$value$R, done$value)
  expect_identical(cholinsert_gpu(chol(A), c(twice[1:13], 2), jitter = 1, check = FALSE)$jitter, 0)
  lower <- told(cholinsert_gpu(t(chol(A)), twice, jitter = 1e-4, uplo = "lower"))
  expect_equal(unname(lower$value), t(done$value), tolerance = 1e-12, ignore_attr = TRUE)
  expect_identical(attr(lower$value, "jitter"), lower$added)
})

at_each_home("a Gaussian process that grows at points it has already tells the most that was added", {
  x <- c(0, 0.3, 0.3, 0.6, 0.6 + 1e-10, 0.9, 0.3)
  covariance <- function(x, y) exp(-outer(x, y, "-")^2)
  f <- keep(matrix(1), capacity = 10)
  done <- told(for (i in 2:7) cholinsert_gpu(f, covariance(x[1:i], x[i]), jitter = 1e-6, in_place = TRUE))
  expect_gte(length(done$added), 1L)
  expect_identical(f$jitter, max(done$added))
  expect_lt(max(abs(crossprod(as.matrix(f)) - covariance(x, x))), 1.1e-6)
})
