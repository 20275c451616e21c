# One call of the method "stream", in time: when which panel was filled, sent, modified, fetched and emptied.
#
#   Rscript stream_timeline.R [--n=16384] [--k=16] [--backend=cuda|cpu] [--method=stream] [--downdate] [--memory=]
#                             [--threads=] [--out=stream_timeline.png] [--csv=]
#   Rscript stream_timeline.R --from=timeline.csv [--n=] [--k=] [--out=]
#
# A call of the same size goes before, to warm up. In the picture, each stage has as many lanes as it has spans at once;
# colours go round with the panels. Printed:
#   busy      time in which at least one span of the stage is open; "sum" adds up all of them
#   GB/s      4 n^2 bytes of the triangle by the busy time: what is sent beside it, to fill up panels, is not counted
# A span of `send` or `fetch` also holds the time that it waits for another panel's. On the CPU there are no spans but
# of `fill` and `empty`. With --from, an earlier timeline is drawn again.
#
# The order of things is checked: a panel is modified when all of it was filled and sent; it is fetched after that; what
# is emptied was fetched.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
n <- as.numeric(option("n", 16384))
k <- as.integer(option("k", 16))
out <- option("out", "stream_timeline.png")
csv <- option("csv", NULL)
from <- option("from", NULL)
stages <- c("fill", "send", "modify", "fetch", "empty")

make <- function(n) {
  x <- rnorm(1000003) / sqrt(n)
  R <- matrix(rep_len(x, n * n), n, n)
  for (j in seq_len(n - 1)) R[(j + 1):n, j] <- 0
  R[cbind(1:n, 1:n)] <- 1 + runif(n)
  R
}

measure <- function() {
  set.seed(2010)
  V <- matrix(rnorm(n * k), n) / sqrt(n)
  R <- make(n)
  threads <- option("threads", NULL)
  control <- cholupdate_control(device_memory = option("memory", Inf), timeline = TRUE,
                                threads = if (!is.null(threads)) as.integer(threads))
  modify <- function(downdate) {
    cholupdate_gpu(R, V, downdate, backend = option("backend", "cuda"), method = option("method", "stream"),
                   control = control)
  }
  downdate <- "--downdate" %in% commandArgs(TRUE)
  if (downdate) R <- modify(FALSE)
  for (i in 1:2) {
    gc()
    modify(downdate)
  }
  last_cholupdate()
}

# Disjoint intervals in order, as a matrix of begin and end, with the same union.
union_of <- function(spans) {
  if (nrow(spans) == 0L) return(matrix(0, 0L, 2L))
  spans <- spans[order(spans$begin), ]
  reach <- cummax(spans$end)
  first <- c(TRUE, spans$begin[-1L] > reach[-length(reach)])
  cbind(spans$begin[first], reach[c(which(first)[-1L] - 1L, length(reach))])
}
length_of <- function(spans) sum(apply(union_of(spans), 1L, diff))

# For each span the lowest lane that is free.
lanes_of <- function(spans) {
  lane <- integer(nrow(spans))
  free_at <- numeric(0)
  for (i in order(spans$begin)) {
    at <- match(TRUE, free_at <= spans$begin[[i]], nomatch = length(free_at) + 1L)
    free_at[[at]] <- spans$end[[i]]
    lane[[i]] <- at
  }
  lane
}

# Stops if a panel was somewhere before it can have been there.
check_order <- function(timeline) {
  if (any(timeline$begin > timeline$end)) stop("a span ends before it begins", call. = FALSE)
  of <- function(stage, column, f) {
    spans <- timeline[timeline$stage == stage, ]
    vapply(split(spans[[column]], spans$panel), f, 0)
  }
  slack <- 1e-4 * (1 + max(timeline$end))  # the clocks of the CPU and the GPU are two
  require_order <- function(first, second, message) {
    both <- intersect(names(first), names(second))
    wrong <- both[first[both] > second[both] + slack]
    if (length(wrong)) stop("panel ", wrong[[1L]], " is ", message, call. = FALSE)
  }
  require_order(of("fill", "end", min), of("send", "begin", min), "sent before any of it is filled")
  require_order(of("fill", "end", max), of("modify", "begin", min), "modified before all of it is filled")
  require_order(of("send", "end", max), of("modify", "begin", min), "modified before all of it is sent")
  require_order(of("modify", "end", max), of("fetch", "begin", min), "fetched before it is modified")
  require_order(of("fetch", "end", min), of("empty", "begin", min), "emptied before any of it is fetched")
  require_order(of("fill", "end", max), of("empty", "begin", min), "emptied before all of it is filled")
}

