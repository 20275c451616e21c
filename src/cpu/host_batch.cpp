#include "cpu/host_batch.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>
#include <utility>

#include "base/check_column.h"
#include "base/clock.h"
#include "base/huge_pages.h"
#include "base/sizes.h"
#include "base/threads.h"
#include "base/turned.h"
#include "cpu/batch_modification.h"
#include "cpu/kernels.h"

namespace gpucholmod::cpu {
namespace {

/// `task` with what is automatic resolved.
BatchTask resolved(BatchTask task) {
  task.instructions = resolve(task.instructions);
  return task;
}

/// Groups that a thread takes at once: some 16 times for each.
index_t at_once(index_t groups, int threads) { return std::max<index_t>(1, groups / (16 * threads)); }

/// f(first, last) for all groups, some at once.
void for_ranges(index_t groups, int threads, const Poll& poll, const std::function<void(index_t, index_t)>& f) {
  std::atomic<index_t> done{0};
  for_columns(groups, threads, [&](index_t first, index_t last) {
    f(first, last);
    done += last - first;
  }, [&] { poll(double(done) / double(groups)); }, at_once(groups, threads));
}

/// f(g) for each group.
void for_groups(index_t groups, int threads, const Poll& poll, const std::function<void(index_t)>& f) {
  for_ranges(groups, threads, poll, [&](index_t first, index_t last) {
    for (index_t g = first; g < last; ++g) f(g);
  });
}

/// f(g, work) for each group, in memory that `run` works in.
template <class T>
void for_groups(BatchModification<T>& run, const Poll& poll, const std::function<void(index_t, T*)>& f) {
  for_ranges(run.groups(), run.threads(), poll, [&](index_t first, index_t last) {
    auto work = run.work_memory();
    for (index_t g = first; g < last; ++g) f(g, work.data());
  });
}

/// The same of f that may throw, and may be called again: the error of the first group.
void check_groups(index_t groups, int threads, const Poll& poll, const std::function<void(index_t)>& f) {
  try {
    for_groups(groups, threads, poll, f);
  } catch (const Error&) {
    for (index_t g = 0; g < groups && threads > 1; ++g) f(g);
    throw;
  }
}

/// Returns the smallest entry of each diagonal of a group.
template <class T>
Lanes<T, T> least_of_group(index_t n, const T* group) {
  Lanes<T, T> least;
  least.fill(std::numeric_limits<T>::infinity());
  for (index_t j = 0; j < n; ++j) {
    const T* const entries = group + group_entry<T>(n, j, j);
    for (index_t l = 0; l < group_size<T>; ++l) least[l] = entries[l] < least[l] ? entries[l] : least[l];
  }
  return least;
}

/// Turns the rows of a group whose diagonal entry is negative (base/turned.h).
template <class T>
void turn_group(index_t n, T* group) {
  for (index_t i = 0; i < n; ++i) {
    T* const row = group + group_entry<T>(n, i, i);
    Lanes<T, bool> turns;
    for (index_t l = 0; l < group_size<T>; ++l) turns[l] = row[l] < 0;
    for (index_t at = 0; at < (n - i) * group_size<T>; ++at)
      if (turns[at % group_size<T>]) row[at] = -row[at];
  }
}

/// Where `group` lies, of members from `first` on: looks at each of them, and tells what sizes their entries have.
template <class T>
void load_group(const Lanes<T, const double*>& members, index_t n, Uplo uplo, index_t first, T* group, Range* ranges) {
  Lanes<T, T> largest;
  gather<T>(members, n, uplo, group, largest);
  Lanes<T, T> least = least_of_group(n, group);
  if (std::any_of(least.begin(), least.end(), [](T entry) { return entry < 0; })) {
    turn_group(n, group);
    least = least_of_group(n, group);
  }
  for (index_t l = 0; l < group_size<T>; ++l) {
    if (!members[l]) continue;
    if (!std::isfinite(largest[l]) || !is_normal(least[l]))  // which, and where
      for_member(first + l, [&] {
        require_triangle<T>("R", members[l], n, uplo);
        require_diagonal<T>(Turned<double>(members[l], n, uplo).data(), n);
      });
    ranges[l] = {double(largest[l]) * std::sqrt(double(n)), double(least[l])};
  }
}

/// Groups one after the other, from a cache line on.
template <class T>
class HostBatch : public HeldBatch {
  static constexpr index_t lanes = group_size<T>;

 public:
  HostBatch(index_t n, index_t b, const Allocate& allocate) : n_(n), b_(b), ranges_(b), allocate_(allocate) {
    const std::size_t bytes = sizeof(T) * group_words<T>(n) * groups();
    if (bytes == 0) return;
    memory_ = allocate_(bytes + 64);
    data_ = reinterpret_cast<T*>((reinterpret_cast<std::uintptr_t>(memory_.get()) + 63) / 64 * 64);
    prefer_huge_pages(data_, bytes);
  }

