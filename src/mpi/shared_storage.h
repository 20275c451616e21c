#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/check_column.h"
#include "base/file.h"
#include "base/range.h"
#include "base/turned.h"
#include "base/zeros.h"
#include "cpu/kernels.h"
#include "mpi/exchange.h"
#include "mpi/factor.h"

namespace gpucholmod::mpi {

/// Holds this process's columns of a factor of scalars T over several processes, and brings numbers in and out.
template <class T>
class SharedStorage : public SharedFactor {
 public:
  /// Allocates columns that are not a factor yet: on a GPU by `make` or, if `make` is empty, in ordinary memory.
  SharedStorage(Team& team, index_t n, const cpu::Allocate& allocate, const MakePanels& make)
      : team_(team), layout_{n, team.size(), make ? make.width(n) : block_width}, allocate_(allocate), make_(make),
        columns_(make ? Columns<T>(layout_, team.rank(), allocate, make.make<T>(layout_, team.rank()))
                      : here(layout_)) {}

  index_t order() const override { return layout_.n; }
  index_t capacity() const override { return layout_.n; }
  Precision precision() const override { return precision_of<T>; }
  double bytes() const override { return columns_.bytes(); }
  bool on_gpu() const override { return columns_.panels() != nullptr; }
  int device() const override { return on_gpu() ? columns_.panels()->device() : -1; }
  std::string device_name() const override { return on_gpu() ? columns_.panels()->device_name() : ""; }
  int processes() const override { return team_.size(); }
  int threads() const override { return team_.threads(); }

  void deal(const double* given, Uplo uplo) {
    const index_t n = layout_.n;
    const Turned<double> turned(given, team_.rank() == 0 ? n : 0, uplo);
    const double* const R = turned.data();
    if (team_.rank() == 0) {
      range_.most = require_triangle<T>("R", R, n, uplo) * std::sqrt(double(n));
      range_.least = require_diagonal<T>(R, n);
    }
    settle();
    mpi::deal(team_, layout_, columns_, [&](index_t b, std::vector<T>& buffer) {
      for (index_t j = layout_.first(b); j < layout_.last(b); ++j)
        for (index_t i = 0; i <= j; ++i) buffer.push_back(T(uplo == Uplo::upper ? R[i + j * n] : R[j + i * n]));
    });
    columns_.forget();
  }

  void read(const std::string& path) {
    const FactorFile file(path);
    if (file.order() != layout_.n)
      throw Error(ErrorCode::bad_file, "'" + path + "' is not of the order that process 0 has found",
                  {{"path", path}, {"reason", "changed"}});
    const TurnedRows turned(file, layout_.n, Uplo::upper);
    const Zeros zeros;
    const MendedSource<double> R(file, turned, zeros);
    std::vector<double> scratch(layout_.n);
    columns_.each_number([&](index_t b) {
      const MatrixView<T> to = columns_.fresh(b);
      for (index_t j = layout_.first(b); j < layout_.last(b); ++j) {
        const double* const values = R.column(j, 0, j + 1, scratch.data());
        range_.most = std::max(range_.most, require_column<T>("R", values, 0, j + 1, j) * std::sqrt(double(layout_.n)));
        require_positive(values[j], j);
        require_not_vanished(T(values[j]), values[j], j);
        range_.least = std::min(range_.least, double(T(values[j])));
        std::copy_n(values, j + 1, to.col(j - layout_.first(b)));
        if (j % block_width == 0) team_.look();
      }
      columns_.written(b);
    });
    columns_.forget();
    file.require_unchanged();
    settle();
  }

  void download(Uplo uplo, double* out) const override {
    const index_t n = layout_.n;
    collected([&](const T* column, index_t j) {
      for (index_t i = 0; i < n; ++i)
        out[uplo == Uplo::upper ? i + j * n : j + i * n] = i <= j ? double(column[i]) : 0.0;
    });
  }
  void write(Sink<double>* sink) const override {
    std::vector<double> values(layout_.n);
    collected([&](const T* column, index_t j) {
      std::copy_n(column, j + 1, values.data());
      sink->put(j, 0, j + 1, values.data());
    });
  }

  void diagonal(double* out) const override {
    together(Operation::columns, [&] {
      of_columns(out, [](const T* column, index_t j) { return double(column[j]); });
      return -1;
    });
  }
  /// Returns ||R||_F^2, with the same bits for any number of processes.
  double trace() const override {
    std::vector<double> squares(layout_.n);
    together(Operation::columns, [&] {
      of_columns(squares.data(), [](const T* column, index_t j) { return squares_of_column(column, j + 1); });
      return -1;
    });
    double sum = 0;
    for (const double x : squares) sum += x;
    return sum;
  }

