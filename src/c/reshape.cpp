#include "c/reshape.h"

#include <optional>
#include <utility>

#include "c/hold.h"

/// Rows and columns that come, go and move in a factor in the caller's memory.
namespace gpucholmod::c {
namespace {

/// The factor of a call: R is the caller's, n its order before. An upper factor with a positive diagonal changes where
/// it is, unless the call may be stopped or numbers need scaling; of others a copy is changed.
template <class S>
class Reshaped {
 public:
  Reshaped(MatrixView<S> R, index_t n, const Options& options) : R_(R), options_(options) {
    const MemorySource<S> source(R.data, R.ld);
    rows_.emplace(source, n, options.uplo);
    in_place_ = options.uplo == Uplo::upper && !options.progress && !rows_->any() && !Zeros(source, n).any();
    const auto allocate = [this](std::size_t bytes) {
      in_place_ = false;
      return cpu::ordinary_memory(bytes);
    };
    held_ = in_place_ ? cpu::hold_in_place(R.data, n, R.ld, allocate, options.threads)
                      : held<S>(R.block(0, 0, n, n), R.cols, options);
  }
  Reshaped(const Reshaped&) = delete;

  /// Calls f(changing, reshaping), and puts what a copy has become to the caller's memory. Nothing of the caller's
  /// changes before nothing can fail any more.
  template <class F>
  index_t change(const gpucholmod_right_sides* sides, F&& f) {
    std::atomic<bool> begun{false};
    const Reshaping given{sides, options_, [this] { fetch(); }, rows_->any() ? &*rows_ : nullptr};
    index_t pivot;
    try {
      pivot = f(Changing{*held_, nullptr, begun}, given);
    } catch (const std::exception& error) {
      if (begun && in_place_) throw HalfModified(std::string("'R' is half modified: ") + error.what());
      throw;
    }
    if (pivot < 0 && !in_place_) put_back();
    return pivot;
  }

 private:
  void fetch() {
    if (in_place_) return;
    numbers_.resize(held_->order() * held_->order());
    held_->download(options_.uplo, numbers_.data());
  }
  void put_back() const {
    const index_t m = held_->order();
    for (index_t j = 0; j < m; ++j) {
      const auto [first, last] = rows_of(j, m, options_.uplo);
      std::copy(numbers_.data() + j * m + first, numbers_.data() + j * m + last, R_.col(j) + first);
    }
  }

  MatrixView<S> R_;
  const Options& options_;
  std::optional<TurnedRows> rows_;
  bool in_place_ = false;
  std::unique_ptr<HeldFactor> held_;
  std::vector<double> numbers_;
};

/// What the functions have in common. X: the columns that are to be inserted, for which R has room, or null.
template <class F>
int change_in_memory(const gpucholmod_matrix& R, const gpucholmod_const_matrix* X, const gpucholmod_right_sides* sides,
                     const gpucholmod_options* options, gpucholmod_status* status, F&& f) {
  return guarded(status, [&] {
    const Options chosen = options_of(options, option::triangle | option::threads | option::progress);
    return with_type("R", R.type, [&](auto s) {
      using S = decltype(s);
      const MatrixView<S> given = view<S>("R", R);
      require(R.rows == R.cols, "R", "must be square");
      const index_t coming = X ? X->cols : 0, n = R.cols - coming;
      require(coming >= 0 && coming <= R.cols, "R", "has no room for the rows and columns that are inserted");
      require(!X || X->type == R.type, "X", "has another type than R");
      if (X) require_new_columns(*X, n);
      if (sides && sides->z.cols != 0) views_of(*sides, n, coming, R.cols);
      return Reshaped<S>(given, n, chosen).change(sides, f);
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
