#include "modify_contract.h"

#include <gpucholmod.h>

#include <deque>
#include <thread>

#include "batch_call.h"
#include "cpu/host_factor.h"
#include "mpi/factor.h"
#include "padded.h"
#include "process_threads.h"

/// The contract of modifications, for every storage that needs no GPU.
namespace gpucholmod::test {
namespace {

const Keep kept = [](const Doubles& R, Precision precision, index_t capacity) {
  return cpu::hold(R.data(), R.cols(), Uplo::upper, precision, capacity, allocate());
};
const Keep borrowed = [](const Doubles& R, Precision, index_t) { return cpu::borrow(R.data(), R.cols(), allocate()); };

/// A factor dealt out to processes, which are threads; process 0 alone is polled. All have to answer the same.
class ProcessStorage : public Storage {
 public:
  ProcessStorage(int size, bool in_place) : in_place_(in_place), all_(size), factors_(size) {
    for (int p = 0; p < size; ++p) {
      transports_.emplace_back(all_, p);
      teams_.emplace_back(transports_.back(), [] {});
    }
  }
  void begin(const Doubles& R, Precision precision) override {
    const Doubles given = in_triangle<double>(R, Uplo::upper);
    each([&](int p) {
      factors_[p] = mpi::deal_out(teams_[p], p == 0 ? given.data() : nullptr, R.cols(), Uplo::upper, precision, allocate());
    });
  }
  Doubles get() const override {
    Doubles R(factors_[0]->order(), factors_[0]->order());
    each([&](int p) { factors_[p]->download(Uplo::upper, p == 0 ? R.data() : nullptr); });
    return R;
  }
  Answer modify(const Modification& asked, const Poll& poll) override {
    const int size = int(teams_.size());
    const Doubles before = get();
    std::vector<Answer> answers(size);
    std::vector<std::unique_ptr<HeldFactor>> made(size);
    std::deque<std::atomic<bool>> begun(size);
    begun_ = false;
    Request how;
    how.precision = factors_[0]->precision();
    each([&](int p) {
      std::atomic<bool>& begins = p == 0 ? begun_ : begun[p];
      const auto place = Place<double>::held(*factors_[p], in_place_ ? nullptr : &made[p], begins);
      answers[p] = answer_of_modify(place, before.cols(), asked, how, p == 0 ? poll : [](double) {});
    });
    const Answer& first = answers[0];
    for (int p = 1; p < size; ++p) {
      EXPECT_EQ(begun[p], begun_);
      EXPECT_EQ(answers[p].pivot, first.pivot);
      EXPECT_EQ(answers[p].failure.has_value(), first.failure || first.stopped);
      if (first.failure && answers[p].failure) {
        EXPECT_EQ(answers[p].failure->code, first.failure->code);
      }
      EXPECT_TRUE(same_bits(answers[p].sides, first.sides));
    }
    if (in_place_) return first;
    EXPECT_FALSE(begun_);
    EXPECT_TRUE(same_bits(get(), before));
    for (int p = 0; p < size; ++p) {
      EXPECT_EQ(made[p] != nullptr, first.is_success());
      if (made[p]) factors_[p] = std::move(made[p]);
    }
    return first;
  }

 private:
  /// f(p) in a thread for each process.
  template <class F>
  void each(F&& f) const {
    std::vector<std::thread> threads;
    for (int p = 0; p < int(factors_.size()); ++p) threads.emplace_back([&f, p] { f(p); });
    for (std::thread& one : threads) one.join();
  }

  bool in_place_;
  Threads all_;
  std::deque<Threads::Process> transports_;
  std::deque<mpi::Team> teams_;
  std::vector<std::unique_ptr<HeldFactor>> factors_;
};

Failure failure_of(const gpucholmod_status& status) {
  const auto code = [&] {
    switch (status.code) {
      case GPUCHOLMOD_NOT_FINITE: return ErrorCode::not_finite;
      case GPUCHOLMOD_BAD_DIAGONAL: return ErrorCode::bad_diagonal;
      case GPUCHOLMOD_OVERFLOW: return ErrorCode::overflow;
      default: return ErrorCode::bad_argument;
    }
  }();
  return {code, status.row, status.col};
}

/// The C interface: a factor in the caller's memory, or a handle's.
template <class S>
class CFactorStorage {
 public:
  CFactorStorage(const Doubles& R, bool by_handle, int form)
      : form_(form), R_(test::stored(Stored<S>(R.cast<S>()), is_lower()), R.cols() + 3) {
    if (!by_handle) return;
    constexpr auto hold = [] {
      if constexpr (sizeof(S) == 8) return gpucholmod_hold;
      else return gpucholmod_hold_s;
    }();
    EXPECT_EQ(hold(form, R.cols(), R_.data.data(), R_.ld, 0, GPUCHOLMOD_MEMORY, -1, &held_, nullptr), GPUCHOLMOD_OK);
  }
  CFactorStorage(const CFactorStorage&) = delete;
  ~CFactorStorage() { gpucholmod_release(held_); }

