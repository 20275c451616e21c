#include "arguments.h"

#include <octave/qr.h>

/// Functions that take a matrix R and return another: cholupdate_gpu, cholinsert_gpu, choldelete_gpu, cholshift_gpu.
namespace gpucholmod_octave {
namespace {

/// Multiplies the first rows of the upper triangle of `out` by -1 where the diagonal of R is negative.
template <class T>
void turn_rows(const MatrixOf<T>& R, MatrixOf<T>& out) {
  const octave_idx_type n = R.rows(), m = out.rows();
  std::vector<T> signs(n);
  for (octave_idx_type i = 0; i < n; ++i) signs[i] = R.data()[i + i * n] < 0 ? T(-1) : T(1);
  if (std::count(signs.begin(), signs.end(), T(1)) == n) return;
  T* column = out.fortran_vec();
  for (octave_idx_type j = 0; j < n; ++j, column += m)
    for (octave_idx_type i = 0; i <= j; ++i) column[i] *= signs[i];
}

/// Returns the upper triangle of R as the first rows and columns of a matrix of order m; the rest is zero. Rows with a
/// negative diagonal entry are multiplied by -1: R'R stays the same, and the core needs no copy of its own.
template <class T>
MatrixOf<T> upper(const MatrixOf<T>& R, octave_idx_type m) {
  MatrixOf<T> out(m, m);
  T* to = out.fortran_vec();
  for (octave_idx_type j = 0; j < m; ++j, to += m) {
    const octave_idx_type rows = j < R.columns() ? j + 1 : 0;
    std::copy_n(R.data() + j * R.rows(), rows, to);
    std::fill(to + rows, to + m, T(0));
  }
  turn_rows<T>(R, out);
  return out;
}

/// Returns the factor of A(p, p), A = R'R, whose diagonal is not negative, for any upper R, singular ones too.
template <class T>
MatrixOf<T> reordered(const MatrixOf<T>& R, const std::vector<octave_idx_type>& p) {
  using Decomposition = octave::math::qr<MatrixOf<T>>;
  const octave_idx_type n = R.rows(), m = octave_idx_type(p.size());
  MatrixOf<T> columns(n, m);
  for (octave_idx_type j = 0; j < m; ++j)
    std::copy_n(R.data() + p[j] * n, n, columns.fortran_vec() + j * n);
  return upper<T>(Decomposition(columns, Decomposition::economy).R(), m);
}

/// Raises the error for a call that has failed.
[[noreturn]] void fail(const char* who, const char* id, const gpucholmod_status& status) {
  error_with_id(id, "%s: %s", who, message_of(status).c_str());
}

/// Returns R1 and err. After a failure with the number 1 or 2, returns R and that number instead, if the caller takes
/// err. Raises the error of every other failure.
octave_value_list with_err(const char* who, const char* id, const octave_value& R, const octave_value& R1,
                           const gpucholmod_status& status, int nargout) {
  if (status.code == GPUCHOLMOD_OK) return nargout < 2 ? ovl(R1) : ovl(R1, 0.0);
  const int err = status.code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE ? 1 : status.code == GPUCHOLMOD_BAD_DIAGONAL ? 2 : 0;
  if (err == 0 || nargout < 2) fail(who, id, status);
  return ovl(R, double(err));
}

/// Computes R <- the factor of R'R + X diag(weights) X' on a GPU.
template <class T>
void update_on_gpu(const MatrixOf<T>& X, const Weights& weights, MatrixOf<T>& R, gpucholmod_status& status) {
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  options.device = GPUCHOLMOD_ANY_GPU;
  gpucholmod_factor* made = nullptr;
  if (gpucholmod_factor_create(read_only<T>(R), 0, &options, &made, &status) != GPUCHOLMOD_OK) return;
  const Held factor(made);
  if (gpucholmod_factor_update(made, read_only<T>(X), weights.data(), 1, nullptr, nullptr, &status) == GPUCHOLMOD_OK)
    gpucholmod_factor_get(made, writable<T>(R), nullptr, &status);
}

bool is_gpu(const char* who, const octave_value& backend) {
  const std::string name = backend.is_string() ? backend.string_value() : "";
  if (name != "cpu" && name != "gpu") error("%s: BACKEND must be \"cpu\" or \"gpu\"", who);
  return name == "gpu";
}

template <class T>
octave_value_list update(const char* who, const octave_value_list& args, int nargout) {
  const MatrixOf<T> R = numbers<T>(args(0)), X = numbers<T>(args(1));
  const Weights weights = args.length() > 2 ? Weights(who, args(2), X.columns()) : Weights();
  const bool gpu = args.length() > 3 && is_gpu(who, args(3));
  MatrixOf<T> out = upper<T>(R, R.columns());
  gpucholmod_status status;
  if (gpu) update_on_gpu<T>(X, weights, out, status);
  else gpucholmod_update(writable<T>(out), read_only<T>(X), weights.data(), 1, nullptr, nullptr, &status);
  if (status.code == GPUCHOLMOD_OK) turn_rows<T>(R, out);
  return with_err(who, "gpucholmod:update", args(0), out, status, nargout);
}

template <class T>
octave_value_list insert_rows(const char* who, const octave_value_list& args, int nargout) {
  const MatrixOf<T> X = numbers<T>(args(2));
  const std::ptrdiff_t at = index(who, "J", args(1), args(0).columns() + 1);
  MatrixOf<T> out = upper<T>(numbers<T>(args(0)), X.rows());
  gpucholmod_status status;
  gpucholmod_insert(writable<T>(out), at, read_only<T>(X), nullptr, nullptr, &status);
  return with_err(who, "gpucholmod:insert", args(0), out, status, nargout);
}

template <class T>
octave_value_list delete_row(const char* who, const octave_value_list& args) {
  const MatrixOf<T> R = numbers<T>(args(0));
  const octave_idx_type n = R.columns();
  const std::ptrdiff_t gone = index(who, "J", args(1), n);
  MatrixOf<T> out = upper<T>(R, n);
  gpucholmod_status status;
  gpucholmod_delete(writable<T>(out), &gone, 1, nullptr, nullptr, &status);
  if (status.code == GPUCHOLMOD_OK) return ovl(MatrixOf<T>(out.extract_n(0, 0, n - 1, n - 1)));
  if (status.code != GPUCHOLMOD_BAD_DIAGONAL) fail(who, "gpucholmod:delete", status);
  std::vector<octave_idx_type> kept(n - 1);
  for (octave_idx_type j = 0; j < n - 1; ++j) kept[j] = j < gone ? j : j + 1;
  return ovl(reordered<T>(upper<T>(R, n), kept));
}

octave_value shift_row(const char* who, const octave_value_list& args) {
  const Matrix R = numbers<double>(args(0));
  const octave_idx_type n = R.columns();
  const std::ptrdiff_t from = index(who, "I", args(1), n), to = index(who, "J", args(2), n);
  Matrix out = upper<double>(R, n);
  gpucholmod_status status;
  gpucholmod_shift(writable<double>(out), from, to, nullptr, nullptr, &status);
  if (status.code == GPUCHOLMOD_OK) return out;
  if (status.code != GPUCHOLMOD_BAD_DIAGONAL) fail(who, "gpucholmod:shift", status);
  std::vector<octave_idx_type> moved;
  for (octave_idx_type j = 0; j < n; ++j)
    if (j != from) moved.push_back(j);
  moved.insert(moved.begin() + to, from);
  return reordered<double>(upper<double>(R, n), moved);
}

bool is_single(const octave_value& R, const octave_value& X) { return R.is_single_type() || X.is_single_type(); }

}  // namespace
}  // namespace gpucholmod_octave

