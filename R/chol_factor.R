#' A Cholesky factor with memory of its own
#'
#' `chol_factor()` keeps a Cholesky factor where it is modified and used again and again: in ordinary memory, or in the
#' memory of a GPU. `gpu_factor()` puts a factor on a GPU. `gpu_chol()` puts a symmetric positive definite matrix on a
#' GPU and factorises it there. All three return a *handle*, which other functions take in place of a matrix: they
#' modify the factor ([cholupdate_gpu()][cholupdate_gpu.chol_factor], in place on request) and use it
#' ([solve()][solve.chol_factor] and others) where it is stored. So the same code runs with and without a GPU.
#'
#' @param R The Cholesky factor: the upper triangular matrix that [chol()] returns, or anything else that
#'   [cholupdate_gpu()] accepts, such as a `dtrMatrix` or `Cholesky` object of package \pkg{Matrix}, or a `float32`
#'   matrix of package \pkg{float}. The first unnamed argument is `R`, even after `A = `. Rows with a negative
#'   diagonal entry are multiplied by -1. Zeros on the diagonal, such as those of `matrix(0, n, n)`, are accepted,
#'   and can be updated. The other triangle is not used. A diagonal matrix is taken for a factor: if \eqn{A} itself
#'   is diagonal, write `chol_factor(A = A)`. `R` may also be a [factor_file()]: its factor is sent to one GPU or
#'   several without being whole in ordinary memory.
#' @param A A symmetric positive definite matrix, an ordinary one or of class `Matrix` or `float32`. Only its upper
#'   triangle is read, so a lower triangular matrix is an error. `chol_factor(A = A)`, without `R`, factorises
#'   `A`, on the GPU if the factor is kept there.
#' @param jitter The most that may be added to the diagonal of `A`: see section Jitter. The default adds nothing. If `R`
#'   is given, there is no such diagonal, and a `jitter` above 0 is an error.
#' @param uplo `"upper"` for \eqn{A = R'R}, `"lower"` for a lower triangular factor, \eqn{A = RR'}. `as.matrix()`
#'   returns the factor in this form. `dtrMatrix` and `Cholesky` objects carry this information themselves.
#' @param precision The precision in which the factor is stored and modified, `"double"` or `"single"`. The default is
#'   the precision of `R` or `A`.
#' @param backend Where to keep the factor: `"cuda"`, on a GPU; `"cpu"`, in ordinary memory; `"auto"`, on a GPU if one
#'   can be used and the order of the factor, or `capacity`, is at least 2,000, otherwise in ordinary memory.
#'   `options(gpucholmod.backend =)` sets the default.
#' @param device Which GPU: its `id` in `gpu_info()$devices`, or `NULL` for the first GPU that can be used.
#'   `options(gpucholmod.device =)` sets the default. With `backend = "cpu"`, it is an error to give `device` or
#'   `devices`.
#' @param devices Several GPUs of this machine that hold the factor together: their ids, or `"all"` for every GPU that
#'   can be used. `NULL` stands for `device` alone. See section Several GPUs.
#' @param capacity The number of rows and columns to reserve room for. Up to this number, [cholinsert_gpu()] in place
#'   appends rows and columns without moving the factor. If `A` is factorised on a GPU, `capacity` is an error.
#' @param processes `TRUE` divides the factor among all processes that MPI has started; all of them must make this call:
#'   see [process_info()]. Process 0 gives `R`; the others may give `NULL`. With `backend = "cuda"`, each process uses a
#'   GPU.
#' @param ... Must be empty.
#'
#' @return A handle of class `chol_factor` and of a second class that says where the factor is: `gpu_factor`,
#'   `cpu_factor` or `process_factor`. `gpu_chol()` makes an upper factor.
#'
#' @section Handles:
#' A handle refers to data, as an environment does to its contents: assigning it or passing it to a function copies the
#' handle, not the data. After `g <- f`, the effects of `cholupdate_gpu(f, V, in_place = TRUE)` and `free(f)` are seen
#' through `g` too. [copy_factor()] makes an independent handle, and so does
#' [cholupdate_gpu()][cholupdate_gpu.chol_factor] without `in_place = TRUE`.
#'
#' These functions take a handle:
#'
#' | Of the factor | |
#' |---|---|
#' | [cholupdate_gpu()][cholupdate_gpu.chol_factor] | the factor of \eqn{A + VV'} or \eqn{A - VV'} |
#' | [as.matrix()][as.matrix.chol_factor] | the triangle, as an ordinary matrix |
#' | `diag()`, `dim()`, `dimnames()` | its diagonal, order and names |
#' | [solve_forward()], [solve_back()] | \eqn{R'^{-1}b}, \eqn{R^{-1}b} |
#' | [cholinsert_gpu()], [choldelete_gpu()], [cholshift_gpu()] | insert, delete and move rows and columns of \eqn{A} |
#' | `%*%` (R 4.3.0 or later), `crossprod()`, `f[i, j]`, `t()` | multiply by the factor, index it: [factor_matrix] |
#' | [draw()] | draws from a normal distribution with covariance or precision \eqn{A} |
#' | [write_factor()] | write the factor to a file |
#' | [copy_factor()], [free()] | copy the data to another handle; give the memory back |
#' | [all.equal()][condition_number] | whether two factors are the same, apart from rounding |
#' | `print()`, `format()`, `str()`, [summary()][summary.chol_factor] | a description, and the condition of \eqn{A} |
#' | [drift()] | an estimate of the rounding errors of all modifications |
#'
#' | Of the matrix \eqn{A} | |
#' |---|---|
#' | [solve()][solve.chol_factor], [solve_factor()] | \eqn{A^{-1}b}, \eqn{A^{-1}} |
#' | [chol2inv()][solve.chol_factor] | \eqn{A^{-1}} |
#' | [determinant()][solve.chol_factor], [logdet()] | the determinant |
#' | [kappa()][condition_number], [rcond()][condition_number] | its condition, estimated |
#' | [chol()][condition_number] | its upper triangular factor |
#' | [solve_modified()] | solutions and determinants for many modifications of \eqn{A} |
#'
#' A modification in place in ordinary memory allocates no second factor, with one exception: a factor of at most 256
#' MiB that is downdated again and again. From the 17th downdate on, such a factor keeps as much memory again, and a
#' downdate takes no more than 1.4 times as long as an update. A call of [cholupdate_gpu()] for a matrix allocates its
#' result every time. From n = 300 to 5,000, with k = 1 and 16, a modification in place took 0.14 to 0.61 times as long
#' as a call for a matrix (version 0.25.0, `stored_measurements("readme")`).
#'
#' The memory is given back when the last reference to the handle is gone and R collects its garbage; [free()] gives
#' memory of a GPU back at once. R does not know how full a GPU is: if a GPU has too little memory, the functions of
#' this package call [gc()] once and try again.
#'
#' A call with a handle that cannot be used is an error of class `gpucholmod_invalid_factor`, whose field `reason` says
#' why:
#'
#' | `reason` | |
#' |---|---|
#' | `"freed"` | [free()] has given the memory back |
#' | `"restored"` | the handle comes from a file or another process |
#' | `"half_modified"` | a modification in place failed before it was complete |
#' | `"damaged"` | a field of the handle was changed by hand |
#' | `"in_use"` | another call, which has not ended, uses the factor, and one of the two calls changes it |
#'
#' `"in_use"` can happen in a finalizer, which R may run whenever it allocates memory, even during a call of this
#' package. A finalizer may free a factor that the call uses: the memory is given back when the call has ended.
#'
#' The data belong to one process. A handle that was saved and read back by [readRDS()] or [load()], or that was sent to
#' a cluster worker, can be printed, but not used: save `as.matrix(f)` instead. In a process forked from this one
#' ([parallel::mclapply()]), a factor in ordinary memory is a copy. A factor on a GPU cannot be used there: the error
#' has the class `gpucholmod_backend_unavailable` and the reason `"forked"`.
#'
#' @section Several GPUs:
#' With `devices`, strips of 128 columns are stored on the GPUs in turn, so a factor may be as large as the memory of
#' all GPUs together. Each GPU updates its own strips when the factor is modified, and works with them when a system is
#' solved with a large factor; every other operation runs on the first GPU, which reads the memory of the others. All
#' functions for handles accept such a factor. Every bit of a modified factor is the same on any number of GPUs. A
#' solution \eqn{R^{-1}b} that several GPUs compute together has the same bits each time, but differs from the solution
#' of one GPU by rounding errors. The GPUs must have one compute capability: others are an error of class
#' `gpucholmod_bad_argument`. They also need access to each other's memory, as over NVLink. Without it the error has the
#' class `gpucholmod_backend_unavailable`, the reason `"no_peer_access"`, and the fields `device` and `peer`. On two
#' H200, an update with k = 16 takes 0.78 of the time on one H200 for n = 16,384, 0.58 for 32,768, and 0.49 for 65,536;
#' for 5,000, it takes longer than on one. For n = 16,384, solving with one right-hand side takes 1.41 ms on two H200,
#' and 1.20 ms on one.
#'
#' @section Jitter:
#' Rounding often makes the covariance matrix of a Gaussian process just not positive definite. If `jitter` is above 0,
#' a factorisation that fails is repeated with a number added to all diagonal entries of `A`. This number is at first 8
#' units of rounding of the largest diagonal entry, then ten times as much each time, and at last `jitter` itself. So a
#' matrix that needs no jitter is factorised as it is, and any other matrix gets little more than it needs. Unlike in
#' other libraries, `jitter` is the limit, not the first step. Usual limits are 1e-6 times the size of the diagonal in
#' double precision, and 1e-4 times its size in single precision. A message of class `gpucholmod_jitter` has the number
#' that was added in its field `jitter`, and the handle keeps this number as `f$jitter`. If adding `jitter` is not
#' enough, the error is the one that `A` itself causes. [cholinsert_gpu()] has such an argument too.
#'
#' @section Errors:
#' If a GPU is asked for and none can be used, the error of class `gpucholmod_backend_unavailable` says why; the CPU is
#' not used instead. If \eqn{A} is not positive definite, the error has the class `gpucholmod_not_positive_definite`,
#' and its field `pivot` is the order of the first leading minor that is not positive definite. [gpucholmod-package]
#' lists the other classes.
#'
#' @seealso [gpu_info()] for the GPUs of this machine.
#' @examples
#' A <- crossprod(matrix(rnorm(2500), 50)) + diag(50)
#' V <- matrix(rnorm(150), 50)
#' f <- chol_factor(chol(A))
#' f
#' g <- cholupdate_gpu(f, V)
#' all.equal(as.matrix(g), chol(A + tcrossprod(V)))
#' all.equal(solve(g, 1:50), solve(A + tcrossprod(V), 1:50))
#'
#' cholupdate_gpu(g, V, downdate = TRUE, in_place = TRUE) # g is changed
#' all.equal(as.matrix(g), as.matrix(f))
#'
#' if (gpu_info(memory = FALSE)$usable) print(gpu_chol(A))
#' @concept Gaussian process
#' @concept precision matrix
#' @concept cholmod
#' @export
chol_factor <- function(R, ...) {
  # UseMethod() evaluates R, which may fail before the other processes can be told, or be missing beside A
  if (for_processes(...) || missing(R)) chol_factor.default(R, ...) else UseMethod("chol_factor")
}

