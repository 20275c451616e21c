#pragma once

#include "cuda/kernels/member_modify.h"
#include "cuda/kernels/member_solve.h"
#include "cuda/kernels/reciprocal.cuh"

namespace gpucholmod::cuda {

/// Implements the Team of member.h by the threads of a thread block, or of one of its warps.
class MemberTeam {
 public:
  template <class S>
  struct PerThread {
    S value;
    __device__ __forceinline__ S& operator[](int) { return value; }
  };

  /// Makes a team of all threads of a thread block, or of `size` <= WARP neighbouring threads, a power of two, of one
  /// of its warps.
  __device__ MemberTeam(int thread, int size) : thread_(thread), size_(size) {
    if (size < WARP) mask_ = ((1u << size) - 1) << (lane_of_warp() & ~unsigned(size - 1));
  }
  __device__ __forceinline__ int size() const { return size_; }
  template <class F>
  __device__ __forceinline__ void threads(F&& f) const { f(thread_); }
  /// Loads K numbers from shared memory, the same numbers in all threads.
  template <int K>
  __device__ static __forceinline__ ColumnOfV<K> load(const double (&v)[K]) {
    ColumnOfV<K> out;
    if constexpr (K % 2 == 0) {
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; q += 2) {
        const double2 two = *reinterpret_cast<const double2*>(v + q);
        out.q[q] = two.x;
        out.q[q + 1] = two.y;
      }
    } else {
      GPUCHOLMOD_UNROLL for (int q = 0; q < K; ++q) out.q[q] = v[q];
    }
    return out;
  }
  /// Returns the sum of x over the threads of a team of one warp, with the same bits in each thread.
  __device__ __forceinline__ double sum(const PerThread<double>& x) const {
    double all = x.value;
    for (int apart = WARP / 2; apart > 0; apart /= 2) all += __shfl_xor_sync(0xffffffffu, all, apart);
    return all;
  }
  /// Calls f(number of the warp) in each warp.
  template <class F>
  __device__ __forceinline__ void each_warp(F&& f) const { f(thread_ / WARP); }
  /// Calls f(lane) in each thread of the calling warp.
  template <class F>
  __device__ __forceinline__ void lanes(F&& f) const { f(thread_ % WARP); }
  /// Returns, in each lane, x of the lane from(lane).
  template <class F>
  __device__ __forceinline__ PerThread<double> shuffled(const PerThread<double>& x, F&& from) const {
    return {__shfl_sync(0xffffffffu, x.value, from(thread_ % WARP))};
  }
  /// Starts to copy a number to shared memory. The copy is complete after wait_for_copies() of the same thread.
  template <class T>
  __device__ static __forceinline__ void start_copy(T* to, const T* from) {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(unsigned(__cvta_generic_to_shared(to))), "l"(from),
                 "n"(sizeof(T))
                 : "memory");
#else
    *to = *from;
#endif
  }
  __device__ static __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_all;" ::: "memory");
#endif
  }
  /// Makes a set of the copies that were started since the last call.
  __device__ static __forceinline__ void end_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
  }
  /// Waits for all sets of copies of the same thread except the last `but` sets.
  template <int but>
  __device__ static __forceinline__ void wait_for_copies() {
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(but) : "memory");
#endif
  }
  __device__ __forceinline__ void sync_warp() const { __syncwarp(mask_); }
  __device__ __forceinline__ void sync() const {
    if (size_ <= WARP) __syncwarp(mask_);
    else __syncthreads();
  }

  __device__ static __forceinline__ double rounded_square(double x) { return __dmul_rn(x, x); }
  __device__ static __forceinline__ double reciprocal(double x) { return cuda::reciprocal(x); }
  __device__ static __forceinline__ double reciprocal_root(double x) { return cuda::reciprocal_root(x); }

 private:
  static __device__ __forceinline__ unsigned lane_of_warp() {
    unsigned lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
  }

  int thread_, size_;
  unsigned mask_ = 0xffffffffu;  ///< mask of the team's threads in their warp
};

constexpr int warps_of_block = 4;  ///< warps of a thread block if a member has one warp or less

/// Returns the team of the calling thread. Sets `member` to the member of the team, and `place` to the number of the
/// team in the thread block.
__device__ __forceinline__ MemberTeam team_of(index_t& member, int& place) {
  const bool small = blockDim.y > 1;
  place = small ? int(threadIdx.y) : 0;
  member = index_t(blockIdx.x) * blockDim.y + place;
  return MemberTeam(int(threadIdx.x), int(blockDim.x));
}

