# What `code` prints by Rscript under `options`, on stdout and stderr, by lines. cli, which is not loaded before it is
# needed, draws there as often as it is asked to.
in_rscript <- function(code, options = list()) {
  file <- tempfile(fileext = ".R")
  on.exit(unlink(file))
  prelude <- bquote({
    .libPaths(.(.libPaths()))
    Sys.setenv(CLI_TICK_TIME = "10", CLI_SPEED_TIME = "1")
    options(.(options))
    library(gpucholmod)
    R <- diag(3000)
    V <- matrix(rnorm(3000 * 100, sd = 1e-3), 3000)
    long_call <- function() invisible(cholupdate_gpu(R, V, backend = "cpu", method = "reference"))
  })
  writeLines(c(deparse(prelude), deparse(substitute(code))), file)
  rscript <- file.path(R.home("bin"), "Rscript")
  suppressWarnings(system2(rscript, c("--vanilla", shQuote(file)), stdout = TRUE, stderr = TRUE))
}

shown <- list(gpucholmod.progress = TRUE, gpucholmod.progress_after = 0.2, cli.progress_handlers_only = "logger")

# The lines of cli's "logger": what happens to a bar, after a time and an identifier.
events <- function(output, what) grep(paste0("/100 ", what), output, value = TRUE)

test_that("a long call begins a bar, moves it and takes it away", {
  skip_on_cran()
  skip_if_not_installed("cli")
  output <- in_rscript({
    long_call()
    cat("after\n")
  }, shown)
  expect_length(events(output, "created"), 1)
  expect_length(events(output, "added"), 1)
  expect_identical(output[length(output) - 1:0], c(events(output, "terminated \\(done\\)"), "after"))
  share <- as.numeric(sub(".* ([0-9.e-]+)/100 updated", "\\1", events(output, "updated")))
  expect_gt(length(share), 2)
  expect_false(is.unsorted(share, strictly = TRUE))
  expect_true(all(share >= 0 & share <= 100))
})

test_that("the bar shows the share that is done and the time that is left", {
  skip_on_cran()
  skip_if_not_installed("cli")
  output <- in_rscript(long_call(), list(gpucholmod.progress = TRUE, gpucholmod.progress_after = 0.2))
  expect_gt(length(grep("[0-9]+% \\| ETA 0:00:[0-9][0-9]", output)), 1)
})

test_that("the bar goes away when the call is interrupted", {
  skip_on_cran()
  skip_on_os("windows")
  skip_if_not_installed("cli")
  output <- in_rscript({
    system(sprintf("(sleep 1; kill -INT %d) >/dev/null 2>&1 &", Sys.getpid()))
    tryCatch(for (i in 1:100) long_call(), interrupt = function(e) cat("interrupted\n"))
  }, shown)
  expect_identical(length(events(output, "terminated")), length(events(output, "created")))
  expect_length(events(output, "terminated \\(failed\\)"), 1)
  expect_identical(output[length(output) - 1:0], c(events(output, "terminated \\(failed\\)"), "interrupted"))
})

test_that("scripts and calls that are not long are quiet, and do without cli", {
  skip_on_cran()
  output <- in_rscript({
    long_call()
    options(gpucholmod.progress = FALSE)
    long_call()
    options(gpucholmod.progress = TRUE, gpucholmod.progress_after = 3600)
    long_call()
    cat("cli" %in% loadedNamespaces())
  }, list(cli.progress_handlers_only = "logger", gpucholmod.progress_after = 0))
  expect_identical(output, "FALSE")
})

# An update that takes a while, where `show` is called after so many seconds.
observe <- function(n, k, after, show) {
  ours <- asNamespace("gpucholmod")
  put <- function(f) {
    unlockBinding("new_bar", ours)
    assign("new_bar", f, ours)
    lockBinding("new_bar", ours)
  }
  before <- ours$new_bar
  put(function() list(after = after, show = show))
  old <- options(gpucholmod.progress = TRUE)
  on.exit({
    put(before)
    options(old)
  })
  cholupdate_gpu(diag(n), matrix(1, n, k), backend = "cpu", method = "reference")
}

test_that("the bar is moved ten times a second at most", {
  start <- proc.time()[["elapsed"]]
  times <- numeric()
  observe(3000, 90, 0.05, function(done) {
    times <<- c(times, proc.time()[["elapsed"]])
    TRUE
  })
  expect_gt(length(times), 1)
  expect_gte(times[[1L]], start + 0.04) # proc.time() has a resolution of 1 ms, or more
  expect_true(all(diff(times) > 0.08))
})

test_that("an error or an interrupt while the bar is moved passes through", {
  expect_error(observe(2000, 50, 0, function(done) stop("from below")), "from below")
  stopped <- tryCatch(observe(2000, 50, 0, function(done) stop(structure(class = c("interrupt", "condition"), list()))),
                      interrupt = function(e) "interrupted")
  expect_identical(stopped, "interrupted")
})

test_that("the request says what is to be shown", {
  old <- options(gpucholmod.progress = TRUE, gpucholmod.progress_after = NULL)
  on.exit(options(old))
  wanted <- gpucholmod:::wants_bar
  after <- function() {
    on.exit(gpucholmod:::end_bar("done"))
    gpucholmod:::new_bar()$after
  }
  expect_true(wanted())
  expect_identical(after(), 2)
  options(gpucholmod.progress_after = 0.5)
  expect_identical(after(), 0.5)
  options(gpucholmod.progress_after = "soon")
  expect_identical(expect_error(cholupdate_gpu(diag(2), 1:2), class = "gpucholmod_bad_argument")$argument,
                   "gpucholmod.progress_after")
  for (off in list(FALSE, NA, "yes")) {
    options(gpucholmod.progress = off)
    expect_false(wanted())
  }
  options(gpucholmod.progress = NULL)
  expect_identical(wanted(), interactive())
})

test_that("a bar that cannot be shown does not stop the computation", {
  bar <- gpucholmod:::bar
  environment(bar) <- list2env(list(requireNamespace = function(...) FALSE), parent = environment(gpucholmod:::bar))
  expect_silent(expect_false(bar()$show(0.5)))
  environment(bar) <- list2env(list(begin_bar = function(...) stop("no bar")), parent = environment(gpucholmod:::bar))
  without <- bar()
  expect_silent(expect_false(without$show(0.5)))
  expect_silent(without$close("failed"))

  calls <- 0
  result <- observe(2000, 50, 0, function(done) {
    calls <<- calls + 1
    FALSE
  })
  expect_equal(result, chol(diag(2000) + 50))
  expect_identical(calls, 1)
})

test_that("the time that is left is told in hours, minutes and seconds", {
  expect_identical(gpucholmod:::eta(NULL), "")
  expect_identical(vapply(c(0, 59.6, 3725), gpucholmod:::eta, ""), c("ETA 0:00:00", "ETA 0:01:00", "ETA 1:02:05"))
})
