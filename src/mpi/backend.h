#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "mpi/factor.h"

/// The interface of the glue to the processes that MPI has started. src/mpi/ implements the functions; src/mpi_absent/
/// has the same symbols for a build without MPI.
namespace gpucholmod::mpi {

bool built();
/// Returns what configure decided about MPI, and why.
std::string configured();

/// Describes the place of this process among all processes.
struct Place {
  int rank = 0, size = 1;
  int threads = 1;     ///< threads of use to this process: its share of its machine's cores
  int local_rank = 0;  ///< number of this process among those of its machine
};

/// Begins MPI, unless MPI has begun, in the first call of start(), which all processes have to make. From then on, long
/// operations call `watch`, and a process that sends nothing is waited for `limit` seconds. Throws backend_unavailable,
/// with the fields `backend`, "mpi", and `reason`: "not_built", "forked", "ended" or "failed"; process_failed.
Place start(const std::function<void()>& watch, double limit);

/// Begins a call of the user's, of one or several operations. Throws as start(), and process_failed with reason "busy".
void begin_call();
/// Leaves the call because of the R error `condition` or, if `condition` is empty, an interrupt. The other processes
/// fail with the same error, unless they have ended the call. Throws process_failed for the first process that has left
/// the call, with the reason "stopped" if that process was interrupted, otherwise "refused" and the field `condition`.
/// Does nothing if all processes know of the failure already.
void refuse(const std::string& condition);

// See mpi/factor.h.
Bytes agree(std::string_view key, const std::string& name, std::optional<std::string_view> given);
std::unique_ptr<SharedFactor> deal_out(const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make);
std::unique_ptr<SharedFactor> read_out(const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make);
/// Writes the factor to a file: process 0 gathers the columns and writes the file.
void write(const HeldFactor& factor, const std::string& path, bool replace);

/// Waits, when R ends, until all processes end, and ends MPI if this package has begun MPI.
void leave();

}  // namespace gpucholmod::mpi
