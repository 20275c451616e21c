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
    "h <- copy_factor(f); cholupdate_gpu(h, V, in_place = TRUE)",
    "cholupdate_gpu(h, V, downdate = TRUE, in_place = TRUE)",
    "m <- as.matrix(h)",
    "tell(if (rank == 0) max(abs(m - as.matrix(factor_file('FROM')))) < 1e-13 else is.null(m))",
    "tell(format(logdet(g), digits = 13), format(sum(diag(g)), digits = 13), format(drift(g), digits = 13))",
    "x <- solve(g, if (rank == 0) b); y <- solve_back(g, solve_forward(g, b))",
    "tell(isTRUE(all.equal(x, y)), format(sum(x), digits = 8), inherits(g, 'process_factor'), g$processes == size)",
    "one <- chol_factor(if (rank == 0) t(as.matrix(factor_file('FROM'))), uplo = 'lower', precision = 'single',",
    "  processes = TRUE)",
    "tell(grepl('single precision', format(one)), dim(one)[1],",
    "  identical(dim(solve(one)), if (rank == 0) c(200L, 200L)))",
    "free(g); tell(class_of(logdet(g)), last$reason)"
  )
  for (size in 1:4) {
    run <- in_processes(size, gsub("FROM", path, gsub("PATH", paste0(path, size), script)))
    expect_identical(as.matrix(factor_file(paste0(path, size))), as.matrix(g))
    expect_told(run, 0:(size - 1), c(
      "TRUE", paste(format(logdet(g), digits = 13), format(sum(diag(g)), digits = 13), format(drift(g), digits = 13)),
      paste(TRUE, format(sum(solve(g, b)), digits = 8), TRUE, TRUE),
      "TRUE 200 TRUE", "gpucholmod_invalid_factor freed"
    ))
    expect_equal(run$status, 0L)
  }
})

# Modifications of one factor by several processes, and by one: rows and columns, right-hand sides, inverse, and
# solve_modified().
test_that("several processes reshape, invert and modify a factor as one does, with right-hand sides", {
  skip_on_cran()
  path <- tempfile()
  on.exit(unlink(paste0(path, 0:2)))
  steps <- c(
    "R <- diag(2, 150) + outer(1:150, 1:150, function(i, j) (i < j) * sin(i + 3 * j) / 50); z <- cbind(cos(1:150), 1)",
    "V <- sin(1:300) / 20; dim(V) <- c(150, 2)",
    "f <- MAKE",
    "a <- cholupdate_gpu(f, GIVE(V), weights = c(1, -0.5), z = GIVE(z), y = GIVE(diag(2)), rss = GIVE(c(9, 9)))",
    "X <- sin(1:304) / 50; dim(X) <- c(152, 2); X[71, 1] <- X[72, 2] <- 4",
    "b <- cholinsert_gpu(a$R, GIVE(X), at = 71, z = GIVE(a$z), b = GIVE(diag(2)), rss = GIVE(a$rss), in_place = TRUE)",
    "d <- choldelete_gpu(b$R, c(3, 71, 140), z = GIVE(b$z), rss = GIVE(b$rss))",
    "s <- cholshift_gpu(d$R, 140, 5, z = GIVE(d$z), in_place = TRUE)",
    "i <- solve(s$R); j <- chol2inv(s$R); m <- as.matrix(s$R)",
    "x <- solve_modified(s$R, GIVE(list(V[1:149, ], 9 * V[1:149, 1, drop = FALSE])), GIVE(cos(1:149)),",
    "  downdate = TRUE, check = FALSE)",
    "found <- list(a$z, a$rss, b$z, b$rss, d$z, d$rss, s$z, x, if (rank == 0) list(i, j, m), drift(s$R), dim(s$R),",
    "  s$R$modifications)"
  )
  run <- in_processes(3, c(
    "own <- function(x) if (rank == 0) x",
    gsub("GIVE(", "own(", gsub("MAKE", "chol_factor(own(R), processes = TRUE)", steps), fixed = TRUE),
    sprintf("saveRDS(found, paste0('%s', rank))", path),
    "tell(class_of(cholinsert_gpu(s$R, if (rank == 0) 1:3)), class_of(cholshift_gpu(s$R, 1, rank + 2)),",
    "  class_of(choldelete_gpu(s$R, 200)))"
  ))
  expect_told(run, 0:2, "gpucholmod_dimension_mismatch gpucholmod_bad_argument gpucholmod_bad_argument")
  rank <- 0
  eval(parse(text = gsub("GIVE(", "(", sub("MAKE", "chol_factor(R, backend = 'cpu')", steps), fixed = TRUE)))
  for (process in 0:2) {
    told <- readRDS(paste0(path, process))
    expect_equal(told[-c(9, 10)], found[-c(9, 10)], tolerance = 1e-12)
    if (process == 0) expect_equal(told[[9]], found[[9]], tolerance = 1e-12) else expect_null(told[[9]])
  }
})

