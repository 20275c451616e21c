#pragma once

#include <utility>

#include "base/check_column.h"
#include "base/held_factor.h"
#include "base/zeros.h"

namespace gpucholmod {

/// Holds a factor with zeros on its diagonal, with stand-ins in their place (base/zeros.h). Columns can be added to the
/// factor until it has no zeros any more; from then on it is as any other factor. As long as it has zeros, every
/// function that needs a positive definite matrix throws bad_diagonal.
class Semidefinite : public HeldFactor {
 public:
  Semidefinite(std::unique_ptr<HeldFactor> inner, Zeros zeros) : inner_(std::move(inner)), zeros_(std::move(zeros)) {}

  index_t order() const override { return inner_->order(); }
  Precision precision() const override { return inner_->precision(); }
  bool on_gpu() const override { return inner_->on_gpu(); }
  index_t capacity() const override { return inner_->capacity(); }
  double bytes() const override { return inner_->bytes(); }
  const HeldFactor& plain() const override { return inner_->plain(); }
  void set_diagonal(const std::vector<index_t>& rows, double value) override { inner_->set_diagonal(rows, value); }

  std::unique_ptr<HeldFactor> copy() const override { return with_zeros(inner_->copy(), zeros_); }
  void download(Uplo uplo, double* out) const override {
    inner_->download(uplo, out);
    zeros_.take(uplo, out, 1);
  }
  void diagonal(double* out) const override {
    inner_->diagonal(out);
    for (const index_t j : zeros_.rows()) out[j] = 0;
  }
  double trace() const override { return inner_->trace(); }
  void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const override {
    require_definite("the matrix is singular");
    inner_->solve_for(which, B, X, m);
  }
  void multiply(TriangularProduct which, double* X, index_t m) const override {
    if (which != TriangularProduct::transposed) multiply_once(TriangularProduct::plain, X, m);
    if (which != TriangularProduct::plain) multiply_once(TriangularProduct::transposed, X, m);
  }
  void inverse(double* out) const override {
    require_definite("the matrix is singular");
    inner_->inverse(out);
  }

  Work modify(const ColumnsOfV& given, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
              std::atomic<bool>& begun) override {
    if (!zeros_.any()) return inner_->modify(given, task, made, poll, begun);
    zeros_.require_update(task.removed);
    const auto V = given.view(task.n, task.k);
    const double largest = precision() == Precision::single ? largest_in_V<float>(V) : largest_in_V<double>(V);
    Zeros before = zeros_, left = before;  // allocates all memory before anything changes
    std::vector<double> entries(order());
    std::vector<index_t> changed;
    changed.reserve(before.rows().size());
    if (largest > 0) choose_stand_in(std::max(largest, std::sqrt(inner_->trace())));
    left = zeros_;
    Work work;
    try {
      work = inner_->modify(given.data(), task, made, poll, begun);
    } catch (...) {
      if (!begun) put_back(std::move(before));
      throw;
    }
    if (made || work.pivot >= 0) put_back(std::move(before));
    if (work.pivot >= 0) return work;
    HeldFactor& now = made ? **made : *inner_;
    now.diagonal(entries.data());
    left.keep(entries, task.scale, changed);
    now.set_diagonal(changed, left.stand_in());
    if (made) *made = with_zeros(std::move(*made), std::move(left));
    else zeros_ = std::move(left);
    return work;
  }

  double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                std::atomic<bool>& begun) override {
    require_definite(stays);
    return inner_->remove(gone, task, made, poll, begun);
  }
  index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                 const Poll& poll, std::atomic<bool>& begun) override {
    require_definite(stays);
    return inner_->insert(at, X, p, task, made, poll, begun);
  }
  void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
             std::atomic<bool>& begun) override {
    require_definite(stays);
    inner_->shift(from, to, task, made, poll, begun);
  }

  /// Returns `made`, as a Semidefinite if there are zeros.
  static std::unique_ptr<HeldFactor> with_zeros(std::unique_ptr<HeldFactor> made, Zeros zeros) {
    if (!zeros.any()) return made;
    return std::make_unique<Semidefinite>(std::move(made), std::move(zeros));
  }

 private:
  static constexpr const char* stays = "its rows and columns cannot come, go or move";
  /// Overwrites X with R X or R'X, without the contribution of the stand-ins, which are powers of two.
  void multiply_once(TriangularProduct which, double* X, index_t m) const {
    const index_t n = order();
    std::vector<double> contributed;
    const auto each = [&](auto&& f) {
      for (index_t c = 0; c < m; ++c)
        for (const index_t j : zeros_.rows()) f(X[j + c * n]);
    };
    each([&](double x) { contributed.push_back(zeros_.stand_in() * x); });
    inner_->multiply(which, X, m);
    std::size_t i = 0;
    each([&](double& x) { x -= contributed[i++]; });
  }
  /// Chooses the stand-in anew for numbers no larger than `largest`. Users do not see that it changes.
  void choose_stand_in(double largest) {
    Zeros chosen = zeros_;
    chosen.choose<double>(precision(), largest);
    if (chosen.stand_in() == zeros_.stand_in()) return;
    inner_->set_diagonal(zeros_.rows(), chosen.stand_in());
    zeros_ = std::move(chosen);
  }
  /// Restores zeros with their former stand-in, so that small numbers in their rows are kept when a large V was not
  /// added.
  void put_back(Zeros before) {
    if (before.stand_in() != zeros_.stand_in()) inner_->set_diagonal(before.rows(), before.stand_in());
    zeros_ = std::move(before);
  }
  void require_definite(const char* consequence) const {
    if (zeros_.any()) throw singular(zeros_.rows()[0], consequence);
  }

  std::unique_ptr<HeldFactor> inner_;
  Zeros zeros_;
};

/// Returns make(R), a factor that is kept and computed with in `precision`, for R (n x n), whose rows make() turns. If
/// R has zeros on its diagonal, returns make() of a copy with stand-ins, as a Semidefinite that remembers the zeros.
template <class S, class F>
std::unique_ptr<HeldFactor> keep_with_zeros(const S* R, index_t n, Uplo uplo, Precision precision, F&& make) {
  const MemorySource<S> source(R, n);
  Zeros zeros(source, n);
  if (!zeros.any()) return make(R);
  zeros.choose<S>(precision, largest_in_triangle(source, n, uplo));
  const std::unique_ptr<S[]> copy(new S[n * n]);
  std::copy_n(R, n * n, copy.get());
  zeros.put(copy.get());
  std::unique_ptr<HeldFactor> made = make(copy.get());
  return Semidefinite::with_zeros(std::move(made), std::move(zeros));
}

/// Returns make(R) for an upper factor that is read by pieces of columns. Looks at the diagonal only if make(R) throws
/// bad_diagonal; then turns rows, puts stand-ins for zeros, and calls make() again.
template <class F>
std::unique_ptr<HeldFactor> keep_with_zeros(const Source<double>& R, index_t n, Precision precision, F&& make) {
  try {
    return make(R);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::bad_diagonal) throw;
  }
  const TurnedRows rows(R, n, Uplo::upper);
  Zeros zeros(R, n);
  if (zeros.any()) zeros.choose<double>(precision, largest_in_triangle(R, n, Uplo::upper));
  std::unique_ptr<HeldFactor> made = make(MendedSource<double>(R, rows, zeros));
  return Semidefinite::with_zeros(std::move(made), std::move(zeros));
}

}  // namespace gpucholmod
