# Right-hand sides that come along with a batch.

members <- function(n = 4L, k = 2L, m = 3L, b = 11L) {
  set.seed(n + 10 * k + 100 * m)
  A <- replicate(b, crossprod(matrix(rnorm(3 * n * n), 3 * n)))
  list(R = array(apply(A, 3, chol), c(n, n, b)), V = array(rnorm(n * k * b) / 4, c(n, k, b)),
       z = array(rnorm(n * m * b), c(n, m, b)), y = array(rnorm(k * m * b), c(k, m, b)),
       rss = matrix(rexp(m * b) + 10, m, b))
}
# What cholupdate_gpu() makes of each member.
one_by_one <- function(p, weights = NULL, scale = 1) {
  b <- dim(p$R)[[3L]]
  each <- lapply(seq_len(b), function(i) {
    cholupdate_gpu(p$R[, , i], matrix(p$V[, , i], nrow(p$R)), weights = weights, scale = rep_len(scale, b)[[i]],
                   z = matrix(p$z[, , i], nrow(p$R)), y = matrix(p$y[, , i], nrow(p$y)), rss = p$rss[, i],
                   backend = "cpu")
  })
  list(R = vapply(each, `[[`, p$R[, , 1], "R"), z = vapply(each, `[[`, p$z[, , 1], "z"),
       rss = vapply(each, `[[`, p$rss[, 1], "rss"))
}
numbers <- function(R) if (inherits(R, "chol_batch")) as.array(R) else R

at_each_home("they are those that cholupdate_gpu() makes of each member", {
  for (k in c(1L, 2L, 9L)) {
    p <- members(k = k)
    for (weights in list(NULL, rep(c(1, -0.01), length.out = k))) for (scale in list(1, seq(0.5, 1.5, by = 0.1))) {
      expected <- one_by_one(p, weights, scale)
      for (R in list(p$R, keep_batch(p$R))) {
        got <- cholupdate_batch(R, p$V, weights = weights, scale = scale, z = p$z, y = p$y, rss = p$rss)
        expect_named(got, c("R", "z", "rss"))
        expect_equal(numbers(got$R), expected$R, tolerance = 1e-12)
        expect_equal(got$z, expected$z, tolerance = 1e-12)
        expect_equal(got$rss, expected$rss, tolerance = 1e-12)
      }
    }
  }
})

at_each_home("in place, and in single precision", {
  p <- members()
  expected <- one_by_one(p)
  for (precision in c("double", "single")) {
    R <- keep_batch(p$R, precision = precision)
    got <- withVisible(cholupdate_batch(R, p$V, z = p$z, y = p$y, in_place = TRUE))
    expect_true(got$visible)
    expect_identical(got$value$R, R)
    expect_named(got$value, c("R", "z"))
    expect_equal(got$value$z, expected$z, tolerance = if (precision == "double") 1e-12 else 1e-5)
    expect_equal(as.array(R), expected$R, tolerance = if (precision == "double") 1e-12 else 1e-5)
  }
})

at_each_home("one of each member is a matrix, of names too", {
  p <- members(m = 1L)
  z <- matrix(p$z, 4, dimnames = list(letters[1:4], NULL))
  for (R in list(p$R, keep_batch(p$R))) {
    got <- cholupdate_batch(R, p$V, z = z, y = matrix(p$y, 2), rss = as.vector(p$rss))
    expected <- one_by_one(p)
    expect_equal(got$z, matrix(expected$z, 4, dimnames = dimnames(z)), tolerance = 1e-12)
    expect_equal(got$rss, as.vector(expected$rss), tolerance = 1e-12)
  }
  one <- members(k = 1L, m = 1L)
  of_one <- cholupdate_batch(one$R, one$V, z = matrix(one$z, 4), y = as.vector(one$y))
  expect_equal(of_one$z, matrix(one_by_one(one)$z, 4), tolerance = 1e-12)
})

