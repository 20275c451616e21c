# Compiles the programs that core.R and batch.R run. Read by both after common.R, in the package's sources.
#
# A program is compiled once with the package's core, by R's compiler with R's flags, and once with Eigen (RcppEigen),
# with -O3 -march=native, or --march=. tools/library.mk builds the core, and is the only place that lists its files.
# --build=DIR names the folder in which it builds, so that the next run finds the core built. --programs=DIR names one
# for the programs. A program that is there is not compiled again, and a message says so: it may run on another machine.

src <- file.path(here, "..", "..", "src")
scratch <- option("programs", tempfile("programs"))
dir.create(scratch, showWarnings = FALSE)
march <- paste0("-march=", option("march", "native"))
build <- normalizePath(option("build", file.path(scratch, "build")), mustWork = FALSE)
config <- function(what) system2(file.path(R.home("bin"), "R"), c("CMD", "config", what), stdout = TRUE)
eigen_include <- system.file("include", package = "RcppEigen")
eigen <- paste("-isystem", shQuote(eigen_include))

# Runs a command, whose output is the message of the error if it fails.
run_or_stop <- function(what, ...) {
  log <- file.path(scratch, "log")
  if (system(paste(..., ">", shQuote(log), "2>&1")) != 0L) {
    stop(what, " cannot be compiled:\n", paste(readLines(log), collapse = "\n"), call. = FALSE)
  }
}

# Returns the path of the program `name` of a source.
program_of <- function(source, name) file.path(scratch, paste0(sub("[.]cpp$", "", basename(source)), "-", name))

# Returns true if a program is there, and says so.
is_there <- function(program) {
  found <- file.exists(program)
  if (found) message("not compiled, as it is there: ", program)
  found
}

# Compiles the program `name` of a source by `command`, unless it is there, and returns its path.
compiled <- function(source, name, command, libraries = "") {
  program <- program_of(source, name)
  if (!is_there(program)) run_or_stop(name, command, shQuote(source), libraries, "-o", shQuote(program))
  program
}

# Compiles `source` with the core.
with_core <- function(source) {
  if (is_there(program_of(source, "own"))) return(program_of(source, "own"))
  compiler <- paste(config("CXX17"), config("CXX17STD"))
  flags <- paste(config("CXX17FLAGS"), "-DNDEBUG -w")
  library <- file.path(build, "libgpucholmod.a")
  makefile <- file.path(here, "..", "..", "tools", "library.mk")
  variables <- c(BUILD = build, EIGEN = eigen_include, CXX = config("CXX17"), CXXFLAGS = flags)
  run_or_stop("the core", "make -s -f", shQuote(makefile), "-j", parallel::detectCores(), shQuote(library),
              paste0(names(variables), "=", shQuote(variables), collapse = " "))
  compiled(source, "own", paste(compiler, flags, eigen, "-I", shQuote(src)),
           paste(shQuote(library), config("LAPACK_LIBS"), config("BLAS_LIBS"), config("FLIBS"), "-lpthread"))
}

# Compiles `source` with Eigen alone.
with_eigen <- function(source) {
  compiled(source, "eigen", paste(config("CXX17"), "-std=c++17 -O3", march, "-DNDEBUG -DOF_EIGEN -w", eigen))
}
