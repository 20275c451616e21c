// What the first touch of fresh memory costs, in ordinary and in huge pages (Linux).
//
//   g++ -std=c++17 -O2 first_touch.cpp -o first_touch && ./first_touch
#include <sys/mman.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <initializer_list>

int main() {
  const std::size_t bytes = std::size_t(200) << 20;
  for (int repeat = 0; repeat < 3; ++repeat)
    for (const bool huge : {false, true}) {
      void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (memory == MAP_FAILED || madvise(memory, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE) != 0) return 1;
      const auto start = std::chrono::steady_clock::now();
      std::memset(memory, 1, bytes);
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      std::printf("%s pages: 200 MiB in %6.1f ms, %5.2f GB/s\n", huge ? "huge    " : "ordinary", 1e3 * seconds,
                  double(bytes) / seconds / 1e9);
      munmap(memory, bytes);
    }
}
