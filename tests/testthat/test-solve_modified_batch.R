# A modification of each member of a batch, beside base R.

b <- 11L
n <- 7L

set.seed(1)
A <- replicate(b, crossprod(matrix(rnorm(2 * n^2), 2 * n)) / n)
R <- array(apply(A, 3L, chol), dim(A))
V <- array(rnorm(n * 3 * b), c(n, 3, b))
rhs <- array(rnorm(n * 2 * b), c(n, 2, b))
slices <- lapply(1:b, function(m) V[, , m])

# What solve_modified() has to give: list(solution, logdet, quadratic) for scale[[m]] A[[m]] + V[[m]] diag(w[[m]])
# V[[m]]', with the right-hand sides y[[m]], matrices; arrays of three dimensions.
modified_by_hand <- function(A, V, w, scale, y) {
  of <- lapply(seq_along(A), function(m) {
    M <- scale[[m]] * A[[m]] + V[[m]] %*% (w[[m]] * t(V[[m]]))
    x <- solve(M, y[[m]])
    list(x = x, logdet = as.double(determinant(M)$modulus), q = colSums(y[[m]] * x))
  })
  list(solution = array(unlist(lapply(of, `[[`, "x")), c(dim(y[[1]]), length(A))),
       logdet = vapply(of, `[[`, 0, "logdet"), quadratic = matrix(unlist(lapply(of, `[[`, "q")), ncol(y[[1]])))
}
matrices <- lapply(1:b, function(m) A[, , m])
sides <- lapply(1:b, function(m) rhs[, , m])
ones <- rep(list(rep(1, 3)), b)

at_each_home("members are modified and solved with, in all forms of V and b, and stay as they are", {
  for (uplo in c("upper", "lower")) {
    given <- if (uplo == "lower") aperm(R, c(2, 1, 3)) else R
    f <- keep_batch(given, uplo = uplo)
    before <- list(as.array(f), unshared(V), unshared(rhs))
    expected <- modified_by_hand(matrices, slices, ones, rep(1, b), sides)
    found <- solve_modified(f, V, rhs)
    expect_equal(found, expected)
    expect_identical(solve_modified(f, slices, rhs), found)
    expect_identical(solve_modified(f, V, rhs, uplo = uplo), found)
    one <- solve_modified(f, V, rhs[, 2, ])
    expect_equal(one, list(solution = expected$solution[, 2, ], logdet = expected$logdet,
                           quadratic = expected$quadratic[2, ]))
    y <- rhs[, 1, 1]
    for (same in list(y, matrix(y, n, b))) {
      expect_equal(solve_modified(f, V, same)$solution[, 1], found$solution[, 1, 1])
    }
    common <- solve_modified(f, V[, , 2, drop = FALSE], rhs[, , 3, drop = FALSE])
    expect_equal(common, modified_by_hand(matrices, rep(slices[2], b), ones, rep(1, b), rep(sides[3], b)))
    columns <- solve_modified(f, V[, 1, ], y)
    expect_identical(solve_modified(f, lapply(slices, function(v) v[, 1]), y), columns)
    expect_identical(solve_modified(f, V[, 1, , drop = FALSE], array(y, c(n, 1, 1)))$solution[, 1, ], columns$solution)
    expect_identical(solve_modified(f, V[, 1, 1], y)$logdet[[1]], columns$logdet[[1]])
    expect_identical(list(as.array(f), V, rhs), before)
  }
})

at_each_home("weights and scales come in all forms", {
  f <- keep_batch(R)
  w <- matrix(rep_len(c(1, -0.05, 0.5, 0, 2), 3 * b), 3)
  scale <- rep_len(c(1, 0.9, 0.5, 2), b)
  each <- lapply(1:b, function(m) w[, m])
  found <- solve_modified(f, V, rhs, weights = w, scale = scale)
  expect_equal(found, modified_by_hand(matrices, slices, each, scale, sides))
  expect_identical(solve_modified(f, V, rhs, weights = each, scale = scale), found)
  expect_equal(solve_modified(f, V, rhs, weights = c(1, -0.05, 2), scale = 2),
               modified_by_hand(matrices, slices, rep(list(c(1, -0.05, 2)), b), rep(2, b), sides))
  expect_identical(solve_modified(f, V, rhs, weights = 1), solve_modified(f, V, rhs))
  expect_identical(solve_modified(f, V / 20, rhs, weights = -1), solve_modified(f, V / 20, rhs, downdate = TRUE))
  expect_identical(solve_modified(f, V[, 1, ], rhs, weights = 1:b),
                   solve_modified(f, V[, 1, ], rhs, weights = matrix(1:b, 1)))
  several <- lapply(1:b, function(m) matrix(V[, seq_len(m %% 4L), m], n))
  counts <- vapply(several, ncol, 1L)
  weights <- lapply(counts, function(k) seq_len(k) / 2)
  expect_equal(solve_modified(f, several, rhs, weights = weights),
               modified_by_hand(matrices, several, weights, rep(1, b), sides))
  expect_equal(solve_modified(f, several, rhs, weights = rep(list(0.5), b)),
               modified_by_hand(matrices, several, lapply(counts, rep, x = 0.5), rep(1, b), sides))
})

