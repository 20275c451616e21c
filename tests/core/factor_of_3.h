#pragma once

#include <algorithm>

#include "base/held_factor.h"

namespace gpucholmod::test {

/// A factor of order 3 that stores and computes nothing: a base of factors that play a part in tests.
class FactorOf3 : public HeldFactor {
 public:
  index_t order() const override { return 3; }
  Precision precision() const override { return Precision::double_; }
  bool on_gpu() const override { return false; }
  index_t capacity() const override { return 5; }
  double bytes() const override { return 0; }
  std::unique_ptr<HeldFactor> copy() const override { return nullptr; }
  void download(Uplo, double* out) const override { std::fill_n(out, 9, 1.0); }
  void diagonal(double* out) const override { std::fill_n(out, 3, 1.0); }
  void set_diagonal(const std::vector<index_t>&, double) override {}
  double trace() const override { return 3; }
  void solve_for(TriangularSolve, const double*, double*, index_t) const override {}
  void multiply(TriangularProduct, double*, index_t) const override {}
  void inverse(double*) const override {}
  Work modify(const ColumnsOfV&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&, std::atomic<bool>&) override {
    return {};
  }
  double remove(const std::vector<index_t>&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
                std::atomic<bool>&) override {
    return 0;
  }
  index_t insert(index_t, const double*, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&,
                 std::atomic<bool>&) override {
    return -1;
  }
  void shift(index_t, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&, std::atomic<bool>&) override {}
};

}  // namespace gpucholmod::test
