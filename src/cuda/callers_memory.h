#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "base/columns_of_v.h"
#include "base/task.h"

/// Memory of GPUs that is the caller's. All functions throw backend_unavailable and cuda_failure.
namespace gpucholmod::cuda {

/// Returns the number of the GPU that `data` is in the memory of; -1: in the host's. Throws backend_unavailable where
/// this is not the CUDA backend.
int device_of(const void* data);

/// Work that is queued on a GPU from now on begins when what is queued in `stream`, a cudaStream_t, is done. Throws
/// bad_argument while the stream is captured, as calls wait for the GPU.
void follow(int device, void* stream);

/// Copies a matrix from, or to, the memory of a GPU, where A.data is, without gaps in the host's, and waits for it.
template <class S>
void copy_to_host(int device, MatrixView<const S> A, S* out);
template <class S>
void copy_to_device(int device, const S* from, MatrixView<S> A);
/// The same of the triangle of a square matrix alone: the other one on the GPU stays as it is.
template <class S>
void copy_triangle_to_device(int device, const S* from, Uplo uplo, MatrixView<S> A);
/// As copy_to_host(), for many numbers: by several threads, and by way of Context::staging(), which must not be in use.
void fetch_many(int device, MatrixView<const double> A, double* out);

/// Columns in the memory of a GPU as doubles one after the other without a gap: where they are, or a copy there.
class ColumnsOnDevice : NotCopied {
 public:
  template <class S>
  ColumnsOnDevice(int device, MatrixView<const S> V);
  ~ColumnsOnDevice();
  const double* data() const { return data_; }

 private:
  struct Copy;
  Copy* copy_ = nullptr;
  const double* data_;
};

/// Calls f(numbers) for a matrix in the memory of a GPU as doubles without gaps there, which f changes; then A <- them.
/// They are where A is, or a copy. Throws overflow if one is too large for S: A is then as it was.
template <class S>
void change_on_device(int device, MatrixView<S> A, const std::function<void(double*)>& f);

/// An upper factor in the memory of a GPU, and where the modified one goes, which may be the same place.
template <class T>
struct CallersFactor {
  int device;
  MatrixView<const T> R;
  MatrixView<T> out;
  bool trusted;  ///< R consists of finite numbers, with a positive diagonal
};

/// Modifies it where it is, without a copy of it, but of parts that are O(n), and, in place, where there is memory kept
/// for that, of the result. Returns nothing where that cannot be, as for right-hand sides, memory that is not aligned
/// to 16 bytes, or numbers that need care: then R is as it was, and `out`, if that is another matrix, lost. Throws also
/// what HeldFactor::modify() does; if `begun` is true then, R is half modified.
template <class T>
std::optional<Work> modify_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task,
                                       const Poll& poll, std::atomic<bool>& begun);

/// How a modification is queued: `stream`, a cudaStream_t, waits for it, and for *verdict, in the memory of the GPU.
struct Queued {
  void* stream;
  int* verdict;
};

/// Queues the same to `out`, another matrix, and waits for nothing. Then *verdict is 0; or 1, where something has to be
/// looked at by the host, and `out` is lost. Returns false, and does nothing, where modify_where_it_is() returns
/// nothing before it begins, and on a GPU whose kernels go by steps. The stream waits for what is queued also where
/// this throws.
template <class T>
bool queue_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task, const Queued& how);

}  // namespace gpucholmod::cuda
