# The CPU backend beside what else there is on a Debian machine.
#
#   Rscript cpu.R [--most=4096] [--repeats=] [--threads=2] [--out=cpu.csv]
#
# Opponents: Eigen's rankUpdate (from RcppEigen, compiled with -O3 -march=native), qrupdate's dch1up and dch1dn
# (libqrupdate-dev), both once for each column of V; mgcv::cholup; chol(A + VV') in R; and, as ceilings, dgemm of R's
# BLAS, and a loop that reads and writes the triangle. What is not installed is left out, and said so. Each of them runs
# in a process of its own, with one thread in BLAS, but for chol(), which has what BLAS takes.
#
# Matrices: random, n up to --most, V dense; double precision unless said otherwise. Times: medians of 3 to 501 calls,
# of --repeats at most, in milliseconds, of
#   in place  the modification alone, in memory that is there, in huge pages: last_cholupdate()$seconds of
#             cholupdate_overwrite(), which adds V and takes it off in turn, and the opponents' own loops; copies are
#             not part of it
#   call      whole R calls, from an ordinary matrix to an ordinary matrix, gc() before each
# Every result is checked: with two random vectors x, all norms being 2-norms,
#
#   ||R~'(R~x) - (R'(Rx) + sigma V(V'x))|| / ((n + k) eps (||R'(Rx)|| + ||V(V'x)||)) < 1
#
# or the script stops. The last lines are markdown tables. --out writes the figures behind them (stored_measurements()),
# in ms, and "dgemm" in GF/s.

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
most <- as.numeric(option("most", 4096))
most_repeats <- as.numeric(option("repeats", 501))
cache <- option("cache", file.path(tempdir(), "cpu_opponents"))
threads <- as.integer(option("threads", 2))
contender <- option("contender", "")
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))

in_place_cases <- list(c(256, 16), c(1024, 1), c(1024, 16), c(4096, 1), c(4096, 16), c(4096, 64))
call_cases <- list(c(256, 16), c(1024, 16), c(3000, 1), c(3000, 16))
if (most < 256) stop("--most must be at least 256, the order of the smallest case", call. = FALSE)
up_to_most <- function(cases) Filter(function(case) case[[1L]] <= most, cases)
in_place_cases <- up_to_most(in_place_cases)
call_cases <- up_to_most(call_cases)
repeats_for <- function(n, slow) {
  min(most_repeats, if (n <= 256) 501L else if (n <= 1024) 101L else if (slow) 3L else 15L)
}

make <- function(n, k) {
  set.seed(n + k)
  R <- matrix(rep_len(rnorm(1000003) / sqrt(n), n * n), n, n)
  R[lower.tri(R)] <- 0
  R[cbind(1:n, 1:n)] <- 1 + runif(n)
  list(R = R, V = matrix(rnorm(n * k) / sqrt(n), n, k))
}

check <- function(problem, result, sigma, eps = .Machine$double.eps) {  # sigma 0: updated and downdated again
  norms <- function(X) sqrt(colSums(X^2))
  X <- matrix(rnorm(2 * nrow(problem$V)), ncol = 2L)
  old <- crossprod(problem$R, problem$R %*% X)
  change <- problem$V %*% crossprod(problem$V, X)
  error <- norms(crossprod(result, result %*% X) - (old + sigma * change))
  ratio <- max(error / (sum(dim(problem$V)) * eps * (norms(old) + norms(change))))
  if (!is.finite(ratio) || ratio >= 1) stop(sprintf("a residual ratio of %g", ratio))
}

# Seconds of each call of f(), which returns a factor, and the last factor.
calls <- function(f, repeats) {
  f()
  seconds <- numeric(repeats)
  for (i in seq_len(repeats)) {
    R <- NULL
    gc(FALSE)
    start <- Sys.time()
    R <- f()
    seconds[i] <- as.numeric(difftime(Sys.time(), start, units = "secs"))
  }
  list(seconds = seconds, R = R)
}

# Updates and downdates of the same matrix in turn, seconds of either kind; the matrix ends as the updated factor.
overwriting <- function(problem, downdate, control, repeats) {
  W <- gpucholmod::cholupdate_gpu(problem$R, problem$V, backend = "cpu")
  seconds <- matrix(0, 2L, repeats)
  for (i in seq_len(2L * repeats)) {
    gpucholmod::cholupdate_overwrite(W, problem$V, downdate = i %% 2L == 1L, backend = "cpu", control = control)
    seconds[i] <- gpucholmod::last_cholupdate()$seconds
  }
  list(seconds = seconds[if (downdate) 1L else 2L, ], R = W)
}

