# Errors: one constructor for those found in R and for those that come up from the core (src/rcpp_guard.h).

# Stops with a condition of class gpucholmod_<what>; `fields` are its data fields.
stop_gpucholmod <- function(what, message, fields = list()) {
  condition <- structure(
    class = c(paste0("gpucholmod_", what), "gpucholmod_error", "error", "condition"),
    c(list(message = message, call = users_call()), as.list(fields))
  )
  stop(condition)
}

# Returns the call by which the user entered the package: the outermost frame of a function of the package.
users_call <- function() {
  ours <- topenv()
  for (i in seq_len(sys.nframe())) {
    if (identical(topenv(environment(sys.function(i))), ours)) return(sys.call(i))
  }
  NULL
}

# Is true for the error of setTimeLimit(). R has dropped the limit by then, so the error must reach the caller.
is_time_limit <- function(e) {
  kinds <- c("reached elapsed time limit", "reached CPU time limit", "reached session elapsed time limit",
             "reached session CPU time limit")
  conditionMessage(e) %in% c(kinds, gettext(kinds, domain = "R"))
}

# Evaluates `code`, and turns R's error for missing memory into one of class gpucholmod_out_of_memory, as src/ raises
# it. `code` should not return a matrix that was given: that would count as a reference to the matrix, and
# cholupdate_overwrite() would have to copy it.
with_memory <- function(code) {
  withCallingHandlers(code, error = function(e) {
    if (!is_memory_error(e)) return()
    stop_gpucholmod("out_of_memory", paste("R has too little memory:", conditionMessage(e)), needed_by(e))
  })
}

# Is true for R's errors for missing memory, in the user's language; compares messages up to their first number.
is_memory_error <- function(e) {
  messages <- c("cannot allocate vector of size %0.1f Gb", "cannot allocate vector of size %0.1f Mb",
                "cannot allocate vector of size %0.f Kb", "cannot allocate memory block of size %0.f Tb",
                "vector memory exhausted (limit reached?)", "cons memory exhausted (limit reached?)",
                "memory exhausted (limit reached?)", "vector memory limit of %0.1f Gb reached, see mem.maxVSize()",
                "vector is too large")
  begins <- sub("%.*", "", c(messages, gettext(messages, domain = "R")))
  inherits(e, "simpleError") && any(startsWith(conditionMessage(e), begins))
}

# Returns the bytes that a message for missing memory names, if it does.
needed_by <- function(e) {
  found <- regmatches(conditionMessage(e), regexec("([0-9.]+) ([KMGT])b", conditionMessage(e)))[[1L]]
  if (length(found)) list(needed = as.numeric(found[[2L]]) * 1024^match(found[[3L]], c("K", "M", "G", "T")))
}

# Warns with a condition of class gpucholmod_<what>; `fields` are its data fields.
warn_gpucholmod <- function(what, message, fields = list()) {
  warning(structure(
    class = c(paste0("gpucholmod_", what), "gpucholmod_warning", "warning", "condition"),
    c(list(message = message, call = users_call()), fields)
  ))
}

# Returns the name that a message gives to an argument, or to the option that its default comes from.
named <- function(argument) {
  sprintf(if (startsWith(argument, "gpucholmod.")) "option '%s'" else "'%s'", argument)
}

# Stops because of an argument; `why` completes the sentence that begins with its name.
stop_bad_argument <- function(argument, value, why) {
  stop_gpucholmod("bad_argument", sprintf("%s %s", named(argument), why), list(argument = argument, value = value))
}

# Returns `value` if it is one of `choices`; a vector identical to `choices` (the default of a formal) means the first.
# `uplo` may be "U" or "L" too, as in base R and package Matrix.
match_choice <- function(value, choices, argument) {
  if (identical(value, choices)) return(choices[[1L]])
  if (argument == "uplo") value <- switch(if (is.character(value) && length(value) == 1L) value else "", U = "upper",
                                          L = "lower", value)
  if (!is.character(value) || length(value) != 1L || !value %in% choices) {
    stop_gpucholmod(
      "bad_argument",
      sprintf("%s must be %s%s", named(argument), if (length(choices) > 1L) "one of " else "",
              paste0('"', choices, '"', collapse = ", ")),
      list(argument = argument, value = value, choices = choices)
    )
  }
  value
}

