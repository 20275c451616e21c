# What kappa(), rcond(), chol(), qr() and all.equal() tell of the matrix of which a factor is kept.

# Positive definite matrices of order n: Wishart, a kernel, graded.
matrices_of <- function(n) {
  x <- seq(0, 1, length.out = n)
  D <- diag(10^seq(-4, 4, length.out = n), n)
  list(crossprod(normal(2 * n, n)), exp(-20 * outer(x, x, "-")^2) + 1e-4 * diag(n),
       D %*% crossprod(normal(2 * n, n)) %*% D)
}
# The condition of A, as chol() and chol2inv() tell it.
true_condition <- function(A) norm(A, "1") * norm(chol2inv(chol(A)), "1")

at_each_home("kappa() and rcond() are of A, whichever triangle is kept", {
  set.seed(1)
  for (n in c(1, 2, 5, 33, 150)) for (A in matrices_of(n)) {
    true <- true_condition(A)
    f <- keep(chol(A))
    expect_lte(kappa(f), true * (1 + 1e-6))
    expect_gte(kappa(f), max(1, 0.7 * true))
    expect_identical(rcond(f), 1 / kappa(f))
    expect_identical(rcond(f, "I"), rcond(f, norm = "O"))
    expect_equal(kappa(keep(t(chol(A)), uplo = "lower")), kappa(f), tolerance = 1e-4)
    if (true < 1e4) expect_equal(kappa(keep(chol(A), precision = "single")), kappa(f), tolerance = 0.01)
    expect_equal(as.matrix(f), chol(A))
  }
})

test_that("so they are of a factor in a file, in panels, and of a batch", {
  skip_on_os("windows")
  set.seed(2)
  for (n in c(1, 2, 60)) for (A in matrices_of(n)) {
    file <- write_factor(chol(A), tempfile())
    held <- chol_factor(chol(A), "cpu")
    expect_equal(kappa(file), kappa(held), tolerance = 1e-6)
    expect_equal(rcond(file), rcond(held), tolerance = 1e-6)
    x <- normal(n, 3)
    narrow <- list(over_panels = function(f, reverse, work) {
      gpucholmod:::over_panels(f, reverse, work, bytes = 8 * n * 7)
    })
    in_panels <- gpucholmod:::product_with_file
    environment(in_panels) <- list2env(narrow, parent = environment(in_panels))
    expect_equal(in_panels(file, x, FALSE), chol(A) %*% x)
    expect_equal(in_panels(file, x, TRUE), crossprod(chol(A), x))
    unlink(file$path)
  }
  all <- matrices_of(4)
  R <- array(unlist(lapply(all, chol)), c(4, 4, 3), list(NULL, NULL, letters[1:3]))
  each <- vapply(all, function(A) kappa(chol_factor(chol(A), "cpu")), 0)
  expect_equal(kappa(chol_batch(R, "cpu")), c(a = each[[1]], b = each[[2]], c = each[[3]]))
  lower <- chol_batch(aperm(R, c(2, 1, 3)), "cpu", uplo = "lower")
  expect_equal(rcond(lower), 1 / kappa(chol_batch(R, "cpu")))
  expect_equal(chol(lower), R)
})

test_that("scale does not count, orders 0 and 1 are of condition 1, and what is beyond all numbers is Inf", {
  R <- chol(diag(6) + 1)
  for (s in c(1e-150, 1e150)) expect_equal(kappa(chol_factor(s * R, "cpu")), true_condition(crossprod(R)))
  expect_identical(kappa(chol_factor(diag(0), "cpu")), 1)
  expect_identical(rcond(chol_factor(diag(0), "cpu")), 1)
  expect_identical(kappa(chol_factor(diag(1e-200, 1), "cpu")), 1)
  expect_identical(kappa(chol_factor(diag(c(1e200, 1e-200)), "cpu")), Inf)
  expect_identical(rcond(chol_factor(diag(c(1e200, 1e-200)), "cpu")), 0)
  expect_identical(kappa(chol_batch(array(0, c(0, 0, 2)), "cpu")), c(1, 1))
})

