#include "mpi/factor.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "base/check_column.h"
#include "base/file.h"
#include "base/reshaped_sides.h"
#include "mpi/substitution.h"
#include "mpi/sweep.h"

namespace gpucholmod::mpi {
namespace {

constexpr index_t ahead = 2;  ///< blocks of a process that may be on their way from or to process 0

[[noreturn]] void not_supported(const char* operation, const std::string& what) {
  throw Error(ErrorCode::not_supported, what + " is not supported for a factor over several processes",
              {{"operation", operation}, {"backend", "mpi"}});
}

template <class T>
class Shared : public SharedFactor {
 public:
  Shared(Team& team, index_t n, cpu::Allocate allocate)
      : team_(team), layout_{n, team.size()}, allocate_(std::move(allocate)), columns_(layout_, team.rank(), allocate_) {}

  index_t order() const override { return layout_.n; }
  index_t capacity() const override { return layout_.n; }
  Precision precision() const override { return sizeof(T) == 8 ? Precision::double_ : Precision::single; }
  double bytes() const override { return double(columns_.bytes()); }
  int processes() const override { return team_.size(); }

  void deal(const double* R, Uplo uplo) {
    const index_t n = layout_.n, apart = ahead * layout_.size;
    const bool giving = team_.rank() == 0;
    if (giving) {
      bound_ = require_triangle<T>("R", R, n, uplo) * std::sqrt(double(n));
      require_diagonal<T>(R, n);
    }
    settle();
    std::vector<T> buffer;
    for (index_t b = 0; b < layout_.blocks(); ++b) {
      const int to = layout_.owner(b);
      if (giving) {
        buffer.clear();
        for (index_t j = layout_.first(b); j < layout_.last(b); ++j)
          for (index_t i = 0; i <= j; ++i) buffer.push_back(T(uplo == Uplo::upper ? R[i + j * n] : R[j + i * n]));
        if (to != 0 && b >= apart) team_.take(to, b - apart);
        if (to != 0) team_.send(to, b, buffer.data(), sizeof(T) * buffer.size());
        else unpack(b, buffer.data());
        team_.look();
      } else if (to == team_.rank()) {
        const Bytes got = team_.take(0, b);
        unpack(b, reinterpret_cast<const T*>(got.data()));
        team_.send(0, b, nullptr, 0);
      }
    }
  }

  void read(const std::string& path) {
    const FactorFile file(path);
    if (file.order() != layout_.n)
      throw Error(ErrorCode::bad_file, "'" + path + "' is not of the order that process 0 has found", {{"path", path}, {"reason", "changed"}});
    std::vector<double> scratch(layout_.n);
    columns_.each_column([&](T* column, index_t count, index_t j) {
      const double* const values = file.column(j, 0, count, scratch.data());
      bound_ = std::max(bound_, require_column<T>("R", values, 0, count, j) * std::sqrt(double(layout_.n)));
      require_positive(values[j], j);
      require_not_vanished(T(values[j]), values[j], j);
      std::copy_n(values, count, column);
      if (j % block_width == 0) team_.look();
    });
    file.require_unchanged();
    settle();
  }

  std::unique_ptr<HeldFactor> copy() const override {
    std::unique_ptr<Shared> made;
    team_.together(Operation::copy, number_, [&] {
      made = scaled(1);
      return -1;
    });
    made->number_ = team_.new_number();
    return made;
  }

  void download(Uplo uplo, double* out) const override {
    const index_t n = layout_.n;
    collect([&](const T* column, index_t j) {
      for (index_t i = 0; i < n; ++i) out[uplo == Uplo::upper ? i + j * n : j + i * n] = i <= j ? double(column[i]) : 0.0;
    });
  }
  void write(Sink<double>* sink) const override {
    std::vector<double> values(layout_.n);
    collect([&](const T* column, index_t j) {
      std::copy_n(column, j + 1, values.data());
      sink->put(j, 0, j + 1, values.data());
    });
  }