# Returns each of `values` once, after match_choice().
match_choices <- function(values, choices, argument) {
  unique(vapply(values, match_choice, "", choices, argument, USE.NAMES = FALSE))
}

# Returns each of `values` once, after require_count().
require_counts <- function(values, argument) {
  if (!length(values)) stop_bad_argument(argument, values, "is empty")
  unique(vapply(values, require_count, 0L, argument))
}

# Is true for one number that is not NA.
is_number <- function(x) is.numeric(x) && length(x) == 1L && !is.na(x)

# Stops unless `value` is TRUE or FALSE.
require_flag <- function(value, argument) {
  if (!is.logical(value) || length(value) != 1L || is.na(value)) {
    stop_gpucholmod("bad_argument", sprintf("'%s' must be TRUE or FALSE", argument),
                    list(argument = argument, value = value))
  }
}

# Stops unless `...` of the calling function is empty: arguments that it does not know are found there.
require_no_more <- function(...) {
  if (!...length()) return(invisible())
  known <- names(formals(sys.function(sys.parent())))
  given <- names(as.list(substitute(list(...)))[-1L])  # unevaluated
  unknown <- if (is.null(given)) "" else given[[1L]]
  message <- if (nzchar(unknown)) {
    meant <- setdiff(known[startsWith(known, unknown) | utils::adist(unknown, known)[1L, ] <= 2], "...")
    paste0(sprintf("there is no argument '%s' here", unknown),
           if (unknown == "in_place") "; only a handle from chol_factor() can be modified in place"
           else if (length(meant)) sprintf("; did you mean %s?", paste0("'", meant, "'", collapse = " or ")))
  } else {
    dots <- match("...", known)
    sprintf(if (dots < length(known)) "what follows '%s' must be given by name" else "no argument follows '%s'",
            known[[dots - 1L]])
  }
  stop_gpucholmod("bad_argument", message, list(argument = if (nzchar(unknown)) unknown else "...", value = list(...)))
}

# Stops if one of these arguments of the calling function is missing. Of a factor over several processes, some may be:
# then only the first of these arguments, the factor, is asked for here. Callers look at missing() first: a call of this
# function refers to their frame, and so to a matrix there, which cholupdate_overwrite() would then have to copy.
require_given <- function(...) {
  frame <- parent.frame()
  known <- c(...)
  absent <- Find(function(argument) eval(call("missing", as.name(argument)), frame), known)
  if (is.null(absent)) return(invisible())
  if (absent != known[[1L]] && inherits(get(known[[1L]], frame), "process_factor")) return(invisible())
  stop_bad_argument(absent, NULL, "is missing, with no default")
}

# Stops because the leading minor of order `pivot` is not positive; `consequence` ends the message.
stop_not_positive_definite <- function(what, pivot, consequence = NULL) {
  stop_gpucholmod(
    "not_positive_definite",
    paste0(sprintf("%s is not positive definite: its leading minor of order %d is not", what, pivot), consequence),
    list(pivot = pivot)
  )
}

# Stops because some of several matrices are not positive definite. pivots: of all of them, 0 for those that are.
stop_members <- function(pivots, how = NULL) {
  members <- which(pivots > 0L)
  first <- members[[1L]]
  message <- sprintf(paste("of %d %s %d %s not positive definite: number %d,",
                           "whose leading minor of order %d is not%s"),
                     length(pivots), if (is.null(how)) "modified matrices" else paste("matrices", how),
                     length(members), if (length(members) == 1L) "is" else "are", first,
                     pivots[[first]], if (length(members) > 1L) ", and others" else "")
  stop_gpucholmod("not_positive_definite", message,
                  list(pivot = pivots[[first]], members = members, pivots = pivots[members]))
}
