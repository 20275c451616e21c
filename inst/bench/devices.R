# One factor on 1, 2, 4, 8 GPUs of a machine: times of modifications, beside what reading and writing the triangle takes on
# one of them.
#
#   Rscript devices.R [--sizes=16384,32768,65536,131072] [--ranks=1,16,64] [--devices=1,2,4,8] [--repeats=7] [--repeated]
#                     [--out=devices.csv]
#
# R (n x n, double precision): ones on the diagonal, uniform noise of standard deviation 0.3 / sqrt(n) above it, from 16
# million numbers that are drawn and come again and again, each column from elsewhere: n = 131,072 takes 137 GB of ordinary
# memory and some minutes. V normal / sqrt(n). VV' is added, as a new factor and in place, and taken off again in place,
# where it is found out first whether it can be done. Times are on the device, by events: medians, after one call that does
# not count; `least` is the least of them. Numbers of GPUs that are not there, and sizes for which there is no memory, are
# left out, and said so. --repeated: the first GPU takes the place of all; such times say what is lost, not what is gained.
#
#   sweep       seconds to read and write the triangle, on the first GPU alone, reckoned from n = 16,384 (8 n^2 bytes)
#   bandwidths  sweep by the time: 6 is six GPUs' bandwidth in one pass over R, and less where V takes several
#   speedup     the time on one GPU, in this run, by the time
#   gpus        GPUs that took part, or whose place one took
#   ratio       max |R~'R~x - R'Rx - sigma VV'x|_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1)), from products with random
#               signs; must be below 30

library(gpucholmod)
here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
source(file.path(here, "resident.R"))

numbers <- function(name, default) as.integer(strsplit(option(name, default), ",")[[1L]])
option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
sizes <- numbers("sizes", "16384,32768,65536,131072")
ranks <- numbers("ranks", "1,16,64")
counts <- numbers("devices", "1,2,4,8")
repeats <- as.integer(option("repeats", 7))
repeated <- "--repeated" %in% commandArgs(TRUE)
out <- option("out", "")
if (repeated) options(gpucholmod.repeat_devices = TRUE)

devices_of <- function(count) if (repeated) rep(0L, count) else seq_len(count) - 1L

recycled_factor <- function(n) {
  noise <- 0.3 * sqrt(12 / n) * (runif(2^24) - 0.5)
  from <- sample.int(2^24 - n, n, replace = TRUE)
  by_columns(n, function(j) c(noise[from[[j]] + seq_len(j - 1L)], 1))
}

# Seconds of `repeats` calls on copies of f, and the last result.
time_change <- function(f, V, downdate, in_place) {
  seconds <- numeric()
  for (i in seq_len(repeats + 1L)) {
    if (i > 1L) free(g)
    g <- cholupdate_gpu(if (in_place) copy_factor(f) else f, V, downdate, in_place = in_place)
    done <- last_cholupdate()
    seconds[[i]] <- done$seconds
  }
  list(factor = g, seconds = seconds[-1L], gpus = done$gpus)
}

measure <- function(f, k, count, bandwidth) {
  n <- nrow(f)
  V <- normal(n, k) / sqrt(n)
  row <- function(change, done, ratio) {
    data.frame(n = n, k = k, devices = count, repeated = repeated, change = change, seconds = stats::median(done$seconds),
               least = min(done$seconds), gpus = done$gpus, sweep = 8 * n^2 / bandwidth, ratio = ratio)
  }
  up <- time_change(f, V, FALSE, FALSE)
  on.exit(free(up$factor))
  rows <- row("update", up, residual_ratio(f, up$factor, V, 1, .Machine$double.eps))
  for (change in c("update in place", "downdate in place")) {
    down <- change == "downdate in place"
    from <- if (down) up$factor else f
    done <- time_change(from, V, down, TRUE)
    rows <- rbind(rows, row(change, done, residual_ratio(from, done$factor, V, if (down) -1 else 1, .Machine$double.eps)))
    free(done$factor)
  }
  rows
}

show <- function(rows, all) {
  one <- all[all$devices == 1L, ]
  at <- match(paste(rows$n, rows$k, rows$change), paste(one$n, one$k, one$change))
  cat(sprintf("%7d %3d %8d  %-17s %9.3f ms  least %9.3f  bandwidths %5.2f  speedup %5.2f  %d took part  ratio %.2g\n", rows$n, rows$k,
              rows$devices, rows$change, 1000 * rows$seconds, 1000 * rows$least, rows$sweep / rows$seconds,
              one$seconds[at] / rows$seconds, rows$gpus, rows$ratio), sep = "")
}

compare_devices <- function() {
  print(gpu_info())
  f <- gpu_factor(recycled_factor(16384L), device = 0L)
  bandwidth <- 8 * 16384^2 / gpucholmod:::rcpp_factor_sweep_seconds(f$pointer, 7L)
  free(f)
  cat(sprintf("one GPU reads and writes %.0f GB/s\n", bandwidth / 1e9))
  measured <- NULL
  for (n in sizes) {
    R <- recycled_factor(n)
    for (count in counts) {
      f <- tryCatch(gpu_factor(R, devices = devices_of(count)), gpucholmod_error = identity)
      for (k in if (!inherits(f, "error")) ranks) {
        rows <- tryCatch(measure(f, k, count, bandwidth), gpucholmod_out_of_memory = identity)
        if (inherits(rows, "error")) {
          cat(sprintf("n = %d, k = %d, %d GPUs: left out: %s\n", n, k, count, conditionMessage(rows)))
          next
        }
        measured <- rbind(measured, rows)
        show(rows, measured)
        if (nzchar(out)) save_measurements(measured, out, "devices.R")
      }
      if (inherits(f, "error")) cat(sprintf("n = %d, %d GPUs: left out: %s\n", n, count, conditionMessage(f))) else free(f)
    }
  }
  if (!all(measured$ratio < 30)) stop("a ratio is not below 30", call. = FALSE)
}

compare_devices()
