#' The experiment of Walder (2010), on this machine
#'
#' Measures time and error of updates and downdates against the order \eqn{n}, as Walder (2010) does, for all that this
#' machine can run: sweeps of rotations as in LINPACK, the methods of this package on the CPU and on the GPU, and
#' factorising again.
#'
#' The procedure is the paper's. \eqn{B} (\eqn{n \times n}{n x n}) and \eqn{V} (\eqn{n \times k}{n x k}) are uniform on
#' \eqn{[0, 1]}. An update starts from the factor of \eqn{A = B'B + I}, a downdate from that of
#' \eqn{A = B'B + I + VV'}, both by LAPACK in double precision; the error is
#' \eqn{\max |\tilde A - \tilde R'\tilde R|}{max |A~ - R~'R~|}, with \eqn{\tilde R'\tilde R}{R~'R~} by R's BLAS in double precision.
#'
#' Times are of whole R calls, by the wall clock: from an ordinary matrix to an ordinary matrix, transfers to the GPU
#' and conversions to single precision included, garbage being collected before each from \eqn{n = 500} on. With method
#' `"resident"` the factor is on the GPU before and after. Factorising again is not charged for forming
#' \eqn{\tilde A}{A~}, which is `A1` here.
#'
#' | `method` | on the | what is timed |
#' |---|---|---|
#' | `"sweeps"` | CPU | `cholupdate_gpu(method = "reference")`: a sweep of rotations for each column, as in LINPACK |
#' | `"blocked"` | CPU | `cholupdate_gpu(method = "blocked")` |
#' | `"chol"` | CPU | `chol(A1)`, double precision only, with as many threads of R's BLAS as are quickest, where it lets itself be told |
#' | `"copy"` | CPU | `R + 0`: what R takes to write such a matrix |
#' | `"panel"` | GPU | `cholupdate_gpu(method = "panel")`, the paper's |
#' | `"stream"` | GPU | `cholupdate_gpu(method = "stream")` |
#' | `"gpu_chol"` | GPU | `as.matrix(gpu_chol(A1))` |
#' | `"resident"` | GPU | `cholupdate_gpu()` of a [gpu_factor()] |
#' | `"potrf"` | GPU | cuSOLVER's factorisation alone, the matrix being there, of the upper or the lower triangle, whichever is quicker; by the GPU's clock |
#' | `"triangle"` | GPU | a kernel that reads and writes the triangle, and computes nothing; by the GPU's clock |
#'
#' Large `sizes` take long, mostly for \eqn{B'B}, the first factors and the errors, which grow with \eqn{n^3}. A call
#' that is expected to take more than `longest` seconds, going by the next smaller size, is left out, and says so in column
#' `status`; so are all sizes from that on for which \eqn{B'B} and its factor would.
#'
#' @param sizes Orders \eqn{n}. By default 500, 1,000, 1,500, 2,000, 3,000, 4,000, 5,000, 7,000 and so on up to
#'   40,000, as far as seven matrices of that order fit into 80 % of the memory that is free (where that is not known:
#'   up to 5,000).
#' @param ranks Ranks \eqn{k}. The paper has 1 and 16; with others the break-even with factorising again is known for
#'   these too.
#' @param precisions `"double"`, `"single"` or both.
#' @param methods Names in the table above; by default all that can run here.
#' @param repeats Calls to time, after one to warm up; more of those that take less than 0.1 seconds all together.
#'   Their median counts.
#' @param longest Seconds that a call, or \eqn{B'B} and its factor, may be expected to take. No further calls are timed
#'   once those of one case have taken that long together; where the first does, it is the only one.
#' @param file A file to save each measurement to as soon as it is made (see [read_measurements()]). Where it is there
#'   already, and of this machine, what it holds is not measured again: a run that was stopped goes on, and one with
#'   other sizes, ranks or methods adds to it.
#' @param seed A whole number for [set.seed()]: it gives the same \eqn{B} for the same \eqn{n}, and the same \eqn{V} for
#'   the same \eqn{n} and \eqn{k}. R's random numbers go on afterwards as if nothing had been.
#' @param verbose Whether to say what is done, a message a size.
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
#'   The attribute `about` tells of the machine; see [provenance()]. There are `plot()`, `summary()` and `print()`
#'   [methods][plot.bench_paper], and [compare_bench()].
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
  precisions <- unique(vapply(precisions, match_choice, "", c("double", "single"), "precisions", USE.NAMES = FALSE))
  repeats <- require_count(repeats, "repeats")
  require_seconds(longest, "longest")
  require_flag(verbose, "verbose")
  require_seed(seed)
  say <- if (verbose) function(...) message(sprintf(...)) else function(...) invisible()
  methods <- runnable_methods(methods, say)
  sizes <- if (is.null(sizes)) default_sizes() else require_sizes(sizes)

  user <- match.call()
  user$file <- NULL
  about <- c(experiment = "paper", command = command_of(user), machine(), gpuless())
  record <- open_record(file, about)
  on.exit(record$close())
  keep_random_numbers()

  cases <- bench_cases(sizes, ranks, precisions, methods)
  cases <- cases[!case_key(cases) %in% case_key(record$done()), ]
  progress <- share_shown(cases)
  on.exit(progress$close("failed"), add = TRUE)
  for (n in unique(cases$n)) {
    if (too_slow(record$preparation(), n, 3, longest)) {
      say("n = %s and larger are left out: B'B and its factor would take more than %g s", big(n), longest)
      record$add(blank_rows(cases[cases$n >= n, ], "too slow"))
      break
    }
    start <- proc.time()[["elapsed"]]
    # What goes wrong outside of a single measurement, such as R's own lack of memory, must not lose the others.
    done <- tryCatch({
      measure_size(cases[cases$n == n, ], record, repeats, longest, seed, progress$show)
      TRUE
    }, error = function(e) {
      if (is_time_limit(e)) stop(e)
      warning(sprintf("n = %s and larger: %s", big(n), conditionMessage(e)), call. = FALSE)
      FALSE
    })
    if (!done) {
      record$add(blank_rows(cases[cases$n >= n & !case_key(cases) %in% case_key(record$done()), ], "failed"))
      break
    }
    say("n = %s: %d measurements, %.0f s", big(n), sum(cases$n == n), proc.time()[["elapsed"]] - start)
  }
  progress$close("done")
  record$result()
}

