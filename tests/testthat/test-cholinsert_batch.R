# Rows and columns of many matrices, beside chol() of each.

b <- 11L

# A batch of b random factors of order n, and their matrices.
growing <- function(n, keep = function(R) chol_batch(R, "cpu"), size = n) {
  A <- replicate(b, crossprod(matrix(rnorm(2 * size^2), 2 * size)))
  dim(A) <- c(size, size, b)
  list(A = A, f = keep(factors(A[seq_len(n), seq_len(n), , drop = FALSE])))
}
factors <- function(A) array(apply(A, 3L, chol), dim(A))

at_each_home("rows are appended, inserted and deleted as chol() of the matrices says", {
  set.seed(1)
  g <- growing(5, keep_batch, size = 9)
  f <- g$f
  more <- cholinsert_gpu(f, g$A[1:7, 6:7, ])
  expect_equal(as.array(more), factors(g$A[1:7, 1:7, ]))
  expect_identical(dim(f), c(5L, 5L, b))
  middle <- c(1, 2, 6, 3, 4, 5)
  expect_equal(as.array(cholinsert_gpu(f, g$A[middle, 6, ], at = 3)), factors(g$A[middle, middle, ]))
  expect_equal(as.array(choldelete_gpu(more, c(2, 7))), factors(g$A[c(1, 3:6), c(1, 3:6), ]))
  expect_equal(as.array(choldelete_gpu(more, -(1:3))), factors(g$A[1:3, 1:3, ]))
  own <- rep_len(1:6, b)
  placed <- cholinsert_gpu(f, sapply(1:b, function(m) g$A[append(1:5, 6, own[m] - 1), 6, m]), at = own)
  for (m in 1:b) {
    order <- append(1:5, 6, own[m] - 1)
    expect_equal(placed[[m]], chol(g$A[order, order, m]))
  }
  back <- choldelete_gpu(placed, matrix(own, 1), in_place = TRUE)
  expect_equal(as.array(back), as.array(f))
  expect_identical(orders(back), rep(5L, b))
})

test_that("one column, and one of all members, are what they are elsewhere", {
  set.seed(2)
  f <- growing(4)$f
  x <- c(0.1, -0.2, 0.3, 0.4, 9)
  for (X in list(x, array(x, c(5, 1, 1)), matrix(x, 5, b), array(x, c(5, 1, b)))) {
    expect_equal(cholinsert_gpu(f, X)[[b]], cholinsert_gpu(f[[b]], x))
  }
  expect_equal(cholinsert_gpu(f, array(numeric(), c(4, 0, b)))[[1]], f[[1]])
  expect_equal(as.array(choldelete_gpu(f, integer())), as.array(f))
  expect_identical(dim(choldelete_gpu(f, 1:4)), c(0L, 0L, b))
})

at_each_home("members grow from nothing within the capacity, in both forms and precisions", {
  for (uplo in c("upper", "lower")) for (precision in c("double", "single")) {
    set.seed(3)
    A <- growing(6)$A
    f <- keep_batch(array(0, c(0, 0, b)), uplo = uplo, precision = precision, capacity = 6)
    for (i in 1:6) cholinsert_gpu(f, array(A[1:i, i, ], c(i, 1, b)), in_place = TRUE)
    if (home == "cpu") expect_identical(f$capacity, 6L)
    expected <- factors(A)
    if (uplo == "lower") expected <- aperm(expected, c(2, 1, 3))
    expect_equal(as.array(f), expected, tolerance = if (precision == "single") 1e-5 else 1e-12)
    expect_equal(logdet(f), apply(A, 3, function(A) as.vector(determinant(A)$modulus)), tolerance = 1e-5)
  }
})

