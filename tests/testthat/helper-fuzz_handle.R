# Random calls, see helper-fuzz.R: handles of factors with memory of their own, and what becomes of them.

# Handles --------------------------------------------------------------------------------------------------------------

# A factor on the GPU or in ordinary memory, and up to four things done with it. `state` is what is known of it: the
# handle `f` in a frame, its numbers X (upper, doubles), precision, and how often it was modified.
fuzz_handle <- function(gpu) {
  state <- draw_handle(if (gpu && chance(0.8)) "cuda" else "cpu")
  if (!is.null(state$record)) return(state$record)
  in_turns(state, list(act_modify, act_use, act_copy, act_lose, act_drift), c(6, 4, 1, 0.7, 1), 4L)
}

# Up to `most` of the acts, drawn by their shares.
in_turns <- function(state, acts, shares, most) {
  what <- state$what
  worst <- NA_real_
  outcome <- "ok"
  for (i in seq_len(whole(1L, most))) {
    act <- one_of(acts, shares)
    done <- act(state)
    what <- sprintf("%s; %s", what, done$what)
    outcome <- done$outcome
    if (!is.na(done$residual)) worst <- max(worst, done$residual, na.rm = TRUE)
    if (length(done$problems)) return(record(what, outcome, done$problems, worst))
    state <- done$state
    if (is.null(state)) break
  }
  if (!is.null(state) && chance(0.5)) free(state$frame$f)
  record(what, outcome, NULL, worst)
}

acted <- function(what, outcome, state, problems = NULL, residual = NA_real_) {
  list(what = what, outcome = outcome, state = state, problems = problems, residual = residual)
}

# From a factor, or from the matrix. list(record) where that failed, as it must or as it must not.
draw_handle <- function(home) {
  n <- draw_order()
  precision <- one_of(c("double", "single"), c(2, 1))
  single <- precision == "single"
  uplo <- one_of(c("upper", "lower"), c(2, 1))
  container <- one_of(c(rep("ordinary", 4), "integer", "float32", if (has_Matrix()) c("dtrMatrix", "Cholesky")))
  R <- draw_numbers(n, 1L, FALSE, container == "integer")$R
  far <- container != "integer" && chance(0.1)
  most <- if (far) 300 else if (single) 8 else 60
  if (container != "integer") R <- R * 10^runif(1, -most, most)
  fault <- if (n > 0L && chance(0.1)) one_of(c("not_finite", "bad_diagonal")) else "none"
  if (fault == "not_finite") R[[one_of(which(upper.tri(R, diag = TRUE)))]] <- NA
  if (fault == "bad_diagonal" && container != "integer") {
    diag(R)[[whole(1L, n)]] <- if (container == "float32") 1e-44 else 1e-310
  }
  given <- put_factor(R, container, uplo)
  X <- plain_factor(given, uplo)
  if (single) X <- upper(replace(as_floats(X), is.na(X), NaN))
  what <- sprintf("chol_factor: %s, n %d, %s %s, %s, largest %.0e, fault: %s", home, n, uplo, container, precision,
                  max(0, abs(R), na.rm = TRUE), fault)
  args <- list(R = given, backend = home, uplo = uplo, precision = precision)
  if (chance(0.4)) args$capacity <- n + whole(0L, 30L)
  frame <- frame_of(args)
  at <- upper.tri(X, diag = TRUE)
  allowed <- c(if (anyNA(X[at])) "not_finite", if (any(is.infinite(X))) c("overflow", "not_finite"),
               if (any(diag(X) != 0 & diag(X) < .Machine$double.xmin, na.rm = TRUE)) "bad_diagonal")
  seen <- observe(chol_factor, frame)
  # An entry of the diagonal that single precision holds with fewer digits.
  tiny <- single && any(diag(X) < 2^-126, na.rm = TRUE)
  zero <- any(diag(X) == 0, na.rm = TRUE)  # which is taken, unless all else is tiny
  allowed <- c(if (length(allowed)) allowed else "ok", if (tiny || zero) "bad_diagonal")
  problems <- c(seen$problems, expect_outcome(seen, allowed), expect_signals(seen))
  if (length(problems) || seen$outcome != "ok") return(list(record = record(what, seen$outcome, problems)))
  f <- seen$value
  Y <- plain_factor(as.matrix(f), uplo)
  if (!identical(dim(f), c(n, n)) || !identical(dimnames(f), dimnames_of(given)) && !isS4(given)) {
    problems <- "another shape"
  }
  if (!identical(dimnames(as.matrix(f)), dimnames(matrix(0, n, n, dimnames = dimnames(f))))) {
    problems <- c(problems, "as.matrix() has other dimnames")
  }
  if (!all(Y == X | (abs(X) < 2^-126 & abs(Y) < 2^-126 & single))) {
    problems <- c(problems, "the factor does not come back as it went")
  }
  text <- c(utils::capture.output(print(f)), utils::capture.output(utils::str(f)), format(f))
  if (any(grepl("cannot be used", text))) problems <- c(problems, "it says that it cannot be used")
  if (length(problems) || zero) return(list(record = record(what, "ok", problems)))
  state <- list(frame = list2env(list(f = f), parent = globalenv()), X = Y, precision = precision, uplo = uplo,
                count = 0L, what = what,
                near = !far)
  if (home == "cuda" && n > 0L && !far && container == "ordinary" && chance(0.3)) draw_factorised(state) else state
}

