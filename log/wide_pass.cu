// A trailing update with 64 columns of V in one reading of R, beside passes of 32 columns: what it would take if all
// block transforms were there from the start. Not part of the package; the figures are in tried.md, "64 columns in one
// reading".
//
//   nvcc -std=c++17 -O3 -gencode arch=compute_90,code=sm_90 -Xptxas -v log/wide_pass.cu -o wide_pass
//   ./wide_pass [n...]         or n@B for B thread blocks, one a multiprocessor
//
// Block transforms are random numbers of moderate size. There is no chain, there are no flags, and all thread blocks
// update; diagonal blocks are left out. "64 fused": a warp applies both transforms to a tile that it keeps in
// registers. "64 pairs": two warps share a group of columns; the first applies the first transform and hands R~ over in
// shared memory, the second applies the second. "32 x2": two launches. "no products": copies alone. All variants are
// first compared with a plain kernel of the same formulas.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>

#define CK(...) do { cudaError_t e_ = (__VA_ARGS__); if (e_ != cudaSuccess) { \
  printf("%s:%d %s: %s\n", __FILE__, __LINE__, #__VA_ARGS__, cudaGetErrorString(e_)); exit(1); } } while (0)

// A sub-block's transform of 32 columns: 3 tiles of 64 doubles of C, 8 of Z, 8 of P.
constexpr int TILES = 19, TW = TILES * 64;
constexpr int SUBB = 2048;  // bytes of a sub-block of R: 16 rows, 16 columns
constexpr int VW = 512;     // doubles of V of a group, 32 columns

struct Args {
  const double* R; double* out; size_t ld; int blocks, groups;
  const double* T;    // (b, a, s): T + ((b * 4 + a) * 2 + s) * TW; already moved by s for a pass of 32
  const double* V0; double* V;  // (group, s): + (group * 2 + s) * VW
  int first_shared;   // groups of this thread block from this number on have V in shared memory
  int v_count;        // number of them
};

__device__ __forceinline__ unsigned saddr(const void* p) { return unsigned(__cvta_generic_to_shared(p)); }
__device__ __forceinline__ void mb_init(unsigned long long* m, int n) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(saddr(m)), "r"(n) : "memory");
}
__device__ __forceinline__ void mb_arrive(unsigned long long* m) {
  asm volatile("mbarrier.arrive.shared.b64 _, [%0];" ::"r"(saddr(m)) : "memory");
}
__device__ __forceinline__ void mb_expect(unsigned long long* m, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(saddr(m)), "r"(bytes) : "memory");
}
__device__ __forceinline__ bool mb_try(unsigned long long* m, unsigned parity) {
  unsigned over;
  asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
               : "=r"(over) : "r"(saddr(m)), "r"(parity) : "memory");
  return over != 0;
}
__device__ __forceinline__ void mb_wait(unsigned long long* m, unsigned parity) {
  if (mb_try(m, parity)) return;
  const unsigned start = unsigned(clock());
  while (!mb_try(m, parity)) if (unsigned(clock()) - start > 3000000000u) __trap();  // 1.5 s
}
// left: the tile (column g, rows 2t, 2t + 1; column g + 8, rows 2t, 2t + 1); the instruction's k are 2t and 2t + 1
template <bool moves>
__device__ __forceinline__ void mma(double (&d)[4], const double (&a)[4], double2 b) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[moves ? 2 : 1]), "d"(a[moves ? 1 : 2]), "d"(a[3]), "d"(b.x), "d"(b.y));
}
__device__ __forceinline__ void cp16(unsigned to, const void* from) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}

