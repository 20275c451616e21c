state <- new.env(parent = emptyenv())

# Replaces the numbers that the core returns for choices by their names.
with_names <- function(x) {
  for (what in intersect(c("backend", "method", "precision", "instructions"), names(x))) {
    x[[what]] <- choice_of(x[[what]], what)
  }
  if (identical(x$instructions, "auto")) x$instructions <- ""
  if (isTRUE(x$members > 0)) x$method <- "batch"
  x
}

#' What the last call of `cholupdate_gpu()` or `cholupdate_batch()` did
#'
#' @return `NULL` before the first call. After that, a list of class `gpucholmod_report` about the last call that
#'   computed something:
#'   \item{n, k, downdate, removed, scale}{the problem; `removed` is the number of columns of V that were taken away}
#'   \item{members}{the number of factors that [cholupdate_batch()] modified; 0 for one factor. An item above is `NA` if
#'     it differs between members}
#'   \item{backend, method, precision}{what the call used; `"auto"` is resolved, and the method of batches is `"batch"`}
#'   \item{device}{the name of the GPU, `""` on the CPU}
#'   \item{gpus}{the number of GPUs that took part. For a factor on several GPUs, the first GPU does the work for which
#'     not all of them have room}
#'   \item{seconds}{the time in seconds. For methods `"blocked"`, `"stream"` and `"resident"`: the time of everything
#'     except the allocation of the result, as R is read, checked and modified, and the result written, at the same
#'     time. For the other methods: without checking the input and copying R to the result on the host, but with all
#'     transfers to and from the GPU. For a [gpu_factor()] and for batches on a GPU: the time on the GPU, without the
#'     transfer of V}
#'   \item{panels}{the number of panels: off-diagonal panels (method `"panel"`), or panels of whole columns (`"stream"`,
#'     `"resident"`)}
#'   \item{device_bytes_peak}{the most device memory that was held at once, in bytes (for these three methods; for a
#'     [gpu_factor()] the memory that the call allocated besides the factor)}
#'   \item{pivot}{0, or the failing pivot of a downdate that was not possible, for a batch that of the first such
#'     member}
#'   \item{pinned}{whether the result could be page-locked for its transfers (method `"panel"`, backend `"cuda"`)}
#'   \item{blocks}{the number of row blocks (of a [gpu_factor()], and with methods `"stream"` and `"resident"` on a
#'     GPU)}
#'   \item{fallbacks}{the number of those row blocks that were modified by the slower, always stable Householder steps,
#'     because a test said that the unscaled step would lose accuracy}
#'   \item{rescalings}{the number of row blocks before which V was scaled to keep its numbers in range}
#'   \item{in_place}{whether a [gpu_factor()] was changed in place}
#'   \item{threads}{the number of threads of the CPU that computed (method `"blocked"`) or moved data (methods
#'     `"stream"` and `"resident"`)}
#'   \item{instructions}{the vector instructions with which the CPU computed (methods `"blocked"` and `"stream"`):
#'     `"avx512"`, `"avx2"` or `"plain"`}
#'   \item{timeline}{if [cholupdate_control()] asked for it: a data frame with a row for each piece of work, with its
#'     `stage` (`"fill"` and `"empty"` of staging buffers by the CPU; `"send"`, `"modify"` and `"fetch"` by the GPU),
#'     `panel`, `begin` and `end` in seconds}
#'
#'   Items that do not apply to the method are 0, `FALSE` or `""`.
#' @examples
#' R <- chol(diag(4) + 1)
#' invisible(cholupdate_gpu(R, 1:4, backend = "cpu"))
#' last_cholupdate()
#' @export
last_cholupdate <- function() {
  report <- rcpp_last_call()
  if (!is.null(report)) structure(with_names(report), class = "gpucholmod_report")
}

#' @export
print.gpucholmod_report <- function(x, ...) {
  on <- if (x$gpus > 1L) sprintf("%d times %s", x$gpus, x$device) else x$device
  where <- if (nzchar(on)) sprintf("%s (%s)", x$backend, on) else x$backend
  if (identical(x$method, "batch")) return(invisible(print_batch_report(x, where)))
  cat(sprintf("rank-%d %s of order %d: method \"%s\", backend %s, %s precision, %s s\n",
              as.integer(x$k), if (x$downdate) "downdate" else if (x$removed > 0) "modification" else "update",
              as.integer(x$n), x$method, where, x$precision, format(x$seconds, digits = 3)))
  if (nzchar(x$instructions) && x$panels == 0) {
    cat(sprintf("%d thread%s, instructions \"%s\"\n", x$threads, if (x$threads == 1L) "" else "s", x$instructions))
  }
  if (x$pivot > 0L) cat(sprintf("not done: the leading minor of order %d is not positive definite\n", x$pivot))
  if (x$panels > 0) {
    cat(sprintf("%d panel%s, at most %s of %s memory at once%s\n", as.integer(x$panels), if (x$panels == 1) "" else "s",
                format_bytes(x$device_bytes_peak), if (x$backend == "cuda") "device" else "emulated device",
                if (x$threads > 0) sprintf(", %d thread%s to move data", x$threads, if (x$threads == 1L) "" else "s")
                else if (x$backend == "cuda" && !x$pinned) "; the result could not be page-locked" else ""))
  }
  if (x$blocks > 0) {
    cat(sprintf("%s%d blocks, %d by Householder steps%s\n", if (x$in_place) "in place, " else "",
                as.integer(x$blocks), as.integer(x$fallbacks),
                if (x$rescalings > 0) sprintf(", V rescaled before %d", as.integer(x$rescalings)) else ""))
  }
  invisible(x)
}

# Prints the report of a batch.
print_batch_report <- function(x, where) {
  size <- if (is.na(x$n)) "" else sprintf(", of order %d, of rank %d", as.integer(x$n), as.integer(x$k))
  cat(sprintf("%s of %d factors%s: backend %s, %s precision, %s s\n", if (x$downdate) "downdate" else "modification",
              as.integer(x$members), size, where, x$precision, format(x$seconds, digits = 3)))
  if (x$pivot > 0L) cat(sprintf("a member's leading minor of order %d is not positive definite\n", x$pivot))
  x
}

# Formats a number of bytes with a unit.
format_bytes <- function(bytes) {
  units <- c("B", "KiB", "MiB", "GiB")
  power <- min(max(0, floor(log(max(bytes, 1), 1024))), length(units) - 1)
  paste(format(bytes / 1024^power, digits = 3), units[[power + 1]])
}
