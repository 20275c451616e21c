#' Solve with many modifications of one matrix
#'
#' Given the factor \eqn{R} of \eqn{A = R'R} and \eqn{V_1, \ldots, V_f}, `solve_modified()` solves with each
#' \eqn{A_j = scale_j A + V_j\,\mathrm{diag}(weights_j)\,V_j'}{A_j = scale_j A + V_j diag(weights_j) V_j'}. It also
#' computes the determinant and quadratic forms of each \eqn{A_j}, all without making the factor of \eqn{A_j}.
#' Cross-validation that leaves out each group of observations in turn needs this, and so does a choice among
#' candidates. If you need the factor of an \eqn{A_j}, use [cholupdate_gpu()].
#'
#' One substitution, \eqn{P = R'^{-1}[V_1 \ldots V_f]}, is made for all \eqn{V_j} together, in BLAS. It takes
#' \eqn{O(n^2 k_j)} operations for a \eqn{V_j} of \eqn{k_j} columns. By the formula of Sherman, Morrison and Woodbury,
#' only a matrix of order \eqn{k_j} remains to be factorised for each \eqn{j}. Solving takes another \eqn{O(n^2)}
#' operations for each right-hand side.
#'
#' @param R The Cholesky factor: what [cholupdate_gpu()] accepts, or a handle from [chol_factor()], [gpu_factor()] or
#'   [gpu_chol()]; the substitutions are made where the handle keeps the factor. With a `float32` matrix, everything is
#'   computed in double precision. `R` may also be a handle from [chol_batch()]: see section Batches.
#' @param V The modifications: an \eqn{n \times f}{n x f} matrix, with one column for each modification; an
#'   \eqn{n \times k \times f}{n x k x f} array, with \eqn{k} columns for each; or a list of \eqn{f} vectors or matrices
#'   with \eqn{n} rows, with any numbers of columns. Matrices may also be of class `Matrix` or `float32`. See sections
#'   Batches and One rule for matrices.
#' @param b Right-hand sides: a vector of length \eqn{n}, for all modifications; an \eqn{n \times f}{n x f} matrix, also
#'   of class `Matrix` or `float32`, with one column for each modification; an \eqn{n \times m \times f}{n x m x f}
#'   array, with \eqn{m} columns for each; or an \eqn{n \times m \times 1}{n x m x 1} array, with \eqn{m} columns for
#'   all. `NULL` if only determinants are wanted.
#' @param downdate `TRUE` for \eqn{A_j = scale_j A - V_jV_j'}. Leave it out if you give `weights`.
#' @param ... Must be empty: the arguments below must be given by name.
#' @param weights Weights of the columns of \eqn{V_j}, of any sign: one number; one for each column, the same for all
#'   \eqn{j}; a \eqn{k \times f}{k x f} matrix; or a list with the weights for each \eqn{j}. If `V` is a matrix,
#'   `weights` may be \eqn{f} numbers, one for each modification.
#' @param scale One positive number, or one for each \eqn{j}.
#' @param what What to compute, one or more of `"solution"`, `"logdet"` and `"quadratic"`. The default is all of them,
#'   or `"logdet"` alone if there is no `b`.
#' @param uplo `"upper"` for \eqn{A = R'R}, `"lower"` for a lower triangular factor, \eqn{A = RR'}, as in
#'   [cholupdate_gpu()]. A handle carries this information itself.
#' @param check Whether an \eqn{A_j} that is not positive definite is an error (`TRUE`), or is reported in the return
#'   value (`FALSE`).
#' @param control What [cholupdate_control()] returns: `threads`, `instructions` and `device_memory` are used for those
#'   \eqn{A_j} whose factor is made (see section Accuracy). If `R` is a batch, they are used for all \eqn{A_j}.
#'
#' @return A list, of which the first three elements are there if `what` asks for them:
#'   \item{solution}{\eqn{A_j^{-1}b}: an \eqn{n \times f}{n x f} matrix if `b` is a vector or a matrix, otherwise an
#'     \eqn{n \times m \times f}{n x m x f} array. Rows and right-hand sides are named as by [base::solve()].
#'     Modifications have the names of `V` or, if `V` has none, the column names of `b`}
#'   \item{logdet}{the logarithms of the determinants of \eqn{A_j}}
#'   \item{quadratic}{\eqn{b'A_j^{-1}b}: \eqn{f} numbers, or, if `b` is an array, an \eqn{m \times f}{m x f} matrix}
#'   \item{pivot}{with `check = FALSE`: 0 for each \eqn{A_j} that is positive definite. For every other \eqn{A_j}, it is
#'     the order of its first leading minor that is not positive definite; all other results for this \eqn{j} are `NA`}
#'   \item{by_factor}{the numbers \eqn{j} for which the factor of \eqn{A_j} was made (see section Accuracy); usually
#'     there are none. For batches there is no such element}
#'
#' @section Batches:
#' If `R` is a handle from [chol_batch()], it has \eqn{f} members, and there is not one \eqn{A} for all modifications:
#' \eqn{A_j} is a modification of the matrix of member \eqn{j},
#' \eqn{A_j = scale_j R_j'R_j + V_j\,\mathrm{diag}(weights_j)\,V_j'}{A_j = scale_j R_j'R_j + V_j diag(weights_j) V_j'}.
#' The batch does not change. `V` may also be an \eqn{n \times k \times 1}{n x k x 1} array, or a vector, if it is the
#' same for all members. The results have the names of the members.
#'
#' The factor of each \eqn{A_j} is made as by [cholupdate_batch()], in the precision of the batch. It is used and then
#' dropped. So the results are as accurate as those of a modified batch, and the returned list has no `by_factor`. In
#' ordinary memory, a few members are modified at a time; on a GPU, there must be memory for a second batch, for `V` and
#' for the right-hand sides.
#'
#' If members have several orders, \eqn{n} is the largest order. A matrix in a list `V` has as many rows as its member.
#' In other forms of `V`, rows that a member does not have must be zero. Such rows of `b` are returned in the solution
#' as they are, and do not count in the quadratic form.
#'
#' @section One rule for matrices:
#' In a function for one matrix \eqn{A}, such as [cholupdate_gpu()], all columns of a matrix `V` together are one change
#' of \eqn{A}, and all columns of `b` are right-hand sides. In a function for many matrices, such as this function,
#' [cholupdate_batch()] and `solve()` of a [chol_batch()], each column of a matrix `V` or `b` belongs to one of the many
#' matrices. If each matrix has several columns, give them as an array of three dimensions. Its last dimension is 1 if
#' the columns are the same for all matrices. Several columns of `V` may also be given as a list.
#'
#' @section Accuracy:
#' The solution is as accurate as one that is computed with the factor of \eqn{A_j}: it solves a system whose matrix
#' differs from \eqn{A_j} by a few units of rounding times
#' \eqn{\|scale_j A\| + \|V_j\,\mathrm{diag}(|weights_j|)\,V_j'\|}{|scale_j A| + |V_j diag(|weights_j|) V_j'|}. The
#' formula of Sherman, Morrison and Woodbury may lose more digits if a downdate leaves a nearly singular matrix, or if
#' an update is large in a direction in which \eqn{A} is small. `solve_modified()` computes bounds that tell when this
#' is possible. For such \eqn{j}, for those whose \eqn{A_j} may not be positive definite, and for those with more than
#' \eqn{n} columns in \eqn{V_j}, it modifies a copy of `R` as [cholupdate_gpu()] does, and uses this copy instead. On a
#' GPU, or for a factor in single precision, this is done in the precision of the factor. See
#' `system.file("design", "fan-out.md", package = "gpucholmod")`.
#'
#' @section Errors:
#' If some \eqn{A_j} are not positive definite, the error has the class `gpucholmod_not_positive_definite` and the
#' fields `members`, the numbers \eqn{j}, and `pivots`, their pivots. An error about one \eqn{j} has its number in the
#' field `member`. [gpucholmod-package] lists the other classes. `R`, `V` and `b` are unchanged in every case. Ctrl-C
#' and [setTimeLimit()] stop a call between two modifications.
#'
#' @seealso [cholupdate_gpu()]; [chol_batch()]; `vignette("recipes")`, which leaves out groups of observations
#' @references
#' W. W. Hager (1989). Updating the inverse of a matrix. SIAM Review 31, 221--239. \doi{10.1137/1031049}
#' @examples
#' # a ridge regression without each of ten groups of observations
#' x <- matrix(rnorm(6000), 200)
#' y <- x[, 1] + rnorm(200)
#' groups <- split(1:200, rep(1:10, 20))
#' R <- chol(crossprod(x) + diag(30))
#' out <- lapply(groups, function(g) t(x[g, ]))
#' rhs <- sapply(groups, function(g) crossprod(x[-g, ], y[-g]))  # a column for each group
#' fits <- solve_modified(R, out, rhs, downdate = TRUE)
#' g <- groups[[3]]
#' all.equal(fits$solution[, 3], solve(crossprod(x[-g, ]) + diag(30), rhs[, 3]))
#'
#' # which of 1,000 new observations would increase the determinant most
#' candidates <- matrix(rnorm(30000), 30)
#' gain <- solve_modified(R, candidates, what = "logdet")$logdet - logdet(R)
#' which.max(gain)
#' all.equal(gain, log1p(colSums(solve_forward(R, candidates)^2)))
#'
#' # each member of a batch with a column of its own; the batch does not change
#' A <- replicate(4, crossprod(matrix(rnorm(60), 20)))  # 3 x 3 x 4
#' f <- chol_batch(array(apply(A, 3, chol), dim(A)))
#' V <- matrix(rnorm(12), 3)
#' found <- solve_modified(f, V, c(1, 2, 3))
#' all.equal(found$solution[, 2], solve(A[, , 2] + tcrossprod(V[, 2]), c(1, 2, 3)))
#' @concept cross-validation
#' @concept leave-one-out
#' @concept leave-group-out
#' @concept Woodbury
#' @concept Sherman-Morrison
#' @export
solve_modified <- function(R, V, b = NULL, downdate = FALSE, ..., weights = NULL, scale = 1,
                           what = c("solution", "logdet", "quadratic"), uplo = c("upper", "lower"),
                           check = TRUE, control = cholupdate_control()) {
  if (missing(R) || missing(V)) require_given("R", "V")
  if (inherits(R, "process_factor")) {
    given <- setdiff(names(as.list(match.call(expand.dots = FALSE))[-1L]), c("R", "V", "b", "..."))
    here <- environment()
    return(together({
      require_no_more(...)
      solve_modified_by_all(R, V, b, mget(given, here))
    }))
  }
  if (...length()) require_no_more(...)
  solve_with <- if (inherits(R, "chol_batch")) solve_modified_of_batch else solve_modified_of
  with_memory(solve_with(R, V, b, downdate, weights, scale, if (!missing(what)) what, if (!missing(uplo)) uplo, check,
                         if (!missing(control)) control))
}

