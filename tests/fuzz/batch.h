#pragma once

#include "problem.h"

/// A batch that is modified and used.
namespace gpucholmod::fuzz {

/// Many factors of one order.
class Batch {
 public:
  explicit Batch(Choices& choose)
      : choose_(choose), n_(choose.of(0, 6)), count_(choose.of(0, 4)), type_(choose.type()) {
    Call call(choose, true);
    Numbers R(n_, n_ * count_, choose.of(0, 2), type_);
    for (index_t j = 0; j < count_; ++j) {
      Numbers one(n_, n_, 0, type_);
      store(some_factor(choose, n_, type_, false), call.triangle(), one);
      for (index_t i = 0; i < n_ * n_; ++i) R.set(i % n_, i / n_ + n_ * j, one(i % n_, i / n_));
    }
    if (call.is_wild()) R.fill(choose, true);
    const gpucholmod_const_matrix given = call.read_only(R);
    const int code = gpucholmod_batch_create(given, count_, nullptr, choose.of(0, 8), call.options(), &held_,
                                             &call.status);
    const bool made = call.has_succeeded(code);
    call.require_unchanged();
    call.require(made || !call.sound, "a batch cannot be made");
  }
  Batch(const Batch&) = delete;
  ~Batch() { gpucholmod_batch_destroy(held_); }
  bool exists() const { return held_ && gpucholmod_batch_order(held_) == n_; }

  void update() {
    Call call(choose_, false);
    const index_t k = choose_.of(0, 4), columns = choose_.one_in(2) ? k : k * count_;
    Numbers V(n_, columns, choose_.of(0, 2), choose_.type());
    V.fill(choose_, call.is_wild());
    const std::vector<double> weights = some_weights(call, choose_.one_in(2) ? k : k * count_);
    std::vector<double> scales(choose_.one_in(2) ? count_ : 0);
    for (double& scale : scales) scale = some_scale(call);
    std::vector<index_t> pivots(count_);
    const std::vector<Exact> before = got(call);
    Sides sides(call, Exact::Zero(n_, n_), n_, k, count_);
    const Exact z = sides.z.exact();
    const auto carried = [&](index_t j) {
      const auto part = [&](const Exact& all) -> Exact { return all.middleCols(sides.m * j, sides.m); };
      return Carried{part(z), part(sides.z.exact()), part(sides.Y.exact())};
    };
    const gpucholmod_batch_modification what{choose_.one_in(24) ? call.sound = call.moderate = false,
                                             k + choose_.of(-1, 0)
                                                                : k,
                                             call.read_only(V),
                                             pointer(weights),
                                             index_t(weights.size()),
                                             pointer(scales),
                                             int(choose_.of(0, 1)),
                                             sides.pointer()};
    const int code = gpucholmod_batch_update(held_, &what, pivots.data(), call.options(), &call.status);
    const bool succeeded = call.has_succeeded(code);
    const bool partial = code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE && what.independent;
    if (!succeeded && !partial) call.require_unchanged();
    const std::vector<Exact> after = got(call);
    const bool are_moderate = std::all_of(before.begin(), before.end(), is_moderate);
    call.require(succeeded || !call.sound || !are_moderate || code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE,
                 "a sound call fails");
    for (index_t j = 0; j < count_; ++j) {
      if ((!succeeded && !partial) || pivots[j] > 0) {
        call.require((after[j].array() == before[j].array()).all(), "a member has changed");
        call.require(!partial || !sides.exist || carried(j).after == carried(j).before,
                     "right-hand sides of a member have changed");
      } else if (call.moderate && is_moderate(before[j])) {
        look_at_member(call, before[j], after[j], columns_of(V, k, j), weights_of(weights, k, j),
                       scales.empty() ? 1 : scales[j]);
        if (sides.exist)
          look_at_sides(call, before[j], after[j], weighted(columns_of(V, k, j), weights_of(weights, k, j)),
                        scales.empty() ? 1 : scales[j], carried(j));
      }
    }
  }

