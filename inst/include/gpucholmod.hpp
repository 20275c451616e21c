// gpucholmod.h in C++17: factors that give their memory back, views of matrices, exceptions. It takes that header and
// the standard library alone; everything that is said there is true here. A function that throws has changed nothing,
// unless it throws HalfModified.
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

/// A factor with memory of its own, of doubles or of floats, in ordinary memory or on a GPU: gpucholmod_factor. Without
/// a factor (as it is made by Factor(), and left by a move) its order is 0, and every use throws.
class Factor {
 public:
  Factor() = default;
  /// Copies R (n x n). device: on_host, any_gpu, or the number of a GPU. capacity: rows and columns to have room for.
  explicit Factor(View<const double> R, Triangle triangle = Triangle::upper, int device = on_host,
                  std::ptrdiff_t capacity = 0) {
    create(detail::matrix(R), triangle, device, capacity);
  }
  explicit Factor(View<const float> R, Triangle triangle = Triangle::upper, int device = on_host,
                  std::ptrdiff_t capacity = 0) {
    create(detail::matrix(R), triangle, device, capacity);
  }
  Factor(const Factor& other) : options_(other.options_) {
    if (other.held_)
      held_ = detail::make<gpucholmod_factor>([&](gpucholmod_factor** made, gpucholmod_status* status) {
        return gpucholmod_factor_copy(other.held_.get(), made, status);
      });
  }
  Factor(Factor&&) noexcept = default;
  Factor& operator=(Factor other) noexcept {
    held_.swap(other.held_);
    options_ = other.options_;
    return *this;
  }

  std::ptrdiff_t order() const noexcept { return gpucholmod_factor_order(held_.get()); }
  std::ptrdiff_t capacity() const noexcept { return gpucholmod_factor_capacity(held_.get()); }
  bool on_gpu() const noexcept { return gpucholmod_factor_on_gpu(held_.get()) != 0; }
  int type() const noexcept { return gpucholmod_factor_type(held_.get()); }  ///< gpucholmod_type; 0: there is no factor

  /// Most threads that changes of the factor compute with; 0: the calling one alone; or all_threads.
  void set_threads(int most) { options_.threads = most; }

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
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_insert(held_.get(), at, detail::matrix(X), with, &options_, status);
    });
  }
  /// Without these rows and columns, ascending, from 0 on.
  void remove(const std::vector<std::ptrdiff_t>& rows, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_delete(held_.get(), rows.data(), std::ptrdiff_t(rows.size()), with, &options_, status);
    });
  }
  /// With row and column `from` of A moved to be number `to`.
  void shift(std::ptrdiff_t from, std::ptrdiff_t to, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_shift(held_.get(), from, to, with, &options_, status);
    });
  }

  /// B (n x m) <- the solution of A x = b, R'x = b, R x = b, for R upper.
  void solve(View<double> B) const { solve(GPUCHOLMOD_A, B); }
  void solve_forward(View<double> B) const { solve(GPUCHOLMOD_R_TRANSPOSED, B); }
  void solve_back(View<double> B) const { solve(GPUCHOLMOD_R, B); }

  /// log det A.
  double log_determinant() const { return number(gpucholmod_factor_logdet); }
  /// An estimate of 1 / (||A|| ||A^-1||).
  double rcond() const { return number(gpucholmod_factor_rcond); }
  std::vector<double> diagonal() const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n);
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_factor_diagonal(held_.get(), all.data(), status);
    });
    return all;
  }
  /// R (n x n) <- the factor; the other triangle is zero.
  void store(View<double> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  void store(View<float> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  std::vector<double> numbers(Triangle triangle = Triangle::upper) const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n * n);
    store(View<double>(all, order(), order()), triangle);
    return all;
  }
  /// A^-1, n x n.
  std::vector<double> inverse() const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n * n);
    const gpucholmod_matrix out = detail::matrix(View<double>(all, order(), order()));
    detail::call([&](gpucholmod_status* status) { return gpucholmod_factor_inverse(held_.get(), out, status); });
    return all;
  }

 private:
  void create(gpucholmod_const_matrix R, Triangle triangle, int device, std::ptrdiff_t capacity) {
    gpucholmod_options options = detail::options_of(triangle);
    options.device = device;
    held_ = detail::make<gpucholmod_factor>([&](gpucholmod_factor** made, gpucholmod_status* status) {
      return gpucholmod_factor_create(R, capacity, &options, made, status);
    });
  }

  void change(View<const double> V, const double* weights, double scale, const RightHandSides* sides) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_update(held_.get(), detail::matrix(V), weights, scale, with, &options_, status);
    });
  }
  void solve(int system, View<double> B) const {
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_factor_solve(held_.get(), system, detail::matrix(B), status);
    });
  }
  void get(gpucholmod_matrix R, Triangle triangle) const {
    const gpucholmod_options options = detail::options_of(triangle);
    detail::call([&](gpucholmod_status* status) { return gpucholmod_factor_get(held_.get(), R, &options, status); });
  }
  template <class Function>
  double number(Function function) const {
    double x = 0;
    detail::call([&](gpucholmod_status* status) { return function(held_.get(), &x, status); });
    return x;
  }

  detail::Owned<gpucholmod_factor> held_;
  gpucholmod_options options_ = detail::default_options();
};

