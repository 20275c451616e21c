# A factor that stays on the GPU: times of updates and downdates of four families of matrices, beside what reading and
# writing the triangle takes and what cuSOLVER takes to factorise again.
#
#   Rscript resident.R [--families=ridge,paper,kernel,square] [--sizes=1000,5000,16384,32768] [--ranks=1,16,64]
#                      [--precision=double,single] [--repeats=9] [--solve] [--out=resident.csv]
#
#   ridge    R: the identity, and uniform noise of standard deviation 0.3 / sqrt(n) above it; V normal / sqrt(n). A
#            cheap stand-in for X'X / m of m = 11 n normal observations, or a ridge to that effect: its factor has the
#            same deviation off the diagonal, and nearly the same condition, 3.4
#   paper    A = B'B + I, B (n x n) and V uniform on [0, 1]: Walder (2010). Condition n^2 / 4
#   kernel   A = exp(-d^2 / (2 * 0.1^2)) + 0.01 I, d: distances of n sorted uniform points; V normal. Condition 25 n
#   square   A = X'X, X (n x n) normal / sqrt(n); V' is k more such rows. R by Bartlett's decomposition: the same
#            distribution, without a product. Condition about 8 n^2, often far more
#
# Above n = 20,000 only ridge by default. R is put on the GPU once; VV' is added, as a new factor, and taken off that
# again: as a new factor, and in place, which goes by way of a second factor where there is room, and otherwise finds
# out first whether it can be done. Times are on the device, by events, the factor and V being there: medians, after
# one call to warm up.
#   steps      "guarded": the unscaled step where the guard allows it; "fallback": every block by Householder steps, as
#              if the guard refused each (of the first family, k = 16)
#   sweeps     the time by that of a plain kernel that reads and writes the triangle
#   potrf      time of cuSOLVER's factorisation, of the upper or the lower triangle, whichever is quicker; by the time
#   fb, resc   blocks by Householder steps; blocks before which V was rescaled
#   ratio      residual ratio of what was timed, must be below 30:
#
#     ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1))
#
# with the norms estimated from products on the GPU. A time whose ratio is not below 30 is FAILED, and does not count:
# the exit status is then not zero. Nor does a downdate "not p.d." (reported as not positive definite), but in single
# precision, where rounding may be the cause. --solve: the first family, A X = B for `ranks` right-hand sides, by the
# chain and by cuBLAS, on the device, B being there; ratio: of solve(), max ||b - Ax||_1 / (n eps ||A||_1 ||x||_1). With
# n = 32,768 this takes 12 GB on the host (kernel 20, paper 35) and 30 GB on the GPU. --out writes the measurements, in
# seconds (stored_measurements()), after each family.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]] else default
}
sizes <- as.integer(option("sizes", c(1000, 5000, 16384, 32768)))
ranks <- as.integer(option("ranks", c(1, 16, 64)))
precisions <- match.arg(option("precision", "double"), c("double", "single"), several.ok = TRUE)
repeats <- as.integer(option("repeats", 9))
out <- option("out", NULL)
solve_too <- "--solve" %in% commandArgs(TRUE)

chosen <- match.arg(option("families", names(families)), names(families), several.ok = TRUE)
families_of <- function(n) if (n > 20000 && is.null(option("families", NULL))) "ridge" else chosen

# On the GPU: AX, the sweep, and factorising again.
times <- function(f, X) gpucholmod:::rcpp_factor_multiply(f, X, 0L)
sweep_seconds <- function(f) gpucholmod:::rcpp_factor_sweep_seconds(f$pointer, repeats)
potrf_seconds <- function(f) {
  tryCatch(gpucholmod:::rcpp_factor_refactor_seconds(f$pointer, repeats),
           gpucholmod_backend_unavailable = function(e) NA_real_)
}

# ||E||_1 of a symmetric n x n matrix E, given X -> EX: a lower bound that is nearly always sharp (Higham and Tisseur
# 2000, A block algorithm for matrix 1-norm estimation). It starts from random signs, then takes the columns of E where
# the norm grows fastest.
norm_1 <- function(product, n, rounds = 3L) {
  width <- min(4L, n)
  X <- matrix(sample(c(-1, 1), n * width, replace = TRUE), n) / n
  largest <- 0
  for (round in seq_len(rounds)) {
    Y <- product(X)
    largest <- max(largest, colSums(abs(Y)))
    growth <- apply(abs(product(sign(Y))), 1L, max)
    X <- matrix(0, n, width)
    X[cbind(order(growth, decreasing = TRUE)[seq_len(width)], seq_len(width))] <- 1
  }
  largest
}

residual_ratio <- function(before, after, V, sigma, eps) {
  n <- nrow(V)
  VV <- function(X) V %*% crossprod(V, X)
  A <- function(X) times(before, X)
  E <- function(X) times(after, X) - A(X) - sigma * VV(X)
  norm_1(E, n) / ((n + ncol(V)) * eps * (norm_1(A, n) + norm_1(VV, n)))
}

# A measurement; `about`: family, n, precision, sweep and potrf.
row_of <- function(about, k, change, steps, seconds, ratio, report) {
  data.frame(about[c("family", "n")], k = k, about["precision"], change = change, steps = steps, seconds = seconds,
             about[c("sweep", "potrf")], report[c("fallbacks", "blocks", "rescalings", "pivot")], ratio = ratio,
             ok = isTRUE(ratio < 30))
}

