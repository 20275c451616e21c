## R1 = choldelete_gpu (R, j)
##
## The Cholesky factor of R'*R without row and column j, as choldelete. The diagonal of R1 is not negative. A singular R
## is decomposed anew, by qr, which takes longer.

function R1 = choldelete_gpu (R, j)
  if (nargin != 2)
    print_usage ();
  endif
  R = gpucholmod_triangle ("choldelete_gpu", R);
  j = gpucholmod_index ("choldelete_gpu", "J", j, columns (R));
  [R1, code, pivot, message] = gpucholmod_mex ("delete", R, j);
  if (code == 4)  # GPUCHOLMOD_BAD_DIAGONAL
    R1 = gpucholmod_reordered (R, [1:j-1, j+1:columns(R)]);
  elseif (code != 0)
    error ("gpucholmod:delete", "choldelete_gpu: %s", message);
  endif
endfunction
