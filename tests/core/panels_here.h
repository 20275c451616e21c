#pragma once

#include <algorithm>
#include <atomic>
#include <cstring>

#include "block_columns/pass.h"
#include "process_example.h"

/// mpi::Panels in ordinary memory. A panel's message consists of plane rotations, which are applied one after the
/// other. Tests find calls in an order that a GPU could not follow.
namespace gpucholmod::test {

/// Memory for messages that counts the bytes in use and all bytes ever taken.
class CountedMemory : public mpi::MessageMemory {
 public:
  void* take(std::size_t bytes) override {
    in_use += bytes;
    taken += bytes;
    return ::operator new(bytes);
  }
  void give_back(void* data, std::size_t bytes) override {
    in_use -= bytes;
    ::operator delete(data);
  }
  std::atomic<std::size_t> in_use{0}, taken{0};
};
inline CountedMemory counted_memory;

template <class T>
class PanelsHere;

template <class T>
class ModificationHere : public mpi::PanelModification<T> {
 public:
  struct Rotation {
    double c, s;
  };

  ModificationHere(const PanelsHere<T>& R, PanelsHere<T>* out, MatrixView<const double> V, const Task& task,
                   double scale, int columns, const RightHandSideView& right)
      : R_(R), out_(out), task_(task), scale_(scale), right_(right),
        passes_(block_columns::passes_of(task.k, task.removed, columns)), V_(R.columns() + right.m(), task.k),
        z_(R.layout().n, right.m()), rows_(R.columns(), 0) {
    EXPECT_EQ(V.rows, R.columns());
    for (index_t q = 0; q < task.k; ++q) {
      std::copy_n(V.data + q * V.ld, V.rows, V_.col(q).data());
      for (index_t s = 0; s < right.m(); ++s) V_(V.rows + s, q) = right.Y(s, q);
    }
    std::copy_n(right.z.data, right.m() * R.layout().n, z_.data());
    begin_ = R.numbers();
  }

  index_t modify(index_t b) override {
    const mpi::Layout& layout = R_.layout();
    const index_t first = layout.first(b), m = layout.columns(b), at = R_.place(b);
    std::vector<Rotation>& known = known_[b % 2];
    EXPECT_EQ(layout.owner(b), R_.rank());
    EXPECT_TRUE(std::all_of(rows_.begin() + at, rows_.begin() + at + m, [&](index_t done) { return done == b; })) << b;
    known.assign(m * task_.k, {});
    number_[b % 2] = b;
    for (const block_columns::PassColumns& pass : passes_)
      for (index_t i = 0; i < m; ++i)
        for (index_t q = pass.first; q < pass.first + pass.count; ++q) {
          const double r = number(at + i, first + i), v = V_(at + i, q);
          if (q < task_.added()) known[i * task_.k + q] = {r / std::hypot(r, v), v / std::hypot(r, v)};
          else if (!(std::abs(v) < r)) return i;
          else known[i * task_.k + q] = {r / std::sqrt((r - v) * (r + v)), v / std::sqrt((r - v) * (r + v))};
          for (index_t j = at + i; j < at + m; ++j) rotate(known[i * task_.k + q], number(j, first + i), V_(j, q), q);
        }
    store(b, at, at + m);
    return -1;
  }
  void fetch_V(index_t b, double* V) override {
    for (index_t q = 0; q < task_.k; ++q)
      std::copy_n(V_.col(q).data() + R_.place(b), R_.layout().columns(b), V + q * R_.layout().columns(b));
  }
  mpi::Bytes message(index_t b) override {
    EXPECT_EQ(number_[b % 2], b);
    const std::vector<Rotation>& known = known_[b % 2];
    mpi::Bytes all = mpi::room_for(sizeof(Rotation) * known.size(), R_.message_memory());
    mpi::append(all, known.data(), sizeof(Rotation) * known.size());
    return all;
  }
  void receive(index_t b, mpi::Bytes&& message) override {
    EXPECT_NE(R_.layout().owner(b), R_.rank());
    number_[b % 2] = b;
    known_[b % 2].resize(message.size() / sizeof(Rotation));
    std::memcpy(static_cast<void*>(known_[b % 2].data()), message.data(), message.size());
  }
  void follow(index_t b, index_t first, index_t last) override {
    EXPECT_EQ(number_[b % 2], b);
    for (index_t c = std::max(first, b + 1); c < std::min(last, R_.layout().blocks()); ++c) {
      if (R_.layout().owner(c) != R_.rank()) continue;
      const index_t from = R_.place(c), to = from + R_.layout().columns(c);
      apply(b, from, to, [&](index_t j, index_t i) -> double& { return number(j, i); });
      store(b, from, to);
      for (index_t j = from; j < to; ++j) {
        EXPECT_EQ(rows_[j], b) << "panel " << c;
        rows_[j] = b + 1;
      }
    }
  }
  void carry(index_t b) override {
    EXPECT_EQ(number_[b % 2], b);
    EXPECT_EQ(carried_++, b);
    const index_t own = R_.columns();
    apply(b, own, own + right_.m(), [&](index_t s, index_t i) -> double& { return z_(i, s - own); });
    for (index_t s = 0; s < right_.m(); ++s)
      for (index_t i = R_.layout().first(b); i < R_.layout().last(b); ++i)
        right_.out(i, s) = scale_ * z_(i, s);
  }
  void finish(Work& work) override {
    for (index_t q = 0; q < task_.k; ++q)
      for (index_t s = 0; s < right_.m(); ++s) right_.rest(s, q) = V_(R_.columns() + s, q);
    work.device = R_.device_name();
  }

