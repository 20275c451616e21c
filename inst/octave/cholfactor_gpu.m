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
## F is a handle: what is done to a copy by "=" is done to F. err as of cholupdate_gpu: 1, the matrix would not be
## positive definite. Without err that is an error. F is then as it was, unless the error has the identifier
## "gpucholmod:half_modified": on a GPU a call may fail while it is changing F, whose numbers are then lost. Every later
## use of F raises that error too: clear F.

classdef cholfactor_gpu < handle
  properties (Access = private)
    number = uint64 (0)
  endproperties

  methods
    function self = cholfactor_gpu (R, backend = "cpu", device = -1)
      if (isa (R, "cholfactor_gpu"))
        self.number = cholfactor_gpu.told ("copy", R.number);
        return;
      endif
      [number, code, message] = gpucholmod_factor ("create", R, backend, device);
      if (code != 0)
        error ("gpucholmod:hold", "cholfactor_gpu: %s", message);
      endif
      self.number = number;
    endfunction

    function delete (self)
      gpucholmod_factor ("release", self.number);
    endfunction

    function varargout = update (self, X, op = "+", scale = 1)
      [varargout{1:nargout}] = cholfactor_gpu.changed (nargout, "update", self.number, X, op, scale);
    endfunction
    function varargout = insert (self, j, X)
      [varargout{1:nargout}] = cholfactor_gpu.changed (nargout, "insert", self.number, j, X);
    endfunction
    function varargout = remove (self, j)
      [varargout{1:nargout}] = cholfactor_gpu.changed (nargout, "remove", self.number, j);
    endfunction
    function varargout = shift (self, i, j)
      [varargout{1:nargout}] = cholfactor_gpu.changed (nargout, "shift", self.number, i, j);
    endfunction

    function x = mldivide (self, b)
      if (! isa (self, "cholfactor_gpu"))
        error ("cholfactor_gpu: a matrix cannot be divided by F");
      endif
      x = cholfactor_gpu.told ("solve", self.number, b);
    endfunction

    function log = logdet (self)
      log = cholfactor_gpu.told ("logdet", self.number);
    endfunction
    function d = diag (self)
      d = cholfactor_gpu.told ("diagonal", self.number);
    endfunction
    function R = full (self)
      R = cholfactor_gpu.told ("get", self.number);
    endfunction
    function n = order (self)
      n = cholfactor_gpu.told ("order", self.number);
    endfunction
    function name = backend (self)
      name = cholfactor_gpu.told ("backend", self.number);
    endfunction
    function name = precision (self)
      name = cholfactor_gpu.told ("precision", self.number);
    endfunction
    function other = copy (self)
      other = cholfactor_gpu (self);
    endfunction
    function disp (self)
      printf ("  Cholesky factor of order %d, %s, backend \"%s\"\n", order (self), precision (self), backend (self));
    endfunction
  endmethods

  methods (Static, Access = private)
    function result = told (varargin)
      [result, code, message] = gpucholmod_factor (varargin{:});
      if (code != 0)
        gpucholmod_failure ("cholfactor_gpu", "gpucholmod:factor", code, message);
      endif
    endfunction

    ## Returns 1 if the matrix would not be positive definite and the caller takes that. Other failures are errors.
    function err = changed (taken, varargin)
      [~, code, message] = gpucholmod_factor (varargin{:});
      err = double (code == 1);
      if (code != 0 && (err == 0 || taken < 1))
        gpucholmod_failure ("cholfactor_gpu", "gpucholmod:update", code, message);
      endif
    endfunction
  endmethods
endclassdef
