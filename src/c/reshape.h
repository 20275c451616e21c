#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "base/turned.h"
#include "c/handle.h"
#include "c/right_sides.h"
#include "modify/choice.h"

/// Functions that insert, delete and move rows and columns of A, for a factor with memory of its own.
namespace gpucholmod::c {

/// Describes the rest of a call that changes a factor: right-hand sides, options and copies.
struct Reshaping {
  const gpucholmod_right_sides* sides;
  const Options& options;
  /// The function that is called after the factor has changed and before the caller's right-hand sides change.
  std::function<void()> then = [] {};
  /// The turned rows of the factor, if the factor is a copy of the caller's and has such rows.
  const TurnedRows* turned = nullptr;
};

/// Calls f(task), which adds `coming` rows and columns to A, or removes `going`, along with right-hand sides. Returns
/// the failing pivot, or -1.
template <class F>
index_t reshape(const HeldFactor& R, index_t coming, index_t going, const Reshaping& given, F&& f) {
  const index_t n = R.order(), after = n + coming - going;
  const SidesOnHost here(given.sides, coming > 0, given.options);
  const std::shared_ptr<OwnedRightHandSides> sides = copied(here.get(), n, coming, std::max(n, after));
  if (sides && given.turned) given.turned->turn(*sides);
  Request what = resolved(request_of(n, coming + going, R.precision(), given.options), Choice{});
  what.removed = coming;  // rss shrinks by squares of `rest`, as for columns that a modification takes away
  if (sides) what.right = sides->view(what, sides->Y.data(), after);
  const index_t pivot = f(what);
  if (pivot >= 0) return pivot;
  given.then();
  if (sides) sides->settle(what, false);
  put_back_sides(sides.get(), here.get());
  here.put_back();
  return -1;
}

/// Does what reshape() does if no row is inserted, deleted or moved. Returns -1.
inline index_t keep_as_it_is(const HeldFactor& R, const Reshaping& given) {
  const SidesOnHost here(given.sides, false, given.options);
  const std::shared_ptr<OwnedRightHandSides> sides = copied(here.get(), R.order(), 0, R.order());
  if (sides && given.turned) given.turned->turn(*sides);
  given.then();
  if (!given.turned) return -1;
  put_back_sides(sides.get(), here.get());
  here.put_back();
  return -1;
}

/// Throws bad_argument unless X can be the new columns of a factor of order n.
inline void require_new_columns(const gpucholmod_const_matrix& X, index_t n) {
  require_sizes("X", X);
  require(X.rows - X.cols == n, "X", "has another number of rows than the new factor");
}

/// Inserts rows and columns, the first of which becomes number `at`. X: their columns of the new A. Returns the failing
/// pivot, or -1.
inline index_t insert(const Changing& what, index_t at, const gpucholmod_const_matrix& X, const Reshaping& given) {
  HeldFactor& R = what.R;
  const index_t n = R.order(), p = X.cols;
  require_new_columns(X, n);
  require(at >= 0 && at <= n, "at", "must be one of 0 .. n");
  if (p == 0) return keep_as_it_is(R, given);
  CallersColumns columns("X", X, given.options);
  return reshape(R, p, 0, given, [&](const Task& task) {
    return R.insert(at, columns.host(), p, task, what.made, given.options.poll(), what.begun);
  });
}

/// Deletes `count` rows and columns, whose numbers `rows` are ascending. Returns -1.
inline index_t remove(const Changing& what, const index_t* rows, index_t count, const Reshaping& given) {
  HeldFactor& R = what.R;
  require(count >= 0, "count", "must not be negative");
  require(rows != nullptr || count == 0, "rows", "are missing");
  for (index_t i = 0; i < count; ++i)
    require(rows[i] >= 0 && rows[i] < R.order() && (i == 0 || rows[i] > rows[i - 1]), "rows",
            "must be rows of the factor in ascending order");
  if (count == 0) return keep_as_it_is(R, given);
  return reshape(R, 0, count, given, [&](const Task& task) {
    R.remove(std::vector<index_t>(rows, rows + count), task, what.made, given.options.poll(), what.begun);
    return index_t(-1);
  });
}

/// Moves row and column `from` to number `to`. Returns -1.
inline index_t shift(const Changing& what, index_t from, index_t to, const Reshaping& given) {
  HeldFactor& R = what.R;
  require(from >= 0 && from < R.order(), "from", "must be a row of the factor");
  require(to >= 0 && to < R.order(), "to", "must be a row of the factor");
  if (from == to) return keep_as_it_is(R, given);
  return reshape(R, 0, 0, given, [&](const Task& task) {
    R.shift(from, to, task, what.made, given.options.poll(), what.begun);
    return index_t(-1);
  });
}

}  // namespace gpucholmod::c