test_that("members are not taken by name", {
  p <- members(m = 1L, k = 1L, b = 2L)
  dimnames(p$R) <- list(NULL, NULL, c("a", "b"))
  z <- matrix(p$z, 4, dimnames = list(NULL, c("a", "b")))
  y <- c(a = 1, b = 2)
  expect_equal(cholupdate_batch(p$R, p$V, z = z, y = y, rss = c(a = 9, b = 9))$rss > 0, c(a = TRUE, b = TRUE))
  for (R in list(p$R, chol_batch(p$R))) {
    expect_error(cholupdate_batch(R, p$V, z = z[, 2:1], y = y), "another order", class = "gpucholmod_bad_argument")
    expect_error(cholupdate_batch(R, p$V, z = z, y = rev(y)), "another order", class = "gpucholmod_bad_argument")
  }
  expect_equal(cholupdate_batch(p$R, p$V, z = z, y = 3)$z, cholupdate_batch(p$R, p$V, z = z, y = c(3, 3))$z)
})

test_that("one for all members comes back for each", {
  p <- members()
  p$z[] <- p$z[, , 1]
  p$y[] <- p$y[, , 1]
  got <- cholupdate_batch(p$R, p$V, z = p$z[, , 1, drop = FALSE], y = p$y[, , 1, drop = FALSE])
  expect_equal(got$z, one_by_one(p)$z, tolerance = 1e-12)
  single <- members(m = 1L)
  single$z[] <- 1:4
  got <- cholupdate_batch(single$R, single$V, z = 1:4, y = matrix(single$y, 2))
  expect_equal(got$z, matrix(one_by_one(single)$z, 4), tolerance = 1e-12)
})

at_each_home("members that fail keep theirs", {
  p <- members()
  p$V[, 1, 3] <- 100
  for (R in list(p$R, keep_batch(p$R))) {
    got <- cholupdate_batch(R, p$V / 4, TRUE, z = p$z, y = p$y, rss = p$rss + 50, check = FALSE)
    expect_named(got, c("R", "z", "rss", "pivot"))
    expect_identical(which(got$pivot > 0), 3L)
    expect_identical(got$z[, , 3], p$z[, , 3])
    expect_identical(got$rss[, 3], p$rss[, 3] + 50)
    alone <- cholupdate_gpu(p$R[, , 4], p$V[, , 4] / 4, TRUE, z = p$z[, , 4], y = p$y[, , 4], backend = "cpu")
    expect_equal(got$z[, , 4], alone$z, tolerance = 1e-12)
    expect_error(cholupdate_batch(R, p$V / 4, TRUE, z = p$z, y = p$y), class = "gpucholmod_not_positive_definite")
  }
})

at_each_home("arrays, whose rows with a negative diagonal are turned, those of z too", {
  if (home == "cuda") skip_without_gpu()
  p <- members()
  turned <- p
  turned$R[2, , 5] <- -p$R[2, , 5]
  turned$z[2, , 5] <- -p$z[2, , 5]
  update <- function(p, ...) cholupdate_batch(p$R, p$V, ..., z = p$z, y = p$y, rss = p$rss, backend = home)
  expect_equal(update(turned), update(p), tolerance = 1e-14)
  expect_equal(update(p), one_by_one(p), tolerance = 1e-12)
  turned$V[, 1, 5] <- 100
  failed <- update(turned, TRUE, check = FALSE)
  expect_gt(failed$pivot[[5]], 0)
  expect_identical(failed$R[, , 5], turned$R[, , 5])
  expect_identical(failed$z[, , 5], turned$z[, , 5])
})

