# Modifying a factor that has memory of its own, against ordinary ones.

resident_methods <- c("persistent", "stepwise")

# From ordinary matrix to ordinary matrix.
modify_resident <- function(R, V, downdate, precision = "double", ...) {
  as.matrix(cholupdate_gpu(gpu_factor(R, precision = precision), V, downdate, ...))
}
on_cpu <- function(...) cholupdate_gpu(..., backend = "cpu")

test_that("arguments that cannot be used are named, with or without a GPU", {
  f <- handle_of_nothing()
  refused <- function(call) expect_error(call, class = "gpucholmod_bad_argument")$argument
  expect_identical(refused(cholupdate_gpu(f, 1:3, NA)), "downdate")
  expect_identical(refused(cholupdate_gpu(f, 1:3, in_place = 1)), "in_place")
  expect_identical(refused(cholupdate_gpu(f, 1:3, keep_intact = NA)), "keep_intact")
  expect_identical(refused(cholupdate_gpu(f, 1:3, check = "no")), "check")
  expect_identical(refused(cholupdate_gpu(f, 1:3, method = "blocked")), "method")
  expect_identical(refused(cholupdate_gpu(f, 1:3, always_fall_back = TRUE)), "always_fall_back")
  expect_identical(refused(cholupdate_gpu(f, 1:3, method = "panel")), "method")
  expect_identical(refused(cholupdate_gpu(f, 1:3, uplo = "lower")), "uplo")
  expect_identical(refused(cholupdate_gpu(f, 1:3, precision = "single")), "precision")
  expect_identical(refused(cholupdate_gpu(f, 1:3, backend = "cpu")), "backend")
  expect_identical(refused(cholupdate_gpu(f, 1:3, FALSE, TRUE)), "...")
  g <- chol_factor(diag(3), "cpu")
  expect_identical(refused(cholupdate_gpu(g, 1:3, backend = "cuda")), "backend")
  for (method in c("persistent", "stream", "panel", "refactor")) {
    expect_identical(refused(cholupdate_gpu(g, 1:3, method = method)), "method")
  }
})

at_each_home("V that cannot be used is refused, and the factor is as it was", {
  R <- chol(diag(3) + 1)
  V <- matrix(1:6 / 10, 3)
  f <- keep(R)
  for (in_place in c(FALSE, TRUE)) {
    run <- function(V) cholupdate_gpu(f, V, in_place = in_place)
    expect_identical(expect_error(run("a"), class = "gpucholmod_not_numeric")$argument, "V")
    expect_identical(expect_error(run(f), class = "gpucholmod_not_numeric")$argument, "V")
    expect_identical(expect_error(run(1:4), class = "gpucholmod_dimension_mismatch")$actual, 4L)
    for (bad in c(NA, NaN, Inf, -Inf)) {
      error <- expect_error(run(replace(V, 5, bad)), class = "gpucholmod_not_finite")
      expect_identical(unclass(error)[c("argument", "row", "col")], list(argument = "V", row = 2, col = 2))
    }
  }
  expect_identical(as.matrix(f), R)
  expect_identical(f$modifications, 0L)
  expect_error(modify_kept(R, c(1e300, 0, 0), FALSE, "single"), class = "gpucholmod_overflow")
})

at_each_home("the residual ratio holds for every family, precision and method", {
  set.seed(1)
  for (k in c(1, 16, 33)) {
    for (n in c(130, 517)) {
      for (method in methods) {
        for (family in names(update_families)) {
          case <- update_families[[family]](n, k)
          for (precision in c("double", "single")) {
            # in single precision, the factor that was on the GPU is the one to compare with
            R <- if (precision == "single") as_floats(case$R) else case$R
            if (any(diag(R) == 0)) next
            up <- modify_kept(case$R, case$V, FALSE, precision, method = method)
            expect_lt(residual_ratio(up, R, case$V, FALSE, precision), 30,
                      label = paste(family, method, precision, n, k))
            expect_true(all(diag(up) > 0) && all(up[lower.tri(up)] == 0))
          }
        }
        for (family in names(downdate_families)) {
          case <- downdate_families[[family]](n, k)
          down <- modify_kept(case$R, case$V, TRUE, method = method)
          expect_lt(residual_ratio(down, case$R, case$V, TRUE), 30, label = paste(family, method, n, k))
          expect_true(all(diag(down) > 0) && all(down[lower.tri(down)] == 0))
        }
        V <- normal(n, k)
        R <- as_floats(positive_qr(rbind(well_conditioned(n), t(V))))
        down <- modify_kept(R, V, TRUE, "single", method = method)
        expect_lt(residual_ratio(down, R, V, TRUE, "single"), 30, label = paste("single downdate", method, n, k))
      }
    }
  }
})

