# What bench_paper() has found, in words.

# Who is compared with whom: challengers, and their opponents.
bench_pairs <- list(
  overtakes = c(panel = "sweeps", stream = "blocked", resident = "blocked"),
  break_even = c(blocked = "chol", stream = "gpu_chol", resident = "potrf")
)
# What the paper says of the first pair, by k: from which n on the GPU is quicker, and how many times at n = 5,000.
walder <- c("1" = "4,000", "16" = "2,000 (7)")

#' Figures and findings of `bench_paper()`
#'
#' `plot()` draws the two figures of Walder (2010): time against order, and error against order, each with a panel for
#' update and downdate, single and double precision, and two ranks. It can also draw the time beside its floor, which is
#' the time to move the triangle once without computing anything, and beside factorising again. `summary()` says from
#' which order on the GPU is quicker than the CPU, and a modification is quicker than factorising again.
#'
#' A challenger overtakes its opponent at \eqn{n} if it is quicker at every larger size that was measured. Times between
#' two measured sizes are interpolated by powers of \eqn{n}.
#'
#' @param x,object What [bench_paper()] has returned, or [stored_measurements()] of a name that begins with `paper`.
#' @param which `"time"` and `"error"` are the paper's figures; `"floor"` is time beside its floor, for updates in
#'   double precision without `"sweeps"` and `"panel"`. Each takes a page.
#' @param ranks One or two ranks \eqn{k} to draw, one for each column or row of panels; `"floor"` draws the larger.
#' @param ... For `plot()`, must be empty; for `print()`, ignored.
#' @return `summary()`: a list of class `summary.bench_paper`:
#'   \item{overtakes}{a data frame: `pair` (the two methods), `challenger`, `opponent`, `precision`, `change`, `k`;
#'     `n`, from which on the challenger is quicker, `NA` if it never is; `first` and `last`, the smallest and the
#'     largest \eqn{n} at which both were timed; `ratio`, the opponent's time divided by the challenger's at `last`;
#'     `ratio_5000`, the same at \eqn{n = 5000}, `NA` if that was not measured}
#'   \item{break_even}{the same for modifications against factorising again}
#'   \item{statuses}{the number of measurements with each status}
#'   \item{about}{where the measurements come from}
#'
#'   `plot()` and `print()` return `x` invisibly.
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

# Returns a row for each pair and case that were timed: the order at which the two times are equal.
compare_pairs <- function(pairs, rows) {
  rows <- rows[rows$status == "ok", c("method", "precision", "change", "k", "n", "seconds")]
  found <- Map(function(challenger, opponent) {
    opponents <- rows[rows$method == opponent, ]
    # What does not depend on k and the change counts for all of them.
    by <- c("precision", "n", if (any(opponents$k > 0)) c("change", "k"))
    both <- merge(rows[rows$method == challenger, ], opponents[c(by, "seconds")], by = by)
    both <- both[order(both$precision, both$change != "update", both$k, both$n), ]
    both$ratio <- both$seconds.y / both$seconds.x
    case <- paste(both$precision, both$change, both$k)
    do.call(rbind, lapply(split(both, factor(case, unique(case))), function(x) {
      last <- nrow(x)
      cbind(pair = paste(challenger, "and", opponent), challenger, opponent, x[last, c("precision", "change", "k")],
            n = overtaken_at(x$n, x$ratio), first = x$n[[1L]], last = x$n[[last]], ratio = x$ratio[[last]],
            ratio_5000 = x$ratio[match(5000, x$n)])
    }))
  }, names(pairs), pairs)
  do.call(rbind, c(list(data.frame()), unname(found), make.row.names = FALSE))
}

# Returns the n from which on `ratio` is above 1; NA if it is not above 1 at the largest n.
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
  others <- paste(x$statuses, names(x$statuses))[names(x$statuses) != "ok"]
  cat(sum(x$statuses), " measurements", if (length(others)) ", of which ", toString(others), "\n", sep = "")
  if (x$about[["gpu"]] == "none") cat(sprintf("CPU only: %s\n", x$about[["gpuless"]]))
  print_meetings(x$overtakes, "The GPU overtakes the CPU")
  print_meetings(x$break_even, "A modification is quicker than factorising again")
  invisible(x)
}

# Prints a row for each pair and k, a column for each precision and change.
print_meetings <- function(found, heading) {
  if (!nrow(found)) return(invisible())
  cat("\n", heading, ": from which n on\n", sep = "")
  cat("(and how many times as quick it is at n = 5,000, or the largest n measured)\n")
  found <- found[order(match(found$pair, found$pair), found$k), ]
  rows <- unique(found[c("pair", "k")])
  column <- paste(found$precision, found$change)
  at <- list(factor(paste(found$pair, found$k), paste(rows$pair, rows$k)), factor(column, unique(column)))
  cells <- cbind(k = rows$k, tapply(meeting_text(found), at, identity, default = "-"))
  papers <- ifelse(rows$pair == "panel and sweeps", walder[as.character(rows$k)], NA)
  if (!all(is.na(papers))) cells <- cbind(cells, "the paper" = ifelse(is.na(papers), "", papers))
  rownames(cells) <- ifelse(duplicated(rows$pair), "", rows$pair)
  print.default(cells, quote = FALSE, right = TRUE, width = 200L)
}

# Formats the order n from which on the challenger is quicker, and how many times as quick it is.
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
