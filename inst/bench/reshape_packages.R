# Rows and columns that come, go and move, beside Octave, whose functions are those of the library qrupdate, and chol().
#
#   Rscript inst/bench/reshape_packages.R [--sizes=100,500,1000,2000] [--rows=1,16] [--repeats=21] [--budget=3]
#                                         [--out=FILE]
#
# Well-conditioned factors (family "ridge" of common.R), double precision. `what`: so many rows and columns come at the
# end or in the middle, go from the middle or from anywhere (those that come next to each other in one call here, one
# after the other in Octave), or the one in the middle goes to the end. `who`: an ordinary matrix, which is a new one
# every time, a factor of chol_factor(R, "cpu") in place, with room for what comes; cholinsert(), choldelete(),
# cholshift() of Octave, as often as there are rows; and chol() of the matrix that results, which is there already.
# `seconds`: medians of at most --repeats calls, at least 3, where they would take longer than --budget seconds in all;
# in place the factor is put back each time, which is not timed. `ok`: ||R~'R~ x - A~ x|| < 1e-13 ||A~||_1 ||x||, x
# random.
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

numbers <- function(name, default) as.integer(strsplit(option(name, default), ",")[[1L]])
sizes <- numbers("sizes", "100,500,1000,2000")
counts <- numbers("rows", "1,16")
repeats <- numbers("repeats", "21")
budget <- as.numeric(option("budget", 3))
out <- option("out", character(0))

# Seconds of f(x), x from fresh(), which is not timed, and the last value.
time_calls <- function(f, fresh = function() NULL) {
  seconds <- numeric()
  repeat {
    x <- fresh()
    begin <- Sys.time()
    value <- f(x)
    seconds <- c(seconds, as.numeric(Sys.time() - begin, units = "secs"))
    counted <- seconds[-1L]
    if (length(counted) >= repeats || (length(counted) >= 3L && sum(counted) > budget)) break
  }
  list(seconds = stats::median(counted), R = value)
}
# step: lines of Octave that make S of R, with X, at and gone.
time_octave <- function(step, matrices, m) {
  folder <- in_octave(c("t = [];", "do", "tic;", step, "t(end + 1) = toc;",
                        sprintf("until numel(t) > %d || (numel(t) > 3 && sum(t(2:end)) > %g)", repeats, budget),
                        "put('t', t(2:end)); put('S', S);"), matrices)
  on.exit(unlink(folder, recursive = TRUE))
  list(seconds = stats::median(doubles(folder, "t")), R = matrix(doubles(folder, "S"), m))
}

rows <- list()
for (n in sizes) {
  for (p in counts) {
    set.seed(1)
    whole <- families$ridge$R(n + p)
    A <- crossprod(whole)
    keep <- seq_len(n)
    middle <- n %/% 2L + seq_len(p)
    cases <- list(
      append = list(old = keep, new = seq_len(n + p), at = n + 1L),
      "insert in the middle" = list(old = keep, new = append(keep, n + seq_len(p), n %/% 2L), at = n %/% 2L + 1L),
      "delete in the middle" = list(old = keep, new = keep[-middle], gone = middle)
    )
    if (p > 1L) {
      gone <- sort(sample(n, p))
      cases$"delete anywhere" <- list(old = keep, new = keep[-gone], gone = gone)
    } else {
      cases$"move from the middle to the end" <- list(old = keep, new = c(keep[-middle], middle), from = middle)
    }
    for (what in names(cases)) {
      case <- cases[[what]]
      R <- chol(A[case$old, case$old])
      target <- A[case$new, case$new]
      X <- if (!is.null(case$at)) target[, seq(case$at, length.out = p), drop = FALSE]
      change <- function(f, ...) {
        if (!is.null(case$at)) return(cholinsert_gpu(f, X, case$at, ...))
        if (!is.null(case$gone)) return(choldelete_gpu(f, case$gone, ...))
        cholshift_gpu(f, case$from, n, ...)
      }
      # The new columns one by one: of each the rows that are there by then.
      step <- if (!is.null(case$at)) {
        "S = R; for q = 1:p, S = cholinsert(S, at + q - 1, X([1:at + q - 1, at + p:n + p], q)); end;"
      } else if (!is.null(case$gone)) {
        "S = R; for q = p:-1:1, S = choldelete(S, gone(q)); end;"
      } else {
        "S = cholshift(R, from, n);"
      }
      given <- c(list(R = R), case[intersect(c("at", "gone", "from"), names(case))], list(n = n, p = p))
      given <- lapply(given, function(x) if (is.matrix(x)) x else as.double(x))
      if (!is.null(X)) given$X <- X
      timed <- list(
        "matrix" = time_calls(function(x) change(R)),
        "in place" = time_calls(function(f) change(f, in_place = TRUE),
                                function() chol_factor(R, "cpu", capacity = n + p)),
        "Octave" = if (length(octave)) time_octave(step, given, nrow(target)),
        "chol()" = time_calls(function(x) chol(target))
      )
      timed <- Filter(Negate(is.null), timed)
      x <- rnorm(nrow(target))
      ok <- vapply(timed, function(one) {
        S <- as.matrix(one$R)
        max(abs(crossprod(S, S %*% x) - target %*% x)) < 1e-13 * norm(target, "1") * max(abs(x))
      }, TRUE)
      rows[[length(rows) + 1L]] <- data.frame(n = n, p = p, what = what, who = names(timed),
                                              seconds = vapply(timed, `[[`, 0, "seconds"), ok = ok,
                                              row.names = NULL)
      cat(sprintf("n %5d, %2d, %-32s %s\n", n, p, what,
                  paste(sprintf("%s %.3f", names(timed), 1000 * vapply(timed, `[[`, 0, "seconds")), collapse = "  ")))
    }
  }
}
times <- do.call(rbind, rows)
if (!all(times$ok)) print(times[!times$ok, ])
about <- gpucholmod:::machine()
if (length(octave)) {
  about <- c(about, octave = sub("^GNU Octave, version", "GNU Octave",
                                 system2(octave[[1L]], "--version", stdout = TRUE)[[1L]]))
}
if (length(out)) save_measurements(times, out, "reshape_packages.R", about)
