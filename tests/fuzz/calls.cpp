#include "batch.h"
#include "factor.h"

/// Random calls of the C interface. Each input of libFuzzer chooses factors and what is done with them, with wrong
/// sizes, numbers and options among what is right. Every call must return a code, leave what it must not change as it
/// was, and be accurate if its numbers are moderate.
namespace gpucholmod::fuzz {
namespace {

/// Gives an input's symmetric matrix to gpucholmod_factorise().
void factorise(Choices& choose) {
  Call call(choose, true);
  const index_t n = choose.size();
  const int type = choose.type();
  const Exact R = some_factor(choose, n, type, true);
  const Exact all = R.transpose() * R;
  Numbers A(n, n, choose.of(0, 3), type);
  store(all, call.triangle(), A);
  if (n > 0 && call.is_wild()) A.set(choose.of(0, n - 1), choose.of(0, n - 1), choose.number(true));
  const Numbers before = A;
  const Exact given = upper(A, n, call.triangle());
  const bool succeeded = call.has_succeeded(gpucholmod_factorise(call.given(A), call.options(), &call.status));
  if (!succeeded) return call.require_unchanged();
  const Exact made = upper(A, n, call.triangle());
  Numbers expected = before;
  store(made, call.triangle(), expected);
  call.require(!call.moderate || expected.bytes == A.bytes, "what is beside the factor has changed");
  if (!call.moderate) return;
  Exact symmetric = given + given.transpose();
  symmetric.diagonal() = given.diagonal();
  const long double bound = 100 * eps(type) * (long double)(n + 1) * norm(symmetric);
  call.require(norm(made.transpose() * made - symmetric) <= bound, "the factor is wrong");
}

/// Solves with several modifications of one matrix.
void solve_modified(Choices& choose) {
  Call call(choose, true);
  const index_t n = choose.size(), count = choose.of(0, 3), m = choose.of(0, 2);
  std::vector<index_t> columns(count);
  index_t all = 0;
  for (index_t& k : columns) all += k = choose.of(0, 4);
  const Exact R = some_factor(choose, n, GPUCHOLMOD_DOUBLE, false), A = R.transpose() * R;
  Numbers stored(n, n, choose.of(0, 2), GPUCHOLMOD_DOUBLE), V(n, all, choose.of(0, 2), GPUCHOLMOD_DOUBLE);
  store(R, call.triangle(), stored);
  V.fill(choose, call.is_wild());
  const bool own_b = choose.one_in(2);
  Numbers b(n, own_b ? m * count : m, choose.of(0, 2), GPUCHOLMOD_DOUBLE);
  Numbers solution(n, m * count, choose.of(0, 2), GPUCHOLMOD_DOUBLE);
  b.fill(choose, call.is_wild());
  const std::vector<double> weights = some_weights(call, all);
  std::vector<double> scales(choose.one_in(2) ? count : 0), quadratic(m * count), logdet(count);
  for (double& scale : scales) scale = some_scale(call);
  std::vector<index_t> pivots(count);
  call.watch(quadratic);
  call.watch(logdet);
  call.watch(pivots);
  const bool wants_solution = choose.one_in(2);
  const gpucholmod_modifications what{choose.one_in(24) ? call.sound = call.moderate = false,
                                      choose.of(-1, 0)
                                                        : count,
                                      columns.data(),
                                      call.read_only(V),
                                      pointer(weights),
                                      pointer(scales),
                                      m,
                                      call.read_only(b),
                                      wants_solution ? call.given(solution) : gpucholmod_matrix{},
                                      quadratic.data(),
                                      logdet.data(),
                                      pivots.data()};
  const int code = gpucholmod_solve_modified(call.read_only(stored), &what, call.options(), &call.status);
  if (!call.has_succeeded(code) && code != GPUCHOLMOD_NOT_POSITIVE_DEFINITE) {
    call.require(!call.sound, "a sound call fails");
    return call.require_unchanged();
  }
  if (!call.moderate) return;
  index_t first = 0;
  for (index_t j = 0; j < count; first += columns[j++]) {
    const double scale = scales.empty() ? 1 : scales[j];
    const std::vector<double> w(weights.begin() + (weights.empty() ? 0 : first),
                                weights.begin() + (weights.empty() ? 0 : first + columns[j]));
    const Exact own = V.exact().middleCols(first, columns[j]);
    const Exact changed = scale * A + weighted(own, w) * own.transpose();
    call.require((pivots[j] > 0) == std::isnan(logdet[j]) || n == 0, "a member that is not definite has a determinant");
    if (pivots[j] > 0 || !wants_solution || m == 0 || n == 0) continue;
    const Exact X = solution.exact().middleCols(m * j, m), B = b.exact().middleCols(own_b ? m * j : 0, m);
    call.require(norm(changed * X - B) <= 1e-9L * (norm(changed) + norm(A)) * (norm(X) + norm(B)),
                 "a solution is wrong");
  }
}

void use_factor(Choices& choose) {
  Factor factor(choose);
  void (Factor::*const calls[])() = {&Factor::update, &Factor::update,  &Factor::insert,
                                     &Factor::remove, &Factor::shift,   &Factor::solve,
                                     &Factor::invert, &Factor::measure, &Factor::copy};
  for (index_t left = choose.of(1, 8); left > 0; --left) (factor.*calls[choose.of(0, 8)])();
}
void use_batch(Choices& choose) {
  Batch batch(choose);
  void (Batch::*const calls[])() = {&Batch::update, &Batch::update, &Batch::insert,
                                    &Batch::remove, &Batch::shift,  &Batch::solve,
                                    &Batch::solve_modified, &Batch::measure, &Batch::copy};
  for (index_t left = choose.of(1, 8); left > 0 && batch.exists(); --left) (batch.*calls[choose.of(0, 8)])();
}

}  // namespace
}  // namespace gpucholmod::fuzz

extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  gpucholmod::fuzz::Choices choose(data, size);
  void (*const kinds[])(gpucholmod::fuzz::Choices&) = {gpucholmod::fuzz::use_factor, gpucholmod::fuzz::use_factor,
                                                       gpucholmod::fuzz::use_batch, gpucholmod::fuzz::solve_modified,
                                                       gpucholmod::fuzz::factorise};
  kinds[choose.of(0, 4)](choose);
  return 0;
}
