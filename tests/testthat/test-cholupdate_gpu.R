expect_factor <- function(modified, R, V, downdate, precision = "double", label = "") {
  expect_lt(residual_ratio(modified, R, V, downdate, precision), 30, label = paste(label, "residual ratio"))
  expect_true(all(diag(modified) > 0), label = paste(label, "positive diagonal"))
  expect_true(all(modified[lower.tri(modified)] == 0), label = paste(label, "zero lower triangle"))
}

test_that("updates and downdates agree with chol() of the modified matrix", {
  set.seed(1)
  for (n in c(1, 2, 31, 33, 65, 131)) {
    for (k in c(1, 3, 16, 17)) {
      R <- well_conditioned(n)
      V <- normal(n, k)
      expected <- chol(crossprod(R) + tcrossprod(V))
      for (name in names(cpu_methods)) {
        up <- modify(R, V, FALSE, cpu_methods[[name]])
        expect_equal(up, expected, tolerance = 1e-12, label = name)
        expect_equal(modify(up, V, TRUE, cpu_methods[[name]]), R, tolerance = 1e-11, label = name)
      }
    }
  }
})

test_that("the residual ratio holds for every family, method and precision", {
  set.seed(2)
  for (k in c(1, 16)) {
    for (family in names(update_families)) {
      case <- update_families[[family]](130, k)
      for (name in names(cpu_methods)) {
        for (precision in c("double", "single")) {
          up <- modify(case$R, case$V, FALSE, cpu_methods[[name]], precision = precision)
          expect_factor(up, case$R, case$V, FALSE, precision, paste(family, name, precision, k))
        }
      }
    }
    for (family in names(downdate_families)) {
      case <- downdate_families[[family]](130, k)
      for (name in names(cpu_methods)) {
        down <- modify(case$R, case$V, TRUE, cpu_methods[[name]])
        expect_factor(down, case$R, case$V, TRUE, "double", paste(family, name, k))
      }
    }
  }
})

test_that("downdates in single precision hold the ratio of single precision, and are no better than that", {
  set.seed(3)
  V <- normal(100, 8)
  R <- positive_qr(rbind(well_conditioned(100), t(V)))
  for (name in names(cpu_methods)) {
    down <- modify(R, V, TRUE, cpu_methods[[name]], precision = "single")
    expect_factor(down, R, V, TRUE, "single", name)
    expect_gt(residual_ratio(down, R, V, TRUE, "double"), 30)
  }
})

test_that("k may be anything from 0 to more than n, and V a vector", {
  set.seed(4)
  R <- well_conditioned(12)
  for (name in names(cpu_methods)) {
    expect_identical(modify(R, matrix(0, 12, 0), FALSE, cpu_methods[[name]]), R)
    V <- normal(12, 40)
    expect_factor(modify(R, V, FALSE, cpu_methods[[name]]), R, V, FALSE, label = name)
    expect_identical(modify(R, V[, 1], FALSE, cpu_methods[[name]]),
                     modify(R, V[, 1, drop = FALSE], FALSE, cpu_methods[[name]]))
  }
})

test_that("n may be 0 and 1", {
  for (name in names(cpu_methods)) {
    expect_identical(modify(matrix(0, 0, 0), matrix(0, 0, 3), FALSE, cpu_methods[[name]]), matrix(0, 0, 0))
    expect_equal(modify(matrix(3), 4, FALSE, cpu_methods[[name]]), matrix(5))
    expect_equal(modify(matrix(5), 4, TRUE, cpu_methods[[name]]), matrix(3))
    expect_equal(modify(5, 4, TRUE, cpu_methods[[name]]), matrix(3))
  }
})

test_that("integers are accepted", {
  R <- matrix(c(2L, 0L, 1L, 3L), 2)
  expect_identical(cholupdate_gpu(R, 1:2, backend = "cpu"), cholupdate_gpu(R + 0, c(1, 2), backend = "cpu"))
})

test_that("dimnames are kept, other attributes are not", {
  R <- chol(matrix(c(4, 1, 1, 3), 2, dimnames = list(c("a", "b"), c("a", "b"))))
  attr(R, "comment") <- "mine"
  up <- cholupdate_gpu(R, 1:2, backend = "cpu")
  expect_identical(dimnames(up), dimnames(R))
  expect_identical(names(attributes(up)), c("dim", "dimnames"))
})

