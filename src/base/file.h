#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/storage.h"

/// Factors in files: n x n doubles, column-major, native byte order, no header. The upper triangle is the factor; the
/// rest is never read.
///
/// The functions use pread() and pwrite(), not mmap(). In a mapping, a full disk or a file that another process
/// truncates raises SIGBUS, which ends R; pread() and pwrite() fail instead, which becomes an Error.
///
/// Failures throw Error: bad_file with the fields `path` and `reason`. The reasons are "missing", "not_a_file",
/// "not_readable", "wrong_size" (and `size`, bytes), "changed", "exists", "read_only", "same_file", "not_writable",
/// "no_space", "failed" (and `error`, the system's text); on Windows the reason is always "unsupported".
namespace gpucholmod {

/// Identifies a file by device and inode, and its contents by size and time of the last write.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, seconds = 0, nanoseconds = 0;  ///< size in bytes; time of the last write

  bool same_file(const FileState& other) const { return device == other.device && inode == other.inode; }
  bool same_contents(const FileState& other) const {
    return size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds;
  }
};

/// Owns an open file, and closes it in the destructor.
struct Descriptor : NotCopied {
  int fd = -1;

  ~Descriptor();
};

/// Owns the name of a file, and deletes the file in the destructor, unless the name is empty.
struct TemporaryName : NotCopied {
  std::string path;

  ~TemporaryName();
};

/// Reads a factor from a file, which is opened for reading only.
class FactorFile : public Source<double> {
 public:
  /// Opens the file. Throws missing, not_a_file, not_readable, wrong_size, failed.
  explicit FactorFile(const std::string& path);
  index_t order() const { return n_; }
  const FileState& state() const { return state_; }

  /// Copies rows [first, last) of column j to `scratch`. Throws changed if the file ends before the matrix does, and
  /// failed.
  const double* column(index_t j, index_t first, index_t last, double* scratch) const override;
  /// Throws changed if the size or the time of the last write has changed since the file was opened. Does not tell
  /// apart writes within one tick of the file system's clock.
  void require_unchanged() const;
  /// Throws changed unless the order is n, the order that the file had before.
  void require_order(index_t n) const {
    if (n_ != n)
      throw Error(ErrorCode::bad_file, "'" + path_ + "' is not of the order that it was",
                  {{"path", path_}, {"reason", "changed"}});
  }
  /// Calls f, which reads the file. Throws changed if the file has changed meanwhile, even if f throws another Error.
  template <class F>
  void read(F&& f) const {
    try {
      f();
    } catch (const Error&) {
      require_unchanged();
      throw;
    }
    require_unchanged();
  }

 private:
  std::string path_;
  Descriptor file_;
  FileState state_;
  index_t n_ = 0;
};

/// Writes a factor to a temporary file `<path>.XXXXXX.part` beside its final place. commit() gives the complete file
/// its name; without commit() the destructor deletes the temporary file. Entries that are never put are zero.
///
/// The temporary file is locked (flock()) as long as the object lives. A temporary file without a lock was left by a
/// process that was killed; the next object for the same path deletes that file in its constructor.
class OutputFile : public Sink<double> {
 public:
  /// Creates the temporary file. With `replace`, an ordinary file at `path` may be replaced, unless it has no write
  /// permission. That file may be `input`, which can still be read as long as it is open. The checks follow a symbolic
  /// link to its target, but commit() replaces the link itself, and the target stays. Throws same_file, not_a_file,
  /// exists, read_only; for the folder, missing and not_writable; no_space, failed; and wrong_size for n = 0, because
  /// an empty file is no factor.
  OutputFile(const std::string& path, index_t n, bool replace, const FactorFile* input = nullptr);

  /// Writes rows [first, last) of column j. Throws no_space, failed.
  void put(index_t j, index_t first, index_t last, const double* values) override;
  /// Does nothing, because entries that were never put are zero. Must not be called for entries that were put.
  void clear(index_t, index_t, index_t) override {}

  /// Waits until the disk has all data, then makes the file appear under its name; may be called once. The permissions
  /// are those of the file that is replaced, or those that the umask leaves of 0666. Without `replace`, a file that has
  /// appeared under the name since the constructor is not touched. After a throw, nothing has changed under the name.
  /// Throws exists, no_space, failed.
  void commit();

 private:
  void publish();

  std::string path_;
  TemporaryName temporary_;
  Descriptor file_, lock_;  ///< lock_: a second descriptor, which keeps the lock until the file has its name
  index_t n_;
  bool replace_;
  int replaced_mode_ = -1;  ///< permission bits of the file to be replaced; -1: none
};

}  // namespace gpucholmod
