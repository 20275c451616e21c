## weights = gpucholmod_weights (who, op, k)
##
## The weights that `op` stands for, of k columns: "+" or "update", "-" or "downdate", or a vector of them. who: what an error names.

function weights = gpucholmod_weights (who, op, k)
  if (ischar (op) && any (strcmp (op, {"+", "update"})))
    weights = ones (1, k);
  elseif (ischar (op) && any (strcmp (op, {"-", "downdate"})))
    weights = -ones (1, k);
  elseif (isfloat (op) && isreal (op) && numel (op) == k)
    weights = double (full (op));
  else
    error ('%s: OP must be "+", "update", "-", "downdate", or a weight for each column of X', who);
  endif
endfunction
