#pragma once

#include "problem.h"

/// A factor that is modified and used, in the caller's memory or with memory of its own.
namespace gpucholmod::fuzz {

class Factor {
 public:
  explicit Factor(Choices& choose)
      : choose_(choose), type_(choose.type()), R_(some_factor(choose, choose.size(), type_, true)) {
    if (choose.one_in(2)) create();
  }
  Factor(const Factor&) = delete;
  ~Factor() { gpucholmod_factor_destroy(held_); }

  void update() {
    Call call(choose_, !held_);
    const index_t n = R_.rows(), k = choose_.size();
    Numbers V = some_matrix(call, n, k);
    std::vector<double> weights = some_weights(call, k);
    const double scale = some_scale(call);
    Sides sides(call, R_, n, k);
    const Exact VW = weighted(V.exact(), weights), sizes = weighted(V.exact(), weights, true).cwiseAbs();
    const bool grows = std::all_of(weights.begin(), weights.end(), [](double w) { return w >= 0; });
    Wanted wanted{scale * A() + VW * V.exact().transpose(),
                  norm(scale * A()) + norm(sizes * V.exact().cwiseAbs().transpose()),
                  {},
                  grows && !has_zeros(R_)};
    if (sides.exist) wanted.b = scale * sides.b + VW * sides.Y.exact();
    const gpucholmod_const_matrix given = call.read_only(V);
    change(call, n, n, wanted, sides, [&](gpucholmod_matrix R) {
      if (held_)
        return gpucholmod_factor_update(held_, given, pointer(weights), scale, sides.pointer(), call.options(),
                                        &call.status);
      return gpucholmod_update(R, given, pointer(weights), scale, sides.pointer(), call.options(), &call.status);
    });
  }

  void insert() {
    Call call(choose_, !held_);
    const index_t n = R_.rows(), p = choose_.of(0, 3),
                  at = choose_.one_in(16) ? choose_.of(-1, n + 1) : choose_.of(0, n);
    if (at < 0 || at > n) call.sound = false;
    const index_t place = std::clamp<index_t>(at, 0, n);
    Numbers X = some_matrix(call, n + p, p);
    for (index_t q = 0; q < p; ++q)  // symmetric, and mostly positive definite
      for (index_t i = 0; i <= q; ++i) {
        if (i == q && !choose_.one_in(4)) X.set(place + q, q, 10.0 * double(n + p));
        X.set(place + i, q, X(place + q, i));
      }
    Sides sides(call, R_, n + p, p);
    Wanted wanted{Exact(n + p, n + p), 0, Exact(n + p, sides.m), false};
    const auto old = [&](index_t i) { return i < place ? i : i + p; };
    const Exact before = A();
    for (index_t j = 0; j < n; ++j)
      for (index_t i = 0; i < n; ++i) wanted.A(old(i), old(j)) = before(i, j);
    wanted.A.middleCols(place, p) = X.exact();
    wanted.A.middleRows(place, p) = X.exact().transpose();
    wanted.size = norm(wanted.A);
    for (index_t i = 0; sides.exist && i < n; ++i) wanted.b.row(old(i)) = sides.b.row(i);
    if (sides.exist) wanted.b.middleRows(place, p) = sides.Y.exact();
    const gpucholmod_const_matrix given = call.read_only(X);
    change(call, n + p, n + p, wanted, sides, [&](gpucholmod_matrix R) {
      if (held_) return gpucholmod_factor_insert(held_, at, given, sides.pointer(), call.options(), &call.status);
      return gpucholmod_insert(R, at, given, sides.pointer(), call.options(), &call.status);
    });
  }

  void remove() {
    Call call(choose_, !held_);
    const index_t n = R_.rows();
    std::vector<index_t> rows, kept;
    for (index_t i = 0; i < n; ++i) (choose_.one_in(4) ? rows : kept).push_back(i);
    const bool wrong = choose_.one_in(16);
    if (wrong) rows.push_back(choose_.of(-1, n)), call.sound = call.moderate = false;
    Sides sides(call, R_, n, 0);
    const index_t count = choose_.one_in(24) ? call.sound = call.moderate = false, -1 : index_t(rows.size());
    call.watch(rows);
    Wanted wanted{part_of(A(), kept), norm(A()), {}, !has_zeros(R_)};
    if (sides.exist) wanted.b = rows_of(sides.b, kept);
    change(call, n, n - index_t(rows.size()), wanted, sides, [&](gpucholmod_matrix R) {
      if (held_)
        return gpucholmod_factor_delete(held_, rows.data(), count, sides.pointer(), call.options(), &call.status);
      return gpucholmod_delete(R, rows.data(), count, sides.pointer(), call.options(), &call.status);
    });
  }