  /// Gives its number to a factor that has been made.
  void set_number() { number_ = team_.new_number(); }

 protected:
  /// The purpose of a copy: the result of a call (yes), or a factor that is computed with (no).
  enum class Result { yes, no };

  /// Computes out (n) <- f(column, its number) in all processes; within an operation.
  template <class F>
  void of_columns(double* out, F&& f) const {
    tell_of_columns<double>(
        team_, layout_, columns_, 1,
        [&](std::vector<double>& own, const T* column, index_t j) { own.push_back(f(column, j)); },
        [&](index_t j, const double* x) { out[j] = *x; });
  }
  /// Calls put(column, number) in process 0 for each column, from left to right.
  template <class Put>
  void collected(Put&& put) const {
    together(Operation::collect, [&] {
      collect(team_, layout_, columns_, put);
      return -1;
    });
  }

  /// Runs an operation, and gives up the block of a GPU that the operation has brought to ordinary memory.
  index_t together(Operation what, const std::function<index_t()>& f) const {
    const index_t pivot = team_.together(what, number_, f);
    columns_.forget();
    return pivot;
  }

  /// Finds the bounds of the entries anew; within an operation.
  void look_here() {
    range_ = {0, std::numeric_limits<double>::infinity()};
    columns_.each_column([&](const T* column, index_t entries, index_t j) {
      range_.most =
          std::max(range_.most, double(largest_of("R", column, entries, 0, j)) * std::sqrt(double(layout_.n)));
      range_.least = std::min(range_.least, double(column[j]));
    });
    columns_.forget();
    range_ = {team_.largest(range_.most), -team_.largest(-range_.least)};
  }
  /// Throws bad_diagonal if a diagonal entry of a result, in a column of this process, is no normal number.
  static void require_normal_diagonal(const Columns<T>& columns) {
    columns.each_column([](const T* column, index_t, index_t j) { require_normal(column[j], j); });
    columns.forget();
  }

  /// Allocates columns in ordinary memory.
  Columns<T> here(const Layout& layout) const { return Columns<T>(layout, team_.rank(), allocate_); }
  /// Computes to <- by * from; `to` may be `from`. Throws overflow and bad_diagonal, by the rules for the result of a
  /// call or for a factor that is computed with.
  void copy_columns(const Columns<T>& from, const Columns<T>& to, double by, Result result) const {
    if (by == 1 && from.panels() && to.panels()) return to.panels()->copy(*from.panels());
    from.each([&](index_t b, MatrixView<T> R) {
      const MatrixView<T> out = to.fresh(b);
      for (index_t j = 0; j < R.cols; ++j) {
        const index_t d = layout_.first(b) + j;
        const T value = R(d, j);
        for (index_t i = 0; i <= d; ++i) out(i, j) = T(R(i, j) * by);
        if (by == 1) continue;
        for (index_t i = 0; i <= d; ++i)
          if (!std::isfinite(out(i, j))) throw overflow(i, d);
        if (result == Result::yes) require_normal(out(d, j), d);
        else require_not_vanished(out(d, j), value, d);
      }
      to.written(b);
      team_.look();
    });
    from.forget();
    to.forget();
  }

  Team& team_;
  Layout layout_;
  cpu::Allocate allocate_;
  MakePanels make_;
  Columns<T> columns_;
  Range range_{0, std::numeric_limits<double>::infinity()};
  Instructions least_ = Instructions::plain;
  index_t number_ = 0;

 private:
  /// Gives all processes the same bounds of the entries, and the best instructions that all of them have. Throws
  /// bad_argument if the GPUs differ in compute capability.
  void settle() {
    range_ = {team_.largest(range_.most), -team_.largest(-range_.least)};
    if (const int own = on_gpu() ? columns_.panels()->compute_capability() : 0; own > 0)
      if (const int most = int(team_.largest(own)), least = -int(team_.largest(-own)); most != least)
        throw Error(ErrorCode::bad_argument,
                    "GPUs that share a factor must be of one compute capability; here are " + std::to_string(least) +
                        " and " + std::to_string(most),
                    {{"argument", std::string("backend")}, {"value", double(own)}});
    least_ = Instructions(-int(team_.largest(-double(cpu::resolve(Instructions::automatic)))));
  }
};

}  // namespace gpucholmod::mpi
