test_that("a figure is a PNG where that works, and a PDF where it does not", {
  folder <- tempfile()
  dir.create(folder)
  on.exit(unlink(folder, recursive = TRUE))
  scripts <- new.env()
  source(system.file("bench", "common.R", package = "gpucholmod"), scripts)
  open_figure <- scripts$open_figure
  drawn <- function(open, name) {
    open_devices <- grDevices::dev.list()
    file <- open(file.path(folder, name), 3, 2)
    graphics::plot(1)
    grDevices::dev.off()
    expect_identical(grDevices::dev.list(), open_devices)
    expect_gt(file.size(file), 1000)
    basename(file)
  }
  expect_identical(drawn(open_figure, "a.pdf"), "a.pdf")
  if (is.null(scripts$png_fails(file.path(folder, "try.png"), 1, 1, 72))) {
    grDevices::dev.off()
    expect_identical(drawn(open_figure, "a.png"), "a.png")
  }
  # where png() has nothing to draw with, it warns, and opens no device
  old <- options(bitmapType = "Xlib")
  on.exit(options(old), add = TRUE)
  no_cairo <- scripts$png_fails
  environment(no_cairo) <- list2env(list(capabilities = function(...) FALSE), parent = environment(no_cairo))
  environment(open_figure) <- list2env(list(png_fails = no_cairo), parent = environment(open_figure))
  skip_if(nzchar(Sys.getenv("DISPLAY")))
  expect_message(expect_identical(drawn(open_figure, "b.png"), "b.pdf"), "becomes a PDF")
  expect_false(file.exists(file.path(folder, "b.png")))
})
