overwriting <- function() c("cpu", if (gpu_info(memory = FALSE)$usable) "cuda")

test_that("the result is that of a new matrix, in the memory of the old one", {
  set.seed(1)
  R0 <- well_conditioned(300)
  dimnames(R0) <- list(NULL, paste0("x", 1:300))
  V <- normal(300, 7, 0.3)
  for (backend in overwriting()) {
    for (uplo in c("upper", "lower")) {
      given <- if (uplo == "upper") R0 else t(R0)
      expected <- cholupdate_gpu(given, V, uplo = uplo, backend = backend, method = "stream")
      R <- unshared(given)
      returned <- withVisible(cholupdate_overwrite(R, V, uplo = uplo, backend = backend))
      expect_false(returned$visible)
      expect_identical(returned$value, expected)
      expect_identical(R, expected)
      rm(returned)
      R <- R + 0
      cholupdate_overwrite(R, V, downdate = TRUE, uplo = uplo, backend = backend)
      expect_equal(R, given)
    }
  }
})

test_that("no second matrix is made", {
  skip_if_not(capabilities("profmem"))
  R <- diag(500)
  address <- tracemem(R)
  untracemem(R)
  cholupdate_overwrite(R, rep(0.1, 500), backend = "cpu")
  expect_identical(tracemem(R), address)
  untracemem(R)
})

test_that("the other triangle is neither read nor changed", {
  set.seed(4)
  R0 <- well_conditioned(200)
  V <- normal(200, 5)
  for (backend in overwriting()) {
    for (method in c("auto", "stream")) {
      R <- R0
      R[lower.tri(R)] <- NaN
      cholupdate_overwrite(R, V, backend = backend, method = method)
      expect_true(all(is.nan(R[lower.tri(R)])))
      expect_lt(residual_ratio(upper(replace(R, is.nan(R), 0)), R0, V, FALSE), 30)
    }
  }
})

test_that("a result of cholupdate_gpu() can be overwritten", {
  R <- well_conditioned(60)
  for (uplo in c("upper", "lower")) {
    modified <- cholupdate_gpu(if (uplo == "upper") R else t(R), 1:60, uplo = uplo, backend = "cpu")
    cholupdate_overwrite(modified, 1:60, downdate = TRUE, uplo = uplo, backend = "cpu")
    expect_equal(modified, if (uplo == "upper") R else t(R))
  }
})

test_that("what is shared, or is no variable, is refused and not changed", {
  R <- diag(5)
  reason <- function(code, class = "gpucholmod_bad_argument") expect_error(code, class = class)$value
  S <- R
  expect_identical(reason(cholupdate_overwrite(R, 1:5), "gpucholmod_shared"), "shared")
  rm(S)
  held <- list(R)
  expect_identical(reason(cholupdate_overwrite(R, 1:5), "gpucholmod_shared"), "shared")
  rm(held)
  as_argument <- function(M) cholupdate_overwrite(M, 1:5)
  expect_identical(reason(as_argument(R)), "argument")
  expect_error(cholupdate_overwrite(R + 1, 1:5), class = "gpucholmod_bad_argument")
  expect_error(cholupdate_overwrite(not_there, 1:5), class = "gpucholmod_bad_argument")
  elsewhere <- function() cholupdate_overwrite(R, 1:5)
  expect_error(elsewhere(), class = "gpucholmod_bad_argument")
  makeActiveBinding("active", function() diag(5), environment())
  expect_error(cholupdate_overwrite(active, 1:5), class = "gpucholmod_bad_argument")
  locked <- diag(5)
  lockBinding("locked", environment())
  expect_error(cholupdate_overwrite(locked, 1:5), class = "gpucholmod_bad_argument")
  for (x in list(1:5, "R", matrix(1L, 2, 2), matrix(1, 2, 3), data.frame(a = 1), structure(diag(2), pivot = 2:1))) {
    y <- unshared(x)
    expect_error(cholupdate_overwrite(y, 1:2), class = "gpucholmod_bad_argument")
  }
  expect_identical(R, diag(5))
})

test_that("what cannot be done leaves R as it was", {
  set.seed(2)
  for (backend in overwriting()) {
    R <- well_conditioned(400)
    before <- unshared(R)
    too_much <- numeric(400)
    too_much[[400]] <- 1.5 * sqrt(crossprod(R)[400, 400])
    error <- expect_error(cholupdate_overwrite(R, too_much, downdate = TRUE, backend = backend),
                          class = "gpucholmod_not_positive_definite")
    expect_identical(error$pivot, 400L)
    expect_true(identical(R, before)) # which keeps no reference to R
    expect_identical(cholupdate_overwrite(R, too_much, downdate = TRUE, backend = backend, check = FALSE), 400L)
    expect_error(cholupdate_overwrite(R, c(Inf, numeric(399)), backend = backend), class = "gpucholmod_not_finite")
    expect_error(cholupdate_overwrite(R, 1:3, backend = backend), class = "gpucholmod_dimension_mismatch")
    expect_error(cholupdate_overwrite(R, too_much, backend = backend, method = "stream",
                                      control = cholupdate_control(device_memory = 1)),
                 class = "gpucholmod_out_of_memory")
    expect_true(identical(R, before)) # which keeps no reference to R
    R[3, 390] <- NA
    spoilt <- unshared(R)
    expect_error(cholupdate_overwrite(R, too_much, backend = backend), class = "gpucholmod_not_finite")
    expect_true(identical(R, spoilt))
  }
})

test_that("a factor that is interrupted half-way cannot be mistaken for one", {
  skip_on_cran()
  skip_on_os("windows")
  set.seed(3)
  R <- diag(3000) + 0
  V <- matrix(rnorm(3000 * 100, sd = 1e-3), 3000, 3000)
  interrupt_after(1.5)
  result <- tryCatch({
    cholupdate_overwrite(R, V, backend = "cpu", control = cholupdate_control(threads = 1, instructions = "plain"))
    Sys.sleep(5)
  }, interrupt = function(e) "interrupted")
  expect_identical(result, "interrupted")
  expect_true(identical(R, diag(3000)) || all(is.nan(diag(R))))
  if (all(is.nan(diag(R)))) expect_error(cholupdate_gpu(R, 1:3000, backend = "cpu"), class = "gpucholmod_not_finite")
})
