# The figures of bench_paper(), in base graphics.

# Colour-blind safe (Okabe and Ito); the CPU's lines are dashed, the GPU's are not.
bench_style <- data.frame(
  row.names = names(bench_methods),
  colour = c("#E69F00", "#D55E00", "#000000", "#999999", "#56B4E9", "#0072B2", "#CC79A7", "#009E73", "#000000",
             "#999999"),
  symbol = c(2, 1, 4, NA, 17, 16, 8, 15, 18, NA),
  stringsAsFactors = FALSE
)

#' @rdname plot.bench_paper
#' @export
plot.bench_paper <- function(x, which = c("time", "error"), ranks = c(16, 1), ...) {
  require_no_more(...)
  which <- unique(vapply(which, match_choice, "", c("time", "error", "floor"), "which", USE.NAMES = FALSE))
  rows <- as.data.frame(x)
  rows <- rows[rows$status == "ok", ]
  ranks <- intersect(require_counts(ranks, "ranks"), rows$k)
  if (!length(ranks) || length(ranks) > 2L) {
    stop_gpucholmod("bad_argument", "'ranks' must be one or two that were measured",
                    list(argument = "ranks", value = ranks))
  }
  if (length(which) > 1L && grDevices::dev.interactive(orNone = TRUE)) {
    asked <- grDevices::devAskNewPage(TRUE)
    on.exit(grDevices::devAskNewPage(asked))
  }
  for (figure in which) {
    if (figure == "floor") draw_floor(rows, max(ranks), attr(x, "about"))
    else draw_paper(rows, ranks, figure, attr(x, "about"))
  }
  invisible(x)
}

# Eight panels: a row for each change, a column for each precision and rank, or, on a high page, the other way round.
draw_paper <- function(rows, ranks, figure, about) {
  rows <- rows[rows$k %in% ranks, ]
  y <- if (figure == "time") 1000 * rows$seconds else rows$max_error
  rows <- rows[!is.na(y) & y > 0, ]
  y <- y[!is.na(y) & y > 0]
  if (!length(y)) {
    stop_gpucholmod("bad_argument", sprintf("there is no %s to draw", figure), list(argument = "which", value = figure))
  }
  changes <- intersect(c("update", "downdate"), rows$change)
  columns <- expand.grid(k = ranks, precision = intersect(c("double", "single"), rows$precision),
                         stringsAsFactors = FALSE)
  wide <- grDevices::dev.size()[[1L]] > 1.2 * grDevices::dev.size()[[2L]]
  page <- open_page(length(changes), nrow(columns), wide, rows$method)
  on.exit(page$restore())
  for (panel in page$order) {
    change <- changes[[panel$row]]
    column <- columns[panel$column, ]
    mine <- rows$change == change & rows$precision == column$precision & rows$k == column$k
    # Errors of the two precisions have nothing in common, so that each has a scale of its own.
    scale <- if (figure == "time") y else y[rows$precision == column$precision]
    if (wide && figure == "error") panel$left <- panel$column == match(column$precision, columns$precision)
    draw_lines(rows[mine, ], y[mine], range(rows$n), range(scale), panel,
               sprintf("%s, k = %d, %s", change, as.integer(column$k), column$precision))
  }
  page$finish(rows$method, if (figure == "time") "time of a call [ms]" else "largest error, max |A~ - R~'R~|",
              if (figure == "time") "Time of one modification" else "Error of one modification", about)
}

# Double precision, updates: what starts from an ordinary matrix, and what stays on the GPU.
draw_floor <- function(rows, k, about) {
  rows <- rows[rows$precision == "double" & rows$change != "downdate" & rows$k %in% c(0, k), ]
  rows <- rows[!rows$method %in% c("sweeps", "panel"), ]
  if (!nrow(rows)) {
    stop_gpucholmod("bad_argument", "nothing was measured in double precision",
                    list(argument = "which", value = "floor"))
  }
  rows$from <- vapply(bench_methods[rows$method], `[[`, "", "from")
  places <- intersect(c("matrix", "resident"), rows$from)
  page <- open_page(1L, length(places), TRUE, rows$method)
  on.exit(page$restore())
  titles <- c(matrix = "from matrix to matrix", resident = "the factor stays on the GPU")
  for (panel in page$order) {
    mine <- rows$from == places[[panel$column]]
    draw_lines(rows[mine, ], 1000 * rows$seconds[mine], range(rows$n), 1000 * range(rows$seconds), panel,
               sprintf("%s, k = %d", titles[[places[[panel$column]]]], as.integer(k)))
  }
  page$finish(rows$method, "time [ms]", "Time, its floor, and factorising again (update, double precision)", about)
}

