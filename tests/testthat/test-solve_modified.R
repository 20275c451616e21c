# Many modifications of one matrix, against base R.

# What solve_modified() has to give for A_j = scale[[j]] * A + V[[j]] diag(weights[[j]]) V[[j]]', V[[j]] matrices, and
# b[[j]].
expect_solved <- function(found, A, V, weights, scale, b, tolerance = 1e-10) {
  for (j in seq_along(V)) {
    Aj <- scale[[j]] * A + V[[j]] %*% (weights[[j]] * t(V[[j]]))
    x <- solve(Aj, b[[j]])
    expect_close(unname(found$logdet[[j]]), as.double(determinant(Aj)$modulus), tolerance, j)
    expect_close(as.vector(if (is.matrix(b[[j]])) found$solution[, , j] else found$solution[, j]), as.vector(x),
                 tolerance, j)
    q <- if (is.matrix(b[[j]])) diag(crossprod(b[[j]], x)) else sum(b[[j]] * x)
    expect_close(as.vector(if (is.matrix(b[[j]])) found$quadratic[, j] else found$quadratic[[j]]), q, tolerance, j)
  }
  expect_identical(found$by_factor, integer())
}

set.seed(1)
n <- 30L
A <- crossprod(matrix(rnorm(2 * n * n), 2 * n)) / n
R <- chol(A)
V <- array(rnorm(n * 3 * 5), c(n, 3, 5)) / 5
slices <- lapply(1:5, function(j) V[, , j])
ones <- rep(list(rep(1, 3)), 5)
b <- rnorm(n)
B <- array(rnorm(n * 2 * 5), c(n, 2, 5))

at_each_home("modified matrices are solved with, in all forms of V and b", {
  for (f in list(R, keep(R))) {
    before <- list(if (is.matrix(f)) unshared(f) else as.matrix(f), unshared(V), unshared(b))
    expect_solved(solve_modified(f, V, b), A, slices, ones, rep(1, 5), rep(list(b), 5))
    expect_solved(solve_modified(f, V, B), A, slices, ones, rep(1, 5), lapply(1:5, function(j) B[, , j]))
    expect_solved(solve_modified(f, slices, B[, , 1, drop = FALSE]), A, slices, ones, rep(1, 5),
                  rep(list(B[, , 1]), 5))
    expect_solved(solve_modified(f, slices, B[, 1, ]), A, slices, ones, rep(1, 5), lapply(1:5, function(j) B[, 1, j]))
    expect_identical(list(as.matrix(f), V, b), before)
    several <- list(V[, 1, 1], matrix(0, n, 0), V[, , 2], V[, 1:2, 3])
    expect_solved(solve_modified(f, several, b), A, lapply(several, as.matrix),
                  lapply(several, function(v) rep(1, NCOL(v))), rep(1, 4), rep(list(b), 4))
    columns <- V[, 1, ]
    expect_solved(solve_modified(f, columns, b), A, lapply(1:5, function(j) columns[, j, drop = FALSE]),
                  rep(list(1), 5), rep(1, 5), rep(list(b), 5))
    expect_solved(solve_modified(f, V / 10, b, downdate = TRUE), A, lapply(slices, "/", 10), lapply(ones, "-"),
                  rep(1, 5), rep(list(b), 5))
  }
})

at_each_home("weights and scales come in all forms, as in cholupdate_gpu()", {
  f <- keep(R)
  w <- matrix(c(1, -0.1, 0.5, 0, 2), 3, 5)
  scale <- c(1, 0.9, 0.5, 2, 1)
  mixed <- lapply(1:5, function(j) w[, j])
  expect_solved(solve_modified(f, V, b, weights = w, scale = scale), A, slices, mixed, scale, rep(list(b), 5))
  expect_identical(solve_modified(f, V, b, weights = mixed, scale = scale),
                   solve_modified(f, V, b, weights = w, scale = scale))
  expect_solved(solve_modified(f, V, b, weights = c(1, -0.1, 2), scale = 2), A, slices, rep(list(c(1, -0.1, 2)), 5),
                rep(2, 5), rep(list(b), 5))
  expect_identical(solve_modified(f, V, b, weights = 1), solve_modified(f, V, b))
  expect_identical(solve_modified(f, V / 10, b, weights = -1), solve_modified(f, V / 10, b, downdate = TRUE))
  several <- list(V[, 1, 1], V[, , 2])
  expect_identical(solve_modified(f, several, b, weights = list(2, c(1, 2, 3)))$logdet,
                   solve_modified(f, several, b, weights = list(2, 1:3))$logdet)
  expect_identical(solve_modified(f, several, b, weights = list(2, 0.5)),
                   solve_modified(f, several, b, weights = list(2, rep(0.5, 3))))
  expect_identical(solve_modified(f, V[, 1, ], b, weights = 1:5),
                   solve_modified(f, V[, 1, ], b, weights = matrix(1:5, 1)))
  modified <- cholupdate_gpu(R, V[, , 4], weights = w[, 4], scale = scale[[4]])
  expect_equal(solve_modified(f, V, weights = w, scale = scale)$logdet[[4]], logdet(modified))
})

