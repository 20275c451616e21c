# What bench_paper() has found, in words.

# Who is compared with whom: the first is the challenger.
overtaking_pairs <- list(
  "panel and sweeps, as in the paper" = c("panel", "sweeps"),
  "stream and blocked" = c("stream", "blocked"),
  "resident and blocked" = c("resident", "blocked")
)
# What the paper says of the first pair: from which n on the GPU is quicker, by k; and how many times, and where.
walder <- list(n = c("1" = 4000, "16" = 2000), times = 7, at = list(n = 5000, k = 16))

refactoring_pairs <- list(
  "CPU: blocked and chol(A~)" = c("blocked", "chol"),
  "GPU: stream and gpu_chol(A~), back" = c("stream", "gpu_chol"),
  "there: resident and cuSOLVER" = c("resident", "potrf")
)

#' Figures and findings of `bench_paper()`
#'
#' `plot()` draws the two figures of Walder (2010): time against order, and error against order, each with a panel for
#' update and downdate, single and double precision, and two ranks; or time beside its floor, which is moving the
#' triangle once without computing anything, and beside factorising again. `summary()` says from which order on the GPU
#' is quicker than the CPU, and a modification quicker than factorising again.
#'
#' A challenger overtakes at \eqn{n} if it is quicker at every larger size that was measured. Between two sizes, times
#' are taken as powers of \eqn{n}.
#'
#' @param x,object What [bench_paper()] has returned, or [stored_measurements()] of a name that begins with `paper`.
#' @param which `"time"` and `"error"` are the paper's figures; `"floor"` is time beside its floor, for updates in
#'   double precision without `"sweeps"` and `"panel"`. Each takes a page.
#' @param ranks Up to two \eqn{k} to draw, one for each column or row of panels; `"floor"` takes the larger.
#' @param ... For `plot()`, must be empty; for `print()`, ignored.
#' @return `summary()`: a list of class `summary.bench_paper`:
#'   \item{overtakes}{a data frame: `pair` (challenger and opponent), `challenger`, `opponent`, `precision`, `change`,
#'     `k`; `n`, from which on the challenger is quicker, `NA` if it never is; `first` and `last`, the smallest and the
#'     largest \eqn{n} that both were timed at; `ratio`, the opponent's time by the challenger's at `last`; `ratio_5000`
#'     the same at \eqn{n = 5000}, `NA` where that was not measured}
#'   \item{break_even}{the same for modifications against factorising again}
#'   \item{statuses}{how many measurements have which status}
#'   \item{about}{where they come from}
#'
#'   The others return `x` invisibly.
#' @examples
#' x <- stored_measurements("paper-h200")
#' x
#' plot(x, which = "time")
#' s <- summary(x)
#' subset(s$break_even, precision == "double" & change == "update", c(pair, k, n))
#' @name plot.bench_paper
NULL

#' @rdname plot.bench_paper
#' @export
summary.bench_paper <- function(object, ...) {
  structure(
    list(overtakes = compare_pairs(object, overtaking_pairs), break_even = compare_pairs(object, refactoring_pairs),
         statuses = table(object$status), about = attr(object, "about")),
    class = "summary.bench_paper"
  )
}

compare_pairs <- function(x, pairs) {
  x <- as.data.frame(x)
  timed <- x[x$status == "ok", ]
  cases <- unique(timed[timed$k > 0, c("precision", "change", "k")])
  cases <- cases[order(cases$precision, cases$change != "update", cases$k), ]
  rows <- list()
  for (pair in names(pairs)) {
    for (i in seq_len(nrow(cases))) {
      both <- lapply(pairs[[pair]], function(method) seconds_by_n(timed, method, cases[i, ]))
      row <- meeting(both[[1L]], both[[2L]])
      if (!is.null(row)) {
        who <- data.frame(pair = pair, challenger = pairs[[pair]][[1L]], opponent = pairs[[pair]][[2L]])
        rows[[length(rows) + 1L]] <- cbind(who, cases[i, ], row)
      }
    }
  }
  found <- do.call(rbind, rows)
  if (is.null(found)) return(data.frame())
  rownames(found) <- NULL
  found
}

# Seconds of a method, named by n; what does not depend on k and the change counts for all of them.
seconds_by_n <- function(timed, method, case) {
  mine <- timed[timed$method == method & timed$precision == case$precision & (timed$k == 0 | timed$k == case$k) &
                  (timed$k == 0 | timed$change == case$change), ]
  stats::setNames(mine$seconds, mine$n)
}

