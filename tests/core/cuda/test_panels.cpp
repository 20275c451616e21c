#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <mutex>

#include "../process_example.h"
#include "cuda/backend.h"
#include "factor_call.h"
#include "mpi_cuda/backend.h"

/// A factor whose panels lie on the GPUs of several processes. The processes are threads that use one GPU in turn.
namespace gpucholmod::test {
namespace {

using Lock = std::lock_guard<std::mutex>;
std::mutex turn;

/// Calls f() while no other thread uses the GPU, and waits until the GPU has completed its work.
template <class F>
auto alone(F&& f) {
  const Lock lock(turn);
  struct End {
    ~End() { cudaDeviceSynchronize(); }
  } const end;
  return f();
}

template <class T>
class ModificationInTurn : public mpi::PanelModification<T> {
 public:
  explicit ModificationInTurn(std::unique_ptr<mpi::PanelModification<T>> own) : own_(std::move(own)) {}
  ~ModificationInTurn() override { alone([&] { own_.reset(); }); }
  index_t modify(index_t b) override { return alone([&] { return own_->modify(b); }); }
  void fetch_V(index_t b, double* V) override { alone([&] { own_->fetch_V(b, V); }); }
  mpi::Bytes message(index_t b) override { return alone([&] { return own_->message(b); }); }
  void receive(index_t b, mpi::Bytes&& message) override { alone([&] { own_->receive(b, std::move(message)); }); }
  void follow(index_t b, index_t first, index_t last) override { alone([&] { own_->follow(b, first, last); }); }
  void carry(index_t b) override { alone([&] { own_->carry(b); }); }
  void finish(Work& work) override { alone([&] { own_->finish(work); }); }

 private:
  std::unique_ptr<mpi::PanelModification<T>> own_;
};

template <class T>
class PanelsInTurn : public mpi::Panels<T> {
 public:
  explicit PanelsInTurn(std::unique_ptr<mpi::Panels<T>> own) : own_(std::move(own)) {}
  ~PanelsInTurn() override { alone([&] { own_.reset(); }); }
  std::unique_ptr<mpi::Panels<T>> another() const override {
    return std::make_unique<PanelsInTurn>(alone([&] { return own_->another(); }));
  }
  double bytes() const override { return own_->bytes(); }
  int device() const override { return own_->device(); }
  std::string device_name() const override { return own_->device_name(); }
  int compute_capability() const override { return alone([&] { return own_->compute_capability(); }); }
  void put(index_t b, MatrixView<const T> R) override { alone([&] { own_->put(b, R); }); }
  void get(index_t b, MatrixView<T> R) const override { alone([&] { own_->get(b, R); }); }
  void copy(const mpi::Panels<T>& from) override {
    alone([&] { own_->copy(*dynamic_cast<const PanelsInTurn&>(from).own_); });
  }
  mpi::MessageMemory* message_memory() const override { return own_->message_memory(); }
  mpi::PanelWay way(const Task& task) const override { return alone([&] { return own_->way(task); }); }
  std::unique_ptr<mpi::PanelModification<T>> modification(mpi::Panels<T>* out, MatrixView<const double> V,
                                                          const Task& task, double scale, mpi::PanelWay way,
                                                          const RightHandSideView& right,
                                                          const std::function<void()>& tend) override {
    mpi::Panels<T>* const to = out ? dynamic_cast<PanelsInTurn&>(*out).own_.get() : nullptr;
    return std::make_unique<ModificationInTurn<T>>(
        alone([&] { return own_->modification(to, V, task, scale, way, right, tend); }));
  }

