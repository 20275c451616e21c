# The same modification by what else there is on a Debian machine, and what each of them does with input that cannot be
# right.
#
#   Rscript packages.R [--sizes=100,250,500,1000,2000] [--ranks=1,16] [--repeats=25] [--budget=3]
#                      [--out=FILE] [--failures=FILE]
#
# Contenders; what is not installed is left out, and said so:
#   gpucholmod  cholupdate_gpu() on the CPU with one thread, with all, and on the GPU where there is one;
#               cholupdate_overwrite()
#   base        chol(A +/- tcrossprod(V)); that A is there already is in its favour
#   mgcv        cholup(R, u, up), once for each column of V
#   Matrix      updown(update, C, L), the only other routine of rank k. It is made for sparse matrices, so a dense one
#               is unfair to it: every entry is stored with its row number. L is an LDL' factorisation without
#               permutation, C is V as a sparse matrix; both are there already. Timed as it is, and with the triangle
#               as an ordinary matrix
#   Octave      cholupdate(R, u, op) of GNU Octave (qrupdate), once for each column of V, timed inside Octave
#
# Inputs are those of Walder (2010): B (n x n) and V (n x k) uniform on [0, 1]; an update starts from A = B'B + I, a
# downdate from A = B'B + I + VV'. Double precision. BLAS has the threads that it takes; only chol() has use for them.
#
# --out: times of whole calls, in seconds, medians of at most --repeats, after one that is not counted; fewer, but at
# least 3, where they would take longer than --budget seconds in all. In R, gc() comes before each; Octave's calls
# follow one upon the other, so what they need may still be in the caches. With `ratio`, the residual of
# inst/design/accuracy.md, and `ok`, whether it is below 30:
#
#   ||R~'R~ - (R'R + sigma VV')||_1 / ((n + k) eps (||R'R||_1 + ||VV'||_1))
#
# --failures: what a caller gets, n = 50: for downdates to a matrix that is not positive definite, at a known pivot,
# and for arguments that are not what the function asks for; V has one column if nothing else is said. Each case runs
# in a process of its own, as some functions read beyond their arguments. `outcome` is
#   error   an R (or Octave) error, whose message is in `detail`, after its class where it has one of its own
#   status  a value by which the function says that it failed
#   right   the factor that was asked for
#   wrong   a value, and nothing that says that it is not the factor asked for (or that there is none)
#   crash   the process ended
# `pivot_told`: whether the message or the value tells the pivot; `input_kept`: whether what was given is as before, bit
# for bit, which cholupdate_overwrite() means to change where it succeeds.

Sys.setenv(LANGUAGE = "en")
library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given[[1L]]) else default
}
numbers <- function(text) as.integer(strsplit(text, ",")[[1L]])
sizes <- numbers(option("sizes", "100,250,500,1000,2000"))
ranks <- numbers(option("ranks", "1,16"))
repeats <- as.integer(option("repeats", 25))
budget <- as.numeric(option("budget", 3))
script <- sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]])

have <- function(package) requireNamespace(package, quietly = TRUE)
has_gpu <- gpu_info(memory = FALSE)$usable

ratio <- function(R, target, before, change, k) {
  scale <- (nrow(target) + k) * .Machine$double.eps * (norm(before, "1") + norm(change, "1"))
  norm(crossprod(R) - target, "1") / scale
}

sparse <- function(x) methods::as(methods::as(x, "Matrix"), "CsparseMatrix")
sparse_factor <- function(A) {
  Matrix::Cholesky(Matrix::forceSymmetric(sparse(A)), perm = FALSE, LDL = TRUE, super = FALSE)
}
triangle <- function(L) t(as.matrix(Matrix::expand(L)$L))

# ---- times ----

# Seconds of f(x), where x comes from fresh(), which is not timed, and the last value.
time_calls <- function(f, fresh = function() NULL) {
  seconds <- numeric()
  repeat {
    value <- NULL
    x <- fresh()
    gc(FALSE)
    start <- Sys.time()
    value <- f(x)
    seconds <- c(seconds, as.numeric(difftime(Sys.time(), start, units = "secs")))
    counted <- seconds[-1L]
    if (length(counted) >= repeats || (length(counted) >= 3L && sum(counted) > budget)) break
  }
  list(seconds = stats::median(counted), repeats = length(counted), R = value)
}

