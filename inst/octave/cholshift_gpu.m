## R1 = cholshift_gpu (R, i, j)
##
## The Cholesky factor of A(p, p), A = R'*R, as cholshift: row and column i of A become number j, and the ones between
## move by one place. p = [1:i-1, i+1:j, i, j+1:n] if i < j, and [1:j-1, i, j:i-1, i+1:n] otherwise.
## The diagonal of R1 is not negative. A singular R is decomposed anew, by qr, which takes longer.

function R1 = cholshift_gpu (R, i, j)
  if (nargin != 3)
    print_usage ();
  endif
  R = gpucholmod_triangle ("cholshift_gpu", R);
  i = gpucholmod_index ("cholshift_gpu", "I", i, columns (R));
  j = gpucholmod_index ("cholshift_gpu", "J", j, columns (R));
  [R1, code, pivot, message] = gpucholmod_mex ("shift", R, i, j);
  if (code == 4)  # GPUCHOLMOD_BAD_DIAGONAL
    others = [1:i-1, i+1:columns(R)];
    R1 = gpucholmod_reordered (R, [others(1:j-1), i, others(j:end)]);
  elseif (code != 0)
    error ("gpucholmod:shift", "cholshift_gpu: %s", message);
  endif
endfunction
