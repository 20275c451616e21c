#' A Cholesky factor in a file
#'
#' For factors that are kept on disk, and for factors so large that memory has no room for two of them, or not even for
#' one. `write_factor()` writes a factor to a file. `factor_file()` refers to a file that is there.
#' [cholupdate_gpu()][cholupdate_gpu.factor_file] makes a new file with the modified factor, without ever holding all of
#' a factor in memory.
#'
#' @param path Name of the file.
#' @param R The Cholesky factor: the upper triangular matrix that [chol()] returns, or another upper triangular factor
#'   that [cholupdate_gpu()] accepts. `float32` matrices are written as doubles. The numbers are checked when the file
#'   is used, not here. `R` may also be a handle from [chol_factor()], whose upper triangular factor is written,
#'   whatever its `uplo`.
#' @param replace Whether a file that is there may be replaced.
#' @param x What `factor_file()` returns.
#' @param ... Ignored.
#'
#' @return `factor_file()` and `write_factor()`: a list of class `factor_file` with the absolute name of the file,
#'   `path`, and the order of the factor, `n`. It refers to the file, and holds nothing of its contents.
#'
#'   `as.matrix()`: the factor as an ordinary matrix, with zeros below the diagonal.
#'
#' @section Format:
#' The file has \eqn{n \times n}{n x n} doubles by columns, in the byte order of the machine, and nothing before or
#' after them: \eqn{8n^2} bytes, as `writeBin(as.vector(R), path)` writes them. The upper triangle is the factor; the
#' rest is never read. This package writes zeros there as holes, which take no space on file systems that support holes.
#' Names of rows and columns are not stored: `as.matrix()` of a file has none.
#'
#' @section Safety:
#' A file that is read is opened for reading only. A file that is written has a temporary name, `<path>.XXXXXX.part` in
#' the same folder, until it is complete and the disk has all of it. Then it gets its name, in one step, so that under
#' this name there is always a complete factor, or nothing. If a call fails, is interrupted, or finds a downdate
#' impossible, the `.part` file is deleted, and a file that was to be replaced is as it was. Only a process that is
#' killed, or a machine that goes down, leaves a `.part` file behind. The next call that writes the same output deletes
#' such files: all files `<path>.XXXXXX.part` (six letters or digits) of the same user that no process has locked. A
#' file that is being written is locked. Other machines that share the folder may not see the lock, so do not let two
#' machines write one output.
#'
#' With `replace = TRUE` the old file stays until the new one takes its place, so there must be space for both. The file
#' that is read may be replaced: `f <- cholupdate_gpu(f, V, output = f$path, replace =
#' TRUE)` can be called again and again. Every `factor_file` of that name then refers to the new factor. The new file
#' has the permissions of the old one, and belongs to the user who writes it. If `path` is a symbolic link, the link is
#' replaced, not the file that it points to.
#'
#' If the size of a file, or the time of its last change, is not the same at the end of reading as at the beginning,
#' that is an error.
#'
#' @section Errors:
#' Errors about files have the class `gpucholmod_bad_file`, and the fields `path` and `reason`:
#'
#' | `reason` | |
#' |---|---|
#' | `"missing"` | there is no such file, or no folder for the file to be written |
#' | `"not_a_file"` | it is a folder, a device or the like |
#' | `"not_readable"` | there is no permission to read it |
#' | `"wrong_size"` | its size, in the field `size` in bytes, is not \eqn{8n^2} for any \eqn{n \ge 1} |
#' | `"changed"` | it was written to while it was read, or has another order than the `factor_file` |
#' | `"exists"` | there is a file already, and `replace` is `FALSE` |
#' | `"read_only"` | it was to be replaced, but there is no permission to write to it |
#' | `"same_file"` | the output is the file that is to be read, and `replace` is `FALSE` |
#' | `"not_writable"` | there is no permission to write to the folder |
#' | `"no_space"` | the disk is full, or a quota or a limit on the size of files is reached |
#' | `"failed"` | anything else, in the words of the system in the field `error` |
#' | `"unsupported"` | the system is Windows, where factors in files are not supported |
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
  if (missing(path)) require_given("path")
  path <- absolute_path(path, "path")
  structure(list(path = path, n = as.integer(rcpp_factor_file_order(path))), class = "factor_file")
}

#' @rdname factor_file
#' @export
write_factor <- function(R, path, replace = FALSE) {
  if (missing(R) || missing(path)) require_given("R", "path")
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
