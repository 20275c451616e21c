#pragma once

#include <memory>

#include "c/reshape.h"
#include "cpu/kernels.h"
#include "modify/modify.h"

namespace gpucholmod::c {

/// Replaces a factor with memory of its own by the modified factor. Returns the failing pivot, or -1. Throws
/// bad_argument and what modify() throws.
inline index_t update(const Changing& changing, const gpucholmod_const_matrix& V, const Modification& what,
                      const Reshaping& given) {
  HeldFactor& R = changing.R;
  const Options& options = given.options;
  const index_t n = R.order();
  require_sizes("V", V);
  require(V.rows == n, "V", "has another number of rows than the factor");
  const index_t k = V.cols;
  const SidesOnHost here(given.sides, true, options);
  const std::shared_ptr<OwnedRightHandSides> sides = copied(here.get(), n, k, n);
  Modification modification = what;
  const WeightsOnHost weights(what.weights, k, options);
  modification.weights = weights.data();
  modification.require_sound(k);
  if (n == 0 && !sides) return -1;
  const bool is_plain = !what.weights && what.scale == 1 && !sides && V.type == GPUCHOLMOD_DOUBLE && V.ld == n;
  if (is_plain && !options.progress && options.threads == 1 && !R.on_gpu()) {  // as samplers call: nothing to prepare
    static const Instructions instructions = cpu::resolve(Instructions::automatic);
    Task task;
    task.n = n;
    task.k = k;
    task.threads = 1;
    task.instructions = instructions;
    return R.modify(static_cast<const double*>(V.data), task, nullptr, unwatched, changing.begun).pivot;
  }
  if (sides && given.turned) given.turned->turn(*sides);
  CallersColumns columns("V", V, options);
  const Request request = modification.request(n, k, R.precision(), options, sides);
  const Outcome outcome =
      modify(Place<double>::held(R, changing.made, changing.begun), columns.given(), request, options.poll());
  if (outcome.pivot >= 0) return outcome.pivot;
  given.then();
  put_back_sides(sides.get(), here.get());
  here.put_back();
  return -1;
}

}  // namespace gpucholmod::c
