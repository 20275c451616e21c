# Files of measurements: comma-separated values below lines "# key: value" that tell where they come from.

#' Measurements that come with the package
#'
#' The figures in the vignettes and the README are drawn from files of measurements, each with the machine, the command
#' and the date that it comes from. These functions read such files: those that come with the package, and those that
#' [bench_paper()] and the scripts in `system.file("bench", package = "gpucholmod")` write.
#'
#' @param name Which to read; without it, the names of all that there are. Names that end in `h200` are of a machine
#'   with an NVIDIA H200.
#' @param file A file that [bench_paper()] has written, or one of the scripts by its option `--out`; it may be compressed
#'   by gzip.
#' @param x What the first two functions return.
#' @return `stored_measurements()` and `read_measurements()`: a data frame of class `gpucholmod_measurements`, whose
#'   attribute `about` is a named character vector that tells where it comes from: `command`, `date`, `package` (its
#'   version), `cpu`, `cores`, `threads` (the most that the package takes), `instructions` (vector instructions of the
#'   CPU), `gpu` (`"none"`, or its name), `cuda` (of the build and of the driver), `R`, `blas`, `system`. What
#'   [bench_paper()] has written has the class `bench_paper` too, and in `gpuless` why there is no GPU. Units are told
#'   by the help page or the head of the script that has written them; times are in seconds where nothing else is said.
#'
#'   `provenance()`: the same as one line of text, to go with a figure.
#' @section Errors:
#' A file that cannot be read is an error of class `gpucholmod_bad_file` with the fields `path` and `reason`:
#' `"missing"`, `"not_readable"` or `"not_measurements"`.
#' @examples
#' stored_measurements()
#' m <- stored_measurements("conditioning-h200")
#' provenance(m)
#' head(m)
#' @export
stored_measurements <- function(name) {
  files <- list.files(system.file("extdata", package = "gpucholmod"), "\\.csv(\\.gz)?$", full.names = TRUE)
  known <- sub("\\.csv(\\.gz)?$", "", basename(files))
  if (missing(name)) return(known)
  read_measurements(files[[match(match_choice(name, known, "name"), known)]])
}

#' @rdname stored_measurements
#' @export
read_measurements <- function(file) {
  file <- absolute_path(file, "file")
  if (!file.exists(file)) {
    stop_gpucholmod("bad_file", sprintf("there is no file '%s'", file), list(path = file, reason = "missing"))
  }
  lines <- tryCatch(suppressWarnings(readLines(file, encoding = "UTF-8")), error = function(e) {
    stop_gpucholmod("bad_file", sprintf("'%s' cannot be read", file), list(path = file, reason = "not_readable"))
  })
  about <- parse_about(lines)
  rows <- lines[!grepl("^#", lines)]
  if (!all(told %in% names(about)) || !length(rows)) {
    stop_gpucholmod("bad_file", sprintf("'%s' does not hold measurements", file),
                    list(path = file, reason = "not_measurements"))
  }
  # The last line of a run that was killed may be half a line: with fewer fields, or an open quote.
  fields <- utils::count.fields(textConnection(rows), sep = ",", quote = "\"", comment.char = "")
  if (!identical(fields[[length(rows)]], fields[[1L]])) rows <- rows[-length(rows)]
  data <- utils::read.csv(text = rows, stringsAsFactors = FALSE, encoding = "UTF-8")
  as_measurements(data, about)
}

# What provenance() tells.
told <- c("command", "date", "package", "cpu", "cores", "threads", "gpu", "cuda", "R", "blas")

as_measurements <- function(data, about) {
  paper <- identical(unname(about["experiment"]), "paper")
  if (paper) data <- newest(data)
  structure(data, about = about, class = c(if (paper) "bench_paper", "gpucholmod_measurements", "data.frame"))
}

parse_about <- function(lines) {
  lines <- grep("^# [a-zA-Z]+:", lines, value = TRUE)
  stats::setNames(sub("^# [a-zA-Z]+: ?", "", lines), sub("^# ([a-zA-Z]+):.*", "\\1", lines))
}

# `data` as such a file. Not for the user: a script of inst/bench calls it with the command that it was run by.
write_measurements <- function(data, file, command, about = machine()) {
  connection <- open_measurements(file, names(data), c(command = command, about))
  on.exit(close(connection))
  add_measurements(connection, data)
}

