#pragma once

#include <atomic>
#include <memory>

#include "base/held_factor.h"
#include "base/storage.h"
#include "modify/methods.h"

namespace gpucholmod {

/// Describes the place of the factor of a call, and the place of the modified factor. S: the scalar that is stored.
template <class S>
struct Place {
  using Columns = GivenColumns<S>;  ///< V of a call, which may be on the GPU if the factor is there

  Where where = Where::memory;
  const S* R = nullptr;  ///< n x n; for memory and in_place
  S* out = nullptr;      ///< memory: n x n, must not overlap R or V; in_place: R
  const Source<S>* source = nullptr;
  Sink<S>* sink = nullptr;  ///< sink of a file; entries that are not written must be zero
  HeldFactor* factor = nullptr;
  std::unique_ptr<HeldFactor>* made = nullptr;  ///< new factor, for held and gpu; null: `factor` itself is modified
  /// The flag that becomes true before R itself changes; a later throw means that R is lost.
  std::atomic<bool>* begun = nullptr;

  static Place memory(const S* R, S* out) { return {Where::memory, R, out}; }
  static Place in_place(S* R, std::atomic<bool>& begun) {
    return {Where::in_place, R, R, nullptr, nullptr, nullptr, nullptr, &begun};
  }
  static Place file(const Source<S>& source, Sink<S>& sink) { return {Where::file, nullptr, nullptr, &source, &sink}; }
  static Place held(HeldFactor& factor, std::unique_ptr<HeldFactor>* made, std::atomic<bool>& begun) {
    return {factor.on_gpu() ? Where::gpu : Where::held, nullptr, nullptr, nullptr, nullptr, &factor, made, &begun};
  }
};

}  // namespace gpucholmod