# Modifies `f` by V again and again: the last result, NULL where there is none, and its row, with the median time.
modify <- function(f, V, change, steps, about) {
  in_place <- change == "downdate in place"
  seconds <- numeric(0)
  for (i in seq_len(repeats + 1L)) {
    if (i > 1L) free(done$R)
    done <- cholupdate_gpu(if (in_place) copy_factor(f) else f, V, change != "update", in_place = in_place,
                           method = if (steps == "fallback") "stepwise" else "auto", check = FALSE)
    report <- last_cholupdate()
    seconds[i] <- report$seconds
    if (done$pivot > 0L && in_place) free(done$R)
    if (done$pivot > 0L) return(list(row = row_of(about, ncol(V), change, steps, NA, NA, report)))
  }
  ratio <- residual_ratio(f, done$R, V, if (change == "update") 1 else -1, about$eps)
  list(factor = done$R, row = row_of(about, ncol(V), change, steps, stats::median(seconds[-1L]), ratio, report))
}

# One V, on and off again.
run_case <- function(f, V, steps, about) {
  up <- modify(f, V, "update", steps, about)
  rows <- up$row
  for (change in c("downdate", "downdate in place")) {
    down <- modify(up$factor, V, change, steps, about)
    if (!is.null(down$factor)) free(down$factor)
    rows <- rbind(rows, down$row)
  }
  free(up$factor)
  print_case(rows)
  rows
}

beside <- sprintf("%7s %6s %9s %8s", "sweeps", "potrf", "fb, resc", "ratio")
heading <- sprintf("%-7s %6s %4s  %-6s  %-8s %8s | update ms %s | downd. ms %s |  in place  sweeps\n",
                   "family", "n", "k", "prec.", "steps", "potrf ms", beside, beside)
milliseconds <- function(row) {
  if (row$ok) sprintf("%.3f", 1000 * row$seconds) else if (row$pivot %in% c(0, NA)) "FAILED" else "not p.d."
}
print_case <- function(rows) {
  seconds <- ifelse(rows$ok, rows$seconds, NA)
  time <- sprintf("%9s %7.1f", vapply(split(rows, 1:3), milliseconds, ""), seconds / rows$sweep)
  blocks <- sprintf("%.0f, %.0f", rows$fallbacks, rows$rescalings)
  rest <- sprintf(" %5.1fx %9s %8.2g", rows$potrf / seconds, blocks, rows$ratio)
  with(rows[1L, ], cat(sprintf("%-7s %6.0f %4.0f  %-6s  %-8s %8.2f", family, n, k, precision, steps, 1000 * potrf)))
  cat(paste0(" | ", time, c(rest[1:2], "")), "\n", sep = "")
}

# A X = B for m right-hand sides.
run_solve <- function(f, m, about) {
  B <- normal(about$n, m)
  seconds <- vapply(c(FALSE, TRUE),
                    function(cublas) gpucholmod:::rcpp_factor_solve_seconds(f$pointer, B, cublas, repeats), 0)
  X <- solve(f, B)
  A <- function(X) times(f, X)
  ratio <- max(colSums(abs(A(X) - B)) / colSums(abs(X))) / (about$n * about$eps * norm_1(A, about$n))
  none <- data.frame(fallbacks = NA, blocks = NA, rescalings = NA, pivot = NA)
  rows <- row_of(about, m, "solve", c("chain", "cuBLAS"), seconds, ratio, none)
  cat(sprintf("solve, %2d columns, %s: %s ms by the chain, %s by cuBLAS, ratio %.2g\n", m, about$precision,
              milliseconds(rows[1L, ]), milliseconds(rows[2L, ]), ratio))
  rows
}

# `more`: also every block by Householder steps, and solves.
run_family <- function(name, n, more) {
  set.seed(2010)
  family <- families[[name]]
  seconds <- system.time(R <- make_factor(family, n))[["elapsed"]]
  cat(sprintf("\n%s, n = %d: R made in %.1f s\n%s", name, n, seconds, heading))
  rows <- NULL
  for (precision in precisions) {
    f <- gpu_factor(R, precision = precision)
    about <- list(family = name, n = n, precision = precision, sweep = sweep_seconds(f), potrf = potrf_seconds(f),
                  eps = if (precision == "double") .Machine$double.eps else 2^-23)
    for (k in ranks) rows <- rbind(rows, run_case(f, family$V(n, k), "guarded", about))
    if (more) rows <- rbind(rows, run_case(f, family$V(n, 16L), "fallback", about))
    if (more && solve_too) for (m in ranks) rows <- rbind(rows, run_solve(f, m, about))
    cat(sprintf("%s: sweep over the triangle %.4f ms (%.0f GB/s)\n", precision, 1000 * about$sweep,
                (if (precision == "double") 8 else 4) * n^2 / about$sweep / 1e9))
    free(f)
  }
  rows
}

main <- function() {
  if (!gpu_info(memory = FALSE)$usable) stop(gpu_info(memory = FALSE)$message)
  print(gpu_info())
  cat(sprintf("\n%s; %s; medians of %d\n", format(Sys.Date()), R.version.string, repeats))
  measured <- NULL
  for (n in sizes) {
    for (name in families_of(n)) {
      measured <- rbind(measured, run_family(name, n, name == families_of(n)[[1L]]))
      if (!is.null(out)) save_measurements(measured, out, "resident.R")
    }
  }
  allowed <- measured$precision == "single" & !measured$pivot %in% c(0, NA)
  failures <- sum(!measured$ok & !allowed)
  if (failures > 0L) stop(failures, " times do not count: FAILED or not p.d. above", call. = FALSE)
}

# source() gives the functions alone.
if (sys.nframe() == 0L) main()
