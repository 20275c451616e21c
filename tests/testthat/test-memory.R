# Where R has no memory for a result, the error is that of the package, and nothing has changed.

# Code for a process of its own, in which R may take no more than it has: full(left, use) calls use() with so many bytes
# left, and less than 100,000 more. The memory is counted, not taken until it ends: R needs a little of it to say so.
little_memory <- c(
  "full <- function(left, use) {",
  "  invisible(gc()); mem.maxVSize(gc()[2, 4] + 1); filler <- vector('list', 5000); cells <- gc()[2, ]",
  "  on.exit({ filler <- NULL; mem.maxVSize(Inf) })",
  "  for (i in seq_len((8 * (cells[[3]] - cells[[1]]) - left) %/% 1e5)) filler[[i]] <- numeric(12500)",
  "  tryCatch({ use(); 'done' }, error = function(e) e)",
  "}",
  "n <- 300; R <- chol(diag(n) + 0.5); v <- seq_len(n) / n; B <- matrix(cos(1:(n * 300)), n); y <- matrix(1, 1, 300)",
  "x <- c(v / 99, 99); L <- t(R); whole <- diag(300L); small <- array(R[1:20, 1:20], c(20, 20, 300))",
  "file <- write_factor(R, tempfile()); f <- chol_factor(R, 'cpu', capacity = n + 1)",
  "batch <- chol_batch(small, 'cpu')",
  "tell <- function(name, left, found) {",
  "  bad <- !identical(found, 'done') && !inherits(found, 'gpucholmod_out_of_memory')",
  "  if (bad) cat(name, left, class(found)[[1]], conditionMessage(found), '\\n')",
  "}"
)

test_that("where R has no memory for a result, that is gpucholmod_out_of_memory, whatever is asked for", {
  skip_on_cran()
  skip_if_not(exists("mem.maxVSize"))
  child <- in_child(c(
    little_memory,
    "uses <- list(",
    "  matrix = function() cholupdate_gpu(R, v), lower = function() cholupdate_gpu(L, v, uplo = 'lower'),",
    "  integer = function() cholupdate_gpu(whole, v), single = function() cholupdate_gpu(R, v, precision = 'single'),",
    "  sides = function() cholupdate_gpu(R, v, z = B, y = y, rss = rep(1, 300)),",
    "  handle = function() cholupdate_gpu(f, v),",
    "  as.matrix = function() as.matrix(f), inverse = function() solve(f), solve = function() solve(f, B),",
    "  copy = function() copy_factor(f), hold = function() chol_factor(R, 'cpu'),",
    "  solve_back = function() solve_back(R, B),",
    "  insert = function() cholinsert_gpu(R, x), insert_handle = function() cholinsert_gpu(f, x),",
    "  delete = function() choldelete_gpu(R, 3), shift = function() cholshift_gpu(f, 1, 3),",
    "  modified = function() solve_modified(f, B, B), batch = function() chol_batch(small, 'cpu'),",
    "  array = function() as.array(batch), batch_solve = function() solve(batch, array(1, c(20, 20, 300))),",
    "  members = function() cholupdate_batch(small, 1:20), list = function() cholupdate_batch(list(R, R), list(v, v)),",
    "  file = function() as.matrix(file), file_solve = function() solve(file, B),",
    "  file_sides = function() cholupdate_gpu(file, v, z = B, y = y, output = tempfile()),",
    "  overwrite = function() suppressMessages({ S <- R; cholupdate_overwrite(S, v) }),",
    "  rls = function() rls(B, v, ridge = 1, backend = 'cpu')",
    ")",
    "for (name in names(uses)) {",
    "  least <- full(3e5, uses[[name]])",
    "  if (!inherits(least, 'gpucholmod_out_of_memory')) cat(name, 'is', class(least)[[1]], '\\n')",
    "  for (left in c(8e5, 15e5)) tell(name, left, full(left, uses[[name]]))",
    "}",
    "known <- full(3e5, uses$matrix)",
    "cat(known$needed == 8 * n^2, identical(as.matrix(f), R), identical(as.array(batch), small), '\\n')"
  ))
  expect_printed(child, "TRUE TRUE TRUE ")
})

test_that("a call in place that finds no memory has changed nothing", {
  skip_on_cran()
  skip_if_not(exists("mem.maxVSize"))
  child <- in_child(c(
    little_memory,
    "look <- function(f) list(as.matrix(f), f$n, f$modifications, f$trace, f$error, f$status)",
    "uses <- list(",
    "  update = function(f) cholupdate_gpu(f, v, z = B, y = y, in_place = TRUE),",
    "  insert = function(f) cholinsert_gpu(f, x, z = B, b = y, in_place = TRUE),",
    "  delete = function(f) choldelete_gpu(f, 5, z = B, in_place = TRUE),",
    "  shift = function(f) cholshift_gpu(f, 2, 200, z = B, in_place = TRUE)",
    ")",
    "for (use in uses) use(chol_factor(R, 'cpu', capacity = n + 1))", # R loads functions when they are first called
    "refused <- 0",
    "for (name in names(uses)) for (left in 1e5 * (1:12)) {",
    "  f <- chol_factor(R, 'cpu', capacity = n + 1); before <- look(f)",
    "  found <- full(left, function() uses[[name]](f))",
    "  tell(name, left, found)",
    "  if (!identical(found, 'done')) {",
    "    refused <- refused + 1",
    "    if (!identical(look(f), before)) cat(name, left, 'changed\\n')",
    "  }",
    "}",
    "cat(refused > 20, '\\n')"
  ))
  expect_printed(child, "TRUE ")
})

test_that("where the machine has no memory, that is gpucholmod_out_of_memory", {
  skip_on_cran()
  skip_on_os(c("windows", "mac", "solaris"))
  child <- in_child(c(
    "R <- diag(3000); f <- chol_factor(R, 'cpu'); v <- rep(1, 3000)",
    "until_full <- function(make) {",
    "  kept <- list()",
    "  tryCatch(repeat kept <- c(kept, list(make())), error = function(e) class(e)[[1]])",
    "}",
    "for (make in list(function() copy_factor(f), function() as.matrix(f), function() cholupdate_gpu(R, v),",
    "                  function() cholupdate_gpu(f, v),",
    "                  function() cholinsert_gpu(f, c(v, 9e9)))) cat(until_full(make), '\\n')",
    "cat(identical(as.matrix(f), R), '\\n')"
  ), shell = "export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1; ulimit -v 2000000;") # threads take address space
  expect_printed(child, c(rep("gpucholmod_out_of_memory ", 5), "TRUE "))
})

test_that("R's errors of missing memory are told from others", {
  is_memory <- function(message) gpucholmod:::is_memory_error(simpleError(message))
  expect_true(is_memory("cannot allocate vector of size 7.5 Gb"))
  expect_true(is_memory("vector memory exhausted (limit reached?)"))
  expect_false(is_memory("subscript out of bounds"))
  needed <- function(message) gpucholmod:::needed_by(simpleError(message))$needed
  expect_equal(needed("cannot allocate vector of size 7.5 Gb"), 7.5 * 2^30)
  expect_null(needed("vector memory exhausted (limit reached?)"))
})
