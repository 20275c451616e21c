# Runs every script and program of inst/bench in its smallest form, so that a change which breaks one is noticed.
#
#   Rscript tools/benchmarks.R [--build=DIR] [--cuda=DIR] [--objects=DIR]
#
# --build names a build folder of tools/library.mk, in which the core is built unless it is built already. --cuda names
# the CUDA toolkit; without it devices.cpp is compiled and not linked. --objects names a folder in which
# R CMD INSTALL has left the objects of the core with CUDA; without it they are compiled. The scripts measure the
# package that R finds.
# HYHOUND and GUANAQO, in the environment, name the folders of the sources of these libraries.
#
# A run passes if it exits without an error and if stored_measurements() reads the files that the run was told to write.
# Two tests more: every file of inst/bench is run, or is named below as part of a file that is run; and the package has
# what the scripts use of it, in lines that no run reaches too: functions named by `::` and `:::`, and arguments of
# exported functions.
#
# Prints a line for each run, the log of a run that failed, and last "N passed, N failed, N skipped".

library(gpucholmod)

time_limit <- 600  # seconds that a run may take
root <- normalizePath(".")
bench <- file.path(root, "inst", "bench")
if (!dir.exists(bench)) stop("run it in the package's sources: there is no inst/bench", call. = FALSE)
Sys.setenv(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
given <- function(name, default) {
  found <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(found)) normalizePath(sub("^[^=]*=", "", found[[1L]]), mustWork = FALSE) else default
}
build <- given("build", tempfile("build"))
cuda <- given("cuda", NULL)
objects <- given("objects", NULL)

have <- function(...) all(nzchar(Sys.which(c(...))))
# What a run may need. (process_info() would begin MPI in this process, which mpirun could not be started from then.)
is_there <- c(
  "a GPU" = gpu_info(memory = FALSE)$usable,
  "the CUDA toolkit" = !is.null(cuda),
  "MPI" = gpucholmod:::rcpp_processes_built()$built && have("mpirun"),
  "Octave" = have("octave-cli") || have("octave"),
  "Octave's headers" = have("octave-cli", "mkoctfile"),
  "NumPy" = system("/usr/bin/python3 -c 'import numpy, scipy' 2>/dev/null") == 0L,
  "mgcv" = requireNamespace("mgcv", quietly = TRUE),
  "Matrix" = requireNamespace("Matrix", quietly = TRUE),
  "libqrupdate" = system("echo 'int main() {}' | c++ -x c++ - -lqrupdate -o /dev/null 2>/dev/null") == 0L,
  "hyhound" = all(nzchar(Sys.getenv(c("HYHOUND", "GUANAQO"))))
)

# A run of a file of inst/bench by a shell command; `out`: the options that name a file to be written and read again.
run <- function(file, command, needs = NULL, out = NULL, what = NULL) {
  list(file = file, command = command, needs = needs, out = out, name = paste(c(file, what), collapse = ", "))
}
rscript <- shQuote(file.path(R.home("bin"), "Rscript"))
script <- function(file, arguments, needs = NULL, out = NULL, what = NULL, before = NULL) {
  run(file, paste(c(before, rscript, shQuote(file.path(bench, file)), arguments), collapse = " "), needs, out, what)
}
on_each <- function(file, arguments, out = NULL) {
  list(script(file, paste(arguments, "--backend=cpu"), out = out),
       script(file, paste(arguments, "--backend=cuda"), "a GPU", out = out, what = "on a GPU"))
}
make <- function(...) paste("make -s -j", parallel::detectCores(), ...)
eigen <- shQuote(paste0("EIGEN=", system.file("include", package = "RcppEigen")))
use_build <- shQuote(paste0("--build=", build))
mpirun <- paste("mpirun", if (Sys.info()[["effective_user"]] == "root") "--allow-run-as-root",
                "--oversubscribe --bind-to none --mca btl self,vader --mca plm isolated -np 2")
