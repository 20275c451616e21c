# Random calls for test-fuzz.R. fuzz_call(seed) makes one, which depends on nothing but the seed and on whether there is
# a GPU, and returns list(seed, kind, what, outcome, residual, problems): `outcome` is "ok" or the class of the error,
# `residual` is in units of eps, and `problems` are sentences, none if everything is as it must be. A kind of call is a
# function fuzz_<kind>(gpu).
#
# What a call may come to is told by its input, before it is made: "ok", some classes of errors, or, near a limit, both.

# The classes of ?`gpucholmod-package`, with the fields that are always there.
fuzz_classes <- list(
  not_numeric = c("argument", "type"), not_square = c("nrow", "ncol"), dimension_mismatch = c("expected", "actual"),
  not_finite = c("argument", "row", "col", "value"), bad_diagonal = c("index", "value"), pivoted = "pivot",
  shared = c("argument", "value"), bad_argument = c("argument", "value"), not_positive_definite = "pivot",
  overflow = c("row", "col"), invalid_factor = "reason", bad_file = c("path", "reason"),
  backend_unavailable = c("backend", "reason"), out_of_memory = character(), cuda_failure = character()
)
# Errors of base R, where a call leaves out an argument that it needs, or has one that the function does not know.
fuzz_base_error <- "an error of base R"
fuzz_largest_residual <- 40

# Draws ------------------------------------------------------------------------------------------------------------

one_of <- function(x, prob = NULL) x[[sample.int(length(x), 1L, prob = prob)]]
whole <- function(from, to) from + sample.int(to - from + 1L, 1L) - 1L
chance <- function(p) runif(1) < p

draw_order <- function() {
  switch(one_of(c("small", "edge", "medium", "large"), c(0.55, 0.23, 0.18, 0.04)),
         small = whole(0L, 24L), edge = one_of(c(31:34, 63:66, 127:130)), medium = whole(25L, 260L),
         large = whole(261L, 520L))
}

draw_rank <- function() {
  switch(one_of(c("few", "edge", "any"), c(0.7, 0.2, 0.1)),
         few = one_of(0:5, c(1, 4, 2, 2, 2, 2)), edge = one_of(c(7:9, 15:17, 31:33, 63:66)), any = whole(0L, 100L))
}

draw_factor <- function(n) {
  R <- upper(matrix(rnorm(n * n) / sqrt(max(n, 1)), n))
  diag(R) <- runif(n, 0.5, 2)
  switch(one_of(c("plain", "graded", "steep", "diagonal"), c(5, 2, 2, 1)),
         plain = R, graded = R * 10^runif(n, -6, 0), steep = R * rep(10^sort(runif(n, -8, 0)), each = n),
         diagonal = R * diag(n))
}

draw_columns <- function(n, k) {
  V <- matrix(rnorm(n * k) / sqrt(max(n, 1)), n, k) * 10^runif(1, -3, 1)
  switch(one_of(c("plain", "scaled", "sparse", "late", "parallel", "zero"), c(8, 2, 1, 1, 1, 0.5)),
         plain = V, scaled = V * rep(10^runif(k, -6, 3), each = n), sparse = V * (runif(n * k) < 0.1),
         late = V * (seq_len(n) > n / 2),
         parallel = V[, rep(1L, k)[seq_len(k)], drop = FALSE] * (1 + 1e-7 * rnorm(n * k)),
         zero = V * 0)
}

# R and V of order near 1. What a downdate comes to is found out later, see judge_input().
draw_numbers <- function(n, k, downdate, integers) {
  if (integers) {
    R <- upper(matrix(sample(-3:3, n * n, TRUE), n, n))
    diag(R) <- sample(1:9, n, TRUE)
    return(list(R = R, V = matrix(sample(-2:2, n * k, TRUE), n, k)))
  }
  R <- draw_factor(n)
  V <- draw_columns(n, k)
  if (!downdate || n == 0L || k == 0L) return(list(R = R, V = V))
  k <- min(n, k)
  switch(one_of(c("undo", "any", "nearly singular", "impossible"), c(5, 2, 2, 2)),
         undo = list(R = factor_of_sum(R, V), V = V),
         any = list(R = R, V = V),
         "nearly singular" = nearly_singular(R, k, 10^runif(1, -16, 0)),
         impossible = nearly_singular(R, k, -10^runif(1, -15, 3)))
}

# Of R'R + VV'.
factor_of_sum <- function(R, V) {
  tryCatch(chol(crossprod(R) + tcrossprod(V)),
           error = function(e) if (nrow(R) < 200) positive_qr(rbind(R, t(V))) else R)
}

# What to multiply R and V by. Float32 has a smaller range.
draw_scales <- function(R, V, float32) {
  most <- if (float32) 30 else 300
  top <- if (float32) 3.4e38 else 1.79e308
  switch(one_of(c("none", "common", "each", "top"), c(12, 4, 4, 1)),
         none = c(1, 1), common = rep(10^runif(1, -most, most), 2), each = 10^runif(2, -most, most),
         top = top * 10^-runif(2, 0, 0.6) / pmax(1, c(max(0, abs(R)), max(0, abs(V)))))
}

draw_control <- function(threads_most = 4L) {
  if (chance(0.5)) return(cholupdate_control())
  maybe <- function(value, p = 0.4) if (chance(p)) value
  given <- list(
    blocks_per_kernel = maybe(whole(1L, 40L)), threads_per_block = maybe(32L * whole(1L, 8L)),
    elements_per_thread = maybe(one_of(c(1, 4, 8, 16, 32))), panel_rows = maybe(whole(1L, 200L)),
    loop_order = maybe(one_of(c("A", "B"))), threads = maybe(whole(1L, threads_most)),
    device_memory = maybe(one_of(list(1, 20000, 1e5, "1MB", "3 MiB", "1GB", Inf))),
    instructions = maybe(one_of(c("auto", "plain", "avx2", "avx512"))), timeline = maybe(chance(0.5), 0.2)
  )
  do.call(cholupdate_control, Filter(Negate(is.null), given))
}

