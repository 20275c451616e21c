#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/task.h"
#include "mpi/layout.h"
#include "mpi/transport.h"

/// What a factor over several processes expects of the GPU of each: src/mpi_cuda/panels.cu; in tests the CPU.
namespace gpucholmod::mpi {

/// How a modification goes on a GPU, which has to be the same on all.
struct PanelWay {
  Launch launch = Launch::persistent;
  int columns = 32;  ///< of V in a pass
};

/// One modification of the panels of a process, which says what is to be done with which panel when: PanelSweep.
/// Everything is done in the order in which it is asked for; the destructor waits for it.
template <class T>
class PanelModification {
 public:
  virtual ~PanelModification() = default;

  /// A panel of this process, all above whose diagonal block has been done: that block, into a message. Returns the
  /// failing pivot, from its first row, or -1.
  virtual index_t modify(index_t b) = 0;
  /// V of a panel, as it is before modify(): columns(b) x k.
  virtual void fetch_V(index_t b, double* V) = 0;
  /// What modify() has left, for other processes, with room for a trailer; and there. The message of a panel is needed
  /// until that of the second one behind it comes.
  virtual Bytes message(index_t b) = 0;
  virtual void receive(index_t b, Bytes&& message) = 0;
  /// The rows of panel b in those panels of this process that are among [first, last), all behind it, by its message.
  virtual void follow(index_t b, index_t first, index_t last) = 0;
  /// The same in the right-hand sides.
  virtual void carry(index_t b) = 0;
  /// When all is done: the right-hand sides to their place, and what is known of it all to `work`.
  virtual void finish(Work& work) = 0;
};

/// The panels of a process, in the memory of its GPU: blocks of a layout, their rows down to the diagonal.
template <class T>
class Panels {
 public:
  virtual ~Panels() = default;
  /// With anything in them, in the same place.
  virtual std::unique_ptr<Panels> another() const = 0;

  virtual double bytes() const = 0;
  virtual int device() const = 0;
  virtual std::string device_name() const = 0;
  virtual int compute_capability() const = 0;
  /// Where messages should come; null: to ordinary memory.
  virtual MessageMemory* message_memory() const = 0;

  /// Panel b <- R (last(b) x columns(b)), which is not looked at below the diagonal; and back.
  virtual void put(index_t b, MatrixView<const T> R) = 0;
  virtual void get(index_t b, MatrixView<T> R) const = 0;
  virtual void copy(const Panels& from) = 0;

  /// What this GPU has room for. Throws backend_unavailable where it has no code for what is asked for.
  virtual PanelWay way(const Task& task) const = 0;
  /// Into `out`, which may be this; null: only the verdict is of interest, of one pass. V: this process's rows of it,
  /// one panel behind the other; kept no longer than this takes. `scale`: of the result. `right`: m is 0 but in the
  /// process that carries them.
  virtual std::unique_ptr<PanelModification<T>> modification(Panels* out, MatrixView<const double> V, const Task& task,
                                                             double scale, PanelWay way, const RightHandSideView& right,
                                                             const std::function<void()>& tend) = 0;
};

/// Makes them, for the layout and the number of a process.
struct MakePanels {
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