time_octave <- function(R, V, op) {
  folder <- in_octave(c(
    "t = [];",
    "do",
    sprintf("  tic; S = R; for q = 1:columns(V), S = cholupdate(S, V(:, q), '%s'); end; t(end + 1) = toc;", op),
    sprintf("until numel(t) > %d || (numel(t) > 3 && sum(t(2:end)) > %g)", repeats, budget),
    "put('t', t(2:end)); put('S', S);"
  ), list(R = R, V = V))
  t <- doubles(folder, "t")
  S <- doubles(folder, "S")
  unlink(folder, recursive = TRUE)
  if (is.null(S)) stop("Octave failed")
  list(seconds = stats::median(t), repeats = length(t), R = matrix(S, nrow(R)))
}

# Each is called with the matrix A, its factor R, V, and whether to downdate, and tells its times and the last factor.
one_call <- function(backend, threads) {
  function(A, R, V, down) {
    time_calls(function(x) {
      cholupdate_gpu(R, V, downdate = down, backend = backend, control = cholupdate_control(threads = threads))
    })
  }
}
timed <- list(
  list("gpucholmod", "cholupdate_gpu(R, V), one thread", one_call("cpu", 1)),
  list("gpucholmod", "cholupdate_gpu(R, V), all threads", one_call("cpu", NULL)),
  if (has_gpu) list("gpucholmod", "cholupdate_gpu(R, V), GPU", one_call("cuda", NULL)),
  list("gpucholmod", "cholupdate_overwrite(R, V), all threads", function(A, R, V, down) {
    # What is overwritten must be a variable of the caller, and nothing else may refer to it.
    caller <- list2env(list(V = V, down = down))
    result <- time_calls(function(x) evalq({
      cholupdate_overwrite(W, V, downdate = down, backend = "cpu")
      NULL
    }, caller), function() {
      assign("W", R + 0, caller)
      NULL
    })
    result$R <- caller$W
    result
  }),
  list("base", "chol(A +/- tcrossprod(V))", function(A, R, V, down) {
    time_calls(if (down) function(x) chol(A - tcrossprod(V)) else function(x) chol(A + tcrossprod(V)))
  }),
  if (have("mgcv")) list("mgcv", "cholup(R, u, up), k times", function(A, R, V, down) {
    time_calls(function(x) {
      S <- R
      for (q in seq_len(ncol(V))) S <- mgcv::cholup(S, V[, q], !down)
      S
    })
  }),
  if (have("Matrix")) list("Matrix", "updown(update, C, L)", function(A, R, V, down) {
    L <- sparse_factor(A)
    C <- sparse(V)
    result <- time_calls(function(x) Matrix::updown(!down, C, L))
    result$R <- triangle(result$R)
    result
  }),
  if (have("Matrix")) list("Matrix", "updown(update, C, L) and its triangle", function(A, R, V, down) {
    L <- sparse_factor(A)
    C <- sparse(V)
    time_calls(function(x) triangle(Matrix::updown(!down, C, L)))
  }),
  if (length(octave)) list("Octave", "cholupdate(R, u, op), k times", function(A, R, V, down) {
    time_octave(R, V, if (down) "-" else "+")
  })
)

measure <- function(n, k) {
  set.seed(n + k)
  A <- crossprod(matrix(runif(n * n), n)) + diag(n)
  V <- matrix(runif(n * k), n)
  change <- tcrossprod(V)
  raised <- A + change
  rows <- list()
  for (down in c(FALSE, TRUE)) {
    from <- if (down) raised else A
    to <- if (down) A else raised
    R <- chol(from)
    for (contender in Filter(length, timed)) {
      result <- contender[[3L]](from, R, V, down)
      r <- ratio(result$R, to, from, change, k)
      rows <- c(rows, list(data.frame(
        package = contender[[1L]], call = contender[[2L]], n = n, k = k, change = if (down) "downdate" else "update",
        seconds = result$seconds, repeats = result$repeats, ratio = signif(r, 3), ok = is.finite(r) && r < 30
      )))
      message(sprintf("n = %d, k = %d, %s: %s: %s: %.4g ms", n, k, if (down) "downdate" else "update",
                      contender[[1L]], contender[[2L]], 1000 * result$seconds))
    }
  }
  do.call(rbind, rows)
}

