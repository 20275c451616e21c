# Right-hand sides of many factors whose rows and columns come and go.

b <- 11L

# Least squares fits of m responses by n of `most` variables: list(f, x, y, z, rss).
fits <- function(n, m, most, keep) {
  x <- array(rnorm(3 * most * most * b), c(3 * most, most, b))
  y <- array(rnorm(3 * most * m * b), c(3 * most, m, b))
  f <- keep(factors_of(x[, seq_len(n), , drop = FALSE]))
  z <- solve_forward(f, products(x[, seq_len(n), , drop = FALSE], y))
  list(f = f, x = x, y = y, z = z, rss = apply(y^2, 2:3, sum) - apply(z^2, 2:3, sum))
}
factors_of <- function(x) array(apply(x, 3L, function(x) chol(crossprod(x))), c(dim(x)[2L], dim(x)[2:3]))
products <- function(x, y) {
  array(vapply(seq_len(b), function(m) as.vector(crossprod(x[, , m], y[, , m])), numeric(dim(x)[2L] * dim(y)[2L])),
        c(dim(x)[2L], dim(y)[2L], b))
}
# Expects list(R, z, rss) to be the fits by these variables, the same of all members or a matrix of a column of each.
expect_fits <- function(got, p, variables) {
  for (i in seq_len(b)) {
    own <- if (is.matrix(variables)) variables[, i] else variables
    fit <- lm.fit(p$x[, own, i], as.matrix(p$y[, , i]))
    expect_equal(got$R[[i]], chol(crossprod(p$x[, own, i])))
    beta <- backsolve(got$R[[i]], matrix(got$z[, , i], length(own)))
    expect_equal(beta, unname(as.matrix(fit$coefficients)))
    expect_equal(got$rss[, i], colSums(as.matrix(fit$residuals)^2))
  }
}

at_each_home("fits get and lose variables as fits by all of them say", {
  set.seed(1)
  for (m in c(1L, 3L)) {
    p <- fits(4L, m, 7L, keep_batch)
    insert <- function(f, z, rss, new, old, at, ...) {
      place <- if (is.null(at)) length(old) + 1L else at
      order <- vapply(rep_len(place, b), function(at) append(old, new, at - 1L), integer(length(old) + length(new)))
      X <- vapply(seq_len(b), function(i) crossprod(p$x[, order[, i], i], p$x[, new, i]),
                  matrix(0, nrow(order), length(new)))
      list(order = order, value = cholinsert_gpu(f, X, at, z = z, rss = rss, ...,
                                                 b = products(p$x[, new, , drop = FALSE], p$y)))
    }
    for (at in list(NULL, 1L, rep_len(1:5, b))) {
      done <- insert(p$f, p$z, p$rss, 5:6, 1:4, at)
      expect_named(done$value, c("R", "z", "rss"))
      expect_fits(done$value, p, done$order)
    }
    kept <- copy_factor(p$f)
    grown <- withVisible(insert(kept, p$z, p$rss, 7L, 1:4, 2L, in_place = TRUE)$value)
    expect_true(grown$visible)
    expect_identical(grown$value$R, kept)
    expect_fits(grown$value, p, c(1L, 7L, 2:4))
    less <- choldelete_gpu(kept, c(1L, 3L), z = grown$value$z, rss = grown$value$rss)
    expect_fits(less, p, c(7L, 3:4))
    each <- rbind(rep_len(1:5, b))
    own <- choldelete_gpu(kept, each, z = grown$value$z, rss = grown$value$rss, in_place = TRUE)
    expect_fits(own, p, apply(each, 2L, function(gone) c(1L, 7L, 2:4)[-gone]))
  }
})

at_each_home("the forms of z, b and rss are those of the caller, with names", {
  set.seed(2)
  p <- fits(3L, 1L, 4L, keep_batch)
  z <- matrix(p$z, 3L, dimnames = list(letters[1:3], paste0("m", 1:b)))
  X <- vapply(1:b, function(i) crossprod(p$x[, c(1, 4, 2, 3), i], p$x[, 4, i]), numeric(4))
  new <- products(p$x[, 4, , drop = FALSE], p$y)
  got <- cholinsert_gpu(p$f, X, 2, z = z, b = as.vector(new), names = "new")
  expect_identical(dimnames(got$z), list(c("a", "new", "b", "c"), paste0("m", 1:b)))
  expect_named(got, c("R", "z"))
  full <- cholinsert_gpu(p$f, X, 2, z = p$z, b = new, rss = c(p$rss))
  expect_identical(dim(full$z), c(4L, 1L, b))
  expect_null(dim(full$rss))
  expect_equal(c(full$z), c(got$z))
  less <- choldelete_gpu(got$R, 2, z = got$z)
  expect_identical(dimnames(less$z), dimnames(z))
  expect_equal(less$z, z)
  places <- rep_len(2:3, b)
  own <- vapply(1:b, function(i) crossprod(p$x[, append(1:3, 4, places[i] - 1), i], p$x[, 4, i]), numeric(4))
  placed <- cholinsert_gpu(p$f, own, places, z = z, b = new)
  expect_identical(dimnames(placed$z), list(NULL, paste0("m", 1:b)))
  common <- cholinsert_gpu(p$f, X, 2, z = 1:3, b = 4)
  expect_equal(common$z, cholinsert_gpu(p$f, X, 2, z = matrix(1:3, 3, b), b = rep(4, b))$z)
  none <- cholinsert_gpu(p$f, array(0, c(3, 0, b)), z = z, b = matrix(0, 0, b), rss = 1:b)
  expect_identical(none$z, z)
  expect_equal(none$rss, 1:b)
  expect_identical(choldelete_gpu(p$f, integer(), z = z)$z, z)
  gone <- choldelete_gpu(p$f, 1:3, z = z, rss = p$rss)
  expect_identical(dim(gone$z), c(0L, b))
  expect_equal(gone$rss, p$rss + colSums(z^2), ignore_attr = TRUE)
})

