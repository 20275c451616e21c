// gpucholmod.h in C++17: factors that give their memory back, views of matrices, batches, exceptions. This header uses
// gpucholmod.h, the headers named gpucholmod_*.hpp and the standard library alone. Everything that gpucholmod.h says is
// true here. A function that throws has changed nothing, unless it throws HalfModified or its comment says otherwise.
#ifndef GPUCHOLMOD_HPP
#define GPUCHOLMOD_HPP

#include "gpucholmod_batch.hpp"
#include "gpucholmod_view.hpp"

namespace gpucholmod {

/// A factor with memory of its own, of doubles or of floats, in ordinary memory or on a GPU: gpucholmod_factor. A
/// Factor that Factor() has made, or from which a factor was moved, is empty: its order is 0, and every use throws.
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
  int type() const noexcept { return gpucholmod_factor_type(held_.get()); }  ///< a gpucholmod_type; 0: an empty Factor

  /// Sets the most threads that compute changes of the factor; 0: the calling thread alone; or all_threads.
  void set_threads(int most) { options_.threads = most; }

  /// Replaces the factor by that of scale A + VV'; downdate(): of scale A - VV'; modify(): of
  /// scale A + V diag(weights) V'. V: n x k.
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

  /// Inserts p rows and columns into A, from number `at` on. X (n + p x p): their columns of the new A.
  void insert(std::ptrdiff_t at, View<const double> X, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_insert(held_.get(), at, detail::matrix(X), with, &options_, status);
    });
  }
  /// Deletes these rows and columns of A; their numbers count from 0 and are ascending.
  void remove(const std::vector<std::ptrdiff_t>& rows, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_delete(held_.get(), rows.data(), std::ptrdiff_t(rows.size()), with, &options_, status);
    });
  }
  /// Moves row and column `from` of A to number `to`.
  void shift(std::ptrdiff_t from, std::ptrdiff_t to, const RightHandSides* sides = nullptr) {
    detail::with_sides(sides, [&](const gpucholmod_right_sides* with, gpucholmod_status* status) {
      return gpucholmod_factor_shift(held_.get(), from, to, with, &options_, status);
    });
  }

  /// Replaces B (n x m) by the solution of A x = b; solve_forward(): of R'x = b; solve_back(): of R x = b, for R upper.
  void solve(View<double> B) const { solve(GPUCHOLMOD_A, B); }
  void solve_forward(View<double> B) const { solve(GPUCHOLMOD_R_TRANSPOSED, B); }
  void solve_back(View<double> B) const { solve(GPUCHOLMOD_R, B); }

  /// Returns log det A.
  double log_determinant() const { return number(gpucholmod_factor_logdet); }
  /// Returns an estimate of 1 / (||A|| ||A^-1||).
  double rcond() const { return number(gpucholmod_factor_rcond); }
  std::vector<double> diagonal() const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n);
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_factor_diagonal(held_.get(), all.data(), status);
    });
    return all;
  }
  /// Copies the factor to R (n x n); the other triangle becomes zero.
  void store(View<double> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  void store(View<float> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  std::vector<double> numbers(Triangle triangle = Triangle::upper) const {
    const std::size_t n = std::size_t(order());
    std::vector<double> all(n * n);
    store(View<double>(all, order(), order()), triangle);
    return all;
  }
  /// Returns A^-1, n x n.
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

/// A factor in the caller's memory, which must outlive the view; S is double or float. The other triangle is neither
/// read nor written. The view keeps the memory in which updates work from one update to the next.
template <class S>
class FactorView {
 public:
  /// Refers to R (n x n). trusted: gpucholmod_options::trusted.
  explicit FactorView(View<S> R, Triangle triangle = Triangle::upper, bool trusted = false)
      : FactorView(R, R.rows(), triangle, trusted) {
    detail::require(R.rows() == R.cols(), "R", "is not square");
  }
  /// Refers to the first n rows and columns of R, which has room for rows and columns that insert() adds.
  FactorView(View<S> R, std::ptrdiff_t n, Triangle triangle = Triangle::upper, bool trusted = false)
      : R_(R), n_(n), trusted_(trusted), options_(detail::options_of(triangle)) {
    detail::require(n >= 0 && n <= capacity(), "n", "is more than R has rows and columns");
  }

  std::ptrdiff_t order() const { return n_; }
  std::ptrdiff_t capacity() const { return std::min(R_.rows(), R_.cols()); }
  View<S> view() const { return block(n_); }

  /// Does what the function of a Factor with the same name does, as do the next functions without a comment.
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
  /// Computes in out (n x n) what modify() makes of this factor, which stays as it is. If this function throws, the
  /// triangle of `out` is lost.
  void modify_into(View<S> out, View<const S> V, View<const double> weights, double scale = 1) const {
    detail::require_weights(weights, V.cols());
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_update_into(read_only(), detail::matrix(out), detail::matrix(V), weights.data(), scale, nullptr,
                                    &options_, status);
    });
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
  /// Solves for B. For a lower factor, solve_forward() solves R x = b, and solve_back() R'x = b.
  void solve(View<S> B) const { solve(GPUCHOLMOD_A, B); }
  void solve_forward(View<S> B) const { solve(GPUCHOLMOD_R_TRANSPOSED, B); }
  void solve_back(View<S> B) const { solve(GPUCHOLMOD_R, B); }
  double log_determinant() const { return number(gpucholmod_logdet); }
  double rcond() const { return number(gpucholmod_rcond); }
  /// Computes A^-1 in out (n x n).
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

/// Replaces A (n x n, symmetric, of which one triangle is read) by its factor.
template <class S>
void factorise(View<S> A, Triangle triangle = Triangle::upper) {
  const gpucholmod_options options = detail::options_of(triangle);
  detail::call([&](gpucholmod_status* status) { return gpucholmod_factorise(detail::matrix(A), &options, status); });
}

/// Returns the name of a GPU. Throws Failure, whose code() tells why this GPU cannot be used.
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