at_each_home("every size agrees with the CPU", {
  set.seed(2)
  for (n in c(0, 1, 2, 63, 64, 65, 127, 128, 129, 300, 1000)) {
    R <- if (n) well_conditioned(n) else matrix(0, 0, 0)
    for (k in c(0, 1, 7, 8, 9, 16, 17, 33, 63, 64, 65, 130)) {
      V <- normal(n, k, 1 / sqrt(max(n, k)))
      up <- on_cpu(R, V)
      down <- on_cpu(up, V, downdate = TRUE)
      for (method in methods) {
        for (precision in c("double", "single")) {
          tolerance <- if (precision == "double") 1e-12 else 1e3 * eps_of("single")
          what <- paste(n, k, method, precision)
          expect_close(modify_kept(R, V, FALSE, precision, method = method), up, tolerance, what)
          expect_close(modify_kept(up, V, TRUE, precision, method = method), down, tolerance, what)
        }
      }
    }
  }
})

at_each_home("a new factor leaves the old one as it is, bit for bit", {
  set.seed(3)
  R <- well_conditioned(517)
  V <- 0.2 * normal(517, 20)
  V_before <- unshared(V)
  f <- keep(R)
  up <- cholupdate_gpu(f, V)
  down <- cholupdate_gpu(f, V, downdate = TRUE)
  expect_error(cholupdate_gpu(f, 100 * V, downdate = TRUE), class = "gpucholmod_not_positive_definite")
  expect_same(as.matrix(f), R)
  expect_same(V, V_before)
  expect_close(as.matrix(up), on_cpu(R, V), tolerance = 1e-13)
  expect_close(as.matrix(down), on_cpu(R, V, downdate = TRUE), tolerance = 1e-12)
  expect_identical(f$modifications, 0L)
  expect_identical(c(up$modifications, down$modifications), c(1L, 1L))
})

at_each_home("in place gives the bits of a new factor", {
  set.seed(4)
  for (n in c(1, 65, 300)) {
    for (k in c(0, 1, 16, 130)) {
      V <- normal(n, k, 1 / sqrt(max(n, k)))
      for (precision in c("double", "single")) {
        for (method in methods) {
          f <- keep(well_conditioned(n), precision = precision)
          up <- cholupdate_gpu(f, V, method = method)
          down <- cholupdate_gpu(up, V, downdate = TRUE, method = method)
          same <- withVisible(cholupdate_gpu(f, V, method = method, in_place = TRUE))
          expect_false(same$visible)
          expect_identical(same$value, f)
          expect_same(as.matrix(f), as.matrix(up), paste(n, k))
          for (keep_intact in c(TRUE, FALSE)) {
            g <- copy_factor(f)
            cholupdate_gpu(g, V, downdate = TRUE, method = method, in_place = TRUE, keep_intact = keep_intact)
            expect_same(as.matrix(g), as.matrix(down), paste(n, k))
            expect_identical(g[["modifications"]], if (k > 0) 2L else 0L)
            expect_identical(drift(g), drift(down))
          }
        }
      }
    }
  }
})

at_each_home("lower factors and names come through", {
  set.seed(5)
  R <- structure(well_conditioned(70), dimnames = list(NULL, paste0("x", 1:70)))
  V <- normal(70, 3)
  f <- keep(t(R), "lower")
  expect_identical(as.matrix(cholupdate_gpu(f, V)), t(as.matrix(cholupdate_gpu(keep(R), V))))
})

