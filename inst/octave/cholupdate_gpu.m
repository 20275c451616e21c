## [R1, err] = cholupdate_gpu (R, X)
## [R1, err] = cholupdate_gpu (R, X, op)
## [R1, err] = cholupdate_gpu (R, X, op, backend)
##
## The Cholesky factor of R'*R + X*X', X n x k, any k: what cholupdate does for k = 1, by one pass over R for all columns.
## op: "+" or "update"; "-" or "downdate", for R'*R - X*X'; or a vector of k weights, for R'*R + X*diag(op)*X'. R is upper triangular, real,
## double or single; integers become doubles, logical values are an error, as by cholupdate. A row whose diagonal entry is negative stays so, as by
## cholupdate. An R with zeros on its diagonal is updated too. err: 0; 1, a downdate that would leave the matrix not
## positive definite; 2, a downdate of a singular R. Without err, these are errors.
## Where err is not 0, R1 is R. backend: "cpu", or "gpu", where the library was built for one. A factor that stays on a GPU: cholfactor_gpu.

function [R1, err] = cholupdate_gpu (R, X, op = "+", backend = "cpu")
  if (nargin < 2 || nargin > 4)
    print_usage ();
  endif
  given = R;
  R = gpucholmod_triangle ("cholupdate_gpu", R);
  X = gpucholmod_numbers ("cholupdate_gpu", "X", X);
  if (rows (X) != rows (R))
    error ("cholupdate_gpu: dimension mismatch between R and X");
  endif
  weights = gpucholmod_weights ("cholupdate_gpu", op, columns (X));
  if (isa (R, "single") || isa (X, "single"))
    R = single (R);
    X = single (X);
  endif
  if (strcmp (backend, "cpu"))
    [R1, code, pivot, message] = gpucholmod_mex ("update", R, X, weights);
    err = (code == 1) + 2 * (code == 4);
  else
    err = code = 2 * (any (diag (R) == 0) && any (weights < 0));
    message = "columns cannot be taken away from an R with zeros on its diagonal";
    if (err == 0)
      F = cholfactor_gpu (R, backend);
      err = code = update (F, X, weights);
      message = "the modified matrix is not positive definite";
    endif
    if (err == 0)
      R1 = full (F);
    endif
  endif
  if (code != 0)
    if (err == 0 || nargout < 2)
      error ("gpucholmod:update", "cholupdate_gpu: %s", message);
    endif
    R1 = given;
    return;
  endif
  negative = diag (R) < 0;
  R1(negative, :) = -R1(negative, :);
endfunction
