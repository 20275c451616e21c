#include "modify_diagonal.h"

#include "base/semidefinite.h"
#include "batch_call.h"
#include "batch_storage.h"
#include "c_storage.h"
#include "cpu/host_factor.h"
#include "led_here.h"
#include "process_storage.h"

/// The contract of modifications, for every storage that needs no GPU.
namespace gpucholmod::test {
namespace {

const Keep kept = [](const Doubles& R, Precision precision, index_t capacity) {
  return keep_with_zeros(R.data(), R.cols(), Uplo::upper, precision, [&](const double* numbers) {
    return cpu::hold(numbers, R.cols(), Uplo::upper, precision, capacity, cpu::ordinary_memory);
  });
};
const Keep borrowed = [](const Doubles& R, Precision, index_t) {
  return cpu::borrow(R.data(), R.cols(), cpu::ordinary_memory);
};

const KeepBatch kept_batch = [](const double* R, index_t n, index_t b, Precision precision) {
  return cpu::hold_batch(R, n, b, Uplo::upper, precision, cpu::ordinary_memory);
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
  if (always_doubles) {  // doubles that are computed with in double precision need no tests of their own
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

StorageKind processes(const char* name, int size, bool in_place, bool led = false) {
  const auto make = [=] {
    return std::make_unique<ProcessStorage>(size, in_place, cpu::ordinary_memory,
                                            led ? led_here(1, cpu::ordinary_memory) : mpi::MakePanels());
  };
  StorageKind kind{name, make, in_place};
  kind.same_bits_as = held_as_new_one;
  kind.polls_before_an_update = !in_place;
  kind.takes_zeros = false;
  return kind;
}

StorageKind batch(const char* name, bool in_place) {
  StorageKind kind{name, [=] { return std::make_unique<BatchStorage>(in_place, kept_batch); }, in_place};
  kind.keeps_digits = kind.takes_zeros = false;
  kind.names_added_columns_first = true;
  return kind;
}

StorageKind c_interface(const char* name, bool by_handle, int form = GPUCHOLMOD_UPPER) {
  StorageKind kind{name, [=] { return std::make_unique<CStorage>(CFactor{by_handle, form}); }, true};
  kind.lower = form & GPUCHOLMOD_LOWER;
  kind.has_poll = false;
  kind.same_bits_as = held_as_new_one;
  return kind;
}

/// Returns every storage that needs no GPU.
std::vector<StorageKind> storages() {
  const StorageKind member = batch("BatchMember", false);
  StorageKind in_place = held("HeldInPlace", true), borrows = held("Borrowed", false, borrowed),
              member_in_place = batch("BatchMemberInPlace", true);
  in_place.same_bits_as = borrows.same_bits_as = held_as_new_one;
  borrows.computes = {Precision::double_};
  borrows.takes_zeros = false;
  member_in_place.same_bits_as = member.make;
  return {matrix("Matrix", Where::memory),
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
          matrix("MatrixRefactored", Where::memory, Uplo::upper, Method::refactor),
          held("Held", false),
          in_place,
          borrows,
          processes("OneProcess", 1, false),
          processes("OneProcessInPlace", 1, true),
          processes("ThreeProcesses", 3, false),
          processes("ThreeProcessesInPlace", 3, true),
          processes("LedByOneOfThree", 3, false, true),
          processes("LedByOneOfThreeInPlace", 3, true, true),
          member,
          member_in_place,
          c_interface("C", false),
          c_interface("CLower", false, GPUCHOLMOD_LOWER),
          c_interface("CTrusted", false, GPUCHOLMOD_UPPER | trusted_form),
          c_interface("CHandle", true)};
}

INSTANTIATE_TEST_SUITE_P(Cpu, ModifyContract, testing::ValuesIn(storages()), name_of);
INSTANTIATE_TEST_SUITE_P(Cpu, ModifyContractPolled, testing::ValuesIn(polled(storages())), name_of);
INSTANTIATE_TEST_SUITE_P(Cpu, ModifyContractSameBits, testing::ValuesIn(with_same_bits(storages())), name_of);

}  // namespace
}  // namespace gpucholmod::test
