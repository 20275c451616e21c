# One factor over processes that mpirun starts.

test_that("a factor over 1 to 4 processes is that of one, to the bit, and is used as every other", {
  skip_on_cran()
  path <- tempfile()
  on.exit(unlink(c(path, paste0(path, 1:4))))
  set.seed(1)
  R <- well_conditioned(200)
  V <- matrix(sin(1:1000), 200) / 20
  write_factor(R, path)
  f <- chol_factor(R, backend = "cpu")
  g <- cholupdate_gpu(f, V, weights = c(1, 1, -0.5, 1, 1), scale = 0.7)
  b <- cos(1:200)
  script <- c(
    sprintf("f <- chol_factor(if (rank == 0) factor_file('%s'), processes = TRUE)", path),
    "V <- matrix(sin(1:1000), 200) / 20; b <- cos(1:200)",
    "g <- cholupdate_gpu(f, if (rank == 0) V, weights = c(1, 1, -0.5, 1, 1), scale = 0.7)",
    sprintf("file <- write_factor(g, '%s')", "PATH"),
    "h <- copy_factor(f); cholupdate_gpu(h, V, in_place = TRUE); cholupdate_gpu(h, V, downdate = TRUE, in_place = TRUE)",
    "m <- as.matrix(h)",
    "tell(if (rank == 0) max(abs(m - as.matrix(factor_file('FROM')))) < 1e-13 else is.null(m))",
    "tell(format(logdet(g), digits = 13), format(sum(diag(g)), digits = 13), format(drift(g), digits = 13))",
    "x <- solve(g, if (rank == 0) b); y <- solve_back(g, solve_forward(g, b))",
    "tell(isTRUE(all.equal(x, y)), format(sum(x), digits = 8), inherits(g, 'process_factor'), g$processes == size)",
    "one <- chol_factor(if (rank == 0) t(as.matrix(factor_file('FROM'))), uplo = 'lower', precision = 'single', processes = TRUE)",
    "tell(grepl('single precision', format(one)), dim(one)[1], class_of(solve(one)), last$operation)",
    "free(g); tell(class_of(logdet(g)), last$reason)"
  )
  for (size in 1:4) {
    run <- in_processes(size, gsub("FROM", path, gsub("PATH", paste0(path, size), script)))
    expect_identical(as.matrix(factor_file(paste0(path, size))), as.matrix(g))
    expect_told(run, 0:(size - 1), c(
      "TRUE", paste(format(logdet(g), digits = 13), format(sum(diag(g)), digits = 13), format(drift(g), digits = 13)),
      paste(TRUE, format(sum(solve(g, b)), digits = 8), TRUE, TRUE),
      "TRUE 200 gpucholmod_not_supported inverse", "gpucholmod_invalid_factor freed"
    ))
    expect_equal(run$status, 0L)
  }
})

test_that("all processes come to the same error, and nothing has changed", {
  skip_on_cran()
  run <- in_processes(3, c(
    "R <- diag(300) + 0; f <- chol_factor(if (rank == 0) R, processes = TRUE); V <- rep(0, 300); V[150] <- 2",
    "tell(class_of(cholupdate_gpu(f, V, downdate = TRUE)), last$pivot, class_of(cholupdate_gpu(f, V, downdate = TRUE, in_place = TRUE)), last$pivot)",
    "tell(cholupdate_gpu(f, V, downdate = TRUE, check = FALSE)$pivot, logdet(f))",
    "tell(class_of(cholupdate_gpu(f, if (rank == 1) 1:3 else V)), last$actual, last$process)",
    "tell(class_of(cholupdate_gpu(f, if (rank == 2) 2 * V else V)), last$argument)",
    "tell(class_of(cholupdate_gpu(f, V, downdate = rank == 1)), last$argument, class_of(cholupdate_gpu(f)), last$argument)",
    "tell(class_of(cholupdate_gpu(f, if (rank == 1) stop('mine') else V)), conditionMessage(last))",
    "tell(class_of(if (rank == 0) logdet(f) else diag(f)), class_of(if (rank == 0) logdet(f) else solve(f, V)), last$reason)",
    "V[1] <- Inf; tell(class_of(cholupdate_gpu(f, V)), last$row, class_of(cholinsert_gpu(f, c(V * 0, 1))), last$operation)",
    "if (rank == 0) R[2, 2] <- -1; tell(class_of(chol_factor(R, processes = TRUE)), last$index, class_of(chol_factor(NULL, processes = TRUE)))",
    "tell(class_of(chol_factor(R, processes = TRUE, capacity = 400)), class_of(chol_factor(R, processes = TRUE, backend = 'cuda')), last$operation)"
  ))
  expect_told(run, 0:2, c(
    "gpucholmod_not_positive_definite 150 gpucholmod_not_positive_definite 150", "150 0",
    "gpucholmod_dimension_mismatch 3 1", "gpucholmod_bad_argument V", "gpucholmod_bad_argument processes gpucholmod_bad_argument V",
    "simpleError mine", "none gpucholmod_process_failed out_of_step",
    "gpucholmod_not_finite 1 gpucholmod_not_supported insert", "gpucholmod_bad_diagonal 2 gpucholmod_bad_argument",
    "gpucholmod_not_supported gpucholmod_not_supported cuda"
  ))
  expect_equal(run$status, 0L)
})

test_that("a process that dies, or ends, makes the others stop", {
  skip_on_cran()
  script <- c(
    "f <- chol_factor(diag(300), processes = TRUE)",
    "if (rank == 1) HOW",
    "took <- system.time(found <- class_of(cholupdate_gpu(f, rep(1, 300))))[[3]]",
    "tell(found, last$reason, last$process, took < 60)"
  )
  # The others stay for a while, so that neither of them is gone before it has been seen who was killed.
  killed <- in_processes(3, c(sub("HOW", "tools::pskill(Sys.getpid(), 9)", script), "Sys.sleep(3)"), "--enable-recovery")
  expect_told(killed, c(0, 2), "gpucholmod_process_failed gone 1 TRUE")
  ended <- in_processes(3, sub("HOW", "quit(status = 0)", script))
  expect_told(ended, c(0, 2), "gpucholmod_process_failed left 1 TRUE")
  expect_equal(ended$status, 0L)
  slow <- in_processes(2, c("options(gpucholmod.process_timeout = 1)", sub("HOW", "Sys.sleep(4)", script)), "--enable-recovery")
  expect_told(slow, 0, "gpucholmod_process_failed silent 1 TRUE")
})

test_that("a forked process refuses, and R without mpirun is one process", {
  skip_on_cran()
  skip_on_os("windows")
  run <- in_processes(1, c(
    "f <- chol_factor(diag(3), processes = TRUE)",
    "tell(parallel::mcmapply(function(i) class_of(logdet(f)), 1, SIMPLIFY = TRUE, mc.cores = 2))",
    "tell(parallel::mccollect(parallel::mcparallel({ found <- class_of(process_info()); paste(found, last$reason) }))[[1]], logdet(f))"
  ))
  expect_match(run$told[[1]][[2]], "gpucholmod_backend_unavailable forked 0", fixed = TRUE)
})

test_that("a build without MPI says so", {
  built <- gpucholmod:::rcpp_processes_built()
  expect_true(nzchar(built$configured))
  if (built$built) skip("built with MPI")
  expect_error(chol_factor(diag(2), processes = TRUE), class = "gpucholmod_backend_unavailable")
  found <- tryCatch(chol_factor(diag(2), processes = TRUE), error = identity)
  expect_equal(found[c("backend", "reason")], list(backend = "mpi", reason = "not_built"))
  expect_false(process_info()$built)
})
