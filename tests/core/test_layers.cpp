#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <string>

/// inst/design/architecture.md: glue -> modify -> backends -> base. Every #include of src/ stays in its folder or points
/// down.
namespace gpucholmod::test {
namespace {

namespace fs = std::filesystem;

const fs::path source = fs::path(__FILE__).parent_path() / "../../src";

const std::map<std::string, int> layers = {{"base", 0},  {"cpu", 1},    {"block_columns", 1}, {"paper", 2},
                                           {"stream", 2}, {"mpi", 2},  {"mpi_absent", 2}, {"cuda", 3},  {"cuda_absent", 3},   {"modify", 4}, {"c", 5}};
constexpr int glue = 6;

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
  if (folder_of(from) == "mpi_absent") return to == "mpi/backend.h";  // what it stands in for
  return folder_of(from) == "cuda_absent" &&
         (to == "cuda/backend.h" || to == "cuda/device_factor.h" || to == "cuda/device_batch.h");
}

/// What a line includes, with the quote or bracket before it; empty where it includes nothing.
std::string included(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const std::size_t open = line.find_first_of("\"<", word), close = line.find_first_of("\">", open + 1);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open, close - open);
}

TEST(Layers, NoIncludePointsUp) {
  int files = 0, seen = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    const std::string from = fs::relative(entry.path(), source).generic_string();
    ++files;
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const std::string found = included(line);
      if (found.empty()) continue;
      const std::string to = found.substr(1);
      ++seen;
      if (to == "../inst/include/gpucholmod.h") continue;  // which Rcpp includes of itself
      if (found[0] == '"') {
        EXPECT_TRUE(may_include(from, to)) << from << " includes " << to;
        EXPECT_TRUE(to == "cuda_build.h" || fs::exists(source / to)) << from << " includes " << to;
      } else if (layer_of(from) != glue) {
        for (const char* const of_R : {"R.h", "R/", "R_ext/", "Rcpp", "Rinternals"})
          EXPECT_NE(to.rfind(of_R, 0), 0u) << from << " includes " << to;
      }
    }
  }
  EXPECT_GT(files, 60);
  EXPECT_GT(seen, 200);
}

}  // namespace
}  // namespace gpucholmod::test
