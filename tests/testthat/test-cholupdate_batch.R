# Many small factors in one call. What is computed is looked at by tests/core/test_batch.cpp; here what R makes of it.

members <- function(n, b, seed = 1) {
  set.seed(seed)
  array(vapply(seq_len(b), function(i) well_conditioned(n), numeric(n * n)), c(n, n, b))
}
columns <- function(n, k, b) array(rnorm(n * k * b) / 5, c(n, k, b))

expect_is_factor <- function(X, A) {
  expect_true(all(X[lower.tri(X)] == 0))
  expect_lt(norm(crossprod(X) - A, "1"), 40 * .Machine$double.eps * norm(A, "1"))
}

test_that("every member gets its own columns, weights and scale", {
  for (n in c(1, 2, 7, 30)) for (k in c(1, 2, 5)) for (b in c(1, 8, 19)) {
    R <- members(n, b)
    V <- columns(n, k, b)
    W <- matrix(10^runif(k * b, -3, 3), k)
    W[1, ] <- -0.02 * (k > 1)
    scale <- runif(b, 0.5, 2)
    up <- cholupdate_batch(R, V)
    changed <- cholupdate_batch(R, V, weights = W, scale = scale)
    for (m in seq_len(b)) {
      v <- matrix(V[, , m], n)
      r <- matrix(R[, , m], n)
      expect_is_factor(matrix(up[, , m], n), crossprod(r) + tcrossprod(v))
      expect_is_factor(matrix(changed[, , m], n), scale[m] * crossprod(r) + v %*% (W[, m] * t(v)))
    }
  }
})

test_that("what V is for is told by its shape", {
  R <- members(4, 3)
  V <- columns(4, 1, 3)
  expect_identical(cholupdate_batch(R, V[, 1, ]), cholupdate_batch(R, V))
  v <- V[, 1, 1]
  expect_identical(cholupdate_batch(R, v), cholupdate_batch(R, array(v, c(4, 1, 3))))
  U <- columns(4, 2, 1)
  expect_identical(cholupdate_batch(R, U), cholupdate_batch(R, array(U, c(4, 2, 3))))
  error <- expect_error(cholupdate_batch(R, U[, , 1]), class = "gpucholmod_dimension_mismatch")
  expect_identical(c(error$expected, error$actual), 3:2)
  expect_identical(cholupdate_batch(R[, , 1], V), cholupdate_batch(R[, , c(1, 1, 1)], V))
  expect_identical(cholupdate_batch(R[, , 1], V[, 1, ]), cholupdate_batch(R[, , c(1, 1, 1)], V))
  expect_identical(cholupdate_batch(R, V, weights = 2), cholupdate_batch(R, V, weights = matrix(2, 1, 3)))
})

test_that("a downdate is a weight of -1, and lower factors are transposes", {
  R <- members(6, 5)
  V <- columns(6, 2, 5) / 5
  down <- cholupdate_batch(R, V, downdate = TRUE)
  expect_identical(down, cholupdate_batch(R, V, weights = -1))
  lower <- cholupdate_batch(aperm(R, c(2, 1, 3)), V, downdate = TRUE, uplo = "lower")
  expect_identical(aperm(lower, c(2, 1, 3)), down)
})

test_that("names and integers come through, and nothing of the caller's changes", {
  R <- array(c(2L, 0L, 1L, 3L), c(2, 2, 3), list(c("a", "b"), c("c", "d"), c("x", "y", "z")))
  V <- array(as.double(1:6), c(2, 1, 3))
  before <- list(R + 0L, V + 0)
  up <- cholupdate_batch(R, V)
  expect_identical(dimnames(up), dimnames(R))
  expect_identical(list(R, V), before)
  expect_is_factor(up[, , "y"], crossprod(R[, , "y"]) + tcrossprod(3:4))
  one <- cholupdate_batch(R[, , 1], V)
  expect_identical(dimnames(one), list(c("a", "b"), c("c", "d"), NULL))
})

