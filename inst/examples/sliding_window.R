# Sliding-window ridge regression: each step moves the window by one call, which adds what comes to the Cholesky factor
# and takes away what leaves, and is checked and timed against a new chol().
#
#   Rscript sliding_window.R [--features=1024] [--out=sliding_window.png]
#
# The data are R's own `quakes`: 1000 earthquakes near Fiji. The magnitude of each is predicted from its place, its
# depth and the number of stations that reported it. That can be learnt: strong quakes are seen by more stations, and
# how many more depends on place and depth, which is why the columns are lifted to random Fourier features. For the
# prediction some 64 features would do; 1024 make the factor large enough for a modification to pay.
#
# Every quake is a row of the matrix X (quakes x features), and for the quakes in the window
#
#   A = R'R = lambda I + X'X,   b = X'y,   coefficients = solution of A beta = b,
#
# which rls() keeps: R and R'^-1 b come along together.
#
# Stops with an error, thus with a non-zero exit status, if the coefficients of the two ways differ by more than
# rounding can explain.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

window <- 520  # quakes in the window: the other 480 are 30 steps
step <- 16     # quakes that enter, and that leave, at each step
lambda <- 0.1  # ridge penalty

read_arguments <- function(given = commandArgs(trailingOnly = TRUE)) {
  arguments <- list(features = "1024", out = "sliding_window.png")
  for (argument in given) {
    name <- sub("^--([a-z]+)=.+$", "\\1", argument)
    if (!name %in% names(arguments)) {
      stop("cannot use '", argument, "'; usage: sliding_window.R [--features=NUMBER] [--out=FILE]", call. = FALSE)
    }
    arguments[[name]] <- sub("^[^=]+=", "", argument)
  }
  if (!grepl("^[0-9]{1,5}$", arguments$features) || as.integer(arguments$features) < 2) {
    stop("--features takes a whole number from 2 to 99999, not '", arguments$features, "'", call. = FALSE)
  }
  arguments$features <- as.integer(arguments$features)
  arguments
}

# Random Fourier features: cos(w'x + phase) with Gaussian w, scaled so that the inner product of two quakes approximates
# a Gaussian kernel of width 3. The columns are standardised by the first window only: later quakes are not known yet.
fourier_features <- function(x, count, width = 3) {
  first <- x[seq_len(window), ]
  x <- scale(x, center = colMeans(first), scale = apply(first, 2, sd))
  frequencies <- matrix(rnorm(count * ncol(x)), count) / width
  sqrt(2 / count) * t(cos(tcrossprod(frequencies, x) + runif(count, 0, 2 * pi)))
}

# Milliseconds that an expression takes. system.time() has a resolution of 1 ms, too coarse here; as it does, collect
# garbage first, so that nobody pays for another's.
milliseconds <- function(expression) {
  gc(FALSE)
  start <- Sys.time()
  force(expression)
  1000 * as.numeric(Sys.time() - start, units = "secs")
}

# Why the factor cannot live on a GPU; NULL if it can. Solving there takes cuBLAS, hence the attempt.
no_gpu_because <- function() {
  if (!gpu_info(memory = FALSE)$usable) return(gpu_info(memory = FALSE)$message)
  tryCatch({
    solve(gpu_factor(diag(2)), 1:2)
    NULL
  }, gpucholmod_backend_unavailable = conditionMessage)
}

coefficients_of <- function(R, b) backsolve(R, backsolve(R, b, transpose = TRUE))

rmse <- function(error) sqrt(mean(error^2))

# How far apart rounding may take the coefficients beta of the two ways after `steps` steps. A Cholesky factor, new or
# modified, is the exact one of a matrix that is off by a few eps |A|, and b is as close to what it should be; a step
# modifies once, and one factorisation begins each way. So the system solved is off by no more than
# few (steps + 2) eps |A|, which moves beta by |A^-1| times this times |beta|. As for sizes, |A^-1| <= 1 / lambda, and
# |A| <= lambda + the sum of squares of X. `few` is 10: worst-case bounds would have the number of features in its
# place, but rounding errors partly cancel.
rounding_bound <- function(beta, X, steps, few = 10) {
  condition <- (lambda + sum(X^2)) / lambda
  few * (steps + 2) * .Machine$double.eps * condition * sqrt(sum(beta^2))
}

