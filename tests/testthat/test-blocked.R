test_that("the number of threads does not change a bit", {
  set.seed(1)
  R <- well_conditioned(1450)
  for (k in c(1, 6)) {
    V <- normal(1450, k, 0.5)
    for (set in instructions_here) {
      for (uplo in c("upper", "lower")) {
        given <- if (uplo == "upper") R else t(R)
        one <- cholupdate_gpu(given, V, uplo = uplo, backend = "cpu",
                              control = cholupdate_control(threads = 1, instructions = set))
        expect_identical(last_cholupdate()[c("threads", "instructions")], list(threads = 1L, instructions = set))
        two <- cholupdate_gpu(given, V, uplo = uplo, backend = "cpu",
                              control = cholupdate_control(threads = 2, instructions = set))
        expect_identical(last_cholupdate()$threads, 2L)
        expect_same(two, one, paste(set, uplo, k))
        down <- lapply(1:2, function(threads) {
          cholupdate_gpu(one, V, downdate = TRUE, uplo = uplo, backend = "cpu",
                         control = cholupdate_control(threads = threads, instructions = set))
        })
        expect_same(down[[2L]], down[[1L]], paste(set, uplo, k, "downdate"))
      }
    }
  }
})

test_that("small problems take one thread, and the option sets the most", {
  old <- options(gpucholmod.threads = 1)
  on.exit(options(old))
  cholupdate_gpu(diag(1000), matrix(0.1, 1000, 16), backend = "cpu")
  expect_identical(last_cholupdate()$threads, 1L)
  options(gpucholmod.threads = 2)
  cholupdate_gpu(diag(1000), matrix(0.1, 1000, 16), backend = "cpu")
  expect_identical(last_cholupdate()$threads, 2L)
  cholupdate_gpu(diag(50), rep(0.1, 50), backend = "cpu")
  expect_identical(last_cholupdate()$threads, 1L)
  expect_output(print(last_cholupdate()), "1 thread, instructions")
})

test_that("OMP_THREAD_LIMIT is respected", {
  old <- Sys.getenv("OMP_THREAD_LIMIT")
  on.exit(Sys.setenv(OMP_THREAD_LIMIT = old))
  Sys.setenv(OMP_THREAD_LIMIT = "1")
  expect_identical(cholupdate_plan(5000, 16, backend = "cpu")$threads, 1L)
  cholupdate_gpu(diag(1000), matrix(0.1, 1000, 16), backend = "cpu")
  expect_identical(last_cholupdate()$threads, 1L)
})

test_that("instructions that the machine lacks, or nobody knows, are refused", {
  expect_error(cholupdate_control(instructions = "sse9"), class = "gpucholmod_bad_argument")
  for (set in setdiff(c("plain", "avx2", "avx512"), instructions_here)) {
    refused <- expect_error(
      cholupdate_gpu(diag(2), 1:2, backend = "cpu", control = cholupdate_control(instructions = set)),
      class = "gpucholmod_bad_argument"
    )
    expect_identical(refused[c("argument", "value")], list(argument = "instructions", value = set))
  }
  expect_true("plain" %in% instructions_here)
  expect_identical(cholupdate_plan(100, 1, backend = "cpu")$instructions, rev(instructions_here)[[1L]])
})

test_that("what is wrong with R is found out on the way", {
  R <- well_conditioned(650)  # large enough for two threads
  V <- normal(650, 3)
  for (threads in 1:2) {
    for (place in list(c(1, 1), c(3, 150), c(200, 650), c(650, 650))) {
      bad <- R
      bad[place[[1L]], place[[2L]]] <- NaN
      refused <- expect_error(cholupdate_gpu(bad, V, backend = "cpu", control = cholupdate_control(threads = threads)),
                              class = "gpucholmod_not_finite")
      expect_equal(unlist(refused[c("row", "col")], use.names = FALSE), place)
    }
    bad <- R
    bad[120, 120] <- 1e-310
    for (downdate in c(FALSE, TRUE)) {
      refused <- expect_error(cholupdate_gpu(bad, V, downdate, backend = "cpu",
                                             control = cholupdate_control(threads = threads)),
                              class = "gpucholmod_bad_diagonal")
      expect_equal(refused$index, 120)
    }
  }
})

test_that("refactoring gives the factor, and leaves what it cannot do to the blocked method", {
  set.seed(2)
  R <- well_conditioned(300)
  V <- normal(300, 200)
  up <- cholupdate_gpu(R, V, backend = "cpu", method = "refactor")
  expect_identical(last_cholupdate()[c("method", "instructions")], list(method = "refactor", instructions = ""))
  expect_lt(residual_ratio(up, R, V, FALSE), 30)
  down <- cholupdate_gpu(up, V, TRUE, backend = "cpu", method = "refactor")
  expect_lt(residual_ratio(down, up, V, TRUE), 30)
  lower <- cholupdate_gpu(t(R), V, uplo = "lower", backend = "cpu", method = "refactor")
  expect_same(lower, t(up))
  failed <- cholupdate_gpu(R, 10 * V, TRUE, backend = "cpu", method = "refactor", check = FALSE)
  expect_identical(failed$pivot, cholupdate_gpu(R, 10 * V, TRUE, backend = "cpu", method = "blocked",
                                                check = FALSE)$pivot)
  expect_identical(last_cholupdate()$method, "blocked")
  for (wrong in list(list(precision = "single"), list(backend = "cuda"))) {
    expect_error(do.call(cholupdate_gpu, c(list(R, V, method = "refactor"), wrong)), class = "gpucholmod_bad_argument")
  }
})

test_that("the plan tells when refactoring is expected to be quicker, and why", {
  quick <- slow <- cholupdate_control(instructions = "plain")
  quick$optimised_blas <- TRUE
  slow$optimised_blas <- FALSE
  plan <- cholupdate_plan(400, 2000, backend = "cpu", control = quick)
  expect_identical(plan$method, "refactor")
  expect_match(plan$why, "factorising afresh is expected to be quicker")
  expect_identical(cholupdate_plan(400, 2000, backend = "cpu", control = slow)$method, "blocked")
  expect_identical(cholupdate_plan(400, 1, backend = "cpu", control = quick)$method, "blocked")
  R <- well_conditioned(60)
  V <- normal(60, 400)
  expect_identical(cholupdate_plan(R, V, backend = "cpu", control = quick)$method, "refactor")
  expect_lt(residual_ratio(cholupdate_gpu(R, V, backend = "cpu", control = quick), R, V, FALSE), 30)
  expect_identical(last_cholupdate()$method, "refactor")
  expect_identical(is.logical(cholupdate_control()$optimised_blas), TRUE)
})
