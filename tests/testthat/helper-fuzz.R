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
       batch = fuzz_batch, batch_life = fuzz_batch_life, rls = fuzz_rls)
}
fuzz_shares <- function(gpu) c(modify = 50, overwrite = 12, file = 8, use = 8, plan = 5, junk = 16, query = 1,
                               handle = if (gpu) 60 else 25, reshape = 25, solve_modified = 15, batch = 15,
                               batch_life = 10, rls = 10)

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
