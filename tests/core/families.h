#pragma once

#include "matrices.h"

/// The families of matrices that accuracy is measured on.
namespace gpucholmod::test {

/// Matrices that exist in every size.
struct Family {
  const char* name;
  Matrix (*factor)(index_t n, Level, Random&);
  Matrix (*columns)(index_t n, index_t k, Level, Random&);
  bool contracts;  ///< a downdate takes away R'P, P a contraction; otherwise it undoes an update

  Problem<double> make(Sign sign, const Matrix& R, index_t k, Level level, Random& random) const;
};

Matrix normal_columns(index_t n, index_t k, Level, Random& random);
extern const Family families[7];

/// M D R0, D a grading of the rows by 10^-decades to 10^decades, M and R0 upper and near the identity, M the nearer the
/// smaller `mixing` is: what an update of a factor with graded rows leaves, and what data from latent variables of very
/// different scales give. Inverses of its diagonal blocks are inaccurate.
Matrix graded_mixed(index_t n, real decades, real mixing, Random& random);

/// Updates (U) and downdates (D), each hard for one kind of method; E: downdates with their mass in the first rows.
struct Case {
  const char* name;
  Problem<double> (*make)(index_t n, index_t k, Level, Random&);
};

extern const Case cases[18];

/// V = R'P, R upper with a unit diagonal. Order 960 has 16 row blocks: more than the window and the reach.
Problem<double> many_blocks(Sign sign, const Stored<double>& P);

/// An update whose metric H, in every direction, grows by the same factor with each row block behind the first, by
/// `growth` in all.
Problem<double> growing_metric(index_t n, index_t k, real growth);

}  // namespace gpucholmod::test
