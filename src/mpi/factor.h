#pragma once

#include <memory>
#include <string>

#include "base/held_factor.h"
#include "base/storage.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// A factor whose columns lie in several processes, in ordinary memory or on the GPU of each. Every function that is
/// not told otherwise is an operation of the team: all processes call it, with the same arguments, and get the same
/// result, or the same error. In place, rows and columns come, go and move by way of a second factor: nothing is half
/// done after an error. On GPUs, what does not modify goes by way of ordinary memory, a panel at a time; reshapes and
/// the inverse by way of a whole second factor there.
class SharedFactor : public HeldFactor {
 public:
  // Told by each process for itself: order(), precision(), capacity(), bytes() of its own columns, and
  int processes() const override = 0;

  virtual int device() const = 0;               ///< -1: in ordinary memory
  virtual std::string device_name() const = 0;
  /// As of HeldFactor, in process 0; out is not looked at in others.
  void download(Uplo uplo, double* out) const override = 0;
  void inverse(double* out) const override = 0;
  /// R, column by column, to the sink of process 0.
  virtual void write(Sink<double>* sink) const = 0;
};

/// Deals R (n x n, upper, or lower when uplo says so; whole in process 0, not looked at elsewhere) out, to GPUs where
/// `make` is given. Throws as cpu::hold(), and bad_argument where GPUs are not of one kind.
std::unique_ptr<SharedFactor> deal_out(Team& team, const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// Each process reads its columns of the file, which is known to have order n. Throws also bad_file.
std::unique_ptr<SharedFactor> read_out(Team& team, const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// `data` of process 0 to all that have not `given` any; those that have are to have the same bytes, where that is
/// asked for. `key` is what is asked of a process, and has to be the same in all. Throws bad_argument with the field
/// `argument`, "processes" or `name`.
void agree(Team& team, const Bytes& key, const std::string& name, bool given, bool compared, Bytes& data);

}  // namespace gpucholmod::mpi
