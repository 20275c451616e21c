## [R1, err] = cholinsert_gpu (R, j, X)
##
## The Cholesky factor of a matrix with p rows and columns more, R being that of the matrix without: what cholinsert does for p = 1. X
## (n + p x p) are its columns j .. j + p - 1. err: 0; 1, the matrix is not positive definite; 2, R is singular. Without err, these are
## errors. Where err is not 0, R1 is R.

function [R1, err] = cholinsert_gpu (R, j, X)
  if (nargin != 3)
    print_usage ();
  endif
  R = gpucholmod_triangle ("cholinsert_gpu", R);
  X = gpucholmod_numbers ("cholinsert_gpu", "X", X);
  n = columns (R);
  if (rows (X) != n + columns (X))
    error ("cholinsert_gpu: dimension mismatch between R and X");
  endif
  j = gpucholmod_index ("cholinsert_gpu", "J", j, n + 1);
  if (isa (R, "single") || isa (X, "single"))
    R = single (R);
    X = single (X);
  endif
  [R1, code, pivot, message] = gpucholmod_mex ("insert", R, j, X);
  err = (code == 1) + 2 * (code == 4);
  if (code != 0 && (err == 0 || nargout < 2))
    error ("gpucholmod:insert", "cholinsert_gpu: %s", message);
  endif
endfunction