  Doubles get() const {
    const index_t n = R_.rows;
    if (!held_) return upper(R_.matrix(n), is_lower()).template cast<double>();
    Doubles R(n, n);
    EXPECT_EQ(gpucholmod_store(held_, GPUCHOLMOD_UPPER, R.data(), n, nullptr), GPUCHOLMOD_OK);
    return R;
  }
  Answer modify(const Modification& asked, bool& half_modified) {
    const index_t n = R_.rows, k = asked.k(), m = asked.sides.m;
    const Stored<S> V = asked.V.cast<S>();
    Answer answer;
    answer.sides = asked.sides;
    const Doubles Y = Eigen::Map<const Doubles>(asked.sides.Y.data(), m, m > 0 ? k : 0).transpose();
    const gpucholmod_sides sides{m, answer.sides.z.data(), n, Y.data(), m > 0 ? k : 0, answer.sides.rss.data()};
    const gpucholmod_sides* const along = m > 0 ? &sides : nullptr;
    const bool plain = asked.has_sorted_signs() && asked.removed() == 0;
    const double* const weights = plain ? nullptr : asked.weights.data();
    const double scale = asked.scale * asked.scale;
    constexpr auto update = [] {
      if constexpr (sizeof(S) == 8) return gpucholmod_update_d;
      else return gpucholmod_update_s;
    }();
    gpucholmod_status status;
    if (held_) gpucholmod_modify(held_, k, asked.V.data(), n, weights, scale, along, &status);
    else update(form_, n, k, R_.data.data(), R_.ld, V.data(), n, weights, scale, along, nullptr, 0, &status);
    half_modified = status.code == GPUCHOLMOD_HALF_MODIFIED;
    if (status.code == GPUCHOLMOD_NOT_POSITIVE_DEFINITE) answer.pivot = status.pivot - 1;
    else if (status.code != GPUCHOLMOD_OK) answer.failure = failure_of(status);
    return answer;
  }

 private:
  bool is_lower() const { return form_ & GPUCHOLMOD_LOWER; }

  int form_;
  Padded<S> R_;
  gpucholmod_factor* held_ = nullptr;
};
class CStorage : public Storage {
 public:
  CStorage(bool by_handle, int form) : by_handle_(by_handle), form_(form) {}
  void begin(const Doubles& R, Precision precision) override {
    doubles_.reset();
    floats_.reset();
    if (precision == Precision::single) floats_.emplace(R, by_handle_, form_);
    else doubles_.emplace(R, by_handle_, form_);
  }
  Doubles get() const override { return floats_ ? floats_->get() : doubles_->get(); }
  Answer modify(const Modification& asked, const Poll&) override {
    bool half_modified = false;
    const Answer answer = floats_ ? floats_->modify(asked, half_modified) : doubles_->modify(asked, half_modified);
    begun_ = half_modified;
    return answer;
  }

 private:
  bool by_handle_;
  int form_;
  std::optional<CFactorStorage<double>> doubles_;
  std::optional<CFactorStorage<float>> floats_;
};

/// The fourth of nine members of a batch. The others have other sizes of numbers.
class BatchStorage : public Storage {
 public:
  explicit BatchStorage(bool in_place) : in_place_(in_place) {}
  void begin(const Doubles& R, Precision precision) override {
    const index_t n = R.cols();
    Doubles all(n, n * members);
    for (index_t m = 0; m < members; ++m)
      all.middleCols(m * n, n) = m == here ? in_triangle<double>(R, Uplo::upper) : Doubles(Doubles::Identity(n, n) * (m + 1));
    held_ = cpu::hold_batch(all.data(), n, members, Uplo::upper, precision, allocate());
  }
  Doubles get() const override {
    Doubles R(held_->order(), held_->order());
    held_->download(here, Uplo::upper, R.data());
    return R;
  }
  Answer modify(const Modification& asked, const Poll& poll) override {
    const index_t n = held_->order(), k = asked.k();
    const Doubles before = get();
    Doubles V = Doubles::Zero(n, k * members);
    V.middleCols(here * k, k) = asked.V;
    std::vector<double> scale(members, 1);
    scale[here] = asked.scale * asked.scale;
    BatchTask task;
    task.k = k;
    task.weights = asked.weights.data();
    task.scale = scale.data();
    task.common_scale = false;
    task.threads = 1;
    std::unique_ptr<HeldBatch> made;
    Pivots pivots;
    begun_ = false;
    Answer answer = answer_of([&] {
      held_->modify(V.data(), task, in_place_ ? nullptr : &made, pivots, poll, begun_);
      for (index_t m = 0; m < members; ++m)
        EXPECT_TRUE(m == here || pivots[m] == -1);
      return pivots[here];
    });
    if (in_place_) return answer;
    EXPECT_FALSE(begun_);
    EXPECT_TRUE(same_bits(get(), before));
    EXPECT_EQ(made != nullptr, answer.is_success());
    if (made) held_ = std::move(made);
    return answer;
  }

