#pragma once

// Files in memory, for tests that open hundreds of thousands of them. Thread-safe, as every FileSystem is. Open files
// stay readable when they are removed or replaced, as on a disk. Nothing can be lost, so the syncs do nothing.

#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "holdfast/base/file_system.h"

namespace holdfast {

// The bytes of files, by path.
using FileContents = std::map<std::string, std::vector<std::byte>>;

class MemoryFileSystem : public FileSystem {
 public:
  // Contains these files and their folders.
  explicit MemoryFileSystem(const FileContents& contents = {});

  FileContents contents() const;

  std::unique_ptr<File> create(const std::string& path) override;
  std::unique_ptr<File> open_for_reading(const std::string& path) override;
  std::unique_ptr<File> open_for_writing(const std::string& path) override;
  void rename(const std::string& from, const std::string& to) override;
  void remove(const std::string& path) override;
  void sync_folder(const std::string& path) override;
  std::vector<std::string> list(const std::string& path) override;
  bool exists(const std::string& path) override;
  void create_folders(const std::string& path) override;

 private:
  class OpenFile;
  struct Content {
    std::mutex mutex;
    std::vector<std::byte> bytes;  // guarded by mutex
  };

  // The caller holds mutex_.
  std::map<std::string, std::shared_ptr<Content>>::iterator find(const std::string& path, const std::string& purpose);
  void require_folder(const std::string& path, const std::string& purpose) const;
  void add_folders(const std::string& path);

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Content>> files_;  // guarded by mutex_
  std::set<std::string> folders_;                          // guarded by mutex_
};

}  // namespace holdfast
