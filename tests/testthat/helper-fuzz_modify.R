# Random calls, see helper-fuzz.R: modifications of ordinary factors.

# Modifications ------------------------------------------------------------------------------------------------------

# A modification to be: what is given, what it may come to (`allowed`), and how to check what comes. Classes in `must`
# are of faults, one of which is to be reported; those in `may` can come whether or not the numbers are good.
draw_case <- function(containers, precision, uplo = one_of(c("upper", "lower"), c(3, 1))) {
  n <- draw_order()
  container <- one_of(containers)
  if (container == "scalar") n <- 1L
  k <- draw_rank()
  downdate <- chance(0.45)
  columns <- one_of(c("matrix", "vector", "float32", if (has_Matrix()) "dgeMatrix"), c(8, 2, 1, if (has_Matrix()) 1))
  if (columns == "vector") k <- 1L
  drawn <- draw_numbers(n, k, downdate, container == "integer")
  k <- ncol(drawn$V)
  R <- drawn$R
  V <- drawn$V
  scales <- c(1, 1)
  if (container != "integer") {
    if (container == "dtrMatrix, unit") R <- R / diag(R) else scales <- draw_scales(R, V, container == "float32")
    if (downdate && chance(0.7)) scales[2L] <- scales[1L]
    R <- R * scales[1L]
    V <- V * scales[2L]
  }
  fault <- if (chance(0.15)) one_of(c("R", "V", "diagonal", "other triangle"), c(1, 1, 1, 2)) else "none"
  odd <- function() if (container == "integer") NA_integer_ else one_of(c(NA, NaN, Inf, -Inf))
  at <- which(upper.tri(R, diag = TRUE))
  below <- which(lower.tri(R))
  if (fault == "R" && n > 0L) R[[one_of(at)]] <- odd()
  if (fault == "V" && length(V)) V[[one_of(seq_along(V))]] <- odd()
  if (fault == "diagonal" && n > 0L) {
    diag(R)[[whole(1L, n)]] <- one_of(if (container == "integer") 0L else c(0, -0))
  }
  if (fault == "other triangle" && length(below)) {
    R[sample(below, min(length(below), 5L))] <- if (container == "integer") 7L else one_of(c(NaN, Inf, 1e300, 1))
  }

  single <- precision == "single"
  float32 <- container == "float32"
  given <- list(R = put_factor(R, container, uplo), V = put_columns(V, columns))
  # What arrives: `float32` rounds, and with a `float32` R, V is rounded too.
  X <- plain_factor(given$R, uplo)
  if (container == "dtrMatrix, unit") diag(X) <- 1
  stored <- if (float32 && single) "single" else "double"
  Y <- V + 0
  if ((float32 || columns == "float32") && length(V)) Y <- as_floats(Y)
  change <- draw_change(k, downdate, max(abs(log10(scales))) < if (float32 || single) 5 else 100)
  judged <- judge_input(X, Y, change, precision, stored)
  if (any(is.infinite(Y) & is.finite(V))) judged$allowed <- c(judged$allowed, "overflow") # either name fits
  list(n = n, k = k, change = change$args, uplo = uplo, container = container, columns = columns, precision = precision,
       R = given$R, V = given$V, judged = judged, triangle = length(below) > 0L && any(is.na(X[below]) | X[below] != 0),
       clean = function() put_clean(given$R, uplo),
       what = sprintf("n %d, k %d, %s %s, %s %s, %s V, %s, scales %.0e and %.0e, fault: %s", n, k,
                      if (downdate) "downdate" else "update", paste(names(change$args), collapse = ", "), uplo,
                      container, columns, precision, scales[1L],
                      scales[2L], fault))
}

# An ordinary factor with zeros in the other triangle.
put_clean <- function(R, uplo) {
  R[if (uplo == "upper") lower.tri(R) else upper.tri(R)] <- 0
  R
}

ordinary_containers <- function() {
  c(rep("ordinary", 8), "integer", "scalar", "float32", "float32",
    if (has_Matrix()) c("dtrMatrix", "dtrMatrix, unit", "Cholesky"))
}

cpu_only <- c("blocked", "refactor", "reference")

