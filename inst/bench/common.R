# What the scripts of this folder, and of inst/examples, share.

# Writes what a script has measured, with the command that it was run by but for where to, as stored_measurements()
# reads it.
save_measurements <- function(data, file, script, about = gpucholmod:::machine()) {
  force(data)
  given <- grep("^--(out|failures)=", commandArgs(TRUE), value = TRUE, invert = TRUE)
  command <- paste(c(paste0("Rscript inst/bench/", script), given), collapse = " ")
  gpucholmod:::write_measurements(data, file, c(command = command, about))
}

# The value of --name=value on the command line, or the default.
option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) sub("^[^=]*=", "", given) else default
}

# The numbers of --name=number,number,... on the command line, or of the default.
numbers <- function(name, default) as.numeric(strsplit(option(name, default), ",")[[1L]])

# Results of bench_paper(), beside others: a row for each case that both have timed, with the seconds and the largest
# error of x and of y, and `ratio`, the seconds of y by those of x, so that 2 means that x is twice as quick.
compare_times <- function(x, y) {
  by <- c("n", "k", "precision", "change", "method", "device")
  timed <- function(z) {
    if (!inherits(z, "bench_paper")) stop("only results of bench_paper() can be compared", call. = FALSE)
    as.data.frame(z)[z$status == "ok", c(by, "seconds", "max_error")]
  }
  both <- merge(timed(x), timed(y), by = by, suffixes = c("", "_y"))
  if (!nrow(both)) stop("there is no case in common", call. = FALSE)
  both$ratio <- both$seconds_y / both$seconds
  gpucholmod:::newest(both)[c(by, "seconds", "seconds_y", "ratio", "max_error", "max_error_y")]
}

print_comparison <- function(x, y) {
  both <- compare_times(x, y)
  cat(strwrap(paste0("x: ", format(x)), exdent = 3), strwrap(paste0("y: ", format(y)), exdent = 3), sep = "\n")
  cat("\nTime of y by time of x: geometric mean, least and largest\n")
  for (method in unique(both$method)) {
    ratio <- both$ratio[both$method == method]
    cat(sprintf("  %-9s %6.2f  %6.2f  %6.2f  (%d cases)\n", method, exp(mean(log(ratio))), min(ratio), max(ratio),
                length(ratio)))
  }
}

# Opens a device for a figure of so many inches, and returns the name of its file. A PDF where
# the name asks for one, or where png() does not work, which it may tell by no more than a warning.
open_figure <- function(file, width, height, resolution = 130) {
  if (!grepl("\\.pdf$", file)) {
    why <- png_fails(file, width, height, resolution)
    if (is.null(why)) return(file)
    message("png() does not work here, the figure becomes a PDF: ", why)
    file <- paste0(sub("\\.png$", "", file), ".pdf")
  }
  grDevices::pdf(file, width, height)
  file
}

# NULL where a PNG device is open now; otherwise why not.
png_fails <- function(file, width, height, resolution) {
  before <- grDevices::dev.cur()
  type <- if (capabilities("cairo")) "cairo" else getOption("bitmapType")
  why <- tryCatch({
    grDevices::png(file, width, height, units = "in", res = resolution, type = type)
    NULL
  }, warning = conditionMessage, error = conditionMessage)
  if (is.null(why)) return(NULL)
  if (!identical(grDevices::dev.cur(), before)) grDevices::dev.off()
  if (file.exists(file) && file.size(file) == 0) unlink(file)
  why
}

# An upper triangular matrix whose column j is column(j), of length j. In one n x n matrix: there may not be room for
# another.
by_columns <- function(n, column) {
  M <- matrix(0, n, n)
  for (j in seq_len(n)) M[seq_len(j), j] <- column(j)
  M
}
normal <- function(n, k) matrix(rnorm(n * k), n)

# What resident.R measures, and tells of in its head: R, or the upper triangle of A; and V.
families <- list(
  ridge = list(
    R = function(n) by_columns(n, function(j) c(0.3 * sqrt(12 / n) * (runif(j - 1L) - 0.5), 1)),
    V = function(n, k) normal(n, k) / sqrt(n)
  ),
  paper = list(
    A = function(n) {
      A <- crossprod(matrix(runif(n * n), n))
      for (j in seq_len(n)) A[j, j] <- A[j, j] + 1
      A
    },
    V = function(n, k) matrix(runif(n * k), n)
  ),
  kernel = list(
    A = function(n) {
      x <- sort(runif(n))
      by_columns(n, function(j) c(exp(-50 * (x[seq_len(j - 1L)] - x[j])^2), 1.01))
    },
    V = normal
  ),
  square = list(
    R = function(n) by_columns(n, function(j) c(rnorm(j - 1L), sqrt(rchisq(1L, n - j + 1))) / sqrt(n)),
    V = function(n, k) normal(n, k) / sqrt(n)
  )
)

# In double precision, where cuSOLVER is there by it.
make_factor <- function(family, n) {
  if (!is.null(family$R)) return(family$R(n))
  A <- family$A(n)
  f <- tryCatch(gpu_chol(A), gpucholmod_backend_unavailable = function(e) NULL)
  if (is.null(f)) return(chol(A))
  rm(A)
  on.exit(free(f))
  as.matrix(f)
}

# The program, if there is one.
octave <- Filter(nzchar, Sys.which(c("octave-cli", "octave")))

# Runs lines of Octave, which know `matrices` by their names, and returns the folder to which they put() their results,
# each a file of doubles. Whether they came to that is for the caller to see.
in_octave <- function(lines, matrices) {
  folder <- tempfile("octave")
  dir.create(folder)
  for (name in names(matrices)) writeBin(as.vector(matrices[[name]]), file.path(folder, name))
  read <- sprintf("f = fopen('%1$s'); %1$s = fread(f, [%2$d %3$d], 'double'); fclose(f);", names(matrices),
                  vapply(matrices, NROW, 0L), vapply(matrices, NCOL, 0L))
  main <- file.path(folder, "main.m")
  writeLines(c("1;", "function put(name, x)", "f = fopen(name, 'w'); fwrite(f, x, 'double'); fclose(f);", "end",
               sprintf("cd('%s');", folder), read, lines), main)
  system2(octave[[1L]], c("--norc", "--quiet", shQuote(main)), stdout = FALSE, stderr = FALSE)
  folder
}
doubles <- function(folder, name) {
  file <- file.path(folder, name)
  if (file.exists(file)) readBin(file, "double", file.size(file) / 8)
}
