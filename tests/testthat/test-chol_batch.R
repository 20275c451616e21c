# Handles of batches.

set.seed(3)
R <- array(vapply(1:11, function(i) well_conditioned(6), numeric(36)), c(6, 6, 11))
V <- array(rnorm(6 * 2 * 11) / 30, c(6, 2, 11))

at_each_home("a batch is what was put into it", {
  for (uplo in c("upper", "lower")) {
    X <- if (uplo == "upper") R else aperm(R, c(2, 1, 3))
    f <- keep_batch(X, uplo = uplo)
    expect_s3_class(f, "chol_batch")
    expect_identical(dim(f), c(6L, 6L, 11L))
    expect_length(f, 11)
    expect_identical(as.array(f), X)
    expect_identical(f[[3]], X[, , 3])
    expect_identical(diag(f), apply(R, 3, diag))
    expect_equal(logdet(f), apply(R, 3, function(r) 2 * sum(log(diag(r)))), tolerance = 1e-14)
  }
  expect_output(print(f), "<chol_batch> 11 of 6 x 6, lower, double precision")
  expect_output(str(f), if (home == "cpu") "in ordinary memory" else "on device")
  expect_match(format(f), "^<chol_batch>")
})

at_each_home("names are kept, of members too", {
  X <- R
  dimnames(X) <- list(letters[1:6], LETTERS[1:6], paste0("m", 1:11))
  f <- keep_batch(X)
  expect_identical(as.array(f), X)
  expect_identical(f[["m4"]], X[, , 4])
  expect_identical(dimnames(cholupdate_batch(f, V)), dimnames(X))
})

at_each_home("results have the names of the members", {
  members <- paste0("m", 1:11)
  f <- keep_batch(structure(R, dimnames = list(letters[1:6], letters[1:6], members)))
  plain <- keep_batch(R)
  b <- structure(V, dimnames = list(NULL, c("p", "q"), NULL))
  expect_identical(solve(f, V), structure(solve(plain, V), dimnames = list(letters[1:6], NULL, members)))
  expect_identical(dimnames(solve(f, b)), list(letters[1:6], c("p", "q"), members))
  expect_identical(dimnames(solve(f, 1:6)), list(letters[1:6], members))
  expect_identical(dimnames(solve_factor(f, 1:6)), list(letters[1:6], members))
  expect_identical(dimnames(solve_forward(f, V)), list(NULL, NULL, members))
  expect_identical(dimnames(solve_back(f, 1:6)), list(NULL, members))
  expect_identical(logdet(f), stats::setNames(logdet(plain), members))
  expect_identical(summary(f)$logdet, logdet(f))
  expect_identical(diag(f), structure(diag(plain), dimnames = list(NULL, members)))
  expect_identical(diag(f, names = FALSE), diag(plain))
  expect_named(cholupdate_batch(f, V, check = FALSE)$pivot, members)
  expect_named(cholupdate_batch(as.array(f), V, check = FALSE)$pivot, members)
  expect_named(solve_modified(f, V, check = FALSE)$pivot, members)
  expect_named(cholinsert_gpu(f, c(numeric(6), 1), check = FALSE)$pivot, members)
  expect_named(cholupdate_batch(list(u = R[, , 1]), list(1:6), check = FALSE)$pivot, "u")
  expect_identical(dimnames(solve(plain, structure(V[, 1, ], dimnames = list(NULL, members)))), list(NULL, members))
  expect_null(dimnames(solve(plain, V)))
})

test_that("a list may have members of every class that one factor may have", {
  A <- crossprod(R[, , 1])
  single <- as_floats(R[, , 1])
  expect_identical(chol_batch(list(make_float32(R[, , 1])), "cpu")[[1]], single)
  made <- cholupdate_batch(list(make_float32(R[, , 1])), list(1:6))[[1]]
  expect_s4_class(made, "float32")
  expect_equal(widen(made), as.vector(cholupdate_gpu(single, 1:6)), tolerance = 1e-6)
  skip_if_not_installed("Matrix")
  U <- methods::as(methods::as(Matrix::Matrix(R[, , 1]), "triangularMatrix"), "unpackedMatrix")
  L <- Matrix::t(U)
  mixed <- chol_batch(list(a = U, b = L, c = R[, , 2]), "cpu")
  expect_identical(mixed$uplo, "upper")
  expect_identical(as.array(mixed), structure(R[, , c(1, 1, 2)], dimnames = list(NULL, NULL, c("a", "b", "c"))))
  lower <- chol_batch(list(L, L), "cpu")
  expect_identical(lower$uplo, "lower")
  expect_identical(lower[[2]], t(R[, , 1]))
  error <- expect_error(chol_batch(list(U, L), "cpu", "upper"), class = "gpucholmod_bad_argument")
  expect_identical(error$argument, "uplo")
  changed <- cholupdate_batch(list(U, L, R[, , 1]), list(V[, , 1], Matrix::Matrix(V[, , 1]), V[, , 1]))
  expect_equal(changed[[1]], cholupdate_gpu(U, V[, , 1]))
  expect_equal(changed[[2]], cholupdate_gpu(L, V[, , 1]))
  expect_s4_class(changed[[2]], "dtrMatrix")
  expect_error(chol_batch(list(R[, , 1], Matrix::Matrix(A))), class = "gpucholmod_not_numeric")
  expect_error(chol_batch(list(chol(A, pivot = TRUE))), class = "gpucholmod_pivoted")
})

