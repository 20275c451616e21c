#include "file_folder.h"

#include <fcntl.h>
#include <sys/resource.h>

#include <csignal>
#include <memory>

/// Files that appear when they are complete, and errors that keep them from appearing.
namespace gpucholmod::test {
namespace {

mode_t mode(const std::string& path) {
  struct stat s;
  EXPECT_EQ(stat(path.c_str(), &s), 0);
  return s.st_mode & 0777;
}

/// A limit of the size of files: while it lives, writes beyond `bytes` of a file are errors.
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

TEST_F(File, AnEmptyFileIsNoFactor) {
  EXPECT_EQ(reason_of([&] { OutputFile out(at("out"), 0, false); }, at("out")), "wrong_size");
  EXPECT_EQ(names(), Names{});
  write(at("empty"), {});
  EXPECT_EQ(reason_to_read(at("empty")), "wrong_size");
}

TEST_F(File, WhatKilledProcessesLeftIsDeletedAndNothingElse) {
  const Names others{"out",  "out.1aB2c.part", "out.1aB2c33.part", "out.1aB2c3.part~", "out.1a-2c3.part",
                     "out2.1aB2c3.part", "xout.1aB2c3.part"};
  for (const std::string& name : others) write(at(name), counted(1));
  write(at("out.1aB2c3.part"), counted(1));
  write(at("out.XXXXXX.part"), {});
  fs::create_directory(at("out.folder.part"));
  fs::create_symlink(at("out"), at("out.linked.part"));
  const std::size_t kept = others.size() + 2;
  OutputFile one(at("out"), 1, true);
  EXPECT_EQ(names().size(), kept + 1);
  OutputFile two(at("out"), 1, true);  // a second file, while the owner of the first lives
  EXPECT_EQ(names().size(), kept + 2);
  const double x = 5;
  one.put(0, 0, 1, &x);
  one.commit();
  EXPECT_EQ(read(at("out")), Numbers{5});
  two.put(0, 0, 1, &x);
  two.commit();
  EXPECT_EQ(names().size(), kept);
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(at(name))) << name;
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

TEST_F(File, ReplacesItsInputOnlyWhereAsked) {
  write(at("R"), counted(2));
  fs::create_symlink("R", at("link"));
  fs::create_hard_link(at("R"), at("hard"));
  const FactorFile in(at("R"));
  for (const char* name : {"R", "link", "hard"}) EXPECT_EQ(reason_to_write(at(name), false, &in), "same_file");
  EXPECT_EQ(names(), (Names{"R", "hard", "link"}));
  EXPECT_EQ(read(at("R")), counted(2));
  EXPECT_EQ(reason_to_write(at("out"), false, &in), "");
  EXPECT_EQ(reason_to_write(at("R"), true, &in), "");
  double first;
  EXPECT_EQ(*in.column(0, 0, 1, &first), counted(2)[0]);
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
  EXPECT_EQ(ours, 3);  // the input, and the output twice: once as its lock
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
