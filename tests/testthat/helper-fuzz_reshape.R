# Random calls, see helper-fuzz.R: rows and columns that come, go and move.

# Of an ordinary factor, or of one in ordinary memory of its own, with room to grow or not, between other things that
# are done with it.
fuzz_reshape <- function(gpu) {
  if (chance(0.4)) return(reshape_ordinary())
  state <- draw_handle(if (gpu && chance(0.8)) "cuda" else "cpu")
  if (!is.null(state$record)) return(state$record)
  in_turns(state, list(act_reshape, act_modify, act_use, act_copy, act_lose, act_drift), c(8, 2, 2, 0.5, 0.2, 0.3), 6L)
}

# Changes --------------------------------------------------------------------------------------------------------------

# Something to be done to the factor X (upper, doubles) of what has `names`, in either triangle: list(fun, args, order,
# must, judged, what). `order`: new row i is old row order[[i]], NA for one that is new. `must`: classes of the error
# that there has to be; `argument`: which it has to name.
draw_reshape <- function(X, names, uplo, single, handle) {
  n <- nrow(X)
  p <- exponent_of(max(0, abs(X)))
  if (!is.finite(p)) p <- 0
  what <- one_of(c("insert", "delete", "shift"),
                 c(if (abs(p) < 480) 3 else 0, 2, if (n > 0L) 1 else 0))  # A itself must have a number
  drawn <- switch(what, insert = draw_insertion(times_power(X, -p), p),
                  delete = draw_deletion(n, names[[if (uplo == "lower") 1L else 2L]]),
                  shift = draw_shift(n))
  if (is.null(drawn$M)) drawn$M <- crossprod(times_power(X, -p))[drawn$order, drawn$order, drop = FALSE]
  drawn$fun <- list(insert = cholinsert_gpu, delete = choldelete_gpu, shift = cholshift_gpu)[[what]]
  drawn$what <- paste(what, drawn$what)
  if (handle) drawn$args$in_place <- chance(0.6)
  if (chance(0.3)) drawn$args$control <- draw_control()
  drawn$may <- if (!drawn_instructions(drawn$args$control) %in% c("auto", instructions_here)) "bad_argument"
  drawn$judged <- judge_reshape(drawn, times_power(X, -p), p, if (single) "single" else "double")
  if (chance(0.2)) spoil_reshape(drawn, what, n, handle) else drawn
}
drawn_instructions <- function(control) if (is.null(control)) "auto" else control$instructions

# Columns for X, whose largest entry is about 1, with M, the matrix that they make of A; those that are given are 2^(2p)
# times as large.
draw_insertion <- function(X, p) {
  n <- nrow(X)
  count <- one_of(list(0L, 1L, whole(2L, 5L), whole(6L, 40L)), c(0.5, 6, 2, 1))
  at <- if (chance(0.3)) n + 1L else whole(1L, n + 1L)
  kind <- one_of(c("fresh", "close", "twin", "impossible"), c(6, 2, if (n > 0L) 2 else 0, 1))
  W <- if (kind == "twin") X[, sample.int(n, count, TRUE), drop = FALSE]
       else matrix(rnorm(n * count) / sqrt(max(n, 1)), n, count)
  own <- crossprod(draw_factor(count)) * switch(kind, fresh = 1, close = 10^runif(1, -14, 0),
                                                twin = one_of(c(0, 1, -1)) * 10^runif(1, -17, -8),
                                                impossible = -10^runif(1, -8, 2))
  A <- crossprod(X)
  B <- crossprod(X, W)
  C <- crossprod(W) + own
  order <- append(seq_len(n), rep(NA_integer_, count), at - 1L)
  new <- is.na(order)
  numbers <- matrix(0, n + count, count)
  numbers[!new, ] <- B
  numbers[new, ] <- C
  columns <- one_of(c("matrix", "vector", "float32", "dgeMatrix", "sparse"), c(6, 2, 1, has_Matrix(), has_Matrix()))
  if (columns == "vector" && count != 1L || columns == "float32" && abs(p) > 40) columns <- "matrix"
  if (columns == "float32" && length(numbers)) numbers <- times_power(as_floats(times_power(numbers, 2 * p)), -2 * p)
  M <- matrix(0, n + count, n + count)
  M[!new, !new] <- A
  M[!new, new] <- numbers[!new, ]
  M[new, !new] <- t(numbers[!new, ])
  block <- upper(numbers[new, , drop = FALSE])
  M[new, new] <- block + t(block) - diag(diag(block), count)
  looked_at <- matrix(rep(!new, count), n + count, count)
  looked_at[new, ] <- upper.tri(block, diag = TRUE)
  fault <- length(numbers) && chance(0.08)
  if (fault) numbers[[one_of(which(looked_at))]] <- one_of(c(NA, NaN, Inf, -Inf))
  if (!all(looked_at) && chance(0.3)) numbers[!looked_at] <- one_of(c(NaN, Inf, 7))
  given <- times_power(numbers, 2 * p)
  args <- list(X = if (columns == "sparse") methods::as(given, "CsparseMatrix") else put_columns(given, columns))
  if (at <= n || chance(0.5)) args$at <- if (chance(0.5)) at else as.double(at)
  if (chance(0.3)) args$names <- paste0("new", seq_len(count))[seq_len(count)]
  check <- chance(0.7)
  if (!check) args$check <- FALSE
  list(args = args, order = order, M = M, at = at, check = check, numbers = numbers, must = if (fault) "not_finite",
       argument = if (fault) "X",
       what = sprintf("%d at %d, %s, %s%s", count, at, kind, columns, if (fault) ", not finite" else ""))
}