test_that("members that fail are named in one condition, or stay as they are", {
  R <- members(5, 6)
  V <- columns(5, 1, 6) / 5
  V[, 1, 2] <- 3 * R[1, , 2]
  V[, 1, 5] <- 3 * R[4, , 5]
  before <- R + 0
  error <- expect_error(cholupdate_batch(R, V, downdate = TRUE), class = "gpucholmod_not_positive_definite")
  expect_identical(error$members, c(2L, 5L))
  expect_identical(error$pivots, c(1L, 4L))
  expect_identical(error$pivot, 1L)
  expect_identical(R, before)
  some <- cholupdate_batch(R, V, downdate = TRUE, check = FALSE)
  expect_identical(some$pivot, c(0L, 1L, 0L, 0L, 4L, 0L))
  expect_identical(some$R[, , c(2, 5)], R[, , c(2, 5)])
  good <- c(1, 3, 4, 6)
  expect_identical(some$R[, , good], cholupdate_batch(R[, , good], V[, , good, drop = FALSE], downdate = TRUE))
})

test_that("lists of several orders are grouped, and come back as they were", {
  set.seed(4)
  n <- c(3, 1, 3, 8, 8, 3, 0)
  k <- c(1, 2, 1, 3, 3, 2, 1)
  R <- lapply(n, function(n) if (n > 0) well_conditioned(n) else matrix(0, 0, 0))
  names(R) <- letters[1:7]
  dimnames(R$b) <- list("p", "q")
  V <- Map(function(n, k) matrix(rnorm(n * k), n, k), n, k)
  V[[1]] <- as.vector(V[[1]])
  W <- lapply(k, function(k) 10^rnorm(k))
  scale <- runif(7, 0.5, 2)
  up <- cholupdate_batch(R, V, weights = W, scale = scale)
  expect_identical(names(up), letters[1:7])
  expect_identical(dimnames(up$b), list("p", "q"))
  for (m in seq_along(n)) {
    if (n[m] == 0) {
      expect_identical(dim(up[[m]]), c(0L, 0L))
    } else {
      v <- as.matrix(V[[m]])
      expect_is_factor(up[[m]], scale[m] * crossprod(R[[m]]) + v %*% (W[[m]] * t(v)))
    }
  }
  both <- cholupdate_batch(R[c(1, 3)], V[c(1, 3)])
  expect_identical(cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = 1:3),
                   cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = list(1:3, 1:3)))
  expect_identical(cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = matrix(1:6, 3)),
                   cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = list(1:3, 4:6)))
  expect_identical(cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = list(2, 1:3)),
                   cholupdate_batch(R[c(4, 5)], V[c(4, 5)], weights = list(c(2, 2, 2), 1:3)))
  expect_identical(both[[2]], cholupdate_batch(array(R[[3]], c(3, 3, 1)), V[[3]])[, , 1])
  some <- cholupdate_batch(R, lapply(V, function(v) 100 * v), downdate = TRUE, check = FALSE)
  expect_identical(unname(some$pivot > 0L), n > 0)
  expect_identical(some$R[[4]], upper(R[[4]]))
})

test_that("there may be none, of none, and nothing to be done", {
  expect_identical(cholupdate_batch(array(0, c(3, 3, 0)), array(0, c(3, 2, 0))), array(0, c(3, 3, 0)))
  expect_identical(cholupdate_batch(array(0, c(0, 0, 4)), array(0, c(0, 2, 4))), array(0, c(0, 0, 4)))
  R <- members(3, 4)
  expect_identical(cholupdate_batch(R, array(0, c(3, 0, 4))), R)
  expect_equal(cholupdate_batch(R, array(0, c(3, 0, 4)), scale = 4), 2 * R, tolerance = 1e-15)
  expect_identical(cholupdate_batch(list(), list()), list())
  expect_identical(cholupdate_batch(R, columns(3, 2, 4), check = FALSE)$pivot, integer(4))
})

test_that("bad numbers name the member and the place", {
  R <- members(4, 5)
  V <- columns(4, 2, 5)
  bad <- R
  bad[2, 3, 4] <- NaN
  error <- expect_error(cholupdate_batch(bad, V), class = "gpucholmod_not_finite")
  expect_equal(error[c("argument", "member", "row", "col")], list(argument = "R", member = 4, row = 2, col = 3))
  expect_match(conditionMessage(error), "in member 4")
  bad <- R
  bad[3, 3, 2] <- 0
  error <- expect_error(cholupdate_batch(bad, V), class = "gpucholmod_bad_diagonal")
  expect_equal(error[c("member", "index")], list(member = 2, index = 3))
  bad <- V
  bad[1, 2, 5] <- Inf
  error <- expect_error(cholupdate_batch(R, bad), class = "gpucholmod_not_finite")
  expect_equal(error[c("argument", "member", "row", "col")], list(argument = "V", member = 5, row = 1, col = 2))
  lists <- list(diag(2), diag(3), diag(2))
  lists[[3]][1, 2] <- NA
  error <- expect_error(cholupdate_batch(lists, list(1:2, 1:3, 1:2)), class = "gpucholmod_not_finite")
  expect_equal(error[c("member", "row", "col")], list(member = 3, row = 1, col = 2))
})

