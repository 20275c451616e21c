# Handles where a matrix is expected.

set.seed(1)
R <- structure(well_conditioned(30), dimnames = list(NULL, paste0("x", 1:30)))
x <- structure(rnorm(60), dim = c(30, 2), dimnames = list(NULL, c("p", "q")))
same <- function(object, expected) expect_equal(object, expected, tolerance = 1e-12)

# What `%*%` does from R 4.3.0 on.
times <- function(x, y) {
  if (getRversion() >= "4.3.0") return(x %*% y)
  (if (inherits(x, "chol_factor")) gpucholmod:::`%*%.chol_factor` else gpucholmod:::`%*%.factor_file`)(x, y)
}

expect_products <- function(f, M) {
  same(times(f, x), M %*% x)
  same(times(f, 1:30), M %*% 1:30)
  same(times(t(x), f), t(x) %*% M)
  same(times(1:30, f), 1:30 %*% M)
  same(crossprod(f, x), crossprod(M, x))
  same(crossprod(x, f), crossprod(x, M))
  same(crossprod(1:30, f), crossprod(1:30, M))
  same(tcrossprod(f, t(x)), tcrossprod(M, t(x)))
  same(tcrossprod(t(x), f), tcrossprod(t(x), M))
  same(tcrossprod(f, 1:30), M %*% 1:30)
  same(crossprod(f), crossprod(M))
  same(tcrossprod(f), tcrossprod(M))
  same(crossprod(f, f), crossprod(M))
  same(crossprod(f, x > 0), crossprod(M, x > 0))
  expect_identical(dim(crossprod(f, x[, 0])), c(30L, 0L))
  error <- expect_error(crossprod(f, 1:29), class = "gpucholmod_dimension_mismatch")
  expect_identical(unclass(error)[c("expected", "actual")], list(expected = 30L, actual = 29L))
  expect_error(tcrossprod(f, x), class = "gpucholmod_dimension_mismatch")
  expect_error(crossprod(f, "a"), class = "gpucholmod_not_numeric")
}

at_each_home("a handle multiplies as its matrix", {
  expect_products(keep(R), R)
  expect_products(keep(t(R), uplo = "lower"), t(R))
  S <- matrix(as_floats(R), 30, dimnames = dimnames(R))
  expect_products(keep(S, precision = "single"), S)
  large <- well_conditioned(600) # blocks of columns
  b <- matrix(rnorm(600 * 3), 600)
  for (precision in c("double", "single")) {
    f <- keep(large, precision = precision)
    M <- as.matrix(f)
    same(crossprod(f, b), crossprod(M, b))
    same(times(f, b), M %*% b)
  }
  skip_if_not_installed("Matrix")
  same(crossprod(keep(R), Matrix::Matrix(x)), crossprod(R, x))
})

test_that("a factor in a file multiplies as its matrix, in panels", {
  skip_on_os("windows")
  f <- write_factor(R, tempfile())
  on.exit(unlink(f$path))
  M <- unname(R)
  expect_products(f, M)
  for (columns in c(1, 7)) {
    multiply <- gpucholmod:::product_with_file
    environment(multiply) <- list2env(list(over_panels = function(f, reverse, work) {
      gpucholmod:::over_panels(f, reverse, work, bytes = 8 * 30 * columns)
    }), parent = asNamespace("gpucholmod"))
    same(multiply(f, unname(x), FALSE), M %*% unname(x))
    same(multiply(f, unname(x), TRUE), crossprod(M, unname(x)))
  }
})

at_each_home("entries, the transpose and the length are those of the matrix", {
  f <- keep(R)
  expect_identical(f[1, 2], R[1, 2])
  expect_identical(f[2:3, ], R[2:3, ])
  expect_identical(f[, "x4"], R[, "x4"])
  expect_identical(f[-1, 4, drop = FALSE], R[-1, 4, drop = FALSE])
  expect_identical(f[7], R[7])
  expect_identical(f[cbind(1:3, 2:4)], R[cbind(1:3, 2:4)])
  expect_identical(f[], R)
  expect_identical(t(f), t(R))
  expect_identical(length(f), length(R))
  expect_identical(head(f, 2), head(R, 2))
  huge <- handle_of_nothing()
  huge$n <- 100000L
  expect_identical(length(huge), 1e10)
})

test_that("entries of a file are read by columns", {
  skip_on_os("windows")
  f <- write_factor(R, tempfile())
  on.exit(unlink(f$path))
  M <- unname(R)
  expect_identical(f[1, 2], M[1, 2])
  expect_identical(f[c(3, 1, 30, 3), c(9, 2, 3, 9)], M[c(3, 1, 30, 3), c(9, 2, 3, 9)])
  expect_identical(f[, -(1:28)], M[, -(1:28)])
  expect_identical(f[5, ], M[5, ])
  expect_identical(f[, 4, drop = FALSE], M[, 4, drop = FALSE])
  expect_identical(f[c(TRUE, FALSE), ], M[c(TRUE, FALSE), ])
  expect_identical(length(f), 900L)
  expect_output(str(f), "factor_file")
  expect_identical(expect_error(f[31, 1], class = "gpucholmod_bad_argument")$argument, "i")
  expect_identical(expect_error(f[1, NA], class = "gpucholmod_bad_argument")$argument, "j")
})

