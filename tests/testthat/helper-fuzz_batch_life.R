# Random calls, see helper-fuzz.R: lives of batches, whose members get rows, lose them and are modified. After each call
# every member is judged beside what its matrix should be; after some, solve_modified() is, which changes nothing.

fuzz_batch_life <- function(gpu) {
  n <- if (chance(0.1)) 0L else whole(1L, one_of(c(4, 12, 40)))
  b <- whole(1L, 20L)
  home <- if (gpu && chance(0.7)) "cuda" else "cpu"
  precision <- one_of(c("double", "single"), c(2, 1))
  uplo <- one_of(c("upper", "lower"), c(2, 1))
  own <- if (chance(0.2)) replicate(b, whole(0L, n)) else rep(n, b)
  R <- lapply(own, draw_factor_of_life)
  capacity <- if (chance(0.5)) max(own) + whole(0L, 6L)
  given <- lapply(R, function(R) if (uplo == "lower") t(R) else R)
  f <- chol_batch(given, home, uplo = uplo, precision = precision, capacity = capacity)
  what <- sprintf("a batch: %s, b %d, orders %d to %d, %s %s", home, b, min(own), max(own), uplo, precision)
  eps <- if (precision == "single") 2^-23 else 2^-52
  worst <- NA_real_
  for (step in seq_len(whole(1L, 8L))) {
    A <- matrices_of_life(f)
    change <- one_of(list(insert_in_life, delete_in_life, move_in_life, update_in_life), c(4, 2, 2, 2))(f, A)
    what <- sprintf("%s; %s", what, change$what)
    sides <- if (!is.null(change$order) && chance(0.5)) draw_sides_in_life(f, change)
    seen <- observe(change$fun, frame_of(c(list(R = f), change$args, sides$args)))
    problems <- c(seen$problems, expect_signals(seen), expect_outcome(seen, change$outcome))
    if (seen$outcome == "ok" && !length(problems)) {
      value <- seen$value
      if (!is.null(change$pivot) && !identical(value$pivot > 0L, change$pivot)) {
        problems <- "other members fail than those that must"
      }
      f <- if (is.null(change$pivot) && is.null(sides)) value else value$R
      problems <- c(problems, if (!is.null(sides)) check_sides_of_life(f, value, sides, eps))
      ratios <- mapply(ratio_of_life, matrices_of_life(f), change$A) / eps
      worst <- max(worst, ratios, na.rm = TRUE)
      if (any(ratios > 30)) problems <- c(problems, sprintf("a residual of %.0f", max(ratios)))
      if (!identical(unname(orders(f)), vapply(change$A, nrow, 0L))) problems <- c(problems, "other orders")
    }
    if (!length(problems) && chance(0.4)) problems <- solve_in_life(f, matrices_of_life(f), eps)
    if (length(problems)) break
  }
  record(what, seen$outcome, problems, worst)
}

# A factor of a well conditioned matrix, of numbers that floats can hold.
draw_factor_of_life <- function(n) {
  if (n == 0L) return(matrix(0, 0L, 0L))
  R <- chol(crossprod(matrix(rnorm(3 * n^2), 3 * n)) / n)
  matrix(as_floats(R), n)
}

# The matrices of all members.
matrices_of_life <- function(f) {
  lapply(seq_len(length(f)), function(m) if (f$uplo == "lower") tcrossprod(f[[m]]) else crossprod(f[[m]]))
}

ratio_of_life <- function(A, expected) {
  if (!identical(dim(A), dim(expected))) return(Inf)
  if (!length(A)) return(0)
  norm(A - expected, "1") / (norm(expected, "1") * nrow(A))
}

# Right-hand sides of members of f that come along with a change: list(args, B), B of each member as it must be
# afterwards.
draw_sides_in_life <- function(f, change) {
  m <- whole(0L, 3L)
  count <- length(f)
  z <- array(rnorm(f$n * m * count), c(f$n, m, count))
  p <- if (identical(change$fun, cholinsert_gpu)) dim(change$args$X)[[2L]]
  b <- if (!is.null(p)) array(rnorm(p * m * count), c(p, m, count))
  B <- lapply(seq_len(count), function(i) {
    own <- seq_len(orders(f)[[i]])
    R <- if (f$uplo == "lower") f[[i]] else t(f[[i]])
    old <- R %*% matrix(z[own, , i], length(own), m)
    order <- change$order[[i]]
    all <- old[order, , drop = FALSE]
    if (!is.null(p)) all[is.na(order), ] <- if (anyNA(order)) b[, , i]
    all
  })
  rss <- matrix(1e3, m, count)
  squares <- rss + apply(z^2, 2:3, sum) - beyond_in_life(z, f)
  args <- c(list(z = z), if (!isTRUE(change$moves)) list(rss = rss), if (!is.null(p)) list(b = b))
  list(args = args, B = B, squares = squares, rss = rss, m = m)
}

