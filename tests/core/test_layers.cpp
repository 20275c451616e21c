#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <string>

/// inst/design/architecture.md: glue -> modify -> backends -> base. Every #include of src/ stays in its folder or points
/// down.
namespace gpucholmod::test {
namespace {

namespace fs = std::filesystem;

const fs::path source = fs::path(__FILE__).parent_path() / "../../src";

const std::map<std::string, int> layers = {{"base", 0},  {"cpu", 1},    {"block_columns", 1}, {"paper", 2},
                                           {"stream", 2}, {"cuda", 3}, {"cuda_absent", 3},   {"modify", 4}};
constexpr int glue = 5;

/// The layer of a file by its path in src/; what lies in src/ itself is glue, but for what configure writes.
int layer_of(const std::string& path) {
  const std::size_t slash = path.find('/');
  if (slash == std::string::npos) return path == "cuda_build.h" ? 0 : glue;
  const auto found = layers.find(path.substr(0, slash));
  EXPECT_NE(found, layers.end()) << path << " is in a folder that no layer is named for";
  return found == layers.end() ? -1 : found->second;
}
std::string folder_of(const std::string& path) { return path.substr(0, path.find('/')); }

bool may_include(const std::string& from, const std::string& to) {
  if (layer_of(to) < layer_of(from)) return true;
  if (layer_of(from) == glue || folder_of(from) == folder_of(to)) return true;
  return folder_of(from) == "cuda_absent" && (to == "cuda/backend.h" || to == "cuda/device_factor.h");  // what it stands in for
}

TEST(Layers, NoIncludePointsUp) {
  const std::regex include("^\\s*#\\s*include\\s*([\"<])([^\">]+)[\">]");
  int files = 0, seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    const std::string from = fs::relative(entry.path(), source).generic_string();
    ++files;
    std::ifstream in(entry.path());
    std::smatch match;
    for (std::string line; std::getline(in, line);) {
      if (!std::regex_search(line, match, include)) continue;
      const std::string to = match[2];
      ++seen;
      if (match[1] == "\"") {
        EXPECT_TRUE(may_include(from, to)) << from << " includes " << to;
        EXPECT_TRUE(to == "cuda_build.h" || fs::exists(source / to)) << from << " includes " << to;
      } else if (layer_of(from) != glue) {
        EXPECT_FALSE(std::regex_search(to, std::regex("^(R|Rcpp|Rinternals)(\\.h|/)"))) << from << " includes " << to;
      }
    }
  }
  EXPECT_GT(files, 60);
  EXPECT_GT(seen, 200);
}

}  // namespace
}  // namespace gpucholmod::test
