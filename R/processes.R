# A factor over several processes that MPI has started (inst/design/processes.md). All of them call the same function; what they give is compared, or
# given to those that have none, before anything is done, so that each comes to the same errors by itself. What fails in R in one of them alone,
# before it has got to what they do together, is told to the others, who fail with the same condition.

# Begins where that has not been done: list(rank, size, threads, beside), by MPI's numbers; beside: among the processes of this machine.
processes_here <- function() {
  limit <- getOption("gpucholmod.process_timeout", 60)
  if (!is_number(limit) || limit <= 0) stop_bad_argument("gpucholmod.process_timeout", limit, "must be a positive number of seconds")
  at <- rcpp_processes_start(as.double(limit))
  if (is.null(state$leaves)) state$leaves <- reg.finalizer(state, function(e) rcpp_processes_leave(), onexit = TRUE)
  list(rank = at[[1L]], size = at[[2L]], threads = at[[3L]], beside = at[[4L]])
}

# Evaluates `code`, in which all processes meet, or all fail.
together <- function(code) {
  turn <- rcpp_processes_turn()
  tryCatch(code, error = function(e) {
    if (rcpp_processes_turn() == turn) e <- tryCatch(rcpp_processes_refuse(as_refusal(e)), error = identity)
    stop(refused(e))
  })
}

# A condition as text, without what is large; and the condition that another process has refused with.
as_refusal <- function(e) {
  e$call <- NULL
  if (utils::object.size(e) > 1e5) e <- e[setdiff(names(e), "value")]
  rawToChar(serialize(e, NULL, ascii = TRUE))
}
refused <- function(e) {
  if (!inherits(e, "gpucholmod_process_failed") || e$reason != "refused") return(e)
  condition <- unserialize(charToRaw(e$condition))
  if (inherits(condition, "gpucholmod_error")) condition$process <- e$process
  condition["call"] <- list(users_call())
  condition
}

# `x` of process 0, also where it is NULL. Elsewhere it may be given as well, and has to be the same then. `asked` has to be the same in all. A
# matrix of n rows, and anything else:
agreed_columns <- function(x, n, argument, asked) {
  if (!is.null(x) && !are_plain_columns(x, n)) x <- open_columns(x, n, float32 = FALSE, argument)
  rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, x, n)
}
agreed <- function(x, argument, asked) {
  given <- if (!is.null(x)) serialize(x, NULL, version = 2L)
  unserialize(rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, given, -1L))
}

stop_not_supported <- function(operation, message) {
  stop_gpucholmod("not_supported", paste(message, "is not supported for a factor over several processes"),
                  list(operation = operation, backend = "mpi"))
}

# chol_factor(processes = TRUE). R: NULL but in process 0; a factor_file may be given by all. What is NULL of the others was not given.
deal_factor <- function(R, uplo, precision, backend, device, capacity) {
  at <- processes_here()
  together({
    on_gpu <- !is.null(backend) && match_choice(backend, choices$backend, "backend") == "cuda"
    if (!is.null(device)) stop_not_supported("device", "a choice of GPUs, which CUDA_VISIBLE_DEVICES makes,")
    if (!is.null(capacity)) stop_not_supported("capacity", "room for rows and columns to come")
    if (!is.null(uplo)) uplo <- match_choice(uplo, choices$uplo, "uplo")
    if (!is.null(precision)) precision <- match_choice(precision, choices$precision, "precision")
    here <- at$rank == 0L && !is.null(R)
    x <- NULL
    given <- if (here && inherits(R, "factor_file")) {
      open_file(R, uplo)
      list(n = R$n, path = R$path, uplo = "upper", precision = if (is.null(precision)) "double" else precision, dimnames = NULL)
    } else if (here) {
      factor <- open_factor(R, uplo)
      x <- opened_doubles(factor, R)
      list(n = nrow(x), path = "", uplo = if (factor$lower) "lower" else "upper",
           precision = if (is.null(precision)) if (factor$float32) "single" else "double" else precision, dimnames = factor_dimnames(R))
    }
    told <- agreed(given, "R", list("chol_factor", uplo, precision, on_gpu))
    made <- rcpp_processes_hold(x, told$path, told$n, number_of(told$uplo, "uplo"), number_of(told$precision, "precision"),
                                if (on_gpu) at$beside else -1L)
    made$process <- at$rank
    new_factor(made, told$uplo, told$dimnames)
  })
}

# Arguments `names` of process 0 in `given`, those of a call. They may be NULL elsewhere, but are to be named in all: whoever names none, waits for none.
with_agreed <- function(given, names, asked) {
  named <- intersect(names, names(given))
  if (!length(named)) return(given)
  own <- if (processes_here()$rank == 0L || length(compacted(given[named]))) given[named]
  given[named] <- agreed(own, named[[1L]], c(asked, named))
  given
}
compacted <- function(x) Filter(Negate(is.null), x)