# ---- what happens when it cannot be done ----

small_n <- 50L
lower_case <- "a lower factor, and nothing that says so"
cases <- list(
  "downdate that fails, k = 1" = list(down = TRUE, pivot = 20L),
  "downdate that fails, k = 3" = list(down = TRUE, pivot = 30L),
  "V of 3 columns" = list(down = FALSE),
  "V of n - 1 rows" = list(down = FALSE, impossible = TRUE),
  "V of n + 1 rows" = list(down = FALSE, impossible = TRUE),
  "V of integers" = list(down = FALSE),
  "V with a NaN" = list(down = FALSE, impossible = TRUE)
)
cases[[lower_case]] <- list(down = FALSE)

# I - PP' is indefinite, first in its leading minor of order `pivot`; so then is R'(I - PP')R = A - VV' with V = R'P.
make_case <- function(case) {
  set.seed(small_n)
  n <- small_n
  A <- crossprod(matrix(runif(n * n), n)) + diag(n)
  R <- chol(A)
  V <- as.matrix(runif(n))
  if (case == "downdate that fails, k = 1") {
    V <- as.matrix(1.1 * R[20L, ])
  } else if (case == "downdate that fails, k = 3") {
    P <- cbind(replace(numeric(n), 10L, 0.5), replace(numeric(n), 30L, 1.1), rep(0.01, n))
    V <- crossprod(R, P)
  } else if (case == "V of 3 columns") {
    V <- matrix(runif(3L * n), n)
  } else if (case == "V of n - 1 rows") {
    V <- V[-n, , drop = FALSE]
  } else if (case == "V of n + 1 rows") {
    V <- rbind(V, 1)
  } else if (case == "V of integers") {
    V <- matrix(rep_len(1:3, n))
  } else if (case == "V with a NaN") {
    V[7L] <- NaN
  }
  lower <- case == lower_case
  c(list(name = case, A = A, R = if (lower) t(R) else R, V = V, lower = lower), cases[[case]])
}

# What a value is worth: "right" or "wrong", and why.
judge <- function(value, p) {
  if (anyNA(value)) return(c("wrong", sprintf("%d of %d entries are NaN", sum(is.na(value)), length(value))))
  if (!is.null(p$pivot)) return(c("wrong", "a finite matrix, where there is no factor"))
  if (isTRUE(p$impossible)) {
    u <- p$V[seq_len(min(small_n, nrow(p$V))), , drop = FALSE]
    if (nrow(u) == small_n && ratio(value, p$A + tcrossprod(u), p$A, tcrossprod(u), 1) < 30) {
      return(c("wrong", "the factor for the first n elements"))
    }
    return(c("wrong", "a finite matrix"))
  }
  change <- tcrossprod(p$V)
  value <- as.matrix(value)
  r <- ratio(if (p$lower) t(value) else value, p$A + change, p$A, change, ncol(p$V))
  if (r < 30) return(c("right", sprintf("residual ratio %.1g", r)))
  first <- tcrossprod(p$V[, 1L])
  if (ncol(p$V) > 1L && ratio(value, p$A + first, p$A, first, 1) < 30) {
    return(c("wrong", "the factor for the first column alone"))
  }
  c("wrong", sprintf("residual ratio %.1g", r))
}

# Columns one after the other; says at which of them it stopped.
column_by_column <- function(R, V, modify) {
  for (q in seq_len(ncol(V))) {
    R <- tryCatch(modify(R, V[, q]), error = function(e) {
      if (ncol(V) > 1L) e$message <- sprintf("column %d of %d: %s", q, ncol(V), conditionMessage(e))
      stop(e)
    })
  }
  R
}

