# The same modification by what else there is on a Debian machine, and what each of them does with input that cannot be
# right.
#
#   Rscript packages.R [--sizes=100,250,500,1000,2000] [--ranks=1,16] [--repeats=25] [--budget=3]
#                      [--cases=8] [--out=FILE] [--failures=FILE]
#
# Contenders; what is not installed is left out, and said so:
#   gpucholmod  cholupdate_gpu() on the CPU with one thread, with all, and on the GPU where there is one;
#               cholupdate_overwrite(); a handle of chol_factor() on the CPU, in place
#   base        chol(A +/- tcrossprod(V)); that A is there already is in its favour
#   mgcv        cholup(R, u, up), once for each column of V
#   Matrix      updown(update, C, L), the only other routine of rank k. It is made for sparse matrices, so a dense one
#               is unfair to it: every entry is stored with its row number. L is an LDL' factorisation without
#               permutation, C is V as a sparse matrix; both are there already. Timed as it is, and with the triangle
#               as an ordinary matrix
#   Octave      cholupdate(R, u, op) of GNU Octave (qrupdate), once for each column of V, timed inside Octave
#
# Inputs are those of Walder (2010): B (n x n) and V (n x k) uniform on [0, 1]; an update starts from A = B'B + I, a
# downdate from A = B'B + I + VV'. Double precision. BLAS has the threads that it takes; only chol() has use for them.
#
# --out: times of whole calls, in seconds, the least of at most --repeats, after one that is not counted; fewer, but at
# least 3, where they would take longer than --budget seconds in all. In R, gc() comes before each; Octave's calls
# follow one upon the other, so what they need may still be in the caches. With `ratio`, the residual of
# inst/design/accuracy.md, and `ok`, whether it is below 30:
#
#   ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1))
#
# --failures: what a caller gets, n = 50: for downdates to a matrix that is not positive definite, at a known pivot,
# and for arguments that are not what the function asks for; V has one column if nothing else is said. The first --cases
# of the cases in package_failures.R are tried. Each runs in a process of its own, as some functions read beyond their
# arguments. `outcome` is
#   error   an R (or Octave) error, whose message is in `detail`, after its class where it has one of its own
#   status  a value by which the function says that it failed
#   warning an R warning, after its class, with a value that is not the factor asked for
#   right   the factor that was asked for
#   wrong   a value, and nothing that says that it is not the factor asked for (or that there is none)
#   crash   the process ended
# `pivot_told`: whether the message or the value tells the pivot; `input_kept`: whether what was given is as before, bit
# for bit, which cholupdate_overwrite() means to change where it succeeds.

Sys.setenv(LANGUAGE = "en")
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
numbers <- function(text) as.integer(strsplit(text, ",")[[1L]])
sizes <- numbers(option("sizes", "100,250,500,1000,2000"))
ranks <- numbers(option("ranks", "1,16"))
repeats <- as.integer(option("repeats", 25))
budget <- as.numeric(option("budget", 3))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]])

have <- function(package) requireNamespace(package, quietly = TRUE)
has_gpu <- gpu_info(memory = FALSE)$usable

ratio <- function(R, target, before, change, k) {
  scale <- (nrow(target) + k) * .Machine$double.eps * (norm(before, "1") + norm(change, "1"))
  norm(crossprod(R) - target, "1") / scale
}

sparse <- function(x) methods::as(methods::as(x, "Matrix"), "CsparseMatrix")
sparse_factor <- function(A) {
  Matrix::Cholesky(Matrix::forceSymmetric(sparse(A)), perm = FALSE, LDL = TRUE, super = FALSE)
}
triangle <- function(L) t(as.matrix(Matrix::expand(L)$L))

# ---- times ----

# Seconds of f(x), where x comes from fresh(), which is not timed, and the last value.
time_calls <- function(f, fresh = function() NULL) {
  seconds <- numeric()
  repeat {
    value <- NULL
    x <- fresh()
    gc(FALSE)
    start <- Sys.time()
    value <- f(x)
    seconds <- c(seconds, as.numeric(difftime(Sys.time(), start, units = "secs")))
    counted <- seconds[-1L]
    if (length(counted) >= repeats || (length(counted) >= 3L && sum(counted) > budget)) break
  }
  list(seconds = min(counted), repeats = length(counted), R = value)
}

time_octave <- function(R, V, op) {
  folder <- in_octave(c(
    "t = [];",
    "do",
    sprintf("  tic; S = R; for q = 1:columns(V), S = cholupdate(S, V(:, q), '%s'); end; t(end + 1) = toc;", op),
    sprintf("until numel(t) > %d || (numel(t) > 3 && sum(t(2:end)) > %g)", repeats, budget),
    "put('t', t(2:end)); put('S', S);"
  ), list(R = R, V = V))
  t <- doubles(folder, "t")
  S <- doubles(folder, "S")
  unlink(folder, recursive = TRUE)
  if (is.null(S)) stop("Octave failed")
  list(seconds = min(t), repeats = length(t), R = matrix(S, nrow(R)))
}