  /// p rows, at one place of all members.
  void insert() {
    Call call(choose_, false);
    const index_t p = choose_.of(0, 3), at = choose_.one_in(16) ? choose_.of(-1, n_ + 1) : choose_.of(0, n_);
    const bool at_the_end = choose_.one_in(2);
    if (!at_the_end && (at < 0 || at > n_)) call.sound = call.moderate = false;
    const index_t place = at_the_end ? n_ : std::clamp<index_t>(at, 0, n_), order = n_ + p;
    Numbers X(order, p * count_, choose_.of(0, 2), choose_.type());
    X.fill(choose_, call.is_wild());
    for (index_t j = 0; j < p * count_; ++j)  // symmetric, and mostly positive definite
      for (index_t i = 0, q = j % p; i <= q; ++i) {
        if (i == q && !choose_.one_in(8)) X.set(place + q, j, 10.0 * double(order));
        X.set(place + q, j - q + i, X(place + i, j));
      }
    Sides sides(call, Exact::Zero(n_, n_), order, p, count_);
    const Exact z = sides.z.exact();
    const std::vector<Exact> before = got(call);
    const gpucholmod_batch_insertion what{p, call.read_only(X), at_the_end ? nullptr : &at, 1, 0, sides.pointer()};
    const int code = gpucholmod_batch_insert(held_, &what, nullptr, &call.status);
    if (!call.has_succeeded(code)) {
      const bool are_moderate = std::all_of(before.begin(), before.end(), is_moderate);
      call.require(!call.sound || !are_moderate || code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE, "a sound call fails");
      return call.require_unchanged();
    }
    n_ = order;
    const std::vector<Exact> after = got(call);
    const auto old = [&](index_t i) { return i < place ? i : i + p; };
    for (index_t j = 0; call.moderate && j < count_; ++j) {
      if (!is_moderate(before[j])) continue;
      const index_t n = order - p;
      const Exact was = before[j].transpose() * before[j], columns = X.exact().middleCols(p * j, p);
      Exact A(order, order);
      for (index_t c = 0; c < n; ++c)
        for (index_t i = 0; i < n; ++i) A(old(i), old(c)) = was(i, c);
      A.middleCols(place, p) = columns;
      A.middleRows(place, p) = columns.transpose();
      look_at_reshaped(call, after[j], A, norm(A));
      if (!sides.exist) continue;
      const Exact b = before[j].transpose() * z.block(0, sides.m * j, n, sides.m);
      Exact expected(order, sides.m);
      for (index_t i = 0; i < n; ++i) expected.row(old(i)) = b.row(i);
      expected.middleRows(place, p) = sides.Y.exact().middleCols(sides.m * j, sides.m);
      look_at_reshaped_sides(call, after[j], sides.z.exact().middleCols(sides.m * j, sides.m), expected);
    }
  }

  /// The same rows of all members.
  void remove() {
    Call call(choose_, false);
    std::vector<index_t> rows, kept;
    for (index_t i = 0; i < n_; ++i) (choose_.one_in(4) ? rows : kept).push_back(i);
    if (choose_.one_in(16)) rows.push_back(choose_.of(-1, n_)), call.sound = call.moderate = false;
    const index_t p = index_t(rows.size()), n = n_;
    Sides sides(call, Exact::Zero(n, n), n, 0, count_);
    const Exact z = sides.z.exact();
    const std::vector<Exact> before = got(call);
    call.watch(rows);
    const int code = gpucholmod_batch_delete(held_, p, rows.data(), p, sides.pointer(), &call.status);
    if (!call.has_succeeded(code)) {
      call.require(!call.sound || !std::all_of(before.begin(), before.end(), is_moderate), "a sound call fails");
      return call.require_unchanged();
    }
    n_ -= p;
    const std::vector<Exact> after = got(call);
    for (index_t j = 0; call.moderate && j < count_; ++j) {
      if (!is_moderate(before[j])) continue;
      const Exact A = before[j].transpose() * before[j];
      look_at_reshaped(call, after[j], part_of(A, kept), norm(A));
      if (!sides.exist) continue;
      const Exact b = before[j].transpose() * z.middleCols(sides.m * j, sides.m);
      look_at_reshaped_sides(call, after[j], sides.z.exact().block(0, sides.m * j, n_, sides.m), rows_of(b, kept));
    }
  }

