#' Insert and delete rows and columns of A, with a factor in a file
#'
#' These are the methods of [cholinsert_gpu()] and [choldelete_gpu()] for a factor in a file: they write the new factor
#' to another file, or replace the file that is read. The factor is never in memory as a whole. Its columns are read
#' once, in panels, and written to a file beside the output, with the new rows and columns or without those that are
#' deleted. That file is then updated or downdated, as by [cholupdate_gpu()][cholupdate_gpu.factor_file]. So there must
#' be space on the disk for two more files.
#'
#' [cholshift_gpu()], [cholpermute_gpu()] and [solve_modified()] do not accept a file. Their error, of class
#' `gpucholmod_not_supported`, suggests [chol_factor()], which reads the factor into memory, or into that of several
#' GPUs; [write_factor()] writes it back.
#'
#' @param R A factor in a file, from [factor_file()] or [write_factor()].
#' @param X The new columns of the new matrix, as for [cholinsert_gpu()].
#' @param at The number of the first new column in the new matrix; the new columns are side by side. By default they are
#'   appended at the end.
#' @param index The rows and columns to delete, by number or by anything else that selects them: see [choldelete_gpu()].
#' @param ... Must be empty: the arguments below are given by name.
#' @param output,replace,backend,control As for [cholupdate_gpu()][cholupdate_gpu.factor_file].
#' @param check Whether an insertion that is not possible is an error (`TRUE`), or is reported in the return value
#'   (`FALSE`).
#'
#' @return The new factor, a [factor_file()] of `output`. `cholinsert_gpu()` with `check = FALSE` returns a list of the
#'   factor `R` and `pivot`, as for an ordinary factor; if `pivot` is not 0, no file is written.
#' @seealso [factor_file()]
#' @examplesIf .Platform$OS.type != "windows"
#' A <- crossprod(matrix(rnorm(600), 30)) + diag(20)
#' f <- write_factor(chol(A), tempfile())
#' f <- choldelete_gpu(f, c(3, 17), output = f$path, replace = TRUE)
#' all.equal(as.matrix(f), chol(A[-c(3, 17), -c(3, 17)]))
#' f <- cholinsert_gpu(f, A[c(1:2, 4:16, 18:20, 3), 3], output = f$path, replace = TRUE)
#' logdet(f)
#' unlink(f$path)
#' @name cholinsert_gpu.factor_file
NULL

#' @rdname cholinsert_gpu.factor_file
#' @export
choldelete_gpu.factor_file <- function(R, index, ..., output, replace = FALSE,
                                       backend = getOption("gpucholmod.backend", "auto"),
                                       control = cholupdate_control()) {
  require_no_more(...)
  n <- present(R)$n
  gone <- sort(unique(selected_in(index, n, "index")))
  if (length(gone) == n) stop_bad_argument("index", index, "leaves nothing, and an empty file is no factor")
  kept <- setdiff(seq_len(n), gone)
  before <- gone[gone < kept[[length(kept)]]]  # the rows that the update is made of
  V <- matrix(0, length(kept), length(before))
  place <- place_of_output(output, replace)
  on.exit(unlink(place$between))
  with_memory(unchanged(R, write_columns(place$between, length(kept), function(put) {
    over_panels(R, reverse = FALSE, function(J, top, block) {
      columns <- rbind(top, block)[, J %in% kept, drop = FALSE]
      rows <- seq_len(J[[length(J)]])
      known <- before %in% rows
      V[match(J[J %in% kept], kept), known] <<- t(columns[before[known], , drop = FALSE])
      put(columns[rows %in% kept, , drop = FALSE])
    })
  })))
  cholupdate_gpu(factor_file(place$between), V, output = place$output, replace = replace, backend = backend,
                 control = control)
}

#' @rdname cholinsert_gpu.factor_file
#' @export
cholinsert_gpu.factor_file <- function(R, X, at = NULL, ..., output, replace = FALSE, check = TRUE,
                                       backend = getOption("gpucholmod.backend", "auto"),
                                       control = cholupdate_control()) {
  require_no_more(...)
  require_flag(check, "check")
  n <- present(R)$n
  p <- columns_in(X)
  at <- if (is.null(at)) n + 1L else new_places(at, n, p)
  if (length(at) > 1L) stop_bad_argument("at", at, "must be one place for a file; insert at one after the other")
  X <- with_memory(open_columns(X, n + p, FALSE, "X", sprintf("the new matrix is %d x %d", n + p, n + p)))
  place <- place_of_output(output, replace)
  on.exit(unlink(place$between))
  done <- with_memory(unchanged(R, write_with_inserted(R, X, at, place$between)))
  if (done$pivot == 0L) {
    done <- cholupdate_gpu(factor_file(place$between), done$V, downdate = TRUE, output = place$output,
                           replace = replace, backend = backend, control = control, check = FALSE)
  }
  if (check && done$pivot > 0L) stop_not_positive_definite("the matrix with what is inserted", done$pivot)
  made <- if (done$pivot > 0L) R else done$R
  if (check) made else list(R = made, pivot = done$pivot)
}