# The same from A, by gpu_chol(); or what that says of a matrix that is not positive definite.
draw_factorised <- function(state) {
  A <- crossprod(state$X)
  n <- nrow(A)
  spoil <- chance(0.2)
  if (spoil) {
    j <- whole(1L, n)
    A[j, j] <- -A[j, j]
  }
  what <- sprintf("gpu_chol: n %d, %s%s", n, state$precision, if (spoil) ", not positive definite" else "")
  eps <- eps_of(state$precision)
  slack <- diag((40 + n) * eps * norm_1(A), n)
  sure <- failing_minor(A - slack) == 0L
  seen <- observe(gpu_chol, frame_of(list(A = A, precision = state$precision)))
  allowed <- c(if (!spoil) "ok", if (spoil || !sure) "not_positive_definite", if (max(abs(A)) > 2^127) "overflow")
  problems <- c(seen$problems, expect_outcome(seen, allowed), expect_signals(seen))
  if (spoil && !length(problems) && seen$outcome == "not_positive_definite" && sure && seen$error$pivot > j) {
    problems <- "the pivot is too late"
  }
  if (length(problems) || seen$outcome != "ok") return(list(record = record(what, seen$outcome, problems)))
  X <- as.matrix(seen$value)
  residual <- norm_1(crossprod(X) - A) / (eps * norm_1(A))
  if (residual > 40 + n) {
    return(list(record = record(what, "ok", sprintf("the residual of gpu_chol() is %.3g eps", residual))))
  }
  state$frame$f <- seen$value
  utils::modifyList(state, list(X = X, uplo = "upper", what = what))
}

# That the handle is what `state` says.
check_handle <- function(state) {
  if (!same_bits(plain_factor(as.matrix(state$frame$f), state$uplo), state$X)) return("the factor was changed")
  if (state$frame$f$modifications != state$count) return("another number of modifications")
  NULL
}

# That the trace, by which drift() goes, is known to half its digits.
check_trace <- function(f, result, single) {
  trace <- sum(result^2)
  if (is.finite(trace) && trace > 1e-290 && abs(f$trace - trace) > (if (single) 1e-3 else 1e-7) * trace) {
    "the trace is another"
  }
}