# Everything for one n. `cases`: rows of bench_cases().
measure_size <- function(cases, record, repeats, longest, seed, progress) {
  n <- cases$n[[1L]]
  set.seed((seed + n) %% .Machine$integer.max)
  start <- proc.time()[["elapsed"]]
  B <- matrix(stats::runif(n * n), n, n)
  base <- crossprod(B)
  B <- NULL
  diag(base) <- diag(base) + 1
  R <- chol(base)
  record$preparation(data.frame(n = n, seconds = proc.time()[["elapsed"]] - start))
  once <- cases$change == "none"
  for (i in which(once)) {
    record$add(measure_once(cases[i, ], R, record, repeats, longest))
    progress(cases[i, ])
  }
  for (k in unique(cases$k[!once])) {
    set.seed((seed + n + 65536 * k) %% .Machine$integer.max)
    V <- matrix(stats::runif(n * k), n, k)
    raised <- base + tcrossprod(V)
    for (change in unique(cases$change[cases$k == k])) {
      downdate <- change == "downdate"
      p <- list(R = if (downdate) chol(raised) else R, V = V, A1 = if (downdate) base else raised, downdate = downdate)
      scale <- norm(if (downdate) raised else base, "1") + norm_of_square(V)
      for (i in which(cases$k == k & cases$change == change)) {
        record$add(measure_case(cases[i, ], p, scale, record, repeats, longest))
        progress(cases[i, ])
      }
    }
  }
}

# ||VV'||_1
norm_of_square <- function(V) max(abs(V) %*% colSums(abs(V)))

measure_once <- function(case, R, record, repeats, longest) {
  method <- bench_methods[[case$method]]
  if (too_slow(record$before(case), case$n, method$power, longest)) return(blank_rows(case, "too slow"))
  guarded_row(case, {
    seconds <- method$measure(list(R = R, precision = case$precision), repeats)
    filled_row(case, stats::median(seconds), min(seconds), NA_real_, max(repeats, length(seconds)), NA_real_, NA_real_,
               "ok")
  })
}

measure_case <- function(case, p, scale, record, repeats, longest) {
  method <- bench_methods[[case$method]]
  if (too_slow(record$before(case), case$n, method$power, longest)) return(blank_rows(case, "too slow"))
  p$precision <- case$precision
  guarded_row(case, {
    call <- method$prepare(p)
    timed <- without_bar(wall_clock(call, case$n, repeats, longest))
    inside <- if (method$role == "method") last_cholupdate()$seconds else NA_real_
    error <- factor_error(timed$result, p$A1)
    eps <- if (case$precision == "double") .Machine$double.eps else 2^-23
    ratio <- error$norm / ((case$n + case$k) * eps * scale)
    filled_row(case, stats::median(timed$seconds), min(timed$seconds), inside, length(timed$seconds), error$max, ratio,
               if (isTRUE(ratio < 30)) "ok" else "inaccurate")
  })
}