open_measurements <- function(file, columns, about) {
  connection <- tryCatch(suppressWarnings(base::file(file, "w", encoding = "UTF-8")), error = function(e) {
    stop_gpucholmod("bad_file", sprintf("'%s' cannot be written", file), list(path = file, reason = "not_writable"))
  })
  writeLines(c(sprintf("# %s: %s", names(about), about), paste(columns, collapse = ",")), connection)
  connection
}

# With nine digits, which is more than clocks have.
add_measurements <- function(connection, data) {
  data[] <- lapply(data, function(x) if (is.double(x)) signif(x, 9) else x)
  utils::write.table(data, connection, sep = ",", row.names = FALSE, col.names = FALSE, qmethod = "double")
  flush(connection)
}

#' @rdname stored_measurements
#' @export
provenance <- function(x) {
  about <- attr(x, "about")
  if (!inherits(x, "gpucholmod_measurements") || is.null(about)) {
    stop_gpucholmod("bad_argument", "'x' must come from bench_paper(), stored_measurements() or read_measurements()",
                    list(argument = "x", value = x))
  }
  provenance_line(about)
}

provenance_line <- function(about) {
  gpu <- if (about[["gpu"]] == "none") "no GPU" else sprintf("%s, CUDA %s", about[["gpu"]], about[["cuda"]])
  sprintf("%s, %s cores, at most %s threads; %s; %s, %s; gpucholmod %s; %s: %s", about[["cpu"]], about[["cores"]],
          about[["threads"]], gpu, about[["R"]], about[["blas"]], about[["package"]], about[["date"]],
          about[["command"]])
}

#' @export
print.gpucholmod_measurements <- function(x, ...) {
  cat(provenance(x), "\n", sep = "")
  print(as.data.frame(x), ...)
  invisible(x)
}

# Some of the columns are no measurements any more, but a data frame.
#' @export
`[.gpucholmod_measurements` <- function(x, ...) {
  part <- NextMethod()
  if (!is.data.frame(part)) return(part)
  if (!all(names(x) %in% names(part))) return(as.data.frame(part))
  attr(part, "about") <- attr(x, "about")
  part
}

#' @export
as.data.frame.gpucholmod_measurements <- function(x, ...) {
  structure(x, class = "data.frame", about = NULL)
}

# What there is to measure on.
machine <- function() {
  info <- gpu_info(memory = FALSE)
  cpu <- cholupdate_plan(1e5, 16, backend = "cpu", method = "blocked")
  gpu <- if (info$usable) info$devices$name[match(info$device, info$devices$id)] else "none"
  c(date = format(Sys.Date()), package = format(utils::packageVersion("gpucholmod")), cpu = cpu_model(),
    cores = as.character(parallel::detectCores()), threads = as.character(cpu$threads), instructions = cpu$instructions,
    gpu = gpu,
    cuda = if (info$usable) sprintf("%s, driver %s", info$toolkit_version, info$driver_version) else "none",
    R = sprintf("R %s", getRversion()), blas = blas_name(),
    system = paste(Sys.info()[c("sysname", "machine")], collapse = " "))
}

cpu_model <- function() {
  if (file.exists("/proc/cpuinfo")) {
    model <- grep("^model name", readLines("/proc/cpuinfo", warn = FALSE), value = TRUE)
    if (length(model)) return(sub("^[^:]*: *", "", model[[1L]]))
  }
  if (Sys.info()[["sysname"]] == "Darwin") {
    asked <- c("-n", "machdep.cpu.brand_string")
    model <- tryCatch(suppressWarnings(system2("sysctl", asked, stdout = TRUE, stderr = FALSE)),
                      error = function(e) character())
    if (length(model)) return(model[[1L]])
  }
  model <- Sys.getenv("PROCESSOR_IDENTIFIER")
  if (nzchar(model)) model else Sys.info()[["machine"]]
}

# R's BLAS by the file that it comes from (its folders may tell more than its name), and by what limits its threads.
blas_name <- function() {
  file <- extSoftVersion()[["BLAS"]]
  parts <- strsplit(file, "[/\\\\]")[[1L]]
  named <- grep(optimised_blas_names, parts, ignore.case = TRUE, value = TRUE)
  name <- if (length(named)) named[[length(named)]] else if (length(parts)) parts[[length(parts)]] else "of R"
  limits <- Sys.getenv(c("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"))
  limits <- limits[nzchar(limits)]
  paste0("BLAS ", name, if (length(limits)) sprintf(" (%s)", paste0(names(limits), "=", limits, collapse = ", ")))
}