# Is true if the linker finds qrupdate.
have_qrupdate <- function() {
  program <- tempfile("link", fileext = ".so")
  compiler <- system2(file.path(R.home("bin"), "R"), c("CMD", "config", "CXX17"), stdout = TRUE)
  system(paste("echo 'int main() {}' |", compiler, "-x c++ - -lqrupdate -o", shQuote(program), "2>/dev/null")) == 0L
}
# Compiles cpu_opponents.cpp, if `cache` does not hold it compiled, and loads it.
opponents <- function() {
  qrupdate <- have_qrupdate()
  Sys.setenv(PKG_CXXFLAGS = "-O3 -march=native -w", PKG_CPPFLAGS = if (qrupdate) "-DHAVE_QRUPDATE" else "",
             PKG_LIBS = paste(if (qrupdate) "-lqrupdate", "$(LAPACK_LIBS) $(BLAS_LIBS) $(FLIBS)"))
  dir.create(cache, showWarnings = FALSE)
  source <- file.path(here, "cpu_opponents.cpp")
  invisible(utils::capture.output(Rcpp::sourceCpp(source, env = globalenv(), cacheDir = cache), type = "output"))
}

# What a child process prints: a line for each figure.
tell <- function(what, n, k, result) {
  cat(sprintf("@ %s;%d;%d;%.17g\n", what, as.integer(n), as.integer(k), 1000 * stats::median(result$seconds)))
}
each_case <- function(cases, what, f, sigma = 1, ...) {
  for (case in cases) {
    problem <- make(case[[1L]], case[[2L]])
    result <- f(problem, case[[1L]], case[[2L]])
    if (is.null(result)) return(cat("@ absent\n"))
    check(problem, result$R, sigma, ...)
    tell(what, case[[1L]], case[[2L]], result)
  }
}

ours <- function(what, control, downdate = FALSE, cases = in_place_cases) {
  each_case(cases, what, function(p, n, k) overwriting(p, downdate, control, repeats_for(n, FALSE)))
}
control <- function(...) gpucholmod::cholupdate_control(...)
large <- Filter(function(case) case[[1L]] == max(vapply(in_place_cases, `[`, 0, 1L)), in_place_cases)
have <- function(package) requireNamespace(package, quietly = TRUE)

contenders <- list(
  "this package" = function() {
    ours("in place", control(threads = 1))
    ours("in place, downdate", control(threads = 1), downdate = TRUE)
    for (set in c("plain", "avx2", "avx512")) {
      tryCatch(ours(paste("in place,", set), control(threads = 1, instructions = set), cases = large),
               gpucholmod_bad_argument = function(e) cat("@ absent\n"))
    }
    ours("in place, threads", control(threads = threads), cases = large)
    single <- function(what, count) {
      each_case(large, what, function(p, n, k) {
        seconds <- replicate(repeats_for(n, FALSE), {
          R <- gpucholmod::cholupdate_gpu(p$R, p$V, backend = "cpu", precision = "single", method = "blocked",
                                          control = control(threads = count))
          gpucholmod::last_cholupdate()$seconds
        })
        R <- gpucholmod::cholupdate_gpu(p$R, p$V, backend = "cpu", precision = "single")
        list(seconds = seconds, R = R)
      }, eps = 2^-23)
    }
    single("in place, single", 1)
    single("in place, single, threads", threads)
    for (count in unique(c(1, threads))) {
      each_case(call_cases, if (count == 1) "call" else "call, threads", function(p, n, k) {
        calls(function() gpucholmod::cholupdate_gpu(p$R, p$V, backend = "cpu", control = control(threads = count)),
              repeats_for(n, FALSE))
      })
    }
    each_case(call_cases, "R + 0", function(p, n, k) {
      times <- calls(function() p$R + 0, repeats_for(n, FALSE))
      list(seconds = times$seconds, R = gpucholmod::cholupdate_gpu(p$R, p$V, backend = "cpu"))
    })
  },
  "Eigen" = function() {
    opponents()
    each_case(in_place_cases, "in place", function(p, n, k) by_eigen(p$R, p$V, 1, repeats_for(n, TRUE)))
  },
  "qrupdate" = function() {
    opponents()
    each_case(in_place_cases, "in place", function(p, n, k) by_qrupdate(p$R, p$V, 1, repeats_for(n, TRUE)))
    each_case(in_place_cases, "in place, downdate", function(p, n, k) {
      p$R <- gpucholmod::cholupdate_gpu(p$R, p$V, backend = "cpu")
      by_qrupdate(p$R, p$V, -1, repeats_for(n, TRUE))
    }, sigma = 0)
  },
  "mgcv" = function() {
    if (!have("mgcv")) return(cat("@ absent\n"))
    each_case(call_cases, "call", function(p, n, k) {
      calls(function() {
        R <- p$R
        for (q in seq_len(k)) R <- mgcv::cholup(R, p$V[, q], TRUE)
        R
      }, min(most_repeats, if (n * k > 10000) 3L else 15L))
    })
  },
  "chol" = function() {
    each_case(call_cases, "call", function(p, n, k) {
      A <- crossprod(p$R)
      calls(function() chol(A + tcrossprod(p$V)), min(most_repeats, if (n > 2000) 3L else 15L))
    })
  },
  "ceilings" = function() {
    opponents()
    set.seed(1)
    size <- min(most, 2048)
    seconds <- stats::median(dgemm_seconds(matrix(rnorm(size^2), size), min(most_repeats, 5L)))
    cat(sprintf("@ dgemm;0;0;%.17g\n", 2 * size^3 / seconds / 1e9))
    for (n in unique(vapply(in_place_cases, `[`, 0, 1L))) {
      tell("triangle", n, 0, list(seconds = triangle_seconds(make(n, 1)$R, repeats_for(n, FALSE))))
    }
  }
)

