#include <Rcpp.h>

#include <algorithm>

#include "base/file.h"
#include "base/huge_pages.h"
#include "rcpp_guard.h"
#include "rcpp_memory.h"
#include "rcpp_request.h"

using namespace gpucholmod;

namespace {

constexpr index_t columns_between_polls = 64;

void poll_at(index_t j) {
  if (j % columns_between_polls == 0) heed_user();
}

}  // namespace

// Returns the order n of the factor in a file.
// [[Rcpp::export(rng = false)]]
double rcpp_factor_file_order(std::string path) {
  return guarded([&] { return double(FactorFile(path).order()); });
}

// Returns a text that identifies a file and its contents, as far as they show from outside, to compare with a later
// text.
// [[Rcpp::export(rng = false)]]
std::string rcpp_factor_file_state(std::string path) {
  return guarded([&] {
    const FactorFile file(path);
    const FileState& s = file.state();
    std::string text;
    for (const std::int64_t part : {std::int64_t(s.device), std::int64_t(s.inode), s.size, s.seconds, s.nanoseconds})
      text += std::to_string(part) + " ";
    return text;
  });
}

// Writes the upper triangle of R, an n x n double matrix, to a file, whatever the triangle holds.
// [[Rcpp::export(rng = false)]]
void rcpp_write_factor_file(Rcpp::NumericMatrix R, std::string path, bool replace) {
  guarded([&] {
    const index_t n = R.nrow();
    const double* data = R.begin();
    OutputFile out(path, n, replace);
    for (index_t j = 0; j < n; ++j) {
      poll_at(j);
      out.put(j, 0, j + 1, data + j * n);
    }
    out.commit();
  });
}

// Returns columns [first, last) of the factor in a file, down to row `last`, with zeros below the diagonal.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_read_factor_file(std::string path, int first, int last) {
  return guarded([&]() -> SEXP {
    const FactorFile file(path);
    const index_t rows = last;
    if (first < 0 || first > last || rows > file.order())
      throw Error(ErrorCode::bad_file, "'" + path + "' has become smaller", {{"path", path}, {"reason", "changed"}});
    const Rcpp::Shield<SEXP> R(new_matrix(REALSXP, last, last - first));
    double* data = REAL(R);
    prefer_huge_pages(data, sizeof(double) * std::size_t(rows * (rows - first)));
    for (index_t j = first; j < rows; ++j, data += rows) {
      poll_at(j);
      file.column(j, 0, j + 1, data);
      std::fill(data + j + 1, data + rows, 0.0);
    }
    file.require_unchanged();
    return R;
  });
}

// Returns the diagonal of the factor in a file.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_factor_file_diagonal(std::string path) {
  return guarded([&]() -> SEXP {
    const FactorFile file(path);
    const Rcpp::Shield<SEXP> diagonal(new_vector(REALSXP, file.order()));
    for (index_t j = 0; j < file.order(); ++j) {
      poll_at(j);
      file.column(j, j, j + 1, REAL(diagonal) + j);
    }
    file.require_unchanged();
    return diagonal;
  });
}

// Modifies a factor in a file. V: n x k doubles. Returns what Result says. If the call fails, it writes no file.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_cholupdate_file(std::string input, SEXP V, std::string output, bool replace, SEXP request) {
  return guarded([&]() -> SEXP {
    const FactorFile R(input);
    const index_t n = R.order(), k = Rf_isMatrix(V) ? Rf_ncols(V) : 1;
    if (k > 0) R.require_order(Rf_xlength(V) / k);
    const Request what = to_request(request, n, k);
    const Result result(request, what, n);
    OutputFile out(output, n, replace, &R);
    index_t pivot = -1;
    R.read([&] { pivot = carry_out(Place<double>::file(R, out), REAL(V), what); });
    if (pivot >= 0) return result.failed(pivot);
    out.commit();
    return result.done();
  });
}
