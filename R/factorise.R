# From a matrix to a handle of its factor: for gpu_chol(), and chol_factor(A = ).

# Makes a handle of the factor of the symmetric matrix A. precision: NULL for that of A; devices: require_devices().
factorised <- function(A, jitter, backend, uplo, precision, devices, capacity) {
  require_jitter(jitter)
  opened <- with_memory(open_symmetric(A))
  if (is.null(precision)) precision <- if (opened$float32) "single" else "double"
  n <- nrow(opened$x)
  if (backend == "cuda" || held_on_gpu(backend, capacity_for(capacity, n))) {
    if (!is.null(capacity)) {
      stop_bad_argument("capacity", capacity, "cannot be given with 'A' on a GPU; give R = chol(A) instead of 'A'")
    }
    return(factorised_on_gpu(opened, jitter, uplo, precision, devices))
  }
  R <- with_memory({
    x <- if (opened$float32) keep_dim(rcpp_from_float(opened$x), opened$x) else opened$x
    done <- factorised_with_jitter(x, jitter, precision, function(added) rcpp_factorise(x, added))
    dimnames(done$R) <- opened$dimnames
    if (uplo == "lower") t(done$R) else done$R
  })
  f <- chol_factor.default(R, "cpu", uplo, precision, capacity = capacity)
  if (is.null(done$added) || done$added == 0) f else note_jitter(f, done$added)
}

# Makes that handle on GPUs; opened: what open_symmetric() returns.
factorised_on_gpu <- function(opened, jitter, uplo, precision, devices) {
  x <- opened$x
  if (jitter > 0 && opened$float32) x <- with_memory(keep_dim(rcpp_from_float(x), x))
  done <- factorised_with_jitter(x, jitter, precision, function(added) {
    if (added > 0) diag(x) <- diag(x) + added
    with_room(function() rcpp_factor_factorise(x, number_of(precision, "precision"), devices))
  })
  f <- new_factor(done$made, uplo, opened$dimnames)
  if (is.null(done$added) || done$added == 0) f else note_jitter(f, done$added)
}

# Calls attempt(added), which factorises A with `added` to its diagonal, as with_jitter() does, and tells what was
# added; stops where A is not positive definite nevertheless. x: A, whose diagonal is looked at if there is a jitter.
factorised_with_jitter <- function(x, jitter, precision, attempt) {
  size <- if (jitter > 0 && length(x)) max(diag(x)) else 0
  done <- with_jitter(jitter_steps(jitter, size, precision), attempt)
  if (done$pivot > 0L) {
    hint <- if (is_strictly_upper(x)) "; 'A' is upper triangular: a factor is given as 'R'" else jitter_hint
    stop_not_positive_definite("'A'", done$pivot, if (jitter > 0) done$also else hint)
  }
  if (!is.null(done$added) && done$added > 0) tell_jitter(done$added, "the diagonal of 'A'")
  done
}

# Is true for a matrix with numbers above its diagonal and none below.
is_strictly_upper <- function(x) isTRUE(all(x[lower.tri(x)] == 0)) && isTRUE(any(x[upper.tri(x)] != 0))
