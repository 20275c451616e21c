#' Tunables of `cholupdate_gpu()`
#'
#' The defaults, which `NULL` stands for, are meant to be left alone, but for `threads` and `device_memory`;
#' `str(cholupdate_control())` shows them.
#'
#' @param threads The most threads of the CPU to use: to compute with (method `"blocked"`; the result is the same to the
#'   last bit with any number), or to copy between R's memory and the GPU (methods `"stream"` and `"resident"`). With
#'   `NULL` as many as there are cores, at most 16, and at most what the environment variable `OMP_THREAD_LIMIT` says.
#'   Small problems take fewer. The default can be set with `options(gpucholmod.threads =)`. It does not apply to R's
#'   BLAS (method `"refactor"`), which has threads of its own.
#' @param device_memory The most device memory that a call may allocate, with methods `"stream"`, `"resident"` and
#'   `"panel"`, and for a [gpu_factor()] besides it; where that is not enough, the error of class
#'   `gpucholmod_out_of_memory` tells what is `needed`. A number of bytes, or a string such as `"256MB"`, `"1.5 GB"`,
#'   `"512MiB"` or `"4GiB"`. kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024, in letters of
#'   either case. What the driver itself needs for a process comes on top.
#' @param instructions The vector instructions for the CPU to compute with, methods `"blocked"` and `"stream"`:
#'   `"avx512"`, `"avx2"` (with FMA), `"plain"` (what the compiler takes by default for the family of processors), or
#'   `"auto"`, the first of these that the machine has. The results differ by rounding errors. For tests and
#'   measurements.
#' @param timeline Whether [last_cholupdate()] is to hold a timeline of what methods `"stream"` and `"resident"` do,
#'   and modifications of a [gpu_factor()].
#' @param blocks_per_kernel Of method `"panel"`, as the next three: thread blocks of one kernel launch. Walder (2010)
#'   took 28 blocks of 32 threads with 16 elements each. A launch covers `blocks_per_kernel * threads_per_block`
#'   columns, and device memory grows with that up to \eqn{n}.
#' @param threads_per_block Threads of a block, each of which owns one column: a multiple of 32, at most 256.
#' @param elements_per_thread Columns of `V` that a thread holds in registers at a time: 1, 4, 8, 16 or 32. A larger
#'   \eqn{k} is done in batches of this size.
#' @param panel_rows Height of a row block, whose diagonal part the CPU does.
#' @param loop_order Order of the two outer loops of method `"reference"`: `"A"` goes through R by rows, `"B"` by
#'   columns, as it is stored. The arithmetic is the same.
#' @return A list of class `gpucholmod_control`.
#' @references Walder (2010), \doi{10.48550/arXiv.1011.1173}.
#' @examples
#' R <- chol(crossprod(matrix(rnorm(400), 20)))
#' V <- matrix(rnorm(40), 20)
#' cholupdate_gpu(R, V, control = cholupdate_control(threads = 1))[1:3, 1:3]
#' str(cholupdate_control(device_memory = "256MB"))
#' @export
cholupdate_control <- function(threads = getOption("gpucholmod.threads"), device_memory = Inf,
                               instructions = c("auto", "avx512", "avx2", "plain"), timeline = FALSE,
                               blocks_per_kernel = NULL, threads_per_block = NULL, elements_per_thread = NULL,
                               panel_rows = NULL, loop_order = c("B", "A")) {
  require_flag(timeline, "timeline")
  given <- list(blocks_per_kernel = blocks_per_kernel, threads_per_block = threads_per_block,
                elements_per_thread = elements_per_thread, panel_rows = panel_rows)
  counts <- lapply(names(given), function(i) if (is.null(given[[i]])) NA_integer_ else require_count(given[[i]], i))
  shape <- stats::setNames(as.list(rcpp_paper_shape(unlist(counts))), names(given))
  structure(
    c(shape, list(
      loop_order = match_choice(loop_order, c("B", "A"), "loop_order"),
      device_memory = require_bytes(device_memory, "device_memory"),
      threads = if (is.null(threads)) 0L
                else require_count(threads, if (missing(threads)) "gpucholmod.threads" else "threads"),
      instructions = match_choice(instructions, c("auto", "avx512", "avx2", "plain"), "instructions"),
      timeline = timeline,
      optimised_blas = has_optimised_blas()
    )),
    class = "gpucholmod_control"
  )
}

