#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/right_hand_sides.h"
#include "paper/shape.h"

namespace gpucholmod {

enum class Backend { automatic, cpu, cuda };

/// The names by which a user asks for an algorithm and a route (modify/methods.h), in the order of R/request.R.
enum class Method {
  automatic,
  blocked,
  refactor,
  reference,
  panel,
  stream,
  resident,
  persistent,
  stepwise
};

/// Describes what to compute, how and where.
struct Request : Task {
  Backend backend = Backend::automatic;
  Method method = Method::automatic;
  LoopOrder loop_order = LoopOrder::b;  ///< loop order of method reference
  std::optional<paper::Shape> shape;    ///< sizes of method panel; none: its defaults
  bool downdate = false;                ///< True if the user asked for a downdate by this word
  /// The signed weights of V's columns; empty: 1, and -1 for the columns that are `removed`
  std::vector<double> weights;
  /// The right-hand sides; z and rss are replaced if the modification succeeds
  std::shared_ptr<OwnedRightHandSides> sides;
  /// True if R's BLAS was written for speed, which matters for the choice of a method.
  bool optimised_blas = false;
};

/// Describes what was done, and by what; everything automatic is resolved.
struct Outcome : Work {
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Precision precision = Precision::double_;
  int threads = 0;  ///< number of CPU threads that computed (blocked) or moved data (stream, resident)
  /// The instructions that the CPU's kernels used; automatic: no kernel ran
  Instructions instructions = Instructions::automatic;
};

}  // namespace gpucholmod
