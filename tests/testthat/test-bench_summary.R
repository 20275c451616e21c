# Made-up times, so that what is found is known: seconds = rate * n^2, or of what refactors, rate * n^3.
made_up <- function(rates, sizes = c(500, 1000, 2000, 4000), ranks = c(1, 16), gpu = "a GPU") {
  ns <- asNamespace("gpucholmod")
  rows <- ns$bench_rows(ns$bench_cases(sizes, ranks, c("double", "single"), names(rates)), "ok")
  rows$seconds <- rates[rows$method] * rows$n^vapply(ns$bench_methods[rows$method], `[[`, 0, "power")
  rows$fastest <- rows$seconds
  rows$max_error <- ifelse(rows$k > 0, 1e-12, NA)
  about <- c(experiment = "paper", command = "none", ns$machine())
  about[c("gpu", "cuda", "gpuless")] <- c(gpu, "1.0", if (gpu == "none") "there is none" else "")
  ns$as_measurements(rows, about)
}

test_that("the break-even is where a power law says, for each k", {
  # 1e-9 n^2 = 1e-12 n^3 at n = 1000
  s <- summary(made_up(c(blocked = 1e-9, chol = 0.8e-12)))
  even <- s$break_even
  expect_identical(unique(even$challenger), "blocked")
  expect_identical(unique(even$opponent), "chol")
  expect_setequal(paste(even$k, even$change, even$precision),
                  c("1 update double", "1 downdate double", "16 update double", "16 downdate double"))
  expect_equal(even$n, rep(1250, 4))
  expect_equal(even$ratio, rep(0.8e-12 * 4000 / 1e-9, 4))
  expect_true(all(is.na(even$ratio_5000)))
  expect_equal(even$first, rep(500, 4))
  expect_equal(even$last, rep(4000, 4))
})

test_that("never and always are told apart, and a lead that is lost again does not count", {
  at <- gpucholmod:::overtaken_at
  n <- c(100, 200, 400)
  expect_identical(at(n, c(2, 2, 2)), 100)
  expect_identical(at(n, c(2, 2, 0.5)), NA_real_)
  expect_identical(at(n, c(0.5, 0.5, 0.5)), NA_real_)
  expect_equal(at(n, c(2, 0.5, 2)), sqrt(200 * 400))
  expect_equal(at(rev(n), rev(c(0.25, 2, 2))), exp(log(100) + log(4) / log(8) * log(2)))
  expect_equal(at(n, c(0.5, 1, 2)), 200)
  expect_identical(at(100, 1.5), 100)
})

test_that("refactoring that does not depend on k counts for every k", {
  s <- summary(made_up(c(resident = 1e-11, potrf = 1e-13, blocked = 1e-9)))
  even <- s$break_even
  expect_equal(nrow(even), 8L)
  expect_equal(even$n, rep(500, 8))
  expect_equal(even$ratio, rep(1e-13 * 4000 / 1e-11, 8))
  expect_equal(unique(s$overtakes$ratio), 100)
})

test_that("what does not count is left out of the findings", {
  x <- made_up(c(blocked = 1e-9, chol = 1e-12))
  x$status[x$method == "chol" & x$n == 4000] <- "inaccurate"
  expect_equal(unique(summary(x)$break_even$last), 2000)
  x$status <- "failed"
  expect_identical(nrow(summary(x)$break_even), 0L)
  expect_output(print(x), "of which")
})

test_that("the printed findings name the machine, the pairs and the paper's figures", {
  x <- made_up(c(sweeps = 1e-7, blocked = 1e-9, panel = 1e-8, stream = 2e-9), sizes = c(500, 5000))
  out <- paste(capture.output(print(x)), collapse = "\n")
  expect_match(gsub("\\s+", " ", out), "a GPU, CUDA 1.0", fixed = TRUE)  # lines are wrapped
  expect_match(out, "panel and sweeps", fixed = TRUE)
  expect_match(out, "<= 500 (10)", fixed = TRUE)
  expect_match(out, "> 5,000 (0.5)", fixed = TRUE)
  expect_match(out, "2,000 (7)", fixed = TRUE)
  expect_match(out, "4,000", fixed = TRUE)
  expect_false(grepl("factorising", out))
})

test_that("all figures are drawn, with a GPU and without, on high and wide pages", {
  full <- made_up(stats::setNames(10^-seq_along(gpucholmod:::bench_methods), names(gpucholmod:::bench_methods)))
  cpu <- made_up(c(sweeps = 1e-8, blocked = 1e-9, chol = 1e-12, copy = 1e-10), gpu = "none")
  file <- tempfile(fileext = ".pdf")
  on.exit(unlink(file))
  for (x in list(full, cpu)) {
    for (size in list(c(8, 10), c(12, 6))) {
      grDevices::pdf(file, size[[1L]], size[[2L]], compress = FALSE, useKerning = FALSE)
      before <- graphics::par(no.readonly = TRUE)
      plot(x, which = c("time", "error", "floor"))
      expect_identical(graphics::par("mar", "oma", "mfrow"), before[c("mar", "oma", "mfrow")])
      grDevices::dev.off()
      pages <- readLines(file, warn = FALSE)
      expect_equal(sum(grepl("/Type /Page ", pages, useBytes = TRUE)), 3L)
      # a panel for each precision, change and rank, in two figures
      for (title in c("update, k = 16, single", "downdate, k = 1, double")) {
        expect_equal(sum(grepl(title, pages, fixed = TRUE, useBytes = TRUE)), 2L)
      }
      expect_equal(any(grepl("CPU only: there is none", pages, fixed = TRUE, useBytes = TRUE)), identical(x, cpu))
    }
  }
  # one size has no range, and neither has one error
  grDevices::pdf(file)
  expect_silent(plot(made_up(c(blocked = 1e-9, copy = 1e-10), sizes = 300), which = c("time", "error", "floor")))
  grDevices::dev.off()
  exact <- full
  exact$max_error <- 0
  expect_error(plot(exact, which = "error"), class = "gpucholmod_bad_argument")
  single <- full[full$precision == "single", ]
  expect_error(plot(single, which = "floor"), class = "gpucholmod_bad_argument")
  expect_error(plot(full, which = "other"), class = "gpucholmod_bad_argument")
  expect_error(plot(full, ranks = 7), class = "gpucholmod_bad_argument")
})

test_that("a comparison pairs cases, and says how many times", {
  x <- made_up(c(blocked = 1e-9, chol = 1e-12), sizes = c(500, 1000))
  y <- made_up(c(blocked = 3e-9, sweeps = 1e-8), sizes = c(1000, 2000))
  scripts <- new.env()
  source(system.file("bench", "common.R", package = "gpucholmod"), scripts)
  both <- scripts$compare_times(x, y)
  expect_equal(unique(both$n), 1000)
  expect_equal(unique(both$method), "blocked")
  expect_equal(nrow(both), 8L)
  expect_equal(both$ratio, rep(3, 8))
  expect_output(scripts$print_comparison(x, y), "blocked +3.00 +3.00 +3.00")
  expect_error(scripts$compare_times(x, made_up(c(sweeps = 1))), "no case in common")
  expect_error(scripts$compare_times(x, data.frame()), "bench_paper")
})
