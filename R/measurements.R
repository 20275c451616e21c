# Files of measurements: comma-separated values below lines "# key: value" that tell where they come from.

#' Measurements that come with the package
#'
#' The figures in the vignettes and the README are drawn from files of measurements. `stored_measurements()` reads such
#' files: those that come with the package, and those that [bench_paper()] and the scripts in
#' `system.file("bench", package = "gpucholmod")` write. Each file has the machine, the command and the date of its
#' measurements.
#'
#' @param name One of the names that come with the package, or a file that [bench_paper()] has written, or a script by
#'   its option `--out`; the file may be compressed by gzip. Without `name`, all names that come with the package are
#'   returned. Names that end in `h200` are measurements on a machine with an NVIDIA H200.
#' @param x A result of `stored_measurements()`.
#' @param ... Ignored.
#' @return A data frame of class `gpucholmod_measurements`. Its attribute `about` is a named character vector that tells
#'   where the measurements come from: `command`, `date`, `package` (its version), `cpu`, `cores`, `threads` (the most
#'   that the package uses), `instructions` (vector instructions of the CPU), `gpu` (its name, or `"none"`), `gpuless`
#'   (why there is no GPU; not in older files of scripts), `cuda` (of the build and of the driver), `R`, `blas`,
#'   `system`. Measurements by [bench_paper()] also have the class `bench_paper`. The help page or the head of the
#'   script that wrote a file tells the units; times are in seconds if nothing else is said.
#'
#'   `format()`: where the measurements come from, as one line of text for the caption of a figure.
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
  is_file <- is.character(name) && length(name) == 1L && !name %in% known &&
    (grepl("[./\\]", name) || file.exists(name))
  read_measurements(if (is_file) name else files[[match(match_choice(name, known, "name"), known)]])
}

# Reads a file of measurements; stops if it holds none.
read_measurements <- function(file) {
  file <- absolute_path(file, "file")
  if (!file.exists(file)) bad_file(file, "missing", "is not there")
  lines <- tryCatch(suppressWarnings(readLines(file, encoding = "UTF-8")),
                    error = function(e) bad_file(file, "not_readable", "cannot be read"))
  told <- grep("^# [a-zA-Z]+:", lines, value = TRUE)
  about <- stats::setNames(sub("^# [a-zA-Z]+: ?", "", told), sub("^# ([a-zA-Z]+):.*", "\\1", told))
  rows <- lines[!grepl("^#", lines)]
  if (!length(rows) || anyNA(about[always_told])) bad_file(file, "not_measurements", "does not hold measurements")
  # The last line of a run that was killed may be half a line: with fewer fields, or an open quote.
  fields <- utils::count.fields(textConnection(rows), sep = ",", quote = "\"", comment.char = "")
  if (!identical(fields[[length(rows)]], fields[[1L]])) rows <- rows[-length(rows)]
  as_measurements(utils::read.csv(text = rows, stringsAsFactors = FALSE, encoding = "UTF-8"), about)
}

# Stops because a file of measurements cannot be used.
bad_file <- function(path, reason, why, ...) {
  stop_gpucholmod("bad_file", sprintf("'%s' %s", path, why), list(path = path, reason = reason, ...))
}

# What provenance() tells.
always_told <- c("command", "date", "package", "cpu", "cores", "threads", "gpu", "cuda", "R", "blas")

# Returns `data` with its class and its attribute `about`.
as_measurements <- function(data, about) {
  paper <- identical(unname(about["experiment"]), "paper")
  structure(if (paper) newest(data) else data, about = about,
            class = c(if (paper) "bench_paper", "gpucholmod_measurements", "data.frame"))
}

# Writes `data` to a file of measurements, which replaces the old file once it is complete.
write_measurements <- function(data, file, about) {
  part <- paste0(file, ".part")
  on.exit(unlink(part))
  written <- tryCatch(suppressWarnings({
    head <- c(sprintf("# %s: %s", names(about), about), paste(names(data), collapse = ","))
    writeLines(enc2utf8(head), part, useBytes = TRUE)
    append_measurements(data, part)
    file.rename(part, file)
  }), error = function(e) if (is_time_limit(e)) stop(e) else FALSE)
  if (!written) bad_file(file, "not_writable", "cannot be written")
}

# Appends rows to a file of measurements, with nine digits: clocks have fewer.
append_measurements <- function(data, file) {
  data[] <- lapply(data, function(x) if (is.double(x)) signif(x, 9) else x)
  utils::write.table(data, file, append = TRUE, sep = ",", row.names = FALSE, col.names = FALSE, qmethod = "double",
                     fileEncoding = "UTF-8")
}

# Returns a sentence that tells where measurements come from.
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
  if (is.data.frame(part)) attr(part, "about") <- attr(x, "about")
  if (is.data.frame(part) && !all(names(x) %in% names(part))) as.data.frame(part) else part
}

#' @export
as.data.frame.gpucholmod_measurements <- function(x, ...) structure(x, class = "data.frame", about = NULL)
