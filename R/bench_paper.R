#' The experiment of Walder (2010), on this machine
#'
#' Measures time and error of updates and downdates against the order \eqn{n}, as Walder (2010) does, for all that this
#' machine can run: sweeps of rotations as in LINPACK, the methods of this package on the CPU and on the GPU, and
#' factorising again.
#'
#' The procedure is the paper's. \eqn{B} (\eqn{n \times n}{n x n}) and \eqn{V} (\eqn{n \times k}{n x k}) are uniform on
#' \eqn{[0, 1]}. An update starts from the factor of \eqn{A = B'B + I}, a downdate from that of
#' \eqn{A = B'B + I + VV'}, both by LAPACK in double precision; the error is
#' \eqn{\max |\tilde A - \tilde R'\tilde R|}{max |A~ - R~'R~|}, with \eqn{\tilde R'\tilde R}{R~'R~} by R's BLAS in
#' double precision.
#'
#' The times are those of whole calls from R by the wall clock, from an ordinary matrix to an ordinary matrix, transfers
#' to the GPU and conversions to single precision included. From \eqn{n = 500} on, garbage is collected before each
#' call. With method `"resident"` the factor is on the GPU before and after the call. The time of factorising again does
#' not include forming \eqn{\tilde A}{A~}, which is called `A1` in the table.
#'
#' | `method` | runs on the | what is timed |
#' |---|---|---|
#' | `"sweeps"` | CPU | `cholupdate_gpu(method = "reference")`: a sweep of rotations for each column, as in LINPACK |
#' | `"blocked"` | CPU | `cholupdate_gpu(method = "blocked")` |
#' | `"chol"` | CPU | `chol(A1)`, double precision only, with the quickest number of threads of R's BLAS (see below) |
#' | `"copy"` | CPU | `R + 0`: the time that R takes to write such a matrix |
#' | `"panel"` | GPU | `cholupdate_gpu(method = "panel")`, the paper's method |
#' | `"stream"` | GPU | `cholupdate_gpu(method = "stream")` |
#' | `"gpu_chol"` | GPU | `as.matrix(gpu_chol(A1))` |
#' | `"resident"` | GPU | `cholupdate_gpu()` of a [gpu_factor()] |
#' | `"potrf"` | GPU | cuSOLVER's factorisation alone, by the GPU's clock (see below) |
#' | `"triangle"` | GPU | a kernel that reads and writes the triangle, and computes nothing; by the GPU's clock |
#'
#' `"chol"` tries numbers of threads only if R's BLAS allows the number to be set. `"potrf"` factorises a matrix that is
#' on the GPU already, from its upper or its lower triangle, whichever is quicker.
#'
#' Large `sizes` take long, mostly for \eqn{B'B}, the first factors and the errors, whose times grow with \eqn{n^3}. A
#' call is left out if it is expected to take more than `longest` seconds, by its time at the next smaller size; column
#' `status` says so. If \eqn{B'B} and its factor are expected to take more, this and all larger sizes are left out.
#'
#' @param sizes Orders \eqn{n}. By default 500, 1,000, 1,500, 2,000, 3,000, 4,000, 5,000, 7,000 and so on up to
#'   40,000, as long as seven matrices of that order fit into 80 % of the free memory (up to 5,000 if the free memory is
#'   not known).
#' @param ranks Ranks \eqn{k}. The paper has 1 and 16.
#' @param precisions `"double"`, `"single"` or both.
#' @param methods Names in the table above; by default all that can run on this machine.
#' @param repeats The number of calls to time, after one call to warm up; more calls if these take less than 0.1 seconds
#'   together. Their median counts.
#' @param longest The most seconds that a call, or \eqn{B'B} and its factor, may be expected to take. No further calls
#'   are timed once the calls of one case have taken that long together, even after the first call.
#' @param file A file to which each measurement is saved as soon as it is made (see [stored_measurements()]). If the
#'   file is there already, and comes from this machine, its measurements are not repeated: a run that was stopped goes
#'   on, and a run with other sizes, ranks or methods adds to the file.
#' @param seed A whole number for [set.seed()]: it gives the same \eqn{B} for the same \eqn{n}, and the same \eqn{V} for
#'   the same \eqn{n} and \eqn{k}. R's own stream of random numbers is not changed by this.
#' @param verbose Whether to show a message for each size.
#' @return A data frame of class `bench_paper`, with a row for each measurement, those in `file` included:
#'   \item{n, k}{order and rank; `k` is 0 for what does not depend on it (`"copy"`, `"potrf"`, `"triangle"`)}
#'   \item{precision}{`"double"` or `"single"`}
#'   \item{change}{`"update"` or `"downdate"`, or `"none"` where `k` is 0}
#'   \item{method, device}{as in the table; `"cpu"` or `"gpu"`}
#'   \item{seconds, fastest}{median and least of the timed calls (of those by the GPU's clock, both are the median)}
#'   \item{inside}{[last_cholupdate()]`$seconds` of the last call, `NA` for what is no modification}
#'   \item{repeats}{calls timed}
#'   \item{max_error}{\eqn{\max |\tilde A - \tilde R'\tilde R|}{max |A~ - R~'R~|} of the last result}
#'   \item{ratio}{\eqn{\|\tilde A - \tilde R'\tilde R\|_1 / ((n + k)\,\epsilon\,(\|A\|_1 + \|VV'\|_1))}, with
#'     \eqn{\epsilon}{eps} of the precision: see `system.file("design", "accuracy.md", package = "gpucholmod")`}
#'   \item{status}{`"ok"`; `"inaccurate"`: the ratio is not below 30, so that the time does not count;
#'     `"not positive definite"`: reported for a downdate, or by [gpu_chol()]; `"too slow"`: left out; `"no memory"`;
#'     `"failed"`: another error, of which there is a warning}
#'   \item{date}{of the measurement}
#'
#'   The attribute `about` tells of the machine, see [stored_measurements()], and `format()` in a line. There are
#'   `plot()`, `summary()` and `print()` [methods][plot.bench_paper].
#'
#' @section Progress:
#' In an interactive session a bar shows the share of the work that is done, as described for [cholupdate_gpu()].
#' Ctrl-C stops the run; what was measured is in `file`, if there is one.
#' @section Errors:
#' `gpucholmod_bad_file`, with the fields `path` and `reason`, where `file` is not such a file (`"not_measurements"`) or
#' of another machine, version of this package, of R or of BLAS (`"other_machine"`; the field `differs` names what
#' differs). `gpucholmod_backend_unavailable` where one of `methods` needs a GPU and there is none.
#' `gpucholmod_out_of_memory`, with the fields `needed` and `available` in bytes, where one of `sizes` is too large.
#' @references
#' C. Walder (2010). Rank k Cholesky Up/Down-dating on the GPU: gpucholmodV0.2. arXiv:1011.1173.
#' \doi{10.48550/arXiv.1011.1173}
#' @seealso `system.file("bench", "paper.R", package = "gpucholmod")`, a script that runs it and draws the figures;
#'   `vignette("the-papers-experiment", package = "gpucholmod")`
#' @examples
#' x <- bench_paper(sizes = c(100, 200), repeats = 1, verbose = FALSE)
#' x
#' plot(x, which = "time")
#' @export
bench_paper <- function(sizes = NULL, ranks = c(1, 16), precisions = c("double", "single"), methods = NULL, repeats = 5,
                        longest = 20, file = NULL, seed = 2010, verbose = TRUE) {
  ranks <- require_counts(ranks, "ranks")
  precisions <- match_choices(precisions, c("double", "single"), "precisions")
  repeats <- require_count(repeats, "repeats")
  if (!is_number(longest) || longest <= 0) stop_bad_argument("longest", longest, "must be one number of seconds")
  require_flag(verbose, "verbose")
  whole <- is_number(seed) && seed == round(seed) && abs(seed) <= .Machine$integer.max
  if (!whole) stop_bad_argument("seed", seed, "must be one whole number")
  say <- if (verbose) function(...) message(sprintf(...)) else function(...) invisible()
  methods <- runnable_methods(methods, say)
  sizes <- possible_sizes(sizes)

  user <- match.call()
  user$file <- NULL
  # The script of inst/bench names itself.
  about <- c(experiment = "paper", command = getOption("gpucholmod.bench_command", deparse1(user)), machine())
  record <- open_record(file, about)
  cases <- to_measure(record, bench_cases(sizes, ranks, precisions, methods))
  record$work <- sum(cases$n^2.5)
  if (isTRUE(getOption("gpucholmod.progress", interactive()))) record$bar <- bar()
  # Calls that take long have a bar of their own, for which there is no room beside that of the whole run.
  old <- options(gpucholmod.progress = FALSE)
  random <- get0(".Random.seed", globalenv(), inherits = FALSE)
  on.exit({
    record$bar$close("failed")
    options(old)
    if (!is.null(random)) assign(".Random.seed", random, globalenv())
    else suppressWarnings(rm(".Random.seed", envir = globalenv()))
  })
  measure_all(cases, record, repeats, longest, seed, say)
  record$bar$close("done")
  as_measurements(record$rows, record$about)
}

