# Checks of rls(): of its arguments, and of fits, whose parts may have been changed by hand.

require_window <- function(window) {
  if (!is_window(window)) stop_bad_argument("window", window, "must be a whole number of observations, or Inf")
  as.double(window)
}
require_forget <- function(forget, argument = "forget") {
  if (!is_forget(forget)) stop_bad_argument(argument, forget, "must be a number above 0, up to 1")
  as.double(forget)
}
require_tolerance <- function(tol) {
  if (!is_number(tol) || tol < 0 || tol >= 1) stop_bad_argument("tol", tol, "must be a number from 0 to below 1")
  as.double(tol)
}

# Is true for a whole number of observations, at least 1, or Inf.
is_window <- function(x) is_number(x) && x >= 1 && x == round(x)
is_forget <- function(x) is_number(x) && x > 0 && x <= 1
# Stops unless `fit` can be what rls() or update() has returned.
require_fit <- function(fit) {
  if (!rcpp_rls_is_sound(fit) || !(is.null(fit$terms) || inherits(fit$terms, "terms"))) {
    stop_bad_argument("object", fit, "is not as rls() or update() has returned it: make a new fit")
  }
}