at_each_home("members that fail stay, all others go on, and the batch has several orders", {
  set.seed(4)
  g <- growing(4, keep_batch, size = 6)
  f <- g$f
  X <- array(g$A[1:5, 5, ], c(5, b))
  X[, c(2, 7)] <- g$A[c(1:4, 2), 2, c(2, 7)] * c(1, 1, 1, 1, 0.9)
  before <- as.array(f)
  error <- expect_error(cholinsert_gpu(f, X, in_place = TRUE), class = "gpucholmod_not_positive_definite")
  expect_identical(error$members, c(2L, 7L))
  expect_identical(error$pivots, c(5L, 5L))
  expect_match(conditionMessage(error), "of 11 matrices with what is inserted 2 are not positive definite: number 2")
  expect_identical(as.array(f), before)
  done <- cholinsert_gpu(f, X, in_place = TRUE, check = FALSE)
  expect_identical(done$pivot, ifelse(1:b %in% c(2, 7), 5L, 0L))
  expect_identical(orders(f), ifelse(1:b %in% c(2, 7), 4L, 5L))
  expect_match(format(f), "11 of 4 to 5 rows", fixed = TRUE)
  expect_equal(f[[2]], chol(g$A[1:4, 1:4, 2]))
  expect_equal(as.array(f)[, 5, 2], c(0, 0, 0, 0, 1))
  expect_equal(f[[3]], chol(g$A[1:5, 1:5, 3]))

  V <- matrix(rnorm(5 * b), 5)
  error <- expect_error(cholupdate_batch(f, V), class = "gpucholmod_bad_argument")
  expect_identical(error$member, 2)
  V[5, c(2, 7)] <- 0
  cholupdate_batch(f, V, scale = 0.25, in_place = TRUE)
  expect_equal(f[[2]], chol(0.25 * g$A[1:4, 1:4, 2] + tcrossprod(V[1:4, 2])))
  expect_equal(f[[5]], chol(0.25 * g$A[1:5, 1:5, 5] + tcrossprod(V[, 5])))
  expect_equal(logdet(f)[2], 2 * sum(log(diag(f[[2]]))))
  expect_equal(solve(f, 1:5)[1:4, 7], solve(crossprod(f[[7]]), 1:4))
  error <- expect_error(choldelete_gpu(f, 5), class = "gpucholmod_bad_argument")
  expect_identical(error$member, 2L)
  expect_equal(orders(choldelete_gpu(f, 1)), orders(f) - 1L)
})

at_each_home("a list of factors of several orders makes a batch", {
  set.seed(5)
  A <- lapply(c(a = 3, b = 1, c = 5), function(n) crossprod(matrix(rnorm(2 * n^2), 2 * n)))
  f <- keep_batch(lapply(A, chol), capacity = 7)
  expect_identical(orders(f), c(a = 3L, b = 1L, c = 5L))
  expect_equal(f[["a"]], chol(A$a))
  more <- cholinsert_gpu(f, c(4, 0.1, 0.1, 0.1, 0.1, 0.1), at = 1)
  expect_identical(orders(more), c(a = 4L, b = 2L, c = 6L))
  expect_equal(more[["b"]], cholinsert_gpu(chol(A$b), c(4, 0.1), at = 1))
  expect_error(chol_batch(list(diag(2), matrix(0, 2, 3))), class = "gpucholmod_not_square")
})

test_that("names of rows follow where all members have the same ones", {
  set.seed(6)
  A <- growing(3)$A
  dimnames(A) <- list(letters[1:3], letters[1:3], LETTERS[1:b])
  R <- factors(A)
  dimnames(R) <- dimnames(A)
  f <- chol_batch(R)
  x <- c(0.1, 9, 0.1, 0.1)
  expect_identical(dimnames(cholinsert_gpu(f, x, at = 2, names = "new")),
                   list(c("a", "new", "b", "c"), c("a", "new", "b", "c"), LETTERS[1:b]))
  own <- rep_len(1:4, b)
  each <- sapply(own, function(at) append(rep(0.1, 3), 9, at - 1))
  expect_identical(dimnames(cholinsert_gpu(f, each, at = own)), list(NULL, NULL, LETTERS[1:b]))
  expect_identical(dimnames(choldelete_gpu(f, "b"))[[1]], c("a", "c"))
  g <- copy_factor(f)
  expect_true(all(cholinsert_gpu(g, c(0.1, -1, 0.1, 0.1), at = 2, in_place = TRUE, check = FALSE)$pivot == 2L))
  expect_identical(dimnames(g), dimnames(f))
  expect_null(dimnames(cholinsert_gpu(growing(3)$f, x, at = 2)))
})