# Containers: what the numbers are given as ----------------------------------------------------------------------------

has_Matrix <- function() requireNamespace("Matrix", quietly = TRUE)

# `x`, a plain upper matrix, as the user gives it.
put_factor <- function(x, container, uplo) {
  if (uplo == "lower") x <- t(x)
  n <- nrow(x)
  names <- if (n > 0L && chance(0.3)) list(paste0("r", seq_len(n)), if (chance(0.5)) paste0("c", seq_len(n)))
  if (container %in% c("dtrMatrix", "dtrMatrix, unit", "Cholesky")) {
    given <- methods::new(sub(",.*", "", container), x = as.vector(diag(n)), Dim = dim(x),
                          uplo = if (uplo == "lower") "L" else "U")
    given@x <- as.vector(x) # a Cholesky that is not valid cannot be made in one step
    if (container == "dtrMatrix, unit") given@diag <- "U"
    if (!is.null(names)) given@Dimnames <- list(names[[1L]], names[[1L]])
    return(given)
  }
  if (container == "float32") {
    given <- make_float32(x)
    dimnames(given@Data) <- names
    return(given)
  }
  if (container == "scalar") return(as.vector(x))
  dimnames(x) <- names
  x
}

put_columns <- function(V, container) {
  switch(container, vector = as.vector(V), float32 = make_float32(V),
         dgeMatrix = methods::new("dgeMatrix", x = as.double(V), Dim = dim(V)), V)
}

# The numbers of a factor, a plain upper matrix of doubles.
plain_factor <- function(given, uplo) {
  x <- if (isS4(given) && methods::is(given, "float32")) matrix(widen(given), nrow(given@Data))
  else if (isS4(given)) matrix(given@x, given@Dim[[1L]])
  else matrix(as.double(given), NROW(given))
  if (uplo == "lower") t(x) else x
}

dimnames_of <- function(given) {
  if (isS4(given)) if (methods::is(given, "float32")) dimnames(given@Data) else given@Dimnames else dimnames(given)
}

# Numbers -----------------------------------------------------------------------------------------------------------

exponent_of <- function(x) floor(log2(x))
times_power <- function(x, p) x * 2^(p %/% 2) * 2^(p - p %/% 2)
norm_1 <- function(x) if (length(x)) norm(x, "1") else 0

# The order of the first leading minor that is not positive definite, 0 if there is none.
failing_minor <- function(M) {
  if (!nrow(M)) return(0L)
  tryCatch({
    chol(M)
    0L
  }, error = function(e) as.integer(gsub("[^0-9]", "", conditionMessage(e))))
}

# What a modification may come to, by its numbers: R upper, n x n, and V, as doubles. `computed` and `stored` are
# "double" or "single". With it, what check_numbers() needs: everything times 2^-p, so that the largest is about 1.
judge_input <- function(R, V, downdate, computed = "double", stored = "double") {
  n <- nrow(R)
  at <- upper.tri(R, diag = TRUE)
  bad <- c(if (!all(is.finite(R[at])) || !all(is.finite(V))) "not_finite",
           if (any(diag(R) <= 0, na.rm = TRUE)) "bad_diagonal")
  if (length(bad)) return(list(allowed = bad))
  largest <- max(0, abs(R[at]), abs(V))
  if (n == 0L || largest == 0) return(list(allowed = "ok", trivial = TRUE))

  p <- exponent_of(largest)
  R[!at] <- 0
  Rp <- times_power(R, -p)
  Vp <- times_power(V, -p)
  if (computed == "single") {
    Rp <- as_floats(Rp)
    Vp <- if (length(V)) as_floats(Vp) else V
  }
  A <- crossprod(Rp)
  W <- tcrossprod(Vp)
  size <- norm_1(A) + norm_1(W)
  judged <- list(allowed = "ok", p = p, A = A, W = W, size = size, sign = if (downdate) -1 else 1,
                 eps = eps_of(computed), measurable = stored == "double" || largest > 1e-34)
  if (downdate && any(V != 0)) {
    slack <- (45 * judged$eps + 2 * (n + ncol(V)) * .Machine$double.eps) * size
    judged$minors <- c(first = failing_minor(A - W - diag(slack, n)), last = failing_minor(A - W + diag(slack, n)))
    judged$allowed <- c(if (judged$minors[["last"]] == 0L) "ok",
                        if (judged$minors[["first"]] > 0L) "not_positive_definite")
    if (judged$minors[["last"]] == 0L) judged$minors[["last"]] <- n
  }
  # Above this, or below its counterpart, everything is scaled to it: `scale_exponent` in src/core/factor_io.h.
  safe <- if (computed == "double") 484 else 36
  e <- if (p > safe) p - safe else if (p < -safe) p + safe else 0
  smallest <- exponent_of(min(diag(R))) - e
  normal <- if (computed == "double") -1022 else -126
  digits <- if (computed == "double") 52 else 23
  if (smallest < normal) judged$allowed <- c(judged$allowed, "bad_diagonal")
  if (smallest < normal - digits - 2 && ncol(V) > 0L) judged$allowed <- "bad_diagonal"
  top <- if (stored == "double") 1024 else 128
  if (max(sqrt(colSums(Rp^2) + rowSums(Vp^2))) > 0.99 * 2^(top - p)) judged$allowed <- c(judged$allowed, "overflow")
  judged
}

# Of a result, a plain upper matrix: list(residual, problems).
check_numbers <- function(X, judged) {
  if (!is.null(judged$trivial) || !judged$measurable) return(list(residual = NA_real_))
  if (!all(is.finite(X))) return(list(residual = NA_real_, problems = "the result is not finite"))
  X <- times_power(X, -judged$p)
  residual <- norm_1(crossprod(X) - judged$A - judged$sign * judged$W) / (judged$eps * judged$size)
  list(residual = residual,
       problems = if (residual > fuzz_largest_residual) sprintf("the residual is %.3g eps", residual))
}