  void diagonal(double* out) const override {
    by_columns(out, [](const T* column, index_t count) { return double(column[count - 1]); });
  }
  /// The same bits with any number of processes.
  double trace() const override {
    std::vector<double> squares(layout_.n);
    by_columns(squares.data(), [](const T* column, index_t count) {
      double sum = 0;
      for (index_t i = 0; i < count; ++i) sum += double(column[i]) * double(column[i]);
      return sum;
    });
    double sum = 0;
    for (const double x : squares) sum += x;
    return sum;
  }

  void solve(TriangularSolve which, double* B, index_t m) const override {
    team_.together(Operation::solve, number_, [&] {
      if (which != TriangularSolve::back) SharedSubstitution<T>(team_, layout_, columns_, B, m).forward();
      if (which != TriangularSolve::forward) SharedSubstitution<T>(team_, layout_, columns_, B, m).back();
      return -1;
    });
  }

  /// By way of a second factor where numbers need scaling, or may become too large for T, and for a new one, as HostFactor::modify().
  Work modify(const double* V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll, std::atomic<bool>& begun) override {
    const index_t n = layout_.n, k = task.k;
    if (task.right.m > 0) not_supported("right_sides", "to take right-hand sides along");
    double largest = 0;
    for (index_t q = 0; q < k; ++q) largest = std::max(largest, require_column<T>("V", V + q * n, 0, n, q));
    const double top = double(std::numeric_limits<T>::max());
    const double bound = task.scale * std::hypot(bound_, largest * std::sqrt(double(task.added())));
    const int e = scale_exponent<T>(T(std::min(std::max(bound_, largest), top)));
    const bool rescale = e != 0 || bound > top || bound / task.scale > top || !(task.scale > 0x1p-20 && task.scale < 0x1p20);
    const bool nothing = n == 0 || k == 0;
    std::vector<T> columns(n * k);
    const double down = rescale ? std::scalbn(1.0, -e) : 1;
    for (index_t i = 0; i < n * k; ++i) columns[i] = T(V[i] * down);
    const Clock clock;
    const auto sweep = [&](const Columns<T>& from, const Columns<T>* to) {
      const MatrixView<const T> view{columns.data(), n, k, n};
      return SharedSweep<T>(team_, layout_, view, task.removed, T(rescale ? 1 : task.scale), std::min(task.instructions, least_), task.threads)
          .run(from, to, poll);
    };
    const auto run = [&](const std::function<index_t()>& f) { return team_.together(Operation::modify, number_, f); };
    Work work;
    if (!made && !rescale && !nothing) {
      if (task.removed > 0 && task.keep_intact) work.pivot = run([&] { return sweep(columns_, nullptr); });
      if (work.pivot < 0) {
        begun = true;
        work.pivot = run([&] { return sweep(columns_, &columns_); });
        if (work.pivot < 0) bound_ = bound;
      }
      work.seconds = clock.seconds();
      return work;
    }
    std::unique_ptr<Shared> other;
    work.pivot = run([&]() -> index_t {
      other = nothing ? scaled(task.scale) : rescale ? scaled(down) : std::make_unique<Shared>(team_, n, allocate_);
      if (nothing) return -1;
      const index_t pivot = sweep(rescale ? other->columns_ : columns_, &other->columns_);
      if (pivot < 0 && rescale) other->scale_back(std::scalbn(task.scale, e), columns_);
      return pivot;
    });
    work.seconds = clock.seconds();
    if (work.pivot >= 0) return work;
    other->bound_ = std::min(nothing ? task.scale * bound_ : bound, top);
    other->least_ = least_;
    other->number_ = team_.new_number();
    if (made) *made = std::move(other);
    else take(*other);
    return work;
  }

