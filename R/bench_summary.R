# What bench_paper() has found, in words.

# Who is compared with whom: the first is the challenger.
bench_pairs <- list(
  overtakes = list(
    "panel and sweeps, as in the paper" = c("panel", "sweeps"),
    "stream and blocked" = c("stream", "blocked"),
    "resident and blocked" = c("resident", "blocked")
  ),
  break_even = list(
    "CPU: blocked and chol(A~)" = c("blocked", "chol"),
    "GPU: stream and gpu_chol(A~), back" = c("stream", "gpu_chol"),
    "there: resident and cuSOLVER" = c("resident", "potrf")
  )
)
# What the paper says of the first pair, by k: from which n on the GPU is quicker, and how many times at n = 5,000.
walder <- c("1" = "4,000", "16" = "2,000 (7)")

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
  about <- list(statuses = table(object$status), about = attr(object, "about"))
  structure(c(lapply(bench_pairs, compare_pairs, as.data.frame(object)), about), class = "summary.bench_paper")
}

# A row for each pair and case that were timed: where their times meet.
compare_pairs <- function(pairs, rows) {
  rows <- rows[rows$status == "ok", c("method", "precision", "change", "k", "n", "seconds")]
  found <- Map(function(pair, name) {
    mine <- rows[rows$method == pair[[1L]], ]
    theirs <- rows[rows$method == pair[[2L]], ]
    # What does not depend on k and the change counts for all of them.
    by <- c("precision", "n", if (any(theirs$k > 0)) c("change", "k"))
    both <- merge(mine, theirs[c(by, "seconds")], by = by)
    both <- both[order(both$precision, both$change != "update", both$k, both$n), ]
    case <- paste(both$precision, both$change, both$k)
    do.call(rbind, lapply(split(both, factor(case, unique(case))), function(at) {
      ratio <- at$seconds.y / at$seconds.x
      data.frame(pair = name, challenger = pair[[1L]], opponent = pair[[2L]], at[1L, c("precision", "change", "k")],
                 n = overtaken_at(at$n, ratio), first = at$n[[1L]], last = max(at$n), ratio = ratio[[length(ratio)]],
                 ratio_5000 = ratio[match(5000, at$n)])
    }))
  }, pairs, names(pairs))
  found <- do.call(rbind, unname(found))
  if (is.null(found)) return(data.frame())
  rownames(found) <- NULL
  found
}

# The n from which on `ratio` is above 1; NA if it is not at the largest.
overtaken_at <- function(n, ratio) {
  x <- log(n[order(n)])
  y <- log(ratio[order(n)])
  behind <- max(0L, which(y <= 0))
  if (behind == 0L) min(n)
  else if (behind == length(n)) NA_real_
  else exp(x[[behind]] - y[[behind]] * diff(x)[[behind]] / diff(y)[[behind]])
}

#' @export
print.summary.bench_paper <- function(x, ...) {
  cat("The experiment of Walder (2010)\n")
  cat(strwrap(provenance(x$about), exdent = 2), sep = "\n")
  others <- x$statuses[names(x$statuses) != "ok"]
  cat(sprintf("%d measurements", sum(x$statuses)),
      if (length(others)) sprintf(", of which %s", paste(others, names(others), collapse = ", ")), "\n", sep = "")
  if (x$about[["gpu"]] == "none") cat(sprintf("CPU only: %s\n", x$about[["gpuless"]]))
  print_meetings(x$overtakes, "The GPU overtakes the CPU")
  print_meetings(x$break_even, "A modification is quicker than factorising again")
  invisible(x)
}

# A row for each pair and k, a column for each precision and change.
print_meetings <- function(found, heading) {
  if (!nrow(found)) return(invisible())
  column <- paste(found$precision, found$change)
  rows <- unique(found[c("pair", "k")])
  rows <- rows[order(match(rows$pair, found$pair), rows$k), ]
  at <- list(factor(paste(found$pair, found$k), paste(rows$pair, rows$k)), factor(column, unique(column)))
  cells <- tapply(meeting_text(found), at, identity)
  cells[is.na(cells)] <- "-"
  cells <- cbind(ifelse(duplicated(rows$pair), "", rows$pair), k = rows$k, cells)
  papers <- rows$pair == names(bench_pairs$overtakes)[[1L]] & rows$k %in% names(walder)
  if (any(papers)) cells <- cbind(cells, "the paper" = ifelse(papers, walder[as.character(rows$k)], ""))
  cells <- rbind(colnames(cells), cells)
  times <- c(if (!all(is.na(found$ratio_5000))) "n = 5,000", if (anyNA(found$ratio_5000)) "the largest n measured")
  cat(sprintf("\n%s: from which n on\n(and how many times as quick it is at %s)\n", heading,
              paste(times, collapse = ", or ")))
  cells <- cbind(format(cells[, 1L]), apply(cells[, -1L], 2L, format, justify = "right"))
  cat(paste0("  ", apply(cells, 1L, paste, collapse = "  "), "\n"), sep = "")
}

meeting_text <- function(found) {
  times <- ifelse(is.na(found$ratio_5000), found$ratio, found$ratio_5000)
  where <- ifelse(is.na(found$n), paste(">", big(found$last)),
                  ifelse(found$n == found$first, paste("<=", big(found$first)), big(signif(found$n, 2))))
  sprintf(ifelse(times >= 10, "%s (%.0f)", "%s (%.1f)"), where, times)
}

#' @rdname plot.bench_paper
#' @export
print.bench_paper <- function(x, ...) {
  print(summary(x))
  cat("\nas.data.frame() gives the measurements, plot() the figures.\n")
  invisible(x)
}