test_that("what a batch cannot do is an error, and is not ignored", {
  f <- chol_batch(R, "cpu")
  error <- expect_error(f[[1]] <- R[, , 2], class = "gpucholmod_not_supported")
  expect_identical(unclass(error)[c("operation", "backend")], list(operation = "[[<-", backend = "batch"))
  expect_error(dimnames(f) <- NULL, class = "gpucholmod_not_supported")
  expect_identical(as.array(f), R)
  refused <- function(code, argument) {
    expect_identical(expect_error(code, class = "gpucholmod_bad_argument")$argument, argument)
  }
  refused(f[[]], "i")
  refused(f[[1, 2]], "...")
  refused(solve(f, V, 1), "...")
  refused(diag(f, nrow = 2), "nrow")
  refused(chol_batch(R, device = 0), "device")
})

at_each_home("it is modified as an array is, in place or not", {
  for (precision in c("double", "single")) {
    f <- keep_batch(R, precision = precision)
    start <- as.array(f)
    g <- cholupdate_batch(f, V)
    expect_identical(as.array(f), start)
    as_array <- cholupdate_batch(R, V, precision = precision, backend = "cpu")
    if (home == "cpu") expect_identical(as.array(g), as_array)
    expect_equal(as.array(g), as_array, tolerance = if (precision == "single") 1e-6 else 1e-14)
    h <- copy_factor(f)
    expect_identical(cholupdate_batch(h, V, in_place = TRUE), h)
    expect_identical(as.array(h), as.array(g))
    expect_identical(as.array(f), start)
    cholupdate_batch(h, V, weights = c(-1, -1), in_place = TRUE)
    expect_equal(as.array(h), R, tolerance = if (precision == "single") 1e-5 else 1e-13)
  }
})

at_each_home("where a member fails, nothing changes, or all others do", {
  U <- V
  U[, 1, 7] <- 2 * R[1, , 7]
  f <- keep_batch(R)
  for (in_place in c(FALSE, TRUE)) {
    error <- expect_error(cholupdate_batch(f, U, downdate = TRUE, in_place = in_place),
                          class = "gpucholmod_not_positive_definite")
    expect_identical(error[c("members", "pivots")], list(members = 7L, pivots = 1L))
    expect_identical(as.array(f), R)
  }
  some <- cholupdate_batch(f, U, downdate = TRUE, check = FALSE)
  expect_identical(some$pivot, replace(integer(11), 7, 1L))
  expect_identical(some$R[[7]], R[, , 7])
  expect_equal(some$R[[8]], cholupdate_batch(R, V, downdate = TRUE, backend = "cpu")[, , 8], tolerance = 1e-14)
  cholupdate_batch(f, U, downdate = TRUE, check = FALSE, in_place = TRUE)
  expect_identical(as.array(f), as.array(some$R))
})

at_each_home("it is solved with", {
  f <- keep_batch(R)
  B <- array(rnorm(6 * 3 * 11), c(6, 3, 11))
  x <- solve(f, B)
  for (m in 1:11) expect_equal(x[, , m], solve(crossprod(R[, , m]), B[, , m]), tolerance = 1e-10)
  expect_identical(solve(f, B[, 1, ]), x[, 1, ])
  expect_identical(solve(f, B[, 1, 1]), solve(f, matrix(B[, 1, 1], 6, 11)))
  floats <- make_float32(B[, 1, ])
  expect_identical(solve(f, floats), solve(f, matrix(widen(floats), 6)))
  expect_identical(as.array(cholupdate_batch(f, floats)), as.array(cholupdate_batch(f, matrix(widen(floats), 6))))
  expect_equal(solve_back(f, solve_forward(f, B)), x)
  expect_equal(solve_forward(f, B)[, , 2], solve_forward(R[, , 2], B[, , 2]))
  for (bad in list(1:5, matrix(1, 6, 2), array(1, c(6, 1, 3)))) {
    expect_error(solve(f, bad), class = "gpucholmod_dimension_mismatch")
  }
  expect_error(solve(f), class = "gpucholmod_bad_argument")
})