# What the choice of backend and method may add: list(must, may).
judge_choice <- function(backend, method, control, precision, gpu) {
  on_device <- method %in% c("panel", "stream", "resident") || (gpu && backend != "cpu" && method == "auto")
  list(
    must = c(if (backend == "cuda" && method %in% cpu_only || backend == "cpu" && method == "resident") "bad_argument",
             if (method == "refactor" && precision == "single") "bad_argument",
             if (!gpu && (backend == "cuda" || method == "resident" && backend == "auto")) "backend_unavailable"),
    may = c(if (on_device && is.finite(control$device_memory)) "out_of_memory",
            if (!control$instructions %in% c("auto", instructions_here)) "bad_argument")
  )
}

draw_choice <- function(gpu, methods = c("auto", "blocked", "refactor", "reference", "panel", "stream", "resident")) {
  if (gpu && chance(0.7)) {
    return(list(backend = "cuda", method = one_of(intersect(methods, c("auto", "panel", "stream", "resident")))))
  }
  if (chance(0.05)) return(list(backend = one_of(c("auto", "cpu", "cuda")), method = one_of(methods)))
  list(backend = one_of(c("cpu", "cpu", "auto")), method = one_of(setdiff(methods, "resident")))
}

allowed_of <- function(case, choice) {
  numbers <- case$judged$allowed
  c(choice$must, choice$may, if (length(choice$must)) setdiff(numbers, "ok") else numbers)
}

# Of a downdate that failed: sentences.
check_pivot <- function(pivot, judged) {
  if (!is.integer(pivot) || length(pivot) != 1L || is.na(pivot)) return("the pivot is no integer")
  minors <- judged$minors
  if (pivot < minors[["first"]] || pivot > minors[["last"]]) {
    sprintf("the pivot is %d, where it must be from %d to %d", pivot, minors[["first"]], minors[["last"]])
  }
}

# Of an error that names a place: whether that is where something is wrong.
check_place <- function(error, R, V, uplo) {
  if (inherits(error, "gpucholmod_not_finite")) {
    x <- if (error$argument == "R") R else V
    i <- error$row
    j <- error$col
    inside <- i >= 1 && i <= nrow(x) && j >= 1 && j <= ncol(x)
    if (!inside || is.finite(x[i, j])) return("the place named is finite")
    if (error$argument == "R" && (if (uplo == "upper") i > j else i < j)) "the place named is in the other triangle"
  } else if (inherits(error, "gpucholmod_bad_diagonal")) {
    if (!identical(as.double(error$value), as.double(diag(R)[error$index]))) "the index named has another value"
  }
}

# The numbers as they were given, in their own triangle.
as_given <- function(case) {
  X <- plain_factor(case$R, "upper")
  if (case$container == "dtrMatrix, unit") diag(X) <- 1
  V <- matrix(if (methods::is(case$V, "float32")) widen(case$V) else as.double(as.matrix(case$V)), case$n)
  if (case$container == "float32" && length(V)) V <- as_floats(V)
  list(R = X, V = V)
}

# What last_cholupdate() says of a call that went well, or failed at a pivot.
check_report <- function(case, pivot, control) {
  report <- last_cholupdate()
  c(if (report$n != case$n || report$k != case$k ||
        report$downdate != isTRUE(case$change$downdate)) "the report is of another call",
    if (report$precision != case$precision) "the report has another precision",
    if (report$pivot != pivot) "the report has another pivot",
    if (report$device_bytes_peak > control$device_memory) "more device memory than allowed")
}

# Right-hand sides for a case, some of the time: list(z, y, rss), or an empty one. `carried` tells whether the method
# takes them.
draw_sides <- function(case, method) {
  if (!is.null(case$change$downdate) || method %in% c("refactor", "reference", "panel") || chance(0.6)) return(list())
  m <- one_of(c(1L, 1L, 2L, 5L))
  list(z = matrix(rnorm(case$n * m), case$n, m), y = matrix(rnorm(case$k * m), case$k, m), rss = runif(m, 1e3, 2e3))
}

# Of what has come along: whether R~'z~ is what it must be.
check_sides <- function(case, sides, value) {
  if (!identical(names(value)[1:3], c("R", "z", "rss"))) return("no list of R, z and rss")
  if (!identical(dim(value$z), dim(sides$z)) || length(value$rss) != ncol(sides$z)) {
    return("z or rss have another shape")
  }
  judged <- case$judged
  if (!is.null(judged$trivial) || !judged$measurable || !length(sides$z)) return(NULL)
  given <- as_given(case)
  R <- times_power(if (case$uplo == "lower") t(given$R) else given$R, -judged$p)
  R[lower.tri(R)] <- 0
  V <- times_power(given$V, -judged$p)
  X <- times_power(plain_factor(value$R, case$uplo), -judged$p)
  X[lower.tri(X)] <- 0
  check_carried(list(R = R, V = V, X = X), case$change, sides, value$z, judged$eps)
}