// R~' = R' L' + V Z', V <- V + R'P (P holds -P) for 16 rows of R. L' and P, Z' are right factors in the order of lanes.
template <bool moves>
__device__ __forceinline__ void transform(double (&r)[2][4], double (&V)[4][4], unsigned T) {
  const auto right = [&](int tile) {
    double2 b;
    asm("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(b.x), "=d"(b.y) : "r"(T + tile * 512) : "memory");
    return b;
  };
  double o[2][4] = {};
#pragma unroll
  for (int j = 0; j < 4; ++j)
#pragma unroll
    for (int h = 0; h < 2; ++h) mma<moves>(o[h], V[j], right(3 + j * 2 + h));
  mma<moves>(o[0], r[0], right(0));
  mma<moves>(o[1], r[0], right(1));
  mma<moves>(o[1], r[1], right(2));
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int j = 0; j < 4; ++j) mma<moves>(V[j], r[h], right(11 + h * 4 + j));
#pragma unroll
  for (int h = 0; h < 2; ++h)
#pragma unroll
    for (int e = 0; e < 4; ++e) r[h][e] = o[h][e];
}

// NT: transforms (0: copies only, 1: 32 columns, 2: 64 columns). pair: two warps share a group, the first applies the
// first transform, the second the second.
template <int NT, int W, bool pair, int SLOTS, int AHEAD>
struct Cfg {
  static constexpr int readers = pair ? W / 2 : W, hand = pair ? 2 : 0;
  static constexpr int ring = SLOTS * NT * TW * 8, tiles = readers * AHEAD * SUBB, hands = readers * hand * SUBB;
  static constexpr int bars = (2 * SLOTS + 4 * readers) * 8, fixed = ring + tiles + hands + ((bars + 127) & ~127);
  static constexpr int v_bytes = NT * VW * 8;  // V of a group
};

