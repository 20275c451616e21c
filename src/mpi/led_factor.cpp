#include "mpi/led_factor.h"

#include <algorithm>
#include <exception>
#include <future>

#include "base/file.h"
#include "base/zeros.h"

namespace gpucholmod::mpi {
namespace {

/// The least product n^2 m for which n x m right-hand sides may take a second.
constexpr double takes_long = 1e11;

/// A message with the results of process 0. Process 0 writes each number that is named, the others read it.
class Told {
 public:
  explicit Told(bool writes) : writes_(writes) {}
  Bytes& message() { return message_; }

  template <class X>
  void number(X& x) { numbers(&x, sizeof x); }
  void matrix(MatrixView<double> X) {
    for (index_t j = 0; j < X.cols; ++j) numbers(X.col(j), sizeof(double) * std::size_t(X.rows));
  }
  /// Names a string or a vector, and its length.
  template <class List>
  void list(List& x) {
    index_t length = index_t(x.size());
    number(length);
    x.resize(std::size_t(length));
    numbers(x.data(), x.size() * sizeof x[0]);
  }
  void work(Work& work) {
    list(work.device);
    list(work.timeline);
    for (index_t* const x : {&work.pivot, &work.panels, &work.blocks, &work.fallbacks, &work.rescalings}) number(*x);
    for (double* const x : {&work.device_bytes, &work.squares[0], &work.squares[1], &work.seconds}) number(*x);
    number(work.device_ranks);
    number(work.launch);
    number(work.pinned);
    number(work.unscaled_z);
  }

 private:
  void numbers(void* data, std::size_t bytes) {
    if (writes_) return append(message_, data, bytes);
    if (bytes > 0) std::memcpy(data, message_.data() + at_, bytes);
    at_ += bytes;
  }

  bool writes_;
  Bytes message_;
  std::size_t at_ = 0;
};

/// Sends the numbers that name(told) names from process 0 to all others; within an operation.
template <class Name>
void tell(Team& team, Name&& name) {
  const bool writes = team.rank() == 0;
  Told told(writes);
  if (writes) name(told);
  team.broadcast(team.all_but_0(), told.message());
  if (!writes) name(told);
}

/// Calls f() in another thread, and lets messages arrive and depart meanwhile. If this process has to break off, it
/// waits for f() first.
template <class F>
void at_length(Team& team, F&& f) {
  std::future<void> done = std::async(std::launch::async, f);
  std::exception_ptr broken_off;
  for (index_t idle = 0; done.wait_for(std::chrono::seconds(0)) != std::future_status::ready; ++idle) {
    pause(idle);
    if (broken_off) {
      team.tend();
      continue;
    }
    try {
      team.look();
    } catch (...) {
      broken_off = std::current_exception();
    }
  }
  if (broken_off) std::rethrow_exception(broken_off);
  done.get();
}

class LedFactor : public SharedFactor {
 public:
  /// Describes the factor: where it is, seen from this process, and the bytes of all of it.
  struct Home {
    OwnGpu gpu;
    bool on_gpu = false;
    double bytes = 0;
  };

  /// Takes `own`, the factor, in process 0, and null in the others.
  LedFactor(Team& team, std::unique_ptr<HeldFactor> own, index_t n, Precision precision, Home home)
      : team_(team), own_(std::move(own)), n_(n), precision_(precision), home_(std::move(home)),
        number_(team.new_number()) {}

  index_t order() const override { return n_; }
  index_t capacity() const override { return n_; }
  Precision precision() const override { return precision_; }
  /// Returns an equal share of the memory for each process.
  double bytes() const override { return home_.bytes / team_.size(); }
  bool on_gpu() const override { return home_.on_gpu; }
  bool is_led() const override { return true; }
  int device() const override { return home_.gpu.device; }
  std::string device_name() const override { return home_.gpu.name; }
  int processes() const override { return team_.size(); }
  int threads() const override { return team_.threads(); }