# Whether z is what a change of R by V to X makes of sides$z. with_rest: errors may be as large as rounding of what is
# left of y, which may be much larger than y if columns are taken away whose y does not fit.
check_carried <- function(of, change, sides, z, eps, with_rest = FALSE) {
  w <- rep_len(change$weights, ncol(of$V))
  scale <- if (is.null(change$scale)) 1 else change$scale
  b <- scale * crossprod(of$R, sides$z) + of$V %*% (w * sides$y)
  size <- norm_1(scale * crossprod(abs(of$R), abs(sides$z))) + norm_1(abs(of$V) %*% (abs(w) * abs(sides$y))) +
    norm_1(crossprod(abs(of$X), abs(z)))  # which is larger than the others where a downdate takes nearly all away
  if (with_rest) {
    left <- colSums(z^2) - scale * colSums(sides$z^2) - colSums(w * sides$y^2)
    size <- size + norm_1(abs(of$V)) * sqrt(max(0, left))
  }
  error <- norm_1(crossprod(of$X, z) - b) / (eps * size)
  if (!(error <= fuzz_largest_residual)) sprintf("z is wrong by %.3g eps", error)
}

fuzz_modify <- function(gpu) {
  precision <- one_of(c("double", "single"), c(3, 1))
  case <- draw_case(ordinary_containers(), precision)
  choice <- draw_choice(gpu)
  if (choice$method == "refactor" && precision == "single" && chance(0.9)) choice$method <- "blocked"
  control <- draw_control()
  check <- chance(0.7)
  args <- c(case[c("R", "V")], case$change, list(precision = precision), choice, list(control = control))
  own_uplo <- case$container %in% c("dtrMatrix", "dtrMatrix, unit", "Cholesky")
  if (!own_uplo || chance(0.3)) args$uplo <- case$uplo
  if (precision == (if (case$container == "float32") "single" else "double") && chance(0.5)) args$precision <- NULL
  if (!check) args$check <- FALSE
  sides <- draw_sides(case, choice$method)
  args <- c(args, sides)

  what <- sprintf("cholupdate_gpu: %s, backend %s, method %s%s", case$what, choice$backend, choice$method,
                  if (length(sides)) ", right-hand sides" else "")
  expected <- judge_choice(choice$backend, choice$method, control, precision, gpu)
  allowed <- allowed_of(case, expected)
  frame <- frame_of(args)
  seen <- observe(cholupdate_gpu, frame, names(args))
  if (seen$outcome == "out_of_memory" && "out_of_memory" %in% allowed) {
    return(fuzz_with_more(seen, frame, args, case, what))
  }
  pivot <- 0L
  carried <- NULL
  if (length(sides) && seen$outcome == "ok") {
    carried <- seen$value
    seen$value <- if (check) carried$R else carried[c("R", "pivot")]
  }
  if (!check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (!identical(names(seen$value), c("R", "pivot"))) seen$problems <- c(seen$problems, "no list of R and pivot")
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
    seen$value <- seen$value$R
  }
  problems <- c(seen$problems, expect_outcome(seen, allowed),
                expect_signals(seen, c(if (case$triangle) "gpucholmod_other_triangle",
                                       if (length(sides)) "gpucholmod_negative_rss")))
  if (length(problems)) return(record(what, seen$outcome, problems))
  if (seen$outcome == "not_positive_definite") {
    if (check) pivot <- seen$error$pivot
    if (!check && !same_bits(seen$value, frame$R)) problems <- "R is not as it was given"
    return(record(what, seen$outcome, c(problems, check_pivot(pivot, case$judged), check_report(case, pivot, control))))
  }
  if (seen$outcome != "ok") {
    given <- as_given(case)
    return(record(what, seen$outcome, check_place(seen$error, given$R, given$V, case$uplo)))
  }
  problems <- c(check_form(seen$value, case$R, case$uplo, precision == "single"), check_report(case, 0L, control),
                if (length(sides)) check_sides(case, sides, carried))
  if (case$triangle && !length(sides) && choice$backend == "cpu" && is.numeric(case$R)) {
    frame$R <- case$clean()
    again <- observe(cholupdate_gpu, frame, names(args))
    same <- identical(again$outcome, "ok") && same_bits(if (check) again$value else again$value$R, seen$value)
    if (!same) problems <- c(problems, "the other triangle matters")
  }
  numbers <- check_numbers(plain_factor(seen$value, case$uplo), case$judged)
  record(what, "ok", c(problems, numbers$problems), numbers$residual)
}