draw_deletion <- function(n, names) {
  count <- min(n, one_of(list(0L, 1L, whole(2L, 5L), whole(0L, n)), c(0.5, 6, 3, 2)))
  gone <- sample.int(n, count)
  index <- if (chance(0.2)) sample(rep(gone, 2L)) else gone
  if (chance(0.3)) index <- as.double(index)
  form <- if (chance(0.2)) one_of(c(if (count < n) "negative", "logical", "zero")) else "numbers"
  index <- switch(form, numbers = index, negative = -setdiff(seq_len(n), gone), logical = seq_len(n) %in% gone,
                  zero = c(0, index))
  by_name <- !is.null(names) && !anyDuplicated(names) && all(nzchar(names)) && form == "numbers" && chance(0.5)
  list(args = list(index = if (by_name) names[index] else index), order = setdiff(seq_len(n), gone), check = TRUE,
       what = sprintf("%d, %s", count, if (by_name) "names" else form))
}

draw_shift <- function(n) {
  from <- whole(1L, n)
  to <- if (chance(0.1)) from else whole(1L, n)
  list(args = list(from = from, to = to), order = append(seq_len(n)[-from], from, to - 1L), check = TRUE,
       what = sprintf("%d to %d", from, to))
}

# What it may come to, and what check_numbers() needs.
judge_reshape <- function(drawn, X, p, precision) {
  M <- drawn$M
  n <- nrow(M)
  eps <- eps_of(precision)
  size <- max(norm_1(M), norm_1(crossprod(X)))
  judged <- list(allowed = "ok", p = p, A = M, W = 0, size = size, eps = eps, measurable = TRUE,
                 trivial = if (n == 0L) TRUE)
  if (!anyNA(drawn$order)) return(judged)
  slack <- (45 * eps + 2 * n * .Machine$double.eps) * size
  judged$minors <- c(first = failing_minor(M - diag(slack, n)), last = failing_minor(M + diag(slack, n)))
  judged$allowed <- c(if (judged$minors[["last"]] == 0L) "ok",
                      if (judged$minors[["first"]] > 0L) "not_positive_definite")
  if (judged$minors[["last"]] == 0L) judged$minors[["last"]] <- n
  judged$minors[["first"]] <- max(judged$minors[["first"]], drawn$at)  # what comes before is not looked at
  judged
}

