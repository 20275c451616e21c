# For the scripts of inst/: opens a device for a figure of so many inches, and returns the name of its file. A PDF where
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
