#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/held_factor.h"
#include "base/storage.h"

namespace gpucholmod {

/// A column-major matrix in the memory of a GPU. The functions that take one know its scalars and sizes.
struct DeviceMatrix {
  void* data;
  index_t ld;
};

/// A factor in the memory of a GPU, made by the functions of namespace cuda below. In a process forked later, its
/// destructor frees nothing.
///
/// Every function throws out_of_memory with `needed` and `available`, backend_unavailable (reason "forked" in a forked
/// process), and cuda_failure. More than 32 columns of V are taken in several passes.
class DeviceFactor : public HeldFactor {
 public:
  bool on_gpu() const override { return true; }
  virtual int device() const = 0;
  /// Returns whether the factor is on several GPUs, of which device() is the first.
  virtual bool is_shared() const = 0;
  virtual std::string device_name() const = 0;
  /// The bytes of the factor on one GPU. Several GPUs hold its strips in turn.
  struct Share {
    int device;
    double bytes;
  };
  virtual std::vector<Share> shares() const = 0;
  /// Copies R, or R' if uplo is lower, to the triangle of `to` that uplo names. `to` is in the memory of this GPU, of
  /// the factor's order and scalars; its other triangle becomes zero if `clear` is true, and otherwise stays as it is.
  virtual void give(Uplo uplo, const DeviceMatrix& to, bool clear) const = 0;

  // Measurements. Device times are medians of `repeats` >= 1 runs, by events, after one run to warm up; 0 for order 0.

  /// Returns the time to solve with A for B (n x m), without sending B: by cuBLAS, or by the chain of a modification.
  /// NaN if the chain cannot run on this device.
  virtual double solve_seconds(const double* B, index_t m, bool by_cublas, int repeats) const = 0;
  /// Returns the time of a plain kernel that reads the triangle and writes it somewhere else. No modification can be
  /// quicker.
  virtual double sweep_seconds(int repeats) const = 0;
  /// Returns the time of cuSOLVER's factorisation of A, which is formed on the GPU beforehand, by the triangle that
  /// takes less time. NaN if A, rounded, is not positive definite. Throws also backend_unavailable with reason
  /// "no_cublas" or "no_cusolver".
  virtual double refactor_seconds(int repeats) const = 0;
};

namespace cuda {

/// The GPUs for a factor, by their ids: one, or -1 for the first that can be used, or several that hold a factor
/// together.
struct Devices {
  std::vector<int> ids;
  Devices(int id) : ids{id} {}
  Devices(std::vector<int> all) : ids(std::move(all)) {}
};

/// Puts the factor R (n x n, upper, or lower if uplo says so; the other triangle is never read; finite, positive
/// diagonal) on GPUs, with room for `capacity` rows and columns. S is double or float. Throws what DeviceFactor does,
/// bad_argument if there is no such device or the devices are not of one kind, and backend_unavailable with reason
/// "no_peer_access" or "no_virtual_memory" if they cannot hold a factor together.
template <class S>
std::unique_ptr<DeviceFactor> upload(const S* R, index_t n, Uplo uplo, Precision precision, index_t capacity,
                                     const Devices& devices);

/// Puts an upper factor on GPUs. Reads the factor once, from its first column to its last; it is never whole in host
/// memory. Calls `poll` meanwhile. Exceptions that `poll` or R throws pass through.
std::unique_ptr<DeviceFactor> upload(const Source<double>& R, index_t n, Precision precision, index_t capacity,
                                     const Devices& devices, const Poll& poll);

/// Copies a factor R (n x n, of which one triangle is read) from the caller's memory on the GPU `device` to memory of
/// its own there, in the precision of S. Returns null if upload() has to look at R: a number is not finite, or one on
/// the diagonal is not a normal positive number.
template <class S>
std::unique_ptr<DeviceFactor> take(MatrixView<const S> R, Uplo uplo, index_t capacity, int device);

/// Computes the factor of the symmetric A (n x n; the triangle that uplo names is read) on the GPU by cuSOLVER. Returns
/// null if A is not positive definite: `pivot` is then the first leading minor (from 0) that is not. Throws also
/// backend_unavailable with reason "no_cusolver".
template <class S>
std::unique_ptr<DeviceFactor> factorise(const S* A, index_t n, Uplo uplo, Precision precision, const Devices& devices,
                                        index_t& pivot);

}  // namespace cuda
}  // namespace gpucholmod
