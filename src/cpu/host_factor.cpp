#include "cpu/host_factor.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/check_column.h"
#include "base/clock.h"
#include "base/huge_pages.h"
#include "base/threads.h"
#include "cpu/blocked.h"

extern "C" {
void dtrsm_(const char* side, const char* uplo, const char* trans, const char* diag, const int* m, const int* n, const double* alpha,
            const double* A, const int* lda, double* B, const int* ldb, std::size_t, std::size_t, std::size_t, std::size_t);
void dgemm_(const char* transa, const char* transb, const int* m, const int* n, const int* k, const double* alpha, const double* A,
            const int* lda, const double* B, const int* ldb, const double* beta, double* C, const int* ldc, std::size_t, std::size_t);
void dpotri_(const char* uplo, const int* n, double* A, const int* lda, int* info, std::size_t);
}

namespace gpucholmod::cpu {
namespace {

/// Upper, column-major; what is below the diagonal is never read.
template <class T>
class HostFactor : public HeldFactor {
 public:
  HostFactor(index_t n, Allocate allocate)
      : n_(n), allocate_(std::move(allocate)), memory_(n > 0 ? allocate_(sizeof(T) * n * n) : nullptr) {
    prefer_huge_pages(data(), sizeof(T) * n * n);
  }

  template <class S>
  void load(const S* R, Uplo uplo) {
    bound_ = require_triangle<T>("R", R, n_, uplo) * std::sqrt(double(n_));
    require_diagonal<T>(R, n_);
    load_factor<S, T>({R, n_, n_, n_}, uplo, 0, own(), threads_for(0));
  }

  bool on_gpu() const override { return false; }
  index_t order() const override { return n_; }
  Precision precision() const override { return sizeof(T) == 8 ? Precision::double_ : Precision::single; }
  double bytes() const override { return double(sizeof(T)) * double(n_) * double(n_); }

  std::unique_ptr<HeldFactor> copy() const override { return scaled(1); }

  void download(Uplo uplo, double* out) const override {
    prefer_huge_pages(out, sizeof(double) * n_ * n_);
    store_factor(view(), uplo, 1, MatrixView<double>{out, n_, n_, n_}, threads_for(0));
  }
  void diagonal(double* out) const override {
    for (index_t j = 0; j < n_; ++j) out[j] = double(view()(j, j));
  }
  double trace() const override {
    double sum = 0;
    for (index_t j = 0; j < n_; ++j) {
      const T* const column = view().col(j);
      if constexpr (sizeof(T) == 8) sum += sum_of_squares(column, j + 1);
      else
        for (index_t i = 0; i <= j; ++i) sum += double(column[i]) * double(column[i]);
    }
    return sum;
  }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    if (which != TriangularSolve::back) substitute(true, B, m);
    if (which != TriangularSolve::forward) substitute(false, B, m);
  }
  void inverse(double* out) const override {
    if (n_ == 0) return;
    download(Uplo::upper, out);
    const int n = int(n_);
    int info = 0;
    dpotri_("U", &n, out, &n, &info, 1);
    const MatrixView<double> inverse{out, n_, n_, n_};
    for (index_t j = 0; j < n_; ++j)
      for (index_t i = 0; i < j; ++i) inverse(j, i) = inverse(i, j);
  }

  /// By way of a second factor where numbers need scaling, or may become too large for T, and for a new one. In place, whether a
  /// downdate can be done is found out by a run that writes nothing.
  Work modify(const double* V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll, std::atomic<bool>& begun) override {
    const index_t k = task.k;
    double largest = 0;
    for (index_t q = 0; q < k; ++q) largest = std::max(largest, require_column<T>("V", V + q * n_, 0, n_, q));
    if (n_ == 0 || k == 0) {
      if (made) *made = scaled(task.scale);
      else if (task.scale != 1) take(*scaled(task.scale));
      return {};
    }
    const double top = double(std::numeric_limits<T>::max());
    const double bound = task.scale * std::hypot(bound_, largest * std::sqrt(double(task.added())));
    const int e = scale_exponent<T>(T(std::min(std::max(bound_, largest), top)));
    const bool rescale = e != 0 || bound > top || bound / task.scale > top || !(task.scale > 0x1p-20 && task.scale < 0x1p20);
    std::vector<T> columns;
    if (rescale || sizeof(T) < sizeof(double)) columns = scaled_columns(V, k, e);
    const Sweep sweep{{columns.empty() ? reinterpret_cast<const T*>(V) : columns.data(), n_, k, n_}, task, rescale ? 1 : task.scale, poll};
    if (!made && !rescale) {
      if (task.removed > 0 && task.keep_intact)
        if (Work test = sweep.run(view(), {nullptr, n_, n_, n_}); test.pivot >= 0) return test;
      begun = true;
      Work work = sweep.run(view(), own());
      if (work.pivot < 0) bound_ = bound;
      return work;
    }
    auto other = std::make_unique<HostFactor>(n_, allocate_);
    if (rescale) load_factor(view(), Uplo::upper, e, other->own(), std::max(task.threads, 1));
    Work work = sweep.run(rescale ? other->view() : view(), other->own());
    if (work.pivot >= 0) return work;
    if (rescale) {
      store_factor(other->own(), Uplo::upper, std::scalbn(task.scale, e), other->own());
      for (index_t j = 0; j < n_; ++j) require_not_vanished(other->view()(j, j), view()(j, j), j);
      for (index_t i = 0; i < n_ * task.right.m; ++i) task.right.out[i] *= task.scale;
    }
    other->bound_ = std::min(bound, top);
    if (made) *made = std::move(other);
    else take(*other);
    return work;
  }

