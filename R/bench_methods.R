# The contenders of bench_paper(), one entry each:
#   label      what a figure calls it
#   device     "cpu" or "gpu"
#   colour, symbol  of its line in figures: colour-blind safe (Okabe and Ito)
#   prepare    makes what is not timed, and returns the call that is. Its argument is a list of R, V, A1 (which is A~),
#              downdate and precision
#   measure    instead, for what depends on n and the precision only: seconds of `repeats` runs, or, by the GPU's clock,
#              their median
#   role       "method" modifies the factor, "refactoring" factorises A~, which is there already, "floor" moves a
#              triangle and computes nothing
#   from       what a call starts from and ends with: "matrix", an ordinary one, or "resident", a factor on the GPU
#   precision  what it can compute in
#   power      of n that its time grows with
#   lty        of its line: the CPU's are dashed, the GPU's are not
bench_methods <- local({
  modification <- function(backend, method) function(p) function() {
    cholupdate_gpu(p$R, p$V, p$downdate, precision = p$precision, backend = backend, method = method)
  }
  on_gpu <- function(seconds) function(p, repeats) {
    f <- gpu_factor(p$R, precision = p$precision)
    on.exit(free(f))
    seconds(f$pointer, repeats)
  }
  entry <- function(label, device, colour, symbol, prepare = NULL, measure = NULL, role = "method", from = "matrix",
                    precision = c("double", "single"), power = if (role == "refactoring") 3 else 2,
                    lty = if (role == "floor") 3L else if (device == "cpu") 2L else 1L) {
    as.list(environment())
  }
  list(
    sweeps = entry("rank-1 sweeps as in LINPACK", "cpu", "#E69F00", 2, modification("cpu", "reference")),
    blocked = entry("blocked", "cpu", "#D55E00", 1, modification("cpu", "blocked")),
    chol = entry("chol(A~), LAPACK", "cpu", "#000000", 4, role = "refactoring", precision = "double", function(p) {
      threads <- quickest_blas_threads(function() chol(p$A1))
      function() with_blas_threads(threads, chol(p$A1))
    }),
    copy = entry("R's own copy, R + 0", "cpu", "#999999", NA, role = "floor", precision = "double",
                 measure = function(p, repeats) wall_clock(function() p$R + 0, nrow(p$R), repeats)$seconds),
    panel = entry("panel, the paper's method", "gpu", "#56B4E9", 17, modification("cuda", "panel")),
    stream = entry("stream", "gpu", "#0072B2", 16, modification("cuda", "stream")),
    gpu_chol = entry("gpu_chol(A~), cuSOLVER, and back", "gpu", "#CC79A7", 8, role = "refactoring",
                     function(p) function() as.matrix(gpu_chol(p$A1, precision = p$precision))),
    resident = entry("resident: the factor stays there", "gpu", "#009E73", 15, from = "resident", function(p) {
      f <- gpu_factor(p$R, precision = p$precision)
      function() cholupdate_gpu(f, p$V, p$downdate)
    }),
    potrf = entry("cuSOLVER, A~ being there", "gpu", "#000000", 18, role = "refactoring", from = "resident",
                  measure = on_gpu(function(pointer, repeats) rcpp_factor_refactor_seconds(pointer, repeats))),
    triangle = entry("the triangle read and written there", "gpu", "#999999", NA, role = "floor", from = "resident",
                     measure = on_gpu(function(pointer, repeats) rcpp_factor_sweep_seconds(pointer, repeats)))
  )
})

# Returns one field of each of the named methods.
method_field <- function(methods, field) unlist(lapply(unname(bench_methods[methods]), `[[`, field))

# Measures calls of f(), which makes a matrix of order n: list(result, seconds), the last result and the wall-clock
# seconds of each call. The first call is not counted, unless it takes `enough` seconds or more: then it is the only
# call. Garbage is collected before each call from n = 500 on; for smaller n that would take far longer than the call.
wall_clock <- function(f, n, repeats, enough = Inf) {
  result <- NULL
  once <- function() {
    result <<- NULL
    if (n >= 500) gc(FALSE)
    start <- Sys.time()
    result <<- f()
    # The clock may not have moved.
    max(1e-6, as.numeric(difftime(Sys.time(), start, units = "secs")))
  }
  first <- once()
  seconds <- if (first >= enough) first
  # Quick calls vary more, and cost little.
  repeats <- max(repeats, min(5L * repeats, ceiling(0.1 / first)))
  while (length(seconds) < repeats && sum(seconds) < enough) seconds <- c(seconds, once())
  list(result = result, seconds = seconds)
}
