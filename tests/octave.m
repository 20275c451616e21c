## The functions of inst/octave beside Octave's own, and factors with memory of their own. Stops at the first thing that
## is wrong.
1;
function same (X, Y, eps)
  assert (norm (X - Y, 1) <= 100 * eps * norm (Y, 1));
endfunction

rand ("seed", 1);
randn ("seed", 1);
for n = [1 2 7 40]
  B = randn (n + 3, n);
  A = B' * B + eye (n);
  R = chol (A);
  x = randn (n, 1);
  same (cholupdate_gpu (R, x), cholupdate (R, x), eps);
  same (cholupdate_gpu (cholupdate_gpu (R, x, "update"), x, "-"), cholupdate (cholupdate (R, x), x, "-"), eps);
  X = randn (n, 5);
  same (cholupdate_gpu (R, X), chol (A + X * X'), eps * n);
  same (cholupdate_gpu (R, X, [1 2 0 0.5 -1e-3]), chol (A + X * diag ([1 2 0 0.5 -1e-3]) * X'), eps * n);
  single_R = cholupdate_gpu (single (R), x);
  assert (isa (single_R, "single"));
  same (double (single_R), cholupdate (R, x), double (eps ("single")));

  ## as Octave's: err, or an error
  [R1, err] = cholupdate_gpu (R, x);
  [theirs, their_err] = cholupdate (R, x);
  assert (err, their_err);
  [R1, err] = cholupdate_gpu (R, 100 * x, "-");
  [theirs, their_err] = cholupdate (R, 100 * x, "-");
  assert ([err, their_err], [1, 1]);
  assert (R1, R);
  failed = false;
  try
    cholupdate_gpu (R, 100 * x, "downdate");
  catch
    failed = true;
  end_try_catch
  assert (failed);

  ## rows with a negative diagonal entry keep their sign, as Octave's do; zeros are updated, and not downdated
  turned = R;
  turned(n, :) *= -1;
  turned(1, :) *= -1;
  same (cholupdate_gpu (turned, x), cholupdate (turned, x), 10 * eps);
  same (cholupdate_gpu (turned, x / 100, "-"), cholupdate (turned, x / 100, "-"), 10 * eps);
  same (full (cholfactor_gpu (turned)), sign (diag (turned)) .* turned, eps);
  zero = R;
  zero(n, n) = 0;
  for Z = {zero, zeros(n)}
    R1 = cholupdate_gpu (Z{1}, x);
    theirs = cholupdate (Z{1}, x);  # whose diagonal may be negative
    same (R1' * R1, theirs' * theirs, eps);
    assert (all (diag (R1) >= 0));
    [R1, err] = cholupdate_gpu (Z{1}, x / 100, "-");
    [theirs, their_err] = cholupdate (Z{1}, x / 100, "-");
    assert ([err, their_err], [2, 2]);
    assert (R1, Z{1});
    F = cholfactor_gpu (Z{1});
    assert (logdet (F), -Inf);
    update (F, eye (n));
    same (full (F), chol (Z{1}' * Z{1} + eye (n)), 100 * eps);
  endfor
  clear F

  for j = unique ([1, ceil(n / 2), n])
    kept = [1:j-1, j+1:n];
    same (choldelete_gpu (R, j), chol (A(kept, kept)), eps * n);
    theirs = choldelete (R, j);  # whose diagonal may be negative
    same (theirs' * theirs, A(kept, kept), eps * n);
    for i = unique ([1, min(2, n), n])
      moved = 1:n;
      moved(i) = [];
      moved = [moved(1:j-1), i, moved(j:end)];
      shifted = cholshift_gpu (R, i, j);
      same (shifted, chol (A(moved, moved)), eps * n);
      theirs = cholshift (R, i, j);  # whose diagonal may be negative
      same (theirs' * theirs, shifted' * shifted, eps * n);
      shifted = cholshift_gpu (single (R), int8 (i), j);  # Octave's is double, too
      same (shifted, chol (double (single (R(:, moved)))' * double (single (R(:, moved)))), eps * n);
    endfor
    if (n > 1)
      without = chol (A(kept, kept));
      same (cholinsert_gpu (without, j, A(:, j)), R, eps * n);
      theirs = cholinsert (without, j, A(:, j));
      same (theirs' * theirs, A, eps * n);
      [R1, err] = cholinsert_gpu (without, j, A(:, j) - 1e6 * ((1:n)' == j));
      [theirs, their_err] = cholinsert (without, j, A(:, j) - 1e6 * ((1:n)' == j));
      assert ([err, their_err], [1, 1]);
    endif
  endfor
  if (n > 3)
    without = chol (A([1, 4:n], [1, 4:n]));
    same (cholinsert_gpu (without, 2, A(:, 2:3)), R, eps * n);
    single_R = cholinsert_gpu (single (without), 2, A(:, 2:3));
    assert (isa (single_R, "single"));
    same (double (single_R), R, double (eps ("single")) * n);
    single_R = choldelete_gpu (single (R), 2);
    assert (isa (single_R, "single"));
    same (double (single_R), chol (A([1, 3:n], [1, 3:n])), double (eps ("single")) * n);
  endif
endfor

## A factor that stays where it is, with every backend that there is.
backends = {"cpu"};
try
  cholfactor_gpu (R, "gpu");
  backends{end + 1} = "gpu";
catch problem
  assert (problem.identifier, "gpucholmod:hold");
  assert (! isempty (strfind (problem.message, "CUDA")) || ! isempty (strfind (problem.message, "NVIDIA")));
end_try_catch
for i = 1:numel (backends)
  for kind = {"double", "single"}
    tolerance = double (eps (kind{1})) * n;
    F = cholfactor_gpu (cast (R, kind{1}), backends{i});
    assert ({backend(F), precision(F), order(F)}, {backends{i}, kind{1}, n});
    X = randn (n, 3);
    assert (update (F, X), 0);
    assert (isa (full (F), kind{1}));
    same (double (full (F)), chol (A + X * X'), tolerance);
    G = copy (F);
    H = F;  # the same factor
    update (F, X, "-");
    update (H, X, [0.5 1 2], 2);
    B = 2 * A + X * diag ([0.5 1 2]) * X';
    same (double (full (F)), chol (B), 10 * tolerance);
    same (double (full (G)), chol (A + X * X'), tolerance);
    b = randn (n, 2);
    assert (norm (B * (F \ b) - b, 1) <= 1e4 * tolerance * norm (b, 1));
    assert (logdet (F), 2 * sum (log (diag (F))), 100 * eps * n);
    same (diag (F), double (diag (full (F))), tolerance);
    before = full (F);
    assert (update (F, 100 * X, "-"), 1);
    assert (full (F), before);
    assert (update (F, zeros (n, 0), zeros (1, 0)), 0);
    remove (F, 4);
    same (double (full (F)), chol (B([1:3, 5:n], [1:3, 5:n])), 10 * tolerance);
    insert (F, 4, B(:, 4));
    same (double (full (F)), chol (B), 10 * tolerance);
    assert (insert (F, 1, [-1; zeros(n, 1)]), 1);
    moved = [1, 3:6, 2, 7:n];
    assert (shift (F, 2, 6), 0);
    same (double (full (F)), chol (B(moved, moved)), 10 * tolerance);
    shift (F, 6, 2);
    same (double (full (F)), chol (B), 10 * tolerance);
    assert (order (F), n);
    same (double (cholupdate_gpu (cast (R, kind{1}), X, "+", backends{i})), chol (A + X * X'), tolerance);
    [R1, err] = cholupdate_gpu (R, 100 * X, "-", backends{i});
    assert (err, 1);
    assert (R1, R);
  endfor
endfor

assert (size (cholupdate_gpu (zeros (0, 0), zeros (0, 2))), [0, 0]);
refused = {{R, x(2:end)}, {R(:, 2:end), x}, {R, x, "?"}, {1i * R, x}, {"a", "b"}, {R, nan(40, 1)}, {R, x, [1 2]}};
for i = 1:numel (refused)
  failed = false;
  try
    cholupdate_gpu (refused{i}{:});
  catch
    failed = true;
  end_try_catch
  assert (failed);
endfor
told = {{{R, 1i * x}, "X is complex"}, {{1i * R, x}, "R is complex"}, ...
        {{R, nan(40, 1)}, "X has a value that is not finite, at (1, 1)"}, ...
        {{R + diag(nan(39, 1), 1), x}, "R has a value that is not finite, at (1, 2)"}, ...
        {{R, "a"}, "X must be a matrix of numbers"}};
for i = 1:numel (told)
  message = "";
  try
    cholupdate_gpu (told{i}{1}{:});
  catch problem
    message = problem.message;
  end_try_catch
  assert (! isempty (strfind (message, told{i}{2})), message);
endfor
clear F G H
F = cholfactor_gpu (chol (A));
## a failure that leaves a factor half modified has an identifier of its own
for code = [2, 11]
  try
    gpucholmod_failure ("cholfactor_gpu", "gpucholmod:update", code, "told");
  catch problem
  end_try_catch
  assert (problem.identifier, {"gpucholmod:update", "gpucholmod:half_modified"}{1 + (code == 11)});
  assert (problem.message, "cholfactor_gpu: told");
endfor
of_factor = {@() update(F, x(2:end)), @() update(F, x, "?"), @() update(F, 100 * x, "-"), ...
             @() update(F, nan (n, 1)), @() update(F, x, "+", 0), @() insert(F, n + 2, ones (n + 1, 1)), ...
             @() insert(F, 1, x), @() remove(F, 0), @() shift(F, 0, 1), @() shift(F, 1, n + 1), ...
             @() shift(F, 1), @() cholshift_gpu(R, 1, n + 1), @() cholshift_gpu(R, [1 2], 1), ...
             @() cholshift_gpu(R(2:end, :), 1, 2), @() cholshift_gpu(R, 1.5, 1), @() cholshift_gpu(R, 1, NaN), ...
             @() cholshift_gpu(R, 1), @() cholshift_gpu(1i * R, 1, 2), @() cholshift_gpu(R, "a", 1), ...
             @() F \ x(2:end), @() cholfactor_gpu(1i * A), @() cholfactor_gpu(A, "abacus"), ...
             @() cholfactor_gpu("a"), @() cholfactor_gpu(A, "gpu", Inf), ...
             @() cholupdate_gpu(R, x, "+", "abacus"), @() gpucholmod_factor("order", uint64 (8)), ...
             @() gpucholmod_factor("order", 1), @() gpucholmod_factor("order"), ...
             @() gpucholmod_factor("orders", uint64 (8)), @() gpucholmod_factor(1)};
before = full (F);
for i = 1:numel (of_factor)
  failed = false;
  try
    of_factor{i}();
  catch
    failed = true;
  end_try_catch
  assert (failed);
endfor
assert (full (F), before);
clear F of_factor
assert (! mislocked ("gpucholmod_factor"));  # every factor has been given back
printf ("Octave: as its own cholupdate, cholinsert, choldelete, cholshift; factors of their own in: %s\n", ...
        strjoin (backends, ", "));