test_that("bad arguments are told, and nothing is changed", {
  set.seed(7)
  f <- growing(3)$f
  before <- as.array(f)
  x <- c(0.1, 0.1, 0.1, 9)
  expect_error(cholinsert_gpu(f, 1:3, in_place = TRUE), class = "gpucholmod_dimension_mismatch")
  expect_error(cholinsert_gpu(f, matrix(x, 4, b - 1)), class = "gpucholmod_dimension_mismatch")
  for (at in list(0, 5, 1.5, NA, 1:2, "a")) {
    expect_error(cholinsert_gpu(f, x, at = at, in_place = TRUE), class = "gpucholmod_bad_argument")
  }
  X <- matrix(x, 4, b)
  X[2, 6] <- NaN
  error <- expect_error(cholinsert_gpu(f, X, in_place = TRUE), class = "gpucholmod_not_finite")
  expect_identical(error$member, 6)
  for (index in list(4, 0.5, matrix(4, 1, b), matrix(1, 2, b))) {
    expect_error(choldelete_gpu(f, index, in_place = TRUE), class = "gpucholmod_bad_argument")
  }
  expect_error(choldelete_gpu(f, matrix(1, 1, 2)), class = "gpucholmod_dimension_mismatch")
  none <- chol_batch(array(0, c(3, 3, 0)), "cpu")
  expect_identical(dim(choldelete_gpu(none, matrix(1, 2, 0))), c(1L, 1L, 0L))
  expect_error(choldelete_gpu(none, matrix(1, 4, 0)), class = "gpucholmod_bad_argument")
  expect_error(chol_batch(before, capacity = 2), class = "gpucholmod_bad_argument")
  expect_error(orders(before), class = "gpucholmod_bad_argument")
  expect_error(cholinsert_gpu(f, x, b = 1), class = "gpucholmod_bad_argument")
  expect_identical(as.array(f), before)
  free(f)
  expect_error(cholinsert_gpu(f, x), class = "gpucholmod_invalid_factor")
})

test_that("functions of one factor tell what to do with many", {
  R <- array(diag(2), c(2, 2, 3))
  expect_error(cholinsert_gpu(R, c(0, 0, 1)), "chol_batch(R) makes a batch", fixed = TRUE,
               class = "gpucholmod_not_square")
  expect_error(choldelete_gpu(list(diag(2)), 1), "chol_batch(R) makes a batch", fixed = TRUE,
               class = "gpucholmod_not_numeric")
  b <- chol_batch(R)
  for (call in list(quote(cholupdate_gpu(b, 1:2)), quote(cholupdate_gpu(b, 1:2, in_place = TRUE)))) {
    expect_error(eval(call), "cholupdate_batch() modifies its members, and R[[i]]", fixed = TRUE,
                 class = "gpucholmod_not_numeric")
  }
  f <- chol_factor(diag(2))
  expect_error(cholupdate_batch(f, 1:2), "cholupdate_gpu() modifies a handle", fixed = TRUE,
               class = "gpucholmod_not_numeric")
})

at_each_home("rows and columns move as chol() of the matrices says", {
  set.seed(11)
  g <- growing(6, keep_batch)
  f <- g$f
  before <- as.array(f)
  moved <- function(from, to) factors(g$A[append((1:6)[-from], from, to - 1), append((1:6)[-from], from, to - 1), ])
  for (places in list(c(1, 6), c(6, 1), c(2, 5), c(5, 2), c(3, 4), c(4, 4))) {
    expect_equal(as.array(cholshift_gpu(f, places[1], places[2])), moved(places[1], places[2]))
  }
  expect_identical(as.array(f), before)
  from <- rep_len(1:6, b)
  to <- rep_len(c(4, 2, 1, 6, 3), b)
  done <- cholshift_gpu(f, from, to)
  for (m in 1:b) {
    order <- append((1:6)[-from[m]], from[m], to[m] - 1)
    expect_equal(done[[m]], chol(g$A[order, order, m]))
  }
  expect_identical(as.array(cholshift_gpu(f, 3, 3, in_place = TRUE)), before)
  order <- c(4, 1, 6, 2, 3, 5)
  expect_equal(as.array(cholpermute_gpu(f, order)), factors(g$A[order, order, ]))
  each <- sapply(1:b, function(m) sample(6))
  done <- cholpermute_gpu(f, each)
  for (m in 1:b) expect_equal(done[[m]], chol(g$A[each[, m], each[, m], m]))
  cholpermute_gpu(f, each, in_place = TRUE)
  expect_identical(as.array(f), as.array(done))
  expect_identical(as.array(cholpermute_gpu(f, 1:6)), as.array(done))
})

