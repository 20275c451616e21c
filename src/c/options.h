#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <vector>

#include "c/interface.h"
#include "cuda/callers_memory.h"

/// The choices that a caller makes by gpucholmod_options.
namespace gpucholmod::c {

/// Flags for the options that a function has; a caller may set no other option.
namespace option {
enum : unsigned {
  triangle = 1,
  trusted = 2,
  threads = 4,
  device = 8,
  workspace = 16,
  progress = 32,
  stream = 64,
  verdict = 128,
  devices = 256
};
}

/// The options of functions that change a factor in the caller's memory.
constexpr unsigned in_callers_memory =
    option::triangle | option::threads | option::progress | option::device | option::stream;

struct Options {
  Uplo uplo = Uplo::upper;
  bool trusted = false;
  int threads = 1;  ///< number of threads, as in Task: 0 for as many as are of use
  int device = GPUCHOLMOD_HOST;
  void* workspace = nullptr;
  std::size_t workspace_size = 0;
  gpucholmod_progress progress = nullptr;
  void* progress_data = nullptr;
  void* stream = nullptr;
  int* verdict = nullptr;
  std::vector<int> devices;  ///< GPUs that hold a factor together; empty: `device` is the only place

  /// Returns the GPU whose memory holds `data`, or -1 for the host's memory; if `device` is GPUCHOLMOD_HOST, all
  /// numbers are in the host's memory. Makes work on the GPU that is found wait for `stream`. Throws bad_argument if
  /// this GPU is not `device`, unless `device` is GPUCHOLMOD_ANY_GPU, or not the GPU that earlier calls found.
  int gpu_of(const char* argument, const void* data) const {
    if (device == GPUCHOLMOD_HOST || !data) return -1;
    const int found = cuda::device_of(data);
    if (found < 0) return -1;
    const bool is_here = device == GPUCHOLMOD_ANY_GPU || found == device;
    require(is_here && (followed_ < 0 || found == followed_), argument, "is in the memory of another GPU");
    if (followed_ < 0) cuda::follow(found, stream);
    followed_ = found;
    return found;
  }
  /// Returns a function that calls the progress function, if there is one, and throws Stopped if that asks to stop.
  Poll poll() const {
    if (!progress) return unwatched;
    return [call = progress, data = progress_data](double done) {
      if (call(done, data) != 0) throw Stopped();
    };
  }

 private:
  mutable int followed_ = -1;  ///< the GPU whose work already waits for `stream`; -1: none
};

/// The least size of options: the size in the first header whose GPUCHOLMOD_ABI is 2. Later headers append fields.
constexpr std::size_t least_options = offsetof(gpucholmod_options, device_count) + sizeof(ptrdiff_t);
static_assert(GPUCHOLMOD_ABI == 2, "another ABI has another least size");

/// Returns the caller's options; fields that the program's header lacks are as in GPUCHOLMOD_OPTIONS_INIT. Throws
/// bad_argument unless the fields that the library does not know are all 0.
inline gpucholmod_options known_of(const gpucholmod_options& given) {
  constexpr std::size_t known = sizeof(gpucholmod_options), most = 4096;
  require(given.size >= least_options && given.size <= most, "options->size", "must be sizeof(gpucholmod_options)");
  const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(&given);
  for (std::size_t i = known; i < given.size; ++i)
    require(bytes[i] == 0, "options", "has a field that this version of gpucholmod does not know");
  gpucholmod_options all = GPUCHOLMOD_OPTIONS_INIT;
  std::memcpy(&all, &given, std::min(given.size, known));
  return all;
}

/// Returns the options of a call to a function that has the options `allowed`, a sum of flags of namespace option.
/// Throws bad_argument.
inline Options options_of(const gpucholmod_options* asked, unsigned allowed) {
  Options options;
  if (!asked) return options;
  const gpucholmod_options given = known_of(*asked);
  const auto has = [&](unsigned field, bool is_default, const char* name) {
    require(is_default || (allowed & field), name, "is no option of this function");
  };
  has(option::triangle, given.triangle == GPUCHOLMOD_UPPER, "options->triangle");
  has(option::trusted, given.trusted == 0, "options->trusted");
  has(option::threads, given.threads == 0, "options->threads");
  has(option::device, given.device == GPUCHOLMOD_HOST, "options->device");
  has(option::workspace, !given.workspace, "options->workspace");
  has(option::progress, !given.progress, "options->progress");
  has(option::stream, !given.stream, "options->stream");
  has(option::verdict, !given.verdict, "options->verdict");
  has(option::devices, !given.devices && given.device_count == 0, "options->devices");
  require(given.triangle == GPUCHOLMOD_UPPER || given.triangle == GPUCHOLMOD_LOWER, "options->triangle",
          "must be GPUCHOLMOD_UPPER or GPUCHOLMOD_LOWER");
  require(given.trusted == 0 || given.trusted == 1, "options->trusted", "must be 0 or 1");
  require(given.threads >= GPUCHOLMOD_ALL_THREADS, "options->threads", "must not be below GPUCHOLMOD_ALL_THREADS");
  require(given.device >= GPUCHOLMOD_ANY_GPU, "options->device", "must not be below GPUCHOLMOD_ANY_GPU");
  options.uplo = given.triangle == GPUCHOLMOD_LOWER ? Uplo::lower : Uplo::upper;
  options.trusted = given.trusted == 1;
  options.threads = given.threads == GPUCHOLMOD_ALL_THREADS ? 0 : std::max(given.threads, 1);
  options.device = given.device;
  options.workspace = given.workspace;
  options.workspace_size = given.workspace_size;
  options.progress = given.progress;
  options.progress_data = given.progress_data;
  options.stream = given.stream;
  options.verdict = given.verdict;
  require(given.device_count >= 0 && (given.device_count > 0) == (given.devices != nullptr), "options->device_count",
          "must be the number of options->devices");
  require(given.device_count == 0 || given.device == GPUCHOLMOD_HOST, "options->device",
          "is not chosen where there are options->devices");
  for (index_t i = 0; i < given.device_count; ++i)
    require(given.devices[i] >= 0, "options->devices", "must be numbers of GPUs");
  if (given.device_count > 0) options.devices.assign(given.devices, given.devices + given.device_count);
  return options;
}

}  // namespace gpucholmod::c
