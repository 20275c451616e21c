# Right-hand sides that come along with a modification: z, y and rss.

# What LINPACK's dchud and dchdd would do, by normal equations in double precision, of a well-conditioned problem.
by_equations <- function(R, V, w, scale, z, y, rss) {
  A <- scale * crossprod(R) + V %*% (w * t(V))
  now <- backsolve(chol(A), scale * crossprod(R, z) + V %*% (w * y), transpose = TRUE)
  list(z = now, rss = scale * (rss + colSums(z^2)) + colSums(w * y^2) - colSums(now^2))
}

carrying <- c(cpu_methods, cuda_methods)[vapply(c(cpu_methods, cuda_methods), function(how) {
  !isTRUE(how$method %in% c("refactor", "reference", "panel"))
}, NA)]

for (name in names(carrying)) {
  test_that(paste("right-hand sides come along:", name), {
    how <- carrying[[name]]
    if (how$backend == "cuda") skip_without_gpu()
    set.seed(3)
    for (n in c(1, 30, 140)) for (k in c(0, 1, 5, 33)) for (m in c(1, 3)) for (uplo in c("upper", "lower")) {
      R <- well_conditioned(n)
      V <- matrix(rnorm(n * k) / sqrt(n * max(k, 1)), n)
      w <- rep_len(c(1, -0.1, 0.5, 0), k)
      z <- matrix(rnorm(n * m), n)
      y <- matrix(rnorm(k * m), k, m)
      expected <- by_equations(R, V, w, 0.97, z, y, rep(2, m))
      made <- do.call(cholupdate_gpu, c(list(if (uplo == "lower") t(R) else R, V, weights = w, scale = 0.97, z = z,
                                             y = y, rss = rep(2, m),
                                             uplo = uplo), how))
      alone <- do.call(cholupdate_gpu, c(list(if (uplo == "lower") t(R) else R, V, weights = w, scale = 0.97,
                                              uplo = uplo), how))
      expect_identical(made$R, alone)
      expect_equal(made[c("z", "rss")], expected, tolerance = 1e-10, label = paste(n, k, m, uplo))
    }
    R <- well_conditioned(90)
    rounded <- do.call(cholupdate_gpu, c(list(as_floats(R), rep(0.1, 90), z = 1:90, y = 2, rss = 1,
                                              precision = "single"), how))
    expect_equal(rounded[c("z", "rss")],
                 lapply(by_equations(as_floats(R), cbind(rep(0.1, 90)), 1, 1, matrix(1:90), matrix(2), 1), drop),
                 tolerance = 1e-4)
  })
}

test_that("handles, files and factors that are overwritten take right-hand sides along", {
  set.seed(4)
  R <- well_conditioned(70)
  V <- matrix(rnorm(140) / 20, 70)
  z <- rnorm(70)
  y <- rnorm(2)
  expected <- lapply(by_equations(R, V, c(1, 1), 1, matrix(z), matrix(y), 5), drop)

  if (.Platform$OS.type != "windows") {
    f <- write_factor(R, tempfile())
    made <- cholupdate_gpu(f, V, output = tempfile(), z = z, y = y, rss = 5, backend = "cpu")
    expect_equal(made[c("z", "rss")], expected)
    expect_s3_class(made$R, "factor_file")
    unlink(c(f$path, made$R$path))
  }
  S <- R + 0
  suppressMessages(made <- cholupdate_overwrite(S, V, z = z, y = y, rss = 5, backend = "cpu"))
  expect_equal(made, expected)
  expect_equal(S, chol(crossprod(R) + tcrossprod(V)))

  skip_without_gpu()
  for (in_place in c(FALSE, TRUE)) for (method in c("persistent", "stepwise")) {
    g <- gpu_factor(R)
    made <- cholupdate_gpu(g, V, z = z, y = y, rss = 5, in_place = in_place, method = method)
    expect_equal(made[c("z", "rss")], expected)
    expect_equal(as.matrix(made$R), S)
    expect_identical(identical(made$R, g), in_place)
  }
})

