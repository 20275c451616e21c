#' What `cholupdate_gpu()` would do, and why
#'
#' Says which backend and method a call would use, how long it is expected to take, and how much device memory it would
#' need, without computing anything.
#'
#' Unless `backend` or `method` says otherwise, the GPU is used if it is expected to be quicker than the CPU. The
#' expected times come from a model. Its constants were measured for the GPU on one machine with an NVIDIA H200 (see
#' `system.file("design", "stream-method.md", package = "gpucholmod")`), and for the CPU on its host and on one other
#' machine (`"block-householder.md"` there). On other machines they are a guess. If `k` is large, and R has an optimised
#' BLAS such as OpenBLAS, factorising \eqn{A \pm VV'}{A +/- VV'} again may be quicker on the CPU. Starting CUDA takes
#' some tenths of a second, once a session. The package starts it when the calls so far would have saved as much time on
#' a GPU. So a single call for a small factor does not wait for a GPU, and a loop of calls soon uses one. The choice
#' depends on the sizes of the calls alone, not on measured times: the same script makes the same choices.
#' With `backend = "cuda"` or `"cpu"` there is nothing to choose.
#'
#' @param n The order of a factor that is an ordinary matrix; or the factor itself: a matrix, a handle from
#'   [chol_factor()], [gpu_factor()] or [gpu_chol()], or a [factor_file()]. Of a matrix only the size is used, and
#'   whether it is of class `float32`. A matrix that cannot be a factor is an error, as for [cholupdate_gpu()].
#' @param k The number of columns of `V`, or `V` itself.
#' @param precision,backend,method As for [cholupdate_gpu()] of such a factor. For a handle see
#'   [its method][cholupdate_gpu.chol_factor], for a file [that for files][cholupdate_gpu.factor_file].
#' @param ... Must be empty: the arguments below are given by name.
#' @param weights Weights of the columns, as for [cholupdate_gpu()]. On a GPU, up to 16 columns of each sign share a
#'   pass over the factor; columns of weight 0 cost nothing.
#' @inheritParams cholupdate_gpu
#' @return A list of class `gpucholmod_plan`:
#'   \item{backend, method}{what the call would use}
#'   \item{why}{the reason, as a sentence}
#'   \item{expected}{the seconds of a whole call, without reading and writing files: `cpu`, on the CPU; `gpu`, on the
#'     GPU once CUDA has started (`NA` if the package was built without CUDA); `start`, to start CUDA, 0 if it has been
#'     started. All are `NA` for handles, whose factors stay where they are. The model counts 0.2 ms for each call on
#'     the CPU and 2 ms on the GPU, however small the factor is, since it is to choose between them for large ones. A
#'     call for a factor of order 10 takes some microseconds}
#'   \item{panels, device_bytes}{for methods `"stream"` and `"resident"`: the number of panels, and the device memory
#'     that is held at once}
#'   \item{threads}{the threads of the CPU that would compute (method `"blocked"`) or move data}
#'   \item{instructions}{the vector instructions with which the CPU would compute, `""` if it would not}
#' @seealso [cholupdate_gpu()]; [last_cholupdate()] tells what was done.
#' @examples
#' cholupdate_plan(5000, 16)
#' cholupdate_plan(100, 1)$backend
#' cholupdate_plan(16384, 16, method = "stream", backend = "cpu",
#'                 control = cholupdate_control(device_memory = "64MB"))
#' @export
cholupdate_plan <- function(n, k, ..., weights = NULL, precision = c("double", "single"),
                            backend = getOption("gpucholmod.backend", "auto"),
                            method = c("auto", "blocked", "refactor", "reference", "panel", "stream", "resident",
                                       "persistent", "stepwise"),
                            control = cholupdate_control()) {
  if (...length()) require_no_more(...)
  if (missing(n) || missing(k)) require_given("n", "k")
  control <- control_numbers(control)
  known <- planned_factor(n)
  # An argument that is replaced before it is evaluated would keep a reference to `n`.
  kept_in <- if (!missing(precision)) {
    match_choice(precision, if (is.null(known$precision)) choices$precision else known$precision, "precision")
  } else if (is.null(known$usual)) known$precision else known$usual
  if (!missing(backend)) match_choice(backend, known$backends, "backend")
  asked <- if (known$where %in% c("gpu", "held")) known$backends[[1L]] else if (!missing(backend)) backend
  request <- new_request(single = identical(kept_in, "single"), backend = if (!is.null(asked)) backend_number(asked),
                         method = if (missing(method)) 0L else method_number(method, known$methods), control = control,
                         weights = check_weights(weights, FALSE))
  k <- planned_columns(k, known$n)
  plan <- rcpp_cholupdate_plan(known$n, k, request, number_of(known$where, "where"))
  structure(with_names(c(list(n = known$n, k = k), plan)), class = "gpucholmod_plan")
}

# Returns what is known of the factor of a plan, as known_factor() does. Stops because of what cholupdate_gpu() does not
# take. No function is made here: it would refer to `n` for good, which cholupdate_overwrite() could not overwrite then.
planned_factor <- function(n) {
  if (inherits(n, "factor_file")) {
    return(known_factor(present(n)$n, "file", c("auto", "stream"), precision = "double"))
  }
  if (inherits(n, "process_factor")) stop_not_supported("cholupdate_plan", "a plan")
  if (inherits(n, "chol_batch")) {
    stop_bad_argument("n", class(n), "is a batch, for which cholupdate_batch() has one method, on its device")
  }
  if (inherits(n, "chol_factor")) {
    live(n, "n")
    if (inherits(n, "gpu_factor")) {
      return(known_factor(n$n, "gpu", c("auto", "persistent", "stepwise"), c("cuda", "auto"), n$precision))
    }
    return(known_factor(n$n, "held", c("auto", "blocked"), c("cpu", "auto"), n$precision))
  }
  if (is_float32(n)) {
    require_factor_shape(n@Data, "n")
    return(known_factor(nrow(n@Data), "memory", ordinary_methods, usual = "single"))
  }
  known_factor(if (is.null(dim(n))) require_size(n, "n") else order_of_matrix(n), "memory", ordinary_methods)
}

# list(n, where, methods, backends, precision, usual); `precision` is the only one that the factor can have, or NULL;
# `usual` that which is computed in if none is asked for.
known_factor <- function(n, where, methods, backends = choices$backend, precision = NULL, usual = NULL) {
  list(n = as.double(n), where = where, methods = methods, backends = backends, precision = precision, usual = usual)
}

# Returns the order of a matrix that can be a factor.
order_of_matrix <- function(R) {
  if (isS4(R)) {
    open_factor(R, argument = "n")
    return(dim(R)[[1L]])
  }
  if (!is.null(attr(R, "pivot", exact = TRUE))) stop_pivoted(attr(R, "pivot", exact = TRUE), "n")
  if (!is.numeric(R) || is.object(R)) stop_not_numeric(R, "n")
  require_factor_shape(R, "n")
  looks <- rcpp_other_triangle(if (is.double(R)) R else as_double(R), FALSE)
  if (identical(choice_of(looks, "other_triangle"), "symmetric")) check_other_triangle(looks, FALSE, "n")
  nrow(R)
}

# Returns the number of columns of V, which is given as such or by V itself.
planned_columns <- function(k, n) {
  if (is.null(dim(k)) && !is_float32(k) && (length(k) != n || n == 1)) return(require_size(k, "k"))
  as.double(ncol(open_columns(k, n, float32 = FALSE, "k", sprintf("the factor is %.0f x %.0f", n, n))))
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