# Writes the factor of a file with columns X (n + p x p), the first of which becomes number `at`, to file `between`, its
# last rows as they are. Returns list(pivot, V): a downdate of the file by V makes it the new factor. With
#
#        [ R11 R13 ]             [ R11 S12 R13 ]
#   R  = [     R33 ],  it writes [     S22 S23 ],  where S12 = R11'^-1 X1, S22'S22 = X2 - S12'S12,
#                                [         R33 ]         S23 = S22'^-1 (X3' - S12'R13), V = [0 0 S23]'.
write_with_inserted <- function(R, X, at, between) {
  n <- R$n
  p <- ncol(X)
  require_finite_X(X, at)
  require_diagonal(file_diagonal(R))
  S12 <- X[seq_len(at - 1L), , drop = FALSE]
  S22 <- X[at - 1L + seq_len(p), , drop = FALSE]
  V <- matrix(0, n + p, if (at <= n) p else 0L)
  pivot <- NULL
  write_columns(between, n + p, function(put) {
    insert <- function() {
      S22[] <<- S22 - crossprod(S12)
      done <- rcpp_factorise(S22, 0)
      pivot <<- if (done$pivot > 0L) at - 1L + done$pivot else 0L
      S22 <<- done$R
      if (pivot == 0L) put(rbind(S12, S22))
    }
    over_panels(R, reverse = FALSE, function(J, top, block) {
      columns <- rbind(top, block)
      left <- J[J < at]
      if (length(left)) {
        own <- seq_along(left)
        above <- seq_len(J[[1L]] - 1L)
        known <- crossprod(top[, own, drop = FALSE], S12[above, , drop = FALSE])
        S12[left, ] <<- backsolve(block[own, own, drop = FALSE], S12[left, , drop = FALSE] - known, transpose = TRUE)
        put(columns[seq_len(left[[length(left)]]), own, drop = FALSE])
      }
      right <- J[J >= at]
      if (!length(right)) return()
      if (is.null(pivot)) insert()
      if (pivot > 0L) return()
      columns <- columns[, J >= at, drop = FALSE]
      above <- seq_len(at - 1L)
      S23 <- t(X[right + p, , drop = FALSE]) - crossprod(S12, columns[above, , drop = FALSE])
      S23 <- backsolve(S22, S23, transpose = TRUE)
      V[right + p, ] <<- t(S23)
      put(rbind(columns[above, , drop = FALSE], S23, columns[at:nrow(columns), , drop = FALSE]))
    })
    if (is.null(pivot)) insert()
  })
  list(pivot = pivot, V = V)
}

# Stops where a number of X that counts is not finite, as for an ordinary factor.
require_finite_X <- function(X, at) {
  counts <- !(row(X) > at - 1L + col(X) & row(X) < at + ncol(X))
  bad <- match(TRUE, counts & !is.finite(X), 0L)
  if (bad == 0L) return(invisible())
  row <- row(X)[[bad]]
  col <- col(X)[[bad]]
  stop_gpucholmod("not_finite", sprintf("'X' has a value that is not finite at [%d, %d]", row, col),
                  list(argument = "X", row = row, col = col, value = X[[bad]]))
}

# Checks where a new file is to be, and returns list(output, between): `between` is the name of a file beside it that
# can be written meanwhile.
place_of_output <- function(output, replace) {
  require_flag(replace, "replace")
  output <- absolute_path(if (!missing(output)) output, "output")
  if (!replace && file.exists(output)) {
    stop_gpucholmod("bad_file", sprintf("'%s' exists, and is only replaced with replace = TRUE", output),
                    list(path = output, reason = "exists"))
  }
  list(output = output, between = tempfile(paste0(basename(output), "."), dirname(output), ".between"))
}

# Writes a factor of order n to a file: fill(put) calls put(columns) for all columns from the left, `columns` with the
# rows that are not zero.
write_columns <- function(path, n, fill) {
  file <- tryCatch(file(path, "wb"), error = function(e) NULL, warning = function(w) NULL)
  if (is.null(file)) {
    stop_gpucholmod("bad_file", sprintf("'%s' cannot be written", path), list(path = path, reason = "not_writable"))
  }
  on.exit(close(file))
  fill(function(columns) {
    for (j in seq_len(ncol(columns))) writeBin(c(columns[, j], numeric(n - nrow(columns))), file)
  })
}

# Stops because an operation of cholinsert.R, or solve_modified(), does not take a file.
stop_not_for_file <- function(operation) {
  why <- "does not take a factor in a file: chol_factor(R) takes it into memory, write_factor() writes it back"
  stop_gpucholmod("not_supported", paste(operation, why), list(operation = operation, backend = "file"))
}

#' @export
cholshift_gpu.factor_file <- function(R, from, to, ...) stop_not_for_file("cholshift_gpu()")

#' @export
cholpermute_gpu.factor_file <- function(R, order, ...) stop_not_for_file("cholpermute_gpu()")