/// A factor in the caller's memory, which outlives this; S is double or float. Its other triangle is neither read nor
/// written. What an update works in is kept from one to the next.
template <class S>
class FactorView {
 public:
  /// R: n x n. trusted: gpucholmod_options::trusted.
  explicit FactorView(View<S> R, Triangle triangle = Triangle::upper, bool trusted = false)
      : FactorView(R, R.rows(), triangle, trusted) {
    detail::require(R.rows() == R.cols(), "R", "is not square");
  }
  /// The first n rows and columns of R, which has room for what insert() brings.
  FactorView(View<S> R, std::ptrdiff_t n, Triangle triangle = Triangle::upper, bool trusted = false)
      : R_(R), n_(n), trusted_(trusted), options_(detail::options_of(triangle)) {
    detail::require(n >= 0 && n <= capacity(), "n", "is more than R has rows and columns");
  }

  std::ptrdiff_t order() const { return n_; }
  std::ptrdiff_t capacity() const { return std::min(R_.rows(), R_.cols()); }
  View<S> view() const { return block(n_); }

  /// As those of a Factor.
  void set_threads(int most) { options_.threads = most; }
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
    detail::require(X.cols() >= 0 && X.cols() <= capacity() - n_, "R",
                    "leaves no room for the rows and columns that are inserted");
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_insert(detail::matrix(block(n_ + X.cols())), at, detail::matrix(X), with, &options_, status);
    });
    n_ += X.cols();
  }
  void remove(const std::vector<std::ptrdiff_t>& rows, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_delete(detail::matrix(view()), rows.data(), std::ptrdiff_t(rows.size()), with, &options_,
                               status);
    });
    n_ -= std::ptrdiff_t(rows.size());
  }
  void shift(std::ptrdiff_t from, std::ptrdiff_t to, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_shift(detail::matrix(view()), from, to, with, &options_, status);
    });
  }
  /// Of a lower factor, solve_forward() solves R x = b, and solve_back() R'x = b.
  void solve(View<S> B) const { solve(GPUCHOLMOD_A, B); }
  void solve_forward(View<S> B) const { solve(GPUCHOLMOD_R_TRANSPOSED, B); }
  void solve_back(View<S> B) const { solve(GPUCHOLMOD_R, B); }
  double log_determinant() const { return number(gpucholmod_logdet); }
  double rcond() const { return number(gpucholmod_rcond); }
  /// out (n x n) <- A^-1.
  void inverse(View<S> out) const {
    const gpucholmod_options options = of_triangle();
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_inverse(read_only(), detail::matrix(out), &options, status);
    });
  }

 private:
  static_assert(std::is_same_v<S, double> || std::is_same_v<S, float>, "factors are of doubles or of floats");

  View<S> block(std::ptrdiff_t n) const { return {R_.data(), n, n, R_.ld()}; }
  gpucholmod_const_matrix read_only() const { return detail::matrix(View<const S>(view())); }
  gpucholmod_options of_triangle() const { return detail::options_of(Triangle(options_.triangle)); }

  void change(View<const S> V, const double* weights, double scale, const RightHandSides* sides) {
    const int type = std::is_same_v<S, double> ? GPUCHOLMOD_DOUBLE : GPUCHOLMOD_FLOAT;
    const std::size_t bytes = sides ? 0 : gpucholmod_workspace(n_, V.cols(), type);
    detail::require(bytes <= workspace_.max_size(), "V", "is larger than any memory");
    if (workspace_.size() < bytes) workspace_.resize(bytes);
    gpucholmod_options options = options_;
    options.trusted = trusted_;
    options.workspace = sides ? nullptr : workspace_.data();
    options.workspace_size = sides ? 0 : workspace_.size();
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_update(detail::matrix(view()), detail::matrix(V), weights, scale, with, &options, status);
    });
  }
  void solve(int system, View<S> B) const {
    const gpucholmod_options options = of_triangle();
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_solve(read_only(), system, detail::matrix(B), &options, status);
    });
  }
  template <class Function>
  double number(Function function) const {
    const gpucholmod_options options = of_triangle();
    double x = 0;
    detail::call([&](gpucholmod_status* status) { return function(read_only(), &x, &options, status); });
    return x;
  }

  View<S> R_;
  std::ptrdiff_t n_;
  bool trusted_;
  gpucholmod_options options_;  ///< triangle and threads
  std::vector<unsigned char> workspace_;
};

