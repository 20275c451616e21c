#include "file_folder.h"

#include <atomic>
#include <thread>

/// Factors in files that are read, also while another factor is written.
namespace gpucholmod::test {
namespace {

TEST_F(File, OrderComesFromTheSize) {
  for (const index_t n : {1, 2, 3, 31, 100}) {
    write(at("R"), counted(n));
    EXPECT_EQ(FactorFile(at("R")).order(), n);
  }
  // Sparse files, as large as the file system allows: 8 n^2 bytes, and one byte or one double more or less.
  for (const index_t n : {46341, 100003, 300007}) {
    const auto size = std::uintmax_t(8 * n * n);
    fs::resize_file(at("R"), size);
    EXPECT_EQ(FactorFile(at("R")).order(), n);
    for (const std::intmax_t more : {-8, -1, 1, 8}) {
      fs::resize_file(at("R"), size + std::uintmax_t(more));
      const auto error = error_of([&] { FactorFile file(at("R")); });
      ASSERT_TRUE(error);
      EXPECT_EQ(error->code(), ErrorCode::bad_file);
      EXPECT_EQ(text(*error, "reason"), "wrong_size");
      EXPECT_EQ(number(*error, "size"), double(size) + double(more));
    }
  }
}

TEST_F(File, RefusesToReadWhatIsNotAFactor) {
  EXPECT_EQ(reason_to_read(at("absent")), "missing");
  EXPECT_EQ(reason_to_read(at("")), "not_a_file");
  EXPECT_EQ(reason_to_read("/dev/null"), "not_a_file");
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  EXPECT_EQ(reason_to_read(at("fifo")), "not_a_file");
  write(at("R"), Numbers(3));
  EXPECT_EQ(reason_to_read(at("R")), "wrong_size");
  EXPECT_EQ(reason_to_read(at("R/below")), "missing");
  fs::create_symlink("nothing", at("link"));
  EXPECT_EQ(reason_to_read(at("link")), "missing");
  fs::create_symlink("loop", at("loop"));
  EXPECT_EQ(reason_to_read(at("loop")), "failed");
  EXPECT_NE(text(*error_of([&] { FactorFile file(at("loop")); }), "error"), "");
}

TEST_F(File, RefusesToReadWithoutPermission) {
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write(at("R"), counted(2));
  fs::permissions(at("R"), fs::perms::none);
  EXPECT_EQ(reason_to_read(at("R")), "not_readable");
}

TEST_F(File, ReadsPiecesOfColumns) {
  constexpr index_t n = 37;
  const Numbers all = counted(n);
  write(at("R"), all);
  const FactorFile file(at("R"));
  Numbers scratch(n + 1, -1);
  for (index_t j = 0; j < n; ++j)
    for (const auto& [first, last] : {std::pair<index_t, index_t>(0, j + 1), {0, n}, {n - 1, n}, {5, 5}, {n, n}}) {
      scratch[std::size_t(last - first)] = -1;
      const double* x = file.column(j, first, last, scratch.data());
      EXPECT_TRUE(std::equal(x, x + (last - first), &all[0] + j * n + first));
      EXPECT_EQ(scratch[std::size_t(last - first)], -1) << "written past the end";
    }
  file.require_unchanged();
}

TEST_F(File, AFileThatBecomesShorterIsAnError) {
  write(at("R"), counted(10));
  const FactorFile file(at("R"));
  Numbers scratch(10);
  fs::resize_file(at("R"), 8 * 25 + 3);
  file.column(1, 0, 10, scratch.data());
  for (const index_t j : {2, 3, 9})
    EXPECT_EQ(reason_of([&] { file.column(j, 0, 10, scratch.data()); }, at("R")), "changed") << j;
  EXPECT_EQ(reason_of([&] { file.require_unchanged(); }, at("R")), "changed");
}

TEST_F(File, AFileThatIsWrittenToIsNoticed) {
  write(at("R"), counted(10));
  fs::last_write_time(at("R"), fs::file_time_type::clock::now() - std::chrono::hours(1));
  const FactorFile file(at("R"));
  file.require_unchanged();
  fs::permissions(at("R"), fs::perms::owner_read);
  fs::create_hard_link(at("R"), at("other"));
  file.require_unchanged();
  fs::permissions(at("R"), fs::perms::owner_all);
  write(at("R"), counted(10));
  EXPECT_EQ(reason_of([&] { file.require_unchanged(); }, at("R")), "changed");
}

TEST_F(File, AFileThatIsReplacedIsStillTheOneOpened) {
  write(at("R"), counted(10));
  const FactorFile file(at("R"));
  write(at("new"), Numbers(4));
  fs::rename(at("new"), at("R"));
  double x;
  EXPECT_EQ(*file.column(9, 9, 10, &x), 100);
  file.require_unchanged();
}

TEST_F(File, ThreadsReadAndWriteAtOnce) {
  constexpr index_t n = 211;
  const Numbers all = counted(n);
  write(at("R"), all);
  {
    const FactorFile in(at("R"));
    OutputFile out(at("out"), n, false, &in);
    std::atomic<index_t> next{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 8; ++t)
      threads.emplace_back([&] {
        Numbers scratch(n);
        for (index_t j = next++; j < n; j = next++) {
          out.clear(j, j + 1, n);
          for (index_t first = 0; first <= j; first += 64) {
            const index_t last = std::min(first + 64, j + 1);
            out.put(j, first, last, in.column(j, first, last, scratch.data()));
          }
        }
      });
    for (std::thread& t : threads) t.join();
    out.commit();
  }
  const Numbers written = read(at("out"));
  ASSERT_EQ(written.size(), all.size());
  for (index_t j = 0; j < n; ++j)
    for (index_t i = 0; i < n; ++i) ASSERT_EQ(written[j * n + i], i <= j ? all[j * n + i] : 0) << i << ", " << j;
}

}  // namespace
}  // namespace gpucholmod::test