template <int NT, int W, bool pair, int SLOTS, int AHEAD, bool moves = true>
__global__ void __launch_bounds__((W + 1) * 32, 1) update(const Args s) {
  using C = Cfg<NT, W, pair, SLOTS, AHEAD>;
  extern __shared__ __align__(128) unsigned char memory[];
  unsigned char* const ring = memory;
  unsigned char* const bars = memory + C::ring + C::tiles + C::hands;
  auto* const full = reinterpret_cast<unsigned long long*>(bars);
  auto* const empty = full + SLOTS;
  auto* const hand_full = empty + SLOTS;
  auto* const hand_empty = hand_full + 2 * C::readers;
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, grid = gridDim.x, sm = blockIdx.x;
  if (threadIdx.x == 0) {
    for (int i = 0; i < SLOTS; ++i) mb_init(full + i, 1), mb_init(empty + i, W);
    if (pair) for (int i = 0; i < 2 * C::readers; ++i) mb_init(hand_full + i, 1), mb_init(hand_empty + i, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (sm >= s.groups) return;
  const int blocks = (sm + (s.groups - 1 - sm) / grid * grid) / 4;  // row blocks of this thread block

  if (warp == W) {  // the warp that stages
    if (NT == 0 || lane != 0) return;
    for (int f = 0; f < blocks * 4; ++f) {
      const unsigned slot = unsigned(f) % SLOTS, phase = unsigned(f) / SLOTS;
      if (f >= SLOTS) mb_wait(empty + slot, (phase - 1) & 1);
      mb_expect(full + slot, NT * TW * 8);
      asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                   ::"r"(saddr(ring + slot * (NT * TW * 8))), "l"(s.T + size_t(f) * 2 * TW), "r"(NT * TW * 8),
                   "r"(saddr(full + slot)) : "memory");
    }
    return;
  }

  const int me = pair ? warp / 2 : warp, role = pair ? warp & 1 : 0, stride = grid * C::readers;
  constexpr int NV = pair ? 1 : NT > 0 ? NT : 1;  // transforms that this warp applies
  const unsigned tiles = saddr(memory + C::ring) + me * AHEAD * SUBB;
  // The first group of this warp in row block b, given one at or before it; -1 if there is none.
  const auto first = [&](int b, int low) {
    while (low < 4 * (b + 1) && low < s.groups) low += stride;
    return low < s.groups ? low : -1;
  };
  const auto fetch = [&](int b, int q, int a) {
    if (q >= 0) {
      unsigned l = lane, ld = unsigned(s.ld);
      asm volatile("" : "+r"(l), "+r"(ld));  // computed anew each time: saves registers
      const int p = l % 8, h = p / 4, c0 = l / 8;
      const double* from = s.R + size_t(16 * q + c0) * ld + (64 * b + 16 * a + 2 * p);
      const unsigned to = tiles + a % AHEAD * SUBB + h * 512 + p % 4 * 16;
#pragma unroll
      for (int k = 0; k < 4; ++k)
        cp16(to + (k >> 1) * 1024 + ((c0 + 4 * (k & 1)) ^ h) * 64, from + size_t(4 * k * ld));
    }
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  const auto place = [&](int q) -> double2* {
    const int i = q / grid - s.first_shared;
    double* p = i >= 0 ? reinterpret_cast<double*>(memory + C::fixed) + size_t(i) * (NT * VW)
                       : s.V + size_t(q) * 2 * VW;
    return reinterpret_cast<double2*>(p + role * VW) + lane;
  };

  int low = first(0, sm + grid * me), q = low;  // of this row block: the first group, the next one
  if (role == 0)
#pragma unroll
    for (int a = 0; a < AHEAD; ++a) fetch(0, q, a);
  double V[NV][4][4];
  bool held = false;
  unsigned handed = 0;
  for (int b = 0; b < blocks; ++b) {
    if (NT > 0 && q < 0) {  // no group of this warp has this row block
#pragma unroll 1
      for (unsigned f = 4 * b; f != 4 * b + 4u; ++f) {
        mb_wait(full + f % SLOTS, f / SLOTS & 1);
        __syncwarp();
        if (lane == 0) mb_arrive(empty + f % SLOTS);
      }
    }
#pragma unroll 1
    for (bool last = q < 0; !last;) {
      last = q + stride >= s.groups;
      if (last) low = first(b + 1, low);
      const int then = last ? low : q + stride;
      if (NT > 0 && !held) {
        const double2* from = b == 0 ? reinterpret_cast<const double2*>(s.V0 + (size_t(q) * 2 + role) * VW) + lane
                                     : place(q);
#pragma unroll
        for (int v = 0; v < NV; ++v)
#pragma unroll
          for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              const double2 x = from[v * (VW / 2) + (j * 2 + i) * 32];
              V[v][j][2 * i] = x.x, V[v][j][2 * i + 1] = x.y;
            }
      }
#pragma unroll 1
      for (int a = 0; a < 4; ++a) {
        double r[2][4];
        if (role == 0) {
          asm volatile("cp.async.wait_group %0;" ::"n"(AHEAD - 1) : "memory");
          __syncwarp();
          const unsigned from = tiles + a % AHEAD * SUBB;
#pragma unroll
          for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              asm volatile("ld.shared.v2.f64 {%0, %1}, [%2];" : "=d"(r[h][2 * i]), "=d"(r[h][2 * i + 1])
                           : "r"(from + (i * 2 + h) * 512 + (lane ^ h * 4) * 16) : "memory");
          __syncwarp();
          const bool same = a + AHEAD < 4;
          fetch(!same && last ? b + 1 : b, same ? q : then, (a + AHEAD) % 4);
        }
        const unsigned f = 4 * b + a, slot = f % SLOTS;
        const unsigned T = saddr(ring) + slot * (NT * TW * 8) + lane * 16;
        if (NT > 0) mb_wait(full + slot, f / SLOTS & 1);
        if constexpr (!pair) {
          if constexpr (NT > 0)
#pragma unroll
            for (int v = 0; v < NT; ++v) transform<moves>(r, V[v], T + v * TW * 8);
        } else {
          const unsigned k = handed % 2, phase = handed / 2;
          double2* const hand = reinterpret_cast<double2*>(memory + C::ring + C::tiles + (me * 2 + k) * SUBB) + lane;
          if (role == 1) {
            mb_wait(hand_full + me * 2 + k, phase & 1);
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
              for (int i = 0; i < 2; ++i) {
                const double2 x = hand[(h * 2 + i) * 32];
                r[h][2 * i] = x.x, r[h][2 * i + 1] = x.y;
              }
            __syncwarp();
            if (lane == 0) mb_arrive(hand_empty + me * 2 + k);
          }
          transform<moves>(r, V[0], T + role * TW * 8);
          if (role == 0) {
            if (handed >= 2) mb_wait(hand_empty + me * 2 + k, (phase - 1) & 1);
#pragma unroll
            for (int h = 0; h < 2; ++h)
#pragma unroll
              for (int i = 0; i < 2; ++i) hand[(h * 2 + i) * 32] = make_double2(r[h][2 * i], r[h][2 * i + 1]);
            __syncwarp();
            if (lane == 0) mb_arrive(hand_full + me * 2 + k);
          }
          ++handed;
        }
        unsigned l = lane, ld = unsigned(s.ld);
        asm volatile("" : "+r"(l), "+r"(ld));
        double* const out = s.out + size_t(16 * q + l / 4) * ld + (64 * b + 16 * a + l % 4 * 2);
        if (!pair || role == 1)
#pragma unroll
          for (int i = 0; i < 2; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h)
              __stcs(reinterpret_cast<double2*>(out + size_t(8 * i * ld) + 8 * h),
                     make_double2(r[h][2 * i], r[h][2 * i + 1]));
        if (NT > 0 && last) {
          __syncwarp();
          if (lane == 0) mb_arrive(empty + slot);
        }
      }
      held = then == q;
      if (NT > 0 && !held) {
        double2* to = place(q);
#pragma unroll
        for (int v = 0; v < NV; ++v)
#pragma unroll
          for (int j = 0; j < 4; ++j)
#pragma unroll
            for (int i = 0; i < 2; ++i)
              to[v * (VW / 2) + (j * 2 + i) * 32] = make_double2(V[v][j][2 * i], V[v][j][2 * i + 1]);
      }
      q = then;
    }
  }
}

// Reads and writes the triangle: 2,048 rows of a column a thread block.
__global__ void __launch_bounds__(256) plain(const double* R, double* out, size_t ld) {
  const int c = blockIdx.y, end = c / 64 * 64, row = blockIdx.x * 2048 + threadIdx.x * 2;
  if (int(blockIdx.x) * 2048 >= end) return;
  const double* from = R + c * ld + row;
  double* to = out + c * ld + row;
  double2 x[4];
#pragma unroll
  for (int i = 0; i < 4; ++i) if (row + i * 512 < end) x[i] = __ldcs(reinterpret_cast<const double2*>(from + i * 512));
#pragma unroll
  for (int i = 0; i < 4; ++i) if (row + i * 512 < end) __stcs(reinterpret_cast<double2*>(to + i * 512), x[i]);
}

__device__ __forceinline__ double random_of(unsigned long long i) {  // in (-1, 1)
  i += 0x9e3779b97f4a7c15ull; i = (i ^ i >> 30) * 0xbf58476d1ce4e5b9ull; i = (i ^ i >> 27) * 0x94d049bb133111ebull;
  i ^= i >> 31;
  return double((long long)i >> 11) * 0x1p-52;
}
__global__ void fill(double* p, size_t count, double by, unsigned long long seed) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
    p[i] = by * random_of(i + seed);
}
__global__ void fill_transforms(double* T, size_t count) {
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
    const int in = int(i % TW), tile = in / 64, lane = in % 64 / 2, g = lane / 4, k = lane % 4 * 2 + in % 2;
    T[i] = 0.03 * random_of(i + (1ull << 50)) + ((tile == 0 || tile == 2) && g == k ? 0.9 : 0);
  }
}
// The same formulas, a thread a column.
__global__ void reference(const double* R, double* out, size_t ld, int n, const double* T, const double* V0, int sets) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c >= n) return;
  const int q = c / 16, i = c % 16 / 8, gc = c % 8;
  double V[2][32], r[16], o[16];
  for (int s = 0; s < 2; ++s)
    for (int k = 0; k < 32; ++k)
      V[s][k] = V0[(size_t(q) * 2 + s) * VW + ((k / 8 * 2 + i) * 32 + gc * 4 + k % 8 / 2) * 2 + k % 2];
  for (int b = 0; b < c / 64; ++b)
    for (int a = 0; a < 4; ++a) {
      for (int m = 0; m < 16; ++m) r[m] = R[c * ld + 64 * b + 16 * a + m];
      for (int s = 0; s < sets; ++s) {
        const double* t = T + (size_t(b * 4 + a) * 2 + s) * TW;
        for (int m = 0; m < 16; ++m) {
          o[m] = 0;
          const int h = m / 8, g = m % 8;
          for (int k = 0; k < 8 * (h + 1); ++k) o[m] += t[(h + k / 8) * 64 + (g * 4 + k % 8 / 2) * 2 + k % 2] * r[k];
          for (int k = 0; k < 32; ++k)
            o[m] += t[(3 + k / 8 * 2 + h) * 64 + (g * 4 + k % 8 / 2) * 2 + k % 2] * V[s][k];
        }
        for (int k = 0; k < 32; ++k)
          for (int m = 0; m < 16; ++m)
            V[s][k] += t[(11 + m / 8 * 4 + k / 8) * 64 + (k % 8 * 4 + m % 8 / 2) * 2 + m % 2] * r[m];
        for (int m = 0; m < 16; ++m) r[m] = o[m];
      }
      for (int m = 0; m < 16; ++m) out[c * ld + 64 * b + 16 * a + m] = r[m];
    }
}
// result[0]: the largest difference; result[1]: the largest number of y.
__global__ void compare(const double* x, const double* y, size_t ld, int n, double* result) {
  const size_t threads = size_t(gridDim.x) * blockDim.x;
  for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < size_t(n) * n; i += threads) {
    const size_t c = i / n, row = i % n;
    if (row >= c / 64 * 64) continue;
    const double a = x[c * ld + row], b = y[c * ld + row], d = a - b == a - b ? fabs(a - b) : 1e300;
    atomicMax(reinterpret_cast<unsigned long long*>(result), (unsigned long long)__double_as_longlong(d));
    atomicMax(reinterpret_cast<unsigned long long*>(result + 1), (unsigned long long)__double_as_longlong(fabs(b)));
  }
}

