// Parts of gpucholmod.hpp, which includes this header: exceptions, views of matrices, right-hand sides, and calls of
// the functions of the C interface.
#ifndef GPUCHOLMOD_VIEW_HPP
#define GPUCHOLMOD_VIEW_HPP

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "gpucholmod.h"

namespace gpucholmod {

enum class Triangle { upper = GPUCHOLMOD_UPPER, lower = GPUCHOLMOD_LOWER };  ///< A = R'R or A = RR'
constexpr int on_host = GPUCHOLMOD_HOST, any_gpu = GPUCHOLMOD_ANY_GPU;  ///< devices; other devices: 0, 1, ...
constexpr int all_threads = GPUCHOLMOD_ALL_THREADS;                      ///< a number of threads: as many as are of use

/// The exception of a function that could not do what it was asked for.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const gpucholmod_status& status) : std::runtime_error(status.message), status_(status) {}
  gpucholmod_code code() const noexcept { return gpucholmod_code(status_.code); }
  /// Returns the failing pivot. This number and the next three count from 1; 0: there is none.
  std::ptrdiff_t pivot() const noexcept { return status_.pivot; }
  std::ptrdiff_t row() const noexcept { return status_.row; }
  std::ptrdiff_t col() const noexcept { return status_.col; }
  std::ptrdiff_t member() const noexcept { return status_.member; }  ///< number of a member of a batch
  const char* argument() const noexcept { return status_.argument; }  ///< name of the wrong argument; "": none is named

 private:
  gpucholmod_status status_;
};

/// The exception of a matrix that would not be positive definite: pivot() is the order of its first leading minor that
/// is not positive.
class NotPositiveDefinite : public Failure {
 public:
  using Failure::Failure;
};

/// The exception of GPUCHOLMOD_HALF_MODIFIED: the call failed while it was changing the factor, whose numbers are lost.
/// A Factor or Batch can then only be destroyed or assigned to: every other use that can throw throws this exception
/// again. pivot(), if it is not 0, is as for NotPositiveDefinite.
class HalfModified : public Failure {
 public:
  using Failure::Failure;
};

namespace detail {

/// Calls f(status), a function of the C interface, and throws a Failure unless the code is GPUCHOLMOD_OK.
template <class F>
void call(F&& f) {
  gpucholmod_status status;
  const int code = f(&status);
  if (code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) throw NotPositiveDefinite(status);
  if (code == GPUCHOLMOD_HALF_MODIFIED) throw HalfModified(status);
  if (code != GPUCHOLMOD_OK) throw Failure(status);
}

/// Throws a Failure for a bad argument.
inline void require(bool holds, const char* argument, const char* what) {
  if (holds) return;
  gpucholmod_status status{};
  status.code = GPUCHOLMOD_BAD_ARGUMENT;
  const std::string message = std::string("'") + argument + "' " + what;
  std::string(argument).copy(status.argument, sizeof status.argument - 1);
  message.copy(status.message, sizeof status.message - 1);
  throw Failure(status);
}

/// Returns whether rows x cols is `count`, without computing the product, which may overflow.
inline bool is_product(std::size_t count, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  if (rows < 0 || cols < 0) return false;
  if (rows == 0 || cols == 0) return count == 0;
  return count % std::size_t(rows) == 0 && count / std::size_t(rows) == std::size_t(cols);
}

template <class C>
using Element = std::remove_pointer_t<decltype(std::data(std::declval<C&>()))>;
/// The type of a size, if C is a container of contiguous T, or of elements that a T* may point to as they are.
template <class C, class T>
using Contiguous =
    std::enable_if_t<std::is_convertible_v<Element<C> (*)[], T (*)[]>, decltype(std::size(std::declval<C&>()))>;

}  // namespace detail

/// A column-major matrix, rows x cols, ld >= rows, that somebody else owns. A view of a temporary is good for the call
/// that it is given to.
template <class T>
class View {
 public:
  View() = default;
  View(T* data, std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t ld)
      : data_(data), rows_(rows), cols_(cols), ld_(ld) {}
  View(T* data, std::ptrdiff_t rows, std::ptrdiff_t cols) : View(data, rows, cols, rows) {}
  /// Views a std::vector, std::array, std::span, or anything else that has data() and size(), as a column.
  template <class C, class = detail::Contiguous<C, T>>
  View(C&& all) : View(std::data(all), std::ptrdiff_t(std::size(all)), 1) {}
  /// Views such a container as a matrix, by columns. Throws Failure if the container has another size.
  template <class C, class = detail::Contiguous<C, T>>
  View(C&& all, std::ptrdiff_t rows, std::ptrdiff_t cols) : View(std::data(all), rows, cols) {
    detail::require(detail::is_product(std::size(all), rows, cols), "all",
                    "has another number of elements than the matrix");
  }
  template <class U, class = std::enable_if_t<std::is_convertible_v<U (*)[], T (*)[]>>>
  View(const View<U>& other) : View(other.data(), other.rows(), other.cols(), other.ld()) {}

