# Random calls, see helper-fuzz.R: many small factors at once. Every member is judged by itself.

fuzz_batch <- function(gpu) {
  n <- if (chance(0.05)) 0L else whole(1L, one_of(c(6, 24, 70)))
  b <- if (chance(0.05)) 0L else whole(1L, 20L)
  k <- one_of(0:9, c(1, 4, 3, 2, 2, 1, 1, 1, 1, 1))
  downdate <- chance(0.4)
  uplo <- one_of(c("upper", "lower"), c(2, 1))
  precision <- one_of(c("double", "single"), c(2, 1))
  form <- one_of(c("array", "list", "handle", "in place"))
  home <- if (gpu && chance(0.5)) "cuda" else "cpu"
  far <- chance(0.3)
  drawn <- lapply(seq_len(b), function(m) draw_batch_member(n, k, downdate, far && chance(0.4), precision == "single"))
  change <- draw_change(k, downdate, moderate = !far)
  fault <- if (b > 0L && n > 0L && chance(0.1)) one_of(c("R", if (k > 0L) "V")) else "none"
  if (fault != "none") drawn[[whole(1L, b)]][[fault]][[1L]] <- NaN
  judged <- lapply(drawn, function(p) judge_input(p$R, p$V, change, precision, precision))
  if (home == "cuda" && precision == "single") {  # is computed in double
    judged <- lapply(judged, function(j) {
      if (identical(j$allowed, "bad_diagonal")) j$allowed <- c("ok", "bad_diagonal")
      j
    })
  }
  what <- sprintf("cholupdate_batch: %s, %s, n %d, k %d, b %d, %s %s, %s, fault: %s", form, home, n, k, b, uplo,
                  precision,
                  paste(names(change$args), collapse = " and "), fault)

  R <- vapply(drawn, function(p) if (uplo == "lower") t(p$R) else p$R, matrix(0, n, n))
  V <- vapply(drawn, function(p) p$V, matrix(0, n, k))
  dim(R) <- c(n, n, b)
  dim(V) <- c(n, k, b)
  sides <- if (form != "list") draw_batch_sides(n, k, b)
  frame <- frame_of(c(list(R = R, V = V, check = FALSE, control = draw_control()), change$args, sides))
  if (form == "list") {
    frame$R <- lapply(seq_len(b), function(m) matrix(R[, , m], n))
    frame$V <- lapply(seq_len(b), function(m) matrix(V[, , m], n, k))
    if (length(frame$weights) > 1L && chance(0.5)) frame$weights <- rep(list(frame$weights), b)
  }
  handle <- form %in% c("handle", "in place")
  if (handle) {
    made <- observe(chol_batch, frame_of(list(R = R, backend = home, uplo = uplo, precision = precision)))
    if (made$outcome != "ok") {
      must <- unlist(lapply(judged, function(j) setdiff(j$allowed, c("ok", "not_positive_definite"))))
      return(record(what, made$outcome, c(made$problems, expect_outcome(made, must))))
    }
    frame$R <- made$value
    if (form == "in place") frame$in_place <- TRUE
  } else {
    frame$uplo <- uplo
    frame$precision <- precision
    frame$backend <- home
  }
  seen <- observe(cholupdate_batch, frame)
  here <- drawn_instructions(frame$control) %in% c("auto", instructions_here)
  if (!here && identical(seen$error$argument, "instructions")) return(record(what, seen$outcome, seen$problems))
  problems <- c(seen$problems, expect_signals(seen, if (length(sides)) "gpucholmod_negative_rss"),
                judge_members(seen, judged, home == "cuda" && is.finite(frame$control$device_memory)))
  worst <- NA_real_
  if (seen$outcome == "ok" && !length(problems)) {
    X <- seen$value$R
    X <- if (handle) as.array(X) else if (form == "list") array(as.double(unlist(X)), c(n, n, b)) else X
    checked <- lapply(seq_len(b), function(m) check_member(X[, , m], seen$value$pivot[[m]], drawn[[m]], judged[[m]],
                                                           uplo, precision))
    problems <- c(unlist(lapply(checked, function(x) x$problems)),
                  if (length(sides)) check_batch_sides(seen$value, X, drawn, judged, change, sides, uplo))
    worst <- suppressWarnings(max(vapply(checked, function(x) as.double(x$residual), 0), na.rm = TRUE))
    if (!is.finite(worst)) worst <- NA_real_
    if (form != "in place") problems <- c(problems, check_stops(frame, seen$value$pivot))
  }
  record(what, seen$outcome, problems, worst)
}

