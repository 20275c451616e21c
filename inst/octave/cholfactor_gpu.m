## F = cholfactor_gpu (R)
## F = cholfactor_gpu (R, backend)
## F = cholfactor_gpu (R, "gpu", device)
##
## A Cholesky factor with memory of its own, which is modified where it is: in ordinary memory (backend "cpu"), or on a
## GPU ("gpu"; device: its number, from 0; the first that can be used). R is upper triangular, real, double or single,
## which the factor is then as well; integers become doubles. Rows with a negative diagonal entry are multiplied by -1;
## an R with zeros on its diagonal can be updated. With A = R'*R,
##
##   err = update (F, X)            A + X*X'
##   err = update (F, X, op)        as cholupdate_gpu: "+", "-", or a weight for each column of X
##   err = update (F, X, op, scale) scale*A + ...
##   err = insert (F, j, X)         rows and columns j, j + 1, ... more, as cholinsert_gpu
##   err = remove (F, j)            without row and column j
##   err = shift (F, i, j)          row and column i become number j, as cholshift_gpu
##   x = F \ b                      A \ b
##   logdet (F)                     log (det (A))
##   diag (F), full (F)             of the upper factor: its diagonal, and itself
##   order (F), backend (F), precision (F)
##   copy (F)                       another one, that is the same
##
## F is a handle: what is done to a copy by "=" is done to F. err as of cholupdate_gpu: 1, the matrix would not be positive definite. Without err
## that is an error. F is then as it was, unless the error has the identifier "gpucholmod:half_modified": on a GPU a
## call may fail while it is changing F, whose numbers are then lost. Every later use of F raises that error too: clear
## F.

classdef cholfactor_gpu < handle
  properties (Access = private)
    number = uint64 (0)
  endproperties

  methods
    function self = cholfactor_gpu (R, backend = "cpu", device = -1)
      if (isa (R, "uint64"))
        self.number = R;
        return;
      endif
      R = gpucholmod_triangle ("cholfactor_gpu", R);
      if (! ischar (backend) || ! any (strcmp (backend, {"cpu", "gpu"})))
        error ('cholfactor_gpu: BACKEND must be "cpu" or "gpu"');
      elseif (! isscalar (device) || device != fix (device) || device < -1 || device > intmax ("int32"))
        error ("cholfactor_gpu: DEVICE must be the number of a GPU");
      endif
      [number, code, pivot, message] = gpucholmod_mex ("hold", R, double (strcmp (backend, "gpu")), double (device));
      if (code != 0)
        error ("gpucholmod:hold", "cholfactor_gpu: %s", message);
      endif
      self.number = number;
    endfunction

    function delete (self)
      gpucholmod_mex ("release", self.number);
    endfunction

    function err = update (self, X, op = "+", scale = 1)
      X = gpucholmod_numbers ("cholfactor_gpu", "X", X);
      if (rows (X) != order (self))
        error ("cholfactor_gpu: dimension mismatch between F and X");
      elseif (! isscalar (scale) || ! isfloat (scale) || ! isreal (scale))
        error ("cholfactor_gpu: SCALE must be a number");
      endif
      weights = gpucholmod_weights ("cholfactor_gpu", op, columns (X));
      [none, code, pivot, message] = gpucholmod_mex ("modify", self.number, double (X), weights, double (scale));
      err = cholfactor_gpu.outcome (code, message, nargout);
    endfunction

    function err = insert (self, j, X)
      X = gpucholmod_numbers ("cholfactor_gpu", "X", X);
      if (rows (X) != order (self) + columns (X))
        error ("cholfactor_gpu: dimension mismatch between F and X");
      endif
      j = gpucholmod_index ("cholfactor_gpu", "J", j, order (self) + 1);
      [none, code, pivot, message] = gpucholmod_mex ("insert_held", self.number, j, double (X));
      err = cholfactor_gpu.outcome (code, message, nargout);
    endfunction

    function err = remove (self, j)
      j = gpucholmod_index ("cholfactor_gpu", "J", j, order (self));
      [none, code, pivot, message] = gpucholmod_mex ("remove_held", self.number, j);
      err = cholfactor_gpu.outcome (code, message, nargout);
    endfunction

    function err = shift (self, i, j)
      i = gpucholmod_index ("cholfactor_gpu", "I", i, order (self));
      j = gpucholmod_index ("cholfactor_gpu", "J", j, order (self));
      [none, code, pivot, message] = gpucholmod_mex ("shift_held", self.number, i, j);
      err = cholfactor_gpu.outcome (code, message, nargout);
    endfunction

    function x = mldivide (self, b)
      if (islogical (b))
        b = double (b);
      endif
      b = gpucholmod_numbers ("cholfactor_gpu", "b", b);
      if (! isa (self, "cholfactor_gpu") || rows (b) != order (self))
        error ("cholfactor_gpu: dimension mismatch between F and b");
      endif
      x = cholfactor_gpu.told ("solve", self.number, double (b));
    endfunction

    function log = logdet (self)
      log = cholfactor_gpu.told ("logdet", self.number);
    endfunction
    function d = diag (self)
      d = cholfactor_gpu.told ("diagonal", self.number);
    endfunction
    function R = full (self)
      R = cholfactor_gpu.told ("store", self.number);
    endfunction
    function n = order (self)
      n = cholfactor_gpu.told ("order", self.number);
    endfunction
    function name = backend (self)
      name = {"cpu", "gpu"}{1 + cholfactor_gpu.told("home", self.number)};
    endfunction
    function name = precision (self)
      name = {"single", "double"}{cholfactor_gpu.told("scalar", self.number) / 4};
    endfunction
    function other = copy (self)
      other = cholfactor_gpu (cholfactor_gpu.told ("copy", self.number));
    endfunction
    function disp (self)
      printf ("  Cholesky factor of order %d, %s, backend \"%s\"\n", order (self), precision (self), backend (self));
    endfunction
  endmethods

  methods (Static, Access = private)
    function result = told (varargin)
      [result, code, pivot, message] = gpucholmod_mex (varargin{:});
      if (code != 0)
        gpucholmod_failure ("cholfactor_gpu", "gpucholmod:factor", code, message);
      endif
    endfunction

    ## 1 where the caller takes it; otherwise that is an error, as everything else is.
    function err = outcome (code, message, taken)
      err = double (code == 1);
      if (code != 0 && (err == 0 || taken < 1))
        gpucholmod_failure ("cholfactor_gpu", "gpucholmod:update", code, message);
      endif
    endfunction
  endmethods
endclassdef
