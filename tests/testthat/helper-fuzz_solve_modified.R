# Random calls, see helper-fuzz.R: many modifications of one factor, solved with.

fuzz_solve_modified <- function(gpu) {
  n <- min(draw_order(), 130L)
  home <- one_of(c("matrix", "cpu", if (gpu) "cuda"))
  single <- home != "matrix" && chance(0.3)
  X <- draw_factor(n) * 10^runif(1, -15, 15)
  if (single) X <- upper(as_floats(X))
  uplo <- one_of(c("upper", "lower"))
  R <- put_factor(X, "ordinary", uplo)
  f <- one_of(c(0L, 1L, 3L, 8L), c(0.5, 2, 3, 2))
  form <- one_of(c("list", "array", "matrix"), c(3, 2, 1))
  k <- if (form == "matrix") rep(1L, f) else if (form == "array") rep(draw_rank(), f)
                                             else vapply(seq_len(f), function(j) draw_rank(), 1L)
  changes <- draw_changes(f, k)
  V <- lapply(seq_len(f), function(j) draw_member(X, k[[j]], changes$w[[j]], changes$scale[[j]]))
  b <- draw_sides_of_members(n, f, X)
  check <- chance(0.5)
  wrong <- f > 0L && n > 0L && all(k > 0L) && chance(0.15)
  given <- list(R = if (home == "matrix") R else chol_factor(R, home, uplo, if (single) "single" else "double"),
                V = switch(form, list = lapply(V, function(v) if (ncol(v) == 1L && chance(0.5)) as.vector(v) else v),
                           array = array(as.double(unlist(V)), c(n, if (f > 0L) k[[1L]] else 2L, f)),
                           matrix = matrix(as.double(unlist(V)), n, f)))
  args <- c(given, list(b = b$given), changes$args)
  if (!check) args$check <- FALSE
  if (chance(0.3)) args$control <- draw_control()
  if (uplo == "lower" && home == "matrix") args$uplo <- "lower"
  must <- if (!drawn_instructions(args$control) %in% c("auto",
                                                       instructions_here)) "bad_argument"  # where a factor is modified
  what <- sprintf("solve_modified: %s, n %d, %s, f %d, %s, k %s%s%s", home, n, if (single) "single" else "double", f,
                  form,
                  paste(k, collapse = " "), if (check) "" else ", no check", if (wrong) ", wrong" else "")
  if (wrong) {
    argument <- one_of(c("V", "b", "weights", "scale"))
    args[argument] <- list(switch(argument, V = list(replace(V[[1L]], 1L, NA), V[[1L]])[c(1L, rep(2L, f - 1L))],
                                  b = rep(Inf, n), weights = NaN, scale = -1))
    args$downdate <- NULL
  }
  frame <- frame_of(args)
  seen <- observe(solve_modified, frame, names(args))
  judged <- lapply(seq_len(f), function(j) judge_input(X, V[[j]],
                                                       list(weights = changes$w[[j]], scale = changes$scale[[j]]),
                                                       if (single) "single" else "double"))
  allowed <- unique(unlist(lapply(judged, function(one) one$allowed)))
  if (wrong) allowed <- c("not_finite", "bad_argument", "dimension_mismatch")
  else if (!check) allowed <- c(setdiff(allowed, "not_positive_definite"), "ok")
  else if (is.null(allowed) || all(vapply(judged, function(one) "ok" %in% one$allowed, TRUE)))
    allowed <- c(allowed, "ok")
  else allowed <- setdiff(allowed, "ok")
  if (home == "cuda" && !is.null(args$control) && is.finite(args$control$device_memory)) {
    allowed <- c(allowed, "out_of_memory")
  }
  problems <- c(seen$problems, expect_outcome(seen, c(allowed, must)), expect_signals(seen))
  if (length(problems) || seen$outcome != "ok") return(record(what, seen$outcome, problems))
  checked <- check_members(seen$value, X, V, changes, b, judged, check, if (single) 2^-23 else .Machine$double.eps)
  record(what, "ok", checked$problems, checked$residual)
}

# How each of f modifications by k columns changes A: the arguments, and the weights and scales that they come to.
draw_changes <- function(f, k) {
  kind <- one_of(c("update", "downdate", "all", "each"), c(3, 3, 2, 2))
  if (kind == "update") changes <- list(args = list(), w = lapply(k, function(count) rep(1, count)))
  if (kind == "downdate") changes <- list(args = list(downdate = TRUE), w = lapply(k, function(count) rep(-1, count)))
  if (kind == "all") {
    w <- one_of(c(-1, -0.3, 1e-12, 2, 1e12))
    changes <- list(args = list(weights = w), w = lapply(k, function(count) rep(w, count)))
  }
  if (kind == "each") {
    w <- lapply(k, function(count) {
      one_of(c(-1, 1)) * 10^runif(count, -4, 1) * sample(c(-0.01, 0, 1, 1, 1), count, TRUE)
    })
    changes <- list(args = list(weights = w), w = w)
  }
  changes$scale <- rep(1, f)
  if (chance(0.3)) changes$scale <- if (chance(0.5)) rep(runif(1, 0.1, 3), f) else runif(f, 0.1, 3)
  if (any(changes$scale != 1)) changes$args$scale <- changes$scale
  changes
}

