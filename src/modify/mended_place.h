#pragma once

#include <algorithm>
#include <memory>
#include <optional>

#include "base/zeros.h"
#include "modify/place.h"

namespace gpucholmod {

/// Writes a result to another sink, and makes stand-ins zeros again.
template <class S>
class MendedSink : public Sink<S> {
 public:
  MendedSink(Sink<S>& out, const Zeros& zeros, const Task& task) : out_(out), zeros_(zeros), task_(task) {}
  void put(index_t j, index_t first, index_t last, const S* values) override {
    if (!zeros_.any()) return out_.put(j, first, last, values);
    std::vector<S> mended(values, values + (last - first));
    zeros_.take(task_.uplo, j, first, last, task_.scale, mended.data());
    out_.put(j, first, last, mended.data());
  }
  void clear(index_t j, index_t first, index_t last) override { out_.clear(j, first, last); }

 private:
  Sink<S>& out_;
  const Zeros& zeros_;
  const Task& task_;
};

/// A place whose factor has entries on its diagonal that are not positive. Rows with a negative entry are turned, and
/// the rows of right-hand sides with them; zeros have stand-ins. Unless the call succeeds, the destructor restores what
/// belongs to the caller, but not R itself if R has begun to change.
template <class S>
class MendedPlace : NotCopied {
 public:
  /// Mends the factor: in a copy, in place, or, from a file, while it is read. task: the task that is carried out.
  /// Throws bad_diagonal if R has zeros and columns are to be taken away.
  MendedPlace(const Place<S>& given, const S* V, const Task& task, OwnedRightHandSides* sides)
      : task_(task), memory_(given.R, task.n), rows_(source_of(given), task.n, task.uplo),
        zeros_(source_of(given), task.n), place_(given), sides_(sides) {
    zeros_.require_update(task.removed);
    if (zeros_.any()) zeros_.choose<S>(task.precision, largest_of_all(given, V));
    if (!is_needed()) return;
    if (given.where == Where::file) {
      place_.source = &source_.emplace(*given.source, rows_, zeros_);
      place_.sink = &sink_.emplace(*given.sink, zeros_, task);
    } else if (given.where == Where::memory) {
      copy_.reset(new S[task.n * task.n]);
      std::copy_n(given.R, task.n * task.n, copy_.get());
      place_.R = copy_.get();
      mend(copy_.get());
    } else {
      mend(place_.out);
    }
    if (sides_) rows_.turn(*sides_);
  }
  ~MendedPlace() {
    if (succeeded_ || !is_needed()) return;
    if (sides_) rows_.turn(*sides_);
    if (place_.where != Where::in_place || *place_.begun) return;
    rows_.turn(place_.out);
    zeros_.restore(place_.out);
  }

  bool is_needed() const { return rows_.any() || zeros_.any(); }
  bool has_zeros() const { return zeros_.any(); }
  const Place<S>& place() const { return place_; }
  void succeed() {
    succeeded_ = true;
    if (place_.where != Where::file) zeros_.take(task_.uplo, place_.out, task_.scale);
  }

 private:
  const Source<S>& source_of(const Place<S>& place) const {
    return place.where == Where::file ? *place.source : static_cast<const Source<S>&>(memory_);
  }
  double largest_of_all(const Place<S>& given, const S* V) const {
    double largest = largest_in_triangle(source_of(given), task_.n, task_.uplo);
    for (index_t q = 0; q < task_.k; ++q)
      largest = std::max(largest, double(largest_of("V", V + q * task_.n, task_.n, 0, q)));
    return largest;
  }
  void mend(S* R) const {
    rows_.turn(R);
    zeros_.put(R);
  }

  const Task& task_;
  MemorySource<S> memory_;
  TurnedRows rows_;
  Zeros zeros_;
  Place<S> place_;
  OwnedRightHandSides* sides_;
  std::unique_ptr<S[]> copy_;
  std::optional<MendedSource<S>> source_;
  std::optional<MendedSink<S>> sink_;
  bool succeeded_ = false;
};

/// Returns run(place, definite). Runs for the given place first, as if the matrix were positive definite. If this run
/// finds an entry on the diagonal that is not positive, runs again for a mended place.
template <class S, class F>
Work mending_diagonal(const Place<S>& place, const S* V, const Task& task, OwnedRightHandSides* sides, F&& run) {
  std::optional<MendedPlace<S>> mended;
  try {
    return run(place, true);
  } catch (const Error& error) {
    const bool begun = place.begun && *place.begun;
    if (error.code() != ErrorCode::bad_diagonal || begun) throw;
    if (!mended.emplace(place, V, task, sides).is_needed()) throw;
  }
  Work work = run(mended->place(), !mended->has_zeros());
  if (work.pivot < 0) mended->succeed();
  return work;
}

}  // namespace gpucholmod