# Lays out `rows` x `columns` panels, transposed unless `wide`, above a legend. Returns what a figure goes by: the order
# of its panels, each knowing whether its axes are labelled; finish(), which draws what is common; restore().
open_page <- function(rows, columns, wide, methods) {
  old <- graphics::par(no.readonly = TRUE)
  across <- if (wide) columns else rows
  down <- if (wide) rows else columns
  lines <- ceiling(length(unique(methods)) / if (across > 1L) 2 else 1)
  graphics::layout(rbind(matrix(seq_len(across * down), down, byrow = TRUE), across * down + 1L),
                   heights = c(rep(1, down), graphics::lcm(0.42 * lines + 1.2)))
  graphics::par(oma = c(0.2, 2.4, 3.6, 0.8), mar = c(0.6, 2.6, 1.8, 0), mgp = c(2, 0.5, 0), tcl = -0.3, cex = 0.75)
  order <- lapply(seq_len(across * down), function(i) {
    down_here <- (i - 1L) %/% across + 1L
    across_here <- (i - 1L) %% across + 1L
    list(row = if (wide) down_here else across_here, column = if (wide) across_here else down_here,
         left = across_here == 1L, bottom = down_here == down)
  })
  list(order = order, finish = finish_page, restore = function() {
    graphics::layout(1)
    graphics::par(old)
  })
}

draw_lines <- function(rows, y, xlim, ylim, panel, title) {
  graphics::plot(NULL, xlim = xlim, ylim = ylim, log = "xy", axes = FALSE, xlab = "", ylab = "")
  ticks <- log_ticks(xlim, c(1, 2, 5))
  powers <- log_ticks(ylim, 1)
  if (length(powers) < 3L) powers <- log_ticks(ylim, c(1, 2, 5))
  if (length(powers) > 7L) powers <- powers[seq(1L, length(powers), by = 2L)]
  graphics::abline(h = powers, v = ticks, col = "grey90")
  graphics::box(col = "grey60")
  plain <- max(powers) < 1e7 && min(powers) > 1e-5 && max(powers) > 0.1
  graphics::axis(1, at = ticks, labels = if (panel$bottom) big(ticks) else FALSE)
  labels <- if (plain) vapply(powers, big, "") else sprintf("%.0e", powers)
  graphics::axis(2, at = powers, las = 1, labels = if (panel$left) labels else FALSE)
  graphics::title(main = title, line = 0.5, cex.main = 1, font.main = 1)
  for (method in intersect(names(bench_methods), rows$method)) {
    mine <- rows$method == method
    sorted <- order(rows$n[mine])
    style <- bench_style[method, ]
    graphics::lines(rows$n[mine][sorted], y[mine][sorted], type = "o", col = style$colour, pch = style$symbol,
                    lwd = 1.6, lty = line_type(method), cex = 0.8)
  }
}

line_type <- function(method) {
  if (bench_methods[[method]]$role == "floor") 3L else if (bench_methods[[method]]$device == "cpu") 2L else 1L
}

finish_page <- function(methods, ylab, title, about) {
  methods <- intersect(names(bench_methods), methods)
  labels <- vapply(bench_methods[methods], function(m) paste0(toupper(m$device), ": ", m$label), "")
  graphics::par(mar = rep(0, 4))
  graphics::plot.new()
  graphics::mtext("order n", side = 3, line = -2.2, cex = 0.75)
  style <- bench_style[methods, ]
  graphics::legend("bottom", legend = labels, col = style$colour, pch = style$symbol,
                   lty = vapply(methods, line_type, 0L), lwd = 1.6, pt.cex = 0.8, bty = "n", xpd = NA,
                   ncol = if (length(methods) > 3L) 2L else 1L)
  graphics::mtext(ylab, side = 2, line = 1, outer = TRUE, cex = 0.75, at = 0.56)
  graphics::mtext(title, side = 3, line = 2, outer = TRUE, font = 2, cex = 0.9)
  where <- if (about[["gpu"]] == "none") sprintf("CPU only: %s", about[["gpuless"]]) else about[["gpu"]]
  line <- sprintf("%s; %s; gpucholmod %s, %s", where, about[["cpu"]], about[["package"]], about[["date"]])
  graphics::mtext(line, side = 3, line = 0.9, outer = TRUE, cex = 0.6)
}

big <- function(x) format(x, big.mark = ",", scientific = FALSE, trim = TRUE, drop0trailing = TRUE)

# Round numbers within a range; where there is none, its ends.
log_ticks <- function(range, steps) {
  ticks <- sort(outer(steps, 10^seq(floor(log10(range[[1L]])), ceiling(log10(range[[2L]])))))
  ticks <- ticks[ticks >= range[[1L]] * 0.999 & ticks <= range[[2L]] * 1.001]
  if (length(ticks)) ticks else unique(signif(range, 2))
}
