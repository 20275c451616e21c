#pragma once

#include "c/interface.h"
#include "modify/carried.h"
#include "modify/request.h"

namespace gpucholmod::c {

/// The right-hand sides of a call: copied, and put back where it has gone well.
class SidesOfCall {
 public:
  /// n: rows of z; k: of Y, 0 where it is not looked at; `most`: of z afterwards. Throws bad_argument.
  SidesOfCall(const gpucholmod_sides* given, index_t n, index_t k, index_t most) : given_(given) {
    if (!given || given->m == 0) return;
    require(given->m >= 0, "sides->m", "must not be negative");
    const index_t m = given->m;
    const MatrixView<const double> z = matrix<const double>("sides->z", given->z, n, m, given->ldz);
    require(given->ldz >= most, "sides->ldz", "leaves no room for the rows that come");
    sides_ = std::make_shared<Sides>();
    sides_->m = m;
    sides_->z = packed(z);
    if (k > 0) {
      const MatrixView<const double> Y = matrix<const double>("sides->Y", given->Y, k, m, given->ldy);
      for (index_t q = 0; q < k; ++q)
        for (index_t j = 0; j < m; ++j) sides_->Y.push_back(Y(q, j));
    }
    if (!given->rss) return;
    for (index_t j = 0; j < m; ++j) require(given->rss[j] >= 0, "sides->rss", "must not be negative");
    sides_->rss.assign(given->rss, given->rss + m);
  }

  const std::shared_ptr<Sides>& sides() const { return sides_; }

  void put_back() const {
    if (!sides_) return;
    const index_t rows = index_t(sides_->z.size()) / sides_->m;
    for (index_t j = 0; j < sides_->m; ++j) std::copy_n(sides_->z.data() + j * rows, rows, given_->z + j * given_->ldz);
    std::copy(sides_->rss.begin(), sides_->rss.end(), given_->rss);
  }

 private:
  const gpucholmod_sides* given_;
  std::shared_ptr<Sides> sides_;
};

}  // namespace gpucholmod::c