devices <- make("-C", shQuote(file.path(root, "tests", "core")),
                if (!is.null(objects)) shQuote(paste0("LIBRARY=", objects)))
hyhound <- sprintf("--hyhound=%s --guanaqo=%s", shQuote(Sys.getenv("HYHOUND")), shQuote(Sys.getenv("GUANAQO")))

# Those that compile the core come one after the other, in this order: they build it in one folder.
compiling <- list(
  run("c_interface.cpp", make("-f", shQuote(file.path(root, "tools", "library.mk")), "bench", eigen,
                              shQuote(paste0("BUILD=", build)), "ARGS='0.001 10'")),
  run("python.py", paste(make("-f", shQuote(file.path(root, "tools", "library.mk")), "all", eigen,
                              shQuote(paste0("BUILD=", build))), "&& env",
                         shQuote(paste0("GPUCHOLMOD_LIBRARY=", file.path(build, "libgpucholmod.so"))),
                         shQuote(paste0("PYTHONPATH=", file.path(root, "inst", "python"))),
                         "PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3", shQuote(file.path(bench, "python.py")),
                         "--seconds=0.001 --most=40"), "NumPy"),
  run("octave.m", paste(make("-f", shQuote(file.path(root, "tools", "library.mk")), "octave", eigen,
                             shQuote(paste0("BUILD=", build))), "&& octave-cli --quiet --norc --path",
                        shQuote(file.path(build, "octave")), shQuote(file.path(bench, "octave.m")), "0.001 20"),
      "Octave's headers"),
  script("core.R", paste("--most=10 --seconds=0.001", use_build), out = "out"),
  script("core.R", paste("--most=10 --seconds=0.001", use_build, hyhound), "hyhound", what = "beside hyhound"),
  script("batch.R", paste("--megabytes=0.1 --seconds=0.001", use_build), out = "out"),
  script("batch_growth.R", "--cpu=9x5 --gpu=9x5 --rows=1 --repeats=1", out = "out"),
  script("batch.R", "--megabytes=0.1 --gpu-only=yes", "a GPU", what = "on a GPU"),
  run("devices.cpp", paste(devices, "build/plain/bench/devices.o"), what = "compiled"),
  run("devices.cpp", paste(devices, "measure-devices", shQuote(paste0("CUDA=", cuda))), "the CUDA toolkit",
      what = "linked"),
  run("devices.cpp", paste(shQuote(file.path(root, "tests", "core", "build", "plain", "measure_devices")),
                           "--repeats=1 --same 300:2:1,2"),
      c("the CUDA toolkit", "a GPU"), what = "on a GPU"),
  run("callers_memory.cpp", paste(devices, "measure-callers-memory", shQuote(paste0("CUDA=", cuda))),
      "the CUDA toolkit", what = "linked"),
  run("callers_memory.cpp", paste(shQuote(file.path(root, "tests", "core", "build", "plain", "measure_callers_memory")),
                                  "--repeats=1 70:2"), c("the CUDA toolkit", "a GPU"), what = "on a GPU"),
  run("batch_solve.cu", paste(devices, "measure-batch-solve", shQuote(paste0("CUDA=", cuda))), "the CUDA toolkit",
      what = "linked"),
  run("batch_solve.cu", paste(shQuote(file.path(root, "tests", "core", "build", "plain", "measure_batch_solve")),
                              "--repeats=1 70:2:1"), c("the CUDA toolkit", "a GPU"), what = "on a GPU")
)
others <- c(
  list(
    script("cpu.R", "--most=256 --repeats=3", out = "out"),
    script("packages.R", "--sizes=20 --ranks=1 --repeats=3 --budget=0.1 --cases=1", out = c("out", "failures")),
    script("call_cost.R", "--most=20 --seconds=0.001", out = "out"),
    script("conditioning.R", "--n=65 --k=2 --seeds=1", out = "out"),
    run("first_touch.cpp", paste("c++ -O2 -pthread", shQuote(file.path(bench, "first_touch.cpp")),
                                 "-o first_touch && ./first_touch 1")),
    script("gpu_calls.R", "--sizes=64 --ranks=1,16 --repeats=1 --batches=10x4x1 --upload=64", "a GPU", out = "out"),
    script("panel_tuning.R", "--n=300 --k=2 --repeats=1", "a GPU"),
    script("paper.R", "--sizes=20 --ranks=1 --repeats=1 --precisions=double --plots=paper --compare=./out.csv",
           out = "out"),
    script("processes.R", "--alone --n=64 --k=2 --repeats=1", what = "one process"),
    script("processes.R", "--n=64 --k=2 --repeats=1 --threads=1", "MPI", what = "two processes", before = mpirun),
    script("readme.R", "--sizes=20 --ranks=1 --seconds=0.01", out = "out"),
    script("regression.R", "--windows=20 --p=3 --steps=10 --wide=5x20x2 --repeats=1", out = "out"),
    script("reshape_packages.R", "--sizes=20 --rows=1,2 --repeats=3 --budget=0.1", out = "out"),
    script("resident.R", "--families=ridge,kernel --sizes=300 --ranks=1,4 --repeats=1 --solve", "a GPU", out = "out"),
    script("stream_sizes.R", "--n=100 --k=2 --memory=1MB --overwrite --downdate --backend=cpu"),
    script("stream_timeline.R", "--n=100 --k=2 --backend=cpu --csv=timeline.csv"),
    script("threads.R", "--threads=1,2 --sizes=64 --ranks=1,4 --seconds=0.001", out = "out")
  ),
  on_each("reshape.R", "--size=64 --grow=76 --repeats=1 --warming=0.001", out = "out"),
  on_each("solve_modified.R", "--size=20 --members=3 --columns=2 --repeats=1"),
  on_each("stream.R", "--sizes=100 --k=2 --repeats=1 --memory=Inf,1MB --chol", out = "out"),
  on_each("stream_file.R", "--n=100 --k=2 --repeats=1"),
  on_each("stream_memory.R", "--most=700 --k=2"),
  on_each("window.R", "--sizes=64 --rows=2 --repeats=1", out = "out")
)
# What a run leaves out by itself, and says so.
left_out <- list("cpu.R" = c("mgcv", "libqrupdate"), "packages.R" = c("mgcv", "Matrix", "Octave"),
                 "reshape_packages.R" = "Octave", "call_cost.R" = "mgcv")
