// gpucholmod.h in C++17: factors that give their memory back, views of matrices, exceptions. Nothing but that header
// and the standard library; what is said there holds here. A function that throws has changed nothing, unless it throws
// HalfModified.
#ifndef GPUCHOLMOD_HPP
#define GPUCHOLMOD_HPP

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
enum class Home { memory = GPUCHOLMOD_MEMORY, gpu = GPUCHOLMOD_GPU };

/// A function could not do what it was asked for.
class Failure : public std::runtime_error {
 public:
  explicit Failure(const gpucholmod_status& status) : std::runtime_error(status.message), status_(status) {}
  gpucholmod_code code() const noexcept { return gpucholmod_code(status_.code); }
  std::ptrdiff_t pivot() const noexcept { return status_.pivot; }  ///< these three from 1; 0: there is none
  std::ptrdiff_t row() const noexcept { return status_.row; }
  std::ptrdiff_t col() const noexcept { return status_.col; }

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
  gpucholmod_status status{GPUCHOLMOD_BAD_ARGUMENT, 0, 0, 0, {}};
  const std::string message = std::string("'") + argument + "' " + what;
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

/// Right-hand sides that come along: gpucholmod_sides. z is n x m, of insert() with ld() for those that come; Y has a
/// row for each column of V, or row of A that comes, and may be missing where rows go; rss has m elements, or none.
struct RightHandSides {
  View<double> z;
  View<const double> Y;
  View<double> rss;

  /// For a factor of order n, and k rows of Y.
  gpucholmod_sides checked(std::ptrdiff_t n, std::ptrdiff_t k) const {
    const std::ptrdiff_t m = z.cols();
    detail::require(z.rows() == n, "z", "has other rows than the factor");
    detail::require(k == 0 || (Y.rows() == k && Y.cols() == m), "Y",
                    "has another shape than the right-hand sides that come or go");
    const bool without = rss.rows() == 0 || rss.cols() == 0;
    detail::require(without || (rss.rows() == m && rss.cols() == 1), "rss",
                    "has another length than there are right-hand sides");
    return {m, z.data(), z.ld(), Y.data(), Y.ld(), without ? nullptr : rss.data()};
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

/// f(sides) with the right-hand sides as C takes them, or NULL.
template <class F>
void with_sides(const RightHandSides* sides, std::ptrdiff_t n, std::ptrdiff_t k, F&& f) {
  if (!sides) return call([&](gpucholmod_status* status) { return f(nullptr, status); });
  const gpucholmod_sides checked = sides->checked(n, k);
  call([&](gpucholmod_status* status) { return f(&checked, status); });
}

/// X: rows and columns that come to a factor of order n.
template <class T>
void require_inserted(const View<T>& X, std::ptrdiff_t n) {
  require(X.cols() >= 0 && X.rows() >= X.cols() && X.rows() - X.cols() == n, "X",
          "has other rows than the factor that is to be");
}
inline void require_columns(std::ptrdiff_t rows, std::ptrdiff_t n) {
  require(rows == n, "V", "has other rows than the factor");
}
inline void require_weights(View<const double> weights, std::ptrdiff_t k) {
  require(weights.rows() == k && weights.cols() == 1, "weights", "has another length than V has columns");
}

}  // namespace detail

/// A factor with memory of its own, of doubles or of floats, in ordinary memory or on a GPU: gpucholmod_factor. Without
/// a factor (as it is made by Factor(), and left by a move) its order is 0, and every use throws.
class Factor {
 public:
  Factor() = default;
  /// Copies R (n x n). device, capacity: as gpucholmod_hold() takes them.
  explicit Factor(View<const double> R, Triangle triangle = Triangle::upper, Home home = Home::memory, int device = -1,
                  std::ptrdiff_t capacity = 0)
      : Factor(gpucholmod_hold, R, triangle, home, device, capacity) {}
  explicit Factor(View<const float> R, Triangle triangle = Triangle::upper, Home home = Home::memory, int device = -1,
                  std::ptrdiff_t capacity = 0)
      : Factor(gpucholmod_hold_s, R, triangle, home, device, capacity) {}
  Factor(const Factor& other) {
    if (other.held_)
      make([&](gpucholmod_factor** made, gpucholmod_status* status) {
        return gpucholmod_copy(other.held_.get(), made, status);
      });
  }
  Factor(Factor&&) noexcept = default;
  Factor& operator=(Factor other) noexcept {
    held_.swap(other.held_);
    return *this;
  }

