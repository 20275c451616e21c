#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>

/// The folders of src/ and the folders that they know: inst/design/architecture.md.
namespace gpucholmod::test {
namespace {

namespace fs = std::filesystem;

const fs::path source = fs::path(__FILE__).parent_path() / "../../src";

/// The folders whose files a folder may include, besides its own. Files in src/ itself belong to the glue.
const std::map<std::string, std::set<std::string>> neighbours = {
    {"base", {}},
    {"block_columns", {"base"}},
    {"cpu", {"base"}},
    {"paper", {"base", "cpu"}},
    {"stream", {"base", "block_columns", "cpu"}},
    {"mpi", {"base", "block_columns", "cpu"}},
    {"cuda", {"base", "block_columns", "cpu", "paper", "stream"}},
    {"mpi_cuda", {"base", "cuda", "mpi"}},
    {"modify", {"base", "block_columns", "cpu", "cuda", "paper", "stream"}},
    {"regression", {"base", "cpu", "modify"}},
    {"c", {"base", "cpu", "cuda", "modify"}},
    {"glue", {"base", "cpu", "cuda", "modify", "mpi", "mpi_cuda", "regression"}},
    {"mpi_absent", {"base", "mpi"}},
    {"mpi_cuda_absent", {"base", "cuda", "mpi_cuda"}},
    {"cuda_absent", {"base", "cuda", "paper", "stream"}}};

/// The headers outside base that the stand-in for a folder may include.
const std::map<std::string, std::set<std::string>> interfaces = {
    {"mpi_absent", {"mpi/backend.h"}},
    {"mpi_cuda_absent", {"mpi_cuda/backend.h", "cuda/backend.h"}},
    {"cuda_absent", {"cuda/backend.h", "cuda/callers_memory.h", "cuda/device_batch.h", "cuda/device_factor.h",
                     "paper/shape.h", "stream/device.h"}}};

/// Returns the folder of a file by its path in src/. The header that configure writes belongs to base.
std::string folder_of(const std::string& path) {
  if (path == "cuda_build.h") return "base";
  const std::size_t slash = path.find('/');
  return slash == std::string::npos ? "glue" : path.substr(0, slash);
}

/// Returns the path that a line includes, with the quote or bracket before it, or "" if the line includes nothing.
std::string included(const std::string& line) {
  const std::size_t hash = line.find_first_not_of(" \t");
  if (hash == std::string::npos || line[hash] != '#') return "";
  const std::size_t word = line.find_first_not_of(" \t", hash + 1);
  if (word == std::string::npos || line.compare(word, 7, "include") != 0) return "";
  const std::size_t open = line.find_first_of("\"<", word), close = line.find_first_of("\">", open + 1);
  return open == std::string::npos || close == std::string::npos ? "" : line.substr(open, close - open);
}

TEST(Layers, FoldersKnowTheirNeighboursAlone) {
  std::set<std::pair<std::string, std::string>> known;
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(source)) {
    const std::string extension = entry.path().extension().string();
    if (extension != ".h" && extension != ".cpp" && extension != ".cu" && extension != ".cuh") continue;
    const std::string from = fs::relative(entry.path(), source).generic_string(), folder = folder_of(from);
    ++files;
    ASSERT_EQ(neighbours.count(folder), 1u) << folder << " is not among the folders whose neighbours are known";
    std::ifstream in(entry.path());
    for (std::string line; std::getline(in, line);) {
      const std::string found = included(line);
      if (found.empty()) continue;
      const std::string to = found.substr(1);
      if (to == "../inst/include/gpucholmod.h") continue;  // an #include that Rcpp writes by itself
      if (found[0] == '"') {
        EXPECT_TRUE(to == "cuda_build.h" || fs::exists(source / to)) << from << " includes " << to;
        if (folder_of(to) == folder) continue;
        EXPECT_TRUE(neighbours.at(folder).count(folder_of(to))) << from << " includes " << to;
        known.emplace(folder, folder_of(to));
        if (interfaces.count(folder) && folder_of(to) != "base") {
          EXPECT_TRUE(interfaces.at(folder).count(to)) << from << " includes " << to;
        }
      } else if (folder != "glue") {
        for (const char* const of_R : {"R.h", "R/", "R_ext/", "Rcpp", "Rinternals"})
          EXPECT_NE(to.rfind(of_R, 0), 0u) << from << " includes " << to;
      }
    }
  }
  EXPECT_GT(files, 60);
  for (const auto& [from, all] : neighbours)
    for (const std::string& to : all)
      EXPECT_EQ(known.count({from, to}), 1u) << from << " no longer includes anything of " << to;
}

}  // namespace
}  // namespace gpucholmod::test
