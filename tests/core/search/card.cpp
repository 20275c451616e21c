#include <cstdio>
#include <cstdlib>

#include "on_card.h"

/// Searches on a GPU:   search_card [operations] [seed of the first sequence]
int main(int argc, char** argv) {
  using namespace gpucholmod::test;
  const long operations = argc > 1 ? std::atol(argv[1]) : 20000;
  const unsigned first = argc > 2 ? unsigned(std::atol(argv[2])) : 1;
  OnACard subject;
  const Searched found = search(subject, first, first + unsigned(operations) + 1, operations);
  std::printf("%s", found.text().c_str());
  return found.found.empty() ? 0 : 1;
}