  T* data() const { return data_; }
  std::ptrdiff_t rows() const { return rows_; }
  std::ptrdiff_t cols() const { return cols_; }
  std::ptrdiff_t ld() const { return ld_; }

 private:
  T* data_ = nullptr;
  std::ptrdiff_t rows_ = 0, cols_ = 0, ld_ = 0;
};
template <class C>
View(C&&, std::ptrdiff_t, std::ptrdiff_t) -> View<detail::Element<C>>;

namespace detail {

inline gpucholmod_matrix matrix(View<double> A) {
  return gpucholmod_double_matrix(A.data(), A.rows(), A.cols(), A.ld());
}
inline gpucholmod_matrix matrix(View<float> A) {
  return gpucholmod_float_matrix(A.data(), A.rows(), A.cols(), A.ld());
}
inline gpucholmod_const_matrix matrix(View<const double> A) {
  return gpucholmod_const_double_matrix(A.data(), A.rows(), A.cols(), A.ld());
}
inline gpucholmod_const_matrix matrix(View<const float> A) {
  return gpucholmod_const_float_matrix(A.data(), A.rows(), A.cols(), A.ld());
}

inline gpucholmod_options default_options() {
  const gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  return options;
}
inline gpucholmod_options options_of(Triangle triangle) {
  gpucholmod_options options = default_options();
  options.triangle = int(triangle);
  return options;
}

}  // namespace detail

/// Right-hand sides that are modified along with a factor: gpucholmod_right_sides. z is n x m; for insert(), z also has
/// rows for the rows that are inserted. Y has a row for each column of V, or for each row of A that is inserted, and
/// may be missing otherwise. rss has m elements, or none.
struct RightHandSides {
  View<double> z;
  View<const double> Y;
  View<double> rss;

  gpucholmod_right_sides checked() const {
    const bool without = rss.rows() == 0 || rss.cols() == 0;
    detail::require(without || (rss.rows() == z.cols() && rss.cols() == 1), "rss",
                    "has another length than there are right-hand sides");
    return {detail::matrix(z), detail::matrix(Y), without ? nullptr : rss.data()};
  }
};

namespace detail {

/// Holds k weights of -1. One weight needs no allocation.
class Minus {
 public:
  explicit Minus(std::ptrdiff_t k) : more_(k > 1 ? std::size_t(k) : 0, -1.0) {}
  const double* data() const { return more_.empty() ? &one_ : more_.data(); }

 private:
  double one_ = -1;
  std::vector<double> more_;
};

struct Destroy {
  void operator()(gpucholmod_factor* held) const noexcept { gpucholmod_factor_destroy(held); }
  void operator()(gpucholmod_batch* held) const noexcept { gpucholmod_batch_destroy(held); }
};
/// A gpucholmod_factor or gpucholmod_batch.
template <class Held>
using Owned = std::unique_ptr<Held, Destroy>;

/// Returns what f(made, status), a function of the C interface, makes.
template <class Held, class F>
Owned<Held> make(F&& f) {
  Held* made = nullptr;
  call([&](gpucholmod_status* status) { return f(&made, status); });
  return Owned<Held>(made);
}

/// Calls f(sides, status) with the right-hand sides as C takes them, or with NULL.
template <class F>
void with_sides(const RightHandSides* sides, F&& f) {
  if (!sides) return call([&](gpucholmod_status* status) { return f(nullptr, status); });
  const gpucholmod_right_sides checked = sides->checked();
  call([&](gpucholmod_status* status) { return f(&checked, status); });
}

inline void require_weights(View<const double> weights, std::ptrdiff_t k) {
  require(weights.rows() == k && weights.cols() == 1, "weights", "has another length than V has columns");
}

}  // namespace detail

}  // namespace gpucholmod
#endif
