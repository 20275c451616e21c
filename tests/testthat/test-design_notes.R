# The design notes name functions and files of the sources. These tests find names that are no longer there.

notes_of <- function(root) list.files(file.path(root, "inst", "design"), "[.]md$", full.names = TRUE)

# Returns the names that are called, declared or defined in lines of C++ or R.
functions_in <- function(lines) {
  unique(c(matches("[A-Za-z_]\\w*(?=\\s*[(<])", lines), matches("[A-Za-z_.][\\w.]*(?=\\s*(\\(|<- function))", lines)))
}

# Returns files, by their endings, and folders, by a slash behind them or a first folder of the sources.
paths_named <- function(lines) {
  words <- unlist(strsplit(quoted(lines), "[[:space:],;:]+"))
  file <- "^[A-Za-z0-9_.*/-]+[.](h|hpp|c|cpp|cu|cuh|m|mk|sh|R|Rmd|md|csv[.]gz)$"
  folder <- "^([A-Za-z0-9_.-]+/)+$|^(src|R|inst|tests|tools|log|vignettes)(/[A-Za-z0-9_-]+)+$"
  unique(c(grep(file, words, value = TRUE), grep(folder, words, value = TRUE)))
}

# Returns those of paths that are not the end of any path below root. A star stands for anything but a slash. What
# `make` builds need not be there.
missing_paths <- function(paths, root) {
  there <- paste0("/", c(list.files(root, recursive = TRUE), list.dirs(root, full.names = FALSE)))
  found <- function(path) {
    pattern <- gsub("*", "[^/]*", gsub(".", "[.]", sub("/$", "", path), fixed = TRUE), fixed = TRUE)
    any(grepl(paste0("/", pattern, "$"), there)) || grepl("/build/", path, fixed = TRUE)
  }
  paths[!vapply(paths, found, NA)]
}

test_that("every function that a design note names is in the sources", {
  root <- checkout()
  sources <- list.files(file.path(root, c("src", "R", "inst/include", "tests")), "[.](h|hpp|c|cpp|cu|cuh|R)$",
                        recursive = TRUE, full.names = TRUE)
  there <- functions_in(lines_of(sources))
  expect_gt(length(there), 1000)
  for (note in notes_of(root)) {
    expect_identical(setdiff(functions_named(lines_of(note)), there), character(), info = basename(note))
  }

  gone <- paste0("no_such_", "function")
  lines <- c("```", "`ignored()`", "```", sprintf("`choose()`, `chol()` and `Pass::%s()`", gone))
  expect_identical(setdiff(functions_named(lines), there), gone)
})

test_that("every file that a design note names is there", {
  root <- checkout()
  expect_gt(length(notes_of(root)), 10)
  for (note in notes_of(root)) {
    lines <- lines_of(note)
    expect_identical(missing_paths(paths_named(lines), root), character(), info = basename(note))
    # Notes name each other without backticks.
    named <- matches("(?<![\\w./-])[a-z-]+[.]md\\b", gsub("`[^`]*`", "", lines))
    expect_identical(setdiff(named, basename(notes_of(root))), character(), info = basename(note))
  }

  lines <- c("`src/base/range.h` `pack_*.h` `tests/client` `src/cpu/kernels/` `choose()`",
             "`src/base/gone.h`, `rnge.h` `gone_*.h`; `no-such-folder/` `tests/gone`")
  expect_identical(missing_paths(paths_named(lines), root),
                   c("src/base/gone.h", "rnge.h", "gone_*.h", "no-such-folder/", "tests/gone"))
})
