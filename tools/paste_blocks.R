# Runs the R code that a reader of README.md or of a vignette sees, as one who pastes it into a fresh session would.
#
#   Rscript tools/paste_blocks.R README.md vignettes/*.Rmd
#
# What a reader sees are ```r blocks and, in R Markdown, chunks without echo = FALSE or include = FALSE. They are run in
# order, all those of a file in one fresh R process and one fresh folder, twice: pasted (line by line from standard
# input, up to the first error), and by source(). Hidden chunks are not run with them. The one named "setup" is run
# elsewhere, for options such as eval = gpu to find their variables; a chunk whose eval is not TRUE is left out. So is,
# where there is no GPU that can be used, a block whose first line is "# needs a GPU".
#
# Prints a line per file, the block that failed with what it printed, and last "N passed, N failed, N skipped": a run of
# a file is a pass or a failure, a block that was left out is skipped.

time_limit <- 600  # seconds that a run may take
too_long <- sprintf("more than %d s", time_limit)

# The blocks and chunks of a file, in order: each a list of its heading, line, header ("" for ```r blocks) and code.
blocks_of <- function(file) {
  lines <- readLines(file, encoding = "UTF-8")
  fences <- grep("^ {0,3}```", lines)
  found <- list()
  heading <- ""
  at <- 0L
  for (pair in split(fences, (seq_along(fences) + 1L) %/% 2L)) {
    if (length(pair) != 2L) stop(file, ":", pair, ": this block does not end", call. = FALSE)
    text <- lines[seq_len(pair[[1L]] - at - 1L) + at]
    heading <- tail(c(heading, grep("^#+ ", text, value = TRUE)), 1L)
    at <- pair[[2L]]
    info <- sub("^ *```+ *", "", lines[[pair[[1L]]]])
    if (!grepl("^(r|\\{r([ ,].*)?\\})$", info)) next
    found[[length(found) + 1L]] <- list(
      heading = heading, line = pair[[1L]], header = sub("^r$", "", info),
      code = lines[seq_len(at - pair[[1L]] - 1L) + pair[[1L]]]
    )
  }
  found
}

# The options of a chunk, as expressions: {r name, echo = FALSE} gives list(name, echo = FALSE).
options_of <- function(block) {
  text <- sub("^[ ,]+", "", sub("^\\{r(.*)\\}$", "\\1", block$header))
  text <- sub("^[^,=]+(,|$)", "", text) # the chunk's label
  as.list(parse(text = paste0("alist(", text, ")"), encoding = "UTF-8")[[1L]])[-1L]
}

# The environment in which options are evaluated: that of the hidden chunk "setup", if there is one.
setup_of <- function(blocks) {
  where <- new.env(parent = globalenv())
  for (block in blocks) {
    if (!grepl("^\\{r +setup *(,|\\})", block$header)) next
    # what it asks of knitr is of no use here, where knitr may not be installed
    for (line in parse(text = block$code, encoding = "UTF-8")) try(eval(line, where), silent = TRUE)
  }
  where
}

# Why a block is not run: "hidden", "eval", "GPU"; "" if it is.
left_out <- function(block, setup, gpu) {
  options <- options_of(block)
  is_true <- function(name) {
    value <- if (is.null(options[[name]])) TRUE else eval(options[[name]], setup())
    isTRUE(as.logical(value))
  }
  if (!is_true("echo") || !is_true("include")) return("hidden")
  if (!is_true("eval")) return(paste("eval =", deparse(options$eval)))
  if (!gpu && length(block$code) && grepl("^# needs a GPU", block$code[[1L]])) return("needs a GPU")
  ""
}

# Runs blocks in a fresh process. Returns NULL, or what went wrong: which block, and what was printed since it began.
run_blocks <- function(blocks, way) {
  folder <- tempfile("pasted")
  dir.create(folder)
  old <- setwd(folder)
  on.exit({
    setwd(old)
    unlink(folder, recursive = TRUE)
  })
  # A line before each block tells which of them was running.
  marks <- sprintf("paste_blocks.R: block %d", seq_along(blocks))
  code <- Map(function(mark, block) c(sprintf("writeLines(\"%s\")", mark), block$code), marks, blocks)
  writeLines(unlist(code), "code.R", useBytes = TRUE)
  arguments <- c("--vanilla", "--no-echo")
  status <- suppressWarnings(if (way == "pasted") {
    system2(R, arguments, stdin = "code.R", stdout = "log", stderr = "log", timeout = time_limit)
  } else {
    system2(R, c(arguments, "-e", shQuote("source('code.R', encoding = 'UTF-8')")), stdout = "log", stderr = "log",
            timeout = time_limit)
  })
  if (status == 0L) return(NULL)
  log <- readLines("log", warn = FALSE)
  at <- max(0L, which(log %in% marks))
  list(block = max(1L, match(log[at], marks)), output = tail(log[seq_along(log) > at], 20L),
       why = if (status == 124L) too_long else sprintf("exit status %d", status))
}

report <- function(file, way, block, bad) {
  cat(sprintf("FAIL  %s, %s: %s in the block of line %d, \"%s\":\n", file, way, bad$why, block$line, block$heading))
  cat(paste0("      > ", block$code), paste0("      ", bad$output), sep = "\n")
}

# Runs a file in both ways; returns how many passed, failed, and were skipped.
run_file <- function(file, gpu) {
  blocks <- blocks_of(file)
  made <- NULL  # once it is asked for: not every setup chunk is needed, or quick
  setup <- function() if (is.null(made)) made <<- setup_of(blocks) else made
  why <- vapply(blocks, left_out, "", setup, gpu)
  run <- blocks[why == ""]
  skipped <- why[!why %in% c("", "hidden")]
  passed <- failed <- 0L
  seconds <- system.time(for (way in if (length(run)) c("pasted", "source()")) {
    # What took too long once is not waited for again.
    bad <- if (!failed || bad$why != too_long) run_blocks(run, way) else bad
    if (is.null(bad)) {
      passed <- passed + 1L
    } else {
      failed <- failed + 1L
      report(file, way, run[[bad$block]], bad)
    }
  })[["elapsed"]]
  reasons <- if (length(skipped)) sprintf(", %d left out (%s)", length(skipped),
                                          paste(unique(skipped), collapse = "; "))
  cat(sprintf("%s  %s: %d blocks, pasted and by source(), %.0f s%s\n",
              if (failed) "FAIL" else "ok  ", file, length(run), seconds, paste0(reasons, "")))
  c(passed, failed, length(skipped))
}

R <- file.path(R.home("bin"), "R")
files <- commandArgs(TRUE)
if (!length(files)) stop("usage: Rscript tools/paste_blocks.R README.md vignettes/*.Rmd", call. = FALSE)
# Where this process finds packages, those that it starts shall, too.
Sys.setenv(R_LIBS = paste(.libPaths(), collapse = .Platform$path.sep))
gpu <- gpucholmod::gpu_info(memory = FALSE)$usable
# Without a GPU, which they would share, files run side by side.
counts <- parallel::mclapply(files, run_file, gpu, mc.cores = if (gpu) 1L else parallel::detectCores(),
                             mc.preschedule = FALSE)
if (!all(vapply(counts, is.integer, NA))) stop("a file has not been run to its end", call. = FALSE)
sums <- Reduce(`+`, counts)
cat(sprintf("%d passed, %d failed, %d skipped\n", sums[[1L]], sums[[2L]], sums[[3L]]))
quit(status = sums[[2L]] > 0)
