## Times of the functions of inst/octave beside Octave's own, which do one column, row or move in a call.
##
##   make -f tools/library.mk octave BUILD=build
##   octave-cli --path build/octave inst/bench/octave.m [seconds [n ...]]
##
## R is the factor of an n x n matrix; rows are inserted and deleted in the middle, and moved from there to the end.
## Prints microseconds a call: medians of samples that are taken in turn for `seconds` (1), at least 5 of each function.
## A sample is as many calls as take about a millisecond.
1;

## Returns the seconds that a call takes in the mean of m calls.
function t = sample (f, args, m)
  tic;
  for call = 1:m
    result = f (args{:});
  endfor
  t = toc / m;
endfunction

## Returns the medians of two functions, in seconds.
function t = in_turn (own, ours, args, seconds)
  m = max (1, round (1e-3 / sample (own, args, 3)));
  sample (ours, args, m);
  samples = zeros (0, 2);
  began = time ();
  do
    samples(end + 1, :) = [sample(own, args, m), sample(ours, args, m)];
  until (rows (samples) >= 5 && time () - began > seconds)
  t = median (samples, 1);
endfunction

given = cellfun (@str2double, argv ());
seconds = [given(1:min (1, end)); 1](1);
sizes = given(2:end)';
if (isempty (sizes))
  sizes = [20, 100, 500, 1000, 2000];
endif
if (any (! (given > 0)))
  error ("octave.m: give a number of seconds, and orders of matrices");
endif

rand ("seed", 1);
printf ("%-12s %6s %12s %12s %6s\n", "", "n", "Octave", "gpucholmod", "ratio");
for n = sizes
  X = rand (n, n);
  A = X' * X / n + eye (n);
  R = chol (A);
  middle = ceil (n / 2);
  others = [1:middle-1, middle+1:n];
  x = rand (n, 1);
  calls = {"cholupdate", {R, x}; "cholupdate", {R, x / (2 * n), "-"}; ...
           "cholinsert", {chol(A(others, others)), middle, A(:, middle)}; ...
           "choldelete", {R, middle}; "cholshift", {R, middle, n}};
  for i = 1:rows (calls)
    [name, args] = calls{i, :};
    t = 1e6 * in_turn (str2func (name), str2func ([name "_gpu"]), args, seconds);
    printf ("%-12s %6d %12.1f %12.1f %6.2f\n", [name, " -"(1:2*ischar (args{end}))], n, t, t(2) / t(1));
  endfor
endfor
