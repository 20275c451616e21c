# How a modification, of whatever kind of factor, is asked for and carried out. A request is a list that to_request() in
# src/rcpp_request.cpp reads by position:
#
#   downdate, check   as the caller gave them; checked there
#   lower, single     TRUE or FALSE
#   backend           its number, or NULL where none was given: the option's, or the first
#   method            its number
#   control           control_numbers(), or NULL where none was given

# The choices that the core knows by number, from 0, in the order of its enums (src/base/types.h, src/modify/request.h).
choices <- list(
  uplo = c("upper", "lower"),
  precision = c("double", "single"),
  backend = c("auto", "cpu", "cuda"),
  method = c("auto", "blocked", "refactor", "reference", "panel", "stream", "resident", "persistent", "householder",
             "stepwise"),
  instructions = c("auto", "plain", "avx2", "avx512"),
  loop_order = c("A", "B"),
  other_triangle = c("zero", "filled", "transposed", "symmetric")
)
ordinary_methods <- choices$method[1:7]

number_of <- function(value, what) match(value, choices[[what]]) - 1L
choice_of <- function(number, what) choices[[what]][[number + 1L]]

# That of the option, which is there.
default_backend <- function() {
  number_of(match_choice(getOption("gpucholmod.backend"), choices$backend, "gpucholmod.backend"), "backend")
}

method_number <- function(method, allowed) number_of(match_choice(method, allowed, "method"), "method")
backend_number <- function(backend) number_of(match_choice(backend, choices$backend, "backend"), "backend")

# Evaluates `code`, one of the calls of src/ that carry out a request and return the failing pivot, under its bar. The
# pivot; 0 is success. Where the request says so, anything else is an error.
carry_out <- function(request, code) {
  on.exit(if (!is.null(state$bar)) end_bar("failed"))
  pivot <- code
  if (!is.null(state$bar)) end_bar("done")
  if (pivot > 0L && request[[2L]]) stop_not_positive_definite("the downdated matrix", pivot)
  pivot
}