# One untimed call of either way, since the first may have to start the GPU or to load a library; says what ran.
warm_up <- function(X, backend) {
  update(rls(X[0, ], numeric(), ridge = lambda, backend = backend), X[seq_len(step), ], numeric(step))
  chol(diag(ncol(X)))
  used <- last_cholupdate()
  cat(sprintf("cholupdate_gpu(): backend %s%s, method \"%s\", %s precision.\n", used$backend,
              if (nzchar(used$device)) paste0(" (", used$device, ")") else "", used$method, used$precision))
  cat(sprintf("chol():           LAPACK of this R, %s, with %s.\n", La_library(), gpucholmod:::blas_name()))
  if (!gpucholmod:::has_optimised_blas()) {
    cat("                  That BLAS was not written for speed: with OpenBLAS, chol() is several times as quick.\n")
  }
  cat("One call of each has gone before, untimed: the first may have to start the GPU.\n\n")
  used
}

# Moves the window over all data; returns one row per step.
slide <- function(X, y, backend) {
  inside <- seq_len(window)
  y <- y - mean(y[inside])
  A <- diag(lambda, ncol(X)) + crossprod(X[inside, ])
  fit <- rls(X[inside, ], y[inside], ridge = lambda, window = window, backend = backend)

  one_step <- function(i) {
    enter <- window + (i - 1) * step + seq_len(step)
    leave <- enter - window
    inside <- (max(leave) + 1):max(enter)
    predicted <- predict(fit, X[enter, ])
    baseline <- mean(y[(min(enter) - window):(min(enter) - 1)])

    # With the package: 16 quakes come, and those that are too many leave, factor and right-hand side in one call.
    ms_modify <- milliseconds(fit <<- update(fit, X[enter, ], y[enter]))

    # Without it: the same change of A, cheap as well, and then a new factor.
    ms_change <- milliseconds(A <<- A + crossprod(X[enter, ]) - crossprod(X[leave, ]))
    ms_chol <- milliseconds(chol(A))

    # Compared with a fit from scratch, so that no error carried along from step to step can hide.
    scratch <- chol(diag(lambda, ncol(X)) + crossprod(X[inside, ]))
    expected <- coefficients_of(scratch, crossprod(X[inside, ], y[inside]))
    data.frame(
      step = i, enter_from = min(enter), enter_to = max(enter), leave_from = min(leave), leave_to = max(leave),
      ms_modify, ms_chol, ms_change, ratio = ms_chol / ms_modify,
      difference = max(abs(coef(fit) - expected)), bound = rounding_bound(expected, X[inside, ], i),
      rmse = rmse(predicted - y[enter]), rmse_mean = rmse(baseline - y[enter])
    )
  }
  do.call(rbind, lapply(seq_len((length(y) - window) %/% step), one_step))
}

print_table <- function(steps) {
  cat("            rows         rows                              largest diff.   RMSE of 16 new rows\n")
  cat("step    entering      leaving  update()    chol()   ratio  of coefficients     ridge      mean\n")
  shown <- unique(round(seq(1, nrow(steps), length.out = min(11, nrow(steps)))))
  with(steps[shown, ], cat(sprintf(
    "%4d  %4d - %-4d  %4d - %-4d %6.1f ms %6.1f ms %7.2f %16.1e %9.3f %9.3f\n",
    step, enter_from, enter_to, leave_from, leave_to, ms_modify, ms_chol, ratio, difference, rmse, rmse_mean
  ), sep = ""))
  with(steps, cat(sprintf(
    "median of %2d steps           %6.1f ms %6.1f ms %7.2f %16.1e %9.3f %9.3f\n\n",
    nrow(steps), median(ms_modify), median(ms_chol), median(ratio), median(difference), median(rmse), median(rmse_mean)
  )))
}

