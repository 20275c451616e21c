# What bench_paper() has measured so far: in memory, and in a file where there is one. A list of functions:
#   done()        the rows that need not be measured again
#   before(case)  the row of the largest smaller n for which the same was timed, if any
#   add(more)     takes rows, and writes them
#   result()      everything, as bench_paper() returns it
open_record <- function(file, about) {
  rows <- bench_rows(bench_cases(1, 1, "double", "chol"), "ok")[0L, ]
  if (!is.null(file)) {
    file <- absolute_path(file, "file")
    if (file.exists(file)) {
      stored <- read_measurements(file)
      about <- continued(stored, about, file)
      rows <- as.data.frame(stored)
    }
    # Where the run before was killed, half a line may be at the end. So the file is written anew.
    write_measurements(rows, file, about)
  }
  list(
    done = function() rows[!rows$status %in% c("too slow", "no memory", "failed"), ],
    before = function(case) {
      like <- rows[case_key(rows, "") == case_key(case, "") & rows$n < case$n & !is.na(rows$seconds), ]
      like[which.max(like$n), ]
    },
    add = function(more) {
      rows <<- rbind(rows, more)
      if (!is.null(file)) append_measurements(more, file)
    },
    result = function() as_measurements(rows, about)
  )
}

# Where measurements come from that were begun as `stored` tells, and go on `now`: all commands, the first and the last
# day. Both must be of the same machine.
continued <- function(stored, now, file) {
  if (!inherits(stored, "bench_paper")) {
    stop_gpucholmod("bad_file", sprintf("'%s' is not from bench_paper()", file),
                    list(path = file, reason = "not_measurements"))
  }
  about <- attr(stored, "about")
  same <- setdiff(names(now), c("experiment", "command", "date", "gpuless"))
  differs <- Filter(function(name) !identical(unname(about[name]), now[[name]]), same)
  if (length(differs)) {
    why <- sprintf("'%s' is of another machine or software: %s is \"%s\" there, and \"%s\" here", file, differs[[1L]],
                   about[differs[[1L]]], now[differs[[1L]]])
    stop_gpucholmod("bad_file", why, list(path = file, reason = "other_machine", differs = differs))
  }
  commands <- union(strsplit(about[["command"]], "; ", fixed = TRUE)[[1L]], now[["command"]])
  days <- unique(c(sub(" to .*", "", about[["date"]]), now[["date"]]))
  about[c("command", "date")] <- c(paste(commands, collapse = "; "), paste(days, collapse = " to "))
  about
}

# Of the rows of one case the last, ordered by n.
newest <- function(rows) {
  rows <- rows[!duplicated(case_key(rows), fromLast = TRUE), ]
  rows <- rows[order(rows$n, rows$k, rows$precision, rows$change != "update", match(rows$method, names(bench_methods))), ]
  rownames(rows) <- NULL
  rows
}
