#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "call.h"
#include "base/file.h"

/// Files that tests read and write, in a folder of their own.
namespace gpucholmod::test {

namespace fs = std::filesystem;
using Numbers = std::vector<double>;

/// Makes a folder for each test, and removes it afterwards.
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

inline void write(const std::string& path, const Numbers& x) {
  std::ofstream(path, std::ios::binary).write(reinterpret_cast<const char*>(x.data()), long(8 * x.size()));
}

inline Numbers read(const std::string& path) {
  Numbers x(fs::file_size(path) / 8);
  std::ifstream(path, std::ios::binary).read(reinterpret_cast<char*>(x.data()), long(8 * x.size()));
  return x;
}

/// Returns n x n numbers: 1, 2, ...
inline Numbers counted(index_t n) {
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

inline std::string reason_to_read(const std::string& path) {
  return reason_of([&] { FactorFile file(path); }, path);
}
inline std::string reason_to_write(const std::string& path, bool replace, const FactorFile* input = nullptr) {
  return reason_of([&] { OutputFile file(path, 2, replace, input); }, path);
}

}  // namespace gpucholmod::test
