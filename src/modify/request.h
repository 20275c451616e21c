#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/right_hand_sides.h"
#include "paper/shape.h"

namespace gpucholmod {

enum class Backend { automatic, cpu, cuda };

/// The names by which a user asks for an algorithm and a route; modify/methods.h says which. In the order of
/// R/request.R.
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

/// What to compute, how and where.
struct Request : Task {
  Backend backend = Backend::automatic;
  Method method = Method::automatic;
  LoopOrder loop_order = LoopOrder::b;  ///< of method reference
  std::optional<paper::Shape> shape;    ///< of method panel; its defaults, if there is none
  bool downdate = false;                ///< that was asked for in this word
  std::vector<double> weights;          ///< of the columns of V, any sign; none: 1, and -1 of those that are `removed`
  std::shared_ptr<OwnedRightHandSides> sides;  ///< z and rss are replaced where the modification can be done
  /// Whether R's BLAS is one that was written for speed: for the choice of a method.
  bool optimised_blas = false;
};

/// What was done, and by what; everything automatic is resolved.
struct Outcome : Work {
  Backend backend = Backend::cpu;
  Method method = Method::blocked;
  Precision precision = Precision::double_;
  int threads = 0;  ///< of the CPU, that computed (blocked) or moved data (stream, resident)
  Instructions instructions = Instructions::automatic;  ///< that the CPU's kernels used; automatic: none of them ran
};

}  // namespace gpucholmod