# max |A1 - R'R| and ||A1 - R'R||_1; by columns, as there may be no room for another matrix or two.
factor_error <- function(R, A1) {
  if (inherits(R, "gpu_factor")) {
    on_gpu <- R
    R <- as.matrix(on_gpu)
    free(on_gpu)
  }
  C <- crossprod(R)
  n <- nrow(C)
  largest <- norm <- 0
  for (first in seq(1, n, by = 256)) {
    columns <- first:min(n, first + 255)
    difference <- abs(C[, columns] - A1[, columns])
    largest <- max(largest, difference)
    norm <- max(norm, colSums(as.matrix(difference)))
  }
  list(max = largest, norm = norm)
}

# The row that `code` returns, or one that tells why there is none.
guarded_row <- function(case, code) {
  failed <- function(status) function(e) blank_rows(case, status)
  tryCatch(code,
    gpucholmod_not_positive_definite = failed("not positive definite"), gpucholmod_out_of_memory = failed("no memory"),
    error = function(e) {
      if (is_time_limit(e)) stop(e)
      warning(sprintf("%s, n = %.0f, k = %.0f, %s, %s: %s", case$method, case$n, case$k, case$change, case$precision,
                      conditionMessage(e)), call. = FALSE)
      blank_rows(case, "failed")
    }
  )
}

filled_row <- function(case, seconds, fastest, inside, repeats, max_error, ratio, status) {
  cbind(case, device = bench_methods[[case$method]]$device, seconds = seconds, fastest = fastest, inside = inside,
        repeats = as.integer(repeats), max_error = max_error, ratio = ratio, status = status, date = format(Sys.Date()))
}

blank_rows <- function(cases, status) {
  device <- vapply(bench_methods[cases$method], `[[`, "", "device")
  cbind(cases, device = unname(device), seconds = NA_real_, fastest = NA_real_, inside = NA_real_, repeats = 0L,
        max_error = NA_real_, ratio = NA_real_, status = status, date = format(Sys.Date()))
}

# Whether what took `before` (a row with n and seconds, or none) would take more than `longest` seconds at order n.
too_slow <- function(before, n, power, longest) {
  nrow(before) > 0L && isTRUE(before$seconds * (n / before$n)^power > longest)
}

# One row for each thing to measure.
bench_cases <- function(sizes, ranks, precisions, methods) {
  once <- vapply(bench_methods[methods], function(m) !is.null(m$measure), NA)
  cross <- function(...) expand.grid(..., stringsAsFactors = FALSE, KEEP.OUT.ATTRS = FALSE)
  cases <- rbind(
    cross(method = methods[once], precision = precisions, change = "none", k = 0, n = as.numeric(sizes)),
    cross(method = methods[!once], precision = precisions, change = c("update", "downdate"), k = as.numeric(ranks),
          n = as.numeric(sizes))
  )
  possible <- mapply(function(method, precision) precision %in% bench_methods[[method]]$precision, cases$method,
                     cases$precision)
  cases <- cases[possible, c("n", "k", "precision", "change", "method")]
  cases <- cases[order(cases$n), ]
  rownames(cases) <- NULL
  cases
}

case_key <- function(x) if (nrow(x)) paste(x$n, x$k, x$precision, x$change, x$method) else character()

# The methods to measure; `say` is told which cannot be had.
runnable_methods <- function(methods, say) {
  device <- vapply(bench_methods, `[[`, "", "device")
  gpu <- gpu_info(memory = FALSE)
  if (is.null(methods)) {
    if (!gpu$usable) {
      say("no GPU: %s; the CPU's methods only", gpu$message)
      return(names(bench_methods)[device == "cpu"])
    }
    without <- tryCatch({
      free(gpu_chol(diag(2)))
      character()
    }, gpucholmod_backend_unavailable = function(e) {
      say("nothing is factorised on the GPU: %s", conditionMessage(e))
      c("gpu_chol", "potrf")
    })
    return(setdiff(names(bench_methods), without))
  }
  methods <- unique(vapply(methods, match_choice, "", names(bench_methods), "methods", USE.NAMES = FALSE))
  if (!gpu$usable && any(device[methods] == "gpu")) {
    first <- methods[device[methods] == "gpu"][[1L]]
    stop_gpucholmod("backend_unavailable", sprintf("method \"%s\" needs a GPU: %s", first, gpu$message),
                    list(backend = "cuda", reason = gpu$reason))
  }
  methods
}

