# What is added to the diagonal of a matrix that is just not positive definite.

# Ends the message of an error where no jitter was given.
jitter_hint <- "; if rounding alone is the cause, argument 'jitter' lets a little be added to its diagonal"

# Stops unless `jitter` is a number that may be added.
require_jitter <- function(jitter) {
  if (!is_number(jitter) || !is.finite(jitter) || jitter < 0) {
    stop_bad_argument("jitter", jitter, "must be the most that may be added to the diagonal, a number from 0 on")
  }
}

# Stops if there is a `jitter` for a factor that is given, which has no diagonal of A to add it to.
require_no_jitter <- function(jitter) {
  require_jitter(jitter)
  if (jitter > 0) {
    stop_bad_argument("jitter", jitter, "is for 'A', a matrix to be factorised; 'R' is a factor already: leave it out")
  }
}

# Returns what to add to a diagonal whose largest entry is `size`, one after the other: from a few units of rounding on,
# ten times as much each time, up to `jitter`.
jitter_steps <- function(jitter, size, precision) {
  if (jitter == 0) return(numeric())
  least <- 8 * (if (precision == "single") 2^-23 else .Machine$double.eps) * size
  if (!is.finite(least) || least <= 0) return(jitter)
  c(least * 10^seq_len(max(0, ceiling(log10(jitter / least)))) / 10, jitter)
}

# Calls attempt(added), which returns a list with `pivot`, 0 for success: without anything added, and, while it fails,
# with each of `steps`. Returns its last value, with the first `pivot` where all have failed, and with `added`; without
# `steps` that is NULL. go_on(): whether to go on after a failure.
with_jitter <- function(steps, attempt, go_on = function() TRUE) {
  first <- attempt(0)
  if (!length(steps)) return(first)
  done <- first
  done$added <- 0
  for (added in steps) {
    if (done$pivot == 0L || !go_on()) return(done)
    done <- attempt(added)
    done$added <- added
  }
  if (done$pivot == 0L) return(done)
  also <- sprintf(", nor with %.3g added to the diagonal", added)
  c(first, list(added = 0, also = also))
}

# Tells what was added to the diagonal of a matrix.
tell_jitter <- function(added, where) {
  text <- sprintf("%.3g was added to %s, as the matrix was not positive definite\n", added, where)
  message(structure(class = c("gpucholmod_jitter", "message", "condition"),
                    list(message = text, call = users_call(), jitter = added)))
}

# Enters into a handle, or a matrix, what was added to a diagonal; returns it. For a handle: the most so far.
note_jitter <- function(R, added) {
  if (is_held(R)) assign("jitter", max(added, .subset2(R, "jitter")), envir = R)
  else attr(R, "jitter") <- added
  R
}

# Calls insert(X), which inserts columns X into f from place `at` of the new matrix on, or as its numbers `at`; where
# that fails, with more and more, up to `jitter`, added to the entries of X on the diagonal.
insert_with_jitter <- function(f, X, at, jitter, insert) {
  require_jitter(jitter)
  if (!is.matrix(X)) X <- as.matrix(X)
  p <- ncol(X)
  on_diagonal <- cbind(if (length(at) == 1L) seq(at, length.out = p) else at, seq_len(p))
  steps <- jitter_steps(jitter, if (p) max(X[on_diagonal]) else 0, .subset2(f, "precision"))
  done <- with_jitter(steps, function(added) {
    if (added > 0) X[on_diagonal] <- X[on_diagonal] + added
    insert(X)
  }, function() !is_half_modified(f))
  if (done$pivot == 0L && isTRUE(done$added > 0)) {
    done$R <- note_jitter(done$R, done$added)
    tell_jitter(done$added, "the diagonal entries of what is inserted")
  }
  done
}
