# What bench_paper() has measured so far: in memory, and in a file where there is one.

# A list of functions:
#   done()         the rows that need not be measured again
#   before(case)   the row of the largest smaller n for which the same was timed, if any
#   preparation(x) the last n that was prepared, and its seconds, as a data frame; `x` replaces it
#   add(more)      takes rows, and writes them
#   result()       everything, as bench_paper() returns it
#   close()        the file
open_record <- function(file, about) {
  rows <- blank_rows(bench_cases(1, 1, "double", "chol"), "ok")[0L, ]
  connection <- NULL
  prepared <- data.frame()
  if (!is.null(file)) {
    file <- absolute_path(file, "file")
    if (file.exists(file)) {
      stored <- require_same_machine(read_measurements(file), file, about)
      rows <- as.data.frame(stored)
      about <- joined(attr(stored, "about"), about)
    }
    # Where the run before was killed, half a line may be at the end. So the file is written anew, and takes its place.
    anew <- paste0(file, ".part")
    start <- open_measurements(anew, names(rows), about)
    if (nrow(rows)) add_measurements(start, rows)
    close(start)
    if (!file.rename(anew, file)) {
      unlink(anew)
      stop_gpucholmod("bad_file", sprintf("'%s' cannot be written", file), list(path = file, reason = "not_writable"))
    }
    connection <- base::file(file, "a", encoding = "UTF-8")
  }
  list(
    done = function() rows[!rows$status %in% c("too slow", "no memory", "failed"), ],
    before = function(case) {
      same <- setdiff(names(case), "n")
      like <- merge(rows[rows$n < case$n & !is.na(rows$seconds), ], case[same], by = same)
      like[which.max(like$n), ]
    },
    preparation = function(x) {
      if (!missing(x)) prepared <<- x
      prepared
    },
    add = function(more) {
      rows <<- rbind(rows, more)
      if (!is.null(connection)) add_measurements(connection, more)
    },
    result = function() as_measurements(rows, about),
    close = function() if (!is.null(connection)) close(connection)
  )
}

# Where measurements come from that were begun `then`, and go on `now`: all commands, the first and the last day.
joined <- function(then, now) {
  commands <- strsplit(then[["command"]], "; ", fixed = TRUE)[[1L]]
  days <- strsplit(then[["date"]], " to ", fixed = TRUE)[[1L]]
  then["command"] <- paste(union(commands, now[["command"]]), collapse = "; ")
  then["date"] <- paste(unique(c(days[[1L]], now[["date"]])), collapse = " to ")
  then
}

# Of the rows of one case the last, ordered by n.
newest <- function(rows) {
  rows <- rows[!duplicated(case_key(rows), fromLast = TRUE), ]
  method <- match(rows$method, names(bench_methods))
  rows <- rows[order(rows$n, rows$k, rows$precision, rows$change != "update", method), ]
  rownames(rows) <- NULL
  rows
}

require_same_machine <- function(stored, file, about) {
  if (!inherits(stored, "bench_paper")) {
    stop_gpucholmod("bad_file", sprintf("'%s' is not from bench_paper()", file),
                    list(path = file, reason = "not_measurements"))
  }
  machine <- setdiff(names(about), c("experiment", "command", "date", "gpuless"))
  then <- attr(stored, "about")
  differs <- machine[!mapply(identical, unname(then[machine]), unname(about[machine]))]
  if (length(differs)) {
    stop_gpucholmod(
      "bad_file",
      sprintf("'%s' is of another machine or software: %s is \"%s\" there, and \"%s\" here", file, differs[[1L]],
              then[differs[[1L]]], about[differs[[1L]]]),
      list(path = file, reason = "other_machine", differs = differs)
    )
  }
  stored
}
