# Small and quick: what is tested is the procedure, the record and what is said of it, not the times.
small <- function(...) bench_paper(sizes = c(20, 40), ranks = c(1, 3), repeats = 1, verbose = FALSE, ...)
# `code` with another `value` for something of the package's own.
with_binding <- function(name, value, code) {
  namespace <- asNamespace("gpucholmod")
  put <- function(value) {
    unlockBinding(name, namespace)
    assign(name, value, namespace)
    lockBinding(name, namespace)
  }
  old <- get(name, namespace)
  on.exit(put(old))
  put(value)
  code
}

key <- function(x) paste(x$n, x$k, x$precision, x$change, x$method)

test_that("each case of the paper's is measured once, and is accurate", {
  x <- small(methods = c("sweeps", "blocked", "chol", "copy"))
  expect_s3_class(x, c("bench_paper", "gpucholmod_measurements", "data.frame"), exact = TRUE)
  # n x k x change x (two methods in two precisions, and chol in double), and a copy for each n
  expect_equal(nrow(x), 2 * 2 * 2 * (2 * 2 + 1) + 2)
  expect_false(anyDuplicated(key(x)) > 0)
  expect_true(all(x$status == "ok"))
  modified <- x[x$k > 0, ]
  expect_true(all(modified$ratio < 30))
  expect_true(all(modified$max_error[modified$precision == "double"] < 1e-11))
  expect_true(all(modified$max_error[modified$precision == "single"] > 1e-9))
  expect_true(all(x$seconds > 0 & x$fastest <= x$seconds))
  expect_true(all(x$repeats >= 1L))
  expect_equal(unique(x$device), "cpu")
  expect_false(anyNA(modified$inside[modified$method != "chol"]))
})

test_that("the matrices are the paper's, and R's random numbers go on as if nothing had been", {
  set.seed(5)
  expected <- runif(3)
  set.seed(5)
  x <- bench_paper(sizes = 30, ranks = 2, precisions = "double", methods = "chol", repeats = 1, verbose = FALSE)
  expect_identical(runif(3), expected)

  set.seed(2010 + 30)
  B <- matrix(runif(900), 30)
  A <- crossprod(B)
  diag(A) <- diag(A) + 1
  set.seed(2010 + 30 + 65536 * 2)
  V <- matrix(runif(60), 30)
  raised <- A + tcrossprod(V)
  update <- x[x$change == "update", ]
  expect_identical(update$max_error, max(abs(crossprod(chol(raised)) - raised)))
  scale <- 32 * .Machine$double.eps * (norm(A, "1") + norm(tcrossprod(V), "1"))
  expect_equal(update$ratio, norm(crossprod(chol(raised)) - raised, "1") / scale)
  expect_identical(x$max_error[x$change == "downdate"], max(abs(crossprod(chol(A)) - A)))
})

test_that("a case has the same matrices whatever else is measured", {
  errors <- function(...) {
    x <- bench_paper(precisions = "double", methods = "chol", repeats = 1, verbose = FALSE, ...)
    x$max_error[x$n == 40 & x$k == 3]
  }
  expect_identical(errors(sizes = 40, ranks = 3), errors(sizes = c(20, 40), ranks = c(1, 3)))
  expect_false(identical(errors(sizes = 40, ranks = 3), errors(sizes = 40, ranks = 3, seed = 1)))
})

test_that("without a seed in the session there is none afterwards", {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit(if (!is.null(old)) assign(".Random.seed", old, globalenv()))
  if (!is.null(old)) rm(".Random.seed", envir = globalenv())
  small(methods = "copy")
  expect_false(exists(".Random.seed", globalenv(), inherits = FALSE))
})

