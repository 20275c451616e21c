# Runs the R code `script` in `size` processes that mpirun starts: list(told, lines, status), what each has told, what
# they have printed, mpirun's exit status. The code has `rank` and `size`, and tell(...); `first` comes before MPI is
# begun. Skips where MPI or mpirun is not there.
in_processes <- function(size, script, flags = NULL, first = NULL) {
  if (!gpucholmod:::rcpp_processes_built()$built) skip("built without MPI")
  mpirun <- Sys.which("mpirun")
  if (!nzchar(mpirun)) skip("there is no mpirun")
  if (!any(grepl("Open MPI|OpenRTE", system2(mpirun, "--version", stdout = TRUE, stderr = TRUE)))) {
    skip("mpirun is not that of Open MPI")
  }
  file <- tempfile(fileext = ".R")
  told <- paste0(file, ".", seq_len(size) - 1L)
  on.exit(unlink(c(file, told)))
  writeLines(c(
    sprintf(".libPaths(%s)", paste(deparse(.libPaths()), collapse = "")),
    first,
    "suppressMessages(library(gpucholmod))",
    sprintf("tell <- function(...) cat(paste(...), \"\\n\", sep = \"\", file = paste0(\"%s.\", rank), append = TRUE)",
            file),
    "class_of <- function(code) tryCatch({ code; \"none\" }, error = function(e) { last <<- e; class(e)[[1]] })",
    "at <- process_info(); rank <- at$process; size <- at$processes",
    script
  ), file)
  root <- if (Sys.info()[["effective_user"]] == "root") "--allow-run-as-root"
  # All on this machine, by shared memory, whatever else is set up there.
  plain <- c("--oversubscribe", "--bind-to", "none", "--mca", "btl", "self,vader", "--mca", "plm", "isolated")
  lines <- suppressWarnings(system2(mpirun, c(root, plain, flags, "-np", size,
                                              shQuote(file.path(R.home("bin"), "Rscript")), shQuote(file)),
                                    stdout = TRUE, stderr = TRUE, timeout = 100))
  list(told = lapply(told, function(one) if (file.exists(one)) readLines(one)), lines = lines,
       status = c(attr(lines, "status"), 0L)[[1L]])
}

# That processes `ranks` have told these lines.
expect_told <- function(run, ranks, lines) {
  for (rank in ranks) expect_equal(run$told[[rank + 1L]], lines, info = paste(c(rank, run$lines), collapse = "\n"))
}