# Does the work of solve_modified(). what, uplo, control: NULL if none was given.
solve_modified_of <- function(R, V, b, downdate = FALSE, weights = NULL, scale = 1, what = NULL, uplo = NULL,
                              check = TRUE, control = NULL) {
  factor <- factor_to_solve_with(R, uplo)
  held <- factor$held
  n <- factor$n
  require_same_rows(V, factor$names)
  members <- members_of(V, n)
  f <- length(members$k)
  require_same_places(members$names, b = b, weights = weights, scale = scale)
  weights <- check_weights(weights, downdate, members$k, by_column = members$columns, lists = TRUE)
  if (is.list(weights)) weights <- as.double(unlist(weights))
  else if (!is.null(weights)) weights <- rep_len(weights, sum(members$k))
  scale <- rep_len(check_scale(scale, f), f)
  sides <- sides_of_members(b, n, f)
  if (is.null(members$names)) members$names <- sides$members
  wants <- wanted_results(what, b)

  request <- new_request(downdate, check, single = factor$single, backend = if (factor$on_gpu) 2L else 1L,
                         control = if (!is.null(control)) control_numbers(control))
  solve_all <- function() {
    rcpp_solve_modified(held, members, weights, scale, sides, wants, request)
  }
  done <- NULL
  carry_out(request, {
    done <- if (factor$on_gpu) with_room(solve_all) else solve_all()
    list(pivot = 0L)
  })
  failed <- which(done$pivot > 0L)
  if (check && length(failed)) stop_members(done$pivot)
  c(results_of(done, c(n, sides$m, f), list(factor$names, sides$names, members$names), sides$vector, check),
    list(by_factor = which(done$by_factor)))
}

