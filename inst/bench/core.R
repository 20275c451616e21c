# The core of the CPU backend by itself, from n = 5 on, beside Eigen and hyhound.
#
#   Rscript inst/bench/core.R [--hyhound=DIR --guanaqo=DIR] [--seconds=0.05] [--out=core.csv]
#
# In the package's sources: core.cpp, which says what is measured, is compiled together with src/cpu, by R's compiler and with R's flags.
# Eigen (RcppEigen) is compiled with -O3 -march=native; hyhound by clang++-19 in the same way, where the folders of its sources and of
# guanaqo's are given, and is at its best of three shapes of blocks. Lower factors but for this package, which does both. --out writes the
# figures as stored_measurements() reads them, in microseconds.

here <- dirname(sub("^--file=", "", grep("^--file=", commandArgs(FALSE), value = TRUE)[[1L]]))
source(file.path(here, "common.R"))
src <- file.path(here, "..", "..", "src")
scratch <- tempfile("core")
dir.create(scratch)
config <- function(what) system2(file.path(R.home("bin"), "R"), c("CMD", "config", what), stdout = TRUE)
eigen <- paste("-isystem", system.file("include", package = "RcppEigen"))

# The program, or NULL where `command` fails.
compiled <- function(name, command, ...) {
  program <- file.path(scratch, name)
  status <- system(paste(command, ..., "-o", program, ">", file.path(scratch, "log"), "2>&1"))
  if (status == 0L) program else NULL
}
measured <- function(program, instructions = "-") {
  lines <- system2(program, c(instructions, option("seconds", "0.05")), stdout = TRUE)
  if (!length(lines)) return(NULL)
  x <- utils::read.table(text = lines, sep = ";", col.names = c("name", "what", "n", "k", "microseconds"))
  if (instructions != "-") x$name <- paste0("this package, ", instructions, ifelse(x$name == "single", ", single", ""))
  stats::aggregate(microseconds ~ name + what + n + k, x, min)
}

core <- file.path(here, "core.cpp")
own <- compiled("own", paste(config("CXX17"), config("CXX17STD"), config("CXX17FLAGS"), "-w"), eigen, paste0("-I", src), core,
                paste(file.path(src, "cpu", paste0(c("blocked", "kernels", "plain", "avx2", "avx512"), ".cpp")), collapse = " "),
                file.path(src, "base", "thread_pool.cpp"), "-lpthread")
if (is.null(own)) stop("the core cannot be compiled: ", paste(readLines(file.path(scratch, "log")), collapse = "\n"))
figures <- do.call(rbind, lapply(c("avx512", "avx2", "plain"), function(set) measured(own, set)))

by_eigen <- compiled("eigen", paste(config("CXX17"), "-std=c++17 -O3 -march=native -DNDEBUG -DOF_EIGEN -w"), eigen, core)
figures <- rbind(figures, measured(by_eigen))

if (nzchar(option("hyhound", ""))) {
  made <- file.path(scratch, c("hyhound", "guanaqo"))
  for (folder in made) dir.create(folder)
  writeLines(c("#pragma once", "namespace hyhound { using real_t = double; using index_t = long long; }",
               "#define HYHOUND_HAVE_TWO_512_FMA_UNITS 0", "#define HYHOUND_VERIFY_ASSUMPTIONS 0", "#define HYHOUND_WITH_OCP 0",
               "#define HYHOUND_WITH_DOUBLE 1", "#define HYHOUND_WITH_FLOAT 0"), file.path(made[[1L]], "config.hpp"))
  writeLines("#define HYHOUND_EXPORT", file.path(made[[1L]], "export.h"))
  writeLines("#define GUANAQO_EXPORT", file.path(made[[2L]], "export.h"))
  folders <- c(scratch, file.path(option("hyhound", ""), "src", c("hyhound", "util"), "include"), file.path(option("guanaqo", ""), "src", "include"))
  program <- compiled("hyhound-program", "clang++-19 -std=gnu++23 -O3 -march=native -DNDEBUG -DOF_HYHOUND -w", paste0("-I", folders, collapse = " "), core)
  if (is.null(program)) stop("hyhound cannot be compiled: ", paste(readLines(file.path(scratch, "log")), collapse = "\n"))
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
pair <- function(name, what, n, k) paste(us(name, paste0(what, "update"), n, k), "/", us(name, paste0(what, "downdate"), n, k))
cat(sprintf("\nMicroseconds, update / downdate; %s, one thread\n\n| n | k | upper | lower | Eigen | hyhound |\n|---|---|---|---|---|---|\n", best))
for (k in unique(figures$k)) {
  for (n in unique(figures$n)) {
    cat("|", paste(c(n, k, pair(best, "upper, ", n, k), pair(best, "lower, ", n, k), pair("Eigen", "", n, k), pair("hyhound", "", n, k)),
                   collapse = " | "), "|\n")
  }
}
