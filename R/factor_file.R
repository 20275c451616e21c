#' A Cholesky factor in a file
#'
#' For factors that are kept on disk, or that do not fit into memory twice, or at all. `write_factor()` writes a factor
#' to a file, `factor_file()` refers to one that is there, and [cholupdate_gpu()][cholupdate_gpu.factor_file] turns it
#' into a new file without ever holding all of it in memory.
#'
#' @param path Name of the file.
#' @param R The Cholesky factor: the upper triangular matrix that [chol()] returns, or what else [cholupdate_gpu()]
#'   accepts, if it is upper triangular; `float32` matrices are written as doubles. Its values are checked when it is
#'   used, not here.
#' @param replace Whether a file that is there may be replaced.
#' @param x What `factor_file()` returns.
#' @param ... Ignored.
#'
#' @return `factor_file()` and `write_factor()`: a list of class `factor_file` of the file's absolute name, `path`, and
#'   the order of the factor, `n`. It refers to the file and holds nothing of its contents.
#'
#'   `as.matrix()`: the factor as an ordinary matrix, with zeros below the diagonal.
#'
#' @section Format:
#' \eqn{n \times n} doubles by columns, in the byte order of the machine, with nothing before or after them, so
#' \eqn{8n^2} bytes: what `writeBin(as.vector(R), path)` writes. The upper triangle is the factor, the rest is never
#' read. Files that this package writes hold zeros there: holes, which take no space on file systems that know them.
#'
#' @section Safety:
#' A file is read by a descriptor that is opened for reading only, and written under a name of its own,
#' `<path>.XXXXXX.part`, in the same folder. It gets its name when it is complete and the disk has all of it, in one
#' step, so that under that name there is always a complete factor, or nothing. When a call fails, is interrupted or
#' finds that a downdate cannot be done, the `.part` file is deleted, and a file that was to be replaced is as it was.
#' Only a process that is killed, or a machine that goes down, leaves a `.part` file, which may be deleted.
#'
#' With `replace = TRUE` the old file stays until the new one takes its place: there must be space for both. The new
#' file has the permissions of the old one, and belongs to whoever writes it. A symbolic link is itself replaced, not
#' the file that it points to.
#'
#' A file whose size, or time of last change, is not the same at the end of reading as at the beginning is an error.
#'
#' @section Errors:
#' Of class `gpucholmod_bad_file`, with the fields `path` and `reason`:
#'
#' | `reason` | |
#' |---|---|
#' | `"missing"` | there is no such file, or the folder of the file to be written |
#' | `"not_a_file"` | it is a folder, a device or the like |
#' | `"not_readable"` | there is no permission to read it |
#' | `"wrong_size"` | its size, in the field `size` in bytes, is not \eqn{8n^2} for any \eqn{n} |
#' | `"changed"` | it was written to while it was read, or has another order than the `factor_file` |
#' | `"exists"` | there is a file already, and `replace` is `FALSE` |
#' | `"read_only"` | it was to be replaced, but there is no permission to write to it, not even for its owner |
#' | `"same_file"` | the output is the file that is to be read |
#' | `"not_writable"` | there is no permission to write to the folder |
#' | `"no_space"` | the disk is full, or a quota or a limit on the size of files is reached |
#' | `"failed"` | anything else, in the words of the system in the field `error` |
#' | `"unsupported"` | everything here, on Windows |
#'
#' @seealso [cholupdate_gpu.factor_file()]
#' @examplesIf .Platform$OS.type != "windows"
#' R <- chol(diag(3) + 1)
#' path <- tempfile(fileext = ".bin")
#' f <- write_factor(R, path)
#' f
#' identical(as.matrix(f), R)
#'
#' # a file from elsewhere
#' writeBin(as.vector(R), path)
#' dim(factor_file(path))
#' unlink(path)
#' @export
factor_file <- function(path) {
  path <- absolute_path(path, "path")
  structure(list(path = path, n = as.integer(rcpp_factor_file_order(path))), class = "factor_file")
}

#' @rdname factor_file
#' @export
write_factor <- function(R, path, replace = FALSE) {
  path <- absolute_path(path, "path")
  require_flag(replace, "replace")
  factor <- open_factor(R, "upper", FALSE)
  if (factor$uplo != "upper") {
    stop_gpucholmod("bad_argument", "'R' is lower triangular; a file holds an upper triangular factor: t(R)",
                    list(argument = "R", value = R))
  }
  x <- factor$x
  if (factor$float32) x <- keep_dim(rcpp_from_float(x), x)
  rcpp_write_factor_file(x, path, replace)
  factor_file(path)
}