test_that("what comes along has the form in which it was given", {
  R <- diag(3)
  z <- matrix(1:6, 3, dimnames = list(letters[1:3], c("p", "q")))
  made <- cholupdate_gpu(R, 1:3, z = z, y = c(1, 2))
  expect_identical(dimnames(made$z), dimnames(z))
  expect_named(made, c("R", "z"))
  expect_null(dim(cholupdate_gpu(R, 1:3, z = 1:3, y = 1)$z))
  expect_identical(cholupdate_gpu(R, 1:3, z = c(1, 2, 3), y = 1, scale = 1, weights = 0)$z, c(1, 2, 3))
  expect_named(cholupdate_gpu(R, 1:3, z = 1:3, y = 1, rss = 1, check = FALSE), c("R", "z", "rss", "pivot"))
  rss <- c(u = 20, v = 30)
  Z <- cbind(u = 1:3, v = 3:1)
  f <- chol_factor(R, backend = "cpu")
  expect_named(cholupdate_gpu(R, 1:3, z = Z, y = t(1:2), rss = rss)$rss, names(rss))
  expect_named(cholupdate_gpu(f, 1:3, z = Z, y = t(1:2), rss = rss)$rss, names(rss))
  expect_named(cholinsert_gpu(R, c(0, 0, 0, 1), z = Z, b = t(1:2), rss = rss)$rss, names(rss))
  expect_named(choldelete_gpu(f, 2, z = Z, rss = rss)$rss, names(rss))
})

test_that("a downdate that fails in the sum of squares alone is told apart from one that fails in R", {
  R <- diag(2)
  expect_warning(made <- cholupdate_gpu(R, c(0.5, 0.5), TRUE, z = c(1, 2), y = 30, rss = 1),
                 class = "gpucholmod_negative_rss")
  expect_identical(made$rss, NaN)
  expect_equal(made[c("R", "z")], cholupdate_gpu(R, c(0.5, 0.5), TRUE, z = c(1, 2), y = 30))
  expect_error(cholupdate_gpu(R, c(2, 0), TRUE, z = c(1, 2), y = 1, rss = 1),
               class = "gpucholmod_not_positive_definite")
  failed <- cholupdate_gpu(R, c(2, 0), TRUE, z = c(1, 2), y = 1, rss = 1, check = FALSE)
  expect_identical(failed, list(R = R, z = c(1, 2), rss = 1, pivot = 1L))
})

test_that("what cannot be done returns z and rss as they were given, whatever the factor is", {
  R <- diag(2)
  V <- c(2, 0)
  z <- ts(c(1, 2))
  failed <- function(...) list(..., z = z, rss = 3L, pivot = 1L)
  expect_identical(cholupdate_gpu(R, V, TRUE, z = z, y = 1, rss = 3L, check = FALSE), failed(R = R))
  expect_identical(cholupdate_gpu(R, V, TRUE, z = z, y = 1, check = FALSE), list(R = R, z = z, pivot = 1L))
  f <- chol_factor(R, "cpu")
  expect_identical(cholupdate_gpu(f, V, TRUE, z = z, y = 1, rss = 3L, check = FALSE), failed(R = f))
  expect_identical(cholupdate_gpu(f, V, TRUE, z = z, y = 1, rss = 3L, check = FALSE, in_place = TRUE), failed(R = f))
  S <- R + 0
  suppressMessages(value <- cholupdate_overwrite(S, V, TRUE, z = z, y = 1, rss = 3L, check = FALSE))
  expect_identical(value, failed())
  expect_identical(S, R)
  for (g in list(R, f)) {
    value <- cholinsert_gpu(g, c(0, 2, 1), z = z, b = 1, rss = 3L, check = FALSE)
    expect_identical(value, list(R = g, z = z, rss = 3L, pivot = 3L))
  }
  skip_on_os("windows")
  w <- write_factor(R, tempfile())
  value <- cholupdate_gpu(w, V, TRUE, z = z, y = 1, rss = 3L, check = FALSE, output = tempfile())
  expect_identical(value, failed(R = w))
  unlink(w$path)
})