# Measures all cases, by ascending order n, and adds the rows to `record`; larger orders are skipped after a failure.
measure_all <- function(cases, record, repeats, longest, seed, say) {
  for (n in unique(cases$n)) {
    start <- proc.time()[["elapsed"]]
    why_left <- if (too_slow(record$prepared, n, 3, longest)) {
      say("n = %s and larger are left out: B'B and its factor would take more than %g s", big(n), longest)
      "too slow"
    } else tryCatch({
      measure_size(cases[cases$n == n, ], record, repeats, longest, seed)
      NULL
    }, error = function(e) {
      # What goes wrong outside of a single measurement, such as R's own lack of memory, must not lose the others.
      if (is_time_limit(e)) stop(e)
      warning(sprintf("n = %s and larger: %s", big(n), conditionMessage(e)), call. = FALSE)
      "failed"
    })
    left <- to_measure(record, cases[cases$n >= n, ])
    if (!is.null(why_left)) return(add_rows(record, bench_rows(left, why_left)))
    say("n = %s: %d measurements, %.0f s", big(n), sum(cases$n == n), proc.time()[["elapsed"]] - start)
  }
}

# Measures the cases of one order n, and keeps the time of B'B and its factor in record$prepared. cases: rows of
# bench_cases().
measure_size <- function(cases, record, repeats, longest, seed) {
  n <- cases$n[[1L]]
  set.seed((seed + n) %% .Machine$integer.max)
  start <- proc.time()[["elapsed"]]
  base <- crossprod(matrix(stats::runif(n * n), n, n))
  diag(base) <- diag(base) + 1
  R <- chol(base)
  record$prepared <- data.frame(n = n, seconds = proc.time()[["elapsed"]] - start)
  for (k in unique(cases$k)) {
    set.seed((seed + n + 65536 * k) %% .Machine$integer.max)
    V <- matrix(stats::runif(n * k), n, k)
    raised <- if (k > 0) base + tcrossprod(V)
    for (change in unique(cases$change[cases$k == k])) {
      downdate <- change == "downdate"
      p <- list(R = if (downdate) chol(raised) else R, V = V, A1 = if (downdate) base else raised, downdate = downdate)
      if (k > 0) p$scale <- norm(if (downdate) raised else base, "1") + norm_of_square(V)
      for (i in which(cases$k == k & cases$change == change)) {
        add_rows(record, measure_case(cases[i, ], p, row_before(record$rows, cases[i, ]), repeats, longest))
      }
    }
  }
}

