#pragma once

#include "cuda/kernels/block_columns.cuh"
#include "cuda/kernels/device_memory.cuh"

namespace gpucholmod::cuda {

/// Forms products of small matrices in a warp, by tensor cores or by the lanes, as Card says. HostWarp in
/// tests/core/host_grid.h tells what each function does. All of them need compute capability 8.0. A is the type that
/// the warp computes with.
template <class A>
struct DeviceProducts : DeviceMemory {
#ifdef __CUDA_ARCH__
  using Card = typename CardOf<__CUDA_ARCH__>::template With<A>;
#else
  using Card = block_columns::Card90;  // on the host, for members that do not depend on the card
#endif
  static constexpr bool in_place = Card::products == block_columns::Products::fma;
  template <class S>
  struct PerLane {
    S value;
    __device__ __forceinline__ S& operator[](int) { return value; }
    __device__ __forceinline__ const S& operator[](int) const { return value; }
  };
  static constexpr unsigned all = 0xffffffffu;

  int id, lane;

  /// Computes D <- D + s AB, B(k, n) at B[n * ld + k], by tensor cores if the card has them. Columns 2t and 2t + 1 of
  /// A, which a lane holds, are taken as the instruction's columns t and t + 4, and the rows of B correspondingly. So
  /// the result of a product is in the registers where the next product takes its left factor.
  template <int s, block_columns::Access access>
  __device__ __forceinline__ void multiply_add(PerLane<block_columns::Fragment<A>>& D,
                                               const PerLane<block_columns::LeftFragment<A>>& left, const A* B,
                                               int ld) const {
    const auto* at = reinterpret_cast<const block_columns::Pair<A>*>(B + block_columns::group_id(lane) * ld +
                                                                     2 * block_columns::thread_in_group(lane));
    const block_columns::Pair<A> b = read<access>(at);
    multiply_add_to(D, left, s > 0 ? b.x : -b.x, s > 0 ? b.y : -b.y);
  }
  __device__ __forceinline__ void multiply_add_to(PerLane<block_columns::Fragment<A>>& D,
                                                  const PerLane<block_columns::LeftFragment<A>>& left, A b0,
                                                  A b1) const {
    A* d = D.value.e;
    const A* a = left.value.e;
    if constexpr (Card::products == block_columns::Products::tensor_16_8_8) {
#if GPUCHOLMOD_CLUSTERS(__CUDA_ARCH__)
      asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
          "{%0, %1, %2, %3};"
          : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
          : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b0), "d"(b1));
#endif
    } else if constexpr (Card::products == block_columns::Products::tensor_8_8_4) {
      multiply_add_eight(d, a[0], b0);
      multiply_add_eight(d + 2, a[1], b0);
      multiply_add_eight(d, a[2], b1);
      multiply_add_eight(d + 2, a[3], b1);
    } else {
      multiply_add_lanes(d, a, b0, b1);
    }
  }
  /// Adds a quarter of the product to eight rows of D: eight rows and four columns of A by four rows and eight columns
  /// of B.
  __device__ static __forceinline__ void multiply_add_eight(double* d, double a, double b) {
#if GPUCHOLMOD_SEGMENTS(__CUDA_ARCH__)
    asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
        : "+d"(d[0]), "+d"(d[1])
        : "d"(a), "d"(b));
