# The usual call of cholupdate_gpu(), in which nothing is given but R, V, `downdate`, `weights`, `scale`, right-hand
# sides and `in_place`: one call of src/, which looks at all of them. Where src/ does not know how to deal with them,
# the method for all calls gets the same arguments. .Call() is called here, as a wrapper would take as long as a
# modification of order 15.

#' @export
cholupdate_gpu.matrix <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                  rss = NULL) {
  if (...length() == 0L) {
    done <- .Call(`_gpucholmod_rcpp_cholupdate_usual`, R, V, downdate, weights, scale, z, y, rss)
    if (is.double(done)) return(done)
    if (is.list(done)) {
      modified <- done$factor
      done$factor <- NULL  # as in cholupdate_gpu.default()
      return(with_sides(modified, done, NULL, rss))
    }
    if (!is.null(done)) stop_not_positive_definite("the downdated matrix", done)
  }
  cholupdate_gpu.default(R, V, downdate, ..., weights = weights, scale = scale, z = z, y = y, rss = rss)
}

# The order is looked at before V is evaluated, which may change it.
#' @export
#' @rawNamespace S3method(cholupdate_gpu, gpu_factor, cholupdate_gpu.cpu_factor)
cholupdate_gpu.cpu_factor <- function(R, V, downdate = FALSE, ..., weights = NULL, scale = 1, z = NULL, y = NULL,
                                      rss = NULL, in_place = FALSE) {
  if (...length() == 0L && is.environment(R)) {
    done <- .Call(`_gpucholmod_rcpp_factor_modify_usual`, R, in_place, .subset2(R, "n"), V, downdate, weights, scale,
                  z, y, rss)
    if (is.integer(done)) stop_not_positive_definite("the downdated matrix", done, loss_of(R))
    if (is.list(done)) done <- with_sides(done$factor, done, NULL, rss)
    if (!is.null(done)) return(if (in_place) invisible(done) else done)
  }
  cholupdate_gpu.chol_factor(R, V, downdate, ..., weights = weights, scale = scale, z = z, y = y, rss = rss,
                             in_place = in_place)
}
