# Draws the first picture of the README, man/figures/time.png, from stored measurements.
#
#   Rscript tools/first_picture.R
#
# The measurements are those of the installed package: "readme" (inst/bench/readme.R) and "gpu-calls-h100"
# (inst/bench/gpu_calls.R).
library(gpucholmod)

k <- 16
cpu <- as.data.frame(stored_measurements("readme"))
gpu <- as.data.frame(stored_measurements("gpu-calls-h100"))
series <- list(
  list(label = "chol(A), 2 cores", colour = "#000000", pch = 15,
       at = cpu[cpu$what == "chol", ], ms = function(x) 1e3 * x$seconds),
  list(label = sprintf("cholupdate_gpu(f, V, in_place = TRUE), k = %d, 2 cores", k), colour = "#D55E00", pch = 16,
       at = cpu[cpu$what == "in place" & cpu$k == k, ], ms = function(x) 1e3 * x$seconds),
  list(label = "the same, f on an H100", colour = "#0072B2", pch = 17,
       at = gpu[gpu$what == "in place" & gpu$k == k, ], ms = function(x) x$call)
)
points <- lapply(series, function(one) data.frame(n = one$at$n, ms = one$ms(one$at)))
sizes <- c(100, 300, 1000, 3000, 10000)
times <- 10^(-2:4)
grDevices::png("man/figures/time.png", 7, 3.6, units = "in", res = 110, type = "cairo")
par(mar = c(3.2, 4.4, 0.6, 0.6), mgp = c(2, 0.5, 0), las = 1, tcl = -0.25)
limits <- lapply(c(n = "n", ms = "ms"), function(axis) range(unlist(lapply(points, `[[`, axis))))
plot(NA, log = "xy", xlim = limits$n, ylim = limits$ms * c(1, 40), axes = FALSE, xlab = "n, the order of A", ylab = "")
title(ylab = "milliseconds a call", line = 3.2)
abline(h = times, v = sizes, col = "grey90")
axis(1, sizes, format(sizes, big.mark = ",", trim = TRUE, scientific = FALSE), lwd = 0, lwd.ticks = 1)
axis(2, times, format(times, scientific = FALSE, drop0trailing = TRUE, trim = TRUE, big.mark = ","), lwd = 0,
     lwd.ticks = 1)
box(col = "grey60")
for (i in seq_along(series)) {
  lines(points[[i]]$n, points[[i]]$ms, type = "o", lwd = 2, col = series[[i]]$colour, pch = series[[i]]$pch)
}
legend("topleft", vapply(series, `[[`, "", "label"), col = vapply(series, `[[`, "", "colour"), lwd = 2,
       pch = vapply(series, `[[`, 0, "pch"), bty = "n")
invisible(grDevices::dev.off())
