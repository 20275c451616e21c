test_that("a downdate that cannot be done names the first leading minor that is not positive definite", {
  set.seed(1)
  R <- well_conditioned(90)
  for (at in c(1, 8, 9, 64, 65, 90)) {
    v <- numeric(90)
    v[at] <- 1.5 * sqrt(crossprod(R)[at, at])
    for (name in names(cpu_methods)) {
      error <- expect_error(modify(R, cbind(v, 0.001), TRUE, cpu_methods[[name]]),
                            class = "gpucholmod_not_positive_definite")
      expect_s3_class(error, "gpucholmod_error")
      expect_identical(error$pivot, as.integer(at), label = name)
    }
  }
})

test_that("p'p just under 1 succeeds, just over 1 fails", {
  set.seed(2)
  for (k in c(1, 16)) {
    R <- well_conditioned(80)
    q <- orthonormal(80, k)
    for (name in names(cpu_methods)) {
      expect_true(all(is.finite(modify(R, sqrt(1 - 1e-12) * crossprod(R, q), TRUE, cpu_methods[[name]]))))
      expect_error(modify(R, sqrt(1 + 1e-12) * crossprod(R, q), TRUE, cpu_methods[[name]]),
                   class = "gpucholmod_not_positive_definite")
    }
  }
})

test_that("a downdate that leaves nothing fails, whatever is rounded", {  # compilers may fuse r^2 - |v|^2
  set.seed(8)
  for (k in c(1, 5, 16)) {
    V <- matrix(0, 10, k)
    for (r in 1 + runif(30)) {
      V[1] <- r
      for (name in names(cpu_methods)) {
        expect_error(modify(diag(r, 10), V, TRUE, cpu_methods[[name]]), class = "gpucholmod_not_positive_definite")
      }
    }
  }
})

test_that("check = FALSE returns the pivot, and the factor as it was given", {
  R <- chol(matrix(c(4, 1, 1, 3), 2, dimnames = list(NULL, c("a", "b"))))
  failed <- cholupdate_gpu(R, c(0, 5), downdate = TRUE, check = FALSE, backend = "cpu")
  expect_identical(failed, list(R = R, pivot = 2L))
  done <- cholupdate_gpu(R, c(0, 1), downdate = TRUE, check = FALSE, backend = "cpu")
  expect_identical(done, list(R = cholupdate_gpu(R, c(0, 1), downdate = TRUE, backend = "cpu"), pivot = 0L))
})

test_that("an update never fails on finite input", {
  set.seed(3)
  for (scale in c(1e-150, 1, 1e150)) {
    for (name in names(cpu_methods)) {
      up <- modify(well_conditioned(30), normal(30, 2, scale), FALSE, cpu_methods[[name]])
      expect_true(all(is.finite(up)) && all(diag(up) > 0))
    }
  }
})

test_that("what V does not touch comes back bit for bit", {
  set.seed(4)
  R <- well_conditioned(100)
  v <- replace(numeric(100), 61:100, 0.01)
  for (name in names(cpu_methods)) {
    for (downdate in c(FALSE, TRUE)) {
      expect_identical(modify(R, matrix(0, 100, 3), downdate, cpu_methods[[name]]), R)
      expect_identical(modify(R, v, downdate, cpu_methods[[name]])[1:60, ], R[1:60, ])
    }
  }
})
