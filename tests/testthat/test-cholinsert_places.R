# Insertions at several places, permutations, and indices as `[` has them, against chol() of the matrix.

spd <- function(n) crossprod(well_conditioned(n))
named <- function(A) structure(A, dimnames = rep(list(paste0("x", seq_len(nrow(A)))), 2L))
same <- function(object, expected) expect_equal(object, expected, tolerance = 1e-11)

at_each_home("columns come to several places of the new matrix, in any order", {
  set.seed(6)
  A <- named(spd(40))
  z <- cbind(backsolve(chol(A), sin(1:40), transpose = TRUE), 1)
  b <- crossprod(chol(A), z)
  for (at in list(c(3, 17), c(17, 3), c(1, 40), c(5, 6, 20), c(40, 1, 2, 9, 10, 30), 40:38)) {
    R <- chol(A[-at, -at])
    old <- backsolve(R, b[-at, ], transpose = TRUE)
    same(cholinsert_gpu(R, A[, at], at), chol(A))
    same(cholinsert_gpu(unname(R), A[, at], at), unname(chol(A)))
    same(cholinsert_gpu(t(R), A[, at], at, uplo = "lower"), t(chol(A)))
    f <- keep(R)
    before <- as.matrix(f)
    g <- cholinsert_gpu(f, A[, at], at)
    same(as.matrix(g), chol(A))
    expect_same(as.matrix(f), before)
    for (home in list(R, f)) {
      done <- cholinsert_gpu(home, A[, at], at, z = old, b = b[at, ], rss = c(100, 100))
      same(unname(done$z), unname(z))
      same(done$rss, 100 - colSums(z^2) + colSums(old^2))
    }
    same(as.vector(cholinsert_gpu(R, A[, at], at, z = old[, 2], b = b[at, 2])$z), z[, 2])
    h <- copy_factor(f)
    expect_identical(cholinsert_gpu(h, A[, at], at, in_place = TRUE), h)
    expect_same(as.matrix(h), as.matrix(g))
    expect_identical(dimnames(h), dimnames(A))
  }
  same(cholinsert_gpu(chol(A[-(7:9), -(7:9)]), A[, 7:9], 7:9), chol(A))
})

at_each_home("what cannot be inserted at several places names the first minor, and changes nothing", {
  set.seed(7)
  A <- spd(20)
  worse <- function(j, amount = 1) {
    A[j, j] <<- A[j, j] - amount * A[j, j] * 1.5
  }
  for (bad in list(4, 15, c(15, 4), 9)) {
    A <- spd(20)
    for (j in bad) worse(j)
    at <- c(15, 4, 9)
    R <- chol(A[-at, -at])
    minors <- vapply(1:20, function(i) min(eigen(A[1:i, 1:i], TRUE, TRUE)$values) > 0, TRUE)
    first <- match(FALSE, minors)
    f <- keep(R)
    for (call in list(function(...) cholinsert_gpu(R, A[, at], at, ...),
                      function(...) cholinsert_gpu(f, A[, at], at, ...),
                      function(...) cholinsert_gpu(f, A[, at], at, in_place = TRUE, ...))) {
      expect_identical(expect_error(call(), class = "gpucholmod_not_positive_definite")$pivot, first)
      expect_identical(call(check = FALSE)$pivot, first)
    }
    expect_same(as.matrix(f), R)
  }
  # the minor that fails first is that of a column which is inserted later
  A <- diag(6)
  A[1, 6] <- A[6, 1] <- 0.9
  A[4, 4] <- -1
  A[2, 6] <- A[6, 2] <- 0.9
  expect_identical(cholinsert_gpu(chol(A[-c(2, 4), -c(2, 4)]), A[, c(2, 4)], c(2, 4), check = FALSE)$pivot, 4L)
})

at_each_home("several places and jitter go together", {
  A <- diag(5)
  A[2, 2] <- A[5, 5] <- 0
  f <- keep(diag(3))
  value <- suppressMessages(cholinsert_gpu(f, A[, c(5, 2)], c(5, 2), jitter = 0.25, check = FALSE))
  expect_identical(value$jitter, 0.25)
  same(diag(value$R), c(1, 0.5, 1, 1, 0.5))
})

