# Rows and columns that come, go and move, against chol() of the matrix.

spd <- function(n) crossprod(well_conditioned(n))
named_spd <- function(n) structure(spd(n), dimnames = rep(list(paste0("x", seq_len(n))), 2L))
as_lower <- function(A) t(chol(A))
close_to <- function(x, A, tolerance = 1e-12) expect_equal(x, if (nrow(A)) chol(A) else A, tolerance = tolerance)

test_that("ordinary factors agree with chol(), in both triangles, with names", {
  set.seed(1)
  for (n in c(1, 2, 30, 130)) {
    A <- named_spd(n)
    for (p in unique(pmin(n, c(1, 2, 17)))) {
      for (at in unique(c(1, n %/% 2 + 1 - (p > n %/% 2), n - p + 1))) {
        if (at < 1 || at + p - 1 > n) next
        new <- seq(at, length.out = p)
        less <- A[-new, -new, drop = FALSE]
        close_to(choldelete_gpu(chol(A), new), less)
        close_to(choldelete_gpu(chol(A), rownames(A)[new]), less)
        expect_equal(choldelete_gpu(as_lower(A), new, uplo = "lower"), if (nrow(less)) as_lower(less) else less,
                     tolerance = 1e-12)
        if (nrow(less) == 0L) next
        X <- A[, new]
        close_to(cholinsert_gpu(chol(less), X, at, names = rownames(A)[new]), A)
        expect_equal(cholinsert_gpu(as_lower(less), X, at, uplo = "lower", names = rownames(A)[new]), as_lower(A),
                     tolerance = 1e-12)
        expect_identical(cholinsert_gpu(chol(less), X, at, check = FALSE, names = rownames(A)[new]),
                         list(R = cholinsert_gpu(chol(less), X, at, names = rownames(A)[new]), pivot = 0L))
      }
    }
    for (from in unique(c(1, n %/% 2 + 1, n))) {
      for (to in unique(c(1, n %/% 3 + 1, n))) {
        order <- append(seq_len(n)[-from], from, to - 1L)
        close_to(cholshift_gpu(chol(A), from, to), A[order, order, drop = FALSE])
        expect_equal(cholshift_gpu(as_lower(A), rownames(A)[[from]], to, uplo = "lower"),
                     as_lower(A[order, order, drop = FALSE]), tolerance = 1e-12)
      }
    }
  }
})

test_that("without numbers nothing changes, and a factor may begin and end with nothing", {
  R <- chol(spd(5))
  expect_identical(choldelete_gpu(R, integer()), R)
  expect_identical(cholinsert_gpu(R, matrix(0, 5, 0)), R)
  expect_identical(cholshift_gpu(R, 3, 3), R)
  expect_identical(dim(choldelete_gpu(R, 1:5)), c(0L, 0L))
  f <- chol_factor(matrix(0, 0, 0), "cpu")
  cholinsert_gpu(f, 4, in_place = TRUE)
  expect_identical(as.matrix(f), matrix(2))
  cholinsert_gpu(f, c(2, 5), in_place = TRUE)
  expect_equal(as.matrix(f), chol(matrix(c(4, 2, 2, 5), 2)))
})

test_that("names are carried along, and made where they are given", {
  A <- spd(4)
  R <- chol(A[-2, -2])
  expect_null(dimnames(cholinsert_gpu(R, A[, 2], 2)))
  expect_identical(dimnames(cholinsert_gpu(R, A[, 2], 2, names = "b")), rep(list(c("", "b", "", "")), 2L))
  colnames(R) <- c("a", "c", "d")
  expect_identical(dimnames(cholinsert_gpu(R, A[, 2], 2)), list(NULL, c("a", "", "c", "d")))
  expect_identical(dimnames(cholinsert_gpu(R, A[, 2], 2, names = "b")), list(NULL, c("a", "b", "c", "d")))
  expect_identical(dimnames(choldelete_gpu(R, "c")), list(NULL, c("a", "d")))
  expect_identical(dimnames(cholshift_gpu(R, "a", 3)), list(NULL, c("c", "d", "a")))
})