# Of a result in the form of what was given: sentences.
check_form <- function(value, given, uplo, single) {
  as_plain <- is.numeric(given) || (methods::is(given, "float32") && !single)
  X <- if (as_plain) value else if (methods::is(value, "float32")) matrix(widen(value), nrow(value@Data))
  else if (isS4(value)) matrix(value@x, value@Dim[[1L]])
  n <- NROW(plain_factor(given, "upper"))
  if (!is.double(X) || !identical(dim(X), c(n, n))) return("the result is no matrix of doubles of the order of R")
  other <- if (uplo == "upper") lower.tri(X) else upper.tri(X)
  c(if (as_plain && !all(names(attributes(value)) %in% c("dim", "dimnames"))) "the result has further attributes",
    if (!as_plain && !identical(class(value), class(given))) "the result has another class",
    if (!as_plain && !isTRUE(methods::validObject(value, test = TRUE))) "the result is not valid",
    if (!identical(dimnames_of(value), dimnames_of(given))) "the dimnames are not those of R",
    if (!all(X[other] == 0)) "the other triangle is not zero", if (!all(diag(X) > 0)) "the diagonal is not positive")
}

# Calls -------------------------------------------------------------------------------------------------------------

is_data <- function(x) !is.environment(x) && !is.function(x) && !is.language(x)
same_bits <- function(x, y) identical(x, y, num.eq = FALSE, single.NA = FALSE, attrib.as.set = FALSE)

# A frame with the arguments of a call as variables.
frame_of <- function(args) list2env(args, parent = globalenv())

# Calls `fun` with the variables of `frame` that `args` names: list(value, error, outcome, signals, problems). Those of
# `kept` must be the same bits afterwards.
observe <- function(fun, frame, args = ls(frame), kept = args) {
  kept <- Filter(function(name) is_data(frame[[name]]), kept)
  before <- lapply(kept, function(name) unshared(frame[[name]]))
  call <- as.call(c(list(fun), stats::setNames(lapply(args, as.name), args)))
  signals <- odd <- character()
  note <- function(condition, restart) {
    signals <<- c(signals, setdiff(class(condition), c("condition", "message", "warning"))[1L])
    if (!grepl("^gpucholmod_", signals[length(signals)])) odd <<- c(odd, conditionMessage(condition))
    invokeRestart(restart)
  }
  seen <- withCallingHandlers(
    tryCatch(list(value = eval(call, frame)), error = function(e) list(error = e)),
    warning = function(w) note(w, "muffleWarning"), message = function(m) note(m, "muffleMessage")
  )
  changed <- kept[!mapply(function(name, x) same_bits(frame[[name]], x), kept, before)]
  c(seen, list(outcome = if (is.null(seen$error)) "ok" else outcome_of(seen$error), signals = signals,
               problems = c(if (length(odd)) sprintf("a warning or message of another class: %s", odd),
                            if (length(changed)) sprintf("'%s' was changed", changed),
                            if (!is.null(seen$error)) check_error(seen$error))))
}

outcome_of <- function(error) {
  if (inherits(error, "gpucholmod_error")) sub("^gpucholmod_", "", class(error)[[1L]]) else fuzz_base_error
}

check_error <- function(error) {
  if (!inherits(error, "gpucholmod_error")) return(NULL) # expect_outcome() knows whether that is allowed
  own <- outcome_of(error)
  if (!own %in% names(fuzz_classes)) {
    return(sprintf("an error of class %s, which is not documented", class(error)[[1L]]))
  }
  absent <- setdiff(fuzz_classes[[own]], names(error))
  c(if (!identical(class(error)[-1L], c("gpucholmod_error", "error", "condition"))) "an error with odd classes",
    if (length(absent)) sprintf("a %s without its field %s", own, absent),
    if (!is.character(error$message) || !nzchar(error$message)) "an error without a message",
    if (!is.call(error$call)) "an error without its call")
}

# Sentences where what came is not among what may come.
expect_outcome <- function(seen, allowed) {
  if (seen$outcome %in% allowed) return(NULL)
  told <- if (!is.null(seen$error)) sprintf(" (%s)", conditionMessage(seen$error))
  rule <- if (length(allowed) > 6L) "one of the documented classes" else paste(allowed, collapse = " or ")
  if (length(allowed) > 6L && "ok" %in% allowed) rule <- paste("ok or", rule)
  sprintf("%s%s, where it must be %s", seen$outcome, paste(told, collapse = ""), rule)
}

expect_signals <- function(seen, allowed = character()) {
  odd <- setdiff(seen$signals, allowed)
  if (length(odd)) sprintf("a condition of class %s", odd)
}

