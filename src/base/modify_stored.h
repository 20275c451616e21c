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

/// Numbers of V from which on a look at them on the host takes longer than one on a device, which starts a kernel.
constexpr index_t worth_a_look = 4096;

/// Modifies R into a second factor though nobody has looked at V yet: the device does so while it works. Returns false,
/// and has changed nothing, if there is no room for a second factor or numbers need care: then V has to be looked at
/// first, which finds what is wrong with it and where. Throws not_finite and overflow where a downdate fails and V
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
  // Where a pass has failed, those behind it have not been looked at.
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

/// What modify_stored() does where there is nothing to add or take away.
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

/// What HeldFactor::modify() promises, once for every storage that a factor of scalars T may lie in. A Storage has
///
///   Computed              the scalars in which R and V are scaled and modified
///   device_name()         of the GPU that it is on, if any
///   range(), set_range()  the Range of its entries, as far as it is known
///   look()                finds that out anew
///   together(f)           does f, one operation of all processes that share it, and returns the failing pivot
///   may_fail(task)        whether an update in place may fail though `range()` does not tell
///   looks                 whether a sweep can look at V while it works, and multiply its columns: then
///                         modify_at_once() gives it ColumnsOfV that may not be made, asks for that by a last argument
///                         of sweep(), and for what it has seen by its largest(); where a number of V is larger than
///                         `largest_plain`, the sweep does nothing
///   sweep(V, task, e, scale, poll)
///                         the modification of R / 2^e by V / 2^e, whose result is multiplied by `scale`; of that
///     tests()             whether it can find out without writing anything whether R can be modified
///     second(f), second_if_room(f)
///                         f(), which allocates a second factor; the latter null where none is wanted, or has no room
///     run(R, to, begun, work)
///                         does it from R to `to`, which may be R; null: finds that out. `begun`, if given, becomes
///                         true when all memory is there, before anything is written. Returns the failing pivot
///     finish(work)        waits until the device has done all, and says in `work` what it took
///   another()             memory for a second factor
///   divided(e), scaled(by)   a second factor, R / 2^e to be computed with, and `by` R as a result
///   multiply(by)          the same of a result in place
///   settle_range()        looks at a result that may have come near the ends of the range
///   replace(other, made, begun)
///                         what is in `other` becomes *made, or, where `made` is null, this factor. `begun` becomes
///                         true before anything that may throw and leave this factor half modified
///
/// By way of a second factor where numbers need scaling, may become too large for T, or too small on the diagonal, for
/// a new one, and where the storage wants one. In place, whether R can be modified is found out beforehand.
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
  std::unique_ptr<Storage> other;  // outlives what writes to it
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
      // Nothing is changed before all processes have come to this, whatever one of them may fail at.
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
    if (ahead.rescale) other->multiply(std::scalbn(task.scale, ahead.e));
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
