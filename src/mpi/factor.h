#pragma once

#include <memory>
#include <string>

#include "base/held_factor.h"
#include "base/storage.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// A factor whose columns are dealt out over several processes, in ordinary memory or on the GPU of each process. Every
/// function whose comment does not say otherwise is an operation of the team: all processes call the function with the
/// same arguments, and get the same result or the same error. Rows and columns that are inserted, deleted or moved in
/// place are changed in a second factor, so an error leaves nothing half done. On GPUs, functions other than copy()
/// and modify() fetch one panel at a time to ordinary memory; reshapes and the inverse fetch the whole factor.
class SharedFactor : public HeldFactor {
 public:
  // No operations, as each process answers for itself: order(), precision(), capacity(), bytes() (of its own columns),
  int processes() const override = 0;

  virtual int device() const = 0;               ///< number of the GPU, or -1 in ordinary memory
  virtual std::string device_name() const = 0;
  /// Writes as in HeldFactor, to `out` of process 0; other processes ignore `out`, here and in inverse().
  void download(Uplo uplo, double* out) const override = 0;
  void inverse(double* out) const override = 0;
  /// Writes R, column by column, to the sink of process 0.
  virtual void write(Sink<double>* sink) const = 0;
};

/// Deals out R (n x n, upper, or lower when uplo says so; whole in process 0, ignored elsewhere), to GPUs if `make` is
/// given. Throws as cpu::hold(), and bad_argument if the GPUs differ in compute capability.
std::unique_ptr<SharedFactor> deal_out(Team& team, const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// Reads a file, which is known to have order n: each process reads its own columns. Throws also bad_file.
std::unique_ptr<SharedFactor> read_out(Team& team, const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// Sends `data` of process 0 to all processes that have not `given` any. Processes that have given data must have given
/// the same bytes, if `compared` is true. `key` describes the call, and must be the same in all processes. Throws
/// bad_argument with the field `argument`, "processes" or `name`.
void agree(Team& team, const Bytes& key, const std::string& name, bool given, bool compared, Bytes& data);

}  // namespace gpucholmod::mpi