# Is true if the arguments ask for a factor over several processes.
for_processes <- function(..., processes = FALSE) isTRUE(processes)

#' @rdname chol_factor
#' @export
chol_factor.default <- function(R, backend = getOption("gpucholmod.backend", "auto"), uplo = c("upper", "lower"),
                                precision = c("double", "single"), device = getOption("gpucholmod.device"),
                                capacity = NULL, devices = NULL, processes = FALSE, A, jitter = 0, ...) {
  require_flag(processes, "processes")
  if (!missing(A)) {
    if (!missing(R)) {
      stop_bad_argument("A", NULL, "cannot be given together with 'R', its factor: the first unnamed argument is 'R'")
    }
    if (processes) stop_not_supported("A", "a matrix to be factorised")
    require_no_more(...)
    backend <- match_choice(backend, choices$backend, if (missing(backend)) "gpucholmod.backend" else "backend")
    backend <- require_gpu(backend, devices, if (!missing(device)) device)
    return(factorised(A, jitter, backend, if (missing(uplo)) "upper" else match_choice(uplo, choices$uplo, "uplo"),
                      if (!missing(precision)) match_choice(precision, choices$precision, "precision"),
                      require_devices(devices, device, missing(device)), capacity))
  }
  if (missing(R) && !processes) stop_bad_argument("R", NULL, "is missing, the factor, and so is 'A', its matrix")
  if (processes) {
    return(together({
      require_no_more(...)
      require_no_jitter(jitter)
      deal_factor(R, if (!missing(uplo)) uplo, if (!missing(precision)) precision, if (!missing(backend)) backend,
                  if (!is.null(devices)) devices else if (!missing(device)) device, capacity)
    }))
  }
  require_no_more(...)
  require_no_jitter(jitter)
  backend <- match_choice(backend, choices$backend, if (missing(backend)) "gpucholmod.backend" else "backend")
  backend <- require_gpu(backend, devices, if (!missing(device)) device)
  uplo <- if (!missing(uplo)) match_choice(uplo, choices$uplo, "uplo")
  in_file <- inherits(R, "factor_file")
  factor <- if (in_file) open_file(R, uplo) else with_memory(open_factor(R, uplo))
  if (missing(precision) && factor$float32) precision <- "single"
  precision <- number_of(match_choice(precision, choices$precision, "precision"), "precision")
  ids <- require_devices(devices, device, missing(device))
  capacity <- capacity_for(capacity, if (in_file) R$n else nrow(opened(factor, R)))
  on_gpu <- held_on_gpu(backend, capacity)
  x <- if (!in_file) opened(factor, R) else if (!on_gpu) as.matrix(R)
  made <- if (on_gpu) {
    with_room(function() {
      if (in_file) rcpp_factor_upload_file(R$path, R$n, precision, capacity, ids)
      else rcpp_factor_upload(x, as.integer(factor$lower), precision, capacity, ids)
    })
  } else {
    rcpp_factor_hold(x, as.integer(factor$lower), precision, capacity)
  }
  new_factor(made, if (factor$lower) "lower" else "upper", factor_dimnames(R))
}

