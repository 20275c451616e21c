# Rows of V and X go by place. Where they have the names of the factor's variables in another order, that is an error.

names <- paste0("p", 1:4)
K <- exp(-as.matrix(dist(1:4))) + diag(0.1, 4)
dimnames(K) <- list(names, names)
R <- chol(K)
V <- matrix(c(1, 0, 2, 0, 1, 1, 0, 3), 4, dimnames = list(names, NULL))
swapped <- V[c(2, 1, 3, 4), ]

expect_other_order <- function(code, argument, row = 1) {
  error <- expect_error(code, "in another order than the factor", class = "gpucholmod_bad_argument")
  expect_identical(error$argument, argument)
  expect_match(conditionMessage(error), sprintf("row %d is", row))
}

test_that("columns of a matrix, or a vector, have their rows in the order of the factor", {
  plain <- cholupdate_gpu(R, unname(V))
  expect_identical(cholupdate_gpu(R, V), plain)
  expect_identical(cholupdate_gpu(R, V[, 1]), cholupdate_gpu(R, unname(V[, 1])))
  expect_identical(cholupdate_gpu(R, `rownames<-`(V, letters[1:4])), plain)
  expect_identical(cholupdate_gpu(R, `rownames<-`(V, c("", "p2", "", ""))), plain)
  expect_identical(cholupdate_gpu(unname(R), swapped), unname(cholupdate_gpu(R, unname(swapped))))
  expect_other_order(cholupdate_gpu(R, swapped), "V")
  expect_other_order(cholupdate_gpu(R, swapped[, 1]), "V")
  expect_other_order(cholupdate_gpu(t(R), swapped, uplo = "lower"), "V")
  expect_other_order(cholupdate_gpu(R, `rownames<-`(V, c("p1", "", "p4", ""))), "V", 3)
  S <- R + 0
  expect_other_order(cholupdate_overwrite(S, swapped), "V")
  expect_identical(S, R)
  suppressMessages(cholupdate_overwrite(S, V))
  expect_identical(S, plain)
  expect_other_order(cholupdate_batch(array(R, c(4, 4, 2), list(names, names, NULL)), swapped), "V")
  expect_other_order(solve_modified(R, swapped, 1:4), "V")
  expect_other_order(solve_modified(R, list(V, swapped), 1:4), "V")
  expect_other_order(cholupdate_batch(list(R, R), list(V, swapped)), "V")
  expect_equal(cholupdate_batch(list(R, unname(R)), list(V, swapped))[[1]], plain)
})

at_each_home("columns for a handle or a batch have their rows in its order", {
  f <- keep(R)
  before <- as.matrix(f)
  expect_other_order(cholupdate_gpu(f, swapped), "V")
  expect_other_order(cholupdate_gpu(f, swapped, in_place = TRUE, check = FALSE), "V")
  expect_other_order(solve_modified(f, swapped, 1:4), "V")
  expect_other_order(cholupdate_gpu(keep(t(R), uplo = "lower"), swapped), "V")
  expect_identical(as.matrix(f), before)
  expect_identical(as.matrix(cholupdate_gpu(f, V)), as.matrix(cholupdate_gpu(f, unname(V))))
  b <- keep_batch(array(R, c(4, 4, 2), list(names, names, NULL)))
  expect_other_order(cholupdate_batch(b, swapped), "V")
  expect_other_order(solve_modified(b, swapped, matrix(1, 4, 2)), "V")
  X <- array(c(0.1, 0.1, 0.1, 0.1, 9), c(5, 1, 2), list(c(names[c(2, 1, 3, 4)], "new"), NULL, NULL))
  expect_other_order(cholinsert_gpu(b, X), "X")
  expect_identical(as.array(cholupdate_batch(b, V)), as.array(cholupdate_batch(b, unname(V))))
})

at_each_home("new rows and columns have their rows in the order of the new matrix", {
  small <- chol(K[1:3, 1:3])
  for (R in list(small, keep(small))) {
    expect_equal(crossprod(as.matrix(cholinsert_gpu(R, K[, 4, drop = FALSE]))), K)
    expect_other_order(cholinsert_gpu(R, K[c(3, 2, 1, 4), 4, drop = FALSE]), "X")
    expect_other_order(cholinsert_gpu(R, K[c(4, 1:3), 4, drop = FALSE]), "X")
  }
  outer <- chol(K[c(1, 4), c(1, 4)])
  expect_equal(crossprod(cholinsert_gpu(outer, K[, 2:3], at = 2)), K)
  expect_equal(crossprod(cholinsert_gpu(outer, K[, 2:3], at = 2:3)), K)
  expect_other_order(cholinsert_gpu(outer, K[c(1, 4, 2, 3), 2:3], at = 2), "X", 2)
})