# As many threads as are of use to a process, where none are asked for.
with_threads <- function(given) {
  if (is.null(given$control) && is.null(getOption("gpucholmod.threads"))) given$control <- cholupdate_control(threads = processes_here()$threads)
  given
}

# Calls f(R, x, ...), a method for one process, with what is left of `given` the same in all. x: list(name = columns), of so many rows or, NULL, of as many as
# process 0 has. `names`: as above.
carry_out_together <- function(f, what, R, x, rows, names, given) {
  processes_here()
  together({
    live(R, "R")
    asked <- list(what, given[setdiff(names(given), names)])
    if (!length(x)) agreed(TRUE, "processes", asked)
    else x[[1L]] <- if (is.null(rows)) agreed(x[[1L]], names(x), asked) else agreed_columns(x[[1L]], rows, names(x), asked)
    given <- with_agreed(given, names, asked)
    do.call(f, c(list(R), unname(x), with_threads(given)), quote = TRUE)
  })
}

#' @export
cholupdate_gpu.process_factor <- function(R, V = NULL, ...) {
  carry_out_together(cholupdate_gpu.chol_factor, "cholupdate_gpu", R, list(V = V), R$n, c("z", "y", "rss"), list(...))
}

#' @export
cholinsert_gpu.process_factor <- function(R, X = NULL, ...) {
  carry_out_together(cholinsert_gpu.chol_factor, "cholinsert_gpu", R, list(X = X), NULL, c("z", "b", "rss"), list(...))
}

#' @export
choldelete_gpu.process_factor <- function(R, index, ...) {
  carry_out_together(choldelete_gpu.chol_factor, "choldelete_gpu", R, list(), NULL, c("z", "rss"), list(index = index, ...))
}

#' @export
cholshift_gpu.process_factor <- function(R, from, to, ...) {
  carry_out_together(cholshift_gpu.chol_factor, "cholshift_gpu", R, list(), NULL, "z", list(from = from, to = to, ...))
}

# solve_modified() of `R`, whose V and b process 0 has.
solve_modified_together <- function(R, V, b, given) {
  processes_here()
  together({
    live(R, "R")
    given <- with_threads(given)
    asked <- list("solve_modified", given[setdiff(names(given), "control")])
    V <- agreed(V, "V", asked)
    told <- agreed(if (R$process == 0L || !is.null(b)) list(b), "b", asked)
    do.call(solve_modified_of, c(list(R, V, told[[1L]]), given), quote = TRUE)
  })
}

solve_together <- function(f, b, which, named = FALSE) {
  processes_here()
  together({
    live(f)
    if (!is.null(b)) open_columns(b, f$n, float32 = FALSE, argument = "b")
    solve_with(f, agreed(b, "b", list("solve", which)), which, named)
  })
}

#' @export
solve.process_factor <- function(a, b, ...) {
  if (!missing(b)) return(solve_together(a, b, "both", named = TRUE))
  names <- variable_names(a)
  in_process_0(a, "upper", if (!is.null(names)) list(names, names), inverse = TRUE)
}

# A matrix in process 0, NULL elsewhere: the factor, or the inverse of A.
in_process_0 <- function(f, uplo, dimnames, inverse = FALSE) {
  processes_here()
  together({
    pointer <- live(f)
    value <- rcpp_processes_download(pointer, number_of(uplo, "uplo"), dimnames, f$process == 0L, inverse)
    if (f$process == 0L) value else invisible()
  })
}

#' @export
solve_forward.process_factor <- function(f, b = NULL, ...) {
  solve_together(f, b, "forward")
}

#' @export
solve_back.process_factor <- function(f, b = NULL, ...) {
  solve_together(f, b, "back")
}

#' @export
copy_factor.process_factor <- function(x, ...) {
  processes_here()
  together(copy_factor.chol_factor(x))
}

#' @export
as.matrix.process_factor <- function(x, ...) {
  in_process_0(x, x$uplo, x$dimnames)
}

write_together <- function(f, path, replace) {
  processes_here()
  together({
    pointer <- live(f, "R")
    require_flag(replace, "replace")
    path <- agreed(if (f$process == 0L && !is.null(path)) absolute_path(path, "path"), "path", list("write_factor", replace))
    rcpp_processes_write(pointer, path, replace)
    structure(list(path = path, n = f$n), class = "factor_file")
  })
}

