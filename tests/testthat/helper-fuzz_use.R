# Random calls, see helper-fuzz.R: factors in files, what a factor is for, plans and reports.

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
  args <- c(list(R = f, V = case$V, output = output, control = control), case$change)
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
  if (bad) diag(R)[[whole(1L, n)]] <- one_of(c(1e-310, NaN))
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
