#' What `cholupdate_gpu()` would do, and why
#'
#' Says which backend and method a call would take, how long it is expected to last and how much device memory it would
#' hold, without computing anything.
#'
#' Where neither `backend` nor `method` says otherwise, the GPU is taken if it is expected to be quicker than the CPU.
#' What is expected comes from a model with constants that were measured, for the GPU, on one machine with an NVIDIA
#' H200 (see `system.file("design", "stream-method.md", package = "gpucholmod")`), for the CPU on its host and on one
#' other (`"block-householder.md"` there): elsewhere it is a guess. On the CPU, a large `k` may make it quicker to
#' factorise \eqn{A \pm VV'}{A +/- VV'} afresh, if R has a BLAS that was written for speed, such as OpenBLAS. Starting
#' CUDA takes some tenths of a second, once a session; it is put off until the calls so far would have saved as much. So
#' one call for a small factor does not wait for a GPU, and a loop of them soon gets one. The choice depends on the
#' sizes of the calls alone, not on measured times: the same script makes the same choices. With `backend = "cuda"` or
#' `"cpu"` there is nothing to choose.
#'
#' @param n Order of the factor; or the factor itself: a matrix, of which only the size is looked at, or a
#'   [factor_file()].
#' @param k Columns of `V`; or `V` itself.
#' @param ... Must be empty: the arguments below are given by name.
#' @param weights Of the columns, as for [cholupdate_gpu()]: up to 16 of each sign share a pass over a factor on the
#'   GPU, those of 0 cost nothing.
#' @inheritParams cholupdate_gpu
#' @return A list of class `gpucholmod_plan`:
#'   \item{backend, method}{what would be taken}
#'   \item{why}{a sentence}
#'   \item{expected}{seconds of a whole call: on the `cpu`, on the `gpu` once CUDA has started (`NA` where the
#'     package was built without CUDA), and to `start` it, 0 if it has been started already}
#'   \item{panels, device_bytes}{of methods `"stream"` and `"resident"`: how many panels, and the device memory held
#'     at once}
#'   \item{threads}{of the CPU that would compute (method `"blocked"`) or move data}
#'   \item{instructions}{vector instructions that the CPU would compute with, `""` where it does not}
#' @seealso [cholupdate_gpu()]; [last_cholupdate()] tells what was done.
#' @examples
#' cholupdate_plan(5000, 16)
#' cholupdate_plan(100, 1)$backend
#' cholupdate_plan(16384, 16, method = "stream", backend = "cpu",
#'                 control = cholupdate_control(device_memory = "64MB"))
#' @export
cholupdate_plan <- function(n, k, ..., weights = NULL, precision = c("double", "single"),
                            backend = getOption("gpucholmod.backend", "auto"),
                            method = c("auto", "blocked", "refactor", "reference", "panel", "stream", "resident"),
                            control = cholupdate_control()) {
  if (...length()) require_no_more(...)
  control <- control_numbers(control)
  n <- if (is.null(dim(n))) require_size(n, "n") else as.double(dim(n)[[1L]])
  k <- if (!is.null(dim(k))) as.double(dim(k)[[2L]]) else if (length(k) == n && n != 1) 1 else require_size(k, "k")
  single <- match_choice(precision, choices$precision, "precision") == "single"
  request <- new_request(single = single, backend = if (!missing(backend)) backend_number(backend),
                         method = method_number(method, ordinary_methods), control = control,
                         weights = check_weights(weights, FALSE))
  structure(with_names(c(list(n = n, k = k), rcpp_cholupdate_plan(n, k, request))), class = "gpucholmod_plan")
}

largest_size <- 1e7  # of which a matrix would take 800 TB

# Checks a size, which is one whole number, or a matrix.
require_size <- function(value, argument) {
  if (!is.numeric(value) || length(value) != 1L || is.na(value) || value != round(value) || value < 0 ||
      value > largest_size) {
    stop_gpucholmod("bad_argument",
                    sprintf("'%s' must be one whole number up to %.0e, or a matrix", argument, largest_size),
                    list(argument = argument, value = value))
  }
  as.double(value)
}

#' @export
print.gpucholmod_plan <- function(x, ...) {
  cat(sprintf("rank-%.0f modification of order %.0f: method \"%s\", backend %s\n  %s\n", x$k, x$n, x$method, x$backend,
              x$why))
  if (x$method == "blocked") {
    cat(sprintf("  %d thread%s, instructions \"%s\"\n", x$threads, if (x$threads == 1L) "" else "s", x$instructions))
  }
  if (x$panels > 0) {
    cat(sprintf("  %.0f panel%s, %s of device memory, %d thread%s to move data\n", x$panels,
                if (x$panels == 1) "" else "s", format_bytes(x$device_bytes), x$threads,
                if (x$threads == 1L) "" else "s"))
  }
  invisible(x)
}