# The same with an argument that cannot be used.
spoil_reshape <- function(drawn, what, n, handle) {
  no_number <- list(0, -1, 1.5, NA, NaN, Inf, 1e10, "zz", TRUE, list(1), 1i, NULL, factor("a"), as.raw(1))
  no_flag <- list(NA, 1, "x", c(TRUE, FALSE), logical(), NULL)
  count <- sum(is.na(drawn$order))
  bad <- list(
    at = c(no_number[-12L], n + 2, list(c(1, 1), numeric())),
    index = c(no_number[-c(1L, 2L, 9L)], n + 1, -n - 1, list(c(-1, 1), rep(TRUE, n + 1L))),
    from = c(no_number, n + 1, list(1:2)),
    to = c(no_number, n + 1, list(1:2)), names = list(1, NA_character_, rep("x", count + 1L), list("x")),
    X = list("a", NULL, list(1), 1i, NA, data.frame(a = 1), function(x) x, numeric(n + 3), array(1, c(1, 1, 1)),
             matrix(1, n + count + 1, count)),
    check = no_flag, in_place = no_flag, control = list(1, list(), NULL, NA)
  )
  argument <- one_of(c(switch(what, insert = c("X", "X", "at", "at", "names", "check"), delete = c("index", "index"),
                              shift = c("from", "to")),
                       if (handle) "in_place", "control", "nonsense"))
  value <- if (argument == "nonsense") 1 else one_of(bad[[argument]])
  drawn$args[argument] <- list(value)
  drawn$must <- if (argument == "X") c("not_numeric", "dimension_mismatch", drawn$may) else "bad_argument"
  drawn$argument <- if (argument != "X") argument
  drawn$what <- sprintf("%s, %s = %s", drawn$what, argument, paste(deparse(value), collapse = ""))
  drawn
}

# Dimnames of the result; those of a package Matrix object are a list, whatever it has.
reshaped_names <- function(old, drawn) {
  new <- is.na(drawn$order)
  given <- drawn$args$names
  if (all(vapply(old, is.null, NA))) old <- NULL
  if (is.null(old) && is.null(given)) return(NULL)
  if (is.null(old)) old <- rep(list(character(sum(!new))), 2L)
  names <- lapply(old, function(own) {
    if (!is.null(own)) replace(own[drawn$order], which(new), if (is.null(given)) "" else given)
  })
  dimnames(matrix(0, length(new), length(new), dimnames = names))
}

# What is wrong with how a call went that has no value to be checked.
check_refusal <- function(seen, drawn, pivot) {
  if (seen$outcome == "not_positive_definite") return(check_pivot(pivot, drawn$judged))
  problems <- if (!is.null(drawn$argument) && seen$outcome %in% c("bad_argument", "not_finite") && is.null(drawn$may) &&
                  !identical(seen$error$argument, drawn$argument)) "another argument is named"
  if (seen$outcome == "not_finite" && is.finite(drawn$numbers[seen$error$row, seen$error$col])) {
    problems <- c(problems, "the place named is finite")
  }
  problems
}

# Calls ----------------------------------------------------------------------------------------------------------------

reshape_ordinary <- function() {
  container <- one_of(ordinary_containers())
  uplo <- one_of(c("upper", "lower"), c(3, 1))
  n <- if (container == "scalar") 1L else draw_order()
  R <- draw_numbers(n, 1L, FALSE, container == "integer")$R
  if (container == "dtrMatrix, unit") R <- R / diag(R)
  else if (container != "integer") R <- R * 10^runif(1, -1, 1)^(if (container == "float32") 15 else 100)
  fault <- n > 0L && chance(0.08)
  given <- put_factor(if (fault) replace(R, 1L, if (container == "integer") 0L else 0) else R, container, uplo)
  X <- plain_factor(put_factor(R, container, uplo), uplo)
  if (container == "dtrMatrix, unit") diag(X) <- 1
  single <- container == "float32"
  drawn <- draw_reshape(X, dimnames_of(given), uplo, single, FALSE)
  args <- c(list(R = given), drawn$args)
  own_uplo <- container %in% c("dtrMatrix", "dtrMatrix, unit", "Cholesky")
  if (!own_uplo && uplo == "lower" || chance(0.3)) args$uplo <- uplo
  what <- sprintf("%s: n %d, %s %s%s", drawn$what, n, uplo, container,
                  if (fault) ", a diagonal entry that is not positive" else "")
  if (fault && container != "dtrMatrix, unit") drawn$must <- c(drawn$must, "bad_diagonal")

  frame <- frame_of(args)
  seen <- observe(drawn$fun, frame, names(args))
  pivot <- seen$error$pivot
  if (!drawn$check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (pivot > 0L) {
      seen$outcome <- "not_positive_definite"
      if (!same_bits(seen$value$R, given)) seen$problems <- c(seen$problems, "R is not as it was given")
    }
    seen$value <- seen$value$R
  }
  problems <- c(seen$problems, expect_outcome(seen,
                                              if (length(drawn$must)) c(drawn$must, drawn$may)
                                              else c(drawn$judged$allowed, drawn$may)),
                expect_signals(seen))
  if (length(problems)) return(record(what, seen$outcome, problems))
  if (seen$outcome != "ok") return(record(what, seen$outcome, if (!fault) check_refusal(seen, drawn, pivot)))
  names <- reshaped_names(dimnames_of(given), drawn)
  m <- length(drawn$order)
  problems <- if (isS4(given)) check_S4_form(seen$value, given, m, names, uplo) else
    check_form(seen$value, matrix(0, m, m, dimnames = names), uplo, FALSE)
  if (length(problems)) return(record(what, "ok", problems))
  numbers <- check_numbers(plain_factor(seen$value, uplo), drawn$judged)
  record(what, "ok", numbers$problems, numbers$residual)
}

