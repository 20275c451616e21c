# A call with nothing but R, V, `downdate`, `weights`, `scale`, right-hand sides and `in_place` is one call of src/
# (R/usual_call.R). With `check = TRUE`, the default, it takes the way of all other calls: both do the same.

# What a call does: its value or its error, whether it is visible, its warnings, and what is told of it afterwards. A
# handle is told by its fields and its numbers.
outcome_of <- function(call, handle = NULL) {
  warned <- list()
  plain <- function(condition) {
    fields <- unclass(condition)
    list(class(condition), fields[setdiff(names(fields), c("call", "trace"))])
  }
  told <- function(x) {
    if (is.list(x) && "R" %in% names(x)) x$R <- told(x$R)
    if (!inherits(x, "chol_factor") || !is.environment(x)) return(x)
    fields <- mget(setdiff(sort(ls(x)), "pointer"), envir = x)
    list(class(x), fields, tryCatch(as.matrix(x), error = plain))
  }
  value <- withCallingHandlers(
    tryCatch(withVisible(call()), error = plain),
    warning = function(w) {
      warned[[length(warned) + 1L]] <<- plain(w)
      invokeRestart("muffleWarning")
    }
  )
  if (!is.null(value$visible)) value$value <- told(value$value)
  report <- unclass(last_cholupdate())
  list(value = value, warned = warned, report = report[names(report) != "seconds"], handle = told(handle))
}

# Expects the same of cholupdate_gpu(R, V, ...) and of the same call with `check = TRUE`. make: makes R, for each call.
expect_same_way <- function(make, V, ...) {
  found <- lapply(list(list(), list(check = TRUE)), function(extra) {
    R <- make()
    given <- c(list(V), list(...), extra)
    outcome_of(function() do.call(cholupdate_gpu, c(list(quote(R)), given), quote = FALSE, envir = environment()), R)
  })
  expect_identical(found[[1L]], found[[2L]])
  found[[1L]]$value
}

n <- 7L
R <- chol(crossprod(matrix(sin(1:(n * n)), n)) + diag(n))
named <- structure(R, dimnames = list(letters[1:n], LETTERS[1:n]))
V <- list(vector = cos(1:n), one = matrix(cos(1:n), n), three = matrix(cos(1:(3 * n)), n), none = matrix(0, n, 0),
          names = c(a = 1, b = 2, c = 3, d = 4, e = 5, f = 6, g = 7), far = 1e200 * cos(1:n), tiny = 1e-200 * cos(1:n))
odd <- list(integer = 1:n, long = cos(1:(n + 1)), across = matrix(1, 2, n), text = "a", nothing = NULL, logical = TRUE,
            not_a_number = replace(cos(1:n), 3, NaN), infinite = replace(cos(1:n), 2, Inf),
            array = array(1, c(n, 1, 1)), class = structure(cos(1:n), class = "own"), series = stats::ts(cos(1:n)),
            flat = array(1, n))
factors <- list(
  matrix = function() R,
  names = function() named,
  handle = function() chol_factor(R, "cpu"),
  handle_names = function() chol_factor(named, "cpu"),
  lower = function() chol_factor(t(R), "cpu", uplo = "lower"),
  single = function() chol_factor(R, "cpu", precision = "single"),
  room = function() chol_factor(R, "cpu", capacity = n + 3L)
)
is_handle <- function(name) !name %in% c("matrix", "names")

test_that("the usual call and all others give the same, for every kind of factor, V and sign", {
  for (name in names(factors)) for (v in c(V, odd)) {
    for (in_place in if (is_handle(name)) c(FALSE, TRUE) else NA) {
      place <- if (!is.na(in_place)) list(in_place = in_place)
      for (downdate in c(FALSE, TRUE)) {
        do.call(expect_same_way, c(list(factors[[name]], v, downdate = downdate), place))
      }
      do.call(expect_same_way, c(list(factors[[name]], v), place))
    }
  }
})

test_that("so they do for weights, of the right kind and others", {
  weights <- list(NULL, 1, 0.5, -0.1, c(1, -0.01, 0), c(a = 1, b = 2, c = 3), matrix(1:3 + 0, 3), 2L, c(1, NA, 3),
                  c(1, Inf, 1), 1:2 + 0, numeric(), "1", TRUE, list(1, 2, 3), structure(1, class = "own"), -1e3)
  for (name in c("matrix", "handle")) for (w in weights) for (downdate in c(FALSE, TRUE)) {
    expect_same_way(factors[[name]], V$three, weights = w, downdate = downdate)
    if (is_handle(name)) expect_same_way(factors[[name]], V$three, weights = w, downdate = downdate, in_place = TRUE)
  }
})

test_that("so they do for scales, of the right kind and others", {
  for (name in c("matrix", "handle")) {
    for (scale in list(0.9, 4, 1L, 0, -1, NA, NaN, Inf, c(1, 2), numeric(), "1", NULL, c(a = 2), 1e-200, 5e-324)) {
      expect_same_way(factors[[name]], V$three, scale = scale)
      expect_same_way(factors[[name]], V$three, scale = scale, weights = c(1, -0.1, 0))
      expect_same_way(factors[[name]], 0.1 * V$one, scale = scale, downdate = TRUE)
      if (is_handle(name)) expect_same_way(factors[[name]], V$none, scale = scale, in_place = TRUE)
    }
  }
})

