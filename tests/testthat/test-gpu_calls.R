# Calls for factors on a GPU, which looks at V while it works: what comes of a V that it should not have begun with, and
# that a call takes little more than the device's own time.

random_factor <- function(n) {
  R <- matrix(rnorm(n * n) / sqrt(n), n)
  R[lower.tri(R)] <- 0
  diag(R) <- 2 + abs(diag(R))
  R
}

# Returns what came of cholupdate_*(R, V, ...): the class, row and column of an error, or the factor.
outcome_of <- function(call) {
  tryCatch(call(), error = function(e) list(class = class(e)[[1L]], row = e$row, col = e$col, member = e$member))
}

test_that("a V that cannot be used is refused as on the CPU, wherever in V that is, and the factor stays", {
  skip_without_gpu()
  set.seed(4)
  n <- 600
  R <- random_factor(n)
  for (k in c(16, 40)) {
    V <- matrix(rnorm(n * k) * 1e-2, n)
    f <- gpu_factor(R)
    for (bad in list(NaN, Inf, -Inf, 1e300, 1e155, 1e130)) {
      for (at in c(1, n * k / 2, n * k)) {
        for (downdate in c(FALSE, TRUE)) {
          W <- replace(V, at, bad)
          here <- outcome_of(function() as.matrix(cholupdate_gpu(f, W, downdate = downdate)))
          there <- outcome_of(function() cholupdate_gpu(R, W, downdate = downdate, backend = "cpu"))
          expect_identical(is.list(here), is.list(there))
          if (is.list(here)) expect_identical(here, there) else expect_equal(here, there, tolerance = 1e-10)
        }
      }
    }
    expect_identical(as.matrix(f), R)
  }
})

test_that("members of a batch that need care, fail or cannot be used are found on a GPU as on the CPU", {
  skip_without_gpu()
  set.seed(5)
  b <- 50
  for (n in c(20, 100, 200)) {
    R <- vapply(seq_len(b), function(m) random_factor(n), matrix(0, n, n))
    for (k in c(1, 5, 20)) {
      V <- array(rnorm(n * k * b) * 1e-2, c(n, k, b))
      for (bad in c(0.01, NaN, Inf, 1e300, 1e155, 100, 1e-300)) {
        for (in_place in c(TRUE, FALSE)) {
          W <- replace(V, n * k * 7 + 2, bad)
          for (downdate in c(FALSE, TRUE)) {
            of <- lapply(c("cuda", "cpu"), function(backend) {
              f <- chol_batch(R, backend = backend)
              made <- outcome_of(function() {
                done <- cholupdate_batch(f, W, downdate = downdate, in_place = in_place, check = FALSE)
                list(pivot = done$pivot, R = as.array(done$R))
              })
              list(made = made, f = as.array(f))
            })
            expect_equal(of[[1L]], of[[2L]], tolerance = 1e-10)
          }
        }
      }
    }
  }
})

test_that("a call takes less than twice the device's own time", {
  skip_without_gpu()
  set.seed(6)
  n <- 5000
  f <- gpu_factor(diag(2, n))
  for (k in c(16, 64)) {
    V <- matrix(rnorm(n * k) * 1e-3, n)
    ratios <- vapply(1:30, function(i) {
      begin <- Sys.time()
      cholupdate_gpu(f, V, in_place = TRUE)
      as.numeric(Sys.time() - begin, units = "secs") / last_cholupdate()$seconds
    }, 0)
    expect_lt(min(ratios), 2)
  }
  b <- 20000
  batch <- chol_batch(array(diag(2, 32), c(32, 32, b)), backend = "cuda")
  V <- array(rnorm(32 * b) * 1e-3, c(32, 1, b))
  seconds <- vapply(1:10, function(i) {
    begin <- Sys.time()
    cholupdate_batch(batch, V, in_place = TRUE)
    as.numeric(Sys.time() - begin, units = "secs")
  }, 0)
  expect_lt(min(seconds), 20 * last_cholupdate()$seconds)
})
