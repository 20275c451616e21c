# Package float keeps single precision in an S4 class with one integer slot, Data; where it is not loaded, the same
# class is defined here.
make_float32 <- function(x) {
  bits <- gpucholmod:::rcpp_to_float(as.vector(x))
  dim(bits) <- dim(x)
  methods::new("float32", Data = bits)
}
if (!methods::isClass("float32")) {
  methods::setClass("float32", methods::representation(Data = "ANY"), where = globalenv())
}
widen <- function(x) gpucholmod:::rcpp_from_float(x@Data)

# Doubles rounded to floats.
as_floats <- function(x) matrix(gpucholmod:::rcpp_from_float(gpucholmod:::rcpp_to_float(as.vector(x))), nrow(x))
