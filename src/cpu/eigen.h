#pragma once

// Warnings of a system header are not shown: GCC issues hundreds of warnings about Eigen 3.3.
#pragma GCC system_header

#include <Eigen/Core>

namespace gpucholmod::cpu {

/// The vectors that Eigen has for T, and squares: as many vectors as a vector has entries.
template <class T>
struct EigenVector {
  using type = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int size = Eigen::internal::unpacket_traits<type>::size;
  using Square = Eigen::internal::PacketBlock<type, size>;
};

}  // namespace gpucholmod::cpu
