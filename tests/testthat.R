library(testthat)
library(gpucholmod)

test_check("gpucholmod")