record <- function(what, outcome, problems = NULL, residual = NA_real_) {
  list(what = what, outcome = outcome, residual = residual, problems = as.character(problems))
}

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
    diag(R)[[whole(1L, n)]] <- one_of(if (container == "integer") 0:-1 else c(0, -0, -1))
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
  judged <- judge_input(X, Y, downdate, precision, stored)
  if (any(is.infinite(Y) & is.finite(V))) judged$allowed <- c(judged$allowed, "overflow") # either name fits
  list(n = n, k = k, downdate = downdate, uplo = uplo, container = container, columns = columns, precision = precision,
       R = given$R, V = given$V, judged = judged, triangle = length(below) > 0L && any(is.na(X[below]) | X[below] != 0),
       clean = function() put_clean(given$R, uplo),
       what = sprintf("n %d, k %d, %s, %s %s, %s V, %s, scales %.0e and %.0e, fault: %s", n, k,
                      if (downdate) "downdate" else "update", uplo, container, columns, precision, scales[1L],
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
  c(if (report$n != case$n || report$k != case$k || report$downdate != case$downdate) "the report is of another call",
    if (report$precision != case$precision) "the report has another precision",
    if (report$pivot != pivot) "the report has another pivot",
    if (report$device_bytes_peak > control$device_memory) "more device memory than allowed")
}

fuzz_modify <- function(gpu) {
  precision <- one_of(c("double", "single"), c(3, 1))
  case <- draw_case(ordinary_containers(), precision)
  choice <- draw_choice(gpu)
  if (choice$method == "refactor" && precision == "single" && chance(0.9)) choice$method <- "blocked"
  control <- draw_control()
  check <- chance(0.7)
  args <- c(case[c("R", "V", "downdate")], list(precision = precision), choice, list(control = control))
  own_uplo <- case$container %in% c("dtrMatrix", "dtrMatrix, unit", "Cholesky")
  if (!own_uplo || chance(0.3)) args$uplo <- case$uplo
  if (precision == (if (case$container == "float32") "single" else "double") && chance(0.5)) args$precision <- NULL
  if (!check) args$check <- FALSE

  what <- sprintf("cholupdate_gpu: %s, backend %s, method %s", case$what, choice$backend, choice$method)
  expected <- judge_choice(choice$backend, choice$method, control, precision, gpu)
  allowed <- allowed_of(case, expected)
  frame <- frame_of(args)
  seen <- observe(cholupdate_gpu, frame, names(args))
  if (seen$outcome == "out_of_memory" && "out_of_memory" %in% allowed) {
    return(fuzz_with_more(seen, frame, args, case, what))
  }
  pivot <- 0L
  if (!check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (!identical(names(seen$value), c("R", "pivot"))) seen$problems <- c(seen$problems, "no list of R and pivot")
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
    seen$value <- seen$value$R
  }
  problems <- c(seen$problems, expect_outcome(seen, allowed),
                expect_signals(seen, if (case$triangle) "gpucholmod_other_triangle"))
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
  problems <- c(check_form(seen$value, case$R, case$uplo, precision == "single"), check_report(case, 0L, control))
  if (case$triangle && choice$backend == "cpu" && is.numeric(case$R)) {
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
  args <- c(list(V = case$V, downdate = case$downdate, uplo = case$uplo), choice, list(control = control))
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

# Files -------------------------------------------------------------------------------------------------------------

fuzz_file <- function(gpu) {
  folder <- tempfile("fuzz")
  dir.create(folder)
  folder <- normalizePath(folder)
  on.exit(unlink(folder, recursive = TRUE))
  case <- draw_case(c(rep("ordinary", 6), "integer", "scalar",
                      if (has_Matrix()) c("dtrMatrix", "dtrMatrix, unit", "Cholesky")),
                    "double", "upper")
  path <- file.path(folder, "R.bin")
  output <- file.path(folder, "output.bin")
  what <- paste0("factor_file: ", case$what)
  X <- put_clean(as_given(case)$R, "upper")

  if (case$n > 0L && is.numeric(case$R) && chance(0.3)) {
    writeBin(as.double(case$R), path)
    written <- observe(factor_file, frame_of(list(path = path)))
  } else {
    written <- observe(write_factor, frame_of(list(R = case$R, path = path)))
  }
  problems <- c(written$problems, expect_outcome(written, if (case$n > 0L) "ok" else "bad_file"),
                expect_signals(written, if (case$triangle) "gpucholmod_other_triangle"))
  if (length(problems) || written$outcome != "ok") return(record(what, written$outcome, problems))
  f <- written$value
  if (!identical(unclass(f), list(path = path, n = case$n))) problems <- "the factor_file has another path or order"
  if (!same_bits(as.matrix(f), X)) problems <- c(problems, "the file does not hold the factor")

  control <- draw_control()
  fault <- if (chance(0.35)) one_of(c("exists", "replaced", "same", "folder", "no folder", "empty", "cut", "smaller",
                                      "gone")) else "none"
  args <- list(R = f, V = case$V, downdate = case$downdate, output = output, control = control)
  if (chance(0.3)) args$method <- one_of(c("auto", "stream"))
  args$backend <- if (gpu && chance(0.7)) "cuda" else one_of(c("auto", "cpu"))
  check <- chance(0.7)
  if (!check) args$check <- FALSE
  if (fault %in% c("exists", "replaced")) writeBin(1, output)
  if (fault == "replaced") args$replace <- TRUE
  if (fault == "same") args$output <- path
  if (fault == "folder") dir.create(output)
  if (fault == "no folder") args$output <- file.path(folder, "absent", "output.bin")
  if (fault == "empty") writeBin(numeric(), path)
  if (fault == "cut") writeBin(as.vector(X)[-1L], path)
  if (fault == "smaller") writeBin(as.double((case$n + 1)^2 * 0 + seq_len((case$n + 1)^2)), path)
  if (fault == "gone") unlink(path)
  broken <- !fault %in% c("none", "replaced")
  what <- sprintf("%s, backend %s, file: %s", what, args$backend, fault)

  look <- function() {
    names <- list.files(folder, all.files = TRUE, no.. = TRUE)
    list(names, tools::md5sum(setdiff(file.path(folder, names), list.dirs(folder))))
  }
  before <- look()
  frame <- frame_of(args)
  seen <- observe(cholupdate_gpu, frame, names(args))
  pivot <- 0L
  if (!check && seen$outcome == "ok") {
    pivot <- seen$value$pivot
    if (pivot > 0L) seen$outcome <- "not_positive_definite"
    seen$value <- seen$value$R
  }
  expected <- judge_choice(args$backend, "stream", control, "double", gpu)
  expected$must <- c(expected$must, if (broken) "bad_file")
  problems <- c(problems, seen$problems, expect_outcome(seen, allowed_of(case, expected)), expect_signals(seen))
  if (length(list.files(folder, "part$"))) problems <- c(problems, "a .part file is left")
  if (seen$outcome != "ok") {
    if (!identical(look(), before)) problems <- c(problems, "a file was changed by a call that failed")
    if (seen$outcome == "not_positive_definite" && !length(problems)) {
      problems <- check_pivot(if (check) seen$error$pivot else pivot, case$judged)
    }
    return(record(what, seen$outcome, problems))
  }
  if (!same_bits(as.matrix(f), X)) problems <- c(problems, "the file that was read was changed")
  if (!identical(unclass(seen$value), list(path = output, n = case$n))) {
    problems <- c(problems, "the result is another file")
  }
  result <- as.matrix(seen$value)
  numbers <- check_numbers(result, case$judged)
  record(what, "ok", c(problems, check_form(result, X, "upper", FALSE), numbers$problems), numbers$residual)
}

# What a factor is for -------------------------------------------------------------------------------------------------

# The relative error that a solution may have: `kappa` is the condition number of the factor.
tolerance_of <- function(R, eps, both) {
  kappa <- norm_1(R) * norm_1(backsolve(R, diag(nrow(R))))
  100 * nrow(R) * eps * (if (both) kappa^2 else kappa)
}

# Sentences where `x` is not what `expected` says, within `tolerance` of its largest number.
expect_near <- function(x, expected, tolerance, what) {
  if (!is.double(x) || length(x) != length(expected)) return(paste(what, "has another type or length"))
  if (!length(x) || tolerance > 0.1) return(NULL)
  error <- max(abs(as.vector(x) - as.vector(expected))) / max(abs(expected))
  if (!(error <= tolerance)) sprintf("%s is wrong by %.2g, where %.2g is allowed", what, error, tolerance)
}

# The functions that take a factor `f` and right-hand sides `b`, and what they must give for an upper factor R.
uses_of_factor <- list(
  solve = function(f, b, ...) solve(f, b, ...), solve_forward = function(f, b, ...) solve_forward(f, b, ...),
  solve_back = function(f, b, ...) solve_back(f, b, ...), inverse = function(f, b, ...) solve(f, ...),
  chol2inv = function(f, b, ...) chol2inv(f, ...), logdet = function(f, b, ...) logdet(f, ...),
  determinant = function(f, b, ...) determinant(f, ...), diag = function(f, b, ...) diag(f, ...)
)

check_use <- function(use, value, R, b, eps) {
  if (!nrow(R)) return(NULL)
  log_det <- 2 * sum(log(diag(R)))
  log_tolerance <- 100 * nrow(R) * eps * (1 + max(abs(log(diag(R))))) / max(abs(log_det), 1e-300)
  near <- function(expected, both) expect_near(value, expected, tolerance_of(R, eps, both), use)
  switch(use,
    solve = near(backsolve(R, backsolve(R, b, transpose = TRUE)), TRUE),
    solve_forward = near(backsolve(R, b, transpose = TRUE), FALSE),
    solve_back = near(backsolve(R, b), FALSE),
    inverse = , chol2inv = near(chol2inv(R), TRUE),
    logdet = expect_near(value, log_det, log_tolerance, use),
    determinant = c(if (!inherits(value, "det") || value$sign != 1) "no determinant",
                    expect_near(as.double(value$modulus), log_det, log_tolerance, use)),
    diag = expect_near(unname(value), diag(R), 2 * eps, use)
  )
}

# A right-hand side for n rows, and its numbers.
draw_right_side <- function(n) {
  m <- one_of(c(0L, 1L, 1L, 3L, 9L))
  numbers <- matrix(rnorm(n * m), n, m)
  container <- one_of(c("matrix", "vector", "float32", if (has_Matrix()) "dgeMatrix"))
  if (container == "vector") numbers <- matrix(rnorm(n), n)
  given <- put_columns(numbers, container)
  if (container == "float32" && length(numbers)) numbers <- as_floats(numbers)
  list(given = given, numbers = numbers, container = container)
}

# Ordinary factors, and factors in files.
fuzz_use <- function(gpu) {
  n <- min(draw_order(), 130L)
  uplo <- one_of(c("upper", "lower"))
  in_file <- n > 0L && chance(0.4)
  if (in_file) uplo <- "upper"
  container <- if (in_file) "ordinary" else one_of(c("ordinary", "ordinary", "integer"))
  R <- draw_numbers(n, 1L, FALSE, container == "integer")$R
  if (container != "integer" && chance(0.3)) R <- R * 10^runif(1, -60, 60)
  b <- draw_right_side(n)
  use <- one_of(if (in_file) names(uses_of_factor) else c("solve_forward", "solve_back", "logdet"))
  wrong <- chance(0.15) && use %in% c("solve", "solve_forward", "solve_back")
  if (wrong) b$given <- one_of(list(rnorm(n + 1L), "b", NULL, array(1, c(1, 1, 1)), matrix("b", n, 1L), list(1)))
  bad <- n > 0L && !wrong && container != "integer" && chance(0.15)
  if (bad) diag(R)[[whole(1L, n)]] <- one_of(c(0, -1, NaN))
  what <- sprintf("%s of %s: n %d, %s %s, b: %s%s%s", use, if (in_file) "a file" else "a matrix", n, uplo, container,
                  b$container,
                  if (wrong) ", wrong" else "", if (bad) ", a diagonal that is not positive" else "")
  frame <- new.env()
  if (in_file) {
    path <- tempfile("fuzz")
    on.exit(unlink(path))
    frame$f <- write_factor(R, path)
  } else {
    frame$f <- put_factor(R, container, uplo)
  }
  frame$b <- b$given
  if (!in_file && uplo == "lower") frame$uplo <- "lower"
  seen <- observe(uses_of_factor[[use]], frame, ls(frame))
  allowed <- if (wrong) c("dimension_mismatch", "not_numeric")
             else if (bad) c("bad_diagonal", "not_finite", if (use == "diag") "ok") else "ok"
  problems <- c(seen$problems, expect_outcome(seen, allowed), expect_signals(seen))
  if (length(problems) || seen$outcome != "ok") return(record(what, seen$outcome, problems))
  record(what, "ok", if (!bad) check_use(use, seen$value, R + 0, b$numbers, .Machine$double.eps))
}

# Plans and reports ----------------------------------------------------------------------------------------------------

fuzz_plan <- function(gpu) {
  n <- draw_order()
  k <- draw_rank()
  precision <- one_of(c("double", "single"), c(3, 1))
  choice <- draw_choice(gpu)
  large <- one_of(c("none", "n", "k"), c(0.75, 0.15, 0.1))
  if (large == "n") n <- one_of(c(1e5, 46341, 2^31 - 1, 2^31, 1e300, Inf))
  if (large == "k") k <- one_of(c(1e4, 1e5, 1e300, Inf))
  no_size <- max(n, k) > 1e7
  if (max(n, k) > 1e5 && choice$method != "blocked") {
    choice <- list(backend = "cpu", method = "auto") # plans of panels take memory
  }
  control <- draw_control()
  args <- list(n = n, k = k, precision = precision, backend = choice$backend, method = choice$method, control = control)
  small <- n <= 130 && k <= 100 && chance(0.5)
  if (small && chance(0.5)) args[c("n", "k")] <- list(diag(n), matrix(0, n, k))
  what <- sprintf("cholupdate_plan: n %g, k %g, %s, backend %s, method %s", n, k, precision, choice$backend,
                  choice$method)
  frame <- frame_of(args)
  seen <- observe(cholupdate_plan, frame, names(args))
  expected <- judge_choice(choice$backend, choice$method, control, precision, gpu)
  allowed <- c(if (!length(expected$must)) "ok", expected$must, expected$may, if (no_size) "bad_argument")
  problems <- c(seen$problems, expect_outcome(seen, allowed), expect_signals(seen))
  if (length(problems) || seen$outcome != "ok") return(record(what, seen$outcome, problems))
  plan <- seen$value
  shown <- utils::capture.output(print(plan))
  problems <- c(
    if (plan$n != n || plan$k != k) "the plan is for another size",
    if (!plan$backend %in% c("cpu", "cuda") ||
        choice$backend != "auto" && plan$backend != choice$backend) "another backend",
    if (choice$method != "auto" && plan$method != choice$method) "another method",
    if (anyNA(plan$expected[c("cpu", "start")]) || any(plan$expected < 0, na.rm = TRUE)) "no times are expected",
    if (plan$device_bytes > control$device_memory) "more device memory than allowed",
    if (plan$threads < 1L || !nzchar(plan$why) || !length(shown)) "an odd plan"
  )
  if (small && n > 0L && k > 0L) {
    args[c("n", "k")] <- NULL
    done <- observe(cholupdate_gpu, frame_of(c(list(R = diag(n), V = matrix(0.01, n, k)), args)),
                    c("R", "V", names(args)))
    report <- last_cholupdate()
    shown <- utils::capture.output(print(report))
    fits <- c(expected$may, "ok")
    if (done$outcome == "ok" && !identical(report[c("backend", "method")], plan[c("backend", "method")])) {
      problems <- c(problems, sprintf("planned was %s, done was %s", plan$method, report$method))
    }
    if (done$outcome == "ok" && plan$method != "panel" && report$panels != plan$panels) {
      problems <- c(problems, "another number of panels")
    }
    problems <- c(problems, done$problems, expect_outcome(done, fits))
  }
  record(what, "ok", problems)
}

# Junk -----------------------------------------------------------------------------------------------------------------

junk <- list(
  NULL, NA, NaN, Inf, -Inf, -1, 0, 1.5, 3, 3L, 1e300, 2^31, .Machine$integer.max, NA_integer_, NA_character_, numeric(),
  integer(),
  character(), "x", "", "1GB", "cpu", c("a", "b"), c(1, 2), 1:3, TRUE, FALSE, c(TRUE, FALSE), 1i, as.raw(1), list(),
  list(1), quote(x),
  quote(f(x)), expression(x), function(x) x, globalenv(), factor("a"), as.Date("2020-01-01"), data.frame(a = 1),
  matrix("a", 2, 2),
  matrix(1:4, 2), matrix(numeric(), 0, 3), array(1, c(1, 1, 1)), diag(3), -diag(3), diag(3) > 0,
  structure(1, class = "odd"), y ~ x,
  structure(list(path = "absent", n = 3L), class = "factor_file"), chol(diag(3), pivot = TRUE)
)

# Calls that are right, for one thing to be made wrong, and what they cannot do without.
right_calls <- function() {
  R <- chol(diag(3) + 1)
  V <- matrix(1:6 / 10, 3)
  control <- cholupdate_control()
  request <- list(precision = "double", backend = "cpu", method = "auto", control = control)
  path <- file.path(getwd(), "R.bin")
  f <- write_factor(R, path, replace = TRUE)
  stored <- stored_measurements("paper-h200")
  file <- list.files(system.file("extdata", package = "gpucholmod"), "csv", full.names = TRUE)[[1L]]
  list(
    cholupdate_gpu = list(needs = 2L, args = c(list(R = R, V = V, downdate = FALSE, uplo = "upper", check = TRUE),
                                               request)),
    cholupdate_gpu = list(needs = 2L, args = list(R = f, V = V, downdate = FALSE, output = "out.bin", replace = TRUE,
                                                  check = TRUE,
                                                  backend = "cpu", method = "auto", precision = "double",
                                                  control = control)),
    cholupdate_overwrite = list(needs = 2L,
                                args = c(list(R = R, V = V, downdate = FALSE, uplo = "upper", check = TRUE,
                                              copy = TRUE),
                                                     request[-1L])),
    cholupdate_plan = list(needs = 2L, args = c(list(n = 3, k = 2), request)),
    cholupdate_control = list(needs = 0L, args = list(
      blocks_per_kernel = 28, threads_per_block = 32, elements_per_thread = 16, panel_rows = 32, loop_order = "A",
      device_memory = "1GB", threads = 2, instructions = "plain", timeline = TRUE)),
    factor_file = list(needs = 1L, args = list(path = path)),
    write_factor = list(needs = 2L, args = list(R = R, path = "other.bin", replace = TRUE)),
    gpu_factor = list(needs = 1L, args = list(R = R, uplo = "upper", precision = "double", device = NULL)),
    gpu_chol = list(needs = 1L, args = list(A = crossprod(R), precision = "double", device = NULL)),
    copy_factor = list(needs = 1L, args = list(x = R)),
    free = list(needs = 1L, args = list(x = R)),
    drift = list(needs = 1L, args = list(f = R)),
    logdet = list(needs = 1L, args = list(f = R, uplo = "upper")),
    solve_forward = list(needs = 2L, args = list(f = R, b = V, uplo = "upper")),
    solve_back = list(needs = 2L, args = list(f = R, b = V, uplo = "upper")),
    gpu_info = list(needs = 0L, args = list(memory = FALSE)),
    gpu_release = list(needs = 0L, args = list()),
    last_cholupdate = list(needs = 0L, args = list()),
    provenance = list(needs = 1L, args = list(x = stored)),
    stored_measurements = list(needs = 0L, args = list(name = "conditioning-h200")),
    read_measurements = list(needs = 1L, args = list(file = file)),
    compare_bench = list(needs = 2L, args = list(x = stored, y = stored))
  )
}

# Arguments that mean the same everywhere: whether a value can be used.
usable_value <- list(
  flag = function(x) isTRUE(x) || isFALSE(x),
  choice = function(x) identical(x, "cpu"),
  count = function(x) is.null(x) || is.numeric(x) && !is.object(x) && length(x) == 1L && !is.na(x) && x == round(x) &&
    x >= 1 && x < 2^31
)
meaning_of <- c(
  downdate = "flag", check = "flag", replace = "flag", copy = "flag", timeline = "flag", memory = "flag",
  uplo = "choice",
  precision = "choice", backend = "choice", method = "choice", loop_order = "choice", instructions = "choice",
  name = "choice",
  blocks_per_kernel = "count", threads_per_block = "count", elements_per_thread = "count", panel_rows = "count",
  threads = "count"
)

fuzz_junk <- function(gpu) {
  folder <- tempfile("fuzz")
  dir.create(folder)
  old <- setwd(folder)
  on.exit({
    setwd(old)
    unlink(folder, recursive = TRUE)
  })
  calls <- right_calls()
  i <- whole(1L, length(calls))
  name <- names(calls)[[i]]
  args <- calls[[i]]$args
  kind <- one_of(c("spoiled", "left out", "unknown", "by place", "right"), c(12, 1, 1, 1, 1))
  allowed <- c("ok", setdiff(names(fuzz_classes), "cuda_failure"))
  if (kind == "right") {
    allowed <- if (name %in% c("copy_factor", "free", "drift")) "bad_argument" # of what is no handle
    else if (!gpu && name %in% c("gpu_factor", "gpu_chol")) "backend_unavailable" else "ok"
  }
  spoiled <- "nothing"
  if (kind == "spoiled" && length(args)) {
    at <- whole(1L, length(args))
    spoiled <- names(args)[[at]]
    value <- one_of(junk)
    args[at] <- list(value)
    meaning <- meaning_of[spoiled]
    if (!is.na(meaning) && !isTRUE(usable_value[[meaning]](value))) allowed <- setdiff(allowed, "ok")
  } else if (kind == "left out" && calls[[i]]$needs > 0L) {
    at <- whole(1L, calls[[i]]$needs)
    spoiled <- paste(names(args)[[at]], "left out")
    args <- args[-at]
    allowed <- c(allowed, fuzz_base_error)
  } else if (kind %in% c("unknown", "by place")) {
    spoiled <- if (kind == "unknown") "nonsense" else "one too many"
    args <- c(args, if (kind == "unknown") list(nonsense = 1) else list(extra = 1))
    allowed <- c(allowed, fuzz_base_error)
  }
  told <- if (exists("value", inherits = FALSE)) sprintf(" = %s", paste(deparse(value), collapse = "")) else ""
  what <- sprintf("%s, %s%s", name, spoiled, substr(told, 1L, 60L))
  frame <- frame_of(args)
  fun <- get(name)
  # `R` of this function is a variable
  if (name == "cholupdate_overwrite" && "R" %in% names(args)) fun <- function(R, ...) {
    own <- unshared(R)
    cholupdate_overwrite(own, ...)
  }
  seen <- observe(fun, frame, names(args))
  if (is.environment(seen$value) && inherits(seen$value, "gpu_factor")) free(seen$value)
  record(what, seen$outcome, c(seen$problems, expect_outcome(seen, allowed),
                               expect_signals(seen, c("gpucholmod_other_triangle", "gpucholmod_copied"))))
}

# What takes nothing, or nearly.
fuzz_query <- function(gpu) {
  name <- one_of(c("gpu_info", "gpu_release", "last_cholupdate", "stored_measurements", "provenance",
                   "cholupdate_control"))
  frame <- new.env()
  if (name == "gpu_info") frame$memory <- gpu && chance(0.5)
  if (name == "provenance") frame$x <- stored_measurements(one_of(stored_measurements()))
  seen <- observe(get(name), frame, ls(frame))
  value <- seen$value
  as_it_is <- switch(
    name,
    gpu_info = inherits(value, "gpucholmod_info") && identical(value$usable, gpu) &&
      length(utils::capture.output(print(value))) > 3L,
    gpu_release = is.double(value) && value >= 0,
    last_cholupdate = is.null(value) || inherits(value, "gpucholmod_report"),
    stored_measurements = is.character(value) && length(value) > 1L,
    provenance = is.character(value) && length(value) == 1L,
    cholupdate_control = inherits(value, "gpucholmod_control")
  )
  record(name, seen$outcome, c(seen$problems, expect_outcome(seen, "ok"), expect_signals(seen),
                               if (!isTRUE(as_it_is)) "an odd value"))
}

# Handles --------------------------------------------------------------------------------------------------------------

# A factor on the GPU, and up to four things done with it. `state` is what is known of it: the handle `f` in a frame,
# its numbers X (upper, doubles), precision, and how often it was modified.
fuzz_handle <- function(gpu) {
  state <- draw_handle()
  if (!is.null(state$record)) return(state$record)
  what <- state$what
  worst <- NA_real_
  outcome <- "ok"
  for (i in seq_len(whole(1L, 4L))) {
    act <- one_of(list(act_modify, act_use, act_copy, act_lose, act_drift), c(6, 4, 1, 0.7, 1))
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
draw_handle <- function() {
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
  if (fault == "bad_diagonal") diag(R)[[whole(1L, n)]] <- if (container == "integer") 0L else -1
  given <- put_factor(R, container, uplo)
  X <- plain_factor(given, uplo)
  if (single) X <- upper(replace(as_floats(X), is.na(X), NaN))
  what <- sprintf("gpu_factor: n %d, %s %s, %s, largest %.0e, fault: %s", n, uplo, container, precision,
                  max(0, abs(R), na.rm = TRUE), fault)
  frame <- frame_of(list(R = given, uplo = uplo, precision = precision))
  at <- upper.tri(X, diag = TRUE)
  allowed <- c(if (anyNA(X[at])) "not_finite", if (any(is.infinite(X))) c("overflow", "not_finite"),
               if (any(diag(X) <= 0, na.rm = TRUE)) "bad_diagonal")
  seen <- observe(gpu_factor, frame)
  problems <- c(seen$problems, expect_outcome(seen, if (length(allowed)) allowed else "ok"), expect_signals(seen))
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
  if (length(problems)) return(list(record = record(what, "ok", problems)))
  state <- list(frame = list2env(list(f = f), parent = globalenv()), X = Y, precision = precision, uplo = uplo,
                count = 0L, what = what,
                near = !far)
  if (n > 0L && !far && container == "ordinary" && chance(0.3)) draw_factorised(state) else state
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
  args <- list(V = V, downdate = downdate, in_place = chance(0.5))
  if (chance(0.3)) args$keep_intact <- chance(0.5)
  if (chance(0.5)) args$method <- one_of(c("auto", "persistent", "stepwise"))
  if (chance(0.1)) args$always_fall_back <- TRUE
  check <- chance(0.7)
  if (!check) args$check <- FALSE
  what <- sprintf("%s of rank %d%s, method %s", if (downdate) "downdate" else "update", k,
                  if (args$in_place) " in place" else "",
                  paste(args$method, collapse = ""))

  frame <- frame_of(c(list(R = f), args))
  judged <- judge_input(state$X, if (state$precision == "single" && length(V)) as_floats(V) else V, downdate,
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
  may_be_lost <- args$in_place && (identical(args$keep_intact, FALSE) || !downdate) && failed_late
  if (length(problems)) return(acted(what, seen$outcome, state, problems))
  if (seen$outcome == "not_positive_definite" && k <= 64L) {
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
  if (report$n != n || report$k != k || report$backend != "cuda" ||
      report$in_place != args$in_place && k > 0L && n > 0L) {
    problems <- c(problems, "the report is of another call")
  }
  shape <- matrix(0, n, n, dimnames = dimnames(f))
  state$frame$f <- g
  state$X <- plain_factor(result, state$uplo)
  state$count <- state$count + (k > 0L)
  if (g$modifications != state$count) problems <- c(problems, "another number of modifications")
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
  good <- is.double(value) && length(value) == 1L && !is.nan(value) &&
    if (is.na(value)) !is.finite(state$frame$f$trace) else value >= 0 && (state$count > 0L || value == 0)
  acted("drift", seen$outcome, state, c(seen$problems, expect_outcome(seen, "ok"),
                                        if (!good) "drift() is no number from 0 on"))
}

# All ------------------------------------------------------------------------------------------------------------------

fuzz_kinds <- list(modify = fuzz_modify, overwrite = fuzz_overwrite, file = fuzz_file, use = fuzz_use, plan = fuzz_plan,
                   junk = fuzz_junk,
                   query = fuzz_query, handle = fuzz_handle)
fuzz_shares <- function(gpu) c(modify = 50, overwrite = 12, file = 8, use = 8, plan = 5, junk = 16, query = 1,
                               handle = if (gpu) 60 else 0)

fuzz_call <- function(seed, gpu = gpu_info(memory = FALSE)$usable) {
  set.seed(seed)
  kind <- one_of(names(fuzz_kinds), fuzz_shares(gpu))
  called <- tryCatch(fuzz_kinds[[kind]](gpu), error = function(e) {
    record(kind, "a failure of the test", sprintf("the test itself fails: %s in %s", conditionMessage(e),
                                                  paste(deparse(conditionCall(e)), collapse = " ")))
  })
  c(list(seed = seed, kind = kind), called)
}

# A whole number from the environment.
fuzz_number <- function(variable, default) {
  value <- Sys.getenv(variable)
  if (nzchar(value)) as.integer(value) else default
}

# What a process holds that calls must give back.
fuzz_holdings <- function(gpu) {
  gc() # handles that nobody refers to
  if (gpu) gpu_release()
  list(cells = gc()[["Vcells", 1L]], descriptors = length(list.files("/proc/self/fd")),
       parts = list.files(tempdir(), "\\.part$", recursive = TRUE),
       device = if (gpu) gpu_info()$devices$memory_free else numeric())
}