at_each_home("a handle that cannot be used says why, whatever is asked of it", {
  uses <- list(as.array, copy_factor, logdet, diag, function(f) f[[1]], function(f) solve(f, 1:6),
               function(f) solve_forward(f, 1:6),
               function(f) solve_back(f, 1:6), function(f) cholupdate_batch(f, V),
               function(f) cholupdate_batch(f, V, in_place = TRUE))
  freed <- keep_batch(R)
  expect_null(free(freed))
  expect_null(free(freed))
  restored <- unserialize(serialize(keep_batch(R), NULL))
  for (use in uses) {
    expect_identical(expect_error(use(freed), class = "gpucholmod_invalid_factor")$reason, "freed")
    expect_identical(expect_error(use(restored), class = "gpucholmod_invalid_factor")$reason, "restored")
  }
  expect_output(print(freed), "given back")
  expect_identical(length(restored), 11L)
})

at_each_home("bad input is refused, and names the member", {
  bad <- R
  bad[2, 2, 9] <- 1e-310
  error <- expect_error(keep_batch(bad), class = "gpucholmod_bad_diagonal")
  expect_equal(error[c("member", "index")], list(member = 9, index = 2))
  f <- keep_batch(R)
  bad <- V
  bad[3, 1, 10] <- NA
  for (in_place in c(FALSE, TRUE)) {
    error <- expect_error(cholupdate_batch(f, bad, in_place = in_place), class = "gpucholmod_not_finite")
    expect_equal(error[c("member", "row", "col")], list(member = 10, row = 3, col = 1))
  }
  expect_identical(as.array(f), R)
  refused <- function(call, class = "bad_argument") expect_error(call, class = paste0("gpucholmod_", class))
  refused(chol_batch(R[, , 1]), "not_square")
  refused(chol_batch("x"), "not_numeric")
  refused(chol_batch(R, uplo = "both"))
  refused(chol_batch(R, "cpu", "upper", "double", NULL, 1))
  for (i in list(0, 12, 1.5, "x", 1:2, NULL)) refused(f[[i]])
  refused(cholupdate_batch(f, V, precision = "single"))
  refused(cholupdate_batch(f, V, uplo = "lower"))
  refused(cholupdate_batch(f, V, backend = setdiff(c("cpu", "cuda"), home)))
  refused(cholupdate_batch(f, V, in_place = NA))
})

at_each_home("there may be none, and of none", {
  f <- keep_batch(array(0, c(4, 4, 0)))
  expect_identical(as.array(cholupdate_batch(f, array(0, c(4, 1, 0)))), array(0, c(4, 4, 0)))
  expect_identical(logdet(f), numeric())
  f <- keep_batch(array(0, c(0, 0, 3)))
  expect_identical(dim(cholupdate_batch(f, array(0, c(0, 2, 3)), in_place = TRUE)), c(0L, 0L, 3L))
  expect_identical(logdet(f), numeric(3))
})

test_that("where there is no GPU, one that is asked for is an error", {
  skip_if(gpu_info(memory = FALSE)$usable)
  expect_error(chol_batch(R, backend = "cuda"), class = "gpucholmod_backend_unavailable")
  expect_error(cholupdate_batch(R, V, backend = "cuda"), class = "gpucholmod_backend_unavailable")
})

test_that("on a GPU arrays and lists come back as from the CPU", {
  skip_without_gpu()
  for (downdate in c(FALSE, TRUE)) {
    here <- cholupdate_batch(R, V, downdate, backend = "cpu")
    expect_equal(cholupdate_batch(R, V, downdate, backend = "cuda"), here, tolerance = 1e-14)
    of <- lapply(1:11, function(m) list(R[, , m], V[, , m]))
    there <- cholupdate_batch(lapply(of, `[[`, 1), lapply(of, `[[`, 2), downdate, backend = "cuda")
    expect_equal(array(unlist(there), dim(R)), here, tolerance = 1e-14)
  }
  expect_identical(last_cholupdate()$backend, "cuda")
  f <- chol_batch(R, "cuda")
  cholupdate_batch(f, V, in_place = TRUE)
  last <- last_cholupdate()
  expect_identical(last[c("members", "backend", "in_place")], list(members = 11, backend = "cuda", in_place = TRUE))
  expect_gt(last$seconds, 0)
})

test_that("on a GPU members may be larger than a block of threads", {
  skip_without_gpu()
  n <- 1100
  one <- well_conditioned(n)
  X <- array(one, c(n, n, 2))
  U <- array(rnorm(n * 3 * 2) / n, c(n, 3, 2))
  f <- chol_batch(X, "cuda")
  cholupdate_batch(f, U, downdate = TRUE, in_place = TRUE)
  expect_equal(f[[2]], chol(crossprod(one) - tcrossprod(U[, , 2])), tolerance = 1e-10)
  expect_equal(diag(f)[, 1], diag(f[[1]]))
})
