# Files of measurements: comma-separated values below lines "# key: value" that tell where they come from.

#' Measurements that come with the package
#'
#' The figures in the vignettes and the README are drawn from files of measurements, each with the machine, the command
#' and the date that it comes from. This reads them: those that come with the package, and those that [bench_paper()]
#' and the scripts in `system.file("bench", package = "gpucholmod")` write.
#'
#' @param name Which to read: one of the names that come with the package, or a file that [bench_paper()] has written,
#'   or one of the scripts by its option `--out`; it may be compressed by gzip. Without it, all names that there are.
#'   Those that end in `h200` are of a machine with an NVIDIA H200.
#' @param x What it returns.
#' @param ... Ignored.
#' @return A data frame of class `gpucholmod_measurements`, whose attribute `about` is a named character vector that
#'   tells where it comes from: `command`, `date`, `package` (its version), `cpu`, `cores`, `threads` (the most that the
#'   package takes), `instructions` (vector instructions of the CPU), `gpu` (`"none"`, or its name), `gpuless` (why
#'   there is none; not in older files of scripts), `cuda` (of the build and of the driver), `R`, `blas`, `system`. What [bench_paper()] has written
#'   has the class `bench_paper` too. Units are told by the help page or the head of the script that has written them;
#'   times are in seconds where nothing else is said.
#'
#'   `format()`: where it comes from as one line of text, to go with a figure.
#' @section Errors:
#' A file that cannot be read is an error of class `gpucholmod_bad_file` with the fields `path` and `reason`:
#' `"missing"`, `"not_readable"` or `"not_measurements"`.
#' @examples
#' stored_measurements()
#' m <- stored_measurements("conditioning-h200")
#' format(m)
#' head(m)
#' @export
stored_measurements <- function(name) {
  files <- list.files(system.file("extdata", package = "gpucholmod"), "\\.csv(\\.gz)?$", full.names = TRUE)
  known <- sub("\\.csv(\\.gz)?$", "", basename(files))
  if (missing(name)) return(known)
  is_file <- is.character(name) && length(name) == 1L && !name %in% known && (grepl("[./\\]", name) || file.exists(name))
  read_measurements(if (is_file) name else files[[match(match_choice(name, known, "name"), known)]])
}

read_measurements <- function(file) {
  bad_file <- function(why, reason) {
    stop_gpucholmod("bad_file", sprintf(why, file), list(path = file, reason = reason))
  }
  file <- absolute_path(file, "file")
  if (!file.exists(file)) bad_file("there is no file '%s'", "missing")
  lines <- tryCatch(suppressWarnings(readLines(file, encoding = "UTF-8")),
                    error = function(e) bad_file("'%s' cannot be read", "not_readable"))
  told <- grep("^# [a-zA-Z]+:", lines, value = TRUE)
  about <- stats::setNames(sub("^# [a-zA-Z]+: ?", "", told), sub("^# ([a-zA-Z]+):.*", "\\1", told))
  rows <- lines[!grepl("^#", lines)]
  if (!all(always_told %in% names(about)) || !length(rows)) bad_file("'%s' does not hold measurements", "not_measurements")
  # The last line of a run that was killed may be half a line: with fewer fields, or an open quote.
  fields <- utils::count.fields(textConnection(rows), sep = ",", quote = "\"", comment.char = "")
  if (!identical(fields[[length(rows)]], fields[[1L]])) rows <- rows[-length(rows)]
  as_measurements(utils::read.csv(text = rows, stringsAsFactors = FALSE, encoding = "UTF-8"), about)
}

# What provenance() tells.
always_told <- c("command", "date", "package", "cpu", "cores", "threads", "gpu", "cuda", "R", "blas")

as_measurements <- function(data, about) {
  paper <- identical(unname(about["experiment"]), "paper")
  if (paper) data <- newest(data)
  structure(data, about = about, class = c(if (paper) "bench_paper", "gpucholmod_measurements", "data.frame"))
}

# `data` as such a file, which takes the place of the one before once it is there.
write_measurements <- function(data, file, about) {
  part <- paste0(file, ".part")
  written <- tryCatch(suppressWarnings({
    head <- c(sprintf("# %s: %s", names(about), about), paste(names(data), collapse = ","))
    writeLines(enc2utf8(head), part, useBytes = TRUE)
    append_measurements(data, part)
    file.rename(part, file)
  }), error = function(e) if (is_time_limit(e)) stop(e) else FALSE)
  if (!written) {
    unlink(part)
    stop_gpucholmod("bad_file", sprintf("'%s' cannot be written", file), list(path = file, reason = "not_writable"))
  }
}

# With nine digits, which is more than clocks have.
append_measurements <- function(data, file) {
  data[] <- lapply(data, function(x) if (is.double(x)) signif(x, 9) else x)
  utils::write.table(data, file, append = TRUE, sep = ",", row.names = FALSE, col.names = FALSE, qmethod = "double",
                     fileEncoding = "UTF-8")
}

provenance <- function(about) {
  gpu <- if (about[["gpu"]] == "none") "no GPU" else sprintf("%s, CUDA %s", about[["gpu"]], about[["cuda"]])
  sprintf("%s, %s cores, at most %s threads; %s; %s, %s; gpucholmod %s; %s: %s", about[["cpu"]], about[["cores"]],
          about[["threads"]], gpu, about[["R"]], about[["blas"]], about[["package"]], about[["date"]],
          about[["command"]])
}

#' @rdname stored_measurements
#' @export
format.gpucholmod_measurements <- function(x, ...) provenance(attr(x, "about"))

#' @export
print.gpucholmod_measurements <- function(x, ...) {
  cat(format(x), "\n", sep = "")
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
  c(date = format(Sys.Date()), package = format(utils::packageVersion("gpucholmod")), cpu = cpu_model(),
    cores = as.character(parallel::detectCores()), threads = as.character(cpu$threads), instructions = cpu$instructions,
    gpu = if (info$usable) info$devices$name[match(info$device, info$devices$id)] else "none",
    cuda = if (info$usable) sprintf("%s, driver %s", info$toolkit_version, info$driver_version) else "none",
    R = sprintf("R %s", getRversion()), blas = blas_name(),
    system = paste(Sys.info()[c("sysname", "machine")], collapse = " "), gpuless = if (info$usable) "" else info$message)
}

cpu_model <- function() {
  told <- if (file.exists("/proc/cpuinfo")) {
    sub("^[^:]*: *", "", grep("^model name", readLines("/proc/cpuinfo", warn = FALSE), value = TRUE))
  } else if (Sys.info()[["sysname"]] == "Darwin") {
    asked <- c("-n", "machdep.cpu.brand_string")
    tryCatch(suppressWarnings(system2("sysctl", asked, stdout = TRUE, stderr = FALSE)), error = function(e) NULL)
  }
  Find(nzchar, c(told, Sys.getenv("PROCESSOR_IDENTIFIER"), Sys.info()[["machine"]]))
}

# R's BLAS by the file that it comes from (its folders may tell more than its name), and by what limits its threads.
blas_name <- function() {
  parts <- strsplit(extSoftVersion()[["BLAS"]], "[/\\\\]")[[1L]]
  name <- utils::tail(c("of R", parts, grep(optimised_blas_names, parts, ignore.case = TRUE, value = TRUE)), 1L)
  limits <- Sys.getenv(c("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"))
  limits <- limits[nzchar(limits)]
  paste0("BLAS ", name, if (length(limits)) sprintf(" (%s)", paste0(names(limits), "=", limits, collapse = ", ")))
}