  /// A row of all members, or one of each.
  void shift() {
    Call call(choose_, false);
    const bool wrong = choose_.one_in(16), each = choose_.one_in(2);
    std::vector<index_t> from, to;
    for (index_t j = 0; j < (each ? count_ : 1); ++j) {
      from.push_back(choose_.of(0, std::max<index_t>(0, n_ - 1)));
      to.push_back(choose_.of(0, std::max<index_t>(0, n_ - 1)));
    }
    if (wrong) from.push_back(0), to.push_back(choose_.of(-1, n_));
    if (wrong || (n_ == 0 && count_ > 0)) call.sound = call.moderate = false;
    Sides sides(call, Exact::Zero(n_, n_), n_, 0, count_);
    const Exact z = sides.z.exact();
    const std::vector<Exact> before = got(call);
    call.watch(from);
    call.watch(to);
    const int code = gpucholmod_batch_shift(held_, from.data(), to.data(), index_t(from.size()), sides.pointer(),
                                            &call.status);
    if (!call.has_succeeded(code)) {
      call.require(!call.sound || !std::all_of(before.begin(), before.end(), is_moderate), "a sound call fails");
      return call.require_unchanged();
    }
    const std::vector<Exact> after = got(call);
    for (index_t j = 0; call.moderate && j < count_; ++j) {
      if (!is_moderate(before[j])) continue;
      const index_t own = from.size() == 1 ? 0 : j;
      std::vector<index_t> order;
      for (index_t i = 0; i < n_; ++i)
        if (i != from[own]) order.push_back(i);
      order.insert(order.begin() + to[own], from[own]);
      const Exact A = before[j].transpose() * before[j];
      look_at_reshaped(call, after[j], part_of(A, order), norm(A));
      if (!sides.exist) continue;
      const Exact b = before[j].transpose() * z.middleCols(sides.m * j, sides.m);
      look_at_reshaped_sides(call, after[j], sides.z.exact().middleCols(sides.m * j, sides.m), rows_of(b, order));
    }
  }

  void solve() {
    Call call(choose_, false);
    const int system = int(choose_.of(0, 2));
    const index_t m = choose_.of(0, 2);
    Numbers B(n_, m * count_, choose_.of(0, 2), choose_.type());
    B.fill(choose_, call.is_wild());
    const Exact b = B.exact();
    if (!call.has_succeeded(gpucholmod_batch_solve(held_, system, call.given(B), &call.status))) {
      call.require(!call.sound || call.status.code == GPUCHOLMOD_OVERFLOW, "a sound call fails");
      return call.require_unchanged();
    }
    const std::vector<Exact> all = got(call);
    for (index_t j = 0; call.moderate && j < count_; ++j) {
      const Exact X = B.exact().middleCols(m * j, m), &R = all[j];
      if (!is_moderate(R) || !is_finite(X)) continue;
      const Exact T = system == GPUCHOLMOD_A ? R.transpose() * R : system == GPUCHOLMOD_R ? R : Exact(R.transpose());
      const long double size = (norm(R) * norm(R) + norm(R)) * norm(X);
      call.require(norm(T * X - b.middleCols(m * j, m)) <= 1000 * eps(B.type) * (long double)(n_ + 1) * size,
                   "a solution is wrong");
    }
  }

  void solve_modified() {
    Call call(choose_, false);
    const index_t k = choose_.of(0, 4), m = choose_.of(0, 2);
    Numbers V(n_, choose_.one_in(2) ? k : k * count_, choose_.of(0, 2), choose_.type());
    Numbers b(n_, choose_.one_in(2) ? m : m * count_, choose_.of(0, 2), choose_.type());
    Numbers solution(n_, m * count_, choose_.of(0, 2), GPUCHOLMOD_DOUBLE);
    V.fill(choose_, call.is_wild());
    b.fill(choose_, call.is_wild());
    const std::vector<double> weights = some_weights(call, choose_.one_in(2) ? k : k * count_);
    std::vector<double> quadratic(m * count_), logdet(count_);
    std::vector<index_t> pivots(count_);
    call.watch(quadratic);
    call.watch(logdet);
    call.watch(pivots);
    const std::vector<Exact> before = got(call);
    const gpucholmod_batch_modification what{k, call.read_only(V), pointer(weights), index_t(weights.size()), nullptr,
                                             0, nullptr};
    const bool wrong = choose_.one_in(24);
    if (wrong) call.sound = call.moderate = false;
    const gpucholmod_batch_systems wanted{wrong ? m - 1 : m, call.read_only(b),  call.given(solution),
                                          quadratic.data(),  logdet.data(), pivots.data()};
    const int code = gpucholmod_batch_solve_modified(held_, &what, &wanted, call.options(), &call.status);
    const std::vector<Exact> after = got(call);
    for (index_t j = 0; j < count_; ++j)
      call.require((after[j].array() == before[j].array()).all(), "a batch that is solved with has changed");
    if (!call.has_succeeded(code) && code != GPUCHOLMOD_NOT_POSITIVE_DEFINITE) {
      call.require(!call.sound || !std::all_of(before.begin(), before.end(), is_moderate), "a sound call fails");
      return call.require_unchanged();
    }
    for (index_t j = 0; call.moderate && j < count_; ++j) {
      call.require((pivots[j] > 0) == std::isnan(logdet[j]) || n_ == 0, "a member that fails has a determinant");
      if (pivots[j] > 0 || m == 0 || n_ == 0 || !is_moderate(before[j])) continue;
      const Exact own = columns_of(V, k, j), A = before[j].transpose() * before[j];
      const Exact changed = A + weighted(own, weights_of(weights, k, j)) * own.transpose();
      const Exact X = solution.exact().middleCols(m * j, m), B = b.exact().middleCols(b.cols == m ? 0 : m * j, m);
      const long double size = norm(changed) + norm(A), units = 1e6L * (long double)eps(type_);
      call.require(norm(changed * X - B) <= units * size * (norm(X) + norm(B)), "a solution is wrong");
    }
  }

