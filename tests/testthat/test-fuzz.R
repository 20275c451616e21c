# Random calls of everything that is exported, and what must be true of every one of them: helper-fuzz.R. The calls are
# the same every time, and number i is that of the seed GPUCHOLMOD_FUZZ_SEED + i alone: fuzz_call(seed) repeats it. With
# GPUCHOLMOD_FUZZ_CALLS there are more or fewer of them, and with GPUCHOLMOD_FUZZ_TRACE their seeds are written to a
# file before they are made, in case one of them takes R with it.

skip_on_cran()
skip_on_os("windows") # where there are no factors in files

gpu <- gpu_info(memory = FALSE)$usable
count <- fuzz_number("GPUCHOLMOD_FUZZ_CALLS", 2000L)
seeds <- fuzz_number("GPUCHOLMOD_FUZZ_SEED", 2026L) + seq_len(count)
trace <- Sys.getenv("GPUCHOLMOD_FUZZ_TRACE")

make_calls <- function(seeds) {
  lapply(seeds, function(seed) {
    if (nzchar(trace)) cat(seed, "\n", file = trace, append = TRUE)
    fuzz_call(seed, gpu)
  })
}

invisible(make_calls(-seq_len(60L))) # what is loaded and kept for good is there from now on
if (gpu) for (seed in 1:60) { # so are cuBLAS's kernels
  set.seed(seed)
  fuzz_reshape(gpu)
}
before <- fuzz_holdings(gpu)
calls <- make_calls(seeds)
after <- fuzz_holdings(gpu)
kinds <- vapply(calls, function(call) call$kind, "")

for (kind in names(fuzz_kinds())) {
  test_that(paste("random calls do what they must:", kind), {
    failed <- Filter(function(call) length(call$problems) > 0L, calls[kinds == kind])
    told <- vapply(failed, function(call) {
      sprintf("number %d, fuzz_call(%d): %s\n  %s", match(call$seed, seeds), call$seed, call$what,
              paste(call$problems, collapse = "\n  "))
    }, "")
    expect(!length(told), paste(c(sprintf("%d of %d calls", length(told), sum(kinds == kind)), utils::head(told, 20L)),
                                collapse = "\n"))
  })
}

test_that("random calls give back what they take", {
  expect_identical(after$descriptors, before$descriptors)
  expect_identical(after$parts, character())
  kept <- as.double(utils::object.size(calls)) / 8
  expect_lt(after$cells - before$cells - kept, 1e5)
  if (gpu) expect_equal(after$device, before$device, tolerance = 1e-4)
})
