#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "mpi/factor.h"

/// What the glue expects of the processes that MPI has started. src/mpi/ implements it; src/mpi_absent/ has the same
/// symbols for a build without MPI.
namespace gpucholmod::mpi {

bool built();
/// What configure decided, and why.
std::string configured();

/// This process among all of them.
struct Place {
  int rank = 0, size = 1;
  int threads = 1;     ///< of use to it: its share of the cores of its machine
  int local_rank = 0;  ///< its number among those of its machine
};

/// Begins MPI where nobody has, at the first call, which all processes make. From then on `watch` is called in long
/// operations, and a process that says nothing is waited for `limit` seconds. Throws backend_unavailable, with the
/// fields `backend`, "mpi", and `reason`: "not_built", "forked", "ended" or "failed"; process_failed.
Place start(const std::function<void()>& watch, double limit);

/// Begins a call of the user's, of one operation or several. Throws as start(), and process_failed with reason "busy".
void begin_call();
/// Leaves that call, because of `condition`, an error of R's, or, where that is empty, of an interrupt. The others fail
/// with it, unless they have ended the call. Throws process_failed for the first process that has left the call, with
/// the reason "stopped" where it was interrupted, otherwise "refused" and the field `condition`. Does nothing where
/// all processes know of the failure already.
void refuse(const std::string& condition);

// See mpi/factor.h.
void agree(const Bytes& key, const std::string& name, bool given, bool compared, Bytes& data);
std::unique_ptr<SharedFactor> deal_out(const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make);
std::unique_ptr<SharedFactor> read_out(const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make);
/// To a file, by process 0.
void write(const HeldFactor& factor, const std::string& path, bool replace);

/// When R ends: waits until all processes do, and ends MPI where it was begun here.
void leave();

}  // namespace gpucholmod::mpi