# Returns ||VV'||_1.
norm_of_square <- function(V) max(abs(V) %*% colSums(abs(V)))

# Measures one case and returns its row. p: what bench_methods prepare from, and `scale`, ||A||_1 + ||VV'||_1; before:
# see too_slow().
measure_case <- function(case, p, before, repeats, longest) {
  method <- bench_methods[[case$method]]
  if (too_slow(before, case$n, method$power, longest)) return(bench_rows(case, "too slow"))
  p$precision <- case$precision
  failed <- function(status) function(e) bench_rows(case, status)
  tryCatch({
    if (!is.null(method$measure)) {
      seconds <- method$measure(p, repeats)
      return(bench_rows(case, "ok", seconds, max(repeats, length(seconds))))
    }
    timed <- wall_clock(method$prepare(p), case$n, repeats, longest)
    inside <- if (method$role == "method") last_cholupdate()$seconds else NA_real_
    error <- factor_error(timed$result, p$A1)
    eps <- if (case$precision == "double") .Machine$double.eps else 2^-23
    ratio <- error[["norm"]] / ((case$n + case$k) * eps * p$scale)
    status <- if (isTRUE(ratio < 30)) "ok" else "inaccurate"
    bench_rows(case, status, timed$seconds, length(timed$seconds), inside, error[["max"]], ratio)
  }, gpucholmod_not_positive_definite = failed("not positive definite"), gpucholmod_out_of_memory = failed("no memory"),
  error = function(e) {
    if (is_time_limit(e)) stop(e)
    warning(sprintf("%s, n = %.0f, k = %.0f, %s, %s: %s", case$method, case$n, case$k, case$change, case$precision,
                    conditionMessage(e)), call. = FALSE)
    bench_rows(case, "failed")
  })
}

