set.seed(1)
R <- well_conditioned(20)
V <- normal(20, 3)
up <- cholupdate_gpu(R, V, backend = "cpu")

test_that("a dtrMatrix comes back as one", {
  skip_if_not_installed("Matrix")
  T <- methods::as(Matrix::Matrix(R, dimnames = list(NULL, letters[1:20])), "triangularMatrix")
  T <- methods::as(T, "unpackedMatrix")
  expect_s4_class(T, "dtrMatrix")
  done <- cholupdate_gpu(T, V, backend = "cpu")
  expect_s4_class(done, "dtrMatrix")
  expect_true(methods::validObject(done))
  expect_identical(colnames(done), letters[1:20])
  expect_identical(unname(as.matrix(done)), up)
  lower <- cholupdate_gpu(Matrix::t(T), V, backend = "cpu")
  expect_identical(lower@uplo, "L")
  expect_identical(unname(as.matrix(lower)), t(up))
  expect_error(cholupdate_gpu(T, V, uplo = "lower"), class = "gpucholmod_bad_argument")
  expect_identical(cholupdate_gpu(T, V, uplo = "upper", backend = "cpu"), done)
})

test_that("a unit triangular dtrMatrix has ones on its diagonal", {
  skip_if_not_installed("Matrix")
  U <- R / diag(R)
  T <- methods::new("dtrMatrix", x = as.vector(U * upper.tri(U)), Dim = dim(U), uplo = "U", diag = "U")
  expect_equal(as.matrix(cholupdate_gpu(T, V, backend = "cpu")), cholupdate_gpu(U, V, backend = "cpu"))
})

test_that("a Cholesky object of Matrix comes back as one", {
  skip_if_not_installed("Matrix")
  C <- Matrix::chol(methods::as(crossprod(R), "dpoMatrix"))
  if (!methods::is(C, "Cholesky")) C <- Matrix::Cholesky(methods::as(crossprod(R), "dpoMatrix"), perm = FALSE)
  done <- cholupdate_gpu(C, V, backend = "cpu")
  expect_s4_class(done, class(C))
  expect_true(methods::validObject(done))
  expect_equal(done@x, as.vector(up))
})

test_that("other classes of Matrix are refused: which triangle counts would have to be guessed", {
  skip_if_not_installed("Matrix")
  T <- methods::as(methods::as(Matrix::Matrix(R), "triangularMatrix"), "unpackedMatrix")
  A <- methods::as(crossprod(R), "dpoMatrix")
  for (other in list(methods::as(T, "packedMatrix"), Matrix::t(methods::as(T, "CsparseMatrix")), A,
                     methods::new("dgeMatrix", x = as.vector(R), Dim = dim(R)))) {
    expect_identical(expect_error(cholupdate_gpu(other, V), class = "gpucholmod_not_numeric")$type, class(other)[[1]])
  }
})

test_that("V may be a Matrix", {
  skip_if_not_installed("Matrix")
  expect_identical(cholupdate_gpu(R, Matrix::Matrix(V), backend = "cpu"), up)
  sparse <- Matrix::sparseMatrix(i = c(1, 5), j = c(1, 2), x = c(1, 2), dims = c(20, 2))
  expect_identical(cholupdate_gpu(R, sparse, backend = "cpu"), cholupdate_gpu(R, as.matrix(sparse), backend = "cpu"))
})

test_that("a float32 matrix is computed in single precision and comes back as one", {
  S <- make_float32(R)
  for (v in list(V, make_float32(V))) {
    done <- cholupdate_gpu(S, v, backend = "cpu")
    expect_identical(last_cholupdate()$precision, "single")
    expect_s4_class(done, "float32")
    expect_identical(dim(done@Data), dim(R))
    expect_identical(widen(done), as.vector(cholupdate_gpu(R, V, precision = "single", backend = "cpu")))
  }
  expect_identical(widen(cholupdate_gpu(R = done, V = V, downdate = TRUE, backend = "cpu")),
                   as.vector(cholupdate_gpu(matrix(widen(done), 20), V, TRUE, precision = "single", backend = "cpu")))
})

test_that("a float32 matrix can be computed in double precision, which gives an ordinary matrix", {
  S <- make_float32(R)
  done <- cholupdate_gpu(S, V, precision = "double", backend = "cpu")
  expect_identical(last_cholupdate()$precision, "double")
  narrowed <- matrix(widen(make_float32(V)), 20)
  expect_identical(done, cholupdate_gpu(matrix(widen(S), 20), narrowed, backend = "cpu"))
})

test_that("a float32 V goes with a double R", {
  narrowed <- matrix(widen(make_float32(V)), 20)
  expect_identical(cholupdate_gpu(R, make_float32(V), backend = "cpu"), cholupdate_gpu(R, narrowed, backend = "cpu"))
})