  void shift() {
    Call call(choose_, !held_);
    const index_t n = R_.rows(), edge = choose_.one_in(16) || n == 0 ? 1 : 0;
    const index_t from = choose_.of(-edge, n - 1 + edge), to = choose_.of(-edge, n - 1 + edge);
    if (edge) call.sound = call.moderate = false;
    std::vector<index_t> order;
    for (index_t i = 0; i < n; ++i) order.push_back(i);
    if (!edge) order.erase(order.begin() + from), order.insert(order.begin() + to, from);
    Sides sides(call, R_, n, 0);
    Wanted wanted{part_of(A(), order), norm(A()), {}, !has_zeros(R_)};
    if (sides.exist) wanted.b = rows_of(sides.b, order);
    change(call, n, n, wanted, sides, [&](gpucholmod_matrix R) {
      if (held_) return gpucholmod_factor_shift(held_, from, to, sides.pointer(), call.options(), &call.status);
      return gpucholmod_shift(R, from, to, sides.pointer(), call.options(), &call.status);
    });
  }

  void solve() {
    Call call(choose_, !held_);
    const int system = int(choose_.one_in(16) ? choose_.of(-1, 3) : choose_.of(0, 2));
    if (system < 0 || system > 2) call.sound = false;
    Numbers B = some_matrix(call, R_.rows(), choose_.of(0, 3));
    const Exact b = B.exact();
    use(
        call, B,
        [&](gpucholmod_const_matrix R, gpucholmod_matrix out) {
          if (held_) return gpucholmod_factor_solve(held_, system, out, &call.status);
          return gpucholmod_solve(R, system, out, call.options(), &call.status);
        },
        [&](const Exact& X) {
          const Exact R = turned(R_), back = system == GPUCHOLMOD_R ? R : Exact(R.transpose());
          const Exact T = system == GPUCHOLMOD_A ? A() : back;
          return std::make_pair(norm(T * X - b), norm(T) * norm(X));
        });
  }

  void invert() {
    Call call(choose_, !held_);
    const index_t n = R_.rows();
    Numbers out(n, n, choose_.of(0, 2), held_ ? choose_.type() : type_);
    use(
        call, out,
        [&](gpucholmod_const_matrix R, gpucholmod_matrix to) {
          if (held_) return gpucholmod_factor_inverse(held_, to, &call.status);
          return gpucholmod_inverse(R, to, call.options(), &call.status);
        },
        [&](const Exact& X) { return std::make_pair(norm(A() * X - Exact::Identity(n, n)), norm(A()) * norm(X)); });
  }

  void measure() {
    Call call(choose_, !held_);
    const bool condition = choose_.one_in(2);
    double out = -7;
    Numbers none(0, 0, 0, GPUCHOLMOD_DOUBLE);
    use(
        call, none,
        [&](gpucholmod_const_matrix R, gpucholmod_matrix) {
          if (held_) return (condition ? gpucholmod_factor_rcond : gpucholmod_factor_logdet)(held_, &out, &call.status);
          return (condition ? gpucholmod_rcond : gpucholmod_logdet)(R, &out, call.options(), &call.status);
        },
        [](const Exact&) { return std::make_pair(0.0L, 0.0L); });
    if (call.status.code != GPUCHOLMOD_OK) return call.require(out == -7, "a number has changed");
    const long double expected = 2 * R_.diagonal().cwiseAbs().array().log().sum();
    const bool is_right = std::isinf(expected)
                              ? out == double(expected)
                              : std::abs(out - expected) <= 1e-12L * (10 + std::abs(expected) + R_.rows());
    call.require(condition ? out >= 0 && out <= 1 : is_right || !call.moderate, condition ? "rcond" : "logdet");
  }

  void copy() {
    if (!held_) return create();
    Call call(choose_, false);
    gpucholmod_factor* made = nullptr;
    call.require(call.has_succeeded(gpucholmod_factor_copy(held_, &made, &call.status)), "a copy fails");
    call.require(gpucholmod_factor_order(made) == R_.rows() && gpucholmod_factor_type(made) == type_,
                 "a copy is another");
    std::swap(made, held_);
    gpucholmod_factor_destroy(made);
    call.require(same(got(call), R_), "a copy has other numbers");
  }

 private:
  Exact A() const { return R_.transpose() * R_; }
  static bool same(const Exact& x, const Exact& y) { return x.rows() == y.rows() && (x.array() == y.array()).all(); }