at_each_home("right-hand sides and names move along", {
  set.seed(12)
  A <- growing(5)$A
  R <- factors(A)
  dimnames(R) <- list(letters[1:5], letters[1:5], NULL)
  f <- keep_batch(R)
  z <- array(rnorm(5 * 2 * b), c(5, 2, b), list(letters[1:5], c("u", "v"), NULL))
  coefficients <- solve_back(f, z)
  order <- c(2, 3, 4, 1, 5)
  done <- cholshift_gpu(f, "a", 4, z = z)
  expect_identical(dimnames(done$z), list(letters[order], c("u", "v"), NULL))
  expect_identical(dimnames(as.array(done$R)), list(letters[order], letters[order], NULL))
  expect_equal(solve_back(done$R, done$z), coefficients[order, , ])
  order <- c("e", "b", "a", "d", "c")
  done <- cholpermute_gpu(f, order, z = z, in_place = TRUE)
  expect_identical(done$R, f)
  expect_identical(colnames(as.array(f)), order)
  expect_equal(solve_back(f, done$z), coefficients[match(order, letters), , ])
  expect_identical(colnames(as.array(cholshift_gpu(f, rep_len(1:2, b), rep_len(1:2, b)))), order)
  expect_null(dimnames(as.array(cholshift_gpu(f, rep_len(1:2, b), 3))))
  single <- keep_batch(R, precision = "single", uplo = "upper")
  moved <- as.array(cholshift_gpu(single, 1, 5))
  expect_equal(unname(moved), factors(A[c(2:5, 1), c(2:5, 1), ]), tolerance = 1e-5)
})

test_that("what cannot be moved is refused", {
  f <- growing(4)$f
  before <- as.array(f)
  for (from in list(0, 5, NA, 1.5, 1:2, integer(), "x")) {
    expect_error(cholshift_gpu(f, from, 1, in_place = TRUE), class = "gpucholmod_bad_argument")
    expect_error(cholshift_gpu(f, 1, from, in_place = TRUE), class = "gpucholmod_bad_argument")
  }
  for (order in list(1:3, c(1, 1, 2, 3), 0:3, NA, matrix(1, 4, b))) {
    expect_error(cholpermute_gpu(f, order, in_place = TRUE), class = "gpucholmod_bad_argument")
  }
  expect_error(cholpermute_gpu(f, matrix(1:4, 4, 2)), class = "gpucholmod_dimension_mismatch")
  expect_identical(as.array(f), before)
  ragged <- chol_batch(list(diag(2), diag(c(2, 3, 4))))
  expect_error(cholshift_gpu(ragged, 3, 1), class = "gpucholmod_bad_argument")
  expect_error(cholpermute_gpu(ragged, c(1, 3, 2)), "member 1 does not have", class = "gpucholmod_bad_argument")
  expect_error(cholpermute_gpu(chol_batch(list(matrix(0, 0, 0), diag(2))), 2:1), "member 1 does not have",
               class = "gpucholmod_bad_argument")
  named <- chol_batch(list(a = diag(2), b = diag(3:4)))
  expect_error(cholpermute_gpu(named, cbind(b = 2:1, a = 1:2)), "another order", class = "gpucholmod_bad_argument")
  none <- chol_batch(array(0, c(3, 3, 0), list(letters[1:3], letters[1:3], NULL)))
  for (from in list(0, 4, Inf)) {
    expect_error(cholshift_gpu(none, from, 1, in_place = TRUE), class = "gpucholmod_bad_argument")
  }
  expect_error(cholinsert_gpu(none, array(0, c(4, 1, 0)), at = 5), class = "gpucholmod_bad_argument")
  expect_identical(rownames(as.array(cholshift_gpu(none, 3, 1))), c("c", "a", "b"))
  moved <- cholshift_gpu(ragged, c(1, 3), c(2, 1))
  expect_equal(diag(moved), cbind(c(1, 1, 1), c(4, 2, 3)))
  expect_equal(diag(cholpermute_gpu(moved, cbind(c(2, 1, 3), c(3, 1, 2)))), cbind(c(1, 1, 1), c(3, 4, 2)))
})
