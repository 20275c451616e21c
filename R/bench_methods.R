# The contenders of bench_paper(), one entry each:
#   label      what a figure calls it
#   device     "cpu" or "gpu"
#   from       what a call starts from and ends with: "matrix", an ordinary one, or "resident", a factor on the GPU
#   role       "method" modifies the factor, "refactoring" factorises A~, which is there already, "floor" moves a
#              triangle and computes nothing
#   precision  what it can compute in
#   power      of n that its time grows with
# and one of
#   prepare    makes what is not timed, and returns the call that is. Its argument is a list of R, V, A1 (which is A~),
#              downdate and precision
#   measure    for what depends on n and the precision only: seconds of `repeats` runs, or, by the GPU's clock, their
#              median
bench_methods <- local({
  modification <- function(backend, method) {
    function(p) {
      function() cholupdate_gpu(p$R, p$V, p$downdate, precision = p$precision, backend = backend, method = method)
    }
  }
  on_gpu <- function(seconds) {
    function(p, repeats) {
      f <- gpu_factor(p$R, precision = p$precision)
      on.exit(free(f))
      seconds(f$pointer, repeats)
    }
  }
  both <- c("double", "single")
  entry <- function(label, device, from, role, power, precision = both, prepare = NULL, measure = NULL) {
    list(label = label, device = device, from = from, role = role, power = power, precision = precision,
         prepare = prepare, measure = measure)
  }
  list(
    sweeps = entry("rank-1 sweeps as in LINPACK", "cpu", "matrix", "method", 2,
                   prepare = modification("cpu", "reference")),
    blocked = entry("blocked", "cpu", "matrix", "method", 2, prepare = modification("cpu", "blocked")),
    chol = entry("chol(A~), LAPACK", "cpu", "matrix", "refactoring", 3, "double",
                 prepare = function(p) {
                   threads <- quickest_blas_threads(function() chol(p$A1))
                   function() with_blas_threads(threads, chol(p$A1))
                 }),
    copy = entry("R's own copy, R + 0", "cpu", "matrix", "floor", 2, "double",
                 measure = function(p, repeats) wall_clock(function() p$R + 0, nrow(p$R), repeats)$seconds),
    panel = entry("panel, the paper's method", "gpu", "matrix", "method", 2, prepare = modification("cuda", "panel")),
    stream = entry("stream", "gpu", "matrix", "method", 2, prepare = modification("cuda", "stream")),
    gpu_chol = entry("gpu_chol(A~), cuSOLVER, and back", "gpu", "matrix", "refactoring", 3,
                     prepare = function(p) function() as.matrix(gpu_chol(p$A1, precision = p$precision))),
    resident = entry("resident: the factor stays there", "gpu", "resident", "method", 2, prepare = function(p) {
      f <- gpu_factor(p$R, precision = p$precision)
      function() cholupdate_gpu(f, p$V, p$downdate)
    }),
    potrf = entry("cuSOLVER, A~ being there", "gpu", "resident", "refactoring", 3,
                  measure = on_gpu(function(pointer, repeats) rcpp_factor_refactor_seconds(pointer, repeats))),
    triangle = entry("the triangle read and written there", "gpu", "resident", "floor", 2,
                     measure = on_gpu(function(pointer, repeats) rcpp_factor_sweep_seconds(pointer, repeats)))
  )
})

# Evaluates `code` with at most so many threads of R's BLAS; NA leaves it as it is.
with_blas_threads <- function(threads, code) {
  if (!is.na(threads)) {
    before <- rcpp_blas_threads(0L)
    rcpp_blas_threads(threads)
    on.exit(rcpp_blas_threads(before))
  }
  code
}

# With how many threads of R's BLAS f() is quickest: all, half of them and so on as long as that helps; more than there is
# work for can take longer. NA where R's BLAS does not let itself be told.
quickest_blas_threads <- function(f) {
  once <- function() system.time(f())[["elapsed"]]
  seconds <- function(threads) {
    with_blas_threads(threads, {
      first <- once()
      if (first < 0.5) min(first, once(), once()) else first
    })
  }
  best <- rcpp_blas_threads(0L)
  if (is.na(best)) return(best)
  least <- seconds(best)
  for (threads in best %/% 2L^seq_len(log2(best))) {
    now <- seconds(threads)
    if (now < least) best <- threads
    if (now > 1.5 * least) break
    least <- min(least, now)
  }
  best
}

# Wall-clock seconds of calls of f(), which makes a matrix of order n, and the last result. One call goes before,
# untimed; where that takes `enough` seconds or more it is the only one, and counts. Garbage is collected before each call,
# but where n is so small that this would take far longer than the call.
wall_clock <- function(f, n, repeats, enough = Inf) {
  once <- function() {
    if (n >= 500) gc(FALSE)
    start <- Sys.time()
    result <- f()
    # The clock may not have moved.
    list(result = result, seconds = max(1e-6, as.numeric(difftime(Sys.time(), start, units = "secs"))))
  }
  first <- once()
  if (first$seconds >= enough) return(first)
  # Quick calls vary more, and cost little.
  repeats <- max(repeats, min(5L * repeats, ceiling(0.1 / first$seconds)))
  first <- NULL
  seconds <- numeric(0)
  while (length(seconds) < repeats && sum(seconds) < enough) {
    last <- NULL
    last <- once()
    seconds <- c(seconds, last$seconds)
  }
  list(result = last$result, seconds = seconds)
}
