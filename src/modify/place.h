#pragma once

#include <atomic>
#include <memory>

#include "base/held_factor.h"
#include "base/storage.h"
#include "modify/methods.h"

namespace gpucholmod {

/// Where the factor of a call is, and where the modified one goes. S: what it is stored in.
template <class S>
struct Place {
  using Columns = GivenColumns<S>;  ///< V of a call: that of a factor on a GPU may be there as well

  Where where = Where::memory;
  const S* R = nullptr;  ///< memory, in_place: n x n
  S* out = nullptr;      ///< memory: n x n, does not overlap R or V; in_place: R
  const Source<S>* source = nullptr;
  Sink<S>* sink = nullptr;  ///< file: what it is not told to write has to be zero
  HeldFactor* factor = nullptr;
  std::unique_ptr<HeldFactor>* made = nullptr;  ///< held, gpu: the new factor; null: `factor` itself is modified
  /// Becomes true before R itself changes: a throw after that has lost it.
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