# Files that others read or compile.
parts <- c("batch.cpp", "common.R", "compile.R", "core.cpp", "cpu_opponents.cpp", "package_failures.R")

# Carries out a run; returns list(seconds, problem): NULL or, if it failed, what it printed and why.
carry_out <- function(one) {
  folder <- tempfile("bench")
  dir.create(folder)
  files <- file.path(folder, paste0(one$out, rep(".csv", length(one$out))))
  command <- paste(c(one$command, paste0("--", one$out, "=", shQuote(files))[seq_along(files)]), collapse = " ")
  commands <- file.path(folder, "commands")
  writeLines(c(paste("cd", shQuote(folder)), command), commands)
  log <- file.path(folder, "log")
  began <- Sys.time()
  status <- suppressWarnings(system2("sh", c("-e", shQuote(commands)), stdout = log, stderr = log,
                                     timeout = time_limit))
  seconds <- as.numeric(Sys.time() - began, units = "secs")
  unread <- function(file) {
    tryCatch(if (!nrow(stored_measurements(file))) paste(basename(file), "is empty"), error = conditionMessage)
  }
  why <- if (status == 124L) {
    sprintf("more than %d s", time_limit)
  } else if (status != 0L) {
    sprintf("exit status %d", status)
  } else {
    unlist(lapply(files, unread))
  }
  problem <- if (length(why)) c(utils::tail(readLines(log, warn = FALSE), 30L), why)
  unlink(folder, recursive = TRUE)
  list(seconds = seconds, problem = problem)
}

package <- asNamespace("gpucholmod")
exported <- getNamespaceExports(package)