gpuless <- function() {
  info <- gpu_info(memory = FALSE)
  c(gpuless = if (info$usable) "" else info$message)
}

# When the caller returns, R's random numbers go on from where they are now.
keep_random_numbers <- function(frame = parent.frame()) {
  old <- get0(".Random.seed", globalenv(), inherits = FALSE)
  restore <- function() {
    if (!is.null(old)) assign(".Random.seed", old, globalenv())
    else if (exists(".Random.seed", globalenv(), inherits = FALSE)) rm(".Random.seed", envir = globalenv())
  }
  do.call(on.exit, list(as.call(list(restore)), add = TRUE), envir = frame)
}

# Calls that take long have a bar of their own, for which there is no room beside that of the whole run.
without_bar <- function(code) {
  old <- options(gpucholmod.progress = FALSE)
  on.exit(options(old))
  code
}

# list(show, close): show() is told of each case when it is done, and shows the share of the work: by and large, n^2.5 a case.
share_shown <- function(cases) {
  if (!isTRUE(getOption("gpucholmod.progress", interactive()))) {
    return(list(show = function(case) invisible(), close = function(result) invisible()))
  }
  total <- sum(cases$n^2.5)
  done <- 0
  shown <- bar()
  list(close = shown$close, show = function(case) {
    done <<- done + case$n^2.5
    shown$show(min(1, done / total))
  })
}

# What to call to have the same measured again: the script of inst/bench, or bench_paper() itself.
command_of <- function(call) {
  script <- basename(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)))
  if (identical(script, "paper.R")) {
    given <- grep("^--(out|plots|compare)=", commandArgs(TRUE), value = TRUE, invert = TRUE)
    return(paste(c("Rscript inst/bench/paper.R", given), collapse = " "))
  }
  paste(deparse(call, width.cutoff = 500L), collapse = " ")
}

require_counts <- function(values, argument) {
  if (!length(values)) {
    stop_gpucholmod("bad_argument", sprintf("'%s' is empty", argument), list(argument = argument, value = values))
  }
  unique(vapply(values, require_count, 0L, argument))
}

require_seconds <- function(value, argument) {
  if (!is.numeric(value) || length(value) != 1L || is.na(value) || value <= 0) {
    stop_gpucholmod("bad_argument", sprintf("'%s' must be one number of seconds", argument),
                    list(argument = argument, value = value))
  }
}

require_seed <- function(seed) {
  whole <- is.numeric(seed) && length(seed) == 1L && !is.na(seed) && seed == round(seed)
  if (!whole || abs(seed) > .Machine$integer.max) {
    stop_gpucholmod("bad_argument", "'seed' must be one whole number", list(argument = "seed", value = seed))
  }
}

# Bytes that one size takes: A, A~, R and the factor before a downdate, the result, its product, and some room.
bytes_for <- function(n) 7 * 8 * n^2

default_sizes <- function() {
  sizes <- c(500, 1000, 1500, 2000, 3000, 4000, 5000, 7000, 10000, 14000, 20000, 28000, 40000)
  free <- free_memory()
  sizes[if (is.na(free)) sizes <= 5000 else bytes_for(sizes) <= 0.8 * free]
}

require_sizes <- function(sizes) {
  sizes <- sort(require_counts(sizes, "sizes"))
  free <- free_memory()
  if (!is.na(free) && bytes_for(max(sizes)) > free) {
    stop_gpucholmod("out_of_memory", sprintf("n = %d needs about %s of memory, and %s are free", max(sizes),
                                             format_bytes(bytes_for(max(sizes))), format_bytes(free)),
                    list(needed = bytes_for(max(sizes)), available = free))
  }
  sizes
}

# Bytes of memory that are free, where the system says so.
free_memory <- function() {
  if (!file.exists("/proc/meminfo")) return(NA_real_)
  line <- grep("^MemAvailable:", readLines("/proc/meminfo"), value = TRUE)
  if (length(line)) 1024 * as.numeric(gsub("[^0-9]", "", line)) else NA_real_
}