# The absolute name of a file that need not be there. Its folder is resolved, the last part is left as it is: it may be
# a symbolic link.
absolute_path <- function(path, argument) {
  if (!is.character(path) || length(path) != 1L || is.na(path) || !nzchar(path)) {
    stop_gpucholmod("bad_argument", sprintf("'%s' must be the name of a file", argument),
                    list(argument = argument, value = path))
  }
  folder <- normalizePath(dirname(path), mustWork = FALSE)
  enc2native(file.path(if (folder == "/") "" else folder, basename(path)))
}

# `x` itself, if its file is there and of the order it was.
present <- function(x) {
  if (rcpp_factor_file_order(x$path) != x$n) {
    stop_gpucholmod("bad_file", sprintf("'%s' is not of order %d any more", x$path, x$n),
                    list(path = x$path, reason = "changed"))
  }
  x
}

#' @rdname factor_file
#' @export
as.matrix.factor_file <- function(x, ...) {
  rcpp_read_factor_file(present(x)$path)
}

#' @export
dim.factor_file <- function(x) {
  c(x$n, x$n)
}

#' @export
format.factor_file <- function(x, ...) {
  sprintf("<factor_file> %d x %d, %s, %s", x$n, x$n, format_bytes(8 * x$n^2), x$path)
}

#' @export
print.factor_file <- function(x, ...) {
  cat(sprintf("<factor_file> %d x %d, %s\n  %s\n", x$n, x$n, format_bytes(8 * x$n^2), x$path))
  invisible(x)
}

#' Rank-k update or downdate of a factor in a file
#'
#' The method of [cholupdate_gpu()] for a factor in a file: the modified factor is written to another file. Neither of
#' them is ever in memory as a whole. The factor goes through memory, and through the GPU, in panels of columns, as a
#' rule once, while several threads read ahead and write behind.
#'
#' @param R A factor in a file, from [factor_file()] or [write_factor()].
#' @param V An \eqn{n \times k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}; also of class `Matrix` or
#'   `float32`.
#' @param downdate `FALSE` for \eqn{A + VV'}, `TRUE` for \eqn{A - VV'}.
#' @param ... Must be empty: the arguments below are given by name.
#' @param output Name of the file to write; not that of `R`.
#' @param replace Whether a file that is there may be replaced.
#' @param precision What to compute in: `"double"`, as the file is.
#' @param backend,control As in [cholupdate_gpu()].
#' @param method `"stream"`, which `"auto"` stands for.
#' @param check Whether a downdate that cannot be done stops (`TRUE`), or is reported in the return value (`FALSE`).
#'
#' @return The modified factor, a [factor_file()] of `output`. With `check = FALSE`, a list of the factor `R` and
#'   `pivot`: 0 on success; otherwise the order of the first leading minor of \eqn{A - VV'} that is not positive
#'   definite, `R` is the factor as it was given, and there is no output.
#'
#' @section Safety:
#' The file of `R` is opened for reading only. The output appears under its name when it is complete, and not if
#' anything fails: see [factor_file()], also for what is left when a process is killed, and for the errors.
#'
#' @seealso [factor_file()]; [last_cholupdate()]
#' @examplesIf .Platform$OS.type != "windows"
#' A <- crossprod(matrix(rnorm(100), 10)) + diag(10)
#' V <- matrix(rnorm(20), 10)
#' f <- write_factor(chol(A), tempfile())
#' g <- cholupdate_gpu(f, V, output = tempfile())
#' all.equal(as.matrix(g), chol(A + tcrossprod(V)))
#'
#' # a downdate that cannot be done names the pivot, and writes nothing
#' nothing <- tempfile()
#' cholupdate_gpu(f, 100 * V, downdate = TRUE, output = nothing, check = FALSE)$pivot
#' file.exists(nothing)
#' unlink(c(f$path, g$path))
#' @export
cholupdate_gpu.factor_file <- function(R, V, downdate = FALSE, ..., output, replace = FALSE, precision = "double",
                                       backend = getOption("gpucholmod.backend", "auto"),
                                       method = c("auto", "stream"), check = TRUE, control = cholupdate_control()) {
  require_no_more("those after 'downdate' must be given by their full names, and a factor in a file has its own", ...)
  require_flag(downdate, "downdate")
  require_flag(replace, "replace")
  require_flag(check, "check")
  require_control(control)
  output <- absolute_path(if (!missing(output)) output, "output")
  request <- list(
    downdate = downdate, uplo = "upper", precision = match_choice(precision, "double", "precision"),
    backend = match_choice(backend, c("auto", "cpu", "cuda"), "backend"),
    method = match_choice(method, c("auto", "stream"), "method"),
    control = control
  )
  V <- open_columns(V, present(R)$n, float32 = FALSE)

  result <- with_progress(request, function(request) rcpp_cholupdate_file(R$path, V, output, replace, request))
  remember(result$report)
  if (result$pivot > 0L && check) stop_not_positive_definite("the downdated matrix", result$pivot)
  modified <- if (result$pivot > 0L) R else factor_file(output)
  if (check) modified else list(R = modified, pivot = result$pivot)
}