test_that("all processes come to the same error, and nothing has changed", {
  skip_on_cran()
  run <- in_processes(3, c(
    "R <- diag(300) + 0; f <- chol_factor(if (rank == 0) R, processes = TRUE); V <- rep(0, 300); V[150] <- 2",
    "tell(class_of(cholupdate_gpu(f, V, downdate = TRUE)), last$pivot,",
    "  class_of(cholupdate_gpu(f, V, downdate = TRUE, in_place = TRUE)), last$pivot)",
    "tell(cholupdate_gpu(f, V, downdate = TRUE, check = FALSE)$pivot, logdet(f))",
    "tell(class_of(cholupdate_gpu(f, if (rank == 1) 1:3 else V)), last$actual, last$process)",
    "tell(class_of(cholupdate_gpu(f, if (rank == 2) 2 * V else V)), last$argument)",
    "tell(class_of(cholupdate_gpu(f, V, downdate = rank == 1)), last$argument, class_of(cholupdate_gpu(f)),",
    "  last$argument)",
    "tell(class_of(cholupdate_gpu(f, if (rank == 1) stop('mine') else V)), grepl('mine', conditionMessage(last)))",
    "tell(class_of(if (rank == 0) logdet(f) else diag(f)), class_of(if (rank == 0) logdet(f) else solve(f, V)),",
    "  last$reason)",
    "V[1] <- Inf; tell(class_of(cholupdate_gpu(f, V)), last$row, class_of(cholinsert_gpu(f, c(V[-1], 0, -1))),",
    "  last$pivot)",
    "if (rank == 0) R[2, 2] <- 1e-310; tell(class_of(chol_factor(R, processes = TRUE)), last$index,",
    "  class_of(chol_factor(NULL, processes = TRUE)))",
    "tell(class_of(chol_factor(R, processes = TRUE, capacity = 400)),",
    "  class_of(chol_factor(R, processes = TRUE, backend = 'cuda', device = 0)), last$operation)"
  ))
  expect_told(run, 0:2, c(
    "gpucholmod_not_positive_definite 150 gpucholmod_not_positive_definite 150", "150 0",
    "gpucholmod_dimension_mismatch 3 1", "gpucholmod_bad_argument V",
    "gpucholmod_bad_argument processes gpucholmod_bad_argument V",
    "simpleError TRUE", "none gpucholmod_process_failed out_of_step",
    "gpucholmod_not_finite 1 gpucholmod_not_positive_definite 301", "gpucholmod_bad_diagonal 2 gpucholmod_bad_argument",
    "gpucholmod_not_supported gpucholmod_not_supported device"
  ))
  expect_equal(run$status, 0L)
})

test_that("arguments without names are the same in all processes, or an error", {
  skip_on_cran()
  run <- in_processes(2, c(
    "f <- chol_factor(if (rank == 0) diag(50), processes = TRUE)",
    "tell(class_of(cholupdate_gpu(f, if (rank == 0) rep(0.1, 50), rank == 1)), last$argument)",
    "tell(class_of(cholinsert_gpu(f, if (rank == 0) c(rep(0, 50), 1), if (rank == 0) 1 else 51)), last$argument)",
    "tell(all.equal(logdet(cholupdate_gpu(f, if (rank == 0) rep(0.1, 50), TRUE)), log1p(-0.5)))"
  ))
  refused <- "gpucholmod_bad_argument processes"
  expect_told(run, 0:1, c(refused, refused, "TRUE"))
})

