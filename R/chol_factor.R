#' A Cholesky factor with memory of its own
#'
#' `chol_factor()` keeps a Cholesky factor where it is modified and used again and again: in ordinary memory, or in that
#' of a GPU. `gpu_factor()` puts it on a GPU; `gpu_chol()` puts a symmetric positive definite matrix there and
#' factorises it. All three return a handle. Functions that take the handle modify the factor
#' ([cholupdate_gpu()][cholupdate_gpu.chol_factor]) and use it ([solve()][solve.chol_factor] and others) where it is
#' stored, in place on request, so that the same code runs with and without a GPU.
#'
#' @param R The Cholesky factor: what [cholupdate_gpu()] accepts, that is the upper triangular matrix that [chol()]
#'   returns, a `dtrMatrix` or `Cholesky` object of package \pkg{Matrix}, or a `float32` matrix of package
#'   \pkg{float}. Rows with a negative diagonal entry are multiplied by -1; zeros on the diagonal, as of `matrix(0,
#'   n, n)`, are taken, and updated. The other triangle is not used. Or a [factor_file()]: on its way to a GPU,
#'   or to several, it is never whole in ordinary memory.
#' @param A A symmetric positive definite matrix: an ordinary one, or of class `Matrix` or `float32`. Only its upper
#'   triangle is looked at.
#'   `chol_factor(A = A)`, instead of `R`, makes the factor, where it is to be kept.
#' @param jitter The most that may be added to the diagonal of `A`: see section Jitter. The default adds nothing.
#' @param uplo `"upper"` for \eqn{A = R'R}, `"lower"` for a lower triangular factor, \eqn{A = RR'}; in this form
#'   `as.matrix()` gives it back. For `dtrMatrix` and `Cholesky` objects it is taken from the object.
#' @param precision What to keep the factor and compute in, `"double"` or `"single"`. The default is what `R` or `A` is
#'   stored in.
#' @param backend Where to keep it: `"cuda"`, on a GPU; `"cpu"`, in ordinary memory; `"auto"`: on a GPU if there is one
#'   that can be used and the order, or `capacity`, is at least 2,000, otherwise in ordinary memory. The default can be
#'   set with `options(gpucholmod.backend =)`.
#' @param device Which GPU: its `id` in `gpu_info()$devices`, or `NULL` for the first that can be used. The default can
#'   be set with `options(gpucholmod.device =)`.
#' @param devices Several GPUs of this machine that hold the factor together: their ids, or `"all"` for every one that
#'   can be used; `NULL` for `device` alone. See section Several GPUs.
#' @param capacity How many rows and columns to have room for, so that appending by [cholinsert_gpu()] in place moves
#'   nothing that is there, and takes memory for the new columns alone.
#' @param processes `TRUE`: one factor over all processes that MPI has started, which all make this call:
#'   [process_info()]. `R` is needed in process 0 alone, `NULL` stands for it in others. With `backend = "cuda"` on the
#'   GPU of each.
#' @param ... Must be empty.
#'
#' @return A handle of class `chol_factor`, and of class `gpu_factor`, `cpu_factor` or `process_factor`, by where the
#'   factor is. `gpu_chol()` makes an upper factor.
#'
#' @section Handles:
#' A handle refers to data, as an environment does to its contents: assignment and passing it to a function
#' copy the handle, not the data. After `g <- f`, `cholupdate_gpu(f, V, in_place = TRUE)` and `free(f)` are seen through
#' `g` too; [copy_factor()] makes an independent one. [cholupdate_gpu()][cholupdate_gpu.chol_factor] makes a new one by
#' default.
#'
#' These take a handle:
#'
#' | Of the factor | |
#' |---|---|
#' | [cholupdate_gpu()][cholupdate_gpu.chol_factor] | the factor of \eqn{A + VV'} or \eqn{A - VV'} |
#' | [as.matrix()][as.matrix.chol_factor] | the triangle, as an ordinary matrix |
#' | `diag()`, `dim()`, `dimnames()` | its diagonal, order and names |
#' | [solve_forward()], [solve_back()] | \eqn{R'^{-1}b}, \eqn{R^{-1}b} |
#' | [cholinsert_gpu()], [choldelete_gpu()], [cholshift_gpu()] | rows and columns of \eqn{A} come, go and move |
#' | `%*%`, `crossprod()`, `f[i, j]`, `t()` | the factor as a [matrix][factor_matrix] that multiplies and is indexed |
#' | [draw()] | draws from a normal distribution with covariance or precision \eqn{A} |
#' | [write_factor()] | a file of it |
#' | [copy_factor()], [free()] | another handle with data of its own; give the memory back |
#' | [all.equal()][condition_number] | whether two factors are the same, but for rounding |
#' | `print()`, `format()`, `str()`, [summary()][summary.chol_factor] | what it is, and how well conditioned |
#' | [drift()] | how far modifications may have taken it from exact |
#'
#' | Of the matrix \eqn{A} | |
#' |---|---|
#' | [solve()][solve.chol_factor], [solve_factor()] | \eqn{A^{-1}b}, \eqn{A^{-1}} |
#' | [chol2inv()][solve.chol_factor] | \eqn{A^{-1}} |
#' | [determinant()][solve.chol_factor], [logdet()] | the determinant |
#' | [kappa()][condition_number], [rcond()][condition_number] | its condition, estimated |
#' | [chol()][condition_number] | its upper triangular factor |
#' | [solve_modified()] | the same of many modifications of \eqn{A} |
#'
#' A modification in place in ordinary memory allocates no second factor: at n = 500 it takes a sixth to a twelfth of
#' the time of a call of [cholupdate_gpu()] for a matrix, which allocates its result every time (measured:
#' `log/measurements.md` in the sources).
#'
#' The memory is given back when the last reference to the handle is gone and R collects its garbage. R does
#' not know how full a GPU is: where there is too little memory, the functions of this package call [gc()] once and try
#' again. To have it back at once, use [free()].
#'
#' A handle that cannot be used is an error of class `gpucholmod_invalid_factor` with the field `reason`:
#'
#' | `reason` | |
#' |---|---|
#' | `"freed"` | it was given back by [free()] |
#' | `"restored"` | it comes from a file or another process |
#' | `"half_modified"` | a modification in place has failed under way |
#' | `"damaged"` | a field of the handle was changed by hand |
#' | `"in_use"` | a call that has not ended uses it, and one of the two calls changes it |
#'
#' R runs finalizers wherever it allocates, also during a call of this package. One that frees a factor which that
#' call uses does not disturb it: the memory is given back when the call has ended. One that changes such a factor in
#' place, or reads it while it is being changed, gets the error with the reason `"in_use"`.
#'
#' Data belong to one process. A handle that comes back from [readRDS()], [load()] or a cluster worker, or was
#' given back by [free()], prints as such, and every use of it is an error of class `gpucholmod_invalid_factor`. Save
#' `as.matrix(f)` instead. In a process forked from this one ([parallel::mclapply()]), a factor in ordinary memory is a
#' copy; for one on a GPU the error has the class `gpucholmod_backend_unavailable` and the reason `"forked"`, as
#' everywhere in this package.
#'
#' @section Several GPUs:
#' With `devices`, strips of 128 columns lie on the GPUs in turn, so that a factor may be as large as their memory
#' together, and each updates its own strips when the factor is modified. All functions for handles take such a factor,
#' and every bit of a result is the same on any number of GPUs, up to n = 150,000; beyond, on any number whose shared
#' memory together has room for \eqn{V}. Every other operation runs on the first GPU, which reads the memory of the
#' others. The GPUs must be of one compute capability, and have access to each other's memory, as over NVLink; otherwise
#' the error is of class `gpucholmod_backend_unavailable`, with reason `"no_peer_access"` and fields `device` and
#' `peer`. On two H200, an update of rank k = 16 takes 0.80 of the time on one for n = 16,384, 0.59 for 32,768, 0.55 for
#' 65,536, and longer than on one for 5,000; solving takes longer on two than on one.
#'
#' @section Jitter:
#' A covariance matrix of a Gaussian process is often just not positive definite, for rounding. With `jitter`, a number
#' above 0, a factorisation that fails is tried again with something added to all diagonal entries of `A`: 8 units of
#' rounding of the largest of them, then ten times as much each time, at last `jitter` itself. So the matrix that needs
#' nothing is factorised as it is, and another one gets little more than it needs. Unlike in other libraries, `jitter`
#' is the limit, not the first step: 1e-6 times the size of the diagonal is a usual limit in double precision, 1e-4 in
#' single. What was added is told by a message of class `gpucholmod_jitter` with the field `jitter`, and stays in the
#' field `f$jitter` of the handle. Where `jitter` is too little, the error is that for `A` as it is.
#' [cholinsert_gpu()] has such an argument too, for what is inserted.
#'
#' @section Errors:
#' Where a GPU is asked for and none can be used, `gpucholmod_backend_unavailable` says why: there is no falling back to
#' the CPU. If \eqn{A} is not positive definite, the error has the class `gpucholmod_not_positive_definite` and the
#' field `pivot`, the order of its first leading minor that is not. The other classes are listed in
#' [gpucholmod-package].
#'
#' @seealso [gpu_info()] for what GPUs there are.
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
    if (!missing(R)) stop_bad_argument("A", NULL, "cannot be given together with 'R', its factor")
    if (processes) stop_not_supported("A", "a matrix to be factorised")
    require_no_more(...)
    backend <- match_choice(backend, choices$backend, if (missing(backend)) "gpucholmod.backend" else "backend")
    if (!is.null(devices)) backend <- require_gpu(backend, devices)
    return(factorised(A, jitter, backend, if (missing(uplo)) "upper" else match_choice(uplo, choices$uplo, "uplo"),
                      if (!missing(precision)) match_choice(precision, choices$precision, "precision"),
                      require_devices(devices, device, missing(device)), capacity))
  }
  if (missing(R) && !processes) stop_bad_argument("R", NULL, "is missing, the factor, and so is 'A', its matrix")
  if (processes) {
    return(together({
      require_no_more(...)
      deal_factor(R, if (!missing(uplo)) uplo, if (!missing(precision)) precision, if (!missing(backend)) backend,
                  if (!is.null(devices)) devices else if (!missing(device)) device, capacity)
    }))
  }
  require_no_more(...)
  backend <- match_choice(backend, choices$backend, if (missing(backend)) "gpucholmod.backend" else "backend")
  if (!is.null(devices)) backend <- require_gpu(backend, devices)
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

# Returns the backend of a factor on `devices`, which is "cuda" for every order; stops if the CPU was asked for.
require_gpu <- function(backend, devices) {
  if (backend == "cpu") stop_bad_argument("devices", devices, "cannot be given with backend = \"cpu\"")
  "cuda"
}