 private:
  T* data() const { return static_cast<T*>(memory_.get()); }
  MatrixView<const T> view() const { return {data(), n_, n_, n_}; }
  MatrixView<T> own() { return {data(), n_, n_, n_}; }

  std::unique_ptr<HostFactor> scaled(double by) const {
    auto made = std::make_unique<HostFactor>(n_, allocate_);
    store_factor(view(), Uplo::upper, by, made->own(), threads_for(0));
    for (index_t j = 0; j < n_; ++j) require_not_vanished(made->view()(j, j), view()(j, j), j);
    made->bound_ = by * bound_;
    return made;
  }
  void take(HostFactor& other) {
    memory_.swap(other.memory_);
    bound_ = other.bound_;
  }

  std::vector<T> scaled_columns(const double* V, index_t k, int e) const {
    std::vector<T> columns(n_ * k);
    const double down = std::scalbn(1.0, -e);
    for (index_t i = 0; i < n_ * k; ++i) columns[i] = T(V[i] * down);
    return columns;
  }

  /// The modification itself, with numbers that need no scaling.
  struct Sweep {
    MatrixView<const T> V;
    const Task& task;
    double scale;
    const Poll& poll;

    /// `to` may be `from`, or hold nothing: then only the verdict is of interest.
    Work run(MatrixView<const T> from, MatrixView<T> to) const {
      const Clock clock;
      BlockedSweep<T> sweep(V, task.removed, T(scale), Uplo::upper, task.instructions, task.threads);
      Work work;
      work.pivot = sweep.advance(from, to, false, poll);
      if (work.pivot < 0 && to.data) sweep.carry(task.right, V.rows);
      work.seconds = clock.seconds();
      return work;
    }
  };

  /// B <- R'^-1 B, or R^-1 B: at once, or, where R has to be made doubles, by blocks of columns.
  void substitute(bool forward, double* B, index_t m) const {
    if (n_ == 0 || m == 0) return;
    const index_t width = sizeof(T) == 8 ? n_ : 256, blocks = (n_ + width - 1) / width;
    const int ldb = int(n_), sides = int(m);
    const double one = 1, minus = -1;
    std::vector<double> buffer(sizeof(T) == 8 ? 0 : n_ * width);
    for (index_t i = 0; i < blocks; ++i) {
      const index_t first = (forward ? i : blocks - 1 - i) * width, last = std::min(first + width, n_);
      const int above = int(first), wide = int(last - first), ld = int(n_);
      const double* R;
      if constexpr (sizeof(T) == 8) {
        R = view().col(first);
      } else {
        for (index_t j = first; j < last; ++j) std::copy_n(view().col(j), j + 1, buffer.data() + (j - first) * n_);
        R = buffer.data();
      }
      if (forward && above > 0) dgemm_("T", "N", &wide, &sides, &above, &minus, R, &ld, B, &ldb, &one, B + first, &ldb, 1, 1);
      dtrsm_("L", "U", forward ? "T" : "N", "N", &wide, &sides, &one, R + first, &ld, B + first, &ldb, 1, 1, 1, 1);
      if (!forward && above > 0) dgemm_("N", "N", &above, &sides, &wide, &minus, R, &ld, B + first, &ldb, &one, B, &ldb, 1, 1);
    }
  }

  index_t n_;
  Allocate allocate_;
  std::shared_ptr<void> memory_;
  double bound_ = 0;  ///< no entry is larger
};

template <class T, class S>
std::unique_ptr<HeldFactor> hold_as(const S* R, index_t n, Uplo uplo, Allocate allocate) {
  auto made = std::make_unique<HostFactor<T>>(n, std::move(allocate));
  made->load(R, uplo);
  return made;
}

}  // namespace

template <class S>
std::unique_ptr<HeldFactor> hold(const S* R, index_t n, Uplo uplo, Precision precision, Allocate allocate) {
  return precision == Precision::single ? hold_as<float>(R, n, uplo, std::move(allocate)) : hold_as<double>(R, n, uplo, std::move(allocate));
}
template std::unique_ptr<HeldFactor> hold(const double*, index_t, Uplo, Precision, Allocate);
template std::unique_ptr<HeldFactor> hold(const float*, index_t, Uplo, Precision, Allocate);

}  // namespace gpucholmod::cpu