using namespace gpucholmod_octave;

DEFUN_DLD(cholupdate_gpu, args, nargout, R"(R1 = cholupdate_gpu (R, X)
[R1, err] = cholupdate_gpu (R, X, op)
[R1, err] = cholupdate_gpu (R, X, op, backend)

The Cholesky factor of R'*R + X*X', X n x k, any k: what cholupdate does for k = 1, by one pass over R for all columns.

op: "+" or "update"; "-" or "downdate", for R'*R - X*X'; or a vector of k weights, for R'*R + X*diag (op)*X'.
R is upper triangular; what is below its diagonal is not read. R and X are real, double or single; integers become
doubles, and logical values are an error, as for cholupdate. A row whose diagonal entry is negative stays so, as by
cholupdate. An R with zeros on its diagonal is updated too.

err: 0; 1, a downdate would leave the matrix not positive definite; 2, a downdate of a singular R. Without err, these
are errors. If err is not 0, R1 is R.

backend: "cpu", or "gpu", if the library was built for one. A factor that stays on a GPU: cholfactor_gpu.
)") {
  const char* const who = "cholupdate_gpu";
  if (args.length() < 2 || args.length() > 4) print_usage();
  require_factor(who, args(0));
  require_numbers(who, "X", args(1));
  if (args(1).rows() != args(0).rows()) error("%s: dimension mismatch between R and X", who);
  return with_class(is_single(args(0), args(1)), [&](auto t) { return update<decltype(t)>(who, args, nargout); });
}

DEFUN_DLD(cholinsert_gpu, args, nargout, R"(R1 = cholinsert_gpu (R, j, X)
[R1, err] = cholinsert_gpu (R, j, X)

The Cholesky factor of a matrix with p rows and columns more, R being that of the matrix without: what cholinsert does
for p = 1. X (n + p x p) are its columns j .. j + p - 1. The diagonal of R1 is positive.

err: 0; 1, the matrix is not positive definite; 2, R is singular. Without err, these are errors. If err is not 0, R1 is
R.
)") {
  const char* const who = "cholinsert_gpu";
  if (args.length() != 3) print_usage();
  require_factor(who, args(0));
  require_numbers(who, "X", args(2));
  if (args(2).rows() != args(0).rows() + args(2).columns()) error("%s: dimension mismatch between R and X", who);
  return with_class(is_single(args(0), args(2)), [&](auto t) { return insert_rows<decltype(t)>(who, args, nargout); });
}

DEFUN_DLD(choldelete_gpu, args, , R"(R1 = choldelete_gpu (R, j)

The Cholesky factor of R'*R without row and column j, as choldelete. The diagonal of R1 is not negative. A singular R is
decomposed anew, as by qr, which takes longer.
)") {
  const char* const who = "choldelete_gpu";
  if (args.length() != 2) print_usage();
  require_factor(who, args(0));
  return with_class(args(0).is_single_type(), [&](auto t) { return delete_row<decltype(t)>(who, args); });
}

DEFUN_DLD(cholshift_gpu, args, , R"(R1 = cholshift_gpu (R, i, j)

The Cholesky factor of A(p, p), A = R'*R, as cholshift: row and column i of A become number j, and the ones between move
by one place. p = [1:i-1, i+1:j, i, j+1:n] if i < j, and [1:j-1, i, j:i-1, i+1:n] otherwise.

R1 is double, also if R is single, as that of cholshift. Its diagonal is not negative. A singular R is decomposed anew,
as by qr, which takes longer.
)") {
  const char* const who = "cholshift_gpu";
  if (args.length() != 3) print_usage();
  require_factor(who, args(0));
  return ovl(shift_row(who, args));
}
