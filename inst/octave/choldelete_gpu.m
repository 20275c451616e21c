## R1 = choldelete_gpu (R, j)
##
## The Cholesky factor of R'*R without row and column j, as choldelete.

function R1 = choldelete_gpu (R, j)
  if (nargin != 2)
    print_usage ();
  endif
  n = columns (R);
  if (! isfloat (R) || ! isreal (R) || ndims (R) != 2 || rows (R) != n)
    error ("choldelete_gpu: R must be a real square matrix");
  elseif (! isscalar (j) || j != fix (j) || j < 1 || j > n)
    error ("choldelete_gpu: index J out of range");
  endif
  [R1, code, pivot, message] = gpucholmod_mex ("delete", triu (full (R)), double (j));
  if (code != 0)
    error ("gpucholmod:delete", "choldelete_gpu: %s", message);
  endif
endfunction
