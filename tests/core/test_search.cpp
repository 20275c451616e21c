#include <gtest/gtest.h>

#include "grid_call.h"
#include "search/on_grid.h"

/// A short search for modifications with a large backward error, on the simulated grid; `make search` makes longer
/// ones.
namespace gpucholmod::test {
namespace {

TEST(Search, FindsNoLargeErrorOnTheGrid) {
  OnTheGrid subject;
  const Searched found = search(subject, 1, 1000, sanitized ? 8 : 100);
  EXPECT_TRUE(found.found.empty()) << found.text();
  EXPECT_GT(found.worst, 0.1);
}

}  // namespace
}  // namespace gpucholmod::test