test_that("what is asked for is what comes, with its names", {
  expect_named(solve_modified(R, V, b), c("solution", "logdet", "quadratic", "by_factor"))
  expect_named(solve_modified(R, V), c("logdet", "by_factor"))
  expect_named(solve_modified(R, V, b, what = "quadratic", check = FALSE), c("quadratic", "pivot", "by_factor"))
  for (what in list("solution", "quadratic", c("logdet", "solution"))) {
    expect_identical(solve_modified(R, V, b, what = what)[what], solve_modified(R, V, b)[what])
  }
  named <- structure(A, dimnames = rep(list(paste0("x", 1:n)), 2))
  W <- structure(V, dimnames = list(NULL, NULL, letters[1:5]))
  y <- structure(B[, , 1, drop = FALSE], dimnames = list(NULL, c("p", "q"), NULL))
  for (upper in c(TRUE, FALSE)) {
    S <- chol(named)
    uplo <- if (upper) "upper" else "lower"
    f <- if (upper) S else t(S)
    for (found in list(solve_modified(f, W, y, uplo = uplo), solve_modified(chol_factor(f, "cpu", uplo), W, y))) {
      expect_identical(dimnames(found$solution), list(rownames(named), c("p", "q"), letters[1:5]))
      expect_identical(dimnames(found$quadratic), list(c("p", "q"), letters[1:5]))
      expect_identical(unname(found$logdet), solve_modified(R, V)$logdet)
      expect_named(found$logdet, letters[1:5])
    }
    expect_identical(dimnames(solve_modified(f, W, b, uplo = uplo)$solution), list(rownames(named), letters[1:5]))
  }
  expect_named(solve_modified(R, list(a = b, c = b), b)$quadratic, c("a", "c"))
  expect_identical(dim(solve_modified(R, V, B)$solution), c(n, 2L, 5L))
  expect_named(solve_modified(R, V, structure(B[, 1, ], dimnames = list(NULL, LETTERS[1:5])))$quadratic, LETTERS[1:5])
  expect_named(solve_modified(R, W, structure(B[, 1, ], dimnames = list(NULL, LETTERS[1:5])))$quadratic, letters[1:5])
  expect_identical(dim(solve_modified(R, list(), b)$solution), c(n, 0L))
  expect_identical(solve_modified(R, list(), what = "logdet")$logdet, numeric())
  expect_identical(solve_modified(matrix(0, 0, 0), list(matrix(0, 0, 2)), numeric())$quadratic, 0)
})

test_that("R, V and b may be of other classes", {
  one <- solve_modified(R, V[, 1, ], b)
  integers <- list(R = chol(diag(4L, 3L)), V = matrix(1:6, 3L), b = 1:3)
  storage.mode(integers$R) <- "integer"
  expect_equal(solve_modified(integers$R, integers$V, integers$b)$solution[, 2],
               solve(diag(4, 3) + tcrossprod(4:6), 1:3))
  expect_close(solve_modified(make_float32(R), make_float32(V[, 1, ]), make_float32(matrix(b, n, 5)))$solution,
               one$solution, 1e-5)
  skip_if_not_installed("Matrix")
  S <- Matrix::triu(Matrix::Matrix(R, sparse = FALSE))
  M <- Matrix::Matrix(V[, 1, ], sparse = FALSE)
  expect_equal(solve_modified(S, M, b), one)
  expect_equal(solve_modified(R, list(M), b)$logdet, solve_modified(R, list(V[, 1, ]), b)$logdet)
})

at_each_home("those that are not positive definite are told by number", {
  f <- keep(R)
  large <- V / 10
  large[, , c(2, 5)] <- V[, , c(2, 5)] * 100
  pivot <- vapply(c(2, 5), function(j) cholupdate_gpu(f, large[, , j], downdate = TRUE, check = FALSE)$pivot, 1L)
  expect_fields(solve_modified(f, large, b, downdate = TRUE), "not_positive_definite", members = c(2L, 5L),
                pivots = pivot, pivot = pivot[[1L]])
  found <- solve_modified(f, large, B, downdate = TRUE, check = FALSE)
  expect_identical(found$pivot, c(0L, pivot[[1L]], 0L, 0L, pivot[[2L]]))
  expect_identical(found$by_factor, c(2L, 5L))
  expect_identical(which(is.na(found$logdet)), c(2L, 5L))
  expect_true(all(is.na(found$solution[, , c(2, 5)]), is.na(found$quadratic[, c(2, 5)])))
  good <- solve_modified(f, large[, , c(1, 3, 4)], B[, , c(1, 3, 4)], downdate = TRUE)
  expect_equal(found$solution[, , c(1, 3, 4)], good$solution)
  expect_equal(found$quadratic[, c(1, 3, 4)], good$quadratic)
})

