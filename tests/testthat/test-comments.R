# Holds the comments of declarations in the C++ core to the rule that a comment begins with a verb, or with an article
# and the noun that it describes. R CMD check runs tests without the sources, and skips this test.
begins_without_noun <- c(
  "What", "Whether", "Of", "Where", "Those", "That", "Which", "Who", "How", "When", "Until", "And", "Not", "Behind",
  "By", "As", "To", "With", "Without", "For", "From", "In", "On", "At", "After", "Before", "If", "It", "They",
  "Likewise", "Also", "Nothing", "Everything", "Why", "There", "Or", "But", "Then", "So", "Here", "Between", "Within",
  "Only")

test_that("no comment of a declaration begins with a word that names nothing", {
  root <- test_path("../..")
  if (!dir.exists(file.path(root, "R")) || !dir.exists(file.path(root, "src"))) skip("the sources are not here")
  files <- list.files(file.path(root, c("src", "inst/include")), "[.](cpp|h|hpp|cuh|cu)$", full.names = TRUE,
                      recursive = TRUE)
  pattern <- sprintf("^(%s)\\b", paste(begins_without_noun, collapse = "|"))
  found <- lapply(files, function(file) {
    lines <- readLines(file, encoding = "UTF-8")
    above <- grepl("^ *///($|[^<])", lines)
    first <- above & !c(FALSE, above[-length(above)])
    text <- ifelse(first, sub("^ */// ?", "", lines), "")
    beside <- grepl("///<", lines, fixed = TRUE)
    text[beside] <- sub("^.*///< ?", "", lines[beside])
    line <- grep(pattern, text, ignore.case = TRUE)
    if (length(line)) sprintf("%s:%d: %s", file, line, text[line])
  })
  expect_gt(length(files), 0L)
  expect_identical(unlist(found), NULL)
})
