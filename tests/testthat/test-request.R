# What R/request.R and src/rcpp_request.cpp agree about.

refused <- function(request, element) {
  error <- expect_error(gpucholmod:::rcpp_cholupdate(diag(2), 1:2 + 0, request), class = "gpucholmod_bad_argument")
  expect_identical(error$argument, element)
}

test_that("a request is read by names, and what is missing is named", {
  request <- gpucholmod:::new_request(backend = 1L)
  for (element in names(request)) {
    other <- request
    names(other)[names(other) == element] <- "something"
    refused(other, element)
    refused(request[seq_len(match(element, names(request)) - 1L)], element)
  }
  refused(NULL, "downdate")
  refused(unname(request), "downdate")
  refused(request[c(2, 1, 3:10)], "downdate")
})

test_that("so are right-hand sides and what cholupdate_control() gives", {
  sides <- gpucholmod:::sides_of(1:2, 3, 4, 2L, 1L)
  control <- gpucholmod:::control_numbers(cholupdate_control())
  for (element in names(sides)) {
    names(sides)[match(element, names(sides))] <- "something"
    refused(gpucholmod:::new_request(backend = 1L, sides = sides), element)
    names(sides)[match("something", names(sides))] <- element
  }
  for (element in names(control)) {
    names(control)[match(element, names(control))] <- "something"
    refused(gpucholmod:::new_request(backend = 1L, control = control), element)
    names(control)[match("something", names(control))] <- element
  }
})

test_that("a result is a list with the factor, which is NULL where the call fails", {
  run <- function(v, ...) gpucholmod:::rcpp_cholupdate(diag(2), v, gpucholmod:::new_request(backend = 1L, ...))
  expect_identical(run(c(0, 1)), list(pivot = 0L, factor = diag(c(1, sqrt(2))), z = NULL, rss = NULL))
  expect_identical(run(c(0, 2), downdate = TRUE), list(pivot = 2L, factor = NULL, z = NULL, rss = NULL))
  sides <- gpucholmod:::sides_of(c(a = 1, b = 2), 3, 0, 2L, 1L)
  expect_identical(run(c(0, 0), sides = sides), list(pivot = 0L, factor = diag(2), z = c(a = 1, b = 2), rss = 9))
})
