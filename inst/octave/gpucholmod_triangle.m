## R = gpucholmod_triangle (who, R)
##
## The upper triangle of R as gpucholmod_numbers gives it; R has to be square. who: what an error names.

function R = gpucholmod_triangle (who, R)
  if (rows (R) != columns (R))
    error ("%s: R must be a square matrix", who);
  elseif (isnumeric (R))
    R = triu (full (R));
  endif
  R = gpucholmod_numbers (who, "R", R);
endfunction