 private:
  std::unique_ptr<mpi::Panels<T>> own_;
};

index_t narrow(index_t) { return 128; }
index_t wide(index_t) { return 384; }

mpi::MakePanels in_turn(index_t (*width)(index_t)) {
  const mpi::MakePanels make = mpi_cuda::panels_on_gpus(0, false);
  mpi::MakePanels made;
  made.width = width;
  made.of_floats = [=](const mpi::Layout& layout, int rank) {
    return std::make_unique<PanelsInTurn<float>>(alone([&] { return make.of_floats(layout, rank); }));
  };
  made.of_doubles = [=](const mpi::Layout& layout, int rank) {
    return std::make_unique<PanelsInTurn<double>>(alone([&] { return make.of_doubles(layout, rank); }));
  };
  return made;
}

struct Result {
  Doubles made, in_place, out, rest;
  Work work;
};

Result modified(const Doubles& R, const Doubles& V, Task t, int size, index_t (*width)(index_t), index_t pivot = -1) {
  const index_t n = R.cols(), k = V.cols();
  Threads all(size, 1e-4);
  Result result;
  expect_none(in_processes(all, size, 60, [&](mpi::Team& team) {
    const int rank = team.rank();
    const auto f = mpi::deal_out(team, R.data(), n, Uplo::upper, t.precision, allocate, in_turn(width));
    std::atomic<bool> begun{false};
    std::unique_ptr<HeldFactor> made;
    EXPECT_EQ(f->modify(V.data(), t, &made, no_poll, begun).pivot, pivot);
    EXPECT_FALSE(begun);
    Sides own(n, k, 3);
    const Work work = f->modify(V.data(), own.with(t, n), nullptr, no_poll, begun);
    EXPECT_EQ(work.pivot, pivot);
    const Doubles in_place = whole(*f, rank);
    if (pivot >= 0) {
      EXPECT_TRUE(rank != 0 || same_bits(in_place, R));
      return;
    }
    const Doubles got = whole(*made, rank);
    if (rank == 0) result = {got, in_place, own.out, own.rest, work};
  }));
  return result;
}

/// Expects the results of one to three processes to be those of a factor in ordinary memory, up to rounding errors, and
/// to have the same bits as each other. `loose`: the factor by which rounding errors may grow.
void expect_right(const Doubles& R, const Doubles& V, const Task& t, double loose = 1, bool refuses = false) {
  const index_t n = R.cols();
  SCOPED_TRACE("n " + std::to_string(n) + ", k " + std::to_string(t.k) + ", removed " + std::to_string(t.removed));
  Sides sides(n, t.k, 3);
  const auto one = cpu::hold(R.data(), n, Uplo::upper, t.precision, 0, allocate);
  std::atomic<bool> begun{false};
  EXPECT_EQ(one->modify(V.data(), sides.with(t, n), nullptr, no_poll, begun).pivot, -1);
  const Doubles right = download(*one);
  const double off = 200 * loose * (t.precision == Precision::single ? 0x1p-23 : 0x1p-52);
  for (index_t (*const width)(index_t) : {narrow, wide}) {
    Result first;
    for (const int size : {1, 2, 3}) {
      const Result got = modified(R, V, t, size, width);
      if (size == 1) first = got;
      EXPECT_LT(away(got.made, right), off) << size;
      EXPECT_LT(away(got.out, sides.out), off) << size;
      EXPECT_LT(away_in_squares(got.rest, sides.rest, t), 10 * off) << size;
      EXPECT_TRUE(same_bits(got.made, first.made) && same_bits(got.in_place, first.made)) << size;
      EXPECT_TRUE(same_bits(got.out, first.out) && same_bits(got.rest, first.rest)) << size;
      EXPECT_TRUE(!refuses || size > 1 || got.work.fallbacks + got.work.rescalings > 0);
    }
  }
}

Task task_of(index_t n, index_t k, index_t removed, Precision precision, double scale = 1,
             Launch launch = Launch::automatic) {
  Task t = task(n, k, removed, precision);
  t.algorithm = Algorithm::unscaled;
  t.launch = launch;
  t.scale = scale;
  return t;
}

// A test of panels takes long: threads spin while one of them has the GPU. So each case is a test of its own, and test
// shards divide the cases.

class PanelsModify : public testing::TestWithParam<std::tuple<Precision, index_t>> {};

TEST_P(PanelsModify, OneToThreeProcesses) {
  const auto [precision, n] = GetParam();
  const Doubles R = in(precision, example(n));
  for (const index_t k : {1, 9, 32}) {
    const Doubles V = Random(5).normal(n, k).cast<double>();
    expect_right(R, V, task_of(n, k, 0, precision, 1.5));
    if (n >= 128 && k > 1) expect_right(R, V * 0.01, task_of(n, k, k, precision));
  }
}
INSTANTIATE_TEST_SUITE_P(Each, PanelsModify, testing::Combine(testing::ValuesIn(precisions),
                                                              testing::Values(1, 127, 128, 300, 1000)));

struct Signs {
  index_t k, removed;
  double scale;
};
class PanelsOfSigns : public testing::TestWithParam<Signs> {};

TEST_P(PanelsOfSigns, ModifyInPasses) {
  const index_t n = 900;
  const auto [k, removed, scale] = GetParam();
  const Doubles R = example(n), V = Random(5).normal(n, 70).cast<double>() * 0.01;
  expect_right(R, V.leftCols(k), task_of(n, k, removed, Precision::double_, scale));
}
INSTANTIATE_TEST_SUITE_P(Each, PanelsOfSigns, testing::Values(Signs{70, 0, 0.5}, Signs{70, 30, 1}, Signs{20, 9, 1}));

class PanelsByStepsAlone : public testing::TestWithParam<std::tuple<Precision, index_t>> {};

TEST_P(PanelsByStepsAlone, Modify) {
  const auto [precision, removed] = GetParam();
  const Doubles R = in(precision, example(600)), V = Random(5).normal(600, 20).cast<double>() * 0.01;
  expect_right(R, V, task_of(600, 20, removed, precision, removed < 20 ? 1.5 : 1, Launch::stepwise));
}
INSTANTIATE_TEST_SUITE_P(Each, PanelsByStepsAlone, testing::Combine(testing::ValuesIn(precisions),
                                                                    testing::Values(9, 20)));

/// Row blocks that are rejected at any place: block transforms carry their rescalings and steps.
class PanelsRejected : public testing::TestWithParam<index_t> {};

TEST_P(PanelsRejected, ADowndate) {
  const index_t n = 1000;
  const Doubles R = example(n);
  Doubles P = Doubles::Constant(n, 5, 1e-4);
  P.row(GetParam()).setConstant(0.9999 / std::sqrt(5.0));
  const Doubles V = R.transpose() * P;
  expect_right(R, V, task_of(n, 5, 5, Precision::double_), 1e4, true);
}
INSTANTIATE_TEST_SUITE_P(Row, PanelsRejected, testing::Values(0, 127, 130, 700));

TEST(Panels, AnUpdateWhoseRowBlocksAreRejected) {
  const index_t n = 1000;
  expect_right(example(n), Random(5).normal(n, 16).cast<double>() * 100, task_of(n, 16, 0, Precision::double_), 100,
               true);
}

class PanelsADowndateThatFails : public testing::TestWithParam<index_t> {};

TEST_P(PanelsADowndateThatFails, NamesThePivot) {
  const index_t n = 700, at = GetParam();
  const Doubles R = example(n);
  for (const index_t k : {5, 40})
    for (const int size : {1, 2}) {
      Doubles V = Doubles::Zero(n, k);
      V(at, k - 1) = 2;
      if (at + 20 < n) V(at + 20, 2) = 2;
      modified(R, V, task_of(n, k, k, Precision::double_), size, narrow, at);
    }
}
INSTANTIATE_TEST_SUITE_P(Row, PanelsADowndateThatFails, testing::Values(0, 127, 128, 650));

TEST(Panels, AsAnyFactor) {
  const index_t n = 500;
  const Doubles R = example(n), B = Random(6).normal(n, 3).cast<double>();
  Doubles X = Random(5).normal(n + 1, 1).cast<double>() * 1e-3;
  X(200, 0) = 5;
  Threads all(2);
  expect_none(in_processes(all, 2, 60, [&](mpi::Team& team) {
    const int rank = team.rank();
    const auto f = mpi::deal_out(team, R.data(), n, Uplo::upper, Precision::double_, allocate, in_turn(narrow));
    const auto g = mpi::deal_out(team, R.data(), n, Uplo::upper, Precision::double_, allocate);
    EXPECT_TRUE(f->on_gpu());
    const Doubles got = whole(*f->copy(), rank);
    EXPECT_TRUE(rank != 0 || same_bits(got, R));
    const Task t = task(n, 0, 0, Precision::double_);
    std::atomic<bool> begun{false};
    for (HeldFactor* const one : {static_cast<HeldFactor*>(f.get()), static_cast<HeldFactor*>(g.get())}) {
      EXPECT_EQ(one->insert(200, X.data(), 1, t, nullptr, no_poll, begun), -1);
      one->shift(400, 20, t, nullptr, no_poll, begun);
      one->remove({3, 150, 500}, t, nullptr, no_poll, begun);
    }
    const index_t m = f->order();
    Doubles x = B.topRows(m), y = x;
    f->solve(TriangularSolve::both, x.data(), 3);
    g->solve(TriangularSolve::both, y.data(), 3);
    EXPECT_LT(away(x, y), 1e-12);
    Doubles inverse = Doubles::Zero(m, m), other = inverse;
    f->inverse(inverse.data());
    g->inverse(other.data());
    EXPECT_TRUE(rank != 0 || away(inverse, other) < 1e-12);
  }));
}

}  // namespace
}  // namespace gpucholmod::test
