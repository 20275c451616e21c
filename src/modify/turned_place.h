#pragma once

#include "base/turned.h"
#include "modify/place.h"

namespace gpucholmod {

/// A place whose factor has negative entries on its diagonal, with the rows of these turned, and those of right-hand
/// sides with them. Unless the call succeeds, what belongs to the caller is turned back.
template <class S>
class TurnedPlace : NotCopied {
 public:
  /// task: of n and uplo.
  TurnedPlace(const Place<S>& given, const Task& task, OwnedRightHandSides* sides)
      : rows_(rows_to_turn(given, task)), place_(given), sides_(sides) {
    if (!rows_.any()) return;
    if (given.where == Where::file) {
      source_.emplace(*given.source, rows_);
      place_.source = &*source_;
    } else if (given.where == Where::memory) {
      copy_.reset(new S[task.n * task.n]);
      std::copy_n(given.R, task.n * task.n, copy_.get());
      rows_.turn(copy_.get());
      place_.R = copy_.get();
    } else {
      rows_.turn(given.out);
    }
    turn_sides();
  }
  ~TurnedPlace() {
    if (succeeded_ || !rows_.any()) return;
    turn_sides();
    if (place_.where == Where::in_place && !*place_.begun) rows_.turn(place_.out);
  }

  bool any() const { return rows_.any(); }
  const Place<S>& place() const { return place_; }
  void succeed() { succeeded_ = true; }

 private:
  static TurnedRows rows_to_turn(const Place<S>& place, const Task& task) {
    if (place.where == Where::file) return {*place.source, task.n, task.uplo};
    return {MemorySource<S>(place.R, task.n), task.n, task.uplo};
  }
  void turn_sides() {
    if (sides_) rows_.turn(*sides_);
  }

  TurnedRows rows_;
  Place<S> place_;
  OwnedRightHandSides* sides_;
  std::unique_ptr<S[]> copy_;
  std::optional<TurnedSource<S>> source_;
  bool succeeded_ = false;
};

/// Returns run(place). Where that finds a diagonal that is not positive because entries are negative, it runs again
/// with the rows of these turned.
template <class S, class F>
Work turning_rows(const Place<S>& place, const Task& task, OwnedRightHandSides* sides, F&& run) {
  std::optional<TurnedPlace<S>> turned;
  try {
    return run(place);
  } catch (const Error& error) {
    const bool begun = place.begun && *place.begun;
    if (error.code() != ErrorCode::bad_diagonal || begun || !turned.emplace(place, task, sides).any()) throw;
  }
  Work work = run(turned->place());
  if (work.pivot < 0) turned->succeed();
  return work;
}

}  // namespace gpucholmod