  std::ptrdiff_t order() const noexcept { return gpucholmod_order(held_.get()); }
  std::ptrdiff_t capacity() const noexcept { return gpucholmod_capacity(held_.get()); }
  Home home() const noexcept { return Home(gpucholmod_home(held_.get())); }
  std::size_t scalar() const noexcept { return gpucholmod_scalar(held_.get()); }  ///< bytes of a number: 8 or 4

  /// The factor of scale A + VV', scale A - VV', scale A + V diag(weights) V'. V: n x k.
  void update(View<const double> V, double scale = 1, const RightHandSides* sides = nullptr) {
    change(V, nullptr, scale, sides);
  }
  void downdate(View<const double> V, double scale = 1, const RightHandSides* sides = nullptr) {
    change(V, detail::Minus(V.cols()).data(), scale, sides);
  }
  void modify(View<const double> V, View<const double> weights, double scale = 1,
              const RightHandSides* sides = nullptr) {
    detail::require_weights(weights, V.cols());
    change(V, weights.data(), scale, sides);
  }

  /// With p rows and columns of A more, from number `at` on. X (n + p x p): their columns of the new A.
  void insert(std::ptrdiff_t at, View<const double> X, const RightHandSides* sides = nullptr) {
    detail::require_inserted(X, order());
    detail::with_sides(sides, order(), X.cols(), [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return gpucholmod_insert(held_.get(), at, X.cols(), X.data(), X.ld(), with, status);
    });
  }
  /// Without rows and columns `gone`, ascending, from 0 on.
  void remove(const std::vector<std::ptrdiff_t>& gone, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, order(), 0, [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return gpucholmod_remove(held_.get(), std::ptrdiff_t(gone.size()), gone.data(), with, status);
    });
  }

  /// B (n x m) <- the solution of A x = b, R'x = b, R x = b, for R upper.
  void solve(View<double> B) const { solve(GPUCHOLMOD_BOTH, B); }
  void solve_forward(View<double> B) const { solve(GPUCHOLMOD_FORWARD, B); }
  void solve_back(View<double> B) const { solve(GPUCHOLMOD_BACK, B); }

  /// log det A.
  double log_determinant() const {
    double log = 0;
    detail::call([&](gpucholmod_status* status) { return gpucholmod_logdet(held_.get(), &log, status); });
    return log;
  }
  std::vector<double> diagonal() const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n);
    detail::call([&](gpucholmod_status* status) { return gpucholmod_diagonal(held_.get(), all.data(), status); });
    return all;
  }
  /// R (n x n) <- the factor; the other triangle is zero.
  void store(View<double> R, Triangle triangle = Triangle::upper) const { store(gpucholmod_store, R, triangle); }
  void store(View<float> R, Triangle triangle = Triangle::upper) const { store(gpucholmod_store_s, R, triangle); }
  std::vector<double> numbers(Triangle triangle = Triangle::upper) const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n * n);
    store(View<double>(all, order(), order()), triangle);
    return all;
  }

 private:
  struct Release {
    void operator()(gpucholmod_factor* held) const noexcept { gpucholmod_release(held); }
  };

  template <class Function, class S>
  Factor(Function hold, View<const S> R, Triangle triangle, Home home, int device, std::ptrdiff_t capacity) {
    detail::require(R.rows() == R.cols(), "R", "is not square");
    make([&](gpucholmod_factor** made, gpucholmod_status* status) {
      return hold(int(triangle), R.rows(), R.data(), R.ld(), capacity, int(home), device, made, status);
    });
  }

  template <class F>
  void make(F&& f) {
    gpucholmod_factor* made = nullptr;
    detail::call([&](gpucholmod_status* status) { return f(&made, status); });
    held_.reset(made);
  }

  void change(View<const double> V, const double* weights, double scale, const RightHandSides* sides) {
    detail::require_columns(V.rows(), order());
    detail::with_sides(sides, order(), V.cols(), [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return gpucholmod_modify(held_.get(), V.cols(), V.data(), V.ld(), weights, scale, with, status);
    });
  }

  void solve(int system, View<double> B) const {
    detail::require(B.rows() == order(), "B", "has other rows than the factor");
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_solve(held_.get(), system, B.cols(), B.data(), B.ld(), status);
    });
  }

  template <class Function, class S>
  void store(Function function, View<S> R, Triangle triangle) const {
    detail::require(R.rows() == order() && R.cols() == order(), "R", "has another shape than the factor");
    detail::call(
        [&](gpucholmod_status* status) { return function(held_.get(), int(triangle), R.data(), R.ld(), status); });
  }

  std::unique_ptr<gpucholmod_factor, Release> held_;
};