test_that("bad float32 input is found", {
  bad <- R
  bad[3, 3] <- 1e-44  # subnormal
  expect_identical(expect_error(cholupdate_gpu(make_float32(bad), V), class = "gpucholmod_bad_diagonal")$index, 3)
  expect_error(cholupdate_gpu(make_float32(R[1:3, ]), V), class = "gpucholmod_not_square")
})

test_that("conversions between float and double round to nearest", {
  expect_identical(gpucholmod:::rcpp_from_float(gpucholmod:::rcpp_to_float(c(1, 0.1, -2^-140))),
                   c(1, 13421773 / 2^27, -2^-140))
})

test_that("numbers with a class of S3 are taken for V, b and A", {
  v <- as.vector(V[, 1])
  expect_identical(cholupdate_gpu(R, ts(v), backend = "cpu"), cholupdate_gpu(R, v, backend = "cpu"))
  expect_identical(cholupdate_gpu(R, ts(V), backend = "cpu"), cholupdate_gpu(R, V, backend = "cpu"))
  expect_identical(cholupdate_gpu(R, I(V), backend = "cpu"), cholupdate_gpu(R, V, backend = "cpu"))
  integer64 <- structure(v, class = "integer64") # package bit64 keeps integers in the bits of doubles
  expect_identical(expect_error(cholupdate_gpu(R, integer64), class = "gpucholmod_not_numeric")$type, "integer64")
  for (x in list(Sys.Date() + 1:20, factor(1:20))) {
    expect_error(cholupdate_gpu(R, x), class = "gpucholmod_not_numeric")
  }
})

test_that("a hint is given where it helps, and fits", {
  hint <- function(R) conditionMessage(expect_error(cholupdate_gpu(R, 1:3), class = "gpucholmod_not_numeric"))
  expect_no_match(hint(t), "as.matrix", fixed = TRUE)
  expect_no_match(hint(methods::show), "as.matrix", fixed = TRUE)
  expect_match(hint(data.frame(a = 1)), "as.matrix() first", fixed = TRUE)
  skip_if_not_installed("Matrix")
  A <- Matrix::Matrix(diag(3) + 1)
  expect_match(hint(A), "chol(R)", fixed = TRUE)
  expect_no_match(hint(A), "as.matrix", fixed = TRUE)
  sparse <- Matrix::Matrix(diag(3) + 1, sparse = TRUE)
  expect_match(hint(methods::as(sparse, "generalMatrix")), "as.matrix() first", fixed = TRUE)
  made <- Matrix::Cholesky(sparse, perm = FALSE, LDL = FALSE)
  expect_match(hint(made), "t(as.matrix(Matrix::expand(R)$L))", fixed = TRUE)
  expect_equal(t(as.matrix(Matrix::expand(made)$L)), chol(diag(3) + 1), ignore_attr = TRUE)
})

test_that("Matrix and float32 factors whose rows and columns come, go and move stay what they are", {
  A <- crossprod(well_conditioned(6))
  float <- make_float32(chol(A[-2, -2]))
  more <- cholinsert_gpu(float, A[, 2], 2)
  expect_s4_class(more, "float32")
  expect_equal(matrix(gpucholmod:::rcpp_from_float(more@Data), 6), chol(A), tolerance = 1e-6)
  skip_if_not_installed("Matrix")
  T <- methods::as(methods::as(Matrix::Matrix(chol(A)), "triangularMatrix"), "unpackedMatrix")
  less <- choldelete_gpu(T, c(1, 4))
  expect_s4_class(less, "dtrMatrix")
  expect_equal(as.matrix(less), chol(A[-c(1, 4), -c(1, 4)]))
  expect_equal(as.matrix(cholshift_gpu(Matrix::t(T), 2, 5)), t(chol(A[c(1, 3:5, 2, 6), c(1, 3:5, 2, 6)])))
})

test_that("new columns may be float32, and names given where an object of Matrix has none", {
  A <- crossprod(well_conditioned(4))
  f <- chol_factor(chol(A[-2, -2]), "cpu")
  expect_equal(as.matrix(cholinsert_gpu(f, make_float32(A[, 2, drop = FALSE]), 2)), chol(A), tolerance = 1e-6)
  skip_if_not_installed("Matrix")
  T <- methods::as(methods::as(Matrix::Matrix(chol(A[-2, -2])), "triangularMatrix"), "unpackedMatrix")
  expect_identical(T@Dimnames, list(NULL, NULL))
  expect_identical(cholinsert_gpu(T, A[, 2], 2, names = "b")@Dimnames, rep(list(c("", "b", "", "")), 2L))
  expect_identical(cholinsert_gpu(T, A[, 2], 2)@Dimnames, list(NULL, NULL))
})