#' @export
chol_factor.chol_factor <- function(R, ...) {
  stop_gpucholmod("bad_argument", "'R' is such a factor already; copy_factor(R) makes an independent copy of it",
                  list(argument = "R", value = R))
}

#' @rdname chol_factor
#' @export
gpu_factor <- function(R, ...) {
  if (missing(R)) require_given("R")
  UseMethod("gpu_factor")
}

#' @rdname chol_factor
#' @export
gpu_factor.default <- function(R, uplo = c("upper", "lower"), precision = c("double", "single"),
                               device = getOption("gpucholmod.device"), devices = NULL, ...) {
  require_no_more(...)
  arguments <- list(R, backend = "cuda", devices = devices)
  if (!missing(uplo)) arguments$uplo <- uplo
  if (!missing(precision)) arguments$precision <- precision
  if (!missing(device)) arguments["device"] <- list(device)
  do.call(chol_factor.default, arguments, quote = TRUE)
}

#' @export
gpu_factor.chol_factor <- chol_factor.chol_factor

#' @rdname chol_factor
#' @export
gpu_chol <- function(A, precision = c("double", "single"), device = getOption("gpucholmod.device"), devices = NULL,
                     jitter = 0) {
  if (missing(A)) require_given("A")
  precision <- if (!missing(precision)) match_choice(precision, choices$precision, "precision")
  factorised(A, jitter, "cuda", "upper", precision, require_devices(devices, device, missing(device)), NULL)
}