  Numbers some_matrix(Call& call, index_t rows, index_t cols) {
    Numbers made(rows, cols, choose_.of(0, 2), held_ ? choose_.type() : type_);
    made.fill(choose_, call.is_wild());
    return made;
  }
  Numbers stored(Call& call, index_t room) {
    Numbers R(room, room, choose_.of(0, 3), type_);
    if (!held_) store(R_, call.triangle(), R);
    return R;
  }
  void create() {
    Call call(choose_, true);
    Numbers R = stored(call, R_.rows());
    const index_t capacity = choose_.one_in(16) ? huge : choose_.of(-2, 50);
    const gpucholmod_const_matrix given = call.read_only(R);
    gpucholmod_factor* made = nullptr;
    if (call.has_succeeded(gpucholmod_factor_create(given, capacity, call.options(), &made, &call.status)) &&
        call.moderate) {
      held_ = made;
      R_ = got(call);
      for (index_t j = 0; j < R_.rows(); ++j) call.require(R_(j, j) >= 0, "a diagonal entry is negative");
      return;
    }
    call.require(!call.sound || capacity == huge || has_zeros(R_), "a factor cannot be made");
    call.require_unchanged();
    gpucholmod_factor_destroy(made);
  }
  /// Returns the numbers of the factor that has memory of its own.
  Exact got(const Call& call) {
    const index_t n = gpucholmod_factor_order(held_);
    Numbers R(n, n, choose_.of(0, 2), GPUCHOLMOD_DOUBLE);
    gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
    options.triangle = int(choose_.of(0, 1));
    call.require(gpucholmod_factor_get(held_, R.given(), &options, nullptr) == GPUCHOLMOD_OK,
                 "a factor cannot be read");
    return upper(R, n, options.triangle);
  }

  /// Calls f(R) that changes the factor, of order n afterwards; R: in the caller's memory, of order `room`.
  template <class F>
  void change(Call& call, index_t room, index_t n, const Wanted& wanted, const Sides& sides, F&& f) {
    Numbers R = stored(call, held_ ? 0 : room);
    const Numbers before = R;
    const bool sound_numbers = is_moderate(R_) && !(call.is_trusted() && !(R_.diagonal().array() > 0).all());
    const int code = f(held_ ? gpucholmod_matrix{} : call.given(R));
    if (!call.has_succeeded(code)) return look_at_failure(call, wanted.definite && sound_numbers);
    if (!held_ && call.spoiled) return;
    if (!held_) require_outside_unchanged(call, before, R, n);
    const Exact made = held_ ? got(call) : upper(R, n, call.triangle());
    if (held_ || call.moderate) R_ = made;
    call.require(is_finite(made) || call.is_trusted(), "a number of the factor is not finite");
    if (!call.moderate || !sound_numbers) return;
    const long double bound = 100 * eps(type_) * (long double)(room + sides.Y.rows + wanted.A.rows() + 50);
    call.require(norm(made.transpose() * made - wanted.A) <= bound * wanted.size, "the factor is wrong");
    if (!sides.exist) return;
    const Exact z = sides.z.exact().topRows(n), zero = made.transpose() * z - wanted.b;
    call.require(norm(zero) <= 100 * bound * (norm(made) * norm(z) + norm(wanted.b) + wanted.size + norm(sides.b)),
                 "z is wrong");
  }
  void look_at_failure(Call& call, bool definite) {
    if (call.status.code == GPUCHOLMOD_HALF_MODIFIED)
      return call.require(!held_ && call.is_trusted(), "is half modified");
    call.require_unchanged();
    call.require(!held_ || same(got(call), R_), "a factor has changed");
    if (!call.sound || !is_moderate(R_)) return;
    call.require(call.status.code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE ||
                     (call.status.code == GPUCHOLMOD_BAD_DIAGONAL && has_zeros(R_)),
                 "a sound call fails");
    call.require(!definite, "a definite matrix is none");
  }
  /// Everything but the triangle of order n is as before.
  static void require_outside_unchanged(const Call& call, Numbers before, const Numbers& after, index_t n) {
    store(upper(after, n, call.triangle()), call.triangle(), before);
    call.require(before.bytes == after.bytes, "what is beside the factor has changed");
  }

  /// Calls f(R, out), which does not change the factor; error(X): the residual of what it puts there, and its size.
  template <class F, class Error>
  void use(Call& call, Numbers& out, F&& f, Error&& error) {
    Numbers R = stored(call, held_ ? 0 : R_.rows());
    const gpucholmod_matrix to = call.given(out);
    const int code = f(held_ ? gpucholmod_const_matrix{} : call.read_only(R), to);
    if (!call.has_succeeded(code)) {
      call.require_unchanged();
      const bool may_fail = has_zeros(R_) || code == GPUCHOLMOD_OVERFLOW;
      return call.require(!call.sound || !is_moderate(R_) || may_fail, "a sound call fails");
    }
    const Exact X = out.exact();
    if (!call.moderate || !is_moderate(R_) || !is_finite(X) || has_zeros(R_)) return;
    const auto [wrong, size] = error(X);
    call.require(wrong <= 1000 * eps(out.type) * (long double)(R_.rows() + 1) * size, "a solution is wrong");
  }

  Choices& choose_;
  int type_;
  Exact R_;
  gpucholmod_factor* held_ = nullptr;
};

}  // namespace gpucholmod::fuzz
