# The bar of long calls, by package cli.

# Makes a call into src/ that may take long: `call` is a function of the request, to which this adds what
# src/rcpp_progress.h goes by. cli closes a bar that was begun when this frame is left, in whatever way.
with_progress <- function(request, call) {
  if (isTRUE(getOption("gpucholmod.progress", interactive()))) {
    request$progress <- list(after = progress_after(), show = bar_of(environment()))
  }
  call(request)
}

progress_after <- function() {
  value <- getOption("gpucholmod.progress_after", 2)
  if (!is.numeric(value) || length(value) != 1L || is.na(value)) {
    stop_gpucholmod("bad_argument", "option 'gpucholmod.progress_after' must be one number of seconds",
                    list(argument = "gpucholmod.progress_after", value = value))
  }
  value
}

# A function that shows the share of the work that is done, 0 to 1, in a bar that it begins and that lasts no longer
# than `frame`. It returns FALSE where there can be no bar, which is never a reason to lose the computation.
bar_of <- function(frame) {
  start <- proc.time()[["elapsed"]]
  id <- NULL
  function(done) {
    if (!requireNamespace("cli", quietly = TRUE)) return(FALSE)
    tryCatch(
      {
        if (is.null(id)) id <<- begin_bar(frame)
        # cli would count from the beginning of the bar
        left <- if (done > 0) (proc.time()[["elapsed"]] - start) * (1 - done) / done
        cli::cli_progress_update(set = 100 * done, status = eta(left), id = id, .envir = frame)
        TRUE
      },
      error = function(e) FALSE
    )
  }
}

begin_bar <- function(frame) {
  old <- options(cli.progress_show_after = 0)
  on.exit(options(old))
  cli::cli_progress_bar(format = "{cli::pb_bar} {cli::pb_percent} | {cli::pb_status}", total = 100, current = FALSE,
                        auto_terminate = FALSE, .envir = frame)
}

eta <- function(seconds) {
  if (is.null(seconds)) return("")
  seconds <- round(seconds)
  sprintf("ETA %d:%02d:%02d", seconds %/% 3600, seconds %/% 60 %% 60, seconds %% 60)
}
