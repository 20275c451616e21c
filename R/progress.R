# The bar of long calls, by package cli.

# Is true if a call that takes long is to show a bar.
wants_bar <- function() {
  isTRUE(getOption("gpucholmod.progress", interactive())) && is.numeric(progress_after())
}

# Returns list(after, show, close), which src/rcpp_progress.h asks for when a call has taken some time; end_bar()
# removes the bar. No closure here refers to the caller's frame: that would keep a reference to the factor, see
# opened().
new_bar <- function() {
  state$bar <- c(list(after = progress_after()), bar())
}

# Removes the bar, if there is one. result: "done" or "failed".
end_bar <- function(result) {
  shown <- state$bar
  state$bar <- NULL
  if (!is.null(shown)) shown$close(result)
}

# Returns the option for the seconds after which a bar is shown.
progress_after <- function() {
  value <- getOption("gpucholmod.progress_after", 2)
  if (!is.numeric(value) || length(value) != 1L || is.na(value)) {
    stop_gpucholmod("bad_argument", "option 'gpucholmod.progress_after' must be one number of seconds",
                    list(argument = "gpucholmod.progress_after", value = value))
  }
  value
}

# Makes a bar that begins when something is to be shown: list(show, close). show(done) moves it to that share of the
# work, 0 to 1, and returns FALSE if no bar is possible: that is no reason to lose the computation.
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

# Begins a bar of package cli that belongs to the environment `owner`, and returns its id.
begin_bar <- function(owner) {
  old <- options(cli.progress_show_after = 0)
  on.exit(options(old))
  cli::cli_progress_bar(format = "{cli::pb_bar} {cli::pb_percent} | {cli::pb_status}", total = 100, current = FALSE,
                        auto_terminate = FALSE, .auto_close = FALSE, .envir = owner)
}

# Formats the seconds that are left.
eta <- function(seconds) {
  if (is.null(seconds)) return("")
  seconds <- round(seconds)
  sprintf("ETA %d:%02d:%02d", seconds %/% 3600, seconds %/% 60 %% 60, seconds %% 60)
}
