# all.equal() of factors, which compares the numbers that handles refer to.

#' @rdname condition_number
#' @method all.equal chol_factor
#' @export
all.equal.chol_factor <- function(target, current, tolerance = NULL, ...) {
  if (missing(current)) require_given("target", "current")
  with_memory(equal_numbers(numbers_of(target), numbers_of(current), tolerance_for(tolerance, target, current), ...))
}

#' @rdname condition_number
#' @method all.equal process_factor
#' @export
all.equal.process_factor <- function(target, current, tolerance = NULL, ...) {
  together({
    x <- numbers_of(target)
    y <- numbers_of(current)  # NULL in processes other than 0 for such a factor
    tolerance <- tolerance_for(tolerance, target, current)
    agreed(if (target$process == 0L) equal_numbers(x, y, tolerance, ...), "target", "all.equal")
  })
}

#' @rdname condition_number
#' @method all.equal factor_file
#' @export
all.equal.factor_file <- all.equal.chol_factor

#' @rdname condition_number
#' @method all.equal chol_batch
#' @export
all.equal.chol_batch <- all.equal.chol_factor

# Returns the numbers of a factor, of many in a batch, or of a matrix.
numbers_of <- function(f) {
  if (inherits(f, "chol_batch")) as.array(f)
  else if (is_float32(f)) `dimnames<-`(keep_dim(rcpp_from_float(f@Data), f@Data), dimnames(f@Data))
  else if (inherits(f, c("chol_factor", "factor_file")) || (isS4(f) && methods::is(f, "Matrix"))) as.matrix(f)
  else if (is.numeric(f) && length(f) == 1L && is.null(dim(f))) matrix(f)  # as for a factor of order 1
  else f
}

equal_numbers <- function(x, y, tolerance, ...) {
  if (!is.numeric(y)) return(sprintf("target is a factor, current is of class %s", class(y)[[1L]]))
  all.equal(x, y, tolerance = tolerance, ...)
}

tolerance_for <- function(tolerance, target, current) {
  if (!is.null(tolerance)) return(tolerance)
  is_single <- function(f) is_float32(f) || (is.environment(f) && identical(.subset2(f, "precision"), "single"))
  sqrt(if (is_single(target) || is_single(current)) 2^-23 else .Machine$double.eps)
}