struct Problem {
  int n; size_t ld; double *R, *out, *T, *V0, *V;
  explicit Problem(int n) : n(n), ld(n + 16) {
    const size_t t = size_t(n / 16) * 2 * TW, v = size_t(n / 16) * 2 * VW;
    CK(cudaMalloc(&R, ld * n * 8)); CK(cudaMalloc(&out, ld * n * 8)); CK(cudaMalloc(&T, t * 8));
    CK(cudaMalloc(&V0, v * 8)); CK(cudaMalloc(&V, v * 8));
    fill<<<1024, 256>>>(R, ld * n, 1, 0); fill<<<1024, 256>>>(V0, v, 1, 1ull << 40);
    fill_transforms<<<1024, 256>>>(T, t);
    CK(cudaMemset(V, 0, v * 8)); CK(cudaMemset(out, 0, ld * n * 8)); CK(cudaDeviceSynchronize());
  }
  ~Problem() { cudaFree(R); cudaFree(out); cudaFree(T); cudaFree(V0); cudaFree(V); }
};

constexpr int MOST = 232448;
struct Variant {
  std::string name; int W, regs = 0, nt; bool shared_V, two, right;
  // Queues the variant; returns how many of at most how many groups have V in shared memory, or -1 if it fails.
  int (*queue)(const Variant&, const Problem&, int grid, int& of);
  const void* kernel = nullptr;
  int launches() const { return two ? 2 : 1; }
};
template <int NT, int W, bool pair, int SLOTS, int AHEAD, bool moves>
int queue(const Variant& v, const Problem& p, int grid, int& of) {
  using C = Cfg<NT, W, pair, SLOTS, AHEAD>;
  static_assert(C::fixed <= MOST && SLOTS >= 4);
  const int groups = p.n / 16;
  of = (groups + grid - 1) / grid;
  const int room = v.shared_V && NT > 0 ? std::min(of, (MOST - C::fixed) / std::max(C::v_bytes + 0, 1)) : 0;
  const int bytes = C::fixed + room * C::v_bytes;
  const auto kernel = update<NT, W, pair, SLOTS, AHEAD, moves>;
  CK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
  Args s{p.R, p.out, p.ld, p.n / 64, groups, p.T, p.V0, p.V, of - room, room};
  kernel<<<grid, (W + 1) * 32, bytes>>>(s);
  if (v.two) {  // the second transform, in place
    s.R = p.out, s.T = p.T + TW, s.V0 = p.V0 + VW, s.V = p.V + VW;
    kernel<<<grid, (W + 1) * 32, bytes>>>(s);
  }
  CK(cudaGetLastError());
  return room;
}
int queue_plain(const Variant&, const Problem& p, int, int& of) {
  of = 0;
  plain<<<dim3((p.n + 2047) / 2048, p.n), 256>>>(p.R, p.out, p.ld);
  CK(cudaGetLastError());
  return 0;
}
template <int NT, int W, bool pair, int SLOTS, int AHEAD, bool moves = true>
void add(std::vector<Variant>& to, const char* name, bool shared_V, bool two) {
  Variant v{name, W, 0, NT, shared_V, two, moves, queue<NT, W, pair, SLOTS, AHEAD, moves>};
  cudaFuncAttributes a;
  CK(cudaFuncGetAttributes(&a, update<NT, W, pair, SLOTS, AHEAD, moves>));
  v.regs = a.numRegs;
  v.name += std::string(two ? " x2" : "") + ", ahead " + std::to_string(AHEAD) + ", slots " + std::to_string(SLOTS) +
            (a.localSizeBytes ? ", SPILLS" : "");
  to.push_back(v);
}