test_that("an error of R's in one process is that of all, wherever it comes from, and all are in step afterwards", {
  skip_on_cran()
  wrong_in_1 <- function(option, call) {
    c(sprintf("if (rank == 1) options(%s)", option), sprintf("told_of(class_of(%s))", call),
      "options(gpucholmod.threads = NULL, gpucholmod.backend = NULL, gpucholmod.process_timeout = NULL)")
  }
  failed_in_1 <- function(call) sprintf("tell(class_of(%s), conditionMessage(last))", call)
  run <- in_processes(3, c(
    "f <- chol_factor(if (rank == 0) diag(200), processes = TRUE)",
    "V <- rep(0.1, 200); z <- rep(1, 200); fail <- function(x) if (rank == 1) stop('mine') else x",
    "says <- function(e) grepl('in process 1', conditionMessage(e))",
    "told_of <- function(class) tell(class, last$argument, last$process, says(last))",
    "many <- matrix(0.1, 200, 3); many[1, ] <- 9",
    wrong_in_1("gpucholmod.threads = 'junk'", "cholupdate_gpu(f, V)"),
    wrong_in_1("gpucholmod.threads = 'junk'", "cholupdate_gpu(f, V, in_place = TRUE, z = z, y = 1)"),
    wrong_in_1("gpucholmod.threads = 'junk'", "choldelete_gpu(f, 1)"),
    wrong_in_1("gpucholmod.threads = 'junk'", "solve_modified(f, many, z)"),
    wrong_in_1("gpucholmod.process_timeout = 'junk'", "logdet(f)"),
    failed_in_1("chol_factor(fail(if (rank == 0) diag(3)), processes = TRUE)"),
    failed_in_1("chol_factor(if (rank == 0) diag(3), processes = TRUE, uplo = fail('upper'))"),
    "told_of(class_of(do.call(logdet, c(list(f), if (rank == 1) 1))))",
    failed_in_1("determinant(f, logarithm = fail(TRUE))"), failed_in_1("diag(f, names = fail(TRUE))"),
    failed_in_1("solve(f, fail(V))"), failed_in_1("solve_modified(f, V, weights = fail(1))"),
    failed_in_1("write_factor(f, tempfile(), replace = fail(FALSE))"),
    failed_in_1("cholupdate_gpu(f, solve(f, fail(V)))"),
    "tell(all.equal(diag(cholupdate_gpu(f, solve(f, V))), diag(cholupdate_gpu(f, V))))",
    "tell(class_of(chol_factor(if (rank == 0) factor_file('absent'), processes = TRUE)), last$reason, last$process)",
    "g <- copy_factor(f); if (rank == 1) free(g); tell(class_of(cholupdate_gpu(g, V)), last$reason, last$process)",
    "tell(all.equal(logdet(f), 0), all.equal(logdet(cholupdate_gpu(f, V)), log1p(sum(V^2))))"
  ))
  option <- function(name) paste("gpucholmod_bad_argument", name, 1)
  in_place <- function(name, rank) paste(option(name), rank != 1)
  mine <- function(rank) paste0("simpleError ", if (rank != 1) "in process 1: ", "mine")
  for (rank in 0:2) expect_told(run, rank, c(
    rep(in_place("gpucholmod.threads", rank), 4), in_place("gpucholmod.process_timeout", rank), rep(mine(rank), 2),
    in_place("...", rank), rep(mine(rank), 6), "TRUE",
    "gpucholmod_bad_file missing 0", "gpucholmod_invalid_factor freed 1", "TRUE TRUE"
  ))
  expect_equal(run$status, 0L)
})

test_that("a process that is interrupted between two operations of a call makes the others stop", {
  skip_on_cran()
  skip_on_os("windows")
  run <- in_processes(2, c(
    "f <- chol_factor(diag(3), processes = TRUE)",
    "slow <- function(x) { if (rank == 1) { tools::pskill(Sys.getpid(), 2); Sys.sleep(5) }; x }",
    "found <- tryCatch(class_of(cholupdate_gpu(f, slow(1:3))), interrupt = function(e) 'interrupted')",
    "tell(found, if (rank == 0) last$reason, if (rank == 0) last$process, all.equal(logdet(f), 0))"
  ))
  expect_told(run, 0L, "gpucholmod_process_failed stopped 1 TRUE")
  expect_told(run, 1L, "interrupted   TRUE")
  expect_equal(run$status, 0L)
})

