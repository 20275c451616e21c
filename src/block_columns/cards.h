#pragma once

#include <type_traits>

#include "base/host_device.h"

/// The differences between families of GPUs in a segment: how products are formed, how copies are made, how P is passed
/// on, and how much shared memory a thread block has. The order of work and all formulas are the same. Reference:
/// inst/design/other-gpus.md.
namespace gpucholmod::block_columns {

/// The ways in which one warp forms the product of a 16 x 8 and an 8 x 8 matrix.
enum class Products {
  tensor_16_8_8,  ///< one instruction of the FP64 tensor cores
  tensor_8_8_4,   ///< four smaller instructions of the FP64 tensor cores
  fma             ///< multiply-adds by the lanes, which fetch missing elements from each other
};

/// A card is a class with these members, all known at compile time:
///
///   shared               bytes of shared memory of a thread block
///   clusters             true if P is sent within a cluster of thread blocks, and copies are bulk copies; otherwise P
///                        passes through global memory, and copies are cp.async, which the same barriers count
///   products             the way in which products are formed
///   cluster              thread blocks that solve for the same columns of V
///   solve_teams          teams of each thread block that solves
///   tile_slots           slots for tiles of R, for each team
///   inverted_at_once     diagonal blocks that a thread block inverts at once
///   ahead<K>             sub-blocks of R that a warp that advances or updates has in flight, V having K columns
///   gaps                 true if eight rows of such a sub-block begin in other banks than the eight before, for which
///                        each sub-block takes a sixteenth more memory
///   P_slots<K>           slots for P of row blocks, of a thread block that advances
///   last_tiles<K>        tiles of R in shared memory for each group of LastGroups; 0: no room, or products take their
///                        factors in place
///   transform_slots<K>   slots for block transforms, of a thread block that updates
///   finish_slots<K>      slots for P, of a thread block that finishes
///   Arithmetic<T>        the type of all arithmetic for a factor of T's: double, or T
///   With<A>              the card when it computes with A's: if these are shorter, shared memory has room for more
///
/// Card90 is the card of compute capability 9.0 to 11.x: GPUs of data centres with clusters. Its numbers were measured
/// on an H200: log/tried.md.
struct Card90 {
  template <class T> using Arithmetic = double;
  template <class A> using With = Card90;
  static constexpr int shared = 227 * 1024;
  static constexpr bool clusters = true;
  static constexpr Products products = Products::tensor_16_8_8;
  static constexpr bool gaps = true;
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 2, inverted_at_once = 2;
  template <int K> static constexpr int ahead = 4;
  template <int K> static constexpr int P_slots = K > 16 ? 4 : K > 8 ? 8 : 16;
  template <int K> static constexpr int last_tiles = 3;
  template <int K> static constexpr int transform_slots = K > 16 ? 2 : 3;
  template <int K> static constexpr int finish_slots = K > 16 ? 3 : 4;
};

/// The card of compute capability 8.0: A100, A30. The numbers were measured with these kernels on an H200, 2026-11-23:
/// log/tried.md.
struct Card80 {
  template <class T> using Arithmetic = double;
  template <class A> using With = Card80;
  static constexpr int shared = 163 * 1024;
  static constexpr bool clusters = false;
  static constexpr Products products = Products::tensor_8_8_4;
  static constexpr bool gaps = false;
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 1, inverted_at_once = 1;
  template <int K> static constexpr int ahead = K > 16 ? 1 : 4;
  template <int K> static constexpr int P_slots = K > 16 ? 2 : K > 8 ? 4 : 8;
  template <int K> static constexpr int last_tiles = K > 16 ? 0 : 3;
  template <int K> static constexpr int transform_slots = 2;
  template <int K> static constexpr int finish_slots = K > 16 ? 2 : 4;
};

/// The card of compute capability 8.6 to 8.9, and 12.x: GeForce and workstation cards, with few double-precision units.
struct Card86Single;
struct Card86 {
  template <class T> using Arithmetic = T;
  template <class A> using With = std::conditional_t<std::is_same_v<A, float>, Card86Single, Card86>;
  static constexpr int shared = 99 * 1024;
  static constexpr bool clusters = false;
  static constexpr Products products = Products::fma;
  static constexpr bool gaps = false;
  static constexpr int cluster = 8, solve_teams = 1, tile_slots = 1, inverted_at_once = 1;
  template <int K> static constexpr int ahead = 2;
  template <int K> static constexpr int P_slots = K > 8 ? 2 : 4;
  template <int K> static constexpr int last_tiles = 0;
  template <int K> static constexpr int transform_slots = K > 8 ? 1 : 2;
  template <int K> static constexpr int finish_slots = 1;
};
/// The card of compute capability 8.6 to 8.9, and 12.x, when it computes with floats.
struct Card86Single : Card86 {
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 2;
  template <int K> static constexpr int ahead = K > 16 ? 2 : 4;
  template <int K> static constexpr int P_slots = K > 16 ? 2 : K > 8 ? 4 : 8;
  template <int K> static constexpr int transform_slots = K > 8 ? 2 : 3;
  template <int K> static constexpr int finish_slots = K > 16 ? 2 : 4;
};

}  // namespace gpucholmod::block_columns