  void load(const double* R, Uplo uplo) {
    check_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, const double*> members{};
      for (index_t l = 0; l < count(g); ++l) members[l] = R + (g * lanes + l) * n_ * n_;
      load_group<T>(members, n_, uplo, g * lanes, group(g), ranges_.data() + g * lanes);
    });
  }

  index_t order() const override { return n_; }
  index_t count() const override { return b_; }
  Precision precision() const override { return precision_of<T>; }
  bool on_gpu() const override { return false; }
  double bytes() const override { return double(sizeof(T)) * double(group_words<T>(n_)) * double(groups()); }

  std::unique_ptr<HeldBatch> copy() const override {
    auto made = std::make_unique<HostBatch>(n_, b_, allocate_);
    made->ranges_ = ranges_;
    for_groups(groups(), copying_threads(), unwatched,
               [&](index_t g) { std::copy_n(group(g), group_words<T>(n_), made->group(g)); });
    return made;
  }

  void download(Uplo uplo, double* out) const override {
    prefer_huge_pages(out, sizeof(double) * n_ * n_ * b_);
    for_groups(groups(), copying_threads(), unwatched, [&](index_t g) {
      Lanes<T, double*> members{};
      for (index_t l = 0; l < count(g); ++l) members[l] = out + (g * lanes + l) * n_ * n_;
      scatter<T>(group(g), n_, uplo, members);
    });
  }
  void download(index_t member, Uplo uplo, double* out) const override {
    Lanes<T, double*> members{};
    members[member % lanes] = out;
    scatter<T>(group(member / lanes), n_, uplo, members);
  }
  void diagonals(double* out) const override {
    for (index_t m = 0; m < b_; ++m)
      for (index_t j = 0; j < n_; ++j) out[j + m * n_] = double(group(m / lanes)[group_entry<T>(n_, j, j) + m % lanes]);
  }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    for_groups(groups(), solving_threads(m), unwatched, [&](index_t g) {
      std::vector<double> b(n_ * lanes);
      for (index_t s = 0; s < m; ++s) {
        for (index_t l = 0; l < count(g); ++l)
          for (index_t i = 0; i < n_; ++i) b[i * lanes + l] = B[i + (s + (g * lanes + l) * m) * n_];
        if (which != TriangularSolve::back) solve_forward(group(g), b.data());
        if (which != TriangularSolve::forward) solve_back(group(g), b.data());
        for (index_t l = 0; l < count(g); ++l)
          for (index_t i = 0; i < n_; ++i) B[i + (s + (g * lanes + l) * m) * n_] = b[i * lanes + l];
      }
    });
  }

  Work modify(const double* V, const BatchTask& asked, std::unique_ptr<HeldBatch>* made, std::vector<index_t>& pivots,
              const Poll& poll, std::atomic<bool>& begun) override {
    const Clock clock;
    const BatchTask task = resolved(asked);
    BatchModification<T> run(n_, b_, task, [&](index_t m) { return task.V_of(V, n_, m); }, pivots);
    check_groups(groups(), run.threads(), poll, [&](index_t g) { run.prepare(g, ranges_, group(g)); });
    if (made) modify_into(run, task, made, poll);
    else modify_in_place(run, task, poll, begun);
    Work work;
    work.seconds = clock.seconds();
    return work;
  }

 private:
  void modify_into(BatchModification<T>& run, const BatchTask& task, std::unique_ptr<HeldBatch>* made,
                   const Poll& poll) const {
    made->reset();
    auto other = std::make_unique<HostBatch>(n_, b_, allocate_);
    for_groups<T>(run, poll, [&](index_t g, T* work) { run.modify(g, group(g), other->group(g), work); });
    if (task.all_or_none && run.any_failed()) return;
    if (run.any_failed()) other->ranges_ = ranges_;
    other->keep_ranges(run);
    *made = std::move(other);
  }

  void modify_in_place(BatchModification<T>& run, const BatchTask& task, const Poll& poll, std::atomic<bool>& begun) {
    if (task.all_or_none && run.removes())
      for_groups<T>(run, poll, [&](index_t g, T* work) { run.test(g, group(g), work); });
    if (task.all_or_none && run.any_failed()) return;
    const bool tests = !task.all_or_none && run.removes();
    begun = true;
    for_groups<T>(run, poll, [&](index_t g, T* work) {
      if (tests) run.test(g, group(g), work);
      run.modify_in_place(g, group(g), work);
    });
    keep_ranges(run);
  }

  void keep_ranges(const BatchModification<T>& run) {
    if (!run.any_failed()) {
      ranges_ = run.ranges();
    } else {
      for (index_t m = 0; m < b_; ++m)
        if (!run.failed(m)) ranges_[m] = run.ranges()[m];
    }
  }

  void solve_forward(const T* R, double* b) const {
    for (index_t i = 0; i < n_; ++i) {
      double x[lanes];
      for (index_t l = 0; l < lanes; ++l) x[l] = b[i * lanes + l] /= double(R[l]);
      R += lanes;
      for (index_t j = i + 1; j < n_; ++j, R += lanes)
        for (index_t l = 0; l < lanes; ++l) b[j * lanes + l] -= double(R[l]) * x[l];
    }
  }
  void solve_back(const T* group, double* b) const {
    for (index_t i = n_; i-- > 0;) {
      const T* R = group + group_entry<T>(n_, i, i) + lanes;
      double x[lanes];
      std::copy_n(b + i * lanes, lanes, x);
      for (index_t j = i + 1; j < n_; ++j, R += lanes)
        for (index_t l = 0; l < lanes; ++l) x[l] -= double(R[l]) * b[j * lanes + l];
      for (index_t l = 0; l < lanes; ++l) b[i * lanes + l] = x[l] / double(group[group_entry<T>(n_, i, i) + l]);
    }
  }

  index_t groups() const { return (b_ + lanes - 1) / lanes; }
  index_t count(index_t g) const { return std::min(lanes, b_ - g * lanes); }
  T* group(index_t g) const { return data_ + g * group_words<T>(n_); }
  /// To start others takes as long as to copy a megabyte.
  int copying_threads() const { return bytes() < 4e6 ? 1 : threads_for(0); }
  int solving_threads(index_t m) const { return bytes() * double(m) < 4e6 ? 1 : threads_for(0); }

  index_t n_, b_;
  std::vector<Range> ranges_;
  Allocate allocate_;
  std::shared_ptr<void> memory_;
  T* data_ = nullptr;
};

