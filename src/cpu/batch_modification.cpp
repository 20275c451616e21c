#include "cpu/batch_modification.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <memory>

#include "base/factor_io.h"
#include "base/threads.h"
#include "cpu/kernels.h"

namespace gpucholmod::cpu {
template <class T>
BatchModification<T>::BatchModification(index_t n, index_t b, const BatchTask& task, Columns V, Sides sides,
                                        std::vector<index_t>& pivots)
    : n_(n), b_(b), task_(task), kernels_(group_kernels<T>(task.instructions)), V_(std::move(V)),
      sides_(std::move(sides)), pivots_(pivots),
      same_columns_((!task.weights || task.common_weights) && (!task.scale || task.common_scale)),
      fate_(b, Fate::grouped), ranges_(b) {
  if (same_columns_ && b > 0) common_.find(task, 0);
  const index_t weights = !task.weights ? 0 : task.common_weights ? task.k : task.k * b;
  removes_ = std::any_of(task.weights, task.weights + weights, [](double w) { return w < 0; });
  pivots.assign(b, -1);
  const double work = double(b) * double(n) * double(n) * double(task.k + 8) / tuning::thread_help_batch;
  const double most = std::min(double(groups()), double(threads_for(task.threads)));
  threads_ = int(std::max(1.0, std::min(threads_that_pay(work), most)));
}

template <class T>
void BatchModification<T>::prepare(index_t g, const std::vector<Range>& ranges, const T* R) {
  static_assert(GroupPass<T>::least_left >= T(0.0625),
                "a column leaves at least a quarter of an entry of the diagonal: ColumnOrder::share");
  const double top = double(std::numeric_limits<T>::max());
  ColumnOrder own;
  const double* seen = nullptr;
  double largest = 0;
  for (index_t m = g * lanes; m < std::min(b_, (g + 1) * lanes); ++m) {
    const ColumnOrder& order = order_of(m, own);
    const double* const V = V_(m);
    if (V != seen || !same_columns_) for_member(m, [&] { largest = largest_weighted(V, n_, order, top); });
    seen = V;
    const double most = ranges[m].most, scale = std::sqrt(task_.scale_of(m)),
                 unscaled = std::sqrt(most * most + largest * largest * double(order.added));
    const double share = scale * order.share;
    double least = ranges[m].least * share;
    if (share < 1 && may_vanish<T>(least)) least = least_of(m, R) * share;
    ranges_[m] = {scale * unscaled, least};
    const bool far = exponent_below<T>(std::max(most, largest)) != 0 || !(scale * unscaled <= top) ||
                     !(unscaled <= top) || !is_moderate(scale) || (share < 1 && may_vanish<T>(least));
    if (far || task_.k > tuning::batch_columns || are_far(order, m)) modify_apart(m, R);
  }
}

template <class T>
double BatchModification<T>::least_of(index_t member, const T* R) const {
  double least = std::numeric_limits<double>::infinity();
  for (index_t j = 0; j < n_; ++j) least = std::min(least, double(R[group_entry<T>(n_, j, j) + member % lanes]));
  return least;
}

/// Returns whether right-hand sides are so large that sums of them in T may overflow.
template <class T>
bool BatchModification<T>::are_far(const ColumnOrder& order, index_t member) const {
  if (task_.sides.m == 0) return false;
  const MemberSides sides = sides_(member);
  const T most = std::sqrt(std::numeric_limits<T>::max());
  double largest = 0;
  for (index_t i = 0; i < n_ * task_.sides.m; ++i) largest = std::max(largest, std::abs(sides.z[i]));
  for (index_t p = 0; p < task_.k; ++p)
    for (index_t s = 0; s < task_.sides.m; ++s)
      largest = std::max(largest, std::abs(sides.Y[order.column[p] + s * task_.k] * order.by[p]));
  return !(largest <= most);
}

/// Lays out V of grouped members for a pass, with zeros for all other members.
template <class T>
GroupPass<T> BatchModification<T>::lay_out(index_t g, index_t first, Aim aim, T* work) {
  const index_t k = pass_width(first), sides = aim == Aim::result ? task_.sides.m : 0;
  const bool last = first + k >= task_.k;
  T *const W = work, *const added = W + (n_ + sides) * k * lanes, *const unit = added + k * lanes,
           *const scale = unit + k * lanes;
  std::fill(W, unit, T(0));
  std::fill(unit, scale + lanes, T(1));
  GroupPass<T> pass{n_, int(k), nullptr, nullptr, false, false, false, W, added, unit, scale, sides, nullptr};
  ColumnOrder own;
  for (index_t l = 0; l < std::min(lanes, b_ - g * lanes); ++l) {
    const index_t m = g * lanes + l;
    if (fate_[m] != Fate::grouped) continue;
    const ColumnOrder& order = order_of(m, own);
    const double* const V = V_(m);
    if (last) scale[l] = T(std::sqrt(task_.scale_of(m)));
    for (index_t q = 0; q < std::min(k, task_.k - first); ++q) {
      const double* const column = V + order.column[first + q] * n_;
      const double by = order.by[first + q];
      T* const to = W + q * lanes + l;
      for (index_t j = 0; j < n_; ++j) to[j * k * lanes] = T(column[j] * by);
      const bool adds = first + q < order.added;
      added[q * lanes + l] = adds;
      (adds ? pass.adds : pass.removes) = true;
    }
  }
  if (!pass.removes) pass.adds = true;
  if (sides > 0) lay_out_sides(g, first, pass, work + columns_words());
  return pass;
}

template <class T>
void BatchModification<T>::lay_out_sides(index_t g, index_t first, GroupPass<T>& pass, T* z) {
  const index_t m = pass.sides;
  pass.z = z;
  if (first == 0) std::fill_n(z, n_ * m * lanes, T(0));
  ColumnOrder own;
  for_grouped(g, [&](index_t l, index_t member) {
    const ColumnOrder& order = order_of(member, own);
    const MemberSides sides = sides_(member);
    for (index_t s = 0; s < m; ++s) {
      for (index_t i = 0; i < n_ && first == 0; ++i) z[(i * m + s) * lanes + l] = T(sides.z[i + s * n_]);
      for (index_t q = 0; q < std::min<index_t>(pass.k, task_.k - first); ++q) {
        const double y = sides.Y[order.column[first + q] + s * task_.k] * order.by[first + q];
        pass.W[((n_ + s) * pass.k + q) * lanes + l] = T(y);
      }
    }
  });
}

template <class T>
void BatchModification<T>::put_sides_of_group(index_t g, index_t first, const GroupPass<T>& pass) const {
  const index_t m = pass.sides;
  for_grouped(g, [&](index_t l, index_t member) {
    const MemberSides sides = sides_(member);
    for (index_t s = 0; s < m; ++s) {
      for (index_t q = 0; q < std::min<index_t>(pass.k, task_.k - first); ++q)
        sides.rest[first + q + s * task_.k] = double(pass.W[((n_ + s) * pass.k + q) * lanes + l]) *
                                              std::sqrt(double(pass.unit[q * lanes + l]));
      for (index_t i = 0; i < n_ && first + pass.k >= task_.k; ++i)
        sides.out[i + s * n_] = double(pass.z[(i * m + s) * lanes + l]);
    }
  });
}

template <class T>
std::vector<typename BatchModification<T>::Rest> BatchModification<T>::run(GroupPass<T>& pass) {
  std::vector<Rest> left;
  for (index_t row = 0; const unsigned out = kernels_.sweep(pass, row);)
    for (index_t l = 0; l < lanes; ++l)
      if (out >> l & 1) left.push_back(take_out(pass, row, l));
  return left;
}

template <class T>
typename BatchModification<T>::Rest BatchModification<T>::take_out(GroupPass<T>& pass, index_t row,
                                                                   index_t lane) const {
  const index_t m = pass.sides;
  Rest rest{lane, row, std::vector<double>((n_ - row) * pass.k), {}};
  rest.sides.m = m;
  rest.sides.Y.resize(m * pass.k);
  for (int q = 0; q < pass.k; ++q) {
    const double unit = std::sqrt(double(pass.unit[q * lanes + lane]));
    for (index_t j = row; j < n_; ++j) {
      T& w = pass.W[(j * pass.k + q) * lanes + lane];
      rest.V[j - row + q * (n_ - row)] = double(w) * unit;
      w = 0;
    }
    for (index_t s = 0; s < m; ++s) {
      T& w = pass.W[((n_ + s) * pass.k + q) * lanes + lane];
      rest.sides.Y[s + q * m] = double(w) * unit;
      w = 0;
    }
    pass.unit[q * lanes + lane] = 1;
  }
  const_cast<T*>(pass.scale)[lane] = 1;
  return rest;
}

/// Runs all passes without changing R. Returns the lanes of the members that leave a pass: these members have to be
/// modified apart.
template <class T>
std::vector<index_t> BatchModification<T>::run_passes(index_t g, const T* R, T* out, Aim aim, T* work) {
  std::vector<index_t> left;
  for (index_t first = 0; first == 0 || first < task_.k; first += pass_width(first)) {
    GroupPass<T> pass = lay_out(g, first, aim, work);
    for (const index_t l : left)
      for (index_t i = 0; i < (n_ + pass.sides) * pass.k; ++i) pass.W[i * lanes + l] = 0;
    pass.R = first == 0 ? R : out;
    pass.out = out;
    pass.discard = aim == Aim::verdict && one_pass();
    for (const Rest& rest : run(pass)) left.push_back(rest.lane);
    if (pass.sides > 0) put_sides_of_group(g, first, pass);
  }
  return left;
}

template <class T>
void BatchModification<T>::modify(index_t g, const T* R, T* out, T* work) {
  if (any_grouped(g)) {
    for (const index_t lane : run_passes(g, R, out, Aim::result, work)) modify_apart(g * lanes + lane, R);
  } else {
    std::copy_n(R, group_words<T>(n_), out);
  }
  put(g, R, out);
}

template <class T>
void BatchModification<T>::test(index_t g, const T* R, T* work) {
  if (!any_grouped(g)) return;
  for (const index_t lane : run_passes(g, R, work + pass_words(), Aim::verdict, work))
    modify_apart(g * lanes + lane, R);
}

/// Runs all passes in place. A member that leaves a pass here is being updated, so its rest is done at once, and cannot
/// fail.
template <class T>
void BatchModification<T>::modify_in_place(index_t g, T* R, T* work) {
  for (index_t first = 0; any_grouped(g) && (first == 0 || first < task_.k); first += pass_width(first)) {
    GroupPass<T> pass = lay_out(g, first, Aim::result, work);
    pass.R = pass.out = R;
    std::vector<Rest> left = run(pass);
    for (Rest& rest : left) finish(g, first, rest, pass);
    if (pass.sides > 0) put_sides_of_group(g, first, pass);
  }
  put(g, R, R);
}

template <class T>
void BatchModification<T>::finish(index_t g, index_t first, Rest& rest, const GroupPass<T>& pass) {
  const index_t row = rest.row, rows = n_ - row, m = pass.sides;
  Task task;
  task.n = rows;
  task.k = pass.k;
  task.scale = first + pass.k >= task_.k ? std::sqrt(task_.scale_of(g * lanes + rest.lane)) : 1;
  task.precision = precision;
  task.instructions = task_.instructions;
  std::vector<double> trailing = member_of(pass.out, n_, rest.lane, row);
  const auto z = [&](index_t i, index_t s) -> T& { return pass.z[((row + i) * m + s) * lanes + rest.lane]; };
  for (index_t s = 0; s < m; ++s)
    for (index_t i = 0; i < rows; ++i) rest.sides.z.push_back(double(z(i, s)));
  modify_alone(trailing, rest.V, task, &rest.sides);
  put_member(trailing, pass.out, n_, rest.lane, row);
  for (index_t s = 0; s < m; ++s) {
    for (index_t i = 0; i < rows; ++i) z(i, s) = T(rest.sides.z[i + s * rows]);
    for (index_t q = 0; q < pass.k; ++q)  // W is Y, as `unit` is 1
      pass.W[((n_ + s) * pass.k + q) * lanes + rest.lane] = T(rest.sides.Y[s + q * m]);
  }
}

template <class T>
void BatchModification<T>::modify_apart(index_t member, const T* R) {
  ColumnOrder own;
  const ColumnOrder& order = order_of(member, own);
  std::vector<double> made = member_of(R, n_, member % lanes);
  SidesAlone sides;
  if (task_.sides.m > 0) sides = sides_alone(sides_(member), order, n_, task_.sides.m);
  for_member(member, [&] {
    pivots_[member] = modify_alone(made, order.taken(V_(member), n_), task_alone(task_, order, n_, member, precision),
                                   &sides);
  });
  if (pivots_[member] < 0 && sides.m > 0) put_sides(sides, sides_(member));
  if (pivots_[member] >= 0) {
    fate_[member] = Fate::failed;
    return;
  }
  Range range{0, std::numeric_limits<double>::infinity()};
  for (const double x : made) range.most = std::max(range.most, std::abs(x));
  range.most *= std::sqrt(double(n_));
  for (index_t j = 0; j < n_; ++j) range.least = std::min(range.least, made[j + j * n_]);
  ranges_[member] = range;
  fate_[member] = Fate::apart;
  const std::lock_guard<std::mutex> lock(mutex_);
  apart_[member] = std::move(made);
}

/// Copies the members that are not modified with the group to `out`.
template <class T>
void BatchModification<T>::put(index_t g, const T* R, T* out) {
  const auto first = fate_.begin() + g * lanes, last = fate_.begin() + std::min(b_, (g + 1) * lanes);
  if (std::any_of(first, last, [](Fate fate) { return fate != Fate::grouped; })) put_apart(g, R, out);
}

template <class T>
void BatchModification<T>::put_apart(index_t g, const T* R, T* out) {
  for (index_t m = g * lanes; m < std::min(b_, (g + 1) * lanes); ++m) {
    if (fate_[m] == Fate::failed && R != out)
      for (index_t i = m % lanes; i < group_words<T>(n_); i += lanes) out[i] = R[i];
    if (fate_[m] != Fate::apart) continue;
    std::vector<double> made;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      made.swap(apart_[m]);
      apart_.erase(m);
    }
    put_member(made, out, n_, m % lanes);
  }
}

template class BatchModification<float>;
template class BatchModification<double>;

}  // namespace gpucholmod::cpu
