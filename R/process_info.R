#' The processes that MPI has started
#'
#' Under `mpirun`, all processes run the same script. `chol_factor(R, processes = TRUE)` makes one factor and divides it
#' among them: each process holds blocks of 64 columns, in turn, in its own memory. The processes compute on CPUs, or
#' with `backend = "cuda"` each on a GPU. `process_info()` tells a process its number.
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
#' MPI is begun at the first call of `process_info()` or `chol_factor(processes = TRUE)`, unless package \pkg{Rmpi} or
#' other code has begun it, and ends with R. R waits then until all processes end. \pkg{Rmpi} has to be loaded before
#' that call, as it cannot be used where MPI has been begun; its `mpi.quit()` ends R as it should.
#'
#' @section One factor over several processes:
#' Every function of such a factor is called by all processes, in the same order, with the same arguments; what differs
#' is an error of all of them. The factor `R`, and the right-hand sides and columns `V` or `X`, are needed in process 0
#' alone: `NULL` stands for them in others. (They may be given by all, but for `R`; they are compared.) From a
#' [factor_file()], which is the same for all, each process reads its own columns, so that the factor is never whole in
#' the memory of any.
#'
#' These are as for every [chol_factor()]: [cholupdate_gpu()][cholupdate_gpu.chol_factor], new or in place, with
#' weights, scale, both signs and right-hand sides `z` that come along, to the same bits with any number of processes;
#' [cholinsert_gpu()], [choldelete_gpu()] and [cholshift_gpu()], also the same bits, in place too by way of a second
#' factor; [solve()][solve.chol_factor] with right-hand sides, few of them, [solve_forward()], [solve_back()],
#' [solve_modified()], [logdet()], `determinant()`, `diag()`, [kappa()][condition_number], `rcond()`, `all.equal()`,
#' whose results all processes get; `copy_factor()`, `free()`, `drift()`, `print()`.
#' [as.matrix()][as.matrix.chol_factor], `chol()`, and `solve()` without right-hand sides, the inverse, give the matrix
#' to process 0, and `NULL` to others. [write_factor()] writes a file from process 0, column by column.
#'
#' What process 0 alone needs, others may leave out where it comes first, as `V`, `X` and `b` of `solve()` do; `z`, with
#' `y`, `b` and `rss`, they have to name: `z = if (process_info()$process == 0) z`.
#'
#' Not there, which is an error of class `gpucholmod_not_supported` with the fields `operation` and `backend`: `device`,
#' and `capacity`, as a factor grows without room beforehand.
#'
#' @section A GPU for each process:
#' `chol_factor(R, processes = TRUE, backend = "cuda")` deals panels of n/16 columns, 512 to 2,048 of them, to the GPUs
#' of the processes: of one machine, its GPUs in turn, as `CUDA_VISIBLE_DEVICES` shows them; all have to be of one
#' compute capability. Several processes may share a GPU. A GPU takes n times its columns numbers.
#' [cholupdate_gpu()][cholupdate_gpu.chol_factor] works there, with messages by way of ordinary memory, and the same
#' bits with any number of processes; so does `copy_factor()`. All else passes the factor through ordinary memory, a
#' panel at a time, or, for the inverse and rows and columns that come, go or move, all columns of a process at once. A
#' downdate in place in several passes (more than 32 columns of V) takes a second factor.
#'
#' @section Errors:
#' They are the same in all processes, with the number of the process that has found them in the field `process`, where
#' one has; nothing is changed then anywhere. A downdate that fails has the same `pivot` in all.
#'
#' An error of R's in one process alone, such as a bad option or an argument that cannot be evaluated, is an error of
#' the same class in the others too, whose message begins with "in process" and the number of that process. All
#' processes are in step again in the next call.
#'
#' A process that fails to take part makes the others stop with an error of class `gpucholmod_process_failed` with its
#' number, `process`, and a `reason`:
#'
#' | `reason` | |
#' |---|---|
#' | `"gone"` | it is no more (on the same machine that is seen at once) |
#' | `"left"` | its R has ended |
#' | `"silent"` | nothing has come from it for too long, see below |
#' | `"stopped"` | it was interrupted under way |
#' | `"out_of_step"` | it has called something else |
#' | `"busy"` | it is this process: R ran a finalizer during such a call, which has made another |
#'
#' A process is silent after a minute, or `options(gpucholmod.process_timeout =)` seconds, which should be more than a
#' process ever spends on something of its own.
#'
#' When a process dies, or ends with a status other than 0, Open MPI's `mpirun` ends all others soon after, before
#' they can do much about the error. `mpirun --enable-recovery` lets them go on.
#'
#' Where the package was built without MPI, `gpucholmod_backend_unavailable` says so, with the reason `"not_built"`.
#' In a forked process ([parallel::mclapply()]) every use of such a factor but `print()` and `free()` is that error
#' with the reason `"forked"`.
#'
#' @return A list: `built`, whether the package was built with MPI; `configured`, what its configure script decided, and
#'   why; `process`, the number of this process, from 0; `processes`, how many there are; `threads`, how many threads of
#'   this machine's CPU are of use to it.
#' @seealso [chol_factor()]; how it is done: `system.file("design", "processes.md", package = "gpucholmod")`
#' @examplesIf nzchar(Sys.getenv("OMPI_COMM_WORLD_SIZE"))
#' process_info()
#' @export
process_info <- function() {
  built <- rcpp_processes_built()
  at <- if (built$built) processes_here() else list(rank = 0L, size = 1L, threads = 1L)
  c(built, list(process = at$rank, processes = at$size, threads = at$threads))
}