print_stages <- function(timeline, total) {
  cat("stage    spans  busy ms  of total   sum ms    from      to    GB/s\n")
  for (stage in stages) {
    spans <- timeline[timeline$stage == stage, ]
    busy <- length_of(spans)
    if (busy == 0) next
    moves <- stage %in% c("send", "fetch")
    cat(sprintf("%-7s %6d %8.2f %8.0f%% %8.2f %7.2f %7.2f %7s\n", stage, nrow(spans), 1000 * busy, 100 * busy / total,
                1000 * sum(spans$end - spans$begin), 1000 * min(spans$begin), 1000 * max(spans$end),
                if (moves) sprintf("%.1f", 4 * n^2 / busy / 1e9) else ""))
  }
  send <- timeline[timeline$stage == "send", ]
  fetch <- timeline[timeline$stage == "fetch", ]
  if (nrow(send) == 0L || nrow(fetch) == 0L) return(invisible())
  both <- length_of(send) + length_of(fetch) - length_of(rbind(send, fetch))
  cat(sprintf("send and fetch at once: %.2f ms, %.0f%% of the total\n", 1000 * both, 100 * both / total))
}

draw <- function(timeline, title, subtitle) {
  colours <- unname(grDevices::palette.colors(9L, "Okabe-Ito"))[c(6, 2, 4, 8, 3, 7, 9)]
  last <- 1000 * max(timeline$end)
  par(mar = c(3.6, 5, 3.6, 8), las = 1, mgp = c(2.2, 0.7, 0))
  plot(NULL, xlim = c(0, last), ylim = c(length(stages) + 0.5, 0.5), xaxs = "i", yaxs = "i", yaxt = "n", xlab = "ms",
       ylab = "")
  abline(v = axTicks(1L), col = "grey88")
  abline(h = seq_along(stages)[-1L] - 0.5, col = "grey60")
  axis(2L, at = seq_along(stages), labels = stages, tick = FALSE, font = 2L)
  for (row in seq_along(stages)) {
    spans <- timeline[timeline$stage == stages[[row]], ]
    if (nrow(spans) == 0L) next
    lane <- lanes_of(spans)
    height <- 0.88 / max(lane)
    top <- row - 0.44 + (lane - 1) * height
    colour <- colours[(spans$panel - 1L) %% length(colours) + 1L]
    rect(1000 * spans$begin, top, 1000 * spans$end, top + 0.9 * height, col = colour, border = colour, lwd = 0.3)
    if (stages[[row]] == "modify") {
      wide <- 1000 * (spans$end - spans$begin) > 1.3 * strwidth(spans$panel, cex = 0.6)
      middle <- 500 * (spans$begin + spans$end)
      if (any(wide)) text(middle[wide], (top + 0.45 * height)[wide], spans$panel[wide], cex = 0.6, col = "white")
    }
    side <- sprintf("%.1f ms busy\n%d lane%s", 1000 * length_of(spans), max(lane), if (max(lane) > 1L) "s" else "")
    axis(4L, at = row, labels = side, tick = FALSE, cex.axis = 0.8)
  }
  box()
  title(title, line = 1.9)
  mtext(subtitle, line = 0.5, cex = 0.85)
}

if (is.null(from)) {
  report <- measure()
  timeline <- report$timeline
  total <- report$seconds
  machine <- sprintf("%s, %d threads, %s", if (nzchar(report$device)) report$device else "no GPU, on the CPU",
                     report$threads, format(Sys.Date()))
  what <- sprintf("method \"%s\", rank-%d %s", report$method, k, if (report$downdate) "downdate" else "update")
} else {
  timeline <- read.csv(from)
  total <- max(timeline$end)
  machine <- basename(from)
  what <- sprintf("rank-%d modification", k)
}
if (!is.null(csv)) write.csv(timeline, csv, row.names = FALSE)
check_order(timeline)

title <- sprintf("n = %.0f, %s: %.1f ms, %d panels", n, what, 1000 * total, length(unique(timeline$panel)))
cat(title, "\n", machine, "\n\n", sep = "")
print_stages(timeline, total)
out <- open_figure(out, 12.7, 6.4, resolution = 110)
draw(timeline, title, paste0(machine, "; colours: panels"))
invisible(dev.off())
cat("picture:", out, "\n")
