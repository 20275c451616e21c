# A factor over several processes that MPI has started (inst/design/processes.md). All of them call the same function;
# what they give is compared, or given to those that have none, before anything is done, so that each comes to the same
# errors by itself. An error of R's in one of them alone is told to the others, which fail with the same condition
# unless they have ended the call.

# Starts MPI if it has not been started, and returns list(rank, size, threads, beside): `beside` is the number of this
# process among those of this machine. With a bad option it starts MPI nevertheless, so that together() can tell the
# other processes of the error.
processes_here <- function() {
  limit <- process_timeout()
  at <- rcpp_processes_start(if (is_timeout(limit)) as.double(limit) else 60)
  if (is.null(state$leaves)) state$leaves <- reg.finalizer(state, function(e) rcpp_processes_leave(), onexit = TRUE)
  list(rank = at[[1L]], size = at[[2L]], threads = at[[3L]], beside = at[[4L]])
}

# Returns the option for the seconds after which a silent process is given up.
process_timeout <- function() getOption("gpucholmod.process_timeout", 60)
# Is true for a positive number.
is_timeout <- function(limit) is_number(limit) && limit > 0
# Stops unless the option is a positive number of seconds.
require_timeout <- function() {
  limit <- process_timeout()
  if (!is_timeout(limit)) stop_bad_argument("gpucholmod.process_timeout", limit, "must be a positive number of seconds")
}

# Evaluates `code`, a call that all processes make: it succeeds in all of them or fails in all. Everything that may fail
# in one process alone belongs into `code`, the evaluation of arguments included. A call within another, for one of its
# arguments, is part of that other call: a process that fails before it has not counted it.
together <- function(code) {
  rank <- processes_here()$rank
  if (isTRUE(state$within_call)) return(failing_together(code, rank))
  rcpp_processes_begin()
  state$within_call <- TRUE
  on.exit(state$within_call <- FALSE)
  failing_together(code, rank)
}

# Evaluates `code`; if it fails, tells the other processes.
failing_together <- function(code, rank) {
  ended <- FALSE
  on.exit(if (!ended) tryCatch(rcpp_processes_refuse(""), error = function(e) NULL))  # this process was interrupted
  done <- withVisible(tryCatch(
    {
      require_timeout()
      code
    },
    error = function(e) {
      ended <<- TRUE
      stop(error_of_all(e, rank))
    }
  ))
  ended <- TRUE
  if (done$visible) done$value else invisible(done$value)
}

# Tells the other processes of the error `e` in process `rank`, and returns the error that all of them have: that of the
# first process that has failed.
error_of_all <- function(e, rank) {
  first <- tryCatch({
    rcpp_processes_refuse(as_refusal(e))
    e
  }, error = identity)
  if (!inherits(first, "gpucholmod_process_failed") || first$reason != "refused") return(first)
  condition <- if (first$process == rank) e else unserialize(charToRaw(first$condition))
  if (inherits(condition, "gpucholmod_error")) condition$process <- first$process
  if (first$process == rank) return(condition)
  condition$message <- sprintf("in process %d: %s", first$process, condition$message)
  condition["call"] <- list(users_call())
  condition
}

# Returns a condition as text, without fields that are large or refer to objects of this process.
as_refusal <- function(e) {
  fields <- Filter(function(x) is.atomic(x) && utils::object.size(x) < 1e5, unclass(e))
  fields$message <- conditionMessage(e)
  rawToChar(serialize(structure(class = class(e), fields), NULL, ascii = TRUE))
}

# Returns the matrix x, of n rows, of process 0, which may be NULL. Other processes give NULL or the same x. Stops
# unless `asked` is the same in all processes.
agreed_columns <- function(x, n, argument, asked) {
  if (!is.null(x) && !are_plain_columns(x, n)) x <- open_columns(x, n, float32 = FALSE, argument)
  rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, x, n)
}

# Returns x of process 0, as agreed_columns() does, for an x of any kind.
agreed <- function(x, argument, asked) {
  given <- if (!is.null(x)) serialize(x, NULL, version = 2L)
  unserialize(rcpp_processes_agree(serialize(asked, NULL, version = 2L), argument, given, -1L))
}

# Stops because an operation is not supported for a factor over several processes.
stop_not_supported <- function(operation, message) {
  stop_gpucholmod("not_supported", paste(message, "is not supported for a factor over several processes"),
                  list(operation = operation, backend = "mpi"))
}

# Returns the option whether process 0 may hold a factor on the GPUs of all processes.
may_be_led <- function() {
  led <- getOption("gpucholmod.led", TRUE)
  require_flag(led, "gpucholmod.led")
  led
}

# Makes a factor over several processes, for chol_factor(processes = TRUE), within together(). R: NULL in processes
# other than 0, but all may give a factor_file. Other arguments: NULL if not given.
deal_factor <- function(R, uplo, precision, backend, device, capacity) {
  if (inherits(R, "chol_factor")) chol_factor.chol_factor(R)  # which is an error
  at <- processes_here()
  on_gpu <- !is.null(backend) && match_choice(backend, choices$backend, "backend") == "cuda"
  if (!is.null(device)) stop_not_supported("device", "a choice of GPUs, which CUDA_VISIBLE_DEVICES makes,")
  if (!is.null(capacity)) stop_not_supported("capacity", "room for rows and columns to come")
  if (!is.null(uplo)) uplo <- match_choice(uplo, choices$uplo, "uplo")
  if (!is.null(precision)) precision <- match_choice(precision, choices$precision, "precision")
  led <- may_be_led()
  asked <- list(uplo = uplo, precision = precision)
  here <- at$rank == 0L && !is.null(R)
  x <- NULL
  given <- if (here && inherits(R, "factor_file")) {
    open_file(R, uplo)
    if (is.null(precision)) precision <- "double"
    list(n = R$n, path = R$path, uplo = "upper", precision = precision, dimnames = NULL)
  } else if (here) {
    factor <- open_factor(R, uplo)
    x <- opened_doubles(factor, R)
    own <- if (factor$float32) "single" else "double"
    list(n = nrow(x), path = "", uplo = if (factor$lower) "lower" else "upper",
         precision = if (is.null(precision)) own else precision, dimnames = factor_dimnames(R))
  }
  told <- agreed(given, "R", list("chol_factor", asked$uplo, asked$precision, on_gpu, led))
  made <- rcpp_processes_hold(x, told$path, told$n, number_of(told$uplo, "uplo"),
                              number_of(told$precision, "precision"), if (on_gpu) c(at$beside, led) else integer())
  made$process <- at$rank
  new_factor(made, told$uplo, told$dimnames)
}

