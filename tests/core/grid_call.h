#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <stdexcept>

#include "block_columns/pass.h"
#include "call.h"
#include "host_grid.h"

/// The memory of modifications on a simulated grid, and functions that these modifications share.
namespace gpucholmod::test {

/// The destination of the result.
enum class Into { other_memory, place, nowhere };

/// Holds a factor laid out as on the device: continued by the identity to a whole number of strips. Entries that must
/// never be read or written hold NaN, and so do entries that must be written before they are read.
template <class T>
struct Grid {
  explicit Grid(const Problem<double>& p)
      : n(p.R.cols()), strips(block_columns::strips_of(n)), padded(index_t(strips) * block_columns::STRIP),
        R(Stored<T>::Constant(padded + block_columns::margin, padded, std::numeric_limits<T>::quiet_NaN())), out(R) {
    for (index_t b = 0; b < padded; b += block_columns::NB)
      R.block(b, b, block_columns::NB, block_columns::NB).setZero();
    R.topRows(padded).template triangularView<Eigen::Upper>() = Stored<T>::Identity(padded, padded);
    R.topLeftCorner(n, n).template triangularView<Eigen::Upper>() = p.R.template cast<T>();
  }
  Grid(const Grid&) = delete;

  index_t n;
  int strips;
  index_t padded;
  Stored<T> R, out;
};

/// Runs f in a thread of its own. Throws, and leaves the thread running, if f takes more than a minute.
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

/// Returns the number of row blocks of a factor of order n and of the identity that continues it.
inline int row_blocks(index_t n) {
  return int((n + block_columns::STRIP - 1) / block_columns::STRIP * block_columns::BLOCKS);
}

}  // namespace gpucholmod::test
