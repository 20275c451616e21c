## The functions of inst/octave take what Octave's own take, with the same result, and fail where these fail. Stops at
## the first thing that is wrong.
1;

## Returns what a function makes of its arguments: struct (failed, err, A: R1'*R1, class).
function made = outcome (f, taken, varargin)
  made = struct ("failed", false, "err", 0, "A", [], "class", "");
  out = cell (1, taken);
  try
    [out{:}] = f (varargin{:});
  catch
    made.failed = true;
    return;
  end_try_catch
  if (taken == 2)
    made.err = out{2};
  endif
  if (made.err == 0)
    made.A = double (out{1})' * double (out{1});
    made.class = class (out{1});
    assert (istriu (out{1}));
  endif
endfunction

## Returns true if there is a result.
function works = as_octave (name, varargin)
  taken = 1 + any (strcmp (name, {"cholupdate", "cholinsert"}));
  ours = outcome (str2func ([name "_gpu"]), taken, varargin{:});
  theirs = outcome (str2func (name), taken, varargin{:});
  assert ({ours.failed, ours.err, ours.class}, {theirs.failed, theirs.err, theirs.class}, name);
  works = ! theirs.failed && theirs.err == 0;
  if (works && ! isempty (theirs.A))
    assert (norm (ours.A - theirs.A, 1) <= 300 * eps (theirs.class) * max (1, norm (theirs.A, 1)), name);
  endif
endfunction

whole = [3 1 2 1; 0 4 1 2; 0 0 5 1; 0 0 0 6];
x = [1; 2; 0; 1];
row = [1; 40; 2; 1; 3];

## every class, of the factor, of the columns, and of the numbers of rows
classes = {"double", "single", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", ...
           "logical", "char"};
for i = 1:numel (classes)
  to = @(A) feval (classes{i}, A);
  works = [as_octave("cholupdate", to (whole), x), as_octave("cholupdate", whole, to (x)), ...
           as_octave("cholupdate", to (whole), to (x)), as_octave("cholupdate", single (whole), to (x)), ...
           as_octave("cholinsert", to (whole), 2, row), as_octave("cholinsert", whole, 2, to (row)), ...
           as_octave("cholinsert", to (whole), 2, single (row)), ...
           as_octave("choldelete", to (whole), 2), as_octave("cholshift", to (whole), 3, 1)];
  assert (all (works == ! any (strcmp (classes{i}, {"logical", "char"}))));
  if (! strcmp (classes{i}, "char"))
    assert (as_octave ("cholinsert", eye (3), to (1), [9; 1; 1; 1]));
    assert (as_octave ("choldelete", whole, to (1)));
    assert (as_octave ("cholshift", whole, 2, to (1)));
    assert (as_octave ("cholshift", whole, to (1), 4));
  endif
endfor
assert (full (cholfactor_gpu (uint64 (whole))), whole);
assert (class (cholfactor_gpu (int8 (whole)) \ (x > 0)), "double");

## negative entries and zeros on the diagonal, and what is below it
negative = diag ([1 -1 1 -1]) * whole;
zero = arrayfun (@(j) whole .* ((1:4)' != j | (1:4) != j), 1:4, "UniformOutput", false);
below = whole;
below(2, 1) = 7;
for R = [{whole, negative, -whole, zeros(4), below, [zeros(1, 4); whole(2:4, :)], diag([3 0 -2 0])}, zero]
  R = R{1};
  singular = any (diag (R) == 0);
  for p = {"double", "single", "int8"}
    of = cast (R, p{1});
    if (below(2, 1) != R(2, 1))  # Octave leaves what is there, or takes it along
      assert (as_octave ("cholupdate", of, x));
      assert (as_octave ("cholupdate", of, x / 100, "-"), ! singular);
      assert (as_octave ("cholupdate", of, zeros (4, 1)));
      as_octave ("cholupdate", of, 100 * x, "-");
    endif
    for j = 1:4
      other = 5 - j;
      if (below(2, 1) != R(2, 1))
        as_octave ("cholinsert", of, j, row + 60 * ((1:5)' == j));
        as_octave ("cholshift", of, j, other);
        as_octave ("cholshift", of, j, j);
      endif
      assert (as_octave ("choldelete", triu (of), j));
    endfor
  endfor
endfor
assert (istriu (cholupdate_gpu (below, x)) && istriu (cholshift_gpu (below, 1, 3)));
assert (cholupdate_gpu (below, x), cholupdate_gpu (whole, x));
assert (cholshift_gpu (below, 2, 2), whole);
assert (all (diag (cholshift_gpu (negative, 1, 3)) > 0) && all (diag (choldelete_gpu (zero{2}, 1)) >= 0));

## sizes and numbers of rows
assert (as_octave ("cholupdate", zeros (0, 0), zeros (0, 1)));
assert (as_octave ("cholinsert", zeros (0, 0), 1, 4));
assert (as_octave ("choldelete", 5, 1));
assert (as_octave ("choldelete", 0, 1));
assert (as_octave ("cholshift", 5, 1, 1));
refused = {{"cholupdate", whole, x'}, {"cholupdate", whole(1:3, :), x}, {"cholupdate", whole, "abcd"}, ...
           {"cholupdate", whole, x, "?"}, {"cholupdate", whole, x, 1i}, {"cholupdate", {1}, 1}, ...
           {"cholupdate", whole}, ...
           {"cholinsert", whole, 0, row}, {"cholinsert", whole, 6, row}, {"cholinsert", whole, [1 2], row}, ...
           {"cholinsert", whole, 1, x}, {"cholinsert", whole, 1}, {"choldelete", whole, 0}, ...
           {"choldelete", whole, 5}, ...
           {"choldelete", whole, []}, {"choldelete", whole, [1 2]}, {"choldelete", whole, "a"}, ...
           {"choldelete", whole}, ...
           {"choldelete", zeros(0, 0), 1}, {"cholshift", whole, 0, 1}, {"cholshift", whole, 1, 5}, ...
           {"cholshift", whole, NaN, 1}, {"cholshift", whole, 1, Inf}, {"cholshift", whole, [1 2], 3}, ...
           {"cholshift", whole, 1, []}, {"cholshift", whole(1:2, :), 1, 2}, {"cholshift", whole, 1}, ...
           {"cholshift", zeros(0, 0), 1, 1}, {"cholshift", {1}, 1, 1}};
for i = 1:numel (refused)
  assert (! as_octave (refused{i}{:}));
endfor
printf ("Octave: arguments as its own functions take them\n");