  void any_of(std::vector<char>& flags) const override {
    team_.together(Operation::flags, number_, [&] {
      team_.any_of(flags);
      return -1;
    });
  }

  std::unique_ptr<HeldFactor> copy() const override {
    std::unique_ptr<HeldFactor> own;
    lead(Operation::copy, [&] { own = own_->copy(); }, [](Told&) {});
    return std::make_unique<LedFactor>(team_, std::move(own), n_, precision_, home_);
  }
  void download(Uplo uplo, double* out) const override {
    lead_at_length(Operation::collect, [&] { own_->download(uplo, out); });
  }
  void inverse(double* out) const override {
    lead_at_length(Operation::invert, [&] { own_->inverse(out); });
  }
  void write(Sink<double>* sink) const override {
    lead_at_length(Operation::collect, [&] {
      const std::unique_ptr<double[]> R(new double[n_ * n_]);
      own_->download(Uplo::upper, R.get());
      for (index_t j = 0; j < n_; ++j) sink->put(j, 0, j + 1, R.get() + j * n_);
    });
  }
  void diagonal(double* out) const override {
    lead(Operation::columns, [&] { own_->diagonal(out); }, [&](Told& told) { told.matrix({out, n_, 1, n_}); });
  }
  double trace() const override {
    double sum = 0;
    lead(Operation::columns, [&] { sum = own_->trace(); }, [&](Told& told) { told.number(sum); });
    return sum;
  }
  void solve_for(TriangularSolve which, const double* B, double* X, index_t m) const override {
    const auto solved = [&] { own_->solve_for(which, B, X, m); };
    lead(Operation::solve, [&] {
      if (double(n_) * double(n_) * double(m) < takes_long) solved();
      else at_length(team_, solved);
    }, [&](Told& told) { told.matrix({X, n_, m, n_}); });
  }

  Work modify(const ColumnsOfV& V, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
              std::atomic<bool>& begun) override {
    Work work;
    change(Operation::modify, made, poll, begun, task, work.pivot,
           [&](auto* to, const Poll& tended) { work = own_->modify(V, task, to, tended, begun); },
           [&](Told& told) { told.work(work); });
    return work;
  }
  double remove(const std::vector<index_t>& gone, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
                std::atomic<bool>& begun) override {
    double taken = 0;
    index_t pivot = -1;
    change(Operation::remove, made, poll, begun, task, pivot,
           [&](auto* to, const Poll& tended) { taken = own_->remove(gone, task, to, tended, begun); },
           [&](Told& told) { told.number(taken); });
    return taken;
  }
  index_t insert(index_t at, const double* X, index_t p, const Task& task, std::unique_ptr<HeldFactor>* made,
                 const Poll& poll, std::atomic<bool>& begun) override {
    index_t pivot = -1;
    change(Operation::insert, made, poll, begun, task, pivot,
           [&](auto* to, const Poll& tended) { pivot = own_->insert(at, X, p, task, to, tended, begun); },
           [&](Told& told) { told.number(pivot); });
    return pivot;
  }
  void shift(index_t from, index_t to, const Task& task, std::unique_ptr<HeldFactor>* made, const Poll& poll,
             std::atomic<bool>& begun) override {
    index_t pivot = -1;
    change(Operation::shift, made, poll, begun, task, pivot,
           [&](auto* into, const Poll& tended) { own_->shift(from, to, task, into, tended, begun); }, [](Told&) {});
  }

 private:
  /// Calls f() in process 0, and name(told) in every process, which names the results of f(). If `begun` becomes true
  /// in process 0, it becomes true in all.
  template <class F, class Name>
  void lead(Operation what, F&& f, Name&& name, std::atomic<bool>* begun = nullptr) const {
    const auto part = [&]() -> index_t {
      if (team_.rank() == 0) f();
      tell(team_, name);
      return -1;
    };
    team_.together(what, number_, part, begun);
  }
  /// Calls f(), whose results stay in process 0, and which may take long.
  template <class F>
  void lead_at_length(Operation what, F&& f) const {
    lead(what, [&] { at_length(team_, f); }, [](Told&) {});
  }

