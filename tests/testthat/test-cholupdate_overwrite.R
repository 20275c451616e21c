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
      expect_identical(returned, list(value = NULL, visible = FALSE))
      expect_identical(R, expected)
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
      suppressWarnings(cholupdate_overwrite(R, V, backend = backend, method = method), "gpucholmod_other_triangle")
      expect_true(all(is.nan(R[lower.tri(R)])))
      expect_lt(residual_ratio(upper(replace(R, is.nan(R), 0)), R0, V, FALSE), 30)
    }
  }
})

test_that("a result of cholupdate_gpu() can be overwritten, as nothing else refers to it", {
  R <- well_conditioned(60)
  for (uplo in c("upper", "lower")) {
    modified <- cholupdate_gpu(if (uplo == "upper") R else t(R), 1:60, uplo = uplo, backend = "cpu")
    cholupdate_overwrite(modified, 1:60, downdate = TRUE, uplo = uplo, backend = "cpu", copy = FALSE)
    expect_equal(modified, if (uplo == "upper") R else t(R))
  }
  integers <- diag(3L, 60)
  modified <- cholupdate_gpu(integers, 1:60, backend = "cpu")
  cholupdate_overwrite(modified, 1:60, downdate = TRUE, backend = "cpu", copy = FALSE)
  expect_equal(modified, integers)
})

test_that("what something else refers to is copied first, and keeps what it is", {
  R <- diag(5)
  expected <- cholupdate_gpu(R, 1:5)
  S <- R
  told <- expect_message(cholupdate_overwrite(R, 1:5, backend = "cpu"), class = "gpucholmod_copied")
  expect_identical(told[c("argument", "bytes")], list(argument = "R", bytes = 200))
  expect_true(identical(R, expected)) # which keeps no reference to R
  expect_identical(S, diag(5))
  expect_silent(cholupdate_overwrite(R, 1:5, downdate = TRUE, backend = "cpu")) # the copy is nobody else's
  expect_equal(R, S)

  held <- list(R)
  expect_message(cholupdate_overwrite(R, 1:5, backend = "cpu"), class = "gpucholmod_copied")
  expect_equal(held[[1]], S)
  as_argument <- function(M) {
    cholupdate_overwrite(M, 1:5, backend = "cpu")
    M
  }
  expect_message(modified <- as_argument(S), class = "gpucholmod_copied")
  expect_identical(modified, expected)
  expect_identical(S, diag(5))
  # a call that is refused copies nothing
  S <- R
  expect_silent(try(cholupdate_overwrite(R, 1:4), silent = TRUE))
})

test_that("with copy = FALSE that is an error, and nothing is changed", {
  R <- diag(5)
  reason <- function(code) expect_error(code, class = "gpucholmod_shared")$value
  S <- R
  expect_identical(reason(cholupdate_overwrite(R, 1:5, copy = FALSE)), "shared")
  rm(S)
  held <- list(R)
  expect_identical(reason(cholupdate_overwrite(R, 1:5, copy = FALSE)), "shared")
  rm(held)
  as_argument <- function(M) cholupdate_overwrite(M, 1:5, copy = FALSE)
  expect_identical(reason(as_argument(R)), "shared")
  expect_identical(R, diag(5))
})

test_that("functions of this package do not count as references once they have returned", {
  R <- well_conditioned(40)
  path <- tempfile()
  cholupdate_gpu(R, 1:40, backend = "cpu")
  cholupdate_plan(R, 1:40)
  if (.Platform$OS.type != "windows") write_factor(R, path)
  solve_back(R, solve_forward(R, 1:40))
  logdet(R)
  expect_silent(cholupdate_overwrite(R, 1:40, backend = "cpu", copy = FALSE))
  unlink(path)
})

# Where R cannot tell that a variable has the only reference, which its own code meets too.
test_that("it can be called at the top level of a script, by source(), example() and knitr", {
  code <- c("R <- chol(diag(5) + 1)", "before <- R + 0", "cholupdate_overwrite(R, 1:5, backend = 'cpu')",
            "stopifnot(isTRUE(all.equal(crossprod(R), crossprod(before) + tcrossprod(1:5))))")
  script <- tempfile(fileext = ".R")
  on.exit(unlink(script))
  writeLines(code, script)
  suppressMessages(source(script, local = new.env()))
  suppressMessages(utils::example("cholupdate_overwrite", "gpucholmod", character.only = TRUE, ask = FALSE,
                                  echo = FALSE,
                                  local = TRUE))
  skip_if_not_installed("knitr")
  document <- knitr::knit(text = c("```{r, message = FALSE, error = FALSE}", code, "```"), quiet = TRUE,
                          envir = new.env())
  expect_false(any(grepl("Error", document)))
})

test_that("what is no variable that can be written is refused and not changed", {
  R <- diag(5)
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

test_that("an update too large to represent is told as such, and R is lost", {
  R <- diag(3) * 1.5e308
  error <- expect_error(cholupdate_overwrite(R, c(1.5e308, 0, 0), backend = "cpu"), class = "gpucholmod_overflow")
  expect_identical(error$lost, "R")
  expect_true(all(is.nan(diag(R))))
})

test_that("a limit on device memory does not depend on the scale of the numbers", {
  for (scale in c(1, 1e187)) {
    R <- diag(150) * scale
    cholupdate_overwrite(R, rep(0.01, 150) * scale, backend = "cpu", control = cholupdate_control(device_memory = 1e5))
    expect_equal(R[1, 1] / scale, sqrt(1.0001))
  }
})

test_that("V is looked at first, as it may change the variable or refer to it", {
  f <- function() {
    R <- chol(diag(3) + 1)
    cholupdate_overwrite(R, {
      R <- chol(diag(5) + 1) + 0
      1:3
    }, backend = "cpu")
  }
  expect_error(f(), class = "gpucholmod_dimension_mismatch")
  R <- chol(diag(4) + 1)
  expected <- cholupdate_gpu(R, R, backend = "cpu")
  suppressMessages(cholupdate_overwrite(R, R, backend = "cpu"), "gpucholmod_copied")
  expect_true(identical(R, expected)) # which keeps no reference to R
  suppressMessages(cholupdate_overwrite(R, {
    S <- R
    1:4
  }, backend = "cpu"), "gpucholmod_copied")
  expect_identical(S, expected)
})
