#pragma once

// A system header's warnings are not shown: Eigen 3.3 draws hundreds of them from GCC.
#pragma GCC system_header

#include <Eigen/Core>

namespace gpucholmod::cpu {

/// The vectors that Eigen knows for T, and as many of them as they have entries.
template <class T>
struct EigenVector {
  using type = typename Eigen::internal::packet_traits<T>::type;
  static constexpr int size = Eigen::internal::unpacket_traits<type>::size;
  using Square = Eigen::internal::PacketBlock<type, size>;
};

}  // namespace gpucholmod::cpu