  /// Calls f(to, tended) in process 0, which changes the factor, or stores a new one in *to. `tended` is `poll`, and
  /// lets messages arrive. Then every process learns of the results: those that name(told) names, and the right-hand
  /// sides unless a pivot has failed. If process 0 has changed the factor and then fails, or another process fails,
  /// `begun` is true in every process.
  template <class F, class Name>
  void change(Operation what, std::unique_ptr<HeldFactor>* made, const Poll& poll, std::atomic<bool>& begun,
              const Task& task, index_t& pivot, F&& f, Name&& name) {
    // A process that fails before its part of the operation must stop process 0 before the factor changes.
    if (!made) team_.together(what, number_, [] { return index_t(-1); });
    std::unique_ptr<HeldFactor> own;
    index_t n = n_;
    double bytes = 0;
    lead(what, [&] {
      f(made ? &own : nullptr, [&](double done) {
        if (begun) team_.tend();
        else team_.look();
        poll(done);
      });
      if (!made && pivot < 0) begun = true;  // also by way of a second factor that has taken this one's place
      const HeldFactor& result = own ? *own : *own_;
      n = result.order();
      bytes = result.bytes();
    }, [&](Told& told) {
      name(told);
      told.number(n);
      told.number(bytes);
      if (pivot >= 0) return;
      told.matrix(task.right.out);
      told.matrix(task.right.rest);
    }, made ? nullptr : &begun);
    if (pivot >= 0) return;
    Home home{home_.gpu, home_.on_gpu, bytes};
    if (made) {
      *made = std::make_unique<LedFactor>(team_, std::move(own), n, precision_, std::move(home));
    } else {
      n_ = n;
      home_ = std::move(home);
    }
  }

  Team& team_;
  std::unique_ptr<HeldFactor> own_;
  index_t n_;
  Precision precision_;
  Home home_;
  index_t number_;
};

/// Returns the factor that process 0 holds on GPUs, or null.
std::unique_ptr<HeldFactor> held_by_leader(Team& team, const Leader& leader, const std::vector<std::string>& gpus,
                                           const GivenFactor& given) {
  const std::unique_ptr<GpusTogether> all = leader.open(gpus);
  if (!all) return nullptr;
  std::unique_ptr<HeldFactor> made;
  if (given.path.empty()) {
    at_length(team, [&] { made = all->hold(given.R, given.n, given.uplo, given.precision); });
    return made;
  }
  const FactorFile file(given.path);
  file.require_order(given.n);
  const TurnedRows turned(file, given.n, Uplo::upper);
  const Zeros zeros;
  made = all->hold(MendedSource<double>(file, turned, zeros), given.n, given.precision, [&](double) { team.look(); });
  file.require_unchanged();
  return made;
}

}  // namespace

std::unique_ptr<SharedFactor> hold_led(Team& team, const Leader& leader, const GivenFactor& given) {
  std::unique_ptr<HeldFactor> own;
  LedFactor::Home home;
  bool leads = false;
  team.together(Operation::hold, 0, [&]() -> index_t {
    home.gpu = leader.own();
    std::vector<std::string> gpus;
    for (const Bytes& one : team.exchange(home.gpu.id.data(), home.gpu.id.size()))
      if (const std::string id(one.begin(), one.end()); std::find(gpus.begin(), gpus.end(), id) == gpus.end())
        gpus.push_back(id);
    if (team.rank() == 0) own = held_by_leader(team, leader, gpus, given);
    if (own) home.on_gpu = own->on_gpu(), home.bytes = own->bytes(), leads = true;
    tell(team, [&](Told& told) {
      told.number(leads);
      told.number(home.on_gpu);
      told.number(home.bytes);
    });
    return -1;
  });
  if (!leads) return nullptr;
  return std::make_unique<LedFactor>(team, std::move(own), given.n, given.precision, home);
}

}  // namespace gpucholmod::mpi
