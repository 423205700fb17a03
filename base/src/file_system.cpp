#include "holdfast/base/file_system.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "holdfast/base/error.h"
#include "holdfast/base/shared_memory.h"

namespace holdfast {
namespace {

std::string advice(int error_number) {
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
      return "; free some space there or choose another folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "; check the permissions of the file and its folder";
    case EIO:
      return "; check the disk and the system's log";
    case EMFILE:
    case ENFILE:
      return "; close files or raise the limit of open files (ulimit -n)";
    default:
      return "";
  }
}

[[noreturn]] void fail(int error_number, const std::string& sentence) {
  const Error error = system_error(error_number, sentence);
  throw Error(error.code(), error.what() + advice(error_number));
}

// Repeats a system call that a signal interrupted.
template <typename Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

FileDescriptor open_descriptor(const std::string& path, int flags, const std::string& purpose) {
  FileDescriptor descriptor(uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); }));
  if (!descriptor.is_open()) fail(errno, "cannot " + purpose + " " + path);
  return descriptor;
}

class PosixFile : public File {
 public:
  PosixFile(FileDescriptor descriptor, std::string path) : descriptor_(std::move(descriptor)), path_(std::move(path)) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = uninterrupted(
          [&] { return ::pwrite(descriptor_.value(), bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
      // A write of nothing would be tried for ever; no file system is known to answer so without an error.
      if (written <= 0) fail(written < 0 ? errno : EIO, describe("write", bytes.size(), offset));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
      offset += static_cast<std::uint64_t>(written);
    }
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    std::size_t total = 0;
    while (total < bytes.size()) {
      const std::span<std::byte> rest = bytes.subspan(total);
      const ssize_t count = uninterrupted(
          [&] { return ::pread(descriptor_.value(), rest.data(), rest.size(), static_cast<off_t>(offset + total)); });
      if (count < 0) fail(errno, describe("read", rest.size(), offset + total));
      if (count == 0) break;
      total += static_cast<std::size_t>(count);
    }
    return total;
  }

  std::uint64_t size_bytes() override {
    struct stat status {};
    if (::fstat(descriptor_.value(), &status) != 0) fail(errno, "cannot look up the size of " + path_);
    return static_cast<std::uint64_t>(status.st_size);
  }

  void sync() override {
    if (uninterrupted([&] { return ::fsync(descriptor_.value()); }) != 0) {
      fail(errno, "cannot bring " + path_ + " to stable storage");
    }
  }

 private:
  std::string describe(const std::string& verb, std::size_t bytes, std::uint64_t offset) const {
    return "cannot " + verb + " " + std::to_string(bytes) + " bytes at offset " + std::to_string(offset) + " of " +
           path_;
  }

  FileDescriptor descriptor_;
  std::string path_;
};

class PosixFileSystem : public FileSystem {
 public:
  std::unique_ptr<File> create(const std::string& path) override {
    return std::make_unique<PosixFile>(open_descriptor(path, O_RDWR | O_CREAT | O_EXCL, "create"), path);
  }

  std::unique_ptr<File> open_for_reading(const std::string& path) override {
    return std::make_unique<PosixFile>(open_descriptor(path, O_RDONLY, "open"), path);
  }

  void rename(const std::string& from, const std::string& to) override {
    if (::rename(from.c_str(), to.c_str()) != 0) fail(errno, "cannot rename " + from + " to " + to);
  }

  void remove(const std::string& path) override {
    if (::unlink(path.c_str()) != 0) fail(errno, "cannot remove " + path);
  }

  void sync_folder(const std::string& path) override {
    const FileDescriptor folder = open_descriptor(path, O_RDONLY | O_DIRECTORY, "open folder");
    const int result = uninterrupted([&] { return ::fsync(folder.value()); });
    // EINVAL: this file system cannot sync folders, and there is nothing that a caller could do about it.
    if (result != 0 && errno != EINVAL) fail(errno, "cannot bring folder " + path + " to stable storage");
  }

