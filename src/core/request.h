#ifndef GPUCHOLMOD_CORE_REQUEST_H
#define GPUCHOLMOD_CORE_REQUEST_H

#include <functional>
#include <limits>
#include <string>

#include "core/matrix_view.h"
#include "core/tuning.h"

namespace gpucholmod {

enum class Sign { update, downdate };
enum class Uplo { upper, lower };
enum class Precision { double_, single };
enum class Backend { automatic, cpu, cuda };
enum class Method { automatic, reference, blocked, panel };

/// Order of the two outer loops of the reference sweeps; both do the same arithmetic.
///   a  right-looking: rotation i is applied along row i of R as soon as it is known (stride ld)
///   b  left-looking: column j receives rotations 0 .. j-1, then yields rotation j (stride 1)
enum class LoopOrder { a, b };

/// What to compute, how and where; everything but the numbers themselves.
struct Request {
  index_t n = 0;  ///< order of R
  index_t k = 0;  ///< columns of V
  Sign sign = Sign::update;
  Uplo uplo = Uplo::upper;
  Precision precision = Precision::double_;
  Backend backend = Backend::automatic;
  Method method = Method::automatic;
  LoopOrder loop_order = LoopOrder::b;
  PanelShape panel;
  double device_memory = std::numeric_limits<double>::infinity();  ///< most device memory to use, bytes
};

/// What was done.
struct Outcome {
  index_t pivot = -1;  ///< first pivot (from 0) at which a downdate fails; -1: success
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Precision precision = Precision::double_;
  std::string device;               ///< name of the GPU; empty on the CPU
  index_t panels = 0;               ///< off-diagonal panels processed (panel method)
  double device_bytes_peak = 0;     ///< most device memory held at once, bytes (panel method)
  bool pinned = false;              ///< R was page-locked during the transfers (panel method, cuda)
  double seconds = 0;               ///< the modification itself, without checks and copies
};

/// Called between panels; may throw to abandon the computation (Ctrl-C).
using Poll = std::function<void()>;

}  // namespace gpucholmod

#endif