#' The processes that MPI has started
#'
#' Under `mpirun`, all processes run the same script, and `chol_factor(R, processes = TRUE)` makes one factor whose columns lie in all of them, each in
#' its memory: blocks of 64 columns, in turn. They compute on CPUs, or, with `backend = "cuda"`, each on a GPU. `process_info()` tells a process which it is.
#'
#' To start it, with the packages `openmpi-bin` and `libopenmpi-dev` of Debian installed before this one, so that `configure` finds MPI:
#'
#' ```
#' # shared.R: f <- gpucholmod::chol_factor(gpucholmod::factor_file("R.bin"), processes = TRUE)
#' #           print(gpucholmod::logdet(gpucholmod::cholupdate_gpu(f, rep(1, nrow(f)))))
#' mpirun -np 4 Rscript shared.R
#' ```
#'
#' MPI is begun at the first call of `process_info()` or `chol_factor(processes = TRUE)`, unless package \pkg{Rmpi} or other code has begun it, and ends
#' with R. R waits then until all processes end. \pkg{Rmpi} has to be loaded before that call, as it cannot be used where MPI has been begun; its `mpi.quit()`
#' ends R as it should.
#'
#' @section One factor over several processes:
#' Every function of such a factor is called by all processes, in the same order, with the same arguments; what differs is an error of all of them.
#' The factor `R`, and the right-hand sides and columns `V` or `X`, are needed in process 0 alone: `NULL` stands for them in others. (They may be
#' given by all, but for `R`; they are compared.) From a [factor_file()], which is the same for all, each process reads its own columns, so that the factor is
#' never whole in the memory of any.
#'
#' These are as for every [chol_factor()]: [cholupdate_gpu()][cholupdate_gpu.chol_factor], new or in place, with weights, scale, both signs and right-hand sides
#' `z` that come along, to the same bits with any number of processes; [cholinsert_gpu()], [choldelete_gpu()] and [cholshift_gpu()], also the same bits, in place
#' too by way of a second factor; [solve()][solve.chol_factor] with right-hand sides, few of them, [solve_forward()], [solve_back()], [solve_modified()], [logdet()],
#' `determinant()`, `diag()`, whose results all processes get; `copy_factor()`, `free()`, `drift()`, `print()`. [as.matrix()][as.matrix.chol_factor], and
#' `solve()` without right-hand sides, the inverse, give the matrix to process 0, and `NULL` to others. [write_factor()] writes a file from process 0, column by column.
#'
#' What process 0 alone needs, others may leave out where it comes first, as `V`, `X` and `b` of `solve()` do; `z`, with `y`, `b` and `rss`, they have to name:
#' `z = if (process_info()$process == 0) z`.
#'
#' Not there, which is an error of class `gpucholmod_not_supported` with the fields `operation` and `backend`: `device`, and `capacity`, as a factor grows without room beforehand.
#'
#' @section A GPU for each process:
#' `chol_factor(R, processes = TRUE, backend = "cuda")` deals panels of n/16 columns, 512 to 2,048 of them, to the GPUs of the processes: of one machine, its GPUs in turn,
#' as `CUDA_VISIBLE_DEVICES` shows them; all have to be of one compute capability. Several processes may share a GPU. A GPU takes n times its columns numbers. [cholupdate_gpu()][cholupdate_gpu.chol_factor]
#' works there, with messages by way of ordinary memory, and the same bits with any number of processes; so does `copy_factor()`. All else passes the factor through ordinary memory, a
#' panel at a time, or, for the inverse and rows and columns that come, go or move, all columns of a process at once. A downdate in place in several passes (more than 32 columns
#' of V) takes a second factor.
#'
#' @section Errors:
#' They are the same in all processes, with the number of the process that has found them in the field `process`, where one has; nothing is changed
#' then anywhere. A downdate that fails has the same `pivot` in all.
#'
#' A process that fails to take part makes the others stop with an error of class `gpucholmod_process_failed` with its number, `process`, and a `reason`:
#' `"gone"`, it is no more (on the same machine that is seen at once); `"left"`, its R has ended; `"silent"`, nothing has come from it for a minute, or
#' `options(gpucholmod.process_timeout =)` seconds, which should be more than a process ever spends on something of its own; `"stopped"`, it was interrupted
#' under way, or `"out_of_step"`, it has called something else. Most often `mpirun` is quicker, and ends all processes where one dies.
#'
#' Where the package was built without MPI, `gpucholmod_backend_unavailable` says so, with the reason `"not_built"`; in a forked process the reason is
#' `"forked"`.
#'
#' @return A list: `built`, whether the package was built with MPI; `configured`, what its configure script decided, and why; `process`, the number of
#'   this process, from 0; `processes`, how many there are; `threads`, how many threads of this machine's CPU are of use to it.
#' @seealso [chol_factor()]; how it is done: `system.file("design", "processes.md", package = "gpucholmod")`
#' @examplesIf nzchar(Sys.getenv("OMPI_COMM_WORLD_SIZE"))
#' process_info()
#' @export
process_info <- function() {
  built <- rcpp_processes_built()
  at <- if (built$built) processes_here() else list(rank = 0L, size = 1L, threads = 1L)
  c(built, list(process = at$rank, processes = at$size, threads = at$threads))
}
