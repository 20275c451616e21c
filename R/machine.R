# What there is to measure on: told with measurements, and BLAS set to what it does best.

# Returns a description of this machine and its software, for the head of measurements.
machine <- function() {
  info <- gpu_info(memory = FALSE)
  cpu <- cholupdate_plan(1e5, 16, backend = "cpu", method = "blocked")
  c(date = format(Sys.Date()), package = format(utils::packageVersion("gpucholmod")), cpu = cpu_model(),
    cores = as.character(parallel::detectCores()), threads = as.character(cpu$threads), instructions = cpu$instructions,
    gpu = if (info$usable) info$devices$name[match(info$device, info$devices$id)] else "none",
    cuda = if (info$usable) sprintf("%s, driver %s", info$toolkit_version, info$driver_version) else "none",
    R = sprintf("R %s", getRversion()), blas = blas_name(),
    system = paste(Sys.info()[c("sysname", "machine")], collapse = " "),
    gpuless = if (info$usable) "" else info$message)
}

# Returns the name of the CPU.
cpu_model <- function() {
  told <- if (file.exists("/proc/cpuinfo")) {
    sub("^[^:]*: *", "", grep("^model name", readLines("/proc/cpuinfo", warn = FALSE), value = TRUE))
  } else if (Sys.info()[["sysname"]] == "Darwin") {
    asked <- c("-n", "machdep.cpu.brand_string")
    tryCatch(suppressWarnings(system2("sysctl", asked, stdout = TRUE, stderr = FALSE)), error = function(e) NULL)
  }
  Find(nzchar, c(told, Sys.getenv("PROCESSOR_IDENTIFIER"), Sys.info()[["machine"]]))
}

# Returns the name of R's BLAS by its file (whose folders may tell more than its name), and the variables that limit its
# threads.
blas_name <- function() {
  parts <- strsplit(extSoftVersion()[["BLAS"]], "[/\\\\]")[[1L]]
  name <- utils::tail(c("of R", parts, grep(optimised_blas_names, parts, ignore.case = TRUE, value = TRUE)), 1L)
  limits <- Sys.getenv(c("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "OMP_NUM_THREADS"))
  limits <- limits[nzchar(limits)]
  paste0("BLAS ", name, if (length(limits)) sprintf(" (%s)", paste0(names(limits), "=", limits, collapse = ", ")))
}

# Returns the bytes of free memory; NA if the system does not tell.
free_memory <- function() {
  lines <- if (file.exists("/proc/meminfo")) readLines("/proc/meminfo")
  available <- grep("^MemAvailable:", lines, value = TRUE)
  if (length(available)) 1024 * as.numeric(gsub("[^0-9]", "", available)) else NA_real_
}

# Evaluates `code` with at most `threads` threads of R's BLAS; NA leaves the number as it is.
with_blas_threads <- function(threads, code) {
  if (is.na(threads)) return(code)
  before <- rcpp_blas_threads(0L)
  on.exit(rcpp_blas_threads(before))
  rcpp_blas_threads(threads)
  code
}

# Returns the number of threads of R's BLAS with which f() is quickest: tries all, half of them and so on as long as
# that helps, since threads without work can slow a call down. Returns NA if the number cannot be set.
quickest_blas_threads <- function(f) {
  all <- best <- rcpp_blas_threads(0L)
  if (is.na(all)) return(all)
  once <- function(threads) with_blas_threads(threads, system.time(f())[["elapsed"]])
  least <- Inf
  for (threads in all %/% 2L^(0:log2(all))) {
    first <- once(threads)
    now <- if (first < 0.5) min(first, once(threads), once(threads)) else first
    if (now < least) best <- threads
    if (now > 1.5 * least) break
    least <- min(least, now)
  }
  best
}