# The squares of the rows of z that members of f do not have.
beyond_in_life <- function(z, f) {
  own <- orders(f)
  apply(z^2 * (slice.index(z, 1L) > own[slice.index(z, 3L)]), 2:3, sum)
}

# Returns what is wrong with right-hand sides of f, the batch that `value` has.
check_sides_of_life <- function(f, value, sides, eps) {
  if (!identical(dim(value$z), c(f$n, sides$m, length(f)))) return("z has another shape")
  wrong <- if (any(beyond_in_life(value$z, f) != 0)) "z is not zero beyond a member"
  after <- (if (is.null(value$rss)) sides$rss else value$rss) + apply(value$z^2, 2:3, sum)
  if (any(abs(after - sides$squares) > 1e3 * eps * sides$squares)) wrong <- c(wrong, "another sum of squares")
  for (i in seq_along(sides$B)) {
    own <- seq_len(nrow(sides$B[[i]]))
    R <- if (f$uplo == "lower") f[[i]] else t(f[[i]])
    z <- matrix(value$z[own, , i], length(own), sides$m)
    if (any(abs(R %*% z - sides$B[[i]]) > 100 * eps * max(abs(R) %*% abs(z), 0))) wrong <- c(wrong, "another z")
  }
  unique(wrong)
}

# What is done to f, whose members have the matrices A: list(fun, args, A, outcome, what), A as it must be afterwards.
# pivot: which members must fail; order: what row each row of a member has been, NA for a new one, where right-hand
# sides may come along.
insert_in_life <- function(f, A) {
  p <- whole(0L, 3L)
  n <- f$n
  own <- vapply(A, nrow, 0L)
  same <- min(own)
  at <- one_of(list(NULL, whole(1L, same + 1L), vapply(own, function(n) whole(1L, n + 1L), 0L)))
  fails <- if (p > 0L && chance(0.3)) runif(length(A)) < 0.3 else rep(FALSE, length(A))
  X <- array(if (chance(0.5)) NaN else 0, c(n + p, p, length(A)))
  after <- order <- vector("list", length(A))
  for (m in seq_along(A)) {
    place <- if (is.null(at)) own[[m]] + 1L else rep_len(at, length(A))[[m]]
    new <- place - 1L + seq_len(p)
    all <- matrix(0, own[[m]] + p, own[[m]] + p)
    old <- setdiff(seq_len(nrow(all)), new)
    all[old, old] <- A[[m]]
    size <- max(1, diag(A[[m]]))
    all[old, new] <- size * runif(own[[m]] * p, -1, 1) / (4 * (nrow(all) + 1))
    all[new, old] <- t(all[old, new])
    all[new, new] <- diag(3 * size, p)
    if (fails[[m]]) all[new[[p]], new[[p]]] <- -size
    X[seq_len(nrow(all)), , m] <- all[, new]
    after[[m]] <- if (fails[[m]]) A[[m]] else all
    order[[m]] <- if (fails[[m]]) seq_len(own[[m]]) else append(seq_len(own[[m]]), rep(NA_integer_, p), place - 1L)
  }
  list(fun = cholinsert_gpu, args = list(X = X, at = at, check = FALSE, in_place = chance(0.6)), A = after,
       outcome = "ok", pivot = fails, order = order, what = sprintf("insert %d at %s", p, paste(at, collapse = " ")))
}

delete_in_life <- function(f, A) {
  own <- vapply(A, nrow, 0L)
  least <- min(own)
  p <- whole(0L, min(3L, least))
  each <- chance(0.5)
  gone <- if (each) vapply(own, function(n) sample.int(n, p), integer(p)) else sample.int(least, p)
  index <- if (each) matrix(gone, p, length(A)) else gone
  order <- lapply(seq_along(A), function(m) setdiff(seq_len(own[[m]]), if (each) index[, m] else index))
  after <- lapply(seq_along(A), function(m) A[[m]][order[[m]], order[[m]], drop = FALSE])
  list(fun = choldelete_gpu, args = list(index = index, in_place = chance(0.6)), A = after, outcome = "ok",
       order = order, what = sprintf("delete %d, %s", p, if (each) "of each" else "the same"))
}

