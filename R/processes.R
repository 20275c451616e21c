# A factor over several processes that MPI has started (inst/design/processes.md). All of them call the same function; what they give is compared, or
# given to those that have none, before anything is done, so that each comes to the same errors by itself. What fails in R in one of them alone,
# before it has got to what they do together, is told to the others, who fail with the same condition.

# Begins where that has not been done: list(rank, size, threads), by MPI's numbers.
processes_here <- function() {
  limit <- getOption("gpucholmod.process_timeout", 60)
  if (!is_number(limit) || limit <= 0) stop_bad_argument("gpucholmod.process_timeout", limit, "must be a positive number of seconds")
  at <- rcpp_processes_start(as.double(limit))
  if (is.null(state$leaves)) state$leaves <- reg.finalizer(state, function(e) rcpp_processes_leave(), onexit = TRUE)
  list(rank = at[[1L]], size = at[[2L]], threads = at[[3L]])
}

# Evaluates `code`, in which all processes meet, or all fail.
together <- function(code) {
  turn <- rcpp_processes_turn()
  tryCatch(code, error = function(e) {
    if (rcpp_processes_turn() == turn) e <- tryCatch(rcpp_processes_refuse(as_refusal(e)), error = identity)
    stop(refused(e))
  })
}

# A condition as text, without what is large; and the condition that another process has refused with.
as_refusal <- function(e) {
  e$call <- NULL
  if (utils::object.size(e) > 1e5) e <- e[setdiff(names(e), "value")]
  rawToChar(serialize(e, NULL, ascii = TRUE))
}
refused <- function(e) {
  if (!inherits(e, "gpucholmod_process_failed") || e$reason != "refused") return(e)
  condition <- unserialize(charToRaw(e$condition))
  if (inherits(condition, "gpucholmod_error")) condition$process <- e$process
  condition["call"] <- list(users_call())
  condition
}

# `x` of process 0, also where it is NULL. Elsewhere it may be given as well, and has to be the same then. `asked` has to be the same in all. A
# matrix of n rows, and anything else:
agreed_columns <- function(x, n, argument, asked) {
  if (!is.null(x) && !are_plain_columns(x, n)) x <- open_columns(x, n, float32 = FALSE, argument)
  rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, x, n)
}
agreed <- function(x, argument, asked) {
  given <- if (!is.null(x)) serialize(x, NULL, version = 2L)
  unserialize(rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, given, -1L))
}

stop_not_supported <- function(operation, message) {
  stop_gpucholmod("not_supported", paste(message, "is not supported for a factor over several processes"),
                  list(operation = operation, backend = "mpi"))
}

# chol_factor(processes = TRUE). R: NULL but in process 0; a factor_file may be given by all. What is NULL of the others was not given.
deal_factor <- function(R, uplo, precision, backend, device, capacity) {
  at <- processes_here()
  together({
    if (!is.null(backend) && match_choice(backend, choices$backend, "backend") == "cuda") stop_not_supported("cuda", "a GPU")
    if (!is.null(device)) stop_not_supported("device", "a GPU")
    if (!is.null(capacity)) stop_not_supported("capacity", "room for rows and columns to come")
    if (!is.null(uplo)) uplo <- match_choice(uplo, choices$uplo, "uplo")
    if (!is.null(precision)) precision <- match_choice(precision, choices$precision, "precision")
    here <- at$rank == 0L && !is.null(R)
    x <- NULL
    given <- if (here && inherits(R, "factor_file")) {
      if (identical(uplo, "lower")) stop_bad_argument("uplo", uplo, "must be \"upper\" for a factor in a file")
      list(n = present(R)$n, path = R$path, uplo = "upper", precision = if (is.null(precision)) "double" else precision, dimnames = NULL)
    } else if (here) {
      factor <- open_factor(R, uplo)
      x <- opened_doubles(factor, R)
      list(n = nrow(x), path = "", uplo = if (factor$lower) "lower" else "upper",
           precision = if (is.null(precision)) if (factor$float32) "single" else "double" else precision, dimnames = factor_dimnames(R))
    }
    told <- agreed(given, "R", list("chol_factor", uplo, precision))
    made <- rcpp_processes_hold(x, told$path, told$n, number_of(told$uplo, "uplo"), number_of(told$precision, "precision"))
    made$process <- at$rank
    new_factor(made, told$uplo, told$dimnames)
  })
}

#' @export
cholupdate_gpu.process_factor <- function(R, V = NULL, ...) {
  at <- processes_here()
  together({
    live(R)
    V <- agreed_columns(V, R$n, "V", list("cholupdate_gpu", list(...)))
    given <- list(...)
    if (is.null(given$control) && is.null(getOption("gpucholmod.threads"))) given$control <- cholupdate_control(threads = at$threads)
    do.call(cholupdate_gpu.chol_factor, c(list(R, V), given), quote = TRUE)
  })
}

solve_together <- function(f, b, which, named = FALSE) {
  processes_here()
  together({
    live(f)
    if (!is.null(b)) open_columns(b, f$n, float32 = FALSE, argument = "b")
    solve_with(f, agreed(b, "b", list("solve", which)), which, named)
  })
}

#' @export
solve.process_factor <- function(a, b, ...) {
  if (missing(b)) stop_not_supported("inverse", "the inverse")
  solve_together(a, b, "both", named = TRUE)
}

#' @export
solve_forward.process_factor <- function(f, b = NULL, ...) {
  solve_together(f, b, "forward")
}

#' @export
solve_back.process_factor <- function(f, b = NULL, ...) {
  solve_together(f, b, "back")
}

#' @export
copy_factor.process_factor <- function(x, ...) {
  processes_here()
  together(copy_factor.chol_factor(x))
}

# The matrix in process 0, NULL elsewhere.
#' @export
as.matrix.process_factor <- function(x, ...) {
  processes_here()
  together({
    pointer <- live(x)
    value <- rcpp_processes_download(pointer, number_of(x$uplo, "uplo"), x$dimnames, x$process == 0L)
    if (x$process == 0L) value else invisible()
  })
}

write_together <- function(f, path, replace) {
  processes_here()
  together({
    pointer <- live(f, "R")
    path <- absolute_path(path, "path")
    require_flag(replace, "replace")
    path <- agreed(path, "path", list("write_factor", replace))
    rcpp_processes_write(pointer, path, replace)
    structure(list(path = path, n = f$n), class = "factor_file")
  })
}