print_summary <- function(steps) {
  cat(paste0("Timed: update() of the fit, which is one call of cholupdate_gpu(); chol() of the new matrix. ",
             "ratio = chol() / update().\n"))
  cat(sprintf("Not in chol()'s time: changing its matrix, A + V'V - W'W by crossprod(), median %.1f ms.\n",
              median(steps$ms_change)))
  cat(sprintf("RMSE over all steps, in magnitudes: ridge %.3f, mean of the window %.3f.\n",
              rmse(steps$rmse), rmse(steps$rmse_mean)))
  cat(sprintf("Coefficients against a fit from scratch: largest difference %.1e, %.1e of what rounding allows.\n",
              max(steps$difference), max(steps$difference / steps$bound)))
}

# One panel: curves over the steps, with a log axis. The legend is in the margin above, where it cannot cover data.
draw_panel <- function(curves, names, colours, symbols, ylab, title) {
  curves[curves == 0] <- NA  # no place on a log axis
  round_values <- sort(outer(c(1, 2, 5), 10^(-30:9)))
  lowest <- max(which(round_values <= min(curves, na.rm = TRUE)))
  highest <- min(which(round_values >= max(curves, na.rm = TRUE)))
  ticks <- round_values[lowest:highest]
  powers <- highest - lowest > 9  # more than three decades: label the powers of ten only
  if (powers) ticks <- 10^unique(round(log10(ticks)))

  plot(NULL, xlim = c(1, nrow(curves)), ylim = round_values[c(lowest, highest)], log = "y", yaxt = "n", xlab = "",
       ylab = "")
  abline(h = ticks, v = axTicks(1), col = "grey90")
  axis(2, at = ticks, las = 1, labels = if (powers) parse(text = paste0("10^", round(log10(ticks)))) else ticks)
  matlines(curves, type = "o", lty = 1, lwd = 2, col = colours, pch = symbols, cex = 0.8)
  title(title, line = 2.4)
  title(xlab = "step (16 rows enter, 16 leave)", line = 2.6)
  title(ylab = ylab, line = 4.1)
  legend("bottom", legend = names, col = colours, pch = symbols, lwd = 2, pt.cex = 0.8, horiz = TRUE, bty = "n",
         xpd = NA, inset = c(0, 1), x.intersp = 0.6, text.width = 1.1 * max(strwidth(names)))
}

draw <- function(steps, features, backend, file) {
  file <- open_figure(file, 12, 5.6, resolution = 150)
  on.exit(dev.off())
  par(mfrow = c(1, 2), mar = c(4.2, 5.6, 4.4, 1))
  draw_panel(with(steps, cbind(ms_chol, ms_modify)), c("chol() of the new matrix", "update() of the fit"),
             c("#D55E00", "#0072B2"), c(17, 19), "time per step [ms]",
             sprintf("Time, %d features, backend %s", features, backend))
  draw_panel(with(steps, cbind(bound, difference)), c("bound for rounding", "largest difference"),
             c("grey55", "#009E73"), c(NA, 19), "difference of coefficients [magnitudes]",
             "Coefficients against a fit from scratch")
  file
}

arguments <- read_arguments()
set.seed(1)
cat(sprintf("%s; gpucholmod %s; %s\n", R.version.string, packageVersion("gpucholmod"), Sys.Date()))
cat(sprintf("Ridge regression of magnitude on %d Fourier features of R's quakes: a window of %d rows, moved by %d.\n",
            arguments$features, window, step))
X <- fourier_features(as.matrix(quakes[c("lat", "long", "depth", "stations")]), arguments$features)
obstacle <- no_gpu_because()
backend <- if (is.null(obstacle)) "cuda" else "cpu"
cat(if (is.null(obstacle)) "The factor stays on the GPU.\n" else sprintf("The factor is kept by R: %s.\n", obstacle))
used <- warm_up(X, backend)
steps <- slide(X, quakes$mag, backend)
print_table(steps)
print_summary(steps)
file <- draw(steps, arguments$features, used$backend, arguments$out)
cat("Plot written to ", file, ".\n", sep = "")

if (!isTRUE(all(steps$difference <= steps$bound))) {
  stop("the coefficients differ by more than rounding explains", call. = FALSE)
}
