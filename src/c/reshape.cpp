#include "c/callers_factor.h"

/// Functions that insert, delete and move rows and columns of a factor in the caller's memory.
namespace gpucholmod::c {
namespace {

/// Checks the arguments that the three functions share, and changes the factor by f. Returns the code. X: the columns
/// that are to be inserted, for which R has room; null if none are.
template <class F>
int change_in_memory(const gpucholmod_matrix& R, const gpucholmod_const_matrix* X, const gpucholmod_right_sides* sides,
                     const gpucholmod_options* options, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    const Options chosen = options_of(options, in_callers_memory);
    return with_type("R", R.type, [&](auto s) {
      using S = decltype(s);
      const MatrixView<S> given = view<S>("R", R);
      require(R.rows == R.cols, "R", "must be square");
      const index_t coming = X ? X->cols : 0, n = R.cols - coming;
      require(coming >= 0 && coming <= R.cols, "R", "has no room for the rows and columns that are inserted");
      require(!X || X->type == R.type, "X", "has another type than R");
      if (X) require_new_columns(*X, n);
      if (sides && sides->z.cols != 0) views_of(*sides, n, coming, R.cols);
      return CallersFactor<S>(given, n, chosen).change(sides, f);
    });
  });
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod;
using namespace gpucholmod::c;

extern "C" {

int gpucholmod_insert(gpucholmod_matrix R, ptrdiff_t at, gpucholmod_const_matrix X,
                      const gpucholmod_right_sides* sides, const gpucholmod_options* options,
                      gpucholmod_status* status) {
  return change_in_memory(R, &X, sides, options, status, [&](const Changing& what, const Reshaping& given) {
    return c::insert(what, at, X, given);
  });
}

int gpucholmod_delete(gpucholmod_matrix R, const ptrdiff_t* rows, ptrdiff_t count, const gpucholmod_right_sides* sides,
                      const gpucholmod_options* options, gpucholmod_status* status) {
  return change_in_memory(R, nullptr, sides, options, status, [&](const Changing& what, const Reshaping& given) {
    return c::remove(what, rows, count, given);
  });
}

int gpucholmod_shift(gpucholmod_matrix R, ptrdiff_t from, ptrdiff_t to, const gpucholmod_right_sides* sides,
                     const gpucholmod_options* options, gpucholmod_status* status) {
  return change_in_memory(R, nullptr, sides, options, status, [&](const Changing& what, const Reshaping& given) {
    return c::shift(what, from, to, given);
  });
}

}  // extern "C"