# Each is called with the matrix A, its factor R, V, and whether to downdate, and tells its times and the last factor.
one_call <- function(backend, threads) {
  function(A, R, V, down) {
    time_calls(function(x) {
      cholupdate_gpu(R, V, downdate = down, backend = backend, control = cholupdate_control(threads = threads))
    })
  }
}
timed <- list(
  list("gpucholmod", "cholupdate_gpu(R, V), one thread", one_call("cpu", 1)),
  list("gpucholmod", "cholupdate_gpu(R, V), all threads", one_call("cpu", NULL)),
  if (has_gpu) list("gpucholmod", "cholupdate_gpu(R, V), GPU", one_call("cuda", NULL)),
  list("gpucholmod", "cholupdate_overwrite(R, V), all threads", function(A, R, V, down) {
    # What is overwritten must be a variable of the caller, and nothing else may refer to it.
    caller <- list2env(list(V = V, down = down))
    result <- time_calls(function(x) evalq({
      cholupdate_overwrite(W, V, downdate = down, backend = "cpu")
      NULL
    }, caller), function() {
      assign("W", R + 0, caller)
      NULL
    })
    result$R <- caller$W
    result
  }),
  list("gpucholmod", "cholupdate_gpu(f, V, in_place = TRUE), all threads", function(A, R, V, down) {
    f <- NULL
    result <- time_calls(function(f) {
      cholupdate_gpu(f, V, downdate = down, in_place = TRUE)
      NULL
    }, function() f <<- chol_factor(R, "cpu"))
    result$R <- as.matrix(f)
    result
  }),
  list("base", "chol(A +/- tcrossprod(V))", function(A, R, V, down) {
    time_calls(if (down) function(x) chol(A - tcrossprod(V)) else function(x) chol(A + tcrossprod(V)))
  }),
  if (have("mgcv")) list("mgcv", "cholup(R, u, up), k times", function(A, R, V, down) {
    time_calls(function(x) {
      S <- R
      for (q in seq_len(ncol(V))) S <- mgcv::cholup(S, V[, q], !down)
      S
    })
  }),
  if (have("Matrix")) list("Matrix", "updown(update, C, L)", function(A, R, V, down) {
    L <- sparse_factor(A)
    C <- sparse(V)
    result <- time_calls(function(x) Matrix::updown(!down, C, L))
    result$R <- triangle(result$R)
    result
  }),
  if (have("Matrix")) list("Matrix", "updown(update, C, L) and its triangle", function(A, R, V, down) {
    L <- sparse_factor(A)
    C <- sparse(V)
    time_calls(function(x) triangle(Matrix::updown(!down, C, L)))
  }),
  if (length(octave)) list("Octave", "cholupdate(R, u, op), k times", function(A, R, V, down) {
    time_octave(R, V, if (down) "-" else "+")
  })
)

measure <- function(n, k) {
  set.seed(n + k)
  A <- crossprod(matrix(runif(n * n), n)) + diag(n)
  V <- matrix(runif(n * k), n)
  change <- tcrossprod(V)
  raised <- A + change
  rows <- list()
  for (down in c(FALSE, TRUE)) {
    from <- if (down) raised else A
    to <- if (down) A else raised
    R <- chol(from)
    for (contender in Filter(length, timed)) {
      result <- contender[[3L]](from, R, V, down)
      r <- ratio(result$R, to, from, change, k)
      rows <- c(rows, list(data.frame(
        package = contender[[1L]], call = contender[[2L]], n = n, k = k, change = if (down) "downdate" else "update",
        seconds = result$seconds, repeats = result$repeats, ratio = signif(r, 3), ok = is.finite(r) && r < 30
      )))
      message(sprintf("n = %d, k = %d, %s: %s: %s: %.4g ms", n, k, if (down) "downdate" else "update",
                      contender[[1L]], contender[[2L]], 1000 * result$seconds))
    }
  }
  do.call(rbind, rows)
}

source(file.path(dirname(script), "package_failures.R"))

# ---- run ----

if (nzchar(option("try", ""))) {
  saveRDS(try_one(tried[[as.integer(option("try", ""))]], option("case", "")), option("reply", ""))
  quit()
}

versions <- c(
  if (have("mgcv")) paste("mgcv", utils::packageDescription("mgcv")$Version),
  if (have("Matrix")) paste("Matrix", utils::packageDescription("Matrix")$Version),
  if (length(octave)) sub("^GNU Octave, version", "GNU Octave", system2(octave[[1L]], "--version", stdout = TRUE)[[1L]])
)
for (name in c("mgcv", "Matrix", "Octave")) {
  if (!any(grepl(name, versions))) message(name, " is not there")
}
store <- function(data, file) {
  if (!nzchar(file)) return(print(data, row.names = FALSE))
  save_measurements(data, file, "packages.R", c(gpucholmod:::machine(), versions = paste(versions, collapse = ", ")))
}

cases_in_order <- expand.grid(n = sizes, k = ranks)
store(do.call(rbind, Map(measure, cases_in_order$n, cases_in_order$k)), option("out", ""))
store(try_all(), option("failures", ""))
