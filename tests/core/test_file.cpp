#include "core/file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>
#include <vector>

#include "call.h"

namespace gpucholmod::test {
namespace {

namespace fs = std::filesystem;
using Numbers = std::vector<double>;

/// A folder of its own for each test.
class File : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "gpucholmod.XXXXXX").string();
    ASSERT_NE(mkdtemp(&name[0]), nullptr);
    folder = name;
  }
  void TearDown() override { fs::remove_all(folder); }

  std::string at(const std::string& name) const { return (folder / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder)) found.push_back(entry.path().filename().string());
    std::sort(found.begin(), found.end());
    return found;
  }

  fs::path folder;
};

using Names = std::vector<std::string>;

void write(const std::string& path, const Numbers& x) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(x.data()), long(8 * x.size()));
}

Numbers read(const std::string& path) {
  Numbers x(fs::file_size(path) / 8);
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(x.data()), long(8 * x.size()));
  return x;
}

/// 1, 2, ...
Numbers counted(index_t n) {
  Numbers x(static_cast<std::size_t>(n * n));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = double(i + 1);
  return x;
}

template <class F>
std::string reason_of(F&& f, const std::string& path) {
  const auto error = error_of(f);
  if (!error) return "";
  EXPECT_EQ(error->code(), ErrorCode::bad_file);
  EXPECT_EQ(text(*error, "path"), path);
  return text(*error, "reason");
}

std::string reason_to_read(const std::string& path) {
  return reason_of([&] { FactorFile file(path); }, path);
}
std::string reason_to_write(const std::string& path, bool replace, const FactorFile* input = nullptr) {
  return reason_of([&] { OutputFile file(path, 2, replace, input); }, path);
}

mode_t mode(const std::string& path) {
  struct stat s;
  EXPECT_EQ(stat(path.c_str(), &s), 0);
  return s.st_mode & 0777;
}

/// Writes beyond `bytes` of a file are errors while this lives.
class SizeLimit {
 public:
  explicit SizeLimit(rlim_t bytes) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &lower);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~SizeLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_;
  void (*handler_)(int);
};

