# R runs finalizers wherever it allocates, also amid a call of this package, and they may call it again. Where R code is
# run amid a call is known: where it is asked whether there is to be a bar, and where the bar is taken away. There these
# tests do what a finalizer may do, in a process of their own: what is wrong here ends R.

amid_a_call <- c(
  "ns <- asNamespace('gpucholmod')",
  "action <- NULL; ran <- 0L",
  "asked <- function() { now <- action; action <<- NULL; if (!is.null(now)) { ran <<- ran + 1L; now() }; FALSE }",
  "unlockBinding('wants_bar', ns); assign('wants_bar', asked, ns); options(gpucholmod.progress = TRUE)",
  "with_action <- function(use, what) { action <<- what; on.exit(action <<- NULL); use() }",
  "reason_of <- function(code) tryCatch(code, gpucholmod_invalid_factor = function(e) e$reason)",
  "n <- 30; R <- chol(diag(n) + 0.5); v <- seq_len(n) / n; V <- cbind(v, rev(v)); z <- cos(v)",
  "x <- c(v / 9, 9); third <- append(v / 9, 9, 2)",
  "kept <- function() chol_factor(R, 'cpu', capacity = n + 1)"
)

test_that("a call holds its factor until it has ended, whoever frees it meanwhile", {
  skip_on_cran()
  child <- in_child(c(
    amid_a_call,
    "uses <- list(",
    "  update = function(f) as.matrix(cholupdate_gpu(f, v)),",
    "  in_place = function(f) { cholupdate_gpu(f, v, in_place = TRUE); 1 },",
    "  sides = function(f) cholupdate_gpu(f, v, z = z, y = 1, rss = 1)[-1],",
    "  modified = function(f) solve_modified(f, V, z)[1:3],",
    "  insert = function(f) as.matrix(cholinsert_gpu(f, third, at = 3)),",
    "  delete = function(f) as.matrix(choldelete_gpu(f, 3)),",
    "  insert_in_place = function(f) cholinsert_gpu(f, third, at = 3, z = z, b = 1, in_place = TRUE)$z,",
    "  shift = function(f) { cholshift_gpu(f, 2, 9, in_place = TRUE); 1 }",
    ")",
    "for (name in names(uses)) {",
    "  right <- uses[[name]](kept())",
    "  f <- kept()",
    "  found <- with_action(function() uses[[name]](f), function() { free(f); gc() })",
    "  cat(name, isTRUE(all.equal(found, right, tolerance = 1e-12)), reason_of(logdet(f)), '\\n')",
    "}",
    "cat(ran, '\\n')"
  ))
  uses <- c("update", "in_place", "sides", "modified", "insert", "delete", "insert_in_place", "shift")
  expect_printed(child, c(paste(uses, "TRUE freed "), "8 "))
})

test_that("a factor that a call uses is not changed meanwhile, and one that is being changed is not read", {
  skip_on_cran()
  child <- in_child(c(
    amid_a_call,
    "changes <- list(",
    "  update = function(f) cholupdate_gpu(f, v, in_place = TRUE),",
    "  insert = function(f) cholinsert_gpu(f, x, in_place = TRUE),",
    "  delete = function(f) choldelete_gpu(f, 1, in_place = TRUE),",
    "  shift = function(f) cholshift_gpu(f, 1, 2, in_place = TRUE)",
    ")",
    "reads <- list(",
    "  as.matrix = as.matrix, solve = solve, logdet = logdet, copy_factor = copy_factor,",
    "  new = function(f) cholupdate_gpu(f, v),",
    "  modified = function(f) solve_modified(f, v)",
    ")",
    "tell <- function(use, action) {",
    "  f <- kept(); told <- NULL",
    "  with_action(function() use(f), function() told <<- reason_of({ action(f); 'done' }))",
    "  told",
    "}",
    "outer <- changes$update",
    "for (inner in c(changes, reads)) cat(tell(outer, inner), '')",
    "for (inner in c(changes, reads)) cat(tell(reads$new, inner), '')",
    # Afterwards it is as if nothing had been tried.
    "f <- kept(); with_action(function() outer(f), function() try(changes$insert(f), silent = TRUE))",
    "changes$insert(f); g <- cholinsert_gpu(cholupdate_gpu(kept(), v), x)",
    "cat(identical(as.matrix(f), as.matrix(g)), f$modifications, nrow(f), '\\n')"
  ))
  expect_printed(child, paste(c(rep("in_use", 10), rep("in_use", 4), rep("done", 6), "TRUE 2 31 "), collapse = " "))
})