# Each gets a case; what it throws or returns is judged, unless it has judged that itself (a character vector).
downdates <- names(Filter(function(case) case$down, cases))
ours <- function(backend) {
  list(
    list("gpucholmod", if (backend == "cuda") "cholupdate_gpu(R, V), GPU" else "cholupdate_gpu(R, V)", names(cases),
         function(p) cholupdate_gpu(p$R, p$V, downdate = p$down, backend = backend)),
    list("gpucholmod", if (backend == "cuda") "cholupdate_gpu(R, V, check = FALSE), GPU" else
           "cholupdate_gpu(R, V, check = FALSE)", downdates, function(p) {
      value <- cholupdate_gpu(p$R, p$V, downdate = p$down, backend = backend, check = FALSE)
      c("status", sprintf("pivot = %d; R is %s", value$pivot, if (identical(value$R, p$R)) "as it was" else "changed"))
    })
  )
}
tried <- c(
  ours("cpu"),
  if (has_gpu) ours("cuda"),
  list(
    list("gpucholmod", "cholupdate_overwrite(R, V)", names(cases), function(p) {
      W <- p$R + 0
      failure <- tryCatch({
        cholupdate_overwrite(W, p$V, downdate = p$down, backend = "cpu")
        NULL
      }, error = identity)
      kept <- identical(W, p$R)
      if (is.null(failure)) return(structure(W, kept = kept))
      failure$kept <- kept
      stop(failure)
    }),
    list("base", "chol(A +/- tcrossprod(V))", setdiff(names(cases), lower_case), function(p) {
      chol(if (p$down) p$A - tcrossprod(p$V) else p$A + tcrossprod(p$V))
    })
  ),
  if (have("mgcv")) list(
    list("mgcv", "cholup(R, u, up)", names(cases), function(p) {
      if (p$name == "V of 3 columns") return(mgcv::cholup(p$R, p$V, !p$down))
      column_by_column(p$R, p$V, function(R, u) mgcv::cholup(R, u, !p$down))
    })
  ),
  if (have("Matrix")) list(
    list("Matrix", "updown(update, C, L)", names(cases), function(p) {
      if (p$lower) return(as.matrix(Matrix::updown(!p$down, sparse(p$V), sparse(p$R))))
      L <- sparse_factor(p$A)
      before <- serialize(L, NULL)
      value <- Matrix::updown(!p$down, sparse(p$V), L)
      kept <- identical(before, serialize(L, NULL))
      if (!p$down) return(structure(triangle(value), kept = kept))
      said <- "no warning"
      withCallingHandlers(triangle(value), warning = function(w) {
        said <<- sub("^Cholmod warning '([^']*)'.*", "warning \"\\1\"", conditionMessage(w))
        invokeRestart("muffleWarning")
      })
      D <- value@x[value@p[seq_len(small_n)] + 1L]
      structure(c("wrong", sprintf("no condition; D is not positive at %s; expand() of the value: %s",
                                   paste(which(!(D > 0)), collapse = ", "), said)), kept = kept)
    })
  ),
  if (length(octave)) list(
    list("Octave", "R1 = cholupdate(R, u, op)", names(cases), function(p) {
      folder <- in_octave(c(
        if (p$name == "V of integers") "V = int32(V);",
        "where = '';",
        "try",
        if (p$name == "V of 3 columns") {
          "S = cholupdate(R, V, '+');"
        } else {
          c("S = R;",
            "for q = 1:columns(V)",
            "  if columns(V) > 1, where = sprintf('column %d of %d: ', q, columns(V)); end",
            sprintf("  S = cholupdate(S, V(:, q), '%s');", if (p$down) "-" else "+"),
            "end")
        },
        "put('S', double(S));",
        "catch e",
        "f = fopen('message', 'w'); fprintf(f, '%s%s', where, e.message); fclose(f);",
        "end"
      ), list(R = p$R, V = p$V))
      message <- file.path(folder, "message")
      if (file.exists(message)) stop(paste(readLines(message, warn = FALSE), collapse = " "))
      S <- doubles(folder, "S")
      if (is.null(S)) c("crash", "Octave ended") else matrix(S, small_n)
    }),
    list("Octave", "[R1, err] = cholupdate(R, u, op)", downdates, function(p) {
      folder <- in_octave(c(
        "S = R; for q = 1:columns(V), T = S; [S, err] = cholupdate(T, V(:, q), '-'); if err, break; end; end",
        "put('S', [err, q, isequal(S, T)]);"
      ), list(R = p$R, V = p$V))
      S <- doubles(folder, "S")
      if (is.null(S)) return(c("crash", "Octave ended"))
      where <- if (ncol(p$V) > 1L) sprintf(" at column %d of %d", as.integer(S[2L]), ncol(p$V)) else ""
      c("status", sprintf("err = %d%s; R1 is %s", as.integer(S[1L]), where, if (S[3L] == 1) "as R was" else "changed"))
    })
  )
)