# Returns max |A1 - R'R| and ||A1 - R'R||_1.
factor_error <- function(R, A1) {
  # All in the memory of the product, as there may be no room for another matrix or two.
  difference <- abs(crossprod(as.matrix(R)) - A1)
  if (inherits(R, "gpu_factor")) free(R)
  c(max = max(difference), norm = max(colSums(difference)))
}

# Returns the rows of the result for these cases; without `seconds`, the rows of cases that were not timed.
bench_rows <- function(cases, status, seconds = NA_real_, repeats = 0L, inside = NA_real_, max_error = NA_real_,
                       ratio = NA_real_) {
  cbind(cases, device = method_field(cases$method, "device"), seconds = stats::median(seconds), fastest = min(seconds),
        inside = inside, repeats = as.integer(repeats), max_error = max_error, ratio = ratio, status = status,
        date = format(Sys.Date()))
}

# Is true if an operation that took `before` (a row with n and seconds, or no row) would take more than `longest`
# seconds at order n.
too_slow <- function(before, n, power, longest) isTRUE(before$seconds * (n / before$n)^power > longest)

# Returns a row for each case to measure, by ascending order n.
bench_cases <- function(sizes, ranks, precisions, methods) {
  cases <- expand.grid(method = methods, precision = precisions, change = c("none", "update", "downdate"),
                       k = as.numeric(c(0, ranks)), n = as.numeric(sizes), stringsAsFactors = FALSE)
  methods <- bench_methods[cases$method]
  once <- vapply(methods, function(method) !is.null(method$measure), NA)
  possible <- mapply(function(method, precision) precision %in% method$precision, methods, cases$precision)
  possible <- possible & once == (cases$change == "none") & once == (cases$k == 0)
  cases[possible, c("n", "k", "precision", "change", "method")]
}

# Returns a string for each row, which identifies its case.
case_key <- function(x, n = x$n) if (nrow(x)) paste(n, x$k, x$precision, x$change, x$method) else character()

# Returns the methods that can be measured here, and reports the others through `say`.
runnable_methods <- function(methods, say) {
  known <- names(bench_methods)
  chosen <- if (is.null(methods)) known else match_choices(methods, known, "methods")
  on_gpu <- chosen[method_field(chosen, "device") == "gpu"]
  gpu <- gpu_info(memory = FALSE)
  if (!gpu$usable && length(on_gpu)) {
    why <- sprintf("method \"%s\" needs a GPU: %s", on_gpu[[1L]], gpu$message)
    if (!is.null(methods)) stop_gpucholmod("backend_unavailable", why, list(backend = "cuda", reason = gpu$reason))
    say("no GPU: %s; the CPU's methods only", gpu$message)
    return(setdiff(chosen, on_gpu))
  }
  if (!is.null(methods)) return(chosen)
  tryCatch({
    free(gpu_chol(diag(2)))
    chosen
  }, gpucholmod_backend_unavailable = function(e) {
    say("nothing is factorised on the GPU: %s", conditionMessage(e))
    setdiff(chosen, c("gpu_chol", "potrf"))
  })
}

# Returns `sizes`, or the default sizes that fit into the free memory.
possible_sizes <- function(sizes) {
  # A, A~, R and the factor before a downdate, the result, its product, and some room
  bytes <- function(n) 7 * 8 * n^2
  free <- free_memory()
  if (is.null(sizes)) {
    sizes <- c(500, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 10000, 14000, 20000, 28000, 40000)
    return(sizes[bytes(sizes) <= if (is.na(free)) bytes(5000) else 0.8 * free])
  }
  sizes <- sort(require_counts(sizes, "sizes"))
  needed <- bytes(max(sizes))
  if (isTRUE(needed > free)) {
    why <- sprintf("n = %d needs %s of memory, and %s are free", max(sizes), format_bytes(needed), format_bytes(free))
    stop_gpucholmod("out_of_memory", why, list(needed = needed, available = free))
  }
  sizes
}
