#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/held_factor.h"
#include "base/storage.h"
#include "mpi/columns.h"
#include "mpi/team.h"

namespace gpucholmod::mpi {

/// A factor of several processes. Its columns are dealt out over the processes, in ordinary memory or on the GPU of
/// each process, or process 0 holds it on the GPUs of all processes (mpi/led_factor.h). Every function whose comment
/// does not say otherwise is an operation of the team: all processes call the function with the same arguments, and get
/// the same result or the same error. If the columns are dealt out, rows and columns that are inserted, deleted or
/// moved in place are changed in a second factor, so an error leaves nothing half done; on GPUs, functions other than
/// copy() and modify() then fetch one panel at a time to ordinary memory, reshapes and the inverse the whole factor.
class SharedFactor : public HeldFactor {
 public:
  // No operations, as each process answers for itself: order(), precision(), capacity(), bytes() (of its own columns),
  int processes() const override = 0;

  virtual bool is_led() const { return false; }  ///< True if process 0 holds the factor on the GPUs of all
  virtual int device() const = 0;                ///< number of the GPU, or -1 in ordinary memory
  virtual std::string device_name() const = 0;
  /// Writes as in HeldFactor, to `out` of process 0; other processes ignore `out`, here and in inverse().
  void download(Uplo uplo, double* out) const override = 0;
  void inverse(double* out) const override = 0;
  /// Writes R, column by column, to the sink of process 0.
  virtual void write(Sink<double>* sink) const = 0;

  void multiply(TriangularProduct, double*, index_t) const override {
    throw Error(ErrorCode::not_supported, "a product with a factor over several processes is not supported",
                {{"operation", "multiply"}, {"backend", "mpi"}});
  }
  void set_diagonal(const std::vector<index_t>&, double) override {
    throw Error(ErrorCode::not_supported, "a factor over several processes has no zeros on its diagonal",
                {{"operation", "set_diagonal"}});
  }
};

/// Deals out R (n x n, upper, or lower when uplo says so; whole in process 0, ignored elsewhere), to GPUs if `make` is
/// given. Where make.leader can, process 0 holds R on the GPUs of all processes instead. Throws as cpu::hold(), and
/// bad_argument if the GPUs differ in compute capability.
std::unique_ptr<SharedFactor> deal_out(Team& team, const double* R, index_t n, Uplo uplo, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// Reads a file, which is known to have order n: each process reads its own columns, or process 0 reads all that it
/// holds. Throws also bad_file.
std::unique_ptr<SharedFactor> read_out(Team& team, const std::string& path, index_t n, Precision precision,
                                       const cpu::Allocate& allocate, const MakePanels& make = {});

/// Sends the data `given` in process 0 to all processes that have not been given any, and returns them there; returns
/// nothing in the others. Processes that have data must have the same bytes. `key` describes the call, and must be the
/// same in all processes. Throws bad_argument with the field `argument`, "processes" or `name`.
Bytes agree(Team& team, std::string_view key, const std::string& name, std::optional<std::string_view> given);

}  // namespace gpucholmod::mpi