test_that("a run goes on from its file, also behind half a line", {
  file <- tempfile(fileext = ".csv")
  first <- bench_paper(sizes = c(20, 40), ranks = 1, methods = c("blocked", "copy"), repeats = 1, file = file,
                       verbose = FALSE)
  expect_equal(as.data.frame(stored_measurements(file)), as.data.frame(first))
  lines <- readLines(file)
  last <- length(lines)
  writeChar(paste(c(lines[-last], substr(lines[[last]], 1, 12)), collapse = "\n"), file, eos = NULL)
  cut <- stored_measurements(file)
  expect_equal(nrow(cut), nrow(first) - 1)

  again <- small(methods = c("blocked", "copy"), file = file)
  kept <- match(key(cut), key(again))
  expect_identical(again$seconds[kept], cut$seconds)
  expect_setequal(key(again), key(small(methods = c("blocked", "copy"))))
  expect_equal(as.data.frame(stored_measurements(file)), as.data.frame(again))
  expect_false(file.exists(paste0(file, ".part")))
})

test_that("a file of another machine, or of something else, is refused and stays", {
  file <- tempfile(fileext = ".csv")
  small(methods = "copy", file = file)
  lines <- sub("^# cpu: .*", "# cpu: another", readLines(file))
  writeLines(lines, file)
  e <- expect_error(small(methods = "copy", file = file), class = "gpucholmod_bad_file")
  expect_identical(e$reason, "other_machine")
  expect_identical(e$differs, "cpu")
  expect_identical(readLines(file), lines)

  writeLines("a,b", file)
  e <- expect_error(small(methods = "copy", file = file), class = "gpucholmod_bad_file")
  expect_identical(e$reason, "not_measurements")
  gpucholmod:::write_measurements(data.frame(a = 1), file, c(command = "Rscript x.R", gpucholmod:::machine()))
  e <- expect_error(small(methods = "copy", file = file), class = "gpucholmod_bad_file")
  expect_identical(e$reason, "not_measurements")
  e <- expect_error(stored_measurements(paste0(file, "-none")), class = "gpucholmod_bad_file")
  expect_identical(e$reason, "missing")
  e <- expect_error(small(methods = "copy", file = file.path(file, "none", "x.csv")), class = "gpucholmod_bad_file")
  expect_identical(e$reason, "not_writable")
})

test_that("what is expected to take too long is left out, says so, and is tried again with more time", {
  file <- tempfile(fileext = ".csv")
  run <- function(longest) {
    bench_paper(sizes = c(100, 2000), ranks = 16, precisions = "double", methods = c("sweeps", "copy"), repeats = 1,
                longest = longest, file = file, verbose = FALSE)
  }
  x <- run(1e-9)
  expect_true(all(x$status[x$n == 100] == "ok"))
  expect_true(all(x$status[x$n == 2000] == "too slow"))
  expect_true(all(is.na(x$seconds[x$n == 2000])))
  x <- bench_paper(sizes = c(100, 120), ranks = 16, precisions = "double", methods = c("sweeps", "copy"), repeats = 1,
                   file = file, verbose = FALSE)
  expect_true(all(x$status[x$n == 120] == "ok"))
  expect_true(all(x$status[x$n == 2000] == "too slow"))
})

test_that("what fails is recorded, with a warning, and loses nothing", {
  failing <- gpucholmod:::bench_methods
  failing$blocked$prepare <- function(p) function() stop("no such luck")
  run <- function(sizes, methods) {
    bench_paper(sizes = sizes, ranks = 1, precisions = "double", methods = methods, repeats = 1, verbose = FALSE)
  }
  warnings <- capture_warnings(x <- with_binding("bench_methods", failing, run(20, c("sweeps", "blocked"))))
  expect_identical(warnings, sprintf("blocked, n = 20, k = 1, %s, double: no such luck", c("update", "downdate")))
  expect_identical(x$status[x$method == "blocked"], c("failed", "failed"))
  expect_identical(x$status[x$method == "sweeps"], c("ok", "ok"))

  no_room <- function(V) stop("no room")
  warnings <- capture_warnings(x <- with_binding("norm_of_square", no_room, run(c(20, 30), c("sweeps", "copy"))))
  expect_identical(warnings, "n = 20 and larger: no room")
  expect_identical(x$status[x$method == "copy"], c("ok", "failed"))
  expect_identical(unique(x$status[x$method == "sweeps"]), "failed")
})

