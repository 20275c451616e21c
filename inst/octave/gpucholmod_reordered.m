## R1 = gpucholmod_reordered (R, p)
##
## Returns the factor of A(p, p), A = R'*R, for any upper triangular R, singular ones too, by a QR decomposition. The
## diagonal of R1 is not negative.

function R1 = gpucholmod_reordered (R, p)
  [~, R1] = qr (R(:, p), 0);
  negative = diag (R1) < 0;
  R1(negative, :) = -R1(negative, :);
endfunction