at_each_home("what is asked for is what comes, with its names", {
  named <- structure(R, dimnames = list(NULL, letters[1:n], LETTERS[1:b]))
  f <- keep_batch(named)
  y <- structure(rhs, dimnames = list(NULL, c("p", "q"), NULL))
  found <- solve_modified(f, V, y)
  expect_named(found, c("solution", "logdet", "quadratic"))
  expect_identical(dimnames(found$solution), list(letters[1:n], c("p", "q"), LETTERS[1:b]))
  expect_identical(dimnames(found$quadratic), list(c("p", "q"), LETTERS[1:b]))
  expect_named(found$logdet, LETTERS[1:b])
  expect_named(solve_modified(f, V), "logdet")
  expect_identical(solve_modified(f, V), found["logdet"])
  expect_named(solve_modified(f, V, y, what = "quadratic", check = FALSE), c("quadratic", "pivot"))
  for (what in list("solution", "quadratic", c("logdet", "solution"))) {
    expect_identical(solve_modified(f, V, y, what = what)[what], found[what])
  }
  g <- keep_batch(R)
  expect_named(solve_modified(g, structure(slices, names = LETTERS[1:b]), rhs[, 1, ])$quadratic, LETTERS[1:b])
  expect_named(solve_modified(g, V, structure(rhs[, 1, ], dimnames = list(NULL, LETTERS[1:b])))$logdet, LETTERS[1:b])
  expect_error(solve_modified(f, structure(slices, names = rev(LETTERS[1:b])), y), class = "gpucholmod_bad_argument")
  none <- keep_batch(array(0, c(3, 3, 0)))
  expect_identical(solve_modified(none, array(0, c(3, 2, 0)), array(0, c(3, 2, 0))),
                   list(solution = array(0, c(3, 2, 0)), logdet = numeric(), quadratic = matrix(0, 2, 0)))
  expect_identical(solve_modified(none, list()), list(logdet = numeric()))
  empty <- keep_batch(array(0, c(0, 0, 2)))
  expect_identical(solve_modified(empty, array(0, c(0, 1, 2)), array(0, c(0, 1, 2))),
                   list(solution = array(0, c(0, 1, 2)), logdet = c(0, 0), quadratic = matrix(0, 1, 2)))
  expect_identical(dim(solve_modified(f, V, array(0, c(n, 0, b)))$solution), c(n, 0L, b))
})

at_each_home("members that are not positive definite are told by number", {
  f <- keep_batch(R)
  large <- V / 20
  large[, , c(2, 5)] <- V[, , c(2, 5)] * 100
  pivot <- cholupdate_batch(f, large, downdate = TRUE, check = FALSE)$pivot
  expect_identical(which(pivot > 0L), c(2L, 5L))
  expect_fields(solve_modified(f, large, rhs, downdate = TRUE), "not_positive_definite", members = c(2L, 5L),
                pivots = pivot[c(2, 5)], pivot = pivot[[2L]])
  found <- solve_modified(f, large, rhs, downdate = TRUE, check = FALSE)
  expect_identical(found$pivot, pivot)
  expect_identical(which(is.na(found$logdet)), c(2L, 5L))
  expect_true(all(is.na(found$solution[, , c(2, 5)]), is.na(found$quadratic[, c(2, 5)])))
  good <- setdiff(1:b, c(2, 5))
  expected <- modified_by_hand(matrices[good], lapply(good, function(m) large[, , m]), rep(list(rep(-1, 3)), b - 2),
                               rep(1, b), sides[good])
  expect_equal(found$solution[, , good], expected$solution)
  expect_equal(found$quadratic[, good], expected$quadratic)
  expect_equal(as.array(f), R)
})

