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
  switch(one_of(c("plain", "graded", "steep", "mixed", "diagonal"), c(5, 2, 2, 2, 1)),
         plain = R, graded = R * 10^runif(n, -6, 0), steep = R * rep(10^sort(runif(n, -8, 0)), each = n),
         mixed = graded_mixed(R, runif(1, 0, 6), 10^runif(1, -3, 0)), diagonal = R * diag(n))
}

draw_columns <- function(n, k) {
  V <- matrix(rnorm(n * k) / sqrt(max(n, 1)), n, k) * 10^runif(1, -3, 1)
  switch(one_of(c("plain", "scaled", "sparse", "late", "parallel", "zero"), c(8, 2, 1, 1, 1, 0.5)),
         plain = V, scaled = V * rep(10^runif(k, -6, 3), each = n), sparse = V * (runif(n * k) < 0.1),
         late = V * (seq_len(n) > n / 2),
         parallel = V[, rep(1L, k)[seq_len(k)], drop = FALSE] * (1 + 1e-7 * rnorm(n * k)),
         zero = V * 0)
}

# As much as V, in the directions of R'R.
draw_columns_of <- function(R, V) if (chance(0.8)) V else crossprod(R, V)

# R and V of order near 1. What a downdate comes to is found out later, see judge_input().
draw_numbers <- function(n, k, downdate, integers) {
  if (integers) {
    R <- upper(matrix(sample(-3:3, n * n, TRUE), n, n))
    diag(R) <- sample(1:9, n, TRUE)
    return(list(R = R, V = matrix(sample(-2:2, n * k, TRUE), n, k)))
  }
  R <- draw_factor(n)
  V <- draw_columns_of(R, draw_columns(n, k))
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

# How the columns of V are asked to change A: the arguments, and the weights and the scale that they come to. Those
# whose numbers are near a limit keep to `downdate`.
draw_change <- function(k, downdate, moderate) {
  if (!moderate || chance(0.65)) {
    return(list(args = list(downdate = downdate), weights = rep(if (downdate) -1 else 1, k), scale = 1))
  }
  weights <- (if (downdate) -1 else 1) * switch(one_of(c("one", "ones", "spread")), one = 10^runif(1, -2, 0),
                                                ones = rep(1, k),
                                                spread = 10^runif(k, -6, 0))
  if (length(weights) > 1L) {
    other <- runif(k) < one_of(c(0, 0.2, 0.6))
    weights[other] <- weights[other] * -one_of(c(0.01, 0.3, 1))
    if (chance(0.3)) weights[runif(k) < 0.2] <- 0
  }
  args <- list(weights = weights)
  if (chance(0.5)) args$scale <- one_of(c(0.25, 0.99, 1, runif(1, 0.1, 3)))
  list(args = args, weights = rep_len(weights, k), scale = if (is.null(args$scale)) 1 else args$scale)
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

# What a modification may come to, by its numbers: R upper, n x n, and V, as doubles, and draw_change(). `computed` and
# `stored` are "double" or "single". With it, what check_numbers() needs: everything times 2^-p, so that the largest is
# about 1.
judge_input <- function(R, V, change, computed = "double", stored = "double") {
  n <- nrow(R)
  at <- upper.tri(R, diag = TRUE)
  bad <- c(if (!all(is.finite(R[at])) || !all(is.finite(V))) "not_finite",
           if (any(diag(R) == 0, na.rm = TRUE) && any(change$weights < 0)) "bad_diagonal")
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
  A <- change$scale * crossprod(Rp)
  W <- Vp %*% (change$weights * t(Vp))
  size <- norm_1(A) + norm_1(Vp %*% (abs(change$weights) * t(Vp)))
  judged <- list(allowed = "ok", p = p, A = A, W = W, size = size,
                 eps = eps_of(computed), measurable = stored == "double" || largest > 1e-34)
  if (any(change$weights < 0) && any(V != 0)) {
    slack <- (45 * judged$eps + 2 * (n + ncol(V)) * .Machine$double.eps) * size
    judged$minors <- c(first = failing_minor(A + W - diag(slack, n)), last = failing_minor(A + W + diag(slack, n)))
    judged$allowed <- c(if (judged$minors[["last"]] == 0L) "ok",
                        if (judged$minors[["first"]] > 0L) "not_positive_definite")
    if (judged$minors[["last"]] == 0L) judged$minors[["last"]] <- n
  }
  # Above this, or below its counterpart, everything is scaled to it: `scale_exponent` in src/base/factor_io.h.
  safe <- if (computed == "double") 484 else 36
  e <- if (p > safe) p - safe else if (p < -safe) p + safe else 0
  zeros <- diag(R) == 0  # which are updated, unless all else is tiny
  smallest <- if (all(zeros)) 0 else exponent_of(min(diag(R)[!zeros])) - e
  normal <- if (computed == "double") -1022 else -126
  digits <- if (computed == "double") 52 else 23
  if (smallest < normal || any(zeros)) judged$allowed <- c(judged$allowed, "bad_diagonal")
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
  residual <- norm_1(crossprod(X) - judged$A - judged$W) / (judged$eps * judged$size)
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
    if (!all(X[other] == 0)) "the other triangle is not zero",
    if (!all(diag(X) > 0 | diag(plain_factor(given, "upper")) == 0)) "the diagonal is not positive")
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

# All ------------------------------------------------------------------------------------------------------------------

# In files of their own: helper-fuzz_*.R.
fuzz_kinds <- function() {
  list(modify = fuzz_modify, overwrite = fuzz_overwrite, file = fuzz_file, use = fuzz_use, plan = fuzz_plan,
       junk = fuzz_junk, query = fuzz_query, handle = fuzz_handle, reshape = fuzz_reshape,
       solve_modified = fuzz_solve_modified,
       batch = fuzz_batch, rls = fuzz_rls)
}
fuzz_shares <- function(gpu) c(modify = 50, overwrite = 12, file = 8, use = 8, plan = 5, junk = 16, query = 1,
                               handle = if (gpu) 60 else 25, reshape = 25, solve_modified = 15, batch = 15, rls = 10)

fuzz_call <- function(seed, gpu = gpu_info(memory = FALSE)$usable) {
  set.seed(seed)
  kind <- one_of(names(fuzz_kinds()), fuzz_shares(gpu))
  called <- tryCatch(fuzz_kinds()[[kind]](gpu), error = function(e) {
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
  # This opens every device, so it comes before descriptors are counted.
  device <- if (gpu) gpu_info()$devices$memory_free else numeric()
  list(cells = gc()[["Vcells", 1L]], descriptors = length(list.files("/proc/self/fd")),
       parts = list.files(tempdir(), "\\.part$", recursive = TRUE), device = device)
}
