# solve_modified() of a batch: a modification of each member.

# Does the work of solve_modified() for a handle of chol_batch(). what, uplo, control: NULL if none was given.
solve_modified_of_batch <- function(R, V, b = NULL, downdate = FALSE, weights = NULL, scale = 1, what = NULL,
                                    uplo = NULL, check = TRUE, control = NULL) {
  require_live_batch(R)
  if (!is.null(uplo)) match_choice(uplo, R$uplo, "uplo")
  request <- batch_request(downdate, check, FALSE, FALSE, if (is.na(R$device)) 1L else 2L, control)
  f <- R$count
  names <- members_named(R, V, b)
  require_same_places(names, V = V, b = b, weights = weights, scale = scale)
  require_same_rows(V, names_of_variables(R$dimnames, R$uplo == "lower"))
  columns <- columns_for_members(V, R)
  weights <- weights_for_members(weights, downdate, columns)
  scale <- batch_scale(scale, f)
  sides <- if (!is.null(b)) open_members(b, R$n, f, "b")
  wants <- wanted_results(what, b)
  done <- with_room(function() rcpp_batch_solve_modified(R, columns, weights, scale, sides, wants, request))
  if (check && any(done$pivot > 0L)) stop_members(done$pivot)
  several <- length(dim(b)) == 3L
  results_of(done, c(R$n, if (is.null(b)) 0L else sides$k, f),
             list(R$dimnames[[if (R$uplo == "lower") 1L else 2L]], if (several) dimnames(b)[[2L]], names), !several,
             check)
}

# Opens columns for the members of a batch, as open_members() does, or from a list: list(x, k, b, common, counts, each).
# counts: columns of each member, which is k but for a list, where x has zeros behind them; each: TRUE if V is a matrix
# with one column for each member.
columns_for_members <- function(V, R) {
  f <- R$count
  if (!is.list(V) || is.object(V)) {
    given <- open_members(V, R$n, f)
    each <- length(dim(if (is_float32(V)) V@Data else V)) == 2L
    return(c(given, list(counts = rep.int(given$k, f), each = each)))
  }
  if (length(V) != f) {
    stop_gpucholmod("dimension_mismatch", sprintf("'V' is for %d members, there are %d", length(V), f),
                    list(expected = f, actual = length(V)))
  }
  own <- rcpp_batch_orders(R)
  all <- open_listed_columns(V, own)
  counts <- vapply(all, NCOL, 1L)
  k <- max(counts, 0L)
  x <- array(0, c(R$n, k, f))
  for (m in seq_along(all)) x[seq_len(own[[m]]), seq_len(counts[[m]]), m] <- all[[m]]
  list(x = x, k = k, b = f, common = FALSE, counts = counts, each = FALSE)
}

# Returns the weights for the core, of opened columns: NULL, k numbers, or a k x b matrix. lists: see check_weights().
weights_for_members <- function(weights, downdate, columns, lists = TRUE) {
  k <- columns$k
  w <- check_weights(weights, downdate, columns$counts, by_column = columns$each, lists = lists)
  if (is.null(w)) return(if (downdate) rep(-1, k))
  if (is.matrix(w)) return(w)
  if (is.list(w)) {
    all <- matrix(0, k, columns$b)
    all[row(all) <= rep(columns$counts, each = k)] <- unlist(w)
    return(all)
  }
  if (length(w) > 1L && length(w) != k) matrix(w, 1L) else rep_len(w, k)
}
