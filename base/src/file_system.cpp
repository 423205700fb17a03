// The operating system's files. Loops continue system calls that were interrupted or did only part of
// the work, and every error names the path, the size and the offset. What makes a savepoint durable
// depends on the details here: a file is dead after its first failed write, and a folder that was
// created is synced too (docs/decisions/savepoints.md).

#include "holdfast/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <filesystem>
#include <utility>

#include "file_error.h"
#include "file_health.h"
#include "holdfast/base/error.h"
#include "holdfast/base/regular_file.h"
#include "holdfast/base/shared_memory.h"
#include "holdfast/base/system_calls.h"

namespace holdfast {
namespace {

[[noreturn]] void fail(int error_number, const std::string& sentence) {
  throw file_error(error_number, sentence);
}

FileDescriptor open_descriptor(SystemCalls& calls, const std::string& path, int flags, const std::string& purpose) {
  FileDescriptor descriptor(uninterrupted([&] { return calls.open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  if (!descriptor.is_open()) fail(errno, fmt::format("cannot {} {}", purpose, path));
  return descriptor;
}

// A file of the operating system. It is closed by its descriptor and dead after its first failure.
class PosixFile : public File {
 public:
  PosixFile(SystemCalls& calls, FileDescriptor descriptor, std::string path)
      : calls_(calls), descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    health_.attempt(path_, [&] { write_all(offset, bytes); });
  }

  // Not guarded by health_: a failed read changes nothing, so it may be tried again.
  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    std::size_t total = 0;
    while (total < bytes.size()) {
      const std::span<std::byte> rest = bytes.subspan(total);
      const auto count = uninterrupted([&] {
        return calls_.pread(descriptor_.value(), rest.data(), rest.size(), static_cast<std::int64_t>(offset + total));
      });
      if (count < 0) fail(errno, describe("read", rest.size(), offset + total));
      // Only 0 is the end of the file: a system call may return less than was asked for.
      if (count == 0) break;
      total += static_cast<std::size_t>(count);
    }
    return total;
  }

  std::size_t scatter_at(std::uint64_t offset, std::span<const std::span<std::byte>> places) override {
    std::size_t total = 0;
    for (std::size_t first = 0; first < places.size();) {
      const auto together = std::min<std::size_t>(IOV_MAX, places.size() - first);
      const auto group = places.subspan(first, together);
      std::vector<iovec> vectors;
      vectors.reserve(together);
      std::size_t wanted = 0;
      for (const std::span<std::byte> place : group) {
        vectors.push_back({.iov_base = place.data(), .iov_len = place.size()});
        wanted += place.size();
      }
      const auto count = uninterrupted([&] {
        return calls_.preadv(descriptor_.value(), vectors.data(), static_cast<int>(together),
                             static_cast<std::int64_t>(offset + total));
      });
      if (count < 0) fail(errno, describe("read", wanted, offset + total));
      const std::size_t got = fill_rest(offset + total, group, static_cast<std::size_t>(count));
      total += got;
      if (got < wanted) break;
      first += together;
    }
    return total;
  }

  std::uint64_t size_bytes() override {
    struct stat status {};
    if (::fstat(descriptor_.value(), &status) != 0) fail(errno, fmt::format("cannot look up the size of {}", path_));
    return static_cast<std::uint64_t>(status.st_size);
  }

  // Only a hint, so a failure is ignored: reading works without it.
  void start_reading(std::uint64_t offset, std::uint64_t bytes) override {
    ::posix_fadvise(descriptor_.value(), static_cast<off_t>(offset), static_cast<off_t>(bytes), POSIX_FADV_WILLNEED);
  }

  void expect_reads_in_order() override { ::posix_fadvise(descriptor_.value(), 0, 0, POSIX_FADV_SEQUENTIAL); }

  void start_write_back(std::uint64_t offset, std::uint64_t bytes) override {
    health_.attempt(path_, [&] {
      const int result = calls_.sync_file_range(descriptor_.value(), static_cast<std::int64_t>(offset),
                                                static_cast<std::int64_t>(bytes), SYNC_FILE_RANGE_WRITE);
      // Any other errno only means that the hint was not taken: another kind of file, no such system call,
      // a signal.
      const bool is_lost = result != 0 && (errno == EIO || errno == ENOSPC || errno == EDQUOT);
      if (is_lost) fail(errno, describe("start to write back", bytes, offset));
    });
  }

  void sync() override {
    health_.attempt(path_, [&] {
      if (uninterrupted([&] { return calls_.fsync(descriptor_.value()); }) != 0) {
        fail(errno, fmt::format("cannot bring {} to stable storage", path_));
      }
    });
  }

 private:
  // Fills what a system call has not filled: it may do less than was asked for. `done` bytes are there. Returns how
  // many are there then: fewer than asked for only at the end of the file.
  std::size_t fill_rest(std::uint64_t offset, std::span<const std::span<std::byte>> places, std::size_t done) {
    std::size_t end = 0;
    for (const std::span<std::byte> place : places) {
      end += place.size();
      if (done >= end) continue;
      done += read_at(offset + done, place.last(end - done));
      if (done < end) break;
    }
    return done;
  }

  void write_all(std::uint64_t offset, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const auto written = uninterrupted([&] {
        return calls_.pwrite(descriptor_.value(), bytes.data(), bytes.size(), static_cast<std::int64_t>(offset));
      });
      // A file system that writes 0 bytes without an error would keep this loop going forever. None is
      // known to do so.
      if (written <= 0) fail(written < 0 ? errno : EIO, describe("write", bytes.size(), offset));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
  }

  std::string describe(const std::string& verb, std::uint64_t bytes, std::uint64_t offset) const {
    return fmt::format("cannot {} {} bytes at offset {} of {}", verb, bytes, offset, path_);
  }

  SystemCalls& calls_;
  FileDescriptor descriptor_;
  std::string path_;
  FileHealth health_;
};

class PosixFileSystem : public FileSystem {
 public:
  explicit PosixFileSystem(SystemCalls& calls) : calls_(calls) {}

  std::unique_ptr<File> create(const std::string& path) override {
    // O_EXCL refuses a file that exists and a symbolic link, so nothing that belongs to others is
    // overwritten.
    return std::make_unique<PosixFile>(calls_, open_descriptor(calls_, path, O_RDWR | O_CREAT | O_EXCL, "create"),
                                       path);
  }

  std::unique_ptr<File> open_for_reading(const std::string& path) override {
    FileDescriptor descriptor = open_regular_file(path, O_RDONLY, fmt::format("open {}", path), calls_);
    return std::make_unique<PosixFile>(calls_, std::move(descriptor), path);
  }

  std::unique_ptr<File> open_for_writing(const std::string& path) override {
    return std::make_unique<PosixFile>(calls_, open_descriptor(calls_, path, O_RDWR, "open"), path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (calls_.rename(from.c_str(), to.c_str()) != 0) fail(errno, fmt::format("cannot rename {} to {}", from, to));
  }

  void remove(const std::string& path) override {
    if (calls_.unlink(path.c_str()) != 0) fail(errno, fmt::format("cannot remove {}", path));
  }

  void sync_folder(const std::string& path) override {
    const FileDescriptor folder = open_descriptor(calls_, path, O_RDONLY | O_DIRECTORY, "open folder");
    const int result = uninterrupted([&] { return calls_.fsync(folder.value()); });
    // EINVAL: this file system cannot sync folders, and no caller could do anything about it.
    if (result != 0 && errno != EINVAL) fail(errno, fmt::format("cannot bring folder {} to stable storage", path));
  }

  std::vector<std::string> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr) fail(errno, fmt::format("cannot list folder {}", path));
    // readdir() reports an error only through errno.
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    if (errno != 0) fail(errno, fmt::format("cannot list folder {}", path));
    // The order of readdir() differs between file systems; callers get the same one everywhere.
    std::sort(names.begin(), names.end());
    return names;
  }

  bool exists(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return true;
    // Any other failure is not a "no": taken for one, missing rights could make a caller start
    // over.
    if (errno != ENOENT && errno != ENOTDIR) fail(errno, fmt::format("cannot look up {}", path));
    return false;
  }

  void create_folders(const std::string& path) override {
    // A folder's name is stored in its parent. Without a sync of the parent, a power cut could remove
    // the folder with all durable files in it.
    std::vector<std::string> missing;
    for (std::string folder = path; !exists(folder); folder = parent_folder(folder)) missing.push_back(folder);
    for (; !missing.empty(); missing.pop_back()) {
      const std::string& folder = missing.back();
      // EEXIST: another process was faster, but may not have synced yet.
      if (calls_.mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) {
        fail(errno, fmt::format("cannot create folder {}", folder));
      }
      sync_folder(parent_folder(folder));
    }
    // exists() and EEXIST also hold for a file of that name.
    if (!std::filesystem::is_directory(path)) fail(ENOTDIR, fmt::format("cannot create folder {}", path));
  }

 private:
  SystemCalls& calls_;
};

}  // namespace

std::size_t File::scatter_at(std::uint64_t offset, std::span<const std::span<std::byte>> places) {
  std::size_t total = 0;
  for (const std::span<std::byte> place : places) {
    const std::size_t got = read_at(offset + total, place);
    total += got;
    if (got < place.size()) break;
  }
  return total;
}

FileSystem& posix_file_system() {
  static SystemCalls calls;
  static PosixFileSystem instance(calls);
  return instance;
}

std::unique_ptr<FileSystem> posix_file_system(SystemCalls& calls) {
  return std::make_unique<PosixFileSystem>(calls);
}

std::string path_in_folder(const std::string& folder, const std::string& name) {
  return fmt::format("{}/{}", folder, name);
}

// Slashes at the end do not count: the parent of both "a/b" and "a/b/" is "a".
std::string parent_folder(const std::string& path) {
  const std::size_t end_of_name = path.find_last_not_of('/');
  if (end_of_name == std::string::npos) return path.empty() ? "." : "/";
  const std::size_t slash = path.find_last_of('/', end_of_name);
  if (slash == std::string::npos) return ".";
  const std::size_t end_of_folder = path.find_last_not_of('/', slash);
  return end_of_folder == std::string::npos ? "/" : path.substr(0, end_of_folder + 1);
}

}  // namespace holdfast
