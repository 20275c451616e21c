#pragma once

#include <vector>

#include "base/types.h"

namespace gpucholmod::cpu {

/// Applies (I + P J P')^-1 without forming that matrix, by Woodbury's formula. P = [P1 P2] is n x k, J = diag(I, -I):
/// P1 is added, P2 taken away, in this order. What is factorised is J + P'P, k x k, which the field calls the
/// capacitance matrix:
///
///      [ I + P1'P1    P1'P2   ]   [ U1'     ] [ I    ] [ U1   G  ]     U1'U1 = I + P1'P1,  G = U1'^-1 P1'P2
///      [  P2'P1    P2'P2 - I  ] = [ G'  U2' ] [   -I ] [      U2 ]     U2'U2 = I - P2'P2 + G'G
///
/// I + P J P' is positive definite if and only if U2 exists. One after the other, of matrices with k <= n.
///
/// Error: that of modifying P'P by eps (1 + ||P'P||); what that is for A: inst/design/fan-out.md.
/// Reference: W. W. Hager (1989). Updating the inverse of a matrix. SIAM Review 31.
class Capacitance {
 public:
  /// P: n x k, of which the last `removed` columns are P2; it has to outlive what follows. False where U2 does not
  /// exist, or something is not finite.
  bool factorise(MatrixView<const double> P, index_t removed);

  double size() const { return size_; }            ///< ||P'P||_F
  double least_pivot() const { return least_; }    ///< the smallest of U2's diagonal, squared; 1 where there is none
  double logdet() const { return logdet_; }        ///< log det (I + P J P')

  /// Y (n x m) <- (I + P J P')^-1 Y; where not `whole`, it is left unspecified. T (k x m, leading dimension ldt) is
  /// P'Y, and overwritten. quadratic (m, or null) <- the diagonal of Y'(I + P J P')^-1 Y, as a sum of squares.
  void solve(double* Y, index_t m, double* T, index_t ldt, double* quadratic, bool whole);

 private:
  MatrixView<const double> P_{};
  index_t added_ = 0;
  std::vector<double> S_, U_;  ///< k x k, upper: P'P, then its factors; added x m
  double size_ = 0, least_ = 1, logdet_ = 0;
};

}  // namespace gpucholmod::cpu
