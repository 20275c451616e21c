#pragma once

#include <type_traits>

#include "base/host_device.h"

/// What differs from one family of GPUs to another in a segment: how products are formed, how copies and P travel, and
/// how much shared memory there is. The order of work, and every formula, is the same. Reference:
/// inst/design/other-gpus.md.
namespace gpucholmod::block_columns {

/// The product of a 16 x 8 and an 8 x 8 matrix, by one warp.
enum class Products {
  tensor_16_8_8,  ///< one instruction of the FP64 tensor cores
  tensor_8_8_4,   ///< four smaller ones
  fma             ///< by the lanes themselves, which fetch from each other what they lack
};

/// A card is a class with these members, all of them known to the compiler:
///
///   shared               bytes of shared memory of a block of threads
///   clusters             whether P goes round within a cluster of blocks of threads, and copies are bulk copies:
///                        otherwise P goes by global memory, and copies are cp.async, which the same barriers count
///   products             how
///   cluster              blocks of threads that solve for the same columns of V
///   solve_teams          teams of each of these
///   tile_slots           places for tiles of R, for each team
///   inverted_at_once     diagonal blocks that are inverted by a block of threads
///   ahead<K>             sub-blocks of R that a warp of the others has on their way, V having K columns
///   P_slots<K>           places for P of row blocks, of a block that advances
///   transform_slots<K>     places for transforms, of one that updates
///   finish_slots<K>      places for P, of one that finishes
///   Arithmetic<T>        what is computed with, for a factor of T's: double, or T
///   With<A>              the card, when it computes with A's: where these are shorter, there is room for more of them
///
/// Compute capability 9.0 to 11.x: GPUs of data centres with clusters. Numbers measured on an H200:
/// log/tried.md.
struct Card90 {
  template <class T> using Arithmetic = double;
  template <class A> using With = Card90;
  static constexpr int shared = 227 * 1024;
  static constexpr bool clusters = true;
  static constexpr Products products = Products::tensor_16_8_8;
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 2, inverted_at_once = 2;
  template <int K> static constexpr int ahead = K > 16 ? 2 : 4;
  template <int K> static constexpr int P_slots = K > 16 ? 4 : K > 8 ? 8 : 16;
  template <int K> static constexpr int transform_slots = K > 16 ? 2 : 3;
  template <int K> static constexpr int finish_slots = K > 16 ? 3 : 4;
};

/// Compute capability 8.0: A100, A30. Numbers measured with these kernels on an H200, 2026-11-23:
/// log/tried.md.
struct Card80 {
  template <class T> using Arithmetic = double;
  template <class A> using With = Card80;
  static constexpr int shared = 163 * 1024;
  static constexpr bool clusters = false;
  static constexpr Products products = Products::tensor_8_8_4;
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 1, inverted_at_once = 1;
  template <int K> static constexpr int ahead = K > 16 ? 1 : 4;
  template <int K> static constexpr int P_slots = K > 16 ? 2 : K > 8 ? 4 : 8;
  template <int K> static constexpr int transform_slots = 2;
  template <int K> static constexpr int finish_slots = K > 16 ? 2 : 4;
};

/// Compute capability 8.6 to 8.9, and 12.x: GeForce cards and workstations, with few units for double precision.
struct Card86Single;
struct Card86 {
  template <class T> using Arithmetic = T;
  template <class A> using With = std::conditional_t<std::is_same_v<A, float>, Card86Single, Card86>;
  static constexpr int shared = 99 * 1024;
  static constexpr bool clusters = false;
  static constexpr Products products = Products::fma;
  static constexpr int cluster = 8, solve_teams = 1, tile_slots = 1, inverted_at_once = 1;
  template <int K> static constexpr int ahead = 2;
  template <int K> static constexpr int P_slots = K > 8 ? 2 : 4;
  template <int K> static constexpr int transform_slots = K > 8 ? 1 : 2;
  template <int K> static constexpr int finish_slots = 1;
};
/// The same with floats.
struct Card86Single : Card86 {
  static constexpr int cluster = 4, solve_teams = 2, tile_slots = 2;
  template <int K> static constexpr int ahead = K > 16 ? 2 : 4;
  template <int K> static constexpr int P_slots = K > 16 ? 2 : K > 8 ? 4 : 8;
  template <int K> static constexpr int transform_slots = K > 8 ? 2 : 3;
  template <int K> static constexpr int finish_slots = K > 16 ? 2 : 4;
};

}  // namespace gpucholmod::block_columns