# Where the challenger's times meet the opponent's, both named by n.
meeting <- function(challenger, opponent) {
  n <- intersect(names(challenger), names(opponent))
  if (!length(n)) return(NULL)
  ratio <- opponent[n] / challenger[n]
  order <- as.numeric(n)
  data.frame(n = overtaken_at(order, ratio), first = min(order), last = max(order),
             ratio = unname(ratio[which.max(order)]), ratio_5000 = unname(ratio["5000"]))
}

# The n from which on `ratio` is above 1, for ascending n; NA if it is not at the largest.
overtaken_at <- function(n, ratio) {
  sorted <- order(n)
  n <- n[sorted]
  ratio <- ratio[sorted]
  last <- length(n)
  if (ratio[[last]] <= 1) return(NA_real_)
  behind <- which(ratio <= 1)
  if (!length(behind)) return(n[[1L]])
  i <- max(behind)
  share <- log(ratio[[i]]) / (log(ratio[[i]]) - log(ratio[[i + 1L]]))
  exp(log(n[[i]]) + share * (log(n[[i + 1L]]) - log(n[[i]])))
}

#' @export
print.summary.bench_paper <- function(x, ...) {
  cat("The experiment of Walder (2010)\n")
  cat(strwrap(provenance_line(x$about), exdent = 2), sep = "\n")
  others <- x$statuses[names(x$statuses) != "ok"]
  cat(sprintf("%d measurements", sum(x$statuses)),
      if (length(others)) sprintf(", of which %s", paste(others, names(others), collapse = ", ")), "\n", sep = "")
  if (x$about[["gpu"]] == "none") cat(sprintf("CPU only: %s\n", x$about[["gpuless"]]))
  print_meetings(x$overtakes, "The GPU overtakes the CPU", paper = TRUE)
  print_meetings(x$break_even, "A modification is quicker than factorising again", paper = FALSE)
  invisible(x)
}

# A row for each pair and k, a column for each precision and change.
print_meetings <- function(found, heading, paper) {
  if (!nrow(found)) return(invisible())
  found$column <- paste(found$precision, found$change)
  columns <- unique(found$column)
  rows <- unique(found[c("pair", "k")])
  rows <- rows[order(match(rows$pair, found$pair), rows$k), ]
  cells <- vapply(columns, function(column) {
    at <- match(paste(rows$pair, rows$k, column), paste(found$pair, found$k, found$column))
    vapply(at, function(i) if (is.na(i)) "-" else meeting_text(found[i, ]), "")
  }, character(nrow(rows)))
  cells <- cbind(ifelse(duplicated(rows$pair), "", rows$pair), rows$k, matrix(cells, nrow(rows)))
  titles <- c("", "k", columns)
  if (paper) {
    cells <- cbind(cells, ifelse(rows$pair == names(overtaking_pairs)[[1L]], walders_text(rows$k), ""))
    titles <- c(titles, "the paper")
  }
  times <- c(if (!all(is.na(found$ratio_5000))) "n = 5,000", if (anyNA(found$ratio_5000)) "the largest n measured")
  cat(sprintf("\n%s: from which n on\n(and how many times as quick it is at %s)\n", heading,
              paste(times, collapse = ", or ")))
  cells <- rbind(titles, cells)
  left <- format(cells[, 1L])
  right <- apply(cells[, -1L, drop = FALSE], 2L, format, justify = "right")
  cat(paste0("  ", left, "  ", apply(right, 1L, paste, collapse = "  "), "\n"), sep = "")
}

meeting_text <- function(row) {
  times <- if (is.na(row$ratio_5000)) row$ratio else row$ratio_5000
  where <- if (is.na(row$n)) paste(">", big(row$last))
           else if (row$n == row$first) paste("<=", big(row$first))
           else big(signif(row$n, 2))
  sprintf("%s (%s)", where, if (times >= 10) sprintf("%.0f", times) else sprintf("%.1f", times))
}

walders_text <- function(k) {
  ifelse(!as.character(k) %in% names(walder$n), "",
         paste0(big(walder$n[as.character(k)]), ifelse(k == walder$at$k, sprintf(" (%g)", walder$times), "")))
}

#' @rdname plot.bench_paper
#' @export
print.bench_paper <- function(x, ...) {
  print(summary(x))
  cat("\nas.data.frame() gives the measurements, plot() the figures.\n")
  invisible(x)
}