at_each_home("what a new factor comes from stays as it is, bit for bit; in place gives the same bits", {
  set.seed(2)
  A <- spd(60)
  for (precision in c("double", "single")) {
    f <- keep(chol(A[1:50, 1:50]), precision = precision)
    before <- as.matrix(f)
    calls <- list(function(f, ...) cholinsert_gpu(f, A[, 51:60], ...),
                  function(f, ...) cholinsert_gpu(f, A[c(51:60, 1:50), 51:60], 1, ...),
                  function(f, ...) choldelete_gpu(f, c(1, 30, 50), ...), function(f, ...) cholshift_gpu(f, 40, 3, ...),
                  function(f, ...) cholshift_gpu(f, 3, 40, ...))
    for (call in calls) {
      new <- call(f)
      expect_same(as.matrix(f), before)
      expect_identical(f$modifications, 0L)
      expect_identical(new$modifications, 1L)
      g <- copy_factor(f)
      done <- withVisible(call(g, in_place = TRUE))
      expect_false(done$visible)
      expect_identical(done$value, g)
      expect_same(as.matrix(g), as.matrix(new))
      expect_identical(dim(g), dim(new))
      expect_identical(drift(g), drift(new))
    }
    X <- as.matrix(calls[[1]](f))
    expect_lt(max(abs(crossprod(X) - A)), 100 * eps_of(precision) * max(abs(A)))
  }
})

at_each_home("within the capacity nothing is allocated, and beyond it there is half as much again", {
  A <- spd(40)
  f <- keep(chol(A[1:10, 1:10]), capacity = 20)
  expect_identical(c(f$n, f$capacity), c(10L, 20L))
  if (home == "cpu") expect_identical(f$bytes, 8 * 20^2)
  expect_output(print(f), "10 x 10.*room for 20 x 20")
  for (i in 11:20) cholinsert_gpu(f, A[1:i, i], in_place = TRUE)
  expect_identical(c(f$n, f$capacity), c(20L, 20L))
  cholinsert_gpu(f, A[1:21, 21], in_place = TRUE)
  expect_identical(c(f$n, f$capacity), c(21L, 30L))
  close_to(as.matrix(f), A[1:21, 1:21])
  g <- cholupdate_gpu(f, rep(0.1, 21))
  expect_identical(g$capacity, 30L)
  choldelete_gpu(g, 5:10, in_place = TRUE)
  expect_identical(c(g$n, g$capacity), c(15L, 30L))
  expect_equal(solve(g, 1:15), solve(A[c(1:4, 11:21), c(1:4, 11:21)] + 0.01, 1:15))
  expect_equal(logdet(g), as.numeric(determinant(A[c(1:4, 11:21), c(1:4, 11:21)] + 0.01)$modulus))
  for (bad in list(9, 20.5, NA, "20", 1:2, 1e9, Inf)) {
    expect_identical(expect_error(keep(diag(10), capacity = bad), class = "gpucholmod_bad_argument")$argument,
                     "capacity")
  }
})

at_each_home("what cannot be inserted names the pivot in the new order, and changes nothing", {
  set.seed(3)
  A <- spd(30)
  R <- chol(A)
  f <- keep(R, capacity = 40)
  twice <- function(j, at) { # point j once more: the later of the two is one too many
    x <- append(A[, j], A[j, j] * (1 - 1e-12), at - 1L)
    list(x = x, pivot = if (at > j) at else j + 1L)
  }
  for (case in list(c(5, 31), c(5, 1), c(20, 10), c(10, 20))) {
    new <- twice(case[[1L]], case[[2L]])
    for (call in list(function(...) cholinsert_gpu(R, new$x, case[[2L]], ...),
                      function(...) cholinsert_gpu(f, new$x, case[[2L]], ...),
                      function(...) cholinsert_gpu(f, new$x, case[[2L]], in_place = TRUE, ...))) {
      expect_identical(expect_error(call(), class = "gpucholmod_not_positive_definite")$pivot, as.integer(new$pivot))
      done <- call(check = FALSE)
      expect_identical(done$pivot, as.integer(new$pivot))
    }
    expect_identical(done$R, f)
    expect_same(as.matrix(f), R)
    expect_identical(f$modifications, 0L)
  }
})