 private:
  double& number(index_t column, index_t row) { return begin_(row, column); }
  void rotate(const Rotation& by, double& r, double& v, index_t q) const {
    const double sign = q < task_.added() ? 1 : -1, before = r;
    r = by.c * r + sign * by.s * v;
    v = by.c * v - by.s * before;
  }
  template <class F>
  void apply(index_t b, index_t from, index_t to, F&& f) {
    const index_t first = R_.layout().first(b), m = R_.layout().columns(b);
    const std::vector<Rotation>& known = known_[b % 2];
    ASSERT_EQ(known.size(), std::size_t(m * task_.k));
    for (const block_columns::PassColumns& pass : passes_)
      for (index_t i = 0; i < m; ++i)
        for (index_t q = pass.first; q < pass.first + pass.count; ++q)
          for (index_t j = from; j < to; ++j) rotate(known[i * task_.k + q], f(j, first + i), V_(j, q), q);
  }
  /// Stores the rows of panel b in columns [from, to) of the result.
  void store(index_t b, index_t from, index_t to) {
    if (!out_) return;
    for (index_t j = from; j < to; ++j)
      for (index_t i = R_.layout().first(b); i < R_.layout().last(b); ++i)
        out_->numbers()(i, j) = T(scale_ * begin_(i, j));
  }

  const PanelsHere<T>& R_;
  PanelsHere<T>* out_;
  const Task& task_;
  double scale_;
  RightHandSideView right_;
  std::vector<block_columns::PassColumns> passes_;
  Doubles V_, z_, begin_;
  std::vector<index_t> rows_;  ///< number of panels that each column has followed
  std::vector<Rotation> known_[2];
  index_t number_[2] = {-1, -1}, carried_ = 0;
};

template <class T>
class PanelsHere : public mpi::Panels<T> {
 public:
  /// Makes the panels of process `rank`. way() returns `way`, and compute_capability() `kind`.
  PanelsHere(const mpi::Layout& layout, int rank, mpi::PanelWay way, int kind)
      : layout_(layout), rank_(rank), way_(way), kind_(kind) {
    for (index_t b = rank; b < layout.blocks(); b += layout.size) columns_ += layout.columns(b);
    numbers_ = Doubles::Constant(layout.n, columns_, std::numeric_limits<double>::quiet_NaN());
  }
  std::unique_ptr<mpi::Panels<T>> another() const override {
    return std::make_unique<PanelsHere>(layout_, rank_, way_, kind_);
  }
  double bytes() const override { return double(sizeof(T)) * double(numbers_.size()); }
  int device() const override { return rank_; }
  std::string device_name() const override { return "here"; }
  int compute_capability() const override { return kind_; }
  mpi::MessageMemory* message_memory() const override { return &counted_memory; }
  void put(index_t b, MatrixView<const T> R) override {
    EXPECT_TRUE(R.rows == layout_.last(b) && R.cols == layout_.columns(b) && layout_.owner(b) == rank_);
    for (index_t j = 0; j < R.cols; ++j)
      for (index_t i = 0; i <= layout_.first(b) + j; ++i) numbers_(i, place(b) + j) = double(R.data[i + j * R.ld]);
  }
  void get(index_t b, MatrixView<T> R) const override {
    EXPECT_TRUE(R.rows == layout_.last(b) && R.cols == layout_.columns(b) && layout_.owner(b) == rank_);
    for (index_t j = 0; j < R.cols; ++j)
      for (index_t i = 0; i < R.rows; ++i) R.data[i + j * R.ld] = T(numbers_(i, place(b) + j));
  }
  void copy(const mpi::Panels<T>& from) override { numbers_ = dynamic_cast<const PanelsHere&>(from).numbers_; }
  mpi::PanelWay way(const Task&) const override { return way_; }
  std::unique_ptr<mpi::PanelModification<T>> modification(mpi::Panels<T>* out, MatrixView<const double> V,
                                                          const Task& task, double scale, mpi::PanelWay way,
                                                          const RightHandSideView& right,
                                                          const std::function<void()>&) override {
    return std::make_unique<ModificationHere<T>>(*this, dynamic_cast<PanelsHere*>(out), V, task, scale, way.columns,
                                                 right);
  }

  const mpi::Layout& layout() const { return layout_; }
  int rank() const { return rank_; }
  index_t columns() const { return columns_; }
  index_t place(index_t b) const { return b / layout_.size * layout_.width; }
  const Doubles& numbers() const { return numbers_; }
  Doubles& numbers() { return numbers_; }

 private:
  mpi::Layout layout_;
  int rank_;
  mpi::PanelWay way_;
  int kind_;
  index_t columns_ = 0;
  Doubles numbers_;
};

/// Returns makers of panels with `way` and kind 90, except for process 0, which gets `way_of_0` and `kind_of_0`.
inline mpi::MakePanels panels_here(mpi::PanelWay way = {}, mpi::PanelWay way_of_0 = {}, int kind_of_0 = 90) {
  mpi::MakePanels make;
  make.width = [](index_t) { return index_t(128); };
  make.of_floats = [=](const mpi::Layout& layout, int rank) {
    return std::make_unique<PanelsHere<float>>(layout, rank, rank == 0 ? way_of_0 : way, rank == 0 ? kind_of_0 : 90);
  };
  make.of_doubles = [=](const mpi::Layout& layout, int rank) {
    return std::make_unique<PanelsHere<double>>(layout, rank, rank == 0 ? way_of_0 : way, rank == 0 ? kind_of_0 : 90);
  };
  return make;
}

}  // namespace gpucholmod::test