at_each_home("near a singular matrix, and for large weights, the factor is modified", {
  f <- keep(R)
  near <- vapply(c(1e-2, 1e-13), function(gap) as.vector(nearly_singular(R, 1, gap)$V), b)
  expect_identical(solve_modified(f, near, b, downdate = TRUE)$by_factor, 2L)
  expect_identical(solve_modified(f, V, b, weights = list(1, 1, 1e12, 1, c(1e-12, 1, 1e12)))$by_factor, c(3L, 5L))
  wide <- solve_modified(f, V, b, weights = c(1e-12, 1, 1e12))
  expect_identical(wide$by_factor, 1:5)
  for (j in 1:5) {
    g <- cholupdate_gpu(f, V[, , j], weights = c(1e-12, 1, 1e12))
    expect_equal(wide$solution[, j], solve(g, b), tolerance = 1e-12)
    expect_equal(wide$logdet[[j]], logdet(g), tolerance = 1e-14)
  }
})

# ||b - A_j x|| / (eps ((||A|| + ||VV'||) ||x|| + ||b||)), in the 1-norm, of the solution: below 40.
test_that("the residual of every family is small", {
  for (downdate in c(FALSE, TRUE)) {
    families <- if (downdate) downdate_families else update_families
    for (name in names(families)) {
      for (k in c(1, 7)) {
        case <- families[[name]](80, k)
        operand <- crossprod(case$R)
        W <- tcrossprod(case$V)
        y <- cbind(rnorm(80), case$V[, 1], operand[, 80])
        x <- solve_modified(case$R, list(case$V), array(y, c(dim(y), 1)), downdate)$solution[, , 1]
        rest <- y - operand %*% x - (if (downdate) -1 else 1) * W %*% x
        size <- (norm(operand, "1") + norm(W, "1")) * colSums(abs(x)) + colSums(abs(y))
        expect_lt(max(colSums(abs(rest)) / size), 40 * .Machine$double.eps, label = paste(name, k))
      }
    }
  }
})

test_that("arguments that cannot be used are refused", {
  expect_fields(solve_modified(R, V[-1, , ], b), "dimension_mismatch", expected = n, actual = n - 1L)
  expect_fields(solve_modified(R, t(V[, 1, ]), b), "dimension_mismatch", expected = n, actual = 5L)
  expect_fields(solve_modified(R, list(b, 1:3), b), "dimension_mismatch", expected = n, actual = 3L)
  expect_fields(solve_modified(R, list(b, "a"), b), "not_numeric", argument = "V[[2]]")
  expect_fields(solve_modified(R, data.frame(b), b), "not_numeric", argument = "V")
  expect_fields(solve_modified(R, V, 1:3), "dimension_mismatch", expected = n, actual = 3L)
  expect_fields(solve_modified(R, V, B[, , -1]), "dimension_mismatch", expected = 5L, actual = 4L)
  expect_fields(solve_modified(R, replace(V, n * 3 + 2, NA), b), "not_finite", argument = "V", row = 2, col = 1,
                member = 2)
  expect_fields(solve_modified(R, V, replace(b, 3, Inf)), "not_finite", argument = "b", row = 3)
  expect_fields(solve_modified(replace(R, 1, 0), V, b), "bad_diagonal", index = 1)
  expect_fields(solve_modified(R, V, b, weights = 1:4), "bad_argument", argument = "weights")
  expect_fields(solve_modified(R, V, b, weights = list(1, 2)), "bad_argument", argument = "weights")
  expect_fields(solve_modified(R, V, b, weights = list(1, 2, 3, 4, 1:2)), "bad_argument", argument = "weights")
  expect_fields(solve_modified(R, V, b, weights = matrix(1, 5, 3)), "bad_argument", argument = "weights")
  expect_fields(solve_modified(R, V, b, TRUE, weights = 1), "bad_argument", argument = "weights")
  expect_fields(solve_modified(R, V, b, weights = NaN), "not_finite", argument = "weights")
  expect_fields(solve_modified(R, V, b, scale = c(1, 2)), "bad_argument", argument = "scale")
  expect_fields(solve_modified(R, V, b, scale = 0), "bad_argument", argument = "scale")
  expect_fields(solve_modified(R, V, what = "solution"), "bad_argument", argument = "b")
  expect_fields(solve_modified(R, V, b, what = "inverse"), "bad_argument", argument = "what")
  expect_fields(solve_modified(R, V, b, what = character()), "bad_argument", argument = "what")
  expect_fields(solve_modified(R, V, b, check = NA), "bad_argument", argument = "check")
  expect_fields(solve_modified(R, V, b, FALSE, 1), "bad_argument", argument = "...")
  f <- chol_factor(R, "cpu")
  expect_fields(solve_modified(f, V, b, uplo = "lower"), "bad_argument", argument = "uplo")
  free(f)
  expect_fields(solve_modified(f, V, b), "invalid_factor", reason = "freed")
})

test_that("a time limit stops it, and leaves everything as it was", {
  skip_on_cran()
  S <- diag(1000)
  many <- list(matrix(1e-3, 1000, 1000))[rep(1, 30)]
  caught <- tryCatch({
    setTimeLimit(elapsed = 0.5, transient = TRUE)
    solve_modified(S, many, what = "logdet")
    "finished"
  }, error = function(e) if (gpucholmod:::is_time_limit(e)) "the limit" else e)
  setTimeLimit()
  expect_identical(caught, "the limit")
  expect_identical(S, diag(1000))
})
