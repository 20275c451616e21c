# Every way of computing the same thing. A GPU test skips where there is no GPU, unless GPUCHOLMOD_REQUIRE_GPU is set:
# then it fails, so that a run that was meant to test a GPU cannot pass without one.

skip_without_gpu <- function() {
  info <- gpu_info(memory = FALSE)
  if (info$usable) return(invisible())
  if (nzchar(Sys.getenv("GPUCHOLMOD_REQUIRE_GPU"))) stop("a GPU is required here, but ", info$message)
  testthat::skip(paste("no GPU:", info$message))
}

# Two GPUs by their ids; the first, twice, where there is no other that can hold a factor with it.
two_gpus <- function() {
  info <- gpu_info(memory = FALSE)
  capability <- info$devices$compute_capability
  alike <- info$devices$id[capability == capability[info$devices$id == info$device]]
  if (length(alike) > 1L) alike[1:2] else rep(info$device, 2L)
}

# The vector instructions that this machine has.
instructions_here <- Filter(function(set) {
  tryCatch({
    cholupdate_gpu(diag(2), 1:2, backend = "cpu", method = "blocked", control = cholupdate_control(instructions = set))
    TRUE
  }, gpucholmod_bad_argument = function(e) FALSE)
}, c("plain", "avx2", "avx512"))

cpu_methods <- list(
  "reference, order A" = list(backend = "cpu", method = "reference", control = cholupdate_control(loop_order = "A")),
  "reference, order B" = list(backend = "cpu", method = "reference", control = cholupdate_control(loop_order = "B")),
  "blocked" = list(backend = "cpu", method = "blocked"),
  "panel on the CPU" = list(backend = "cpu", method = "panel"),
  "stream on the CPU" = list(backend = "cpu", method = "stream", control = cholupdate_control(threads = 2))
)
for (set in instructions_here) {
  cpu_methods[[paste("blocked,", set)]] <-
    list(backend = "cpu", method = "blocked", control = cholupdate_control(instructions = set))
}
cuda_methods <- list(
  "panel" = list(backend = "cuda", method = "panel"),
  "panel, the paper's shape" = list(backend = "cuda", method = "panel",
                                    control = cholupdate_control(blocks_per_kernel = 28, threads_per_block = 32,
                                                                 elements_per_thread = 16, panel_rows = 32)),
  "stream" = list(backend = "cuda", method = "stream"),
  "stream, little memory" = list(backend = "cuda", method = "stream",
                                 control = cholupdate_control(device_memory = "6MB", threads = 3)),
  "resident" = list(backend = "cuda", method = "resident")
)

modify <- function(R, V, downdate, method, ...) {
  do.call(cholupdate_gpu, c(list(R, V, downdate), method, list(...)))
}

# One copy whose memory nobody shares, to see whether a call writes to its input.
unshared <- function(x) unserialize(serialize(x, NULL))

# A handle without a GPU: nothing is behind it.
handle_of_nothing <- function(status = "live") {
  made <- list(pointer = methods::new("externalptr"), n = 3L, precision = 0L, device = 0L,
               device_name = "a GPU", bytes = 72, capacity = 3L)
  f <- gpucholmod:::new_factor(made, "upper", list(NULL, c("a", "b", "c")), trace = 3)
  f$status <- status
  f
}

# Tests of factors with memory of their own, `home` "cpu" or "cuda": in each place that there is. keep(R), keep_chol(A)
# and keep_batch(R) put them there, modify_kept() goes from matrix to matrix, by one of `methods`.
at_each_home <- function(what, code) {
  code <- substitute(code)
  for (home in c("cpu", "cuda")) {
    eval(bquote(test_that(.(paste0(what, " (", home, ")")), .(code))), home_of(home, parent.frame()))
  }
}

home_of <- function(home, parent) {
  here <- new.env(parent = parent)
  here$home <- home
  here$methods <- if (home == "cpu") "blocked" else c("persistent", "stepwise")
  here$keep <- function(R, ...) {
    if (home == "cuda") skip_without_gpu()
    chol_factor(R, home, ...)
  }
  here$keep_batch <- function(R, ...) {
    if (home == "cuda") skip_without_gpu()
    chol_batch(R, home, ...)
  }
  here$keep_chol <- function(A, ...) here$keep(chol(as.matrix(A)), ...)
  here$modify_kept <- function(R, V, downdate, precision = "double", ...) {
    as.matrix(cholupdate_gpu(here$keep(R, precision = precision), V, downdate, ...))
  }
  here
}

# Expects an error of a class of ?`gpucholmod-package` whose fields have these values.
expect_fields <- function(call, class, ...) {
  error <- expect_error(call, class = paste0("gpucholmod_", class))
  expected <- list(...)
  expect_equal(unclass(error)[names(expected)], expected)
}