at_each_home("V may be a vector, integer, a Matrix or a float32", {
  f <- keep(diag(3))
  expected <- as.matrix(cholupdate_gpu(f, cbind(c(1, 2, 3))))
  for (V in list(1:3, c(1, 2, 3), cbind(1:3), make_float32(1:3), make_float32(cbind(1:3)))) {
    expect_identical(as.matrix(cholupdate_gpu(f, V)), expected)
  }
  skip_if_not_installed("Matrix")
  expect_identical(as.matrix(cholupdate_gpu(f, Matrix::Matrix(c(1, 2, 3), sparse = TRUE))), expected)
})

at_each_home("a downdate that cannot be done names the pivot, and leaves what was promised", {
  set.seed(6)
  R <- well_conditioned(300)
  for (at in c(1, 64, 65, 128, 129, 299, 300)) {
    v <- numeric(300)
    v[at] <- 1.5 * sqrt(crossprod(R)[at, at])
    for (k in c(1, 20, 70)) {
      V <- cbind(v, matrix(0, 300, k - 1))
      for (method in methods) {
        f <- keep(R)
        columns <- V
        run <- function(...) cholupdate_gpu(f, columns, downdate = TRUE, method = method, ...)
        what <- paste(at, k, method)
        # a new factor
        error <- expect_error(run(), class = "gpucholmod_not_positive_definite")
        expect_identical(error$pivot, as.integer(at), label = what)
        expect_identical(last_cholupdate()$pivot, as.integer(at))
        expect_identical(run(check = FALSE), list(R = f, pivot = as.integer(at)))
        # in place, tested first
        error <- expect_error(run(in_place = TRUE), class = "gpucholmod_not_positive_definite")
        expect_identical(error$pivot, as.integer(at), label = what)
        expect_identical(run(in_place = TRUE, check = FALSE), list(R = f, pivot = as.integer(at)))
        expect_same(as.matrix(f), R, what)
        expect_identical(f$modifications, 0L)
        # in place, waived: lost, on a GPU only where there is no room for a second factor
        g <- copy_factor(f)
        no_room <- cholupdate_control()
        if (home == "cuda") {
          error <- expect_error(run(in_place = TRUE, keep_intact = FALSE), class = "gpucholmod_not_positive_definite")
          expect_identical(error$pivot, as.integer(at), label = what)
          expect_same(as.matrix(f), R, what)
          columns[1, ] <- columns[1, ] + 1e-3  # no rows stay: the memory below is that of whole factors
          expect_error(run(in_place = TRUE, keep_intact = FALSE), class = "gpucholmod_not_positive_definite")
          spare <- f$bytes * if (k == 70) 2 else 1
          no_room <- cholupdate_control(device_memory = last_cholupdate()$device_bytes_peak - spare)
        }
        error <- expect_error(run(in_place = TRUE, keep_intact = FALSE, control = no_room),
                              class = "gpucholmod_not_positive_definite")
        expect_identical(error$pivot, as.integer(at), label = what)
        expect_identical(expect_error(as.matrix(f), class = "gpucholmod_invalid_factor")$reason, "half_modified")
        expect_error(run(), class = "gpucholmod_invalid_factor")
        expect_output(print(f), "half modified")
        # and the place can be used again
        expect_lt(residual_ratio(as.matrix(cholupdate_gpu(g, V)), R, V, FALSE), 30)
      }
    }
  }
})

at_each_home("check = FALSE returns the factor and pivot 0 on success", {
  f <- keep(diag(3))
  done <- cholupdate_gpu(f, c(0.5, 0, 0), downdate = TRUE, check = FALSE)
  expect_identical(done$pivot, 0L)
  expect_s3_class(done$R, "chol_factor")
  expect_identical(cholupdate_gpu(f, c(0.5, 0, 0), check = FALSE, in_place = TRUE), list(R = f, pivot = 0L))
  expect_equal(as.matrix(f)[1, 1], sqrt(1.25))
})

