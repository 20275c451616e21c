#pragma once

#include <cstddef>

namespace gpucholmod::tuning {

constexpr int blocked_strip = 48;    ///< columns of R per strip; a multiple of the row blocks' height, 4 or 8
constexpr int blocked_narrow = 24;   ///< columns per strip of an upper R of doubles if k <= 16
constexpr int blocked_wide = 1024;   ///< columns per strip of a lower R for one thread
constexpr int blocked_prefetch = 4;  ///< row blocks by which a lower R is prefetched
constexpr int blocked_lower = 384;   ///< most columns per strip of a lower R for several threads
/// The n^2 (k + 1) from which on several threads are quicker than one, although each thread has to fetch numbers that
/// are in another thread's cache. Divided by threads_squared, it is the square of the number of threads that pay. From
/// the times of 1 to 16 threads on 16 cores of a Xeon, and of 1 and 2 on a Zen 4, of a factor that the calling thread
/// has just read, 2026-11-28 (inst/bench/threads.R measures calls): inst/design/block-householder.md.
constexpr double threads_pay_upper = 1.45e6, threads_pay_lower = 4e6, threads_squared = 4e4;
/// The b n^2 (k + 8) of a batch whose modification takes as long as getting one more thread's help.
constexpr double thread_help_batch = 7.5e5;
/// The most columns of V with which members of a batch are modified side by side, by 4 or 8 columns at a time, each of
/// which rounds R. With more columns, each member is modified by itself, by all columns at once: then rounding errors
/// do not grow with k, and from 100 to 300 columns on this is quicker (an EPYC with AVX-512, 2026-11-25: n = 5, k = 64,
/// 256: 2.7 and 12.2 us a member side by side, 3.0 and 9.5 by itself; n = 33: 16 and 66, 13 and 38).
constexpr int batch_columns = 64;
constexpr int batch_prefetch = 400;  ///< most entries of a member of a batch for which the next members are prefetched
/// The entries of a group of members, 64 bytes each, by which a modification prefetches ahead. A Zen 4, 2026-11-27, us
/// a member for none, 64, 128 and 256: 0.65, 0.34, 0.31, 0.31 (n = 30, k = 1); 3.4, 2.4, 2.3, 2.1 (100, 1); 8.7, 6.6,
/// 6.4, 5.9 (100, 8).
constexpr int batch_ahead = 256;
/// Returns the most right-hand sides that a GPU solves for by the chain of a modification; cuBLAS solves for more. One
/// H200, 2026-11-22, chain and cuBLAS for 256 right-hand sides: 0.27 and 0.62 ms at n = 1,000, 1.7 and 3.4 at 5,000,
/// 14.2 and 13.1 at 16,384; for 64 at 32,768: 12.0 to 13.3 and 24.7.
constexpr int chain_solves(long long n) { return n <= 8192 ? 192 : 64; }
/// The largest order for which two warps solve for a member of a batch on a GPU (beyond, eight warps do), and the
/// number of warps for each multiprocessor below which more warps solve for a member. One H200, 2026-11-27, one
/// right-hand side, forward, ms for 1, 2 and 4 warps: 0.102, 0.086, 0.099 (n = 128, 4,000 members), 0.189, 0.161, 0.167
/// (200, 3,000); for 4 and 8: 0.170, 0.159 (512, 500), 0.407, 0.316 (1,024, 200); for 16 right-hand sides 0.439, 0.369,
/// 0.400 (200); 0.388, 0.373 (512).
constexpr int solve_pairs = 256, solve_warps_wanted = 8;
constexpr double stream_panel = 32e6;  ///< bytes of a panel of the stream method
constexpr int stream_slots = 4;        ///< panels of the stream method on the device at once
constexpr double stream_chunk = 2e6;   ///< bytes of a chunk of the stream method
constexpr int stream_buffers = 16;     ///< page-locked buffers for chunks, in each direction
/// The numbers that one substitution of solve_modified() works on: they stay in a core's cache.
constexpr std::ptrdiff_t members_block = 1 << 17;
constexpr std::ptrdiff_t members_columns = 256;     ///< least columns of a substitution: BLAS is slower with fewer
constexpr int most_threads = 16;       ///< most CPU threads, unless the caller says how many
constexpr std::size_t stream_kept = std::size_t(256) << 20;  ///< bytes of device memory kept for the next call
/// The bytes of page-locked memory kept: a long column takes more.
constexpr double staging_kept = 2.1 * stream_buffers * stream_chunk;
constexpr std::size_t messages_kept = std::size_t(64) << 20;  ///< page-locked bytes kept for messages of processes

/// The model of what a whole call takes, in seconds, for "auto". Measured on one host with an NVIDIA H200 and 16 cores
/// of an Intel Xeon; costs that depend on the instructions and on BLAS also on a machine with two Zen 5 cores,
/// 2026-11-21 (log/measurements.md). Costs by element are halved for single precision.
struct Costs {
  static constexpr double cpu_call = 2e-4;
  /// The n^2 (k + 8) of a modification that takes as long as getting one more thread's help: upper, lower.
  static constexpr double thread_help[] = {7.5e5, 4.8e6};
  static constexpr double cpu_element = 4e-10, cpu_thread_element = 1.4e-9;  ///< per n^2; per n^2 / threads
  static constexpr double cpu_column[] = {1.1e-10, 3.7e-11, 2.7e-11};  ///< per n^2 k, a thread: plain, avx2, avx512
  static constexpr double refactor_element = 2e-9;                     ///< per n^2
  static constexpr double refactor_flops = 2e-11;                      ///< per 2n^3/3 + n^2 k, a thread; optimised BLAS
  static constexpr double gpu_call = 2e-3;                             ///< launches, threads, buffers
  static constexpr double gpu_row = 1e-7, gpu_column = 5e-9;           ///< per n for every other pass; per n k
  static constexpr double gpu_element = 3e-10, staging = 2.2e-9;       ///< per n^2; per n^2 / (threads - 1)
  static constexpr double gpu_start = 0.36;                            ///< start of CUDA, once
  /// The seconds of a row and pass by Householder steps alone; one H200, n = 5,000, 2026-11-23.
  static constexpr double gpu_step_row = 8e-7;
  /// The operations a second of one multiprocessor of a GPU with few units for double precision: two units, 1.7 GHz.
  /// From data sheets, not measured.
  static constexpr double gpu_plain_flops = 6.8e9;
};

}  // namespace gpucholmod::tuning
