# The handle: an environment, so that every variable that refers to a factor sees what happens to it. Its fields:
#
#   pointer        external pointer to the HeldFactor (src/base/held_factor.h, src/rcpp_handle.h); null when it is gone
#   status         "live", "freed" or "half_modified"
#   n, precision, device, device_name, bytes, capacity
#                  what the HeldFactor tells of itself; `device` is NA if the factor is in ordinary memory
#   devices        all devices that hold the factor; `device` is the first of them
#   processes, process, led
#                  only for a factor over several processes: how many processes there are, the number of this process,
#                  from 0, and whether process 0 holds the factor on the GPUs of all; `bytes` counts the columns of this
#                  process, or its share
#   uplo, dimnames the form in which as.matrix() returns the factor
#   trace          the trace of A, as far as it is known without reading the factor
#   trace_error    a bound on the error of `trace`, counted as `error` is, since the factor was last read
#   modifications, error
#                  both counted since the last factorisation: see chol_factor_drift.R
#   jitter         the most that was added to the diagonal of A to make it positive definite; not there otherwise
#
# What is called at every modification reads them by .subset2(): `$` looks for a method of the class every time. They
# can be changed by hand; what fits no more is found where a handle is used (src/rcpp_handle.cpp).

# Makes a handle from `made`, the list that src/rcpp_held_factor.cpp returns.
new_factor <- function(made, uplo, dimnames, trace = rcpp_factor_trace(made$pointer), modifications = 0L, error = 0) {
  fields <- c(with_names(made), list(status = "live", uplo = uplo, dimnames = dimnames, trace = trace,
                         trace_error = 0, modifications = modifications, error = error))
  kind <- if (!is.null(made$processes)) "process_factor" else if (is.na(made$device)) "cpu_factor" else "gpu_factor"
  structure(list2env(fields, parent = emptyenv()), class = c(kind, "chol_factor"))
}

# Makes a handle with the fields of `f` and another pointer, which may be set later.
descendant <- function(f, pointer = NULL) rcpp_handle_descendant(f, pointer)

# Returns the message that says why a handle, of a factor or of a batch, cannot be used. reason: from
# rcpp_handle_trouble().
invalid_message <- function(reason) {
  switch(
    reason,
    restored = "it comes from a file or another process, and its data stayed in the process that made it",
    freed = "it was given back by free()",
    half_modified = "a modification in place failed under way, which left the factor half modified",
    damaged = "a field of the handle was changed by hand; a new handle has to be made",
    in_use = "a call that has not ended uses it, and one of the two calls changes it, as a finalizer may"
  )
}

# Stops because a handle cannot be used. what: "factor" or "batch".
stop_invalid <- function(what, reason) {
  stop_gpucholmod("invalid_factor", sprintf("this %s cannot be used: %s", what, invalid_message(reason)),
                  list(reason = reason))
}

# Returns the handle `f`; stops if it cannot be used.
live <- function(f, argument = "f") {
  if (!inherits(f, "chol_factor")) {
    why <- "must be a handle from chol_factor(), gpu_factor() or gpu_chol()"
    stop_gpucholmod("bad_argument", sprintf("'%s' %s", argument, why), list(argument = argument, value = f))
  }
  reason <- rcpp_handle_trouble(f)
  if (!is.null(reason)) stop_invalid("factor", reason)
  f
}

# Returns a field of a handle that holds one string.
own_choice <- function(f, field) {
  value <- .subset2(f, field)
  if (!is.character(value) || length(value) != 1L) stop_invalid("factor", "damaged")
  value
}

# Is true if a modification in place failed half way: Begun in src/rcpp_fields.h has then freed the factor.
is_half_modified <- function(f) identical(.subset2(f, "status"), "half_modified")

# Returns the end of the message of an error that left the factor half modified; otherwise NULL.
loss_of <- function(f) if (is_half_modified(f)) "; the factor is half modified and cannot be used any more"

# Returns the order of the factors of a handle, which need not be usable.
order_of <- function(f) {
  n <- if (is.environment(f)) .subset2(f, "n")
  if (!is.integer(n) || length(n) != 1L) stop_invalid(if (inherits(f, "chol_batch")) "batch" else "factor", "damaged")
  n
}

# Evaluates call(). If memory runs out, collects garbage, which frees the factors of lost handles, and calls once more,
# unless `changed`, the handle that the call changes, is half modified.
with_room <- function(call, changed = NULL) {
  tryCatch(call(), gpucholmod_out_of_memory = function(e) {
    if (is_half_modified(changed)) stop(e)
    gc()
    call()
  })
}