test_that("so they do for right-hand sides, of the right kind and others", {
  one <- sin(1:n)
  two <- matrix(sin(1:(2 * n)), n)
  sides <- list(
    list(z = one, y = c(1, 2, 3)), list(z = one, y = c(1, 2, 3), rss = 4), list(z = two, y = matrix(1:6 + 0, 3)),
    list(z = two, y = matrix(1:6 + 0, 3), rss = c(1, 2)), list(z = stats::setNames(one, letters[1:n]), y = c(1, 2, 3)),
    list(z = structure(two, dimnames = list(letters[1:n], c("a", "b")), note = "mine"), y = matrix(0, 3, 2)),
    list(z = one, y = matrix(1:3 + 0, 3), rss = c(a = 1)), list(z = matrix(one), y = c(1, 2, 3)),
    list(z = one, y = 1:3), list(z = 1:n, y = c(1, 2, 3)), list(z = one), list(y = c(1, 2, 3)), list(rss = 1),
    list(z = one, y = 1), list(z = one[-1], y = c(1, 2, 3)), list(z = two, y = c(1, 2, 3)),
    list(z = replace(one, 2, NaN), y = c(1, 2, 3)), list(z = one, y = c(1, Inf, 3)), list(z = one, y = "a"),
    list(z = one, y = c(1, 2, 3), rss = -1), list(z = one, y = c(1, 2, 3), rss = NaN), list(z = NULL, y = NULL),
    list(z = one, y = c(1, 2, 3), rss = c(1, 2)), list(z = structure(one, class = "own"), y = c(1, 2, 3)),
    list(z = two[, 0], y = matrix(0, 3, 0)), list(z = 1e300 * one, y = c(1, 2, 3))
  )
  for (name in names(factors)) for (given in sides) {
    for (in_place in if (is_handle(name)) c(FALSE, TRUE) else NA) {
      call <- function(v, ...) {
        place <- if (!is.na(in_place)) list(in_place = in_place)
        do.call(expect_same_way, c(list(factors[[name]], v), given, place, list(...)))
      }
      call(V$three)
      call(0.1 * V$three, downdate = TRUE)  # the sum of squares may become NaN, with a warning
      call(10 * V$three, downdate = TRUE)
      call(V$three, weights = c(1, -0.01, 2), scale = 0.9)
    }
  }
  row <- list(list(z = one, y = 2), list(z = two, y = c(1, 2)), list(z = two, y = matrix(c(1, 2), 1)),
              list(z = two, y = matrix(c(1, 2))))
  for (given in row) for (v in V[c("vector", "one", "none")]) {
    do.call(expect_same_way, c(list(factors$handle, v), given))
  }
  done <- cholupdate_gpu(R, V$one, z = one, y = 2, rss = 1)
  b <- crossprod(R, one) + 2 * V$one  # R'z = b
  expect_equal(crossprod(done$R, done$z), b, tolerance = 1e-13)
  expect_equal(sum(done$z^2) + done$rss, sum(one^2) + 4 + 1, tolerance = 1e-13)
})

test_that("so they do for flags that are none, and where `downdate` is given by its place or in part", {
  for (name in c("matrix", "handle")) {
    for (flag in list(NA, "yes", 1, c(TRUE, FALSE), NULL, logical())) {
      expect_same_way(factors[[name]], V$one, downdate = flag)
      if (is_handle(name)) expect_same_way(factors[[name]], V$one, in_place = flag)
    }
    expect_same_way(factors[[name]], 0.1 * V$one, TRUE)
    expect_same_way(factors[[name]], 0.1 * V$one, down = TRUE)
    expect_same_way(factors[[name]], V$one, FALSE, 3)
  }
})

test_that("a downdate that fails has the same error, and leaves the handle as it was", {
  for (name in names(factors)) {
    place <- if (is_handle(name)) list(in_place = TRUE)
    for (v in list(10 * V$one, 10 * V$three)) {
      error <- do.call(expect_same_way, c(list(factors[[name]], v, downdate = TRUE), place))
      expect_true("gpucholmod_not_positive_definite" %in% error[[1L]])
    }
  }
})

