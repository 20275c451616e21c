#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "c/batch_sides.h"
#include "c/handle.h"
#include "modify/batch.h"

/// Functions that insert, delete and move rows and columns of the members of a batch.
namespace gpucholmod::c {
namespace {

/// Returns the insertion that a call asks for. X: the new columns, as doubles in the host's memory. Throws
/// bad_argument.
BatchInsertion insertion_of(const gpucholmod_batch_insertion& what, const HeldBatch& R, const double* X) {
  const index_t count = R.count();
  BatchInsertion made;
  made.p = what.p;
  made.X = X;
  made.common_X = what.X.cols == what.p;
  require(what.independent == 0 || what.independent == 1, "what->independent", "must be 0 or 1");
  made.all_or_none = what.independent == 0;
  if (!what.at) return made;
  require(what.at_count == 1 || what.at_count == count, "what->at_count", "must be 1, or the number of members");
  made.at.assign(what.at, what.at + what.at_count);
  const std::vector<index_t> orders = R.orders();
  for (index_t m = 0; m < count; ++m)
    require(made.place(m, orders[m]) >= 0 && made.place(m, orders[m]) <= orders[m], "what->at",
            "must be from 0 to the order of the member");
  return made;
}

index_t insert(const ChangingOf<HeldBatch>& changing, const gpucholmod_batch_insertion& what, const Options& options,
               std::vector<index_t>& pivots) {
  HeldBatch& R = changing.R;
  require(what.p >= 0 && what.p <= std::numeric_limits<int>::max() - R.order(), "what->p",
          "must not be negative, nor more than there can be");
  require_sizes("what->X", what.X);
  require(what.X.rows == R.order() + what.p, "what->X", "has another number of rows than the new factors");
  require(what.X.cols == what.p || has_columns(what.X.cols, what.p, R.count()), "what->X",
          "must have p columns, or p for each member");
  ReadColumns X("what->X", what.X, options);
  BatchInsertion insertion = insertion_of(what, R, X.given().host());
  SidesOfMembers sides(what.sides, R, options, insertion);
  renaming("X", "what->X",
           [&] { naming_members([&] { R.insert(insertion, changing.made, pivots, changing.begun); }); });
  const index_t failed = first_failing(pivots);
  if (!insertion.all_or_none || failed < 0) {
    changing.begun = !changing.made;  // until the right-hand sides match the members
    sides.put_back(pivots);
  }
  changing.begun = false;
  return failed;
}

void remove(const ChangingOf<HeldBatch>& changing, index_t p, const index_t* rows, index_t rows_count,
            const gpucholmod_right_sides* given, const Options& options) {
  HeldBatch& R = changing.R;
  require(p >= 0 && p <= R.order(), "p", "must be from 0 to the order of the factors");
  require(rows != nullptr || rows_count == 0, "rows", "is missing");
  require(rows_count == p || has_columns(rows_count, p, R.count()), "rows_count",
          "must be p, or p times the number of members");
  BatchRemoval removal{p, {rows, rows + rows_count}};
  const std::vector<index_t> orders = R.orders();
  for (index_t m = 0; m < R.count() && p > 0; ++m) {
    const index_t* const gone = removal.of(m);
    require(std::adjacent_find(gone, gone + p, std::greater_equal<index_t>()) == gone + p, "rows",
            "must be ascending");
    require(gone[0] >= 0 && gone[p - 1] < orders[m], "rows", "must be rows of every member");
  }
  SidesOfMembers sides(given, R, options, removal);
  naming_members([&] { R.remove(removal, changing.made, changing.begun); });
  changing.begun = !changing.made;
  sides.put_back({});
  changing.begun = false;
}

void shift(const ChangingOf<HeldBatch>& changing, const ptrdiff_t* from, const ptrdiff_t* to, index_t places_count,
           const gpucholmod_right_sides* given, const Options& options) {
  HeldBatch& R = changing.R;
  require(places_count == 1 || places_count == R.count(), "places_count", "must be 1, or the number of members");
  require(from != nullptr || places_count == 0, "from", "is missing");
  require(to != nullptr || places_count == 0, "to", "is missing");
  BatchShift what{{from, from + places_count}, {to, to + places_count}};
  const std::vector<index_t> orders = R.orders();
  for (index_t m = 0; m < R.count(); ++m) {
    require(what.from_of(m) >= 0 && what.from_of(m) < orders[m], "from", "must be rows of the members");
    require(what.to_of(m) >= 0 && what.to_of(m) < orders[m], "to", "must be rows of the members");
  }
  SidesOfMembers sides(given, R, options, what);
  naming_members([&] { R.shift(what, changing.made, changing.begun); });
  changing.begun = !changing.made;
  sides.put_back({});
  changing.begun = false;
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_batch_insert(gpucholmod_batch* given, const gpucholmod_batch_insertion* what, ptrdiff_t* pivots,
                            gpucholmod_status* status) {
  index_t failed = -1;
  const auto f = [&](const ChangingOf<HeldBatch>& changing, const Options& chosen) {
    require(what != nullptr, "what", "is missing");
    std::vector<index_t> found;
    failed = c::insert(changing, *what, chosen, found);
    for (std::size_t j = 0; pivots && j < found.size(); ++j) pivots[j] = found[j] + 1;
    return failed >= 0 ? found[failed] : -1;
  };
  const int code = change<HeldBatch>("batch", given, nullptr, status, f);
  if (status && failed >= 0) status->member = failed + 1;
  return code;
}

int gpucholmod_batch_delete(gpucholmod_batch* given, ptrdiff_t p, const ptrdiff_t* rows, ptrdiff_t rows_count,
                            const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const auto f = [&](const ChangingOf<HeldBatch>& changing, const Options& chosen) {
    c::remove(changing, p, rows, rows_count, sides, chosen);
    return index_t(-1);
  };
  return change<HeldBatch>("batch", given, nullptr, status, f);
}

int gpucholmod_batch_shift(gpucholmod_batch* given, const ptrdiff_t* from, const ptrdiff_t* to, ptrdiff_t places_count,
                           const gpucholmod_right_sides* sides, gpucholmod_status* status) {
  const auto f = [&](const ChangingOf<HeldBatch>& changing, const Options& chosen) {
    c::shift(changing, from, to, places_count, sides, chosen);
    return index_t(-1);
  };
  return change<HeldBatch>("batch", given, nullptr, status, f);
}

int gpucholmod_batch_orders(const gpucholmod_batch* given, ptrdiff_t* orders, gpucholmod_status* status) {
  return guarded(status, [&] {
    const std::vector<index_t> all = batch(given).orders();
    require(orders != nullptr || all.empty(), "orders", "is missing");
    std::copy(all.begin(), all.end(), orders);
    return index_t(-1);
  });
}

}  // extern "C"
