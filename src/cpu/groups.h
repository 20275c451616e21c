#pragma once

#include <algorithm>
#include <atomic>
#include <functional>
#include <limits>
#include <vector>

#include "base/check_column.h"
#include "base/range.h"
#include "base/threads.h"
#include "base/turned.h"
#include "cpu/batch_modification.h"
#include "cpu/group_layout.h"
#include "cpu/kernels.h"

/// Loops over the groups of a batch, and the loading of members into a group.
namespace gpucholmod::cpu {

/// Returns `task` with its instructions resolved.
inline BatchTask resolved(BatchTask task) {
  task.instructions = resolve(task.instructions);
  return task;
}

/// Returns the number of groups that a thread takes at once, so that each thread takes groups some 16 times.
inline index_t at_once(index_t groups, int threads) { return std::max<index_t>(1, groups / (16 * threads)); }

/// Calls f(first, last) for all groups, some groups at once, by several threads.
inline void for_ranges(index_t groups, int threads, const Poll& poll, const std::function<void(index_t, index_t)>& f) {
  std::atomic<index_t> done{0};
  for_columns(groups, threads, [&](index_t first, index_t last) {
    f(first, last);
    done += last - first;
  }, [&] { poll(double(done) / double(groups)); }, at_once(groups, threads));
}

/// Calls f(g) for each group, by several threads.
inline void for_groups(index_t groups, int threads, const Poll& poll, const std::function<void(index_t)>& f) {
  for_ranges(groups, threads, poll, [&](index_t first, index_t last) {
    for (index_t g = first; g < last; ++g) f(g);
  });
}

/// Calls f(g, work) for each group, with work memory of `run`, by several threads.
template <class T>
void for_groups(BatchModification<T>& run, const Poll& poll, const std::function<void(index_t, T*)>& f) {
  for_ranges(run.groups(), run.threads(), poll, [&](index_t first, index_t last) {
    auto work = run.work_memory();
    for (index_t g = first; g < last; ++g) f(g, work.data());
  });
}

/// Calls f(g) for each group, by several threads. f may throw, and may be called again for a group: throws the error of
/// the first group that has one.
inline void check_groups(index_t groups, int threads, const Poll& poll, const std::function<void(index_t)>& f) {
  try {
    for_groups(groups, threads, poll, f);
  } catch (const Error&) {
    for (index_t g = 0; g < groups && threads > 1; ++g) f(g);
    throw;
  }
}

/// Returns the smallest entry of the diagonal of each member of a group.
template <class T>
Lanes<T, T> least_of_group(index_t n, const T* group) {
  Lanes<T, T> least;
  least.fill(std::numeric_limits<T>::infinity());
  for (index_t j = 0; j < n; ++j) {
    const T* const entries = group + group_entry<T>(n, j, j);
    for (index_t l = 0; l < group_size<T>; ++l) least[l] = entries[l] < least[l] ? entries[l] : least[l];
  }
  return least;
}

/// Turns the rows of a group whose diagonal entry is negative (base/turned.h).
template <class T>
void turn_group(index_t n, T* group) {
  for (index_t i = 0; i < n; ++i) {
    T* const row = group + group_entry<T>(n, i, i);
    Lanes<T, bool> turns;
    for (index_t l = 0; l < group_size<T>; ++l) turns[l] = row[l] < 0;
    for (index_t at = 0; at < (n - i) * group_size<T>; ++at)
      if (turns[at % group_size<T>]) row[at] = -row[at];
  }
}

/// Loads members from number `first` on into `group`, checks each of them, and stores the bounds of their entries in
/// `ranges`.
template <class T>
void load_group(const Lanes<T, const double*>& members, index_t n, Uplo uplo, index_t first, T* group, Range* ranges) {
  Lanes<T, T> largest;
  gather<T>(members, n, uplo, group, largest);
  Lanes<T, T> least = least_of_group(n, group);
  if (std::any_of(least.begin(), least.end(), [](T entry) { return entry < 0; })) {
    turn_group(n, group);
    least = least_of_group(n, group);
  }
  for (index_t l = 0; l < group_size<T>; ++l) {
    if (!members[l]) continue;
    if (!std::isfinite(largest[l]) || !is_normal(least[l]))  // throws the error with its member and its place
      for_member(first + l, [&] {
        require_triangle<T>("R", members[l], n, uplo);
        require_diagonal<T>(Turned<double>(members[l], n, uplo).data(), n);
      });
    ranges[l] = {double(largest[l]) * std::sqrt(double(n)), double(least[l])};
  }
}

}  // namespace gpucholmod::cpu
