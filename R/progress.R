# The bar of long calls, by package cli.

# Whether a call that takes long is to show one.
wants_bar <- function() {
  isTRUE(getOption("gpucholmod.progress", interactive())) && is.numeric(progress_after())
}

# What src/rcpp_progress.h asks for when a call has taken some time: list(after, show, close). end_bar() takes the bar
# away. No closure here knows of the caller's frame: that would keep a reference to the factor, see opened().
new_bar <- function() {
  state$bar <- c(list(after = progress_after()), bar())
}

# `result`: "done" or "failed". Where there is no bar, or not any more, nothing happens.
end_bar <- function(result) {
  shown <- state$bar
  state$bar <- NULL
  if (!is.null(shown)) shown$close(result)
}

progress_after <- function() {
  value <- getOption("gpucholmod.progress_after", 2)
  if (!is.numeric(value) || length(value) != 1L || is.na(value)) {
    stop_gpucholmod("bad_argument", "option 'gpucholmod.progress_after' must be one number of seconds",
                    list(argument = "gpucholmod.progress_after", value = value))
  }
  value
}

# A bar that begins when something is to be shown: list(show, close). show(done) moves it to that share of the work, 0
# to 1; it returns FALSE where there can be no bar, which is never a reason to lose the computation.
bar <- function() {
  start <- proc.time()[["elapsed"]]
  owner <- new.env()
  id <- NULL
  show <- function(done) {
    if (!requireNamespace("cli", quietly = TRUE)) return(FALSE)
    tryCatch(
      {
        if (is.null(id)) id <<- begin_bar(owner)
        # cli would count from the beginning of the bar
        left <- if (done > 0) (proc.time()[["elapsed"]] - start) * (1 - done) / done
        cli::cli_progress_update(set = 100 * done, status = eta(left), id = id, .envir = owner)
        TRUE
      },
      error = function(e) if (is_time_limit(e)) stop(e) else FALSE
    )
  }
  close <- function(result) {
    if (!is.null(id)) try(cli::cli_progress_done(id, .envir = owner, result = result), silent = TRUE)
    id <<- NULL
  }
  list(show = show, close = close)
}

begin_bar <- function(owner) {
  old <- options(cli.progress_show_after = 0)
  on.exit(options(old))
  cli::cli_progress_bar(format = "{cli::pb_bar} {cli::pb_percent} | {cli::pb_status}", total = 100, current = FALSE,
                        auto_terminate = FALSE, .auto_close = FALSE, .envir = owner)
}

eta <- function(seconds) {
  if (is.null(seconds)) return("")
  seconds <- round(seconds)
  sprintf("ETA %d:%02d:%02d", seconds %/% 3600, seconds %/% 60 %% 60, seconds %% 60)
}
