#include "../modify_diagonal.h"

#include "../batch_storage.h"
#include "../process_storage.h"
#include "base/semidefinite.h"
#include "cpu/host_factor.h"
#include "cuda/device_batch.h"
#include "factor_call.h"
#include "gpu_memory.h"
#include "mpi_cuda/backend.h"

/// The contract of modifications, for every storage on a GPU.
namespace gpucholmod::test {
namespace {

/// Returns a Keep on `count` GPUs; the first GPU that can be used takes the place of all.
Keep on_gpus(int count) {
  return [count](const Doubles& R, Precision precision, index_t capacity) {
    const cuda::Devices devices(std::vector<int>(std::size_t(count), cuda::status(false).device));
    return keep_with_zeros(R.data(), R.cols(), Uplo::upper, precision, [&](const double* numbers) {
      return std::unique_ptr<HeldFactor>(cuda::upload(numbers, R.cols(), Uplo::upper, precision, capacity, devices));
    });
  };
}
const KeepBatch batch_on_gpu = [](const double* R, index_t n, index_t b, Precision precision) {
  return std::unique_ptr<HeldBatch>(cuda::upload_batch(R, n, b, Uplo::upper, precision, -1));
};

StorageKind held(const char* name, bool in_place, int gpus = 1) {
  StorageKind kind{name, [=] { return std::make_unique<HeldStorage>(in_place, on_gpus(gpus)); }, in_place};
  kind.always_polls = false;
  return kind;
}
const auto held_as_new_one = held("Held", false).make;

StorageKind streamed(const char* name, Where where, Uplo uplo = Uplo::upper, bool always_doubles = false) {
  Request how;
  how.backend = Backend::cuda;
  how.method = Method::stream;
  const bool in_place = where == Where::in_place;
  StorageKind kind{name, [=] { return std::make_unique<MatrixStorage>(where, uplo, how, always_doubles); }, in_place};
  kind.lower = uplo == Uplo::lower;
  kind.loses_what_overflows = in_place;
  kind.always_polls = false;
  if (!always_doubles) return kind;
  kind.computes = {Precision::single};
  kind.always_doubles = true;
  kind.has_range_of_scalar = false;
  return kind;
}

/// Returns a factor that process 0 holds on a GPU which is that of all three processes.
StorageKind led(const char* name, bool in_place) {
  const auto make = [=] {
    return std::make_unique<ProcessStorage>(3, in_place, cpu::ordinary_memory, mpi_cuda::panels_on_gpus(0, true));
  };
  StorageKind kind{name, make, in_place};
  kind.always_polls = kind.takes_zeros = false;
  kind.same_bits_as = held_as_new_one;
  return kind;
}

StorageKind batch(const char* name, bool in_place) {
  StorageKind kind{name, [=] { return std::make_unique<BatchStorage>(in_place, batch_on_gpu); }, in_place};
  kind.takes_zeros = kind.names_row_of_overflow = false;
  kind.names_added_columns_first = true;
  return kind;
}

StorageKind c_handle(const char* name) {
  const auto make = [] { return std::make_unique<CStorage>(CFactor{true, GPUCHOLMOD_UPPER, GPUCHOLMOD_ANY_GPU}); };
  StorageKind kind{name, make, true};
  kind.has_poll = false;
  return kind;
}

StorageKind callers_memory(const char* name, int form, bool all_on_gpu) {
  StorageKind kind{name, [=] { return std::make_unique<GpuMemoryStorage>(GpuMemory{form, all_on_gpu}); }, true};
  kind.lower = form == GPUCHOLMOD_LOWER;
  kind.has_poll = false;
  return kind;
}

/// Returns every kind of storage on a GPU.
std::vector<StorageKind> storages() {
  const StorageKind member = batch("BatchMember", false), stream = streamed("Stream", Where::memory);
  StorageKind in_place = held("HeldInPlace", true), two = held("HeldByTwo", false, 2),
              two_in_place = held("HeldByTwoInPlace", true, 2), member_in_place = batch("BatchMemberInPlace", true),
              stream_in_place = streamed("StreamInPlace", Where::in_place), file = streamed("File", Where::file),
              handle = c_handle("CHandle"), memory = callers_memory("CallersMemory", GPUCHOLMOD_UPPER, true);
  memory.same_bits_as = held_as_new_one;
  in_place.same_bits_as = two.same_bits_as = two_in_place.same_bits_as = handle.same_bits_as = held_as_new_one;
  stream_in_place.same_bits_as = file.same_bits_as = stream.make;
  member_in_place.same_bits_as = member.make;
  std::vector<StorageKind> all = {held("Held", false),
                                  in_place,
                                  two,
                                  two_in_place,
                                  led("LedByOneOfThree", false),
                                  led("LedByOneOfThreeInPlace", true),
                                  handle,
                                  memory,
                                  callers_memory("CallersMemoryLower", GPUCHOLMOD_LOWER, true),
                                  callers_memory("CallersMemoryAndHost", GPUCHOLMOD_UPPER, false),
                                  stream,
                                  streamed("StreamLower", Where::memory, Uplo::lower),
                                  streamed("StreamOfDoubles", Where::memory, Uplo::upper, true),
                                  stream_in_place,
                                  file,
                                  member,
                                  member_in_place};
  for (StorageKind& kind : all) kind.keeps_digits = false;  // near an end of the range they use Householder steps
  return all;
}

INSTANTIATE_TEST_SUITE_P(Gpu, ModifyContract, testing::ValuesIn(storages()), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, ModifyContractPolled, testing::ValuesIn(polled(storages())), name_of);
INSTANTIATE_TEST_SUITE_P(Gpu, ModifyContractSameBits, testing::ValuesIn(with_same_bits(storages())), name_of);

}  // namespace
}  // namespace gpucholmod::test