template <class T>
std::unique_ptr<HeldBatch> made_of(const double* R, index_t n, index_t b, Uplo uplo, const Allocate& allocate) {
  auto made = std::make_unique<HostBatch<T>>(n, b, allocate);
  made->load(R, uplo);
  return made;
}

/// A member whose turn comes: of streams as short as this, processors do not find out by themselves.
void prefetch(const ScatteredBatch::Member& member, index_t count) {
  constexpr index_t line = 64 / sizeof(double);
  for (index_t i = 0; i < count; i += line) {
    __builtin_prefetch(member.R + i);
    __builtin_prefetch(member.out + i, 1);
  }
}

/// The other triangle becomes zero.
void copy_triangle(const double* R, index_t n, Uplo uplo, double* out) {
  std::fill(out, out + n * n, 0.0);
  for (index_t j = 0; j < n; ++j) {
    const auto [first, last] = rows_of(j, n, uplo);
    std::copy(R + j * n + first, R + j * n + last, out + j * n + first);
  }
}

/// Each group is put together in memory that stays in the cache, and taken apart again.
template <class T>
Work modify_in_groups(const ScatteredBatch& batch, const BatchTask& task, std::vector<index_t>& pivots,
                      const Poll& poll) {
  constexpr index_t lanes = group_size<T>;
  const Clock clock;
  const index_t n = batch.n, b = index_t(batch.members.size()), words = group_words<T>(n);
  BatchModification<T> run(n, b, task, [&](index_t m) { return batch.members[m].V; }, pivots);
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
  } catch (const Error&) {  // the first of them, in the order of members
    typename WorkMemory<T>::Lease one(members_memory, words);
    for (index_t g = 0; g < run.groups() && run.threads() > 1; ++g) load(g, one.data());
    throw;
  }
  Work work;
  work.seconds = clock.seconds();
  return work;
}

}  // namespace

std::unique_ptr<HeldBatch> hold_batch(const double* R, index_t n, index_t b, Uplo uplo, Precision precision,
                                      const Allocate& allocate) {
  bytes_of(n, n, 64);  // throws where there can be no group of members, though there may be no members
  return precision == Precision::single ? made_of<float>(R, n, b, uplo, allocate)
                                        : made_of<double>(R, n, b, uplo, allocate);
}

Work modify_scattered(const ScatteredBatch& batch, const BatchTask& asked, std::vector<index_t>& pivots,
                      const Poll& poll) {
  const BatchTask task = resolved(asked);
  return batch.precision == Precision::single ? modify_in_groups<float>(batch, task, pivots, poll)
                                              : modify_in_groups<double>(batch, task, pivots, poll);
}

}  // namespace gpucholmod::cpu
