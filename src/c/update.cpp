#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/factor_io.h"
#include "base/signed_columns.h"
#include "c/right_sides.h"
#include "cpu/in_memory.h"
#include "modify/modify.h"

/// Modifications of a factor in the caller's memory.
namespace gpucholmod::c {
namespace {

/// Up to this order a factor that columns are taken away from is copied beforehand, and put back where that cannot be
/// done. Above, a run that writes nothing finds out.
constexpr index_t beside = 256;

/// Returns the words that a modification works in, of which there may be SIZE_MAX at most.
std::size_t words(index_t n, index_t k) {
  const std::size_t kept = n <= beside ? std::size_t(n * n) : 0;
  if (n > 0 && std::size_t(k) > (SIZE_MAX - kept) / std::size_t(n)) return SIZE_MAX;
  return std::size_t(n) * std::size_t(k) + kept;
}

/// The caller's memory, if it is enough.
template <class S>
class Workspace {
 public:
  Workspace(void* given, std::size_t bytes, std::size_t words) {
    if (given) {
      void* aligned = given;
      require(std::align(64, words * sizeof(S), aligned, bytes) != nullptr, "workspace", "is too small");
      data_ = static_cast<S*>(aligned);
      return;
    }
    own_.reset(new S[words]);
    data_ = own_.get();
  }
  S* data() const { return data_; }

 private:
  std::unique_ptr<S[]> own_;
  S* data_;
};

/// What a caller has asked for: that R become the factor of scale A + V diag(weights) V'.
template <class S>
struct Call {
  int form;
  MatrixView<S> R;
  MatrixView<const S> V;
  const double* weights;
  double scale;

  Uplo uplo() const { return uplo_of(form); }
  bool trusted() const { return (form & GPUCHOLMOD_TRUSTED) != 0; }
  double weight(index_t q) const { return weights ? weights[q] : 1; }
  /// Throws bad_argument.
  void require_sound() const {
    require_form(form);
    require(R.cols >= 0 && V.cols >= 0, R.cols < 0 ? "n" : "k", "must not be negative");
    require(std::isfinite(scale) && scale > 0, "scale", "must be positive");
    static_cast<void>(matrix("R", R.data, R.rows, R.cols, R.ld));
    static_cast<void>(matrix("V", V.data, V.rows, V.cols, V.ld));
    require_weights(weights, V.cols);
  }
};

/// Numbers that need no scaling and no right-hand sides. Nothing where there are others, or what is given cannot be
/// used. Throws HalfModified.
template <class S>
std::optional<index_t> directly(const Call<S>& call, S* memory) {
  const index_t n = call.R.cols;
  const double root = call.scale == 1 ? 1 : std::sqrt(call.scale);
  index_t k = 0, removed = 0;
  bool finite = true;  // columns of weight 0, which are not among those in `memory`
  each_signed_column(call.V.cols, [&](index_t q) { return call.weight(q); }, [&](index_t q, double w) {
    const S* const from = call.V.col(q);
    if (w == 0) {
      finite = finite && std::isfinite(sum_of_squares(from, n));
      return;
    }
    const S by = S(multiple_of_column(w, root));
    S* const to = memory + k * n;
    for (index_t i = 0; i < n; ++i) to[i] = from[i] * by;
    ++k;
    removed += w < 0;
  });
  if (n == 0 || k == 0 || !finite) return {};
  static const Instructions instructions = cpu::resolve(Instructions::automatic);
  cpu::InMemory<S> factor{call.R, call.R, {memory, n, k, n}, removed, root, call.uplo(), instructions};
  factor.trusted = call.trusted();
  if (n <= beside) factor.copy = memory + n * call.V.cols;
  try {
    return cpu::modify_in_memory(factor, unwatched);
  } catch (const Error&) {
    throw HalfModified(call.trusted() && removed == 0
                           ? "'R' is half modified: it was declared as trusted, and is no factor of finite numbers"
                           : "'R' is half modified: it has changed while it was read");
  }
}

/// Everything else.
template <class S>
index_t by_request(const Call<S>& call, const std::shared_ptr<OwnedRightHandSides>& sides,
                   const gpucholmod_sides* given) {
  const index_t n = call.R.cols;
  Request request = request_of(n, call.V.cols, precision_of<S>, call.weights, call.scale, sides);
  request.uplo = call.uplo();
  request.backend = Backend::cpu;
  request.method = Method::blocked;
  const std::vector<S> R = packed_triangle<S>({call.R.data, n, n, call.R.ld}, call.uplo()), V = packed<S>(call.V);
  std::vector<S> out(R.size());
  const Outcome outcome = modify(Place<S>::memory(R.data(), out.data()), V.data(), request, unwatched);
  if (outcome.pivot >= 0) return outcome.pivot;
  copy_triangle<S>({out.data(), n, n, n}, call.uplo(), call.R);
  put_back_sides(sides.get(), given);
  return -1;
}

template <class S>
int update(const Call<S>& call, const gpucholmod_sides* sides, void* workspace, std::size_t bytes,
           gpucholmod_status* status) {
  return guarded(status, [&] {
    call.require_sound();
    const index_t n = call.R.cols, k = call.V.cols;
    const std::shared_ptr<OwnedRightHandSides> along = copied(sides, n, k, n);
    if (n == 0 && !along) return index_t(-1);
    if (!along) {
      const Workspace<S> memory(workspace, bytes, words(n, k));
      if (const std::optional<index_t> pivot = directly(call, memory.data())) return *pivot;
    }
    return by_request(call, along, sides);
  });
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod::c;

extern "C" {

int gpucholmod_abi(void) { return GPUCHOLMOD_ABI; }

size_t gpucholmod_workspace(ptrdiff_t n, ptrdiff_t k, size_t scalar) {
  constexpr std::size_t alignment = 64;
  if (n < 0 || k < 0 || scalar == 0) return 0;
  return words(n, k) > (SIZE_MAX - alignment) / scalar ? SIZE_MAX : words(n, k) * scalar + alignment;
}

int gpucholmod_update_d(int form, ptrdiff_t n, ptrdiff_t k, double* R, ptrdiff_t ldr, const double* V, ptrdiff_t ldv,
                        const double* weights, double scale, const gpucholmod_sides* sides, void* workspace,
                        size_t bytes, gpucholmod_status* status) {
  return update<double>({form, {R, n, n, ldr}, {V, n, k, ldv}, weights, scale}, sides, workspace, bytes, status);
}

int gpucholmod_update_s(int form, ptrdiff_t n, ptrdiff_t k, float* R, ptrdiff_t ldr, const float* V, ptrdiff_t ldv,
                        const double* weights, double scale, const gpucholmod_sides* sides, void* workspace,
                        size_t bytes, gpucholmod_status* status) {
  return update<float>({form, {R, n, n, ldr}, {V, n, k, ldv}, weights, scale}, sides, workspace, bytes, status);
}

}  // extern "C"
