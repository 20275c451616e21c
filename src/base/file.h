#pragma once

#include <cstdint>
#include <string>

#include "base/error.h"
#include "base/storage.h"

/// Factors in files: n x n doubles, column-major, native byte order, no header. The upper triangle is the factor, the
/// rest is never read.
///
/// By pread() and pwrite(), not mmap(): in a mapping, a file that somebody else truncates, or a disk that is full, is a
/// SIGBUS, which ends R; here it is an Error.
///
/// Everything throws Error: bad_file with the fields `path` and `reason`: "missing", "not_a_file", "not_readable",
/// "wrong_size" (and `size`, bytes), "changed", "exists", "read_only", "same_file", "not_writable", "no_space",
/// "failed" (and `error`, the system's text), and on Windows, for all of it, "unsupported".
namespace gpucholmod {

/// Which file, and which contents of it as far as that shows from outside.
struct FileState {
  std::uint64_t device = 0, inode = 0;
  std::int64_t size = 0, seconds = 0, nanoseconds = 0;  ///< bytes; time of the last write

  bool same_file(const FileState& other) const { return device == other.device && inode == other.inode; }
  bool same_contents(const FileState& other) const {
    return size == other.size && seconds == other.seconds && nanoseconds == other.nanoseconds;
  }
};

/// An open file, closed with the object.
struct Descriptor : NotCopied {
  int fd = -1;

  ~Descriptor();
};

/// A file to be deleted with the object; none if the name is empty.
struct TemporaryName : NotCopied {
  std::string path;

  ~TemporaryName();
};

/// A factor to read; the file is opened for reading only.
class FactorFile : public Source<double> {
 public:
  /// Throws missing, not_a_file, not_readable, wrong_size, failed.
  explicit FactorFile(const std::string& path);
  index_t order() const { return n_; }
  const FileState& state() const { return state_; }

  /// Throws changed (the file ends before the matrix does), failed.
  const double* column(index_t j, index_t first, index_t last, double* scratch) const override;
  /// Throws changed if size or time of the last write are not what they were when the file was opened. Writes within
  /// one tick of the file system's clock are not told apart.
  void require_unchanged() const;
  /// Throws changed unless the order is n, as it was.
  void require_order(index_t n) const {
    if (n_ != n)
      throw Error(ErrorCode::bad_file, "'" + path_ + "' is not of the order that it was",
                  {{"path", path_}, {"reason", "changed"}});
  }
  /// Calls f, which reads the file. Throws changed if that has changed meanwhile, whatever f has found.
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

/// A factor to write, beside its place until it is complete: as `<path>.XXXXXX.part`, which is deleted with the object
/// unless commit() has put it under its name. What is never put is zero.
///
/// The temporary file is locked (flock()) as long as the object lives. One that is there without a lock was left by a
/// process that was killed, and is deleted when the next object for the same path is made.
class OutputFile : public Sink<double> {
 public:
  /// replace: an ordinary file that is there may be replaced, but for one that has no write permission. It may be
  /// `input`, which can be read on as long as it is open. A symbolic link counts as what it points to when it is
  /// checked; when it is replaced, the link itself is, and what it points to stays. Throws same_file, not_a_file,
  /// exists, read_only; of the folder, missing, not_writable; no_space, failed; wrong_size for n = 0: an empty file is
  /// no factor.
  OutputFile(const std::string& path, index_t n, bool replace, const FactorFile* input = nullptr);

  /// Throws no_space, failed.
  void put(index_t j, index_t first, index_t last, const double* values) override;
  /// For what was never put.
  void clear(index_t, index_t, index_t) override {}

  /// Waits until the disk has everything, then makes the file appear under its name, once. Permissions: those of the
  /// file that it replaces, or what the umask leaves of 0666. Without `replace`, a file that has appeared there since
  /// is not touched. After a throw, nothing has changed under the name.
  /// Throws exists, no_space, failed.
  void commit();

 private:
  void publish();

  std::string path_;
  TemporaryName temporary_;
  Descriptor file_, lock_;  ///< lock_: the same open file, until it has its name
  index_t n_;
  bool replace_;
  int replaced_mode_ = -1;  ///< permission bits of the file to be replaced; -1: none
};

}  // namespace gpucholmod