  void inverse(double*) const override { not_supported("inverse", "the inverse"); }
  double remove(const std::vector<index_t>&, const Task&, std::unique_ptr<HeldFactor>*, const Poll&, std::atomic<bool>&) override {
    not_supported("remove", "to delete rows and columns");
  }
  index_t insert(index_t, const double*, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&, std::atomic<bool>&) override {
    not_supported("insert", "to insert rows and columns");
  }
  void shift(index_t, index_t, const Task&, std::unique_ptr<HeldFactor>*, const Poll&, std::atomic<bool>&) override {
    not_supported("shift", "to move rows and columns");
  }

  void set_number() { number_ = team_.new_number(); }

 private:
  /// What has to be the same in all: the bound, and the instructions that all of them have.
  void settle() {
    bound_ = team_.largest(bound_);
    least_ = Instructions(-int(team_.largest(-double(cpu::resolve(Instructions::automatic)))));
  }

  void unpack(index_t b, const T* from) {
    const MatrixView<T> to = columns_.block(b);
    for (index_t j = 0, count = layout_.first(b) + 1; j < to.cols; ++j, ++count, from += count - 1) std::copy_n(from, count, to.col(j));
  }

  /// put(column, number) in process 0 for each column, from left to right.
  void collect(const std::function<void(const T* column, index_t j)>& put) const {
    team_.together(Operation::collect, number_, [&]() -> index_t {
      const index_t apart = ahead * layout_.size;
      std::vector<T> packed;
      for (index_t b = 0; b < layout_.blocks(); ++b) {
        const int from = layout_.owner(b);
        if (from == team_.rank()) {
          packed.clear();
          const MatrixView<T> R = columns_.block(b);
          for (index_t j = 0; j < R.cols; ++j) packed.insert(packed.end(), R.col(j), R.col(j) + layout_.first(b) + j + 1);
          if (from != 0 && b >= apart) team_.take(0, b - apart);
          if (from != 0) team_.send(0, b, packed.data(), sizeof(T) * packed.size());
        }
        if (team_.rank() != 0) continue;
        Bytes got;
        const T* columns = packed.data();
        if (from != 0) {
          got = team_.take(from, b);
          team_.send(from, b, nullptr, 0);
          columns = reinterpret_cast<const T*>(got.data());
        }
        for (index_t j = layout_.first(b); j < layout_.last(b); columns += ++j) put(columns, j);
        team_.look();
      }
      return -1;
    });
  }

  /// out (n) <- f(column, entries of it), in all.
  void by_columns(double* out, const std::function<double(const T* column, index_t count)>& f) const {
    team_.together(Operation::columns, number_, [&]() -> index_t {
      std::vector<double> own;
      columns_.each_column([&](const T* column, index_t count, index_t) { own.push_back(f(column, count)); });
      const std::vector<Bytes> all = team_.exchange(own.data(), sizeof(double) * own.size());
      std::vector<const char*> at;
      for (const Bytes& one : all) at.push_back(one.data());
      for (index_t j = 0; j < layout_.n; ++j) {
        const char*& from = at[layout_.owner(j / block_width)];
        std::memcpy(out + j, from, sizeof(double));
        from += sizeof(double);
      }
      return -1;
    });
  }

  std::unique_ptr<Shared> scaled(double by) const {
    auto made = std::make_unique<Shared>(team_, layout_.n, allocate_);
    columns_.each([&](index_t b, MatrixView<T> from) {
      const MatrixView<T> to = made->columns_.block(b);
      for (index_t j = 0; j < from.cols; ++j) {
        const index_t d = layout_.first(b) + j;
        for (index_t i = 0; i <= d; ++i) to(i, j) = T(from(i, j) * by);
        if (by != 1) check(to.col(j), from(d, j), d);
      }
    });
    made->bound_ = by * bound_;
    made->least_ = least_;
    return made;
  }
  void scale_back(double by, const Columns<T>& before) {
    columns_.each([&](index_t b, MatrixView<T> R) {
      for (index_t j = 0; j < R.cols; ++j) {
        const index_t d = layout_.first(b) + j;
        for (index_t i = 0; i <= d; ++i) R(i, j) = T(R(i, j) * by);
        check(R.col(j), before.block(b)(d, j), d);
      }
    });
  }
  /// Column d of a result, whose last entry comes of `value`.
  static void check(const T* column, T value, index_t d) {
    for (index_t i = 0; i <= d; ++i)
      if (!std::isfinite(column[i])) throw overflow(i, d);
    require_not_vanished(column[d], value, d);
  }
  void take(Shared& other) {
    columns_ = other.columns_;
    bound_ = other.bound_;
  }