int main(int argc, char** argv) {
  cudaDeviceProp prop;
  CK(cudaGetDeviceProperties(&prop, 0));
  const int sms = prop.multiProcessorCount;
  std::vector<std::pair<int, int>> sizes;  // n, thread blocks
  for (int i = 1; i < argc; ++i) {
    const char* const at = strchr(argv[i], '@');
    sizes.push_back({atoi(argv[i]), at ? std::min(sms, atoi(at + 1)) : sms});
  }
  if (sizes.empty()) sizes = {{8192, sms}, {16384, sms}, {32768, sms}};
  printf("%s, %d multiprocessors\n", prop.name, sms);
  std::vector<Variant> all;
  all.push_back({"plain", 8, 32, 0, false, false, true, queue_plain});
  add<0, 8, false, 4, 4>(all, "no products", false, false);
  add<0, 11, false, 4, 4>(all, "no products", false, false);
  for (int two = 0; two < 2; ++two)
    for (int shared = 0; shared < 2; ++shared) {
      add<1, 8, false, 8, 4>(all, "32", shared, two);
      add<1, 11, false, 6, 4>(all, "32", shared, two);
      add<1, 15, false, 8, 2>(all, "32", shared, two);
    }
  for (int shared = 0; shared < 2; ++shared) {
    add<2, 8, false, 6, 4>(all, "64 fused", shared, false);
    add<2, 8, false, 5, 2>(all, "64 fused", shared, false);
    add<2, 11, false, 6, 4>(all, "64 fused", shared, false);
    add<2, 11, false, 5, 2>(all, "64 fused", shared, false);
    add<2, 15, false, 6, 2>(all, "64 fused", shared, false);
    if (!shared) add<2, 11, false, 6, 4, false>(all, "64, wrong: no moves", shared, false);
    add<2, 14, true, 6, 4>(all, "64 pairs", shared, false);
    add<2, 18, true, 6, 2>(all, "64 pairs", shared, false);
  }

  {  // check; few thread blocks, so that warps have several groups, and all of them
    const Problem p(1088);
    double *ref[2], *result, host[3], worst = 0;
    CK(cudaMalloc(&result, 24));
    for (int sets = 1; sets <= 2; ++sets) {
      CK(cudaMalloc(&ref[sets - 1], p.ld * p.n * 8));
      reference<<<(p.n + 63) / 64, 64>>>(p.R, ref[sets - 1], p.ld, p.n, p.T, p.V0, sets);
    }
    bool good = true;
    for (const Variant& v : all) {
      if (!v.right) continue;
      for (int grid : {3, 2, sms}) {
        CK(cudaMemset(p.out, 0, p.ld * p.n * 8));
        int of;
        v.queue(v, p, grid, of);
        CK(cudaMemset(result, 0, 24));
        compare<<<256, 256>>>(p.out, v.nt == 0 ? p.R : ref[v.nt == 2 || v.two], p.ld, p.n, result);
        CK(cudaMemcpy(host, result, 24, cudaMemcpyDeviceToHost));
        const double difference = host[0] / host[1];
        worst = std::max(worst, difference);
        if (!(difference < 1e-12)) {
          good = false;
          printf("check FAILED: %s, W %d, grid %d: difference %.3g (largest %.3g)\n", v.name.c_str(), v.W, grid,
                 difference, host[1]);
        }
      }
    }
    if (good) printf("check ok (n = %d, largest relative difference %.2g, largest number %.3g)\n", p.n, worst, host[1]);
    for (double* r : ref) cudaFree(r);
    cudaFree(result);
  }

  cudaEvent_t begin, end;
  CK(cudaEventCreate(&begin)); CK(cudaEventCreate(&end));
  for (auto [n, grid] : sizes) {
    n = n / 64 * 64;
    const Problem p(n);
    const double elements = 64.0 * 64 * (double(n / 64) * (n / 64 - 1) / 2), bytes = 16 * elements;
    double plain_speed = 1;
    std::vector<std::pair<std::string, double>> best;  // of each kind
    printf("\nn = %d, %d thread blocks\n%-34s %3s %5s %9s %9s %8s %8s %8s  V in shared\n", n, grid, "variant", "W",
           "regs", "ms", "least", "GB/s", "TFLOPS", "ideal/ms");
    for (const Variant& v : all) {
      std::vector<float> ms;
      int room = 0, of = 0;
      for (int i = 0; i < 8; ++i) {
        CK(cudaEventRecord(begin));
        room = v.queue(v, p, grid, of);
        CK(cudaEventRecord(end));
        CK(cudaEventSynchronize(end));
        float t;
        CK(cudaEventElapsedTime(&t, begin, end));
        if (i > 0) ms.push_back(t);
      }
      std::sort(ms.begin(), ms.end());
      const double t = ms[3], all_bytes = bytes * v.launches();
      const double flops = elements / 256 * TILES * 2048 * v.nt * v.launches();
      if (v.queue == queue_plain) plain_speed = bytes / t;
      const std::string kind = v.name.substr(0, v.name.find(','));
      if (v.right) {
        auto at = std::find_if(best.begin(), best.end(), [&](const auto& x) { return x.first == kind; });
        if (at == best.end()) best.push_back({kind, t});
        else at->second = std::min(at->second, double(t));
      }
      const double ideal = std::max(all_bytes / plain_speed, flops / 60e9);
      printf("%-34s %3d %5d %9.3f %9.3f %8.0f %8.1f %8.2f  %d of %d\n", v.name.c_str(), v.W, v.regs, t, ms[0],
             all_bytes / t / 1e6, flops / t / 1e9, ideal / t, room, of);
    }
    printf("best, ms:");
    for (const auto& x : best) printf("  %s %.3f", x.first.c_str(), x.second);
    printf("\n");
    fflush(stdout);
  }
  return 0;
}
