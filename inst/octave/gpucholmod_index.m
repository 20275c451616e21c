## j = gpucholmod_index (who, name, j, most)
##
## Returns j as a double, which must be one of 1 .. most. who, name: of the function and of its argument, for errors.

function j = gpucholmod_index (who, name, j, most)
  if (! (isnumeric (j) || islogical (j)) || ! isscalar (j) || j != fix (j) || j < 1 || j > most)
    error ("%s: index %s out of range", who, name);
  endif
  j = double (j);
endfunction
