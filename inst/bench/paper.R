# The experiment of Walder (2010) on this machine: bench_paper(), its findings, and its figures.
#
#   Rscript paper.R [--sizes=500,1000,...] [--ranks=1,16] [--precisions=double,single] [--methods=...] [--repeats=5]
#                   [--longest=20] [--out=paper.csv] [--plots=paper] [--compare=paper-h200]
#
# Everything but --out, --plots and --compare is an argument of bench_paper(); ?bench_paper has the procedure. Seconds;
# every time counts only if its result passes the residual test. --out saves each measurement as soon as it is made;
# called again with the same file, what is there is not measured again. --plots draws paper-time, paper-error and
# paper-floor, as PNG, or as PDF where R's PNG device does not work. --compare sets the times beside others: what
# stored_measurements() takes, a name or a file. Without a GPU the CPU's methods are measured alone.

library(gpucholmod)
source(system.file("bench", "common.R", package = "gpucholmod"))

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]] else default
}
numbers <- function(name, default) if (is.null(value <- option(name, NULL))) default else as.numeric(value)

# What to call to have the same measured again.
given <- grep("^--(out|plots|compare)=", commandArgs(TRUE), value = TRUE, invert = TRUE)
options(gpucholmod.bench_command = paste(c("Rscript inst/bench/paper.R", given), collapse = " "))
x <- bench_paper(sizes = numbers("sizes", NULL), ranks = numbers("ranks", c(1, 16)),
                 precisions = option("precisions", c("double", "single")), methods = option("methods", NULL),
                 repeats = numbers("repeats", 5), longest = numbers("longest", 20), file = option("out", NULL))
cat("\n")
print(x)

against <- option("compare", NULL)
if (!is.null(against)) {
  cat("\n")
  print_comparison(x, stored_measurements(against))
}

plots <- option("plots", NULL)
for (figure in if (is.null(plots)) character() else c("time", "error", "floor")) {
  size <- if (figure == "floor") c(9, 5.5) else c(8, 9.5)
  file <- open_figure(paste0(plots, "-", figure, ".png"), size[[1L]], size[[2L]])
  plot(x, which = figure)
  dev.off()
  cat("Plot written to ", file, ".\n", sep = "")
}
