#pragma once

#include <type_traits>

#include "base/types.h"
#include "block_columns/transform.h"

/// Memory of a modification, and how its jobs are put together; for whoever runs them.
namespace gpucholmod::block_columns {

constexpr index_t most_columns = 64;  ///< of V in one pass; more go in several
constexpr index_t margin = 32;        ///< the leading dimension of a panel is that much more than its rows

inline int strips_of(index_t n) { return int((n + STRIP - 1) / STRIP); }

/// The width that k <= most_columns columns of V are padded to.
inline int padded_width(index_t k) { return k <= 8 ? 8 : k <= 16 ? 16 : k <= 32 ? 32 : 64; }

/// f(std::integral_constant<int, width>()) for a padded width.
template <class F>
decltype(auto) with_width(int width, F&& f) {
  switch (width) {
    case 8: return f(std::integral_constant<int, 8>());
    case 16: return f(std::integral_constant<int, 16>());
    case 32: return f(std::integral_constant<int, 32>());
    default: return f(std::integral_constant<int, 64>());
  }
}

/// What all panels of one pass share: an array of doubles (the transforms, V) and one of ints (PassState, flags, a ticket
/// counter for each panel). Both are zero at the start, but for V.
struct PassSize {
  int width;   ///< of V, padded
  int strips;  ///< of the factor
  int panels;

  index_t blocks() const { return index_t(strips) * BLOCKS; }
  index_t transform_words() const {
    return blocks() * with_width(width, [](auto K) { return index_t(Transform<decltype(K)::value>::words); });
  }
  index_t V_words() const { return index_t(strips) * STRIP * width; }
  index_t doubles() const { return transform_words() + V_words(); }
  index_t ints() const { return pass_state_ints + 3 * blocks() + panels; }
  double bytes() const { return double(sizeof(double)) * doubles() + double(sizeof(int)) * ints(); }
  /// Doubles that a panel needs for itself, for each of its strips.
  index_t strip_words() const { return index_t(STRIP) * width + BLOCKS * NB * LDB; }

  double* V(double* memory) const { return memory + transform_words(); }
  PassState* pass_state(int* memory) const { return reinterpret_cast<PassState*>(memory); }

  static constexpr index_t pass_state_ints = sizeof(PassState) / sizeof(int);
};

/// Strips [first, end), number `panel` of a pass. `own` has strip_words() for each strip; R, out, ld as in Job.
template <class T>
Job<T> make_job(const PassSize& size, double* doubles, int* ints, Sign sign, bool only_householder, int panel, int first,
                int end, const T* R, T* out, index_t ld, double* own) {
  int* flags = ints + PassSize::pass_state_ints;
  const index_t blocks = size.blocks();
  const Shared shared{size.strips, sign == Sign::update ? 1.0 : -1.0, doubles, flags, flags + blocks, flags + 2 * blocks,
                      size.pass_state(ints), only_householder};
  return {shared, first, end, flags + 3 * blocks + panel, R, out, ld, size.V(doubles), own,
          own + index_t(end - first) * STRIP * size.width};
}

}  // namespace gpucholmod::block_columns