test_that("on GPUs, each process its own or all the same, a factor is modified and used as every other", {
  skip_on_cran()
  skip_without_gpu()
  for (led in c(TRUE, FALSE)) {
    run <- in_processes(2, c(
      sprintf("options(gpucholmod.led = %s)", led),
      "R <- diag(2, 700) + outer(1:700, 1:700, function(i, j) (i < j) * sin(i + 3 * j) / 100)",
      "V <- matrix(sin(1:2800), 700) / 20; z <- cbind(cos(1:700), 1)",
      "own <- function(x) if (rank == 0) x",
      "f <- chol_factor(own(R), processes = TRUE, backend = 'cuda')",
      "tell(grepl('on device', format(f)), inherits(f, 'process_factor'), f$led)",
      "g <- cholupdate_gpu(f, own(V), weights = c(1, 1, -0.1, 1), scale = 0.7, z = own(z), y = own(matrix(1, 4, 2)))",
      "h <- cholupdate_gpu(gpu_factor(R), V, weights = c(1, 1, -0.1, 1), scale = 0.7, z = z, y = matrix(1, 4, 2))",
      "r <- as.matrix(g$R)",
      "tell(isTRUE(all.equal(g$z, h$z, tolerance = 1e-12)),",
      "  if (rank == 0) isTRUE(all.equal(r, as.matrix(h$R), tolerance = 1e-13)) else is.null(r))",
      "tell(isTRUE(all.equal(solve(g$R, own(z)), solve(h$R, z), tolerance = 1e-11)),",
      "  abs(logdet(g$R) - logdet(h$R)) < 1e-10, drift(f) == 0)",
      "d <- copy_factor(f); V[600, ] <- 3; tell(class_of(cholupdate_gpu(d, V, downdate = TRUE, in_place = TRUE)),",
      "  last$pivot)",
      "same <- as.matrix(d); tell(if (rank == 0) identical(same, R) else is.null(same))",
      "tell(last_cholupdate()$backend, last_cholupdate()$method)",
      "e <- cholinsert_gpu(choldelete_gpu(d, 3:5), own(replace(numeric(698), 7, 9)), at = 7)",
      "choldelete_gpu(e, 1, in_place = TRUE); tell(dim(e)[1])",
      "x <- solve_modified(f, own(V), own(V[, 1])); y <- solve_modified(gpu_factor(R), V, V[, 1])",
      "tell(isTRUE(all.equal(x, y, tolerance = 1e-10)))"
    ))
    expect_told(run, 0:1, c(
      paste("TRUE TRUE", led), "TRUE TRUE", "TRUE TRUE TRUE", "gpucholmod_not_positive_definite 600", "TRUE",
      "cuda persistent", "697", "TRUE"
    ))
    expect_equal(run$status, 0L)
  }
})

test_that("whether process 0 may hold a factor on the GPUs of all is TRUE or FALSE, and the same in all processes", {
  skip_on_cran()
  run <- in_processes(2, c(
    "options(gpucholmod.led = if (rank == 0) 1 else TRUE)",
    "tell(class_of(chol_factor(if (rank == 0) diag(3), processes = TRUE)), last$argument, last$process)",
    "options(gpucholmod.led = rank == 0)",
    "tell(class_of(chol_factor(if (rank == 0) diag(3), processes = TRUE)), last$argument)"
  ))
  expect_told(run, 0:1, c("gpucholmod_bad_argument gpucholmod.led 0", "gpucholmod_bad_argument processes"))
})

test_that("without a GPU, all processes say so", {
  skip_on_cran()
  if (gpu_info(memory = FALSE)$usable) skip("there is a GPU")
  run <- in_processes(2, c(
    "error <- class_of(chol_factor(if (rank == 0) diag(3), processes = TRUE, backend = 'cuda'))",
    "tell(error, last$reason)"
  ))
  expect_told(run, 0:1, paste("gpucholmod_backend_unavailable", gpu_info(memory = FALSE)$reason))
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
  killed <- in_processes(3, c(sub("HOW", "tools::pskill(Sys.getpid(), 9)", script), "Sys.sleep(3)"),
                         "--enable-recovery")
  expect_told(killed, c(0, 2), "gpucholmod_process_failed gone 1 TRUE")
  ended <- in_processes(3, sub("HOW", "quit(status = 0)", script))
  expect_told(ended, c(0, 2), "gpucholmod_process_failed left 1 TRUE")
  expect_equal(ended$status, 0L)
  slow <- in_processes(2, c("options(gpucholmod.process_timeout = 1)", sub("HOW", "Sys.sleep(4)", script)),
                       "--enable-recovery")
  expect_told(slow, 0, "gpucholmod_process_failed silent 1 TRUE")
})

