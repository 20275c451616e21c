#' Rank-k update or downdate of a factor in a file
#'
#' This is the method of [cholupdate_gpu()] for a factor in a file: it writes the modified factor to another file.
#' Neither factor is ever in memory as a whole. The factor passes through memory, and through the GPU, in panels of
#' columns, as a rule once, while several threads read ahead and write behind.
#'
#' @param R A factor in a file, from [factor_file()] or [write_factor()].
#' @param V An \eqn{n \times k}{n x k} matrix, any \eqn{k \ge 0}, or a vector of length \eqn{n}; also of class `Matrix`
#'   or `float32`.
#' @param downdate,weights,scale,z,y,rss As for an ordinary factor, their values included: [cholupdate_gpu()].
#' @param ... Must be empty: the arguments below are given by name.
#' @param output Name of the file to write. It must not be the file of `R` unless `replace` is `TRUE`.
#' @param replace Whether a file that is there may be replaced.
#' @param uplo,precision `"upper"` and `"double"`, as the file is.
#' @param backend,control As in [cholupdate_gpu()].
#' @param method `"stream"`, or `"auto"`, which is the same.
#' @param check Whether a downdate that is not possible is an error (`TRUE`), or is reported in the return value
#'   (`FALSE`).
#'
#' @return The modified factor, a [factor_file()] of `output`. With `check = FALSE`, a list of the factor `R` and
#'   `pivot`. `pivot` is 0 on success; otherwise it is the order of the first leading minor of \eqn{A - VV'} that is not
#'   positive definite, `R` is the factor that was given, and no file is written.
#'
#' @section Safety:
#' The file of `R` is opened for reading only. The output appears under its name when it is complete, and does not
#' appear if anything fails. [factor_file()] describes this, the errors, and what a process that is killed leaves
#' behind.
#' @seealso [factor_file()]; [last_cholupdate()]
#' @examplesIf .Platform$OS.type != "windows"
#' A <- crossprod(matrix(rnorm(100), 10)) + diag(10)
#' V <- matrix(rnorm(20), 10)
#' f <- write_factor(chol(A), tempfile())
#' g <- cholupdate_gpu(f, V, output = tempfile())
#' all.equal(as.matrix(g), chol(A + tcrossprod(V)))
#'
#' # a downdate that is not possible: the pivot, and no file
#' nothing <- tempfile()
#' cholupdate_gpu(f, 100 * V, downdate = TRUE, output = nothing, check = FALSE)$pivot
#' file.exists(nothing)
#' unlink(c(f$path, g$path))
#' @export
cholupdate_gpu.factor_file <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                       rss = NULL, output, replace = FALSE,
                                       uplo = "upper", precision = "double",
                                       backend = getOption("gpucholmod.backend", "auto"),
                                       method = c("auto", "stream"), check = TRUE, control = cholupdate_control()) {
  if (...length()) require_no_more(...)
  require_flag(downdate, "downdate")
  require_flag(check, "check")
  require_flag(replace, "replace")
  output <- absolute_path(if (!missing(output)) output, "output")
  match_choice(uplo, "upper", "uplo")
  match_choice(precision, "double", "precision")
  V <- with_memory(open_columns(V, present(R)$n, float32 = FALSE))
  request <- new_request(
    downdate, check, backend = if (!missing(backend)) backend_number(backend),
    method = method_number(method, c("auto", "stream")), control = if (!missing(control)) control_numbers(control),
    weights = check_weights(weights, downdate), scale = check_scale(scale), sides = sides_of(z, y, rss, R$n, ncol(V))
  )

  done <- carry_out(request, rcpp_cholupdate_file(R$path, V, output, replace, request))
  modified <- if (done$pivot > 0L) R else factor_file(output)
  returned(modified, done, check, z, rss)
}
