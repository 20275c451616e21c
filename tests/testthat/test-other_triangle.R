# What is said where the triangle that is not used looks as if something else was meant.

R <- well_conditioned(70)
lower_left <- lower.tri(R)

# The field `looks` of the warning of `code`.
looks_of <- function(code) expect_warning(code, class = "gpucholmod_other_triangle")$looks
# The warning that is told once a session may be told again.
forget <- function() assign("told_of_other_triangle", NULL, envir = gpucholmod:::state)

# Every way in for a factor that is an ordinary matrix; each names it `A`.
entries <- list(
  cholupdate_gpu = function(A, ...) cholupdate_gpu(A, numeric(nrow(A)), backend = "cpu", ...),
  usual = function(A, ...) cholupdate_gpu(A, numeric(nrow(A)), ...),
  chol_factor = function(A, ...) chol_factor(A, backend = "cpu", ...),
  gpu_factor = function(A, ...) gpu_factor(A, ...),
  cholinsert_gpu = function(A, ...) cholinsert_gpu(A, c(numeric(nrow(A)), 1), ...),
  choldelete_gpu = function(A, ...) choldelete_gpu(A, 1, ...),
  cholshift_gpu = function(A, ...) cholshift_gpu(A, 1, 2, ...),
  solve_forward = function(A, ...) solve_forward(A, numeric(nrow(A)), ...),
  solve_back = function(A, ...) solve_back(A, numeric(nrow(A)), ...),
  logdet = function(A, ...) logdet(A, ...),
  solve_modified = function(A, ...) solve_modified(A, numeric(nrow(A)), ...),
  overwrite = function(A, ...) {
    A <- A + 0
    cholupdate_overwrite(A, numeric(nrow(A)), backend = "cpu", ...)
  },
  batch_of_one = function(A, ...) cholupdate_batch(A, matrix(0, nrow(A), 2), ...),
  chol_batch = function(A, ...) chol_batch(array(A, c(dim(A), 3)), backend = "cpu", ...),
  cholupdate_batch = function(A, ...) cholupdate_batch(array(A, c(dim(A), 3)), numeric(nrow(A)), ...),
  list = function(A, ...) cholupdate_batch(list(diag(2), A), list(1:2, numeric(nrow(A))), ...)
)

test_that("a symmetric matrix in place of its factor is an error that names chol(), wherever a factor is taken", {
  X <- as.matrix(longley)  # whose A is symmetric to 2e-11 of its numbers
  for (A in list(crossprod(R), solve(crossprod(normal(50, 4))), solve(crossprod(X)), matrix(c(2L, 1L, 1L, 2L), 2))) {
    before <- A + 0
    for (name in names(entries)) for (uplo in c("upper", "lower")) {
      e <- expect_error(if (uplo == "upper") entries[[name]](A) else entries[[name]](A, uplo = "lower"),
                        class = "gpucholmod_not_triangular")
      expect_s3_class(e, "gpucholmod_error")
      expect_identical(e[c("uplo", "looks")], list(uplo = uplo, looks = "symmetric"), info = name)
      expect_match(conditionMessage(e), if (uplo == "upper") "give chol\\([RfA]\\)" else "give t\\(chol\\([RfA]\\)\\)",
                   info = name)
      expect_identical(e$member, switch(name, chol_batch = , cholupdate_batch = 1L, list = 2L), info = name)
    }
    expect_identical(A + 0, before)
  }
  expect_error(cholupdate_gpu(make_float32(crossprod(R)), 1:70), class = "gpucholmod_not_triangular")
  expect_error(cholupdate_gpu(make_float32(crossprod(R)), 1:70, precision = "double"),
               class = "gpucholmod_not_triangular")
  skip_on_os("windows")
  path <- tempfile()
  expect_error(write_factor(crossprod(R), path), class = "gpucholmod_not_triangular")
  expect_false(file.exists(path))
})

test_that("a matrix that is symmetric but for more than rounding, and a factor of the other kind, are told each time", {
  A <- crossprod(R)
  A[lower_left] <- A[lower_left] * (1 + 1e-6 * sin(seq_len(sum(lower_left))))
  path <- tempfile()
  for (i in 1:2) {
    expect_identical(looks_of(cholupdate_gpu(A, 1:70, backend = "cpu")), "nearly_symmetric")
    expect_identical(looks_of(cholupdate_gpu(A, 1:70, uplo = "lower", backend = "cpu")), "nearly_symmetric")
    expect_identical(looks_of(cholupdate_gpu(t(R), 1:70, backend = "cpu")), "transposed")
    expect_identical(looks_of(cholupdate_gpu(R, 1:70, uplo = "lower", backend = "cpu")), "transposed")
    expect_identical(looks_of(solve_forward(t(R), 1:70)), "transposed")
    expect_identical(looks_of(logdet(A)), "nearly_symmetric")
    expect_identical(looks_of(cholupdate_batch(array(c(R, A), c(70, 70, 2)), 1:70)), "nearly_symmetric")
    L <- t(R)
    expect_identical(looks_of(cholupdate_overwrite(L, 1:70, backend = "cpu")), "transposed")
  }
  expect_identical(looks_of(cholupdate_gpu(make_float32(t(R)), 1:70, backend = "cpu")), "transposed")
  skip_on_os("windows")
  expect_identical(looks_of(write_factor(t(R), path)), "transposed")
  unlink(path)
})

test_that("a triangle that is merely not zero is told once a session", {
  on.exit(forget())
  junk <- R
  junk[lower_left] <- rnorm(sum(lower_left))
  forget()
  expect_identical(looks_of(cholupdate_gpu(junk, 1:70, backend = "cpu")), "filled")
  expect_silent(cholupdate_gpu(junk, 1:70, backend = "cpu"))
  forget()
  expect_identical(looks_of(cholupdate_gpu(replace(R, lower_left, NaN), 1:70, backend = "cpu")), "filled")
})

test_that("a factor draws no warning", {
  expect_silent(cholupdate_gpu(R, 1:70, backend = "cpu"))
  expect_silent(cholupdate_gpu(t(R), 1:70, uplo = "lower", backend = "cpu"))
  expect_silent(cholupdate_gpu(diag(70), 1:70, backend = "cpu"))
  for (n in 0:2) expect_silent(cholupdate_gpu(diag(n), numeric(n), backend = "cpu"))
  for (n in 1:3) expect_silent(entries$cholupdate_batch(diag(n)))
  expect_silent(cholupdate_batch(list(1, diag(2), matrix(0, 0, 0)), list(1, 1:2, numeric())))
  expect_silent(logdet(diag(3)))
})
