# What a caller gets where it cannot be done: the cases, who is tried on them, and how a value is judged. Read by
# packages.R, which says what is told of each, and has have(), has_gpu, ratio(), sparse(), sparse_factor(), triangle()
# and `script`.

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
cases <- utils::head(cases, as.integer(option("cases", length(cases))))

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
  warned <- NULL
  value <- withCallingHandlers(tryCatch(contender[[4L]](p), error = identity), warning = function(w) {
    warned <<- sprintf("%s: %s", class(w)[[1L]], conditionMessage(w))
    invokeRestart("muffleWarning")
  })
  failed <- inherits(value, "error")
  found <- if (failed) c("error", conditionMessage(value)) else if (is.character(value)) value else judge(value, p)
  if (found[1L] == "wrong" && !is.null(warned)) found <- c("warning", warned)
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