act_modify <- function(state) {
  n <- nrow(state$X)
  f <- state$frame$f
  downdate <- chance(0.5)
  size <- max(abs(state$X), 1e-300)
  size <- min(size, 1e300)
  drawn <- draw_numbers(n, draw_rank(), downdate, FALSE)$V
  V <- drawn / max(abs(drawn), 1e-300) * size * one_of(c(0.01, 0.1, 1, 10))
  if (downdate && n > 0L && chance(0.5)) {
    V <- nearly_singular(state$X, min(n, whole(1L, 4L)), one_of(c(0.9, 0.5, 1e-3, 1e-9, -1e-2, -1)))$V
  }
  if (length(V) && chance(0.05)) V[[one_of(seq_along(V))]] <- NaN
  k <- ncol(V)
  change <- draw_change(k, downdate, size > 1e-8 && size < 1e8)
  args <- c(list(V = V, in_place = chance(0.5)), change$args)
  if (chance(0.3)) args$keep_intact <- chance(0.5)
  own_methods <- if (inherits(f, "gpu_factor")) c("persistent", "stepwise") else "blocked"
  if (chance(0.5)) args$method <- one_of(c("auto", own_methods))
  check <- chance(0.7)
  if (!check) args$check <- FALSE
  what <- sprintf("%s of rank %d by %s%s, method %s", if (downdate) "downdate" else "update", k,
                  paste(names(change$args), collapse = ", "),
                  if (args$in_place) " in place" else "",
                  paste(args$method, collapse = ""))

  frame <- frame_of(c(list(R = f), args))
  judged <- judge_input(state$X, if (state$precision == "single" && length(V)) as_floats(V) else V, change,
                        state$precision, state$precision)
  allowed <- setdiff(judged$allowed, "bad_diagonal")
  if (!length(allowed)) allowed <- "ok"
  if (!state$near) allowed <- c(allowed, "overflow")
  seen <- observe(cholupdate_gpu, frame, c("R", names(args)))
  pivot <- 0L
  if (!check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
    seen$value <- seen$value$R
  }
  problems <- c(seen$problems, expect_outcome(seen, allowed), expect_signals(seen))
  failed_late <- seen$outcome %in% c("not_positive_definite", "overflow")
  may_be_lost <- args$in_place && (identical(args$keep_intact, FALSE) || !any(change$weights < 0)) && failed_late
  if (length(problems)) return(acted(what, seen$outcome, state, problems))
  intact <- !args$in_place || !identical(args$keep_intact, FALSE)
  if (seen$outcome == "not_positive_definite" && (intact || k <= 32L && all(change$weights < 0))) {
    problems <- check_pivot(if (check) seen$error$pivot else pivot, judged)
  }
  if (may_be_lost && f$status != "live") {
    after <- observe(as.matrix, frame_of(list(x = f)))
    lost <- identical(after$error$reason, "half_modified")
    return(acted(what, seen$outcome, NULL, c(problems, after$problems, if (!lost) "a lost factor does not say so")))
  }
  if (seen$outcome != "ok") return(acted(what, seen$outcome, state, c(problems, check_handle(state))))
  if (args$in_place && !identical(seen$value, f)) problems <- "the value is another handle"
  if (!args$in_place) problems <- c(problems, check_handle(state))
  if (!args$in_place && identical(seen$value, f)) problems <- c(problems, "no new handle")
  g <- seen$value
  result <- as.matrix(g)
  numbers <- check_numbers(plain_factor(result, state$uplo), judged)
  report <- last_cholupdate()
  if (report$n != n || report$k != k || report$backend != (if (inherits(f, "gpu_factor")) "cuda" else "cpu") ||
      report$in_place != args$in_place && k > 0L && n > 0L) {
    problems <- c(problems, "the report is of another call")
  }
  shape <- matrix(0, n, n, dimnames = dimnames(f))
  state$frame$f <- g
  state$X <- plain_factor(result, state$uplo)
  state$count <- state$count + (k > 0L || !is.null(args$scale) && args$scale != 1)
  if (g$modifications != state$count) problems <- c(problems, "another number of modifications")
  problems <- c(problems, check_trace(g, result, state$precision == "single"))
  acted(what, "ok", state, c(problems, check_form(result, shape, state$uplo, FALSE), numbers$problems),
        numbers$residual)
}