test_that("sums of squares that are no numbers any more are taken again, and passed on", {
  R <- diag(2)
  y <- cbind(30, 0.1)
  expect_warning(spoilt <- cholupdate_gpu(R, c(0.5, 0.5), TRUE, z = diag(2), y = y, rss = c(1, 1)),
                 class = "gpucholmod_negative_rss")
  expect_identical(is.nan(spoilt$rss), c(TRUE, FALSE))
  expect_no_warning(again <- cholupdate_gpu(spoilt$R, c(0.5, 0.5), z = spoilt$z, y = y, rss = spoilt$rss))
  expect_identical(is.nan(again$rss), c(TRUE, FALSE))
  expect_equal(again$rss[[2]], 1)
  expect_no_warning(more <- cholinsert_gpu(R, c(0, 0, 1), z = 1:2, b = 0.5, rss = NA_real_))
  expect_identical(more$rss, NaN)
  expect_no_warning(less <- choldelete_gpu(R, 1, z = 1:2, rss = NaN))
  expect_identical(less$rss, NaN)

  huge <- cholupdate_gpu(R, c(0, 0), z = 1:2, y = 1e160, rss = 1)
  expect_identical(huge$rss, Inf)
  expect_identical(cholupdate_gpu(R, c(0, 0), TRUE, z = 1:2, y = 1, rss = Inf)$rss, Inf)
  expect_warning(cholupdate_gpu(R, c(0, 0), TRUE, z = 1:2, y = 1e160, rss = Inf), class = "gpucholmod_negative_rss")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:2, y = 1, rss = -Inf), class = "gpucholmod_bad_argument")
})

test_that("a window over observations that are fitted exactly keeps its sum of squares", {
  fit <- list(R = matrix(sqrt(10)), z = 3 * sqrt(10), rss = 0)
  move <- function(fit) cholupdate_gpu(fit$R, cbind(1, 1), weights = c(1, -1), z = fit$z, y = c(3, 3), rss = fit$rss)
  expect_no_warning(for (i in 1:200) fit <- move(fit))
  expect_lt(fit$rss, 1e-10)
  expect_equal(drop(backsolve(fit$R, fit$z)), 3)
})

test_that("what does not fit together is told with its name", {
  R <- diag(2)
  expect_error(cholupdate_gpu(R, 1:2, y = 1), "'z' is missing", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_gpu(R, 1:2, rss = 1), "'z' is missing", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:2), "'y' is missing", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:3, y = 1), "'z' has 3 rows", class = "gpucholmod_dimension_mismatch")
  expect_error(cholupdate_gpu(R, diag(2), z = 1:2, y = 1), "'y' has 1 rows, 'V' has 2 columns",
               class = "gpucholmod_dimension_mismatch")
  expect_error(cholupdate_gpu(R, 1:2, z = diag(2), y = 1), "'y' has 1 columns", class = "gpucholmod_dimension_mismatch")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:2, y = 1, rss = 1:2), "'rss' has 2",
               class = "gpucholmod_dimension_mismatch")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:2, y = 1, rss = -1), "'rss' must not", class = "gpucholmod_bad_argument")
  expect_error(cholupdate_gpu(R, 1:2, z = 1:2, y = "a"), class = "gpucholmod_not_numeric")
  error <- expect_error(cholupdate_gpu(R, diag(2), z = 1:2, y = c(1, NA)), class = "gpucholmod_not_finite")
  expect_identical(unlist(error[c("argument", "row")]), c(argument = "y", row = "2"))
  error <- expect_error(cholupdate_gpu(R, 1:2, z = c(1, Inf), y = 1), class = "gpucholmod_not_finite")
  expect_identical(error$argument, "z")
  error <- expect_error(cholupdate_gpu(R, 1:2, z = c(1, 1e200), y = 1, precision = "single", backend = "cpu"),
                        class = "gpucholmod_overflow")
  expect_identical(unlist(error[c("argument", "row", "col")]), c(argument = "z", row = "2", col = "1"))
  for (method in c("refactor", "reference", "panel")) {
    expect_error(cholupdate_gpu(R, 1:2, z = 1:2, y = 1, method = method, backend = "cpu"), "takes no right-hand sides",
                 class = "gpucholmod_bad_argument")
  }
})
