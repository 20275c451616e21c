# The figures of bench_paper(), in base graphics.

#' @rdname plot.bench_paper
#' @export
plot.bench_paper <- function(x, which = c("time", "error"), ranks = c(16, 1), ...) {
  require_no_more(...)
  which <- match_choices(which, c("time", "error", "floor"), "which")
  rows <- as.data.frame(x)[x$status == "ok", ]
  ranks <- intersect(require_counts(ranks, "ranks"), rows$k)
  if (!length(ranks) || length(ranks) > 2L) stop_bad_argument("ranks", ranks, "must be one or two that were measured")
  if (length(which) > 1L && grDevices::dev.interactive(orNone = TRUE)) {
    asked <- grDevices::devAskNewPage(TRUE)
    on.exit(grDevices::devAskNewPage(asked))
  }
  for (name in which) {
    figure <- if (name == "floor") floor_figure(rows, max(ranks)) else paper_figure(rows, ranks, name)
    if (!nrow(figure$rows)) stop_bad_argument("which", name, "names what was not measured")
    draw_figure(figure, attr(x, "about"))
  }
  invisible(x)
}

# A figure is a list:
#   rows    of measurements, with `y` to draw, and the panel in which, by factors `row` and `column`
#   shared  for each column, what those have in common that share a scale
#   wide    TRUE where rows are rows on any page; else they are columns on a high one
#   title, ylab
# Returns a figure of the paper, with eight panels: a row for each change, a column for each precision and rank. Errors
# of the two precisions have nothing in common, so that each precision has a scale of its own.
paper_figure <- function(rows, ranks, name) {
  rows <- rows[rows$k %in% ranks, ]
  rows$y <- if (name == "time") 1000 * rows$seconds else rows$max_error
  rows <- rows[!is.na(rows$y) & rows$y > 0, ]
  precision <- rep(intersect(c("double", "single"), rows$precision), each = length(ranks))
  rows$row <- factor(sprintf("%s, ", rows$change), sprintf("%s, ", intersect(c("update", "downdate"), rows$change)))
  rows$column <- factor(sprintf("k = %.0f, %s", rows$k, rows$precision), sprintf("k = %.0f, %s", ranks, precision))
  c(list(rows = rows, wide = FALSE),
    if (name == "time") list(shared = precision == "", title = "Time of one modification", ylab = "time of a call [ms]")
    else list(shared = precision, title = "Error of one modification", ylab = "largest error, max |A~ - R~'R~|"))
}

# Returns the figure of updates in double precision: from matrix to matrix, and with the factor kept on the GPU.
floor_figure <- function(rows, k) {
  rows <- rows[rows$precision == "double" & rows$change != "downdate" & rows$k %in% c(0, k) &
                 !rows$method %in% c("sweeps", "panel"), ]
  places <- c(matrix = "from matrix to matrix", resident = "the factor stays on the GPU")
  rows$y <- 1000 * rows$seconds
  rows$row <- factor(rep("", nrow(rows)))
  rows$column <- factor(sprintf("%s, k = %.0f", places[method_field(rows$method, "from")], k))
  list(rows = rows, shared = c(TRUE, TRUE), wide = TRUE, ylab = "time [ms]",
       title = "Time, its floor, and factorising again (update, double precision)")
}

# Draws a figure, made by paper_figure() or floor_figure(), on one page.
draw_figure <- function(figure, about) {
  rows <- figure$rows
  methods <- intersect(names(bench_methods), rows$method)
  parts <- split(rows, list(rows$row, rows$column), sep = "")
  panels <- matrix(seq_along(parts), nlevels(rows$row))
  wide <- figure$wide || grDevices::dev.size()[[1L]] > 1.2 * grDevices::dev.size()[[2L]]
  page <- if (wide) panels else t(panels)
  old <- graphics::par(no.readonly = TRUE)
  on.exit(graphics::layout(1))
  on.exit(graphics::par(old), add = TRUE)
  lines <- ceiling(length(methods) / if (ncol(page) > 1L) 2 else 1)
  graphics::layout(rbind(page, length(parts) + 1L), heights = c(rep(1, nrow(page)), graphics::lcm(0.42 * lines + 1.2)))
  graphics::par(oma = c(0.2, 2.4, 3.6, 0.8), mar = c(0.6, 2.6, 1.8, 0), mgp = c(2, 0.5, 0), tcl = -0.3, cex = 0.75)
  for (i in seq_along(parts)) {
    column <- col(panels)[[i]]
    together <- figure$shared == figure$shared[[column]]
    draw_panel(parts[[i]], names(parts)[[i]], range(rows$n), range(rows$y[together[rows$column]]),
               left = i %in% page[, 1L] || wide && column == which(together)[[1L]],
               bottom = i %in% page[nrow(page), ])
  }
  draw_margins(figure, methods, about)
}