# Of order 1, or, `far`, perhaps near the ends of the range.
draw_batch_member <- function(n, k, downdate, far, single) {
  R <- draw_factor(n)
  V <- draw_columns(n, k)
  if (downdate && n > 0L && k > 0L && chance(0.8)) R <- factor_of_sum(R, V * (1 + 10^runif(1, -9, 0)))
  by <- if (far) draw_scales(R, V, single) else c(1, 1)
  list(R = R * by[[1L]], V = V * by[[2L]])
}

# crowded: on a GPU, of which too little memory is allowed perhaps.
judge_members <- function(seen, judged, crowded) {
  member <- lapply(judged, function(j) setdiff(j$allowed, "not_positive_definite"))
  allowed <- unlist(lapply(member, setdiff, "ok"))
  if (all(vapply(judged, function(j) any(c("ok", "not_positive_definite") %in% j$allowed), NA))) {
    allowed <- c(allowed, "ok")
  }
  c(expect_outcome(seen, c(allowed, if (crowded) "out_of_memory")),
    if (seen$outcome %in% c("not_finite", "bad_diagonal") &&
        !is.numeric(seen$error$member)) "an error that does not name its member")
}

check_member <- function(X, pivot, drawn, judged, uplo, precision) {
  n <- nrow(drawn$R)
  X <- matrix(X, n)
  if (uplo == "lower") X <- t(X)
  if (pivot > 0L) {
    problems <- if (!"not_positive_definite" %in% judged$allowed) sprintf("pivot %d, where there is none", pivot)
    kept <- if (precision == "single") max(0, abs(X - drawn$R)) <= 1e-7 * max(0, abs(drawn$R))
            else identical(X, drawn$R)
    return(list(residual = NA_real_, problems = c(problems, if (!kept) "a member that failed has changed")))
  }
  if (!"ok" %in% judged$allowed) return(list(residual = NA_real_, problems = "a member was modified that cannot be"))
  check_numbers(X, judged)
}

# Right-hand sides for some of the calls: list(z, y, rss).
draw_batch_sides <- function(n, k, b) {
  if (chance(0.6)) return(list())
  m <- one_of(c(1L, 1L, 2L, 5L))
  list(z = array(rnorm(n * m * b), c(n, m, b)), y = array(rnorm(k * m * b), c(k, m, b)),
       rss = matrix(runif(m * b, 1e3, 2e3), m))
}

# X: the factors of the result, n x n x b.
check_batch_sides <- function(value, X, drawn, judged, change, sides, uplo) {
  if (!identical(names(value), c("R", "z", "rss", "pivot"))) return("no list of R, z, rss and pivot")
  if (!identical(dim(value$z), dim(sides$z)) || !identical(dim(value$rss), dim(sides$rss))) {
    return("z or rss have another shape")
  }
  unlist(lapply(seq_along(drawn), function(m) {
    own <- lapply(sides[c("z", "y")], function(x) matrix(x[, , m], nrow(x), ncol(x)))
    z <- matrix(value$z[, , m], nrow(own$z), ncol(own$z))
    if (value$pivot[[m]] > 0L) {
      if (!same_bits(z, own$z) || !same_bits(value$rss[, m], sides$rss[, m])) "z of a member that failed has changed"
    } else if (is.null(judged[[m]]$trivial) && judged[[m]]$measurable && length(z)) {
      made <- matrix(X[, , m], nrow(z))
      of <- list(R = drawn[[m]]$R, V = drawn[[m]]$V, X = if (uplo == "lower") t(made) else made)
      check_carried(lapply(of, times_power, -judged[[m]]$p), change, own, z, judged[[m]]$eps,
                    with_rest = TRUE)
    }
  }))
}

# The same call with check = TRUE.
check_stops <- function(frame, pivots) {
  frame$check <- TRUE
  seen <- observe(cholupdate_batch, frame)
  failed <- which(pivots > 0L)
  if (!length(failed)) return(expect_outcome(seen, "ok"))
  c(expect_outcome(seen, "not_positive_definite"),
    if (!identical(seen$error$members, failed) ||
        !identical(seen$error$pivots, pivots[failed])) "other members fail where that stops the call")
}
