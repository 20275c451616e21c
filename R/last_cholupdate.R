state <- new.env(parent = emptyenv())

remember <- function(report) {
  state$last <- structure(report, class = "gpucholmod_report")
}

#' What the last call of `cholupdate_gpu()` did
#'
#' @return `NULL` before the first call; then, of the last call that computed something, a list of class
#'   `gpucholmod_report`:
#'   \item{n, k, downdate}{the problem}
#'   \item{backend, method, precision}{what was taken for it; `"auto"` is resolved}
#'   \item{device}{name of the GPU, `""` on the CPU}
#'   \item{seconds}{time of the modification itself, in seconds: without the checks of the input and, on the host, the
#'     copy of R to the result, but with all transfers to and from the GPU}
#'   \item{panels}{off-diagonal panels processed (method `"panel"`)}
#'   \item{device_bytes_peak}{most device memory held at once, in bytes (method `"panel"`)}
#'   \item{pivot}{0, or the failing pivot of a downdate that could not be done}
#'   \item{pinned}{whether the result could be page-locked for its transfers (backend `"cuda"`)}
#' @examples
#' R <- chol(diag(4) + 1)
#' invisible(cholupdate_gpu(R, 1:4, backend = "cpu"))
#' last_cholupdate()
#' @export
last_cholupdate <- function() {
  state$last
}

#' @export
print.gpucholmod_report <- function(x, ...) {
  where <- if (nzchar(x$device)) sprintf("%s (%s)", x$backend, x$device) else x$backend
  cat(sprintf("rank-%d %s of order %d: method \"%s\", backend %s, %s precision, %s s\n",
              as.integer(x$k), if (x$downdate) "downdate" else "update", as.integer(x$n), x$method, where, x$precision,
              format(x$seconds, digits = 3)))
  if (x$pivot > 0L) cat(sprintf("not done: the leading minor of order %d is not positive definite\n", x$pivot))
  if (x$panels > 0) {
    cat(sprintf("%d panels, at most %s of %s memory at once%s\n", as.integer(x$panels),
                format_bytes(x$device_bytes_peak), if (x$backend == "cuda") "device" else "emulated device",
                if (x$backend == "cuda" && !x$pinned) "; the result could not be page-locked" else ""))
  }
  invisible(x)
}

format_bytes <- function(bytes) {
  units <- c("B", "KiB", "MiB", "GiB")
  power <- min(max(0, floor(log(max(bytes, 1), 1024))), length(units) - 1)
  paste(format(bytes / 1024^power, digits = 3), units[[power + 1]])
}
