#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/held_factor.h"
#include "base/storage.h"

namespace gpucholmod {

/// A matrix in the memory of a GPU, column-major, whose scalars and sizes are known otherwise.
struct DeviceMatrix {
  void* data;
  index_t ld;
};

/// A factor in the memory of a GPU. Made by the functions of namespace cuda below. In a process forked since, its
/// destructor leaves everything alone.
///
/// Every function throws out_of_memory with `needed` and `available`, backend_unavailable (reason "forked" in a forked
/// process), cuda_failure. More than 32 columns of V go in passes.
class DeviceFactor : public HeldFactor {
 public:
  bool on_gpu() const override { return true; }
  virtual int device() const = 0;
  /// Whether it lies on several GPUs; device() is the first.
  virtual bool is_shared() const = 0;
  virtual std::string device_name() const = 0;
  /// Where it lies: on one GPU, or its strips in turn on several.
  struct Share {
    int device;
    double bytes;
  };
  virtual std::vector<Share> shares() const = 0;
  /// The triangle of `to` that uplo names <- R, or R'. `to`: in the memory of this GPU, as large as the factor, of its
  /// scalars; its other triangle becomes zero, if `clear`, or stays as it is.
  virtual void give(Uplo uplo, const DeviceMatrix& to, bool clear) const = 0;

  // To measure by; device times are medians of `repeats` >= 1 by events, after one run to warm up. 0 for order 0.

  /// To solve with A for B (n x m), which is there already: by cuBLAS, or by the chain of a modification. NaN where the
  /// chain cannot.
  virtual double solve_seconds(const double* B, index_t m, bool by_cublas, int repeats) const = 0;
  /// A plain kernel that reads the triangle and writes it somewhere else: what no modification can beat.
  virtual double sweep_seconds(int repeats) const = 0;
  /// cuSOLVER's factorisation of A, which is formed on the GPU beforehand, by the triangle that takes less time. NaN
  /// where A, rounded, has none. Throws also backend_unavailable with reason "no_cublas" or "no_cusolver".
  virtual double refactor_seconds(int repeats) const = 0;
};

namespace cuda {

/// GPUs by their ids: one, or -1 for the first that can be used, or several that hold a factor together.
struct Devices {
  std::vector<int> ids;
  Devices(int id) : ids{id} {}
  Devices(std::vector<int> all) : ids(std::move(all)) {}
};

/// Puts the factor R (n x n, upper, or lower when uplo says so; the other triangle is never read; finite, positive
/// diagonal) on GPUs, with room for `capacity` rows and columns. S is double or float. Throws what DeviceFactor does,
/// bad_argument where there is no such device or they are not of one kind, and backend_unavailable with reason
/// "no_peer_access" or "no_virtual_memory" where they cannot hold a factor together.
template <class S>
std::unique_ptr<DeviceFactor> upload(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                     const Devices& devices);

/// The same of an upper factor that is read once, from its first column to its last, and never whole in the host's
/// memory. `poll` is called meanwhile; what it and R throw passes through.
std::unique_ptr<DeviceFactor> upload(const Source<double>& R, index_t n, Precision precision, index_t capacity,
                                     const Devices& devices, const Poll& poll);

/// Puts a factor R (n x n, of which one triangle is read), which is in the memory of the GPU `device`, to memory of its
/// own there. S is its precision. Null if that has to be looked at by upload(): some number is not finite, or no normal
/// number, or negative, on the diagonal.
template <class S>
std::unique_ptr<DeviceFactor> take(MatrixView<const S> R, Uplo uplo, index_t capacity, int device);

/// The factor of the symmetric A (n x n; the triangle that uplo names is read), made on the GPU by cuSOLVER. Null when
/// A is not positive definite: pivot is then the first leading minor (from 0) that is not. Throws also
/// backend_unavailable with reason "no_cusolver".
template <class S>
std::unique_ptr<DeviceFactor> factorise(const S* A, index_t n, Uplo uplo, Precision precision, const Devices& devices,
                                        index_t& pivot);

}  // namespace cuda
}  // namespace gpucholmod
