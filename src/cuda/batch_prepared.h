#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "base/check_column.h"
#include "base/threads.h"
#include "cpu/batch_columns.h"
#include "cuda/kernels/member.h"

/// The work of the host before a batch on a GPU is modified.
namespace gpucholmod::cuda {

/// Describes the modification of each member, as found on the host.
struct Prepared {
  std::vector<int> order, added;  ///< fields of BatchPass; `order` is empty if columns are taken as they are
  std::vector<double> by;
  std::vector<Factors> factors;   ///< numbers by which a member is scaled; empty: 1
  std::vector<double> bounds;     ///< bounds of the norms of the new factors' columns
  bool removes = false, in_range = true;
};

/// Calls f(m) for b members of order n, by several threads if that is worth while. If f throws in one of several
/// threads, calls f again for one member after the other, so that the error is that of the first member.
template <class F>
void for_members(index_t n, index_t b, F&& f) {
  const int threads = double(n) * double(n) * double(b) < 5e5 ? 1 : threads_for(0);
  try {
    for_columns(b, threads, [&](index_t first, index_t last) {
      for (index_t m = first; m < last; ++m) f(m);
    }, [] {});
  } catch (const Error&) {
    for (index_t m = 0; m < b && threads > 1; ++m) f(m);
    throw;
  }
}

/// The order and multiples of V's columns, as BatchPass has them, and the factors, of members of which none needs care
/// and which have the same weights.
struct TakenColumns {
  index_t added = 0, stride = 0;
  std::vector<int> order;  ///< empty if columns are taken as they are
  std::vector<double> by;
  std::vector<Factors> factors;

  TakenColumns(const BatchTask& task, index_t n, index_t b) : added(task.k) {
    if (!task.weights && !task.scale) return;
    const index_t orders = task.common_scale ? 1 : b;
    stride = orders > 1 ? task.k : 0;
    order.resize(orders * task.k);
    by.resize(orders * task.k);
    factors.resize(task.scale ? b : 0, Factors{1, 1, 1});
    cpu::ColumnOrder first;
    first.find(task, 0);
    added = first.added;
    for_members(n, orders, [&](index_t m) {
      cpu::ColumnOrder own;
      own.find(task, m);
      std::copy(own.column.begin(), own.column.end(), order.begin() + m * task.k);
      std::copy(own.by.begin(), own.by.end(), by.begin() + m * task.k);
    });
    for (std::size_t m = 0; m < factors.size(); ++m) factors[m].last = std::sqrt(task.scale_of(index_t(m)));
  }
  double bytes() const { return 12.0 * double(order.size()) + double(sizeof(Factors)) * double(factors.size()); }
};

/// Looks at V, and returns the modification of each member. bounds (b): bounds of the norms of the columns of each
/// factor, of scalars T. Throws not_finite and overflow of the first member with such a number.
template <class T>
Prepared prepare(const double* V, index_t n, index_t b, const std::vector<double>& bounds, const BatchTask& task) {
  const double top = double(std::numeric_limits<T>::max());
  Prepared made;
  const bool plain = !task.weights && !task.scale,
             common = (!task.weights || task.common_weights) && (!task.scale || task.common_scale);
  const index_t orders = plain || common ? 1 : b;
  made.added.assign(orders, int(task.k));
  if (!plain) {
    made.order.resize(orders * task.k);
    made.by.resize(orders * task.k);
  }
  made.bounds.resize(b);
  std::vector<Factors> factors(b, Factors{1, 1, 1});
  std::atomic<bool> removes{false}, in_range{true}, scaled{false};
  for_members(n, b, [&](index_t m) {
    cpu::ColumnOrder order;
    order.find(task, m);
    if (orders > 1 || m == 0) {
      made.added[orders > 1 ? m : 0] = int(order.added);
      for (index_t p = 0; p < task.k && !plain; ++p) {
        made.order[(orders > 1 ? m : 0) * task.k + p] = int(order.column[p]);
        made.by[(orders > 1 ? m : 0) * task.k + p] = order.by[p];
      }
    }
    double largest = 0;
    cpu::for_member(m, [&] { largest = cpu::largest_weighted(task.V_of(V, n, m), n, order, top); });
    const double root = std::sqrt(task.scale_of(m)),
                 bound = root * std::hypot(bounds[m], largest * std::sqrt(double(order.added)));
    const int e = exponent_below<double>(std::max(bounds[m], largest));
    factors[m] = {std::scalbn(1.0, -e), std::scalbn(1.0, e), std::scalbn(root, e)};
    if (order.added < task.k) removes = true;
    if (!(bound <= top) || e != 0 || root != 1) in_range = false;
    if (e != 0 || root != 1) scaled = true;
    made.bounds[m] = std::min(bound, top);
  });
  const bool natural = orders == 1 && std::all_of(made.by.begin(), made.by.end(), [](double by) { return by == 1; }) &&
                       std::is_sorted(made.order.begin(), made.order.end());
  if (natural) made.order.clear(), made.by.clear();
  made.removes = removes;
  made.in_range = in_range;
  if (scaled) made.factors = std::move(factors);
  return made;
}

}  // namespace gpucholmod::cuda
