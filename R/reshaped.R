# What a factor becomes when rows and columns come, go or move: the call of the core, and the value with its names.

# Calls call(modified, dimnames, request), which inserts, deletes or moves by one of the rcpp_factor_*(), and returns
# list(R, pivot, z, rss): R is a handle or a matrix, the other elements are those of carry_out(). Row i of the result is
# row order[[i]] of the factor as it is now; NA stands for a new row, named by `names`. With a failing pivot, R is the
# factor as it was given.
reshape_factor <- function(f, in_place, control, order, names, sides, call) {
  require_flag(in_place, "in_place")
  held <- is_held(f)
  if (held && !is.null(.subset2(f, "dimnames"))) live(f, "R") # they may have been changed by hand
  dimnames <- new_dimnames(.subset2(f, "dimnames"), order, names)
  single <- identical(.subset2(f, "precision"), "single")
  request <- new_request(check = FALSE, single = single, backend = 1L, control = control, sides = sides)
  modified <- if (in_place) f else if (held) descendant(f)
  work <- function() call(modified, dimnames, request)
  done <- carry_out(request, if (inherits(f, "gpu_factor")) with_room(work, f) else work())
  of <- function(R) list(R = R, pivot = done$pivot, z = done$z, rss = done$rss)
  if (done$pivot == 0L) return(of(if (held) modified else done$factor))
  of(if (held) f else f$matrix)
}

# Returns the value of an insertion, deletion or shift. z, rss: as the caller gave them.
reshaped <- function(done, z, rss, check = TRUE) {
  if (is.null(z)) return(if (check) done$R else done[c("R", "pivot")])
  taken <- if (done$pivot > 0L) list(z = z, rss = rss) else done[c("z", "rss")]
  with_sides(done$R, taken, if (!check) done$pivot, rss)
}

# Returns the attributes of the new right-hand sides z: a matrix of `rows` rows, or a vector, with names in the order of
# the rows.
reshaped_form <- function(z, rows, order, names = NULL) {
  old <- if (is_float32(z)) z@Data else z
  if (length(dim(old)) != 2L) {
    return(if (!is.null(names(old))) list(names = new_dimnames(list(names(old)), order, names)[[1L]]))
  }
  form <- list(dim = c(as.integer(rows), ncol(old)))
  own <- rownames(old)
  if (!is.null(dimnames(old))) {
    new <- if (!is.null(own)) new_dimnames(list(own), order, names)[[1L]]
    form$dimnames <- list(new, colnames(old))
  }
  form
}

# Returns the dimnames of a factor whose row i was row order[[i]]; NA stands for a new row.
new_dimnames <- function(dimnames, order, names = NULL) {
  if (is.null(dimnames) && is.null(names)) return(NULL)
  if (all(vapply(dimnames, is.null, TRUE))) dimnames <- NULL  # as those of a Matrix may be
  if (is.null(dimnames) && is.null(names)) return(NULL)
  own <- lapply(if (is.null(dimnames)) list(NULL, NULL) else dimnames, function(old) {
    if (is.null(old) && (is.null(names) || !is.null(dimnames))) return(NULL)
    if (is.null(old)) old <- character(sum(!is.na(order)))
    all <- old[order]
    all[is.na(order)] <- if (is.null(names)) "" else names
    all
  })
  if (all(vapply(own, is.null, TRUE))) NULL else own
}
