#include "cpu/host_batch.h"

#include <algorithm>
#include <utility>

#include "base/clock.h"
#include "base/sizes.h"
#include "cpu/held_groups.h"

namespace gpucholmod::cpu {
namespace {

template <class T>
std::unique_ptr<HeldBatch> made_of(const double* R, index_t n, index_t b, Uplo uplo, const BatchRoom& room,
                                   const Allocate& allocate) {
  auto made = std::make_unique<HostBatch<T>>(n, std::max(n, room.capacity), b, allocate);
  made->load(R, uplo, room.orders);
  return made;
}

/// Prefetches `count` entries of a member that is packed soon: processors do not detect such short streams.
void prefetch(const ScatteredBatch::Member& member, index_t count) {
  constexpr index_t line = 64 / sizeof(double);
  for (index_t i = 0; i < count; i += line) {
    __builtin_prefetch(member.R + i);
    __builtin_prefetch(member.out + i, 1);
  }
}

/// Packs each group in memory that stays in the cache, modifies the group, and unpacks it.
template <class T>
Work modify_in_groups(const ScatteredBatch& batch, const BatchTask& task, std::vector<index_t>& pivots,
                      const Poll& poll) {
  constexpr index_t lanes = group_size<T>;
  const Clock clock;
  const index_t n = batch.n, b = index_t(batch.members.size()), words = group_words<T>(n);
  BatchModification<T> run(n, b, task, [&](index_t m) { return batch.members[m].V; },
                           [&](index_t m) { return batch.members[m].sides; }, pivots);
  WorkMemory<T> members_memory;
  std::vector<Range> ranges(b);
  const auto load = [&](index_t g, T* R) {
    Lanes<T, const double*> members{};
    for (index_t l = 0; l < std::min(lanes, b - g * lanes); ++l) members[l] = batch.members[g * lanes + l].R;
    load_group<T>(members, n, batch.uplo, g * lanes, R, ranges.data() + g * lanes);
    run.prepare(g, ranges, R);
  };
  const auto modify = [&](index_t g, T* R, T* work) {
    T* const made = R + words;
    if (n * n <= tuning::batch_prefetch)
      for (index_t m = (g + 1) * lanes; m < std::min(b, (g + 2) * lanes); ++m) prefetch(batch.members[m], n * n);
    load(g, R);
    run.modify(g, R, made, work);
    Lanes<T, double*> members{};
    for (index_t l = 0; l < std::min(lanes, b - g * lanes); ++l) members[l] = batch.members[g * lanes + l].out;
    for (index_t l = 0; l < lanes; ++l)
      if (members[l] && run.failed(g * lanes + l))
        copy_triangle(batch.members[g * lanes + l].R, n, batch.uplo, std::exchange(members[l], nullptr));
    scatter<T>(made, n, batch.uplo, members);
  };
  try {
    for_ranges(run.groups(), run.threads(), poll, [&](index_t first, index_t last) {
      typename WorkMemory<T>::Lease both(members_memory, 2 * words);
      auto work = run.work_memory();
      for (index_t g = first; g < last; ++g) modify(g, both.data(), work.data());
    });
  } catch (const Error&) {  // throws the error of the first member that has one
    typename WorkMemory<T>::Lease one(members_memory, words);
    for (index_t g = 0; g < run.groups() && run.threads() > 1; ++g) load(g, one.data());
    throw;
  }
  Work work;
  work.seconds = clock.seconds();
  return work;
}

}  // namespace

void copy_triangle(const double* R, index_t n, Uplo uplo, double* out) {
  std::fill(out, out + n * n, 0.0);
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, uplo);
    std::copy(R + j * n + first, R + j * n + last, out + j * n + first);
  }
}

std::unique_ptr<HeldBatch> hold_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                      const Allocate& allocate, const BatchRoom& room) {
  const index_t most = std::max(n, room.capacity);
  bytes_of(most, most, 64);  // throws if a group of such members cannot exist, even if the batch has no members
  return precision == Precision::single ? made_of<float>(R, n, b, uplo, room, allocate)
                                        : made_of<double>(R, n, b, uplo, room, allocate);
}

Work modify_scattered(const ScatteredBatch& batch, const BatchTask& asked, std::vector<index_t>& pivots,
                      const Poll& poll) {
  const BatchTask task = resolved(asked);
  return batch.precision == Precision::single ? modify_in_groups<float>(batch, task, pivots, poll)
                                              : modify_in_groups<double>(batch, task, pivots, poll);
}

}  // namespace gpucholmod::cpu
