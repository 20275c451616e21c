#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/factor_io.h"
#include "base/signed_columns.h"
#include "base/threads.h"
#include "c/callers_factor.h"
#include "c/update_held.h"
#include "modify/weights.h"
#include "cpu/in_memory.h"
#include "modify/modify.h"

/// Functions that modify a factor in the caller's memory.
namespace gpucholmod::c {
namespace {

/// The largest order of a factor that is copied before columns are taken away from it, and restored if the downdate
/// fails. For larger factors a dry run finds out first, because the system would need longer to provide memory for a
/// copy.
constexpr index_t beside = 1024;

/// The options that gpucholmod_update() and gpucholmod_update_into() share.
constexpr unsigned changes_callers_factor = in_callers_memory | option::trusted | option::workspace;

/// Returns the number of words of memory that a modification needs, at most SIZE_MAX.
std::size_t words(index_t n, index_t k) {
  const std::size_t kept = n <= beside ? std::size_t(n) * std::size_t(n + 1) / 2 : 0;
  if (n > 0 && std::size_t(k) > (SIZE_MAX - kept) / std::size_t(n)) return SIZE_MAX;
  return std::size_t(n) * std::size_t(k) + kept;
}

/// The memory that a modification works in: the caller's workspace, or, if there is none, memory of its own. The
/// constructor throws bad_argument if the caller's workspace is too small.
template <class S>
class Workspace {
 public:
  Workspace(const Options& options, std::size_t words) {
    if (options.workspace) {
      void* aligned = options.workspace;
      std::size_t bytes = options.workspace_size;
      require(std::align(64, words * sizeof(S), aligned, bytes) != nullptr, "options->workspace", "is too small");
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

/// Describes the modification that a caller asks for: R becomes the factor of scale A + V diag(weights) V'.
template <class S>
struct Call {
  const Options& options;
  MatrixView<S> R;
  MatrixView<const S> V;
  const Modification& what;

  double weight(index_t q) const { return what.weights ? what.weights[q] : 1; }
  /// Throws bad_argument unless R is square and V has as many rows as R.
  void require_shapes() const {
    require(R.rows == R.cols, "R", "must be square");
    require(V.rows == R.rows, "V", "has another number of rows than R");
  }
};

/// Modifies R, without right-hand sides, by columns that are copied to `memory`. Returns the failing pivot, or -1.
/// Returns nothing, and leaves R as it is, if numbers need scaling or the arguments cannot be used. Throws
/// HalfModified.
template <class S>
std::optional<index_t> directly(const Call<S>& call, S* memory) {
  const index_t n = call.R.cols;
  const double root = call.what.scale == 1 ? 1 : std::sqrt(call.what.scale);
  index_t k = 0, removed = 0;
  bool finite = true;  // whether columns of weight 0, which are not copied to `memory`, are finite
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
  const Options& options = call.options;
  cpu::InMemory<S> factor{call.R, call.R, {memory, n, k, n}, removed, root, options.uplo, instructions};
  if (options.threads != 1) factor.threads = cpu::useful_threads(n, k, options.uplo, threads_for(options.threads));
  factor.trusted = options.trusted;
  if (n <= beside) factor.copy = memory + n * call.V.cols;
  try {
    return cpu::modify_in_memory(factor, unwatched);
  } catch (const Error&) {
    throw HalfModified(options.trusted && removed == 0
                           ? "'R' is half modified: it was declared as trusted, and is no factor of finite numbers"
                           : "'R' is half modified: it has changed while it was read");
  }
}

/// Modifies R in all cases that directly() does not handle. Returns the failing pivot, or -1.
template <class S>
index_t by_request(const Call<S>& call, const std::shared_ptr<OwnedRightHandSides>& sides) {
  const index_t n = call.R.cols;
  Request request = call.what.request(n, call.V.cols, precision_of<S>, call.options, sides);
  request.uplo = call.options.uplo;
  request.backend = Backend::cpu;
  request.method = Method::blocked;
  const std::vector<S> R = packed_triangle<S>({call.R.data, n, n, call.R.ld}, request.uplo), V = packed<S>(call.V);
  std::vector<S> out(R.size());
  const Outcome outcome = modify(Place<S>::memory(R.data(), out.data()), V.data(), request, call.options.poll());
  if (outcome.pivot >= 0) return outcome.pivot;
  copy_triangle<S>({out.data(), n, n, n}, request.uplo, call.R);
  put_back_sides(sides.get(), call.what.sides);
  return -1;
}

template <class S>
index_t update(const Call<S>& call) {
  call.require_shapes();
  const index_t n = call.R.cols, k = call.V.cols;
  const std::shared_ptr<OwnedRightHandSides> along = copied(call.what.sides, n, k, n);
  call.what.require_sound(k);
  if (n == 0 && !along) return -1;
  if (!along && !call.options.progress) {
    const Workspace<S> memory(call.options, words(n, k));
    if (const std::optional<index_t> pivot = directly(call, memory.data())) return *pivot;
  }
  return by_request(call, along);
}

/// Returns f(factor, columns of V, task) for a modification of an upper factor in the memory of a GPU. The result is
/// written to `out`, which may be R. Throws bad_argument.
template <class S, class F>
auto with_task(const Call<S>& call, MatrixView<S> out, const gpucholmod_const_matrix& V, F&& f) {
  const index_t n = call.R.cols, k = V.cols;
  Modification what = call.what;
  const WeightsOnHost weights(what.weights, k, call.options);
  what.weights = weights.data();
  what.require_sound(k);
  CallersColumns columns("V", V, call.options);
  WeightedColumns<double> weighted(columns.given(), what.request(n, k, precision_of<S>, call.options, nullptr));
  const Request task = resolved(weighted.request(), choose(weighted.request(), Where::gpu));
  const cuda::CallersFactor<S> factor{call.options.gpu_of("R", call.R.data), call.R, out, call.options.trusted};
  return f(factor, weighted.columns(), task);
}

template <class S>
bool has_sides(const Call<S>& call) {
  return call.what.sides && call.what.sides->z.cols > 0;
}

/// Queues a modification that writes its result to `out`: see gpucholmod_update_into(). Throws bad_argument.
template <class S>
void queue_on_gpu(const Call<S>& call, MatrixView<S> out, const gpucholmod_const_matrix& V) {
  const Options& options = call.options;
  const auto require_on_gpu = [&](const char* argument, const void* data) {
    require(options.gpu_of(argument, data) >= 0, argument, "must be in the memory of the GPU, as there is a verdict");
  };
  require_on_gpu("V", V.data);
  require_on_gpu("options->verdict", options.verdict);
  const double* const weights = call.what.weights;
  require(options.gpu_of("weights", weights) < 0, "weights", "must be in the host's memory, as there is a verdict");
  for (index_t q = 0; weights && q < V.cols; ++q)
    require(weights[q] != 0, "weights", "must not be 0, as there is a verdict");
  require(reinterpret_cast<std::uintptr_t>(options.verdict) % sizeof(int) == 0, "options->verdict",
          "is off the alignment of an int");
  const bool queued = options.uplo == Uplo::upper && !options.progress && !has_sides(call) &&
                      with_task(call, out, V, [&](const auto& factor, const ColumnsOfV& columns, const Task& task) {
                        return cuda::queue_where_it_is<S>(factor, columns, task, {options.stream, options.verdict});
                      });
  require(queued, "options->verdict",
          "takes an upper factor into another, both with columns at multiples of 16 bytes and with the same ld, "
          "at most 4 n + 4096; "
          "at least one column; no right-hand sides, no progress function");
}

/// Modifies a factor in the memory of a GPU without copying it first; the result is written to `out`, which may be R:
/// see cuda::modify_where_it_is(). Returns the failing pivot, or -1; returns nothing if such a modification is not
/// possible.
template <class S>
std::optional<index_t> on_gpu(const Call<S>& call, MatrixView<S> out, const gpucholmod_const_matrix& V) {
  if (call.options.uplo == Uplo::lower || call.options.progress || has_sides(call)) return {};
  std::atomic<bool> begun{false};
  try {
    return with_task(call, out, V, [&](const auto& factor, const ColumnsOfV& columns, const Task& task) {
      const auto done = cuda::modify_where_it_is<S>(factor, columns, task, call.options.poll(), begun);
      return done ? std::optional<index_t>(done->pivot) : std::nullopt;
    });
  } catch (const std::exception& error) {
    if (begun) throw HalfModified(std::string("'R' is half modified: ") + error.what());
    throw;
  }
}

/// Replaces `out`, which may be R, by the modified factor; both are in the memory of a GPU. Returns the failing pivot,
/// or -1.
template <class S>
index_t update_on_gpu(const Call<S>& call, MatrixView<S> out, const gpucholmod_const_matrix& V) {
  call.require_shapes();
  if (call.options.verdict) return queue_on_gpu(call, out, V), -1;
  if (const std::optional<index_t> pivot = on_gpu(call, out, V)) return *pivot;
  CallersFactor<S> factor(call.R, call.R.cols, call.options);
  factor.set_result(out);
  return factor.change(call.what.sides, [&](const Changing& changing, const Reshaping& given) {
    return c::update(changing, V, call.what, given);
  });
}

/// Computes the modified factor of R in `out`. Only reads R, unless `out` is the same matrix. Returns the failing
/// pivot, or -1.
index_t update(const gpucholmod_matrix& R, const gpucholmod_matrix& out, const gpucholmod_const_matrix& V,
               const Modification& what, const Options& chosen) {
  return with_type("R", R.type, [&](auto s) {
    using S = decltype(s);
    Call<S> call{chosen, view<S>("R", R), view<S>("V", V), what};
    const MatrixView<S> to = view<S>("out", out);
    if (chosen.gpu_of("R", R.data) >= 0) {
      require(chosen.gpu_of("out", out.data) >= 0, "out", "is in the host's memory, and R is not");
      return update_on_gpu(call, to, V);
    }
    require(!chosen.verdict, "R", "must be in the memory of a GPU, as there is a verdict");
    if (to.data != call.R.data) {
      call.require_shapes();
      copy_triangle<S>(call.R, chosen.uplo, to);
      call.R = to;
    }
    return update(call);
  });
}

}  // namespace
}  // namespace gpucholmod::c

using namespace gpucholmod::c;

extern "C" {

int gpucholmod_abi(void) { return GPUCHOLMOD_ABI; }

size_t gpucholmod_workspace(ptrdiff_t n, ptrdiff_t k, int type) {
  constexpr std::size_t alignment = 64;
  if (n < 0 || k < 0 || (type != GPUCHOLMOD_DOUBLE && type != GPUCHOLMOD_FLOAT)) return 0;
  const std::size_t scalar = type == GPUCHOLMOD_DOUBLE ? sizeof(double) : sizeof(float);
  return words(n, k) > (SIZE_MAX - alignment) / scalar ? SIZE_MAX : words(n, k) * scalar + alignment;
}

int gpucholmod_update(gpucholmod_matrix R, gpucholmod_const_matrix V, const double* weights, double scale,
                      const gpucholmod_right_sides* sides, const gpucholmod_options* options,
                      gpucholmod_status* status) {
  return guarded(status, [&] {
    return update(R, R, V, {weights, scale, sides}, options_of(options, changes_callers_factor));
  });
}

int gpucholmod_update_into(gpucholmod_const_matrix R, gpucholmod_matrix out, gpucholmod_const_matrix V,
                           const double* weights, double scale, const gpucholmod_right_sides* sides,
                           const gpucholmod_options* options, gpucholmod_status* status) {
  return guarded(status, [&] {
    const gpucholmod_matrix read = {const_cast<void*>(R.data), R.rows, R.cols, R.ld, R.type};
    require_shape("out", out, R.rows, R.cols);
    require(out.type == R.type, "out", "has another type than R");
    return update(read, out, V, {weights, scale, sides}, options_of(options, changes_callers_factor | option::verdict));
  });
}

}  // extern "C"
