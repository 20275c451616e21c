# The headers of the C interface name the same functions everywhere. What the functions do is tested in tests/core.

header <- function(name) {
  file <- system.file("include", name, package = "gpucholmod")
  if (!nzchar(file)) file <- test_path("../../inst/include", name)
  paste(readLines(file), collapse = "\n")
}
found <- function(pattern, text) {
  matches <- regmatches(text, gregexpr(pattern, text, perl = TRUE))[[1L]]
  sub(pattern, "\\1", matches, perl = TRUE)
}

test_that("every function of gpucholmod.h is in the table for packages, under its own name", {
  declared <- found("(?m)^(?:int|size_t|ptrdiff_t|void) gpucholmod_(\\w+)\\(",
                    paste(header("gpucholmod.h"), header("gpucholmod_batch.h")))
  table <- header("gpucholmod_r.h")
  in_table <- found("\\bX\\((\\w+)\\)", sub("(?s).*#define GPUCHOLMOD_FUNCTIONS\\(X\\)", "", table, perl = TRUE))
  expect_gt(length(declared), 40L)
  expect_setequal(in_table, declared)
  expect_identical(anyDuplicated(in_table), 0L)
  expect_identical(found("#define gpucholmod_(\\w+) gpucholmod_table->\\1_\\n", table), in_table)
})
