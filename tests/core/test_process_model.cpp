#include <gtest/gtest.h>

#include "block_columns/segment.h"
#include "call.h"
#include "mpi/factor.h"
#include "mpi/sweep.h"
#include "process_model.h"
#include "process_threads.h"

/// The messages that processes send, and the predicted time of a modification: inst/design/processes.md.
namespace gpucholmod::test {
namespace {

constexpr double header = 32;  ///< size of a message's header, in bytes

/// The exact number of messages of a sweep, and their bytes: a transform for each row block, to each process that has
/// columns behind that row block.
struct Traffic {
  index_t messages = 0;
  double bytes = 0;
};
Traffic traffic(index_t n, index_t k, int size, Instructions instructions) {
  const cpu::Kernels<double>& kernels = cpu::kernels<double>(instructions, k, Sign::update, Uplo::upper);
  const mpi::Layout layout{n, size};
  Traffic all;
  for (index_t b = 0; b < layout.blocks(); ++b) {
    const index_t to = index_t(layout.behind(b, layout.owner(b)).size()),
                  steps = (layout.columns(b) + kernels.rows - 1) / kernels.rows;
    all.messages += to;
    all.bytes += double(to) * (header + 8.0 * double(steps * kernels.transform_words(k)));
  }
  return all;
}

/// Returns the number of messages by the formula of the note; bytes_of() returns their bytes.
double messages_of(index_t n, int size) { return (size - 1) * (double(n) / 64 - 0.5 * size); }
double bytes_of(index_t n, index_t k, int size, index_t rows) {
  return 8.0 * double(n) * (double(k) + double(rows) + 1) * (size - 1);
}

TEST(ProcessModel, TrafficIsThatOfTheFormulas) {
  for (const Instructions instructions : all_instructions) {
    if (!cpu::available(instructions)) continue;
    for (const index_t n : {1000, 2000})
      for (const int size : {1, 2, 4}) {
        if (instructions != cpu::resolve(Instructions::automatic)) continue;
        const index_t k = 16;
        const Stored<double> R = Stored<double>::Identity(n, n), V = Stored<double>::Constant(n, k, 0.01);
        Threads net(size);
        Traffic before;
        const auto errors = in_processes(net, size, 60, [&](mpi::Team& team) {
          const auto f = mpi::deal_out(team, R.data(), n, Uplo::upper, Precision::double_, cpu::ordinary_memory);
          team.together(mpi::Operation::agree, 0, [&] {  // all processes are done before counting begins
            if (team.rank() == 0) before = {net.messages, net.bytes};
            team.exchange("", 1);
            return -1;
          });
          Task task;
          task.n = n;
          task.k = k;
          task.instructions = instructions;
          task.threads = 1;
          std::atomic<bool> begun{false};
          f->modify(V.data(), task, nullptr, [](double) {}, begun);
        });
        for (const auto& error : errors) EXPECT_FALSE(error);
        const Traffic exact = traffic(n, k, size, instructions);
        // Besides the messages of the sweep: ends of operations, at most three to each other process, an exchange, and
        // signs of life.
        EXPECT_NEAR(double(net.messages - before.messages), double(exact.messages), 4.0 * size * (size - 1));
        EXPECT_NEAR(net.bytes - before.bytes, exact.bytes, 4.0 * 80 * size * (size - 1));
      }
    for (const index_t n : {2000, 32768})
      for (const index_t k : {5, 16, 32})
        for (const int size : {2, 4, 16}) {
          const Traffic exact = traffic(n, k, size, instructions);
          const index_t rows = cpu::kernels<double>(instructions, k, Sign::update, Uplo::upper).rows;
          const bool long_enough = n / 64 > 8 * size;  // otherwise few processes are behind many of the last blocks
          EXPECT_TRUE(!long_enough || std::abs(double(exact.messages) / messages_of(n, size) - 1) < 0.1)
              << n << " " << size;
          EXPECT_TRUE(!long_enough || std::abs(exact.bytes / bytes_of(n, k, size, rows) - 1) < 0.1)
              << n << " " << k << " " << size;
        }
  }
}

/// Checks the schedule: a pass is no quicker than a process's share of the work, and no quicker than the chain of block
/// steps, and not much slower.
TEST(ProcessModel, NobodyWaitsButForTheChain) {
  const Pieces pieces{20e-6, 40e-6, 16e3};
  for (const index_t n : {4096, 32768})
    for (const Network& network : {Network{1e-6, 1e10}, {20e-6, 1.25e9}, {50e-6, 1.25e8}}) {
      const double blocks = double(n) / 64, all = blocks * (blocks - 1) / 2 * pieces.tile + blocks * pieces.diagonal;
      EXPECT_NEAR(predicted(n, 1, pieces, network), all, 1e-9 * all);
      for (const int size : {2, 4, 8, 16}) {
        const double step = network.latency + pieces.bytes / network.bytes_a_second + pieces.tile + pieces.diagonal;
        const double chain = blocks * step, share = all / size, found = predicted(n, size, pieces, network);
        EXPECT_GE(found, std::max(0.9 * chain, 0.999 * share));
        EXPECT_LE(found, 1.05 * (chain + share)) << n << " " << size;
      }
    }
  // The note's result: long factors gain from many processes, short factors from few.
  const Network ethernet{20e-6, 1.25e9};
  EXPECT_GT(predicted(32768, 1, pieces, ethernet) / predicted(32768, 8, pieces, ethernet), 7);
  EXPECT_GT(predicted(4096, 1, pieces, ethernet) / predicted(4096, 4, pieces, ethernet), 3);
}

/// The pieces of a modification on one H100, from the note's table.
constexpr PanelPieces h100{
    0.1e-3, 10e-9,   60e-6,    75e-9,
    8e-6,   2.55e12, 1 / 29e9, 8.0 * block_columns::BlockTransform<16>::words / block_columns::NB};

double on_gpus(index_t n, int processes, const Network& network) {
  return predicted({n, processes, mpi::panel_width(n)}, h100, network);
}

TEST(ProcessModel, OneProcessOnAGpuTakesWhatWasMeasured) {
  EXPECT_EQ(h100.message, 408);
  for (const auto& [n, seconds] :
       {std::pair<index_t, double>{4096, 0.98e-3}, {8192, 1.87e-3}, {16384, 3.47e-3}, {32768, 7.51e-3}})
    EXPECT_NEAR(on_gpus(n, 1, {0, 1e9}) / seconds, 1, 0.2) << n;
}

TEST(ProcessModel, OnGpusNobodyWaitsButForTheChain) {
  for (const index_t n : {16384, 131072})
    for (const Network& network : {Network{5e-6, 1e10}, {20e-6, 1.25e9}})
      for (const int size : {1, 2, 4, 16, 64}) {
        const double w = double(mpi::panel_width(n)), panels = double(n) / w, bytes = h100.message * w,
                     found = on_gpus(n, size, network);
        const double panel = h100.panel + h100.column * w,
                     follow = 8.0 * double(n) * (double(n) - w) / h100.bytes_a_second / size;
        const double sent = network.latency + bytes / network.bytes_a_second + 2 * bytes * h100.host;
        const double way = size == 1 ? 0 : sent + h100.launch + 16 * w * w / h100.bytes_a_second;
        const double chain = panels * panel + (panels - 1) * way;
        EXPECT_GE(found, std::max(0.999 * chain, follow)) << n << " " << size;
        // Time for sending a message to all other processes, one after the other, and for the ends, where some
        // processes have nothing left to do.
        const double ends = panels * (size - 1) * bytes / network.bytes_a_second + 4 * panels * h100.launch + 4e-3;
        EXPECT_LE(found, 1.05 * (chain + follow) + h100.begin + h100.row * double(n) + ends) << n << " " << size;
      }
}

}  // namespace
}  // namespace gpucholmod::test