check_S4_form <- function(value, given, m, names, uplo) {
  if (!identical(class(value), class(given))) return("the result has another class")
  if (!isTRUE(methods::validObject(value, test = TRUE))) return("the result is not valid")
  X <- plain_factor(value, "upper")
  if (!identical(dim(X), c(m, m))) return("the result is not of the order that it must have")
  if (is.null(names) && is.list(dimnames_of(given))) names <- list(NULL, NULL)
  c(if (!identical(dimnames_of(value), names)) "the result has other dimnames",
    if (!all(X[if (uplo == "upper") lower.tri(X) else upper.tri(X)] == 0)) "the other triangle is not zero",
    if (!all(diag(X) > 0)) "the diagonal is not positive")
}

# One of the acts of helper-fuzz_handle.R.
act_reshape <- function(state) {
  f <- state$frame$f
  single <- state$precision == "single"
  drawn <- draw_reshape(state$X, dimnames(f), state$uplo, single, TRUE)
  in_place <- isTRUE(drawn$args$in_place)
  control <- drawn$args$control
  if (inherits(f, "gpu_factor") && inherits(control, "gpucholmod_control") && is.finite(control$device_memory)) {
    drawn$may <- c(drawn$may, "out_of_memory")
  }
  what <- paste0(drawn$what, if (in_place) " in place")
  before <- c(f$n, f$capacity, f$bytes, f$trace, f$error)
  names <- dimnames(f)
  frame <- frame_of(c(list(R = f), drawn$args))
  seen <- observe(drawn$fun, frame, c("R", names(drawn$args)))
  pivot <- seen$error$pivot
  if (!drawn$check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
    seen$value <- seen$value$R
  }
  allowed <- if (length(drawn$must)) drawn$must
             else c(drawn$judged$allowed, if (!state$near) c("overflow", "bad_diagonal"))
  problems <- c(seen$problems, expect_outcome(seen, c(allowed, drawn$may)), expect_signals(seen))
  if (length(problems)) return(acted(what, seen$outcome, state, problems))
  same <- identical(c(f$n, f$capacity, f$bytes, f$trace, f$error), before) && identical(dimnames(f), names)
  if (seen$outcome != "ok") {
    return(acted(what, seen$outcome, state, c(check_refusal(seen, drawn, pivot), check_handle(state),
                                              if (!same) "the handle has changed")))
  }
  g <- seen$value
  if (identical(g, f) != in_place) problems <- "the value is not the handle that it must be"
  if (!in_place) problems <- c(problems, check_handle(state), if (!same) "the handle has changed")
  m <- length(drawn$order)
  result <- as.matrix(g)
  problems <- c(problems, check_form(result, matrix(0, m, m, dimnames = reshaped_names(names, drawn)), state$uplo,
                                     FALSE))
  bytes <- g$capacity^2 * (if (single) 4 else 8)
  wrong_bytes <- if (inherits(g, "cpu_factor")) g$bytes != bytes else g$bytes < bytes
  if (g$n != m || g$capacity < m || wrong_bytes) problems <- c(problems, "its numbers do not fit")
  if (in_place && m <= before[[2L]] && g$capacity != before[[2L]]) problems <- c(problems, "it has another capacity")
  if (length(problems)) return(acted(what, "ok", state, problems))
  numbers <- check_numbers(plain_factor(result, state$uplo), drawn$judged)
  problems <- check_trace(g, result, single)
  state$frame$f <- g
  state$X <- plain_factor(result, state$uplo)
  state$count <- state$count + !identical(as.integer(drawn$order), seq_len(before[[1L]]))
  if (g$modifications != state$count) problems <- c(problems, "another number of modifications")
  acted(what, "ok", state, c(problems, numbers$problems), numbers$residual)
}