# A row of all members, or one of each; or all of them in another order.
move_in_life <- function(f, A) {
  own <- vapply(A, nrow, 0L)
  places <- function(each) if (each) vapply(own, function(n) sample.int(n, 1L), 0L) else sample.int(min(own), 1L)
  if (min(own) == 0L || chance(0.4)) {
    order <- lapply(own, sample.int)
    same <- min(own) == max(own) && chance(0.5)
    if (same) order[] <- order[1L]
    whole <- vapply(order, function(order) c(order, setdiff(seq_len(f$n), order)), integer(f$n))
    args <- list(order = if (same) order[[1L]] else matrix(whole, f$n, length(A)))
    fun <- cholpermute_gpu
  } else {
    args <- list(from = places(chance(0.5)), to = places(chance(0.5)))
    from <- rep_len(args$from, length(A))
    to <- rep_len(args$to, length(A))
    order <- lapply(seq_along(A), function(m) append(seq_len(own[[m]])[-from[[m]]], from[[m]], to[[m]] - 1L))
    fun <- cholshift_gpu
  }
  after <- lapply(seq_along(A), function(m) A[[m]][order[[m]], order[[m]], drop = FALSE])
  list(fun = fun, args = c(args, list(in_place = chance(0.6))), A = after, outcome = "ok", order = order, moves = TRUE,
       what = sprintf("move by %s", paste(names(args), collapse = ", ")))
}

update_in_life <- function(f, A) {
  k <- whole(1L, 6L)
  scale <- one_of(c(1, 0.25, 2))
  V <- array(0, c(f$n, k, length(A)))
  after <- lapply(seq_along(A), function(m) {
    n <- nrow(A[[m]])
    own <- matrix(rnorm(n * k), n)
    V[seq_len(n), , m] <<- own
    scale * A[[m]] + tcrossprod(own)
  })
  list(fun = cholupdate_batch, args = list(V = V, scale = scale, in_place = chance(0.6)), A = after, outcome = "ok",
       what = sprintf("update by %d, scale %g", k, scale))
}

# Solves with modifications of members of f, whose matrices are A, some of which fail. Returns what is wrong.
solve_in_life <- function(f, A, eps) {
  b <- length(A)
  k <- whole(0L, 4L)
  listed <- chance(0.4)
  counts <- if (listed) replicate(b, whole(0L, k)) else rep(k, b)
  scale <- if (chance(0.5)) runif(b, 0.3, 2) else rep(1, b)
  each <- lapply(seq_len(b), function(m) change_in_life(A[[m]], counts[[m]], scale[[m]]))
  V <- lapply(each, `[[`, "V")
  w <- lapply(each, `[[`, "w")
  m <- whole(0L, 3L)
  y <- array(rnorm(f$n * m * b), c(f$n, m, b))
  args <- list(R = f, V = V, b = y, weights = w, scale = scale, check = FALSE)
  if (!listed) {
    args$V <- array(0, c(f$n, k, b))
    for (i in seq_len(b)) args$V[seq_len(nrow(V[[i]])), , i] <- V[[i]]
    args$weights <- matrix(as.double(unlist(w)), k, b)
  }
  if (chance(0.3)) args$control <- cholupdate_control(threads = whole(1L, 3L))
  before <- as.array(f)
  seen <- observe(solve_modified, frame_of(args))
  problems <- c(seen$problems, expect_signals(seen), expect_outcome(seen, "ok"))
  if (length(problems)) return(problems)
  if (!identical(as.array(f), before)) problems <- "solve_modified() has changed the batch"
  found <- seen$value
  if (!identical(found$pivot, vapply(each, `[[`, 0L, "pivot"))) return(c(problems, "other members are indefinite"))
  c(problems, unlist(lapply(which(found$pivot == 0L), function(i) {
    own <- seq_len(nrow(A[[i]]))
    x <- matrix(found$solution[, , i], f$n, m)
    sides <- matrix(y[, , i], f$n, m)
    beyond <- setdiff(seq_len(f$n), own)
    e <- errors_of_solution(x[own, , drop = FALSE], found$quadratic[, i], scale[[i]] * A[[i]], V[[i]], w[[i]],
                            sides[own, , drop = FALSE], eps)
    c(if (!identical(x[beyond, ], sides[beyond, ])) "other rows beyond a member",
      if (!isTRUE(e$residual <= fuzz_largest_residual)) sprintf("a solution is wrong by %.3g eps", e$residual),
      if (!isTRUE(e$form <= 40 * f$n)) sprintf("a quadratic form is wrong by %.3g eps", e$form))
  })))
}

# A change of scale A by k columns: list(V, w, pivot), where `pivot` is that of the first minor that is not positive.
change_in_life <- function(A, k, scale) {
  n <- nrow(A)
  V <- matrix(rnorm(n * k), n, k)
  change <- list(V = V, w = runif(k, 0.1, 2), pivot = 0L)
  kind <- one_of(c("add", "take", "fail"), c(3, 2, 1))
  if (n == 0L || k == 0L || kind == "add") return(change)
  change$w <- rep(-1, k)
  if (kind == "take") {
    change$V <- sqrt(scale / 2) * crossprod(chol(A), V / sqrt(sum(V^2)))
  } else {
    change$V <- matrix(c(2 * sqrt(scale * A[1L, 1L]), rep(0, n * k - 1L)), n)
    change$pivot <- 1L
  }
  change
}