optimised_blas_names <- "openblas|mkl|blis|accelerate|veclib|armpl|atlas"

# Is true if R's BLAS is one that was written for speed, by its file name: with another, factorising afresh is never
# quicker than a modification.
has_optimised_blas <- function() {
  if (is.null(state$optimised_blas)) {
    state$optimised_blas <- grepl(optimised_blas_names, extSoftVersion()[["BLAS"]], ignore.case = TRUE)
  }
  state$optimised_blas
}

# Returns the list that take_control() in src/rcpp_request.cpp reads by these names, in this order. shape: see
# rcpp_paper_shape().
control_numbers <- function(control) {
  tunables <- names(formals(cholupdate_control))
  if (!inherits(control, "gpucholmod_control") || !is.list(control) || !all(tunables %in% names(control))) {
    stop_gpucholmod("bad_argument", "'control' must come from cholupdate_control()",
                    list(argument = "control", value = control))
  }
  given <- unclass(control)
  if (identical(given$threads, 0L)) given["threads"] <- list(NULL)
  checked <- do.call(cholupdate_control, given[tunables], quote = TRUE)  # it may have been changed since it was made
  list(threads = checked$threads, device_memory = checked$device_memory,
       instructions = number_of(checked$instructions, "instructions"), timeline = checked$timeline,
       optimised_blas = isTRUE(given$optimised_blas), loop_order = number_of(checked$loop_order, "loop_order"),
       shape = c(checked$blocks_per_kernel, checked$threads_per_block, checked$elements_per_thread, checked$panel_rows))
}

# Returns control_numbers() of the defaults.
default_control <- function() control_numbers(cholupdate_control())

# Returns one whole number, at least 1, as an integer.
require_count <- function(value, argument) {
  if (!is.numeric(value) || is.object(value) || length(value) != 1L || is.na(value) || value != round(value) ||
      value < 1 || value > .Machine$integer.max) {
    stop_gpucholmod("bad_argument", sprintf("%s must be one whole number, at least 1", named(argument)),
                    list(argument = argument, value = value))
  }
  as.integer(value)
}

# Returns a number of bytes, which may be given as a string.
require_bytes <- function(value, argument) {
  bytes <- if (is.character(value) && length(value) == 1L) parse_bytes(value) else value
  if (!is.numeric(bytes) || length(bytes) != 1L || is.na(bytes) || bytes < 0) {
    rule <- "must be one number of bytes, or a string such as \"256MB\" (powers of 1000) or \"4GiB\" (powers of 1024)"
    stop_gpucholmod("bad_argument", sprintf("'%s' %s", argument, rule), list(argument = argument, value = value))
  }
  as.double(bytes)
}

# Returns the bytes that a string such as "1.5 GB" stands for; NA for any other string, and for one with two meanings,
# as "4G".
parse_bytes <- function(text) {
  units <- c("", "b", "kb", "mb", "gb", "tb", "kib", "mib", "gib", "tib")
  sizes <- c(1, 1, 1000^(1:4), 1024^(1:4))
  form <- "^\\s*([0-9]+\\.?[0-9]*|\\.[0-9]+)\\s*([a-z]*)\\s*$"
  if (!grepl(form, text, ignore.case = TRUE)) return(NA_real_)
  unit <- tolower(sub(form, "\\2", text, ignore.case = TRUE))
  as.numeric(sub(form, "\\1", text, ignore.case = TRUE)) * sizes[match(unit, units)]
}