at_each_home("the same bits come out every time", {
  set.seed(7)
  n <- if (home == "cpu") 500 else 2000
  R <- upper(normal(n, n, 0.01)) + diag(2, n)
  for (k in c(1, 16, 64, 100)) {
    V <- 0.1 * normal(n, k)
    for (precision in c("double", "single")) {
      f <- keep(R, precision = precision)
      for (method in methods) {
        for (downdate in c(FALSE, TRUE)) {
          run <- function() as.matrix(cholupdate_gpu(f, V, downdate, method = method))
          first <- run()
          for (i in 1:5) expect_same(run(), first, paste(k, precision, method))
        }
      }
    }
  }
})

at_each_home("what V does not touch comes back bit for bit", {
  set.seed(8)
  R <- well_conditioned(200)
  v <- replace(numeric(200), 141:200, 0.01)
  for (method in methods) {
    for (downdate in c(FALSE, TRUE)) {
      expect_same(modify_kept(R, matrix(0, 200, 3), downdate, method = method), R)
      expect_same(modify_kept(R, v, downdate, method = method)[1:128, ], R[1:128, ])
    }
  }
})

test_that("blocks that fall back are counted, and make no difference but in rounding", {
  skip_without_gpu()
  set.seed(9)
  R <- well_conditioned(700)
  for (k in c(1, 16, 40)) {
    V <- 0.1 * normal(700, k)
    for (downdate in c(FALSE, TRUE)) {
      quick <- modify_resident(R, V, downdate, method = "persistent")
      last <- last_cholupdate()
      expect_identical(last$fallbacks, 0)
      expect_gt(last$blocks, 1)
      stable <- modify_resident(R, V, downdate, method = "stepwise")
      expect_identical(last_cholupdate()$fallbacks, last_cholupdate()$blocks)
      expect_close(stable, quick, tolerance = 1e-13)
    }
  }
})

test_that("the guard refuses the quick step where it would lose accuracy", {
  skip_without_gpu()
  set.seed(10)
  for (family in c("U3 condition 1e12, V times 1e6", "U4 radial basis, nugget 1e-8")) {
    case <- update_families[[family]](517, 16)
    up <- modify_resident(case$R, case$V, FALSE, method = "persistent")
    expect_gt(last_cholupdate()$fallbacks, 0, label = family)
    expect_output(print(last_cholupdate()), "by Householder steps")
    expect_lt(residual_ratio(up, case$R, case$V, FALSE), 30, label = family)
  }
})

at_each_home("a factor with graded and mixed rows that was just modified is modified again", {
  set.seed(12)
  for (n in c(65, 200)) for (in_place in c(FALSE, TRUE)) {
    R <- graded_mixed(well_conditioned(n), 6, 0.1)
    f <- keep(R)
    for (k in c(32, 1, 8, 1)) {
      V <- crossprod(R, normal(n, k, 30 / sqrt(n)))
      f <- cholupdate_gpu(f, V, in_place = in_place)
      up <- as.matrix(f)
      expect_lt(residual_ratio(up, R, V, FALSE) * (n + k), 40, label = paste(n, k, in_place))
      expect_true(all(diag(up) > 0))
      R <- up
    }
  }
})

test_that("last_cholupdate() tells what was done", {
  skip_without_gpu()
  f <- gpu_factor(diag(200), precision = "single")
  cholupdate_gpu(f, matrix(0.01, 200, 2), TRUE, method = "stepwise", in_place = TRUE)
  last <- last_cholupdate()
  expect_s3_class(last, "gpucholmod_report")
  expect_identical(last[c("n", "k", "downdate", "backend", "method", "precision", "pivot", "in_place", "panels")],
                   list(n = 200, k = 2, downdate = TRUE, backend = "cuda", method = "stepwise", precision = "single",
                        pivot = 0L, in_place = TRUE, panels = 0))
  expect_identical(last$device, f$device_name)
  expect_gt(last$seconds, 0)
  expect_output(print(last), "rank-2 downdate of order 200.*in place")
  cholupdate_gpu(f, rep(0.1, 200))
  expect_true(last_cholupdate()$method %in% resident_methods)
  expect_false(last_cholupdate()$in_place)
})