try_one <- function(contender, case) {
  p <- make_case(case)
  before <- serialize(p[c("A", "R", "V")], NULL)
  value <- tryCatch(contender[[4L]](p), error = identity)
  failed <- inherits(value, "error")
  found <- if (failed) c("error", conditionMessage(value)) else if (is.character(value)) value else judge(value, p)
  kept <- identical(before, serialize(p[c("A", "R", "V")], NULL))
  also <- if (failed) value$kept else attr(value, "kept")
  if (!is.null(also)) kept <- kept && also
  told <- if (!is.null(p$pivot)) {
    any(grepl(sprintf("\\b(order|pivot)( =)? %d\\b", p$pivot), found[2L]))
  } else {
    NA
  }
  shown <- if (failed && class(value)[[1L]] != "simpleError") paste0(class(value)[[1L]], ": ", found[2L]) else found[2L]
  data.frame(outcome = found[1L], detail = gsub("[[:space:]]+", " ", shown), pivot_told = told, input_kept = kept)
}

try_all <- function() {
  rows <- list()
  for (i in seq_along(tried)) {
    for (case in tried[[i]][[3L]]) {
      reply <- tempfile(fileext = ".rds")
      status <- system2(file.path(R.home("bin"), "Rscript"),
                        shQuote(c(script, sprintf("--try=%d", i), paste0("--case=", case), paste0("--reply=", reply))),
                        stdout = FALSE, stderr = FALSE)
      found <- if (file.exists(reply)) readRDS(reply) else
        data.frame(outcome = "crash", detail = sprintf("exit status %d", status), pivot_told = NA, input_kept = NA)
      unlink(reply)
      rows <- c(rows, list(cbind(data.frame(package = tried[[i]][[1L]], call = tried[[i]][[2L]], case = case), found)))
      message(paste(unlist(lapply(rows[[length(rows)]], format)), collapse = " | "))
    }
  }
  do.call(rbind, rows)
}

# ---- run ----

if (nzchar(option("try", ""))) {
  saveRDS(try_one(tried[[as.integer(option("try", ""))]], option("case", "")), option("reply", ""))
  quit()
}

versions <- c(
  if (have("mgcv")) paste("mgcv", utils::packageDescription("mgcv")$Version),
  if (have("Matrix")) paste("Matrix", utils::packageDescription("Matrix")$Version),
  if (length(octave)) sub("^GNU Octave, version", "GNU Octave", system2(octave[[1L]], "--version", stdout = TRUE)[[1L]])
)
for (name in c("mgcv", "Matrix", "Octave")) {
  if (!any(grepl(name, versions))) message(name, " is not there")
}
store <- function(data, file) {
  if (!nzchar(file)) return(print(data, row.names = FALSE))
  save_measurements(data, file, "packages.R", c(gpucholmod:::machine(), versions = paste(versions, collapse = ", ")))
}

cases_in_order <- expand.grid(n = sizes, k = ranks)
store(do.call(rbind, Map(measure, cases_in_order$n, cases_in_order$k)), option("out", ""))
store(try_all(), option("failures", ""))
