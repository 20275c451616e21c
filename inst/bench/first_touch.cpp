// Times several threads that write to fresh memory for the first time, in ordinary and in huge pages. An R call that
// returns a large matrix waits for that, unless it takes care.
//
//   g++ -O2 -pthread first_touch.cpp -o first_touch && ./first_touch [MiB, 2048 by default]
#include <sys/mman.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

int main(int argc, char** argv) {
  const std::size_t bytes = std::size_t(argc > 1 ? std::atoi(argv[1]) : 2048) << 20, huge_page = std::size_t(2) << 20;
  for (int repeat = 0; repeat < 2; ++repeat)
    for (const int threads : {1, 4, 8, 15})
      for (const bool huge : {false, true}) {
        void* const base = mmap(nullptr, bytes + huge_page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (base == MAP_FAILED) return 1;
        char* const data = reinterpret_cast<char*>((std::uintptr_t(base) + huge_page - 1) / huge_page * huge_page);
        madvise(data, bytes, huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
        const auto start = std::chrono::steady_clock::now();
        std::vector<std::thread> team;
        for (int t = 0; t < threads; ++t)
          team.emplace_back([=] {
            const std::size_t share = bytes / threads;
            std::memset(data + t * share, 1, share);
          });
        for (std::thread& thread : team) thread.join();
        const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
        std::printf("%2d threads, %s pages: %6.1f ms, %5.1f GB/s\n", threads, huge ? "huge    " : "ordinary",
                    1e3 * time.count(), bytes / time.count() / 1e9);
        munmap(base, bytes + huge_page);
      }
}