if (nzchar(contender)) {
  options(matprod = "blas")
  contenders[[contender]]()
  quit()
}

one_thread <- c("OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "MKL_NUM_THREADS=1")
figures <- data.frame()
for (name in names(contenders)) {
  script <- file.path(here, "cpu.R")
  arguments <- shQuote(c(script, paste0("--contender=", name), paste0("--cache=", cache), paste0("--threads=", threads),
                         paste0("--most=", most), paste0("--repeats=", most_repeats)))
  lines <- system2(file.path(R.home("bin"), "Rscript"), arguments, stdout = TRUE,
                   env = if (name == "chol") character() else one_thread)
  status <- attr(lines, "status")
  if (!is.null(status)) stop(sprintf("%s: failed", name), "\n", paste(lines, collapse = "\n"))
  found <- sub("^@ ", "", grep("^@ ", lines, value = TRUE))
  if (any(found == "absent"))
    cat(sprintf("%s: something is not there (a package, a library, or vector instructions)\n", name))
  fields <- strsplit(found[found != "absent"], ";")
  if (length(fields)) {
    figures <- rbind(figures, data.frame(
      name = name, what = vapply(fields, `[`, "", 1L), n = as.numeric(vapply(fields, `[`, "", 2L)),
      k = as.numeric(vapply(fields, `[`, "", 3L)), value = as.numeric(vapply(fields, `[`, "", 4L))
    ))
  }
}

out <- option("out", "")
if (nzchar(out)) {
  source(system.file("bench", "common.R", package = "gpucholmod"))
  save_measurements(figures, out, "cpu.R")
}

ms <- function(name, what, n, k) {
  value <- figures$value[figures$name == name & figures$what == what & figures$n == n & figures$k == k]
  if (length(value)) value else NA_real_
}
show <- function(x) ifelse(is.na(x), "-", formatC(signif(x, 3), digits = 3, format = "fg", big.mark = ","))
line <- function(...) cat("|", paste(c(...), collapse = " | "), "|\n")
rule <- function(count) line(rep("---", count))

dgemm <- ms("ceilings", "dgemm", 0, 0)
model <- if (file.exists("/proc/cpuinfo"))
  sub(".*: ", "", grep("^model name", readLines("/proc/cpuinfo"), value = TRUE)[1L])
cat(sprintf("\n%s; %s; BLAS %s, one thread: dgemm %.1f GF/s\n\n", model, R.version.string,
            basename(dirname(extSoftVersion()[["BLAS"]])), dgemm))

cat("In place, one thread, ms (update / downdate):\n\n")
line("n", "k", "this package", "% of dgemm", "Eigen", "qrupdate", "triangle read and written")
rule(7)
pair <- function(name, n, k) paste(show(ms(name, "in place", n, k)), "/", show(ms(name, "in place, downdate", n, k)))
for (case in in_place_cases) {
  n <- case[[1L]]
  k <- case[[2L]]
  line(format(n, big.mark = ","), k, pair("this package", n, k),
       sprintf("%.0f", 100 * 2 * k * n^2 / ms("this package", "in place", n, k) / 1e6 / dgemm),
       show(ms("Eigen", "in place", n, k)), pair("qrupdate", n, k), show(ms("ceilings", "triangle", n, 0)))
}

cat(sprintf("\nIn place, update, ms; %d threads, single precision, and other instructions:\n\n", threads))
line("n", "k", "one thread", sprintf("%d threads", threads), "single", sprintf("single, %d threads", threads), "avx512",
     "avx2", "plain")
rule(9)
for (case in large) {
  at <- function(what) show(ms("this package", what, case[[1L]], case[[2L]]))
  line(format(case[[1L]], big.mark = ","), case[[2L]], at("in place"), at("in place, threads"), at("in place, single"),
       at("in place, single, threads"), at("in place, avx512"), at("in place, avx2"), at("in place, plain"))
}

cat("\nWhole R calls, update, ms:\n\n")
line("n", "k", "this package, one thread", sprintf("%d threads", threads), "`R + 0`", "`mgcv::cholup()`, k times",
     "`chol(A + tcrossprod(V))`")
rule(7)
for (case in call_cases) {
  n <- case[[1L]]
  k <- case[[2L]]
  line(format(n, big.mark = ","), k, show(ms("this package", "call", n, k)),
       show(ms("this package", "call, threads", n, k)), show(ms("this package", "R + 0", n, k)),
       show(ms("mgcv", "call", n, k)), show(ms("chol", "call", n, k)))
}