#' Copy a handle, free it, convert it to a matrix
#'
#' @param x A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @param ... Ignored.
#'
#' @return `copy_factor()`: a handle with data of its own, in the same place. Modifications of one handle do not change
#'   the other.
#'
#' `free()`: `NULL`, invisibly. The memory is given back: on a GPU at once, ordinary memory at the next garbage
#' collection. This happens whatever other variables refer to the handle; every later use of the handle is an error of
#' class `gpucholmod_invalid_factor`. To free a handle that cannot be used any more has no effect.
#'
#' `as.matrix()`: the factor as an ordinary matrix of doubles, with its dimnames, upper or lower triangular as it was
#' given. The other triangle is exactly zero. If the factor is divided over several processes, process 0 gets the
#' matrix, and the others get `NULL`.
#' @seealso [chol_factor()]
#' @examples
#' f <- chol_factor(chol(diag(3) + 1))
#' g <- copy_factor(f)
#' cholupdate_gpu(g, 1:3, in_place = TRUE)
#' as.matrix(f)
#' as.matrix(g)
#' free(g)
#' g
#' @export
copy_factor <- function(x, ...) {
  if (missing(x)) require_given("x")
  UseMethod("copy_factor")
}

#' @rdname copy_factor
#' @export
copy_factor.chol_factor <- function(x, ...) {
  live(x)
  descendant(x, with_room(function() rcpp_factor_copy(x)))
}

#' @export
copy_factor.default <- function(x, ...) live(x, "x")

#' @rdname copy_factor
#' @export
free <- function(x, ...) {
  if (missing(x)) require_given("x")
  UseMethod("free")
}

#' @export
free.default <- function(x, ...) live(x, "x")

#' @rdname copy_factor
#' @export
free.chol_factor <- function(x, ...) {
  abandon(x, "freed")
}

# Frees the memory of a handle, of a factor or of a batch; `status` says why it cannot be used from now on.
abandon <- function(f, status) {
  if (rcpp_handle_free(f)) assign("status", status, envir = f)
  invisible(NULL)
}

#' @rdname copy_factor
#' @export
as.matrix.chol_factor <- function(x, ...) {
  live(x)
  with_room(function() rcpp_factor_download(x, number_of(x$uplo, "uplo"), x$dimnames))
}

#' @export
dim.chol_factor <- function(x) {
  rep(order_of(x), 2L)
}

#' @export
dimnames.chol_factor <- function(x) {
  order_of(x)
  .subset2(x, "dimnames")
}

# Returns lines that describe a factor, its place and its past, or say why it cannot be used.
describe_factor <- function(f) {
  reason <- rcpp_handle_trouble(f)
  if (identical(reason, "damaged")) return(c("<chol_factor>", paste("cannot be used:", invalid_message(reason))))
  shape <- sprintf("<%s> %d x %d, %s, %s precision", class(f)[[1L]], f$n, f$n, f$uplo, f$precision)
  if (!is.null(reason)) return(c(shape, paste("cannot be used:", invalid_message(reason))))
  past <- sprintf("modifications since the last factorisation: %d", f$modifications)
  if (f$modifications > 0L) past <- sprintf("%s, drift %.1e", past, drift(f))
  on_device <- function(devices) sprintf("on %s (%s)", devices, f$device_name)
  place <- if (isTRUE(f$led)) {
    sprintf("on the GPUs of processes 0 to %d, where process 0 holds it; this is process %d, %s",
            f$processes - 1L, f$process, on_device(sprintf("device %d", f$device)))
  } else if (!is.null(f$processes)) {
    sprintf("%s, in process %d of 0 to %d, which have blocks of columns in turn",
            if (is.na(f$device)) "here" else on_device(sprintf("device %d", f$device)), f$process, f$processes - 1L)
  } else {
    if (is.na(f$device)) "in ordinary memory" else on_device(describe_devices(f))
  }
  if (!is.null(f$jitter)) past <- sprintf("%s, %.1e added to the diagonal", past, f$jitter)
  room <- if (f$capacity > f$n) sprintf(", room for %d x %d", f$capacity, f$capacity)
  c(shape, paste0(format_bytes(f$bytes), " ", place, room), past)
}

# Returns "device 0", or "devices 0 (1.2 GiB), 1 (1.1 GiB)".
describe_devices <- function(f) {
  if (length(f$devices) == 1L) return(sprintf("device %d", f$device))
  paste("devices", paste0(f$devices, " (", vapply(rcpp_factor_shares(f), format_bytes, ""), ")", collapse = ", "))
}

#' @export
format.chol_factor <- function(x, ...) {
  paste(describe_factor(x), collapse = ", ")
}

#' @export
print.chol_factor <- function(x, ...) {
  lines <- describe_factor(x)
  writeLines(c(lines[1L], paste0("  ", lines[-1L])))
  invisible(x)
}

#' @importFrom utils str
#' @export
str.chol_factor <- function(object, ...) {
  cat(" ", format(object), "\n", sep = "")
}
