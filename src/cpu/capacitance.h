#pragma once

#include <vector>

#include "base/types.h"

namespace gpucholmod::cpu {

/// Applies (I + P J P')^-1 without forming this matrix, by Woodbury's formula. P = [P1 P2] is n x k, J = diag(I, -I):
/// P1 is added, P2 taken away, in this order. The class factorises J + P'P, k x k, which the field calls the
/// capacitance matrix:
///
///      [ I + P1'P1    P1'P2   ]   [ U1'     ] [ I    ] [ U1   G  ]     U1'U1 = I + P1'P1,  G = U1'^-1 P1'P2
///      [  P2'P1    P2'P2 - I  ] = [ G'  U2' ] [   -I ] [      U2 ]     U2'U2 = I - P2'P2 + G'G
///
/// I + P J P' is positive definite if and only if U2 exists. An object serves matrices P with k <= n, one after the
/// other.
///
/// Error: that of modifying P'P by eps (1 + ||P'P||); inst/design/fan-out.md tells what this error means for A.
/// Reference: W. W. Hager (1989). Updating the inverse of a matrix. SIAM Review 31.
class Capacitance {
 public:
  /// Factorises J + P'P. P: n x k, of which the last `removed` columns are P2; P has to outlive the calls of solve().
  /// Returns false if U2 does not exist, or if a number is not finite.
  bool factorise(MatrixView<const double> P, index_t removed);

  double size() const { return size_; }            ///< ||P'P||_F
  double least_pivot() const { return least_; }    ///< smallest entry of U2's diagonal, squared; 1 if there is none
  double logdet() const { return logdet_; }        ///< log det (I + P J P')

  /// Computes Y (n x m) <- (I + P J P')^-1 Y; unless `whole`, Y is left unspecified. T (k x m, leading dimension ldt)
  /// is P'Y, and is overwritten. quadratic (m, or null) <- the diagonal of Y'(I + P J P')^-1 Y, as a sum of squares.
  void solve(double* Y, index_t m, double* T, index_t ldt, double* quadratic, bool whole);

 private:
  MatrixView<const double> P_{};
  index_t added_ = 0;
  std::vector<double> S_, U_;  ///< P'P and then U1, G, U2, k x k, upper; work memory, added x m
  double size_ = 0, least_ = 1, logdet_ = 0;
};

}  // namespace gpucholmod::cpu