test_that("messages tell what is done, and that there is no GPU", {
  skip_if(gpu_info(memory = FALSE)$usable, "there is a GPU")
  said <- capture_messages(bench_paper(sizes = 20, ranks = 1, repeats = 1))
  expect_match(said[[1L]], gpu_info(memory = FALSE)$message, fixed = TRUE)
  expect_match(said[[2L]], "n = 20")
  x <- small()
  expect_output(print(x), "CPU only")
  expect_setequal(x$method, c("sweeps", "blocked", "chol", "copy"))
  e <- expect_error(small(methods = "stream"), class = "gpucholmod_backend_unavailable")
  expect_identical(e$reason, gpu_info(memory = FALSE)$reason)
})

test_that("bad arguments are refused before anything is measured", {
  refused <- function(..., argument) {
    e <- expect_error(bench_paper(..., verbose = FALSE), class = "gpucholmod_bad_argument")
    expect_identical(e$argument, argument)
  }
  refused(sizes = 0, argument = "sizes")
  refused(sizes = numeric(), argument = "sizes")
  refused(sizes = 20, ranks = 1.5, argument = "ranks")
  refused(sizes = 20, precisions = "half", argument = "precisions")
  refused(sizes = 20, methods = "none", argument = "methods")
  refused(sizes = 20, repeats = 0, argument = "repeats")
  refused(sizes = 20, longest = -1, argument = "longest")
  refused(sizes = 20, file = 1, argument = "file")
  refused(sizes = 20, seed = "a", argument = "seed")
  skip_if_not(file.exists("/proc/meminfo"))
  e <- expect_error(bench_paper(sizes = 1e8), class = "gpucholmod_out_of_memory")
  expect_gt(e$needed, e$available)
})

test_that("the script measures, goes on from its file, compares and draws", {
  skip_on_cran()
  file <- tempfile(fileext = ".csv")
  plots <- tempfile("plots")
  script <- system.file("bench", "paper.R", package = "gpucholmod")
  run <- function(...) {
    system2(file.path(R.home("bin"), "Rscript"), c(script, "--ranks=1", "--repeats=1", "--methods=blocked,copy", ...),
            stdout = TRUE, stderr = TRUE)
  }
  out <- run("--sizes=20", paste0("--out=", file))
  expect_null(attr(out, "status"), info = out)
  x <- stored_measurements(file)
  expect_identical(attr(x, "about")[["command"]],
                   "Rscript inst/bench/paper.R --ranks=1 --repeats=1 --methods=blocked,copy --sizes=20")
  out <- run("--sizes=20,30", paste0("--out=", file), paste0("--compare=", file), paste0("--plots=", plots))
  expect_null(attr(out, "status"), info = out)
  expect_true(any(grepl("Time of y by time of x", out)))
  more <- stored_measurements(file)
  expect_identical(more$seconds[more$n == 20], x$seconds)
  expect_match(attr(more, "about")[["command"]], "--sizes=20; .*--sizes=20,30$")
  drawn <- list.files(dirname(plots), paste0("^", basename(plots), "-(time|error|floor)[.](png|pdf)$"),
                      full.names = TRUE)
  expect_length(drawn, 3L)
  expect_true(all(file.size(drawn) > 1000))
})

test_that("every method runs on a GPU, and is accurate", {
  skip_without_gpu()
  x <- small()
  expect_setequal(x$method, names(gpucholmod:::bench_methods))
  expect_true(all(x$status == "ok"))
  expect_true(all(x$ratio[x$k > 0] < 30))
  expect_true(all(x$seconds > 0))
})

test_that("chol() is timed with the number of BLAS threads that is quickest, and the number is as before", {
  threads <- gpucholmod:::rcpp_blas_threads(0L)
  best <- gpucholmod:::quickest_blas_threads(function() chol(diag(50) + 1))
  expect_identical(gpucholmod:::rcpp_blas_threads(0L), threads)
  if (is.na(threads)) expect_true(is.na(best)) else expect_true(best >= 1 && best <= threads)
  skip_if(is.na(threads))
  inside <- gpucholmod:::with_blas_threads(1L, gpucholmod:::rcpp_blas_threads(0L))
  expect_identical(inside, 1L)
  expect_identical(gpucholmod:::rcpp_blas_threads(0L), threads)
})