 private:
  static constexpr index_t members = 9, here = 3;
  bool in_place_;
  std::unique_ptr<HeldBatch> held_;
};

StorageKind held(const char* name, bool in_place, Keep keep = kept) {
  StorageKind kind{name, [=] { return std::make_unique<HeldStorage>(in_place, keep); }, in_place};
  kind.polls_before_an_update = !in_place;
  return kind;
}
const auto held_as_new_one = held("Held", false).make;

StorageKind matrix(const char* name, Where where, Uplo uplo = Uplo::upper, Method method = Method::automatic,
                   bool always_doubles = false) {
  Request how;
  how.backend = Backend::cpu;
  how.method = method;
  const bool in_place = where == Where::in_place;
  StorageKind kind{name, [=] { return std::make_unique<MatrixStorage>(where, uplo, how, always_doubles); }, in_place};
  kind.lower = uplo == Uplo::lower;
  kind.loses_what_overflows = in_place;
  if (always_doubles) {  // those that are computed with in double precision are nothing special
    kind.computes = {Precision::single};
    kind.always_doubles = true;
    kind.has_range_of_scalar = false;
    return kind;
  }
  kind.polls_before_an_update = !in_place || method == Method::stream;
  if (method == Method::automatic || method == Method::stream) {
    kind.same_bits_as = held_as_new_one;
    return kind;
  }
  kind.takes_sides = kind.keeps_digits = false;
  if (method == Method::refactor) kind.computes = {Precision::double_};
  return kind;
}

StorageKind processes(const char* name, int size, bool in_place) {
  StorageKind kind{name, [=] { return std::make_unique<ProcessStorage>(size, in_place); }, in_place};
  kind.same_bits_as = held_as_new_one;
  kind.polls_before_an_update = !in_place;
  return kind;
}

StorageKind batch(const char* name, bool in_place) {
  StorageKind kind{name, [=] { return std::make_unique<BatchStorage>(in_place); }, in_place};
  kind.takes_sides = kind.keeps_digits = false;
  kind.names_added_columns_first = true;
  return kind;
}

StorageKind c_interface(const char* name, bool by_handle, int form = GPUCHOLMOD_UPPER) {
  StorageKind kind{name, [=] { return std::make_unique<CStorage>(by_handle, form); }, true};
  kind.lower = form & GPUCHOLMOD_LOWER;
  kind.has_poll = false;
  kind.looks_at_columns_of_weight_0 = by_handle;
  kind.same_bits_as = held_as_new_one;
  return kind;
}

std::vector<StorageKind> factors() {
  std::vector<StorageKind> all = {held("Held", false),
                                  held("HeldInPlace", true),
                                  held("Borrowed", false, borrowed),
                                  processes("OneProcess", 1, false),
                                  processes("OneProcessInPlace", 1, true),
                                  processes("ThreeProcesses", 3, false),
                                  processes("ThreeProcessesInPlace", 3, true),
                                  batch("BatchMember", false),
                                  batch("BatchMemberInPlace", true),
                                  c_interface("C", false),
                                  c_interface("CLower", false, GPUCHOLMOD_LOWER),
                                  c_interface("CTrusted", false, GPUCHOLMOD_UPPER | GPUCHOLMOD_TRUSTED),
                                  c_interface("CHandle", true)};
  all[1].same_bits_as = all[2].same_bits_as = held_as_new_one;
  all[2].computes = {Precision::double_};
  all[8].same_bits_as = all[7].make;
  return all;
}

const std::vector<StorageKind> matrices = {
    matrix("Matrix", Where::memory),
    matrix("MatrixLower", Where::memory, Uplo::lower),
    matrix("MatrixOfDoubles", Where::memory, Uplo::upper, Method::automatic, true),
    matrix("MatrixInPlace", Where::in_place),
    matrix("MatrixInPlaceLower", Where::in_place, Uplo::lower),
    matrix("MatrixInPlaceOfDoubles", Where::in_place, Uplo::upper, Method::automatic, true),
    matrix("Stream", Where::memory, Uplo::upper, Method::stream),
    matrix("StreamInPlace", Where::in_place, Uplo::upper, Method::stream),
    matrix("File", Where::file),
    matrix("MatrixByRotations", Where::memory, Uplo::upper, Method::reference),
    matrix("MatrixInPaperPanels", Where::memory, Uplo::upper, Method::panel),
    matrix("MatrixRefactored", Where::memory, Uplo::upper, Method::refactor)};

std::string name_of(const testing::TestParamInfo<StorageKind>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(Matrices, ModifyContract, testing::ValuesIn(matrices), name_of);
INSTANTIATE_TEST_SUITE_P(Factors, ModifyContract, testing::ValuesIn(factors()), name_of);

}  // namespace
}  // namespace gpucholmod::test