# A call that had too little device memory: the same with as much as it says it needs.
fuzz_with_more <- function(seen, frame, args, case, what) {
  problems <- seen$problems
  needed <- seen$error$needed
  if (!is.numeric(needed) || !(needed > frame$control$device_memory)) {
    return(record(what, seen$outcome, c(problems, "what is needed is not more than what was allowed")))
  }
  frame$control$device_memory <- needed
  again <- observe(cholupdate_gpu, frame, names(args))
  problems <- c(problems, again$problems, expect_outcome(again, c(case$judged$allowed, "ok")))
  record(what, seen$outcome, problems)
}

# In the memory of R, a variable of the frame from which it is called, to which nothing else refers; or something does:
# a variable, or the caller of a function that got it as an argument.
fuzz_overwrite <- function(gpu) {
  case <- draw_case("ordinary", "double")
  choice <- draw_choice(gpu, c("auto", "stream", "resident"))
  control <- draw_control()
  sharing <- one_of(c("own", "shared", "shared, copy = FALSE", "argument", "locked"), c(10, 2, 2, 1, 0.5))
  args <- c(list(V = case$V, uplo = case$uplo), case$change, choice, list(control = control))
  check <- chance(0.7)
  if (!check) args$check <- FALSE
  if (sharing == "shared, copy = FALSE") args$copy <- FALSE
  frame <- frame_of(args)
  frame$bytes <- serialize(case$R, NULL)
  eval(quote(R <- unserialize(bytes)), frame)
  names <- c("R", names(args))
  fun <- cholupdate_overwrite
  if (grepl("shared", sharing)) eval(quote(S <- R), frame)
  if (sharing == "argument") fun <- function(R, ...) {
    value <- cholupdate_overwrite(R, ...)
    list(value = value, R = R)
  }
  if (sharing == "locked") lockBinding("R", frame)

  what <- sprintf("cholupdate_overwrite, %s: %s, backend %s, method %s", sharing, case$what, choice$backend,
                  choice$method)
  expected <- judge_choice(choice$backend, choice$method, control, "double", gpu)
  if (sharing == "locked") expected$must <- c(expected$must, "bad_argument")
  if (sharing == "shared, copy = FALSE") expected$must <- c(expected$must, "shared")
  copies <- sharing %in% c("shared", "argument")
  seen <- observe(fun, frame, names, kept = c(names(args), if (grepl("shared", sharing)) "S",
                                              if (sharing == "argument") "R"))
  X <- frame$R
  if (sharing == "argument" && seen$outcome == "ok") {
    X <- seen$value$R
    seen$value <- seen$value$value
  }
  pivot <- 0L
  if (!check && seen$outcome == "ok") {
    pivot <- seen$value
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
  }
  problems <- c(seen$problems, expect_outcome(seen, allowed_of(case, expected)),
                expect_signals(seen, c(if (case$triangle) "gpucholmod_other_triangle",
                                       if (copies) "gpucholmod_copied")))
  if (seen$outcome == "ok" && copies && !"gpucholmod_copied" %in% seen$signals) {
    problems <- c(problems, "copied without saying so")
  }
  if (seen$outcome != "ok") {
    same <- same_bits(X, case$R)
    lost <- !is.null(seen$error$lost) && all(is.nan(diag(X)))
    if (!(same || lost && seen$outcome %in% c("overflow", "cuda_failure"))) {
      problems <- c(problems, "R is neither as it was nor lost")
    }
    if (seen$outcome == "not_positive_definite" && !length(problems)) {
      problems <- check_pivot(if (check) seen$error$pivot else pivot, case$judged)
    }
    return(record(what, seen$outcome, problems))
  }
  other <- if (case$uplo == "upper") lower.tri(case$R) else upper.tri(case$R)
  if (check && !is.null(seen$value)) problems <- c(problems, "a value, where there must be none")
  if (!same_bits(X[other], case$R[other])) problems <- c(problems, "the other triangle was changed")
  result <- put_clean(X, case$uplo)
  numbers <- check_numbers(plain_factor(result, case$uplo), case$judged)
  record(what, "ok", c(problems, check_form(result, case$R, case$uplo, FALSE), check_report(case, 0L, control),
                       numbers$problems),
         numbers$residual)
}
