#define _FILE_OFFSET_BITS 64

#include "base/file.h"

#include <cerrno>
#include <cmath>
#include <system_error>
#include <utility>

#include "base/error.h"

#ifndef _WIN32
#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <cstdlib>
#endif
#ifdef __linux__
#include <sys/syscall.h>
#endif

namespace gpucholmod {
namespace {

[[noreturn]] void refuse(const std::string& path, const char* reason, const std::string& message,
                         const Error::Fields& more = {}) {
  Error::Fields fields{{"path", path}, {"reason", std::string(reason)}};
  fields.insert(fields.end(), more.begin(), more.end());
  throw Error(ErrorCode::bad_file, message, fields);
}

}  // namespace

#ifdef _WIN32

namespace {

[[noreturn]] void unsupported(const std::string& path) {
  refuse(path, "unsupported", "factors in files are not supported on Windows");
}

}  // namespace

Descriptor::~Descriptor() {}
TemporaryName::~TemporaryName() {}
FactorFile::FactorFile(const std::string& path) : path_(path) { unsupported(path); }
const double* FactorFile::column(index_t, index_t, index_t, double*) const { unsupported(path_); }
void FactorFile::require_unchanged() const { unsupported(path_); }
OutputFile::OutputFile(const std::string& path, index_t n, bool replace, const FactorFile*)
    : path_(path), n_(n), replace_(replace) {
  unsupported(path);
}
void OutputFile::put(index_t, index_t, index_t, const double*) { unsupported(path_); }
void OutputFile::commit() { unsupported(path_); }
void OutputFile::publish() {}

#else

namespace {

[[noreturn]] void fail(const std::string& path, const char* doing, int error) {
  const std::string text = std::generic_category().message(error);
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    refuse(path, "no_space", "no space for '" + path + "': " + text);
  refuse(path, "failed", std::string("cannot ") + doing + " '" + path + "': " + text, {{"error", text}});
}

FileState state_of(const struct stat& s) {
#ifdef __APPLE__
  const timespec& written = s.st_mtimespec;
#else
  const timespec& written = s.st_mtim;
#endif
  return {std::uint64_t(s.st_dev), std::uint64_t(s.st_ino), std::int64_t(s.st_size), std::int64_t(written.tv_sec),
          std::int64_t(written.tv_nsec)};
}

struct stat status_of(int fd, const std::string& path) {
  struct stat s;
  if (fstat(fd, &s) != 0) fail(path, "look at", errno);
  return s;
}

/// Returns n >= 1 for a size of 8 n^2 bytes, and -1 for any other size.
index_t order_for(std::int64_t size) {
  const index_t n = index_t(std::llround(std::sqrt(double(size / 8))));
  return n > 0 && size % 8 == 0 && n * n == size / 8 ? n : -1;
}

off_t offset(index_t n, index_t i, index_t j) { return off_t(sizeof(double)) * (off_t(j) * n + i); }

/// Calls `step(data, bytes, at)`, which is pread() or pwrite(), until all bytes are transferred. Returns false if the
/// file ends, or if a call writes nothing more.
template <class Byte, class Step>
bool transfer(const std::string& path, const char* doing, Byte* data, std::size_t bytes, off_t at, Step step) {
  constexpr std::size_t most = std::size_t(1) << 30;  // every system accepts just under 2 GiB in one call
  while (bytes > 0) {
    const ssize_t done = step(data, std::min(bytes, most), at);
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail(path, doing, errno);
    if (done == 0) return false;
    data += done;
    bytes -= std::size_t(done);
    at += done;
  }
  return true;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

const std::string temporary_suffix = ".part";
constexpr std::size_t temporary_letters = 6;  ///< number of letters that mkstemps() chooses

/// Returns whether `name` is <base>.XXXXXX.part.
bool is_temporary_name(const std::string& name, const std::string& base) {
  const std::size_t dot = base.size(), end = dot + 1 + temporary_letters;
  return name.size() == end + temporary_suffix.size() && name.compare(0, dot, base) == 0 && name[dot] == '.' &&
         name.compare(end, std::string::npos, temporary_suffix) == 0 &&
         std::all_of(name.begin() + dot + 1, name.begin() + end, [](unsigned char c) { return std::isalnum(c) != 0; });
}

/// Deletes temporary files for `path` that killed processes of this user have left: files with no second name, whose
/// lock nobody holds. Deletes nothing if the file system has no locks.
void remove_abandoned(const std::string& path) {
  const std::string folder = folder_of(path), base = path.substr(path.rfind('/') + 1);
  DIR* entries = opendir(folder.c_str());
  if (!entries) return;
  while (const dirent* entry = readdir(entries)) {
    if (!is_temporary_name(entry->d_name, base)) continue;
    const std::string name = folder + "/" + entry->d_name;
    Descriptor part;
    part.fd = open(name.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY);
    struct stat s;
    if (part.fd >= 0 && fstat(part.fd, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() && s.st_nlink == 1 &&
        flock(part.fd, LOCK_EX | LOCK_NB) == 0)
      unlink(name.c_str());
  }
  closedir(entries);
}

/// Creates <path>.XXXXXX.part, locked as long as the descriptor or a copy of it is open. Returns the file's name.
std::string create_temporary(const std::string& path, Descriptor& file) {
  for (;;) {
    std::string name = path + "." + std::string(temporary_letters, 'X') + temporary_suffix;
    file.fd = mkstemps(&name[0], int(temporary_suffix.size()));
    if (file.fd < 0) {
      const int error = errno;
      if (error == ENOENT || error == ENOTDIR) refuse(path, "missing", "the folder of '" + path + "' does not exist");
      if (error == EACCES || error == EPERM || error == EROFS)
        refuse(path, "not_writable", "the folder of '" + path + "' may not be written to");
      fail(path, "create", error);
    }
    fcntl(file.fd, F_SETFD, FD_CLOEXEC);
    // Until the file is locked, another process may take it for an abandoned file, and delete it.
    int locked;
    while ((locked = flock(file.fd, LOCK_EX)) != 0 && errno == EINTR) {
    }
    struct stat s;
    if (locked != 0 || fstat(file.fd, &s) != 0 || s.st_nlink > 0) return name;  // without locks nobody deletes it
    close(std::exchange(file.fd, -1));
  }
}

/// Makes the disk store a new name in a folder. Ignores failure, because the file itself is complete.
void flush_folder(const std::string& folder) {
  Descriptor d;
  d.fd = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (d.fd >= 0) fsync(d.fd);
}

/// Renames `from` to `to` without link(), which FAT lacks. Returns -1, with EEXIST in errno, if `to` exists.
int rename_without_replacing(const char* from, const char* to) {
#if defined(__linux__) && defined(SYS_renameat2)
  constexpr unsigned no_replace = 1;  // RENAME_NOREPLACE
  if (syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, no_replace) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
#endif
  struct stat there;
  if (lstat(to, &there) == 0) {
    errno = EEXIST;
    return -1;
  }
  return std::rename(from, to);
}

int move_without_replacing(const char* from, const char* to) {
  if (link(from, to) == 0) return unlink(from), 0;
  return errno == EEXIST ? -1 : rename_without_replacing(from, to);
}

[[noreturn]] void refuse_existing(const std::string& path) {
  refuse(path, "exists", "'" + path + "' exists, and is only replaced with replace = TRUE");
}

/// Throws if the file at `path` may not be replaced. Returns its permission bits, or -1 if there is no file.
int replaceable_mode(const std::string& path, bool replace, const FactorFile* input) {
  struct stat target;
  if (stat(path.c_str(), &target) != 0) {
    if (!replace && lstat(path.c_str(), &target) == 0) refuse_existing(path);  // a dangling link
    return -1;
  }
  if (!replace && input && input->state().same_file(state_of(target)))
    refuse(path, "same_file", "'" + path + "' is the file to be read, and is only replaced with replace = TRUE");
  if (!S_ISREG(target.st_mode)) refuse(path, "not_a_file", "'" + path + "' is there and not an ordinary file");
  if (!replace) refuse_existing(path);
  if ((target.st_mode & 0222) == 0 || access(path.c_str(), W_OK) != 0)
    refuse(path, "read_only", "'" + path + "' has no write permission");
  return int(target.st_mode & 0777);
}

/// Throws no_space if `bytes` exceed the limit (ulimit -f): writing beyond the limit is a signal that ends R, not an
/// error.
void require_allowed_size(const std::string& path, off_t bytes) {
  rlimit limit;
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY && rlim_t(bytes) > limit.rlim_cur)
    fail(path, "write", EFBIG);
}

}  // namespace

Descriptor::~Descriptor() {
  if (fd >= 0) close(fd);
}

TemporaryName::~TemporaryName() {
  if (!path.empty()) unlink(path.c_str());
}

FactorFile::FactorFile(const std::string& path) : path_(path) {
  // O_NONBLOCK: to open a FIFO must not wait for its writer.
  file_.fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (file_.fd < 0) {
    const int error = errno;
    if (error == ENOENT || error == ENOTDIR) refuse(path, "missing", "'" + path + "' does not exist");
    if (error == EACCES || error == EPERM) refuse(path, "not_readable", "'" + path + "' may not be read");
    if (error == ENXIO) refuse(path, "not_a_file", "'" + path + "' is not an ordinary file");
    fail(path, "open", error);
  }
  const struct stat s = status_of(file_.fd, path);
  if (!S_ISREG(s.st_mode)) refuse(path, "not_a_file", "'" + path + "' is not an ordinary file");
  state_ = state_of(s);
  n_ = order_for(state_.size);
  if (n_ < 0)
    refuse(path, "wrong_size",
           "'" + path + "' is not a factor: its size, " + std::to_string(state_.size) +
               " bytes, is not 8 n^2 for any n >= 1",
           {{"size", double(state_.size)}});
#ifdef POSIX_FADV_SEQUENTIAL
  posix_fadvise(file_.fd, 0, 0, POSIX_FADV_SEQUENTIAL);
#endif
}

const double* FactorFile::column(index_t j, index_t first, index_t last, double* scratch) const {
  const auto step = [this](char* to, std::size_t bytes, off_t at) { return pread(file_.fd, to, bytes, at); };
  if (!transfer(path_, "read", reinterpret_cast<char*>(scratch), sizeof(double) * std::size_t(last - first),
                offset(n_, first, j), step))
    refuse(path_, "changed", "'" + path_ + "' has become shorter while it was read");
  return scratch;
}

void FactorFile::require_unchanged() const {
  if (!state_.same_contents(state_of(status_of(file_.fd, path_))))
    refuse(path_, "changed", "'" + path_ + "' was written to while it was read");
}

OutputFile::OutputFile(const std::string& path, index_t n, bool replace, const FactorFile* input)
    : path_(path), n_(n), replace_(replace), replaced_mode_(replaceable_mode(path, replace, input)) {
  if (n == 0) refuse(path, "wrong_size", "a factor of order 0 cannot be kept in a file", {{"size", 0.0}});
  const off_t bytes = offset(n, 0, n);
  require_allowed_size(path, bytes);
  remove_abandoned(path);
  temporary_.path = create_temporary(path, file_);
  lock_.fd = fcntl(file_.fd, F_DUPFD_CLOEXEC, 0);
  if (ftruncate(file_.fd, bytes) != 0) fail(path, "write", errno);
}

void OutputFile::put(index_t j, index_t first, index_t last, const double* values) {
  const auto step = [this](const char* from, std::size_t bytes, off_t at) { return pwrite(file_.fd, from, bytes, at); };
  if (!transfer(path_, "write", reinterpret_cast<const char*>(values), sizeof(double) * std::size_t(last - first),
                offset(n_, first, j), step))
    fail(path_, "write", EIO);
}

void OutputFile::commit() {
  int mode = replaced_mode_;
  if (mode < 0) {
    const mode_t mask = umask(0);
    umask(mask);
    mode = int(0666 & ~mask);
  }
  fchmod(file_.fd, mode_t(mode));  // not everywhere possible
  // EINVAL: this file system has nothing to wait for.
  while (fsync(file_.fd) != 0)
    if (errno != EINTR) {
      if (errno == EINVAL) break;
      fail(path_, "write", errno);
    }
  const int fd = std::exchange(file_.fd, -1);
  if (close(fd) != 0 && errno != EINTR) fail(path_, "write", errno);
  publish();
}

void OutputFile::publish() {
  const char *from = temporary_.path.c_str(), *to = path_.c_str();
  if ((replace_ ? std::rename(from, to) : move_without_replacing(from, to)) != 0) {
    if (errno == EEXIST) refuse_existing(path_);
    fail(path_, "create", errno);
  }
  temporary_.path.clear();
  flush_folder(folder_of(path_));
}

#endif

}  // namespace gpucholmod