/// The number of members of a thread block, with L threads each.
template <int L>
constexpr int members_of_block = L > WARP ? 1 : warps_of_block * WARP / L;

/// Runs a pass over `count` members.
///   Grid     a block for members_of_block members, threads x by members y
///   Shared   ModifyRoom for each
template <class T, int K, int L>
__global__ void __launch_bounds__(L * members_of_block<L>) modify_members(const BatchPass<T> pass, index_t count) {
  constexpr int members = members_of_block<L>;
  __shared__ ModifyRoom<T, K, L> sRooms[members];
  const index_t member = index_t(blockIdx.x) * members + threadIdx.y;
  if (pass.needs_care && *pass.needs_care) return;
  if (member < count) modify_member<K, L>(MemberTeam(int(threadIdx.x), L), pass, member, sRooms[threadIdx.y]);
}

/// Describes a look at V of every member. V, the order of columns and the multipliers are given as in BatchPass.
struct BatchLook {
  const double* V;
  index_t V_stride, n, count;  ///< stride and n of BatchPass, and number of members
  int k;
  const int* order;
  const double* by;
  index_t order_stride;
  const Factors* factors;
  double added;          ///< number of added columns
  double least, most;    ///< bounds between which numbers need no care
  double top;            ///< the largest number of T
  const double* bounds;  ///< bound of the norms of each factor's columns
  double* after;         ///< bound of the norms of each modified factor's columns, set on exit
  int* needs_care;       ///< flag that becomes 1 if a member needs care, or V is not finite
};

/// Looks at V of every member, and bounds the entries that its factor will have after the modification.
///   Grid     a warp for each member
static __global__ void __launch_bounds__(WARP* warps_of_block) look_at_members(const BatchLook look) {
  const index_t member = index_t(blockIdx.x) * warps_of_block + threadIdx.y;
  if (member >= look.count) return;
  const double* const V = look.V + member * look.V_stride;
  double largest = 0;
  for (int q = 0; q < look.k; ++q) {
    const index_t at = member * look.order_stride + q;
    const double* const column = V + (look.order ? look.order[at] : q) * look.n;
    const double by = look.by ? look.by[at] : 1;
    for (index_t i = threadIdx.x; i < look.n; i += WARP) {
      const double size = fabs(column[i]) * by;
      largest = size < HUGE_VAL ? fmax(largest, size) : HUGE_VAL;
    }
  }
  for (int apart = WARP / 2; apart > 0; apart /= 2)
    largest = fmax(largest, __shfl_down_sync(0xffffffffu, largest, apart));
  if (threadIdx.x != 0) return;
  const double before = look.bounds[member], root = look.factors ? look.factors[member].last : 1,
               unscaled = hypot(before, largest * sqrt(look.added)), after = root * unscaled,
               size = fmax(before, largest);
  look.after[member] = fmin(after, look.top);
  if (!(fmax(unscaled, after) <= look.top && size >= look.least && size <= look.most)) *look.needs_care = 1;
}

constexpr int most_warps_of_solve = 8;  ///< largest number of warps of a member

/// Solves for right-hand sides of every member, H^2 at a time.
///   Grid     a block for each member, or, if a member needs one warp only, for warps_of_block members
///   Shared   solve_bytes() for each member
template <class T, int H>
__global__ void __launch_bounds__(WARP * most_warps_of_solve)
    solve_batch(const BatchSolve<T> solve, index_t count, bool forward, bool back) {
  extern __shared__ __align__(16) double shared[];
  index_t member;
  int place;
  const MemberTeam team = team_of(member, place);
  if (member >= count) return;
  const index_t each = solve_bytes<T>(solve.n, H * H, team.size() / WARP) / index_t(sizeof(double));
  const SolveRoom<T> room(shared + place * each, solve.n, H * H);
  solve_member<H>(team, solve, member, forward, back, room);
}

/// Copies the diagonals of packed triangles to out (n x b); `count` is n b.
template <class T>
__global__ void diagonals_of_batch(const T* R, index_t n, index_t count, double* out) {
  const index_t at = index_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at >= count) return;
  const index_t member = at / n, j = at % n;
  out[at] = double(R[member * words_of(n) + row_of(n, j) + j]);
}

}  // namespace gpucholmod::cuda