test_that("what is no batch is refused", {
  R <- members(3, 2)
  V <- columns(3, 1, 2)
  refused <- function(call, class) expect_error(call, class = paste0("gpucholmod_", class))
  refused(cholupdate_batch(array(1, c(3, 2, 2)), V), "not_square")
  refused(cholupdate_batch("x", V), "not_numeric")
  refused(cholupdate_batch(R, "x"), "not_numeric")
  refused(cholupdate_batch(R, columns(2, 1, 2)), "dimension_mismatch")
  refused(cholupdate_batch(R, columns(3, 1, 4)), "dimension_mismatch")
  refused(cholupdate_batch(R, V, weights = 1:3), "bad_argument")
  refused(cholupdate_batch(R, V, weights = matrix(1, 2, 2)), "bad_argument")
  refused(cholupdate_batch(R, V, weights = list(1, 2)), "not_numeric")
  refused(cholupdate_batch(R, V, downdate = TRUE, weights = 1), "bad_argument")
  refused(cholupdate_batch(R, V, downdate = NA), "bad_argument")
  refused(cholupdate_batch(R, V, scale = 0), "bad_argument")
  refused(cholupdate_batch(R, V, scale = c(1, 1, 1)), "bad_argument")
  refused(cholupdate_batch(R, V, check = 1), "bad_argument")
  refused(cholupdate_batch(R, V, FALSE, 1), "bad_argument")
  refused(cholupdate_batch(list(diag(2), diag(3)), list(1:2)), "dimension_mismatch")
  refused(cholupdate_batch(list(diag(2), matrix(1, 2, 3)), list(1:2, 1:2)), "not_square")
  refused(cholupdate_batch(list(diag(2), "x"), list(1:2, 1:2)), "not_numeric")
  refused(cholupdate_batch(list(diag(2)), list(1:3)), "dimension_mismatch")
  refused(cholupdate_batch(list(diag(2)), list(1:2), weights = list(1:2)), "bad_argument")
  refused(cholupdate_batch(list(diag(2)), list(1:2), weights = matrix(1, 2, 1)), "bad_argument")
  refused(cholupdate_batch(list(diag(2)), list(1:2), downdate = TRUE, weights = list(1)), "bad_argument")
  refused(cholupdate_batch(array(crossprod(R[, , 1]), c(3, 3, 2)), V), "not_triangular")
})

test_that("the bits do not depend on threads, precision is single where that is asked for", {
  R <- members(20, 200)
  V <- columns(20, 3, 200)
  with_threads <- function(threads, ...) cholupdate_batch(R, V, control = cholupdate_control(threads = threads), ...)
  expect_identical(with_threads(1), with_threads(3))
  single <- with_threads(2, precision = "single")
  expect_false(identical(single, with_threads(1)))
  expect_equal(single, with_threads(1), tolerance = 1e-5)
})

at_each_home("a weight for each member is that of its only column", {
  set.seed(31)
  A <- replicate(4, crossprod(normal(9, 3)))
  R <- array(apply(A, 3, chol), dim(A))
  V <- normal(3, 4)
  w <- c(1, -0.01, 2, 0)
  expect_identical(cholupdate_batch(R, V, weights = w), cholupdate_batch(R, V, weights = t(w)))
  f <- keep_batch(R)
  expect_identical(as.array(cholupdate_batch(f, V, weights = w)), as.array(cholupdate_batch(f, V, weights = t(w))))
  expect_identical(simplify2array(cholupdate_batch(lapply(1:4, function(m) R[, , m]), lapply(1:4, function(m) V[, m]),
                                                   weights = w)), cholupdate_batch(R, V, weights = w))
  expect_error(cholupdate_batch(R, V, weights = c(1, 2)), "a column for each V", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_batch(R, array(V, c(3, 2, 4)), weights = w), class = "gpucholmod_bad_argument")
})
