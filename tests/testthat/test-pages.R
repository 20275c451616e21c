# README, vignettes and help pages: they name functions, arguments and options that exist, their figures have a version,
# and a reader finds every page.

# Returns files of prose: README.Rmd, the vignettes, and R's sources, of which roxygen's comments alone are read.
pages_of <- function(root) {
  c(file.path(root, "README.Rmd"), list.files(file.path(root, "vignettes"), "[.]Rmd$", full.names = TRUE),
    list.files(file.path(root, "R"), "[.]R$", full.names = TRUE))
}

# Returns the lines of a page, of R's sources those of roxygen's comments.
page_lines <- function(file) {
  lines <- lines_of(file)
  if (endsWith(file, ".R")) sub("^#' ?", "", grep("^#'", lines, value = TRUE)) else lines
}

package <- asNamespace("gpucholmod")

# Functions of other packages and languages that pages name without `package::`.
elsewhere <- c(
  "cholup", "choldrop", "chol_update", "chol_downdate", "chud", "chdd", "cholupdate", "cholinsert", "choldelete",
  "cholshift", "lowrankupdate", "lowrankdowndate", "updown", "llt.rankUpdate", "llt.info", "cholesky_update",
  "lax.linalg.cholesky_update", "numpy.linalg.cholesky", "scipy.linalg.cholesky", "cholfactor_gpu", "mpi.quit",
  "importFrom", "sizeof", "Cholesky"
)

# Returns the names of functions that R finds where packages of R itself, Matrix and this one are attached.
functions_there <- function(root) {
  packages <- c("base", "stats", "utils", "graphics", "grDevices", "methods", "parallel", "tools")
  of_R <- unlist(lapply(packages, function(name) ls(asNamespace(name))))
  header <- lines_of(list.files(file.path(root, "inst", "include"), full.names = TRUE))
  c(getNamespaceExports(package), names(package$.__S3MethodsTable__.), of_R, matches("gpucholmod_\\w+", header))
}

# Returns the names that are called in code in backticks, but for those behind `a::`, `$` and the like.
called_in <- function(lines) unique(matches("(?<![\\w.:$@\\\\{])[A-Za-z][\\w.]*(?= ?\\()", quoted(lines)))

# Returns the calls in code, each with the calls inside it.
calls_in <- function(code) {
  if (!is.call(code) && !is.pairlist(code) && !is.expression(code)) return(list())
  inside <- Filter(function(part) !identical(part, quote(expr = )), as.list(code))
  c(if (is.call(code)) list(code), unlist(lapply(inside, calls_in), recursive = FALSE))
}

# Returns the code of a page as expressions: what stands in backticks and in blocks of R, as far as it can be parsed.
code_in <- function(lines) {
  begin <- grepl("^```(r$|\\{r)", lines)
  fence <- startsWith(lines, "```")
  block <- cumsum(fence)
  of_R <- block %in% block[begin] & !fence
  parts <- c(quoted(lines), vapply(split(lines[of_R], block[of_R]), paste, "", collapse = "\n"))
  parse_quietly <- function(text) tryCatch(parse(text = text, keep.source = FALSE), error = function(e) NULL)
  Filter(Negate(is.null), lapply(parts, parse_quietly))
}

# Returns the names of the arguments of the package's function `name` and its methods.
arguments_of <- function(name) {
  methods <- package$.__S3MethodsTable__.
  all <- c(list(package[[name]]), mget(grep(paste0("^", name, "[.]"), ls(methods), value = TRUE), envir = methods))
  unique(unlist(lapply(all, function(f) names(formals(f)))))
}

# Returns "f(x =)" for every argument x by name of a call of an exported function f that does not have it.
unknown_arguments <- function(lines) {
  exported <- getNamespaceExports(package)
  found <- lapply(calls_in(as.expression(unlist(code_in(lines)))), function(call) {
    name <- if (is.symbol(call[[1L]])) as.character(call[[1L]]) else ""
    if (!name %in% exported) return(NULL)
    given <- setdiff(names(call)[-1L], "")
    takes <- arguments_of(name)
    known <- vapply(given, function(x) any(startsWith(takes, x)), NA)
    if (!all(known)) sprintf("%s(%s =)", name, given[!known])
  })
  unique(unlist(found))
}