  void measure() {
    Call call(choose_, false);
    std::vector<double> out(count_);
    call.require(call.has_succeeded(gpucholmod_batch_logdet(held_, out.data(), &call.status)), "no determinants");
    const std::vector<Exact> all = got(call);
    for (index_t j = 0; j < count_; ++j) {
      const long double expected = 2 * all[j].diagonal().array().log().sum();
      call.require(std::abs(out[j] - expected) <= 1e-12L * (10 + std::abs(expected)), "a determinant is wrong");
    }
  }

  void copy() {
    Call call(choose_, false);
    gpucholmod_batch* made = nullptr;
    const std::vector<Exact> before = got(call);
    call.require(call.has_succeeded(gpucholmod_batch_copy(held_, &made, &call.status)), "a copy fails");
    std::swap(made, held_);
    gpucholmod_batch_destroy(made);
    const std::vector<Exact> after = got(call);
    for (index_t j = 0; j < count_; ++j)
      call.require((after[j].array() == before[j].array()).all(), "a copy is another");
  }

 private:
  std::vector<Exact> got(const Call& call) const {
    Numbers R(n_, n_ * count_, choose_.of(0, 2), GPUCHOLMOD_DOUBLE);
    gpucholmod_status status;
    call.require(gpucholmod_batch_get(held_, R.given(), nullptr, &status) == GPUCHOLMOD_OK, "a batch cannot be read");
    std::vector<Exact> all;
    for (index_t j = 0; j < count_; ++j) all.push_back(R.exact().middleCols(n_ * j, n_));
    return all;
  }
  Exact columns_of(const Numbers& V, index_t k, index_t j) const {
    return V.exact().middleCols(V.cols == k ? 0 : k * j, k);
  }
  static std::vector<double> weights_of(const std::vector<double>& all, index_t k, index_t j) {
    if (all.empty()) return {};
    const auto first = all.begin() + (index_t(all.size()) == k ? 0 : k * j);
    return {first, first + k};
  }
  void look_at_member(const Call& call, const Exact& R, const Exact& made, const Exact& V,
                      const std::vector<double>& weights, double scale) const {
    const Exact A = scale * R.transpose() * R;
    const Exact sizes = weighted(V, weights, true).cwiseAbs() * V.cwiseAbs().transpose();
    const long double bound = 100 * eps(type_) * (long double)(n_ + V.cols() + 1) * (norm(A) + norm(sizes));
    call.require(norm(made.transpose() * made - A - weighted(V, weights) * V.transpose()) <= bound,
                 "a member is wrong");
  }

  void look_at_reshaped(const Call& call, const Exact& R, const Exact& A, long double size) const {
    call.require(norm(R.transpose() * R - A) <= 100 * (long double)eps(type_) * (long double)(n_ + 1) * size,
                 "a member with other rows is wrong");
  }
  void look_at_reshaped_sides(const Call& call, const Exact& R, const Exact& z, const Exact& b) const {
    const long double units = 1e4L * (long double)eps(type_) * (long double)(n_ + 1);
    call.require(norm(R.transpose() * z - b) <= units * (norm(R) * norm(z) + norm(b)),
                 "right-hand sides of a member with other rows are wrong");
  }

  /// Right-hand sides of a member.
  struct Carried {
    Exact before, after, Y;
  };
  /// VW: the columns of V by their weights.
  void look_at_sides(const Call& call, const Exact& R, const Exact& made, const Exact& VW, double scale,
                     const Carried& sides) const {
    const Exact b = scale * R.transpose() * sides.before + VW * sides.Y;
    const long double size = scale * norm(R) * norm(sides.before) + norm(VW) * norm(sides.Y) +
                             (norm(made) + norm(VW)) * norm(sides.after);
    const long double units = 1e4L * (long double)eps(type_) * (long double)(n_ + VW.cols() + 1);
    call.require(norm(made.transpose() * sides.after - b) <= units * size, "right-hand sides of a member are wrong");
  }

  Choices& choose_;
  index_t n_, count_;
  int type_;
  gpucholmod_batch* held_ = nullptr;
};

}  // namespace gpucholmod::fuzz