# Returns which of solution, logdet and quadratic are wanted. what: NULL if none was given.
wanted_results <- function(what, b) {
  known <- c("solution", "logdet", "quadratic")
  what <- if (!is.null(what)) match_choices(what, known, "what") else if (is.null(b)) "logdet" else known
  if (!length(what)) stop_bad_argument("what", what, "is empty")
  if (is.null(b) && !identical(what, "logdet")) {
    stop_bad_argument("b", NULL, "is missing: without it there are but determinants")
  }
  known %in% what
}

# Returns the results of src/, of which those that were not wanted are NULL, in their shapes. d, names: dimensions of
# the solutions (rows, right-hand sides, modifications) and their names; vector as in shaped().
results_of <- function(done, d, names, vector, check) {
  c(if (!is.null(done$solution)) list(solution = shaped(done$solution, d, names, vector)),
    if (!is.null(done$logdet)) list(logdet = stats::setNames(done$logdet, names[[3L]])),
    if (!is.null(done$quadratic)) list(quadratic = shaped(done$quadratic, d[-1L], names[-1L], vector)),
    if (!check) list(pivot = stats::setNames(done$pivot, names[[3L]])))
}

# Opens a factor: list(held, n, single, on_gpu, names). `held` is a handle, or an environment with the upper `matrix` of
# doubles; `names` are those of A.
factor_to_solve_with <- function(R, uplo) {
  if (inherits(R, "chol_factor")) {
    live(R, "R")
    if (!is.null(uplo)) match_choice(uplo, R$uplo, "uplo")
    return(list(held = R, n = R$n, single = R$precision == "single", on_gpu = inherits(R, "gpu_factor"),
                names = variable_names(R)))
  }
  if (inherits(R, "factor_file")) stop_not_for_file("solve_modified()")
  factor <- open_factor(R, if (!is.null(uplo)) match_choice(uplo, choices$uplo, "uplo"))
  x <- opened_doubles(factor, R)
  if (factor$lower) x <- t(x)
  list(held = list2env(list(matrix = x), parent = emptyenv()), n = nrow(x), single = FALSE, on_gpu = FALSE,
       names = factor_dimnames(R)[[if (factor$lower) 1L else 2L]])
}