TEST_F(File, OrderComesFromTheSize) {
  for (const index_t n : {0, 1, 2, 3, 31, 100}) {
    write(at("R"), counted(n));
    EXPECT_EQ(FactorFile(at("R")).order(), n);
  }
  // Sparse, as large as the file system has them: 8 n^2 and one byte or one double to either side.
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

TEST_F(File, TheOutputAppearsWhenItIsComplete) {
  const double x = 7;
  {
    OutputFile out(at("out"), 3, false);
    EXPECT_FALSE(fs::exists(at("out")));
    ASSERT_EQ(names().size(), 1u);
    const std::string part = names()[0];
    EXPECT_EQ(part.substr(0, 4), "out.");
    EXPECT_EQ(part.substr(part.size() - 5), ".part");
    out.put(1, 2, 3, &x);
    EXPECT_FALSE(fs::exists(at("out")));
    out.commit();
    EXPECT_EQ(names(), Names{"out"});
  }
  EXPECT_EQ(names(), Names{"out"});
  EXPECT_EQ(read(at("out")), (Numbers{0, 0, 0, 0, 0, 7, 0, 0, 0}));
}

TEST_F(File, OrderZeroIsAnEmptyFile) {
  OutputFile out(at("out"), 0, false);
  out.commit();
  EXPECT_EQ(fs::file_size(at("out")), 0u);
  EXPECT_EQ(FactorFile(at("out")).order(), 0);
}

TEST_F(File, NothingIsLeftWithoutCommit) {
  write(at("there"), counted(2));
  for (const char* name : {"out", "there"}) {
    OutputFile out(at(name), 100, true);
    out.put(0, 0, 1, std::make_unique<double>(1).get());
    EXPECT_EQ(names().size(), 2u);
  }
  EXPECT_EQ(names(), Names{"there"});
  EXPECT_EQ(read(at("there")), counted(2));
}

TEST_F(File, TwoMayWriteToOneNameAndTheFirstHasIt) {
  OutputFile one(at("out"), 1, false), two(at("out"), 1, false);
  const double x[] = {1, 2};
  one.put(0, 0, 1, &x[0]);
  two.put(0, 0, 1, &x[1]);
  one.commit();
  EXPECT_EQ(reason_of([&] { two.commit(); }, at("out")), "exists");
  EXPECT_EQ(read(at("out")), Numbers{1});
}

TEST_F(File, ReplacesOnlyWhenAsked) {
  write(at("out"), counted(2));
  EXPECT_EQ(reason_to_write(at("out"), false), "exists");
  EXPECT_EQ(names(), Names{"out"});
  EXPECT_EQ(read(at("out")), counted(2));
  OutputFile out(at("out"), 1, true);
  EXPECT_EQ(read(at("out")), counted(2));
  out.commit();
  EXPECT_EQ(read(at("out")), Numbers{0});
}

TEST_F(File, RefusesToReplaceWhatIsNotAWritableFile) {
  fs::create_directory(at("folder"));
  write(at("locked"), counted(2));
  fs::permissions(at("locked"), fs::perms::owner_read | fs::perms::group_read);
  fs::create_symlink("locked", at("link"));
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  const Names before = names();
  for (const bool replace : {false, true}) {
    EXPECT_EQ(reason_to_write(at("folder"), replace), "not_a_file");
    EXPECT_EQ(reason_to_write(at("fifo"), replace), "not_a_file");
    EXPECT_EQ(reason_to_write("/dev/null", replace), "not_a_file");
    EXPECT_EQ(reason_to_write(at("absent/out"), replace), "missing");
    EXPECT_EQ(reason_to_write(at("locked/out"), replace), "missing");
  }
  EXPECT_EQ(reason_to_write(at("locked"), true), "read_only");
  EXPECT_EQ(reason_to_write(at("link"), true), "read_only");
  EXPECT_EQ(names(), before);
  EXPECT_EQ(read(at("locked")), counted(2));
}

TEST_F(File, RefusesAFolderThatMayNotBeWrittenTo) {
  if (geteuid() == 0) GTEST_SKIP() << "root may write everywhere";
  fs::permissions(folder, fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_EQ(reason_to_write(at("out"), false), "not_writable");
  fs::permissions(folder, fs::perms::owner_all);
}

TEST_F(File, RefusesToReplaceItsInput) {
  write(at("R"), counted(2));
  fs::create_symlink("R", at("link"));
  fs::create_hard_link(at("R"), at("hard"));
  const FactorFile in(at("R"));
  for (const bool replace : {false, true})
    for (const char* name : {"R", "link", "hard"}) EXPECT_EQ(reason_to_write(at(name), replace, &in), "same_file");
  EXPECT_EQ(names(), (Names{"R", "hard", "link"}));
  EXPECT_EQ(read(at("R")), counted(2));
  EXPECT_EQ(reason_to_write(at("out"), false, &in), "");
}

TEST_F(File, ALinkIsReplacedAndNotWhatItPointsTo) {
  write(at("R"), counted(2));
  fs::create_symlink("R", at("link"));
  fs::create_symlink("nothing", at("dangling"));
  for (const char* name : {"link", "dangling"}) {
    EXPECT_EQ(reason_to_write(at(name), false), "exists");
    OutputFile out(at(name), 1, true);
    out.commit();
    EXPECT_FALSE(fs::is_symlink(at(name)));
    EXPECT_EQ(read(at(name)), Numbers{0});
  }
  EXPECT_EQ(read(at("R")), counted(2));
  EXPECT_EQ(names(), (Names{"R", "dangling", "link"}));
}

TEST_F(File, PermissionsAreThoseOfTheUmaskOrOfTheReplacedFile) {
  const mode_t before = umask(027);
  OutputFile(at("out"), 1, false).commit();
  EXPECT_EQ(mode(at("out")), 0640u);
  fs::permissions(at("out"), fs::perms(0604));
  OutputFile(at("out"), 1, true).commit();
  EXPECT_EQ(mode(at("out")), 0604u);
  EXPECT_EQ(umask(before), 027u);
}

TEST_F(File, AFullDiskIsAnError) {
  write(at("there"), counted(2));
  {
    const SizeLimit limit(8 * 100);
    EXPECT_EQ(reason_to_write(at("out"), false), "");
    EXPECT_EQ(reason_of([&] { OutputFile out(at("out"), 11, false); }, at("out")), "no_space");
  }
  EXPECT_EQ(names(), Names{"there"});
  {
    OutputFile out(at("there"), 11, true);
    const Numbers x(11, 1);
    const SizeLimit limit(8 * 100);
    out.put(0, 0, 11, x.data());
    EXPECT_EQ(reason_of([&] { out.put(10, 0, 11, x.data()); }, at("there")), "no_space");
  }
  EXPECT_EQ(names(), Names{"there"});
  EXPECT_EQ(read(at("there")), counted(2));
}

TEST_F(File, AProgramStartedMeanwhileDoesNotHaveTheFiles) {
  write(at("R"), counted(1));
  const FactorFile in(at("R"));
  OutputFile out(at("out"), 1, false);
  int ours = 0;
  for (int fd = 3; fd < 256; ++fd) {
    struct stat s;
    if (fstat(fd, &s) != 0 || !S_ISREG(s.st_mode) || s.st_size != 8) continue;
    ++ours;
    EXPECT_TRUE(fcntl(fd, F_GETFD) & FD_CLOEXEC);
  }
  EXPECT_EQ(ours, 2);
}

TEST_F(File, NoDescriptorIsLeftOpen) {
  const auto next = [] {
    const int fd = dup(0);
    close(fd);
    return fd;
  };
  const int before = next();
  write(at("R"), counted(2));
  write(at("short"), Numbers(3));
  reason_to_read(at("short"));
  reason_to_read(at(""));
  FactorFile(at("R")).require_unchanged();
  OutputFile(at("out"), 2, false).commit();
  reason_to_write(at("out"), true);
  EXPECT_EQ(next(), before);
}

}  // namespace
}  // namespace gpucholmod::test
