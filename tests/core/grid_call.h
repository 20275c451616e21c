#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>

#include "call.h"
#include "host_grid.h"

/// One modification by the block-column method, on a simulated grid.
namespace gpucholmod::test {

/// Where the result goes.
enum class Into { other_memory, place, nowhere };

struct GridRun {
  int blocks = 2;  ///< blocks of threads
  Into into = Into::other_memory;
  bool only_householder = false;
  int delay = 0;  ///< strips whose number is a multiple of it begin late
};

/// All memory of a run, laid out as on the device: the factor continued by the identity to a whole number of strips.
/// What is never to be read or written, and what is to be written first, holds NaN.
template <int K, class T>
struct Grid {
  using Parts = block_columns::Transform<K>;
  static constexpr index_t margin = 32;  ///< the leading dimension is that much more than the order
  static constexpr double nan = std::numeric_limits<double>::quiet_NaN();

  Grid(const Problem<double>& p, const GridRun& how)
      : n(p.R.cols()), strips((n + block_columns::STRIP - 1) / block_columns::STRIP), padded(strips * block_columns::STRIP),
        blocks(padded / block_columns::NB), R(Stored<T>::Constant(padded + margin, padded, T(nan))), out(R),
        V(Stored<double>::Zero(padded, K)), transforms(blocks * Parts::words, nan), saved(padded * K, nan),
        inverses(blocks * block_columns::NB * block_columns::LDB, nan), flags(3 * blocks, 0) {
    for (index_t b = 0; b < padded; b += block_columns::NB) R.block(b, b, block_columns::NB, block_columns::NB).setZero();
    R.topRows(padded).template triangularView<Eigen::Upper>() = Stored<T>::Identity(padded, padded);
    R.topLeftCorner(n, n).template triangularView<Eigen::Upper>() = p.R.template cast<T>();
    V.topLeftCorner(n, p.V.cols()) = p.V;
    job.shared.strips = int(strips);
    job.shared.sigma = p.sign == Sign::update ? 1 : -1;
    job.shared.transforms = transforms.data();
    job.shared.has_P = flags.data();
    job.shared.has_C = flags.data() + blocks;
    job.shared.has_H = flags.data() + 2 * blocks;
    job.shared.pass_state = &pass_state;
    job.shared.only_householder = how.only_householder;
    job.first = 0;
    job.end = int(strips);
    job.ticket = &ticket;
    job.R = R.data();
    job.out = how.into == Into::place ? R.data() : how.into == Into::nowhere ? nullptr : out.data();
    job.ld = padded + margin;
    job.V = V.data();
    job.saved = saved.data();
    job.inverses = inverses.data();
  }
  Grid(const Grid&) = delete;

  index_t n, strips, padded, blocks;
  Stored<T> R, out;
  Stored<double> V;
  std::vector<double> transforms, saved, inverses;
  std::vector<int> flags;
  block_columns::PassState pass_state{};
  int ticket = 0;
  block_columns::Job<T> job{};
};

template <class T>
struct GridResult {
  Stored<T> R;       ///< n x n, upper
  Stored<T> memory;  ///< what R is a part of
  bool input_kept;   ///< no bit of the factor that was modified, or of V, is different now
  block_columns::PassState pass_state;
  std::vector<double> transforms;

  int pivot() const { return pass_state.stop ? pass_state.pivot : -1; }
  template <int K>
  const double* transform(index_t b) const { return transforms.data() + b * block_columns::Transform<K>::words; }
};

/// Runs f in a thread of its own. Where that takes more than a minute, throws, and leaves the thread to itself.
inline void within_a_minute(std::function<void()> f) {
  std::packaged_task<void()> task(std::move(f));
  std::future<void> done = task.get_future();
  std::thread thread(std::move(task));
  if (done.wait_for(std::chrono::minutes(1)) != std::future_status::ready) {
    thread.detach();
    throw std::runtime_error("the grid hangs");
  }
  thread.join();
  done.get();
}

template <int K, class T>
GridResult<T> run_grid_of(const Problem<double>& p, const GridRun& how) {
  const auto grid = std::make_shared<Grid<K, T>>(p, how);
  const Stored<T> R_before = grid->R;
  const Stored<double> V_before = grid->V;
  within_a_minute([grid, how] {
    block_columns::run_on_host<K>(grid->job, how.blocks, [&](int strip) {
      if (how.delay && strip % how.delay == 0) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    });
  });
  const Stored<T>& memory = how.into == Into::place ? grid->R : grid->out;
  const Stored<T> R = memory.topLeftCorner(grid->n, grid->n).template triangularView<Eigen::Upper>();
  return {R, memory, same_bits(grid->R, R_before) && same_bits(grid->V, V_before), grid->pass_state, grid->transforms};
}

template <class T = double>
GridResult<T> run_grid(const Problem<double>& p, const GridRun& how = {}) {
  const index_t k = p.V.cols();
  return k <= 8    ? run_grid_of<8, T>(p, how)
         : k <= 16 ? run_grid_of<16, T>(p, how)
         : k <= 32 ? run_grid_of<32, T>(p, how)
                   : run_grid_of<64, T>(p, how);
}

/// Row blocks of a factor of order n, the identity it is continued by included.
inline int row_blocks(index_t n) { return int((n + block_columns::STRIP - 1) / block_columns::STRIP * block_columns::BLOCKS); }

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool sanitized = true;  ///< a sanitizer makes everything slow: fewer sizes will do
#else
constexpr bool sanitized = false;
#endif

}  // namespace gpucholmod::test
