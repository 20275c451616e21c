## gpucholmod_failure (who, id, code, message)
##
## Raises the error for a code, which is not 0, and a message that gpucholmod_factor has returned. who: what the error
## names. id: its identifier, unless the call failed while it was changing a factor, which can then only be cleared:
## then the identifier is "gpucholmod:half_modified".

function gpucholmod_failure (who, id, code, message)
  half_modified = 11;  # GPUCHOLMOD_HALF_MODIFIED
  if (code == half_modified)
    id = "gpucholmod:half_modified";
  endif
  error (id, "%s: %s", who, message);
endfunction