# Returns the calls in a piece of code, each with the calls inside it.
calls_in <- function(code) {
  if (!is.call(code) && !is.pairlist(code) && !is.expression(code)) return(list())
  inside <- Filter(function(part) !identical(part, quote(expr = )), as.list(code))
  c(if (is.call(code)) list(code), unlist(lapply(inside, calls_in), recursive = FALSE))
}
# Returns the name after gpucholmod:: or gpucholmod:::, or NULL.
name_in_package <- function(code) {
  if (is.call(code) && length(code) == 3L && as.character(code[[1L]])[[1L]] %in% c("::", ":::") &&
        identical(code[[2L]], quote(gpucholmod))) as.character(code[[3L]])
}
# Returns why the package cannot answer a call, or NULL.
unanswered <- function(call) {
  name <- name_in_package(call)
  if (!is.null(name)) {
    found <- if (as.character(call[[1L]]) == "::") name %in% exported else exists(name, package, inherits = FALSE)
    return(if (!found) paste("the package lacks", deparse(call)))
  }
  called <- name_in_package(call[[1L]])
  if (is.null(called) && is.symbol(call[[1L]])) called <- intersect(as.character(call[[1L]]), exported)
  if (length(called) == 0L || !exists(called, package, inherits = FALSE)) return(NULL)
  if (any(vapply(as.list(call), identical, NA, quote(...)))) return(NULL)
  tryCatch({
    match.call(get(called, package), call)
    NULL
  }, error = function(e) paste0(deparse(call)[[1L]], ": ", conditionMessage(e)))
}
unanswered_in <- function(file) {
  why <- unlist(lapply(calls_in(parse(file, keep.source = FALSE)), unanswered))
  if (length(why)) paste0(basename(file), ": ", unique(why))
}

passed <- failed <- skipped <- 0L
tell <- function(name, problem, seconds = NULL) {
  if (length(problem)) writeLines(problem)
  took <- if (!is.null(seconds)) sprintf(": %.1f s", seconds)
  cat(if (length(problem)) "FAIL  " else "ok    ", name, took, "\n", sep = "")
  if (length(problem)) failed <<- failed + 1L else passed <<- passed + 1L
}
skip <- function(name, needs) {
  cat(sprintf("skipped  %s: needs %s\n", name, paste(needs, collapse = " and ")))
  skipped <<- skipped + 1L
}

runs <- c(compiling, others)
files <- list.files(bench)
told <- c(vapply(runs, `[[`, "", "file"), parts)
tell("every file of inst/bench is run, and there", c(sprintf("%s is not run", setdiff(files, told)),
                                                     sprintf("%s is not there", setdiff(told, files))))
scripts <- list.files(bench, "[.]R$", full.names = TRUE)
tell("the package has what the scripts use", unlist(lapply(scripts, unanswered_in)))

can_run <- function(one) all(is_there[one$needs])
for (one in Filter(Negate(can_run), runs)) skip(one$name, one$needs[!is_there[one$needs]])
for (file in names(left_out)) {
  for (need in left_out[[file]][!is_there[left_out[[file]]]]) skip(paste0(file, ", beside ", need), need)
}
# A task is one run after the other. Without a GPU, which they would share, tasks run side by side.
tasks <- c(list(Filter(can_run, compiling)), lapply(Filter(can_run, others), list))
results <- parallel::mclapply(tasks, function(task) lapply(task, carry_out), mc.preschedule = FALSE,
                              mc.cores = if (is_there[["a GPU"]]) 1L else parallel::detectCores())
for (i in seq_along(tasks)) {
  for (j in seq_along(tasks[[i]])) {
    result <- if (is.list(results[[i]])) results[[i]][[j]] else list(problem = "not run to its end")
    tell(tasks[[i]][[j]]$name, result$problem, result$seconds)
  }
}
cat(sprintf("%d passed, %d failed, %d skipped\n", passed, failed, skipped))
quit(status = failed > 0L)