/// A factor in the caller's memory, which outlives this; S is double or float. Its other triangle is neither read nor
/// written. What an update works in is kept from one to the next.
template <class S>
class FactorView {
 public:
  /// R: n x n. trusted: GPUCHOLMOD_TRUSTED.
  explicit FactorView(View<S> R, Triangle triangle = Triangle::upper, bool trusted = false)
      : FactorView(R, R.rows(), triangle, trusted) {
    detail::require(R.rows() == R.cols(), "R", "is not square");
  }
  /// The first n rows and columns of R, which has room for what insert() brings.
  FactorView(View<S> R, std::ptrdiff_t n, Triangle triangle = Triangle::upper, bool trusted = false)
      : R_(R), n_(n), form_(int(triangle) | (trusted ? GPUCHOLMOD_TRUSTED : 0)) {
    detail::require(n >= 0 && n <= capacity(), "n", "is more than R has rows and columns");
  }

  std::ptrdiff_t order() const { return n_; }
  std::ptrdiff_t capacity() const { return std::min(R_.rows(), R_.cols()); }
  View<S> view() const { return {R_.data(), n_, n_, R_.ld()}; }

  /// As those of a Factor.
  void update(View<const S> V, double scale = 1, const RightHandSides* sides = nullptr) {
    change(V, nullptr, scale, sides);
  }
  void downdate(View<const S> V, double scale = 1, const RightHandSides* sides = nullptr) {
    change(V, detail::Minus(V.cols()).data(), scale, sides);
  }
  void modify(View<const S> V, View<const double> weights, double scale = 1, const RightHandSides* sides = nullptr) {
    detail::require_weights(weights, V.cols());
    change(V, weights.data(), scale, sides);
  }
  void insert(std::ptrdiff_t at, View<const S> X, const RightHandSides* sides = nullptr) {
    detail::require_inserted(X, n_);
    detail::require(X.rows() <= capacity(), "R", "leaves no room for the rows and columns that come");
    const auto function = of_scalar(gpucholmod_insert_d, gpucholmod_insert_s);
    detail::with_sides(sides, n_, X.cols(), [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return function(form_, n_, at, X.cols(), R_.data(), R_.ld(), X.data(), X.ld(), with, status);
    });
    n_ += X.cols();
  }
  void remove(const std::vector<std::ptrdiff_t>& gone, const RightHandSides* sides = nullptr) {
    const auto function = of_scalar(gpucholmod_remove_d, gpucholmod_remove_s);
    detail::with_sides(sides, n_, 0, [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return function(form_, n_, std::ptrdiff_t(gone.size()), gone.data(), R_.data(), R_.ld(), with, status);
    });
    n_ -= std::ptrdiff_t(gone.size());
  }

 private:
  static_assert(std::is_same_v<S, double> || std::is_same_v<S, float>, "factors are of doubles or of floats");

  template <class D, class F>
  static auto of_scalar(D of_doubles, F of_floats) {
    static_cast<void>(of_doubles);
    static_cast<void>(of_floats);
    if constexpr (std::is_same_v<S, double>) return of_doubles;
    else return of_floats;
  }

  void change(View<const S> V, const double* weights, double scale, const RightHandSides* sides) {
    detail::require_columns(V.rows(), n_);
    const std::size_t bytes = sides ? 0 : gpucholmod_workspace(n_, V.cols(), sizeof(S));
    detail::require(bytes <= workspace_.max_size(), "V", "is larger than any memory");
    if (workspace_.size() < bytes) workspace_.resize(bytes);
    const auto function = of_scalar(gpucholmod_update_d, gpucholmod_update_s);
    detail::with_sides(sides, n_, V.cols(), [&](const gpucholmod_sides* with, gpucholmod_status* status) {
      return function(form_, n_, V.cols(), R_.data(), R_.ld(), V.data(), V.ld(), weights, scale, with,
                      workspace_.data(), workspace_.size(), status);
    });
  }

  View<S> R_;
  std::ptrdiff_t n_;
  int form_;
  std::vector<unsigned char> workspace_;
};

/// The name of a GPU that can be used, the first for -1. Throws Failure, whose code() tells why there is none.
inline std::string gpu_name(int device = -1) {
  std::string name;
  detail::call([&](gpucholmod_status* status) {
    const int code = gpucholmod_gpu(device, status);
    name = status->message;
    return code;
  });
  return name;
}

}  // namespace gpucholmod
#endif