# Calls that are refused, with a message that names what gives a matrix.
expect_unsupported <- function(call, operation, backend, instead) {
  error <- expect_error(call, class = "gpucholmod_not_supported")
  expect_identical(unclass(error)[c("operation", "backend")], list(operation = operation, backend = backend))
  expect_match(conditionMessage(error), instead, fixed = TRUE)
}

test_that("what a handle cannot do names the call that gives a matrix", {
  f <- chol_factor(R, "cpu")
  expect_unsupported(f + 1, "+", "cpu", "as.matrix(f)")
  expect_unsupported(mean(f), "mean()", "cpu", "as.matrix(f)")
  expect_unsupported(as.numeric(f), "as.numeric()", "cpu", "as.matrix(f)")
  expect_unsupported(cbind(1, f), "cbind()", "cpu", "as.matrix(f)")
  expect_unsupported(rbind(chol_batch(array(R, c(dim(R), 1))), 1), "rbind()", "batch", "as.array(f)")
  expect_unsupported(1 + f, "+", "cpu", "as.matrix(f)")
  expect_unsupported(-f, "-", "cpu", "as.matrix(f)")
  expect_unsupported(f == f, "==", "cpu", "as.matrix(f)")
  expect_unsupported(exp(f), "exp()", "cpu", "as.matrix(f)")
  expect_unsupported(max(f), "max()", "cpu", "as.matrix(f)")
  expect_unsupported(f[1, 1] <- 2, "[<-", "cpu", "as.matrix(f)")
  b <- chol_batch(array(R, c(30, 30, 2)))
  expect_unsupported(b[1], "[", "batch", "f[[i]]")
  expect_unsupported(t(b), "t()", "batch", "f[[i]]")
  expect_unsupported(crossprod(b), "crossprod()", "batch", "f[[i]]")
  expect_unsupported(tcrossprod(b, x), "tcrossprod()", "batch", "f[[i]]")
  expect_unsupported(sum(b), "sum()", "batch", "f[[i]]")
  p <- handle_of_nothing()
  class(p) <- c("process_factor", "chol_factor")
  expect_unsupported(p[1, 2], "[", "mpi", "as.matrix(f)")
  expect_unsupported(t(p), "t()", "mpi", "as.matrix(f)")
  expect_unsupported(crossprod(p, 1:3), "crossprod()", "mpi", "as.matrix(f)")
  expect_error(if (getRversion() >= "4.3.0") b %*% x else f %*% x)
  free(f)
  for (use in list(function() f[1, 2], function() t(f), function() crossprod(f, x), function() summary(f))) {
    expect_identical(expect_error(use(), class = "gpucholmod_invalid_factor")$reason, "freed")
  }
  for (use in list(function(x) x[1], function(x) x + 1, function(x) crossprod(x, 1), function(x) t(x), length)) {
    for (fake in list(structure(3, class = "chol_factor"), structure(list(), class = c("cpu_factor", "chol_factor")))) {
      expect_error(use(fake), class = "gpucholmod_error")
    }
  }
  skip_on_os("windows")
  file <- write_factor(R, tempfile())
  on.exit(unlink(file$path))
  expect_unsupported(t(file), "t()", "file", "as.matrix(f)")
  expect_unsupported(file[1], "[ with one index", "file", "as.matrix(f)")
  expect_unsupported(file * 2, "*", "file", "as.matrix(f)")
})

at_each_home("summary() tells the size, the determinant and a bound of the condition", {
  f <- keep(R)
  s <- summary(f)
  expect_identical(s$n, 30L)
  expect_equal(s$logdet, logdet(f))
  expect_equal(unname(s$diagonal), range(diag(R)))
  expect_equal(s$condition_at_least, (max(diag(R)) / min(diag(R)))^2)
  expect_lte(s$condition_at_least, kappa(crossprod(R), exact = TRUE))
  expect_identical(s$modifications, 0L)
  expect_output(print(s), "30 x 30.*determinant.*condition number of A: at least")
  b <- keep_batch(array(c(R, 2 * R), c(30, 30, 2)))
  expect_equal(summary(b)$logdet, logdet(b))
  expect_output(print(summary(b)), "2 of 30 x 30.*determinants of A: from")
  expect_output(print(summary(chol_factor(matrix(0, 0, 0)))), "0 x 0")
})

test_that("summary() of a factor in a file reads its diagonal", {
  skip_on_os("windows")
  f <- write_factor(R, tempfile())
  on.exit(unlink(f$path))
  expect_equal(summary(f)$logdet, logdet(f))
  expect_output(print(summary(f)), "<factor_file> 30 x 30")
})
