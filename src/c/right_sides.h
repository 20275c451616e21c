#pragma once

#include "base/factor_io.h"
#include "c/interface.h"
#include "modify/carried.h"
#include "modify/request.h"

namespace gpucholmod::c {

/// The right-hand sides of a call: copied, and put back if the call succeeds.
class SidesOfCall {
 public:
  /// n: rows of z; k: of Y, 0 if Y is not read; `most`: of z after the call, if that is more than n. Throws
  /// bad_argument, and not_finite for z and Y.
  SidesOfCall(const gpucholmod_sides* given, index_t n, index_t k, index_t most) : given_(given) {
    if (!given || given->m == 0) return;
    const index_t m = given->m;
    require(m >= 0, "sides->m", "must not be negative");
    require(given->ldz >= most, "sides->ldz",
            most > n ? "leaves no room for the rows that come" : "is below the rows of z");
    const MatrixView<const double> z =
        matrix<const double>("sides->z", given->z, most, m, given->ldz).block(0, 0, n, m);
    if (k > 0) static_cast<void>(matrix<const double>("sides->Y", given->Y, k, m, given->ldy));
    if (n == 0 && k == 0 && !given->rss) return;  // no numbers, of however many right-hand sides
    for (index_t j = 0; j < m; ++j) {
      largest_of("sides->z", z.col(j), n, 0, j);
      if (k > 0) largest_of("sides->Y", given->Y + j * given->ldy, k, 0, j);
      require(!given->rss || !(given->rss[j] < 0), "sides->rss", "must not be negative");
    }
    sides_ = std::make_shared<Sides>();
    sides_->m = m;
    sides_->z = packed(z);
    sides_->Y.resize(m * k);
    for (index_t q = 0; q < k; ++q)
      for (index_t j = 0; j < m; ++j) sides_->Y[j + q * m] = given->Y[q + j * given->ldy];
    if (given->rss) sides_->rss.assign(given->rss, given->rss + m);
  }

  /// Returns null if there is nothing to take along.
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