test_that("Rmpi may begin MPI, compute beside, and end it", {
  skip_on_cran()
  if (!nzchar(system.file(package = "Rmpi"))) skip("there is no Rmpi")  # to load it here would begin MPI
  run <- in_processes(3, c(
    "f <- chol_factor(if (rank == 0) diag(2, 300), processes = TRUE)",
    "g <- cholupdate_gpu(f, rep(1, 300))",
    "mean <- Rmpi::mpi.allreduce(logdet(g), type = 2, op = 'sum', comm = 0) / Rmpi::mpi.comm.size(0)",
    "tell(abs(mean - logdet(g)) < 1e-12, Rmpi::mpi.comm.rank(0) == rank)",
    "if (rank == 1) Sys.sleep(1)",
    "Rmpi::mpi.finalize()",
    "tell(class_of(logdet(g)), last$reason, process_info()$process == rank)",
    "quit(status = 0)"
  ), first = "loadNamespace('Rmpi')")
  expect_told(run, 0:2, c("TRUE TRUE", "gpucholmod_backend_unavailable ended TRUE"))
  expect_equal(run$status, 0L)
})

test_that("in a forked process every use of a factor is an error, and the parent's place among the others is its own", {
  skip_on_cran()
  skip_on_os("windows")
  uses <- c(
    "logdet(f)", "diag(f)", "determinant(f)", "as.matrix(f)", "solve(f)", "solve(f, 1:3)", "chol2inv(f)",
    "solve_forward(f, 1:3)", "solve_back(f, 1:3)", "copy_factor(f)", "cholupdate_gpu(f, 1:3)",
    "cholupdate_gpu(f, 1:3, in_place = TRUE)", "cholinsert_gpu(f, c(0, 0, 0, 1))", "choldelete_gpu(f, 1)",
    "cholshift_gpu(f, 1, 2)", "solve_modified(f, 1:3)",
    "write_factor(f, tempfile())", "chol_factor(diag(3), processes = TRUE)", "process_info()"
  )
  reason_of <- sprintf("tryCatch({ %s; \"none\" }, gpucholmod_backend_unavailable = function(e) e$reason)", uses)
  for (size in 1:2) {
    run <- in_processes(size, c(
      "f <- chol_factor(2 * diag(3), processes = TRUE)",
      sprintf("child <- parallel::mcparallel(c(%s))", paste(reason_of, collapse = ", ")),
      "reasons <- parallel::mccollect(child)[[1]]",
      "parallel::mccollect(parallel::mcparallel({ utils::capture.output(print(f)); free(f); rm(f); gc(); TRUE }))",
      "g <- cholupdate_gpu(f, c(0, 0, 1))",
      "tell(unique(reasons), length(reasons), all.equal(logdet(f), 6 * log(2)), all.equal(diag(g), c(2, 2, sqrt(5))))"
    ))
    expect_told(run, seq_len(size) - 1L, paste("forked", length(uses), TRUE, TRUE))
    expect_equal(run$status, 0L)
  }
})

test_that("a process that was forked from one in which Rmpi has begun MPI cannot begin in its place", {
  skip_on_cran()
  skip_on_os("windows")
  if (!nzchar(system.file(package = "Rmpi"))) skip("there is no Rmpi")  # to load it here would begin MPI
  run <- in_processes(2, c("tell(found)", "Rmpi::mpi.finalize()", "quit(status = 0)"), first = c(
    "loadNamespace('Rmpi'); loadNamespace('gpucholmod')",
    "options(gpucholmod.process_timeout = 5)",
    "failed <- function(e) paste(class(e)[[1]], e$reason)",
    "begin <- function() tryCatch({ gpucholmod::process_info(); 'none' }, error = failed)",
    "found <- parallel::mccollect(parallel::mcparallel(begin()))[[1]]"
  ))
  expect_told(run, 0:1, "gpucholmod_backend_unavailable forked")
  expect_equal(run$status, 0L)
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
