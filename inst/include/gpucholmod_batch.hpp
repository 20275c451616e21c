// Batches for gpucholmod.hpp, which includes this header.
#ifndef GPUCHOLMOD_BATCH_HPP
#define GPUCHOLMOD_BATCH_HPP

#include "gpucholmod_view.hpp"

namespace gpucholmod {

/// The results of Batch::solve_modified(); NaN for a member whose matrix would not be positive definite.
struct BatchSolutions {
  std::vector<double> solution;        ///< n x m count
  std::vector<double> quadratic;       ///< m x count: the diagonals of b' times the solutions
  std::vector<double> logdet;          ///< log det of each member
  std::vector<std::ptrdiff_t> pivots;  ///< pivots of the members, as modify_each() returns them
};

/// Many factors with memory of their own, which are modified together: gpucholmod_batch. Matrices of all members are
/// stored side by side. A Batch may be empty, as a Factor may be.
class Batch {
 public:
  static constexpr std::ptrdiff_t at_the_end = -1;

  Batch() = default;
  /// Copies R (n x n count). device: on_host, any_gpu, or the number of a GPU; capacity: rows and columns that each
  /// member has room for, as gpucholmod_batch_create() says.
  Batch(View<const double> R, std::ptrdiff_t count, Triangle triangle = Triangle::upper, int device = on_host,
        std::ptrdiff_t capacity = 0) {
    create(detail::matrix(R), count, capacity, triangle, device);
  }
  Batch(View<const float> R, std::ptrdiff_t count, Triangle triangle = Triangle::upper, int device = on_host,
        std::ptrdiff_t capacity = 0) {
    create(detail::matrix(R), count, capacity, triangle, device);
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
  std::ptrdiff_t capacity() const noexcept { return gpucholmod_batch_capacity(held_.get()); }
  std::ptrdiff_t count() const noexcept { return gpucholmod_batch_count(held_.get()); }
  bool on_gpu() const noexcept { return gpucholmod_batch_on_gpu(held_.get()) != 0; }
  int type() const noexcept { return gpucholmod_batch_type(held_.get()); }
  void set_threads(int most) { options_.threads = most; }

  /// Computes the factors of scale A + V diag(weights) V'. V: n x k, for all members, or n x k count; weights: k, for
  /// all members, or k count, or k x count without gaps, or none; scales: count, or none. Throws, and changes no
  /// member, if a member would not be positive definite.
  void modify(std::ptrdiff_t k, View<const double> V, View<const double> weights = {}, View<const double> scales = {}) {
    detail::call([&](gpucholmod_status* status) { return change(k, V, weights, scales, 0, nullptr, status); });
  }
  /// Modifies the members that stay positive definite; the others stay as they are. Returns for each member 0, or the
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
  /// Inserts p rows and columns into every A, at its end, or from number `at` on. X: n + p x p, for all members,
  /// or n + p x p count: the new columns of the new A. Throws, and changes no member, if a new A would not be positive
  /// definite.
  void insert(std::ptrdiff_t p, View<const double> X, std::ptrdiff_t at = at_the_end) {
    detail::call([&](gpucholmod_status* status) { return grow(p, X, at, 0, nullptr, status); });
  }
  /// Inserts rows and columns as insert() does into each A whose new A is positive definite; the other members keep
  /// their order. Returns pivots as modify_each() does.
  std::vector<std::ptrdiff_t> insert_each(std::ptrdiff_t p, View<const double> X, std::ptrdiff_t at = at_the_end) {
    const std::size_t members = std::size_t(count());
    std::vector<std::ptrdiff_t> pivots(members);
    detail::call([&](gpucholmod_status* status) {
      const int code = grow(p, X, at, 1, pivots.data(), status);
      return code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE ? GPUCHOLMOD_OK : code;
    });
    return pivots;
  }
  /// Deletes these rows and columns of every A; their numbers are ascending.
  void remove(const std::vector<std::ptrdiff_t>& rows) {
    const std::ptrdiff_t p = std::ptrdiff_t(rows.size());
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_delete(held_.get(), p, rows.data(), p, nullptr, status);
    });
  }
  /// Moves row and column `from` of every A to number `to`; the rows in between move one step towards the old place.
  void shift(std::ptrdiff_t from, std::ptrdiff_t to) {
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_shift(held_.get(), &from, &to, 1, nullptr, status);
    });
  }
  /// Returns the orders of the members, of which order() is the largest.
  std::vector<std::ptrdiff_t> orders() const {
    const std::size_t members = std::size_t(count());
    std::vector<std::ptrdiff_t> all(members);
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_orders(held_.get(), all.data(), status);
    });
    return all;
  }
  /// Replaces B (n x m count) by the solutions of A x = b, with each member for its own m columns.
  void solve(View<double> B) const {
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_solve(held_.get(), GPUCHOLMOD_A, detail::matrix(B), status);
    });
  }
  /// Returns solutions with every A as modify_each() would make it; the batch stays as it is. b: m right-hand sides,
  /// n x m, for all members, or n x m count.
  BatchSolutions solve_modified(std::ptrdiff_t k, View<const double> V, std::ptrdiff_t m, View<const double> b,
                                View<const double> weights = {}, View<const double> scales = {}) const {
    detail::require(m >= 0 && m <= b.cols(), "m", "must not be negative, nor more than b has columns");
    const std::size_t members = std::size_t(count()), sides = std::size_t(m) * members;
    BatchSolutions made{std::vector<double>(std::size_t(order()) * sides), std::vector<double>(sides),
                        std::vector<double>(members), std::vector<std::ptrdiff_t>(members)};
    const gpucholmod_batch_modification what = modification(k, V, weights, scales, 1);
    const gpucholmod_batch_systems wanted{m,
                                          detail::matrix(b),
                                          detail::matrix(View<double>(made.solution, order(), std::ptrdiff_t(sides))),
                                          made.quadratic.data(),
                                          made.logdet.data(),
                                          made.pivots.data()};
    detail::call([&](gpucholmod_status* status) {
      const int code = gpucholmod_batch_solve_modified(held_.get(), &what, &wanted, &options_, status);
      return code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE ? GPUCHOLMOD_OK : code;
    });
    return made;
  }
  /// Copies the factors to R (n x n count); the other triangles become zero.
  void store(View<double> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  void store(View<float> R, Triangle triangle = Triangle::upper) const { get(detail::matrix(R), triangle); }
  /// Returns log det of every A.
  std::vector<double> log_determinants() const {
    const std::size_t members = std::size_t(count());
    std::vector<double> all(members);
    detail::call([&](gpucholmod_status* status) {
      return gpucholmod_batch_logdet(held_.get(), all.data(), status);
    });
    return all;
  }

 private:
  void create(gpucholmod_const_matrix R, std::ptrdiff_t count, std::ptrdiff_t capacity, Triangle triangle, int device) {
    gpucholmod_options options = detail::options_of(triangle);
    options.device = device;
    held_ = detail::make<gpucholmod_batch>([&](gpucholmod_batch** made, gpucholmod_status* status) {
      return gpucholmod_batch_create(R, count, nullptr, capacity, &options, made, status);
    });
  }
  gpucholmod_batch_modification modification(std::ptrdiff_t k, View<const double> V, View<const double> weights,
                                             View<const double> scales, int independent) const {
    detail::require(!scales.data() || (scales.rows() == count() && scales.cols() == 1), "scales",
                    "has another length than there are members");
    const bool is_matrix = weights.rows() == k && weights.cols() == count() && weights.ld() == k;
    detail::require(!weights.data() || weights.cols() == 1 || is_matrix, "weights",
                    "must be k or k count numbers, or k x count without gaps");
    return {k, detail::matrix(V), weights.data(), weights.rows() * weights.cols(), scales.data(), independent,
            nullptr};
  }
  int change(std::ptrdiff_t k, View<const double> V, View<const double> weights, View<const double> scales,
             int independent, std::ptrdiff_t* pivots, gpucholmod_status* status) {
    const gpucholmod_batch_modification what = modification(k, V, weights, scales, independent);
    return gpucholmod_batch_update(held_.get(), &what, pivots, &options_, status);
  }
  int grow(std::ptrdiff_t p, View<const double> X, std::ptrdiff_t at, int independent, std::ptrdiff_t* pivots,
           gpucholmod_status* status) {
    const gpucholmod_batch_insertion what{p, detail::matrix(X), at == at_the_end ? nullptr : &at, 1, independent,
                                          nullptr};
    return gpucholmod_batch_insert(held_.get(), &what, pivots, status);
  }
  void get(gpucholmod_matrix R, Triangle triangle) const {
    const gpucholmod_options options = detail::options_of(triangle);
    detail::call([&](gpucholmod_status* status) { return gpucholmod_batch_get(held_.get(), R, &options, status); });
  }

  detail::Owned<gpucholmod_batch> held_;
  gpucholmod_options options_ = detail::default_options();
};

}  // namespace gpucholmod
#endif
