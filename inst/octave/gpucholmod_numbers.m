## X = gpucholmod_numbers (who, name, X)
##
## X as a full real matrix of doubles or singles: integers become doubles, and logical values
## are an error, as for cholupdate. who, name: of the function and of its argument, for errors.

function X = gpucholmod_numbers (who, name, X)
  if (! isnumeric (X) || ndims (X) != 2)
    error ("%s: %s must be a matrix of numbers", who, name);
  elseif (iscomplex (X))
    error ("%s: %s is complex, which is not supported", who, name);
  endif
  X = full (X);
  if (! isfloat (X))
    X = double (X);
  endif
  [i, j] = find (! isfinite (X), 1);
  if (! isempty (i))
    error ("%s: %s has a value that is not finite, at (%d, %d)", who, name, i, j);
  endif
endfunction
