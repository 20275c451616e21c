#pragma once

#include <limits>
#include <string>
#include <vector>

#include "base/timeline.h"
#include "base/tuning.h"
#include "base/types.h"

namespace gpucholmod {

enum class Backend { automatic, cpu, cuda };
enum class Method { automatic, reference, blocked, refactor, panel, stream, resident };

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
  int threads = 0;        ///< of the CPU; 0: as many as are of use
  Instructions instructions = Instructions::automatic;
  bool optimised_blas = false;  ///< whether R's BLAS is one that was written for speed: for the choice of a method
  bool timeline = false;  ///< whether to fill Outcome::timeline (methods stream, resident)
};

/// What was done.
struct Outcome {
  index_t pivot = -1;  ///< first pivot (from 0) at which a downdate fails; -1: success
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Precision precision = Precision::double_;
  std::string device;               ///< name of the GPU; empty on the CPU
  index_t panels = 0;               ///< panels processed: off-diagonal ones, or (stream) of whole columns
  double device_bytes_peak = 0;     ///< most device memory held at once, bytes (panel, stream, resident)
  bool pinned = false;              ///< R was page-locked during the transfers (panel method, cuda)
  index_t blocks = 0;               ///< row blocks done (stream, resident; on a GPU)
  index_t fallbacks = 0;            ///< of these, by Householder steps because the guard refused the quick one
  index_t rescalings = 0;           ///< blocks before which V was rescaled
  int threads = 0;                  ///< of the CPU, that computed (blocked) or moved data (stream, resident)
  Instructions instructions = Instructions::automatic;  ///< that the CPU's kernels used; automatic: none of them ran
  /// The modification itself, without checks and copies; for stream and resident everything, as it goes hand in hand.
  double seconds = 0;
  std::vector<Timeline::Entry> timeline;
};

}  // namespace gpucholmod
