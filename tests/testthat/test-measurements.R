machine_of <- function(command) c(command = command, gpucholmod:::machine())

test_that("measurements come back as they were written, with where they come from", {
  file <- tempfile(fileext = ".csv")
  data <- data.frame(n = c(1, 2.5), method = c("a, b", "c \"d\""), seconds = c(1 / 3, NA), ok = c(TRUE, FALSE))
  gpucholmod:::write_measurements(data, file, machine_of("Rscript x.R --n=1"))
  m <- stored_measurements(file)
  expect_equal(as.data.frame(m), data)
  about <- attr(m, "about")
  expect_identical(about[["command"]], "Rscript x.R --n=1")
  expect_true(all(c("date", "package", "cpu", "cores", "threads", "instructions", "gpu", "cuda", "R", "blas", "system",
                    "gpuless") %in%
                    names(about)))
  line <- format(m)
  for (part in about[c("cpu", "date", "command", "package")]) expect_match(line, part, fixed = TRUE)
  expect_output(print(m), "x.R", fixed = TRUE)
  expect_s3_class(m[m$ok, ], "gpucholmod_measurements")
  expect_identical(class(m[, c("n", "ok")]), "data.frame")
  expect_identical(m[, "n"], data$n)
  # also for a user, who does not see the package's own functions
  expect_identical(eval(quote(class(m["n"])), list(m = m), globalenv()), "data.frame")
  expect_identical(format(m[names(m)]), format(m))
})

test_that("a file is read by its name in the folder too, but a stored name is what comes with the package", {
  folder <- tempfile()
  dir.create(folder)
  old <- setwd(folder)
  on.exit(setwd(old))
  for (file in c("mine", "cpu")) gpucholmod:::write_measurements(data.frame(n = 7), file, machine_of("Rscript x.R"))
  expect_identical(stored_measurements("mine")$n, 7L)
  expect_gt(nrow(stored_measurements("cpu")), 1)
  expect_identical(stored_measurements("./cpu")$n, 7L)
  expect_identical(expect_error(stored_measurements("other.csv"), class = "gpucholmod_bad_file")$reason, "missing")
  expect_identical(expect_error(stored_measurements(folder), class = "gpucholmod_bad_file")$reason, "not_readable")
})

test_that("only a last line that is not whole is left out", {
  file <- tempfile(fileext = ".csv")
  gpucholmod:::write_measurements(data.frame(n = 1:3, what = "a, b"), file, machine_of("Rscript x.R"))
  text <- readChar(file, file.size(file))
  put <- function(text) writeChar(text, file, eos = NULL)
  put(sub("\n$", "", text))
  expect_equal(stored_measurements(file)$n, 1:3)
  put(sub(", b\"\n$", "", text))
  expect_equal(stored_measurements(file)$n, 1:2)
  put(sub("1,\"a.*", "", text))
  expect_equal(nrow(stored_measurements(file)), 0L)
  put(sub("# blas: [^\n]*\n", "", text))
  expect_identical(expect_error(stored_measurements(file), class = "gpucholmod_bad_file")$reason, "not_measurements")
})

test_that("every stored file can be read, and tells where it comes from", {
  names <- stored_measurements()
  expect_true(all(c("conditioning-h200", "paper-h200", "paper-cpu", "resident-h200", "stream-h200", "cpu", "packages",
                    "packages-failures") %in% names))
  for (name in names) {
    m <- stored_measurements(name)
    expect_gt(nrow(m), 0)
    about <- attr(m, "about")
    expect_true(all(nzchar(about[c("command", "date", "cpu", "gpu", "R", "blas", "package")])))
    expect_identical(grepl("h200$", name), about[["gpu"]] == "NVIDIA H200")
    # the script that the command names is there
    script <- sub("^Rscript inst/bench/([^ ]+).*", "\\1", about[["command"]])
    expect_true(nzchar(system.file("bench", script, package = "gpucholmod")))
  }
  for (none in list("none", 1, NA_character_, names[1:2], "")) {
    expect_error(stored_measurements(none), class = "gpucholmod_bad_argument")
  }
})

# Installed with the package by R CMD build, not by R CMD INSTALL of a folder.
test_that("the code that the vignettes show fits into its box", {
  sources <- list.files(system.file("doc", package = "gpucholmod"), "\\.Rmd$", full.names = TRUE)
  skip_if(length(sources) == 0, "installed without vignettes")
  expect_true("getting-started" %in% utils::vignette(package = "gpucholmod")$results[, "Item"])
  for (file in sources) {
    lines <- readLines(file, encoding = "UTF-8")
    fence <- grepl("^```", lines)
    inside <- cumsum(fence) %% 2 == 1 & !fence
    header <- lines[fence][pmax(1, cumsum(fence))]
    shown <- inside & !grepl("echo = FALSE|include = FALSE", header)
    too_long <- lines[shown & nchar(lines) > 84]
    expect_identical(too_long, character(), label = basename(file))
  }
})
