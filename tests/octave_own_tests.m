## Runs the tests that Octave's own cholupdate, cholinsert, choldelete and cholshift are installed with, on the
## functions of inst/octave: those blocks that have no complex numbers, which are not supported. Stops if one of them
## fails.
1;

file = fullfile (__octave_config_info__ ("octtestsdir"), "libinterp", "corefcn", "chol.cc-tst");
if (! exist (file, "file"))
  printf ("Octave: its own tests are not installed\n");
  return;
endif
blocks = strsplit (strrep (fileread (file), "\r", ""), "\n%!");
## a block begins at a line without a space after "%!"
begins = cellfun (@(line) ! isempty (line) && ! isspace (line(1)), blocks);
blocks = arrayfun (@(i) strjoin (blocks(cumsum (begins) == i), "\n%!"), 1:sum (begins), "UniformOutput", false);
names = '\<(cholupdate|cholinsert|choldelete|cholshift)\>';
of_ours = ! cellfun (@isempty, regexp (blocks, names));
complex = ! cellfun (@isempty, regexp (blocks, '\<Ac\>'));
shared = strncmp (blocks, "shared A, u, Ac, uc", 19);
assert (sum (shared), 1);

## `test` reads its tests from a file.
folder = tempname ();
mkdir (folder);
unwind_protect
  to = fullfile (folder, "own.tst");
  out = fopen (to, "w");
  fprintf (out, "%%!%s\n", regexprep (blocks(shared | of_ours & ! complex), names, "$1_gpu"){:});
  fclose (out);
  [passed, run] = test (to, "quiet");
unwind_protect_cleanup
  confirm_recursive_rmdir (false, "local");
  rmdir (folder, "s");
end_unwind_protect
assert (run > 0 && passed == run);
printf ("Octave: %d of its own tests run, and pass; %d have complex numbers\n", run, sum (of_ours & complex));