at_each_home("two thousand changes in a row stay close to the matrix", {
  set.seed(4)
  for (precision in c("double", "single")) {
    tolerance <- if (precision == "double") 1e-12 else 1e-4
    points <- runif(20)
    covariance <- function(x, y) exp(-0.5 * (outer(x, y, "-") / 0.2)^2) + 0.5 * outer(x, y, "==")
    A <- covariance(points, points)
    f <- keep(chol(A), precision = precision, capacity = 50)
    worst <- 0
    for (i in seq_len(if (precision == "double") 2000 else 300)) {
      n <- length(points)
      what <- sample(c("insert", "delete", "shift", "update", "downdate"), 1L)
      if (what == "insert" && n < 60) {
        p <- sample(3, 1L)
        at <- sample(n + 1L, 1L)
        new <- runif(p)
        order <- append(seq_len(n), n + seq_len(p), at - 1L)
        B <- rbind(cbind(A, covariance(points, new)), cbind(covariance(new, points), covariance(new, new)))
        A <- B[order, order]
        points <- c(points, new)[order]
        cholinsert_gpu(f, A[, seq(at, length.out = p)], at, in_place = TRUE)
      } else if (what == "delete" && n > 10) {
        gone <- sample(n, sample(4, 1L))
        A <- A[-gone, -gone]
        points <- points[-gone]
        choldelete_gpu(f, gone, in_place = TRUE)
      } else if (what == "shift") {
        move <- sample(n, 2L, replace = TRUE)
        order <- append(seq_len(n)[-move[[1L]]], move[[1L]], move[[2L]] - 1L)
        A <- A[order, order]
        points <- points[order]
        cholshift_gpu(f, move[[1L]], move[[2L]], in_place = TRUE)
      } else if (what %in% c("update", "downdate")) {
        V <- as_floats(normal(n, 2, 0.05))
        A <- A + (if (what == "update") 1 else -1) * tcrossprod(V)
        cholupdate_gpu(f, V, what == "downdate", in_place = TRUE)
      }
      if (i %% 20 == 0) { # nearly singular after many downdates: begin again
        worst <- max(worst, max(abs(crossprod(as.matrix(f)) - A)) / max(abs(A)))
        if (min(eigen(A, TRUE, TRUE)$values) < 0.2) {
          A <- covariance(points, points)
          f <- keep(chol(A), precision = precision, capacity = 50)
        }
      }
    }
    expect_lt(worst, tolerance)
    expect_lt(drift(f), if (precision == "double") 1e-10 else 1e-2)
  }
})

# A least squares fit as a factor, z and rss; what it is with other variables.
fit <- function(X, y) {
  R <- chol(crossprod(X))
  z <- backsolve(R, crossprod(X, y), transpose = TRUE)
  list(R = R, z = z, rss = colSums(as.matrix(y)^2) - colSums(z^2))
}
expect_fit <- function(done, X, y) {
  expected <- fit(X, y)
  expect_equal(as.matrix(done$R), expected$R)
  expect_equal(unname(as.matrix(done$z)), expected$z)
  expect_equal(done$rss, expected$rss)
}

at_each_home("right-hand sides come along: variables come, go and move in a fit", {
  set.seed(5)
  X <- normal(200, 30)
  y <- rowSums(X[, 1:5]) + normal(200, 2)
  whole <- fit(X, y)
  f <- keep(whole$R, capacity = 30)
  gone <- c(2, 7, 30)
  less <- choldelete_gpu(f, gone, z = whole$z, rss = whole$rss)
  expect_fit(less, X[, -gone], y)
  at <- 4
  order <- append(seq_len(30)[-gone], gone, at - 1L)
  more <- cholinsert_gpu(less$R, crossprod(X[, order], X[, gone]), at, z = less$z, b = crossprod(X[, gone], y),
                         rss = less$rss)
  expect_fit(more, X[, order], y)
  moved <- cholshift_gpu(more$R, 20, 3, z = more$z)
  expect_fit(c(moved, list(rss = more$rss)), X[, append(order[-20], order[[20]], 2)], y)
  # in place, and of an ordinary factor
  expect_equal(choldelete_gpu(f, gone, z = whole$z, in_place = TRUE)$z, less$z)
  expect_fit(choldelete_gpu(whole$R, gone, z = whole$z, rss = whole$rss), X[, -gone], y)
  expect_fit(cholinsert_gpu(chol(crossprod(X[, -gone])), crossprod(X[, order], X[, gone]), at, z = less$z,
                            b = crossprod(X[, gone], y), rss = less$rss),
             X[, order], y)
  expect_equal(cholshift_gpu(as.matrix(more$R), 20, 3, z = more$z)$z, moved$z)
})

