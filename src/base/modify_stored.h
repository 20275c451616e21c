#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <memory>

#include "base/check_column.h"
#include "base/clock.h"
#include "base/held_factor.h"
#include "base/range.h"

namespace gpucholmod {

/// The number of entries of V from which on the host looks at V for longer than a device, which has to start a kernel.
constexpr index_t worth_a_look = 4096;

/// Modifies R into a second factor before anybody has looked at V: the device looks at V while it works. Returns false,
/// and has changed nothing, if there is no room for a second factor or numbers need care. The caller then has to look
/// at V first, which finds what is wrong with V and where. Throws not_finite and overflow if a downdate fails and V
/// holds such a number.
template <class T, class Storage>
bool modify_at_once(Storage& R, const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made,
                    const Poll& poll, std::atomic<bool>& begun, Work& work) {
  const auto look_ahead = [&](double largest) {
    return prospect<T, typename Storage::Computed>(R.range(), largest, task.added(), task.removed, task.scale);
  };
  const auto needs_care = [](const Prospect& ahead) { return ahead.rescale || ahead.vanishes; };
  if (needs_care(look_ahead(0))) return false;
  auto sweep = R.sweep(V, task, 0, task.scale, poll, true);
  const Clock clock;
  const auto another = [&] { return R.another(); };
  std::unique_ptr<Storage> other = made ? sweep.second(another) : sweep.second_if_room(another);
  if (!other) return false;
  try {
    work.pivot = sweep.run(R, other.get(), nullptr, work);
  } catch (const Error& error) {
    if (error.code() == ErrorCode::overflow || error.code() == ErrorCode::bad_diagonal) return false;
    throw;
  }
  // If a pass has failed, the device has not looked at the columns of later passes.
  const double seen = sweep.largest(), largest = work.pivot < 0 ? seen : largest_in_V<T>(V.view(task.n, task.k));
  const Prospect ahead = look_ahead(largest);
  if (std::max(seen, largest) > Storage::largest_plain || needs_care(ahead)) return false;
  work.seconds = clock.seconds();
  sweep.finish(work);
  if (work.pivot >= 0) return true;
  other->set_range(ahead.range);
  R.replace(std::move(other), made, begun);
  return true;
}

/// Multiplies R by `scale`, which is all that modify_stored() does if R or V has no columns.
template <class Storage>
Work scale_stored(Storage& R, double scale, std::unique_ptr<HeldFactor>* made, std::atomic<bool>& begun) {
  Work work;
  work.device = R.device_name();
  if (!made && scale == 1) return work;
  std::unique_ptr<Storage> other;
  R.together([&] {
    other = R.scaled(scale);
    return index_t(-1);
  });
  R.replace(std::move(other), made, begun);
  return work;
}

/// Does what HeldFactor::modify() promises, for every storage of a factor of scalars T. A Storage has
///
///   Computed              the scalars in which R and V are scaled and modified
///   device_name()         the name of the GPU that holds the factor, if any
///   range(), set_range()  the Range of its entries, as far as it is known
///   look()                finds the range anew
///   together(f)           calls f, one operation of all processes that share R, and returns the failing pivot
///   may_fail(task)        whether an update in place may fail although `range()` does not tell
///   looks                 true if a sweep can look at V while it works, and multiply the columns of V. Then
///                         modify_at_once() passes ColumnsOfV whose multiples may not have been made, asks for the
///                         look by a last argument of sweep(), and reads the outcome from the sweep's largest(); if a
///                         number of V is larger than `largest_plain`, the sweep does nothing
///   sweep(V, task, e, scale, poll)
///                         the modification of R / 2^e by V / 2^e, whose result is multiplied by `scale`; it has
///     tests()             whether the sweep can test the modification without writing to the factor
///     second(f), second_if_room(f)
///                         f(), which allocates a second factor; second_if_room() returns null if no second factor is
///                         wanted, or memory is short
///     run(R, to, begun, work)
///                         modifies R into `to`, which may be R; if `to` is null, only tests the modification. Sets
///                         `begun`, if given, when all memory is allocated, before anything is written. Returns the
///                         failing pivot
///     finish(work)        waits until the device has done all, and records in `work` what the modification took
///   another()             allocates memory for a second factor
///   divided(e), scaled(by)   a second factor: R / 2^e to be computed with, and `by` R as a result
///   scale_by(by)          multiplies a result by `by` in place
///   settle_range()        looks at a result that may have come near the ends of the range
///   replace(other, made, begun)
///                         moves the factor in `other` to *made, or, if `made` is null, to this factor. Sets `begun`
///                         before anything that may throw and leave this factor half modified
///
/// Modifies by way of a second factor if numbers need scaling, or may become too large for T or too small on the
/// diagonal; if a new factor is wanted; and if the storage wants a second factor. In place, finds out first whether R
/// can be modified.
template <class T, class Storage>
Work modify_stored(Storage& R, const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made,
                   const Poll& poll, std::atomic<bool>& begun) {
  const index_t n = R.order(), k = task.k;
  Work work;
  if constexpr (Storage::looks)
    if (n * k >= (V.on_gpu() ? 1 : worth_a_look) && modify_at_once<T>(R, V, task, made, poll, begun, work))
      return work;
  const double largest = largest_in_V<T>(V.view(n, k));
  work = {};
  if (n == 0 || k == 0) return scale_stored(R, task.scale, made, begun);
  const auto look_ahead = [&] {
    return prospect<T, typename Storage::Computed>(R.range(), largest, task.added(), task.removed, task.scale);
  };
  Prospect ahead = look_ahead();
  if (ahead.rescale || ahead.vanishes) {
    R.look();
    ahead = look_ahead();
  }
  const bool careful = ahead.rescale || ahead.vanishes;
  std::unique_ptr<Storage> other;  // outlives the sweep that writes to it
  auto sweep = R.sweep(V.data(), task, ahead.rescale ? ahead.e : 0, ahead.rescale ? 1 : task.scale, poll);
  const Clock clock;
  const auto finish = [&] {
    work.seconds = clock.seconds();
    sweep.finish(work);  // may throw
  };
  if (!made && !careful) {
    other = sweep.second_if_room([&] { return R.another(); });
    const bool test = !other && ((task.removed > 0 && task.keep_intact) || R.may_fail(task));
    if (!other && (!test || sweep.tests())) {
      // No process changes its columns before all processes have reached this point, even if one of them fails.
      work.pivot = R.together([&] { return test ? sweep.run(R, nullptr, nullptr, work) : index_t(-1); });
      if (work.pivot < 0) work.pivot = R.together([&] { return sweep.run(R, &R, &begun, work); });
      finish();
      if (work.pivot < 0) R.set_range(ahead.range);
      return work;
    }
  }
  work.pivot = R.together([&]() -> index_t {
    if (!other) other = sweep.second([&] { return ahead.rescale ? R.divided(ahead.e) : R.another(); });
    if (const index_t pivot = sweep.run(ahead.rescale ? *other : R, other.get(), nullptr, work); pivot >= 0)
      return pivot;
    if (ahead.rescale) other->scale_by(std::scalbn(task.scale, ahead.e));
    other->set_range(ahead.range);
    if (careful) other->settle_range();
    return -1;
  });
  finish();
  work.unscaled_z = ahead.rescale;
  if (work.pivot < 0) R.replace(std::move(other), made, begun);
  return work;
}

}  // namespace gpucholmod