test_that("a batch that a call uses is not changed meanwhile", {
  skip_on_cran()
  child <- in_child(c(
    amid_a_call,
    "B <- array(R, c(n, n, 3)); f <- chol_batch(B, 'cpu')",
    # Weights are looked at in R, the threads that an option names amid the call.
    "default <- ns$default_control; unlockBinding('default_control', ns)",
    "assign('default_control', function() { asked(); options(gpucholmod.threads = 1); default() }, ns)",
    "change <- function() { options(gpucholmod.threads = 'junk'); cholupdate_batch(f, v, in_place = TRUE) }",
    "with_action(change, function() free(f))",
    "cat(ran, reason_of(logdet(f)), '\\n')"
  ))
  expect_printed(child, "1 freed ")
})

test_that("right-hand sides are those of their own call, whatever else is called before that returns", {
  state <- gpucholmod:::state
  on.exit(state$bar <- NULL)
  R <- chol(diag(30) + 0.5)
  other <- chol(diag(2) + 0.5)
  v <- 1:30 / 30
  z <- cos(v)
  path <- tempfile()
  file <- write_factor(R, path)
  f <- chol_factor(R, "cpu")
  calls <- list(
    function() cholupdate_gpu(R, v, z = z, y = 1, rss = 1, check = TRUE),
    function() cholupdate_gpu(f, v, z = z, y = 1, rss = 1, check = TRUE),
    function() cholupdate_gpu(file, v, z = z, y = 1, rss = 1, output = tempfile()),
    function() cholinsert_gpu(R, c(v / 9, 9), z = z, b = 1),
    function() choldelete_gpu(f, 4, z = z),
    function() {
      own <- R + 0
      suppressMessages(cholupdate_overwrite(own, v, z = z, y = 1, rss = 1))
    }
  )
  inner <- list(function() cholupdate_gpu(other, 1:2, z = 1:2, y = 3), function() cholupdate_gpu(other, 1:2))
  for (call in calls) {
    right <- call()
    for (another in inner) {
      ran <- FALSE
      state$bar <- list(close = function(result) {
        ran <<- TRUE
        another()
      })
      found <- call()
      expect_true(ran)
      expect_identical(found[c("z", "rss")], right[c("z", "rss")])
    }
  }
})

test_that("under a tortured collector a handle that is freed meanwhile is used, or says so", {
  skip_on_cran()
  child <- in_child(c(
    "n <- 30; R <- chol(diag(n) + 0.5); V <- matrix(cos(1:(2 * n)), n)",
    "lent <- function(make) { e <- new.env(); e$f <- make(); reg.finalizer(e, function(e) free(e$f)); e$f }",
    "factor <- function() chol_factor(R, 'cpu'); batch <- function() chol_batch(array(R, c(n, n, 3)), 'cpu')",
    "reads <- list(as.matrix, diag, copy_factor, function(f) solve(f), function(f) solve(f, V),",
    "  function(f) cholupdate_gpu(f, V))",
    "batch_reads <- list(as.array, diag, copy_factor, function(f) f[[2]], function(f) solve(f, V[, 1]))",
    "comes_to <- function(code) tryCatch({ code; 'done' }, gpucholmod_invalid_factor = function(e) e$reason)",
    "found <- NULL",
    "for (i in 1:4) for (use in c(reads, batch_reads)) {",
    "  make <- if (is.null(found) || length(found) %% 11 < 6) factor else batch",
    "  f <- lent(make); for (k in 1:2) lent(make)",
    "  gctorture2(2L, 8L * i)",
    "  now <- comes_to(use(f))",
    "  gctorture2(0L)",
    "  found <- c(found, now)",
    "}",
    "cat(sort(setdiff(found, 'freed')[1]), length(found), '\\n')"
  ))
  expect_printed(child, "done 44 ")
})