at_each_home("members that stay keep theirs, and orders may differ", {
  set.seed(3)
  p <- fits(3L, 2L, 4L, keep_batch)
  X <- vapply(1:b, function(i) crossprod(p$x[, , i], p$x[, 4, i]), numeric(4))
  X[4, c(2, 11)] <- 0
  new <- products(p$x[, 4, , drop = FALSE], p$y)
  before <- as.array(p$f)
  expect_error(cholinsert_gpu(p$f, X, z = p$z, b = new, in_place = TRUE), class = "gpucholmod_not_positive_definite")
  expect_identical(as.array(p$f), before)
  got <- cholinsert_gpu(p$f, X, z = p$z, b = new, rss = p$rss, check = FALSE)
  expect_named(got, c("R", "z", "rss", "pivot"))
  expect_identical(which(got$pivot > 0L), c(2L, 11L))
  expect_identical(got$z[, , 11], rbind(p$z[, , 11], 0))
  expect_identical(got$rss[, 2], p$rss[, 2])
  alone <- cholinsert_gpu(p$f[[3]], X[, 3], z = p$z[, , 3], b = new[, , 3], rss = p$rss[, 3])
  expect_equal(got$z[, , 3], alone$z)
  expect_equal(got$rss[, 3], alone$rss)
  less <- choldelete_gpu(got$R, 1, z = got$z, rss = got$rss)
  expect_equal(less$z[, , 11], rbind(choldelete_gpu(p$f[[11]], 1, z = p$z[, , 11])$z, 0))
  all <- cholinsert_gpu(p$f, replace(X, 4 * 1:b, 0), z = p$z, b = new, check = FALSE)
  expect_identical(all$z, p$z)
  named <- matrix(p$z[, 1, ], 3L, dimnames = list(letters[1:3], NULL))
  stays <- cholinsert_gpu(p$f, replace(X, 4 * 1:b, 0), z = named, b = rep(1, b), check = FALSE)
  expect_identical(stays$z, named)
  expect_identical(dim(all$R), c(3L, 3L, b))
})

test_that("a sum of squares that would be negative is NaN, with a warning", {
  set.seed(4)
  p <- fits(3L, 2L, 4L, function(R) chol_batch(R, "cpu"))
  X <- vapply(1:b, function(i) crossprod(p$x[, , i], p$x[, 4, i]), numeric(4))
  new <- products(p$x[, 4, , drop = FALSE], p$y)
  new[1, 2, 5] <- 1e3
  seen <- expect_warning(got <- cholinsert_gpu(p$f, X, z = p$z, b = new, rss = p$rss),
                         class = "gpucholmod_negative_rss")
  expect_identical(c(seen$members, seen$columns), c(5L, 2L))
  expect_identical(which(is.nan(got$rss)), 10L)
})

at_each_home("what does not fit is refused, and nothing changes", {
  set.seed(5)
  p <- fits(3L, 2L, 4L, keep_batch)
  X <- vapply(1:b, function(i) crossprod(p$x[, , i], p$x[, 4, i]), numeric(4))
  new <- products(p$x[, 4, , drop = FALSE], p$y)
  before <- as.array(p$f)
  insert <- function(...) cholinsert_gpu(p$f, X, ..., in_place = TRUE)
  mismatch <- "gpucholmod_dimension_mismatch"
  expect_error(insert(b = new), "'z' is missing, to which 'b' and 'rss' belong", class = "gpucholmod_bad_argument")
  expect_error(insert(z = p$z), "'b' is missing: it has a row for each column of 'X'",
               class = "gpucholmod_bad_argument")
  expect_error(insert(z = p$z[-1, , ], b = new), "'z' must have 3 rows", class = mismatch)
  expect_error(insert(z = p$z, b = new[, 1, , drop = FALSE]), "'b' has 1 columns", class = mismatch)
  expect_error(insert(z = p$z, b = new, rss = 1), "'rss' has 1 numbers", class = mismatch)
  wrong <- expect_error(insert(z = p$z, b = replace(new, 8, NA)), class = "gpucholmod_not_finite")
  expect_identical(wrong[c("argument", "member", "row", "col")], list(argument = "b", member = 4, row = 1, col = 2))
  wrong <- expect_error(choldelete_gpu(p$f, 1, z = replace(p$z, 8, Inf), in_place = TRUE),
                        class = "gpucholmod_not_finite")
  expect_identical(wrong[c("argument", "member", "row", "col")], list(argument = "z", member = 2, row = 2, col = 1))
  expect_error(choldelete_gpu(p$f, 1, rss = p$rss), "'z' is missing, to which 'rss' belongs",
               class = "gpucholmod_bad_argument")
  expect_identical(as.array(p$f), before)
})
