## gpucholmod_failure (who, id, code, message)
##
## Raises the error for a code of the library that is not 0, which gpucholmod_mex has returned with a message. who: what the error names. id: its
## identifier; but "gpucholmod:half_modified" where a call has failed while it was changing a factor, which can then only be cleared.

function gpucholmod_failure (who, id, code, message)
  half_modified = 11;  # GPUCHOLMOD_HALF_MODIFIED
  if (code == half_modified)
    id = "gpucholmod:half_modified";
  endif
  error (id, "%s: %s", who, message);
endfunction