/// Many factors of one order with memory of their own, which are modified together: gpucholmod_batch. Matrices of all
/// members lie side by side. As a Factor, it may be without any.
class Batch {
 public:
  Batch() = default;
  /// Copies R (n x n count). device: on_host, any_gpu, or the number of a GPU.
  Batch(View<const double> R, std::ptrdiff_t count, Triangle triangle = Triangle::upper, int device = on_host) {
    create(detail::matrix(R), count, triangle, device);
  }
  Batch(View<const float> R, std::ptrdiff_t count, Triangle triangle = Triangle::upper, int device = on_host) {
    create(detail::matrix(R), count, triangle, device);
  }
  Batch(const Batch& other) : options_(other.options_) {
    if (other.held_)
      held_ = detail::make<gpucholmod_batch>([&](gpucholmod_batch** made, gpucholmod_status* status) {
        return gpucholmod_batch_copy(other.held_.get(), made, status);
      });
  }
  Batch(Batch&&) noexcept = default;
  Batch& operator=(Batch other) noexcept {
    held_.swap(other.held_);
    options_ = other.options_;
    return *this;
  }

  std::ptrdiff_t order() const noexcept { return gpucholmod_batch_order(held_.get()); }
  std::ptrdiff_t count() const noexcept { return gpucholmod_batch_count(held_.get()); }
  bool on_gpu() const noexcept { return gpucholmod_batch_on_gpu(held_.get()) != 0; }
  int type() const noexcept { return gpucholmod_batch_type(held_.get()); }
  void set_threads(int most) { options_.threads = most; }

  /// The factors of scale A + V diag(weights) V'. V: n x k, of all members, or n x k count; weights: k, of all, or
  /// k count, or k x count without gaps, or none; scales: count, or none. Throws, and changes no member, if one of them
  /// would not be positive definite.
  void modify(std::ptrdiff_t k, View<const double> V, View<const double> weights = {}, View<const double> scales = {}) {
    detail::call([&](gpucholmod_status* status) { return change(k, V, weights, scales, 0, nullptr, status); });
  }
  /// The same of those that stay positive definite; the others stay as they are. Returns for each member 0, or the
  /// order of the first leading minor that would not be positive.
  std::vector<std::ptrdiff_t> modify_each(std::ptrdiff_t k, View<const double> V, View<const double> weights = {},
                                          View<const double> scales = {}) {
    const std::size_t members = std::size_t(count());
    std::vector<std::ptrdiff_t> pivots(members);
    detail::call([&](gpucholmod_status* status) {
      const int code = change(k, V, weights, scales, 1, pivots.data(), status);
      return code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE ? GPUCHOLMOD_OK : code;
    });
    return pivots;
  }
  /// B (n x m count) <- the solutions of A x = b, each with its member.
  void solve(View<double> B) const {
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_solve(held_.get(), GPUCHOLMOD_A, detail::matrix(B), status);
    });
  }
  /// R (n x n count) <- the factors; the other triangles are zero.
  void store(View<double> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  void store(View<float> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  /// log det of every A.
  std::vector<double> log_determinants() const {
    const std::size_t members = std::size_t(count());
    std::vector<double> all(members);
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_logdet(held_.get(), all.data(), status);
    });
    return all;
  }

 private:
  void create(gpucholmod_const_matrix R, std::ptrdiff_t count, Triangle triangle, int device) {
    gpucholmod_options options = detail::options_of(triangle);
    options.device = device;
    held_ = detail::make<gpucholmod_batch>([&](gpucholmod_batch** made, gpucholmod_status* status) {
      return gpucholmod_batch_create(R, count, &options, made, status);
    });
  }
  int change(std::ptrdiff_t k, View<const double> V, View<const double> weights, View<const double> scales,
             int independent, std::ptrdiff_t* pivots, gpucholmod_status* status) {
    detail::require(!scales.data() || (scales.rows() == count() && scales.cols() == 1), "scales",
                    "has another length than there are members");
    const bool is_matrix = weights.rows() == k && weights.cols() == count() && weights.ld() == k;
    detail::require(!weights.data() || weights.cols() == 1 || is_matrix, "weights",
                    "must be k or k count numbers, or k x count without gaps");
    const gpucholmod_batch_modification what{k,           detail::matrix(V), weights.data(),
                                             weights.rows() * weights.cols(), scales.data(), independent};
    return gpucholmod_batch_update(held_.get(), &what, pivots, &options_, status);
  }
  void get(gpucholmod_matrix R, Triangle triangle) const {
    const gpucholmod_options options = detail::options_of(triangle);
    detail::call([&](gpucholmod_status* status) { return gpucholmod_batch_get(held_.get(), R, &options, status); });
  }

  detail::Owned<gpucholmod_batch> held_;
  gpucholmod_options options_ = detail::default_options();
};

/// A (n x n, symmetric, of which one triangle is read) <- its factor.
template <class S>
void factorise(View<S> A, Triangle triangle = Triangle::upper) {
  const gpucholmod_options options = detail::options_of(triangle);
  detail::call([&](gpucholmod_status* status) { return gpucholmod_factorise(detail::matrix(A), &options, status); });
}

/// Returns the name of a GPU. Throws Failure, whose code() tells why it cannot be used.
inline std::string gpu_name(int device = any_gpu) {
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
