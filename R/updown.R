# Matrix::updown() for factors with memory of their own: a method that is there once package Matrix is loaded, which
# this one does not need.

# Registers the method now, if Matrix is loaded, or when it will be.
.onLoad <- function(libname, pkgname) {
  if (isNamespaceLoaded("Matrix")) register_updown()
  setHook(packageEvent("Matrix", "onLoad"), function(...) register_updown())
}

# Registers the method in a table in an environment of its own: when Matrix is loaded, the namespace of this package is
# locked.
register_updown <- function() {
  setMethod(Matrix::updown, c(L = "chol_factor"), updown_factor, where = new.env(parent = topenv()))
}

# Modifies a factor as Matrix::updown() does.
updown_factor <- function(update, C, L) {
  if (identical(update, "+")) update <- TRUE
  if (identical(update, "-")) update <- FALSE
  if (!isTRUE(update) && !isFALSE(update)) {
    stop_bad_argument("update", update, "must be TRUE or \"+\", or, for a downdate, FALSE or \"-\"")
  }
  cholupdate_gpu.chol_factor(L, C, downdate = !update)
}
