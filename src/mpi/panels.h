#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/task.h"
#include "mpi/leader.h"
#include "mpi/layout.h"
#include "mpi/transport.h"

/// The interface of a factor over several processes to the GPU of each process. src/mpi_cuda/panels.cu implements it;
/// in tests the CPU does.
namespace gpucholmod::mpi {

/// Describes how a modification runs on a GPU. A modification runs in the same way on all GPUs.
struct PanelWay {
  Launch launch = Launch::persistent;
  int columns = 32;  ///< columns of V in a pass
};

/// Runs one modification of the panels of a process. PanelSweep decides what is done with which panel when. The work is
/// done in the order of the calls; the destructor waits until all work is done.
template <class T>
class PanelModification {
 public:
  virtual ~PanelModification() = default;

  /// Modifies the diagonal block of panel b of this process, above which all rows have been done, and makes the panel's
  /// message. Returns the failing pivot, counted from the panel's first row, or -1.
  virtual index_t modify(index_t b) = 0;
  /// Copies the rows of V that belong to panel b, as they are before modify(), to V: columns(b) x k.
  virtual void fetch_V(index_t b, double* V) = 0;
  /// Returns the message that modify() has made for other processes, with room for a trailer.
  virtual Bytes message(index_t b) = 0;
  /// Takes the message of panel b of another process, and keeps it until panel b + 2 is received or modified.
  virtual void receive(index_t b, Bytes&& message) = 0;
  /// Applies the message of panel b to the rows of panel b in this process's panels among [first, last), all behind b.
  virtual void follow(index_t b, index_t first, index_t last) = 0;
  /// Applies the message of panel b to the rows of panel b in the right-hand sides.
  virtual void carry(index_t b) = 0;
  /// Waits until all work is done, copies the right-hand sides to their place, and describes the work in `work`.
  virtual void finish(Work& work) = 0;
};

/// The panels of a process in the memory of its GPU: blocks of a layout, with their rows down to the diagonal.
template <class T>
class Panels {
 public:
  virtual ~Panels() = default;
  /// Allocates panels of the same layout on the same GPU, with undefined contents.
  virtual std::unique_ptr<Panels> another() const = 0;

  virtual double bytes() const = 0;
  virtual int device() const = 0;
  virtual std::string device_name() const = 0;
  virtual int compute_capability() const = 0;
  /// Returns the memory that should receive messages; null: ordinary memory.
  virtual MessageMemory* message_memory() const = 0;

  /// Copies R (last(b) x columns(b)), whose entries below the diagonal are ignored, to panel b.
  virtual void put(index_t b, MatrixView<const T> R) = 0;
  /// Copies panel b to R (last(b) x columns(b)).
  virtual void get(index_t b, MatrixView<T> R) const = 0;
  virtual void copy(const Panels& from) = 0;

  /// Returns the way for which this GPU has room. Throws backend_unavailable if the GPU cannot run the kernels
  /// that the task asks for.
  virtual PanelWay way(const Task& task) const = 0;
  /// Begins a modification into `out`, which may be these panels; null: a dry run of one pass. V: this process's rows
  /// of V, one panel behind the other; read in this call alone. `scale`: the number that multiplies the result.
  /// `right`: m is 0 except in the process that carries the right-hand sides. `tend` is called while the modification
  /// waits.
  virtual std::unique_ptr<PanelModification<T>> modification(Panels* out, MatrixView<const double> V, const Task& task,
                                                             double scale, PanelWay way, const RightHandSideView& right,
                                                             const std::function<void()>& tend) = 0;
};

/// Makes the panels of a process, for a layout and the rank of the process.
struct MakePanels {
  /// Finds the GPUs of all processes, for process 0 to hold the factor if it can (mpi/led_factor.h); may be empty.
  std::optional<Leader> leader;
  index_t (*width)(index_t n) = panel_width;
  std::function<std::unique_ptr<Panels<float>>(const Layout&, int)> of_floats;
  std::function<std::unique_ptr<Panels<double>>(const Layout&, int)> of_doubles;

  explicit operator bool() const { return bool(of_doubles); }
  template <class T>
  std::unique_ptr<Panels<T>> make(const Layout& layout, int rank) const {
    if constexpr (sizeof(T) == sizeof(float)) return of_floats(layout, rank);
    else return of_doubles(layout, rank);
  }
};

}  // namespace gpucholmod::mpi