# Opens modifications: list(V, k, names, columns). V holds all V_j side by side, k the number of columns of each;
# `columns` is true if each V_j is a column of a matrix.
members_of <- function(V, n) {
  if (is.list(V) && !is.object(V)) {
    all <- open_listed_columns(V, rep.int(n, length(V)))
    whole <- if (length(all)) do.call(cbind, all) else matrix(0, n, 0L)
    return(list(V = whole, k = vapply(all, NCOL, 1L), names = names(V), columns = FALSE))
  }
  if (length(dim(V)) == 3L) {
    d <- dim(V)
    return(list(V = open_array(V, n, "V"), k = rep.int(d[[2L]], d[[3L]]), names = dimnames(V)[[3L]], columns = FALSE))
  }
  x <- open_columns(V, n, float32 = FALSE)
  list(V = x, k = rep.int(1L, ncol(x)), names = colnames(x), columns = TRUE)
}

# Returns the members of a list, of which number j has n[[j]] rows, as doubles.
open_listed_columns <- function(V, n) {
  lapply(seq_along(V), function(j) {
    if (are_plain_columns(V[[j]], n[[j]])) return(V[[j]])
    open_columns(V[[j]], n[[j]], float32 = FALSE, sprintf("V[[%d]]", j))
  })
}

# Returns an array of three dimensions with n rows as doubles.
open_array <- function(x, n, argument) {
  x <- ordinary_numbers(x)
  if (!is.numeric(x) || is.object(x)) stop_not_numeric(x, argument)
  if (dim(x)[[1L]] != n) {
    stop_gpucholmod("dimension_mismatch", sprintf("'%s' has %d rows, the factor is %d x %d", argument, dim(x)[[1L]], n,
                                                  n),
                    list(expected = n, actual = dim(x)[[1L]]))
  }
  as_double(x)
}

# Opens right-hand sides: list(b, m, own, names, members, vector), m for each modification. `own` is true if each
# modification has others; `vector` is true if each has one, so that there is no dimension for it; `members` are names
# of the modifications.
sides_of_members <- function(b, n, f) {
  if (is.null(b)) return(list(b = NULL, m = 0L, own = FALSE, vector = FALSE))
  if (length(dim(b)) == 3L) {
    x <- open_array(b, n, "b")
    common <- dim(b)[[3L]] == 1L && f != 1L
    if (!common) require_members(dim(b)[[3L]], f)
    return(list(b = x, m = dim(b)[[2L]], own = !common, names = dimnames(b)[[2L]], vector = FALSE))
  }
  x <- right_sides(b, n)
  each <- length(dim(if (is_float32(b)) b@Data else b)) == 2L
  if (each) require_members(ncol(x), f, "; if all of them have the same right-hand sides, give array(b, c(dim(b), 1))")
  list(b = x, m = 1L, own = each, members = if (each) colnames(x), vector = TRUE)
}

# Stops unless there are right-hand sides for as many modifications as there are.
require_members <- function(given, f, hint = "") {
  if (given == f) return(invisible())
  stop_gpucholmod("dimension_mismatch", sprintf("'b' is for %d modifications, there are %d%s", given, f, hint),
                  list(expected = f, actual = given))
}

# Returns numbers with dimensions d and names. If b was a vector, the last dimension but one, which is 1, is dropped.
shaped <- function(x, d, names, vector) {
  if (vector) {
    d <- d[-(length(d) - 1L)]
    names <- names[-(length(names) - 1L)]
  }
  if (length(d) == 1L) return(stats::setNames(x, names[[1L]]))
  dim(x) <- d
  if (!all(vapply(names, is.null, TRUE))) dimnames(x) <- names
  x
}