at_each_home("members of several orders have what they have, and leave the rest", {
  own <- rep_len(c(7L, 3L, 0L, 5L), b)
  f <- keep_batch(lapply(1:b, function(m) R[seq_len(own[m]), seq_len(own[m]), m]))
  columns <- lapply(1:b, function(m) matrix(V[seq_len(own[m]), , m], own[m], 3))
  scale <- rep_len(c(2, 1, 0.5), b)
  found <- solve_modified(f, columns, rhs, scale = scale)
  zeros <- V
  for (m in 1:b) {
    at <- seq_len(own[m])
    if (own[m] > 0L) {
      expected <- modified_by_hand(list(A[at, at, m]), columns[m], ones, scale[m], list(rhs[at, , m]))
      part <- list(solution = found$solution[at, , m, drop = FALSE], logdet = found$logdet[[m]],
                   quadratic = found$quadratic[, m, drop = FALSE])
      expect_equal(part, expected, label = m)
    } else {
      expect_identical(list(found$quadratic[, m], found$logdet[[m]]), list(c(0, 0), 0))
    }
    beyond <- setdiff(seq_len(n), at)
    expect_identical(found$solution[beyond, , m], rhs[beyond, , m])
    zeros[beyond, , m] <- 0
  }
  expect_identical(solve_modified(f, zeros, rhs, scale = scale), found)
  expect_fields(solve_modified(f, V, rhs), "bad_argument", argument = "V", member = 2, row = 4)
})

at_each_home("single precision is that of the batch", {
  f <- keep_batch(R, precision = "single")
  expected <- modified_by_hand(matrices, slices, ones, rep(1, b), sides)
  found <- solve_modified(f, V, rhs)
  for (part in names(expected)) expect_close(found[[part]], expected[[part]], 1e-5, part)
})

# ||y - A~ x|| / (eps ((||A|| + ||VV'||) ||x|| + ||y||)), in the 1-norm, of the solution: below 40.
at_each_home("the residual of every family is small, however near to a singular matrix", {
  for (downdate in c(FALSE, TRUE)) for (k in c(1, 7, 70)) {
    families <- if (downdate) downdate_families else update_families
    if (downdate && k == 70) next  # there are not so many rows
    cases <- lapply(families, function(make) make(20, k))
    f <- keep_batch(array(unlist(lapply(cases, `[[`, "R")), c(20, 20, length(cases))))
    W <- array(unlist(lapply(cases, `[[`, "V")), c(20, k, length(cases)))
    y <- array(rnorm(40 * length(cases)), c(20, 2, length(cases)))
    y[, 2, ] <- W[, 1, ]
    found <- solve_modified(f, W, y, downdate, check = FALSE)
    for (m in which(found$pivot == 0L)) {
      operand <- crossprod(cases[[m]]$R)
      change <- tcrossprod(cases[[m]]$V)
      x <- found$solution[, , m]
      rest <- y[, , m] - operand %*% x - (if (downdate) -1 else 1) * change %*% x
      size <- (norm(operand, "1") + norm(change, "1")) * colSums(abs(x)) + colSums(abs(y[, , m]))
      expect_lt(max(colSums(abs(rest)) / size), 40 * .Machine$double.eps, label = paste(names(cases)[[m]], k))
    }
    expect_identical(found$pivot, cholupdate_batch(f, W, downdate, check = FALSE)$pivot)
  }
})

at_each_home("many members, by several threads, are what each is alone", {
  many <- rep_len(1:b, 3000)
  f <- keep_batch(R[, , many])
  found <- solve_modified(f, V[, , many], rhs[, , many], control = cholupdate_control(threads = 2))
  one <- solve_modified(keep_batch(R), V, rhs, control = cholupdate_control(threads = 1))
  expect_identical(found, list(solution = one$solution[, , many], logdet = one$logdet[many],
                               quadratic = one$quadratic[, many]))
  bad <- V[, , many]
  bad[2, 3, c(1000, 2999)] <- NaN
  expect_fields(solve_modified(f, bad, rhs[, , many], control = cholupdate_control(threads = 2)), "not_finite",
                argument = "V", row = 2, col = 3, member = 1000)
})