test_that("what cannot be told is an error, and rcond() of a matrix is what it was", {
  f <- chol_factor(chol(diag(3) + 1), "cpu")
  expect_error(kappa(f, exact = TRUE), "kappa\\(crossprod\\(chol\\(f\\)\\)", class = "gpucholmod_bad_argument")
  expect_identical(expect_error(kappa(f, norm = "2"), class = "gpucholmod_bad_argument")$argument, "norm")
  expect_identical(expect_error(rcond(f, "2"), class = "gpucholmod_bad_argument")$argument, "norm")
  expect_error(kappa(f, 1), class = "gpucholmod_bad_argument")
  batch <- chol_batch(array(2, c(1, 1, 3)), "cpu")
  for (x in list(f, batch)) {
    e <- expect_error(qr(x), "solve_forward\\(\\)", class = "gpucholmod_bad_argument")
    expect_identical(e$argument, "x")
  }
  g <- copy_factor(f)
  free(g)
  for (use in list(kappa, rcond, chol, qr, function(g) all.equal(g, f), function(g) all.equal(f, g))) {
    expect_identical(expect_error(use(g), class = "gpucholmod_invalid_factor")$reason, "freed")
  }
  expect_identical(rcond(diag(3)), base::rcond(diag(3)))
  A <- matrix(c(4, 1, 2, 3), 2)
  expect_identical(rcond(A, "I"), base::rcond(A, "I"))
  expect_identical(rcond(A, triangular = TRUE), base::rcond(A, triangular = TRUE))
  skip_if_not_installed("Matrix")
  expect_equal(rcond(Matrix::Matrix(A)), base::rcond(A))
})

at_each_home("chol() is the upper factor", {
  R <- matrix(c(2, 0, 1, 3), 2, dimnames = list(NULL, c("a", "b")))
  expect_identical(chol(keep(R)), R)
  expect_identical(chol(keep(t(R), uplo = "lower")), R)
  expect_error(chol(keep(R), pivot = TRUE), class = "gpucholmod_bad_argument")
})

at_each_home("all.equal() compares factors, not handles", {
  set.seed(3)
  R <- well_conditioned(40)
  f <- keep(R)
  g <- cholupdate_gpu(cholupdate_gpu(f, 1:40 / 40), 1:40 / 40, downdate = TRUE)
  expect_true(all.equal(f, g))
  expect_true(all.equal(g, R))
  expect_true(all.equal(g, chol_factor(R, "cpu")))
  other <- cholupdate_gpu(f, 1:40 / 40)
  expect_match(all.equal(f, other), "relative difference")
  expect_match(all.equal(f, replace(R, 1, R[[1]] + 1e-6)), "relative difference")
  expect_true(all.equal(f, replace(R, 1, R[[1]] + 1e-6), tolerance = 1e-3))
  expect_true(all.equal(f, replace(R, 1, R[[1]] + 1e-6), 1e-3))
  expect_true(all.equal(f, structure(R, dimnames = list(NULL, 1:40)), check.attributes = FALSE))
  expect_true(all.equal(f, keep(R, precision = "single")))
  expect_true(all.equal(keep(R, precision = "single"), make_float32(R)))
  expect_match(all.equal(f, NULL), "current is of class NULL")
  expect_true(all.equal(keep(diag(1)), 1))
  expect_match(all.equal(f, keep(t(R), uplo = "lower")), "relative difference")
  expect_false(isTRUE(all.equal(f, keep(diag(3)))))
  expect_false(isTRUE(all.equal(R, f)))
})

test_that("so it does for files and batches", {
  R <- array(c(chol(diag(3) + 1), diag(3)), c(3, 3, 2))
  expect_true(all.equal(chol_batch(R, "cpu"), chol_batch(R, "cpu")))
  expect_true(all.equal(chol_batch(R, "cpu"), R))
  expect_false(isTRUE(all.equal(chol_batch(R, "cpu"), chol_batch(2 * R, "cpu"))))
  skip_on_os("windows")
  files <- list(write_factor(R[, , 1], tempfile()), write_factor(R[, , 1], tempfile()))
  on.exit(unlink(c(files[[1]]$path, files[[2]]$path)))
  expect_true(all.equal(files[[1]], files[[2]]))
  expect_true(all.equal(files[[1]], R[, , 1]))
  expect_true(all.equal(chol_factor(R[, , 1], "cpu"), files[[2]]))
  expect_match(all.equal(files[[1]], R[, , 2]), "relative difference")
  expect_equal(chol(files[[1]]), R[, , 1])
  expect_error(qr(files[[1]]), class = "gpucholmod_bad_argument")
})

test_that("all processes that share a factor learn the same", {
  skip_on_cran()
  run <- in_processes(2, c(
    "R <- diag(2, 150) + outer(1:150, 1:150, function(i, j) (i < j) * sin(i + 3 * j) / 50)",
    "f <- chol_factor(if (rank == 0) R, processes = TRUE); one <- chol_factor(R, 'cpu')",
    "tell(isTRUE(all.equal(kappa(f), kappa(one))), isTRUE(all.equal(rcond(f), rcond(one))))",
    "g <- cholupdate_gpu(f, rep(1, 150))",
    "tell(isTRUE(all.equal(f, copy_factor(f))), isTRUE(all.equal(f, g)), isTRUE(all.equal(f, if (rank == 0) R)))",
    "tell(identical(chol(f), if (rank == 0) R), class_of(qr(f)), class_of(kappa(f, exact = TRUE)))"
  ))
  expect_told(run, 0:1, c("TRUE TRUE", "TRUE FALSE TRUE", "TRUE gpucholmod_bad_argument gpucholmod_bad_argument"))
})
