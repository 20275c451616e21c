#define GPUCHOLMOD_FROM_R
#include <gpucholmod.hpp>

#include <cmath>
#include <cstddef>
#include <random>
#include <string>
#include <thread>
#include <vector>

#define R_NO_REMAP
#include <Rinternals.h>

GPUCHOLMOD_DEFINE

namespace {

/// -log density of a normal distribution with precision B'B, but for a constant.
double energy(const double* B, int d, const std::vector<double>& x) {
  double sum = 0;
  for (int i = 0; i < d; ++i) {
    double row = 0;
    for (int j = 0; j < d; ++j) row += B[i + j * d] * x[j];
    sum += row * row;
  }
  return sum / 2;
}

/// What a chain leaves.
struct Chain {
  double accepted = 0;          ///< share of the second half of the steps
  std::vector<double> S;        ///< lower factor
  std::string failure;
};

/// No function of R's is called, so that a thread may run it.
void run(const double* B, int d, int steps, double target, unsigned seed, Chain& chain) {
  std::mt19937_64 bits(seed);
  std::normal_distribution<> normal;
  std::uniform_real_distribution<> uniform;
  std::vector<double>& S = chain.S;
  S.assign(std::size_t(d) * d, 0);
  for (int j = 0; j < d; ++j) S[j + j * d] = 1;
  std::vector<double> x(d), proposal(d), u(d), change(d);
  std::vector<char> workspace(gpucholmod_workspace(d, 1, GPUCHOLMOD_DOUBLE));
  gpucholmod_options options = GPUCHOLMOD_OPTIONS_INIT;
  options.triangle = GPUCHOLMOD_LOWER;
  options.workspace = workspace.data();
  options.workspace_size = workspace.size();
  double here = energy(B, d, x);
  int accepted = 0;
  for (int step = 1; step <= steps; ++step) {
    double norm = 0;
    for (double& v : u) {
      v = normal(bits);
      norm += v * v;
    }
    for (int i = 0; i < d; ++i) {
      change[i] = 0;
      for (int j = 0; j <= i; ++j) change[i] += S[i + j * d] * u[j];
      proposal[i] = x[i] + change[i];
    }
    const double there = energy(B, d, proposal), chance = std::min(1.0, std::exp(here - there));
    if (uniform(bits) < chance) {
      x.swap(proposal);
      here = there;
      accepted += step > steps / 2;
    }
    // S S' <- S (I + eta (chance - target) u u' / |u|^2) S'
    const double weight = std::min(1.0, d * std::pow(step, -2.0 / 3)) * (chance - target) / norm;
    gpucholmod_status status;
    if (gpucholmod_update(gpucholmod_double_matrix(S.data(), d, d, d),
                          gpucholmod_const_double_matrix(change.data(), d, 1, d),
                          &weight, 1, nullptr, &options, &status) != GPUCHOLMOD_OK) {
      chain.failure = status.message;
      return;
    }
  }
  chain.accepted = accepted / double(steps - steps / 2);
}

SEXP ram(SEXP B, SEXP steps, SEXP target, SEXP seeds) {
  const int d = Rf_ncols(B), chains = Rf_length(seeds);
  std::string failure;
  SEXP result = PROTECT(Rf_allocVector(VECSXP, 2)), accepted = Rf_allocVector(REALSXP, chains);
  SET_VECTOR_ELT(result, 0, accepted);
  SEXP S = Rf_allocVector(REALSXP, R_xlen_t(d) * d * chains);
  SET_VECTOR_ELT(result, 1, S);
  {
    std::vector<Chain> all(chains);
    const double* const numbers = REAL(B);
    const int count = Rf_asInteger(steps);
    const double share = Rf_asReal(target);
    if (chains == 1) {
      run(numbers, d, count, share, INTEGER(seeds)[0], all[0]);
    } else {
      std::vector<std::thread> threads;
      const int* const seed = INTEGER(seeds);
      for (int c = 0; c < chains; ++c)
        threads.emplace_back([&, c] { run(numbers, d, count, share, unsigned(seed[c]), all[c]); });
      for (std::thread& thread : threads) thread.join();
    }
    for (int c = 0; c < chains; ++c) {
      if (!all[c].failure.empty()) failure = all[c].failure;
      REAL(accepted)[c] = all[c].accepted;
      std::copy(all[c].S.begin(), all[c].S.end(), REAL(S) + std::size_t(c) * d * d);
    }
  }
  static char message[256];
  snprintf(message, sizeof message, "%s", failure.c_str());
  if (message[0]) Rf_error("%s", message);
  UNPROTECT(1);
  return result;
}

/// By the C++ header. R's error comes after every destructor.
SEXP update(SEXP R, SEXP V, SEXP weights, SEXP lower) {
  using namespace gpucholmod;
  const int n = Rf_ncols(R);
  SEXP made = PROTECT(Rf_duplicate(R));
  static char message[256];
  message[0] = 0;
  try {
    FactorView<double> factor(View<double>(REAL(made), n, n), Rf_asLogical(lower) ? Triangle::lower : Triangle::upper);
    const View<const double> columns(REAL(V), Rf_nrows(V), Rf_ncols(V));
    if (Rf_isNull(weights)) factor.update(columns);
    else factor.modify(columns, View<const double>(REAL(weights), Rf_length(weights), 1));
  } catch (const std::exception& failure) {
    snprintf(message, sizeof message, "%s", failure.what());
  }
  if (message[0]) Rf_error("%s", message);
  UNPROTECT(1);
  return made;
}

SEXP refused(SEXP R, SEXP V, SEXP weights) {
  const int n = Rf_ncols(R);
  SEXP copy = PROTECT(Rf_duplicate(R));
  gpucholmod_status status;
  gpucholmod_update(gpucholmod_double_matrix(REAL(copy), n, n, n),
                    gpucholmod_const_double_matrix(REAL(V), n, Rf_ncols(V), n),
                    REAL(weights), 1, nullptr, nullptr, &status);
  SEXP told = PROTECT(Rf_allocVector(VECSXP, 4));
  SET_VECTOR_ELT(told, 0, Rf_ScalarInteger(status.code));
  SET_VECTOR_ELT(told, 1, Rf_ScalarInteger(int(status.pivot)));
  SET_VECTOR_ELT(told, 2, Rf_mkString(status.message));
  SET_VECTOR_ELT(told, 3, copy);
  UNPROTECT(2);
  return told;
}

/// The functions of the table that are there.
SEXP names() {
  std::vector<const char*> all;
#define NAME_OF(name) \
  if (gpucholmod_table->name##_) all.push_back("gpucholmod_" #name);
  GPUCHOLMOD_FUNCTIONS(NAME_OF)
#undef NAME_OF
  SEXP names = PROTECT(Rf_allocVector(STRSXP, R_xlen_t(all.size())));
  for (std::size_t i = 0; i < all.size(); ++i) SET_STRING_ELT(names, R_xlen_t(i), Rf_mkChar(all[i]));
  UNPROTECT(1);
  return names;
}

/// What gpucholmod_load() does where the installed version is another, or has fewer functions.
SEXP load_other(SEXP version, SEXP bytes) {
  gpucholmod_api other = *gpucholmod_table;
  other.version += Rf_asInteger(version);
  other.size += std::size_t(Rf_asInteger(bytes));
  gpucholmod_use(&other);
  gpucholmod_load();
  return R_NilValue;
}

const R_CallMethodDef calls[] = {{"C_ram", reinterpret_cast<DL_FUNC>(ram), 4},
                                 {"C_update", reinterpret_cast<DL_FUNC>(update), 4},
                                 {"C_refused", reinterpret_cast<DL_FUNC>(refused), 3},
                                 {"C_names", reinterpret_cast<DL_FUNC>(names), 0},
                                 {"C_load_other", reinterpret_cast<DL_FUNC>(load_other), 2},
                                 {nullptr, nullptr, 0}};

}  // namespace

extern "C" void R_init_gpucholmodclient(DllInfo* dll) {
  R_registerRoutines(dll, nullptr, calls, nullptr, nullptr);
  R_useDynamicSymbols(dll, FALSE);
  gpucholmod_load();
}