# Draws one panel: a line for each method, on logarithmic axes.
draw_panel <- function(rows, title, xlim, ylim, left, bottom) {
  graphics::plot(NULL, xlim = xlim, ylim = ylim, log = "xy", axes = FALSE, xlab = "", ylab = "")
  ticks <- log_ticks(xlim, c(1, 2, 5))
  powers <- log_ticks(ylim, 1)
  if (length(powers) < 3L) powers <- log_ticks(ylim, c(1, 2, 5))
  if (length(powers) > 7L) powers <- powers[seq(1L, length(powers), by = 2L)]
  graphics::abline(h = powers, v = ticks, col = "grey90")
  graphics::box(col = "grey60")
  graphics::title(main = title, line = 0.5, cex.main = 1, font.main = 1)
  plain <- max(powers) < 1e7 && min(powers) > 1e-5 && max(powers) > 0.1
  graphics::axis(1, at = ticks, labels = if (bottom) big(ticks) else FALSE)
  labels <- if (!left) FALSE else if (plain) vapply(powers, big, "") else sprintf("%.0e", powers)
  graphics::axis(2, at = powers, las = 1, labels = labels)
  for (method in intersect(names(bench_methods), rows$method)) {
    line <- rows[rows$method == method, ]
    style <- bench_methods[[method]]
    graphics::lines(y ~ n, line[order(line$n), ], type = "o", col = style$colour, pch = style$symbol, lwd = 1.6,
                    lty = style$lty, cex = 0.8)
  }
}

# Draws the legend, the titles and the origin of the measurements around the panels.
draw_margins <- function(figure, methods, about) {
  graphics::par(mar = rep(0, 4))
  graphics::plot.new()
  graphics::mtext("order n", side = 3, line = -2.2, cex = 0.75)
  labels <- paste0(toupper(method_field(methods, "device")), ": ", method_field(methods, "label"))
  graphics::legend("bottom", legend = labels, col = method_field(methods, "colour"), lty = method_field(methods, "lty"),
                   pch = method_field(methods, "symbol"), lwd = 1.6, pt.cex = 0.8, bty = "n", xpd = NA,
                   ncol = if (length(methods) > 3L) 2L else 1L)
  graphics::mtext(figure$ylab, side = 2, line = 1, outer = TRUE, cex = 0.75, at = 0.56)
  graphics::mtext(figure$title, side = 3, line = 2, outer = TRUE, font = 2, cex = 0.9)
  where <- if (about[["gpu"]] == "none") sprintf("CPU only: %s", about[["gpuless"]]) else about[["gpu"]]
  graphics::mtext(sprintf("%s; %s; gpucholmod %s, %s", where, about[["cpu"]], about[["package"]], about[["date"]]),
                  side = 3, line = 0.9, outer = TRUE, cex = 0.6)
}

# Formats numbers with commas between thousands.
big <- function(x) format(x, big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE)

# Returns the round numbers within a range; if there are none, the ends of the range.
log_ticks <- function(range, steps) {
  ticks <- sort(outer(steps, 10^seq(floor(log10(range[[1L]])), ceiling(log10(range[[2L]])))))
  ticks <- ticks[ticks >= range[[1L]] * 0.999 & ticks <= range[[2L]] * 1.001]
  if (length(ticks)) ticks else unique(signif(range, 2))
}