at_each_home("no columns, and right-hand sides of very different sizes", {
  p <- members(k = 1L)
  by <- c(1, 1e-250, 1e250)
  sized <- p
  for (s in 1:3) {
    sized$z[, s, ] <- p$z[, s, ] * by[[s]]
    sized$y[, s, ] <- p$y[, s, ] * by[[s]]
  }
  expected <- one_by_one(p)
  for (R in list(p$R, keep_batch(p$R))) {
    got <- cholupdate_batch(R, p$V, z = sized$z, y = sized$y)
    for (s in 1:3) expect_equal(got$z[, s, ] / by[[s]], expected$z[, s, ], tolerance = 1e-12)
    none <- cholupdate_batch(R, p$V[, 0, , drop = FALSE], scale = 0.25, z = p$z, y = p$y[0, , , drop = FALSE],
                             rss = p$rss)
    expect_equal(none$z, p$z / 2)
    expect_equal(none$rss, p$rss / 4)
  }
})

at_each_home("members of several orders keep the rows of z that they have not", {
  p <- members()
  orders <- rep_len(c(4L, 2L), 11L)
  V <- p$V
  V[3:4, , orders == 2L] <- 0
  R <- lapply(1:11, function(i) p$R[seq_len(orders[[i]]), seq_len(orders[[i]]), i])
  held <- keep_batch(R)
  got <- cholupdate_batch(held, V, scale = 0.5, z = p$z, y = p$y, rss = p$rss)
  alone <- cholupdate_gpu(R[[2]], V[1:2, , 2], scale = 0.5, z = p$z[1:2, , 2], y = p$y[, , 2],
                          rss = p$rss[, 2], backend = "cpu")
  expect_equal(got$z[1:2, , 2], alone$z, tolerance = 1e-12)
  expect_identical(got$z[3:4, , 2], p$z[3:4, , 2])
  expect_equal(got$rss[, 2], alone$rss, tolerance = 1e-12)
})

at_each_home("sums that become negative are NaN, with a warning that tells whose", {
  p <- members()
  p$rss[] <- 1e-3
  for (R in list(p$R, keep_batch(p$R))) {
    warned <- expect_warning(got <- cholupdate_batch(R, p$V / 100, TRUE, z = p$z, y = replace(p$y, 2 * 3 * 4 + 3, 100),
                                                     rss = p$rss + 50), class = "gpucholmod_negative_rss")
    expect_identical(warned$members, 5L)
    expect_identical(warned$columns, 2L)
    expect_identical(which(is.na(got$rss)), 14L)
  }
})

test_that("arguments that do not fit are named", {
  p <- members()
  R <- chol_batch(p$R)
  mismatch <- "gpucholmod_dimension_mismatch"
  expect_error(cholupdate_batch(R, p$V, y = p$y), "'z' is missing|'z'", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_batch(R, p$V, z = p$z), "'y' is missing|'y'", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_batch(R, p$V, z = p$z[-1, , ], y = p$y), "'z' must have 4 rows", class = mismatch)
  expect_error(cholupdate_batch(R, p$V, z = p$z, y = p$y[-1, , , drop = FALSE]), "'y' must have 2 rows",
               class = mismatch)
  expect_error(cholupdate_batch(R, p$V, z = p$z, y = p$y[, -1, ]), "'y' has 2 columns", class = mismatch)
  expect_error(cholupdate_batch(R, p$V, z = p$z, y = p$y, rss = 1), "'rss' has 1", class = mismatch)
  expect_error(cholupdate_batch(R, p$V, z = p$z, y = p$y, rss = -p$rss), class = "gpucholmod_bad_argument")
  expect_error(cholupdate_batch(R, p$V, z = p$z[, , -1], y = p$y), "'z' is for 10 members", class = mismatch)
  expect_error(cholupdate_batch(list(diag(2)), list(1:2), z = 1:2, y = 1), "not with a list",
               class = "gpucholmod_bad_argument")
  wrong <- expect_error(cholupdate_batch(R, p$V, z = replace(p$z, 4 * 3 * 2 + 5, NA), y = p$y),
                        class = "gpucholmod_not_finite")
  expect_identical(wrong$member, 3)
  expect_identical(wrong$argument, "z")
  expect_equal(as.array(R), p$R)
})
