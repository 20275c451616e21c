#include "regression/shift.h"

#include <cmath>

namespace gpucholmod::regression {

Shift::Shift(const Rows& rows) : c_(rows.x.rows + rows.y.rows) {
  const index_t p = rows.x.rows, m = rows.y.rows;
  double square = 0;
  c_[0] = rows.count() > 0 ? rows.x(0, 0) : 0;
  for (index_t i = 0; i < rows.count(); ++i) {
    const double *const x = rows.x.col(i), *const y = rows.y.col(i), by = rows.weight(i) * x[0];
    square += by * x[0];
    for (index_t j = 1; j < p; ++j) c_[j] += by * x[j];
    for (index_t j = 0; j < m; ++j) c_[p + j] += by * y[j];
  }
  bool usable = square > 0 && fits(rows);
  for (index_t j = 1; j < p + m; ++j) {
    c_[j] /= square;
    usable = usable && std::isfinite(c_[j]);
  }
  if (!usable) c_.clear();
}

bool Shift::fits(const Rows& rows) const {
  for (index_t i = 0; !is_none() && i < rows.count(); ++i)
    if (rows.x(0, i) != c_[0]) return false;
  return true;
}

Rows Shift::apply(const Rows& rows, std::vector<double>& memory) const {
  if (is_none()) return rows;
  const index_t p = rows.x.rows, m = rows.y.rows, count = rows.count();
  memory.resize(count * (p + m));
  double *const x = memory.data(), *const y = x + count * p;
  for (index_t i = 0; i < count; ++i) {
    const double head = rows.x(0, i);
    x[i * p] = head;
    for (index_t j = 1; j < p; ++j) x[j + i * p] = rows.x(j, i) - head * c_[j];
    for (index_t j = 0; j < m; ++j) y[j + i * m] = rows.y(j, i) - head * c_[p + j];
  }
  Rows shifted = rows;
  shifted.x = {x, p, count, p};
  shifted.y = {y, m, count, m};
  return shifted;
}

void Shift::take_back(MatrixView<double> R, Sides& sides) const {
  if (is_none()) return;
  for (index_t j = 1; j < sides.p; ++j) R(0, j) += R(0, 0) * c_[j];
  for (index_t j = 0; j < sides.m; ++j) sides.z[j * sides.p] += R(0, 0) * c_[sides.p + j];
}

}  // namespace gpucholmod::regression
