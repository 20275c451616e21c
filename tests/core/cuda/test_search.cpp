#include <gtest/gtest.h>

#include "../search/on_card.h"

/// A short search on a GPU; `make search-cuda` runs longer ones.
namespace gpucholmod::test {
namespace {

TEST(Search, FindsNoLargeErrorOnAGpu) {
  OnACard subject;
  const Searched found = search(subject, 1, 1000, 200);
  EXPECT_TRUE(found.found.empty()) << found.text();
  EXPECT_GT(found.worst, 0.1);
}

}  // namespace
}  // namespace gpucholmod::test
