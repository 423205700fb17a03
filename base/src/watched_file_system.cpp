#include <utility>

#include "file_health.h"
#include "holdfast/base/file_system.h"

namespace holdfast {
namespace {

using Watcher = std::function<void(const FileOperation&)>;

class WatchedFile : public File {
 public:
  WatchedFile(std::unique_ptr<File> target, std::string path, std::shared_ptr<const Watcher> before)
      : target_(std::move(target)), path_(std::move(path)), before_(std::move(before)) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    health_.attempt(path_, [&] {
      (*before_)({.name = "write", .path = path_, .offset = offset, .bytes = bytes.size(), .content = bytes});
      target_->write_at(offset, bytes);
    });
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    (*before_)({.name = "read", .path = path_, .offset = offset, .bytes = bytes.size()});
    return target_->read_at(offset, bytes);
  }

  std::uint64_t size_bytes() override { return target_->size_bytes(); }

  void start_write_back(std::uint64_t offset, std::uint64_t bytes) override {
    health_.attempt(path_, [&] {
      (*before_)({.name = "write_back", .path = path_, .offset = offset, .bytes = bytes});
      target_->start_write_back(offset, bytes);
    });
  }

  void start_reading(std::uint64_t offset, std::uint64_t bytes) override {
    (*before_)({.name = "read_ahead", .path = path_, .offset = offset, .bytes = bytes});
    target_->start_reading(offset, bytes);
  }

  void sync() override {
    health_.attempt(path_, [&] {
      (*before_)({.name = "sync", .path = path_});
      target_->sync();
    });
  }

 private:
  std::unique_ptr<File> target_;
  std::string path_;
  std::shared_ptr<const Watcher> before_;  // shared: a file may outlive its file system
  FileHealth health_;                      // a failure that `before` made is none of the target's
};

class WatchedFileSystem : public FileSystem {
 public:
  WatchedFileSystem(FileSystem& target, Watcher before)
      : target_(target), before_(std::make_shared<const Watcher>(std::move(before))) {}

  std::unique_ptr<File> create(const std::string& path) override {
    announce("create", path);
    return std::make_unique<WatchedFile>(target_.create(path), path, before_);
  }

  std::unique_ptr<File> open_for_writing(const std::string& path) override {
    announce("open_for_writing", path);
    return std::make_unique<WatchedFile>(target_.open_for_writing(path), path, before_);
  }

  std::unique_ptr<File> open_for_reading(const std::string& path) override {
    announce("open", path);
    return std::make_unique<WatchedFile>(target_.open_for_reading(path), path, before_);
  }

  void rename(const std::string& from, const std::string& to) override {
    (*before_)({.name = "rename", .path = from, .new_path = to});
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

std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, std::function<void(const FileOperation&)> before) {
  return std::make_unique<WatchedFileSystem>(target, std::move(before));
}

}  // namespace holdfast
