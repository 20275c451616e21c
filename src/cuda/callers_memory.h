#pragma once

#include <atomic>
#include <functional>
#include <optional>

#include "base/columns_of_v.h"
#include "base/task.h"

/// Access to memory of GPUs that belongs to the caller. All functions throw backend_unavailable and cuda_failure.
namespace gpucholmod::cuda {

/// Returns the id of the GPU in whose memory `data` is; -1: in host memory. Throws backend_unavailable if this is not
/// the CUDA backend.
int device_of(const void* data);

/// Makes work that is queued on GPU `device` from now on wait for the work that is now in `stream`, a cudaStream_t.
/// Throws bad_argument while the stream is captured, as calls wait for the GPU.
void follow(int device, void* stream);

/// Copies a matrix between the memory of a GPU, at A.data, and host memory, where it has no gaps. Waits for the copy.
template <class S>
void copy_to_host(int device, MatrixView<const S> A, S* out);
template <class S>
void copy_to_device(int device, const S* from, MatrixView<S> A);
/// Copies the triangle of a square matrix that uplo names, as copy_to_device() copies a matrix. The other triangle on
/// the GPU stays as it is.
template <class S>
void copy_triangle_to_device(int device, const S* from, Uplo uplo, MatrixView<S> A);
/// Copies many numbers as copy_to_host() does, by several threads, and through Context::staging(), which must not be in
/// use.
void fetch_many(int device, MatrixView<const double> A, double* out);

/// The columns of a matrix in the memory of a GPU as doubles without gaps: the matrix itself, or a copy on that GPU.
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

/// Calls f(numbers), which changes the numbers of A, a matrix in the memory of a GPU. f receives them as doubles
/// without gaps: A itself, or a copy on that GPU, which is then written to A. Throws overflow if a changed number is
/// too large for S; A is then as it was.
template <class S>
void change_on_device(int device, MatrixView<S> A, const std::function<void(double*)>& f);

/// An upper factor in the memory of a GPU, and the matrix for the modified factor, which may be the same one.
template <class T>
struct CallersFactor {
  int device;
  MatrixView<const T> R;
  MatrixView<T> out;
  bool trusted;  ///< True if R consists of finite numbers, with a positive diagonal
};

/// Modifies a factor in the caller's memory, without a copy of it. Allocates memory for parts that are O(n), and, in
/// place, for the result if that fits into the memory that is kept. Returns nothing if the modification cannot be done
/// in this way, as for right-hand sides, memory that is not aligned to 16 bytes, or numbers that need care: R is then
/// as it was, and `out`, if it is another matrix, is lost. Throws also what HeldFactor::modify() throws; if `begun` is
/// then true, R is half modified.
template <class T>
std::optional<Work> modify_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task,
                                       const Poll& poll, std::atomic<bool>& begun);

/// The stream and the verdict of a queued modification: `stream`, a cudaStream_t, waits for the modification and for
/// *verdict, which is in the memory of the GPU.
struct Queued {
  void* stream;
  int* verdict;
};

/// Queues the modification of a factor into `out`, another matrix, and waits for nothing. When the modification has
/// run, *verdict is 0 or 1; if 1, the host has to look at the numbers, and `out` is lost. Returns false, and does
/// nothing, if modify_where_it_is() would return nothing before it begins, or if the modification would run by
/// Householder steps alone. The stream waits for what is queued even if this function throws.
template <class T>
bool queue_where_it_is(const CallersFactor<T>& factor, const ColumnsOfV& V, const Task& task, const Queued& how);

}  // namespace gpucholmod::cuda