test_that("so they do for matrices that R looks at, and for handles that cannot be used", {
  whole <- matrix(rep(2L, 4), 2)
  others <- list(diag(3L), crossprod(R), t(R), R[1:3, ], structure(R, pivot = n:1), structure(R, class = "own"), 1:3, 2,
                 replace(R, 1, -1), replace(R, 1, NaN), whole, matrix(0, 0, 0), 5e-324 * diag(2), 1e300 * R,
                 data.frame(R))
  state <- gpucholmod:::state
  for (other in others) for (v in list(V$vector, numeric(), 1, c(1, 2))) {
    state$told_of_other_triangle <- TRUE
    expect_same_way(function() other, v)
  }
  damage <- list(
    function(f) free(f), function(f) f$n <- 3L, function(f) f$n <- "a", function(f) rm("n", envir = f),
    function(f) f$pointer <- NULL, function(f) f$modifications <- "a", function(f) f$trace <- NULL,
    function(f) lockBinding("error", f), function(f) lockBinding("status", f), function(f) f$status <- "freed",
    function(f) f$note <- "mine", function(f) {
      rm("trace_error", envir = f)
      makeActiveBinding("trace_error", function() 0, f)
    }
  )
  for (do in damage) for (in_place in c(FALSE, TRUE)) {
    make <- function() {
      f <- factors$handle()
      do(f)
      f
    }
    expect_same_way(make, V$one, in_place = in_place)
  }
  expect_same_way(function() structure(list(n = n), class = c("cpu_factor", "chol_factor")), V$one)
  expect_same_way(function() structure(factors$handle(), class = c("mine", "cpu_factor", "chol_factor")), V$one)
})

test_that("so they do with options, right and wrong", {
  for (option in list(list(gpucholmod.threads = 1), list(gpucholmod.threads = "many"), list(gpucholmod.backend = "cpu"),
                      list(gpucholmod.backend = "none"), list(gpucholmod.progress = TRUE),
                      list(gpucholmod.progress_after = "soon", gpucholmod.progress = TRUE))) {
    old <- options(option)
    for (name in c("matrix", "handle")) expect_same_way(factors[[name]], V$one)
    expect_same_way(factors$handle, V$one, in_place = TRUE)
    options(old)
  }
})

test_that("many calls in place count as many modifications, and those of new factors apart", {
  f <- chol_factor(diag(3), "cpu")
  other <- chol_factor(diag(3), "cpu")
  fields <- function(f) mget(c("modifications", "error", "trace", "trace_error"), envir = f)
  for (i in 1:200) {
    seen <- fields(f)
    g <- cholupdate_gpu(f, c(0, i, 0))
    expect_identical(fields(f), seen)
    cholupdate_gpu(f, c(0, i, 0), in_place = TRUE)
    cholupdate_gpu(other, c(0, i, 0), in_place = TRUE, check = TRUE)
    expect_identical(fields(g), fields(f))
    expect_identical(seen$modifications, i - 1L)
    expect_identical(fields(f), fields(other))
  }
})

test_that("src/ carries out the usual call, and leaves others alone", {
  f <- chol_factor(R, "cpu")
  matrix_call <- gpucholmod:::rcpp_cholupdate_usual
  handle_call <- gpucholmod:::rcpp_factor_modify_usual
  usual_matrix <- function(..., z = NULL, y = NULL, rss = NULL) matrix_call(..., z, y, rss)
  usual_handle <- function(..., z = NULL, y = NULL, rss = NULL) handle_call(..., z, y, rss)
  for (v in V) for (w in list(NULL, 0.5)) for (s in c(1, 0.9)) {
    expect_identical(usual_matrix(R, v, FALSE, w, s), cholupdate_gpu(R, v, weights = w, scale = s, check = TRUE))
    made <- usual_handle(f, FALSE, n, v, FALSE, w, s)
    expect_identical(as.matrix(made), as.matrix(cholupdate_gpu(f, v, weights = w, scale = s, check = TRUE)))
  }
  expect_identical(usual_handle(f, TRUE, n, V$one, FALSE, NULL, 1), f)
  expect_identical(usual_matrix(R, 10 * V$one, TRUE, NULL, 1), 1L)
  for (v in odd[c("integer", "long", "text", "array", "class")]) {
    expect_null(usual_matrix(R, v, FALSE, NULL, 1))
    expect_null(usual_handle(f, FALSE, n, v, FALSE, NULL, 1))
  }
  z <- sin(1:n)
  expect_identical(usual_matrix(R, V$one, FALSE, NULL, 1, z = z, y = 2, rss = 1)[c("z", "rss")],
                   cholupdate_gpu(R, V$one, z = z, y = 2, rss = 1, check = TRUE)[c("z", "rss")])
  expect_identical(usual_handle(f, TRUE, n, V$one, FALSE, NULL, 1, z = z, y = 2)$factor, f)
  expect_null(usual_matrix(R, V$one, FALSE, NULL, 1, z = z))
  expect_null(usual_handle(f, TRUE, n, V$one, FALSE, NULL, 1, z = z, y = 2L))
})

test_that("a call that may take long takes the way on which a bar is shown", {
  wide <- matrix(1e-3, 40, 7000)
  R <- diag(40)
  expect_null(gpucholmod:::rcpp_cholupdate_usual(R, wide, FALSE, NULL, 1, NULL, NULL, NULL))
  expect_null(gpucholmod:::rcpp_factor_modify_usual(chol_factor(R, "cpu"), FALSE, 40L, wide, FALSE, NULL, 1, NULL,
                                                    NULL, NULL))
  expect_same_way(function() R, wide)
  expect_same_way(function() chol_factor(R, "cpu"), wide, in_place = TRUE)
})
