# The panel method's device memory against n: the paper's O(n).
#
#   Rscript panel_memory.R [--n=1000,2000,4000,8000,16000] [--k=16]

library(gpucholmod)

option <- function(name, default) {
  given <- grep(paste0("^--", name, "="), commandArgs(TRUE), value = TRUE)
  if (length(given)) as.numeric(strsplit(sub("^[^=]*=", "", given[[1L]]), ",")[[1L]]) else default
}
orders <- option("n", c(1000, 2000, 4000, 8000, 16000))
k <- option("k", 16)
info <- gpu_info(memory = FALSE)
cat(sprintf("k = %d, %s, %s\n", as.integer(k), if (info$usable) info$devices$name[[1L]] else "emulated on the CPU",
            format(Sys.Date())))
for (n in orders) {
  cholupdate_gpu(diag(n), matrix(rnorm(n * k), n), method = "panel")
  peak <- last_cholupdate()$device_bytes_peak
  cat(sprintf("n = %6d: peak %9.2f MiB = %5.0f n bytes; R itself %9.1f MiB\n", as.integer(n), peak / 2^20, peak / n,
              8 * n^2 / 2^20))
}
