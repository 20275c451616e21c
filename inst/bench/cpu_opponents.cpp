// The programs with which inst/bench/cpu.R compares the CPU's methods; Rcpp::sourceCpp() compiles them there for the
// very machine (-O3 -march=native). Each function works on copies of its own, and returns the seconds of each
// repetition; modifications also return the result of the last repetition.
//
// [[Rcpp::depends(RcppEigen)]]
#include <RcppEigen.h>

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>

extern "C" {
void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*, const int*,
            const double*, const int*, const double*, double*, const int*, std::size_t, std::size_t);
#ifdef HAVE_QRUPDATE
void dch1up_(const int* n, double* R, const int* ldr, double* u, double* w);
void dch1dn_(const int* n, double* R, const int* ldr, double* u, double* w, int* info);
#endif
}

namespace {

template <class Prepare, class F>
Rcpp::NumericVector timed(int repeats, Prepare&& prepare, F&& f) {
  Rcpp::NumericVector seconds(repeats);
  for (double& s : seconds) {
    prepare();
    const auto start = std::chrono::steady_clock::now();
    f();
    s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  }
  return seconds;
}

/// A matrix of n x n doubles in huge pages.
class Square {
 public:
  explicit Square(int n) : n_(n), bytes_((sizeof(double) * n * n + huge - 1) / huge * huge) {
    data_ = static_cast<double*>(aligned_alloc(huge, bytes_));
    if (!data_) Rcpp::stop("out of memory");
    madvise(data_, bytes_, MADV_HUGEPAGE);
  }
  ~Square() { std::free(data_); }
  Square(const Square&) = delete;
  Square& operator=(const Square&) = delete;

  double* data() { return data_; }
  void operator=(const double* from) { std::copy(from, from + std::size_t(n_) * n_, data_); }
  Rcpp::NumericMatrix copy() const { return Rcpp::NumericMatrix(n_, n_, data_); }

 private:
  static constexpr std::size_t huge = std::size_t(2) << 20;
  int n_;
  std::size_t bytes_;
  double* data_;
};

}  // namespace

// Eigen's LLT::rankUpdate on a lower factor, once for each column of V.
// [[Rcpp::export]]
Rcpp::List by_eigen(const Eigen::Map<Eigen::MatrixXd> R, const Eigen::Map<Eigen::MatrixXd> V, double sigma,
                    int repeats) {
  const Eigen::MatrixXd L = R.transpose();
  Square memory(int(L.rows()));
  Eigen::Map<Eigen::MatrixXd> work(memory.data(), L.rows(), L.cols());
  const Rcpp::NumericVector seconds = timed(repeats, [&] { work = L; }, [&] {
    for (int q = 0; q < V.cols(); ++q)
      Eigen::internal::llt_inplace<double, Eigen::Lower>::rankUpdate(work, Eigen::VectorXd(V.col(q)), sigma);
  });
  return Rcpp::List::create(
      Rcpp::_["seconds"] = seconds,
      Rcpp::_["R"] = Eigen::MatrixXd(work.triangularView<Eigen::Lower>().toDenseMatrix().transpose()));
}

// qrupdate's dch1up and dch1dn, once for each column of V. Returns NULL if the library is missing.
// [[Rcpp::export]]
SEXP by_qrupdate(Rcpp::NumericMatrix R, Rcpp::NumericMatrix V, double sigma, int repeats) {
#ifdef HAVE_QRUPDATE
  const int n = R.nrow();
  Square work(n);
  Rcpp::NumericMatrix columns(n, V.ncol());
  std::vector<double> rotations(n);
  const Rcpp::NumericVector seconds = timed(
      repeats,
      [&] {
        work = R.begin();
        std::copy(V.begin(), V.end(), columns.begin());
      },
      [&] {
        int info = 0;
        for (int q = 0; q < V.ncol(); ++q)
          if (sigma > 0) dch1up_(&n, work.data(), &n, &columns(0, q), rotations.data());
          else dch1dn_(&n, work.data(), &n, &columns(0, q), rotations.data(), &info);
        if (info != 0) Rcpp::stop("dch1dn: info %d", info);
      });
  return Rcpp::List::create(Rcpp::_["seconds"] = seconds, Rcpp::_["R"] = work.copy());
#else
  return R_NilValue;
#endif
}

// Multiplies A by itself: 2 n^3 flops.
// [[Rcpp::export]]
Rcpp::NumericVector dgemm_seconds(Rcpp::NumericMatrix A, int repeats) {
  const int n = A.nrow();
  const double one = 1, zero = 0;
  std::vector<double> C(std::size_t(n) * n);
  return timed(repeats, [] {}, [&] {
    dgemm_("N", "N", &n, &n, &n, &one, A.begin(), &n, A.begin(), &n, &zero, C.data(), &n, 1, 1);
  });
}

// Reads and writes every entry of the triangle once, in place.
// [[Rcpp::export]]
Rcpp::NumericVector triangle_seconds(Rcpp::NumericMatrix R, int repeats) {
  const int n = R.nrow();
  Square work(n);
  work = R.begin();
  double factor = 1;
  return timed(repeats, [&] { factor = factor > 1 ? 1 / 1.0000001 : 1.0000001; }, [&] {
    for (int j = 0; j < n; ++j) Eigen::Map<Eigen::ArrayXd>(work.data() + std::size_t(j) * n, j + 1) *= factor;
  });
}