test_that("places that cannot be used are named", {
  refused <- function(at) {
    error <- expect_error(cholinsert_gpu(diag(4), diag(6)[, 5:6], at), class = "gpucholmod_bad_argument")
    expect_identical(error$argument, "at")
  }
  for (at in list(c(2, 2), c(0, 3), c(1, 7), c(1.5, 3), 1:3, c(NA, 3), c("a", "b"), 6)) refused(at)
})

at_each_home("names of columns come along where the factor has names", {
  A <- named(spd(6))
  expect_identical(colnames(cholinsert_gpu(chol(A[-3, -3]), A[, 3, drop = FALSE], 3)), colnames(A))
  expect_identical(dimnames(cholinsert_gpu(keep(chol(A[-3, -3])), A[, 3, drop = FALSE], 3)), dimnames(A))
  expect_null(dimnames(cholinsert_gpu(unname(chol(A[-3, -3])), A[, 3, drop = FALSE], 3)))
  expect_identical(colnames(cholinsert_gpu(chol(A[-3, -3]), A[, 3, drop = FALSE], 3, names = "q"))[[3]], "q")
})

at_each_home("what goes is told as `[` tells it", {
  A <- named(spd(8))
  R <- chol(A)
  f <- keep(R)
  for (index in list(-1, -(2:8), c(TRUE, FALSE), c(FALSE, FALSE, TRUE), rep(c(FALSE, TRUE), 4), c(2, 2, 5), 0, c(0, 3),
                     c("x2", "x2"))) {
    gone <- unique(stats::setNames(1:8, colnames(A))[index])
    kept <- setdiff(1:8, gone)
    expected <- chol(A[kept, kept, drop = FALSE])
    same(choldelete_gpu(R, index), expected)
    same(as.matrix(choldelete_gpu(f, index)), expected)
  }
  expect_identical(dim(choldelete_gpu(R, TRUE)), c(0L, 0L))
  expect_identical(choldelete_gpu(R, FALSE), R)
})

at_each_home("rows and columns are permuted", {
  set.seed(8)
  A <- named(spd(25))
  R <- chol(A)
  b <- cos(1:25)
  z <- backsolve(R, b, transpose = TRUE)
  for (order in list(1:25, 25:1, c(2:25, 1), c(25, 1:24), sample(25), sample(25))) {
    P <- A[order, order]
    same(cholpermute_gpu(R, order), chol(P))
    same(cholpermute_gpu(t(R), order, uplo = "lower"), t(chol(P)))
    same(cholpermute_gpu(R, colnames(A)[order]), chol(P))
    done <- cholpermute_gpu(R, order, z = z)
    same(as.vector(done$z), backsolve(chol(P), b[order], transpose = TRUE))
    f <- keep(R)
    same(as.matrix(cholpermute_gpu(f, order)), chol(P))
    expect_same(as.matrix(f), R)
    done <- withVisible(cholpermute_gpu(f, order, in_place = TRUE))
    expect_identical(done[c("value", "visible")], list(value = f, visible = FALSE))
    same(as.matrix(f), chol(P))
    expect_identical(dimnames(f), dimnames(P))
  }
  for (bad in list(1:24, c(1:24, 24), 0:24, NULL, c(1:24, NA), letters[1:25])) {
    expect_identical(expect_error(cholpermute_gpu(R, bad), class = "gpucholmod_bad_argument")$argument, "order")
  }
})

test_that("a factor over processes takes several places and permutations", {
  skip_on_cran()
  set.seed(9)
  A <- spd(12)
  path <- tempfile()
  on.exit(unlink(path))
  saveRDS(A, path)
  run <- in_processes(2, c(
    sprintf("A <- readRDS('%s'); at <- c(9, 2, 3)", path),
    "f <- chol_factor(if (rank == 0) chol(A[-at, -at]), processes = TRUE)",
    "cholinsert_gpu(f, if (rank == 0) A[, at], at = at, in_place = TRUE)",
    "p <- cholpermute_gpu(f, 12:1)",
    "m <- as.matrix(p); tell(if (rank == 0) isTRUE(all.equal(m, chol(A[12:1, 12:1]))) else is.null(m), dim(f)[1])"
  ))
  expect_told(run, 0:1, "TRUE 12")
})
