## The functions of inst/octave beside Octave's own. Stops at the first thing that is wrong.
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
  bad = R;
  bad(n, n) = 0;
  [R1, err] = cholupdate_gpu (bad, zeros (n, 1));
  assert (err, 2);

  for j = unique ([1, ceil(n / 2), n])
    kept = [1:j-1, j+1:n];
    same (choldelete_gpu (R, j), chol (A(kept, kept)), eps * n);
    theirs = choldelete (R, j);  # whose diagonal may be negative
    same (theirs' * theirs, A(kept, kept), eps * n);
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
  endif
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
disp ("Octave: as its own cholupdate, cholinsert, choldelete");
