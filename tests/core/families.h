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

/// Updates (U) and downdates (D), each hard for one kind of method; E: downdates with their mass in the first rows.
struct Case {
  const char* name;
  Problem<double> (*make)(index_t n, index_t k, Level, Random&);
};

extern const Case cases[17];

}  // namespace gpucholmod::test
