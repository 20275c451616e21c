#' How far modifications may have taken a factor from exact
#'
#' Every modification leaves the factor of a matrix that is a few units of rounding away from the one that is meant, and
#' these errors add up. `drift()` estimates their sum, relative to \eqn{A}, without looking at the factor.
#'
#' A modification of \eqn{A} into \eqn{\tilde A}{A~} is counted with
#' \deqn{4\,\epsilon\,\max(\mathrm{tr}\,A, \mathrm{tr}\,\tilde A),}{4 eps max(tr A, tr A~),}
#' where \eqn{\epsilon}{eps} is 2.2e-16 in double and 1.2e-7 in single precision: measured backward errors of one
#' modification lie below that (`system.file("design", "accuracy.md", package = "gpucholmod")`). The sum since the
#' factor was put where it is, divided by the trace of \eqn{A} as it is now, is the drift. So a downdate
#' that removes nearly all of \eqn{A} shows in it, as it should. The trace is known to half its digits: a modification
#' looks at the factor where it would not be. The drift is an estimate, not a bound, and knows nothing of
#' errors that the factor came with.
#'
#' @section When to refactor:
#' A relative error \eqn{\delta} of \eqn{A} becomes one of up to \eqn{\kappa\delta}{kappa delta} in what is solved with
#' it, \eqn{\kappa}{kappa} being the condition number of \eqn{A}. So factorise afresh when `drift(f)` times
#' the condition number exceeds the accuracy that you need; where you do not know the condition number, when `drift(f)`
#' exceeds `sqrt(.Machine$double.eps)`, or `sqrt(2^-23)` in single precision.
#'
#' @param f A handle from [chol_factor()], [gpu_factor()] or [gpu_chol()].
#' @return A number: the estimated relative error of \eqn{A}, 0 where it was not modified, `NA` where the trace is too
#'   large to represent. The number of modifications is `f$modifications`.
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
  live(f)
  if (f$error == 0 || f$n == 0L) 0 else if (is.finite(f$trace)) f$error / f$trace else NA_real_
}
