#pragma once

#include <algorithm>

#include "block_columns/transform.h"

namespace gpucholmod::block_columns {

/// Doubles of shared memory that a block of threads may use: somewhat less than the 227 KB of a GPU that it is meant for.
constexpr int most_shared_words = 28000;

/// Shared memory of a block of threads, in doubles. It is used in turn for
///
///   inverting   the diagonal blocks by rows | their inverses | scratch
///   streaming   X | tiles of R | ring of images of transforms
///   run ahead   X | tiles of R | P of three transforms
///   the chain   X | tiles of R | V, P by columns, P by rows; or what a rescaling needs
///   transforms  P by rows, later M | H, later W | right-hand sides | Y | C | G; twice where there is room
template <int K>
struct SharedMemory {
  using Parts = Transform<K>;
  static constexpr int KP = Parts::KP;
  static constexpr int LDW = KP + 8;  ///< of K contiguous
  static constexpr int SQUARE = NB * LDB;
  static constexpr int TILE = 8 * WARP_COLUMNS;  ///< eight rows of a warp's columns, by columns without gaps
  static constexpr int ring = K > 32 ? 1 : 2;

  static constexpr int D = 0;
  static constexpr int inverses = D + BLOCKS * SQUARE;
  static constexpr int E = inverses + BLOCKS * SQUARE;

  static constexpr int X = 0;               ///< inverse of the diagonal block at hand
  static constexpr int R = X + SQUARE;      ///< NB / 8 tiles for each warp
  static constexpr int ring_slots = R + WARPS * (NB / 8) * TILE;
  static constexpr int run_ahead_words = K * LDB + 8;  ///< of a transform: P, and its head

  static constexpr int V = ring_slots;
  static constexpr int P = V + KP * LDB;
  static constexpr int Pr = P + KP * LDB;

  static constexpr int rescale_H = ring_slots;
  static constexpr int rescale_B = rescale_H + KP * LDB;
  static constexpr int rescale_C = rescale_B + KP * LDB;
  static constexpr int rescale_G = rescale_C + SUBS * IB * LDC;

  static constexpr int big = std::max(KP * LDB, NB * LDW);
  static constexpr int m_P = 0;             ///< P by rows, ld LDW; later M, ld LDB
  static constexpr int m_H = m_P + SQUARE;  ///< H, ld LDB; later W, ld LDW
  static constexpr int m_B = m_H + big;
  static constexpr int m_Y = m_B + KP * LDB;
  static constexpr int m_C = m_Y + KP * LDB;
  static constexpr int m_G = m_C + SUBS * IB * LDC;
  static constexpr int m_words = m_G + NB * LDC;
  /// Whether two halves of the block can do a diagonal block each.
  static constexpr bool both = 2 * m_words <= most_shared_words;

  static constexpr int partial = std::max({ring_slots + ring * Parts::image, ring_slots + 3 * run_ahead_words,
                                           E + WARPS * IB * LDC, Pr + NB * LDW, rescale_G + NB * LDC,
                                           (both ? 2 : 1) * m_words});
  static constexpr int ints = partial + WARPS;  ///< eight words for the block's own bookkeeping
  static constexpr int words = ints + 4;
};

}  // namespace gpucholmod::block_columns