# Returns `given`, the arguments of a call, with the arguments `names` replaced by those of process 0. They may be NULL
# in other processes, but every process has to name them: a process that does not name an argument does not wait for it.
with_agreed <- function(given, names, asked) {
  named <- names[names %in% names(given)]
  if (!length(named)) return(given)
  own <- if (processes_here()$rank == 0L || length(compacted(given[named]))) given[named]
  given[named] <- agreed(own, named[[1L]], c(asked, named))
  given
}

# Returns a list without its NULL elements.
compacted <- function(x) Filter(Negate(is.null), x)

# Calls f(R, x, ...), a method for one process, with the rest of `given`, which must be the same in all processes. x:
# list(name = columns), with `rows` rows or, if that is NULL, as many as in process 0. names: see with_agreed().
carry_out_together <- function(f, what, R, x, rows, names, given) {
  together({
    live(R, "R")
    asked <- list(what, given[!methods::allNames(given) %in% names])
    if (!length(x)) agreed(TRUE, "processes", asked)
    else x[[1L]] <- if (is.null(rows)) agreed(x[[1L]], names(x), asked)
                    else agreed_columns(x[[1L]], rows, names(x), asked)
    given <- with_agreed(given, names, asked)
    do.call(f, c(list(R), unname(x), given), quote = TRUE)
  })
}

#' @export
cholupdate_gpu.process_factor <- function(R, V = NULL, ...) {
  carry_out_together(cholupdate_gpu.cpu_factor, "cholupdate_gpu", R, list(V = V), R$n, c("z", "y", "rss"), list(...))
}

#' @export
cholinsert_gpu.process_factor <- function(R, X = NULL, ...) {
  carry_out_together(cholinsert_gpu.chol_factor, "cholinsert_gpu", R, list(X = X), NULL, c("z", "b", "rss"), list(...))
}

#' @export
choldelete_gpu.process_factor <- function(R, index, ...) {
  carry_out_together(choldelete_gpu.chol_factor, "choldelete_gpu", R, list(), NULL, c("z", "rss"),
                     list(index = index, ...))
}

#' @export
cholshift_gpu.process_factor <- function(R, from, to, ...) {
  carry_out_together(cholshift_gpu.chol_factor, "cholshift_gpu", R, list(), NULL, "z", list(from = from, to = to, ...))
}

#' @export
cholpermute_gpu.process_factor <- function(R, order, ...) {
  carry_out_together(cholpermute_gpu.chol_factor, "cholpermute_gpu", R, list(), NULL, "z", list(order = order, ...))
}

# Calls solve_modified() of `R`, with V and b of process 0, within together().
solve_modified_by_all <- function(R, V, b, given) {
  live(R, "R")
  asked <- list("solve_modified", given[setdiff(names(given), "control")])
  V <- agreed(V, "V", asked)
  told <- agreed(if (R$process == 0L || !is.null(b)) list(b), "b", asked)
  do.call(solve_modified_of, c(list(R, V, told[[1L]]), given), quote = TRUE)
}

# Solves with a factor over several processes, with b of process 0.
solve_together <- function(f, b, which, named = FALSE) {
  together({
    live(f)
    if (!is.null(b)) open_columns(b, f$n, float32 = FALSE, argument = "b")
    solve_with(f, agreed(b, "b", list("solve", which)), which, named)
  })
}

#' @export
solve.process_factor <- function(a, b, ...) {
  if (!missing(b)) return(solve_together(a, b, "both", named = TRUE))
  names <- variable_names(a)
  in_process_0(a, "upper", if (!is.null(names)) list(names, names), inverse = TRUE)
}

# Returns a matrix, the factor or the inverse of A, in process 0, and NULL in other processes.
in_process_0 <- function(f, uplo, dimnames, inverse = FALSE) {
  together({
    live(f)
    value <- rcpp_processes_download(f, number_of(uplo, "uplo"), dimnames, f$process == 0L, inverse)
    if (f$process == 0L) value else invisible()
  })
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
  together(copy_factor.chol_factor(x))
}

#' @export
logdet.process_factor <- function(f, ...) {
  together(logdet.chol_factor(f, ...))
}

#' @export
determinant.process_factor <- function(x, ...) {
  together(determinant.chol_factor(x, ...))
}

#' @export
as.matrix.process_factor <- function(x, ...) {
  in_process_0(x, x$uplo, x$dimnames)
}

# Writes a factor over several processes to a file, for write_factor().
write_together <- function(f, path, replace) {
  together({
    live(f, "R")
    require_flag(replace, "replace")
    path <- agreed(if (f$process == 0L && !is.null(path)) absolute_path(path, "path"), "path",
                   list("write_factor", replace))
    rcpp_processes_write(f, path, replace)
    structure(list(path = path, n = f$n), class = "factor_file")
  })
}
