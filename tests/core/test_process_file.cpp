#include <gtest/gtest.h>

#include "call.h"
#include "file_folder.h"
#include "mpi/factor.h"
#include "process_threads.h"

/// A factor over several processes that is read from a file. Each process reads its own columns.
namespace gpucholmod::test {
namespace {

TEST_F(File, IsReadByProcesses) {
  const index_t n = 150;
  Stored<double> R = Random(3).normal(n, n).cast<double>();
  R.diagonal().setConstant(2);
  R = Stored<double>(R.triangularView<Eigen::Upper>());
  const std::string path = (folder / "factor").string();
  const auto write = [&] {
    OutputFile out(path, n, true);
    for (index_t j = 0; j < n; ++j) out.put(j, 0, j + 1, R.col(j).data());
    out.commit();
  };
  const auto read = [&](index_t order, auto&& use) {
    Threads all(3);
    return in_processes(all, 3, 60, [&](mpi::Team& team) {
      use(team, *mpi::read_out(team, path, order, Precision::double_, cpu::ordinary_memory));
    });
  };
  write();
  Stored<double> got(n, n);
  for (const auto& error : read(n, [&](mpi::Team&team, const HeldFactor&f) {
         f.download(Uplo::upper, team.rank() == 0 ? got.data() : nullptr);
       }))
    EXPECT_FALSE(error);
  EXPECT_TRUE(same_bits(got, R));
  R.row(50) *= -1;  // a row that reading turns
  write();
  R.row(50) *= -1;
  for (const auto& error : read(n, [&](mpi::Team& team, const HeldFactor& f) {
         f.download(Uplo::upper, team.rank() == 0 ? got.data() : nullptr);
       }))
    EXPECT_FALSE(error);
  EXPECT_TRUE(same_bits(got, R));
  const auto unused = [](mpi::Team&, const HeldFactor&) {};
  for (const auto& error : read(n + 1, unused)) EXPECT_TRUE(error && text(*error, "reason") == "changed");
  R(100, 100) = 1e-310;  // an entry that process 1 finds
  write();
  for (const auto& error : read(n, unused)) {
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::bad_diagonal);
    EXPECT_EQ(number(*error, "index"), 101);
    EXPECT_EQ(number(*error, "process"), 1);
  }
}

}  // namespace
}  // namespace gpucholmod::test
