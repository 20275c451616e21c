// What gpucholmod.hpp is made of: exceptions, views of matrices, right-hand sides, and how the functions of the C
// interface are called. Included by it.
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
constexpr int on_host = GPUCHOLMOD_HOST, any_gpu = GPUCHOLMOD_ANY_GPU;  ///< devices; others: 0, 1, ...
constexpr int all_threads = GPUCHOLMOD_ALL_THREADS;                      ///< as many as are of use

/// A function could not do what it was asked for.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const gpucholmod_status& status) : std::runtime_error(status.message), status_(status) {}
  gpucholmod_code code() const noexcept { return gpucholmod_code(status_.code); }
  std::ptrdiff_t pivot() const noexcept { return status_.pivot; }  ///< these four from 1; 0: there is none
  std::ptrdiff_t row() const noexcept { return status_.row; }
  std::ptrdiff_t col() const noexcept { return status_.col; }
  std::ptrdiff_t member() const noexcept { return status_.member; }  ///< of a batch
  const char* argument() const noexcept { return status_.argument; }  ///< that is wrong; "": none is named

 private:
  gpucholmod_status status_;
};

/// The matrix would not be positive definite: pivot() is the order of its first leading minor that is not.
class NotPositiveDefinite : public Failure {
 public:
  using Failure::Failure;
};

/// GPUCHOLMOD_HALF_MODIFIED: the call failed while it was changing the factor, whose numbers are lost. A Factor can
/// then only be destroyed or assigned to: every other use that can throw throws this again. pivot(), where it is not 0,
/// as of NotPositiveDefinite.
class HalfModified : public Failure {
 public:
  using Failure::Failure;
};

namespace detail {

/// f(status), a function of the C interface.
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

/// Is true if rows x cols is `count`: without the product, which may overflow.
inline bool is_product(std::size_t count, std::ptrdiff_t rows, std::ptrdiff_t cols) {
  if (rows < 0 || cols < 0) return false;
  if (rows == 0 || cols == 0) return count == 0;
  return count % std::size_t(rows) == 0 && count / std::size_t(rows) == std::size_t(cols);
}

template <class C>
using Element = std::remove_pointer_t<decltype(std::data(std::declval<C&>()))>;
/// C is a container of contiguous T, or of what a T may look at as it is.
template <class C, class T>
using Contiguous =
    std::enable_if_t<std::is_convertible_v<Element<C> (*)[], T (*)[]>, decltype(std::size(std::declval<C&>()))>;

}  // namespace detail

/// A column-major matrix that somebody else owns, rows x cols; ld >= rows. One of a temporary is good for the call that
/// it is given to.
template <class T>
class View {
 public:
  View() = default;
  View(T* data, std::ptrdiff_t rows, std::ptrdiff_t cols, std::ptrdiff_t ld)
      : data_(data), rows_(rows), cols_(cols), ld_(ld) {}
  View(T* data, std::ptrdiff_t rows, std::ptrdiff_t cols) : View(data, rows, cols, rows) {}
  /// A std::vector, std::array, std::span or what else has data() and size(): a column.
  template <class C, class = detail::Contiguous<C, T>>
  View(C&& all) : View(std::data(all), std::ptrdiff_t(std::size(all)), 1) {}
  /// The same, by columns. Throws Failure where it has another size.
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

/// Right-hand sides that are modified along with a factor: gpucholmod_right_sides. z is n x m; of insert(), it has rows
/// for those that are inserted. Y has a row for each column of V, or each row of A that is inserted, and may be missing
/// otherwise. rss has m elements, or none.
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

/// k weights of -1, of which one takes no memory.
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

/// What f(made, status) makes, a function of the C interface.
template <class Held, class F>
Owned<Held> make(F&& f) {
  Held* made = nullptr;
  call([&](gpucholmod_status* status) { return f(&made, status); });
  return Owned<Held>(made);
}

/// f(sides) with the right-hand sides as C takes them, or NULL.
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