#endif
  }
  /// Computes the whole product without tensor cores. A lane fetches the entries of A from its quad, and those of B
  /// from groups 2t and 2t + 1. The loop is not unrolled: a kernel has many products, and the compiler would take
  /// minutes over them.
  __device__ __forceinline__ void multiply_add_lanes(A* d, const A* a, A b0, A b1) const {
    const auto add = [d](A low, A high, A left, A right) {
      d[0] = fma(low, left, d[0]);
      d[1] = fma(low, right, d[1]);
      d[2] = fma(high, left, d[2]);
      d[3] = fma(high, right, d[3]);
    };
#pragma unroll 1
    for (int k = 0; k < 4; ++k) {
      const auto from_A = [&](A x) { return __shfl_sync(all, x, lane / 4 * 4 + k); };
      const auto from_B = [&](A x, int next) { return __shfl_sync(all, x, lane % 4 * 8 + 4 * next + k); };
      add(from_A(a[0]), from_A(a[1]), from_B(b0, 0), from_B(b0, 1));
      add(from_A(a[2]), from_A(a[3]), from_B(b1, 0), from_B(b1, 1));
    }
  }

  /// Computes D <- D + s AB, B(k, n) at B[k * ld + n].
  template <int s>
  __device__ __forceinline__ void multiply_add_rows(PerLane<block_columns::Fragment<A>>& D,
                                                    const PerLane<block_columns::LeftFragment<A>>& left, const A* B,
                                                    int ld) const {
    const A* at = B + 2 * block_columns::thread_in_group(lane) * ld + block_columns::group_id(lane);
    multiply_add_to(D, left, s > 0 ? at[0] : -at[0], s > 0 ? at[ld] : -at[ld]);
  }

  /// Computes D <- D + s AB, A loaded by load_left_apart(), B(k, n) at B[k * k_stride + n * n_stride].
  template <int s>
  __device__ __forceinline__ void multiply_add_apart(PerLane<block_columns::Fragment<A>>& D,
                                                     const PerLane<block_columns::LeftFragment<A>>& left, const A* B,
                                                     int k_stride, int n_stride) const {
    const A* at = B + block_columns::thread_in_group(lane) * k_stride + block_columns::group_id(lane) * n_stride;
    multiply_add_to(D, left, s > 0 ? at[0] : -at[0], s > 0 ? at[4 * k_stride] : -at[4 * k_stride]);
  }

  /// Computes D <- D + AB, B(k, n) = tile(8 * half + n, k).
  template <int half>
  __device__ __forceinline__ void multiply_add_half(PerLane<block_columns::Fragment<A>>& D,
                                                    const PerLane<block_columns::LeftFragment<A>>& left,
                                                    const PerLane<block_columns::Fragment<A>>& tile) const {
    multiply_add_to(D, left, tile.value.e[2 * half], tile.value.e[2 * half + 1]);
  }

  /// Computes D_j <- D_j + s L B_j for `count` matrices B_j, L(m, k) at left[m * left_ld + k] (16 x 8), B_j(k, n) at
  /// right[j * stride + n * right_ld + k], all in shared memory. Sixteen bytes of a row of L serve 2 count columns.
  /// Each lane of a quad (with floats, each half of a quad) begins at another place of the sum. This avoids bank
  /// conflicts if the leading dimensions are 8, or 8 more than a multiple of 16.
  template <int s, int count>
  __device__ __forceinline__ void multiply_add_in_place(PerLane<block_columns::Fragment<A>>* D, const A* left,
                                                        int left_ld, const A* right, int right_ld, int stride) const {
    constexpr int parts = 8 / in_16;
    const int t = block_columns::thread_in_group(lane);
    left += block_columns::group_id(lane) * left_ld;
    right += 2 * t * right_ld;
#pragma unroll
    for (int part = 0; part < parts; ++part) {
      const int at = (part ^ t * parts / 4) * in_16;
      const Sixteen low = sixteen(left + at), high = sixteen(left + 8 * left_ld + at);
#pragma unroll
      for (int j = 0; j < count; ++j) {
        const Sixteen b0 = sixteen(right + j * stride + at), b1 = sixteen(right + j * stride + right_ld + at);
        A* d = D[j].value.e;
#pragma unroll
        for (int k = 0; k < in_16; ++k) {
          d[0] = fma(s > 0 ? low.e[k] : -low.e[k], b0.e[k], d[0]);
          d[1] = fma(s > 0 ? low.e[k] : -low.e[k], b1.e[k], d[1]);
          d[2] = fma(s > 0 ? high.e[k] : -high.e[k], b0.e[k], d[2]);
          d[3] = fma(s > 0 ? high.e[k] : -high.e[k], b1.e[k], d[3]);
        }
      }
    }
  }

  /// Holds 16 rows of a matrix of order NB. A lane has every fourth row, and eight columns. So a product with
  /// CHAIN_COLUMNS columns takes nothing from other lanes until its partial sums are added up.
  struct Rows {
    A e[4][8];
  };
  /// Loads 16 rows; element (m, l) is at p[m * ld + l], in shared memory.
  __device__ __forceinline__ Rows load_rows(const A* p, int ld) const {
    Rows rows;
    p += block_columns::group_id(lane) % 4 * ld + first_of_sum();
#pragma unroll
    for (int i = 0; i < 4; ++i)
#pragma unroll
      for (int l = 0; l < 8; l += in_16) {
        const Sixteen part = sixteen(p + 4 * i * ld + l);
#pragma unroll
        for (int k = 0; k < in_16; ++k) rows.e[i][l + k] = part.e[k];
      }
    return rows;
  }
  /// Computes D <- D + s rows P, P(l, q) at P[q * ld + l].
  template <int s>
  __device__ __forceinline__ void multiply_add_rows_of(PerLane<block_columns::Fragment<A>>& D, const Rows& rows,
                                                       const A* P, int ld) const {
    // Eight lanes have partial sums for the same rows. Each of three steps leaves a lane half of its sums: in the end
    // those of rows g and g + 8, columns 2t and 2t + 1.
    const bool upper = lane & 16, right = lane & 2, odd = lane & 1;
    A two[2][8], four[2][4];
    constexpr int columns = sizeof(A) == sizeof(float) ? 8 : 2;  // columns at a time, to save registers
    P += first_of_sum();
#pragma unroll
    for (int first = 0; first < 8; first += columns) {
      A sum[4][columns] = {};
#pragma unroll
      for (int l = 0; l < 8; l += in_16) {
        Sixteen part[columns];
#pragma unroll
        for (int q = 0; q < columns; ++q) part[q] = sixteen(P + (first + q) * ld + l);
#pragma unroll
        for (int k = 0; k < in_16; ++k)
#pragma unroll
          for (int i = 0; i < 4; ++i)
#pragma unroll
            for (int q = 0; q < columns; ++q) sum[i][q] = fma(rows.e[i][l + k], part[q].e[k], sum[i][q]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i)
#pragma unroll
        for (int q = 0; q < columns; ++q) two[i][first + q] = halve(sum[2 * i][q], sum[2 * i + 1][q], upper, 16);
    }
#pragma unroll
    for (int i = 0; i < 2; ++i) {
#pragma unroll
      for (int q = 0; q < 4; ++q) four[i][q] = halve(two[i][q], two[i][q + 4], right, 2);
#pragma unroll
      for (int q = 0; q < 2; ++q) D.value.e[2 * i + q] += s * halve(four[i][q], four[i][q + 2], odd, 1);
    }
  }

 private:
  static constexpr int in_16 = 16 / int(sizeof(A));
  struct alignas(16) Sixteen {
    A e[in_16];
  };
  __device__ static __forceinline__ Sixteen sixteen(const A* p) { return *reinterpret_cast<const Sixteen*>(p); }
  /// Returns the first of the eight columns of Rows that a lane has.
  __device__ __forceinline__ int first_of_sum() const {
    return block_columns::thread_in_group(lane) * 8 + lane / 16 * 32;
  }
  /// Returns the sum that this lane keeps, `second` if take_second, otherwise `first`, plus the same sum of the lane at
  /// `distance`, which keeps the other sum.
  __device__ static __forceinline__ A halve(A first, A second, bool take_second, int distance) {
    return (take_second ? second : first) + __shfl_xor_sync(all, take_second ? first : second, distance);
  }
};

}  // namespace gpucholmod::cuda
