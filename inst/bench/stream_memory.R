# Device memory of the methods that start from a matrix on the host, against n.
#
#   Rscript stream_memory.R [--most=32768] [--k=16] [--backend=cuda|cpu] [--out=stream_memory.png]
#                           [--csv=stream_memory.csv] [--from=stream_memory.csv]
#
# --csv= keeps the bytes, and --from= draws from such a file instead of measuring.
#
# n goes from 500 up in steps of a factor of two, to 32,768 on a GPU, 8,000 without one. Of an update,
# last_cholupdate()$device_bytes_peak with
#   default    method "stream", as it comes: panels of a fixed number of bytes, so flat, then O(nk)
#   least      method "stream", with the least `device_memory` that it takes
#   resident   method "resident": all of the factor
#   panel      method "panel", the paper's: the CPU keeps the factor, O(n)
# beside the factor itself, 8 n^2 bytes. Memory on the host: two matrices. On the CPU there is no method "resident", and
# the others emulate a device.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
info <- gpu_info(memory = FALSE)
backend <- match.arg(option("backend", if (info$usable) "cuda" else "cpu"), c("cuda", "cpu"))
most <- as.numeric(option("most", if (backend == "cuda") 32768 else 8000))
k <- as.integer(option("k", 16))
out <- option("out", "stream_memory.png")
orders <- 500 * 2^(0:12)
orders <- c(orders[orders < most / 1.4], most)

# diag(n), without what diag() needs beside it
identity_matrix <- function(n) {
  R <- matrix(0, n, n)
  R[cbind(1:n, 1:n)] <- 1
  R
}

peak_of <- function(R, V, method, limit = Inf) {
  cholupdate_gpu(R, V, backend = backend, method = method, control = cholupdate_control(device_memory = limit))
  last_cholupdate()$device_bytes_peak
}
least_for <- function(R, V) {
  tryCatch({
    peak_of(R, V, "stream", 1)
    stop("one byte of device memory is enough?", call. = FALSE)
  }, gpucholmod_out_of_memory = function(e) e$needed)
}

from <- option("from", NULL)
if (is.null(from)) {
  methods <- c("default", "least", if (backend == "cuda") "resident", "panel")
  set.seed(2010)
  peaks <- matrix(NA_real_, length(orders), length(methods), dimnames = list(NULL, methods))
  for (i in seq_along(orders)) {
    n <- orders[[i]]
    R <- identity_matrix(n)
    V <- matrix(rnorm(n * k), n)
    least <- least_for(R, V)
    peaks[i, "default"] <- peak_of(R, V, "stream")
    peaks[i, "least"] <- peak_of(R, V, "stream", least)
    if (peaks[i, "least"] > least) stop("more than 'device_memory' was taken", call. = FALSE)
    for (method in setdiff(methods, c("default", "least"))) peaks[i, method] <- peak_of(R, V, method)
  }
  device <- if (backend == "cuda") last_cholupdate()$device else "emulated on the CPU"
  machine <- sprintf("update, k = %d, double; %s; %s", k, device, format(Sys.Date()))
  if (!is.null(csv <- option("csv", NULL))) {
    writeLines(paste("#", machine), csv)
    suppressWarnings(utils::write.table(cbind(n = orders, peaks), csv, append = TRUE, sep = ",", row.names = FALSE,
                                        quote = FALSE))
  }
} else {
  machine <- sub("^# ", "", readLines(from, 1L))
  peaks <- as.matrix(utils::read.csv(from, comment.char = "#"))
  orders <- peaks[, "n"]
  peaks <- peaks[, -1L, drop = FALSE]
  methods <- colnames(peaks)
}

cat(machine, "\n", sep = "")
if (!"resident" %in% methods) cat("method \"resident\" is left out: there is none on the CPU\n")
cat(sprintf("\n%7s %10s%s\n", "", "factor", paste(sprintf("%24s", methods), collapse = "")))
cat(sprintf("%7s %10s%s\n", "n", "MB", strrep("      MB   bytes/n  of R", length(methods))))
for (i in seq_along(orders)) {
  n <- orders[[i]]
  cells <- sprintf("%8.1f %9.0f %4.0f%%", peaks[i, ] / 1e6, peaks[i, ] / n, 100 * peaks[i, ] / (8 * n^2))
  cat(sprintf("%7.0f %10.1f%s\n", n, 8 * n^2 / 1e6, paste(cells, collapse = "")))
}

# Round numbers, as a reader of a log axis expects them.
ticks_within <- function(span, steps = c(1, 2, 5)) {
  ticks <- sort(outer(steps, 10^(-3:9)))
  ticks[ticks >= span[[1L]] & ticks <= span[[2L]]]
}

draw <- function() {
  curves <- cbind(factor = 8 * orders^2, peaks) / 1e6
  colours <- c(factor = "grey40", default = "#0072B2", least = "#56B4E9", resident = "#D55E00", panel = "#009E73")
  names <- c(factor = "the factor, 8 n\u00b2 bytes", default = "stream", least = "stream, least device_memory",
             resident = "resident", panel = "panel")
  shown <- colnames(curves)
  colours <- colours[shown]
  symbols <- c(factor = NA, default = 16, least = 17, resident = 15, panel = 18)[shown]
  types <- ifelse(shown == "factor", 2L, 1L)
  guide <- 0.5 * min(peaks[1L, ]) / 1e6 * orders / orders[[1L]]
  span <- range(curves, guide)
  par(mar = c(3.8, 5.4, 3.6, 1.5), las = 1, mgp = c(2.4, 0.7, 0))
  plot(NULL, xlim = range(orders), ylim = span, log = "xy", xaxt = "n", yaxt = "n", xlab = "n", ylab = "")
  across <- ticks_within(range(orders))
  up <- ticks_within(span, if (span[[2L]] / span[[1L]] > 1e3) 1 else c(1, 2, 5))
  abline(v = across, h = up, col = "grey90")
  axis(1L, at = across, labels = format(across, big.mark = ",", scientific = FALSE, trim = TRUE))
  axis(2L, at = up, labels = format(up, big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE))
  title(ylab = "peak device memory, MB", line = 4.2)
  lines(orders, guide, lty = 3L, col = "grey40", lwd = 1.5)
  matlines(orders, curves, type = "o", lty = types, lwd = 2, col = colours, pch = symbols)
  legend("topleft", legend = c(names[shown], "slope 1"), col = c(colours, "grey40"), lty = c(types, 3L), lwd = 2,
         pch = c(symbols, NA), bg = "white", box.col = "grey80", inset = 0.02)
  title("Device memory of the methods that start from a matrix", line = 1.9)
  mtext(machine, line = 0.5, cex = 0.85)
}

out <- open_figure(out, 10, 7.3, resolution = 110)
draw()
invisible(dev.off())
cat("\npicture:", out, "\n")
