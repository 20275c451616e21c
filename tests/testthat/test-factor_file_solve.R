# What is done with a factor in a file: solve() and its kin are about A, as for a factor on a GPU.
if (.Platform$OS.type != "windows") {
  set.seed(1)
  A <- crossprod(well_conditioned(90))
  R <- chol(A)
  B <- normal(90, 4)
  path <- tempfile()
  f <- write_factor(R, path)

  test_that("solve(), chol2inv(), determinant() and logdet() are about A, diag() about the factor", {
    expect_equal(solve(f, B), solve(A, B), tolerance = 1e-12)
    expect_equal(solve(f, 1:90), solve(A, 1:90), tolerance = 1e-12)
    expect_equal(solve(f), solve(A), tolerance = 1e-12)
    expect_equal(chol2inv(f), solve(A), tolerance = 1e-12)
    expect_equal(determinant(f), determinant(A), tolerance = 1e-12)
    expect_equal(determinant(f, logarithm = FALSE)$modulus, determinant(A, logarithm = FALSE)$modulus,
                 tolerance = 1e-10)
    expect_equal(logdet(f), logdet(R))
    expect_identical(diag(f), diag(R))
    expect_equal(solve_forward(f, B), solve_forward(R, B), tolerance = 1e-12)
    expect_equal(solve_back(f, 1:90), solve_back(R, 1:90), tolerance = 1e-12)
    named <- B
    colnames(named) <- letters[1:4]
    expect_identical(colnames(solve(f, named)), letters[1:4])
  })

  test_that("any width of the panels gives the same", {
    over_panels <- gpucholmod:::over_panels
    for (width in c(1, 7, 89, 90)) {
      J <- c()
      over_panels(f, reverse = FALSE, bytes = 8 * 90 * width, work = function(j, top, block) {
        expect_identical(rbind(top, block), R[seq_len(max(j)), j, drop = FALSE])
        J <<- c(J, j)
      })
      expect_identical(J, 1:90)
      over_panels(f, reverse = TRUE, bytes = 8 * 90 * width, work = function(j, top, block) J <<- setdiff(J, j))
      expect_length(J, 0)
    }
    narrow <- function(substitute) {
      environment(substitute) <- list2env(list(over_panels = function(f, reverse, work) {
        over_panels(f, reverse, work, bytes = 8 * 90 * 13)
      }), parent = environment(substitute))
      substitute(f, B)
    }
    expect_equal(narrow(gpucholmod:::substitute_forward), solve_forward(R, B), tolerance = 1e-12)
    expect_equal(narrow(gpucholmod:::substitute_back), solve_back(R, B), tolerance = 1e-12)
  })

  test_that("what cannot be used is an error of its own", {
    expect_error(solve(f, 1:89), class = "gpucholmod_dimension_mismatch")
    expect_error(solve_back(f, "a"), class = "gpucholmod_not_numeric")
    expect_error(logdet(f, uplo = "lower"), class = "gpucholmod_bad_argument")
    gone <- write_factor(diag(3), tempfile())
    unlink(gone$path)
    for (use in list(diag, logdet, chol2inv, determinant, function(f) solve(f, 1:3), function(f) solve_back(f, 1:3))) {
      expect_identical(expect_error(use(gone), class = "gpucholmod_bad_file")$reason, "missing")
    }
  })

  test_that("a factor that cannot be solved with is refused", {
    for (bad in c(NaN, NA, Inf, -Inf, 1e-310)) {
      g <- write_factor(replace(R, 91 * 6 + 1, bad), tempfile())
      uses <- list(logdet, chol2inv, determinant, function(f) solve(f, B), function(f) solve_forward(f, 1:90),
                   function(f) solve_back(f, B))
      for (use in uses) expect_identical(expect_error(use(g), class = "gpucholmod_bad_diagonal")$index, 7L)
      expect_identical(diag(g)[[7]], bad)
      unlink(g$path)
    }
  })

  test_that("a number that is not finite is found, wherever it is", {
    for (bad in c(NaN, Inf, -Inf)) for (at in list(c(1, 2), c(7, 90), c(40, 41))) {
      S <- R
      S[at[[1]], at[[2]]] <- bad
      g <- write_factor(S, tempfile())
      uses <- list(chol2inv, function(f) solve(f, B), function(f) solve(f, 0 * B), function(f) solve_forward(f, 1:90),
                   function(f) solve_back(f, B))
      for (use in uses) {
        error <- expect_error(use(g), class = "gpucholmod_not_finite")
        expect_equal(unlist(error[c("row", "col", "value")]), c(row = at[[1]], col = at[[2]], value = bad))
      }
      unlink(g$path)
    }
  })

  test_that("a file that is replaced while it is read is an error", {
    g <- write_factor(R, tempfile())
    expect_identical(expect_error(gpucholmod:::unchanged(g, {
      write_factor(2 * R, g$path, replace = TRUE)
      1
    }), class = "gpucholmod_bad_file")$reason, "changed")
    expect_identical(gpucholmod:::unchanged(g, 1), 1)
    unlink(g$path)
  })

  unlink(path)
}