# Checks the capacity of a factor of order n, and returns it as an integer; NULL means n.
capacity_for <- function(capacity, n) {
  if (is.null(capacity)) return(n)
  most <- 2^24  # with more, the bytes are soon too many for a vector of R's
  if (!is.numeric(capacity) || length(capacity) != 1L || !isTRUE(capacity == round(capacity)) || capacity < n ||
      capacity > most) {
    stop_bad_argument("capacity", capacity, sprintf("must be a whole number from the order, %d, to %.0f", n, most))
  }
  as.integer(capacity)
}

# Is true if a factor with room for n rows and columns is to be kept on a GPU.
held_on_gpu <- function(backend, n) {
  backend == "cuda" || (backend == "auto" && n >= least_on_gpu && gpu_info(memory = FALSE)$usable)
}
# From this order on, modifications and substitutions are quicker there than with a few threads of a CPU.
least_on_gpu <- 2000

# Returns the id of a GPU for the core: -1 for the first that can be used. by_default: `device` is the value of the
# option.
require_device <- function(device, by_default) {
  if (is.null(device)) return(-1L)
  if (!is.numeric(device) || length(device) != 1L || is.na(device) || device != round(device) || device < 0 ||
      device > .Machine$integer.max) {
    argument <- if (by_default) "gpucholmod.device" else "device"
    stop_gpucholmod("bad_argument", paste(named(argument), "must be NULL or the id of a GPU, a whole number from 0 on"),
                    list(argument = argument, value = device))
  }
  as.integer(device)
}

# Returns the ids of GPUs for the core, from the arguments `devices` and `device`. Only tests may name one GPU twice.
require_devices <- function(devices, device, by_default) {
  if (is.null(devices)) return(require_device(device, by_default))
  if (!by_default && !is.null(device)) stop_bad_argument("devices", devices, "cannot be given together with 'device'")
  if (identical(devices, "all")) {
    known <- gpu_info(memory = FALSE)$devices
    ids <- known$id[known$usable]
    return(if (length(ids)) ids else -1L)
  }
  if (!is.numeric(devices) || length(devices) == 0L ||
      !all(is.finite(devices) & devices == round(devices) & devices >= 0) ||
      any(devices > .Machine$integer.max)) {
    stop_bad_argument("devices", devices, "must be NULL, \"all\" or ids of GPUs, whole numbers from 0 on")
  }
  if (anyDuplicated(devices) && !isTRUE(getOption("gpucholmod.repeat_devices"))) {
    stop_bad_argument("devices", devices, "must name each GPU once")
  }
  as.integer(devices)
}

# Returns the backend of a factor, which is "cuda" for every order if `devices` are given. Stops if a GPU is chosen, by
# `devices` or `device`, and the CPU was asked for.
require_gpu <- function(backend, devices, device) {
  chosen <- list(devices = devices, device = device)
  chosen <- chosen[!vapply(chosen, is.null, TRUE)]
  if (backend == "cpu" && length(chosen)) {
    stop_bad_argument(names(chosen)[[1L]], chosen[[1L]], "cannot be given with backend = \"cpu\"")
  }
  if (is.null(devices)) backend else "cuda"
}
