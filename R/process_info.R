#' The processes that MPI has started
#'
#' Under `mpirun`, all processes run the same script. `chol_factor(R, processes = TRUE)` makes one factor and divides it
#' among them: each process holds blocks of 64 columns, in turn, in its own memory, and computes on CPUs. With
#' `backend = "cuda"` the factor is on the GPUs of the processes. `process_info()` tells a process its number.
#'
#' On Debian, install `openmpi-bin` and `libopenmpi-dev` before this package, so that `configure` finds MPI. Then start
#' the processes like this:
#'
#' ```
#' # shared.R: f <- gpucholmod::chol_factor(gpucholmod::factor_file("R.bin"), processes = TRUE)
#' #           print(gpucholmod::logdet(gpucholmod::cholupdate_gpu(f, rep(1, nrow(f)))))
#' mpirun -np 4 Rscript shared.R
#' ```
#'
#' The first call of `process_info()` or `chol_factor(processes = TRUE)` initialises MPI, unless package \pkg{Rmpi} or
#' other code has done so. MPI ends with R, which then waits until all processes end. Load \pkg{Rmpi} before that first
#' call, as it cannot be used after other code has initialised MPI; its `mpi.quit()` ends R as it should.
#'
#' @section One factor over several processes:
#' All processes must call every function of such a factor, in the same order, with the same arguments; a difference is
#' an error in all of them. Only process 0 needs to give the factor `R`, right-hand sides, and the columns `V` or `X`;
#' the others give `NULL`. (They may give these arguments too, except `R`; then the arguments are compared.) From a
#' [factor_file()], which must be the same for all, each process reads its own columns, so that the factor is never
#' whole in the memory of any process.
#'
#' These functions work as for every [chol_factor()]:
#'
#' * [cholupdate_gpu()][cholupdate_gpu.chol_factor], in place or not, with weights, scale, both signs and right-hand
#'   sides `z`; [cholinsert_gpu()], [choldelete_gpu()] and [cholshift_gpu()], in place too by way of a second factor.
#'   Their results have the same bits for any number of processes.
#' * [solve()][solve.chol_factor] with a few right-hand sides, [solve_forward()], [solve_back()], [solve_modified()],
#'   [logdet()], `determinant()`, `diag()`, [kappa()][condition_number], `rcond()`, `all.equal()`. All processes get the
#'   results.
#' * [as.matrix()][as.matrix.chol_factor], `chol()`, and `solve()` without right-hand sides, the inverse. Process 0 gets
#'   the matrix, the others get `NULL`.
#' * [write_factor()], which writes a file from process 0, column by column.
#' * `copy_factor()`, `free()`, `drift()`, `print()`.
#'
#' Arguments that only process 0 needs may be left out by the others if they come first, as `V`, `X`, and `b` of
#' `solve()`. The others must name `z`, and `y`, `b` and `rss` with it: `z = if (process_info()$process == 0) z`.
#'
#' The arguments `device` and `capacity` are errors of class `gpucholmod_not_supported` with the fields `operation` and
#' `backend`. A factor over several processes grows without `capacity`.
#'
#' @section A GPU for each process:
#' `chol_factor(R, processes = TRUE, backend = "cuda")` puts the factor on the GPUs of all processes. The processes of
#' one machine take its GPUs in turn, as `CUDA_VISIBLE_DEVICES` shows them; several processes may share a GPU.
#'
#' On one machine, process 0 holds the factor on the GPUs of all processes, as `chol_factor(R, devices = )` does in one
#' process. All functions are carried out by process 0, which tells the results to the others. The GPUs work as long as
#' for one process, with the same bits; a call takes longer by what the processes tell each other. This needs GPUs that
#' process 0 sees, of one compute capability, and, if there are several, with access to each other's memory (NVLink).
#'
#' Otherwise, or with `options(gpucholmod.led = FALSE)` in all processes, each GPU gets panels of n/16 columns, 512 to
#' 2,048 of them, of which it stores all n rows. All GPUs must have one compute capability.
#' [cholupdate_gpu()][cholupdate_gpu.chol_factor] and `copy_factor()` work on the GPUs, with messages by way of ordinary
#' memory; the results have the same bits for any number of processes. All other functions pass the factor through
#' ordinary memory, one panel at a time, or, for the inverse and for inserted, deleted and moved rows and columns, all
#' columns of a process at once. A downdate in place in several passes (more than 32 columns of `V`) needs memory for a
#' second factor. `print()` tells how a factor is held.
#'
#' @section Errors:
#' Errors are the same in all processes, and nothing is changed in any of them. The field `process` has the number of
#' the process that has found the error, if a single one has. A downdate that fails has the same `pivot` in all.
#'
#' If R raises an error in one process only, such as a bad option or an argument that cannot be evaluated, the others
#' raise an error of the same class, whose message begins with "in process" and the number of that process. All
#' processes are in step again in the next call.
#'
#' If a process fails to take part, the others stop with an error of class `gpucholmod_process_failed`, with the number
#' of that process in the field `process`, and a `reason`:
#'
#' | `reason` | |
#' |---|---|
#' | `"gone"` | the process does not exist any more (on the same machine this is noticed at once) |
#' | `"left"` | R has ended in this process |
#' | `"silent"` | the process has sent nothing for too long, see below |
#' | `"stopped"` | the process was interrupted during the call |
#' | `"out_of_step"` | the process has called another function |
#' | `"busy"` | this process itself: R ran a finalizer during such a call, which made another such call |
#'
#' A process is silent after a minute, or after `options(gpucholmod.process_timeout =)` seconds. Set this to more than a
#' process ever spends on work of its own between two calls.
#'
#' When a process dies, or ends with a status other than 0, Open MPI's `mpirun` ends all others soon after, before they
#' can do much about the error. `mpirun --enable-recovery` lets them go on.
#'
#' If the package was built without MPI, the error has the class `gpucholmod_backend_unavailable` and the reason
#' `"not_built"`. In a forked process ([parallel::mclapply()]), every use of such a factor except `print()` and `free()`
#' is this error with the reason `"forked"`.
#'
#' @return A list: `built`, whether the package was built with MPI; `configured`, what its configure script decided, and
#'   why; `process`, the number of this process, from 0; `processes`, how many there are; `threads`, how many threads of
#'   this machine's CPU this process should use.
#' @seealso [chol_factor()]; `system.file("design", "processes.md", package = "gpucholmod")`, which describes the method
#' @examplesIf nzchar(Sys.getenv("OMPI_COMM_WORLD_SIZE"))
#' process_info()
#' @export
process_info <- function() {
  built <- rcpp_processes_built()
  at <- if (built$built) processes_here() else list(rank = 0L, size = 1L, threads = 1L)
  c(built, list(process = at$rank, processes = at$size, threads = at$threads))
}
