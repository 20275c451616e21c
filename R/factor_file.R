#' A Cholesky factor in a file
#'
#' For factors that are kept on disk, or that do not fit into memory twice, or at all. `write_factor()` writes a factor
#' to a file, `factor_file()` refers to one that is there, and [cholupdate_gpu()][cholupdate_gpu.factor_file] turns it
#' into a new file without ever holding all of it in memory.
#'
#' @param path Name of the file.
#' @param R The Cholesky factor: the upper triangular matrix that [chol()] returns, or what else [cholupdate_gpu()]
#'   accepts, if it is upper triangular; `float32` matrices are written as doubles. Its values are checked when it is
#'   used, not here. Or a handle from [chol_factor()], of which \eqn{R} is written, whatever its `uplo`.
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
#' \eqn{n \times n}{n x n} doubles by columns, in the byte order of the machine, with nothing before or after them, so
#' \eqn{8n^2} bytes: what `writeBin(as.vector(R), path)` writes. The upper triangle is the factor, the rest is never
#' read. Files that this package writes hold zeros there: holes, which take no space on file systems that know them.
#'
#' @section Safety:
#' A file is read by a descriptor that is opened for reading only, and written under a name of its own,
#' `<path>.XXXXXX.part`, in the same folder. It gets its name when it is complete and the disk has all of it, in one
#' step, so that under that name there is always a complete factor, or nothing. When a call fails, is interrupted or
#' finds that a downdate cannot be done, the `.part` file is deleted, and a file that was to be replaced is as it was.
#' Only a process that is killed, or a machine that goes down, leaves a `.part` file. When the same output is written
#' again, every file `<path>.XXXXXX.part` (six letters or digits) of the same user is deleted that no process has
#' locked, as one that is being written is. Locks may not be seen by other machines that share the folder: let two
#' machines not write one output.
#'
#' With `replace = TRUE` the old file stays until the new one takes its place: there must be space for both. It may be
#' the file that is read: `f <- cholupdate_gpu(f, V, output = f$path, replace = TRUE)` can be called again and again,
#' and every `factor_file` of that name refers to the new factor then. The new
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
#' | `"wrong_size"` | its size, in the field `size` in bytes, is not \eqn{8n^2} for any \eqn{n \ge 1} |
#' | `"changed"` | it was written to while it was read, or has another order than the `factor_file` |
#' | `"exists"` | there is a file already, and `replace` is `FALSE` |
#' | `"read_only"` | it was to be replaced, but there is no permission to write to it, not even for its owner |
#' | `"same_file"` | the output is the file that is to be read, and `replace` is `FALSE` |
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
  if (inherits(R, "process_factor")) return(write_together(R, path, replace))
  path <- absolute_path(path, "path")
  require_flag(replace, "replace")
  if (inherits(R, "chol_factor")) {
    live(R, "R")
    R <- with_room(function() rcpp_factor_download(R, number_of("upper", "uplo"), NULL))
  }
  factor <- with_memory(open_factor(R))
  if (factor$lower) {
    stop_gpucholmod("bad_argument", "'R' is lower triangular; a file holds an upper triangular factor: t(R)",
                    list(argument = "R", value = R))
  }
  with_memory(rcpp_write_factor_file(opened_doubles(factor, R), path, replace))
  factor_file(path)
}

# Returns the absolute name of a file that need not exist. Its folder is resolved, its last part is not: that may be a
# symbolic link.
absolute_path <- function(path, argument) {
  if (!is.character(path) || length(path) != 1L || is.na(path) || !nzchar(path)) {
    stop_gpucholmod("bad_argument", sprintf("'%s' must be the name of a file", argument),
                    list(argument = argument, value = path))
  }
  folder <- normalizePath(dirname(path), mustWork = FALSE)
  enc2native(file.path(if (folder == "/") "" else folder, basename(path)))
}

# Returns for a factor in a file what open_factor() returns for a matrix.
open_file <- function(R, uplo) {
  if (identical(uplo, "lower")) stop_bad_argument("uplo", uplo, "must be \"upper\" for a factor in a file")
  present(R)
  list(lower = FALSE, float32 = FALSE)
}

# Returns `x` if it can be a result of factor_file(), which a user may have changed by hand; otherwise stops.
sound_file <- function(x) {
  own <- unclass(x)
  path <- if (is.list(own)) own$path
  sound <- is.character(path) && length(path) == 1L && !is.na(path) && is_number(own$n) &&
    is.null(dim(own$n)) && own$n >= 1 && own$n == round(own$n)
  if (!sound) {
    why <- "this is not as factor_file() or write_factor() has returned it; call factor_file() anew"
    stop_gpucholmod("bad_argument", why, list(argument = "factor_file", value = x))
  }
  x
}

# Returns `x` if its file exists and has the same order as before; otherwise stops.
present <- function(x) {
  sound_file(x)
  if (rcpp_factor_file_order(x$path) != x$n) {
    stop_gpucholmod("bad_file", sprintf("'%s' is not of order %d any more", x$path, x$n),
                    list(path = x$path, reason = "changed"))
  }
  x
}

#' @rdname factor_file
#' @export
as.matrix.factor_file <- function(x, ...) {
  rcpp_read_factor_file(present(x)$path, 0L, x$n)
}

#' @export
dim.factor_file <- function(x) {
  rep(sound_file(x)$n, 2L)
}

#' @export
format.factor_file <- function(x, ...) {
  sound_file(x)
  sprintf("<factor_file> %d x %d, %s, %s", x$n, x$n, format_bytes(8 * x$n^2), x$path)
}

#' @export
print.factor_file <- function(x, ...) {
  sound_file(x)
  cat(sprintf("<factor_file> %d x %d, %s\n  %s\n", x$n, x$n, format_bytes(8 * x$n^2), x$path))
  invisible(x)
}
