# What the tests of design notes and of pages for users share.

# R CMD build leaves out .Rbuildignore, and with it much of what these tests read.
checkout <- function() {
  root <- normalizePath(test_path("..", ".."))
  skip_if_not(file.exists(file.path(root, ".Rbuildignore")), "the sources are not here")
  root
}

matches <- function(pattern, text) {
  as.character(unlist(regmatches(text, gregexpr(pattern, text, perl = TRUE)), use.names = FALSE))
}

lines_of <- function(files) unlist(lapply(files, readLines, warn = FALSE, encoding = "UTF-8"), use.names = FALSE)

# Returns what stands in single backticks outside blocks of code. Backticks may enclose the end of a line.
quoted <- function(lines) {
  fence <- startsWith(lines, "```")
  text <- paste(lines[!fence & cumsum(fence) %% 2 == 0], collapse = "\n")
  text <- gsub("(?s)``.+?``", "", text, perl = TRUE)
  gsub("`", "", matches("`[^`]+`", text), fixed = TRUE)
}

# Returns the names of functions that are written f() or a::f() in backticks.
functions_named <- function(lines) {
  unique(sub(".*::", "", matches("[A-Za-z_.][A-Za-z0-9_.:]*(?=\\(\\))", quoted(lines))))
}
