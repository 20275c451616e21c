#include <Rcpp.h>

#include <chrono>
#include <cstring>

#include "mpi/backend.h"
#include "mpi_cuda/backend.h"
#include "rcpp_guard.h"
#include "rcpp_handle.h"
#include "rcpp_memory.h"

using namespace gpucholmod;

namespace {

/// Heeds Ctrl-C and time limits, 20 times a second.
void watch() {
  using Clock = std::chrono::steady_clock;
  static Clock::time_point next;
  if (Clock::now() < next) return;
  next = Clock::now() + std::chrono::milliseconds(50);
  heed_user();
}

/// Returns the bytes of a raw vector or of a matrix of doubles.
std::string_view bytes_of(SEXP x) {
  const std::size_t length = std::size_t(Rf_xlength(x));
  if (TYPEOF(x) == RAWSXP) return {reinterpret_cast<const char*>(RAW(x)), length};
  return {reinterpret_cast<const char*>(REAL(x)), sizeof(double) * length};
}

}  // namespace

// Begins MPI, at the first call. limit: seconds to wait for a process that sends nothing. Returns c(rank, size, threads
// of use, number of this process on its machine).
// [[Rcpp::export(rng = false)]]
Rcpp::IntegerVector rcpp_processes_start(double limit) {
  return guarded([&] {
    const mpi::Place place = mpi::start(watch, limit);
    return Rcpp::IntegerVector::create(place.rank, place.size, place.threads, place.local_rank);
  });
}

// Begins a call of the user's.
// [[Rcpp::export(rng = false)]]
void rcpp_processes_begin() {
  guarded([] { mpi::begin_call(); });
}

// Leaves the call of the user's: see mpi/backend.h. condition: "" if this process was interrupted.
// [[Rcpp::export(rng = false)]]
void rcpp_processes_refuse(std::string condition) {
  guarded([&] { mpi::refuse(condition); });
}

// Returns x of process 0. key: a raw vector, the same in all processes. x: NULL in a process that has none; other
// processes give the same x as process 0: a double matrix of n rows, or, if n is negative, a raw vector.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_processes_agree(SEXP key, std::string name, SEXP x, int n) {
  return guarded([&]() -> SEXP {
    const bool raw = n < 0;
    if (x != R_NilValue) {
      mpi::agree(bytes_of(key), name, bytes_of(x));
      return x;
    }
    const mpi::Bytes data = mpi::agree(bytes_of(key), name, std::nullopt);
    const index_t columns = n > 0 ? index_t(data.size() / sizeof(double)) / n : 0;
    const Rcpp::Shield<SEXP> made(raw ? new_vector(RAWSXP, index_t(data.size())) : new_matrix(REALSXP, n, columns));
    if (!data.empty()) std::memcpy(raw ? static_cast<void*>(RAW(made)) : REAL(made), data.data(), data.size());
    return made;
  });
}

// Deals a factor out over the processes. R: an n x n double matrix in process 0, NULL in the other processes; or path:
// the name of a file, in all processes. gpu: for a factor on GPUs, c(the number of this process on its machine, whether
// process 0 may hold the factor on the GPUs of all); empty: for a factor in ordinary memory. Returns what new_factor()
// takes.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_processes_hold(SEXP R, std::string path, int n, int uplo, int precision, std::vector<int> gpu) {
  using Rcpp::_;
  return guarded([&] {
    const mpi::MakePanels make = gpu.empty() ? mpi::MakePanels() : mpi_cuda::panels_on_gpus(gpu[0], gpu[1] != 0);
    std::unique_ptr<mpi::SharedFactor> made = path.empty() ? mpi::deal_out(R == R_NilValue ? nullptr : REAL(R), n,
                                                                           Uplo(uplo), Precision(precision), of_r, make)
                                                           : mpi::read_out(path, n, Precision(precision), of_r, make);
    Rcpp::List handle = Rcpp::List::create(_["pointer"] = R_NilValue, _["n"] = n, _["precision"] = precision,
                                           _["device"] = made->on_gpu() ? made->device() : NA_INTEGER,
                                           _["device_name"] = made->device_name(), _["bytes"] = made->bytes(),
                                           _["capacity"] = n, _["processes"] = made->processes(),
                                           _["led"] = made->is_led());
    handle["pointer"] = handed_over<HeldFactor>(std::move(made));
    return handle;
  });
}

// Returns the factor, or the inverse of A, in process 0, and NULL in the other processes. here: true in process 0.
// [[Rcpp::export(rng = false)]]
SEXP rcpp_processes_download(SEXP handle, int uplo, SEXP dimnames, bool here, bool inverse) {
  return guarded([&]() -> SEXP {
    const Use<HeldFactor> R(handle);
    const Rcpp::Shield<SEXP> out(here ? new_matrix(REALSXP, R->order(), R->order(), dimnames) : R_NilValue);
    double* const numbers = here ? REAL(out) : nullptr;
    if (inverse) R->inverse(numbers);
    else R->download(Uplo(uplo), numbers);
    return out;
  });
}

// Writes the factor to a file: process 0 writes the file.
// [[Rcpp::export(rng = false)]]
void rcpp_processes_write(SEXP handle, std::string path, bool replace) {
  guarded([&] { mpi::write(*Use<HeldFactor>(handle), path, replace); });
}

// [[Rcpp::export(rng = false)]]
void rcpp_processes_leave() { mpi::leave(); }

// Returns whether there is MPI, and what configure decided.
// [[Rcpp::export(rng = false)]]
Rcpp::List rcpp_processes_built() {
  return Rcpp::List::create(Rcpp::_["built"] = mpi::built(), Rcpp::_["configured"] = mpi::configured());
}
