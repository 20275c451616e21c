## [R1, err] = cholupdate_gpu (R, X)
## [R1, err] = cholupdate_gpu (R, X, op)
## [R1, err] = cholupdate_gpu (R, X, op, backend)
##
## The Cholesky factor of R'*R + X*X', X n x k, any k: what cholupdate does for k = 1, by one pass over R for all columns.
## op: "+" or "update"; "-" or "downdate", for R'*R - X*X'; or a vector of k weights, for R'*R + X*diag(op)*X'. R is upper triangular, real,
## double or single. err: 0; 1, a downdate that would leave the matrix not positive definite; 2, R is singular. Without err, these are errors.
## Where err is not 0, R1 is R. backend: "cpu", or "gpu", where the library was built for one. A factor that stays on a GPU: cholfactor_gpu.

function [R1, err] = cholupdate_gpu (R, X, op = "+", backend = "cpu")
  if (nargin < 2 || nargin > 4)
    print_usage ();
  endif
  n = columns (R);
  if (! isfloat (R) || ! isreal (R) || ndims (R) != 2 || rows (R) != n)
    error ("cholupdate_gpu: R must be a real square matrix");
  elseif (! isfloat (X) || ! isreal (X) || ndims (X) != 2 || rows (X) != n)
    error ("cholupdate_gpu: dimension mismatch between R and X");
  endif
  weights = gpucholmod_weights ("cholupdate_gpu", op, columns (X));
  if (isa (R, "single") || isa (X, "single"))
    R = single (R);
    X = single (X);
  endif
  if (! strcmp (backend, "cpu"))
    R1 = R;
    if (any (diag (R) <= 0))
      err = 2;
      if (nargout < 2)
        error ("gpucholmod:update", "cholupdate_gpu: the diagonal of R must be positive");
      endif
      return;
    endif
    F = cholfactor_gpu (R, backend);
    err = update (F, X, weights);
    if (err == 0)
      R1 = full (F);
    elseif (nargout < 2)
      error ("gpucholmod:update", "cholupdate_gpu: the modified matrix is not positive definite");
    endif
    return;
  endif
  [R1, code, pivot, message] = gpucholmod_mex ("update", triu (full (R)), full (X), weights);
  err = (code == 1) + 2 * (code == 4);
  if (code != 0 && (err == 0 || nargout < 2))
    error ("gpucholmod:update", "cholupdate_gpu: %s", message);
  endif
endfunction