test_that("the other triangle is never looked at", {
  set.seed(5)
  R <- well_conditioned(40)
  V <- normal(40, 3)
  junk <- R
  junk[lower.tri(junk)] <- NaN
  for (name in names(cpu_methods)) {
    expect_identical(suppressWarnings(modify(junk, V, FALSE, cpu_methods[[name]]), "gpucholmod_other_triangle"),
                     modify(R, V, FALSE, cpu_methods[[name]]))
  }
})

test_that("a lower factor gives the transpose of what the upper one gives", {
  set.seed(6)
  for (n in c(1, 33, 70)) {
    R <- well_conditioned(n)
    V <- normal(n, 3)
    for (name in names(cpu_methods)) {
      for (precision in c("double", "single")) {
        expect_identical(modify(t(R), V, FALSE, cpu_methods[[name]], uplo = "lower", precision = precision),
                         t(modify(R, V, FALSE, cpu_methods[[name]], precision = precision)))
      }
    }
  }
})

test_that("the order of V's columns does not matter", {
  set.seed(7)
  R <- well_conditioned(50)
  V <- normal(50, 9)
  for (name in names(cpu_methods)) {
    expect_equal(modify(R, V[, 9:1], FALSE, cpu_methods[[name]]), modify(R, V, FALSE, cpu_methods[[name]]),
                 tolerance = 1e-13)
  }
})

test_that("entries near 1e170 and 1e-170 neither overflow nor vanish", {
  set.seed(8)
  R <- well_conditioned(40)
  V <- normal(40, 3)
  for (name in names(cpu_methods)) {
    for (precision in c("double", "single")) {
      plain <- modify(R, V, FALSE, cpu_methods[[name]], precision = precision)
      for (scale in 2^c(565, -565, 1000, -1000)) {
        expect_identical(modify(scale * R, scale * V, FALSE, cpu_methods[[name]], precision = precision),
                         scale * plain)
      }
    }
    tiny <- modify(diag(c(1, 1e-170)), c(0, 1e-170), FALSE, cpu_methods[[name]])
    expect_equal(tiny[2, 2], sqrt(2) * 1e-170)
  }
  expect_error(cholupdate_gpu(diag(2) * 1.5e308, c(1.5e308, 0), backend = "cpu"), class = "gpucholmod_overflow")
})

test_that("any shape of the panels gives the same bits on the CPU", {
  set.seed(9)
  R <- well_conditioned(150)
  V <- normal(150, 20)
  expected <- modify(R, V, FALSE, cpu_methods[["reference, order B"]])
  for (shape in list(c(1, 32, 4, 64), c(2, 64, 1, 17), c(132, 64, 16, 5), c(3, 96, 32, 200))) {
    control <- cholupdate_control(blocks_per_kernel = shape[1], threads_per_block = shape[2],
                                  elements_per_thread = shape[3], panel_rows = shape[4])
    expect_identical(cholupdate_gpu(R, V, backend = "cpu", method = "panel", control = control), expected)
  }
})

test_that("neither R nor V is changed", {
  set.seed(10)
  R <- well_conditioned(70)
  V <- normal(70, 4)
  for (case in list(list(R, V), list(R, 100 * V), list(R, replace(V, 5, Inf)), list(replace(R, 1, -1), V))) {
    R_before <- unshared(case[[1]])
    V_before <- unshared(case[[2]])
    for (name in names(cpu_methods)) {
      for (downdate in c(FALSE, TRUE)) {
        try(modify(case[[1]], case[[2]], downdate, cpu_methods[[name]]), silent = TRUE)
        expect_identical(case[[1]], R_before)
        expect_identical(case[[2]], V_before)
      }
    }
  }
})

test_that("the backend can be set by an option", {
  old <- options(gpucholmod.backend = "cpu")
  on.exit(options(old))
  cholupdate_gpu(diag(3), 1:3)
  expect_identical(last_cholupdate()$backend, "cpu")
  options(gpucholmod.backend = "abacus")
  expect_error(cholupdate_gpu(diag(3), 1:3), class = "gpucholmod_bad_argument")
})
