#' An estimate of the rounding errors of all modifications of a factor
#'
#' Every modification leaves the factor of a matrix that differs by a few units of rounding from the exact matrix, and
#' these errors add up. `drift()` estimates their sum, relative to \eqn{A}, without reading the factor.
#'
#' For a modification of \eqn{A} into \eqn{\tilde A}{A~} the error is taken to be
#' \deqn{4\,\epsilon\,\max(\mathrm{tr}\,A, \mathrm{tr}\,\tilde A),}{4 eps max(tr A, tr A~),} where \eqn{\epsilon}{eps}
#' is 2.2e-16 in double and 1.2e-7 in single precision; measured backward errors of one modification are below that
#' (`system.file("design", "accuracy.md", package = "gpucholmod")`). The drift is the sum of these errors since the
#' factor was given to [chol_factor()], or made by [gpu_chol()], divided by the trace of \eqn{A} as it is now. So a
#' downdate that removes nearly all of \eqn{A} makes the drift large, as it should. The trace is known to at least half
#' of its digits: if it were not, the modification computes it from the factor. The drift is an estimate, not a bound,
#' and does not include errors that the factor had before.
#'
#' @section When to refactor:
#' A relative error \eqn{\delta} of \eqn{A} becomes a relative error of up to \eqn{\kappa\delta}{kappa delta} in
#' solutions, where \eqn{\kappa}{kappa} is the condition number of \eqn{A} (see [kappa()][condition_number]). So
#' factorise again when `drift(f)` times the condition number exceeds the accuracy that you need. If you do not know the
#' condition number, factorise again when `drift(f)` exceeds `sqrt(.Machine$double.eps)`, or `sqrt(2^-23)` in single
#' precision.
#'
#' @param f A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @return The estimated relative error of \eqn{A}: a number, 0 if the factor was not modified, `NA` if the trace or its
#'   errors are too large or too small for doubles. The number of modifications is `f$modifications`.
#' @seealso [chol_factor()]
#' @examples
#' f <- chol_factor(chol(diag(3) + 1))
#' for (i in 1:100) {
#'   cholupdate_gpu(f, 1:3, in_place = TRUE)
#'   cholupdate_gpu(f, 1:3, downdate = TRUE, in_place = TRUE)
#' }
#' drift(f)
#' @export
drift <- function(f) {
  if (missing(f)) require_given("f")
  live(f)
  if (f$n == 0L || (f$error == 0 && f$modifications == 0L)) return(0)
  least <- .Machine$double.xmin / .Machine$double.eps  # of a smaller trace the errors are no normal numbers
  if (is.finite(f$trace) && f$trace >= least) f$error / f$trace else NA_real_
}