# V of one of them: of any size beside the factor X, or near to where a downdate is possible.
draw_member <- function(X, k, w, scale) {
  n <- nrow(X)
  size <- if (n > 0L) max(abs(X)) else 1
  if (n == 0L || k == 0L || k > n || any(w >= 0) || chance(0.4)) return(draw_columns(n, k) * size * one_of(c(0.01, 1)))
  gap <- if (chance(0.7)) 10^runif(1, -16, 0) else -10^runif(1, -15, 1)
  nearly_singular(X, k, gap)$V * rep(sqrt(scale / -w), each = n)
}

# Right-hand sides: `each` is those of one of them.
draw_sides_of_members <- function(n, f, X) {
  form <- one_of(c("vector", "matrix", "array", "common"))
  m <- if (form %in% c("vector", "matrix")) 1L else one_of(c(0L, 1L, 3L))
  numbers <- switch(form, vector = rnorm(n), matrix = matrix(rnorm(n * f), n, f),
                    array = array(rnorm(n * m * f), c(n, m, f)), common = array(rnorm(n * m), c(n, m, 1L)))
  if (n > 0L && chance(0.5)) numbers <- array(crossprod(X, X %*% matrix(numbers, n)), dim(as.array(numbers)))
  if (form == "vector") numbers <- as.vector(numbers)
  list(given = numbers, vector = form %in% c("vector", "matrix"),
       each = function(j) {
         switch(form, vector = as.matrix(numbers), matrix = matrix(numbers[, j], n, 1L),
                array = matrix(numbers[, , j], n, m), common = matrix(numbers, n, m))
       })
}

# Of a result: list(residual, problems). Residuals are those of test-solve_modified.R.
check_members <- function(found, X, V, changes, b, judged, check, eps) {
  n <- nrow(X)
  f <- length(V)
  m <- ncol(b$each(min(f, 1L)))
  if (f == 0L) m <- if (b$vector) 1L else dim(b$given)[[2L]]
  if (!identical(names(found), c("solution", "logdet", "quadratic", if (!check) "pivot", "by_factor"))) {
    return(list(problems = "other parts", residual = NA_real_))
  }
  if (!identical(dim(found$solution), c(n, if (!b$vector) m, f)) || length(found$logdet) != f ||
      length(found$quadratic) != m * f) {
    return(list(problems = "another shape", residual = NA_real_))
  }
  solution <- array(found$solution, c(n, m, f))
  quadratic <- matrix(found$quadratic, m, f)
  worst <- 0
  problems <- character()
  for (j in seq_len(f)) {
    pivot <- if (check) 0L else found$pivot[[j]]
    if (pivot > 0L && !"not_positive_definite" %in% judged[[j]]$allowed || pivot == 0L &&
        !"ok" %in% judged[[j]]$allowed) {
      problems <- c(problems, sprintf("pivot %d of modification %d", pivot, j))
    }
    if (pivot > 0L && !anyNA(c(solution[, , j], quadratic[, j], found$logdet[[j]], NA))) {
      problems <- c(problems, "numbers where there can be none")
    }
    if (pivot > 0L || n == 0L || m == 0L) next
    e <- errors_of_solution(matrix(solution[, , j], n, m), quadratic[, j], changes$scale[[j]] * crossprod(X), V[[j]],
                            changes$w[[j]], b$each(j), eps)
    worst <- max(worst, e$residual)
    if (!isTRUE(e$form <= 40 * n)) {
      problems <- c(problems, sprintf("the quadratic form of modification %d is wrong by %.3g eps", j, e$form))
    }
  }
  if (!isTRUE(worst <= fuzz_largest_residual)) problems <- c(problems, sprintf("the residual is %.3g eps", worst))
  list(problems = problems, residual = worst)
}

# Returns what is wrong with solutions x and quadratic forms for A + V diag(w) V' and right-hand sides y, in eps:
# list(residual, form).
errors_of_solution <- function(x, quadratic, A, V, w, y, eps) {
  by <- function(error, size) max(0, ifelse(error == 0, 0, error / (eps * size)))
  D <- norm_1(A) + norm_1(V %*% (abs(w) * t(V)))
  rest <- y - A %*% x - V %*% (w * crossprod(V, x))
  list(residual = by(colSums(abs(rest)), D * colSums(abs(x)) + colSums(abs(y))),
       form = by(abs(quadratic - colSums(x * y)), D * colSums(x^2) + sqrt(colSums(x^2) * colSums(y^2))))
}
