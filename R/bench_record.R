# Opens the record of what bench_paper() has measured so far: an environment with `rows`, `file` (or NULL) and `about`,
# and with `bar`, which shows how much of `work` is `done`. Measurements that are in the file already are read.
open_record <- function(file, about) {
  rows <- bench_rows(bench_cases(1, 1, "double", "chol"), "ok")[0L, ]
  if (!is.null(file)) {
    file <- absolute_path(file, "file")
    if (file.exists(file)) {
      rows <- read_measurements(file)
      about <- continued(rows, about, file)
    }
    # Where the run before was killed, half a line may be at the end. So the file is written anew.
    rows <- as.data.frame(rows)
    write_measurements(rows, file, about)
  }
  list2env(list(rows = rows, file = file, about = about, work = 0, done = 0,
                bar = list(show = identity, close = identity)))
}

# Adds rows to a record and to its file, and moves the bar.
add_rows <- function(record, rows) {
  record$rows <- rbind(record$rows, rows)
  if (!is.null(record$file)) append_measurements(rows, record$file)
  # By and large, the time that a case takes grows with n^2.5.
  record$done <- record$done + sum(rows$n^2.5)
  record$bar$show(min(1, record$done / record$work))
}

# Returns the cases that have not been measured yet.
to_measure <- function(record, cases) {
  done <- record$rows[!record$rows$status %in% c("too slow", "no memory", "failed"), ]
  cases[!case_key(cases) %in% case_key(done), ]
}

# Returns the row of the largest smaller n at which the same case was timed, if there is one.
row_before <- function(rows, case) {
  like <- rows[case_key(rows, "") == case_key(case, "") & rows$n < case$n & !is.na(rows$seconds), ]
  like[which.max(like$n), ]
}

# Returns the `about` of measurements that were begun as `stored` says and are continued `now`: all commands, the first
# and the last day. Stops if the two are of different machines.
continued <- function(stored, now, file) {
  if (!inherits(stored, "bench_paper")) bad_file(file, "not_measurements", "is not from bench_paper()")
  about <- attr(stored, "about")
  same <- setdiff(names(now), c("experiment", "command", "date", "gpuless"))
  differs <- Filter(function(name) !identical(about[name], now[name]), same)
  if (length(differs)) {
    why <- sprintf("is of another machine or software: %s is \"%s\" there, and \"%s\" here", differs, about[differs],
                   now[differs])
    bad_file(file, "other_machine", why[[1L]], differs = differs)
  }
  commands <- union(strsplit(about[["command"]], "; ", fixed = TRUE)[[1L]], now[["command"]])
  days <- unique(c(sub(" to .*", "", about[["date"]]), now[["date"]]))
  about[c("command", "date")] <- c(paste(commands, collapse = "; "), paste(days, collapse = " to "))
  about
}

# Returns the last row of each case, ordered by n.
newest <- function(rows) {
  rows <- rows[!duplicated(case_key(rows), fromLast = TRUE), ]
  method <- match(rows$method, names(bench_methods))
  rows <- rows[order(rows$n, rows$k, rows$precision, rows$change != "update", method), ]
  rownames(rows) <- NULL
  rows
}