test_that("every function that a page names exists, and takes the arguments that the page gives it", {
  root <- checkout()
  there <- c(functions_there(root), elsewhere)
  options_there <- matches("gpucholmod\\.[a-z_]+", lines_of(list.files(file.path(root, "R"), full.names = TRUE)))
  for (file in pages_of(root)) {
    lines <- page_lines(file)
    defined <- matches("\\b[A-Za-z_.][\\w.]*(?= <- function)", lines)
    expect_identical(setdiff(called_in(lines), c(there, defined)), character(), info = basename(file))
    expect_identical(unknown_arguments(lines), NULL, info = basename(file))
    named <- matches("(?<=options\\()gpucholmod\\.[a-z_]+(?= ?=)", lines)
    expect_identical(setdiff(named, options_there), character(), info = basename(file))
  }

  gone <- paste0("no_such_", "function")
  expect_identical(setdiff(called_in(sprintf("`%s(x)`, `chol(A)` and `x$f()`", gone)), there), gone)
  lines <- c("`cholupdate_gpu(R, V, signs = 1, scale = 2)`", "```{r}", "chol_factor(R, wait = 2)", "```")
  expect_identical(unknown_arguments(lines), c("cholupdate_gpu(signs =)", "chol_factor(wait =)"))
})

# Returns the headings of sections that tell times or rates, in prose or in the head of a table, and neither draw them
# from stored measurements with what these tell of themselves nor name a version of the package.
without_version <- function(lines) {
  fence <- startsWith(lines, "```")
  code <- fence | cumsum(fence) %% 2 == 1
  heading <- !code & grepl("^#+ ", lines)
  times <- "[0-9] ?(ms|µs|us|GB/s|GF/s)\\b|\\b([Mm]illi|micro)seconds\\b"
  version <- "(version |gpucholmod |\\()[0-9]+[.][0-9]+[.][0-9]+|format\\(|about\\(|packageVersion\\("
  unlist(lapply(split(seq_along(lines), cumsum(heading)), function(at) {
    tells <- any(grepl(times, lines[at][!code[at]]))
    if (tells && !any(grepl(version, lines[at]))) lines[at][[1L]]
  }), use.names = FALSE)
}

test_that("every section with figures says which version of the package they were measured with", {
  root <- checkout()
  pages <- c(file.path(root, "README.Rmd"), list.files(file.path(root, "vignettes"), "[.]Rmd$", full.names = TRUE))
  for (file in pages) expect_identical(without_version(lines_of(file)), NULL, info = basename(file))
  expect_identical(without_version(c("# A", "takes 3 ms", "# B", "takes 4 ms (0.25.0)", "# C", "```", "5 ms", "```")),
                   "# A")
})

test_that("?gpucholmod leads to every help page, and so does the site", {
  root <- checkout()
  topics <- setdiff(sub("[.]Rd$", "", list.files(file.path(root, "man"), "[.]Rd$")), "gpucholmod-package")
  first <- paste(lines_of(file.path(root, "man", "gpucholmod-package.Rd")), collapse = "\n")
  led_to <- matches("(?<=\\\\link\\[=)[^]]+(?=\\])|(?<=\\\\link\\{)[^}]+(?=\\})", first)
  expect_identical(setdiff(topics, led_to), character())
  site <- sub("^ +- ", "", grep("^ +- ", lines_of(file.path(root, "_pkgdown.yml")), value = TRUE))
  expect_identical(setdiff(topics, site), character())
  articles <- sub("[.]Rmd$", "", list.files(file.path(root, "vignettes"), "[.]Rmd$"))
  expect_identical(setdiff(articles, site), character())
  expect_identical(setdiff(site, c(topics, articles, "gpucholmod-package")), character())
})

test_that("help.search() finds the package by the words that people look for", {
  folder <- dirname(system.file(package = "gpucholmod"))
  skip_if_not(file.exists(file.path(folder, "gpucholmod", "Meta", "hsearch.rds")), "installed without help pages")
  topics <- function(word) {
    found <- utils::help.search(word, package = "gpucholmod", lib.loc = folder, agrep = FALSE, rebuild = TRUE)
    unique(found$matches$Topic)
  }
  words <- c(Kalman = "cholupdate_gpu", "Gaussian process" = "cholinsert_gpu", "rank-one" = "cholupdate_gpu",
             "cross-validation" = "solve_modified", regression = "rls", downdate = "cholupdate_gpu")
  for (word in names(words)) expect_true(words[[word]] %in% topics(word), label = word)
  expect_identical(length(topics("photosynthesis")), 0L)
})

test_that("the README has a first screen, and is short", {
  root <- checkout()
  lines <- lines_of(file.path(root, "README.md"))
  expect_lte(length(lines), 150)
  picture <- matches("(?<=\\]\\()man/figures/[^)]+", lines)
  expect_true(length(picture) == 1 && file.exists(file.path(root, picture)))
  for (command in c("R CMD INSTALL .", "sh tools/demo.sh", "sh tools/test.sh")) expect_true(command %in% lines)
  table <- grep("^\\|", lines[seq_len(which(lines == "## Four programs"))], value = TRUE)
  expect_length(table, 2 + 8)
})

test_that("CITATION.cff and the package have one version", {
  root <- checkout()
  version <- sub("^version: ", "", grep("^version: ", lines_of(file.path(root, "CITATION.cff")), value = TRUE))
  expect_identical(version, read.dcf(file.path(root, "DESCRIPTION"))[, "Version"][[1L]])
})