act_use <- function(state) {
  n <- nrow(state$X)
  b <- draw_right_side(n)
  use <- one_of(names(uses_of_factor))
  wrong <- chance(0.15) && use %in% c("solve", "solve_forward", "solve_back")
  if (wrong) b$given <- one_of(list(rnorm(n + 1L), "b", NULL, array(1, c(1, 1, 1)), list(1)))
  what <- sprintf("%s, b: %s%s", use, b$container, if (wrong) ", wrong" else "")
  seen <- observe(uses_of_factor[[use]], frame_of(list(f = state$frame$f, b = b$given)))
  problems <- c(seen$problems, expect_outcome(seen, if (wrong) c("dimension_mismatch", "not_numeric") else "ok"),
                expect_signals(seen))
  most <- if (state$precision == "single") 1e8 else 1e60
  in_range <- n == 0L || max(abs(state$X)) < most && min(diag(state$X)) > 1 / most
  if (!length(problems) && seen$outcome == "ok" && in_range) {
    problems <- check_use(use, seen$value, state$X, b$numbers, eps_of(state$precision))
  }
  acted(what, seen$outcome, state, c(problems, check_handle(state)))
}

act_copy <- function(state) {
  seen <- observe(copy_factor, frame_of(list(x = state$frame$f)))
  problems <- c(seen$problems, expect_outcome(seen, "ok"))
  if (length(problems)) return(acted("copy_factor", seen$outcome, state, problems))
  twin <- state
  twin$frame <- list2env(list(f = seen$value), parent = globalenv())
  problems <- check_handle(twin)
  cholupdate_gpu(seen$value, matrix(0.01, nrow(state$X), 1L), in_place = TRUE)
  free(seen$value)
  acted("copy_factor", "ok", state, c(problems, check_handle(state)))
}

# A handle that cannot be used any more: freed, or from a file. Everything says so.
act_lose <- function(state) {
  reason <- one_of(c("freed", "restored"))
  f <- state$frame$f
  problems <- NULL
  if (reason == "freed") {
    if (!is.null(free(f)) || !is.null(free(f))) problems <- "free() returns something"
    lost <- f
  } else {
    lost <- unserialize(serialize(f, NULL))
  }
  b <- matrix(1, nrow(state$X), 1L)
  others <- list(as_matrix = function(f, b) as.matrix(f), copy = function(f, b) copy_factor(f),
                 drift = function(f, b) drift(f),
                 modify = function(f, b) cholupdate_gpu(f, b),
                 in_place = function(f, b) cholupdate_gpu(f, b, in_place = TRUE))
  for (use in c(uses_of_factor, others)) {
    seen <- observe(use, frame_of(list(f = lost, b = b)))
    problems <- c(problems, seen$problems, expect_outcome(seen, "invalid_factor"))
    if (!identical(seen$error$reason, reason)) problems <- c(problems, "another reason")
  }
  if (!any(grepl("cannot be used", utils::capture.output(print(lost))))) {
    problems <- c(problems, "print() does not say so")
  }
  if (!identical(dim(lost), dim(state$X))) problems <- c(problems, "dim() is lost too")
  free(lost)
  if (reason == "restored") problems <- c(problems, check_handle(state))
  acted(reason, "invalid_factor", if (reason == "restored") state, problems)
}

act_drift <- function(state) {
  seen <- observe(drift, frame_of(list(f = state$frame$f)))
  value <- seen$value
  trace <- state$frame$f$trace
  in_range <- is.finite(trace) && trace >= .Machine$double.xmin / .Machine$double.eps
  good <- is.double(value) && length(value) == 1L && !is.nan(value) &&
    if (is.na(value)) !in_range else value >= 0 && (state$count > 0L || value == 0)
  acted("drift", seen$outcome, state, c(seen$problems, expect_outcome(seen, "ok"),
                                        if (!good) "drift() is no number from 0 on"))
}
