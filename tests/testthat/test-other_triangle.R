# What is said where the triangle that is not used looks as if something else was meant.

R <- well_conditioned(70)
lower_left <- lower.tri(R)

# The field `looks` of the warning of `code`.
looks_of <- function(code) expect_warning(code, class = "gpucholmod_other_triangle")$looks
# The warning that is told once a session may be told again.
forget <- function() assign("told_of_other_triangle", NULL, envir = gpucholmod:::state)

test_that("the matrix in place of its factor, and a factor of the other kind, are told each time", {
  A <- crossprod(R)
  path <- tempfile()
  for (i in 1:2) {
    expect_identical(looks_of(cholupdate_gpu(A, 1:70, backend = "cpu")), "symmetric")
    expect_identical(looks_of(cholupdate_gpu(A, 1:70, uplo = "lower", backend = "cpu")), "symmetric")
    expect_identical(looks_of(cholupdate_gpu(t(R), 1:70, backend = "cpu")), "transposed")
    expect_identical(looks_of(cholupdate_gpu(R, 1:70, uplo = "lower", backend = "cpu")), "transposed")
    expect_identical(looks_of(solve_forward(t(R), 1:70)), "transposed")
    expect_identical(looks_of(logdet(A)), "symmetric")
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
})
