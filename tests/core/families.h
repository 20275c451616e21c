#pragma once

#include "matrices.h"

/// The families of matrices that accuracy is measured on.
namespace gpucholmod::test {

/// A family of matrices that exist in every size.
struct Family {
  const char* name;
  Matrix (*factor)(index_t n, Level, Random&);
  Matrix (*columns)(index_t n, index_t k, Level, Random&);
  bool contracts;  ///< True if a downdate takes away R'P, P a contraction; otherwise it undoes an update

  Problem<double> make(Sign sign, const Matrix& R, index_t k, Level level, Random& random) const;
};

Matrix normal_columns(index_t n, index_t k, Level, Random& random);
extern const Family families[7];

/// Returns M D R0. D grades the rows by 10^-decades to 10^decades. M and R0 are upper and near the identity, M the
/// nearer the smaller `mixing` is. An update of a factor with graded rows leaves such a factor, and data from latent
/// variables of very different scales give one. Inverses of its diagonal blocks are inaccurate.
Matrix graded_mixed(index_t n, real decades, real mixing, Random& random);

/// A problem that is hard for one kind of method. Names begin with U for updates, D for downdates, and E for downdates
/// with their mass in the first rows.
struct Case {
  const char* name;
  Problem<double> (*make)(index_t n, index_t k, Level, Random&);
};

extern const Case cases[18];

/// Returns the problem with V = R'P, R upper with a unit diagonal. A factor of order 960 has 16 row blocks: more than a
/// narrow look-ahead distance and REACH.
Problem<double> many_blocks(Sign sign, const Stored<double>& P);

/// Returns an update whose metric H grows, in every direction, by the same factor with each row block behind the first,
/// by `growth` in all.
Problem<double> growing_metric(index_t n, index_t k, real growth);

}  // namespace gpucholmod::test