  Team& team_;
  const Layout layout_;
  cpu::Allocate allocate_;
  Columns<T> columns_;
  double bound_ = 0;  ///< no entry is larger
  Instructions least_ = Instructions::plain;
  index_t number_ = 0;
};

template <class T, class F>
std::unique_ptr<SharedFactor> made_as(Team& team, index_t n, const cpu::Allocate& allocate, F&& fill) {
  std::unique_ptr<Shared<T>> made;
  team.together(Operation::hold, 0, [&] {
    made = std::make_unique<Shared<T>>(team, n, allocate);
    fill(*made);
    return -1;
  });
  made->set_number();
  return made;
}

/// FNV-1a by words of eight bytes.
std::uint64_t hash_of(const Bytes& data) {
  std::uint64_t hash = 0xcbf29ce484222325u;
  const auto mix = [&](std::uint64_t word) {
    hash = (hash ^ word) * 0x100000001b3u;
    hash ^= hash >> 32;
  };
  mix(data.size());
  for (std::size_t at = 0; at < data.size(); at += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data.data() + at, std::min<std::size_t>(8, data.size() - at));
    mix(word);
  }
  return hash;
}

}  // namespace

std::unique_ptr<SharedFactor> deal_out(Team& team, const double* R, index_t n, Uplo uplo, Precision precision, const cpu::Allocate& allocate) {
  const auto fill = [&](auto& factor) { factor.deal(R, uplo); };
  return precision == Precision::single ? made_as<float>(team, n, allocate, fill) : made_as<double>(team, n, allocate, fill);
}

std::unique_ptr<SharedFactor> read_out(Team& team, const std::string& path, index_t n, Precision precision, const cpu::Allocate& allocate) {
  const auto fill = [&](auto& factor) { factor.read(path); };
  return precision == Precision::single ? made_as<float>(team, n, allocate, fill) : made_as<double>(team, n, allocate, fill);
}

void agree(Team& team, const Bytes& key, const std::string& name, bool given, bool compared, Bytes& data) {
  struct Told {
    std::uint64_t key, data;
    bool given;
  };
  team.together(Operation::agree, 0, [&]() -> index_t {
    const Told own{hash_of(key), given && compared ? hash_of(data) : 0, given};
    std::vector<Told> all;
    for (const Bytes& one : team.exchange(&own, sizeof own)) {
      all.emplace_back();
      std::memcpy(&all.back(), one.data(), sizeof(Told));
    }
    std::vector<int> without;
    for (int p = 0; p < team.size(); ++p) {
      const std::string who = "process " + std::to_string(p);
      if (all[p].key != all[0].key)
        throw Error(ErrorCode::bad_argument, who + " does not call the same function with the same arguments as process 0", {{"argument", "processes"}});
      if (!all[0].given) throw Error(ErrorCode::bad_argument, "'" + name + "' is needed in process 0", {{"argument", name}});
      if (!all[p].given) without.push_back(p);
      else if (all[p].data != all[0].data)
        throw Error(ErrorCode::bad_argument, "'" + name + "' of " + who + " is not that of process 0", {{"argument", name}});
    }
    if (!without.empty()) team.broadcast(without, data);
    return -1;
  });
}

}  // namespace gpucholmod::mpi