test_that("z keeps its form, with names by the new order", {
  A <- spd(4)
  R <- chol(A)
  z <- c(a = 1, b = 2, c = 3, d = 4)
  expect_identical(names(choldelete_gpu(R, 2, z = z)$z), c("a", "c", "d"))
  expect_identical(names(cholshift_gpu(R, 1, 4, z = z)$z), c("b", "c", "d", "a"))
  X <- c(0.1, 0.1, 5, 0.1, 0.1)
  expect_identical(names(cholinsert_gpu(R, X, 3, z = z, b = 1, names = "new")$z), c("a", "b", "new", "c", "d"))
  expect_identical(names(cholinsert_gpu(R, X, 3, z = z, b = 1)$z), c("a", "b", "", "c", "d"))
  expect_null(names(cholinsert_gpu(R, X, 3, z = 1:4, b = 1, names = "new")$z))
  Z <- matrix(1:8, 4, dimnames = list(letters[1:4], c("u", "v")))
  expect_identical(dimnames(choldelete_gpu(R, c(1, 3), z = Z)$z), list(c("b", "d"), c("u", "v")))
  expect_identical(dim(choldelete_gpu(R, 1:4, z = Z)$z), c(0L, 2L))
  same <- cholinsert_gpu(R, replace(X, 3, -1), 3, z = z, b = 1, rss = 100, check = FALSE)
  expect_identical(same, list(R = R, z = z, rss = 100, pivot = 3L))
})

test_that("right-hand sides that do not fit, and a sum of squares that would be negative", {
  R <- chol(spd(4))
  X <- c(0, 0, 0, 0, 1)
  refused <- function(call) expect_error(call, class = "gpucholmod_bad_argument")$argument
  expect_identical(refused(cholinsert_gpu(R, X, b = 1)), "z")
  expect_identical(refused(cholinsert_gpu(R, X, z = 1:4)), "b")
  expect_identical(refused(choldelete_gpu(R, 1, rss = 1)), "z")
  expect_identical(refused(choldelete_gpu(R, 1, z = 1:4, rss = -1)), "rss")
  expect_error(cholinsert_gpu(R, X, z = 1:3, b = 1), class = "gpucholmod_dimension_mismatch")
  expect_error(cholinsert_gpu(R, X, z = 1:4, b = 1:2), class = "gpucholmod_dimension_mismatch")
  expect_error(cholshift_gpu(R, 1, 2, z = 1:5), class = "gpucholmod_dimension_mismatch")
  expect_identical(unclass(expect_error(cholinsert_gpu(R, X, z = 1:4, b = NaN),
                                        class = "gpucholmod_not_finite"))$argument, "b")
  expect_identical(unclass(expect_error(choldelete_gpu(R, 1, z = c(1, NA, 2, 3)),
                                        class = "gpucholmod_not_finite"))$argument, "z")
  expect_warning(done <- cholinsert_gpu(R, X, z = 1:4, b = 3, rss = 1), class = "gpucholmod_negative_rss")
  expect_identical(done$rss, NaN)
  expect_equal(done$z, c(1:4, 3))
})

