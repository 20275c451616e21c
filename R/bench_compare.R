#' Compare results of `bench_paper()` with others
#'
#' Puts beside each measurement that of another machine, another version, or another day.
#'
#' @param x What [bench_paper()] has returned.
#' @param y What to compare it with, of the same kind: the result of [read_measurements()], or of
#'   [stored_measurements()].
#' @return A data frame of class `bench_comparison` with a row for each case that both have timed: `n`, `k`,
#'   `precision`, `change`, `method`, `device`; `seconds` of `x` and `seconds_y`; `ratio`, the latter by the former, so
#'   that 2 means that `x` is twice as quick; `max_error` and `max_error_y`. Its `print()` method gives the geometric
#'   mean, the least and the largest ratio of each method.
#' @section Errors:
#' `gpucholmod_bad_argument` where one of them is no such result, or they have no case in common.
#' @examples
#' x <- bench_paper(sizes = 500, ranks = 1, precisions = "double", methods = c("blocked", "chol"),
#'                  repeats = 1, verbose = FALSE)
#' compare_bench(x, stored_measurements("paper-h200"))
#' @export
compare_bench <- function(x, y) {
  require_bench(x, "x")
  require_bench(y, "y")
  by <- c("n", "k", "precision", "change", "method", "device")
  timed <- function(z) as.data.frame(z)[z$status == "ok", c(by, "seconds", "max_error")]
  both <- merge(timed(x), timed(y), by = by, suffixes = c("", "_y"))
  if (!nrow(both)) {
    stop_gpucholmod("bad_argument", "'x' and 'y' have no case in common", list(argument = "y", value = y))
  }
  both$ratio <- both$seconds_y / both$seconds
  both <- newest(both)[c(by, "seconds", "seconds_y", "ratio", "max_error", "max_error_y")]
  structure(both, about = list(x = attr(x, "about"), y = attr(y, "about")), class = c("bench_comparison", "data.frame"))
}

require_bench <- function(value, argument) {
  if (!inherits(value, "bench_paper")) {
    stop_gpucholmod("bad_argument", sprintf("'%s' must come from bench_paper()", argument),
                    list(argument = argument, value = value))
  }
}

#' @export
print.bench_comparison <- function(x, ...) {
  about <- attr(x, "about")
  if (is.null(about)) return(NextMethod())  # columns were taken out of it
  for (name in names(about)) cat(strwrap(paste0(name, ": ", provenance_line(about[[name]])), exdent = 3), sep = "\n")
  cat("\nTime of y by time of x: geometric mean, least and largest\n")
  for (method in unique(x$method)) {
    ratio <- x$ratio[x$method == method]
    cat(sprintf("  %-9s %6.2f  %6.2f  %6.2f  (%d cases)\n", method, exp(mean(log(ratio))), min(ratio), max(ratio),
                length(ratio)))
  }
  invisible(x)
}
