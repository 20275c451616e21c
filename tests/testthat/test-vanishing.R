# Entries of the diagonal that would leave the range of normal numbers, by forgetting or by a downdate: an error, and
# nothing has changed.

vanished <- function(call, index = 2) {
  error <- expect_error(call, class = "gpucholmod_bad_diagonal")
  expect_equal(error$index, index)
  expect_lt(error$value, .Machine$double.xmin)
  error
}
small <- diag(c(1, 3e-308))
news <- c(1, 0)

test_that("a direction without news is forgotten no further than the range goes", {
  forget <- function(step) {
    steps <- 0L
    error <- tryCatch(repeat {
      step()
      steps <- steps + 1L
      if (steps > 15000L) stop("it is never found")
    }, gpucholmod_bad_diagonal = identity)
    expect_equal(error$index, 2)
    steps
  }
  R <- diag(2)
  steps <- forget(function() R <<- cholupdate_gpu(R, news, scale = 0.9))
  expect_equal(steps, 13446, tolerance = 1e-3)
  expect_true(all(is.finite(solve_forward(R, 1:2))))
  f <- chol_factor(diag(2), "cpu")
  expect_identical(forget(function() cholupdate_gpu(f, news, scale = 0.9, in_place = TRUE)), steps)
  expect_equal(as.matrix(f), R)
  expect_true(all(is.finite(solve_forward(f, 1:2))))
  batch <- chol_batch(array(diag(2), c(2, 2, 1)))
  columns <- array(news, c(2, 1, 1))
  expect_identical(forget(function() cholupdate_batch(batch, columns, scale = 0.9, in_place = TRUE)), steps)
})

test_that("a scale that makes it vanish is an error, wherever the factor is", {
  for (method in c("auto", "blocked", "reference", "panel", "stream", "refactor")) for (k in c(1, 5)) {
    vanished(cholupdate_gpu(small, matrix(news, 2, k), scale = 0.25, method = method, backend = "cpu"))
  }
  vanished(cholupdate_gpu(small, matrix(0, 2, 0), scale = 0.25))
  S <- small + 0
  suppressMessages(vanished(cholupdate_overwrite(S, news, scale = 0.25, backend = "cpu")))
  expect_identical(S, small)
  f <- chol_factor(small, "cpu")
  for (in_place in c(FALSE, TRUE)) vanished(cholupdate_gpu(f, news, scale = 0.25, in_place = in_place))
  expect_identical(as.matrix(f), small)
  members <- array(c(diag(2), small), c(2, 2, 2))
  expect_equal(vanished(cholupdate_batch(members, array(news, c(2, 1, 2)), scale = 0.25))$member, 2)
  expect_equal(vanished(cholupdate_batch(list(diag(2), small, diag(3)), list(news, news, 1:3), scale = 0.25))$member, 2)
  expect_equal(vanished(solve_modified(small, cbind(c(0, 3e-308) * (1 - 1e-15), news), 1:2, downdate = TRUE))$member, 1)
  skip_on_os("windows")
  w <- write_factor(small, tempfile())
  output <- tempfile()
  vanished(cholupdate_gpu(w, news, scale = 0.25, output = output))
  expect_false(file.exists(output))
  unlink(w$path)
})

test_that("so is a downdate", {
  R <- diag(c(1, 1e-304))
  v <- c(0, 1e-304 * (1 - 1e-14))
  vanished(cholupdate_gpu(R, v, TRUE, backend = "cpu"))
  f <- chol_factor(R, "cpu")
  for (in_place in c(FALSE, TRUE)) vanished(cholupdate_gpu(f, v, TRUE, in_place = in_place))
  expect_identical(as.matrix(f), R)
  S <- R + 0
  suppressMessages(vanished(cholupdate_overwrite(S, v, TRUE, backend = "cpu")))
  expect_identical(S, R)
})

test_that("nothing is inserted that the precision of the factor cannot hold", {
  f <- chol_factor(diag(2), "cpu", precision = "single")
  error <- expect_error(cholinsert_gpu(f, c(0, 0, 1e-100), in_place = TRUE), class = "gpucholmod_bad_diagonal")
  expect_equal(error[c("index", "value")], list(index = 3, value = 1e-50))
  expect_identical(as.matrix(f), diag(2))
  error <- expect_error(cholinsert_gpu(matrix(c(1e-200, 0, 0, 1), 2), c(1e200, 1, 1e300)),
                        class = "gpucholmod_not_positive_definite")
  expect_identical(error$pivot, 3L)
})

test_that("a factor that has held a huge number inserts as well as any other", {
  f <- chol_factor(diag(c(1.7e308, 1)), "cpu")
  choldelete_gpu(f, 1, in_place = TRUE)
  cholinsert_gpu(f, c(0, 1), in_place = TRUE)
  expect_identical(as.matrix(f), diag(2))
  expect_equal(cholinsert_gpu(diag(c(1.7e308, 1)), c(0, 0, 1)), diag(c(1.7e308, 1, 1)), tolerance = 1e-15)
})

test_that("a scale that takes an entry beyond the range is an error with every method", {
  R <- matrix(c(1, 0, 1.5e308, 1), 2)
  for (k in 1:5) for (method in c("auto", "blocked", "reference", "stream")) {
    error <- expect_error(cholupdate_gpu(R, matrix(c(0, 1), 2, k), scale = 4, method = method, backend = "cpu"),
                          class = "gpucholmod_overflow")
    expect_equal(unlist(error[c("row", "col")]), c(row = 1, col = 2))
  }
})
