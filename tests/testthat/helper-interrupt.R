# Sends this process the signal of Ctrl-C after a while.
interrupt_after <- function(seconds) {
  system(sprintf("(sleep %g; kill -INT %d) >/dev/null 2>&1 &", seconds, Sys.getpid()))
}
