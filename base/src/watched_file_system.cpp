// Calls functions before and after every file operation: tests inject faults and cut the power with it,
// and the savepoint writer reports what it is doing to the watchdog. An injected failure must make a
// file as dead as a real one does, so each file has a health of its own (docs/decisions/testing.md).

#include "holdfast/base/watched_file_system.h"

#include <utility>

#include "file_health.h"

namespace holdfast {
namespace {

struct Watchers {
  FileWatcher before;
  FileWatcher after;

  // Calls before(), act() and after(), the last also when act() throws. If before() throws, as in a test that injects a
  // failure, the operation is not done and after() is not called.
  template <typename Act>
  auto around(const FileOperation& operation, const Act& act) const {
    before(operation);
    const Ended ended{after, operation};
    return act();
  }

 private:
  // A destructor calls `after`, so that an exception of the operation does not skip it.
  struct Ended {
    ~Ended() {
      if (after) after(operation);
    }
    const FileWatcher& after;
    const FileOperation& operation;
  };
};

// Reports each operation. Only size_bytes() is passed on silently. Reading takes no part in the file's health: a failed
// read loses nothing and may be tried again.
class WatchedFile : public File {
 public:
  WatchedFile(std::unique_ptr<File> target, std::string path, std::shared_ptr<const Watchers> watchers)
      : target_(std::move(target)), path_(std::move(path)), watchers_(std::move(watchers)) {}

  void write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    // before() is called within the attempt, so that a failure that it injects is as final as a real one.
    health_.attempt(path_, [&] {
      watchers_->around({.name = "write", .path = path_, .offset = offset, .bytes = bytes.size(), .content = bytes},
                        [&] { target_->write_at(offset, bytes); });
    });
  }

  std::size_t read_at(std::uint64_t offset, std::span<std::byte> bytes) override {
    return watchers_->around({.name = "read", .path = path_, .offset = offset, .bytes = bytes.size()},
                             [&] { return target_->read_at(offset, bytes); });
  }

  std::uint64_t size_bytes() override { return target_->size_bytes(); }

  void start_write_back(std::uint64_t offset, std::uint64_t bytes) override {
    health_.attempt(path_, [&] {
      watchers_->around({.name = "write_back", .path = path_, .offset = offset, .bytes = bytes},
                        [&] { target_->start_write_back(offset, bytes); });
    });
  }

  void start_reading(std::uint64_t offset, std::uint64_t bytes) override {
    watchers_->around({.name = "read_ahead", .path = path_, .offset = offset, .bytes = bytes},
                      [&] { target_->start_reading(offset, bytes); });
  }

  void expect_reads_in_order() override {
    watchers_->around({.name = "read_in_order", .path = path_}, [&] { target_->expect_reads_in_order(); });
  }

  void sync() override {
    health_.attempt(path_, [&] { watchers_->around({.name = "sync", .path = path_}, [&] { target_->sync(); }); });
  }

 private:
  std::unique_ptr<File> target_;
  std::string path_;
  std::shared_ptr<const Watchers> watchers_;  // shared: a file may outlive its file system
  FileHealth health_;                         // a failure that `before` made is not the target's
};

class WatchedFileSystem : public FileSystem {
 public:
  WatchedFileSystem(FileSystem& target, Watchers watchers)
      : target_(target), watchers_(std::make_shared<const Watchers>(std::move(watchers))) {}

  std::unique_ptr<File> create(const std::string& path) override {
    return watched(path, around("create", path, [&] { return target_.create(path); }));
  }

  std::unique_ptr<File> open_for_writing(const std::string& path) override {
    return watched(path, around("open_for_writing", path, [&] { return target_.open_for_writing(path); }));
  }

  std::unique_ptr<File> open_for_reading(const std::string& path) override {
    return watched(path, around("open", path, [&] { return target_.open_for_reading(path); }));
  }

  void rename(const std::string& from, const std::string& to) override {
    // Both names are told: a test that cuts the power keeps a list of names (tests/support/disks/crash_disk.cpp).
    watchers_->around({.name = "rename", .path = from, .new_path = to}, [&] { target_.rename(from, to); });
  }

  void remove(const std::string& path) override {
    around("remove", path, [&] { target_.remove(path); });
  }

  void sync_folder(const std::string& path) override {
    around("sync_folder", path, [&] { target_.sync_folder(path); });
  }

  std::vector<std::string> list(const std::string& path) override {
    return around("list", path, [&] { return target_.list(path); });
  }

  bool exists(const std::string& path) override {
    return around("exists", path, [&] { return target_.exists(path); });
  }

  void create_folders(const std::string& path) override {
    around("create_folders", path, [&] { target_.create_folders(path); });
  }

 private:
  template <typename Act>
  // Operations of the file system have no health: each names its file anew.
  auto around(const char* name, const std::string& path, const Act& act) const -> decltype(act()) {
    return watchers_->around({.name = name, .path = path}, act);
  }

  std::unique_ptr<File> watched(const std::string& path, std::unique_ptr<File> file) const {
    return std::make_unique<WatchedFile>(std::move(file), path, watchers_);
  }

  FileSystem& target_;
  std::shared_ptr<const Watchers> watchers_;
};

}  // namespace

std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, std::function<void(const FileOperation&)> before) {
  return watched_file_system(target, std::move(before), {});
}

std::unique_ptr<FileSystem> watched_file_system(FileSystem& target, FileWatcher before, FileWatcher after) {
  return std::make_unique<WatchedFileSystem>(target, Watchers{.before = std::move(before), .after = std::move(after)});
}

}  // namespace holdfast
