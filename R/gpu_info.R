#' Whether a GPU can be used, and if not, why
#'
#' @param memory Whether to ask each GPU for its free memory, which starts a CUDA context there: slow the first time,
#'   and it takes some of that memory for as long as R runs.
#' @return A list of class `gpucholmod_info`:
#'   \item{backend}{`"cuda"` if `backend = "auto"` may use a GPU, which it does if that is expected to pay
#'     (see [cholupdate_plan()]); otherwise `"cpu"`}
#'   \item{built}{whether the package was built with CUDA}
#'   \item{configured}{what the configure script of the package decided, and why}
#'   \item{architectures}{the GPU targets compiled for}
#'   \item{toolkit_version, driver_version}{the version of CUDA with which the package was built, and the version that
#'     the driver supports; `NA` if there is none}
#'   \item{usable}{whether a GPU can be used}
#'   \item{reason, message}{if no GPU can be used, why: one of `"not_built"`, `"no_driver"`, `"driver_too_old"`,
#'     `"no_device"`, `"device_too_old"`, `"forked"`, `"failed"`; and the same as a sentence}
#'   \item{device}{the number of the GPU that is used, `NA` if none}
#'   \item{devices}{a data frame of all GPUs: `id`, `name`, `compute_capability`, `multiprocessors`, `memory_total` and
#'     `memory_free` in bytes, `usable`, `kernels` (what this build has for it): `"clusters"` (compute capability 9.0 to
#'     11) and `"tensor_cores"` (8.0) are quick methods on FP64 tensor cores; `"plain"` (8.6 to 8.9, 12) is the same
#'     method on GPUs with few units for double precision, which limit its speed; `"steps"` is method `"stepwise"`
#'     alone, some 20 times slower. If the build has no code for a GPU's generation, the GPU runs code for an older one:
#'     see `architectures`}
#' @examples
#' gpu_info()
#' gpu_info()$backend
#' @export
gpu_info <- function(memory = TRUE) {
  require_flag(memory, "memory")
  info <- rcpp_gpu_info(memory)
  as_version <- function(v) if (v == 0L) NA_character_ else sprintf("%d.%d", v %/% 1000L, v %% 1000L %/% 10L)
  info$toolkit_version <- as_version(info$toolkit_version)
  info$driver_version <- as_version(info$driver_version)
  if (info$device < 0L) info$device <- NA_integer_
  info$devices$compute_capability <- sprintf("%.1f", info$devices$compute_capability / 10)
  structure(c(list(backend = if (info$usable) "cuda" else "cpu"), info), class = "gpucholmod_info")
}

# What `kernels` of a device means, for print().
kernels_mean <- c(clusters = "quick kernels, on FP64 tensor cores and clusters",
                  tensor_cores = "quick kernels, on FP64 tensor cores",
                  plain = "quick kernels; few units compute in double precision, which takes most of the time",
                  steps = "method \"stepwise\" alone, some 20 times slower than quick kernels")

#' @export
print.gpucholmod_info <- function(x, ...) {
  cat("gpucholmod", format(utils::packageVersion("gpucholmod")), "\n")
  cat("  built with CUDA: ", if (x$built) paste("yes,", x$toolkit_version) else "no", "\n", sep = "")
  cat("  configure:       ", x$configured, "\n", sep = "")
  if (x$built) {
    cat("  targets:         ", x$architectures, "\n", sep = "")
    cat("  driver supports: ", if (is.na(x$driver_version)) "no driver" else paste("CUDA", x$driver_version), "\n",
        sep = "")
  }
  for (i in seq_len(nrow(x$devices))) {
    d <- x$devices[i, ]
    cat(sprintf("  device %d:        %s, compute capability %s, %d multiprocessors, %s%s%s\n", d$id, d$name,
                d$compute_capability, d$multiprocessors, format_bytes(d$memory_total),
                if (is.na(d$memory_free)) "" else paste0(" (", format_bytes(d$memory_free), " free)"),
                if (d$usable) "" else ", too old"))
    if (d$usable) cat("                   ", kernels_mean[[d$kernels]], "\n", sep = "")
  }
  cat("  backend \"auto\":  ", x$backend,
      if (x$usable) ", where it is expected to be quicker" else paste0(" (", x$message, ")"), "\n", sep = "")
  invisible(x)
}

#' Give back what the package keeps between calls
#'
#' Methods `"stream"` and `"resident"` of [cholupdate_gpu()] move data through page-locked memory, which takes longer
#' to allocate than to use. So it is kept for the next call, at most about 64 MB, and so is memory of the GPU, at most
#' about 256 MB. This function gives both back. Factors on the GPU stay.
#'
#' @return Bytes of page-locked memory that were given back, invisibly.
#' @seealso [free()] for a factor on the GPU.
#' @examples
#' gpu_release()
#' @export
gpu_release <- function() {
  invisible(rcpp_gpu_release())
}
