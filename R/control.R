#' Tunables of `cholupdate_gpu()`
#'
#' `threads` and `device_memory` are the arguments to set; the defaults of the others, which `NULL` stands for, are
#' meant to be left alone. `str(cholupdate_control())` shows all values.
#'
#' @param threads The most threads of the CPU to use, to compute (method `"blocked"`), or to copy between R's memory and
#'   the GPU (methods `"stream"` and `"resident"`). The result has the same bits for any number. `NULL` is the number of
#'   cores, at most 16 and at most what the environment variable `OMP_THREAD_LIMIT` says. Small problems use fewer
#'   threads. `options(gpucholmod.threads =)` sets the default. R's BLAS (method `"refactor"`) has threads of its own,
#'   to which this does not apply.
#' @param device_memory The most device memory that a call may allocate, with methods `"stream"`, `"resident"` and
#'   `"panel"`, and, besides the factor, for a [gpu_factor()]. If that is too little, the error of class
#'   `gpucholmod_out_of_memory` tells how much is `needed`. A number of bytes, or a string such as `"256MB"`,
#'   `"1.5 GB"`, `"512MiB"` or `"4GiB"`. kB, MB, GB and TB are powers of 1000, KiB, MiB, GiB and TiB powers of 1024, in
#'   letters of either case. The memory that the driver needs for each process is not counted.
#' @param instructions The vector instructions of the CPU, for methods `"blocked"` and `"stream"`, in tests and
#'   measurements: `"avx512"`, `"avx2"` (with FMA), `"plain"` (those that the compiler uses by default for this family
#'   of processors), or `"auto"`, the first of these that the machine has. The results differ by rounding errors.
#' @param timeline Whether [last_cholupdate()] records a timeline of methods `"stream"` and `"resident"`, and of
#'   modifications of a [gpu_factor()].
#' @param blocks_per_kernel For method `"panel"`, as the next three arguments: the thread blocks of one kernel launch.
#'   Walder (2010) used 28 blocks of 32 threads with 16 elements each. A launch covers
#'   `blocks_per_kernel * threads_per_block` columns, and device memory grows with this number up to \eqn{n}.
#' @param threads_per_block The threads of a block, each of which works on one column: a multiple of 32, at most 256.
#' @param elements_per_thread The columns of `V` that a thread holds in registers at a time: 1, 4, 8, 16 or 32. A larger
#'   \eqn{k} is done in batches of this size.
#' @param panel_rows The height of a row block, whose diagonal block the CPU modifies.
#' @param loop_order The order of the two outer loops of method `"reference"`: `"A"` goes through R by rows, `"B"` by
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