  std::vector<std::string> list(const std::string& path) override {
    const std::unique_ptr<DIR, int (*)(DIR*)> folder(::opendir(path.c_str()), ::closedir);
    if (folder == nullptr) fail(errno, "cannot list folder " + path);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(folder.get())) {
      const std::string name = entry->d_name;
      if (name != "." && name != "..") names.push_back(name);
      errno = 0;
    }
    if (errno != 0) fail(errno, "cannot list folder " + path);
    std::sort(names.begin(), names.end());
    return names;
  }

  bool exists(const std::string& path) override {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0) return true;
    if (errno != ENOENT && errno != ENOTDIR) fail(errno, "cannot look up " + path);
    return false;
  }

  void create_folders(const std::string& path) override {
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) fail(error.value(), "cannot create folder " + path);
  }
};

using Watcher = std::function<void(const FileOperation&)>;

class WatchedFile : public File {
 public:
  WatchedFile(std::unique_ptr<File> target, std::string path, std::shared_ptr<const Watcher> before)
      : target_(std::move(target)), path_(std::move(path)), before_(std::move(before)) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    (*before_)({.name = "write", .path = path_, .offset = offset, .bytes = bytes.size()});
    target_->write_at(offset, bytes);
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    (*before_)({.name = "read", .path = path_, .offset = offset, .bytes = bytes.size()});
    return target_->read_at(offset, bytes);
  }

  std::uint64_t size_bytes() override { return target_->size_bytes(); }

  void sync() override {
    (*before_)({.name = "sync", .path = path_});
    target_->sync();
  }

 private:
  std::unique_ptr<File> target_;
  std::string path_;
  std::shared_ptr<const Watcher> before_;  // shared: a file may outlive its file system
};

class WatchedFileSystem : public FileSystem {
 public:
  WatchedFileSystem(FileSystem& target, Watcher before)
      : target_(target), before_(std::make_shared<const Watcher>(std::move(before))) {}

  std::unique_ptr<File> create(const std::string& path) override {
    announce("create", path);
    return std::make_unique<WatchedFile>(target_.create(path), path, before_);
  }

  std::unique_ptr<File> open_for_reading(const std::string& path) override {
    announce("open", path);
    return std::make_unique<WatchedFile>(target_.open_for_reading(path), path, before_);
  }

  void rename(const std::string& from, const std::string& to) override {
    announce("rename", from);
    target_.rename(from, to);
  }

  void remove(const std::string& path) override {
    announce("remove", path);
    target_.remove(path);
  }

  void sync_folder(const std::string& path) override {
    announce("sync_folder", path);
    target_.sync_folder(path);
  }

  std::vector<std::string> list(const std::string& path) override {
    announce("list", path);
    return target_.list(path);
  }

  bool exists(const std::string& path) override {
    announce("exists", path);
    return target_.exists(path);
  }

  void create_folders(const std::string& path) override {
    announce("create_folders", path);
    target_.create_folders(path);
  }

 private:
  void announce(const char* name, const std::string& path) const { (*before_)({.name = name, .path = path}); }

  FileSystem& target_;
  std::shared_ptr<const Watcher> before_;
};

}  // namespace

FileSystem& posix_file_system() {
  static PosixFileSystem instance;
  return instance;
}

std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, std::function<void(const FileOperation&)> before) {
  return std::make_unique<WatchedFileSystem>(target, std::move(before));
}

std::string parent_folder(const std::string& path) {
  const std::size_t end_of_name = path.find_last_not_of('/');
  if (end_of_name == std::string::npos) return path.empty() ? "." : "/";
  const std::size_t slash = path.find_last_of('/', end_of_name);
  if (slash == std::string::npos) return ".";
  const std::size_t end_of_folder = path.find_last_not_of('/', slash);
  return end_of_folder == std::string::npos ? "/" : path.substr(0, end_of_folder + 1);
}

}  // namespace holdfast
