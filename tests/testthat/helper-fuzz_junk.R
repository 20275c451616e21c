# Random calls, see helper-fuzz.R: arguments that are no arguments.

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
  held <- chol_factor(R, "cpu", capacity = 4)
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
    chol_factor = list(needs = 1L, args = list(R = R, backend = "cpu", uplo = "upper", precision = "double",
                                               device = NULL, capacity = 5)),
    cholinsert_gpu = list(needs = 2L, args = list(R = R, X = c(1, 9, 1, 1), at = 2, names = "a", uplo = "upper",
                                                  check = TRUE, control = control)),
    cholinsert_gpu = list(needs = 2L, args = list(R = held, X = c(1, 9, 1, 1), at = 2, names = "a", in_place = TRUE,
                                                  check = TRUE,
                                                  control = control)),
    choldelete_gpu = list(needs = 2L, args = list(R = R, index = 2, uplo = "upper", control = control)),
    choldelete_gpu = list(needs = 2L, args = list(R = held, index = 2, in_place = TRUE, control = control)),
    cholshift_gpu = list(needs = 3L, args = list(R = R, from = 3, to = 1, uplo = "upper", control = control)),
    cholshift_gpu = list(needs = 3L, args = list(R = held, from = 3, to = 1, in_place = TRUE, control = control)),
    solve_modified = list(needs = 2L, args = list(R = R, V = V, b = 1:3, downdate = FALSE, scale = 2,
                                                  what = "quadratic", uplo = "upper", check = TRUE,
                                                  control = control)),
    solve_modified = list(needs = 2L, args = list(R = held, V = list(V, 1:3), b = array(1, c(3, 1, 2)),
                                                  weights = list(1:2, -0.01), scale = 1:2,
                                                  check = FALSE, control = control)),
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
    stored_measurements = list(needs = 0L, args = list(name = "conditioning-h200"))
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
  downdate = "flag", check = "flag", in_place = "flag", replace = "flag", copy = "flag", timeline = "flag",
  memory = "flag",
  uplo = "choice",
  precision = "choice", backend = "choice", method = "choice", loop_order = "choice", instructions = "choice",
  name = "choice", what = "choice",
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
    allowed <- "bad_argument"
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
  if (is.environment(seen$value) && inherits(seen$value, "chol_factor")) free(seen$value)
  record(what, seen$outcome, c(seen$problems, expect_outcome(seen, allowed),
                               expect_signals(seen, c("gpucholmod_other_triangle", "gpucholmod_copied"))))
}

# What takes nothing, or nearly.
fuzz_query <- function(gpu) {
  name <- one_of(c("gpu_info", "gpu_release", "last_cholupdate", "stored_measurements", "format",
                   "cholupdate_control"))
  frame <- new.env()
  if (name == "gpu_info") frame$memory <- gpu && chance(0.5)
  if (name == "format") frame$x <- stored_measurements(one_of(stored_measurements()))
  seen <- observe(get(name), frame, ls(frame))
  value <- seen$value
  as_it_is <- switch(
    name,
    gpu_info = inherits(value, "gpucholmod_info") && identical(value$usable, gpu) &&
      length(utils::capture.output(print(value))) > 3L,
    gpu_release = is.double(value) && value >= 0,
    last_cholupdate = is.null(value) || inherits(value, "gpucholmod_report"),
    stored_measurements = is.character(value) && length(value) > 1L,
    format = is.character(value) && length(value) == 1L,
    cholupdate_control = inherits(value, "gpucholmod_control")
  )
  record(name, seen$outcome, c(seen$problems, expect_outcome(seen, "ok"), expect_signals(seen),
                               if (!isTRUE(as_it_is)) "an odd value"))
}