at_each_home("V and b may be of other classes", {
  f <- keep_batch(R)
  one <- solve_modified(f, V[, 1, ], rhs[, 1, ])
  wide <- make_float32(V[, 1, ])
  expect_identical(solve_modified(f, wide, make_float32(rhs[, 1, ])),
                   solve_modified(f, matrix(widen(wide), n), matrix(widen(make_float32(rhs[, 1, ])), n)))
  whole <- array(rep_len(-3:4, n * 3 * b), c(n, 3L, b))
  expect_identical(solve_modified(f, whole, 1:n), solve_modified(f, whole + 0, as.double(1:n)))
  skip_if_not_installed("Matrix")
  dense <- function(x) Matrix::Matrix(x, sparse = FALSE)
  expect_identical(solve_modified(f, dense(V[, 1, ]), dense(rhs[, 1, ])), one)
  expect_identical(solve_modified(f, lapply(1:b, function(m) dense(V[, 1, m, drop = FALSE][, , 1])), rhs[, 1, ]), one)
})

at_each_home("arguments that cannot be used are refused, and nothing changes", {
  f <- keep_batch(R)
  expect_fields(solve_modified(f, V[-1, , ], rhs), "dimension_mismatch", expected = n, actual = n - 1L)
  expect_fields(solve_modified(f, V[, , -1], rhs), "dimension_mismatch", expected = b, actual = b - 1L)
  expect_fields(solve_modified(f, V[, , 1], rhs), "dimension_mismatch", expected = b, actual = 3L)
  expect_fields(solve_modified(f, slices[-1], rhs), "dimension_mismatch", expected = b, actual = b - 1L)
  expect_fields(solve_modified(f, replace(slices, 3, list(V[-1, , 3])), rhs), "dimension_mismatch", expected = n,
                actual = n - 1L)
  expect_fields(solve_modified(f, replace(slices, 3, list("a")), rhs), "not_numeric", argument = "V[[3]]")
  expect_fields(solve_modified(f, "a", rhs), "not_numeric", argument = "V")
  expect_fields(solve_modified(f, V, rhs[, , -1]), "dimension_mismatch", expected = b, actual = b - 1L)
  expect_fields(solve_modified(f, V, list(1)), "not_numeric", argument = "b")
  expect_fields(solve_modified(f, replace(V, n * 3 + 2, NA), rhs), "not_finite", argument = "V", row = 2, col = 1,
                member = 2)
  expect_fields(solve_modified(f, V, replace(rhs, n * 2 + n + 3, Inf)), "not_finite", argument = "b", row = 3, col = 2,
                member = 2)
  expect_fields(solve_modified(f, V, replace(rhs[, 1, 1], 3, NaN)), "not_finite", argument = "b", row = 3)
  expect_fields(solve_modified(f, V * 1e200, rhs, weights = 1e300), "overflow", argument = "V", member = 1)
  expect_fields(solve_modified(f, V, rhs, weights = 1:4), "bad_argument", argument = "weights")
  expect_fields(solve_modified(f, V, rhs, weights = list(1, 2)), "bad_argument", argument = "weights")
  expect_fields(solve_modified(f, V, rhs, weights = matrix(1, b, 3)), "bad_argument", argument = "weights")
  expect_fields(solve_modified(f, V, rhs, TRUE, weights = 1), "bad_argument", argument = "weights")
  expect_fields(solve_modified(f, V, rhs, weights = NaN), "not_finite", argument = "weights")
  expect_fields(solve_modified(f, V, rhs, scale = c(1, 2)), "bad_argument", argument = "scale")
  expect_fields(solve_modified(f, V, rhs, scale = 0), "bad_argument", argument = "scale")
  expect_fields(solve_modified(f, V, what = "solution"), "bad_argument", argument = "b")
  expect_fields(solve_modified(f, V, rhs, what = "inverse"), "bad_argument", argument = "what")
  expect_fields(solve_modified(f, V, rhs, check = NA), "bad_argument", argument = "check")
  expect_fields(solve_modified(f, V, rhs, uplo = "lower"), "bad_argument", argument = "uplo")
  expect_fields(solve_modified(f, V, rhs, control = 1), "bad_argument", argument = "control")
  expect_fields(solve_modified(f, V, rhs, FALSE, 1), "bad_argument", argument = "...")
  expect_equal(as.array(f), R)
  free(f)
  expect_fields(solve_modified(f, V, rhs), "invalid_factor", reason = "freed")
})
