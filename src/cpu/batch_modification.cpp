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
BatchModification<T>::BatchModification(index_t n, index_t b, const BatchTask& task, Columns V,
                                        std::vector<index_t>& pivots)
    : n_(n), b_(b), task_(task), kernels_(group_kernels<T>(task.instructions)), V_(std::move(V)), pivots_(pivots),
      same_columns_((!task.weights || task.common_weights) && (!task.scale || task.common_scale)),
      fate_(b, Fate::grouped), ranges_(b) {
  if (same_columns_ && b > 0) common_.find(task, 0);
  const index_t weights = !task.weights ? 0 : task.common_weights ? task.k : task.k * b;
  removes_ = std::any_of(task.weights, task.weights + weights, [](double w) { return w < 0; });
  pivots.assign(b, -1);
  const double work = double(b) * double(n) * double(n) * double(task.k + 8) / tuning::thread_help_upper;
  const double best = 1 + std::floor((std::sqrt(1 + 4 * work) - 1) / 2);
  threads_ = int(std::max(1.0, std::min({best, double(groups()), double(threads_for(task.threads))})));
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
    if (far || task_.k > tuning::batch_columns) modify_apart(m, R);
  }
}

template <class T>
double BatchModification<T>::least_of(index_t member, const T* R) const {
  double least = std::numeric_limits<double>::infinity();
  for (index_t j = 0; j < n_; ++j) least = std::min(least, double(R[group_entry<T>(n_, j, j) + member % lanes]));
  return least;
}

/// V for a pass, of members that are grouped; zeros for all others.
template <class T>
GroupPass<T> BatchModification<T>::lay_out(index_t g, index_t first, T* work) {
  const index_t k = pass_width(first);
  const bool last = first + k >= task_.k;
  T *const W = work, *const added = W + n_ * k * lanes, *const unit = added + k * lanes,
           *const scale = unit + k * lanes;
  std::fill(W, unit, T(0));
  std::fill(unit, scale + lanes, T(1));
  GroupPass<T> pass{n_, int(k), nullptr, nullptr, false, false, false, W, added, unit, scale};
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
  return pass;
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
  Rest rest{lane, row, std::vector<double>((n_ - row) * pass.k)};
  for (int q = 0; q < pass.k; ++q) {
    const double unit = std::sqrt(double(pass.unit[q * lanes + lane]));
    for (index_t j = row; j < n_; ++j) {
      T& w = pass.W[(j * pass.k + q) * lanes + lane];
      rest.V[j - row + q * (n_ - row)] = double(w) * unit;
      w = 0;
    }
    pass.unit[q * lanes + lane] = 1;
  }
  const_cast<T*>(pass.scale)[lane] = 1;
  return rest;
}

/// All passes, where R is to stay: members that leave one of them have to be done apart. Returns their lanes.
template <class T>
std::vector<index_t> BatchModification<T>::run_passes(index_t g, const T* R, T* out, bool discard, T* work) {
  std::vector<index_t> left;
  for (index_t first = 0; first == 0 || first < task_.k; first += pass_width(first)) {
    GroupPass<T> pass = lay_out(g, first, work);
    for (const index_t l : left)
      for (index_t i = 0; i < n_ * pass.k; ++i) pass.W[i * lanes + l] = 0;
    pass.R = first == 0 ? R : out;
    pass.out = out;
    pass.discard = discard;
    for (const Rest& rest : run(pass)) left.push_back(rest.lane);
  }
  return left;
}

template <class T>
void BatchModification<T>::modify(index_t g, const T* R, T* out, T* work) {
  if (any_grouped(g)) {
    for (const index_t lane : run_passes(g, R, out, false, work)) modify_apart(g * lanes + lane, R);
  } else {
    std::copy_n(R, group_words<T>(n_), out);
  }
  put(g, R, out);
}

template <class T>
void BatchModification<T>::test(index_t g, const T* R, T* work) {
  if (!any_grouped(g)) return;
  for (const index_t lane : run_passes(g, R, work + pass_words(), one_pass(), work)) modify_apart(g * lanes + lane, R);
}

/// What leaves a pass here is an update: the rest of it is done at once, and cannot fail.
template <class T>
void BatchModification<T>::modify_in_place(index_t g, T* R, T* work) {
  for (index_t first = 0; any_grouped(g) && (first == 0 || first < task_.k); first += pass_width(first)) {
    GroupPass<T> pass = lay_out(g, first, work);
    pass.R = pass.out = R;
    for (const Rest& rest : run(pass)) finish(g, first, rest, R);
  }
  put(g, R, R);
}

template <class T>
void BatchModification<T>::finish(index_t g, index_t first, const Rest& rest, T* R) {
  const index_t m = n_ - rest.row, k = index_t(rest.V.size()) / m;
  const double scale = first + k >= task_.k ? std::sqrt(task_.scale_of(g * lanes + rest.lane)) : 1;
  std::vector<double> trailing = member_of(R, n_, rest.lane, rest.row);
  modify_alone(trailing, m, rest.V, k, 0, scale, precision, task_.instructions);
  put_member(trailing, R, n_, rest.lane, rest.row);
}

template <class T>
void BatchModification<T>::modify_apart(index_t member, const T* R) {
  ColumnOrder own;
  const ColumnOrder& order = order_of(member, own);
  std::vector<double> made = member_of(R, n_, member % lanes);
  for_member(member, [&] {
    pivots_[member] = modify_alone(made, n_, order.taken(V_(member), n_), task_.k, task_.k - order.added,
                                   std::sqrt(task_.scale_of(member)), precision, task_.instructions);
  });
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

/// What is not done with the group, into `out`.
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