test_that("arguments that cannot be used are named", {
  R <- structure(chol(spd(5)), dimnames = list(NULL, letters[1:5]))
  f <- chol_factor(R, "cpu")
  refused <- function(call) expect_error(call, class = "gpucholmod_bad_argument")$argument
  for (g in list(R, f)) {
    for (bad in list(6, -6, 1.5, NA, "z", c(-1, 2), rep(TRUE, 6), NULL)) {
      expect_identical(refused(choldelete_gpu(g, bad)), "index")
    }
    for (bad in list(0, 7, NA, 1:2, "a")) expect_identical(refused(cholinsert_gpu(g, 1:6, bad)), "at")
    for (bad in list(0, 6, NA, 1:2, "z")) expect_identical(refused(cholshift_gpu(g, bad, 1)), "from")
    for (bad in list(0, 6, NA, 1:2, "a")) expect_identical(refused(cholshift_gpu(g, 1, bad)), "to")
    expect_identical(refused(cholinsert_gpu(g, 1:6, names = c("a", "b"))), "names")
    expect_identical(refused(cholinsert_gpu(g, 1:6, check = NA)), "check")
    expect_identical(refused(cholinsert_gpu(g, 1:6, 1, 2)), "...")
    expect_identical(expect_error(cholinsert_gpu(g, 1:5), class = "gpucholmod_dimension_mismatch")$expected, 6L)
    expect_identical(expect_error(cholinsert_gpu(g, "a"), class = "gpucholmod_not_numeric")$argument, "X")
    error <- expect_error(cholinsert_gpu(g, cbind(1:7, c(1:5, NA, 7)), 3), class = "gpucholmod_not_finite")
    expect_identical(unclass(error)[c("argument", "row", "col")], list(argument = "X", row = 6, col = 2))
  }
  expect_identical(refused(choldelete_gpu(R, 1, uplo = NULL)), "uplo")
  expect_same(as.matrix(f), R)
  expect_error(cholshift_gpu(handle_of_nothing("freed"), 1, 2), class = "gpucholmod_invalid_factor")
  expect_identical(expect_error(choldelete_gpu(replace(R, 1, 1e-310), 1), class = "gpucholmod_bad_diagonal")$index, 1)
})

test_that("numbers of any size", {
  A <- spd(12)
  for (size in c(1e-200, 1e200)) {
    R <- chol(A) * sqrt(size)
    expect_equal(choldelete_gpu(R, 3:5) / sqrt(size), chol(A[-(3:5), -(3:5)]))
    expect_equal(cholinsert_gpu(choldelete_gpu(R, 3:5), A[, 3:5] * size, 3) / sqrt(size), chol(A))
    expect_equal(cholshift_gpu(R, 9, 2) / sqrt(size), chol(A[c(1, 9, 2:8, 10:12), c(1, 9, 2:8, 10:12)]))
  }
})

at_each_home("what changes nothing does not count", {
  f <- keep(chol(spd(5)))
  choldelete_gpu(f, integer(), in_place = TRUE)
  cholinsert_gpu(f, matrix(0, 5, 0), in_place = TRUE)
  cholshift_gpu(f, 3, 3, in_place = TRUE)
  expect_identical(c(f$modifications, drift(f)), c(0, 0))
  choldelete_gpu(f, 1:5, in_place = TRUE)
  expect_identical(drift(f), 0)
})

test_that("an argument that changes the factor while it is evaluated is an error", {
  f <- chol_factor(diag(2), "cpu", capacity = 6)
  grow <- function(value) {
    cholinsert_gpu(f, c(numeric(f$n), 1), in_place = TRUE)
    value
  }
  expect_identical(expect_error(cholupdate_gpu(f, grow(c(1, 1)), in_place = TRUE),
                                class = "gpucholmod_bad_argument")$argument, "V")
  expect_identical(expect_error(cholinsert_gpu(f, grow(c(1, 1, 1, 9)), in_place = TRUE),
                                class = "gpucholmod_bad_argument")$argument, "X")
  expect_identical(as.matrix(f), diag(4))
})

test_that("names of nothing are no names", {
  f <- choldelete_gpu(chol_factor(structure(diag(2), dimnames = list(NULL, c("a", "b"))), "cpu"), 1:2)
  expect_identical(dimnames(f), list(NULL, character()))
})
