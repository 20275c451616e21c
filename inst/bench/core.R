# The core of the CPU backend by itself, from n = 5 on, beside Eigen and hyhound.
#
#   Rscript inst/bench/core.R [--hyhound=DIR --guanaqo=DIR] [--most=4096] [--seconds=0.05] [--build=DIR]
#                             [--programs=DIR] [--march=native] [--behind=16] [--out=core.csv]
#
# core.cpp says what is measured, for n up to --most; compile.R compiles it with this package's core and with Eigen, in
# the package's sources. clang++-19 compiles hyhound with Eigen's flags, if the folders of its sources and of guanaqo's
# are given; hyhound is at its best of three shapes of blocks. Factors are lower, and for this package upper too. R lies
# --behind bytes behind the beginning of a cache line: 16 where glibc maps memory for an array of C++ or numpy, 0 or 48
# in most of R's matrices. --out writes the figures as stored_measurements() reads them, in microseconds.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
source(file.path(here, "compile.R"))

# The figures of a program; NULL if the processor lacks the instructions.
measured <- function(program, instructions = "-") {
  lines <- system2(program, c(instructions, option("seconds", "0.05"), option("most", "4096"), option("behind", "16")),
                   stdout = TRUE)
  if (!is.null(attr(lines, "status"))) stop(basename(program), ", ", instructions, ": failed", call. = FALSE)
  if (!length(lines)) return(NULL)
  x <- utils::read.table(text = lines, sep = ";", col.names = c("name", "what", "n", "k", "microseconds"))
  if (instructions != "-") x$name <- paste0("this package, ", instructions, ifelse(x$name == "single", ", single", ""))
  stats::aggregate(microseconds ~ name + what + n + k, x, min)
}

core <- file.path(here, "core.cpp")
own <- with_core(core)
figures <- do.call(rbind, lapply(c("avx512", "avx2", "plain"), function(set) measured(own, set)))
figures <- rbind(figures, measured(with_eigen(core)))

if (nzchar(option("hyhound", ""))) {
  made <- file.path(scratch, c("hyhound", "guanaqo"))
  for (folder in made) dir.create(folder, showWarnings = FALSE)
  writeLines(c("#pragma once", "namespace hyhound { using real_t = double; using index_t = long long; }",
               "#define HYHOUND_HAVE_TWO_512_FMA_UNITS 0", "#define HYHOUND_VERIFY_ASSUMPTIONS 0",
               "#define HYHOUND_WITH_OCP 0", "#define HYHOUND_WITH_DOUBLE 1", "#define HYHOUND_WITH_FLOAT 0"),
             file.path(made[[1L]], "config.hpp"))
  writeLines("#define HYHOUND_EXPORT", file.path(made[[1L]], "export.h"))
  writeLines("#define GUANAQO_EXPORT", file.path(made[[2L]], "export.h"))
  folders <- c(scratch, file.path(option("hyhound", ""), "src", c("hyhound", "util"), "include"),
               file.path(option("guanaqo", ""), "src", "include"))
  includes <- paste0("-I", shQuote(folders), collapse = " ")
  program <- compiled(core, "hyhound",
                      paste("clang++-19 -std=gnu++23 -O3", march, "-DNDEBUG -DOF_HYHOUND -w", includes))
  figures <- rbind(figures, measured(program))
} else {
  cat("hyhound: not given\n")
}
if (nzchar(option("out", ""))) save_measurements(figures, option("out", ""), "core.R")

best <- grep("^this package, [a-z0-9]*$", unique(figures$name), value = TRUE)[[1L]]
us <- function(name, what, n, k) {
  x <- figures$microseconds[figures$name == name & figures$what == what & figures$n == n & figures$k == k]
  if (length(x)) format(signif(x, 3)) else "-"
}
pair <- function(name, what, n, k)
  paste(us(name, paste0(what, "update"), n, k), "/", us(name, paste0(what, "downdate"), n, k))
cat(sprintf(paste0("\nMicroseconds, update / downdate; %s, one thread\n\n",
                   "| n | k | upper | lower | Eigen | hyhound |\n|---|---|---|---|---|---|\n"), best))
for (k in unique(figures$k)) {
  for (n in unique(figures$n)) {
    cat("|", paste(c(n, k, pair(best, "upper, ", n, k), pair(best, "lower, ", n, k),
                     pair("Eigen", "", n, k), pair("hyhound", "", n, k)),
                   collapse = " | "), "|\n")
  }
}
